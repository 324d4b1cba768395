//! How fast a compaction goes: seals and writers first.
//!
//! Asked after every block; rests for a while when it has worked for a while, longer where tails wait for their seal or
//! commits come in, not at all where someone waits for it. Ends it where the database closes or the time is over.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::core::{Core, closing};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Seq;
use crate::io::clock::monotonic_nanos;
use crate::options::Deadline;

/// Work between two rests.
const SLICE: Duration = Duration::from_millis(4);
/// A rest while nothing else goes on, while commits come in, and while tails wait for their seal too, in slices.
const REST_IDLE: u32 = 1;
const REST_WRITING: u32 = 4;
const REST_SEALING: u32 = 8;

/// What the compactions of a database share.
#[derive(Debug, Default)]
pub(crate) struct Compacting {
    /// Held by the one that is under way.
    pub alone: Mutex<()>,
    /// How many callers wait for one.
    hurry: AtomicUsize,
    /// What the last unasked one met, until one succeeds.
    trouble: Mutex<Option<String>>,
    lock: Mutex<()>,
    /// Told when someone waits, and at the end.
    changed: Condvar,
}

/// Someone waits for a compaction as long as this lives.
#[derive(Debug)]
pub(crate) struct Hurry<'a>(&'a Compacting);

impl Compacting {
    /// Lets every compaction go on without rests.
    pub(crate) fn hurry(&self) -> Hurry<'_> {
        self.hurry.fetch_add(1, Ordering::AcqRel);
        self.wake();
        Hurry(self)
    }

    /// What came of an unasked compaction.
    pub(crate) fn note(&self, failure: Option<Error>) {
        *self.trouble.lock() = failure.filter(|e| e.kind() != ErrorKind::ShuttingDown).map(|e| e.to_string());
    }

    /// What the last unasked one met.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    /// Ends all rests.
    pub(crate) fn wake(&self) {
        let _lock = self.lock.lock();
        self.changed.notify_all();
    }

    /// Rests for `time`, or until `wake`; not at all where `no_rest` says so.
    pub(crate) fn rest(&self, time: Duration, no_rest: impl FnOnce() -> bool) {
        let mut lock = self.lock.lock();
        if !no_rest() {
            self.changed.wait_for(&mut lock, time);
        }
    }
}

impl Drop for Hurry<'_> {
    fn drop(&mut self) {
        self.0.hurry.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The pace of one compaction.
#[derive(Debug)]
pub(crate) struct Pace<'a> {
    core: &'a Core,
    deadline: Option<Deadline>,
    slice_from: u64,
    applied: Seq,
}

impl<'a> Pace<'a> {
    /// Begins to work; `deadline` is that of who waits for it.
    pub(crate) fn new(core: &'a Core, deadline: Option<Deadline>) -> Self {
        Self { core, deadline, slice_from: monotonic_nanos(), applied: core.watermarks().applied() }
    }

    /// A small piece of work is done.
    ///
    /// # Errors
    /// `ShuttingDown`, `TimedOut`.
    pub(crate) fn step(&mut self) -> Result<()> {
        if monotonic_nanos().saturating_sub(self.slice_from) < SLICE.as_nanos() as u64 {
            return Ok(());
        }
        let core = self.core;
        let is_closing = || core.closing.load(Ordering::Acquire);
        if is_closing() {
            return Err(closing());
        }
        Deadline::check(self.deadline)?;
        let applied = core.watermarks().applied();
        let writing = std::mem::replace(&mut self.applied, applied) != applied;
        let waiting = core.sealing.waiting_bytes.load(Ordering::Relaxed);
        let hurry = core.compaction.hurry.load(Ordering::Acquire) > 0;
        let rest = match () {
            // Whoever waits for a compaction has not asked for everyone else to wait too.
            () if hurry && waiting > core.options.unsealed_bytes_max / 2 => REST_IDLE,
            () if hurry || !core.options.background => 0,
            () if waiting > 0 => REST_SEALING,
            () if writing => REST_WRITING,
            () => REST_IDLE,
        };
        if rest > 0 {
            core.compaction.rest(rest * SLICE, is_closing);
        }
        self.slice_from = monotonic_nanos();
        Ok(())
    }
}
