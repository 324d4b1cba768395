//! What runs in the background, and its order: `worker.rs` has the threads, `seal.rs` turns tails into segments and lets
//! go of log that nothing needs any more, `compact.rs` makes segments of segments as `policy.rs` chooses and at the pace
//! of `pace.rs`, `rows.rs` makes a segment of rows, `indexes.rs` builds what is declared (the files: `index_files.rs`),
//! `expiry.rs` deletes what has had its time, `retain.rs` says how much log is kept for change streams. Nothing here is
//! needed for an
//! answer to be right.

pub(crate) mod compact;
pub(crate) mod expiry;
mod index_files;
pub(crate) mod indexes;
pub(crate) mod pace;
mod policy;
pub(crate) mod retain;
mod rows;
pub(crate) mod seal;
pub(crate) mod worker;
