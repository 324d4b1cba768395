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
use crate::exec::at_hand;
use crate::exec::cursor::{Cursor, Document};
use crate::exec::explain::{self, Explained};
use crate::exec::find::{self, FindRequest};
use crate::indexes::state::is_given;
use crate::indexes::{Index, IndexDefinition, IndexState};
use crate::maintain::compact::{self, Compacted};
use crate::maintain::indexes as building;
use crate::options::{Deadline, WriteOptions};
use crate::txn::commit::{create, drop_collections, nothing_to_do};
use crate::txn::define;
use crate::txn::group::Pending;
use crate::txn::insert::{self, InsertOutcome};
use crate::txn::modify::{self, DeleteOutcome, DeleteRequest, Modified, UpdateOutcome, UpdateRequest};
use crate::txn::transaction::{Names, Transaction};

/// A collection of documents, by name.
#[derive(Clone, Debug)]
pub struct Collection {
    pub(crate) core: Arc<Core>,
    db: Arc<str>,
    name: Arc<str>,
    /// Operations on documents run inside it.
    within: Option<Transaction>,
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
    /// Bytes of the files of its declared indexes.
    pub index_bytes: u64,
}

/// A declared index as it stands.
#[derive(Clone, Debug)]
pub struct IndexInfo {
    /// What it is.
    pub definition: IndexDefinition,
    /// How far it has come.
    pub state: IndexState,
    /// How much of it is built, from 0 to 1.
    pub progress: f64,
    /// Entries in segments, those of documents that are gone among them.
    pub entries: u64,
    /// Bytes of its files.
    pub bytes: u64,
}

/// What came of declaring indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexesCreated {
    /// Their names, in the order of the request.
    pub names: Vec<String>,
    /// Whether one of them was not there before.
    pub new: bool,
}

const EMPTY_OBJECT: &[u8] = &[16, 3, 0];

impl Collection {
    pub(crate) fn new(core: Arc<Core>, db: &str, name: &str) -> Self {
        Self { core, db: db.into(), name: name.into(), within: None }
    }

    /// The same collection, whose operations on documents run inside a transaction of the same database. What declares,
    /// drops or compacts is no part of one, and goes on as outside.
    #[must_use]
    pub fn within(&self, transaction: &Transaction) -> Self {
        Self { within: Some(transaction.clone()), ..self.clone() }
    }

    /// Whether its operations run inside a transaction.
    #[must_use]
    pub fn is_within(&self) -> bool {
        self.within.is_some()
    }

    /// The transaction that its operations run inside.
    pub(crate) fn transaction(&self) -> Option<&Transaction> {
        self.within.as_ref()
    }

    /// Refuses what would not see what its transaction sees.
    fn check_outside(&self) -> Result<()> {
        if !self.is_within() {
            return Ok(());
        }
        let error = Error::new(ErrorKind::InvalidInput, "explain cannot be part of a transaction: ask it outside");
        Err(error.with_code("OperationNotSupportedInTransaction", 263))
    }

    fn names(&self) -> Names<'_> {
        (&self.db, &self.name)
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

    #[cfg(test)]
    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    pub(crate) fn state(&self) -> Option<Arc<CollectionState>> {
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
        let seq = drop_collections(&self.core, &mut order, &[state], None, journaled)?;
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
        if let Some(within) = &self.within {
            return within.insert_batch(self.names(), batch).map(Pending::ready);
        }
        insert::insert(&self.core, &mut || self.open(), batch, ordered, options)
    }

    /// The document with this `_id`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn get(&self, id: JsonbRef<'_>) -> Result<Option<Document>> {
        if let Some(within) = &self.within {
            return within.get(self.names(), id);
        }
        let Some(state) = self.state() else { return Ok(None) };
        let snapshot = self.core.snapshot();
        let found = state.version().find(id_hash(id), id, snapshot.seq())?;
        self.core.counters.documents_examined.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(found.map(Document::stored))
    }

    /// Declares indexes and waits until they serve; a collection that is not there is made. Where this is given up they
    /// are built all the same, but for a deadline that passes, which drops those that are new.
    ///
    /// # Errors
    /// `Exists` where other indexes stand against one, with nothing changed; `DuplicateKey` where a unique one finds two
    /// documents of one key, `InvalidInput` where it cannot take a document: those that are new are dropped then.
    pub fn create_indexes(&self, definitions: &[IndexDefinition], write: &WriteOptions) -> Result<IndexesCreated> {
        self.core.admit_write(write)?;
        let core = &self.core;
        let (state, indexes, new) = loop {
            let state = self.open()?;
            let mut order = core.order.hold();
            if state.is_dropped() {
                continue;
            }
            let had = state.indexes().next_id();
            let (indexes, seq) = define::create(core, &mut order, &state, definitions, core.journaled(write))?;
            drop(order);
            let new: Vec<_> = indexes.iter().filter(|index| index.id >= had).cloned().collect();
            if let Some(seq) = seq {
                Pending::new((), &core.group, seq, core.journaled(write)).wait()?;
                core.indexing_changed();
            }
            break (state, indexes, new);
        };
        while !core.options.background && building::step(core)? {}
        let waited = building::wait(core, &indexes, write.deadline);
        if waited.as_ref().is_err_and(|error| error.kind() == ErrorKind::TimedOut) {
            let mut order = core.order.hold();
            let still: Vec<_> = new.iter().filter(|i| i.state() == IndexState::Building).cloned().collect();
            if !still.is_empty() && !state.is_dropped() {
                define::drop(core, &mut order, &state, &still, true)?;
            }
        }
        waited?;
        // What makes one serve is a commit too.
        nothing_to_do(core, (), core.journaled(write)).wait()?;
        let names = definitions.iter().map(|definition| definition.name().to_owned()).collect();
        Ok(IndexesCreated { names, new: !new.is_empty() })
    }

    /// Drops an index by its name, or with `*` all but `_id_`; one that is being built is given up.
    ///
    /// # Errors
    /// `NotFound` where there is none of this name.
    pub fn drop_index(&self, name: &str, write: &WriteOptions) -> Result<Pending<()>> {
        self.core.admit_write(write)?;
        let core = &self.core;
        let journaled = core.journaled(write);
        let mut order = core.order.hold();
        let Some(state) = self.state() else { return Err(define::not_found(&self.db, &self.name, name)) };
        let indexes = define::named(&state, name)?;
        if indexes.is_empty() {
            drop(order);
            return Ok(nothing_to_do(core, (), journaled));
        }
        let seq = define::drop(core, &mut order, &state, &indexes, journaled)?;
        drop(order);
        core.sealing_changed();
        core.indexing_changed();
        Ok(Pending::new((), &core.group, seq, journaled))
    }

    /// Its declared indexes, the oldest first, `_id_` left out; none where it is not there.
    #[must_use]
    pub fn indexes(&self) -> Vec<IndexInfo> {
        let Some(state) = self.state() else { return Vec::new() };
        let version = state.version();
        let info = |index: &Arc<Index>| {
            let files = version.segments.iter().filter_map(|sealed| sealed.indexes.get(index.id));
            let files: Vec<_> = files.map(|own| *own.file()).collect();
            IndexInfo {
                definition: index.definition.clone(),
                state: index.state(),
                progress: index.progress(),
                entries: files.iter().map(|file| file.entries).sum(),
                bytes: files.iter().map(|file| file.len).sum(),
            }
        };
        state.indexes().iter().map(info).collect()
    }

    /// Whether a hint, a name or keys, names an index of the collection, or asks for the order in storage.
    #[must_use]
    pub fn takes_hint(&self, hint: JsonbRef<'_>) -> bool {
        let named = |state: Arc<CollectionState>| match hint.as_str() {
            Some(name) => state.indexes().by_name(name).is_some(),
            None => state.indexes().by_keys(hint).next().is_some(),
        };
        is_given(hint) || self.state().is_some_and(named)
    }

    /// The documents that a request asks for.
    ///
    /// # Errors
    /// `LimitExceeded` where a sort takes too much memory; `TimedOut`; `Corrupt`, `Io`.
    pub fn find(&self, request: FindRequest) -> Result<Cursor> {
        if let Some(within) = &self.within {
            return within.find(self.names(), request);
        }
        find::find(&self.core, self.state().as_deref(), request)
    }

    /// The number of documents that `filter` matches, after `skip` and up to `limit` of them.
    ///
    /// # Errors
    /// As [`Collection::find`].
    pub fn count(&self, filter: Filter, skip: u64, limit: Option<u64>, deadline: Option<Deadline>) -> Result<u64> {
        if let Some(within) = &self.within {
            return within.count(self.names(), filter, (skip, limit), deadline);
        }
        find::count(&self.core, self.state().as_deref(), filter, skip, limit, deadline)
    }

    /// How many documents match, where that is found by a look at a few places in memory; none where it takes more, and
    /// [`Collection::count`] is for a thread that may wait.
    ///
    /// # Errors
    /// As [`Collection::count`].
    pub fn count_at_hand(&self, filter: &Filter, skip: u64, limit: Option<u64>) -> Result<Option<u64>> {
        if self.is_within() {
            return Ok(None);
        }
        at_hand::count(&self.core, self.state().as_deref(), filter, skip, limit)
    }

    /// Gives the first document that a request asks for, if there is one and it is found by a look at a few places in
    /// memory: by a declared index, or because there is little to look at. Else the request comes back:
    /// [`Collection::find`] is for a thread that may wait.
    ///
    /// # Errors
    /// As [`Collection::find`].
    pub fn find_one_at_hand(
        &self,
        request: FindRequest,
        give: &mut dyn FnMut(JsonbRef<'_>),
    ) -> Result<Option<FindRequest>> {
        if self.is_within() {
            return Ok(Some(request));
        }
        at_hand::find_one(&self.core, self.state().as_deref(), request, give)
    }

    /// Whether it has so few documents that looking at them all costs less than handing that to another thread.
    #[must_use]
    pub fn is_small(&self) -> bool {
        !self.is_within()
            && self.state().is_none_or(|state| {
                let version = state.version();
                version.segments.is_empty() && version.tails().all(|tail| tail.rows() <= at_hand::ROWS_MAX)
            })
    }

    /// Updates or replaces what a request asks for.
    ///
    /// # Errors
    /// The update's own, with nothing changed.
    pub fn update(&self, request: &UpdateRequest, options: &WriteOptions) -> Result<Pending<UpdateOutcome>> {
        if let Some(within) = &self.within {
            return within.update(self.names(), request, options).map(Pending::ready);
        }
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
        if let Some(within) = &self.within {
            return within.find_and_update(self.names(), request, options).map(Pending::ready);
        }
        modify::find_and_update(&self.core, self.state(), &mut || self.open(), request, options)
    }

    /// Deletes one document and gives it.
    ///
    /// # Errors
    /// As [`Collection::delete`].
    pub fn find_and_delete(&self, request: &DeleteRequest, options: &WriteOptions) -> Result<Pending<Modified>> {
        if let Some(within) = &self.within {
            return within.find_and_delete(self.names(), request, options).map(Pending::ready);
        }
        modify::find_and_delete(&self.core, self.state(), request, options)
    }

    /// How a `find` finds its documents, and what that takes: it is run, its documents are not given.
    ///
    /// # Errors
    /// As [`Collection::find`].
    pub fn explain(&self, request: FindRequest) -> Result<Explained> {
        self.check_outside()?;
        explain::explain_find(&self.core, self.state().as_deref(), request)
    }

    /// The same of a `count`; sort and projection play no part in it.
    ///
    /// # Errors
    /// As [`Collection::count`].
    pub fn explain_count(&self, request: FindRequest) -> Result<Explained> {
        self.check_outside()?;
        explain::explain_count(&self.core, self.state().as_deref(), request)
    }

    /// Adds the values of all documents that `filter` matches to `distinct`.
    ///
    /// # Errors
    /// As [`Collection::find`]; `LimitExceeded` where the values take too much memory.
    pub fn distinct(&self, distinct: &mut Distinct, filter: Filter, deadline: Option<Deadline>) -> Result<()> {
        if let Some(within) = &self.within {
            return within.distinct(self.names(), distinct, filter, deadline);
        }
        find::distinct(&self.core, self.state().as_deref(), distinct, filter, deadline)
    }

    /// Deletes what a request asks for.
    ///
    /// # Errors
    /// The filter's own, with nothing changed.
    pub fn delete(&self, request: &DeleteRequest, options: &WriteOptions) -> Result<Pending<DeleteOutcome>> {
        if let Some(within) = &self.within {
            return within.delete(self.names(), request, options).map(Pending::ready);
        }
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
        index_bytes: version.segments.iter().flat_map(|s| s.indexes.files()).map(|file| file.len).sum(),
    }
}
