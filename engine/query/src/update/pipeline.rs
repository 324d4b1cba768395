//! An update as a pipeline: `$set`/`$addFields`, `$unset`, `$project`, `$replaceRoot`/`$replaceWith`.
//!
//! Each stage takes the document that the one before it gave. `_id` stays: a result without one has the old one. Other
//! stages have no meaning on one document and are refused.

use crate::expr::Budget;
use crate::limits::DOCUMENT_NESTING_MAX;
use crate::pipeline::each_stage;
use crate::transform::{Transform, check_nesting};
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{ArrayRef, JsonbBuf, JsonbRef};

#[derive(Debug)]
pub(crate) struct Pipeline(Vec<Transform>);

impl Pipeline {
    pub(crate) fn parse(stages: ArrayRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let mut parsed = Vec::new();
        each_stage(stages, context, |name, value, context| {
            let Some(stage) = Transform::parse(name, value, context) else {
                let message = format!(
                    "{name} is not allowed to be used within an update: $set, $addFields, $unset, $project, $replaceRoot \
                     and $replaceWith are"
                );
                return Err(QueryError::new("InvalidPipelineOperator", 168, message).at(&context.place));
            };
            parsed.push(stage?);
            Ok(())
        })?;
        Ok(Self(parsed))
    }

    /// The new document, `_id` as it comes out of the stages.
    pub(crate) fn apply(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(document.to_buf()) };
        let mut here = first.apply(document, budget)?;
        for stage in rest {
            here = stage.apply(here.view(), budget)?;
        }
        check_nesting(here.view(), DOCUMENT_NESTING_MAX)?;
        Ok(here)
    }
}
