//! A set of rows of one segment: what every question to a column, a posting or a sorted run is answered with.
//!
//! `RowSet` is small where it can be (a roaring bitmap); `Dense` is one bit per row, for scans that write whole words.
//! Neither knows how many of its rows are alive: that is the caller's.

mod codec;
mod dense;
mod iter;
mod ops;

pub use dense::Dense;
pub(crate) use iter::set_run;
pub use iter::{BATCH_ROWS, Batch, Batches};

use roaring::RoaringBitmap;

use crate::row::RowId;

/// A set of rows.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RowSet {
    bitmap: RoaringBitmap,
}

impl RowSet {
    /// No rows.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The set that a bitmap holds.
    #[must_use]
    pub fn from_bitmap(bitmap: RoaringBitmap) -> Self {
        Self { bitmap }
    }

    /// It as a bitmap of the `roaring` crate.
    #[must_use]
    pub fn bitmap(&self) -> &RoaringBitmap {
        &self.bitmap
    }

    /// The bitmap itself.
    #[must_use]
    pub fn into_bitmap(self) -> RoaringBitmap {
        self.bitmap
    }

    /// Adds a row; whether it was not there.
    pub fn insert(&mut self, row: RowId) -> bool {
        self.bitmap.insert(row.number())
    }

    /// Adds a row that is above all others: cheaper than `insert`. Whether it was.
    pub fn push(&mut self, row: RowId) -> bool {
        self.bitmap.try_push(row.number()).is_ok()
    }

    /// Takes a row out; whether it was there.
    pub fn remove(&mut self, row: RowId) -> bool {
        self.bitmap.remove(row.number())
    }

    /// Whether a row is in it.
    #[must_use]
    pub fn contains(&self, row: RowId) -> bool {
        self.bitmap.contains(row.number())
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.bitmap.len()
    }

    /// Whether none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bitmap.is_empty()
    }

    /// The lowest row.
    #[must_use]
    pub fn first(&self) -> Option<RowId> {
        self.bitmap.min().map(RowId::at)
    }

    /// The highest row.
    #[must_use]
    pub fn last(&self) -> Option<RowId> {
        self.bitmap.max().map(RowId::at)
    }
}

impl FromIterator<RowId> for RowSet {
    fn from_iter<I: IntoIterator<Item = RowId>>(rows: I) -> Self {
        Self { bitmap: rows.into_iter().map(RowId::number).collect() }
    }
}
