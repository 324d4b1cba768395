//! From the rows of several segments to the rows of the one they are merged into. Rows that are not kept have no number.

use crate::error::{Error, Result};
use crate::row::{ROWS_MAX, RowId};
use crate::rowset::RowSet;

const DROPPED: u32 = u32::MAX;

/// Where the rows of one input go.
#[derive(Debug, Clone)]
pub struct RowRemap {
    to: Vec<u32>,
}

impl RowRemap {
    /// Keeps the rows of `live` out of `rows`, in order, numbered from `first` on.
    #[must_use]
    pub fn keeping(live: &RowSet, rows: u32, first: RowId) -> Self {
        let mut to = vec![DROPPED; rows as usize];
        for (next, row) in (first.number()..).zip(live.iter()) {
            if let Some(to) = to.get_mut(row.number() as usize) {
                *to = next;
            }
        }
        Self { to }
    }

    /// Each row's new number, `None` for those dropped.
    #[must_use]
    pub fn from_rows(rows: impl Iterator<Item = Option<RowId>>) -> Self {
        Self { to: rows.map(|row| row.map_or(DROPPED, RowId::number)).collect() }
    }

    /// Rows of the input.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.to.len() as u32
    }

    /// The new number of a row; `None` if it is dropped.
    #[must_use]
    pub fn get(&self, row: RowId) -> Option<RowId> {
        self.to.get(row.number() as usize).copied().filter(|&to| to != DROPPED).map(RowId::at)
    }

    /// The new numbers of a set of rows.
    #[must_use]
    pub fn map(&self, rows: &RowSet) -> RowSet {
        rows.iter().filter_map(|row| self.get(row)).collect()
    }
}

/// The rows of a merge in their new order: the input and the row there of each.
///
/// # Errors
/// `Misuse` unless every new number from 0 on is given exactly once; `TooLarge` beyond `ROWS_MAX`.
pub(crate) fn origins(remaps: &[&RowRemap]) -> Result<Vec<(u32, RowId)>> {
    let kept = remaps.iter().map(|remap| remap.to.iter().filter(|&&to| to != DROPPED).count()).sum::<usize>();
    if kept > ROWS_MAX as usize {
        return Err(Error::TooLarge { what: "rows of a merged segment" });
    }
    let mut origins = vec![None; kept];
    for (input, remap) in (0..).zip(remaps) {
        for (row, &to) in (0..).zip(&remap.to) {
            if to == DROPPED {
                continue;
            }
            match origins.get_mut(to as usize) {
                Some(origin @ None) => *origin = Some((input, RowId::at(row))),
                _ => return Err(Error::Misuse { what: "each new row comes from one old row" }),
            }
        }
    }
    // As many as there are places, no place twice: every place is taken.
    Ok(origins.into_iter().flatten().collect())
}
