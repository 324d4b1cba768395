//! How many regular expressions the expressions of one filter, projection or update have: the more, the less room for each.
//!
//! Whoever parses something that may hold many expressions opens a count; what is parsed on the thread until it is dropped
//! is counted together. An expression parsed alone is counted alone.

use std::cell::Cell;

thread_local! {
    /// Counts that are open, and patterns since the outermost was opened.
    static COUNT: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// An open count: what is parsed on this thread while it is there has the patterns of one filter together. A body of many
/// filters opens one around all of them.
#[derive(Debug)]
pub struct PatternCount(());

impl PatternCount {
    /// Opens one, or joins the one that is open.
    #[must_use]
    pub fn open() -> Self {
        let (open, patterns) = COUNT.get();
        COUNT.set((open + 1, if open == 0 { 0 } else { patterns }));
        Self(())
    }

    /// The number of the next pattern, from 1.
    pub(crate) fn next() -> usize {
        let (open, patterns) = COUNT.get();
        COUNT.set((open, patterns + 1));
        patterns + 1
    }
}

impl Drop for PatternCount {
    fn drop(&mut self) {
        let (open, patterns) = COUNT.get();
        COUNT.set((open.saturating_sub(1), patterns));
    }
}
