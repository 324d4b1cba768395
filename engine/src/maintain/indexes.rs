//! Building declared indexes: files for segments that have none, then, with the committing order held, service.
//!
//! A build reads each segment once for all indexes that it lacks, on all cores, and names the files in the manifest; reads,
//! writes and seals go on. Tails need nothing. Then it is looked for what stands against the index: documents that it
//! cannot take, and for a unique one keys that two documents have. That takes no lock; with the order held only what came
//! since is looked at, and the index serves, or it is dropped and whoever waits is told why. A crash anywhere leaves an
//! index that is declared and not ready: it is built again at the next opening.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use quarrydb_jsonb::JsonbRef;

use crate::catalog::CollectionState;
use crate::core::{Core, closing};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{RowId, Seq};
use crate::indexes::file::{SegmentIndex, index_file_name};
use crate::indexes::keys::KeyMaker;
use crate::indexes::{Index, IndexSource, IndexState};
use crate::mvcc::version::{Address, Sealed, Version};
use crate::options::Deadline;
use crate::segment::BlockBuf;
use crate::txn::define;
use crate::txn::unique::{Uniqueness, duplicate};

use super::index_files;
use super::seal::save;

/// Rows of the segments that are read between two saves of the manifest.
const BATCH_ROWS: u32 = 1 << 20;
/// Pairs of documents with one key that are remembered while others write; more than that do not go away.
const SUSPECTS_MAX: usize = 1000;
/// How often what came meanwhile is looked at without the order, before it is with it.
const ROUNDS_MAX: usize = 4;
/// So few rows may be looked at with the order held at once.
const FEW_ROWS: u64 = 1000;
/// How often whoever waits for an index looks again unasked.
const WAIT: Duration = Duration::from_millis(50);

/// Builds what is still to be built of one collection; whether there may be more to do.
///
/// # Errors
/// `OutOfDiskSpace`, `Io`, `Poisoned`, where the index could neither be built nor dropped: the same is tried again.
pub(crate) fn step(core: &Core) -> Result<bool> {
    let _one_at_a_time = core.indexing.building.lock();
    let is_building = |index: &&Arc<Index>| index.state() == IndexState::Building;
    for collection in core.catalog.all() {
        let building: Vec<_> = collection.indexes().iter().filter(is_building).cloned().collect();
        if building.is_empty() {
            continue;
        }
        let result = build(core, &collection, &building);
        if let Err(error) = &result {
            building.iter().for_each(|index| index.fail(error.again()));
        }
        let ended = drop_failed(core, &collection);
        if ended.is_err() {
            building.iter().for_each(|index| index.set_stuck());
        }
        core.indexing_changed();
        return ended.map(|()| true);
    }
    Ok(false)
}

/// Drops what could not be built, unless the database itself is what failed.
fn drop_failed(core: &Core, collection: &CollectionState) -> Result<()> {
    let mut order = core.order.hold();
    let set = collection.indexes();
    let building = set.iter().filter(|index| index.state() == IndexState::Building);
    let failed: Vec<_> = building.filter_map(|index| Some((Arc::clone(index), index.failure()?))).collect();
    if let Some((_, error)) =
        failed.iter().find(|(_, error)| matches!(error.kind(), ErrorKind::Poisoned | ErrorKind::ShuttingDown))
    {
        return Err(error.again());
    }
    let failed: Vec<_> = failed.into_iter().map(|(index, _)| index).collect();
    if failed.is_empty() || collection.is_dropped() {
        return Ok(());
    }
    define::drop(core, &mut order, collection, &failed, true).map(|_| ())
}

/// Waits until indexes serve.
///
/// # Errors
/// Why one could not be built; `TimedOut`; `ShuttingDown`.
pub(crate) fn wait(core: &Core, indexes: &[Arc<Index>], deadline: Option<Deadline>) -> Result<()> {
    loop {
        for index in indexes {
            if let Some(error) = index.outcome() {
                return Err(error);
            }
            if index.state() == IndexState::Gone {
                let message = format!("the index {} was dropped while it was built", index.definition.name());
                return Err(Error::new(ErrorKind::Conflict, message).with_code("IndexBuildAborted", 276));
            }
        }
        if indexes.iter().all(|index| index.is_ready()) {
            return Ok(());
        }
        Deadline::check(deadline)?;
        if core.closing.load(Ordering::Acquire) {
            return Err(closing());
        }
        let mut lock = core.indexing.lock.lock();
        // Looked at under the lock that the news comes under: none is missed.
        if indexes.iter().all(|index| index.state() != IndexState::Gone && index.outcome().is_none())
            && !indexes.iter().all(|index| index.is_ready())
        {
            core.indexing.changed.wait_for(&mut lock, WAIT);
        }
    }
}

/// Makes the files that are missing of all indexes of `collection` over segments that the manifest does not name yet. To be
/// called for the last time with the manifest's lock held, which keeps it until it names them: an index does not begin to
/// serve meanwhile.
///
/// # Errors
/// `OutOfDiskSpace`, `Io`, `Corrupt`; files that were made are then named by nothing.
pub(crate) fn make_for_new<'s>(
    core: &Core,
    collection: &CollectionState,
    segments: impl Iterator<Item = &'s Arc<Sealed>>,
) -> Result<()> {
    let indexes: Vec<_> = collection.indexes().iter().cloned().collect();
    let wanted: Vec<_> = segments.filter_map(|sealed| lacking(sealed, &indexes)).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    for ((sealed, _), files) in wanted.iter().zip(index_files::make(core, &wanted)?) {
        sealed.indexes.attach(&files);
    }
    Ok(())
}

fn build(core: &Core, collection: &Arc<CollectionState>, indexes: &[Arc<Index>]) -> Result<()> {
    loop {
        if core.closing.load(Ordering::Acquire) {
            return Err(closing());
        }
        if collection.is_dropped() {
            indexes.iter().for_each(|index| index.set_gone());
            return Ok(());
        }
        let open: Vec<_> = indexes.iter().filter(|index| index.state() == IndexState::Building).cloned().collect();
        if open.is_empty() {
            return Ok(());
        }
        let version = collection.version();
        let missing = missing(&version, &open);
        note_progress(&version, &open);
        if missing.is_empty() {
            if finish(core, collection, &open)? {
                return Ok(());
            }
            continue;
        }
        let mut rows = 0;
        let batch = missing.into_iter().take_while(|(sealed, _)| {
            let first = rows == 0;
            rows += sealed.segment.rows();
            first || rows <= BATCH_ROWS
        });
        let batch: Vec<_> = batch.collect();
        let made = index_files::make(core, &batch)?;
        name(core, collection, &batch, made)?;
    }
}

/// The segments that lack files of some indexes, and of which.
fn missing(version: &Version, indexes: &[Arc<Index>]) -> Vec<(Arc<Sealed>, Vec<Arc<Index>>)> {
    version.segments.iter().filter_map(|sealed| lacking(sealed, indexes)).collect()
}

fn lacking(sealed: &Arc<Sealed>, indexes: &[Arc<Index>]) -> Option<(Arc<Sealed>, Vec<Arc<Index>>)> {
    let lacking: Vec<_> = indexes.iter().filter(|index| sealed.indexes.get(index.id).is_none()).cloned().collect();
    (!lacking.is_empty()).then(|| (Arc::clone(sealed), lacking))
}

fn note_progress(version: &Version, indexes: &[Arc<Index>]) {
    for index in indexes {
        let rows = |sealed: &Arc<Sealed>| u64::from(sealed.segment.rows());
        let done = version.segments.iter().filter(|sealed| sealed.indexes.get(index.id).is_some()).map(rows).sum();
        index.set_progress(done, version.segments.iter().map(rows).sum());
    }
}

/// Names files in the manifest and gives them to their segments, where these are still there.
fn name(
    core: &Core,
    collection: &CollectionState,
    batch: &[(Arc<Sealed>, Vec<Arc<Index>>)],
    made: Vec<Vec<Arc<SegmentIndex>>>,
) -> Result<()> {
    let mut manifest = core.manifest.lock();
    let version = collection.version();
    let defined = collection.indexes();
    let mut wanted = Vec::new();
    for ((sealed, _), files) in batch.iter().zip(made) {
        let stays = !collection.is_dropped() && version.segments.iter().any(|own| Arc::ptr_eq(own, sealed));
        let (keep, waste): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|file| stays && defined.by_id(file.index()).is_some());
        for file in waste {
            let _ = core.storage.remove(&index_file_name(sealed.segment.meta().id, file.index()));
        }
        wanted.push((sealed, keep));
    }
    save(core, &mut manifest, None, |next| {
        for (sealed, files) in &wanted {
            let id = sealed.segment.meta().id;
            if let Some(entry) = next.segments.iter_mut().find(|entry| entry.meta.id == id) {
                entry.indexes.extend(files.iter().map(|file| *file.file()));
            }
        }
        Ok(())
    })?;
    wanted.iter().for_each(|(sealed, files)| sealed.indexes.attach(files));
    Ok(())
}

/// Two documents with one key in a unique index.
struct Suspect {
    index: Arc<Index>,
    key: Vec<u8>,
    one: Address,
    other: Address,
}

/// Lets indexes serve whose entries are all there; false where a segment without came meanwhile.
fn finish(core: &Core, collection: &Arc<CollectionState>, indexes: &[Arc<Index>]) -> Result<bool> {
    // No segment comes or goes meanwhile.
    let manifest = core.manifest.lock();
    let (version, mut seen) = {
        let _order = core.order.hold();
        (collection.version(), core.watermarks().applied())
    };
    if !missing(&version, indexes).is_empty() {
        return Ok(false);
    }
    let mut suspects = Vec::new();
    for index in indexes {
        if let Err(error) = check_taken(&version, index, Seq::default()) {
            index.fail(error);
        } else if index.definition.unique {
            suspects.extend(repeated_keys(&version, index)?);
            // So that the first look with the order held finds its hashes made.
            version.tails().for_each(|tail| {
                tail.probe(index, &[], &mut |_| false);
            });
        }
    }
    for _ in 0..ROUNDS_MAX {
        let applied = core.watermarks().applied();
        if applied.get() - seen.get() < FEW_ROWS {
            break;
        }
        check_newer(collection, indexes, seen, &mut suspects)?;
        seen = applied;
    }
    let mut order = core.order.hold();
    if collection.is_dropped() {
        indexes.iter().for_each(|index| index.set_gone());
        return Ok(true);
    }
    check_newer(collection, indexes, seen, &mut suspects)?;
    for Suspect { index, key, one, other } in suspects {
        if one.is_live() && other.is_live() && index.failure().is_none() {
            index.fail(duplicate(collection, &index, other.document()?.view(), &key));
        }
    }
    let good: Vec<_> = indexes
        .iter()
        .filter(|index| index.state() == IndexState::Building && index.failure().is_none())
        .cloned()
        .collect();
    if !good.is_empty() {
        define::ready(core, &mut order, collection, &good)?;
    }
    drop(order);
    drop(manifest);
    Ok(true)
}

/// Looks for a document newer than `since` that lives and that the index cannot take.
fn check_taken(version: &Version, index: &Index, since: Seq) -> Result<()> {
    let mut maker = KeyMaker::default();
    for sealed in &version.segments {
        let incomplete = sealed.index(index)?.map(|source| source.facts()).transpose()?.is_some_and(|f| f.incomplete);
        if !incomplete || sealed.segment.meta().max_seq <= since {
            continue;
        }
        let mut buffer = BlockBuf::default();
        for block in 0..sealed.segment.block_count()? {
            let view = sealed.segment.read_block_into(block, &mut buffer)?;
            for (row, bytes) in view.rows().map(RowId::from_raw).zip(view.docs()) {
                if !sealed.deletes.is_dead(row, Seq::MAX) {
                    maker.each(&index.definition, JsonbRef::from_valid(bytes), |_| ())?;
                }
            }
        }
    }
    for tail in version.tails() {
        for row in (0..tail.rows()).map(RowId::from_raw) {
            let lives = tail.life(row).is_some_and(|(created, ended)| created > since && ended.is_none());
            if let (true, Some(document)) = (lives, tail.view(row)) {
                maker.each(&index.definition, document, |_| ())?;
            }
        }
    }
    Ok(())
}

/// Pairs of documents that live and have one key, as of now.
fn repeated_keys(version: &Version, index: &Arc<Index>) -> Result<Vec<Suspect>> {
    let sources: Vec<(IndexSource, Part<'_>)> = parts(version, index)?;
    let mut walks = Vec::new();
    for (source, _) in &sources {
        walks.extend(source.walks()?);
    }
    // A tail's entries lie in several runs.
    let mut heads = BinaryHeap::new();
    let mut of_walk = Vec::new();
    for (number, (source, _)) in sources.iter().enumerate() {
        of_walk.extend(std::iter::repeat_n(number, source.walk_count()));
    }
    for (at, walk) in walks.iter_mut().enumerate() {
        heads.extend(walk.next()?.map(|(key, row)| Reverse((key, at, row))));
    }
    let mut suspects = Vec::new();
    let mut group: (Vec<u8>, Option<Address>, bool) = (Vec::new(), None, false);
    while let Some(Reverse((key, at, row))) = heads.pop() {
        if key != group.0 {
            group = (key.clone(), None, false);
        }
        let row = RowId::from_raw(row);
        if !group.2
            && let Some(part) = of_walk.get(at).and_then(|&number| sources.get(number)).map(|(_, part)| part)
            && part.is_live(row)
        {
            let address = part.address(row);
            match group.1.take() {
                None => group.1 = Some(address),
                Some(one) => {
                    suspects.push(Suspect { index: Arc::clone(index), key: key.clone(), one, other: address });
                    group.2 = true;
                }
            }
        }
        if suspects.len() > SUSPECTS_MAX {
            break;
        }
        if let Some(walk) = walks.get_mut(at) {
            heads.extend(walk.next_into(key)?.map(|(key, row)| Reverse((key, at, row))));
        }
    }
    Ok(suspects)
}

/// A part of a collection.
enum Part<'v> {
    Segment(&'v Arc<Sealed>),
    Tail(&'v Arc<crate::tail::Tail>),
}

impl Part<'_> {
    fn is_live(&self, row: RowId) -> bool {
        match self {
            Self::Segment(sealed) => !sealed.deletes.is_dead(row, Seq::MAX),
            Self::Tail(tail) => tail.life(row).is_some_and(|(_, ended)| ended.is_none()),
        }
    }

    fn address(&self, row: RowId) -> Address {
        match self {
            Self::Segment(sealed) => Address::Segment(Arc::clone(sealed), row),
            Self::Tail(tail) => Address::Tail(Arc::clone(tail), row),
        }
    }
}

fn parts<'v>(version: &'v Version, index: &Index) -> Result<Vec<(IndexSource, Part<'v>)>> {
    let mut parts = Vec::new();
    for sealed in &version.segments {
        let source = sealed.index(index)?;
        parts.extend(source.map(|source| (source, Part::Segment(sealed))));
    }
    parts.extend(version.tails().map(|tail| (tail.index(index), Part::Tail(tail))));
    Ok(parts)
}

/// Holds the documents that came after `since` against all others, and the indexes against what they cannot take.
fn check_newer(
    collection: &Arc<CollectionState>,
    indexes: &[Arc<Index>],
    since: Seq,
    suspects: &mut Vec<Suspect>,
) -> Result<()> {
    let version = collection.version();
    for index in indexes.iter().filter(|index| index.failure().is_none()) {
        let mut maker = KeyMaker::default();
        for tail in version.tails() {
            for row in (0..tail.rows()).rev().map(RowId::from_raw) {
                let Some((created, ended)) = tail.life(row) else { continue };
                // Rows stand in the order of their creation.
                if created <= since {
                    break;
                }
                let (None, Some(document)) = (ended, tail.view(row)) else { continue };
                let mut keys = Vec::new();
                if let Err(error) = maker.each(&index.definition, document, |key| keys.push(key.to_vec())) {
                    index.fail(error);
                    break;
                }
                if index.definition.unique {
                    let address = Address::Tail(Arc::clone(tail), row);
                    let mut others = Uniqueness::with(Arc::clone(&version), collection.indexes());
                    others.ends(&address);
                    for key in keys {
                        if let Some(one) = others.holder(index, &key)? {
                            let (index, other) = (Arc::clone(index), address.clone());
                            suspects.push(Suspect { index, key, one, other });
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
