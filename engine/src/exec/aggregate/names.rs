//! The collections that a pipeline names, with those in the pipelines inside its stages.
//!
//! Takes stages; gives names, as they stand there. Who runs the pipeline looks them up before it begins, so that all are
//! seen as of one moment, and whoever asks for it must be allowed to read or write each.

use quarrydb_query::pipeline::{Stage, SubPipeline, Write};

/// A collection that a stage names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    /// The database; none: the pipeline's own.
    pub db: Option<&'a str>,
    /// The collection.
    pub collection: &'a str,
    /// Whether it is written to.
    pub writes: bool,
}

/// All of them, each once for what is done with it. Nesting is bounded by the parser.
pub(crate) fn of(stages: &[Stage]) -> Vec<Named<'_>> {
    let mut names = Vec::new();
    add(stages, &mut names);
    names
}

fn add<'a>(stages: &'a [Stage], names: &mut Vec<Named<'a>>) {
    for stage in stages {
        match stage {
            Stage::Lookup(lookup) => {
                read(lookup.from.as_deref(), names);
                add_sub(lookup.pipeline.as_ref(), names);
            }
            Stage::GraphLookup(graph) => read(Some(&graph.from), names),
            Stage::UnionWith(union) => {
                read(union.collection.as_deref(), names);
                add_sub(union.pipeline.as_ref(), names);
            }
            Stage::Facet(facet) => facet.branches().iter().for_each(|(_, sub)| add_sub(Some(sub), names)),
            Stage::CollStats(stats) => read(stats.collection.as_deref(), names),
            Stage::IndexStats(stats) => read(stats.collection.as_deref(), names),
            Stage::Write(write) => {
                let (db, collection) = match &**write {
                    Write::Out(out) => (out.db.as_deref(), &*out.collection),
                    Write::Merge(merge) => (merge.db.as_deref(), &*merge.collection),
                };
                push(Named { db, collection, writes: true }, names);
            }
            _ => {}
        }
    }
}

fn add_sub<'a>(sub: Option<&'a SubPipeline>, names: &mut Vec<Named<'a>>) {
    if let Some(sub) = sub {
        add(sub.pipeline().stages(), names);
    }
}

fn read<'a>(collection: Option<&'a str>, names: &mut Vec<Named<'a>>) {
    if let Some(collection) = collection {
        push(Named { db: None, collection, writes: false }, names);
    }
}

fn push<'a>(name: Named<'a>, names: &mut Vec<Named<'a>>) {
    if !names.contains(&name) {
        names.push(name);
    }
}
