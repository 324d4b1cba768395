//! And, or, and-not and ranges over row sets, and their counts without a set of their own.

use std::ops::Range;

use roaring::RoaringBitmap;

use super::RowSet;

impl RowSet {
    /// The rows of a range of numbers.
    #[must_use]
    pub fn range(rows: Range<u32>) -> Self {
        let mut bitmap = RoaringBitmap::new();
        bitmap.insert_range(rows);
        Self { bitmap }
    }

    /// Rows in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { bitmap: &self.bitmap & &other.bitmap }
    }

    /// Rows in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        Self { bitmap: &self.bitmap | &other.bitmap }
    }

    /// Rows in this one and not in the other.
    #[must_use]
    pub fn and_not(&self, other: &Self) -> Self {
        Self { bitmap: &self.bitmap - &other.bitmap }
    }

    /// Keeps the rows that are in the other too.
    pub fn keep(&mut self, other: &Self) {
        self.bitmap &= &other.bitmap;
    }

    /// Adds the rows of the other.
    pub fn add(&mut self, other: &Self) {
        self.bitmap |= &other.bitmap;
    }

    /// Takes the rows of the other out.
    pub fn take_out(&mut self, other: &Self) {
        self.bitmap -= &other.bitmap;
    }

    /// Keeps the rows of a range.
    pub fn keep_range(&mut self, rows: Range<u32>) {
        self.bitmap.remove_range(..rows.start);
        self.bitmap.remove_range(rows.end.max(rows.start)..);
    }

    /// The rows below `rows` that are not in it.
    #[must_use]
    pub fn complement(&self, rows: u32) -> Self {
        Self { bitmap: Self::range(0..rows).bitmap - &self.bitmap }
    }

    /// How many rows are in both.
    #[must_use]
    pub fn and_len(&self, other: &Self) -> u64 {
        self.bitmap.intersection_len(&other.bitmap)
    }

    /// How many rows of a range.
    #[must_use]
    pub fn range_len(&self, rows: Range<u32>) -> u64 {
        self.bitmap.range_cardinality(rows)
    }
}
