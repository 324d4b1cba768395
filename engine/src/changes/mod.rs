//! Change streams: what was committed, told in order, each change once.
//!
//! A stream is a place in the log and a scope. It tells what is durable and visible, never more, so that what it has told
//! is there after any crash; where it stands is a token, a text that another process can go on from after a restart, a
//! seal or a compaction, as long as the log is kept (`maintain/retain.rs`). A stream that has told all there is sleeps
//! without a thread: `hub.rs` knows who listens to what, and wakes whom a commit concerns. It holds no memory while it
//! sleeps, and a bounded amount while it reads. Nothing here changes data.
//!
//! Reading order: `token.rs`, `hub.rs`, `event.rs` (one change as a document), `commit.rs` (the changes of a commit),
//! `stream.rs`.

mod commit;
mod event;
pub(crate) mod hub;
mod stream;
mod token;

pub use stream::{ChangeEvent, ChangeRequest, ChangeStream, FullDocument, Reading};
pub(crate) use token::fuzz_token;
