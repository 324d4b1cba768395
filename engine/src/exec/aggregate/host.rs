//! What a running pipeline asks of the engine: documents of other collections as of the same snapshot, memory, the disk,
//! and whether to go on.

use std::collections::HashMap;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use quarrydb_jsonb::{JsonbRef, id_hash};
use quarrydb_query::expr::Budget;
use quarrydb_query::path_walk::FieldPath;
use quarrydb_query::pipeline::{CollStats, Fault, Flow, Host, IndexStats, Spill, Write};
use quarrydb_query::{Filter, QueryError};

use super::spill::SpillTo;
use super::{Place, Writer, stats};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::scan::{Ask, Scan, matches};
use crate::exec::view::View;
use crate::limits::STAGE_BYTES_MAX;
use crate::mvcc::Snapshot;
use crate::mvcc::version::StoredDocument;
use crate::options::Deadline;
use crate::segment::BlockBuf;
use crate::spill::SortLimits;

/// A stage takes at most this part of what all queries may hold.
const SHARE: usize = 4;

/// The collections that a pipeline reads, as of one snapshot.
#[derive(Debug)]
pub(crate) struct Seen {
    pub snapshot: Snapshot,
    /// By database and name; what is not there is a collection without documents.
    pub views: HashMap<(String, String), View>,
}

impl Seen {
    /// All of `names` as they stand. The snapshot first, the versions after it (see `mvcc`).
    pub(crate) fn now<'a>(core: &Core, names: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let snapshot = core.snapshot();
        let view = |(db, name): (&str, &str)| {
            let state = core.catalog.get(db, name)?;
            Some(((db.to_owned(), name.to_owned()), View::of(&state)))
        };
        Self { snapshot, views: names.filter_map(view).collect() }
    }
}

/// Whoever runs a pipeline.
pub(crate) struct EngineHost {
    core: Arc<Core>,
    seen: Seen,
    db: Box<str>,
    collection: Option<Box<str>>,
    deadline: Option<Deadline>,
    disk: bool,
    stage_bytes: usize,
    go_on: Box<dyn Fn() -> bool + Send + Sync>,
    writer: Option<Mutex<Box<dyn Writer>>>,
    /// Bytes that stages put on the disk.
    spilled: Arc<AtomicU64>,
    examined: AtomicU64,
    ran_on_columns: AtomicBool,
}

impl fmt::Debug for EngineHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineHost").field("seen", &self.seen).field("writer", &self.writer).finish_non_exhaustive()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Host(Box::new(error))
    }
}

fn gone() -> Error {
    Error::new(ErrorKind::Cancelled, "nobody wants the answer any more")
}

impl EngineHost {
    pub(super) fn new(
        core: &Arc<Core>,
        seen: Seen,
        place: &Place<'_>,
        deadline: Option<Deadline>,
        is_wanted: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
        disk: bool,
        writer: Option<Box<dyn Writer>>,
    ) -> Self {
        let noted = AtomicBool::new(false);
        let go_on = move || {
            if is_wanted.as_ref().is_some_and(|is_wanted| !is_wanted()) {
                noted.store(true, Ordering::Relaxed);
            }
            !noted.load(Ordering::Relaxed) && Deadline::check(deadline).is_ok()
        };
        Self {
            core: Arc::clone(core),
            seen,
            db: place.db.into(),
            collection: place.collection.map(Box::from),
            deadline,
            disk,
            stage_bytes: STAGE_BYTES_MAX.min(core.queries.max() / SHARE),
            go_on: Box::new(go_on),
            writer: writer.map(Mutex::new),
            spilled: Arc::default(),
            examined: AtomicU64::new(0),
            ran_on_columns: AtomicBool::new(false),
        }
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(super) fn deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    pub(super) fn may_spill(&self) -> bool {
        self.disk
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.seen.snapshot.again()
    }

    /// What is seen of a collection; none where it has no documents.
    pub(super) fn view(&self, db: Option<&str>, collection: &str) -> Option<&View> {
        self.seen.views.get(&(db.unwrap_or(&self.db).to_owned(), collection.to_owned()))
    }

    /// Counts documents that were looked at.
    pub(super) fn note_examined(&self, documents: u64) {
        self.examined.fetch_add(documents, Ordering::Relaxed);
        self.core.counters.documents_examined.fetch_add(documents, Ordering::Relaxed);
    }

    /// Documents that were looked at, but for those of a cursor.
    pub(super) fn examined(&self) -> u64 {
        self.examined.load(Ordering::Relaxed)
    }

    /// Notes that columns answered the first stage behind the filter.
    pub(super) fn note_columns(&self) {
        self.ran_on_columns.store(true, Ordering::Relaxed);
    }

    /// Whether they did.
    pub(super) fn ran_on_columns(&self) -> bool {
        self.ran_on_columns.load(Ordering::Relaxed)
    }

    /// Bytes that stages put on the disk.
    pub(super) fn spilled(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }

    /// An error once nobody waits any more.
    ///
    /// # Errors
    /// `TimedOut`, `Cancelled`.
    pub(super) fn check(&self) -> Result<()> {
        if (self.go_on)() {
            return Ok(());
        }
        Deadline::check(self.deadline)?;
        Err(gone())
    }

    /// What ended a run, as the engine's error.
    pub(super) fn error(&self, fault: Fault) -> Error {
        match fault {
            Fault::Host(error) => match error.downcast::<Error>() {
                Ok(error) => *error,
                Err(other) => Error::new(ErrorKind::Internal, format!("an aggregation failed: {other}")),
            },
            // A stage that was told not to go on says so in its own words.
            Fault::Query(error) => self.check().err().unwrap_or_else(|| error.into()),
        }
    }

    /// A collection as it stands now; the pipeline's own where none is named.
    fn state(&self, collection: Option<&str>) -> Result<Arc<CollectionState>, Fault> {
        let collection = collection.or(self.collection.as_deref()).unwrap_or_default();
        self.core.catalog.get(&self.db, collection).ok_or_else(|| no_collection(&self.db, collection))
    }

    /// The document of a view that a filter with a known `_id` matches.
    pub(super) fn point(&self, view: &View, id: JsonbRef<'_>, filter: &Filter) -> Result<Option<StoredDocument>> {
        let found = view.version.find(id_hash(id), id, self.seen.snapshot.seq())?;
        self.seen.snapshot.check()?;
        let Some(document) = found else { return Ok(None) };
        self.note_examined(1);
        Ok(matches(filter, document.view(), self.deadline)?.then_some(document))
    }

    fn find_in(
        &self,
        view: &View,
        filter: &Filter,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        if let Some(id) = filter.id_point().filter(|_| view.is_plain()) {
            return match self.point(view, id, filter)? {
                Some(document) => each(document.view()).map(drop),
                None => Ok(()),
            };
        }
        let ask = Ask::Filter.within(&self.core.options);
        let scan = Scan::over(view.clone(), self.snapshot(), filter.clone(), self.deadline, ask)?;
        let mut buffer = BlockBuf::default();
        let mut fault = None;
        for morsel in scan.morsels()? {
            self.check()?;
            let flow = scan.run(&morsel, &mut buffer, &mut |document, _| {
                Ok(each(document).unwrap_or_else(|failed| {
                    fault = Some(failed);
                    ControlFlow::Break(())
                }))
            })?;
            if flow.is_break() {
                break;
            }
        }
        super::input::note_examined(self, &scan);
        fault.map_or(Ok(()), Err)
    }
}

impl Host for EngineHost {
    fn go_on(&self) -> bool {
        (self.go_on)()
    }

    fn budget(&self) -> Budget<'_> {
        Budget { go_on: Some(&*self.go_on), ..Budget::default() }
    }

    fn stage_bytes(&self) -> usize {
        self.stage_bytes
    }

    fn spill(&self) -> Result<Option<Box<dyn Spill>>, Fault> {
        if !self.disk {
            return Ok(None);
        }
        let limits = SortLimits { memory_max: self.stage_bytes, disk: true, deadline: self.deadline };
        Ok(Some(Box::new(SpillTo::new(&self.core, limits, &self.spilled))))
    }

    fn find(
        &self,
        db: Option<&str>,
        collection: &str,
        filter: &Filter,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        self.view(db, collection).map_or(Ok(()), |view| self.find_in(view, filter, each))
    }

    fn finds_by(&self, db: Option<&str>, collection: &str, path: &FieldPath) -> bool {
        let Some(view) = self.view(db, collection) else { return true };
        if path.as_str() == "_id" && view.is_plain() {
            return true;
        }
        let mut indexes = view.indexes.iter();
        indexes.any(|index| {
            let definition = &index.definition;
            let leads = definition.fields.first().is_some_and(|field| field.path.as_str() == path.as_str());
            leads && index.is_ready() && !definition.sparse && definition.partial.is_none()
        })
    }

    fn collection_stats(
        &self,
        asked: &CollStats,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let state = self.state(asked.collection.as_deref())?;
        each(stats::collection(&self.core, &state, asked)?.view()).map(drop)
    }

    fn index_stats(
        &self,
        asked: &IndexStats,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let state = self.state(asked.collection.as_deref())?;
        for index in stats::indexes(&state)? {
            if each(index.view())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, _: &Write, document: JsonbRef<'_>) -> Result<(), Fault> {
        match &self.writer {
            Some(writer) => Ok(writer.lock().write(document)?),
            None => Err(nobody_writes()),
        }
    }

    fn write_end(&self, _: &Write) -> Result<(), Fault> {
        match &self.writer {
            Some(writer) => Ok(writer.lock().end()?),
            None => Err(nobody_writes()),
        }
    }
}

/// A collection of which there is nothing to tell.
fn no_collection(db: &str, collection: &str) -> Fault {
    QueryError::new("NamespaceNotFound", 26, format!("Collection [{db}.{collection}] not found.")).into()
}

fn nobody_writes() -> Fault {
    QueryError::new("IllegalOperation", 20, "$out and $merge cannot run here").into()
}
