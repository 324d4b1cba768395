//! The rows of a scan in the order of a sort: all of them, or the first few.
//!
//! Takes memcmp-able keys; gives row addresses. Ties keep row order: what is compared is the key with the row's place
//! behind it, so that it does not matter which thread found a row first. With a limit little more than that many keys are
//! held; without one, or where they are too large, `spill` takes them, which goes to the disk beyond
//! `limits::SORT_BYTES_MAX`.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::Mutex;
use quarrydb_query::Sort;
use quarrydb_query::sort::Direction;
use rayon::prelude::*;

use super::index_order::{self, IndexOrder, LOOKS_MAX};
use super::scan::{Morsel, RowAt, Scan, within};
use crate::budget::Meter;
use crate::core::Core;
use crate::error::Result;
use crate::limits::SORT_BYTES_MAX;
use crate::options::Deadline;
use crate::segment::BlockBuf;
use crate::spill::{SortLimits, Sorted, Sorter};

/// Bytes of keys that a thread holds before it hands them over.
const BATCH_BYTES: usize = 256 << 10;
/// More rows than this are not kept in front: they are sorted like all.
const FRONT_ROWS_MAX: usize = 1 << 20;
/// A sort takes at most this part of what all queries may hold.
const SHARE: usize = 4;
/// Bytes of a place behind a key.
const PLACE_BYTES: usize = 8;

/// Rows in the order of a sort, one after the other.
#[derive(Debug)]
pub(crate) struct Ordered {
    rows: Rows,
    /// How many to give still, at most.
    left: u64,
    index: Option<(String, bool)>,
    deadline: Option<Deadline>,
}

#[derive(Debug)]
enum Rows {
    Known(VecDeque<RowAt>),
    Keyed(Box<Sorted>),
    Walked(Box<IndexOrder>),
}

impl Ordered {
    /// At most so many rows are left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Bytes that went to the disk.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        match &self.rows {
            Rows::Known(_) | Rows::Walked(_) => 0,
            Rows::Keyed(sorted) => sorted.spilled_bytes(),
        }
    }

    /// The index whose order it is, if it is one's, and whether the index decides which rows there are.
    pub(crate) fn index(&self) -> Option<&(String, bool)> {
        self.index.as_ref()
    }

    /// The next row of the scan that was sorted.
    ///
    /// # Errors
    /// `TimedOut`; of keys on the disk and of an index `Corrupt` and `Io`.
    pub(crate) fn next(&mut self, scan: &Scan) -> Result<Option<RowAt>> {
        if self.left == 0 {
            return Ok(None);
        }
        let next = match &mut self.rows {
            Rows::Known(rows) => {
                Deadline::check(self.deadline)?;
                rows.pop_front()
            }
            Rows::Keyed(sorted) => sorted.next()?.and_then(|(key, _)| row_of(key)),
            Rows::Walked(walk) => walk.next(scan, &mut 0)?,
        };
        self.left = if next.is_some() { self.left - 1 } else { 0 };
        Ok(next)
    }

    /// What of it is asked for.
    fn within(mut self, scan: &Scan, range: Range) -> Result<Self> {
        for _ in 0..range.skip {
            if self.next(scan)?.is_none() {
                break;
            }
        }
        self.left = self.left.min(range.limit.unwrap_or(u64::MAX));
        Ok(self)
    }

    /// The next rows, so many at most.
    ///
    /// # Errors
    /// As [`Ordered::next`].
    pub(crate) fn next_rows(&mut self, scan: &Scan, most: usize) -> Result<Vec<RowAt>> {
        let mut rows = Vec::new();
        while rows.len() < most {
            match self.next(scan)? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        Ok(rows)
    }
}

/// What a sort is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    /// Rows left out in front.
    pub skip: u64,
    /// Rows given at most.
    pub limit: Option<u64>,
    /// Whether keys may go to the disk.
    pub disk: bool,
}

impl Range {
    /// The first row alone.
    pub(crate) const FIRST: Self = Self { skip: 0, limit: Some(1), disk: true };
}

/// The rows of `scan` in the order of `sort`.
///
/// # Errors
/// As [`Scan::run`]; those of `spill`.
pub(crate) fn sorted(core: &Core, scan: &Scan, sort: &Sort, range: Range) -> Result<Ordered> {
    let keep = range.limit.map(|limit| limit.saturating_add(range.skip));
    if let Some(walk) = index_order::find(scan, sort, keep, &core.queries)?
        && let Some(ordered) = walked(scan, walk, keep)?
    {
        return ordered.within(scan, range);
    }
    let keep = keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX));
    let memory_max = SORT_BYTES_MAX.min(core.queries.max() / SHARE);
    let limits = SortLimits { memory_max, disk: range.disk, deadline: scan.deadline };
    let sorter = || Sorter::new(&core.spills, &core.queries, limits);
    let found = match keep.filter(|&keep| keep <= FRONT_ROWS_MAX) {
        Some(keep) => Found::Front(Front { keep, ..Front::default() }, Meter::new(&core.queries)),
        None => Found::All(sorter()),
    };
    let found = Mutex::new(found);
    let take = |batch: &mut Batch| -> Result<()> {
        let mut found = found.lock();
        found.take(batch)?;
        if let Found::Front(front, _) = &*found
            && front.bytes > memory_max
        {
            let mut sorter = sorter();
            front.rows.iter().try_for_each(|key| sorter.push(key, &[]))?;
            *found = Found::All(sorter);
        }
        batch.border = found.border();
        Ok(())
    };
    let run = |morsel: &Morsel| -> Result<()> {
        let mut batch = Batch { border: found.lock().border(), ..Batch::default() };
        keyed(scan, sort, morsel, &mut batch, &take)?;
        take(&mut batch)
    };
    match &scan.morsels()?[..] {
        [only] => run(only)?,
        some => some.par_iter().try_for_each(run)?,
    }
    let (rows, all) = match found.into_inner() {
        Found::Front(front, _) => {
            let rows = front.finish();
            let all = rows.len() as u64;
            (Rows::Known(rows), all)
        }
        Found::All(sorter) => {
            let sorted = sorter.finish()?;
            let all = sorted.len();
            (Rows::Keyed(Box::new(sorted)), all)
        }
    };
    Ordered { rows, left: all, index: None, deadline: scan.deadline }.within(scan, range)
}

/// The rows of a walk through an index; none where too many documents would have to be looked at for it.
fn walked(scan: &Scan, mut walk: IndexOrder, keep: Option<u64>) -> Result<Option<Ordered>> {
    let index = Some((walk.name().to_owned(), walk.decides()));
    let deadline = scan.deadline;
    if walk.is_exact(scan)? {
        return Ok(Some(Ordered { rows: Rows::Walked(Box::new(walk)), left: u64::MAX, index, deadline }));
    }
    let (mut found, mut looks) = (VecDeque::new(), 0);
    while keep.is_none_or(|keep| (found.len() as u64) < keep) {
        if looks >= LOOKS_MAX {
            return Ok(None);
        }
        match walk.next(scan, &mut looks)? {
            Some(row) => found.push_back(row),
            None => break,
        }
    }
    let left = found.len() as u64;
    Ok(Some(Ordered { rows: Rows::Known(found), left, index, deadline }))
}

/// Keys on their way from a thread, each with its row's place behind it.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// No row at or behind this one will be in front.
    border: Option<Arc<[u8]>>,
}

impl Batch {
    /// Adds a row, unless it cannot be in front.
    fn add(&mut self, key: &[u8], place: [u8; PLACE_BYTES]) {
        let from = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(&place);
        if self.border.as_deref().is_some_and(|border| self.bytes.get(from..).unwrap_or_default() >= border) {
            self.bytes.truncate(from);
        } else {
            self.ends.push(self.bytes.len());
        }
    }

    fn each(&self, mut give: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut from = 0;
        for &to in &self.ends {
            give(self.bytes.get(from..to).unwrap_or_default())?;
            from = to;
        }
        Ok(())
    }
}

/// What was found so far.
enum Found {
    Front(Front, Meter),
    All(Sorter),
}

impl Found {
    fn border(&self) -> Option<Arc<[u8]>> {
        match self {
            Self::Front(front, _) => front.border.clone(),
            Self::All(_) => None,
        }
    }

    fn take(&mut self, batch: &mut Batch) -> Result<()> {
        match self {
            Self::Front(front, meter) => {
                batch.each(|key| {
                    front.add(key);
                    Ok(())
                })?;
                meter.set(front.bytes)?;
            }
            Self::All(sorter) => batch.each(|key| sorter.push(key, &[]))?,
        }
        batch.bytes.clear();
        batch.ends.clear();
        Ok(())
    }
}

/// The row whose place stands behind a key.
fn row_of(keyed: &[u8]) -> Option<RowAt> {
    keyed.get(keyed.len().saturating_sub(PLACE_BYTES)..).and_then(RowAt::from_place)
}

/// The first rows, unordered until it is finished.
#[derive(Default)]
struct Front {
    keep: usize,
    rows: Vec<Box<[u8]>>,
    bytes: usize,
    border: Option<Arc<[u8]>>,
}

impl Front {
    fn add(&mut self, keyed: &[u8]) {
        if self.border.as_deref().is_some_and(|border| keyed >= border) {
            return;
        }
        self.bytes += keyed.len() + size_of::<Box<[u8]>>();
        self.rows.push(keyed.into());
        // Not at each row: halving what is held costs each of them little.
        if self.rows.len() >= self.keep.saturating_mul(2).max(64) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.rows.len() <= self.keep {
            return;
        }
        if self.keep > 0 {
            let (_, last, _) = self.rows.select_nth_unstable(self.keep - 1);
            self.border = Some(Arc::from(&**last));
        } else {
            self.border = Some(Arc::from([]));
        }
        self.rows.truncate(self.keep);
        self.bytes = self.rows.iter().map(|key| key.len() + size_of::<Box<[u8]>>()).sum();
    }

    fn finish(mut self) -> VecDeque<RowAt> {
        self.cut();
        self.rows.sort_unstable();
        self.rows.iter().filter_map(|key| row_of(key)).collect()
    }
}

/// Adds the matching rows of a morsel with their keys, from columns or else from documents.
fn keyed(
    scan: &Scan,
    sort: &Sort,
    morsel: &Morsel,
    batch: &mut Batch,
    take: &dyn Fn(&mut Batch) -> Result<()>,
) -> Result<()> {
    let backwards = sort.natural() == Some(Direction::Descending);
    let mut add = |key: &[u8], at: RowAt| -> Result<()> {
        // The order in storage, turned around: rows have no other key then.
        match backwards {
            true => batch.add(&at.backwards(), at.place()),
            false => batch.add(key, at.place()),
        }
        if batch.bytes.len() >= BATCH_BYTES { take(batch) } else { Ok(()) }
    };
    if scan.keys_of(morsel, sort, &mut add)? {
        return Ok(());
    }
    scan.sorts_by_documents();
    let mut key = Vec::new();
    let _ = scan.run(morsel, &mut BlockBuf::default(), &mut |document, at| {
        key.clear();
        within(scan.deadline, |budget| sort.key_within(document, &mut key, budget))?;
        add(&key, at)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}
