//! The operand of each update operator: what it may be, and what is said where it is something else.
//!
//! Takes a field's operand, gives the operator of `ast.rs`. Next: `scalar.rs` and `arrays.rs` for what they do.

use super::arrays::{PULLED_FIELD, PullCondition, Push, PushSort};
use super::ast::{BitOp, Op};
use super::parse::kind;
use super::path::UpdatePath;
use crate::limits::SORT_FIELDS_MAX;
use crate::number::Number;
use crate::path_walk::FieldPath;
use crate::transform::nesting;
use crate::{Filter, ParseContext, Place, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind, ObjectRef};

/// The operator `name` with its operand.
pub(super) fn parse(
    name: &str,
    path: &UpdatePath,
    operand: JsonbRef<'_>,
    context: &ParseContext<'_>,
) -> Result<Op, QueryError> {
    let parsed = match name {
        "$set" => Ok(Op::Set(operand.to_buf())),
        "$setOnInsert" => Ok(Op::SetOnInsert(operand.to_buf())),
        "$unset" => Ok(Op::Unset),
        "$min" => Ok(Op::Min(operand.to_buf())),
        "$max" => Ok(Op::Max(operand.to_buf())),
        "$inc" => number(operand, "increment", path).map(Op::Inc),
        "$mul" => number(operand, "multiply", path).map(Op::Mul),
        "$currentDate" => current_date(operand, &context.place),
        "$bit" => bit(operand, &context.place),
        "$push" => push(operand, &context.place).map(Op::Push),
        "$addToSet" => add_to_set(operand, &context.place).map(Op::AddToSet),
        "$pullAll" => match operand.as_array() {
            Some(values) => Ok(Op::PullAll(values.iter().map(JsonbRef::to_buf).collect())),
            None => Err(QueryError::bad_value(format!("$pullAll requires an array, not {}", kind(operand)))),
        },
        "$pull" => pull(operand, context).map(Op::Pull),
        "$pop" => pop(operand),
        _ => Err(QueryError::unknown_operator(format!("unknown update operator '{name}'"))),
    };
    parsed.map_err(|e| e.at(&context.place))
}

fn number(operand: JsonbRef<'_>, verb: &str, path: &UpdatePath) -> Result<Number, QueryError> {
    Number::of(operand).ok_or_else(|| {
        let message =
            format!("cannot {verb} '{}' with an operand of type {}: a number is needed", path.as_str(), kind(operand));
        QueryError::type_mismatch(message)
    })
}

fn current_date(operand: JsonbRef<'_>, place: &Place<'_>) -> Result<Op, QueryError> {
    if operand.as_bool().is_some() {
        return Ok(Op::CurrentDate { timestamp: false });
    }
    let Some(object) = operand.as_object() else {
        let message = format!("$currentDate takes true or {{$type: \"date\" or \"timestamp\"}}, not {}", kind(operand));
        return Err(QueryError::bad_value(message));
    };
    if let Some(other) = object.iter().find(|e| e.name() != "$type") {
        let message = format!("unrecognized $currentDate option '{}'", other.name());
        return Err(QueryError::bad_value(message).at(&place.name(other.name())));
    }
    match object.get("$type").and_then(JsonbRef::as_str) {
        Some("date") => Ok(Op::CurrentDate { timestamp: false }),
        Some("timestamp") => Ok(Op::CurrentDate { timestamp: true }),
        _ => {
            let message = "the $type of $currentDate must be \"date\" or \"timestamp\"";
            Err(QueryError::bad_value(message).at(&place.name("$type")))
        }
    }
}

fn bit(operand: JsonbRef<'_>, place: &Place<'_>) -> Result<Op, QueryError> {
    let Some(object) = operand.as_object() else {
        let message = format!("$bit takes an object such as {{and: 5}}, not {}", kind(operand));
        return Err(QueryError::bad_value(message));
    };
    let mut ops = Vec::new();
    for entry in object {
        let op = match entry.name() {
            "and" => BitOp::And,
            "or" => BitOp::Or,
            "xor" => BitOp::Xor,
            other => {
                let message = format!("$bit knows \"and\", \"or\" and \"xor\", not '{other}'");
                return Err(QueryError::bad_value(message).at(&place.name(other)));
            }
        };
        match Number::of(entry.value) {
            Some(n @ (Number::Int32(_) | Number::Int64(_))) => ops.push((op, n)),
            _ => {
                let message = format!("the operand of $bit must be an int or a long, not {}", kind(entry.value));
                return Err(QueryError::bad_value(message).at(&place.name(entry.name())));
            }
        }
    }
    if ops.is_empty() {
        return Err(QueryError::bad_value("$bit needs one of \"and\", \"or\" and \"xor\""));
    }
    Ok(Op::Bit(ops))
}

fn pop(operand: JsonbRef<'_>) -> Result<Op, QueryError> {
    let Some(n) = Number::of(operand) else {
        return Err(QueryError::failed_to_parse(format!("$pop expects 1 or -1, found {}", kind(operand))));
    };
    match n.as_whole() {
        Some(1) => Ok(Op::Pop { first: false }),
        Some(-1) => Ok(Op::Pop { first: true }),
        _ => Err(QueryError::failed_to_parse("$pop expects 1 (the last element) or -1 (the first)")),
    }
}

fn list(
    values: JsonbRef<'_>,
    of: &str,
    refuse: fn(String) -> QueryError,
    place: &Place<'_>,
) -> Result<Vec<JsonbBuf>, QueryError> {
    match values.as_array() {
        Some(values) => Ok(values.iter().map(JsonbRef::to_buf).collect()),
        None => {
            let message = format!("the $each of {of} must be an array, not {}", kind(values));
            Err(refuse(message).at(&place.name("$each")))
        }
    }
}

fn push(operand: JsonbRef<'_>, place: &Place<'_>) -> Result<Push, QueryError> {
    let modifiers = operand.as_object().filter(|o| o.get("$each").is_some());
    let Some(modifiers) = modifiers else {
        return Ok(Push { each: vec![operand.to_buf()], ..Push::default() });
    };
    let mut push = Push::default();
    for entry in modifiers {
        let here = place.name(entry.name());
        match entry.name() {
            "$each" => push.each = list(entry.value, "$push", QueryError::bad_value, place)?,
            "$position" => push.position = Some(integer(entry.value, "$position", &here)?),
            "$slice" => push.slice = Some(integer(entry.value, "$slice", &here)?),
            "$sort" => push.sort = Some(push_sort(entry.value, &here)?),
            other => {
                let message = format!("'{other}' is no modifier of $push: $each, $position, $slice and $sort are");
                return Err(QueryError::bad_value(message).at(&here));
            }
        }
    }
    Ok(push)
}

fn integer(v: JsonbRef<'_>, of: &str, place: &Place<'_>) -> Result<i64, QueryError> {
    Number::of(v).and_then(Number::as_whole).ok_or_else(|| {
        QueryError::bad_value(format!("the value of {of} must be an integer, not {}", kind(v))).at(place)
    })
}

fn push_sort(v: JsonbRef<'_>, place: &Place<'_>) -> Result<PushSort, QueryError> {
    if let Some(fields) = v.as_object() {
        return sort_fields(fields, place).map(PushSort::Fields);
    }
    direction(v, place).map(|descending| PushSort::Whole { descending })
}

fn direction(v: JsonbRef<'_>, place: &Place<'_>) -> Result<bool, QueryError> {
    match Number::of(v).and_then(Number::as_whole) {
        Some(1) => Ok(false),
        Some(-1) => Ok(true),
        _ => {
            let message = "the $sort of $push is 1, -1 or an object of fields with 1 or -1";
            Err(QueryError::bad_value(message).at(place))
        }
    }
}

fn sort_fields(fields: ObjectRef<'_>, place: &Place<'_>) -> Result<Vec<(FieldPath, bool)>, QueryError> {
    if fields.is_empty() || fields.len() > SORT_FIELDS_MAX {
        let message = format!("the $sort of $push names 1 to {SORT_FIELDS_MAX} fields, not {}", fields.len());
        return Err(QueryError::bad_value(message).at(place));
    }
    let mut parsed = Vec::new();
    for field in fields {
        let place = place.name(field.name());
        if field.name().split('.').any(str::is_empty) {
            let message = format!("the $sort field '{}' of $push has an empty part", field.name());
            return Err(QueryError::bad_value(message).at(&place));
        }
        parsed.push((FieldPath::parse(field.name(), &place)?, direction(field.value, &place)?));
    }
    Ok(parsed)
}

fn add_to_set(operand: JsonbRef<'_>, place: &Place<'_>) -> Result<Vec<JsonbBuf>, QueryError> {
    let each = operand.as_object().and_then(|o| o.iter().next()).filter(|first| first.name() == "$each");
    let Some(each) = each else { return Ok(vec![operand.to_buf()]) };
    let parsed = list(each.value, "$addToSet", QueryError::type_mismatch, place);
    if operand.as_object().is_some_and(|o| o.len() > 1) {
        return parsed.and(Err(QueryError::bad_value("found unexpected fields after $each in $addToSet")));
    }
    parsed
}

fn pull(operand: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<PullCondition, QueryError> {
    let is_operators = operand.as_object().and_then(|o| o.iter().next()).is_some_and(|e| e.name().starts_with('$'));
    match operand.kind() {
        Kind::Object if !is_operators => Ok(PullCondition::Object(Filter::parse(operand, context)?)),
        Kind::Object | Kind::Regex => Filter::parse_beside(PULLED_FIELD, operand, context).map(PullCondition::Wrapped),
        _ => Ok(PullCondition::Equal(operand.to_buf())),
    }
}

impl Op {
    /// Whether its result depends only on a scalar that already stands at the path.
    pub(super) fn is_direct(&self) -> bool {
        matches!(
            self,
            Self::Set(_)
                | Self::SetOnInsert(_)
                | Self::Inc(_)
                | Self::Mul(_)
                | Self::Min(_)
                | Self::Max(_)
                | Self::CurrentDate { .. }
                | Self::Bit(_)
        )
    }

    /// The containers that the operand puts inside each other at the path.
    pub(super) fn nesting(&self) -> usize {
        let deepest = |values: &[JsonbBuf]| 1 + values.iter().map(|v| nesting(v.view())).max().unwrap_or(0);
        match self {
            Self::Set(v) | Self::SetOnInsert(v) | Self::Min(v) | Self::Max(v) => nesting(v.view()),
            Self::Push(push) => deepest(&push.each),
            Self::AddToSet(values) => deepest(values),
            _ => 0,
        }
    }
}
