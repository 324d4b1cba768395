//! From a request to rows: by `_id`, by the counts at hand, or by a scan.

use std::sync::Arc;

use quarrydb_jsonb::{JsonbRef, id_hash};
use quarrydb_query::{Distinct, Filter, Projection, Sort};

use super::cursor::{Cursor, Wanted};
use super::scan::{Ask, Scan, matches};
use super::sort;
use super::view::View;
use crate::budget::Meter;
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::mvcc::Snapshot;
use crate::mvcc::version::StoredDocument;
use crate::options::Deadline;
use std::sync::atomic::Ordering;

/// What a `find` asks.
#[derive(Debug)]
#[non_exhaustive]
pub struct FindRequest {
    /// Which documents.
    pub filter: Filter,
    /// What of each; none: all of it.
    pub projection: Option<Projection>,
    /// In which order; none: row order.
    pub sort: Option<Sort>,
    /// Whether a sort that is larger than memory may use the disk.
    pub allow_disk_use: bool,
    /// How many to leave out in front.
    pub skip: u64,
    /// How many at most; none or 0: all.
    pub limit: Option<u64>,
    /// When to give up.
    pub deadline: Option<Deadline>,
}

impl FindRequest {
    /// All documents that `filter` matches.
    #[must_use]
    pub fn new(filter: Filter) -> Self {
        Self { filter, projection: None, sort: None, allow_disk_use: true, skip: 0, limit: None, deadline: None }
    }
}

/// The document that a filter with a known `_id` matches, as of now.
pub(crate) fn point(
    core: &Core,
    collection: &CollectionState,
    id: JsonbRef<'_>,
    filter: &Filter,
    deadline: Option<Deadline>,
) -> Result<Option<StoredDocument>> {
    let snapshot = core.snapshot();
    let version = collection.version();
    let Some(document) = version.find(id_hash(id), id, snapshot.seq())? else { return Ok(None) };
    core.counters.documents_examined.fetch_add(1, Ordering::Relaxed);
    Ok(matches(filter, document.view(), deadline)?.then_some(document))
}

/// Answers a `find`.
pub(crate) fn find(core: &Arc<Core>, collection: Option<&CollectionState>, request: FindRequest) -> Result<Cursor> {
    let Some(collection) = collection else { return of_found(core, None, request) };
    if let Some(id) = request.filter.id_point() {
        let found = point(core, collection, id, &request.filter, request.deadline)?;
        return of_found(core, found, request);
    }
    // The snapshot first, the version after it (see `mvcc`).
    let snapshot = core.snapshot();
    find_in(core, View::of(collection), snapshot, request)
}

/// Answers a `find` that is known to find this or nothing.
pub(crate) fn of_found(core: &Arc<Core>, found: Option<StoredDocument>, request: FindRequest) -> Result<Cursor> {
    let FindRequest { filter, projection, skip, deadline, .. } = request;
    let wanted = Wanted { projection: projection.map(|p| p.for_filter(&filter)).transpose()?, deadline };
    core.counters.cursors_opened.fetch_add(1, Ordering::Relaxed);
    Ok(Cursor::of_point(core, found.filter(|_| skip == 0), wanted))
}

/// Answers a `find` over a view.
pub(crate) fn find_in(core: &Arc<Core>, view: View, snapshot: Snapshot, request: FindRequest) -> Result<Cursor> {
    let FindRequest { filter, projection, sort, allow_disk_use, skip, limit, deadline } = request;
    let limit = limit.filter(|&limit| limit > 0);
    let wanted = Wanted { projection: projection.map(|p| p.for_filter(&filter)).transpose()?, deadline };
    core.counters.cursors_opened.fetch_add(1, Ordering::Relaxed);
    let ask = if sort.is_some() { Ask::Values } else { Ask::Filter };
    let scan = Scan::over(view, snapshot, filter, deadline, ask.within(&core.options))?;
    match sort {
        None => Cursor::of_scan(core, scan, wanted, skip, limit),
        Some(sort) => {
            let range = sort::Range { skip, limit, disk: allow_disk_use };
            let rows = sort::sorted(core, &scan, &sort, range)?;
            Cursor::of_rows(core, scan, rows, wanted)
        }
    }
}

/// Answers a `count`.
pub(crate) fn count(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    filter: Filter,
    skip: u64,
    limit: Option<u64>,
    deadline: Option<Deadline>,
) -> Result<u64> {
    let Some(collection) = collection else { return Ok(0) };
    let all = if filter.is_everything() {
        let snapshot = core.snapshot();
        collection.count_at(snapshot.seq())
    } else if let Some(id) = filter.id_point() {
        u64::from(point(core, collection, id, &filter, deadline)?.is_some())
    } else {
        let snapshot = core.snapshot();
        count_in(core, View::of(collection), snapshot, filter, deadline)?
    };
    Ok(between(all, skip, limit))
}

/// How many documents of a view match.
pub(crate) fn count_in(
    core: &Core,
    view: View,
    snapshot: Snapshot,
    filter: Filter,
    deadline: Option<Deadline>,
) -> Result<u64> {
    let scan = Scan::over(view, snapshot, filter, deadline, Ask::Filter.within(&core.options))?;
    let count = scan.count()?;
    core.counters.documents_examined.fetch_add(scan.examined.load(Ordering::Relaxed), Ordering::Relaxed);
    Ok(count)
}

/// What a skip and a limit leave of a count.
pub(crate) fn between(all: u64, skip: u64, limit: Option<u64>) -> u64 {
    let after_skip = all.saturating_sub(skip);
    limit.filter(|&limit| limit > 0).map_or(after_skip, |limit| after_skip.min(limit))
}

/// Answers a `distinct`.
pub(crate) fn distinct(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    distinct: &mut Distinct,
    filter: Filter,
    deadline: Option<Deadline>,
) -> Result<()> {
    let Some(collection) = collection else { return Ok(()) };
    let snapshot = core.snapshot();
    distinct_in(core, View::of(collection), snapshot, distinct, filter, deadline)
}

/// Adds the values of a view's documents that match.
pub(crate) fn distinct_in(
    core: &Core,
    view: View,
    snapshot: Snapshot,
    distinct: &mut Distinct,
    filter: Filter,
    deadline: Option<Deadline>,
) -> Result<()> {
    let scan = Scan::over(view, snapshot, filter, deadline, Ask::Values.within(&core.options))?;
    super::distinct::distinct(&scan, distinct, &Meter::new(&core.queries))?;
    core.counters.documents_examined.fetch_add(scan.examined.load(Ordering::Relaxed), Ordering::Relaxed);
    Ok(())
}
