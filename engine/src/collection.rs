//! A collection as its users hold it: insert, get, find, count, update, delete.
//!
//! A handle is a name: it makes nothing, and the collection behind it is looked up at each call, so a handle outlives a
//! drop. Each operation is told in `txn/insert.rs`, `txn/modify.rs`, `exec/find.rs`.

use std::sync::Arc;

use quarrydb_jsonb::{JsonbBuf, JsonbRef, id_hash};
use quarrydb_query::{Distinct, Filter};

use crate::batch::InsertBatch;
use crate::catalog::CollectionState;
use crate::columns::Columns;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::cursor::{Cursor, Document};
use crate::exec::explain::{self, Explained};
use crate::exec::find::{self, FindRequest};
use crate::maintain::compact::{self, Compacted};
use crate::options::{Deadline, WriteOptions};
use crate::txn::commit::{create, drop_collections, nothing_to_do};
use crate::txn::group::Pending;
use crate::txn::insert::{self, InsertOutcome};
use crate::txn::modify::{self, DeleteOutcome, DeleteRequest, Modified, UpdateOutcome, UpdateRequest};

/// A collection of documents, by name.
#[derive(Clone, Debug)]
pub struct Collection {
    pub(crate) core: Arc<Core>,
    db: Arc<str>,
    name: Arc<str>,
}

/// What came of `create`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// It was made.
    New,
    /// It was there, with the same options.
    Same,
}

/// What a collection holds.
#[derive(Clone, Debug)]
pub struct CollectionStats {
    /// Documents.
    pub documents: u64,
    /// Segment files.
    pub segments: u64,
    /// Row versions in memory that no segment holds yet.
    pub tail_documents: u64,
    /// Bytes of its segment files.
    pub bytes_on_disk: u64,
    /// Bytes of documents in memory that no segment holds yet.
    pub tail_bytes: u64,
    /// Bytes of columns: those in segment files, and those in memory of documents that no segment holds yet.
    pub column_bytes: u64,
    /// Paths that have no column because there are too many, at least so many.
    pub overflow_paths: u64,
    /// What it was created with, an object.
    pub options: JsonbBuf,
}

const EMPTY_OBJECT: &[u8] = &[16, 3, 0];

impl Collection {
    pub(crate) fn new(core: Arc<Core>, db: &str, name: &str) -> Self {
        Self { core, db: db.into(), name: name.into() }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its database's name.
    #[must_use]
    pub fn database_name(&self) -> &str {
        &self.db
    }

    fn state(&self) -> Option<Arc<CollectionState>> {
        self.core.catalog.get(&self.db, &self.name)
    }

    /// The collection, made where it is not there: what the first write does.
    fn open(&self) -> Result<Arc<CollectionState>> {
        if let Some(state) = self.state() {
            return Ok(state);
        }
        let mut order = self.core.order.hold();
        // Another first write may have been faster.
        if let Some(state) = self.state() {
            return Ok(state);
        }
        let options = JsonbRef::from_valid(EMPTY_OBJECT);
        Ok(create(&self.core, &mut order, (&self.db, &self.name), options, false)?.0)
    }

    /// Makes the collection with `options`, an object.
    ///
    /// # Errors
    /// `Exists` where it is there with other options.
    pub fn create(&self, options: JsonbRef<'_>, write: &WriteOptions) -> Result<Pending<Created>> {
        self.core.admit_write(write)?;
        let journaled = self.core.journaled(write);
        let mut order = self.core.order.hold();
        if let Some(state) = self.state() {
            if !quarrydb_jsonb::equal(state.options.view(), options) {
                return Err(Error::new(
                    ErrorKind::Exists,
                    format!(
                        "{}.{} exists with other options: drop it first, or leave the options out",
                        self.db, self.name
                    ),
                ));
            }
            return Ok(Pending::new(Created::Same, &self.core.group, self.core.watermarks().applied(), journaled));
        }
        let (_, seq) = create(&self.core, &mut order, (&self.db, &self.name), options, journaled)?;
        Ok(Pending::new(Created::New, &self.core.group, seq, journaled))
    }

    /// Ends the collection with all its documents; false where there is none.
    ///
    /// # Errors
    /// When the log has no room.
    pub fn drop(&self, write: &WriteOptions) -> Result<Pending<bool>> {
        self.core.admit_write(write)?;
        let journaled = self.core.journaled(write);
        let mut order = self.core.order.hold();
        let Some(state) = self.state() else {
            drop(order);
            return Ok(nothing_to_do(&self.core, false, journaled));
        };
        let seq = drop_collections(&self.core, &mut order, &[state], journaled)?;
        drop(order);
        self.core.sealing_changed();
        Ok(match seq {
            Some(seq) => Pending::new(true, &self.core.group, seq, journaled),
            None => nothing_to_do(&self.core, false, journaled),
        })
    }

    /// What it holds; none where it is not there.
    #[must_use]
    pub fn stats(&self) -> Option<CollectionStats> {
        let state = self.state()?;
        Some(stats(&self.core, &state))
    }

    /// Seals what is in memory and makes the segments as few as can be, without rows that nobody can see any more.
    /// Reads and writes go on meanwhile; it runs on the calling thread and may take seconds. None where it is not there.
    ///
    /// # Errors
    /// `OutOfDiskSpace` (for a while old and new files are there), `TimedOut`, `Corrupt`, `Io`: what is not made anew
    /// yet stands as before.
    pub fn compact(&self, deadline: Option<Deadline>) -> Result<Option<Compacted>> {
        self.state().map(|state| compact::whole(&self.core, &state, deadline)).transpose()
    }

    /// Inserts documents, `ordered` up to the first that cannot be stored. Those that can be go in as one commit.
    ///
    /// # Errors
    /// Where nothing was tried; what is wrong with single documents stands in the outcome.
    pub fn insert_batch(
        &self,
        batch: InsertBatch,
        ordered: bool,
        options: &WriteOptions,
    ) -> Result<Pending<InsertOutcome>> {
        insert::insert(&self.core, &mut || self.open(), batch, ordered, options)
    }

    /// The document with this `_id`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn get(&self, id: JsonbRef<'_>) -> Result<Option<Document>> {
        let Some(state) = self.state() else { return Ok(None) };
        let snapshot = self.core.snapshot();
        let found = state.version().find(id_hash(id), id, snapshot.seq())?;
        self.core.counters.documents_examined.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(found.map(Document::stored))
    }

    /// The documents that a request asks for.
    ///
    /// # Errors
    /// `LimitExceeded` where a sort takes too much memory; `TimedOut`; `Corrupt`, `Io`.
    pub fn find(&self, request: FindRequest) -> Result<Cursor> {
        find::find(&self.core, self.state().as_deref(), request)
    }

    /// The number of documents that `filter` matches, after `skip` and up to `limit` of them.
    ///
    /// # Errors
    /// As [`Collection::find`].
    pub fn count(&self, filter: Filter, skip: u64, limit: Option<u64>, deadline: Option<Deadline>) -> Result<u64> {
        find::count(&self.core, self.state().as_deref(), filter, skip, limit, deadline)
    }

    /// Updates or replaces what a request asks for.
    ///
    /// # Errors
    /// The update's own, with nothing changed.
    pub fn update(&self, request: &UpdateRequest, options: &WriteOptions) -> Result<Pending<UpdateOutcome>> {
        modify::update(&self.core, self.state(), &mut || self.open(), request, options)
    }

    /// Updates or replaces one document and gives it, as it was and as it is.
    ///
    /// # Errors
    /// As [`Collection::update`].
    pub fn find_and_update(
        &self,
        request: &UpdateRequest,
        options: &WriteOptions,
    ) -> Result<Pending<(UpdateOutcome, Modified)>> {
        modify::find_and_update(&self.core, self.state(), &mut || self.open(), request, options)
    }

    /// Deletes one document and gives it.
    ///
    /// # Errors
    /// As [`Collection::delete`].
    pub fn find_and_delete(&self, request: &DeleteRequest, options: &WriteOptions) -> Result<Pending<Modified>> {
        modify::find_and_delete(&self.core, self.state(), request, options)
    }

    /// How a `find` finds its documents, and what that takes: it is run, its documents are not given.
    ///
    /// # Errors
    /// As [`Collection::find`].
    pub fn explain(&self, request: FindRequest) -> Result<Explained> {
        explain::explain_find(&self.core, self.state().as_deref(), request)
    }

    /// The same of a `count`; sort and projection play no part in it.
    ///
    /// # Errors
    /// As [`Collection::count`].
    pub fn explain_count(&self, request: FindRequest) -> Result<Explained> {
        explain::explain_count(&self.core, self.state().as_deref(), request)
    }

    /// Adds the values of all documents that `filter` matches to `distinct`.
    ///
    /// # Errors
    /// As [`Collection::find`]; `LimitExceeded` where the values take too much memory.
    pub fn distinct(&self, distinct: &mut Distinct, filter: Filter, deadline: Option<Deadline>) -> Result<()> {
        find::distinct(&self.core, self.state().as_deref(), distinct, filter, deadline)
    }

    /// Deletes what a request asks for.
    ///
    /// # Errors
    /// The filter's own, with nothing changed.
    pub fn delete(&self, request: &DeleteRequest, options: &WriteOptions) -> Result<Pending<DeleteOutcome>> {
        modify::delete(&self.core, self.state(), request, options)
    }
}

pub(crate) fn stats(core: &Core, state: &CollectionState) -> CollectionStats {
    let version = state.version();
    CollectionStats {
        documents: state.count_at(core.watermarks().visible()),
        segments: version.segments.len() as u64,
        tail_documents: version.tails().map(|tail| u64::from(tail.rows())).sum(),
        bytes_on_disk: version.segments.iter().map(|s| s.segment.meta().file_bytes).sum(),
        tail_bytes: version.tails().map(|tail| tail.bytes() as u64).sum(),
        column_bytes: version.segments.iter().map(|s| Columns::bytes_in(&s.segment)).sum::<u64>()
            + version.tails().map(|tail| tail.chunks().bytes() as u64).sum::<u64>(),
        overflow_paths: version.segments.iter().map(|s| s.overflow_paths()).max().unwrap_or(0),
        options: state.options.clone(),
    }
}
