//! One index over one part of a collection, for whoever looks for rows: a segment's file or a tail's entries.
//!
//! Takes ranges of keys; gives rows, how many entries they have, and entries in order, forwards and backwards. Rows are
//! those of the part, dead and not yet visible ones among them: that is the caller's to judge, by the rules of `mvcc`. What
//! ranges follow from a filter, and whether they decide it, `bounds.rs` says from the same `facts`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use quarrydb_index::{RowId as IndexRow, RowSet};

use quarrydb_index::sorted::SortedCursor;

use super::entries::Entries;
use super::file::SegmentIndex;
use super::keys::Facts;
use super::range::KeyRange;
use super::tail::Sorted;
use crate::error::Result;

/// One index over one part of a collection.
#[derive(Clone, Debug)]
pub(crate) enum IndexSource {
    /// Over a segment.
    Segment(Arc<SegmentIndex>),
    /// Over the rows that a tail had when it was asked for.
    Tail(Sorted),
}

/// What is to be done with an entry: its key and its row.
type Visit<'v> = &'v mut dyn FnMut(&[u8], u32) -> ControlFlow<()>;

impl IndexSource {
    /// What its entries have in common.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment's file.
    pub(crate) fn facts(&self) -> Result<Facts> {
        match self {
            Self::Segment(file) => file.facts(),
            Self::Tail(sorted) => Ok(sorted.facts),
        }
    }

    /// Entries in some ranges, which do not overlap: two searches each. At least as many as rows.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment's file.
    pub(crate) fn entries(&self, ranges: &[KeyRange]) -> Result<u64> {
        let mut count = 0;
        for range in ranges {
            count += match self {
                Self::Segment(file) => file.entries(range)?.len() as u64,
                Self::Tail(sorted) => sorted.runs.iter().map(|run| run.within(range).len() as u64).sum(),
            };
        }
        Ok(count)
    }

    /// Rows with an entry in some ranges.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment's file.
    pub(crate) fn rows(&self, ranges: &[KeyRange]) -> Result<RowSet> {
        let mut numbers = Vec::new();
        match self {
            Self::Segment(file) => {
                if let [only] = ranges {
                    return file.rows(only);
                }
                for range in ranges {
                    let entries = file.entries(range)?;
                    if !entries.is_empty() {
                        file.run(|run| {
                            run.rows_of(entries, |row| numbers.push(row.number()));
                            Ok(())
                        })?;
                    }
                }
            }
            Self::Tail(sorted) => {
                for run in &sorted.runs {
                    for range in ranges {
                        numbers.extend(run.within(range).filter_map(|at| run.get(at)).map(|(_, row)| row));
                    }
                }
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        Ok(numbers.into_iter().map(IndexRow::at).collect())
    }

    /// Whether a row may have several entries; else ranges that do not overlap have as many rows as entries.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment's file.
    pub(crate) fn repeats_rows(&self) -> Result<bool> {
        Ok(self.facts()?.arrays != 0)
    }

    /// How many runs its entries lie in.
    pub(crate) fn walk_count(&self) -> usize {
        match self {
            Self::Segment(_) => 1,
            Self::Tail(sorted) => sorted.runs.len(),
        }
    }

    /// Each of its runs from the beginning, as many as `walk_count`.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment's file.
    pub(crate) fn walks(&self) -> Result<Vec<Walk<'_>>> {
        Ok(match self {
            Self::Segment(file) => {
                let run = file.sorted_run()?;
                let cursor = run.cursor(0..run.len()).map_err(|error| file.corrupt(&error))?;
                vec![Walk::File(Box::new(cursor), file)]
            }
            Self::Tail(sorted) => sorted.runs.iter().map(|run| Walk::Run(run, 0)).collect(),
        })
    }

    /// Gives entries of some ranges in the order of their keys, or from the last to the first, until `visit` breaks. A row
    /// comes as often as it has entries there; those of one key in the order of their rows, or backwards.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment's file.
    pub(crate) fn walk(&self, ranges: &[KeyRange], backwards: bool, visit: Visit<'_>) -> Result<ControlFlow<()>> {
        let mut order: Vec<&KeyRange> = ranges.iter().collect();
        if backwards {
            order.reverse();
        }
        for range in order {
            let flow = match self {
                Self::Segment(file) => walk_file(file, range, backwards, visit)?,
                Self::Tail(sorted) => walk_runs(&sorted.runs, range, backwards, visit),
            };
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Entries of one run, from the first to the last.
pub(crate) enum Walk<'s> {
    /// Of a file.
    File(Box<SortedCursor<'s>>, &'s SegmentIndex),
    /// Of a run in memory, from the given place on.
    Run(&'s Entries, usize),
}

impl Walk<'_> {
    /// The next entry.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn next(&mut self) -> Result<Option<(Vec<u8>, u32)>> {
        self.next_into(Vec::new())
    }

    /// The same with its key in the room of another.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn next_into(&mut self, mut key: Vec<u8>) -> Result<Option<(Vec<u8>, u32)>> {
        key.clear();
        Ok(match self {
            Self::File(cursor, file) => {
                let next = cursor.next().map_err(|error| file.corrupt(&error))?;
                next.map(|(own, row)| {
                    key.extend_from_slice(own);
                    (key, row.number())
                })
            }
            Self::Run(run, at) => {
                let next = run.get(*at);
                *at += 1;
                next.map(|(own, row)| {
                    key.extend_from_slice(own);
                    (key, row)
                })
            }
        })
    }
}

fn walk_file(file: &SegmentIndex, range: &KeyRange, backwards: bool, visit: Visit<'_>) -> Result<ControlFlow<()>> {
    let entries = file.entries(range)?;
    if entries.is_empty() {
        return Ok(ControlFlow::Continue(()));
    }
    file.run(|run| {
        if backwards {
            let mut cursor = run.cursor_back(entries);
            while let Some((key, row)) = cursor.next()? {
                if visit(key, row.number()).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        } else {
            let mut cursor = run.cursor(entries)?;
            while let Some((key, row)) = cursor.next()? {
                if visit(key, row.number()).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

fn walk_runs(runs: &[Arc<Entries>], range: &KeyRange, backwards: bool, visit: Visit<'_>) -> ControlFlow<()> {
    let mut left: Vec<Range<usize>> = runs.iter().map(|run| run.within(range)).collect();
    let take = |left: &mut Range<usize>| if backwards { left.next_back() } else { left.next() };
    if backwards {
        let mut heads = BinaryHeap::new();
        for (i, run) in runs.iter().enumerate() {
            heads.extend(take(&mut left[i]).and_then(|at| run.get(at)).map(|entry| (entry, i)));
        }
        while let Some(((key, row), i)) = heads.pop() {
            visit(key, row)?;
            heads.extend(take(&mut left[i]).and_then(|at| runs[i].get(at)).map(|entry| (entry, i)));
        }
        return ControlFlow::Continue(());
    }
    let mut heads = BinaryHeap::new();
    for (i, run) in runs.iter().enumerate() {
        heads.extend(take(&mut left[i]).and_then(|at| run.get(at)).map(|entry| Reverse((entry, i))));
    }
    while let Some(Reverse(((key, row), i))) = heads.pop() {
        visit(key, row)?;
        heads.extend(take(&mut left[i]).and_then(|at| runs[i].get(at)).map(|entry| Reverse((entry, i))));
    }
    ControlFlow::Continue(())
}
