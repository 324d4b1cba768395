//! One column: what the rows of a segment have at one place, side by side for each type (a lane).
//!
//! A lane has a tag that is its caller's (which type of value it stands for) and a kind that is ours (how it is packed).
//! Rows may have no value, one or many, in several lanes at once. Beside the lanes: rows with null, rows with an array, rows
//! where the place exists at all. Read `writer`, then `reader`, then `scan`; FORMAT.md has the bytes.

mod bitpack;
mod bits;
mod interned;
mod lane;
mod merge;
mod numbers;
pub(crate) mod packed;
mod presence;
mod reader;
mod rows;
mod scan;
mod strings;
mod wide;
mod window;
mod writer;

pub use lane::{Lane, Values};
pub use merge::merge;
pub use presence::Presence;
pub use reader::Column;
pub use strings::{Dictionary, Raw};
pub use window::{WINDOW_ROWS, Window};
pub use writer::ColumnWriter;

/// Lanes of one column at most.
pub const LANES_MAX: usize = 64;
/// Values of a zone of the zone map (rows, where every row has one value).
pub const ZONE_VALUES: usize = packed::BLOCK;

/// What a lane holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// True and false.
    Bool = 1,
    /// Signed whole numbers; dates too.
    Int = 2,
    /// Doubles.
    Float = 3,
    /// Byte strings, ordered as bytes.
    Bytes = 4,
}

/// One value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Of a `Kind::Bool` lane.
    Bool(bool),
    /// Of a `Kind::Int` lane.
    Int(i64),
    /// Of a `Kind::Float` lane.
    Float(f64),
    /// Of a `Kind::Bytes` lane.
    Bytes(&'a [u8]),
}

impl Value<'_> {
    /// In which kind of lane it lies.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Bytes(_) => Kind::Bytes,
        }
    }
}

/// Bytes before the lanes: rows, lanes, and where the three row sets are.
const HEAD_BYTES: usize = 32;
const NULLS_AT: usize = 8;
const ARRAYS_AT: usize = 16;
const PRESENT_AT: usize = 24;
/// Bytes of an entry of a lane.
const LANE_BYTES: usize = 32;
const PLAIN: u8 = 0;
const DECIMAL: u8 = 1;
const DICTIONARY: u8 = 2;
const RAW: u8 = 3;
