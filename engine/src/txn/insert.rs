//! Inserting a batch of documents: one commit, whatever their number.
//!
//! Takes a batch whose documents are encoded; gives which went in and why the others did not. The batch's buffer
//! becomes the log record and the tail's memory without a copy; where some of it does not go in, the rest is copied, so
//! that no few documents hold a large body in memory. Uniqueness of `_id` within the batch is checked before the order
//! is held, against all commits so far with it; after that nothing can fail but for want of room in the log.

use std::collections::HashSet;
use std::sync::Arc;

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use quarrydb_jsonb::{JsonbRef, Kind, id_hash};

use super::commit::{freeze_if_full, too_large};
use super::group::Pending;
use super::payload::{self, Op, Span};
use super::unique::Uniqueness;
use crate::batch::{Incoming, InsertBatch};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::RowId;
use crate::limits::COMMIT_BYTES_MAX;
use crate::log::Payload;
use crate::options::WriteOptions;

/// A document that did not go in.
#[derive(Debug)]
pub struct WriteFailure {
    /// Its position in the batch, from 0.
    pub index: usize,
    /// Why.
    pub error: Error,
}

/// What came of a batch.
#[derive(Debug)]
pub struct InsertOutcome {
    pub(super) payload: Option<Payload>,
    /// Position in the batch and place in the payload of what went in.
    pub(super) documents: Vec<(u32, Span)>,
    /// How many went in.
    pub inserted: u64,
    /// What did not, in order.
    pub errors: Vec<WriteFailure>,
}

impl InsertOutcome {
    /// The `_id`s of what went in, with their positions in the batch.
    pub fn ids(&self) -> impl Iterator<Item = (usize, JsonbRef<'_>)> {
        let bytes = self.payload.as_ref().map_or(&[][..], Payload::bytes);
        self.documents.iter().map(move |&(index, span)| (index as usize, id_of(JsonbRef::from_valid(span.of(bytes)))))
    }
}

/// A document ready to go in.
struct Ready {
    index: u32,
    span: Span,
    hash: u64,
    made_id: bool,
    /// An ended version in the tail to chain to.
    previous: Option<RowId>,
}

/// Inserts what of `batch` can be stored; with `ordered` up to the first that cannot.
///
/// # Errors
/// Where nothing was tried: the log has no room, the database is closing, a segment cannot be read.
pub(crate) fn insert(
    core: &Arc<Core>,
    open: &mut dyn FnMut() -> Result<Arc<CollectionState>>,
    batch: InsertBatch,
    ordered: bool,
    options: &WriteOptions,
) -> Result<Pending<InsertOutcome>> {
    core.admit_write(options)?;
    let (mut bytes, documents) = batch.finish();
    if bytes.len() > COMMIT_BYTES_MAX {
        return Err(too_large());
    }
    let mut errors = Vec::new();
    let mut ready = prepare(&bytes, documents, ordered, &mut errors);
    // Positions in the batch of what has the `_id` of another before it.
    let repeated = repeated(&bytes, &ready);
    if ready.is_empty() {
        // Nothing of it is committed, but the caller may hold a commit before it that this wait has to cover.
        let outcome = InsertOutcome { payload: None, documents: Vec::new(), inserted: 0, errors };
        return Ok(Pending::new(outcome, &core.group, core.watermarks().applied(), core.journaled(options)));
    }
    // Documents that were refused left no bytes, those behind an ordered failure are cut off.
    bytes.truncate(ready.last().map_or(0, |last| (last.span.start + last.span.len) as usize));
    let journaled = core.journaled(options);
    let mut collection = open()?;
    let whole = record(&collection, bytes, ready.len());
    let mut order = core.order.hold();
    while collection.is_dropped() {
        drop(order);
        collection = open()?;
        order = core.order.hold();
    }
    let mut whole = if whole.0 == collection.id { whole.1 } else { rewrite(&whole.1, &collection, &mut ready) };

    let version = collection.version();
    let tried = ready.len();
    let mut failed = None;
    let mut fault = None;
    let mut unique = Uniqueness::of(&collection);
    ready.retain_mut(|document| {
        if ordered && failed.is_some() || fault.is_some() {
            return false;
        }
        let mut taken = repeated.contains(&document.index);
        let id = id_of(JsonbRef::from_valid(document.span.of(whole.bytes())));
        if !taken && !document.made_id {
            match version.current(document.hash, id) {
                Ok(current) => {
                    taken = current.live.is_some();
                    document.previous = current.in_tail;
                }
                Err(error) => fault = Some(error),
            }
        }
        let mut refused = taken.then(|| duplicate(&collection, id));
        if let (None, None, Some(unique)) = (&refused, &fault, &mut unique) {
            match unique.claim(&collection, JsonbRef::from_valid(document.span.of(whole.bytes()))) {
                Ok(found) => refused = found,
                Err(error) => fault = Some(error),
            }
        }
        let Some(error) = refused else { return true };
        failed = Some(document.index);
        errors.push(WriteFailure { index: document.index as usize, error });
        false
    });
    if let Some(fault) = fault {
        return Err(fault);
    }
    if ordered && let Some(first) = failed {
        // What stood behind the first failure was not tried, so its own error is not told.
        errors.retain(|e| e.index <= first as usize);
    }
    errors.sort_by_key(|e| e.index);
    if ready.is_empty() {
        // Nothing goes in, so nothing is committed; the answer rests on commits that may still wait for the log.
        let seq = core.watermarks().applied();
        drop(order);
        let outcome = InsertOutcome { payload: None, documents: Vec::new(), inserted: 0, errors };
        return Ok(Pending::new(outcome, &core.group, seq, journaled));
    }
    if ready.len() < tried {
        whole = rewrite(&whole, &collection, &mut ready);
    }
    let commit = order.begin(core, whole.bytes().len(), journaled)?;
    let seq = commit.seq();
    let tail = &version.tail;
    for document in &ready {
        tail.push(&whole, (document.span.start, document.span.len), seq, document.hash, document.previous);
    }
    tail.touch(seq);
    collection.count_changed(seq, ready.len() as i64, core.watermarks().visible());
    commit.finish(whole.clone());
    freeze_if_full(core, &collection, &version, seq);
    drop(order);
    let outcome = InsertOutcome {
        inserted: ready.len() as u64,
        documents: ready.iter().map(|d| (d.index, d.span)).collect(),
        payload: Some(whole),
        errors,
    };
    Ok(Pending::new(outcome, &core.group, seq, journaled))
}

/// The positions in the batch of documents whose `_id` another before them has.
fn repeated(bytes: &[u8], documents: &[Ready]) -> HashSet<u32> {
    let mut repeated = HashSet::new();
    if documents.len() < 2 || documents.iter().all(|document| document.made_id) {
        return repeated;
    }
    let id = |document: &Ready| id_of(JsonbRef::from_valid(document.span.of(bytes)));
    let mut first: HashTable<&Ready> = HashTable::with_capacity(documents.len());
    for document in documents {
        let same = |other: &&Ready| other.hash == document.hash && quarrydb_jsonb::equal(id(other), id(document));
        match first.entry(document.hash, same, |other| other.hash) {
            Entry::Occupied(_) => {
                repeated.insert(document.index);
            }
            Entry::Vacant(entry) => {
                entry.insert(document);
            }
        }
    }
    repeated
}

/// Sorts out what cannot be stored whatever the collection holds, and hashes the rest.
fn prepare(bytes: &[u8], documents: Vec<Incoming>, ordered: bool, errors: &mut Vec<WriteFailure>) -> Vec<Ready> {
    let mut ready = Vec::with_capacity(documents.len());
    for (index, document) in documents.into_iter().enumerate() {
        let refused = match document {
            Incoming::Bad(error) => refused(error),
            Incoming::Document { range, made_id } => {
                let span = Span::new(range.start, range.end);
                let id = id_of(JsonbRef::from_valid(span.of(bytes)));
                match check_id(id) {
                    Ok(()) => {
                        let hash = id_hash(id);
                        ready.push(Ready { index: index as u32, span, hash, made_id, previous: None });
                        continue;
                    }
                    Err(error) => error,
                }
            }
        };
        errors.push(WriteFailure { index, error: refused });
        if ordered {
            break;
        }
    }
    ready
}

/// `_id` is always the first field.
pub(crate) fn id_of(document: JsonbRef<'_>) -> JsonbRef<'_> {
    document.as_object().and_then(|object| object.iter().next()).map_or(quarrydb_jsonb::NULL, |entry| entry.value)
}

/// Whether `id` may be an `_id`.
///
/// # Errors
/// `InvalidIdField` and `DollarPrefixedFieldName`.
pub(crate) fn check_id(id: JsonbRef<'_>) -> Result<()> {
    match id.kind() {
        Kind::Array | Kind::Regex => {
            let message = format!("_id may not be of type {}: any other type may", id.kind().alias());
            Err(Error::new(ErrorKind::InvalidInput, message).with_code("InvalidIdField", 53))
        }
        Kind::Object => {
            let dollar = id.as_object().and_then(|o| o.iter().find(|e| e.name_bytes().starts_with(b"$")));
            dollar.map_or(Ok(()), |entry| {
                let message =
                    format!("_id may not hold the field {:?}: names inside _id do not begin with $", entry.name());
                Err(Error::new(ErrorKind::InvalidInput, message).with_code("DollarPrefixedFieldName", 52))
            })
        }
        _ => Ok(()),
    }
}

/// The log record of all documents in `bytes`, and for which collection it is.
fn record(collection: &CollectionState, bytes: Vec<u8>, count: usize) -> (crate::ids::CollectionId, Payload) {
    let documents = Span::new(0, bytes.len());
    let op = Op::Insert { collection: collection.id, documents, count: count as u32 };
    (collection.id, Payload::new(payload::finish(bytes, &[op])))
}

/// The record with only `documents` of `whole`, and where they lie in it.
fn rewrite(whole: &Payload, collection: &CollectionState, documents: &mut [Ready]) -> Payload {
    let bytes = documents.iter().map(|d| d.span.len as usize).sum();
    let mut bytes = Vec::with_capacity(bytes);
    for document in &mut *documents {
        let start = bytes.len();
        bytes.extend_from_slice(document.span.of(whole.bytes()));
        document.span = Span::new(start, bytes.len());
    }
    record(collection, bytes, documents.len()).1
}

/// What is wrong with a document, as the engine's error.
pub(crate) fn refused(error: quarrydb_jsonb::Error) -> Error {
    error.into()
}

/// The error of an `_id` that is taken.
pub(crate) fn duplicate(collection: &CollectionState, id: JsonbRef<'_>) -> Error {
    duplicate_in((&collection.db, &collection.name), id)
}

pub(super) fn duplicate_in((db, name): (&str, &str), id: JsonbRef<'_>) -> Error {
    let mut printed = Vec::new();
    quarrydb_jsonb::print(id, quarrydb_jsonb::Style::Relaxed, &mut printed);
    let id_text = String::from_utf8_lossy(&printed);
    let message =
        format!("E11000 duplicate key error collection: {db}.{name} index: _id_ dup key: {{ _id: {id_text} }}");
    let mut details = quarrydb_jsonb::Builder::new();
    details.begin_object();
    details.field("indexName");
    details.string("_id_");
    details.field("keyPattern");
    details.begin_object();
    details.field("_id");
    details.int32(1);
    let built = details.end_object().and_then(|()| {
        details.field("keyValue");
        details.begin_object();
        details.field("_id");
        details.copy(id);
        details.end_object()?;
        details.end_object()
    });
    let error = Error::new(ErrorKind::DuplicateKey, message);
    if built.is_ok() { error.with_details(details.take()) } else { error }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::io::{ManualClock, MemoryStorage};
    use crate::{Database, Options};

    fn insert(db: &Database, ids: impl IntoIterator<Item = u32>, ordered: bool) -> InsertOutcome {
        let mut batch = InsertBatch::new(db);
        for id in ids {
            let text = format!("{{\"_id\": {id}, \"text\": \"{}\"}}", "x".repeat(1000));
            batch.push_text(text.as_bytes()).expect("a document");
        }
        let collection = db.collection("test", "held").expect("a name");
        collection.insert_batch(batch, ordered, &WriteOptions::default()).and_then(Pending::wait).expect("room")
    }

    #[test]
    fn what_is_refused_is_neither_stored_nor_held() {
        let options = Options { background: false, ..Options::default() };
        let storage = Arc::new(MemoryStorage::new());
        let db = Database::open_on(storage, Arc::new(ManualClock::new(1)), options).expect("a new database");
        assert_eq!(insert(&db, 0..100, false).inserted, 100);
        // All but one are stored already, or stand in the batch before.
        for (ids, new) in [((0..101).collect::<Vec<u32>>(), 100), (vec![200; 50], 0)] {
            let outcome = insert(&db, ids.clone(), false);
            let payload = outcome.payload.as_ref().expect("one goes in");
            assert!(payload.len() < 1200, "{} bytes are held", payload.len());
            assert_eq!((outcome.inserted, outcome.errors.len()), (1, ids.len() - 1));
            let went: Vec<_> = outcome.ids().map(|(index, id)| (index, id.as_i64())).collect();
            assert_eq!(went, [(new, Some(i64::from(ids[new])))]);
        }
        let outcome = insert(&db, [300, 301, 5, 302, 302], true);
        let failures: Vec<_> = outcome.errors.iter().map(|e| (e.index, e.error.kind())).collect();
        assert_eq!((outcome.inserted, failures), (2, vec![(2, ErrorKind::DuplicateKey)]));
        let outcome = insert(&db, [400, 401, 400, 402], true);
        assert_eq!((outcome.inserted, outcome.errors.len(), outcome.errors[0].index), (2, 1, 2));
    }
}
