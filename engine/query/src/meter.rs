//! What one operation on one document has looked at so far, over all its filters, elements and fields.
//!
//! A filter that is asked about each of a million elements is short each time and long altogether. So who asks counts all
//! of it here, and now and then its caller is asked whether to go on. Expressions count for themselves: `expr/scope.rs`.

use crate::QueryError;
use crate::expr::{Budget, INTERRUPT_STEPS};
use crate::limits::MATCH_STEPS_MAX;
use std::cell::Cell;

/// The count of one operation on one document.
#[derive(Debug, Default)]
pub(crate) struct Meter<'r> {
    budget: Budget<'r>,
    steps: Cell<u64>,
}

impl<'r> Meter<'r> {
    pub(crate) fn new(budget: Budget<'r>) -> Self {
        Self { budget, steps: Cell::new(0) }
    }

    /// What an expression may spend.
    pub(crate) fn budget(&self) -> Budget<'r> {
        self.budget
    }

    /// What was looked at so far.
    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }

    /// The same after a filter has counted on from [`Meter::steps`].
    pub(crate) fn set_steps(&self, steps: u64) {
        self.steps.set(steps);
    }

    /// Counts values that are looked at or written.
    ///
    /// # Errors
    /// `MaxTimeMSExpired` (50) where they are too many, or the caller wants no more.
    #[inline]
    pub(crate) fn step(&self, steps: u64) -> Result<(), QueryError> {
        let before = self.steps.get();
        let after = before + steps;
        self.steps.set(after);
        if before / INTERRUPT_STEPS == after / INTERRUPT_STEPS { Ok(()) } else { self.check() }
    }

    #[cold]
    fn check(&self) -> Result<(), QueryError> {
        if self.steps.get() > MATCH_STEPS_MAX {
            let message = format!("the operation looks at more than {MATCH_STEPS_MAX} values of one document");
            return Err(QueryError::new("MaxTimeMSExpired", 50, message));
        }
        match self.budget.go_on {
            Some(go_on) if !go_on() => Err(QueryError::new("MaxTimeMSExpired", 50, "the operation ran out of time")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_looked_at_has_an_end_over_all_filters() {
        let meter = Meter::default();
        assert_eq!(meter.step(MATCH_STEPS_MAX - 1), Ok(()));
        assert_eq!(meter.step(1), Ok(()));
        assert_eq!(meter.step(INTERRUPT_STEPS).map_err(|e| e.code()), Err(50));
        // A filter counts on from there.
        let meter = Meter::default();
        meter.set_steps(MATCH_STEPS_MAX);
        assert_eq!(meter.step(INTERRUPT_STEPS).map_err(|e| e.code()), Err(50));
    }
}
