//! The one place that orders log, tail and publication.
//!
//! A commit, with the order held: (1) what it needs is checked against all commits so far; (2) the log has room for it,
//! which may fail and has then changed nothing; (3) it takes the next `Seq`; (4) its rows and ends are applied, seen by
//! nobody yet; (5) its record is queued in the log; (6) full tails are set aside for their seal. After the order is let
//! go, `group.rs` writes and syncs, the visible `Seq` moves, and the write is answered. From (2) on nothing can fail.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::{Mutex, MutexGuard};
use quarrydb_jsonb::{JsonbBuf, JsonbRef};

use super::group::Pending;
use super::payload::{self, Op, RECORD_COMMIT, Span};
use crate::catalog::CollectionState;
use crate::core::{Core, closing};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Seq;
use crate::limits::{COMMIT_BYTES_MAX, ROWS_MAX};
use crate::log::Payload;
use crate::mvcc::version::{Frozen, Version};
use crate::tail::Tail;

/// The committing order.
#[derive(Debug)]
pub(crate) struct CommitOrder(Mutex<Order>);

thread_local! {
    /// Whether this thread holds the order while it runs a closure of a user's.
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// The order is held by this thread until this is dropped.
#[derive(Debug)]
pub(super) struct HeldHere(());

impl Drop for HeldHere {
    fn drop(&mut self) {
        HELD.set(false);
    }
}

/// Refuses what would wait for the order that its own thread holds.
///
/// # Errors
/// `InvalidInput`.
pub(crate) fn check_not_held() -> Result<()> {
    if !HELD.get() {
        return Ok(());
    }
    let message =
        "a write beside the transaction in whose closure it stands: reach the database through the transaction alone";
    Err(Error::new(ErrorKind::InvalidInput, message).with_code("OperationNotSupportedInTransaction", 263))
}

/// The order, held.
#[derive(Debug)]
pub(crate) struct Order {
    next: Seq,
    wall_millis: u64,
}

impl CommitOrder {
    /// The order after recovery: `last` is the newest commit, `wall_millis` its time.
    pub(crate) fn new(last: Seq, wall_millis: u64) -> Self {
        Self(Mutex::new(Order { next: last.next(), wall_millis }))
    }

    /// Holds the order: nobody else commits meanwhile.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Order> {
        self.0.lock()
    }

    /// The same while a closure of a user's runs, which must not begin another write on this thread.
    pub(super) fn hold_for_closure(&self) -> (MutexGuard<'_, Order>, HeldHere) {
        let order = self.hold();
        HELD.set(true);
        (order, HeldHere(()))
    }
}

/// A commit that has room in the log and its `Seq`: it is now to be applied and finished, neither of which can fail.
#[derive(Debug)]
#[must_use = "a commit that has begun must be finished"]
pub(crate) struct Commit<'a> {
    core: &'a Core,
    order: &'a mut Order,
    seq: Seq,
    journaled: bool,
}

impl Order {
    /// Steps 2 and 3: room for a record of `payload_bytes`, and the next `Seq`.
    ///
    /// # Errors
    /// `OutOfDiskSpace`, `LimitExceeded`, `Poisoned`; nothing has changed then.
    pub(crate) fn begin<'a>(&'a mut self, core: &'a Core, payload_bytes: usize, journaled: bool) -> Result<Commit<'a>> {
        if payload_bytes > COMMIT_BYTES_MAX {
            return Err(too_large());
        }
        // The end takes the order too, so nothing is committed behind it.
        if core.closing.load(Ordering::Acquire) {
            return Err(closing());
        }
        if let Some(error) = core.group.poisoned() {
            return Err(error);
        }
        core.group.log().reserve(payload_bytes)?;
        let seq = self.next;
        self.wall_millis = self.wall_millis.max(core.clock.wall_millis());
        Ok(Commit { core, order: self, seq, journaled })
    }
}

/// The answer of a write that found nothing to do: it rests on commits that may still wait for the log, as the drop of
/// the collection. Takes the order, which must not be held.
pub(crate) fn nothing_to_do<T>(core: &Core, value: T, journaled: bool) -> Pending<T> {
    let seq = {
        let _order = core.order.hold();
        core.watermarks().applied()
    };
    Pending::new(value, &core.group, seq, journaled)
}

/// The error of a commit above `COMMIT_BYTES_MAX`.
pub(crate) fn too_large() -> Error {
    let message = format!("one operation may write {COMMIT_BYTES_MAX} bytes, this one takes more: split it");
    Error::new(ErrorKind::LimitExceeded, message)
}

impl Commit<'_> {
    /// Its place in the order.
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// Step 5: queues the record. What was applied is not seen before the log has it.
    pub(crate) fn finish(self, payload: Payload) -> Seq {
        let Self { core, order, seq, journaled } = self;
        core.watermarks().committing(seq, journaled);
        let shared = core.changes.is_listened_to().then(|| payload.clone());
        let place = core.group.log().append(seq, order.wall_millis, RECORD_COMMIT, payload);
        if let Some(payload) = shared {
            core.changes.committed(seq, place.wall_ms, payload);
        }
        core.watermarks().committed(seq);
        order.next = seq.next();
        seq
    }
}

/// Step 6: sets a full tail aside; called with the order held, after a commit at `last` was applied.
pub(crate) fn freeze_if_full(core: &Core, collection: &CollectionState, version: &Arc<Version>, last: Seq) {
    let tail = &version.tail;
    if tail.rows() >= core.options.tail_rows_max.min(ROWS_MAX) || tail.bytes() >= core.options.tail_bytes_max {
        freeze(core, collection, last);
    }
}

/// Sets the tail aside whatever it holds; called with the order held.
pub(crate) fn freeze(core: &Core, collection: &CollectionState, last: Seq) {
    let mut next = Version::clone(&collection.version());
    if next.tail.first_seq().is_none() {
        return;
    }
    core.sealing.waiting_bytes.fetch_add(next.tail.bytes(), Ordering::Relaxed);
    let full = std::mem::replace(&mut next.tail, Arc::new(Tail::default()));
    next.frozen.push(Frozen { tail: full, last_seq: last });
    collection.install(next);
    core.sealing_changed();
}

/// Creates a collection, with the order held.
///
/// # Errors
/// As [`Order::begin`].
pub(crate) fn create(
    core: &Core,
    order: &mut Order,
    names: (&str, &str),
    options: JsonbRef<'_>,
    journaled: bool,
) -> Result<(Arc<CollectionState>, Seq)> {
    let collection = core.catalog.next_id();
    let mut bytes = Vec::new();
    let mut span = |part: &[u8]| {
        let start = bytes.len();
        bytes.extend_from_slice(part);
        Span::new(start, bytes.len())
    };
    let (db, name) = (span(names.0.as_bytes()), span(names.1.as_bytes()));
    let op = Op::Create { collection, db, name, options: span(options.as_bytes()) };
    let payload = Payload::new(payload::finish(bytes, &[op]));
    let commit = order.begin(core, payload.bytes().len(), journaled)?;
    let seq = commit.seq();
    let options = JsonbBuf::from_valid(options.as_bytes().to_vec());
    let names = (names.0.to_owned(), names.1.to_owned());
    let state = core.catalog.add(CollectionState::new(collection, names, options, seq));
    commit.finish(payload);
    Ok((state, seq))
}

/// Ends collections, with the order held, and with them the database that is named, whose collections they all are; gives
/// the commit, or none where there was nothing to end.
///
/// # Errors
/// As [`Order::begin`].
pub(crate) fn drop_collections(
    core: &Core,
    order: &mut Order,
    collections: &[Arc<CollectionState>],
    database: Option<&str>,
    journaled: bool,
) -> Result<Option<Seq>> {
    if collections.is_empty() {
        return Ok(None);
    }
    let mut ops: Vec<_> = collections.iter().map(|c| Op::Drop { collection: c.id }).collect();
    let name = database.unwrap_or_default().as_bytes().to_vec();
    ops.extend(database.map(|_| Op::DropDatabase { db: Span::new(0, name.len()) }));
    let payload = Payload::new(payload::finish(name, &ops));
    let commit = order.begin(core, payload.bytes().len(), journaled)?;
    core.catalog.note_dropped(commit.seq());
    for collection in collections {
        core.catalog.remove(collection.id, commit.seq());
        let waiting = collection.version().frozen_bytes();
        core.sealing.waiting_bytes.fetch_sub(waiting, Ordering::Relaxed);
    }
    Ok(Some(commit.finish(payload)))
}
