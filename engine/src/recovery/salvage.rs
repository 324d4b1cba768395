//! Getting back what is whole of a damaged database, into a new one.
//!
//! Takes a directory that nobody holds and changes nothing in it; gives a new database and a report. Live rows of the
//! segments that can be read come first, then what the log says beyond them, so the newest whole version of each
//! document is kept. A document whose deletion is lost with the damage may come back: the report says that it may.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef};
use quarrydb_query::{Filter, ParseContext};

use super::check::open_existing;
use super::{open_deletes, replay};
use crate::batch::InsertBatch;
use crate::collection::Collection;
use crate::database::Database;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CollectionId, RowId, Seq};
use crate::indexes::{Index, IndexDefinition, IndexSet};
use crate::io::Storage;
use crate::io::disk::holds_something;
use crate::log::{RecordRef, file_name, whole_records};
use crate::manifest::{MANIFEST_FILE, Manifest, ManifestStore, SegmentEntry};
use crate::options::{Durability, Options, WriteOptions};
use crate::segment::{BlockBuf, BlockCache, Segment, parse_segment_file_name};
use crate::txn::insert::id_of;
use crate::txn::modify::DeleteRequest;
use crate::txn::payload::{self, Op, RECORD_COMMIT, Span};

/// What was got back, and what was not.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Documents that were copied, later versions of one counted again.
    pub documents: u64,
    /// What could not be read, each with its file.
    pub damage: Vec<String>,
}

/// Copies what is whole of the database at `from` to a new one at `to`, which must be empty or not there.
///
/// # Errors
/// Where there is no database at `from`, something at `to`, or the new one cannot be written.
pub fn salvage(from: impl AsRef<Path>, to: impl AsRef<Path>) -> Result<SalvageReport> {
    let to = to.as_ref();
    if holds_something(to)? {
        let message = format!("{} is not empty: name a directory that is empty or not there", to.display());
        return Err(Error::new(ErrorKind::Exists, message));
    }
    let storage: Arc<dyn Storage> = open_existing(from.as_ref())?;
    let options = Options { durability: Durability::Interval(std::time::Duration::from_secs(1)), ..Options::default() };
    let target = Database::open_with(to, options)?;
    let mut salvage = Salvage {
        target,
        names: HashMap::new(),
        sealed: HashMap::new(),
        next_collection: CollectionId::default(),
        batches: BTreeMap::new(),
        indexes: BTreeMap::new(),
        report: SalvageReport::default(),
    };
    salvage.run(&storage)?;
    salvage.target.close()?;
    Ok(salvage.report)
}

/// Documents are handed on in batches of about this many bytes.
const BATCH_BYTES: usize = 1 << 20;

struct Salvage {
    target: Database,
    names: HashMap<CollectionId, (String, String)>,
    /// Up to which commit the segments speak for a collection.
    sealed: HashMap<CollectionId, Seq>,
    /// Numbers below were given when the manifest was written: a collection of such a number that it does not name was
    /// dropped before.
    next_collection: CollectionId,
    batches: BTreeMap<CollectionId, InsertBatch>,
    indexes: BTreeMap<CollectionId, IndexSet>,
    report: SalvageReport,
}

impl Salvage {
    fn run(&mut self, storage: &Arc<dyn Storage>) -> Result<()> {
        let manifest = match ManifestStore::new(Arc::clone(storage)).load() {
            Ok(manifest) => manifest,
            Err(error) => {
                self.lost(error.message());
                None
            }
        };
        for entry in manifest.iter().flat_map(|m| &m.collections) {
            self.names.insert(entry.id, (entry.db.clone(), entry.name.clone()));
            self.sealed.insert(entry.id, entry.sealed_seq);
            match IndexSet::decode(MANIFEST_FILE, &entry.definitions) {
                Ok(set) => drop(self.indexes.insert(entry.id, set)),
                Err(error) => self.lost(error.message()),
            }
        }
        self.next_collection = manifest.as_ref().map_or(CollectionId::default(), |m| m.next_collection);
        let segments = self.segments(storage, manifest.as_ref())?;
        for entry in &segments {
            if manifest.is_none() {
                let sealed = self.sealed.entry(entry.meta.collection).or_default();
                *sealed = entry.meta.max_seq.max(*sealed);
            }
            if let Err(error) = self.segment(storage, entry) {
                self.lost(error.message());
            }
        }
        match manifest {
            Some(manifest) => {
                let mut damage = Vec::new();
                whole_records(&**storage, manifest.database, &mut damage, &mut |record| self.record(&record))?;
                damage.iter().for_each(|line| self.lost(line));
            }
            None => self.lost("without the manifest the log cannot be told from an older one: it was left out"),
        }
        let waiting: Vec<_> = self.batches.keys().copied().collect();
        waiting.into_iter().try_for_each(|id| self.flush(id))?;
        self.declare_indexes()
    }

    /// Builds the indexes that there were; a unique one cannot be where documents came back that had been deleted.
    fn declare_indexes(&mut self) -> Result<()> {
        for (id, set) in std::mem::take(&mut self.indexes) {
            let collection = self.collection(id)?;
            for index in set.iter() {
                let definition = index.definition.clone();
                if let Err(error) = collection.create_indexes(&[definition], &WriteOptions::default()) {
                    self.lost(&format!("the index {} of {id} is left out: {error}", index.definition.name()));
                }
            }
        }
        Ok(())
    }

    fn lost(&mut self, what: &str) {
        self.report.damage.push(what.to_owned());
    }

    /// The segments that the manifest names, or without it those that tell of themselves.
    fn segments(&mut self, storage: &Arc<dyn Storage>, manifest: Option<&Manifest>) -> Result<Vec<SegmentEntry>> {
        if let Some(manifest) = manifest {
            return Ok(manifest.segments.clone());
        }
        let mut entries = Vec::new();
        for id in storage.list()?.iter().filter_map(|(name, _)| parse_segment_file_name(name)) {
            match Segment::read_meta(&**storage, id) {
                Ok(meta) => entries.push(SegmentEntry { meta, deletes: None, indexes: Vec::new() }),
                Err(error) => self.lost(error.message()),
            }
        }
        // Of one that a compaction made and those it was made of, whichever comes last has the same newest rows.
        entries.sort_by_key(|entry| (entry.meta.max_seq, entry.meta.id));
        if !entries.is_empty() {
            self.lost("without the manifest it is not known which rows were deleted: deleted documents may come back");
        }
        Ok(entries)
    }

    /// The live rows of a segment, block by block; a bad block costs its own rows.
    fn segment(&mut self, storage: &Arc<dyn Storage>, entry: &SegmentEntry) -> Result<()> {
        let segment = Segment::open(&**storage, entry.meta, Arc::new(BlockCache::new(0)))?;
        let deletes = match open_deletes(&**storage, entry) {
            Ok(deletes) => Some(deletes),
            Err(error) => {
                self.lost(&format!("{}; deleted documents of {} may come back", error.message(), entry.meta.id));
                None
            }
        };
        let mut buffer = BlockBuf::default();
        for block in 0..segment.block_count()? {
            let view = match segment.read_block_into(block, &mut buffer) {
                Ok(view) => view,
                Err(error) => {
                    self.lost(error.message());
                    continue;
                }
            };
            for (row, bytes) in view.rows().map(RowId::from_raw).zip(view.docs()) {
                if !deletes.as_ref().is_some_and(|deletes| deletes.is_dead(row, Seq::MAX)) {
                    self.put(entry.meta.collection, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// What a record of the log says beyond the segments.
    fn record(&mut self, record: &RecordRef<'_>) -> Result<()> {
        if record.kind != RECORD_COMMIT {
            return Ok(());
        }
        let ops = match payload::read(record.payload, &file_name(record.file), record.offset) {
            Ok(ops) => ops,
            Err(error) => {
                self.lost(error.message());
                return Ok(());
            }
        };
        for op in ops {
            let id = op.collection();
            // Another may have its name by now.
            if id < self.next_collection && !self.sealed.contains_key(&id) {
                continue;
            }
            match op {
                Op::Create { collection, db, name, .. } => {
                    let text = |span: Span| String::from_utf8_lossy(span.of(record.payload)).into_owned();
                    self.names.entry(collection).or_insert_with(|| (text(db), text(name)));
                }
                Op::CreateIndex { collection, definition, index } => {
                    match IndexDefinition::from_object(JsonbRef::from_valid(definition.of(record.payload))) {
                        Ok(definition) => {
                            let set = self.indexes.entry(collection).or_default();
                            if index >= set.next_id() {
                                *set = set.with(Arc::new(Index::new(index, definition, true)));
                            }
                        }
                        Err(error) => self.lost(&format!("an index of {collection} is lost: {error}")),
                    }
                }
                Op::DropIndex { collection, index } => {
                    let set = self.indexes.entry(collection).or_default();
                    *set = set.without(index);
                }
                Op::IndexReady { .. } | Op::DropDatabase { .. } => {}
                Op::Drop { collection } => {
                    self.indexes.remove(&collection);
                    self.batches.remove(&collection);
                    self.collection(collection)?.drop(&WriteOptions::default())?.wait()?;
                }
                Op::Insert { collection, documents, .. } if self.is_news(collection, record.seq) => {
                    for span in replay::values(record.payload, documents) {
                        self.put(collection, span.of(record.payload))?;
                    }
                }
                Op::Update { collection, document, .. } if self.is_news(collection, record.seq) => {
                    self.put(collection, document.of(record.payload))?;
                }
                Op::Delete { collection, ids, .. } if self.is_news(collection, record.seq) => {
                    self.flush(collection)?;
                    for span in replay::values(record.payload, ids) {
                        self.remove(collection, JsonbRef::from_valid(span.of(record.payload)))?;
                    }
                }
                Op::Insert { .. } | Op::Update { .. } | Op::Delete { .. } => {}
            }
        }
        Ok(())
    }

    fn is_news(&self, collection: CollectionId, seq: Seq) -> bool {
        self.sealed.get(&collection).is_none_or(|sealed| seq > *sealed)
    }

    fn collection(&self, id: CollectionId) -> Result<Collection> {
        match self.names.get(&id) {
            Some((db, name)) => self.target.collection(db, name),
            None => self.target.collection("salvaged", &format!("collection_{}", id.get())),
        }
    }

    /// Takes a document, if it is one.
    fn put(&mut self, collection: CollectionId, bytes: &[u8]) -> Result<()> {
        let document = match quarrydb_jsonb::validate(bytes) {
            Ok(document) => document,
            Err(error) => {
                self.lost(&format!("a row of {collection} is no document: {error}"));
                return Ok(());
            }
        };
        let target = &self.target;
        let batch = self.batches.entry(collection).or_insert_with(|| InsertBatch::new(target));
        if let Err(error) = batch.push(document) {
            self.lost(&format!("a document of {collection} cannot be stored: {error}"));
            return Ok(());
        }
        if batch.bytes() >= BATCH_BYTES { self.flush(collection) } else { Ok(()) }
    }

    /// Writes what waits for a collection; a later version takes the place of an earlier one.
    fn flush(&mut self, id: CollectionId) -> Result<()> {
        let Some(batch) = self.batches.remove(&id) else { return Ok(()) };
        let collection = self.collection(id)?;
        let documents: Vec<JsonbBuf> =
            batch.views().map(|view| JsonbBuf::from_valid(view.as_bytes().to_vec())).collect();
        let outcome = collection.insert_batch(batch, false, &WriteOptions::default())?.wait()?;
        self.report.documents += outcome.inserted;
        for failure in outcome.errors {
            let Some(document) = documents.get(failure.index) else { continue };
            if failure.error.kind() != ErrorKind::DuplicateKey {
                self.lost(&format!("a document of {id} cannot be stored: {}", failure.error));
                continue;
            }
            self.remove(id, id_of(document.view()))?;
            let mut again = InsertBatch::new(&self.target);
            if again.push(document.view()).is_ok() {
                let again = collection.insert_batch(again, false, &WriteOptions::default())?.wait()?;
                self.report.documents += again.inserted;
            }
        }
        Ok(())
    }

    fn remove(&self, collection: CollectionId, id: JsonbRef<'_>) -> Result<()> {
        let mut filter = Builder::new();
        filter.begin_object();
        filter.field("_id");
        filter.begin_object();
        filter.field("$eq");
        filter.copy(id);
        let built = filter.end_object().and_then(|()| filter.end_object());
        built.map_err(crate::txn::insert::refused)?;
        let filter = filter.take();
        let filter = Filter::parse(JsonbRef::from_valid(&filter), &ParseContext::new("filter"))?;
        self.collection(collection)?.delete(&DeleteRequest::one(filter), &WriteOptions::default())?.wait()?;
        Ok(())
    }
}
