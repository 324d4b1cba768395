//! Questions that a look at a few places in memory answers, so that they need no other thread: whether one is such, and
//! how many rows it has.
//!
//! What would wait for a disk, make columns or look through many values is not at hand: whoever asks is told so at once,
//! and asks again where it may take its time. The answers are those of `scan.rs`.

use std::sync::Arc;

use quarrydb_query::Filter;

use super::by_index::best;
use super::parts::{Part, PartColumns};
use super::scan::{Ask, Scan};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::mvcc::version::Sealed;

/// Rows of a tail without columns that are few enough.
pub(crate) const ROWS_MAX: u32 = 256;
/// Parts of tails that have columns, looked through in memory.
const CHUNKS_MAX: usize = 2;
/// Rows in them that are looked through for a count.
const SCANNED_MAX: u32 = 1 << 15;
/// Parts that are asked one after the other.
const PARTS_MAX: usize = 32;

/// The scan of a filter, where its parts are few.
fn scan(core: &Arc<Core>, collection: &CollectionState, filter: &Filter) -> Result<Option<Scan>> {
    let snapshot = core.snapshot();
    let scan = Scan::new(collection, snapshot, filter.clone(), None, Ask::AtHand.within(&core.options))?;
    let is_plain = |part: &Part| {
        matches!(part.columns, PartColumns::None) && part.rows > ROWS_MAX && part.selection.get().is_none()
    };
    let few = scan.parts.len() <= PARTS_MAX && !scan.parts.iter().any(is_plain);
    Ok(few.then_some(scan))
}

/// Whether a snapshot sees all rows of a segment.
fn is_seen(scan: &Scan, sealed: &Sealed) -> bool {
    sealed.deletes.is_empty() && sealed.segment.meta().max_seq <= scan.seq()
}

/// How many documents match, if that is at hand.
///
/// # Errors
/// `Corrupt` and `Io` of what was read before.
pub(crate) fn count(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    filter: &Filter,
    skip: u64,
    limit: Option<u64>,
) -> Result<Option<u64>> {
    let Some(collection) = collection else { return Ok(Some(0)) };
    let Some(scan) = scan(core, collection, filter)? else { return Ok(None) };
    let mut all = 0;
    for part in &scan.parts {
        if let PartColumns::Segment(sealed) = &part.columns {
            let Some(columns) = sealed.open_columns().filter(|_| is_seen(&scan, sealed)) else { return Ok(None) };
            match scan.prepared.count_at_hand(columns)? {
                Some(count) => all += count,
                None if sealed.indexes.are_open() => match scan.by_index(part)? {
                    Some(by_index) => match by_index.count()? {
                        Some(count) => all += count,
                        None => return Ok(None),
                    },
                    None => return Ok(None),
                },
                None => return Ok(None),
            }
        }
    }
    // Tails last: segments say sooner that it is not at hand.
    let mut looked = 0;
    for part in scan.parts.iter().filter(|part| !matches!(part.columns, PartColumns::Segment(_))) {
        let of_chunk = match &part.columns {
            PartColumns::Chunk(chunk) if scan.unseen(part)?.is_none() => scan.prepared.count_at_hand(chunk.source())?,
            _ => None,
        };
        let is_scanned = of_chunk.is_none() && matches!(part.columns, PartColumns::Chunk(_));
        looked += if is_scanned { part.rows } else { 0 };
        if looked > SCANNED_MAX {
            return Ok(None);
        }
        all += match of_chunk {
            Some(count) => count,
            None => scan.count_part(part)?,
        };
    }
    let examined = scan.examined.load(std::sync::atomic::Ordering::Relaxed);
    core.counters.documents_examined.fetch_add(examined, std::sync::atomic::Ordering::Relaxed);
    let after_skip = all.saturating_sub(skip);
    Ok(Some(limit.filter(|&limit| limit > 0).map_or(after_skip, |limit| after_skip.min(limit))))
}

/// Whether a few documents that match are found at hand.
///
/// # Errors
/// `Corrupt` and `Io` of what was read before.
pub(crate) fn find(core: &Arc<Core>, collection: Option<&CollectionState>, filter: &Filter) -> Result<bool> {
    let Some(collection) = collection else { return Ok(true) };
    if filter.is_everything() {
        return Ok(false);
    }
    let Some(scan) = scan(core, collection, filter)? else { return Ok(false) };
    if scan.parts.iter().filter(|part| matches!(part.columns, PartColumns::Chunk(_))).count() > CHUNKS_MAX {
        return Ok(false);
    }
    for part in &scan.parts {
        if let PartColumns::Segment(sealed) = &part.columns {
            let few = sealed.indexes.are_open()
                && best(&scan.indexes, sealed, filter)?.is_some_and(|found| found.is_few() && found.is_enough());
            if !few {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
