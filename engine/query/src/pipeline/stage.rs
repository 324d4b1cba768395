//! The stages by name: parsed here or in a file of their own, and made into operators.
//!
//! What stands for other stages (`$count`, `$sortByCount`) is parsed to them. A name that MongoDB has and this has not is
//! refused by that name.

use super::basic::{Count, Limit, Match, Skip, Transforming};
use super::group::{Group, GroupOperator};
use super::operator::Operator;
use crate::filter::Filter;
use crate::transform::Transform;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbRef, Value};
use std::sync::Arc;

/// A parsed stage. Its parts are shared with the operators made of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// `$match`.
    Match(Arc<Filter>),
    /// A new document of each document.
    Transform(Arc<Transform>),
    /// `$limit`: at least 1.
    Limit(u64),
    /// `$skip`.
    Skip(u64),
    /// `$count`, with the name of its field.
    Count(Arc<str>),
    /// `$group`.
    Group(Arc<Group>),
}

/// What MongoDB has and a pipeline here has not, with the reason.
const REFUSED: [(&str, &str); 4] = [
    ("$geoNear", "there are no geospatial indexes"),
    ("$search", "there is no text search"),
    ("$searchMeta", "there is no text search"),
    ("$vectorSearch", "there is no vector search"),
];

impl Stage {
    /// Parses the value of the stage `name` and appends what it stands for.
    ///
    /// # Errors
    /// 40324 for a name that is not known, else those of the stage.
    pub fn parse(
        name: &str,
        value: JsonbRef<'_>,
        context: &ParseContext<'_>,
        out: &mut Vec<Self>,
    ) -> Result<(), QueryError> {
        if let Some(transform) = Transform::parse(name, value, context) {
            out.push(Self::Transform(Arc::new(transform?)));
            return Ok(());
        }
        out.push(match name {
            "$match" => Self::Match(Arc::new(matching(value, context)?)),
            "$limit" => Self::Limit(limit(value, context)?),
            "$skip" => Self::Skip(skip(value, context)?),
            "$count" => Self::Count(count(value, context)?),
            "$group" => Self::Group(Arc::new(Group::parse(value, context)?)),
            _ => return Err(unknown(name).at(&context.place)),
        });
        Ok(())
    }

    /// The stage, ready to run.
    #[must_use]
    pub fn operator(&self) -> Box<dyn Operator> {
        match self {
            Self::Match(filter) => Box::new(Match(Arc::clone(filter))),
            Self::Transform(transform) => Box::new(Transforming(Arc::clone(transform))),
            Self::Limit(limit) => Box::new(Limit(*limit)),
            Self::Skip(skip) => Box::new(Skip(*skip)),
            Self::Count(name) => Box::new(Count { name: Arc::clone(name), count: 0 }),
            Self::Group(group) => Box::new(GroupOperator::new(group)),
        }
    }
}

fn unknown(name: &str) -> QueryError {
    let message = match REFUSED.iter().find(|(refused, _)| *refused == name) {
        Some((_, reason)) => format!("the stage {name} is not supported: {reason}"),
        None => format!("Unrecognized pipeline stage name: '{name}'"),
    };
    QueryError::location(40324, message)
}

fn matching(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Filter, QueryError> {
    if value.as_object().is_none() {
        let message = format!("the match filter must be an expression in an object, not {}", value.kind().alias());
        return Err(QueryError::location(15959, message));
    }
    Filter::parse(value, context)
}

/// A whole number that a stage takes; none where it is no number or has a fraction.
pub(super) fn whole(value: JsonbRef<'_>) -> Option<i64> {
    match value.value() {
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => crate::number::whole_i64(value),
        _ => None,
    }
}

fn limit(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<u64, QueryError> {
    let found = || crate::error::shown(value);
    let Some(n) = whole(value) else {
        let message = format!("invalid argument to $limit stage: Expected an integer: $limit: {}", found());
        return Err(QueryError::location(5_107_201, message).at(&context.place));
    };
    match u64::try_from(n) {
        Ok(0) => Err(QueryError::location(15958, "the limit must be positive").at(&context.place)),
        Ok(n) => Ok(n),
        Err(_) => {
            let message =
                format!("invalid argument to $limit stage: Expected a non-negative number in: $limit: {}", found());
            Err(QueryError::location(5_107_201, message).at(&context.place))
        }
    }
}

fn skip(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<u64, QueryError> {
    whole(value).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
        let message = format!(
            "invalid argument to $skip stage: Expected a non-negative integer: $skip: {}",
            crate::error::shown(value)
        );
        QueryError::location(5_107_200, message).at(&context.place)
    })
}

fn count(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Arc<str>, QueryError> {
    let error = |code, message: &str| QueryError::location(code, message).at(&context.place);
    let Some(name) = value.as_str() else {
        return Err(error(40156, "the count field must be a non-empty string"));
    };
    match name {
        "" => Err(error(40156, "the count field must be a non-empty string")),
        _ if name.starts_with('$') => Err(error(40158, "the count field cannot be a $-prefixed path")),
        _ if name.contains('\0') => Err(error(40159, "the count field cannot contain a null byte")),
        _ if name.contains('.') => Err(error(40160, "the count field cannot contain '.'")),
        _ => Ok(name.into()),
    }
}
