//! How an aggregation runs, as a tree for a person, with what it took: it is run, nothing is given and nothing written.

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

use quarrydb_query::pipeline::Stage as PipelineStage;

use super::Aggregation;
use super::input::Input;
use super::run;
use crate::error::Result;
use crate::exec::explain::{Explained, Stage, Took, id_lookup, leaf, number, text, walked};
use quarrydb_query::Transform;

impl Aggregation {
    /// How it finds and makes its documents, and what that takes.
    ///
    /// # Errors
    /// As [`Aggregation::each`].
    pub fn explain(self) -> Result<Explained> {
        let Self { mut plan, mut input, host, .. } = self;
        let writes = plan.take_write();
        let mut took = Took::begin();
        let result = run::run(&plan, &mut input, &host, &mut |_| {
            took.rows += 1;
            Ok(ControlFlow::Continue(()))
        });
        result.map_err(|fault| host.error(fault))?;
        took.examined = host.examined();
        let mut found = match &input {
            Input::Nothing => Stage::new(if plan.reads { "DocumentScan" } else { "Documents" }, Vec::new()),
            Input::Scan(scan) => {
                took.look_at(scan)?;
                leaf(scan, &mut took.columns)?
            }
            Input::Cursor(cursor) => match cursor.scan() {
                None => id_lookup(),
                Some(scan) => {
                    took.look_at(scan)?;
                    took.examined += scan.examined.load(Ordering::Relaxed);
                    match cursor.sort_index() {
                        Some((name, decides)) => walked(scan, name, *decides),
                        None => leaf(scan, &mut took.columns)?,
                    }
                }
            },
        };
        if let Input::Cursor(cursor) = &input {
            if plan.sort.is_some() && cursor.scan().is_some() {
                let method = match (cursor.sort_index(), cursor.spilled_bytes()) {
                    (Some(_), _) => "indexOrder",
                    (None, 0) => "topK",
                    (None, _) => "external",
                };
                found = Stage::on("Sort", vec![("method", text(method))], found);
            }
            if plan.skip > 0 {
                found = Stage::on("Skip", vec![("skip", number(plan.skip))], found);
            }
            if let Some(limit) = plan.limit {
                found = Stage::on("Limit", vec![("limit", number(limit))], found);
            }
        }
        let spilled = host.spilled();
        let mut of_rest = plan.rest.iter();
        for stage in &plan.each {
            found = described(stage, spilled, found);
        }
        if host.ran_on_columns()
            && let Some(first) = of_rest.next()
        {
            let name = if matches!(first, PipelineStage::Group(_)) { "Group" } else { "Count" };
            found = Stage::on(name, vec![("method", text("columnar"))], found);
        }
        for stage in of_rest.chain(&writes) {
            found = described(stage, spilled, found);
        }
        took.explained(found)
    }
}

/// A stage that runs on documents.
fn described(stage: &PipelineStage, spilled: u64, input: Stage) -> Stage {
    let (name, facts) = match stage {
        PipelineStage::Match(_) => ("Filter", vec![]),
        PipelineStage::Transform(transform) => match &**transform {
            Transform::AddFields(_) => ("AddFields", vec![]),
            Transform::Project(_) => ("Project", vec![]),
            _ => ("ReplaceRoot", vec![]),
        },
        PipelineStage::Limit(limit) => ("Limit", vec![("limit", number(*limit))]),
        PipelineStage::Skip(skip) => ("Skip", vec![("skip", number(*skip))]),
        PipelineStage::Count(_) => ("Count", vec![("method", text("document"))]),
        PipelineStage::Group(_) => ("Group", keeping("document", spilled)),
        PipelineStage::Sort(_) => ("Sort", keeping(if spilled > 0 { "external" } else { "inMemory" }, spilled)),
        PipelineStage::Sample(_) => ("Sample", vec![]),
        PipelineStage::Unwind(_) => ("Unwind", vec![]),
        PipelineStage::Redact(_) => ("Redact", vec![]),
        PipelineStage::Facet(_) => ("Facet", vec![]),
        PipelineStage::Lookup(lookup) => ("Lookup", lookup.from.iter().map(|from| ("from", text(from))).collect()),
        PipelineStage::GraphLookup(graph) => ("GraphLookup", vec![("from", text(&graph.from))]),
        PipelineStage::UnionWith(_) => ("UnionWith", vec![]),
        PipelineStage::Documents(_) => return input,
        PipelineStage::CollStats(_) => ("CollStats", vec![]),
        PipelineStage::IndexStats(_) => ("IndexStats", vec![]),
        PipelineStage::Write(_) => ("Write", vec![]),
        PipelineStage::BucketAuto(_) => ("BucketAuto", keeping("document", spilled)),
        PipelineStage::SetWindowFields(_) => ("SetWindowFields", keeping("document", spilled)),
        PipelineStage::Densify(_) => ("Densify", keeping("document", spilled)),
        _ => ("Stage", vec![]),
    };
    Stage::on(name, facts, input)
}

/// How a stage that keeps documents did it. The bytes are those of all of them that went to the disk.
fn keeping(method: &str, spilled: u64) -> Vec<(&'static str, quarrydb_jsonb::JsonbBuf)> {
    let mut facts = vec![("method", text(method))];
    if spilled > 0 {
        facts.push(("spilledBytes", number(spilled)));
    }
    facts
}
