//! Questions that a look at a few places in memory answers, so that they need no other thread: whether one is such, and
//! how many rows it has.
//!
//! What would wait for a disk, make columns or look through many values is not at hand: whoever asks is told so at once,
//! and asks again where it may take its time. The answers are those of `scan.rs`.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_index::RowSet;
use quarrydb_jsonb::JsonbRef;
use quarrydb_query::Filter;

use super::by_index::ByIndex;
use super::cursor::{Wanted, projected};
use super::find::FindRequest;
use super::parts::{Part, PartColumns};
use super::scan::{Ask, RowAt, Scan, matches};
use super::select::Selection;
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::ids::RowId;
use crate::mvcc::version::Sealed;
use crate::plan::Rows;

/// Rows of a tail without columns that are few enough.
pub(crate) const ROWS_MAX: u32 = 256;
/// Parts of tails that have columns, looked through in memory.
const CHUNKS_MAX: usize = 2;
/// Rows in them that are looked through for a count.
const SCANNED_MAX: u32 = 1 << 15;
/// Parts that are asked one after the other.
const PARTS_MAX: usize = 32;

/// Whether the parts of a scan are few, and those without columns small.
fn is_few(scan: &Scan) -> bool {
    let is_plain = |part: &Part| {
        matches!(part.columns, PartColumns::None) && part.rows > ROWS_MAX && part.selection.get().is_none()
    };
    scan.parts.len() <= PARTS_MAX && !scan.parts.iter().any(is_plain)
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
    let scan = Scan::new(collection, core.snapshot(), filter.clone(), None, Ask::AtHand.within(&core.options))?;
    if !is_few(&scan) {
        return Ok(None);
    }
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
    let examined = scan.examined.load(Ordering::Relaxed);
    core.counters.documents_examined.fetch_add(examined, Ordering::Relaxed);
    let after_skip = all.saturating_sub(skip);
    Ok(Some(limit.filter(|&limit| limit > 0).map_or(after_skip, |limit| after_skip.min(limit))))
}

/// The parts of tails that have columns.
fn chunks(scan: &Scan) -> usize {
    scan.parts.iter().filter(|part| matches!(part.columns, PartColumns::Chunk(_))).count()
}

/// The few rows of a segment that a declared index leaves, where one is read already.
fn few_by_index(scan: &Scan, part: &Part, sealed: &Sealed) -> Result<Option<ByIndex>> {
    let found = if sealed.indexes.are_open() { scan.by_index(part)? } else { None };
    Ok(found.filter(|found| found.is_few() && found.is_enough()))
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
    let scan = Scan::new(collection, core.snapshot(), filter.clone(), None, Ask::AtHand.within(&core.options))?;
    if !is_few(&scan) || chunks(&scan) > CHUNKS_MAX {
        return Ok(false);
    }
    for part in &scan.parts {
        if let PartColumns::Segment(sealed) = &part.columns
            && few_by_index(&scan, part, sealed)?.is_none()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Gives the first document that a request asks for, projected, if it is at hand; else the request comes back.
///
/// # Errors
/// `Corrupt` and `Io` of what was read before; the filter's and the projection's own.
pub(crate) fn find_one(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    request: FindRequest,
    give: &mut dyn FnMut(JsonbRef<'_>),
) -> Result<Option<FindRequest>> {
    let Some(collection) = collection else { return Ok(None) };
    if request.sort.is_some() || request.filter.is_everything() {
        return Ok(Some(request));
    }
    let FindRequest { filter, projection, sort: _, skip, limit, deadline, allow_disk_use } = request;
    let later = |filter, projection| {
        Ok(Some(FindRequest { filter, projection, sort: None, skip, limit, deadline, allow_disk_use }))
    };
    let scan = Scan::new(collection, core.snapshot(), filter, deadline, Ask::AtHand.within(&core.options))?;
    if !is_few(&scan) || chunks(&scan) > CHUNKS_MAX {
        return later(scan.filter, projection);
    }
    let wanted = match &projection {
        Some(own) => Wanted { projection: Some(own.clone().for_filter(&scan.filter)?), deadline },
        None => Wanted { projection: None, deadline },
    };
    let mut left = skip;
    let mut take = |document: JsonbRef<'_>| {
        if left > 0 {
            left -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        match wanted.projection {
            None => give(document),
            Some(_) => give(projected(&wanted, document)?.view()),
        }
        Ok(ControlFlow::Break(()))
    };
    for (index, part) in scan.parts.iter().enumerate() {
        let flow = if let PartColumns::Segment(sealed) = &part.columns {
            let Some(by_index) = few_by_index(&scan, part, sealed)? else { return later(scan.filter, projection) };
            let selection = Selection::new(by_index.answer(part.rows)?, scan.unseen(part)?, part.rows);
            few_rows(&scan, part, &selection, &mut take)?
        } else {
            scan.run_part(index, &mut take)?
        };
        if flow.is_break() {
            break;
        }
    }
    let examined = scan.examined.load(Ordering::Relaxed);
    core.counters.documents_examined.fetch_add(examined, Ordering::Relaxed);
    core.counters.cursors_opened.fetch_add(1, Ordering::Relaxed);
    Ok(None)
}

/// The matching rows of few, each read by itself: its block is likely to be wanted again.
fn few_rows(
    scan: &Scan,
    part: &Part,
    selection: &Selection,
    take: &mut dyn FnMut(JsonbRef<'_>) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let rows = match &selection.rows {
        Rows::None => return Ok(ControlFlow::Continue(())),
        Rows::All => RowSet::range(0..part.rows),
        Rows::Some(rows) => rows.clone(),
    };
    let exact = selection.is_exact();
    for row in rows.iter() {
        let at = RowAt { source: part.source, row: RowId::from_raw(part.first + row.number()) };
        let document = scan.address(at).document()?;
        scan.examined.fetch_add(1, Ordering::Relaxed);
        if (exact || matches(&scan.filter, document.view(), scan.deadline)?) && take(document.view())?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
