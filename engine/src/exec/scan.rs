//! All rows of a collection that a snapshot sees, in morsels that any thread may take.
//!
//! Takes a version, a `Seq` and a filter; gives the documents that match, with where they lie. Row order: segments from
//! the oldest, tails from the oldest, each in the order of its rows. Blocks are unpacked into the caller's buffer and
//! not cached: a scan must not push out what point reads need.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use quarrydb_jsonb::JsonbRef;
use quarrydb_query::Filter;
use quarrydb_query::expr::Budget;
use rayon::prelude::*;
use roaring::RoaringBitmap;

use crate::error::Result;
use crate::ids::{RowId, Seq};
use crate::mvcc::Snapshot;
use crate::mvcc::version::{Address, Version};
use crate::options::Deadline;
use crate::segment::BlockBuf;
use crate::tail::Tail;

/// Row blocks in one morsel: about 256 KiB of documents.
const MORSEL_BLOCKS: u32 = 32;
/// Rows of a tail in one morsel.
const MORSEL_ROWS: u32 = 1024;

/// A scan of one collection as of one snapshot.
#[derive(Debug)]
pub(crate) struct Scan {
    pub version: Arc<Version>,
    pub snapshot: Snapshot,
    pub filter: Filter,
    pub deadline: Option<Deadline>,
    /// Rows that ended at or before the snapshot, by segment, made when first needed.
    dead: Vec<OnceLock<RoaringBitmap>>,
    /// Documents looked at so far.
    pub examined: AtomicU64,
}

/// A piece of a scan.
#[derive(Clone, Debug)]
pub(crate) enum Morsel {
    /// Row blocks of a segment.
    Segment { segment: usize, blocks: Range<u32> },
    /// Rows of a tail, counted from the oldest.
    Tail { tail: usize, rows: Range<u32> },
}

/// Where a row of a scan lies, counted in the scan's version; ordered as rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowAt {
    /// Segments first, then tails, from the oldest.
    source: u32,
    row: RowId,
}

/// Whether a document matches. The deadline holds inside one document too: a filter may look at millions of values.
///
/// # Errors
/// The filter's own, `TimedOut`.
pub(crate) fn matches(filter: &Filter, document: JsonbRef<'_>, deadline: Option<Deadline>) -> Result<bool> {
    let in_time = || Deadline::check(deadline).is_ok();
    let budget = Budget { go_on: Some(&in_time), ..Budget::default() };
    filter.matches_within(document, budget).or_else(|error| {
        Deadline::check(deadline)?;
        Err(error.into())
    })
}

impl Scan {
    pub(crate) fn new(version: Arc<Version>, snapshot: Snapshot, filter: Filter, deadline: Option<Deadline>) -> Self {
        let dead = version.segments.iter().map(|_| OnceLock::new()).collect();
        Self { version, snapshot, filter, deadline, dead, examined: AtomicU64::new(0) }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.snapshot.seq()
    }

    /// The tails, oldest first.
    fn tail(&self, index: usize) -> &Arc<Tail> {
        self.version.frozen.get(index).map_or(&self.version.tail, |frozen| &frozen.tail)
    }

    /// The pieces of the scan in row order.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn morsels(&self) -> Result<Vec<Morsel>> {
        let mut morsels = Vec::new();
        let mut first = true;
        for (segment, sealed) in self.version.segments.iter().enumerate() {
            let count = sealed.segment.block_count()?;
            let mut from = 0;
            while from < count {
                // The first piece is small, so that an answer begins early.
                let to = count.min(from + if std::mem::take(&mut first) { 1 } else { MORSEL_BLOCKS });
                morsels.push(Morsel::Segment { segment, blocks: from..to });
                from = to;
            }
        }
        for tail in 0..=self.version.frozen.len() {
            let rows = self.tail(tail).rows();
            for from in (0..rows).step_by(MORSEL_ROWS as usize) {
                morsels.push(Morsel::Tail { tail, rows: from..rows.min(from + MORSEL_ROWS) });
            }
        }
        Ok(morsels)
    }

    /// The matching rows of a morsel, in order, until `each` breaks.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment, the filter's own, `TimedOut`.
    pub(crate) fn run(
        &self,
        morsel: &Morsel,
        buffer: &mut BlockBuf,
        each: &mut dyn FnMut(JsonbRef<'_>, RowAt) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        Deadline::check(self.deadline)?;
        let mut examined = 0;
        let flow = match morsel {
            Morsel::Segment { segment, blocks } => self.run_segment(*segment, blocks, buffer, &mut examined, each),
            Morsel::Tail { tail, rows } => self.run_tail(*tail, rows, &mut examined, each),
        };
        self.examined.fetch_add(examined, Ordering::Relaxed);
        flow
    }

    fn run_segment(
        &self,
        index: usize,
        blocks: &Range<u32>,
        buffer: &mut BlockBuf,
        examined: &mut u64,
        each: &mut dyn FnMut(JsonbRef<'_>, RowAt) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let sealed = &self.version.segments[index];
        let at = self.seq();
        let dead = self.dead[index].get_or_init(|| sealed.deletes.dead_at(at));
        let all_created = sealed.segment.meta().max_seq <= at;
        for block in blocks.clone() {
            let view = sealed.segment.read_block_into(block, buffer)?;
            for (row, bytes) in view.rows().map(RowId::from_raw).zip(view.docs()) {
                if !dead.is_empty() && dead.contains(row.get()) || !all_created && sealed.segment.seq_of(row)? > at {
                    continue;
                }
                let document = JsonbRef::from_valid(bytes);
                *examined += 1;
                if matches(&self.filter, document, self.deadline)?
                    && each(document, RowAt { source: index as u32, row })?.is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run_tail(
        &self,
        index: usize,
        rows: &Range<u32>,
        examined: &mut u64,
        each: &mut dyn FnMut(JsonbRef<'_>, RowAt) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let tail = self.tail(index);
        let source = (self.version.segments.len() + index) as u32;
        for row in rows.clone().map(RowId::from_raw) {
            let Some(document) = tail.visible(row, self.seq()) else { continue };
            *examined += 1;
            if matches(&self.filter, document, self.deadline)? && each(document, RowAt { source, row })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// What `pick` makes of each matching row of `morsels`, in row order, found in parallel.
    ///
    /// # Errors
    /// As [`Scan::run`], and `pick`'s own.
    pub(crate) fn collect<T: Send>(
        &self,
        morsels: &[Morsel],
        pick: impl Fn(JsonbRef<'_>, RowAt) -> Result<T> + Sync,
    ) -> Result<Vec<T>> {
        let run = |morsel: &Morsel| -> Result<Vec<T>> {
            let mut found = Vec::new();
            let mut buffer = BlockBuf::default();
            let _ = self.run(morsel, &mut buffer, &mut |document, at| {
                found.push(pick(document, at)?);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(found)
        };
        if let [only] = morsels {
            return run(only);
        }
        let parts = morsels.par_iter().map(run).collect::<Result<Vec<_>>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// The number of matching rows, found in parallel.
    ///
    /// # Errors
    /// As [`Scan::run`].
    pub(crate) fn count(&self) -> Result<u64> {
        let run = |morsel: &Morsel| -> Result<u64> {
            let mut count = 0;
            let _ = self.run(morsel, &mut BlockBuf::default(), &mut |_, _| {
                count += 1;
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(count)
        };
        self.morsels()?.par_iter().map(run).try_reduce(|| 0, |a, b| Ok(a + b))
    }

    /// The first matching row in row order, with its document.
    ///
    /// # Errors
    /// As [`Scan::run`].
    pub(crate) fn first(&self) -> Result<Option<RowAt>> {
        let mut found = None;
        let mut buffer = BlockBuf::default();
        for morsel in self.morsels()? {
            let flow = self.run(&morsel, &mut buffer, &mut |_, at| {
                found = Some(at);
                Ok(ControlFlow::Break(()))
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(found)
    }

    /// The address of a row of this scan.
    pub(crate) fn address(&self, at: RowAt) -> Address {
        let source = at.source as usize;
        match self.version.segments.get(source) {
            Some(sealed) => Address::Segment(Arc::clone(sealed), at.row),
            None => Address::Tail(Arc::clone(self.tail(source - self.version.segments.len())), at.row),
        }
    }
}
