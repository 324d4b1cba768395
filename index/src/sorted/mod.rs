//! Sorted byte keys and the rows they belong to. Read `run`; `block` has the keys' bytes, which dictionaries share.

pub(crate) mod block;
mod merge;
mod run;

pub use merge::merge;
pub use run::{BackCursor, SortedCursor, SortedRun, SortedWriter};
