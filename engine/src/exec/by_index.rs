//! Rows of a segment from a declared index, where one narrows the question more than columns would.
//!
//! Takes the indexes of the scan and a segment; gives an answer as columns give it, or nothing where no index serves: it has
//! no entries of the segment, it says nothing about the filter, or it leaves too many rows to be worth it.

use std::sync::Arc;

use crate::error::Result;
use crate::indexes::bounds::{IndexBounds, bounds};
use crate::indexes::{Index, IndexSource};
use crate::mvcc::version::Sealed;
use crate::plan::{Answer, Rows, Stage};
use crate::tail::Tail;
use quarrydb_query::Filter;

/// An index narrows a question where at most one row in so many is left.
const WORTH_PART: u64 = 8;
/// Rows that are few whatever the segment has.
const FEW_ROWS: u64 = 64;

/// What an index says of a segment.
#[derive(Debug)]
pub(super) struct ByIndex {
    /// Which one.
    pub index: Arc<Index>,
    source: IndexSource,
    bounds: IndexBounds,
    entries: u64,
}

/// The index of `indexes` that leaves the fewest rows of a segment, if one is worth asking.
///
/// # Errors
/// `Corrupt` and `Io` from an index's file.
pub(super) fn best(indexes: &[Arc<Index>], sealed: &Sealed, filter: &Filter) -> Result<Option<ByIndex>> {
    let mut best: Option<ByIndex> = None;
    for index in indexes {
        let Some(source) = sealed.index(index)? else { continue };
        let Some(bounds) = bounds(&index.definition, source.facts()?, filter.ast()) else { continue };
        let entries = source.entries(&bounds.ranges)?;
        // Of as many entries, those that decide are worth more.
        let better = best.as_ref().is_none_or(|best| (entries, !bounds.exact) < (best.entries, !best.bounds.exact));
        if better {
            best = Some(ByIndex { index: Arc::clone(index), source, bounds, entries });
        }
    }
    let rows = u64::from(sealed.segment.rows());
    Ok(best.filter(|best| best.entries <= FEW_ROWS || best.entries.saturating_mul(WORTH_PART) <= rows))
}

/// The few rows of a tail's first `of` that an index leaves, if one leaves few.
///
/// # Errors
/// `Internal` where entries of the tail cannot be made.
pub(super) fn few_of_tail(indexes: &[Arc<Index>], tail: &Tail, of: u32, filter: &Filter) -> Result<Option<Answer>> {
    for index in indexes {
        let source = tail.index(index);
        let Some(bounds) = bounds(&index.definition, source.facts()?, filter.ast()) else { continue };
        if source.entries(&bounds.ranges)? <= FEW_ROWS {
            let mut rows = source.rows(&bounds.ranges)?;
            rows.keep_range(0..of);
            let rows = Rows::of(rows, of);
            return Ok(Some(if bounds.exact { Answer::exact(rows) } else { Answer::at_most(rows) }));
        }
    }
    Ok(None)
}

impl ByIndex {
    /// Whether it alone decides, or leaves so few rows that looking at them costs least.
    pub(super) fn is_enough(&self) -> bool {
        self.bounds.exact || self.entries <= FEW_ROWS
    }

    /// Whether it leaves rows that are few whatever the segment has.
    pub(super) fn is_few(&self) -> bool {
        self.entries <= FEW_ROWS
    }

    /// What `explain` says of it.
    pub(super) fn describe(&self) -> Stage {
        Stage {
            name: "RangeIndex",
            path: None,
            index: Some(self.index.definition.name().to_owned()),
            inputs: Vec::new(),
        }
    }

    /// How many rows match, where entries tell: each row has one, and they decide.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from the index's file.
    pub(super) fn count(&self) -> Result<Option<u64>> {
        Ok((self.bounds.exact && !self.source.repeats_rows()?).then_some(self.entries))
    }

    /// The rows, of `of`.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from the index's file.
    pub(super) fn answer(&self, of: u32) -> Result<Answer> {
        let rows = Rows::of(self.source.rows(&self.bounds.ranges)?, of);
        Ok(if self.bounds.exact { Answer::exact(rows) } else { Answer::at_most(rows) })
    }
}
