//! How a reading finds its documents, as a tree for a person, with what it took when it was run.
//!
//! Takes a request; runs it, writes nothing, and gives the stages by their names in the API (section 6 of the contract).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::{Builder, JsonbBuf};

use super::cursor::Cursor;
use super::find::{self, FindRequest};
use super::scan::Scan;
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::io::clock::monotonic_nanos;

/// How an operation finds its documents, and what that took.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The stages, outermost first, each with its `input`.
    pub plan: JsonbBuf,
    /// Documents that were looked at.
    pub documents_examined: u64,
    /// Segments of the collection.
    pub segments_total: u64,
    /// Those that did not have to be looked into.
    pub segments_skipped: u64,
    /// Documents returned, or counted.
    pub rows_returned: u64,
    /// How long it took.
    pub time_micros: u64,
    /// Threads that could take part.
    pub threads: u64,
}

/// One stage: its name and what is worth telling of it.
type Stage = (&'static str, Vec<(&'static str, JsonbBuf)>);

fn text(value: &str) -> JsonbBuf {
    let mut builder = Builder::new();
    builder.string(value);
    JsonbBuf::from_valid(builder.take())
}

fn number(value: u64) -> JsonbBuf {
    let mut builder = Builder::new();
    builder.int64(value.cast_signed());
    JsonbBuf::from_valid(builder.take())
}

/// The stages as a tree; the first is the outermost.
fn tree(stages: &[Stage]) -> Result<JsonbBuf> {
    let mut builder = Builder::new();
    for (i, (name, facts)) in stages.iter().enumerate() {
        if i > 0 {
            builder.field("input");
        }
        builder.begin_object();
        builder.field("stage");
        builder.string(name);
        for (fact, value) in facts {
            builder.field(fact);
            builder.copy(value.view());
        }
    }
    for _ in stages {
        builder.end_object()?;
    }
    Ok(JsonbBuf::from_valid(builder.take()))
}

/// How the rows are found.
fn leaf(request: &FindRequest) -> Vec<Stage> {
    if request.filter.id_point().is_some() {
        return vec![("Filter", Vec::new()), ("IdLookup", vec![("indexName", text("_id_"))])];
    }
    match request.filter.is_everything() {
        true => vec![("DocumentScan", Vec::new())],
        false => vec![("Filter", Vec::new()), ("DocumentScan", Vec::new())],
    }
}

/// Explains a `find`.
pub(crate) fn explain_find(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    request: FindRequest,
) -> Result<Explained> {
    let mut stages: Vec<Stage> = Vec::new();
    if request.projection.is_some() {
        stages.push(("Project", Vec::new()));
    }
    let bounded = request.limit.filter(|&limit| limit > 0);
    if let Some(limit) = bounded {
        stages.push(("Limit", vec![("limit", number(limit))]));
    }
    if request.skip > 0 {
        stages.push(("Skip", vec![("skip", number(request.skip))]));
    }
    let is_point = request.filter.id_point().is_some();
    if request.sort.is_some() && !is_point {
        stages.push(("Sort", vec![("method", text(if bounded.is_some() { "topK" } else { "inMemory" }))]));
    }
    stages.extend(leaf(&request));
    let started = monotonic_nanos();
    let cursor = find::find(core, collection, request)?;
    let segments = cursor.scan().map_or(0, |scan| scan.version.segments.len() as u64);
    let (rows, examined) = drain(cursor)?;
    let segments_total = collection.map_or(0, |c| c.version().segments.len() as u64);
    explained(&stages, started, (rows, examined), (segments_total, segments_total.saturating_sub(segments)))
}

/// Explains a `count`.
pub(crate) fn explain_count(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    request: FindRequest,
) -> Result<Explained> {
    let from_metadata = request.filter.is_everything();
    let is_point = request.filter.id_point().is_some();
    let mut stages: Vec<Stage> = vec![("Count", Vec::new())];
    if from_metadata {
        stages.push(("CollectionCount", Vec::new()));
    } else {
        stages.extend(leaf(&request));
    }
    let started = monotonic_nanos();
    let before = core.counters.documents_examined.load(Ordering::Relaxed);
    let (skip, limit, deadline) = (request.skip, request.limit, request.deadline);
    let segments_total = collection.map_or(0, |c| c.version().segments.len() as u64);
    let examined;
    let rows = if from_metadata || is_point {
        let rows = find::count(core, collection, request.filter, skip, limit, deadline)?;
        examined =
            if from_metadata { 0 } else { rows.min(core.counters.documents_examined.load(Ordering::Relaxed) - before) };
        rows
    } else if let Some(collection) = collection {
        let snapshot = core.snapshot();
        let scan = Scan::new(collection.version(), snapshot, request.filter, deadline);
        let rows = scan.count()?.saturating_sub(skip);
        examined = scan.examined.load(Ordering::Relaxed);
        core.counters.documents_examined.fetch_add(examined, Ordering::Relaxed);
        limit.filter(|&limit| limit > 0).map_or(rows, |limit| rows.min(limit))
    } else {
        examined = 0;
        0
    };
    let skipped = if from_metadata || is_point { segments_total } else { 0 };
    explained(&stages, started, (rows, examined), (segments_total, skipped))
}

/// Reads a cursor to its end: how many documents there were and how many were looked at.
fn drain(mut cursor: Cursor) -> Result<(u64, u64)> {
    let mut rows = 0;
    while cursor.next()?.is_some() {
        rows += 1;
    }
    let examined = cursor.scan().map_or(rows, |scan| scan.examined.load(Ordering::Relaxed));
    Ok((rows, examined))
}

fn explained(
    stages: &[Stage],
    started: u64,
    (rows_returned, documents_examined): (u64, u64),
    (segments_total, segments_skipped): (u64, u64),
) -> Result<Explained> {
    Ok(Explained {
        plan: tree(stages)?,
        documents_examined,
        segments_total,
        segments_skipped,
        rows_returned,
        time_micros: monotonic_nanos().saturating_sub(started) / 1000,
        threads: rayon::current_num_threads() as u64,
    })
}
