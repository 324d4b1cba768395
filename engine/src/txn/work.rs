//! What a transaction has done so far and nobody else sees: the documents it wrote, by collection.
//!
//! Takes documents with the rows that they take the place of; gives them back by `_id`, and a view for scans in which they
//! are the newest tail. Keeps, for one that others run beside: the first to write a document has it (`claims.rs`), and what
//! is written is what the snapshot shows, or the write is a conflict. Bounded in bytes and in number. Next: `reading.rs`,
//! `inside.rs`, `atomic.rs`.

use std::collections::HashMap;
use std::sync::Arc;

use hashbrown::HashTable;
use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use quarrydb_query::Filter;

use super::claims::{self, Claim};
use super::unique::{UniqueKey, Uniqueness};
use crate::budget::Meter;
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::view::View;
use crate::ids::{RowId, Seq};
use crate::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_WRITES_MAX};
use crate::log::Payload;
use crate::mvcc::Snapshot;
use crate::mvcc::version::{Address, Version};
use crate::tail::{Tail, TailDocument};

/// What a slot takes beside its document.
const SLOT_BYTES: usize = 256;

/// How a transaction stands to the writers beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// There are none: the committing order is held from its begin to its commit. `scans`: it may look for long.
    Ordered { scans: bool },
    /// They go on; what it has read must still hold when it commits.
    Checked,
    /// They go on; what it has written must be untouched by them.
    Snapshot,
}

/// What a transaction has done so far.
#[derive(Debug)]
pub(super) struct Work {
    pub core: Arc<Core>,
    pub mode: Mode,
    pub snapshot: Snapshot,
    /// It is told from others by this.
    number: u64,
    pub collections: Vec<Touched>,
    /// What it asked, by the position of the collection; kept where it must still hold at the end.
    pub reads: Vec<(usize, Filter)>,
    claims: Vec<Claim>,
    meter: Meter,
    bytes: usize,
    writes: usize,
    /// Another was first.
    pub conflict: bool,
    /// It must look for longer than it may in its mode.
    pub wants_time: bool,
    /// An operation failed that gives its failure as an outcome.
    pub failed: bool,
}

/// What it has done to one collection.
#[derive(Debug)]
pub(super) struct Touched {
    pub db: Arc<str>,
    pub name: Arc<str>,
    place: u64,
    /// None where there is no such collection in the snapshot.
    pub state: Option<Arc<CollectionState>>,
    pub slots: Vec<Slot>,
    by_hash: HashTable<u32>,
    /// Its own documents, from the first scan on.
    own: Option<Arc<Tail>>,
    /// Which slot has which unique key.
    keys: HashMap<UniqueKey, usize>,
    unique: Option<Uniqueness>,
}

/// One document that it wrote.
#[derive(Debug)]
pub(super) struct Slot {
    pub hash: u64,
    pub id: JsonbBuf,
    /// The row in the snapshot that it takes the place of.
    pub base: Option<Address>,
    /// As it is now; none where it was deleted.
    pub now: Option<TailDocument>,
    /// Whether the `_id` was made here, so that nobody has it.
    pub made_id: bool,
    /// Whether it was put there whole, be it after a deletion.
    pub replaced: bool,
    /// What changed from `base` to `now`, where change streams are told.
    pub told: Option<JsonbBuf>,
    /// Where it lies in the own tail.
    row: Option<RowId>,
    keys: Vec<UniqueKey>,
}

/// One write.
#[derive(Debug)]
pub(super) struct Put {
    pub hash: u64,
    pub id: JsonbBuf,
    /// The row that is known to have the document in the snapshot.
    pub base: Option<Address>,
    pub now: Option<TailDocument>,
    pub made_id: bool,
    /// Whether it is a whole new document.
    pub replaced: bool,
}

impl Work {
    /// Nothing done yet.
    pub(super) fn new(core: &Arc<Core>, mode: Mode, snapshot: Snapshot, number: u64) -> Self {
        Self {
            core: Arc::clone(core),
            mode,
            snapshot,
            number,
            collections: Vec::new(),
            reads: Vec::new(),
            claims: Vec::new(),
            meter: Meter::new(&core.queries),
            bytes: 0,
            writes: 0,
            conflict: false,
            wants_time: false,
            failed: false,
        }
    }

    pub(super) fn at(&self) -> Seq {
        self.snapshot.seq()
    }

    /// Whether others may have committed since its snapshot.
    pub(super) fn is_beside_others(&self) -> bool {
        !matches!(self.mode, Mode::Ordered { .. })
    }

    /// The position of a collection, looked up when it is first named.
    ///
    /// # Errors
    /// `Conflict` where it was dropped since the snapshot.
    pub(super) fn collection(&mut self, db: &str, name: &str) -> Result<usize> {
        let known = self.collections.iter().position(|touched| *touched.name == *name && *touched.db == *db);
        let at = match known {
            Some(at) => at,
            None => {
                let state = self.core.catalog.get(db, name);
                // What was dropped since the snapshot cannot be looked at any more.
                let is_new = state.as_ref().is_none_or(|state| state.created > self.at());
                if is_new && self.core.catalog.last_drop() > self.at() {
                    return Err(self.conflict(&format!(
                        "a collection was dropped since the transaction began, and {db}.{name} may be it"
                    )));
                }
                self.collections.push(Touched::new(db, name, state));
                self.collections.len() - 1
            }
        };
        if self.collections.get(at).and_then(|t| t.state.as_ref()).is_some_and(|state| state.is_dropped()) {
            return Err(self.conflict(&format!("the collection {db}.{name} was dropped since the transaction began")));
        }
        Ok(at)
    }

    pub(super) fn touched(&self, at: usize) -> Result<&Touched> {
        self.collections.get(at).ok_or_else(unknown)
    }

    /// The error of a transaction that another was before.
    #[cold]
    pub(super) fn conflict(&mut self, why: &str) -> Error {
        self.conflict = true;
        conflict(why)
    }

    /// Counts a write against what a transaction may hold.
    fn weigh(&mut self, put: &Put) -> Result<()> {
        let document = put.now.as_ref().map_or(0, |now| now.view().as_bytes().len());
        self.bytes += document + SLOT_BYTES;
        self.writes += 1;
        if self.bytes > TRANSACTION_BYTES_MAX || self.writes > TRANSACTION_WRITES_MAX {
            let message = format!(
                "a transaction may write {TRANSACTION_WRITES_MAX} documents of {TRANSACTION_BYTES_MAX} bytes together, \
                 this one writes more: split it"
            );
            let error = Error::new(ErrorKind::LimitExceeded, message);
            return Err(error.with_code("TransactionTooLargeForCache", 388));
        }
        self.meter.add(document + SLOT_BYTES).map(drop)
    }

    /// Writes documents, all of them at once: what one gives up another may take.
    ///
    /// # Errors
    /// `Conflict` where another was first; `DuplicateKey`; what an index refuses; the bounds of a transaction.
    pub(super) fn put(&mut self, at: usize, puts: Vec<Put>) -> Result<()> {
        let mut slots = Vec::with_capacity(puts.len());
        let indexes = self.touched(at)?.state.as_ref().map(|state| state.indexes());
        let has_indexes = indexes.is_some_and(|indexes| !indexes.is_empty());
        for put in puts {
            self.weigh(&put)?;
            let slot = match self.touched(at)?.find(put.hash, put.id.view()) {
                Some(slot) => slot,
                None => {
                    let base = self.first_touch(at, &put)?;
                    let touched = self.collections.get_mut(at).ok_or_else(unknown)?;
                    touched.add(Slot {
                        hash: put.hash,
                        id: put.id,
                        base,
                        now: None,
                        made_id: put.made_id,
                        replaced: false,
                        told: None,
                        row: None,
                        keys: Vec::new(),
                    })
                }
            };
            if has_indexes {
                self.collections.get_mut(at).ok_or_else(unknown)?.give_up_keys(slot);
            }
            slots.push((slot, put.now));
            if put.replaced
                && let Some(slot) = self.collections.get_mut(at).and_then(|all| all.slots.get_mut(slot))
            {
                slot.replaced = true;
            }
        }
        if has_indexes {
            self.collections.get_mut(at).ok_or_else(unknown)?.look_at_newest(self.snapshot.seq())?;
        }
        for (slot, now) in slots {
            if has_indexes && let Some(now) = &now {
                self.take_keys(at, slot, now)?;
            }
            self.collections.get_mut(at).ok_or_else(unknown)?.set(slot, now);
        }
        Ok(())
    }

    /// What a document that is written for the first time takes the place of, once nobody else has changed it.
    fn first_touch(&mut self, at: usize, put: &Put) -> Result<Option<Address>> {
        let touched = self.touched(at)?;
        let (state, place) = (touched.state.clone(), touched.place);
        if self.mode == Mode::Snapshot {
            self.claim(Claim::document(place, put.hash), &put.id)?;
        }
        let Some(state) = state.filter(|_| self.is_beside_others()) else { return Ok(put.base.clone()) };
        let version = state.version();
        if let Some(base) = &put.base
            && version.holds(base)
            && base.is_live()
        {
            return Ok(put.base.clone());
        }
        if put.made_id && put.base.is_none() {
            return Ok(None);
        }
        match (version.current(put.hash, put.id.view())?.live, &put.base) {
            (None, None) => Ok(None),
            (Some(live), Some(_)) if live.created()? <= self.at() => Ok(Some(live)),
            _ => {
                Err(self
                    .conflict(&format!("another write has changed {} since the transaction began", printed(&put.id))))
            }
        }
    }

    fn claim(&mut self, claim: Claim, id: &JsonbBuf) -> Result<()> {
        match self.core.claims.take(claim, self.number) {
            Some(true) => self.claims.push(claim),
            Some(false) => {}
            None => {
                return Err(self.conflict(&format!("another transaction is writing {} or a key of it", printed(id))));
            }
        }
        Ok(())
    }

    /// Lets a slot have the unique keys of its document.
    fn take_keys(&mut self, at: usize, slot: usize, now: &TailDocument) -> Result<()> {
        let is_claiming = self.mode == Mode::Snapshot;
        let touched = self.collections.get_mut(at).ok_or_else(unknown)?;
        let Touched { db, name, unique: Some(unique), keys, slots, place, .. } = touched else { return Ok(()) };
        let own = unique.keys(now.view())?;
        let taken = |key: &UniqueKey| keys.get(key).is_some_and(|&other| other != slot);
        if let Some(refused) = unique.refuses((db, name), now.view(), &own, &taken)? {
            return Err(refused);
        }
        for key in &own {
            keys.insert(key.clone(), slot);
        }
        let place = *place;
        let Some(slot) = slots.get_mut(slot) else { return Err(unknown()) };
        let id = slot.id.clone();
        if is_claiming {
            let claims: Vec<_> = own.iter().map(|(index, key)| Claim::key(place, *index, key)).collect();
            slot.keys = own;
            for claim in claims {
                self.claim(claim, &id)?;
            }
        } else {
            slot.keys = own;
        }
        Ok(())
    }

    /// The collection as the transaction sees it; none where there is nothing to see.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(super) fn view(&mut self, at: usize) -> Result<Option<View>> {
        let seq = self.snapshot.seq();
        let touched = self.collections.get_mut(at).ok_or_else(unknown)?;
        let of_state = touched.state.as_ref().map(|state| View::of(state));
        if touched.slots.is_empty() {
            return Ok(of_state);
        }
        let view = of_state.unwrap_or_else(|| View::new(Arc::new(Version::empty()), Arc::default()));
        touched.relocate(&view.version, seq)?;
        let own = touched.own();
        Ok(Some(view.with(own, touched.slots.iter().filter_map(|slot| slot.base.clone()))))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.core.claims.give_back(&self.claims);
    }
}

impl Touched {
    fn new(db: &str, name: &str, state: Option<Arc<CollectionState>>) -> Self {
        Self {
            db: db.into(),
            name: name.into(),
            place: claims::place(db, name),
            state,
            slots: Vec::new(),
            by_hash: HashTable::new(),
            own: None,
            keys: HashMap::new(),
            unique: None,
        }
    }

    /// The slot of an `_id`.
    pub(super) fn find(&self, hash: u64, id: JsonbRef<'_>) -> Option<usize> {
        let is = |&at: &u32| {
            let slot = self.slots.get(at as usize);
            slot.is_some_and(|slot| {
                let own = slot.id.view();
                slot.hash == hash && (own.as_bytes() == id.as_bytes() || quarrydb_jsonb::equal(own, id))
            })
        };
        self.by_hash.find(hash, is).map(|&at| at as usize)
    }

    /// Whether an address is one of the transaction's own documents.
    pub(super) fn is_own(&self, address: &Address) -> bool {
        matches!((address, &self.own), (Address::Tail(tail, _), Some(own)) if Arc::ptr_eq(tail, own))
    }

    fn add(&mut self, slot: Slot) -> usize {
        let at = self.slots.len();
        let (slots, hash) = (&self.slots, slot.hash);
        self.by_hash.insert_unique(hash, at as u32, |&other| slots.get(other as usize).map_or(0, |slot| slot.hash));
        if let (Some(unique), Some(base)) = (&mut self.unique, &slot.base) {
            unique.ends(base);
        }
        self.slots.push(slot);
        at
    }

    fn give_up_keys(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        for key in slot.keys.drain(..) {
            self.keys.remove(&key);
        }
    }

    /// Has unique keys held against what is committed now.
    fn look_at_newest(&mut self, seq: Seq) -> Result<()> {
        let Some(state) = self.state.clone() else { return Ok(()) };
        let version = state.version();
        if self.unique.as_ref().is_some_and(|unique| Arc::ptr_eq(unique.version(), &version)) {
            return Ok(());
        }
        self.relocate(&version, seq)?;
        let mut unique = Uniqueness::with(version, state.indexes());
        self.slots.iter().filter_map(|slot| slot.base.as_ref()).for_each(|base| unique.ends(base));
        self.unique = Some(unique);
        Ok(())
    }

    /// Finds anew what a version does not hold where it was found before: its tail was sealed since, or segments compacted.
    fn relocate(&mut self, version: &Version, seq: Seq) -> Result<()> {
        for slot in &mut self.slots {
            if slot.base.as_ref().is_some_and(|base| !version.holds(base)) {
                slot.base = version.locate(slot.hash, slot.id.view(), seq)?.map(|(address, _)| address);
            }
        }
        Ok(())
    }

    fn set(&mut self, at: usize, now: Option<TailDocument>) {
        let Some(slot) = self.slots.get_mut(at) else { return };
        slot.now = now;
        if let Some(own) = &self.own {
            slot.place_in(own);
        }
    }

    fn own(&mut self) -> Arc<Tail> {
        if let Some(own) = &self.own {
            return Arc::clone(own);
        }
        let own = Arc::new(Tail::default());
        self.slots.iter_mut().for_each(|slot| slot.place_in(&own));
        self.own = Some(Arc::clone(&own));
        own
    }
}

impl Slot {
    /// Makes its document the newest of it in the own tail, which has all from before the first commit.
    fn place_in(&mut self, own: &Tail) {
        let before = self.row;
        if let Some(now) = &self.now {
            let (payload, span) = now.place();
            self.row = Some(own.push(payload, span, Seq::default(), self.hash, before));
        } else if before.is_none() && self.base.is_some() {
            // It says that the document is gone, to whoever looks for it by its `_id`.
            let mark = mark(&self.id);
            let (payload, span) = mark.place();
            let row = own.push(payload, span, Seq::default(), self.hash, None);
            own.end(row, Seq::default());
            self.row = Some(row);
        }
        if let Some(before) = before {
            own.end(before, Seq::default());
        }
    }
}

/// A document with bytes of its own.
pub(super) fn document(bytes: &JsonbBuf) -> TailDocument {
    let bytes = bytes.view().as_bytes().to_vec();
    let len = bytes.len() as u32;
    TailDocument::of(&Payload::new(bytes), (0, len))
}

/// A document of nothing but an `_id`.
fn mark(id: &JsonbBuf) -> TailDocument {
    let mut builder = quarrydb_jsonb::Builder::new();
    builder.begin_object();
    builder.field("_id");
    builder.copy(id.view());
    // One name cannot stand twice.
    let _ = builder.end_object();
    document(&JsonbBuf::from_valid(builder.take()))
}

/// An `_id` for a message.
fn printed(id: &JsonbBuf) -> String {
    let mut text = Vec::new();
    quarrydb_jsonb::print(id.view(), quarrydb_jsonb::Style::Relaxed, &mut text);
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if text.len() > 200 {
        let end = (0..=200).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
    }
    format!("the document with the _id {text}")
}

fn unknown() -> Error {
    Error::new(ErrorKind::Internal, "a transaction has lost a collection that it named")
}

/// The error of a transaction that another was before.
pub(super) fn conflict(why: &str) -> Error {
    let error = Error::new(ErrorKind::Conflict, format!("WriteConflict: {why}: run the whole transaction again"));
    transient(error)
}

/// The same with the label that says: the whole transaction may be run again.
pub(super) fn transient(error: Error) -> Error {
    let mut details = quarrydb_jsonb::Builder::new();
    details.begin_object();
    details.field("errorLabels");
    details.begin_array();
    details.string("TransientTransactionError");
    let built = details.end_array().and_then(|()| details.end_object());
    if built.is_ok() { error.with_details(details.take()) } else { error }
}
