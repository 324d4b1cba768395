//! What a stage is while it runs: it takes documents, one by one, and pushes what it makes of them to the next.
//!
//! A stage that must see all documents first (a sort, a group) pushes when there are no more. Whoever takes the last
//! stage's documents may end it all with a break. Next: `run.rs`.

use super::host::{Fault, Host};
use quarrydb_jsonb::JsonbRef;
use std::fmt;
use std::ops::ControlFlow;

/// Whether more documents are wanted.
pub type Flow = ControlFlow<()>;

/// A running stage.
pub trait Operator: Send {
    /// Takes a document. A break says that no further one is wanted; [`Operator::finish`] is called all the same.
    ///
    /// # Errors
    /// Those of the stage and of the stages behind it.
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault>;

    /// There are no more documents.
    ///
    /// # Errors
    /// As [`Operator::push`].
    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let _ = next;
        Ok(())
    }
}

/// What stands behind a stage: the other stages and, at their end, who asked.
pub struct Next<'n> {
    rest: &'n mut [Box<dyn Operator>],
    sink: &'n mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    host: &'n dyn Host,
}

impl<'n> Next<'n> {
    /// The stages `rest`, and behind them `sink`.
    pub fn new(
        rest: &'n mut [Box<dyn Operator>],
        sink: &'n mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
        host: &'n dyn Host,
    ) -> Self {
        Self { rest, sink, host }
    }

    /// Hands a document on.
    ///
    /// # Errors
    /// Those of the stages behind.
    #[inline]
    pub fn push(&mut self, document: JsonbRef<'_>) -> Result<Flow, Fault> {
        match self.rest.split_first_mut() {
            None => (self.sink)(document),
            Some((first, rest)) => first.push(document, &mut Next { rest, sink: &mut *self.sink, host: self.host }),
        }
    }

    /// Says that there are no more documents.
    ///
    /// # Errors
    /// Those of the stages behind.
    pub fn finish(&mut self) -> Result<(), Fault> {
        for at in 0..self.rest.len() {
            let Some((first, rest)) = self.rest.get_mut(at..).and_then(<[_]>::split_first_mut) else { break };
            first.finish(&mut Next { rest, sink: &mut *self.sink, host: self.host })?;
        }
        Ok(())
    }

    /// Who runs the pipeline.
    #[must_use]
    pub fn host(&self) -> &'n dyn Host {
        self.host
    }
}

impl fmt::Debug for Next<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Next {{ {} stages }}", self.rest.len())
    }
}
