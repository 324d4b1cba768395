//! One change stream: where it stands, what it tells next, how it sleeps.
//!
//! Takes a scope, a place and a filter over events; gives events in the order of commits. It reads what is at hand from the
//! hub and all else from the log, a bounded amount at a time; a commit that it is in the middle of counts against the memory
//! of queries. Nobody waits for a stream: one that is read too slowly falls behind what is kept, and is told so. It ends
//! (`Reading::Ended`) when what it watches is dropped, as MongoDB's do.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, id_hash};
use quarrydb_query::Filter;

use super::commit::{Change, Changes, What};
use super::event::Event;
use super::hub::{Committed, Scope, Seat};
use super::token::{Mark, Position, invalid};
use crate::budget::Meter;
use crate::catalog::check_names;
use crate::core::{Core, closing};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CollectionId, Seq};
use crate::io::clock::monotonic_nanos;
use crate::log::{LogCursor, Payload};
use crate::maintain::retain;
use crate::mvcc::version::StoredDocument;
use crate::txn::group::Pending;
use crate::txn::insert::id_of;
use crate::txn::payload::RECORD_COMMIT;

/// Commits that are looked at before a reader is asked again whether it wants more.
const COMMITS_MAX: usize = 1 << 14;
/// Names of collections that a stream remembers.
const NAMES_MAX: usize = 1 << 10;

/// What of a document an event of an update tells; inserts and replacements tell all of it anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FullDocument {
    /// What changed alone.
    #[default]
    Default,
    /// The document as it is when the event is told, which may be newer than the change; null where it is gone.
    UpdateLookup,
    /// The document as the change has made it.
    WhenAvailable,
}

/// What a stream is to tell.
#[derive(Debug, Default)]
pub struct ChangeRequest {
    /// A database; none: all of them.
    pub db: Option<String>,
    /// A collection of it; none: all of them.
    pub collection: Option<String>,
    /// A token: everything after it. None: from now on.
    pub since: Option<String>,
    /// Which events are told: a filter over their documents.
    pub filter: Option<Filter>,
    /// What is told of updated documents.
    pub full_document: FullDocument,
}

impl ChangeRequest {
    /// All changes of one collection from now on.
    #[must_use]
    pub fn collection(db: &str, name: &str) -> Self {
        Self { db: Some(db.to_owned()), collection: Some(name.to_owned()), ..Self::default() }
    }
}

/// One event.
#[derive(Clone, Debug)]
pub struct ChangeEvent {
    /// What a later stream goes on from.
    pub token: String,
    document: JsonbBuf,
}

impl ChangeEvent {
    /// The event: `operationType`, `ns`, `documentKey` and so on.
    #[must_use]
    pub fn document(&self) -> JsonbRef<'_> {
        self.document.view()
    }
}

/// How a read ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// There is more.
    More,
    /// All there is was told.
    UpToDate,
    /// What it watches is gone: nothing more will be told.
    Ended,
}

/// An open stream of changes.
#[derive(Debug)]
pub struct ChangeStream {
    core: Arc<Core>,
    seat: Arc<Seat>,
    scope: Scope,
    mark: Mark,
    filter: Option<Filter>,
    full_document: FullDocument,
    position: Position,
    cursor: Option<LogCursor>,
    /// A commit that it is in the middle of.
    current: Option<Current>,
    names: HashMap<CollectionId, Option<Arc<(String, String)>>>,
    ended: bool,
    out: Builder,
}

#[derive(Debug)]
struct Current {
    seq: Seq,
    wall_ms: u64,
    changes: Changes,
    /// What it holds, where that is not at hand anyway.
    _held: Meter,
}

impl ChangeStream {
    pub(crate) fn open(core: &Arc<Core>, request: ChangeRequest) -> Result<Self> {
        let scope = scope_of(&request)?;
        if core.closing.load(Ordering::Acquire) {
            return Err(closing());
        }
        let known = core.changes.since();
        let since = if known == Seq::MAX { retain::watch(core)? } else { known };
        let names = match &scope {
            Scope::Server => ("", ""),
            Scope::Database(db) => (db.as_str(), ""),
            Scope::Collection(db, name) => (db.as_str(), name.as_str()),
        };
        let mark = Mark::new(core.changes.database(), names);
        let position = match &request.since {
            Some(token) => mark.position(token)?,
            None => {
                // A token must not be ahead of what a crash leaves: others would be given the same place again.
                let now = core.watermarks().visible();
                Pending::new((), &core.group, now, true).wait()?;
                Position::behind(now.max(since))
            }
        };
        let seat = core.changes.sit(&scope);
        let mut stream = Self {
            core: Arc::clone(core),
            seat,
            scope,
            mark,
            filter: request.filter,
            full_document: request.full_document,
            position,
            cursor: None,
            current: None,
            names: HashMap::new(),
            ended: false,
            out: Builder::new(),
        };
        if request.since.is_some() {
            stream.check_place(since)?;
        }
        Ok(stream)
    }

    /// Refuses a place that was never given, or is no longer there.
    fn check_place(&mut self, since: Seq) -> Result<()> {
        let (at, limit) = (self.position, self.core.changes.limit());
        if at.seq > limit.max(since) {
            return Err(invalid("it is ahead of this database, which may have been put back to an older state"));
        }
        let next = if at.is_whole() { at.seq.next() } else { at.seq };
        if at.seq < since {
            return Err(lost());
        }
        if next <= limit && self.core.changes.recent(next).is_none() {
            self.cursor = Some(self.core.group.log().read_from(next).map_err(told_as_lost)?);
        }
        Ok(())
    }

    /// The token of the place up to which all was told: also where nothing concerned it for a long time.
    #[must_use]
    pub fn resume_token(&self) -> String {
        let mut at = self.position;
        if at.is_whole() {
            at.seq = at.seq.max(self.core.changes.quiet(&self.seat));
        }
        self.mark.token(at)
    }

    /// Whether the next commits are in memory, so that reading a little takes no time to speak of.
    #[must_use]
    pub fn is_at_hand(&self) -> bool {
        self.position.is_whole()
            && self.full_document != FullDocument::UpdateLookup
            && self.filter.as_ref().is_none_or(Filter::is_cheap)
            && self.core.changes.recent(self.place().seq.next()).is_some_and(|commit| commit.payload.len() < 64 << 10)
    }

    fn place(&self) -> Position {
        let mut at = self.position;
        if at.is_whole() {
            at.seq = at.seq.max(self.core.changes.quiet(&self.seat));
        }
        at
    }

    /// Waits for news: ready where there may be something to read, or nothing ever will be.
    pub fn poll_news(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if self.ended || !self.position.is_whole() || self.core.closing.load(Ordering::Acquire) {
            return Poll::Ready(());
        }
        self.position = self.place();
        let told = self.position.seq;
        if self.core.changes.limit() > told || !self.core.changes.lie_down(&self.seat, told, context.waker()) {
            return Poll::Ready(());
        }
        // The end wakes those who sleep after it has said so.
        if self.core.closing.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Tells events to `sink`, each with its token, until that breaks off, commits of `work` bytes were looked at, or
    /// there are no more. Blocks for the disk, never for news.
    ///
    /// # Errors
    /// `HistoryLost` where it has fallen behind what is kept; `Busy` where there is no memory for a large commit;
    /// the filter's; `ShuttingDown`, `Corrupt`, `Io`. It may be read again, and goes on where it stands.
    pub fn read(
        &mut self,
        work: usize,
        sink: &mut dyn FnMut(&str, JsonbRef<'_>) -> ControlFlow<()>,
    ) -> Result<Reading> {
        let result = self.read_on(work, sink);
        if let Some(cursor) = &mut self.cursor {
            cursor.rest();
        }
        result
    }

    fn read_on(&mut self, work: usize, sink: &mut dyn FnMut(&str, JsonbRef<'_>) -> ControlFlow<()>) -> Result<Reading> {
        let (mut looked, mut commits) = (0, 0);
        self.position = self.place();
        loop {
            if self.ended {
                return Ok(Reading::Ended);
            }
            if self.core.closing.load(Ordering::Acquire) {
                return Err(closing());
            }
            let mut current = match self.current.take() {
                Some(current) => current,
                None => match self.next_commit()? {
                    Some(current) => current,
                    None => return Ok(Reading::UpToDate),
                },
            };
            looked += current.changes.held_bytes();
            commits += 1;
            let flow = self.tell(&mut current, sink)?;
            if flow.is_break() && !self.position.is_whole() {
                self.current = Some(current);
            }
            if flow.is_break() || looked >= work || commits >= COMMITS_MAX {
                return Ok(if self.ended { Reading::Ended } else { Reading::More });
            }
        }
    }

    /// The next commit, behind what was told of it.
    fn next_commit(&mut self) -> Result<Option<Current>> {
        let seq = if self.position.is_whole() { self.position.seq.next() } else { self.position.seq };
        let limit = self.core.changes.limit();
        if seq > limit {
            return Ok(None);
        }
        let held = Meter::new(&self.core.queries);
        let commit = match self.core.changes.recent(seq) {
            Some(commit) => {
                // Most of what follows is at hand too.
                self.cursor = None;
                commit
            }
            None => {
                let commit = self.read_log(seq, limit)?;
                held.add(commit.payload.len())?;
                commit
            }
        };
        let changes = Changes::new(commit.payload)?;
        Ok(Some(Current { seq, wall_ms: commit.wall_ms, changes, _held: held }))
    }

    fn read_log(&mut self, seq: Seq, limit: Seq) -> Result<Committed> {
        let log = self.core.group.log();
        let mut cursor = match self.cursor.take() {
            Some(cursor) if cursor.next_seq() == seq => cursor,
            _ => log.read_from(seq).map_err(told_as_lost)?,
        };
        let record = cursor.next(log, limit).map_err(told_as_lost)?;
        self.cursor = Some(cursor);
        match record {
            Some(record) if record.seq == seq && record.kind == RECORD_COMMIT => {
                Ok(Committed { seq, wall_ms: record.wall_ms, payload: Payload::new(record.payload) })
            }
            _ => Err(Error::corrupt("the log", 0, format!("{seq} is not where it should be"))),
        }
    }

    /// Tells what is left of a commit.
    fn tell(
        &mut self,
        current: &mut Current,
        sink: &mut dyn FnMut(&str, JsonbRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let resumed = (!self.position.is_whole()).then_some(self.position);
        while let Some(change) = current.changes.next(&mut |id| self.is_covered(id))? {
            let told = resumed.is_some_and(|at| change.index < at.index);
            let invalidates = self.invalidates(&change, current.changes.payload());
            if told {
                continue;
            }
            let again = resumed.filter(|at| at.index == change.index);
            if again.is_none() && self.event(current, &change, sink)?.is_break() {
                if invalidates {
                    // What it means is told when the stream comes by again.
                    current.changes.rewind();
                }
                return Ok(ControlFlow::Break(()));
            }
            if invalidates && !again.is_some_and(|at| at.invalidated) {
                self.position.invalidated = true;
                self.ended = true;
                return self.invalidate(current, sink);
            }
        }
        self.position = Position::behind(current.seq);
        Ok(ControlFlow::Continue(()))
    }

    /// Whether changes of a collection are told; of a database: whether they may be.
    fn is_covered(&mut self, id: CollectionId) -> Result<bool> {
        if id == CollectionId::default() {
            return Ok(true);
        }
        Ok(self.names_of(id)?.is_some())
    }

    /// The names of a collection, if it is one of those watched.
    fn names_of(&mut self, id: CollectionId) -> Result<Option<Arc<(String, String)>>> {
        if let Some(known) = self.names.get(&id) {
            return Ok(known.clone());
        }
        let names = self.core.catalog.names_of(id).ok_or_else(|| {
            Error::new(
                ErrorKind::Internal,
                format!("{id} is in the log and has no name: read anew, then watch from now"),
            )
        })?;
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        let known = self.scope.covers(&names.0, &names.1).then(|| Arc::new(names));
        self.names.insert(id, known.clone());
        Ok(known)
    }

    /// Whether nothing can follow a change in this stream.
    fn invalidates(&self, change: &Change, payload: &[u8]) -> bool {
        match (&self.scope, change.what) {
            (Scope::Collection(..), What::Drop) => true,
            (Scope::Database(own), What::DropDatabase(db)) => db.of(payload) == own.as_bytes(),
            _ => false,
        }
    }

    fn event(
        &mut self,
        current: &Current,
        change: &Change,
        sink: &mut dyn FnMut(&str, JsonbRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let payload = current.changes.payload();
        let names = match change.what {
            What::DropDatabase(db) => {
                let db = String::from_utf8_lossy(db.of(payload)).into_owned();
                if !matches!(&self.scope, Scope::Server) && self.scope != Scope::Database(db.clone()) {
                    return Ok(ControlFlow::Continue(()));
                }
                Some(Arc::new((db, String::new())))
            }
            _ => self.names_of(change.collection)?,
        };
        let Some(names) = names else { return Ok(ControlFlow::Continue(())) };
        let ends = matches!(change.what, What::Drop | What::DropDatabase(_));
        let position = if change.is_last && !ends {
            Position::behind(current.seq)
        } else {
            Position { seq: current.seq, index: change.index, invalidated: false }
        };
        let token = self.mark.token(position);
        let value = |span: crate::txn::payload::Span| JsonbRef::from_valid(span.of(payload));
        let mut event = Event {
            token: &token,
            operation: "",
            at: (current.seq, current.wall_ms),
            full_document: None,
            ns: Some((names.0.as_str(), (!names.1.is_empty()).then_some(names.1.as_str()))),
            id: None,
            described: None,
        };
        let looked_up;
        match change.what {
            What::Insert(document) | What::Replace(document) => {
                event.operation = if matches!(change.what, What::Insert(_)) { "insert" } else { "replace" };
                event.full_document = Some(Some(value(document)));
                event.id = Some(id_of(value(document)));
            }
            What::Update(document, told) => {
                event.operation = "update";
                event.id = Some(id_of(value(document)));
                event.described = Some(value(told));
                event.full_document = match self.full_document {
                    FullDocument::Default => None,
                    FullDocument::WhenAvailable => Some(Some(value(document))),
                    FullDocument::UpdateLookup => {
                        looked_up = self.look_up(change.collection, id_of(value(document)))?;
                        Some(looked_up.as_ref().map(StoredDocument::view))
                    }
                };
            }
            What::Delete(id) => {
                event.operation = "delete";
                event.id = Some(value(id));
            }
            What::Drop => event.operation = "drop",
            What::DropDatabase(_) => event.operation = "dropDatabase",
        }
        self.out.rewind(0);
        event.write(&mut self.out)?;
        self.position = position;
        self.pass(&token, sink)
    }

    fn invalidate(
        &mut self,
        current: &Current,
        sink: &mut dyn FnMut(&str, JsonbRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let token = self.mark.token(self.position);
        let event = Event {
            token: &token,
            operation: "invalidate",
            at: (current.seq, current.wall_ms),
            full_document: None,
            ns: None,
            id: None,
            described: None,
        };
        self.out.rewind(0);
        event.write(&mut self.out)?;
        self.pass(&token, sink)
    }

    /// Gives the event that was written to the sink, if it matches.
    fn pass(
        &self,
        token: &str,
        sink: &mut dyn FnMut(&str, JsonbRef<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        let event = JsonbRef::from_valid(self.out.bytes());
        if let Some(filter) = &self.filter
            && !filter.matches(event)?
        {
            return Ok(ControlFlow::Continue(()));
        }
        Ok(sink(token, event))
    }

    /// The document as it is now.
    fn look_up(&self, collection: CollectionId, id: JsonbRef<'_>) -> Result<Option<StoredDocument>> {
        let Some(state) = self.core.catalog.by_id(collection) else { return Ok(None) };
        let snapshot = self.core.snapshot();
        state.version().find(id_hash(id), id, snapshot.seq())
    }

    /// The next event; none where there is none within `timeout` (none: waits for one as long as it takes), and where
    /// the stream has ended.
    ///
    /// # Errors
    /// As [`ChangeStream::read`].
    pub fn next(&mut self, timeout: Option<Duration>) -> Result<Option<ChangeEvent>> {
        let give_up = timeout
            .map(|timeout| monotonic_nanos().saturating_add(u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX)));
        let thread = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&thread));
        loop {
            let mut found = None;
            let reading = self.read(usize::MAX, &mut |token, event| {
                found = Some(ChangeEvent { token: token.to_owned(), document: event.to_buf() });
                ControlFlow::Break(())
            })?;
            if found.is_some() || reading == Reading::Ended {
                return Ok(found);
            }
            if reading == Reading::More || self.poll_news(&mut Context::from_waker(&waker)).is_ready() {
                continue;
            }
            while !thread.1.swap(false, Ordering::AcqRel) {
                match give_up.map(|at| at.saturating_sub(monotonic_nanos())) {
                    None => std::thread::park(),
                    Some(0) => return Ok(None),
                    Some(left) => std::thread::park_timeout(Duration::from_nanos(left)),
                }
            }
        }
    }
}

struct Unpark(std::thread::Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}

impl Drop for ChangeStream {
    fn drop(&mut self) {
        self.core.changes.leave(&self.scope, &self.seat);
    }
}

fn scope_of(request: &ChangeRequest) -> Result<Scope> {
    match (&request.db, &request.collection) {
        (None, None) => Ok(Scope::Server),
        (Some(db), None) => check_names(db, None).map(|()| Scope::Database(db.clone())),
        (Some(db), Some(name)) => check_names(db, Some(name)).map(|()| Scope::Collection(db.clone(), name.clone())),
        (None, Some(_)) => {
            let message = "a collection is watched together with its database: name that too";
            Err(Error::new(ErrorKind::InvalidInput, message).with_code("InvalidNamespace", 73))
        }
    }
}

/// What the log has no more is history that is lost.
fn told_as_lost(error: Error) -> Error {
    if error.kind() == ErrorKind::NotFound { lost() } else { error }
}

fn lost() -> Error {
    let message = "what followed the resume token is no longer kept (--changes-bytes, --changes-age): read the collection \
                   anew, and watch from now on";
    Error::new(ErrorKind::HistoryLost, message)
}
