//! Aggregation: from a pipeline to documents, as of one snapshot of all collections it reads.
//!
//! `plan.rs` gives the front of a pipeline to what answers it fastest; `input.rs` finds the documents that go in, `run.rs`
//! sends them through the stages, on all cores where order allows. What comes out is what `quarrydb_query`'s stages make
//! of the documents in row order, however it was made. `host.rs` is what a running stage may ask. It never writes: who
//! does for `$out` and `$merge` is handed in as a [`Writer`].
//!
//! Reading order: here, `names.rs`, `plan.rs`, `input.rs`, `host.rs`, `run.rs`, `spill.rs`.

mod columns;
mod explain;
mod host;
mod input;
pub(crate) mod names;
mod plan;
mod run;
mod spill;
mod stats;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::JsonbRef;
use quarrydb_query::pipeline::{Pipeline, Write};

pub(crate) use self::host::{EngineHost, Seen};
use self::input::Input;
use self::plan::Plan;
use super::cursor::{Print, Sink, Witness};
use crate::core::Core;
use crate::error::{ErrorKind, Result};
use crate::options::Deadline;

/// What an aggregation asks.
#[non_exhaustive]
pub struct AggregateRequest {
    /// The stages.
    pub pipeline: Pipeline,
    /// Whether stages that need more memory than one may have may use the disk.
    pub allow_disk_use: bool,
    /// When to give up.
    pub deadline: Option<Deadline>,
    /// Whether what `$out` and `$merge` write waits for stable storage; none: as the database is set.
    pub journal: Option<bool>,
    /// Asked now and then, from any thread, whether anyone still wants the answer; none: somebody does.
    pub is_wanted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

impl AggregateRequest {
    /// All that `pipeline` gives.
    #[must_use]
    pub fn new(pipeline: Pipeline) -> Self {
        Self { pipeline, allow_disk_use: true, deadline: None, journal: None, is_wanted: None }
    }

    /// The collections beside its own that it reads or writes, where it runs in the database `db`: database, collection
    /// and whether it writes there.
    #[must_use]
    pub fn namespaces<'a>(&'a self, db: &'a str) -> Vec<(&'a str, &'a str, bool)> {
        names::of(self.pipeline.stages())
            .into_iter()
            .map(|name| (name.db.unwrap_or(db), name.collection, name.writes))
            .collect()
    }
}

impl fmt::Debug for AggregateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AggregateRequest").field("pipeline", &self.pipeline).finish_non_exhaustive()
    }
}

/// Who writes what `$out` and `$merge` are given.
pub(crate) trait Writer: fmt::Debug + Send {
    /// Takes a document.
    ///
    /// # Errors
    /// What stands against it.
    fn write(&mut self, document: JsonbRef<'_>) -> Result<()>;

    /// There are no more: what was taken is written for good.
    ///
    /// # Errors
    /// As [`Writer::write`].
    fn end(&mut self) -> Result<()>;
}

/// Makes who writes for a stage that does.
pub(crate) type MakeWriter<'w> = &'w dyn Fn(&Arc<Write>) -> Result<Box<dyn Writer>>;

/// Where an aggregation runs.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    /// The database.
    pub db: &'a str,
    /// The collection whose documents go in; none where the pipeline brings its own.
    pub collection: Option<&'a str>,
}

/// An aggregation, ready to run.
#[derive(Debug)]
pub struct Aggregation {
    plan: Plan,
    input: Input,
    host: EngineHost,
    /// Who is told how it fares.
    witness: Option<Arc<dyn Witness>>,
}

impl Aggregation {
    /// The same with somebody who is told how it fares.
    pub(crate) fn with_witness(mut self, witness: Arc<dyn Witness>) -> Self {
        self.witness = Some(witness);
        self
    }

    /// Plans `request` over what is `seen`. `writer` makes who writes, where the pipeline ends in a stage that does.
    ///
    /// # Errors
    /// Those of finding the documents that go in, where that takes a sort; those of `writer`.
    pub(crate) fn new(
        core: &Arc<Core>,
        seen: Seen,
        place: &Place<'_>,
        request: AggregateRequest,
        writer: MakeWriter<'_>,
    ) -> Result<Self> {
        let AggregateRequest { pipeline, allow_disk_use, deadline, is_wanted, .. } = request;
        let plan = Plan::new(pipeline);
        let writer = plan.write().map(writer).transpose()?;
        let host = EngineHost::new(core, seen, place, deadline, is_wanted, allow_disk_use, writer);
        let input = Input::new(&host, &plan, place)?;
        Ok(Self { plan, input, host, witness: None })
    }

    /// Calls `each` with the documents of the answer, one by one, until it breaks.
    ///
    /// # Errors
    /// Those of the stages; `TimedOut`, `Cancelled`; `LimitExceeded` and `Busy` for memory; `Corrupt`, `Io`.
    pub fn each(self, each: &mut dyn FnMut(JsonbRef<'_>) -> Result<ControlFlow<()>>) -> Result<()> {
        let mut take = |document: JsonbRef<'_>| Ok(each(document)?);
        let Self { plan, mut input, host, witness } = self;
        let result = run::run(&plan, &mut input, &host, &mut take).map_err(|fault| host.error(fault));
        if let (Err(_), Some(witness)) = (&result, &witness) {
            witness.failed();
        }
        result
    }

    /// Hands on all documents as `print` prints them, in order, in pieces; gives how many there were. Where nobody wants
    /// them any more it ends without an error.
    ///
    /// # Errors
    /// As [`Aggregation::each`]; what was handed on before is then not the whole answer.
    pub fn stream(self, print: Print<'_>, sink: Sink<'_>) -> Result<u64> {
        let Self { plan, input, host, witness } = self;
        let mut told = |piece: Vec<u8>, documents: u64| {
            if let Some(witness) = &witness {
                witness.goes_on();
            }
            sink(piece, documents)
        };
        let mut pieces = run::Pieces::new(&mut told);
        let result = match input {
            Input::Scan(scan) if plan.is_find() => {
                let result = run::print(&plan, &scan, &host, print, &mut pieces);
                input::note_examined(&host, &scan);
                result
            }
            mut input => run::run(&plan, &mut input, &host, &mut |document| Ok(pieces.add(document, print))),
        };
        let result = result.map_err(|fault| host.error(fault));
        let cancelled = result.as_ref().is_err_and(|error| error.kind() == ErrorKind::Cancelled);
        if cancelled || pieces.is_gone() {
            host.core().counters.cursors_cancelled.fetch_add(1, Ordering::Relaxed);
        }
        match result {
            Err(error) if !cancelled => {
                if let Some(witness) = &witness {
                    witness.failed();
                }
                Err(error)
            }
            _ => Ok(pieces.end()),
        }
    }
}
