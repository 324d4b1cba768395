//! A pipeline inside a stage: `$lookup`, `$unionWith`, `$facet`.
//!
//! Parsed with its stage. Where the stage binds variables, the text is kept and parsed again with their values as
//! constants, so that filters in it are what indexes and columns can answer. Running one reads its collection by the
//! filter that it begins with. Next: `lookup.rs`.

use super::Pipeline;
use super::host::{Fault, Host};
use super::operator::Flow;
use super::room::with_room;
use super::run::Run;
use super::stage::Stage;
use super::within::{Inside, Within};
use crate::expr::{LetVariables, visible};
use crate::limits::{KEPT_PIPELINE_BYTES_MAX, SUB_PIPELINES_MAX};
use crate::{Filter, ParseContext, Place, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use std::sync::Arc;

/// A pipeline inside a stage.
#[derive(Debug)]
pub struct SubPipeline {
    /// As it was parsed; where variables are bound, with null for each.
    pipeline: Arc<Pipeline>,
    unbound: Option<Unbound>,
    repeatable: bool,
}

/// A text whose variables are to be bound.
#[derive(Debug)]
struct Unbound {
    text: JsonbBuf,
    place: String,
    now_ms: i64,
    names: Vec<Box<str>>,
    outer: LetVariables,
    collection: Option<Box<str>>,
    depth: usize,
    stages: usize,
    kept: usize,
}

/// A value of a variable; none where it is missing.
pub(super) type Bound = Option<Arc<JsonbBuf>>;

impl SubPipeline {
    /// Parses one that sees `names` beside the variables around it.
    ///
    /// # Errors
    /// Those of [`Pipeline::parse`]; `MaxSubPipelineDepthExceeded` (232).
    pub(super) fn parse(
        value: JsonbRef<'_>,
        context: &ParseContext<'_>,
        inside: Inside<'_>,
        names: &[&str],
    ) -> Result<Self, QueryError> {
        let mut within = Within { inside, ..context.within };
        let collection = within.collection().map(Box::from);
        if inside != Inside::Facet {
            within.depth += 1;
        }
        if within.depth > SUB_PIPELINES_MAX {
            let message = format!("Maximum number of nested sub-pipelines exceeded. Limit is {SUB_PIPELINES_MAX}");
            return Err(QueryError::new("MaxSubPipelineDepthExceeded", 232, message).at(&context.place));
        }
        let repeatable = !draws(value.as_bytes());
        if names.is_empty() {
            let pipeline = Pipeline::parse(value, &ParseContext { within, ..*context })?;
            return Ok(Self { pipeline: Arc::new(pipeline), unbound: None, repeatable });
        }
        within.kept += value.as_bytes().len();
        if within.kept > KEPT_PIPELINE_BYTES_MAX {
            let message = format!("pipelines with variables take more than {KEPT_PIPELINE_BYTES_MAX} bytes together");
            return Err(QueryError::new("ExceededMemoryLimit", 146, message).at(&context.place));
        }
        let unbound = Unbound {
            text: value.to_buf(),
            place: context.place.to_string(),
            now_ms: context.now_ms,
            names: names.iter().map(|&n| n.into()).collect(),
            outer: visible(context)?,
            collection,
            depth: within.depth,
            stages: within.stages,
            kept: within.kept,
        };
        let null = Arc::new(quarrydb_jsonb::NULL.to_buf());
        let pipeline = unbound.bind(inside, names.iter().map(|_| Some(Arc::clone(&null))))?;
        Ok(Self { pipeline: Arc::new(pipeline), unbound: Some(unbound), repeatable })
    }

    /// The pipeline; where its stage binds variables, with null for each of them.
    #[must_use]
    pub fn pipeline(&self) -> &Pipeline {
        &self.pipeline
    }

    /// Whether it gives the same whenever it is given the same: nothing in it is drawn at random.
    #[must_use]
    pub fn is_repeatable(&self) -> bool {
        self.repeatable
    }

    /// The pipeline with the values of its variables, in the order of their names. `lookup` says whether it stands in one.
    pub(super) fn bound(&self, values: &[Bound]) -> Result<Arc<Pipeline>, QueryError> {
        match &self.unbound {
            None => Ok(Arc::clone(&self.pipeline)),
            Some(unbound) => {
                let inside = Inside::Lookup(unbound.collection.as_deref());
                unbound.bind(inside, values.iter().cloned()).map(Arc::new)
            }
        }
    }
}

impl Unbound {
    fn bind(&self, inside: Inside<'_>, values: impl Iterator<Item = Bound>) -> Result<Pipeline, QueryError> {
        let variables = self.outer.iter().cloned().chain(self.names.iter().cloned().zip(values)).collect();
        let variables = LetVariables::new(variables);
        let mut context = ParseContext::new("").at(Place::root(&self.place)).with_now(self.now_ms);
        context.bound = Some(&variables);
        context.within = Within { inside, depth: self.depth, stages: self.stages, kept: self.kept };
        Pipeline::parse(self.text.view(), &context)
    }
}

/// Whether a text may hold something that is new each time: a word like `$rand` or `$sample` anywhere in it.
fn draws(text: &[u8]) -> bool {
    [b"$rand".as_slice(), b"$sample", b"$createObjectId"]
        .iter()
        .any(|word| text.windows(word.len()).any(|t| t == *word))
}

/// The filter that a pipeline begins with, and the stages behind it.
pub(super) fn beginning(stages: &[Stage]) -> (Option<&Filter>, &[Stage]) {
    match stages {
        [Stage::Match(filter), rest @ ..] => (Some(filter), rest),
        _ => (None, stages),
    }
}

/// Runs a pipeline over a collection; one that begins with its own documents, over none.
pub(super) fn run(
    stages: &[Stage],
    collection: Option<&str>,
    host: &dyn Host,
    sink: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
) -> Result<(), Fault> {
    with_room(|| {
        let (filter, rest) = beginning(stages);
        let mut run = Run::new(rest);
        if let Some(collection) = collection.filter(|_| stages.first().is_none_or(Stage::reads_input)) {
            let everything = Filter::everything();
            host.find(None, collection, filter.unwrap_or(&everything), &mut |document| run.push(document, host, sink))?;
        }
        run.finish(host, sink)
    })
}
