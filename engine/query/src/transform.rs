//! The stages that make one document of one document: `$set`/`$addFields`, `$unset`, `$project`,
//! `$replaceRoot`/`$replaceWith`.
//!
//! What updates by pipeline and aggregations have in common. Takes a stage's value, gives the new document. It knows
//! nothing of `_id`s or of other documents. Next: `add_fields.rs`, `projection/`.

use crate::add_fields::AddFields;
use crate::expr::{Budget, Datum, Expression, Scope};
use crate::limits::NESTING_MAX;
use crate::{ParseContext, Place, Projection, QueryError, scratch};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind};

/// A parsed stage.
#[derive(Debug)]
pub enum Transform {
    /// `$set`, `$addFields`.
    AddFields(AddFields),
    /// `$project`, `$unset`.
    Project(Projection),
    /// `$replaceWith`, `$replaceRoot`.
    ReplaceWith(Expression),
}

impl Transform {
    /// Parses the value of a stage; none where `name` is no stage of this kind.
    ///
    /// # Errors
    /// Those of the stage, with their place.
    pub fn parse(name: &str, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Option<Result<Self, QueryError>> {
        Some(match name {
            "$set" | "$addFields" => AddFields::parse(name, value, context).map(Self::AddFields),
            "$project" => Projection::parse_stage(value, context).map(Self::Project),
            "$unset" => unset(value, context).map(Self::Project),
            "$replaceWith" => Expression::parse(value, context).map(Self::ReplaceWith),
            "$replaceRoot" => replace_root(value, context).map(Self::ReplaceWith),
            _ => return None,
        })
    }

    /// The new document. It nests no deeper than what a next stage can take.
    ///
    /// # Errors
    /// Those of expressions; 40228 where the new root is no object.
    pub fn apply(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        let made = match self {
            Self::AddFields(fields) => fields.apply(document, budget),
            Self::Project(projection) => {
                scratch::build(document.as_bytes().len(), |out| projection.apply_within(document, out, budget))
            }
            Self::ReplaceWith(expression) => replaced(expression, document, budget),
        }?;
        check_nesting(made.view(), NESTING_MAX)?;
        Ok(made)
    }
}

fn replace_root(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Expression, QueryError> {
    let place = context.place;
    let error = |code, message: String| QueryError::location(code, message);
    let Some(object) = value.as_object() else {
        let found = value.kind().alias();
        let message = format!("expected an object as specification for $replaceRoot stage, got {found}");
        return Err(error(40229, message).at(&place));
    };
    if let Some(other) = object.iter().find(|e| e.name() != "newRoot") {
        let message = format!("BSON field '$replaceRoot.{}' is an unknown field.", other.name());
        return Err(error(40415, message).at(&place.name(other.name())));
    }
    let Some(new_root) = object.get("newRoot") else {
        let message = "BSON field '$replaceRoot.newRoot' is missing but a required field".to_owned();
        return Err(error(40414, message).at(&place));
    };
    let place = place.name("newRoot");
    Expression::parse(new_root, &context.at(place))
}

fn replaced(expression: &Expression, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
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

/// `$unset` is an exclusion of the paths it names.
fn unset(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Projection, QueryError> {
    let wrong = |place: &Place<'_>, found: JsonbRef<'_>| {
        let message = format!("$unset takes a path or an array of paths, not {}", found.kind().alias());
        let code = if value.as_array().is_some() { 31120 } else { 31002 };
        QueryError::location(code, message).at(place)
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

/// Refuses a document that nests deeper than `most` levels.
pub(crate) fn check_nesting(document: JsonbRef<'_>, most: usize) -> Result<(), QueryError> {
    if nesting(document) <= most {
        return Ok(());
    }
    let message = format!("the document would nest deeper than {most} levels");
    Err(QueryError::new("Overflow", 15, message))
}

/// The containers inside each other in `v`, itself counted; the text it came from bounds them.
pub(crate) fn nesting(v: JsonbRef<'_>) -> usize {
    match v.kind() {
        Kind::Array => 1 + v.as_array().into_iter().flatten().map(nesting).max().unwrap_or(0),
        Kind::Object => 1 + v.as_object().into_iter().flatten().map(|e| nesting(e.value)).max().unwrap_or(0),
        _ => 0,
    }
}
