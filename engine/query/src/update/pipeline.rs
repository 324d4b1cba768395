//! An update as a pipeline: `$set`/`$addFields`, `$unset`, `$project`, `$replaceRoot`/`$replaceWith`.
//!
//! Each stage takes the document that the one before it gave. `_id` stays: a result without one has the old one. Other
//! stages have no meaning on one document and are refused.

use super::operands::nesting;
use super::parse::kind;
use crate::add_fields::AddFields;
use crate::expr::{Budget, Datum, Expression, Scope};
use crate::limits::{DOCUMENT_NESTING_MAX, NESTING_MAX, PIPELINE_STAGES_MAX};
use crate::{ParseContext, Place, Projection, QueryError, scratch};
use quarrydb_jsonb::{ArrayRef, JsonbBuf, JsonbRef};

#[derive(Debug)]
pub(super) struct Pipeline(Vec<Stage>);

#[derive(Debug)]
enum Stage {
    AddFields(AddFields),
    Project(Projection),
    ReplaceWith(Expression),
}

impl Pipeline {
    pub(super) fn parse(stages: ArrayRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        if stages.len() > PIPELINE_STAGES_MAX {
            let message = format!("a pipeline has at most {PIPELINE_STAGES_MAX} stages, not {}", stages.len());
            return Err(QueryError::failed_to_parse(message).at(&context.place));
        }
        let mut parsed = Vec::new();
        for (i, stage) in stages.iter().enumerate() {
            let place = context.place.index(i);
            let entry = stage.as_object().filter(|o| o.len() == 1).and_then(|o| o.iter().next());
            let Some(entry) = entry else {
                let message = "a pipeline stage is an object with exactly one field";
                return Err(QueryError::location(40323, message).at(&place));
            };
            let place = place.name(entry.name());
            parsed.push(Stage::parse(entry.name(), entry.value, &context.at(place))?);
        }
        Ok(Self(parsed))
    }

    /// The new document, `_id` as it comes out of the stages.
    pub(super) fn apply(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(document.to_buf()) };
        let mut here = first.apply(document, budget)?;
        check_nesting(here.view(), NESTING_MAX)?;
        for stage in rest {
            here = stage.apply(here.view(), budget)?;
            // After each stage: the next one goes as deep as this has made the document.
            check_nesting(here.view(), NESTING_MAX)?;
        }
        check_nesting(here.view(), DOCUMENT_NESTING_MAX)?;
        Ok(here)
    }
}

fn check_nesting(document: JsonbRef<'_>, most: usize) -> Result<(), QueryError> {
    if nesting(document) <= most {
        return Ok(());
    }
    let message = format!("the document would nest deeper than {most} levels");
    Err(QueryError::new("Overflow", 15, message))
}

impl Stage {
    fn parse(name: &str, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        match name {
            "$set" | "$addFields" => AddFields::parse(name, value, context).map(Self::AddFields),
            "$project" => Projection::parse(value, context).map(Self::Project),
            "$unset" => unset(value, context).map(Self::Project),
            "$replaceWith" => Expression::parse(value, context).map(Self::ReplaceWith),
            "$replaceRoot" => {
                let object = value.as_object();
                let new_root = object.filter(|o| o.len() == 1).and_then(|o| o.get("newRoot"));
                let Some(new_root) = new_root else {
                    let message = "$replaceRoot takes an object with the one field 'newRoot'";
                    return Err(QueryError::location(40231, message).at(&context.place));
                };
                let place = context.place.name("newRoot");
                Expression::parse(new_root, &context.at(place)).map(Self::ReplaceWith)
            }
            _ => {
                let message = format!(
                    "{name} is not allowed to be used within an update: $set, $addFields, $unset, $project, $replaceRoot \
                     and $replaceWith are"
                );
                Err(QueryError::new("InvalidPipelineOperator", 168, message).at(&context.place))
            }
        }
    }

    fn apply(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        match self {
            Self::AddFields(fields) => fields.apply(document, budget),
            Self::Project(projection) => {
                scratch::build(document.as_bytes().len(), |out| projection.apply_within(document, out, budget))
            }
            Self::ReplaceWith(expression) => {
                let mut scope = Scope::new(document, budget);
                let value: Datum<'_> = expression.evaluate(&mut scope)?;
                if value.is_object() {
                    return value.to_buf();
                }
                let message = format!(
                    "'newRoot' expression must evaluate to an object, but resulting value was of type {}",
                    value.type_name()
                );
                Err(QueryError::location(40228, message))
            }
        }
    }
}

/// `$unset` is an exclusion of the paths it names.
fn unset(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Projection, QueryError> {
    let wrong = |place: &Place<'_>, found: JsonbRef<'_>| {
        let message = format!("$unset takes a path or an array of paths, not {}", kind(found));
        QueryError::location(31002, message).at(place)
    };
    let mut paths: Vec<(Place<'_>, JsonbRef<'_>)> = Vec::new();
    match value.as_array() {
        Some(paths) if paths.is_empty() => {
            let message = "$unset takes an array of at least one path";
            return Err(QueryError::location(31119, message).at(&context.place));
        }
        Some(array) => paths.extend(array.iter().enumerate().map(|(i, path)| (context.place.index(i), path))),
        None => paths.push((context.place, value)),
    }
    let paths: Result<Vec<_>, QueryError> =
        paths.into_iter().map(|(place, path)| Ok((place, path.as_str().ok_or_else(|| wrong(&place, path))?))).collect();
    Projection::excluding(&paths?, context)
}
