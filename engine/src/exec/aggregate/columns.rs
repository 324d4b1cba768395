//! Where columns answer the front of a pipeline, asked before documents are.
//!
//! Takes the stages behind the filter; says how many of them columns answer, and answers them from a scan. What is not
//! planned here runs on documents.

use quarrydb_jsonb::JsonbRef;
use quarrydb_query::pipeline::{Fault, Flow, Stage};

use super::host::EngineHost;
use crate::exec::scan::Scan;

/// The stages that columns answer: none so far.
#[derive(Debug)]
pub(super) enum ColumnPlan {}

/// How columns answer the first of `stages`, and how many of them.
pub(super) fn try_plan(stages: &[Stage]) -> Option<(ColumnPlan, usize)> {
    let _ = stages;
    None
}

impl ColumnPlan {
    /// Calls `each` with the documents that these stages make of the documents of a scan, until it breaks.
    ///
    /// # Errors
    /// Those of the stages and of the scan, and those of `each`.
    pub(super) fn run(
        &self,
        _: &Scan,
        _: &EngineHost,
        _: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        match *self {}
    }
}
