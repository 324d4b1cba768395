//! Opens a column where it lies. Opening costs its directory; lanes are opened when asked for.
//!
//! Any bytes are answered with `Corrupt` or read within their bounds; `check` proves what opening takes on trust.

use super::lane::Lane;
use super::{ARRAYS_AT, HEAD_BYTES, LANE_BYTES, LANES_MAX, NULLS_AT, PRESENT_AT};
use crate::error::{Result, corrupt};
use crate::format::{self, PartKind, piece, read_u32, slice};
use crate::postings::RoaringView;
use crate::row::ROWS_MAX;
use crate::rowset::RowSet;

/// A column where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Column<'a> {
    payload: &'a [u8],
    lanes: &'a [u8],
    rows: u32,
    again: bool,
}

impl<'a> Column<'a> {
    /// Opens the part that a `ColumnWriter` gave.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported`.
    pub fn open(part: &'a [u8]) -> Result<Self> {
        let payload = format::open(PartKind::Column, part)?;
        let rows = read_u32(payload, 0)?;
        let count = payload.get(4).map_or(0, |&count| usize::from(count));
        if rows > ROWS_MAX || count > LANES_MAX || payload.get(5..8) != Some(&[0; 3]) {
            return Err(corrupt("rows and lanes within bounds", 0));
        }
        let lanes = slice(payload, HEAD_BYTES, count * LANE_BYTES)?;
        let tags = lanes.chunks_exact(LANE_BYTES).map(|entry| entry[0]);
        if !tags.is_sorted_by(|a, b| a < b) {
            return Err(corrupt("ascending tags", HEAD_BYTES));
        }
        Ok(Self { payload, lanes, rows, again: false })
    }

    /// Opens a part whose lanes were all opened before: what opening proves of them is not proved again.
    ///
    /// # Errors
    /// As [`Column::open`].
    pub fn reopen(part: &'a [u8]) -> Result<Self> {
        Self::open(part).map(|column| Self { again: true, ..column })
    }

    /// Rows of the segment.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    fn set(&self, at: usize) -> Result<RowSet> {
        let set = RowSet::read(piece(self.payload, at)?)?;
        if set.last().is_some_and(|last| last.number() >= self.rows) {
            return Err(corrupt("rows of the column", at));
        }
        Ok(set)
    }

    /// Rows with null.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn nulls(&self) -> Result<RowSet> {
        self.set(NULLS_AT)
    }

    /// Rows with an array.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn arrays(&self) -> Result<RowSet> {
        self.set(ARRAYS_AT)
    }

    /// Rows where the place exists; the others miss it.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn present(&self) -> Result<RowSet> {
        self.set(PRESENT_AT)
    }

    fn count(&self, at: usize) -> Result<u64> {
        piece(self.payload, at).and_then(RoaringView::open).map(|rows| rows.len())
    }

    /// How many rows have null: from headers, without a set.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn null_count(&self) -> Result<u64> {
        self.count(NULLS_AT)
    }

    /// How many rows have an array: from headers, without a set.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn array_count(&self) -> Result<u64> {
        self.count(ARRAYS_AT)
    }

    /// In how many rows the place exists: from headers, without a set.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn present_count(&self) -> Result<u64> {
        self.count(PRESENT_AT)
    }

    /// The tags of its lanes, ascending.
    pub fn tags(&self) -> impl Iterator<Item = u8> + 'a {
        self.lanes.chunks_exact(LANE_BYTES).map(|entry| entry[0])
    }

    /// The lane of a tag; `None` if no row has such a value.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported`.
    pub fn lane(&self, tag: u8) -> Result<Option<Lane<'a>>> {
        match self.tags().position(|other| other == tag) {
            Some(index) => Lane::open(self.payload, HEAD_BYTES + index * LANE_BYTES, self.rows, self.again).map(Some),
            None => Ok(None),
        }
    }

    /// All lanes, by ascending tag.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported`.
    pub fn lanes(&self) -> Result<Vec<Lane<'a>>> {
        (0..self.lanes.len() / LANE_BYTES)
            .map(|index| Lane::open(self.payload, HEAD_BYTES + index * LANE_BYTES, self.rows, self.again))
            .collect()
    }

    /// Reads everything, and whether it is what a writer writes. Costs a pass.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported`.
    pub fn check(&self) -> Result<()> {
        let present = self.present()?;
        for set in [self.nulls()?, self.arrays()?] {
            if !set.and_not(&present).is_empty() {
                return Err(corrupt("rows that are present", PRESENT_AT));
            }
        }
        for lane in self.lanes()? {
            lane.check()?;
            if !lane.presence().row_set().and_not(&present).is_empty() {
                return Err(corrupt("rows that are present", PRESENT_AT));
            }
        }
        Ok(())
    }
}
