//! Rows in the order of a sort from a declared index, which is in that order: what is not asked for is not looked at.
//!
//! Takes a scan and a sort; gives rows one after the other. Every part of the collection must have entries that are in the
//! order of the sort (`indexes::bounds::order`: none through arrays, none cut); else nothing is given, and keys are sorted.
//! Equal keys keep row order, as in every other plan: where the walk would give them otherwise, backwards or by further
//! fields of the index, all of one key are gathered first.

use std::collections::VecDeque;
use std::ops::Range as Span;
use std::sync::Arc;
use std::sync::atomic::Ordering as Memory;

use quarrydb_jsonb::sort_key_len;
use quarrydb_query::Sort;
use roaring::RoaringBitmap;

use super::scan::{RowAt, Scan, matches};
use crate::budget::{Budget, Meter};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::RowId;
use crate::indexes::bounds::{bounds, has_all, order};
use crate::indexes::entries::Entries;
use crate::indexes::file::SegmentIndex;
use crate::indexes::keys::Facts;
use crate::indexes::range::KeyRange;
use crate::indexes::{Index, IndexSource};
use crate::options::Deadline;
use crate::plan::Rows;

/// Entries that are taken from a run at first, and at most: most sorts want few.
const ENTRIES_FIRST: usize = 32;
const ENTRIES_MAX: usize = 4096;
/// Entries between two looks at the deadline.
const ENTRIES_BETWEEN_LOOKS: u32 = 1024;
/// Where documents must be asked, they are asked one by one only for so few rows.
const ASKED_FOR_MAX: u64 = 64;
/// And no more than so many: beyond it all that may match are sorted.
pub(super) const LOOKS_MAX: u64 = 4096;
/// An entry that is walked over costs a part of what a key to be sorted costs.
const WALK_PART: u64 = 4;

/// A walk through an index.
#[derive(Debug)]
pub(super) struct IndexOrder {
    index: Arc<Index>,
    runs: Vec<Run>,
    backwards: bool,
    /// Fields of a key that tell rows apart for the sort, each with whether it is inverted; none where all do.
    told_by: Option<Vec<bool>>,
    /// Rows of the group that is being given.
    group: VecDeque<RowAt>,
    meter: Meter,
    seen: Seen,
    looks: u32,
}

/// What says whether a row is one.
#[derive(Debug)]
enum Seen {
    /// The ranges: all that the snapshot sees. By part, those that it does not.
    Ranges(Vec<Option<RoaringBitmap>>),
    /// Columns, or documents where they do not know.
    Selections,
}

/// Entries of one run over one source.
#[derive(Debug)]
struct Run {
    /// Counted as in [`RowAt`].
    source: u32,
    entries: From,
    /// Those not taken yet, in walking order.
    left: VecDeque<Span<usize>>,
    taken: VecDeque<(Vec<u8>, u32)>,
    take: usize,
}

#[derive(Debug)]
enum From {
    File(Arc<SegmentIndex>),
    Memory(Arc<Entries>),
}

impl Run {
    /// Takes the next entries, if there are some.
    fn fill(&mut self, backwards: bool) -> Result<()> {
        while self.taken.is_empty() {
            let Some(span) = self.left.front_mut() else { return Ok(()) };
            let some = if backwards {
                let from = span.end.saturating_sub(self.take).max(span.start);
                let some = from..span.end;
                span.end = from;
                some
            } else {
                let to = span.start.saturating_add(self.take).min(span.end);
                let some = span.start..to;
                span.start = to;
                some
            };
            if span.start >= span.end {
                self.left.pop_front();
            }
            self.take = (self.take * 2).min(ENTRIES_MAX);
            let taken = &mut self.taken;
            match &self.entries {
                From::Memory(entries) => {
                    let mut take = |at: usize| taken.extend(entries.get(at).map(|(key, row)| (key.to_vec(), row)));
                    if backwards { some.rev().for_each(&mut take) } else { some.for_each(&mut take) }
                }
                From::File(file) => file.run(|run| {
                    if backwards {
                        let mut cursor = run.cursor_back(some);
                        while let Some((key, row)) = cursor.next()? {
                            taken.push_back((key.to_vec(), row.number()));
                        }
                    } else {
                        let mut cursor = run.cursor(some)?;
                        while let Some((key, row)) = cursor.next()? {
                            taken.push_back((key.to_vec(), row.number()));
                        }
                    }
                    Ok(())
                })?,
            }
        }
        Ok(())
    }
}

/// Whether a row is one of those asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
    /// Its document knows.
    Ask,
}

/// The walk that a sort needs, where an index is in its order and walking costs least; `keep` rows are wanted at most.
///
/// # Errors
/// `Corrupt`, `Io`, `TimedOut`.
pub(super) fn find(scan: &Scan, sort: &Sort, keep: Option<u64>, budget: &Arc<Budget>) -> Result<Option<IndexOrder>> {
    let mut best: Option<(u64, bool, IndexOrder)> = None;
    for index in &scan.indexes {
        let Some((entries, exact, walk)) = walk(scan, index, sort, budget)? else { continue };
        if best.as_ref().is_none_or(|(least, sure, _)| (entries, !exact) < (*least, !sure)) {
            best = Some((entries, exact, walk));
        }
    }
    let Some((entries, exact, walk)) = best else { return Ok(None) };
    if exact {
        return Ok(Some(walk));
    }
    let matching = scan.select_all_rows()?;
    let wanted = keep.unwrap_or(u64::MAX).min(matching).max(1);
    // So many entries are walked over before enough rows are found, if they are spread evenly.
    let walked = entries.saturating_mul(wanted) / matching.max(1);
    let is_worth = if scan.is_exact()? {
        walked <= matching.saturating_mul(WALK_PART)
    } else {
        wanted <= ASKED_FOR_MAX && walked <= LOOKS_MAX * WALK_PART && keep.is_some()
    };
    Ok(is_worth.then_some(walk))
}

/// The walk through one index, how many entries it has at most, and whether its ranges decide; none where it is in another
/// order, or does not have every row.
fn walk(scan: &Scan, index: &Arc<Index>, sort: &Sort, budget: &Arc<Budget>) -> Result<Option<(u64, bool, IndexOrder)>> {
    let definition = &index.definition;
    let Some(first) = sort.fields().first() else { return Ok(None) };
    if !definition.fields.iter().any(|field| field.path == first.path) {
        return Ok(None);
    }
    // Of entries that are in the order of a sort the ranges are the same everywhere.
    let plain = Facts::default();
    let (ranges, fixed, exact) = match bounds(definition, plain, scan.filter.ast()) {
        Some(bounds) => (bounds.ranges, bounds.fixed, bounds.exact),
        None if has_all(definition) => (vec![KeyRange::all()], 0, scan.filter.is_everything()),
        None => return Ok(None),
    };
    let Some(backwards) = order(definition, plain, sort, fixed) else { return Ok(None) };
    let (mut runs, mut entries) = (Vec::new(), 0);
    let mut sources: Vec<u32> = scan.parts.iter().filter(|part| part.rows > 0).map(|part| part.source).collect();
    sources.dedup();
    for source in sources {
        let found = match scan.version.segments.get(source as usize) {
            Some(sealed) => sealed.index(index)?,
            None => Some(scan.tail(source).index(index)),
        };
        let Some(found) = found else { return Ok(None) };
        if order(definition, found.facts()?, sort, fixed) != Some(backwards) {
            return Ok(None);
        }
        entries += add_runs(source, found, &ranges, backwards, &mut runs)?;
    }
    // Fields of one value may stand in the sort and tell nothing.
    let is_fixed = |path: &str| definition.fields.iter().take(fixed).any(|field| field.path.as_str() == path);
    let wanted = sort.fields().iter().filter(|field| !is_fixed(field.path.as_str())).count();
    let told_by = definition.fields.iter().take(fixed + wanted).map(|field| field.descending).collect();
    let whole = fixed + wanted == definition.fields.len();
    let seen = if exact {
        let unseen = scan.parts.iter().map(|part| scan.unseen(part)).collect::<Result<_>>()?;
        Seen::Ranges(unseen)
    } else {
        Seen::Selections
    };
    let walk = IndexOrder {
        index: Arc::clone(index),
        runs,
        backwards,
        told_by: (backwards || !whole).then_some(told_by),
        group: VecDeque::new(),
        meter: Meter::new(budget),
        seen,
        looks: 0,
    };
    Ok(Some((entries, exact, walk)))
}

/// The runs of a source with their entries in some ranges; how many these are.
fn add_runs(source: u32, found: IndexSource, ranges: &[KeyRange], backwards: bool, runs: &mut Vec<Run>) -> Result<u64> {
    let mut count = 0;
    let mut add = |entries: From, spans: Vec<Span<usize>>| {
        let mut left: VecDeque<_> = spans.into_iter().filter(|span| !span.is_empty()).collect();
        if backwards {
            left.make_contiguous().reverse();
        }
        count += left.iter().map(|span| span.len() as u64).sum::<u64>();
        if !left.is_empty() {
            runs.push(Run { source, entries, left, taken: VecDeque::new(), take: ENTRIES_FIRST });
        }
    };
    match found {
        IndexSource::Segment(file) => {
            let spans = ranges.iter().map(|range| file.entries(range)).collect::<Result<_>>()?;
            add(From::File(file), spans);
        }
        IndexSource::Tail(sorted) => {
            for run in sorted.runs {
                let spans = ranges.iter().map(|range| run.within(range)).collect();
                add(From::Memory(run), spans);
            }
        }
    }
    Ok(count)
}

impl IndexOrder {
    /// The index's name.
    pub(super) fn name(&self) -> &str {
        self.index.definition.name()
    }

    /// Whether no document is looked at for it.
    pub(super) fn is_exact(&self, scan: &Scan) -> Result<bool> {
        match self.seen {
            Seen::Ranges(_) => Ok(true),
            Seen::Selections => scan.is_exact(),
        }
    }

    /// Whether the filter needs nothing but the index.
    pub(super) fn decides(&self) -> bool {
        matches!(self.seen, Seen::Ranges(_))
    }

    /// The next row; `looks` counts the documents that were looked at.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `TimedOut`, the filter's own.
    pub(super) fn next(&mut self, scan: &Scan, looks: &mut u64) -> Result<Option<RowAt>> {
        loop {
            if let Some(row) = self.group.pop_front() {
                if self.is_wanted(scan, row, looks)? {
                    return Ok(Some(row));
                }
                continue;
            }
            let Some((key, row)) = self.take(scan)? else { return Ok(None) };
            if self.told_by.is_none() {
                self.group.push_back(row);
                continue;
            }
            let len = self.told_len(&key)?;
            let told = key.get(..len).unwrap_or_default();
            let mut group = vec![row];
            while let Some(run) = self.ahead()? {
                let same =
                    self.runs.get(run).and_then(|run| run.taken.front()).is_some_and(|(key, _)| key.starts_with(told));
                if !same {
                    break;
                }
                let Some((_, row)) = self.take(scan)? else { break };
                group.push(row);
            }
            group.sort_unstable();
            self.meter.set(group.len() * size_of::<RowAt>())?;
            self.group = group.into();
        }
    }

    /// How many bytes of a key tell rows apart.
    fn told_len(&self, key: &[u8]) -> Result<usize> {
        let mut at = 0;
        for &inverted in self.told_by.iter().flatten() {
            let len = key.get(at..).and_then(|rest| sort_key_len(rest, inverted));
            let broken = || Error::new(ErrorKind::Corrupt, format!("a key of the index {} is none", self.name()));
            at += len.ok_or_else(broken)?;
        }
        Ok(at)
    }

    /// The run whose entry is next.
    fn ahead(&mut self) -> Result<Option<usize>> {
        let backwards = self.backwards;
        self.runs.iter_mut().try_for_each(|run| run.fill(backwards))?;
        let heads = self.runs.iter().enumerate().filter_map(|(i, run)| {
            let (key, row) = run.taken.front()?;
            Some((i, (key, run.source, *row)))
        });
        let next =
            if backwards { heads.max_by(|(_, a), (_, b)| a.cmp(b)) } else { heads.min_by(|(_, a), (_, b)| a.cmp(b)) };
        Ok(next.map(|(run, _)| run))
    }

    /// The next entry.
    fn take(&mut self, scan: &Scan) -> Result<Option<(Vec<u8>, RowAt)>> {
        if self.looks.is_multiple_of(ENTRIES_BETWEEN_LOOKS) {
            Deadline::check(scan.deadline)?;
        }
        self.looks = self.looks.wrapping_add(1);
        let Some(run) = self.ahead()? else { return Ok(None) };
        Ok(self.runs.get_mut(run).and_then(|run| {
            let (key, row) = run.taken.pop_front()?;
            Some((key, RowAt { source: run.source, row: RowId::from_raw(row) }))
        }))
    }

    fn is_wanted(&self, scan: &Scan, at: RowAt, looks: &mut u64) -> Result<bool> {
        match self.verdict(scan, at)? {
            Verdict::Yes => Ok(true),
            Verdict::No => Ok(false),
            Verdict::Ask => {
                *looks += 1;
                scan.sorts_by_documents();
                scan.examined.fetch_add(1, Memory::Relaxed);
                let document = scan.address(at).document()?;
                matches(&scan.filter, document.view(), scan.deadline)
            }
        }
    }

    fn verdict(&self, scan: &Scan, at: RowAt) -> Result<Verdict> {
        let row = at.row.get();
        let of =
            |part: &super::parts::Part| part.source == at.source && (part.first..part.first + part.rows).contains(&row);
        // A row that came after the snapshot is of none.
        let Some(part) = scan.parts.iter().position(of) else { return Ok(Verdict::No) };
        let Some(own) = scan.parts.get(part) else { return Ok(Verdict::No) };
        let row = row - own.first;
        let has = |rows: &Rows| match rows {
            Rows::None => false,
            Rows::All => true,
            Rows::Some(set) => set.bitmap().contains(row),
        };
        Ok(match &self.seen {
            Seen::Ranges(unseen) => {
                let hidden = unseen.get(part).and_then(Option::as_ref).is_some_and(|unseen| unseen.contains(row));
                if hidden { Verdict::No } else { Verdict::Yes }
            }
            Seen::Selections => {
                let selection = scan.selection(own)?;
                match (has(&selection.rows), has(&selection.sure)) {
                    (false, _) => Verdict::No,
                    (true, true) => Verdict::Yes,
                    (true, false) => Verdict::Ask,
                }
            }
        })
    }
}
