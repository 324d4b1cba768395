//! The different values in a window that moves forward: `$addToSet`.
//!
//! For each row it is known which rows before and behind it have an equal value, so that a window costs what enters and
//! leaves it.

use super::rows::Column;
use quarrydb_jsonb::sort_key;
use std::collections::BTreeSet;
use std::ops::Range;

/// The rows in a window whose values come first in it.
pub(super) struct Distinct {
    /// Of each row the row before and the one behind it with an equal value; [`Distinct::NONE`] where there is none, and
    /// for a row whose value is missing, which is its own.
    before: Vec<u32>,
    behind: Vec<u32>,
    pub(super) inside: BTreeSet<u32>,
    window: Range<usize>,
}

impl Distinct {
    const NONE: u32 = u32::MAX;

    pub(super) fn new(column: &Column) -> Self {
        let rows = column.len();
        let (mut before, mut behind) = (vec![Self::NONE; rows], vec![Self::NONE; rows]);
        let key = |row: usize| {
            let mut key = Vec::new();
            sort_key(column.get(row)?, &mut key);
            Some((key, row))
        };
        let mut keyed: Vec<(Vec<u8>, usize)> = (0..rows).filter_map(key).collect();
        keyed.sort_unstable();
        for pair in keyed.windows(2) {
            if let [(key, row), (next_key, next)] = pair
                && key == next_key
                && let (Some(behind), Some(before)) = (behind.get_mut(*row), before.get_mut(*next))
            {
                (*behind, *before) = (*next as u32, *row as u32);
            }
        }
        for (row, before) in before.iter_mut().enumerate() {
            if column.get(row).is_none() {
                *before = row as u32;
            }
        }
        Self { before, behind, inside: BTreeSet::new(), window: 0..0 }
    }

    pub(super) fn move_to(&mut self, to: &Range<usize>) {
        let start = to.start.max(self.window.start);
        let end = to.end.max(self.window.end).max(start);
        for row in self.window.start..start.min(self.window.end) {
            let behind = self.behind.get(row).copied().unwrap_or(Self::NONE);
            if self.inside.remove(&(row as u32)) && (behind as usize) < self.window.end {
                self.inside.insert(behind);
            }
        }
        for row in self.window.end.max(start)..end {
            let before = self.before.get(row).copied().unwrap_or(Self::NONE);
            let is_first = before == Self::NONE || (before as usize) < start;
            if is_first {
                self.inside.insert(row as u32);
            }
        }
        self.window = start..end;
    }
}
