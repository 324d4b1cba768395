//! The least or the greatest value at a path, and the first or the last, by group.
//!
//! Within a lane packed keys are compared, which lie in the order of their values; of equal ones the first in row order
//! stays. Columns whose types may hold equal numbers are not for this.

use quarrydb_index::column::{Kind, Lane, Window};
use quarrydb_index::{RowId, RowSet};
use quarrydb_jsonb::Builder;

use super::codes::each_key;
use super::scalar::Scalar;
use crate::columns::value::Tag;
use crate::exec::plain::Plain;

/// The raw key of -0.0.
pub(super) const BELOW_ZERO: u64 = (1 << 63) - 1;

/// Which end is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The least value.
    Least,
    /// The greatest.
    Greatest,
}

/// The least or the greatest values.
#[derive(Debug)]
pub(super) struct Extremes<'a> {
    end: End,
    lanes: Vec<(Lane<'a>, Tag, Window, Vec<Option<u64>>)>,
}

impl<'a> Extremes<'a> {
    /// For a path; none where columns do not have its values, or not in an order of their own.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn new(end: End, plain: &Plain<'a>) -> quarrydb_index::Result<Option<Self>> {
        let mut lanes = Vec::new();
        if let Plain::Column(data) = plain {
            for lane in data.column()?.lanes()? {
                match Tag::of(lane.tag()) {
                    Some(tag) if tag.is_exact() && lane.has_windows() => {
                        lanes.push((lane, tag, Window::default(), Vec::new()));
                    }
                    _ => return Ok(None),
                }
            }
        }
        let numbers = lanes.iter().filter(|(_, tag, ..)| tag.is_number()).count();
        Ok((numbers <= 1).then_some(Self { end, lanes }))
    }

    /// Takes the picked rows of a window, of the groups `groups`; there are `count` groups so far.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn window(
        &mut self,
        index: usize,
        picks: &[u16],
        groups: &[u32],
        count: usize,
    ) -> quarrydb_index::Result<()> {
        let end = self.end;
        for (lane, _, window, best) in &mut self.lanes {
            best.resize(count, None);
            // -0.0 and 0.0 are equal; their raw keys lie side by side.
            let zeros = lane.kind() == Kind::Float && lane.float_of_key(BELOW_ZERO) == 0.0;
            let ordered = |key: u64| if zeros && key == BELOW_ZERO { key + 1 } else { key };
            let mut places = Places::new(picks, groups);
            each_key(lane, index, picks, window, |row, key| {
                let Some(best) = places.group_of(row).and_then(|group| best.get_mut(group as usize)) else { return };
                let better = best.is_none_or(|held| match end {
                    End::Least => ordered(key) < ordered(held),
                    End::Greatest => ordered(key) > ordered(held),
                });
                if better {
                    *best = Some(key);
                }
            })?;
        }
        Ok(())
    }

    /// The values of each of `count` groups; missing where there was none.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn finish(self, count: usize) -> quarrydb_index::Result<Vec<Scalar>> {
        let mut found = vec![Scalar::Missing; count];
        let (mut buffer, mut builder) = (Vec::new(), Builder::new());
        for (lane, tag, _, best) in &self.lanes {
            for (slot, key) in found.iter_mut().zip(best) {
                let Some(key) = key else { continue };
                let value = Scalar::of(*tag, lane.value_of_key(*key, &mut buffer)?, &mut builder);
                keep(self.end, slot, value);
            }
        }
        Ok(found)
    }
}

/// Keeps the better of two values; of equal ones the one that is held.
pub(super) fn keep(end: End, held: &mut Scalar, value: Scalar) {
    let better = held.is_missing()
        || !value.is_missing()
            && match end {
                End::Least => value.compare(held).is_lt(),
                End::Greatest => value.compare(held).is_gt(),
            };
    if better {
        *held = value;
    }
}

/// The groups of rows that are asked for in their order.
#[derive(Debug)]
pub(super) struct Places<'p> {
    picks: &'p [u16],
    groups: &'p [u32],
    at: usize,
}

impl<'p> Places<'p> {
    pub(super) fn new(picks: &'p [u16], groups: &'p [u32]) -> Self {
        Self { picks, groups, at: 0 }
    }

    /// The group of a row, which is not before the last that was asked for.
    #[inline]
    pub(super) fn group_of(&mut self, row: u16) -> Option<u32> {
        while *self.picks.get(self.at)? != row {
            self.at += 1;
        }
        self.groups.get(self.at).copied()
    }
}

/// The values of rows at a path: of the first or the last row of each group.
///
/// # Errors
/// `Corrupt` of the index. None where columns do not have its values.
pub(super) fn at_rows(plain: &Plain<'_>, rows: &[u32]) -> quarrydb_index::Result<Option<Vec<Scalar>>> {
    let mut found = vec![Scalar::Missing; rows.len()];
    let Plain::Column(data) = plain else { return Ok(Some(found)) };
    let column = data.column()?;
    let (mut buffer, mut builder) = (Vec::new(), Builder::new());
    if column.null_count()? > 0 {
        let nulls: RowSet = column.nulls()?;
        for (slot, row) in found.iter_mut().zip(rows) {
            if nulls.contains(RowId::at(*row)) {
                *slot = Scalar::null();
            }
        }
    }
    for lane in column.lanes()? {
        let Some(tag) = Tag::of(lane.tag()).filter(|tag| tag.is_exact()) else { return Ok(None) };
        for (slot, row) in found.iter_mut().zip(rows) {
            let values = lane.presence().values_of(RowId::at(*row));
            if values.len() == 1 {
                *slot = Scalar::of(tag, lane.value(values.start, &mut buffer)?, &mut builder);
            }
        }
    }
    Ok(Some(found))
}
