//! What a running pipeline asks of whoever runs it: when to stop, how much memory there is, what other collections hold.
//!
//! The engine is one host, a map of arrays in tests another. Next: `operator.rs`.

use super::operator::Flow;
use super::stats::{CollStats, IndexStats};
use super::write::Write;
use crate::QueryError;
use crate::expr::Budget;
use crate::filter::Filter;
use crate::path_walk::FieldPath;
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

    /// Room outside of memory for what a stage cannot hold; none where it may not be used.
    ///
    /// # Errors
    /// The host's.
    fn spill(&self) -> Result<Option<Box<dyn Spill>>, Fault> {
        Ok(None)
    }

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

    /// Whether [`Host::find`] finds the documents of a collection that have a value at `path` without reading all others:
    /// by an index, or because there are few. Where it does not, stages that ask again and again read the collection once.
    fn finds_by(&self, db: Option<&str>, collection: &str, path: &FieldPath) -> bool {
        let _ = (db, collection, path);
        false
    }

    /// Takes a document of `$out` or `$merge`: [`Merge`](super::Merge) says what is to become of it.
    ///
    /// # Errors
    /// The host's, those of [`Merge::merged`](super::Merge::merged); 20 where it writes nothing.
    fn write(&self, to: &Write, document: JsonbRef<'_>) -> Result<(), Fault> {
        let _ = (to, document);
        Err(not_here("$out and $merge"))
    }

    /// There are no more documents for `$out` or `$merge`.
    ///
    /// # Errors
    /// As [`Host::write`].
    fn write_end(&self, to: &Write) -> Result<(), Fault> {
        let _ = to;
        Err(not_here("$out and $merge"))
    }

    /// Calls `each` with what `$collStats` asks for.
    ///
    /// # Errors
    /// The host's, those of `each`; 20 where it knows nothing of collections.
    fn collection_stats(
        &self,
        asked: &CollStats,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let _ = (asked, each);
        Err(not_here("$collStats"))
    }

    /// Calls `each` with a document for each index.
    ///
    /// # Errors
    /// As [`Host::collection_stats`].
    fn index_stats(
        &self,
        asked: &IndexStats,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let _ = (asked, each);
        Err(not_here("$indexStats"))
    }
}

fn not_here(stage: &str) -> Fault {
    QueryError::new("IllegalOperation", 20, format!("{stage} cannot run here")).into()
}

/// Takes keys and payloads in any order, to give them back by key.
pub trait Spill: Send {
    /// Takes one.
    ///
    /// # Errors
    /// The host's.
    fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Fault>;

    /// There are no more.
    ///
    /// # Errors
    /// The host's.
    fn finish(self: Box<Self>) -> Result<Box<dyn Spilled>, Fault>;
}

/// What a [`Spill`] took, in the order of the keys' bytes; equal keys in the order in which they came.
pub trait Spilled: Send {
    /// The next key and payload.
    ///
    /// # Errors
    /// The host's.
    fn next(&mut self) -> Result<Option<KeyAndPayload<'_>>, Fault>;
}

/// What was pushed.
pub type KeyAndPayload<'s> = (&'s [u8], &'s [u8]);

/// Asks the host now and then whether to go on, for stages that work where no document is handed on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace(u32);

impl Pace {
    /// Steps between two questions.
    const STEPS: u32 = 1024;

    /// Counts a step of about a document's work.
    ///
    /// # Errors
    /// `MaxTimeMSExpired` (50) where the host wants no more.
    #[inline]
    pub fn step(&mut self, host: &dyn Host) -> Result<(), Fault> {
        self.0 += 1;
        if self.0 < Self::STEPS {
            return Ok(());
        }
        self.0 = 0;
        if host.go_on() {
            return Ok(());
        }
        Err(QueryError::new("MaxTimeMSExpired", 50, "the operation ran out of time").into())
    }
}
