//! A transaction as a handle: what runs inside it, one operation at a time, until it is committed or aborted.
//!
//! Takes operations of collections; gives their answers, and an outcome. Any operation that fails ends it. What it has done
//! so far is `work.rs`'s; who may be beside it is told by its mode; `registry.rs` has those that are known by an id.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use quarrydb_jsonb::JsonbRef;
use quarrydb_query::{Distinct, Filter};

use super::group::Pending;
use super::insert::InsertOutcome;
use super::modify::{DeleteOutcome, DeleteRequest, Modified, UpdateOutcome, UpdateRequest};
use super::work::{Mode, Work, transient};
use crate::batch::InsertBatch;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::aggregate::{Aggregation, Seen};
use crate::exec::cursor::{Cursor, Document, Witness};
use crate::exec::find::FindRequest;
use crate::ids::Seq;
use crate::options::{Deadline, WriteOptions};

/// A transaction. Operations of the collections that it gives run inside it; dropped without a commit it did nothing.
#[derive(Clone, Debug)]
pub struct Transaction {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    core: Arc<Core>,
    state: Mutex<State>,
    /// When it was begun, on the monotonic clock of the database.
    begun: u64,
    /// When it was last asked for something.
    used: AtomicU64,
    /// It is to end as soon as nothing runs in it.
    expired: AtomicBool,
    conflict: AtomicBool,
    wants_time: AtomicBool,
}

#[derive(Debug)]
enum State {
    Open(Box<Work>),
    /// Its commit, where it wrote something, and whether it waits for stable storage.
    Committed(Option<(Seq, bool)>),
    Aborted(&'static str),
}

/// Names of a collection.
pub(crate) type Names<'a> = (&'a str, &'a str);

impl Transaction {
    pub(super) fn new(core: &Arc<Core>, mode: Mode) -> Self {
        let ordered = matches!(mode, Mode::Ordered { .. });
        let snapshot = if ordered { core.snapshots.take_applied() } else { core.snapshot() };
        let number = core.transactions.next_number();
        let begun = if mode == Mode::Snapshot { core.clock.monotonic_nanos() } else { 0 };
        let work = Work::new(core, mode, snapshot, number);
        Self {
            inner: Arc::new(Inner {
                core: Arc::clone(core),
                state: Mutex::new(State::Open(Box::new(work))),
                begun,
                used: AtomicU64::new(begun),
                expired: AtomicBool::new(false),
                conflict: AtomicBool::new(false),
                wants_time: AtomicBool::new(false),
            }),
        }
    }

    /// A transaction on a snapshot, beside others.
    pub(crate) fn begin(core: &Arc<Core>) -> Result<Self> {
        core.admit_write(&WriteOptions::default())?;
        Ok(Self::new(core, Mode::Snapshot))
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    /// Whether it failed because another was first: it may succeed when it is run again as a whole.
    #[must_use]
    pub fn had_conflict(&self) -> bool {
        self.inner.conflict.load(Ordering::Relaxed)
    }

    pub(super) fn wanted_time(&self) -> bool {
        self.inner.wants_time.load(Ordering::Relaxed)
    }

    /// Runs one operation on a collection; where that fails it is over.
    fn run<T>(&self, (db, name): Names<'_>, operation: impl FnOnce(&mut Work, usize) -> Result<T>) -> Result<T> {
        self.run_work(|work| {
            let at = work.collection(db, name)?;
            operation(work, at)
        })
    }

    /// Runs one operation; where that fails it is over.
    fn run_work<T>(&self, operation: impl FnOnce(&mut Work) -> Result<T>) -> Result<T> {
        let Some(mut state) = self.inner.state.try_lock() else { return Err(in_use()) };
        if self.inner.expired.load(Ordering::Relaxed) {
            *state = State::Aborted("it was open for too long, or an operation in it failed");
        }
        let work = match &mut *state {
            State::Open(work) => work,
            over => return Err(over.over()),
        };
        let result = work.snapshot.check().map_err(transient).and_then(|()| operation(work));
        if work.mode == Mode::Snapshot {
            self.inner.touch();
        }
        if result.is_err() || work.failed {
            self.inner.conflict.fetch_or(work.conflict, Ordering::Relaxed);
            self.inner.wants_time.fetch_or(work.wants_time, Ordering::Relaxed);
            *state = State::Aborted("an operation in it failed");
        }
        result
    }

    pub(crate) fn insert_batch(&self, names: Names<'_>, batch: InsertBatch) -> Result<InsertOutcome> {
        self.run(names, |work, at| work.insert(at, batch))
    }

    pub(crate) fn get(&self, names: Names<'_>, id: JsonbRef<'_>) -> Result<Option<Document>> {
        self.run(names, |work, at| work.get(at, id))
    }

    pub(crate) fn find(&self, names: Names<'_>, request: FindRequest) -> Result<Cursor> {
        let cursor = self.run(names, |work, at| work.find(at, request))?;
        Ok(cursor.with_witness(Arc::clone(&self.inner) as Arc<dyn Witness>))
    }

    /// What an aggregation of these collections sees.
    pub(crate) fn seen<'a>(&self, names: impl Iterator<Item = Names<'a>>) -> Result<Seen> {
        self.run_work(|work| work.seen(names))
    }

    /// The same aggregation, which ends the transaction where it fails.
    pub(crate) fn watching(&self, aggregation: Result<Aggregation>) -> Result<Aggregation> {
        match aggregation {
            Ok(aggregation) => Ok(aggregation.with_witness(Arc::clone(&self.inner) as Arc<dyn Witness>)),
            Err(error) => {
                self.abort_soon();
                Err(error)
            }
        }
    }

    pub(crate) fn count(
        &self,
        names: Names<'_>,
        filter: Filter,
        (skip, limit): (u64, Option<u64>),
        deadline: Option<Deadline>,
    ) -> Result<u64> {
        self.run(names, |work, at| work.count(at, filter, skip, limit, deadline))
    }

    pub(crate) fn distinct(
        &self,
        names: Names<'_>,
        distinct: &mut Distinct,
        filter: Filter,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        self.run(names, |work, at| work.distinct(at, distinct, filter, deadline))
    }

    pub(crate) fn update(
        &self,
        names: Names<'_>,
        request: &UpdateRequest,
        options: &WriteOptions,
    ) -> Result<UpdateOutcome> {
        self.run(names, |work, at| Ok(work.update(at, request, options, false)?.outcome))
    }

    pub(crate) fn find_and_update(
        &self,
        names: Names<'_>,
        request: &UpdateRequest,
        options: &WriteOptions,
    ) -> Result<(UpdateOutcome, Modified)> {
        let done = self.run(names, |work, at| work.update(at, request, options, true))?;
        Ok((done.outcome, done.kept))
    }

    pub(crate) fn delete(
        &self,
        names: Names<'_>,
        request: &DeleteRequest,
        options: &WriteOptions,
    ) -> Result<DeleteOutcome> {
        let done = self.run(names, |work, at| work.delete(at, request, options, false))?;
        Ok(DeleteOutcome { deleted: done.outcome.matched })
    }

    pub(crate) fn find_and_delete(
        &self,
        names: Names<'_>,
        request: &DeleteRequest,
        options: &WriteOptions,
    ) -> Result<Modified> {
        Ok(self.run(names, |work, at| work.delete(at, request, options, true))?.kept)
    }

    /// Commits it. Asked for again it gives the same answer.
    ///
    /// # Errors
    /// `Conflict` (`WriteConflict`) where a write was first, with nothing done; `NotFound` (`NoSuchTransaction`) where it
    /// is over otherwise; what a write may say.
    pub fn commit(&self, options: &WriteOptions) -> Result<Pending<()>> {
        let core = &self.inner.core;
        let Some(mut state) = self.inner.state.try_lock() else { return Err(in_use()) };
        let work = match &mut *state {
            State::Open(work) => work,
            State::Committed(done) => return Ok(pending(core, *done)),
            over => return Err(over.over()),
        };
        let journaled = core.journaled(options);
        let result = core.admit_write(options).and_then(|()| {
            if self.inner.expired.load(Ordering::Relaxed) {
                return Err(no_such("it was open for too long, or an operation in it failed"));
            }
            work.snapshot.check().map_err(transient)?;
            let mut order = core.order.hold();
            work.commit(&mut order, journaled)
        });
        match result {
            Ok(seq) => {
                let done = seq.map(|seq| (seq, journaled));
                *state = State::Committed(done);
                Ok(pending(core, done))
            }
            Err(error) => {
                self.inner.conflict.fetch_or(work.conflict, Ordering::Relaxed);
                *state = State::Aborted("its commit failed");
                Err(error)
            }
        }
    }

    /// Gives up all that it did. False where it was over already.
    pub fn abort(&self) -> bool {
        let mut state = self.inner.state.lock();
        let open = matches!(*state, State::Open(_));
        if open {
            *state = State::Aborted("it was aborted");
        }
        open
    }

    /// The same without waiting for an operation that runs in it, which is then the last.
    pub fn abort_soon(&self) {
        self.inner.abort_soon();
    }

    /// Aborts it where it is older than `most`, or was asked for nothing for longer than `idle`; whether it is over.
    pub(super) fn expire(&self, now: u64, idle: u64, most: u64) -> bool {
        let old = now.saturating_sub(self.inner.begun) >= most;
        let Some(mut state) = self.inner.state.try_lock() else {
            // What runs in it ends it.
            self.inner.expired.fetch_or(old, Ordering::Relaxed);
            return false;
        };
        let is_idle = now.saturating_sub(self.inner.used.load(Ordering::Relaxed)) >= idle;
        if let State::Open(work) = &*state
            && (old || is_idle || self.inner.expired.load(Ordering::Relaxed) || work.snapshot.check().is_err())
        {
            *state = State::Aborted("it was open, or idle, for too long");
        }
        !matches!(*state, State::Open(_))
    }

    /// Its commit once it is committed.
    pub(super) fn committed(&self) -> Option<Option<(Seq, bool)>> {
        match &*self.inner.state.lock() {
            State::Committed(done) => Some(*done),
            State::Open(_) | State::Aborted(_) => None,
        }
    }

    /// Takes what it has done, to be committed by who holds the order; none where an operation has failed.
    pub(super) fn take(&self) -> Option<Box<Work>> {
        let mut state = self.inner.state.lock();
        match std::mem::replace(&mut *state, State::Aborted("it is over")) {
            State::Open(work) => Some(work),
            State::Committed(_) | State::Aborted(_) => None,
        }
    }
}

impl Inner {
    fn abort_soon(&self) {
        match self.state.try_lock() {
            Some(mut state) if matches!(*state, State::Open(_)) => {
                *state = State::Aborted("an operation in it failed");
            }
            Some(_) => {}
            // What runs in it is the last.
            None => self.expired.store(true, Ordering::Relaxed),
        }
    }

    fn touch(&self) {
        self.used.store(self.core.clock.monotonic_nanos(), Ordering::Relaxed);
    }
}

impl Witness for Inner {
    fn goes_on(&self) {
        self.touch();
    }

    fn failed(&self) {
        self.abort_soon();
    }
}

impl State {
    /// The error of whoever asks something of what is over.
    fn over(&self) -> Error {
        no_such(match self {
            Self::Aborted(why) => why,
            Self::Committed(_) => "it was committed",
            Self::Open(_) => "it is open",
        })
    }
}

/// The wait for a commit.
pub(super) fn pending(core: &Core, done: Option<(Seq, bool)>) -> Pending<()> {
    match done {
        Some((seq, journaled)) => Pending::new((), &core.group, seq, journaled),
        None => Pending::ready(()),
    }
}

/// The error of a transaction that is not there, or over.
pub(super) fn no_such(why: &str) -> Error {
    let message = format!("there is no such transaction open: {why}: begin it anew");
    transient(Error::new(ErrorKind::NotFound, message).with_code("NoSuchTransaction", 251))
}

#[cold]
fn in_use() -> Error {
    let message = "another operation runs in this transaction: send one after the other";
    Error::new(ErrorKind::Conflict, message).with_code("ConflictingOperationInProgress", 117)
}
