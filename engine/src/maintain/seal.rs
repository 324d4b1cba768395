//! From tails to segments, and from log to room.
//!
//! A seal: (1) the log is synced past the tail's last commit, so that no segment outlives half of a transaction;
//! (2) the tail's rows go to segment files, those that nobody can see any more left out; (3) ends in older segments up
//! to the same commit go to delete files, segments without a row to be seen go themselves; (4) the manifest names all of it, atomically, and says up to which commit the
//! collection is sealed; (5) with the order held, ends that came meanwhile are carried over and the segments take the
//! tail's place; (6) log files that nobody needs are let go. A crash between any two leaves files that nothing names,
//! which the next opening removes, and log that replays the rest. One seal runs at a time, under the manifest's lock.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::id_hash;

use super::retain;
use super::rows::{Packing, RowsWriter};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::{ErrorKind, Result};
use crate::ids::{LogFileId, RowId, SegmentId, Seq};
use crate::indexes::file::{index_file_name, index_file_segment};
use crate::limits::ROWS_MAX;
use crate::log::LogFileInfo;
use crate::manifest::{CollectionEntry, DeleteFileRef, Manifest, ManifestStore, SegmentEntry};
use crate::mvcc::version::{Frozen, Sealed, Version};
use crate::segment::{Deletes, Segment, delete_file_name, segment_file_name};
use crate::tail::Tail;
use crate::txn::commit::freeze;
use crate::txn::group::Pending;
use crate::txn::insert::id_of;

/// Seals the oldest tail that waits, or the tails that hold back the log; whether there may be more to do.
///
/// # Errors
/// `OutOfDiskSpace`, `Io`: nothing is lost and the same is tried again at the next call.
pub(crate) fn step(core: &Core) -> Result<bool> {
    retain::step(core)?;
    let waiting = core.catalog.all().into_iter().find(|c| !c.version().frozen.is_empty());
    if let Some(collection) = waiting {
        seal_oldest(core, &collection)?;
        return Ok(true);
    }
    if core.catalog.changed_since_saved() {
        let mut manifest = core.manifest.lock();
        save(core, &mut manifest, None, |_| Ok(()))?;
        release_log(core, &manifest.1)?;
        return Ok(true);
    }
    let log_bytes: u64 = needed_files(core).iter().map(|file| file.bytes).sum();
    if log_bytes > core.options.log_bytes_max {
        return Ok(freeze_holders(core));
    }
    Ok(false)
}

/// The log files that the database needs itself.
fn needed_files(core: &Core) -> Vec<LogFileInfo> {
    let first = core.sealing.first_log_file.load(Ordering::Acquire);
    let mut files = core.group.log().files();
    files.retain(|file| file.id.get() >= first);
    files
}

/// Sets aside the tails whose first commit is in the older half of the log; whether there was one.
fn freeze_holders(core: &Core) -> bool {
    let files = needed_files(core);
    let Some(border) = files.get(files.len() / 2).map(|file| file.first_seq) else { return false };
    let _order = core.order.hold();
    let last = core.watermarks().applied();
    let mut any = false;
    for collection in core.catalog.all() {
        if collection.version().tail.first_seq().is_some_and(|first| first < border) {
            freeze(core, &collection, last);
            any = true;
        }
    }
    any
}

/// Seals every tail.
///
/// # Errors
/// As [`step`].
pub(crate) fn seal_all(core: &Core) -> Result<()> {
    {
        let _order = core.order.hold();
        let last = core.watermarks().applied();
        for collection in core.catalog.all() {
            freeze(core, &collection, last);
        }
    }
    while core.catalog.all().iter().any(|c| !c.version().frozen.is_empty()) {
        step(core)?;
    }
    Ok(())
}

/// Seals one collection's tails; gives the last commit that they may hold rows of.
///
/// # Errors
/// As [`step`].
pub(super) fn seal_one(core: &Core, collection: &Arc<CollectionState>) -> Result<Seq> {
    let last = {
        let _order = core.order.hold();
        let last = core.watermarks().applied();
        freeze(core, collection, last);
        last
    };
    while collection.version().frozen.first().is_some_and(|frozen| frozen.last_seq <= last) {
        seal_oldest(core, collection)?;
    }
    Ok(last)
}

/// The clean end: everything durable, and the manifest says up to where.
///
/// # Errors
/// When the log or the manifest cannot be written.
pub(crate) fn close(core: &Core) -> Result<()> {
    let mut manifest = core.manifest.lock();
    let (store, manifest) = &mut *manifest;
    let _order = core.order.hold();
    let last = core.group.log().close()?;
    core.watermarks().reached(last, Some(last));
    let mut next = manifest.clone();
    next.durable_at_least = last;
    next.clean_end = Some(last);
    store.save(&next)?;
    *manifest = next;
    Ok(())
}

/// Has the manifest say up to where the log is durable, so that a log file that is lost later is missed. Nothing is
/// waited for: where a seal is under way it says so itself.
///
/// # Errors
/// When the manifest cannot be written; it then says what it said before.
pub(crate) fn note_durable(core: &Core) -> Result<()> {
    let Some(mut manifest) = core.manifest.try_lock() else { return Ok(()) };
    let (store, current) = &mut *manifest;
    store.check()?;
    let durable_at_least = core.watermarks().durable();
    if current.durable_at_least < durable_at_least {
        let generation = current.generation + 1;
        let next = Manifest { generation, durable_at_least, clean_end: None, ..current.clone() };
        store.save(&next)?;
        *current = next;
    }
    Ok(())
}

/// Waits until everything up to `seq` is on stable storage.
fn durable(core: &Core, seq: Seq) -> Result<()> {
    Pending::new((), &core.group, seq, true).wait()
}

/// Seals the oldest tail of a collection that waits.
fn seal_oldest(core: &Core, collection: &Arc<CollectionState>) -> Result<()> {
    let mut manifest = core.manifest.lock();
    manifest.0.check()?;
    // Another caller may have been here first.
    let version = collection.version();
    let Some(frozen) = version.frozen.first().cloned() else { return Ok(()) };
    durable(core, frozen.last_seq)?;
    let mut made = Made { segments: Vec::new(), moved: Vec::new(), ends: 0 };
    let first = manifest.1.next_segment;
    let mut next = first;
    let written = write_segments(core, collection, &frozen, &mut next, &mut made);
    // A number is used once, also when what was made under it is given up: its file may lie about.
    manifest.1.next_segment = next;
    let result = written.and_then(|()| install(core, collection, &frozen, &mut manifest, &mut made));
    if result.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Poisoned) {
        remove_unnamed(core, &manifest.1, (first.get()..next.get()).map(SegmentId::from_raw));
    }
    result
}

/// Of files that were made, removes what nothing names, because something failed or the collection was dropped
/// meanwhile: the room is better given back at once. Not after a save that failed in doubt: the manifest may name them.
pub(super) fn remove_unnamed(core: &Core, manifest: &Manifest, made: impl IntoIterator<Item = SegmentId>) {
    let named: HashSet<_> = manifest.segments.iter().map(|entry| entry.meta.id).collect();
    let unnamed: Vec<_> = made.into_iter().filter(|id| !named.contains(id)).collect();
    for id in &unnamed {
        let _ = core.storage.remove(&segment_file_name(*id));
    }
    if unnamed.is_empty() {
        return;
    }
    let beside = |name: &str| index_file_segment(name).is_some_and(|id| unnamed.contains(&id));
    for (name, _) in core.storage.list().unwrap_or_default().into_iter().filter(|(name, _)| beside(name)) {
        let _ = core.storage.remove(&name);
    }
}

/// The segments made of one tail.
struct Made {
    segments: Vec<Arc<Sealed>>,
    /// From a row of the tail to its segment and row; none for rows left out.
    moved: Vec<Option<(u32, RowId)>>,
    /// How many of the tail's ends were looked at.
    ends: usize,
}

/// Step 2.
fn write_segments(
    core: &Core,
    collection: &CollectionState,
    frozen: &Frozen,
    next_id: &mut SegmentId,
    made: &mut Made,
) -> Result<()> {
    let tail = &frozen.tail;
    let rows_max = core.options.tail_rows_max.clamp(1, ROWS_MAX);
    // What ended before this nobody can see, and no crash can bring back.
    let (horizons, durable) = (core.snapshots.horizons(core.watermarks()), core.watermarks().durable());
    let mut writer: Option<RowsWriter> = None;
    let mut finished = Vec::new();
    let ended_rows = tail.ends_from(0);
    made.ends = ended_rows.len();
    made.moved = vec![None; tail.rows() as usize];
    for row in (0..tail.rows()).map(RowId::from_raw) {
        let (Some((created, ended)), Some(document)) = (tail.life(row), tail.view(row)) else { continue };
        if ended.is_some_and(|ended| ended <= horizons.from(created).min(durable)) {
            continue;
        }
        if writer.as_ref().is_some_and(|writer| writer.is_full(rows_max)) {
            finished.extend(writer.take().map(RowsWriter::finish).transpose()?);
        }
        let writer = match &mut writer {
            Some(writer) => writer,
            none => {
                let id = *next_id;
                *next_id = id.next();
                none.insert(RowsWriter::create(core, id, collection.id, Packing::Quick)?)
            }
        };
        let moved = writer.push(created, id_hash(id_of(document)), document)?;
        made.moved[row.get() as usize] = Some((finished.len() as u32, moved));
    }
    finished.extend(writer.take().map(RowsWriter::finish).transpose()?);
    for meta in finished {
        core.counters.sealed_bytes.fetch_add(meta.file_bytes, Ordering::Relaxed);
        let segment = Segment::open(&*core.storage, meta, Arc::clone(&core.cache))?;
        let deletes = Deletes::new(segment.meta().id, segment.rows());
        made.segments.push(Arc::new(Sealed::new(segment, deletes)));
    }
    carry_ends(&ended_rows, made);
    super::indexes::make_for_new(core, collection, made.segments.iter())
}

/// Ends of the tail's rows become ends in the segments.
fn carry_ends(ends: &[(RowId, Seq)], made: &Made) {
    for (row, seq) in ends {
        if let Some(Some((segment, row))) = made.moved.get(row.get() as usize) {
            made.segments[*segment as usize].deletes.mark(*row, *seq);
        }
    }
}

/// Steps 3 to 6.
fn install(
    core: &Core,
    collection: &Arc<CollectionState>,
    frozen: &Frozen,
    manifest: &mut (ManifestStore, Manifest),
    made: &mut Made,
) -> Result<()> {
    let version = collection.version();
    let up_to = frozen.last_seq;
    // Segments of which nobody can see a row any more, and no crash can bring one back, go altogether.
    let horizons = core.snapshots.horizons(core.watermarks());
    let is_dead = |sealed: &Sealed| {
        let horizon = horizons.from(sealed.segment.meta().min_seq).min(up_to);
        sealed.deletes.count_dead_at(horizon) == u64::from(sealed.segment.rows())
    };
    let (dead, kept): (Vec<_>, Vec<_>) = version.segments.iter().partition(|sealed| is_dead(sealed));
    let dead: HashSet<_> = dead.iter().map(|sealed| sealed.segment.meta().id).collect();
    save(core, manifest, Some(&frozen.tail), |next| {
        let Some(entry) = next.collections.iter_mut().find(|c| c.id == collection.id) else { return Ok(()) };
        entry.sealed_seq = up_to;
        for sealed in &made.segments {
            let meta = *sealed.segment.meta();
            next.segments.push(SegmentEntry { meta, deletes: None, indexes: sealed.indexes.files() });
        }
        next.segments.retain(|entry| !dead.contains(&entry.meta.id));
        for sealed in kept.iter().copied().chain(&made.segments) {
            persist_deletes(core, next, sealed, up_to)?;
        }
        Ok(())
    })?;
    {
        let _order = core.order.hold();
        carry_ends(&frozen.tail.ends_from(made.ends), made);
        let mut next = Version::clone(&collection.version());
        next.frozen.retain(|other| !Arc::ptr_eq(&other.tail, &frozen.tail));
        next.segments.retain(|sealed| !dead.contains(&sealed.segment.meta().id));
        next.segments.append(&mut made.segments.clone());
        collection.install(next);
        collection.set_sealed_seq(up_to);
        if !collection.is_dropped() {
            core.sealing.waiting_bytes.fetch_sub(frozen.tail.bytes(), Ordering::Relaxed);
        }
    }
    // What the manifest has may lose its `Seq`s where no snapshot asks for them: the lists stay short.
    for sealed in &collection.version().segments {
        sealed.deletes.fold(horizons.oldest().min(up_to));
    }
    core.counters.seals.fetch_add(1, Ordering::Relaxed);
    core.sealing_changed();
    release_log(core, &manifest.1)
}

/// Step 3 for one segment: its ends up to `up_to`, where there are new ones.
pub(super) fn persist_deletes(core: &Core, next: &mut Manifest, sealed: &Sealed, up_to: Seq) -> Result<()> {
    let id = sealed.segment.meta().id;
    let number = next.next_delete_file;
    let Some(entry) = next.segments.iter_mut().find(|entry| entry.meta.id == id) else { return Ok(()) };
    let before = entry.deletes.as_ref().map_or(Seq::default(), |file| file.up_to);
    if !sealed.deletes.marked_after(before).iter().any(|(_, seq)| *seq <= up_to) {
        return Ok(());
    }
    let bytes = sealed.deletes.encode(up_to);
    let name = delete_file_name(id, number);
    core.storage.write_atomic(&name, &bytes)?;
    next.next_delete_file += 1;
    entry.deletes = Some(DeleteFileRef { name, len: bytes.len() as u64, crc: crc32c::crc32c(&bytes), up_to });
    Ok(())
}

/// Step 4: the manifest as `change` makes it, with the catalog as it stands and `sealed` needing no log any more;
/// removes files that it no longer names.
pub(super) fn save(
    core: &Core,
    manifest: &mut (ManifestStore, Manifest),
    sealed: Option<&Arc<Tail>>,
    change: impl FnOnce(&mut Manifest) -> Result<()>,
) -> Result<()> {
    let (store, current) = manifest;
    let mut next = current.clone();
    let (seq, collections) = {
        let _order = core.order.hold();
        (core.watermarks().applied(), note_catalog(core, &mut next))
    };
    let mut oldest = Seq::default();
    let saved = || {
        // A collection must not be named before the commit that made it is durable.
        durable(core, seq)?;
        change(&mut next)?;
        next.generation += 1;
        next.durable_at_least = core.watermarks().durable();
        next.clean_end = None;
        next.first_log_file = first_needed(core, seq, &collections, sealed).max(current.first_log_file);
        oldest = retain::apply(core, current, &mut next);
        store.save(&next)
    };
    saved().inspect_err(|_| core.catalog.note_changed())?;
    core.sealing.note(&next);
    core.catalog.forget_gone(oldest);
    let kept: HashSet<_> = files(&next).collect();
    let gone: Vec<_> = files(current).filter(|name| !kept.contains(name)).collect();
    *current = next;
    for name in gone {
        // What remains is removed at the next opening.
        let _ = core.storage.remove(&name);
    }
    Ok(())
}

/// Collections that were made or dropped since the manifest was written; gives all there are.
fn note_catalog(core: &Core, next: &mut Manifest) -> Vec<Arc<CollectionState>> {
    let all = core.catalog.all();
    let live: HashSet<_> = all.iter().map(|c| c.id).collect();
    let known: HashSet<_> = next.collections.iter().map(|c| c.id).collect();
    next.collections.retain(|entry| live.contains(&entry.id));
    next.segments.retain(|entry| live.contains(&entry.meta.collection));
    next.collections.extend(all.iter().filter(|c| !known.contains(&c.id)).map(|c| CollectionEntry {
        id: c.id,
        db: c.db.clone(),
        name: c.name.clone(),
        options: c.options.view().as_bytes().to_vec(),
        created_seq: c.created,
        sealed_seq: Seq::default(),
        definitions: Vec::new(),
    }));
    let indexes: HashMap<_, _> = all.iter().map(|c| (c.id, c.indexes())).collect();
    for entry in &mut next.collections {
        entry.definitions = indexes.get(&entry.id).map(|own| own.encode()).unwrap_or_default();
    }
    for entry in &mut next.segments {
        let own = indexes.get(&entry.meta.collection);
        entry.indexes.retain(|file| own.is_some_and(|own| own.by_id(file.index).is_some()));
    }
    next.next_collection = core.catalog.next_id();
    core.catalog.note_saved();
    all
}

/// The names of all segment, delete and index files of a manifest.
pub(crate) fn files(manifest: &Manifest) -> impl Iterator<Item = String> {
    manifest.segments.iter().flat_map(|entry| {
        let own = [Some(segment_file_name(entry.meta.id)), entry.deletes.as_ref().map(|d| d.name.clone())];
        let indexes = entry.indexes.iter().map(|file| index_file_name(entry.meta.id, file.index));
        own.into_iter().flatten().chain(indexes)
    })
}

/// The first log file that holds a commit which is neither sealed nor in the manifest's catalog, of `collections`: those
/// that the manifest names. One that was dropped since counts as long as its drop may not be durable; one made since
/// stands behind `catalog_seq` in the log.
fn first_needed(
    core: &Core,
    catalog_seq: Seq,
    collections: &[Arc<CollectionState>],
    sealed: Option<&Arc<Tail>>,
) -> LogFileId {
    let _order = core.order.hold();
    let unsealed = collections.iter().filter_map(|c| c.version().first_unsealed(sealed)).min();
    let needed = unsealed.unwrap_or(Seq::MAX).min(catalog_seq.next());
    let files = core.group.log().files();
    let first = files.iter().find(|file| file.last_seq >= needed).or(files.last());
    first.map_or(LogFileId::default(), |file| file.id)
}

/// Step 6; what change streams may still read stays.
pub(super) fn release_log(core: &Core, manifest: &Manifest) -> Result<()> {
    match manifest.kept_log_file.get().checked_sub(1) {
        Some(before) if before > 0 => core.group.log().release(LogFileId::from_raw(before)),
        _ => Ok(()),
    }
}
