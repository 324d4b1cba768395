//! One bit per row in words of 64: what scans write, one word at a time, before it becomes a row set.

use super::RowSet;
use crate::row::RowId;

/// A bit for each of `rows` rows. Bits beyond the last row are zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dense {
    words: Vec<u64>,
    rows: u32,
}

impl Dense {
    /// No row of `rows`.
    #[must_use]
    pub fn none(rows: u32) -> Self {
        Self { words: vec![0; rows.div_ceil(64) as usize], rows }
    }

    /// All of `rows` rows.
    #[must_use]
    pub fn all(rows: u32) -> Self {
        let mut all = Self { words: vec![u64::MAX; rows.div_ceil(64) as usize], rows };
        all.trim();
        all
    }

    /// The bits as they are; those beyond `rows` are cleared.
    #[must_use]
    pub fn from_words(mut words: Vec<u64>, rows: u32) -> Self {
        words.resize(rows.div_ceil(64) as usize, 0);
        let mut dense = Self { words, rows };
        dense.trim();
        dense
    }

    fn trim(&mut self) {
        if !self.rows.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last &= (1 << (self.rows % 64)) - 1;
        }
    }

    /// For how many rows it has bits.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// The words; row r is bit r % 64 of word r / 64.
    #[must_use]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Sets the bit of a row; rows beyond the last are ignored.
    pub fn set(&mut self, row: RowId) {
        let row = row.number();
        if row < self.rows
            && let Some(word) = self.words.get_mut(row as usize / 64)
        {
            *word |= 1 << (row % 64);
        }
    }

    /// Whether a row is in it.
    #[must_use]
    pub fn contains(&self, row: RowId) -> bool {
        let row = row.number();
        self.words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// How many rows.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Whether none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Keeps the rows that are in the other too.
    pub fn keep(&mut self, other: &Self) {
        let beyond = self.words.split_off(self.words.len().min(other.words.len())).len();
        for (word, with) in self.words.iter_mut().zip(&other.words) {
            *word &= with;
        }
        self.words.resize(self.words.len() + beyond, 0);
    }

    /// Adds those rows of the other for which it has bits.
    pub fn add(&mut self, other: &Self) {
        for (word, with) in self.words.iter_mut().zip(&other.words) {
            *word |= with;
        }
        self.trim();
    }

    /// Takes the rows of the other out.
    pub fn take_out(&mut self, other: &Self) {
        for (word, with) in self.words.iter_mut().zip(&other.words) {
            *word &= !with;
        }
    }

    /// The same rows as a row set.
    #[must_use]
    pub fn to_row_set(&self) -> RowSet {
        let mut bytes = Vec::with_capacity(self.words.len() * 8);
        for word in &self.words {
            bytes.extend(word.to_le_bytes());
        }
        RowSet { bitmap: roaring::RoaringBitmap::from_lsb0_bytes(0, &bytes) }
    }
}
