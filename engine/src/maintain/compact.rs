//! Segments made anew: several become one, rows that nobody can see any more are left out.
//!
//! A compaction: (1) with the committing order held, the ends that it knows of are fixed, and the segments keep the time
//! of those that come later; (2) the rows go to new segment files, without any lock, paced; (3) under the manifest's
//! lock, ends that came meanwhile and are sealed already go to delete files, and the manifest names the new files in the
//! place of the old, atomically; (4) with the order held, ends that came after those are carried over and the new
//! segments take the place of the old. Rows keep their order and the commit that made them, so readers of either see
//! the same. A row is left out when its end is durable and no snapshot, open or to come, is before it: then replaying
//! the log finds nothing to end, which is what it would leave. A crash leaves the old segments or the new, and files
//! that nothing names.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::{JsonbRef, id_hash};
use roaring::RoaringBitmap;

use super::indexes;
use super::pace::Pace;
use super::policy::{self, Figures, Most};
use super::rows::{Packing, RowsWriter};
use super::seal;
use crate::catalog::CollectionState;
use crate::core::{Core, closing};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{RowId, SegmentId, Seq};
use crate::limits::{ROWS_MAX, SEGMENT_BYTES_MAX};
use crate::manifest::SegmentEntry;
use crate::mvcc::snapshot::Horizons;
use crate::mvcc::version::{Sealed, Version};
use crate::options::Deadline;
use crate::segment::{BlockBuf, DENSE_BYTES_MIN, Deletes, Segment, SegmentMeta, sample_bytes, train};
use crate::txn::insert::id_of;

/// What came of making a collection's segments as few as can be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Segments that were there, the tails sealed first.
    pub segments_before: u64,
    /// Segments that are there now.
    pub segments_after: u64,
    /// Bytes of their files.
    pub bytes_before: u64,
    /// Bytes of their files now.
    pub bytes_after: u64,
    /// Rows in them, dead ones too, now.
    pub rows_after: u64,
    /// Rows that nobody could see any more and that were left out.
    pub rows_dropped: u64,
}

/// How a run of segments is chosen.
type Choice = fn(&[Figures], Most) -> Option<Range<usize>>;

/// Makes one run of segments anew in each collection where that is worth it; whether there was one.
///
/// # Errors
/// As [`whole`], of the last collection that had any; the others are not kept from theirs.
pub(crate) fn unasked(core: &Core) -> Result<bool> {
    let mut any = Ok(false);
    for collection in core.catalog.all() {
        match step(core, &collection, policy::unasked, Seq::MAX, None) {
            Ok(None) => {}
            Ok(Some(_)) => any = any.map(|_| true),
            Err(error) => any = Err(error),
        }
    }
    any
}

/// Seals a collection's tails and makes its segments as few as can be, but for those of commits that come meanwhile.
///
/// # Errors
/// `OutOfDiskSpace`, `Io`, `Corrupt`: what is not made anew yet stands as before. `ShuttingDown`, `TimedOut`.
pub(crate) fn whole(core: &Core, collection: &Arc<CollectionState>, deadline: Option<Deadline>) -> Result<Compacted> {
    let _hurry = core.compaction.hurry();
    let last = seal::seal_one(core, collection)?;
    let figures = || {
        let version = collection.version();
        let metas = version.segments.iter().map(|sealed| sealed.segment.meta());
        let bytes: u64 = metas.clone().map(|meta| meta.file_bytes).sum();
        (version.segments.len() as u64, bytes, metas.map(|meta| u64::from(meta.rows)).sum())
    };
    let (segments_before, bytes_before, _) = figures();
    let mut rows_dropped = 0;
    // Rows that end meanwhile leave more to do, for as long as there are writers: that is for the next time.
    for _ in 0..=segments_before {
        match step(core, collection, policy::fewest, last, deadline)? {
            Some(dropped) => rows_dropped += dropped,
            None => break,
        }
    }
    let (segments_after, bytes_after, rows_after) = figures();
    Ok(Compacted { segments_before, segments_after, bytes_before, bytes_after, rows_after, rows_dropped })
}

/// Makes the run of `collection`'s segments anew that `choose` names among those with a row of a commit at or before
/// `last`; gives how many rows were left out, none where it names none.
fn step(
    core: &Core,
    collection: &Arc<CollectionState>,
    choose: Choice,
    last: Seq,
    deadline: Option<Deadline>,
) -> Result<Option<u64>> {
    let _alone = core.compaction.alone.lock();
    let version = collection.version();
    if collection.is_dropped() {
        return Ok(None);
    }
    let (horizons, durable) = (core.snapshots.horizons(core.watermarks()), core.watermarks().durable());
    let most = Most { rows: u64::from(rows_max(core)), bytes: SEGMENT_BYTES_MAX };
    let Some(run) = choose(&figures(&version, last, horizons.oldest().min(durable).min(last)), most) else {
        return Ok(None);
    };
    let inputs = version.segments.get(run).unwrap_or_default().to_vec();
    let work = Work::begin(core, collection, inputs, (&horizons, durable))?;
    work.run(&mut Pace::new(core, deadline)).map(Some)
}

fn rows_max(core: &Core) -> u32 {
    core.options.segment_rows_max.clamp(1, ROWS_MAX)
}

/// What `policy` wants to know: rows are dead that ended at or before `horizon`.
fn figures(version: &Version, last: Seq, horizon: Seq) -> Vec<Figures> {
    let figures = |sealed: &Arc<Sealed>| {
        let meta = sealed.segment.meta();
        let dead = sealed.deletes.count_dead_at(horizon);
        // Those too small for it are as dense as they may be.
        let dense = sealed.segment.is_dense() || meta.row_bytes < DENSE_BYTES_MIN;
        Figures { rows: u64::from(meta.rows), dead, bytes: meta.row_bytes, dense }
    };
    let early = |sealed: &&Arc<Sealed>| sealed.segment.meta().min_seq <= last;
    version.segments.iter().take_while(early).map(figures).collect()
}

/// One segment that is made anew.
struct Input {
    sealed: Arc<Sealed>,
    /// Rows that are left out.
    dropped: RoaringBitmap,
    /// Where its first row that stays comes among all that stay.
    first: u64,
}

/// One compaction on its way; lets go of its segments when it ends.
struct Work<'a> {
    core: &'a Core,
    collection: &'a Arc<CollectionState>,
    inputs: Vec<Input>,
    /// Ends up to here that leave their row in place, by the place among all rows that stay, in the order of commits.
    known: Vec<(u64, Seq)>,
    /// All ends up to here are in `known` or leave their row out.
    at: Seq,
}

impl<'a> Work<'a> {
    /// Step 1.
    fn begin(
        core: &'a Core,
        collection: &'a Arc<CollectionState>,
        segments: Vec<Arc<Sealed>>,
        (horizons, durable): (&Horizons, Seq),
    ) -> Result<Self> {
        let input = |sealed| Input { sealed, dropped: RoaringBitmap::new(), first: 0 };
        let inputs = segments.into_iter().map(input).collect();
        let mut work = Self { core, collection, inputs, known: Vec::new(), at: Seq::default() };
        {
            let _order = core.order.hold();
            work.at = core.watermarks().applied();
            work.inputs.iter().for_each(|input| input.sealed.deletes.hold(work.at));
        }
        let mut first = 0;
        for input in &mut work.inputs {
            let dead = input.sealed.deletes.as_of(work.at);
            input.first = first;
            input.dropped = dead.forever;
            let mut stay = Vec::new();
            for (row, ended) in dead.since {
                let created = input.sealed.segment.seq_of(row)?;
                if ended <= horizons.from(created).min(durable) {
                    input.dropped.insert(row.get());
                } else {
                    stay.push((row, ended));
                }
            }
            work.known.extend(stay.iter().filter_map(|&(row, ended)| Some((input.place(row)?, ended))));
            first += u64::from(input.sealed.segment.rows()) - input.dropped.len();
        }
        work.known.sort_by_key(|(_, ended)| *ended);
        // Files of indexes go with the segments; whoever still reads these has them mapped.
        work.inputs.iter().for_each(|input| input.sealed.indexes.touch());
        Ok(work)
    }

    fn run(&self, pace: &mut Pace<'_>) -> Result<u64> {
        let mut made = Vec::new();
        let mut given = Vec::new();
        let result = self.write(&mut made, &mut given, pace).and_then(|()| self.publish(&mut made));
        if result.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Poisoned) {
            seal::remove_unnamed(self.core, &self.core.manifest.lock().1, given);
        }
        result?;
        let rows_dropped = self.inputs.iter().map(|input| input.dropped.len()).sum();
        let counters = &self.core.counters;
        counters.compactions.fetch_add(1, Ordering::Relaxed);
        counters.compacted_rows_dropped.fetch_add(rows_dropped, Ordering::Relaxed);
        let read: u64 = self.inputs.iter().map(|input| input.sealed.segment.meta().file_bytes).sum();
        let written: u64 = made.iter().map(|made| made.sealed.segment.meta().file_bytes).sum();
        counters.compacted_bytes_read.fetch_add(read, Ordering::Relaxed);
        counters.compacted_bytes_written.fetch_add(written, Ordering::Relaxed);
        Ok(rows_dropped)
    }

    /// Step 2. `given` tells the numbers of all files that were begun.
    fn write(&self, made: &mut Vec<Made>, given: &mut Vec<SegmentId>, pace: &mut Pace<'_>) -> Result<()> {
        let mut writer: Option<RowsWriter> = None;
        let mut buffer = BlockBuf::default();
        let dictionary = self.dictionary()?;
        let packing = dictionary.as_deref().map_or(Packing::Quick, Packing::Dense);
        let mut seqs = Vec::new();
        let rows_max = rows_max(self.core);
        let mut finish = |writer: RowsWriter| -> Result<()> {
            let first = made.last().map_or(0, Made::end);
            made.push(Made::open(self.core, writer.finish()?, first)?);
            Ok(())
        };
        for input in &self.inputs {
            let segment = &input.sealed.segment;
            for block in 0..segment.block_count()? {
                pace.step()?;
                let rows = segment.block_rows(block)?;
                if input.dropped.range_cardinality(rows.clone()) == u64::from(rows.end - rows.start) {
                    continue;
                }
                seqs.clear();
                segment.seqs(rows, &mut seqs)?;
                let view = segment.read_block_into(block, &mut buffer)?;
                for ((row, bytes), created) in view.rows().zip(view.docs()).zip(&seqs) {
                    if input.dropped.contains(row) {
                        continue;
                    }
                    if let Some(full) = writer.take_if(|writer| writer.is_full(rows_max)) {
                        finish(full)?;
                    }
                    let writer = match &mut writer {
                        Some(writer) => writer,
                        none => {
                            let id = self.next_id()?;
                            given.push(id);
                            none.insert(RowsWriter::create(self.core, id, self.collection.id, packing)?)
                        }
                    };
                    let document = JsonbRef::from_valid(bytes);
                    writer.push(Seq::from_raw(*created), id_hash(id_of(document)), document)?;
                }
            }
        }
        writer.take().map_or(Ok(()), finish)?;
        indexes::make_for_new(self.core, self.collection, made.iter().map(|made| &made.sealed))?;
        let rows: u64 = made.last().map_or(0, Made::end);
        let expected = self.inputs.last().map_or(0, Input::end);
        if rows != expected {
            let message = format!("a compaction wrote {rows} rows of {expected}: a block has another number of rows");
            return Err(Error::new(ErrorKind::Internal, message));
        }
        Ok(())
    }

    /// What the rows are packed with; none where they are too few for that.
    fn dictionary(&self) -> Result<Option<Vec<u8>>> {
        let bytes = self.inputs.iter().map(|input| input.sealed.segment.meta().row_bytes).sum();
        if bytes < DENSE_BYTES_MIN {
            return Ok(None);
        }
        // Evenly from everywhere: rows of one time resemble each other.
        let step = (bytes / sample_bytes(bytes).max(1) as u64).max(1) as usize;
        let (mut samples, mut buffer) = (Vec::new(), BlockBuf::default());
        for input in &self.inputs {
            let segment = &input.sealed.segment;
            for block in (0..segment.block_count()?).step_by(step) {
                let view = segment.read_block_into(block, &mut buffer)?;
                let kept = view.rows().zip(view.docs()).filter(|(row, _)| !input.dropped.contains(*row));
                kept.for_each(|(_, document)| samples.extend_from_slice(document));
            }
        }
        Ok(Some(train(&samples, bytes)))
    }

    fn next_id(&self) -> Result<SegmentId> {
        let mut manifest = self.core.manifest.lock();
        manifest.0.check()?;
        let id = manifest.1.next_segment;
        manifest.1.next_segment = id.next();
        Ok(id)
    }

    /// Steps 3 and 4.
    fn publish(&self, made: &mut [Made]) -> Result<()> {
        let mut manifest = self.core.manifest.lock();
        manifest.0.check()?;
        // The clean end has said what there is.
        if self.core.closing.load(Ordering::Acquire) {
            return Err(closing());
        }
        let carried = {
            let _order = self.core.order.hold();
            self.core.watermarks().applied()
        };
        for &(place, ended) in &self.known {
            mark(made, place, ended);
        }
        self.carry(made, self.at, carried);
        // One may have been declared since.
        indexes::make_for_new(self.core, self.collection, made.iter().map(|made| &made.sealed))?;
        let old: Vec<_> = self.inputs.iter().map(|input| input.sealed.segment.meta().id).collect();
        let is_old = |id: SegmentId| old.contains(&id);
        seal::save(self.core, &mut manifest, None, |next| {
            let Some(entry) = next.collections.iter().find(|c| c.id == self.collection.id) else { return Ok(()) };
            let sealed_seq = entry.sealed_seq;
            // A seal may have let go of all of them, for want of a row to be seen: then so are the new ones.
            let Some(at) = next.segments.iter().position(|entry| is_old(entry.meta.id)) else { return Ok(()) };
            next.segments.retain(|entry| !is_old(entry.meta.id));
            let new = made.iter().map(|made| SegmentEntry {
                meta: *made.sealed.segment.meta(),
                deletes: None,
                indexes: made.sealed.indexes.files(),
            });
            next.segments.splice(at..at, new);
            made.iter().try_for_each(|made| seal::persist_deletes(self.core, next, &made.sealed, sealed_seq))
        })?;
        let _order = self.core.order.hold();
        self.carry(made, carried, Seq::MAX);
        let mut next = Version::clone(&self.collection.version());
        if let Some(at) = next.segments.iter().position(|sealed| is_old(sealed.segment.meta().id)) {
            next.segments.retain(|sealed| !is_old(sealed.segment.meta().id));
            next.segments.splice(at..at, made.iter().map(|made| Arc::clone(&made.sealed)));
            self.collection.install(next);
        }
        Ok(())
    }

    /// Ends after `after` up to `to` become ends in the new segments.
    fn carry(&self, made: &[Made], after: Seq, to: Seq) {
        let mut ends = Vec::new();
        for input in &self.inputs {
            let later = input.sealed.deletes.marked_after(after).into_iter().filter(|(_, ended)| *ended <= to);
            ends.extend(later.filter_map(|(row, ended)| Some((input.place(row)?, ended))));
        }
        ends.sort_by_key(|(_, ended)| *ended);
        ends.into_iter().for_each(|(place, ended)| mark(made, place, ended));
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.inputs.iter().for_each(|input| input.sealed.deletes.let_go());
    }
}

impl Input {
    /// Where a row comes among all that stay; none for one that is left out.
    fn place(&self, row: RowId) -> Option<u64> {
        let row = row.get();
        (!self.dropped.contains(row)).then(|| self.first + u64::from(row) - self.dropped.rank(row))
    }

    fn end(&self) -> u64 {
        self.first + u64::from(self.sealed.segment.rows()) - self.dropped.len()
    }
}

/// A segment that was made.
struct Made {
    sealed: Arc<Sealed>,
    /// Where its first row comes among all that stay.
    first: u64,
}

impl Made {
    fn open(core: &Core, meta: SegmentMeta, first: u64) -> Result<Self> {
        let segment = Segment::open(&*core.storage, meta, Arc::clone(&core.cache))?;
        let deletes = Deletes::new(meta.id, meta.rows);
        Ok(Self { sealed: Arc::new(Sealed::new(segment, deletes)), first })
    }

    fn end(&self) -> u64 {
        self.first + u64::from(self.sealed.segment.rows())
    }
}

/// Ends the row that comes at `place` among all that stay.
fn mark(made: &[Made], place: u64, ended: Seq) {
    let index = made.partition_point(|made| made.end() <= place);
    if let Some(made) = made.get(index) {
        made.sealed.deletes.mark(RowId::from_raw((place - made.first) as u32), ended);
    }
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
