//! How a reading finds its documents, as a tree for a person, with what it took when it was run.
//!
//! Takes a request; runs it, writes nothing, and gives the stages by their names in the API (section 6 of the contract).

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::{Builder, JsonbBuf};
use quarrydb_query::Filter;

use super::find::{self, FindRequest};
use super::scan::{Ask, Scan};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::io::clock::monotonic_nanos;
use crate::plan;

/// How an operation finds its documents, and what that took.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The stages, outermost first, each with its `input`.
    pub plan: JsonbBuf,
    /// Documents that were looked at.
    pub documents_examined: u64,
    /// Paths whose columns were read.
    pub columns_read: u64,
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

/// One stage: its name, what is worth telling of it, and what it works on.
pub(super) struct Stage {
    name: &'static str,
    facts: Vec<(&'static str, JsonbBuf)>,
    inputs: Vec<Stage>,
}

impl Stage {
    pub(super) fn new(name: &'static str, facts: Vec<(&'static str, JsonbBuf)>) -> Self {
        Self { name, facts, inputs: Vec::new() }
    }

    pub(super) fn on(name: &'static str, facts: Vec<(&'static str, JsonbBuf)>, input: Self) -> Self {
        Self { name, facts, inputs: vec![input] }
    }

    /// Stages of columns; `only` says that no document is read.
    fn of_columns(stage: plan::Stage, only: bool) -> Self {
        let mut facts = Vec::new();
        facts.extend(stage.index.as_ref().map(|name| ("indexName", text(name))));
        facts.extend(stage.path.as_ref().map(|path| ("path", text(path))));
        if only && (stage.path.is_some() || stage.index.is_some()) {
            facts.push(("indexOnly", boolean(true)));
        }
        Self {
            name: stage.name,
            facts,
            inputs: stage.inputs.into_iter().map(|input| Self::of_columns(input, only)).collect(),
        }
    }

    /// One input is `input`, several are `inputs`.
    fn print(&self, builder: &mut Builder) -> Result<()> {
        builder.begin_object();
        builder.field("stage");
        builder.string(self.name);
        for (fact, value) in &self.facts {
            builder.field(fact);
            builder.copy(value.view());
        }
        match &*self.inputs {
            [] => {}
            [input] => {
                builder.field("input");
                input.print(builder)?;
            }
            inputs => {
                builder.field("inputs");
                builder.begin_array();
                inputs.iter().try_for_each(|input| input.print(builder))?;
                builder.end_array()?;
            }
        }
        builder.end_object()?;
        Ok(())
    }
}

pub(super) fn text(value: &str) -> JsonbBuf {
    built(|builder| builder.string(value))
}

pub(super) fn number(value: u64) -> JsonbBuf {
    built(|builder| builder.int64(value.cast_signed()))
}

fn boolean(value: bool) -> JsonbBuf {
    built(|builder| builder.bool(value))
}

fn built(make: impl FnOnce(&mut Builder)) -> JsonbBuf {
    let mut builder = Builder::new();
    make(&mut builder);
    JsonbBuf::from_valid(builder.take())
}

/// How the rows of a scan are found, once they were.
pub(super) fn leaf(scan: &Scan, columns: &mut u64) -> Result<Stage> {
    let residue = |stage| if scan.filter.is_everything() { stage } else { Stage::on("Filter", Vec::new(), stage) };
    let Some(stage) = scan.describe()? else { return Ok(residue(Stage::new("DocumentScan", Vec::new()))) };
    let mut paths = Vec::new();
    stage.paths(&mut paths);
    paths.sort_unstable();
    paths.dedup();
    *columns = paths.len() as u64;
    let exact = scan.is_exact()?;
    let stage = Stage::of_columns(stage, exact);
    Ok(if exact { stage } else { residue(stage) })
}

/// How the rows of a scan are found that come in the order of an index.
pub(super) fn walked(scan: &Scan, index: &str, decides: bool) -> Stage {
    let stage = Stage::new("RangeIndex", vec![("indexName", text(index))]);
    if decides || scan.filter.is_everything() { stage } else { Stage::on("Filter", Vec::new(), stage) }
}

/// Explains a `find`.
pub(crate) fn explain_find(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    request: FindRequest,
) -> Result<Explained> {
    let mut outer: Vec<Stage> = Vec::new();
    if request.projection.is_some() {
        outer.push(Stage::new("Project", Vec::new()));
    }
    let bounded = request.limit.filter(|&limit| limit > 0);
    if let Some(limit) = bounded {
        outer.push(Stage::new("Limit", vec![("limit", number(limit))]));
    }
    if request.skip > 0 {
        outer.push(Stage::new("Skip", vec![("skip", number(request.skip))]));
    }
    let point = is_point(&request);
    let sorts = request.sort.is_some() && !point;
    let mut took = Took::of(collection);
    let mut cursor = find::find(core, collection, request)?;
    if sorts {
        let method = match (cursor.sort_index(), cursor.spilled_bytes(), bounded) {
            (Some(_), ..) => "indexOrder",
            (None, 0, Some(_)) => "topK",
            (None, 0, None) => "inMemory",
            _ => "external",
        };
        outer.push(Stage::new("Sort", vec![("method", text(method))]));
    }
    let in_order_of = cursor.sort_index().cloned();
    while cursor.next()?.is_some() {
        took.rows += 1;
    }
    let found = match cursor.scan() {
        Some(scan) => {
            took.look_at(scan)?;
            took.examined = scan.examined.load(Ordering::Relaxed);
            match in_order_of {
                Some((name, decides)) => walked(scan, &name, decides),
                None => leaf(scan, &mut took.columns)?,
            }
        }
        None if point => {
            took.examined = took.rows;
            took.skipped = took.segments;
            id_lookup()
        }
        None => Stage::new("DocumentScan", Vec::new()),
    };
    took.explained(outer.into_iter().rev().fold(found, |input, stage| Stage { inputs: vec![input], ..stage }))
}

/// Explains a `count`.
pub(crate) fn explain_count(
    core: &Arc<Core>,
    collection: Option<&CollectionState>,
    request: FindRequest,
) -> Result<Explained> {
    let mut took = Took::of(collection);
    let point = is_point(&request);
    let (skip, limit, deadline) = (request.skip, request.limit, request.deadline);
    let input = match collection {
        Some(collection) if !request.filter.is_everything() && !point => {
            let scan = |filter: &Filter| {
                let snapshot = core.snapshot();
                let ask = Ask::Filter.within(&core.options);
                Scan::new(collection, snapshot, filter.clone(), deadline, ask)
            };
            // A tail's few rows get columns when they are asked for again: so they do here, as for whoever counts twice.
            drop(scan(&request.filter)?);
            let scan = scan(&request.filter)?;
            let rows = scan.count()?.saturating_sub(skip);
            took.rows = limit.filter(|&limit| limit > 0).map_or(rows, |limit| rows.min(limit));
            took.look_at(&scan)?;
            took.examined = scan.examined.load(Ordering::Relaxed);
            core.counters.documents_examined.fetch_add(took.examined, Ordering::Relaxed);
            leaf(&scan, &mut took.columns)?
        }
        _ => {
            let everything = request.filter.is_everything();
            let before = core.counters.documents_examined.load(Ordering::Relaxed);
            took.rows = find::count(core, collection, request.filter, skip, limit, deadline)?;
            took.skipped = took.segments;
            if point {
                took.examined = took.rows.min(core.counters.documents_examined.load(Ordering::Relaxed) - before);
            }
            match (everything, point) {
                (true, _) => Stage::new("CollectionCount", vec![("indexOnly", boolean(true))]),
                (_, true) => id_lookup(),
                _ => Stage::new("DocumentScan", Vec::new()),
            }
        }
    };
    took.explained(Stage::on("Count", Vec::new(), input))
}

fn is_point(request: &FindRequest) -> bool {
    request.filter.id_point().is_some()
}

pub(super) fn id_lookup() -> Stage {
    Stage::on("Filter", Vec::new(), Stage::new("IdLookup", vec![("indexName", text("_id_"))]))
}

/// What a reading took.
pub(super) struct Took {
    started: u64,
    pub rows: u64,
    pub examined: u64,
    pub columns: u64,
    segments: u64,
    skipped: u64,
}

impl Took {
    /// Nothing yet.
    pub(super) fn begin() -> Self {
        Self { started: monotonic_nanos(), rows: 0, examined: 0, columns: 0, segments: 0, skipped: 0 }
    }

    fn of(collection: Option<&CollectionState>) -> Self {
        let segments = collection.map_or(0, |c| c.version().segments.len() as u64);
        Self { segments, ..Self::begin() }
    }

    pub(super) fn look_at(&mut self, scan: &Scan) -> Result<()> {
        self.segments = scan.version.segments.len() as u64;
        self.skipped = scan.segments_skipped()?;
        Ok(())
    }

    pub(super) fn explained(self, plan: Stage) -> Result<Explained> {
        let time_micros = monotonic_nanos().saturating_sub(self.started) / 1000;
        let mut builder = Builder::new();
        plan.print(&mut builder)?;
        Ok(Explained {
            plan: JsonbBuf::from_valid(builder.take()),
            documents_examined: self.examined,
            columns_read: self.columns,
            segments_total: self.segments,
            segments_skipped: self.skipped,
            rows_returned: self.rows,
            time_micros,
            threads: rayon::current_num_threads() as u64,
        })
    }
}
