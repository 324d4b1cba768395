//! What a running pipeline asks of whoever runs it: when to stop, how much memory there is, what other collections hold.
//!
//! The engine is one host, a map of arrays in tests another. Next: `operator.rs`.

use super::operator::Flow;
use crate::QueryError;
use crate::expr::Budget;
use crate::filter::Filter;
use quarrydb_jsonb::JsonbRef;
use std::fmt;

/// What ends a run: the pipeline's own error, or one of its host.
#[derive(Debug)]
pub enum Fault {
    /// A stage, an expression or a filter failed on a document.
    Query(QueryError),
    /// The host's own: a disk, a deadline. It takes its own type out of the box again.
    Host(Box<dyn std::error::Error + Send + Sync>),
}

impl From<QueryError> for Fault {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(error) => error.fmt(f),
            Self::Host(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Fault {}

/// Whoever runs a pipeline.
pub trait Host {
    /// Whether to go on: asked every few thousand steps.
    fn go_on(&self) -> bool;

    /// What one expression may spend, with [`Host::go_on`] in it.
    fn budget(&self) -> Budget<'_>;

    /// Bytes that one stage may hold in memory: 100 MB in MongoDB.
    fn stage_bytes(&self) -> usize;

    /// Calls `each` with the documents of a collection (of the pipeline's database where `db` is none) that `filter`
    /// matches, in row order, until it breaks. All calls of one run see the same snapshot.
    ///
    /// # Errors
    /// The host's, the filter's, those of `each`.
    fn find(
        &self,
        db: Option<&str>,
        collection: &str,
        filter: &Filter,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault>;
}
