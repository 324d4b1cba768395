//! Rows as a writer notes them: a number while they are all of the first ones, else a list; those out of order apart.

use crate::row::{ROWS_MAX, RowId};
use crate::rowset::RowSet;

/// Rows, each once or (where values are many) as often as noted.
#[derive(Debug, Default)]
pub(super) struct RowList {
    /// The rows below this, each once.
    first: u32,
    /// Rows after them, ascending.
    list: Vec<u32>,
    /// Rows that came after one above them.
    late: RowSet,
}

impl RowList {
    /// The highest row noted in order.
    pub(super) fn last(&self) -> Option<u32> {
        self.list.last().copied().or(self.first.checked_sub(1))
    }

    /// Notes a row that is not below the last, also when it is the last again.
    #[inline]
    pub(super) fn push(&mut self, row: u32) {
        if self.list.is_empty() && row == self.first {
            self.first += 1;
        } else {
            self.list.push(row);
        }
    }

    /// Notes a row, once.
    #[inline]
    pub(super) fn add(&mut self, row: RowId) {
        let row = row.number();
        match self.last() {
            Some(last) if last == row => {}
            Some(last) if last > row => self.add_late(row),
            // One beyond all segments is refused in the end.
            _ => self.push(row),
        }
    }

    #[cold]
    fn add_late(&mut self, row: u32) {
        if row >= self.first {
            self.late.insert(RowId::at(row));
        }
    }

    /// How many were noted in order.
    pub(super) fn len(&self) -> usize {
        self.first as usize + self.list.len()
    }

    /// All that were noted in order.
    pub(super) fn to_vec(&self) -> Vec<u32> {
        (0..self.first).chain(self.list.iter().copied()).collect()
    }

    /// All of them as a set.
    pub(super) fn to_row_set(&self) -> RowSet {
        let mut words = vec![0_u64; (self.list.last().map_or(0, |&last| last.min(ROWS_MAX)) as usize / 64) + 1];
        for &row in &self.list {
            if let Some(word) = words.get_mut(row.min(ROWS_MAX) as usize / 64) {
                *word |= 1 << (row.min(ROWS_MAX) % 64);
            }
        }
        let rows = words.len() as u32 * 64;
        let mut set = crate::rowset::Dense::from_words(words, rows).to_row_set();
        set.add(&RowSet::range(0..self.first));
        set.add(&self.late);
        set
    }
}
