//! The visibility rule, stated once: a version is seen at S when it was created at or before S and did not end at or
//! before S. `Seq`s come from the one committing order; what a reader may choose as S is in `watermark.rs`, which S are
//! in use in `snapshot.rs`.
//!
//! A reader takes a snapshot first and the collection's version after it: every end at or before S is then recorded in
//! what that version holds, because installation of a new version carries over all ends recorded in the old one.

pub(crate) mod snapshot;
pub(crate) mod version;
pub(crate) mod watermark;

pub(crate) use snapshot::{Snapshot, Snapshots};
pub(crate) use watermark::Watermarks;
