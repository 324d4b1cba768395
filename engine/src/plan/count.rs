//! How many rows match, from counts at hand alone: no set of rows is made.
//!
//! For a filter that is one test on one path, where no row that matters may count twice: a dictionary or a posting list
//! knows how many rows have a value; a range is a sum of those, or a scan that only counts.

use std::ops::Bound;

use quarrydb_index::column::{Column, Value, Values};

use super::leaf::{LaneRange, is_single, ranges};
use super::prepare::{Ask, Constant, Field, Prepared, Step};
use crate::columns::value::Tag;
use crate::columns::{ColumnData, Found, Source};
use crate::error::Result;

/// Lists whose lengths are summed for a range.
const LISTS_SUMMED_MAX: usize = 4096;

impl Prepared {
    /// How many rows of the columns match; none where that takes more than counts.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn count(&self, source: Source<'_>) -> Result<Option<u64>> {
        self.count_by(source, true)
    }

    /// The same where counts of values alone tell, and were asked before: a look at a few places in memory.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn count_at_hand(&self, source: Source<'_>) -> Result<Option<u64>> {
        match only_field(&self.root) {
            Some((field, _)) if source.is_open(&field.path) => self.count_by(source, false),
            _ => Ok(None),
        }
    }

    /// `scan`: values may be looked through.
    fn count_by(&self, source: Source<'_>, scan: bool) -> Result<Option<u64>> {
        let Some((field, inverted)) = only_field(&self.root) else { return Ok(None) };
        if field.numeric || is_span(&self.root) && !is_single(field, source)? {
            return Ok(None);
        }
        let counted = match source.find(&field.path)? {
            Found::Column(data) => {
                of_column(&field.ask, data, scan).map_err(|error| source.unreadable(&field.path, &error))?
            }
            Found::Rows(maybe) if maybe.is_empty() && !matches!(field.ask, Ask::Null | Ask::Unknown | Ask::In(_)) => {
                Some(0)
            }
            Found::Rows(_) => None,
        };
        Ok(counted.map(|count| if inverted { u64::from(source.rows()).saturating_sub(count) } else { count }))
    }
}

/// The one test that a filter is, and whether it is turned around.
pub(super) fn only_field(step: &Step) -> Option<(&Field, bool)> {
    match step {
        Step::Field(field) | Step::Span { between: field, .. } => Some((field, false)),
        Step::All(steps) | Step::Any(steps) => match &**steps {
            [only] => only_field(only),
            _ => None,
        },
        Step::Not(inner) => only_field(inner).map(|(field, inverted)| (field, !inverted)),
        Step::Constant(_) | Step::Unknown => None,
    }
}

/// Whether the one test is a range between two.
fn is_span(step: &Step) -> bool {
    match step {
        Step::All(steps) | Step::Any(steps) => steps.iter().any(is_span),
        Step::Not(inner) => is_span(inner),
        Step::Span { .. } => true,
        Step::Field(_) | Step::Constant(_) | Step::Unknown => false,
    }
}

fn of_column(ask: &Ask, data: &ColumnData, scan: bool) -> quarrydb_index::Result<Option<u64>> {
    let column = data.column()?;
    match ask {
        Ask::Exists => column.present_count().map(Some),
        Ask::Numbers(numbers) => {
            let mut sum = 0;
            let mut lanes = 0;
            for (tag, low, high) in ranges(numbers) {
                let Some(count) = in_lane(&column, data, (tag, low, high), scan)? else { return Ok(None) };
                sum += count;
                lanes += usize::from(count > 0);
            }
            // By way of an array a row may have a number of each type.
            Ok((lanes <= 1).then_some(sum))
        }
        Ask::Range { tag, low, high } => {
            if column.lane(Tag::Long as u8)?.is_some() {
                return Ok(None);
            }
            let range = (*tag, low.as_ref().map(Constant::value), high.as_ref().map(Constant::value));
            in_lane(&column, data, range, scan)
        }
        _ => Ok(None),
    }
}

/// Rows with a value in the range; none where it takes a set to know. The lane of a path that leads through arrays of
/// objects has many values of one row like any other.
fn in_lane(
    column: &Column<'_>,
    data: &ColumnData,
    (tag, low, high): LaneRange<'_>,
    scan: bool,
) -> quarrydb_index::Result<Option<u64>> {
    let Some(lane) = column.lane(tag as u8)? else { return Ok(Some(0)) };
    let many = lane.presence().is_many();
    let one = matches!((&low, &high), (Bound::Included(low), Bound::Included(high)) if low == high);
    if !matches!(lane.values(), Values::Dictionary(_))
        && let Some(postings) = data.postings(tag)?
        && (one || !many)
    {
        let mut key = Vec::new();
        let mut rank = |bound: Bound<Value<'_>>, end: bool| match bound {
            Bound::Unbounded => Ok(if end { postings.len() } else { 0 }),
            Bound::Included(value) => {
                quarrydb_index::postings::key_of(value, &mut key);
                postings.rank(&key, end)
            }
            Bound::Excluded(value) => {
                quarrydb_index::postings::key_of(value, &mut key);
                postings.rank(&key, !end)
            }
        };
        let (from, to) = (rank(low, false)?, rank(high, true)?);
        if to <= from + 1 {
            return if from < to { postings.list(from).map(|list| Some(list.len())) } else { Ok(Some(0)) };
        }
        if postings.len() <= LISTS_SUMMED_MAX {
            return data.rows_in(tag, &postings, from..to).map(Some);
        }
    }
    let counted = matches!(lane.values(), Values::Dictionary(_)) && (one || !many);
    if scan || counted { lane.range_count(low, high).map(Some) } else { Ok(None) }
}
