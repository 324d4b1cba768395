//! Where a pipeline stands: the pipelines around it, and what may stand in it.
//!
//! Depth, stages and the text that is kept are counted over all pipelines around, so that neither a stack nor memory grows
//! with what a body nests.

use crate::QueryError;
use crate::limits::PIPELINE_STAGES_MAX;

/// What stands around a pipeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within<'a> {
    /// What the innermost of them is part of.
    pub(super) inside: Inside<'a>,
    /// `$lookup`s and `$unionWith`s around.
    pub(super) depth: usize,
    /// Stages of all pipelines around.
    pub(super) stages: usize,
    /// Bytes of the texts that are kept to be parsed again.
    pub(super) kept: usize,
}

/// What a pipeline is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inside<'a> {
    /// The body.
    Nothing,
    /// A `$facet`.
    Facet,
    /// A `$lookup` of a collection; none where it brings its own documents.
    Lookup(Option<&'a str>),
    /// A `$unionWith` of one.
    Union(Option<&'a str>),
}

/// What a stage asks of its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    First,
    Last,
    /// It stands anywhere but in a `$facet`.
    NoFacet,
    Nothing,
}

impl Within<'_> {
    /// A body's own pipeline.
    pub(crate) const NOTHING: Within<'static> = Within { inside: Inside::Nothing, depth: 0, stages: 0, kept: 0 };

    /// The collection whose documents come in, where it is another than the body's.
    pub(super) fn collection(&self) -> Option<&str> {
        match self.inside {
            Inside::Lookup(collection) | Inside::Union(collection) => collection,
            _ => None,
        }
    }

    /// Counts the stages of one more pipeline.
    ///
    /// # Errors
    /// `FailedToParse` (9) where they are too many with those around it: running them takes a stack of that depth.
    pub(super) fn add_stages(&mut self, stages: usize) -> Result<(), QueryError> {
        self.stages += stages;
        if self.stages <= PIPELINE_STAGES_MAX {
            return Ok(());
        }
        let message = format!(
            "a pipeline has at most {PIPELINE_STAGES_MAX} stages with those around and beside it, not {}",
            self.stages
        );
        Err(QueryError::failed_to_parse(message))
    }

    /// Whether a stage may stand at `at` of so many stages here.
    ///
    /// # Errors
    /// 40601 and 40602 for its position; 40600, 51047 and 31441 in a `$facet`, `$lookup`, `$unionWith`.
    pub(super) fn check(&self, name: &str, at: usize, stages: usize) -> Result<(), QueryError> {
        let wants = match name {
            "$documents" | "$collStats" | "$indexStats" => Wants::First,
            "$out" | "$merge" => Wants::Last,
            "$facet" => Wants::NoFacet,
            _ => Wants::Nothing,
        };
        let (code, message) = match (wants, self.inside) {
            (Wants::Nothing, _) => return Ok(()),
            (_, Inside::Facet) => (40600, format!("{name} is not allowed to be used within a $facet stage")),
            (Wants::Last, Inside::Lookup(_)) => {
                (51047, format!("{name} is not allowed within a $lookup's sub-pipeline"))
            }
            (Wants::Last, Inside::Union(_)) => {
                (31441, format!("{name} is not allowed within a $unionWith's sub-pipeline"))
            }
            (Wants::First, _) if at > 0 => (40602, format!("{name} is only valid as the first stage in a pipeline")),
            (Wants::Last, _) if at + 1 < stages => {
                (40601, format!("{name} can only be the final stage in the pipeline"))
            }
            _ => return Ok(()),
        };
        Err(QueryError::location(code, message))
    }
}
