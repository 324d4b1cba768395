//! Sorting more than fits into memory: sorted runs in a temporary file, merged as they are read.
//!
//! Takes pairs of bytes, a key and what goes with it, in any order; gives them back in the order of the keys, those of
//! equal keys in the order in which they came. Holds no more memory than it was given, plus the largest pair; polls a
//! deadline. Knows nothing of what the bytes mean, so that a sort, a grouping and a union can all stand on it.
//!
//! ```text
//! let mut sorter = Sorter::new(&core.spills, &core.queries, SortLimits { .. });
//! sorter.push(key, payload)?;                     // as often as one likes
//! let mut sorted = sorter.finish()?;
//! while let Some((key, payload)) = sorted.next()? { .. }
//! ```
//!
//! Reading order: here, `buffer.rs` (what is in memory), `run.rs` (what is on the disk), `merge.rs`, `room.rs` (files).

mod buffer;
mod merge;
mod room;
mod run;
#[cfg(test)]
mod spill_tests;

use std::sync::Arc;

use self::buffer::Buffer;
use self::merge::{Merged, narrowed};
use self::room::SpillFile;
pub(crate) use self::room::SpillRoom;
use self::run::{Run, RunWriter};
use crate::budget::{Budget, Reservation, busy};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Deadline;

/// The most bytes of one pair: a document and its keys fit well.
pub(crate) const PAIR_BYTES_MAX: usize = 128 << 20;
/// What is reserved at a time, where there is much already.
const STEP_BYTES: usize = 4 << 20;
/// What is reserved at a time at first.
const STEP_BYTES_FIRST: usize = 64 << 10;
/// Pairs in memory that are handed on between two looks at the deadline.
const PAIRS_BETWEEN_LOOKS: usize = 4096;

/// What one sort may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortLimits {
    /// Bytes of memory; beyond it the pairs go to the disk.
    pub memory_max: usize,
    /// Whether they may: else more than `memory_max` is an error.
    pub disk: bool,
    /// When to give up.
    pub deadline: Option<Deadline>,
}

/// Pairs on their way into order.
#[derive(Debug)]
pub(crate) struct Sorter {
    room: Arc<SpillRoom>,
    limits: SortLimits,
    reservation: Option<Reservation>,
    budget: Arc<Budget>,
    reserved: usize,
    buffer: Buffer,
    spilled: Option<(SpillFile, Vec<Run>)>,
    pairs: u64,
}

impl Sorter {
    /// Nothing yet. Memory is taken from `budget` as pairs come.
    pub(crate) fn new(room: &Arc<SpillRoom>, budget: &Arc<Budget>, limits: SortLimits) -> Self {
        Self {
            room: Arc::clone(room),
            limits,
            reservation: None,
            budget: Arc::clone(budget),
            reserved: 0,
            buffer: Buffer::new(limits.memory_max),
            spilled: None,
            pairs: 0,
        }
    }

    /// Adds a pair.
    ///
    /// # Errors
    /// `LimitExceeded` for a pair of more than [`PAIR_BYTES_MAX`], and beyond the memory where the disk may not be used;
    /// `Busy` where no memory is left at all or too many sorts are on the disk; `OutOfDiskSpace`, `Io`, `TimedOut`.
    pub(crate) fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        if key.len().saturating_add(payload.len()) > PAIR_BYTES_MAX {
            let message = format!("a sort holds at most {PAIR_BYTES_MAX} bytes of one document and its key");
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        let wanted = self.buffer.held_with(key.len(), payload.len());
        if wanted > self.reserved && !self.reserve(wanted)? {
            self.spill()?;
            let alone = self.buffer.held_with(key.len(), payload.len());
            // One pair is held however little there is: it could not be sorted otherwise.
            if alone > self.reserved && !self.grow(alone) {
                return Err(busy(self.budget.max()));
            }
        }
        self.buffer.push(key, payload);
        self.pairs += 1;
        Ok(())
    }

    /// Bytes of memory held.
    #[cfg(test)]
    fn held(&self) -> usize {
        self.reserved
    }

    /// The pairs in order.
    ///
    /// # Errors
    /// As [`Sorter::push`].
    pub(crate) fn finish(mut self) -> Result<Sorted> {
        let pairs = self.pairs;
        if self.spilled.is_none() {
            Deadline::check(self.limits.deadline)?;
            self.buffer.sort();
            let (buffer, deadline) = (self.buffer, self.limits.deadline);
            return Ok(Sorted {
                pairs,
                spilled_bytes: 0,
                _held: self.reservation,
                from: From::Memory { buffer, next: 0, deadline },
            });
        }
        self.spill()?;
        self.buffer = Buffer::default();
        let Some((file, runs)) = self.spilled.take() else {
            return Err(Error::new(ErrorKind::Internal, "a sort lost what it had written"));
        };
        let spilled_bytes = file.len();
        let (file, runs) = narrowed(&self.room, file, runs, self.reserved, self.limits.deadline)?;
        let merged = Merged::new(file, runs, self.limits.deadline)?;
        Ok(Sorted { pairs, spilled_bytes, _held: self.reservation, from: From::Disk(merged) })
    }

    /// Holds `wanted` bytes; false where pairs must leave the memory first.
    fn reserve(&mut self, wanted: usize) -> Result<bool> {
        if wanted > self.limits.memory_max && !self.buffer.is_empty() {
            return if self.limits.disk { Ok(false) } else { Err(self.too_much()) };
        }
        if self.grow(wanted) {
            return Ok(true);
        }
        if self.buffer.is_empty() || !self.limits.disk { Err(busy(self.budget.max())) } else { Ok(false) }
    }

    fn grow(&mut self, wanted: usize) -> bool {
        // In steps, but not beyond what it may have, nor beyond what there is.
        let step = wanted.next_power_of_two().clamp(STEP_BYTES_FIRST, STEP_BYTES);
        let stepped = wanted.next_multiple_of(step).min(self.limits.memory_max).max(wanted);
        let grown = match &mut self.reservation {
            Some(reservation) => reservation.grow_to(stepped),
            None => {
                self.reservation = self.budget.reserve(stepped);
                self.reservation.is_some()
            }
        };
        if grown {
            self.reserved = self.reserved.max(stepped);
        }
        grown
    }

    fn too_much(&self) -> Error {
        let message = format!(
            "the sort needs more than {} bytes of memory: narrow the filter, add a limit, or let it use the disk \
             (allowDiskUse)",
            self.limits.memory_max
        );
        Error::new(ErrorKind::LimitExceeded, message).with_code("QueryExceededMemoryLimitNoDiskUseAllowed", 292)
    }

    /// Writes what is in memory as one more run.
    fn spill(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        Deadline::check(self.limits.deadline)?;
        self.buffer.sort();
        if self.spilled.is_none() {
            self.spilled = Some((self.room.file()?, Vec::new()));
        }
        let Some((file, runs)) = &mut self.spilled else { return Ok(()) };
        let mut writer = RunWriter::new(file, self.limits.deadline);
        for at in 0..self.buffer.len() {
            let Some((key, payload)) = self.buffer.get(at) else { break };
            writer.add(key, payload)?;
        }
        runs.push(writer.finish()?);
        self.buffer.clear();
        Ok(())
    }
}

/// Pairs in order.
#[derive(Debug)]
pub(crate) struct Sorted {
    pairs: u64,
    spilled_bytes: u64,
    _held: Option<Reservation>,
    from: From,
}

#[derive(Debug)]
enum From {
    Memory { buffer: Buffer, next: usize, deadline: Option<Deadline> },
    Disk(Merged),
}

impl Sorted {
    /// How many pairs there are in all.
    pub(crate) fn len(&self) -> u64 {
        self.pairs
    }

    /// Bytes of runs that went to the disk; 0 where all was sorted in memory.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        self.spilled_bytes
    }

    /// The next pair: its key and what goes with it.
    ///
    /// # Errors
    /// `TimedOut`; from the disk also `Corrupt` and `Io`.
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        match &mut self.from {
            From::Memory { buffer, next, deadline } => {
                let at = *next;
                *next += 1;
                if at.is_multiple_of(PAIRS_BETWEEN_LOOKS) {
                    Deadline::check(*deadline)?;
                }
                Ok(buffer.get(at))
            }
            From::Disk(merged) => merged.next(),
        }
    }
}
