//! From log records back to tails.
//!
//! Takes records in `Seq` order; applies to each collection what is not sealed yet. Idempotent: an operation that has
//! been applied already changes nothing. Nothing that a user sent can make it fail; what cannot be read is damage.

use std::collections::HashMap;
use std::sync::Arc;

use quarrydb_jsonb::{JsonbBuf, JsonbRef, id_hash};

use crate::catalog::{Catalog, CollectionState};
use crate::error::{Error, Result};
use crate::ids::{CollectionId, IndexId, Seq};
use crate::indexes::{Index, IndexDefinition};
use crate::log::{Payload, RecordRef, file_name};
use crate::txn::insert::id_of;
use crate::txn::payload::{self, Op, RECORD_COMMIT, Span};

/// A replay under way.
pub(crate) struct Replay<'a> {
    catalog: &'a Catalog,
    /// The collections of the catalog, so that each is looked up once.
    open: HashMap<CollectionId, Option<Arc<CollectionState>>>,
}

impl<'a> Replay<'a> {
    pub(crate) fn new(catalog: &'a Catalog) -> Self {
        Self { catalog, open: HashMap::new() }
    }

    /// Applies one record.
    ///
    /// # Errors
    /// `Corrupt`, with file and offset.
    pub(crate) fn apply(&mut self, record: &RecordRef<'_>) -> Result<()> {
        if record.kind != RECORD_COMMIT {
            let what = format!("a record of unknown kind {}: a newer version may have written it", record.kind);
            return Err(Error::corrupt(&file_name(record.file), record.offset, what));
        }
        let name = file_name(record.file);
        let ops = payload::read(record.payload, &name, record.offset)?;
        // Tail rows point into the record, so it is copied once, whole.
        let mut shared: Option<Payload> = None;
        for op in &ops {
            match op {
                Op::Create { collection, db, name, options } => {
                    self.create(*collection, record, (*db, *name, *options));
                }
                Op::Drop { collection } => {
                    self.catalog.remove(*collection, record.seq);
                    self.open.insert(*collection, None);
                }
                Op::CreateIndex { collection, definition, index } => {
                    let wrong = || Error::corrupt(&name, record.offset, "the definition of an index cannot be read");
                    let value = quarrydb_jsonb::validate(definition.of(record.payload)).map_err(|_| wrong())?;
                    let definition = IndexDefinition::from_object(value).map_err(|_| wrong())?;
                    self.create_index(*collection, *index, definition);
                }
                Op::IndexReady { collection, index } => {
                    let state = self.collection(*collection);
                    if let Some(index) = state.and_then(|state| state.indexes().by_id(*index).cloned()) {
                        index.set_ready();
                    }
                }
                Op::DropIndex { collection, index } => {
                    if let Some(state) = self.collection(*collection) {
                        state.install_indexes(state.indexes().without(*index));
                    }
                }
                // Its collections are dropped by operations of their own.
                Op::DropDatabase { .. } => {}
                Op::Insert { collection, .. } | Op::Update { collection, .. } | Op::Delete { collection, .. } => {
                    // A collection that is not there was dropped later on, and the manifest knew.
                    let Some(state) = self.collection(*collection) else { continue };
                    if record.seq <= state.sealed_seq() {
                        continue;
                    }
                    let shared = shared.get_or_insert_with(|| Payload::new(record.payload.to_vec()));
                    apply_op(&state, op, shared, record.seq)?;
                }
            }
        }
        Ok(())
    }

    fn collection(&mut self, id: CollectionId) -> Option<Arc<CollectionState>> {
        self.open.entry(id).or_insert_with(|| self.catalog.by_id(id)).clone()
    }

    fn create_index(&mut self, collection: CollectionId, id: IndexId, definition: IndexDefinition) {
        let Some(state) = self.collection(collection) else { return };
        let indexes = state.indexes();
        // One below the next number that is not there was dropped since.
        if id >= indexes.next_id() {
            state.install_indexes(indexes.with(Arc::new(Index::new(id, definition, false))));
        }
    }

    fn create(&mut self, id: CollectionId, record: &RecordRef<'_>, (db, name, options): (Span, Span, Span)) {
        // One below the next number that is not in the catalog was dropped since.
        if self.catalog.by_id(id).is_some() || id < self.catalog.next_id() {
            return;
        }
        let text = |span: Span| String::from_utf8_lossy(span.of(record.payload)).into_owned();
        let options = JsonbBuf::from_valid(options.of(record.payload).to_vec());
        let state = CollectionState::new(id, (text(db), text(name)), options, record.seq);
        self.open.insert(id, Some(self.catalog.add(state)));
    }
}

fn apply_op(state: &CollectionState, op: &Op, payload: &Payload, seq: Seq) -> Result<()> {
    let version = state.version();
    let tail = &version.tail;
    tail.touch(seq);
    let put = |span: Span| -> Result<()> {
        let document = JsonbRef::from_valid(span.of(payload.bytes()));
        let (hash, id) = (id_hash(id_of(document)), id_of(document));
        let current = version.current(hash, id)?;
        if let Some(address) = current.live {
            address.end(seq);
        }
        tail.push(payload, (span.start, span.len), seq, hash, current.in_tail);
        Ok(())
    };
    match op {
        Op::Insert { documents, .. } => values(payload.bytes(), *documents).try_for_each(put),
        Op::Update { document, .. } => put(*document),
        Op::Delete { ids, .. } => values(payload.bytes(), *ids).try_for_each(|span| {
            let id = JsonbRef::from_valid(span.of(payload.bytes()));
            if let Some(address) = version.current(id_hash(id), id)?.live {
                address.end(seq);
            }
            Ok(())
        }),
        _ => Ok(()),
    }
}

/// The values that lie one after another in `all`.
pub(crate) fn values(payload: &[u8], all: Span) -> impl Iterator<Item = Span> {
    let end = all.start as usize + all.len as usize;
    let mut at = all.start as usize;
    std::iter::from_fn(move || {
        let len = quarrydb_jsonb::first_value(payload.get(at..end)?)?.as_bytes().len();
        let span = Span::new(at, at + len);
        at += len;
        Some(span)
    })
}
