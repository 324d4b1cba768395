//! Aggregation pipelines, and their meaning: one document after another through the stages.
//!
//! Takes the `pipeline` of a body, gives stages; `run.rs` sends documents through them. That is the reference: what
//! columns, many threads and temporary files answer must equal it. What other collections hold, how much memory there is and
//! when to stop is asked of a [`Host`]. It never knows how documents were found.
//!
//! Reading order: `stage.rs` (the stages by name), `host.rs`, `operator.rs` (what a running stage is), `run.rs`, then a file for each stage.

pub mod accumulate;
mod basic;
mod bucket;
mod bucket_auto;
mod densify;
mod densify_spec;
mod facet;
mod fill;
mod foreign;
mod granularity;
mod graph_lookup;
mod group;
mod group_table;
mod host;
mod lookup;
mod merge;
mod operator;
mod options;
mod redact;
mod refused;
mod room;
mod run;
mod sort;
mod sorter;
mod stage;
mod stats;
mod sub;
mod union_with;
mod unwind;
mod values;
pub mod window;
mod within;
mod write;
mod written;

pub use bucket_auto::BucketAuto;
pub use densify::Densify;
pub use facet::Facet;
pub use graph_lookup::GraphLookup;
pub use group::{Group, GroupField, GroupId};
pub use group_table::{GroupTable, Grouping};
pub use host::{Fault, Host, KeyAndPayload, Pace, Spill, Spilled};
pub use lookup::Lookup;
pub use merge::{Merge, MergePipeline, Merged, WhenMatched, WhenNotMatched};
pub use operator::{Flow, Next, Operator};
pub use run::Run;
pub use sort::wanted;
pub use stage::Stage;
pub use stats::{CollStats, IndexStats};
pub use sub::SubPipeline;
pub use union_with::UnionWith;
pub use unwind::Unwind;
pub use window::SetWindowFields;
pub(crate) use within::Within;
pub use write::{Out, Write};

use crate::limits::PIPELINE_STAGES_MAX;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{ArrayRef, JsonbRef};

/// A parsed pipeline.
#[derive(Debug, Default)]
pub struct Pipeline {
    stages: Vec<Stage>,
}

impl Pipeline {
    /// Parses the array of a body.
    ///
    /// # Errors
    /// `TypeMismatch` (14) where it is no array, 40323 for a stage that is no object of one field, 40324 for one that is
    /// not known, those of the stages; with their place.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let Some(stages) = value.as_array() else {
            let message = format!("a pipeline is an array of stages, not {}", value.kind().alias());
            return Err(QueryError::type_mismatch(message).at(&context.place));
        };
        let _patterns = crate::PatternCount::open();
        let mut parsed = Self { stages: Vec::with_capacity(stages.len().min(PIPELINE_STAGES_MAX)) };
        let mut context = *context;
        context.within.add_stages(stages.len()).map_err(|e| e.at(&context.place))?;
        let mut at = 0;
        each_stage(stages, &context, |name, value, context| {
            let checked = context.within.check(name, at, stages.len());
            at += 1;
            checked
                .and_then(|()| Stage::parse(name, value, context, &mut parsed.stages))
                .map_err(|e| e.at(&context.place))
        })?;
        Ok(parsed)
    }

    /// Whether it takes the documents of a collection; where not, its first stage brings its own.
    #[must_use]
    pub fn reads_input(&self) -> bool {
        self.stages.first().is_none_or(Stage::reads_input)
    }

    /// The stages in their order. Those that stand for others (`$sortByCount`) have given way to them.
    #[must_use]
    pub fn stages(&self) -> &[Stage] {
        &self.stages
    }

    /// The stages, to be rearranged by who knows a faster way.
    #[must_use]
    pub fn into_stages(self) -> Vec<Stage> {
        self.stages
    }
}

/// Calls `stage` with the name, the value and the place of each stage.
pub(crate) fn each_stage(
    stages: ArrayRef<'_>,
    context: &ParseContext<'_>,
    mut stage: impl FnMut(&str, JsonbRef<'_>, &ParseContext<'_>) -> Result<(), QueryError>,
) -> Result<(), QueryError> {
    if stages.len() > PIPELINE_STAGES_MAX {
        let message = format!("a pipeline has at most {PIPELINE_STAGES_MAX} stages, not {}", stages.len());
        return Err(QueryError::failed_to_parse(message).at(&context.place));
    }
    for (i, value) in stages.iter().enumerate() {
        let place = context.place.index(i);
        let entry = value.as_object().filter(|o| o.len() == 1).and_then(|o| o.iter().next());
        let Some(entry) = entry else {
            let message = "a pipeline stage is an object with exactly one field";
            return Err(QueryError::location(40323, message).at(&place));
        };
        stage(entry.name(), entry.value, &context.at(place.name(entry.name())))?;
    }
    Ok(())
}
