//! Row sets, columns and sorted keys, addressed by row number: bytes in, bytes out.
//!
//! Takes numbers, bools and order-preserving byte keys by row of one segment; gives parts, each one slice of bytes that is
//! read where it lies (FORMAT.md). It must never know documents, paths, files or threads.
//! Read `row`, `rowset`, then `column`.

pub mod column;
mod error;
mod format;
#[doc(hidden)]
pub mod fuzzing;
pub mod postings;
mod remap;
mod row;
mod rowset;
pub mod sorted;
mod stats;

pub use error::{Error, Result};
pub use format::{FORMAT_VERSION, HEADER_BYTES, PartKind, checksum_holds};
pub use remap::RowRemap;
pub use row::{ROWS_MAX, RowId};
pub use rowset::{BATCH_ROWS, Batch, Batches, Dense, RowSet};
pub use stats::{Distinct, EXACT_DISTINCT_MAX};

/// The example of the README, run as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;
