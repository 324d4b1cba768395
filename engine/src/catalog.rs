//! Which collections there are: by name for requests, by number for the log.
//!
//! Takes names already checked (`check_names`) and numbers; gives the shared state of a collection. Changes only inside
//! the committing order. It must not know documents.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};
use quarrydb_jsonb::JsonbBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CollectionId, Seq};
use crate::indexes::IndexSet;
use crate::limits::{COLLECTION_NAME_BYTES_MAX, DATABASE_NAME_BYTES_MAX};
use crate::manifest::DroppedEntry;
use crate::mvcc::version::Version;

/// One collection: its names and what it consists of.
#[derive(Debug)]
pub(crate) struct CollectionState {
    /// Its number.
    pub id: CollectionId,
    /// Its database.
    pub db: String,
    /// Its name.
    pub name: String,
    /// What it was created with, an object.
    pub options: JsonbBuf,
    /// The commit that created it.
    pub created: Seq,
    version: ArcSwap<Version>,
    /// Changes with the committing order held.
    indexes: ArcSwap<IndexSet>,
    count: Mutex<LiveCount>,
    dropped: AtomicBool,
    /// All commits up to here are in segments and delete files. Changes with the manifest.
    sealed_seq: Mutex<Seq>,
}

/// How many documents live: as applied, and the changes that are not visible yet.
#[derive(Debug, Default)]
struct LiveCount {
    applied: i64,
    recent: VecDeque<(Seq, i64)>,
}

impl CollectionState {
    /// A collection that consists of `version`, with `live` documents, sealed up to `sealed_seq`.
    #[must_use]
    pub(crate) fn new(id: CollectionId, names: (String, String), options: JsonbBuf, created: Seq) -> Self {
        Self {
            id,
            db: names.0,
            name: names.1,
            options,
            created,
            version: ArcSwap::from_pointee(Version::empty()),
            indexes: ArcSwap::default(),
            count: Mutex::default(),
            dropped: AtomicBool::new(false),
            sealed_seq: Mutex::new(Seq::default()),
        }
    }

    /// What it consists of now.
    pub(crate) fn version(&self) -> Arc<Version> {
        self.version.load_full()
    }

    /// Puts another version in place; called with the committing order held.
    pub(crate) fn install(&self, version: Version) {
        self.version.store(Arc::new(version));
    }

    /// Its declared indexes now.
    pub(crate) fn indexes(&self) -> Arc<IndexSet> {
        self.indexes.load_full()
    }

    /// Puts another set of indexes in place; called with the committing order held.
    pub(crate) fn install_indexes(&self, indexes: IndexSet) {
        self.indexes.store(Arc::new(indexes));
    }

    /// A commit changed the number of documents.
    pub(crate) fn count_changed(&self, seq: Seq, by: i64, visible: Seq) {
        let mut count = self.count.lock();
        count.applied += by;
        count.recent.push_back((seq, by));
        count.forget(visible);
    }

    /// The number of documents at `at`, which must be the newest visible `Seq` or later.
    pub(crate) fn count_at(&self, at: Seq) -> u64 {
        let count = self.count.lock();
        let later: i64 = count.recent.iter().filter(|(seq, _)| *seq > at).map(|(_, by)| by).sum();
        u64::try_from(count.applied - later).unwrap_or(0)
    }

    /// Whether it was dropped: a handle that is still held must not write any more.
    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// All commits up to here are in segments and delete files.
    pub(crate) fn sealed_seq(&self) -> Seq {
        *self.sealed_seq.lock()
    }

    /// The manifest says so now.
    pub(crate) fn set_sealed_seq(&self, seq: Seq) {
        let mut sealed = self.sealed_seq.lock();
        *sealed = seq.max(*sealed);
    }
}

impl LiveCount {
    fn forget(&mut self, visible: Seq) {
        while self.recent.front().is_some_and(|(seq, _)| *seq <= visible) {
            self.recent.pop_front();
        }
    }
}

/// Which collections there are.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    inner: RwLock<Names>,
    /// The newest commit that dropped a collection.
    last_drop: AtomicU64,
}

#[derive(Debug, Default)]
struct Names {
    by_name: BTreeMap<String, BTreeMap<String, Arc<CollectionState>>>,
    by_id: BTreeMap<CollectionId, Arc<CollectionState>>,
    next: CollectionId,
    /// Collections that were dropped, as long as the log may be asked about them.
    gone: BTreeMap<CollectionId, DroppedEntry>,
    /// Whether a collection was dropped since the manifest was written.
    changed: bool,
}

impl Catalog {
    /// Whether a collection was dropped since the manifest was written: its files may go.
    pub(crate) fn changed_since_saved(&self) -> bool {
        self.inner.read().changed
    }

    /// The manifest has it now, or will in a moment.
    pub(crate) fn note_saved(&self) {
        self.inner.write().changed = false;
    }

    /// The manifest could not be written after all.
    pub(crate) fn note_changed(&self) {
        self.inner.write().changed = true;
    }

    /// The collection of this name.
    pub(crate) fn get(&self, db: &str, name: &str) -> Option<Arc<CollectionState>> {
        self.inner.read().by_name.get(db)?.get(name).cloned()
    }

    /// The collection of this number.
    pub(crate) fn by_id(&self, id: CollectionId) -> Option<Arc<CollectionState>> {
        self.inner.read().by_id.get(&id).cloned()
    }

    /// The number that the next collection gets.
    pub(crate) fn next_id(&self) -> CollectionId {
        self.inner.read().next
    }

    /// Numbers below `next` are taken.
    pub(crate) fn reserve_ids(&self, next: CollectionId) {
        let mut inner = self.inner.write();
        inner.next = inner.next.max(next);
    }

    /// Adds a collection; called with the committing order held.
    pub(crate) fn add(&self, collection: CollectionState) -> Arc<CollectionState> {
        let collection = Arc::new(collection);
        let mut inner = self.inner.write();
        inner.next = inner.next.max(collection.id.next());
        inner.by_id.insert(collection.id, Arc::clone(&collection));
        let names = inner.by_name.entry(collection.db.clone()).or_default();
        names.insert(collection.name.clone(), Arc::clone(&collection));
        collection
    }

    /// The names of a collection, which may be gone.
    pub(crate) fn names_of(&self, id: CollectionId) -> Option<(String, String)> {
        let inner = self.inner.read();
        let live = inner.by_id.get(&id).map(|c| (c.db.clone(), c.name.clone()));
        live.or_else(|| inner.gone.get(&id).map(|gone| (gone.db.clone(), gone.name.clone())))
    }

    /// What was dropped and is remembered.
    pub(crate) fn gone(&self) -> Vec<DroppedEntry> {
        self.inner.read().gone.values().cloned().collect()
    }

    /// Remembers what was dropped before.
    pub(crate) fn remember_gone(&self, gone: &[DroppedEntry]) {
        self.inner.write().gone.extend(gone.iter().map(|entry| (entry.id, entry.clone())));
    }

    /// Forgets what was dropped before `seq`.
    pub(crate) fn forget_gone(&self, seq: Seq) {
        self.inner.write().gone.retain(|_, entry| entry.seq >= seq);
    }

    /// Takes a collection out, by the commit `seq`; called with the committing order held.
    pub(crate) fn remove(&self, id: CollectionId, seq: Seq) -> Option<Arc<CollectionState>> {
        let mut inner = self.inner.write();
        let collection = inner.by_id.remove(&id)?;
        let (db, name) = (collection.db.clone(), collection.name.clone());
        inner.gone.insert(id, DroppedEntry { id, seq, db, name });
        collection.dropped.store(true, Ordering::Release);
        inner.changed = true;
        if let Some(names) = inner.by_name.get_mut(&collection.db) {
            names.remove(&collection.name);
            if names.is_empty() {
                inner.by_name.remove(&collection.db);
            }
        }
        Some(collection)
    }

    /// A commit dropped collections.
    pub(crate) fn note_dropped(&self, seq: Seq) {
        self.last_drop.fetch_max(seq.get(), Ordering::AcqRel);
    }

    /// The newest commit since the opening that dropped a collection.
    pub(crate) fn last_drop(&self) -> Seq {
        Seq::from_raw(self.last_drop.load(Ordering::Acquire))
    }

    /// The names of all databases.
    pub(crate) fn databases(&self) -> Vec<String> {
        self.inner.read().by_name.keys().cloned().collect()
    }

    /// The collections of a database, by name.
    pub(crate) fn of_database(&self, db: &str) -> Vec<Arc<CollectionState>> {
        self.inner.read().by_name.get(db).map(|names| names.values().cloned().collect()).unwrap_or_default()
    }

    /// All collections, by number.
    pub(crate) fn all(&self) -> Vec<Arc<CollectionState>> {
        self.inner.read().by_id.values().cloned().collect()
    }
}

/// Whether these may be the names of a database and a collection.
///
/// # Errors
/// `InvalidNamespace` (73), which says what is allowed.
pub fn check_names(db: &str, collection: Option<&str>) -> Result<()> {
    let bad = |message: String| Err(Error::new(ErrorKind::InvalidInput, message).with_code("InvalidNamespace", 73));
    let letter = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if db.is_empty() || db.len() > DATABASE_NAME_BYTES_MAX || !db.bytes().all(letter) {
        return bad(format!(
            "{db:?} cannot name a database: 1 to {DATABASE_NAME_BYTES_MAX} characters of A-Z a-z 0-9 _ - are allowed"
        ));
    }
    let Some(name) = collection else { return Ok(()) };
    let whole = !name.is_empty() && name.len() <= COLLECTION_NAME_BYTES_MAX;
    if !whole || !name.bytes().all(|b| letter(b) || b == b'.') || name.starts_with("system.") {
        return bad(format!(
            "{name:?} cannot name a collection: 1 to {COLLECTION_NAME_BYTES_MAX} characters of A-Z a-z 0-9 _ - . are \
             allowed, not beginning with \"system.\""
        ));
    }
    Ok(())
}
