//! The files of declared indexes over segments: made from columns where these tell all, else from documents.
//!
//! Takes segments and the indexes that each lacks; gives the files, each under its name and durable, named by nothing yet. All
//! cores work at it; what one index needs of a segment is let go before the file is named. Knows nothing of why an index is wanted.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::JsonbRef;
use rayon::prelude::*;

use crate::core::{Core, closing};
use crate::error::Result;
use crate::indexes::Index;
use crate::indexes::entries::Entries;
use crate::indexes::file::{SegmentIndex, header, index_file_name};
use crate::indexes::from_columns::{Made, run_of};
use crate::indexes::keys::{Facts, KeyMaker};
use crate::io::{Storage, TEMPORARY_SUFFIX};
use crate::manifest::IndexFileRef;
use crate::mvcc::version::Sealed;
use crate::segment::BlockBuf;

/// Blocks whose entries one thread makes at a time.
const TASK_BLOCKS: u32 = 256;

/// A segment and the indexes that it lacks.
pub(super) type Lacking = (Arc<Sealed>, Vec<Arc<Index>>);

/// Writes the files of some indexes over some segments, each under its name and durable.
///
/// # Errors
/// `OutOfDiskSpace`, `Io`, `Corrupt`; `ShuttingDown` where it is time to end.
pub(super) fn make(core: &Core, wanted: &[Lacking]) -> Result<Vec<Vec<Arc<SegmentIndex>>>> {
    let made = wanted.par_iter().map(|lacking| files_of(core, lacking)).collect::<Result<Vec<_>>>()?;
    let mut all = Vec::with_capacity(made.len());
    for ((sealed, _), files) in wanted.iter().zip(made) {
        let mut own = Vec::with_capacity(files.len());
        for file in files {
            let name = index_file_name(sealed.segment.meta().id, file.index);
            core.storage.rename(&format!("{name}{TEMPORARY_SUFFIX}"), &name)?;
            own.push(Arc::new(SegmentIndex::new(Arc::clone(&core.storage), sealed.segment.meta(), file)));
        }
        all.push(own);
    }
    // One for all of them: none is named before.
    core.storage.sync_dir()?;
    // Mapped from here on: the name may go while it is read.
    all.iter().flatten().try_for_each(|own| own.facts().map(|_| ()))?;
    Ok(all)
}

/// The files over one segment, under temporary names.
fn files_of(core: &Core, (sealed, indexes): &Lacking) -> Result<Vec<IndexFileRef>> {
    let of_columns = |index: &Arc<Index>| -> Result<Option<IndexFileRef>> {
        if core.closing.load(Ordering::Relaxed) {
            return Err(closing());
        }
        let made = sealed.columns()?.map(|source| run_of(source, &index.definition)).transpose()?.flatten();
        made.map(|made| write(core, sealed, index, made)).transpose()
    };
    let mut files = indexes.par_iter().map(of_columns).collect::<Result<Vec<_>>>()?;
    let rest: Vec<_> =
        indexes.iter().zip(&files).filter(|(_, file)| file.is_none()).map(|(index, _)| Arc::clone(index)).collect();
    if !rest.is_empty() {
        let of_documents = |(index, (mut entries, facts)): (&Arc<Index>, (Entries, Facts))| {
            entries.sort();
            let run = entries.to_run(sealed.segment.rows())?;
            write(core, sealed, index, Made { run, entries: entries.len() as u64, facts })
        };
        let entries = entries_of(core, sealed, &rest)?;
        let more = rest.par_iter().zip(entries).map(of_documents).collect::<Result<Vec<_>>>()?;
        let mut more = more.into_iter();
        files.iter_mut().filter(|file| file.is_none()).for_each(|file| *file = more.next());
    }
    Ok(files.into_iter().flatten().collect())
}

/// Writes the file of one index over one segment under a temporary name.
fn write(core: &Core, sealed: &Sealed, index: &Index, made: Made) -> Result<IndexFileRef> {
    let meta = sealed.segment.meta();
    let Made { run, entries, facts } = made;
    let header = header(meta, index.id, facts, entries, run.len());
    write_temporary(&*core.storage, &index_file_name(meta.id, index.id), [&header, &run])?;
    let crc = crc32c::crc32c_append(crc32c::crc32c(&header), &run);
    Ok(IndexFileRef { index: index.id, crc, len: (header.len() + run.len()) as u64, entries })
}

fn write_temporary(storage: &dyn Storage, name: &str, [header, run]: [&[u8]; 2]) -> Result<()> {
    let temporary = format!("{name}{TEMPORARY_SUFFIX}");
    if storage.exists(&temporary)? {
        storage.remove(&temporary)?;
    }
    let file = storage.create(&temporary, 0)?;
    let written = file.write_at(0, header).and_then(|()| file.write_at(header.len() as u64, run));
    let written = written.and_then(|()| file.sync_data());
    if written.is_err() {
        // Failing leaves a temporary file, which the next opening sweeps away.
        let _ = storage.remove(&temporary);
    }
    written
}

/// The entries of all rows of a segment in some indexes, not sorted yet.
fn entries_of(core: &Core, sealed: &Sealed, indexes: &[Arc<Index>]) -> Result<Vec<(Entries, Facts)>> {
    let blocks = sealed.segment.block_count()?;
    let task = |first: u32| -> Result<Vec<(Entries, Facts)>> {
        let mut made: Vec<(Entries, KeyMaker)> = indexes.iter().map(|_| Default::default()).collect();
        let mut buffer = BlockBuf::default();
        for block in first..blocks.min(first + TASK_BLOCKS) {
            if core.closing.load(Ordering::Relaxed) {
                return Err(closing());
            }
            let view = sealed.segment.read_block_into(block, &mut buffer)?;
            for (row, bytes) in view.rows().zip(view.docs()) {
                let document = JsonbRef::from_valid(bytes);
                for (index, (entries, maker)) in indexes.iter().zip(&mut made) {
                    let taken = maker.each(&index.definition, document, |key| entries.push(key, row));
                    maker.facts.incomplete |= taken.is_err();
                }
            }
        }
        Ok(made.into_iter().map(|(entries, maker)| (entries, maker.facts)).collect())
    };
    let firsts: Vec<u32> = (0..blocks).step_by(TASK_BLOCKS as usize).collect();
    let mut parts = firsts.par_iter().map(|&first| task(first)).collect::<Result<Vec<_>>>()?.into_iter();
    let Some(mut all) = parts.next() else { return Ok(indexes.iter().map(|_| Default::default()).collect()) };
    for part in parts {
        for ((entries, facts), (more, of_more)) in all.iter_mut().zip(part) {
            entries.append(&more);
            facts.merge(of_more);
        }
    }
    Ok(all)
}
