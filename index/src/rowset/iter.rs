//! Rows of a set one by one, from a row on, or in batches of `BATCH_ROWS` as bits: the unit of work of a scan.

use std::ops::Range;

use super::{Dense, RowSet};
use crate::row::RowId;

/// Rows of a batch: one roaring container, one morsel of work.
pub const BATCH_ROWS: u32 = 1 << 16;

/// The rows of a set within one aligned range of `BATCH_ROWS`.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The first row that the batch could hold: a multiple of `BATCH_ROWS`.
    pub base: RowId,
    /// Its rows, still numbered from the beginning of the segment.
    pub rows: RowSet,
}

/// The batches of a set that are not empty, in order.
#[derive(Debug)]
pub struct Batches<'a> {
    set: &'a RowSet,
    next: u32,
}

impl Iterator for Batches<'_> {
    type Item = Batch;

    fn next(&mut self) -> Option<Batch> {
        let mut iter = self.set.bitmap.iter();
        iter.advance_to(self.next);
        let base = iter.next()? / BATCH_ROWS * BATCH_ROWS;
        self.next = base.checked_add(BATCH_ROWS)?;
        let range = RowSet::range(base..self.next);
        Some(Batch { base: RowId::at(base), rows: self.set.and(&range) })
    }
}

impl RowSet {
    /// The rows in order, from both ends.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = RowId> + '_ {
        self.bitmap.iter().map(RowId::at)
    }

    /// The rows from `row` on, in order.
    pub fn iter_from(&self, row: RowId) -> impl Iterator<Item = RowId> + '_ {
        let mut iter = self.bitmap.iter();
        iter.advance_to(row.number());
        iter.map(RowId::at)
    }

    /// Runs of neighbouring rows, in order.
    pub fn runs(&self) -> impl Iterator<Item = Range<u32>> + '_ {
        let mut iter = self.bitmap.iter();
        std::iter::from_fn(move || iter.next_range().map(|run| *run.start()..run.end().saturating_add(1)))
    }

    /// The set in batches of `BATCH_ROWS`; empty ones are left out.
    #[must_use]
    pub fn batches(&self) -> Batches<'_> {
        Batches { set: self, next: 0 }
    }

    /// Those of its rows that are below `rows`, a bit each.
    #[must_use]
    pub fn to_dense(&self, rows: u32) -> Dense {
        let mut words = vec![0_u64; rows.div_ceil(64) as usize];
        for run in self.runs() {
            set_run(&mut words, run.start..run.end.min(rows));
        }
        Dense::from_words(words, rows)
    }
}

/// Sets the bits of a range; what is beyond the words is ignored.
pub(crate) fn set_run(words: &mut [u64], run: Range<u32>) {
    let mut at = run.start;
    while at < run.end {
        let end = run.end.min((at | 63) + 1);
        let count = end - at;
        let bits = if count == 64 { u64::MAX } else { ((1 << count) - 1) << (at % 64) };
        match words.get_mut(at as usize / 64) {
            Some(word) => *word |= bits,
            None => return,
        }
        at = end;
    }
}
