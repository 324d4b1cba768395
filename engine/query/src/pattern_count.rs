//! How many regular expressions the expressions of one filter, projection or update have: the more, the less room for each.
//!
//! Whoever parses something that may hold many expressions opens a count; what is parsed on the thread until it is dropped
//! is counted together. An expression parsed alone is counted alone. Before each is compiled, whoever opened the count may
//! say that it takes too long: compiling one takes a moment, thousands take seconds.

use std::cell::{Cell, RefCell};

use crate::QueryError;
use crate::limits::PATTERNS_WORK_MAX;

thread_local! {
    /// Counts that are open, and patterns and their work since the outermost was opened.
    static COUNT: Cell<(usize, usize, u64)> = const { Cell::new((0, 0, 0)) };
    /// Whether to go on.
    static GO_ON: RefCell<Option<Box<dyn Fn() -> bool>>> = const { RefCell::new(None) };
}

/// An open count: what is parsed on this thread while it is there has the patterns of one filter together. A body of many
/// filters opens one around all of them.
#[derive(Debug)]
pub struct PatternCount {
    /// Whether it is this one that says whether to go on.
    asks: bool,
}

impl PatternCount {
    /// Opens one, or joins the one that is open.
    #[must_use]
    pub fn open() -> Self {
        let (open, patterns, work) = COUNT.get();
        COUNT.set(if open == 0 { (1, 0, 0) } else { (open + 1, patterns, work) });
        Self { asks: false }
    }

    /// The same; before each pattern `go_on` is asked whether to go on, unless somebody is asked already. It must be dropped
    /// on the thread that opened it.
    #[must_use]
    pub fn open_until(go_on: impl Fn() -> bool + 'static) -> Self {
        let asks = GO_ON.with_borrow_mut(|asked| {
            let asks = asked.is_none();
            if asks {
                *asked = Some(Box::new(go_on));
            }
            asks
        });
        let mut count = Self::open();
        count.asks = asks;
        count
    }

    /// The number of the next pattern, from 1.
    ///
    /// # Errors
    /// `MaxTimeMSExpired` (50) where it takes too long.
    pub(crate) fn next() -> Result<usize, QueryError> {
        if !GO_ON.with_borrow(|asked| asked.as_ref().is_none_or(|go_on| go_on())) {
            let message = "the operation ran out of time while its regular expressions were compiled";
            return Err(QueryError::new("MaxTimeMSExpired", 50, message));
        }
        let (open, patterns, work) = COUNT.get();
        COUNT.set((open, patterns + 1, work));
        Ok(patterns + 1)
    }

    /// Adds the work of compiling a pattern; false where all together is too much.
    pub(crate) fn spend(more: u64) -> bool {
        let (open, patterns, work) = COUNT.get();
        let work = if open == 0 { more } else { work.saturating_add(more) };
        COUNT.set((open, patterns, work));
        work <= PATTERNS_WORK_MAX
    }
}

impl Drop for PatternCount {
    fn drop(&mut self) {
        let (open, patterns, work) = COUNT.get();
        COUNT.set((open.saturating_sub(1), patterns, work));
        if self.asks {
            GO_ON.set(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_asked_first_is_asked_until_it_is_gone() {
        let asked = std::rc::Rc::new(Cell::new(0));
        let counting = std::rc::Rc::clone(&asked);
        let outer = PatternCount::open_until(move || {
            counting.set(counting.get() + 1);
            counting.get() < 4
        });
        {
            let _inner = PatternCount::open_until(|| false);
            assert_eq!((PatternCount::next().ok(), PatternCount::next().ok()), (Some(1), Some(2)));
        }
        assert_eq!((PatternCount::next().ok(), COUNT.get().0), (Some(3), 1));
        assert_eq!(PatternCount::next().map_err(|e| e.code()), Err(50));
        drop(outer);
        let _alone = PatternCount::open();
        assert_eq!((PatternCount::next().ok(), asked.get()), (Some(1), 4));
        assert!(PatternCount::spend(PATTERNS_WORK_MAX) && !PatternCount::spend(1));
    }
}
