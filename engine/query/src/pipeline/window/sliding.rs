//! What is made of the rows in a window that moves forward, without anything being taken away again.
//!
//! Two stacks make a queue: one has for each row what is made of it and all rows up to the middle, the other one thing made
//! of all rows behind the middle. Each row is added at most three times. Takes states that merge; knows nothing else of
//! them.

use crate::QueryError;
use std::ops::Range;

/// What can be made of rows and merged.
pub(super) trait Fold {
    type State;

    /// Of no rows.
    fn empty(&self) -> Self::State;

    /// Adds a row behind those before.
    fn add(&self, state: &mut Self::State, row: usize) -> Result<(), QueryError>;

    /// Adds the state of later rows.
    fn merge(&self, state: &mut Self::State, later: &Self::State) -> Result<(), QueryError>;
}

/// A window over states.
#[derive(Debug)]
pub(super) struct Sliding<S> {
    window: Range<usize>,
    /// For each row before the middle, the last on top: it and all rows up to the middle.
    front: Vec<S>,
    /// The rows behind the middle.
    back: S,
}

impl<S: Clone> Sliding<S> {
    pub(super) fn new(empty: S) -> Self {
        Self { window: 0..0, front: Vec::new(), back: empty }
    }

    /// Moves the window forward; gives what its rows make.
    pub(super) fn move_to(&mut self, to: &Range<usize>, fold: &impl Fold<State = S>) -> Result<S, QueryError> {
        if to.start >= self.window.end {
            self.front.clear();
            self.back = fold.empty();
            self.window = to.start..to.start;
        }
        while self.window.end < to.end {
            fold.add(&mut self.back, self.window.end)?;
            self.window.end += 1;
        }
        while self.window.start < to.start {
            if self.front.is_empty() {
                self.turn(fold)?;
            }
            self.front.pop();
            self.window.start += 1;
        }
        match self.front.last() {
            None => Ok(self.back.clone()),
            Some(front) => {
                let mut whole = front.clone();
                fold.merge(&mut whole, &self.back)?;
                Ok(whole)
            }
        }
    }

    /// Puts the middle to the end.
    fn turn(&mut self, fold: &impl Fold<State = S>) -> Result<(), QueryError> {
        self.front.reserve(self.window.len());
        for row in self.window.clone().rev() {
            let mut state = fold.empty();
            fold.add(&mut state, row)?;
            if let Some(later) = self.front.last() {
                fold.merge(&mut state, later)?;
            }
            self.front.push(state);
        }
        self.back = fold.empty();
        Ok(())
    }
}
