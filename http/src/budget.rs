//! The memory that bodies of all requests together may hold.
//!
//! Takes byte counts; gives reservations that end by themselves, or says no, which becomes 429.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What is held of at most `max`.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    max: usize,
}

/// Bytes that are held until this is dropped.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    /// Nothing held yet of `max` bytes.
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { held: AtomicUsize::new(0), max })
    }

    /// Bytes held now.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let fits = |held: usize| held.checked_add(bytes).filter(|&sum| sum <= self.max);
        self.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }

    /// Holds `bytes`, or None where they do not fit.
    pub(crate) fn reserve(self: &Arc<Self>, bytes: usize) -> Option<Reservation> {
        self.take(bytes).then(|| Reservation { budget: Arc::clone(self), bytes })
    }
}

impl Reservation {
    /// Holds at least `bytes` in all; false where they do not fit.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

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
