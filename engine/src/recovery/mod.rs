//! Opening, step by step: (1) the manifest; (2) segments and their ends, by their footers alone; (3) the log behind the
//! manifest, replayed into tails; (4) files that nothing names are removed, now that nothing can be refused any more;
//! (5) counts, watermarks and the committing order go on where the log ends.
//!
//! A refusal changes no file. The cost is that of the segments' number and of the log that is not sealed.

pub(crate) mod check;
pub(crate) mod replay;
pub(crate) mod salvage;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use parking_lot::Mutex;
use quarrydb_jsonb::JsonbBuf;

use crate::budget::Budget;
use crate::catalog::{Catalog, CollectionState};
use crate::changes::hub::Hub;
use crate::core::{Core, Counters, Indexing, Sealing};
use crate::error::{Error, Result};
use crate::ids::{CollectionId, Seq};
use crate::indexes::IndexSet;
use crate::indexes::file::{SegmentIndex, SegmentIndexes, is_index_file_name};
use crate::io::{Clock, Storage};
use crate::log::{Log, LogOptions, RecoverFloor, RecoveryReport, keep, recover};
use crate::maintain::pace::Compacting;
use crate::maintain::seal;
use crate::manifest::{Manifest, ManifestStore, SegmentEntry};
use crate::mvcc::version::{Sealed, Version};
use crate::mvcc::{Snapshots, Watermarks};
use crate::object_id::ObjectIds;
use crate::options::{Durability, Options};
use crate::segment::{BlockCache, Deletes, Segment};
use crate::spill::SpillRoom;
use crate::txn::claims::Claims;
use crate::txn::commit::{CommitOrder, freeze_if_full};
use crate::txn::group::Group;
use crate::txn::registry::Transactions;

/// What opening a database has met.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// Commits replayed from the log, and what was cut off behind them.
    pub log: RecoveryReport,
    /// Segment files opened.
    pub segments: u64,
    /// Files removed because nothing names them: what a crash left half made.
    pub removed: Vec<String>,
    /// Whether the database was new.
    pub is_new: bool,
}

/// Opens a database on `storage`.
pub(crate) fn open(
    storage: Arc<dyn Storage>,
    clock: Arc<dyn Clock>,
    options: Options,
) -> Result<(Arc<Core>, Recovered)> {
    let store = ManifestStore::new(Arc::clone(&storage));
    let loaded = store.load()?;
    let is_new = loaded.is_none();
    let manifest = match loaded {
        Some(manifest) => manifest,
        None => begin(&store)?,
    };
    let cache = Arc::new(BlockCache::new(options.cache_bytes as u64));
    let catalog = Catalog::default();
    let mut segments = open_segments(&storage, &manifest, &cache)?;
    for entry in &manifest.collections {
        let options = JsonbBuf::from_valid(entry.options.clone());
        let state = CollectionState::new(entry.id, (entry.db.clone(), entry.name.clone()), options, entry.created_seq);
        state.set_sealed_seq(entry.sealed_seq);
        state.install_indexes(IndexSet::decode(crate::manifest::MANIFEST_FILE, &entry.definitions)?);
        let segments = segments.remove(&entry.id).unwrap_or_default();
        state.install(Version { segments, ..Version::empty() });
        catalog.add(state);
    }
    catalog.reserve_ids(manifest.next_collection);
    catalog.remember_gone(&manifest.dropped);

    let log_options = log_options(&manifest, &options);
    let floor = RecoverFloor {
        first_file: manifest.first_log_file,
        durable_at_least: manifest.durable_at_least.max(manifest.clean_end.unwrap_or_default()),
    };
    let mut replay = replay::Replay::new(&catalog);
    let (mut end, report) = recover(&*storage, &log_options, floor, &mut |record| replay.apply(&record))?;
    if manifest.watched_since.is_some() {
        keep(&*storage, &log_options, manifest.kept_log_file, &mut end)?;
    }
    let (last, wall_ms) = (end.last_seq.max(floor.durable_at_least), end.wall_ms);
    let log = Log::open(Arc::clone(&storage), log_options, end)?;
    let removed = remove_unnamed(&*storage, &manifest)?;

    let watermarks = Arc::new(Watermarks::new(last, options.durability == Durability::Commit));
    let changes = Arc::new(Hub::new(Arc::clone(&watermarks), manifest.database, manifest.watched_since));
    let sealing = Sealing::new(&manifest);
    let core = Arc::new(Core {
        group: Arc::new(Group::new(log, watermarks, Arc::clone(&changes))),
        changes,
        order: CommitOrder::new(last, wall_ms),
        snapshots: Arc::new(Snapshots::default()),
        claims: Claims::default(),
        transactions: Transactions::default(),
        ids: Arc::new(ObjectIds::default()),
        queries: Budget::new(options.query_bytes_max),
        spills: SpillRoom::new(Arc::clone(&storage)),
        manifest: Mutex::new((store, manifest)),
        counters: Counters::default(),
        sealing,
        compaction: Compacting::default(),
        indexing: Indexing::default(),
        closing: AtomicBool::new(false),
        options,
        storage,
        clock,
        catalog,
        cache,
    });
    for collection in core.catalog.all() {
        let version = collection.version();
        collection.count_changed(Seq::default(), count_live(&version) as i64, last);
        freeze_if_full(&core, &collection, &version, last);
    }
    let segments = core.catalog.all().iter().map(|c| c.version().segments.len() as u64).sum();
    Ok((core, Recovered { log: report, segments, removed, is_new }))
}

/// How the log of this database lays out its files.
fn log_options(manifest: &Manifest, options: &Options) -> LogOptions {
    let mut log = LogOptions::new(manifest.database);
    log.file_bytes = options.log_file_bytes;
    log.first_file_bytes = log.first_file_bytes.min(options.log_file_bytes);
    log
}

/// The manifest of a new database.
fn begin(store: &ManifestStore) -> Result<Manifest> {
    let manifest = Manifest::new(crate::object_id::chance());
    store.save(&manifest)?;
    Ok(manifest)
}

/// All segments of the manifest by collection, in the order it names them, which is that of their rows.
fn open_segments(
    storage: &Arc<dyn Storage>,
    manifest: &Manifest,
    cache: &Arc<BlockCache>,
) -> Result<BTreeMap<CollectionId, Vec<Arc<Sealed>>>> {
    let mut segments: BTreeMap<CollectionId, Vec<Arc<Sealed>>> = BTreeMap::new();
    for entry in &manifest.segments {
        let segment = Segment::open(&**storage, entry.meta, Arc::clone(cache))?;
        let deletes = open_deletes(&**storage, entry)?;
        let indexes = entry.indexes.iter().map(|file| SegmentIndex::new(Arc::clone(storage), &entry.meta, *file));
        let indexes = SegmentIndexes::new(indexes.map(Arc::new).collect());
        let sealed = Sealed::with_indexes(segment, deletes, indexes);
        segments.entry(entry.meta.collection).or_default().push(Arc::new(sealed));
    }
    Ok(segments)
}

/// The ends that a segment's delete file holds.
pub(crate) fn open_deletes(storage: &dyn Storage, entry: &SegmentEntry) -> Result<Deletes> {
    let Some(file) = &entry.deletes else { return Ok(Deletes::new(entry.meta.id, entry.meta.rows)) };
    let bytes = read_whole(storage, &file.name, file.len)?;
    if crc32c::crc32c(&bytes) != file.crc {
        return Err(Error::corrupt(&file.name, 0, "it is not the file that the manifest names (checksum)"));
    }
    let (deletes, up_to) = Deletes::decode(&file.name, &bytes, entry.meta.id, entry.meta.rows)?;
    // No snapshot is older than an opening, and what is replayed comes after.
    deletes.fold(up_to);
    Ok(deletes)
}

/// A whole small file, whose length is known.
fn read_whole(storage: &dyn Storage, name: &str, len: u64) -> Result<Vec<u8>> {
    let file = storage.open(name)?;
    let found = file.len()?;
    if found != len {
        return Err(Error::corrupt(name, found.min(len), format!("it has {found} bytes, the manifest says {len}")));
    }
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    file.read_at(0, &mut bytes)?;
    Ok(bytes)
}

/// Step 4: segment, delete and temporary files that nothing names.
fn remove_unnamed(storage: &dyn Storage, manifest: &Manifest) -> Result<Vec<String>> {
    let named: HashSet<String> = seal::files(manifest).collect();
    let ours = |name: &str| {
        name.ends_with(".qseg")
            || name.ends_with(".qdel")
            || is_index_file_name(name)
            || name.ends_with(crate::io::TEMPORARY_SUFFIX)
    };
    let mut removed = Vec::new();
    for (name, _) in storage.list()? {
        if ours(&name) && !named.contains(&name) {
            storage.remove(&name)?;
            removed.push(name);
        }
    }
    Ok(removed)
}

/// The documents that live in a version, all commits counted.
fn count_live(version: &Version) -> u64 {
    let sealed: u64 = version
        .segments
        .iter()
        .map(|s| u64::from(s.segment.rows()).saturating_sub(s.deletes.count_dead_at(Seq::MAX)))
        .sum();
    let tails: u64 = version
        .tails()
        .map(|tail| {
            let live =
                |row: &u32| tail.visible(crate::ids::RowId::from_raw(*row), Seq::from_raw(u64::MAX - 1)).is_some();
            (0..tail.rows()).filter(live).count() as u64
        })
        .sum();
    sealed + tails
}
