//! Every path of a segment's documents as a column, without asking: made when the segment is made, kept in its sections.
//!
//! Takes documents row by row (`shred.rs`), writes sections of a segment (`directory.rs` says what is where), and gives the
//! column of a path (`reader.rs`). How a value becomes one of a lane, and what a lane means, is in `value.rs`. It knows
//! what a path through arrays means, and nothing of filters: what a question does with a column is in `plan`.
//!
//! What a column of path P says of a row, for a path whose names are not array positions:
//!
//! * A lane holds the scalars that P leads to in MongoDB's sense: the value at P, or, where that is an array, its elements;
//!   through arrays of objects on the way, those of each. Elements of arrays in arrays are not among them.
//! * *Null* rows have a null among them, *array* rows have an array at P itself, *present* rows have anything at P.
//! * Paths beyond the budget have no column: the rows that have one are in one of [`BUCKETS`] sets, by the path's hash, so
//!   that other rows are known not to have it.
//!
//! A name with a dot in it is reached by no dotted path and has no column.

mod directory;
mod reader;
mod shred;
pub(crate) mod value;

pub(crate) use directory::fuzz_decode;
pub(crate) use reader::{ColumnData, Columns, Found, Source};
pub(crate) use shred::Shredder;

use crate::segment::KIND_FOREIGN_MIN;

/// Section of the directory; there is one of it.
pub(crate) const KIND_DIRECTORY: u16 = KIND_FOREIGN_MIN;
/// Sections of columns, by the column's place in the directory.
pub(crate) const KIND_COLUMN: u16 = KIND_FOREIGN_MIN + 1;
/// Sections of postings: the column's place times `LANE_TAGS`, and the lane's tag.
pub(crate) const KIND_POSTINGS: u16 = KIND_FOREIGN_MIN + 2;
/// Above all tags of lanes.
pub(crate) const LANE_TAGS: u32 = 64;

/// Columns of one segment at most; paths that fewer rows have give way.
pub(crate) const COLUMNS_MAX: usize = 1024;
/// Sets of rows that paths without a column share.
pub(crate) const BUCKETS: usize = 256;

/// The bucket of a path without a column. FNV-1a (Fowler, Noll, Vo), which stands in files.
pub(crate) fn bucket_of(path: &str) -> usize {
    let hash = path
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    ((hash >> 32) ^ hash) as usize % BUCKETS
}
