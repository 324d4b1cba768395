//! What an expression sees while it is evaluated: the document and the variables; and what it may spend.
//!
//! Memory is what the values alive at a moment stand for: each evaluation gives back what it charged but for its result.
//! Steps are evaluations of nodes and elements looked at. Both are bounded, and now and then the caller is asked whether
//! to go on, so that no expression takes more than its query was given. Next: `evaluate.rs`.

use super::datum::Datum;
use super::positions::Positions;
use crate::QueryError;
use crate::filter::Pattern;
use quarrydb_jsonb::JsonbRef;
use std::rc::Rc;

/// What one evaluation may spend.
#[derive(Clone, Copy)]
pub struct Budget<'i> {
    /// Bytes of the values alive at any moment.
    pub bytes: usize,
    /// Nodes evaluated and elements visited.
    pub steps: u64,
    /// Asked every [`INTERRUPT_STEPS`] steps; false stops the evaluation.
    pub go_on: Option<&'i dyn Fn() -> bool>,
}

/// How many steps pass between two looks at whether to go on.
pub const INTERRUPT_STEPS: u64 = 4096;

impl Default for Budget<'_> {
    fn default() -> Self {
        Self { bytes: 100 << 20, steps: 1 << 26, go_on: None }
    }
}

impl std::fmt::Debug for Budget<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Budget {{ bytes: {}, steps: {} }}", self.bytes, self.steps)
    }
}

/// The state of one evaluation.
#[derive(Debug)]
pub struct Scope<'a> {
    root: Datum<'a>,
    /// Variables by the position that the parser gave them.
    pub(super) variables: Vec<Datum<'a>>,
    /// Arguments of the calls in progress, the innermost's last.
    pub(super) arguments: Vec<Datum<'a>>,
    budget: Budget<'a>,
    used: usize,
    steps: u64,
    /// Where elements of stored arrays lie.
    pub(super) positions: Positions<'a>,
    /// The regular expression that was compiled last, with its text and options.
    pub(super) last_pattern: Option<(Box<str>, Rc<Pattern>)>,
}

impl<'a> Scope<'a> {
    /// For one document, with a budget.
    #[must_use]
    pub fn new(root: JsonbRef<'a>, budget: Budget<'a>) -> Self {
        Self {
            root: Datum::from(root),
            variables: Vec::new(),
            arguments: Vec::new(),
            budget,
            used: 0,
            steps: 0,
            positions: Positions::default(),
            last_pattern: None,
        }
    }

    /// The same with values in the first slots.
    pub(crate) fn with_values(mut self, values: Vec<Datum<'a>>) -> Self {
        self.variables = values;
        self
    }

    /// `$$ROOT`.
    #[inline]
    #[must_use]
    pub fn root(&self) -> &Datum<'a> {
        &self.root
    }

    /// Takes bytes from the budget.
    ///
    /// # Errors
    /// `ExceededMemoryLimit`, 146.
    #[inline]
    pub fn charge(&mut self, bytes: usize) -> Result<(), QueryError> {
        self.used = self.used.saturating_add(bytes);
        if self.used <= self.budget.bytes {
            return Ok(());
        }
        let message = format!("the expression needs more than its budget of {} bytes", self.budget.bytes);
        Err(QueryError::new("ExceededMemoryLimit", 146, message))
    }

    /// What is charged now; see [`Scope::settle`].
    #[inline]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    /// Gives back all that was charged since `before`, but for `kept` bytes.
    #[inline]
    pub(super) fn settle(&mut self, before: usize, kept: usize) {
        self.used = before.saturating_add(kept);
    }

    /// The steps taken so far.
    pub(super) fn steps(&self) -> u64 {
        self.steps
    }

    /// Counts `steps` steps.
    ///
    /// # Errors
    /// `MaxTimeMSExpired` (50) where the caller wants no more, `ExceededMemoryLimit` (146) where the steps are spent.
    #[inline]
    pub fn step(&mut self, steps: u64) -> Result<(), QueryError> {
        let before = self.steps;
        self.steps += steps;
        if before / INTERRUPT_STEPS != self.steps / INTERRUPT_STEPS || self.steps > self.budget.steps {
            self.check()?;
        }
        Ok(())
    }

    #[cold]
    fn check(&self) -> Result<(), QueryError> {
        if self.steps > self.budget.steps {
            let message = format!("the expression takes more than its budget of {} steps", self.budget.steps);
            return Err(QueryError::new("ExceededMemoryLimit", 146, message));
        }
        if self.budget.go_on.is_some_and(|go_on| !go_on()) {
            return Err(QueryError::new("MaxTimeMSExpired", 50, "the operation ran out of time"));
        }
        Ok(())
    }
}
