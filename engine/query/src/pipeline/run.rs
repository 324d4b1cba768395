//! A pipeline while it runs: documents go in one by one, what comes out is handed to a sink.

use super::host::{Fault, Host};
use super::operator::{Flow, Next, Operator};
use super::stage::Stage;
use quarrydb_jsonb::JsonbRef;
use std::fmt;

/// The running stages of a pipeline or of a part of it.
pub struct Run {
    operators: Vec<Box<dyn Operator>>,
}

impl Run {
    /// The stages, with nothing taken yet.
    #[must_use]
    pub fn new(stages: &[Stage]) -> Self {
        Self { operators: Stage::operators(stages) }
    }

    /// Takes a document. A break says that no further one is wanted.
    ///
    /// # Errors
    /// Those of the stages, of the host and of the sink. The run is then not to be used again.
    pub fn push(
        &mut self,
        document: JsonbRef<'_>,
        host: &dyn Host,
        sink: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<Flow, Fault> {
        Next::new(&mut self.operators, sink, host).push(document)
    }

    /// There are no more documents: what stages have kept comes out.
    ///
    /// # Errors
    /// As [`Run::push`].
    pub fn finish(
        &mut self,
        host: &dyn Host,
        sink: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        Next::new(&mut self.operators, sink, host).finish()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Run {{ {} stages }}", self.operators.len())
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
