//! The rows of a part that a group takes, window by window.

use quarrydb_index::column::WINDOW_ROWS;

use crate::plan::Rows;

/// Rows of a part, as bits where they are not all.
#[derive(Debug)]
pub(super) struct Picks {
    words: Option<Vec<u64>>,
    rows: usize,
}

impl Picks {
    /// The rows `rows` of a part of `of`.
    pub(super) fn new(rows: &Rows, of: u32) -> Self {
        let words = match rows {
            Rows::All => None,
            Rows::None => Some(Vec::new()),
            Rows::Some(set) => Some(set.to_dense(of).words().to_vec()),
        };
        Self { words, rows: of as usize }
    }

    /// The picked rows of window `index`, counted in it, in place of what `out` held.
    pub(super) fn window(&self, index: usize, out: &mut Vec<u16>) {
        out.clear();
        let first = index * WINDOW_ROWS;
        let Some(words) = &self.words else {
            let count = self.rows.saturating_sub(first).min(WINDOW_ROWS);
            out.extend(0..count as u16);
            return;
        };
        for (at, word) in words.iter().skip(first / 64).take(WINDOW_ROWS / 64).enumerate() {
            let mut bits = *word;
            while bits != 0 {
                out.push((at * 64) as u16 + bits.trailing_zeros() as u16);
                bits &= bits - 1;
            }
        }
    }
}
