//! The whole-database check: every checksum, every document, every invariant that can be seen from outside. It reports
//! and never repairs; nothing on disk changes.
//!
//! Takes a storage that nobody else holds; gives lines. Next: `salvage.rs`, for what to do about them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use quarrydb_jsonb::{JsonbRef, id_hash};

use super::{log_options, open_deletes, replay};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CollectionId, RowId, Seq};
use crate::indexes::entries::Entries;
use crate::indexes::file::{SegmentIndex, index_file_name, is_index_file_name};
use crate::indexes::keys::KeyMaker;
use crate::indexes::range::KeyRange;
use crate::indexes::{IndexSet, IndexSource};
use crate::io::{DiskStorage, Storage};
use crate::log::{RecoverFloor, file_name, keep, kept_damage, recover};
use crate::maintain::seal;
use crate::manifest::{MANIFEST_FILE, Manifest, ManifestStore, SegmentEntry};
use crate::options::Options;
use crate::segment::{BlockBuf, BlockCache, Segment};
use crate::txn::insert::id_of;
use crate::txn::payload::{self, Op, RECORD_COMMIT};

/// What a check found.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {
    /// What is damaged, each with file and offset. Empty: the database is whole.
    pub damage: Vec<String>,
    /// What is worth knowing and no damage: an unsynced tail, files that nothing names.
    pub notes: Vec<String>,
    /// Segment files looked at.
    pub segments: u64,
    /// Rows in them, ended ones included.
    pub rows: u64,
    /// Commits in the log.
    pub commits: u64,
}

impl CheckReport {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.damage.is_empty()
    }
}

/// Checks the database in a directory.
///
/// # Errors
/// Where there is none, or another process holds it. Damage is no error: it stands in the report.
pub fn check(path: impl AsRef<Path>) -> Result<CheckReport> {
    check_on(&(open_existing(path.as_ref())? as Arc<dyn Storage>))
}

/// The directory of a database that must be there.
pub(super) fn open_existing(path: &Path) -> Result<Arc<DiskStorage>> {
    if !path.is_dir() {
        let message = format!("there is no database directory at {}", path.display());
        return Err(Error::new(ErrorKind::NotFound, message));
    }
    Ok(Arc::new(DiskStorage::open(path)?))
}

/// Checks the database on a storage.
///
/// # Errors
/// When the directory cannot be listed.
pub fn check_on(storage: &Arc<dyn Storage>) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let manifest = match ManifestStore::new(Arc::clone(storage)).load() {
        Ok(Some(manifest)) => manifest,
        Ok(None) => {
            report.notes.push("the directory is empty: there is no database yet".to_owned());
            return Ok(report);
        }
        Err(error) => {
            report.damage.push(error.message().to_owned());
            return Ok(report);
        }
    };
    let mut live: BTreeMap<CollectionId, HashMap<u64, Vec<u8>>> = BTreeMap::new();
    for entry in &manifest.segments {
        if !manifest.collections.iter().any(|c| c.id == entry.meta.collection) {
            report.damage.push(format!("MANIFEST: {} belongs to no collection", entry.meta.id));
        }
        let ids = live.entry(entry.meta.collection).or_default();
        if let Err(error) = check_segment(storage, entry, ids, &mut report) {
            report.damage.push(error.message().to_owned());
        }
        if let Err(error) = check_indexes(storage, &manifest, entry, &mut report) {
            report.damage.push(error.message().to_owned());
        }
    }
    check_log(&**storage, &manifest, &mut report);
    let named: HashSet<String> = seal::files(&manifest).collect();
    for (name, bytes) in storage.list()? {
        let ours = name.ends_with(".qseg")
            || name.ends_with(".qdel")
            || is_index_file_name(&name)
            || name.ends_with(crate::io::TEMPORARY_SUFFIX);
        if ours && !named.contains(&name) {
            report.notes.push(format!("{name} ({bytes} bytes) is named by nothing: the next start removes it"));
        }
    }
    Ok(report)
}

/// One segment: checksums, documents, the hash of each `_id`, and no `_id` that lives twice.
fn check_segment(
    storage: &Arc<dyn Storage>,
    entry: &SegmentEntry,
    ids: &mut HashMap<u64, Vec<u8>>,
    report: &mut CheckReport,
) -> Result<()> {
    let segment = Segment::open(&**storage, entry.meta, Arc::new(BlockCache::new(0)))?;
    segment.verify()?;
    let deletes = open_deletes(&**storage, entry)?;
    report.segments += 1;
    let mut buffer = BlockBuf::default();
    for block in 0..segment.block_count()? {
        let view = segment.read_block_into(block, &mut buffer)?;
        for (row, bytes) in view.rows().map(RowId::from_raw).zip(view.docs()) {
            report.rows += 1;
            let name = segment.file_name();
            let document = match quarrydb_jsonb::validate(bytes) {
                Ok(document) => document,
                Err(error) => {
                    report.damage.push(format!("{name}: {row} is no document: {error}"));
                    continue;
                }
            };
            let id = id_of(document);
            if !segment.probe(id_hash(id))?.contains(&row) {
                report.damage.push(format!("{name}: {row} is not found by its _id"));
            }
            if deletes.is_dead(row, Seq::MAX) {
                continue;
            }
            let before = ids.insert(id_hash(id), id.as_bytes().to_vec());
            if before.is_some_and(|before| quarrydb_jsonb::equal(JsonbRef::from_valid(&before), id)) {
                report.damage.push(format!("{name}: the _id of {row} lives in an older segment too"));
            }
        }
    }
    Ok(())
}

/// The indexes of one segment: checksums, order, and the entries that its documents have.
fn check_indexes(
    storage: &Arc<dyn Storage>,
    manifest: &Manifest,
    entry: &SegmentEntry,
    report: &mut CheckReport,
) -> Result<()> {
    let Some(collection) = manifest.collections.iter().find(|c| c.id == entry.meta.collection) else { return Ok(()) };
    let defined = IndexSet::decode(MANIFEST_FILE, &collection.definitions)?;
    for file in &entry.indexes {
        let own = Arc::new(SegmentIndex::new(Arc::clone(storage), &entry.meta, *file));
        own.verify()?;
        // One that was dropped since goes with the next manifest.
        let Some(index) = defined.by_id(file.index) else { continue };
        let segment = Segment::open(&**storage, entry.meta, Arc::new(BlockCache::new(0)))?;
        let (mut entries, mut maker) = (Entries::default(), KeyMaker::default());
        let mut buffer = BlockBuf::default();
        for block in 0..segment.block_count()? {
            let view = segment.read_block_into(block, &mut buffer)?;
            for (row, bytes) in view.rows().zip(view.docs()) {
                let taken = maker.each(&index.definition, JsonbRef::from_valid(bytes), |key| entries.push(key, row));
                maker.facts.incomplete |= taken.is_err();
            }
        }
        entries.sort();
        let mut wanted = entries.iter();
        let source = IndexSource::Segment(Arc::clone(&own));
        let same = source.walk(&[KeyRange::all()], false, &mut |key, row| match wanted.next() == Some((key, row)) {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })?;
        if same.is_break() || wanted.next().is_some() || own.facts()? != maker.facts {
            let name = index_file_name(entry.meta.id, file.index);
            report.damage.push(format!("{name}: the entries are not those of the documents"));
        }
    }
    Ok(())
}

/// The log: each record whole, each document in it one.
fn check_log(storage: &dyn Storage, manifest: &Manifest, report: &mut CheckReport) {
    let floor = RecoverFloor {
        first_file: manifest.first_log_file,
        durable_at_least: manifest.durable_at_least.max(manifest.clean_end.unwrap_or_default()),
    };
    let options = log_options(manifest, &Options::default());
    let mut commits = 0;
    let mut bad = Vec::new();
    let result = recover(storage, &options, floor, &mut |record| {
        commits += 1;
        let name = file_name(record.file);
        if record.kind != RECORD_COMMIT {
            bad.push(format!("{name}: a record of unknown kind {} at offset {}", record.kind, record.offset));
            return Ok(());
        }
        for op in payload::read(record.payload, &name, record.offset)? {
            let spans = match op {
                Op::Insert { documents, .. } => replay::values(record.payload, documents).collect(),
                Op::Update { document, change, .. } if change.len > 0 => vec![document, change],
                Op::Update { document, .. } => vec![document],
                Op::Delete { ids, .. } => replay::values(record.payload, ids).collect(),
                Op::CreateIndex { definition, .. } => vec![definition],
                Op::Create { .. }
                | Op::Drop { .. }
                | Op::IndexReady { .. }
                | Op::DropIndex { .. }
                | Op::DropDatabase { .. } => Vec::new(),
            };
            for span in spans {
                if let Err(error) = quarrydb_jsonb::validate(span.of(record.payload)) {
                    bad.push(format!("{name}: a value of the record at offset {} is none: {error}", record.offset));
                }
            }
        }
        Ok(())
    });
    report.commits = commits;
    report.damage.append(&mut bad);
    match result {
        Ok((mut end, met)) => {
            if manifest.watched_since.is_some() {
                let kept = keep(storage, &options, manifest.kept_log_file, &mut end)
                    .and_then(|()| kept_damage(storage, &options, manifest.first_log_file, &end));
                report.damage.extend(kept.unwrap_or_else(|error| vec![error.message().to_owned()]));
            }
            let cut = met.cut.map(|cut| {
                format!(
                    "{}: {} bytes from offset {} on were never synced ({}): the next start leaves them out",
                    cut.file, cut.bytes, cut.offset, cut.reason
                )
            });
            report.notes.extend(cut);
        }
        Err(error) => report.damage.push(error.message().to_owned()),
    }
}
