//! A bound on memory that many hold together: the queries of a database, the bodies of a server.
//!
//! Takes byte counts; gives reservations that end by themselves, or says no: then whoever asked is sent away to come
//! again, before the memory is taken. Knows nothing of what is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::error::{Error, ErrorKind, Result};

/// A meter reserves in steps of this.
const STEP_BYTES: usize = 1 << 20;

/// What is held of at most `max`.
#[derive(Debug)]
pub struct Budget {
    held: AtomicUsize,
    max: usize,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// Nothing held yet of `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), max })
    }

    /// The most that may be held.
    #[must_use]
    pub fn max(&self) -> usize {
        self.max
    }

    /// Bytes held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|&sum| sum <= self.max);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Holds `bytes`, or None where they do not fit.
    #[must_use]
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        self.take(bytes).then(|| Reservation { budget: Arc::clone(self), bytes })
    }
}

impl Reservation {
    /// Holds at least `bytes` in all; false where they do not fit.
    pub fn grow_to(&mut self, bytes: usize) -> bool {
        let more = bytes.saturating_sub(self.bytes);
        let taken = more == 0 || self.budget.take(more);
        if taken {
            self.bytes = self.bytes.max(bytes);
        }
        taken
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// What one query holds, counted by all threads that work on it.
#[derive(Debug)]
pub(crate) struct Meter {
    held: Mutex<Reservation>,
    counted: AtomicUsize,
    /// What `held` has, to be asked without its lock.
    reserved: AtomicUsize,
}

impl Meter {
    /// Nothing counted yet; holds nothing.
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        let held = Mutex::new(Reservation { budget: Arc::clone(budget), bytes: 0 });
        Self { held, counted: AtomicUsize::new(0), reserved: AtomicUsize::new(0) }
    }

    /// Counts `bytes` more; gives how many there are.
    ///
    /// # Errors
    /// `Busy` where all queries together hold too much, `LimitExceeded` where this one alone does.
    pub(crate) fn add(&self, bytes: usize) -> Result<usize> {
        let all = self.counted.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.hold(all).map(|()| all)
    }

    /// Counts `bytes` in all; what was held beyond stays held.
    ///
    /// # Errors
    /// As [`Meter::add`].
    pub(crate) fn set(&self, bytes: usize) -> Result<()> {
        self.counted.store(bytes, Ordering::Relaxed);
        self.hold(bytes)
    }

    fn hold(&self, bytes: usize) -> Result<()> {
        if bytes <= self.reserved.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut held = self.held.lock();
        let wanted = bytes.next_multiple_of(STEP_BYTES);
        if bytes > held.budget.max {
            let message = format!("this takes more than {} bytes of memory: ask for less at once", held.budget.max);
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        if !held.grow_to(wanted) {
            return Err(busy(held.budget.max));
        }
        self.reserved.fetch_max(wanted, Ordering::Relaxed);
        Ok(())
    }
}

/// The error of a query that finds no room.
pub(crate) fn busy(max: usize) -> Error {
    let message = format!("all queries together may hold {max} bytes of memory, and they do: try again in a moment");
    Error::new(ErrorKind::Busy, message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;

    #[test]
    fn a_meter_holds_in_steps_and_is_refused_beyond_the_budget() {
        let budget = Budget::new(3 * STEP_BYTES);
        let (one, other) = (Meter::new(&budget), Meter::new(&budget));
        assert_eq!(one.add(1).unwrap(), 1);
        assert_eq!(budget.held(), STEP_BYTES);
        assert_eq!(one.add(STEP_BYTES).unwrap(), STEP_BYTES + 1);
        other.add(10).unwrap();
        assert_eq!((budget.held(), other.add(STEP_BYTES).unwrap_err().kind()), (3 * STEP_BYTES, ErrorKind::Busy));
        one.set(5).unwrap();
        assert_eq!(budget.held(), 3 * STEP_BYTES);
        drop(one);
        other.set(2 * STEP_BYTES).unwrap();
        assert_eq!(other.set(4 * STEP_BYTES).unwrap_err().kind(), ErrorKind::LimitExceeded);
        drop(other);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn what_is_held_is_given_back() {
        let budget = Budget::new(100);
        let mut a = budget.reserve(60).expect("fits");
        assert!(budget.reserve(41).is_none());
        assert!(a.grow_to(100) && !a.grow_to(101));
        assert_eq!(budget.held(), 100);
        drop(a);
        assert_eq!(budget.held(), 0);
        assert!(budget.reserve(usize::MAX).is_none());
    }
}
