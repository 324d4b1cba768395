//! What `$densify` is asked for: field, partitions, bounds and step.
//!
//! Takes the stage's object, gives the [`Densify`]; steps from value to value. Next: `densify.rs`.

use crate::add_fields::AddFields;
use crate::error::shown;
use crate::expr::{Datum, Unit};
use crate::number::{Number, Operation};
use crate::sort::check_path;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbRef, Value as Stored};
use std::cmp::Ordering;

/// The parsed stage.
#[derive(Debug)]
pub struct Densify {
    pub(super) field: Box<str>,
    pub(super) partition_by: Vec<Box<str>>,
    pub(super) bounds: Bounds,
    pub(super) step: Step,
}

/// Between which values gaps are filled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bounds {
    /// The least and the greatest of all documents.
    Full,
    /// Those of each partition.
    Partition,
    /// These, the second one excluded.
    Explicit(Value, Value),
}

/// The distance of two values.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Number(Number),
    Time(i64, Unit),
}

/// A value of the field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value {
    Number(Number),
    Date(i64),
}

impl Value {
    fn of(value: JsonbRef<'_>) -> Option<Self> {
        match value.value() {
            Stored::Date(ms) => Some(Self::Date(ms)),
            _ => Number::of(value).map(Self::Number),
        }
    }

    pub(super) fn datum(self) -> Datum<'static> {
        match self {
            Self::Number(n) => Datum::Number(n),
            Self::Date(ms) => Datum::Date(ms),
        }
    }

    pub(super) fn is_below(self, other: Self) -> Result<bool, QueryError> {
        Ok(self.datum().compare(&other.datum())? == Ordering::Less)
    }

    pub(super) fn equals(self, other: Self) -> Result<bool, QueryError> {
        Ok(self.datum().compare(&other.datum())? == Ordering::Equal)
    }
}

impl Step {
    /// The value of a document, which the step must fit.
    pub(super) fn check(self, value: JsonbRef<'_>) -> Result<Value, QueryError> {
        let error = |code, message: &str| Err(QueryError::location(code, message));
        match (Value::of(value), self) {
            (None, _) => error(5_733_201, "densify field type must be numeric or a date"),
            (Some(Value::Number(_)), Self::Time(..)) => {
                error(6_053_600, "encountered numeric densify value in collection when step has a date unit")
            }
            (Some(Value::Date(_)), Self::Number(_)) => {
                error(6_053_600, "encountered date densify value in collection when step does not have a date unit")
            }
            (Some(value), _) => Ok(value),
        }
    }

    /// The next value.
    pub(super) fn after(self, value: Value) -> Result<Value, QueryError> {
        let following = match (value, self) {
            (Value::Number(n), Self::Number(step)) => {
                let sum = n.combine(Operation::Add, step);
                Value::Number(sum.unwrap_or_else(|| Number::Double(n.to_f64() + step.to_f64())))
            }
            (Value::Date(date), Self::Time(amount, unit)) => Value::Date(unit.after(date, amount)?),
            (value, _) => value,
        };
        // A step that is lost to rounding would lead nowhere for ever.
        if value.is_below(following)? {
            return Ok(following);
        }
        let message = "the step of $densify is too small for the values: it does not lead to another one";
        Err(QueryError::location(5_733_401, message))
    }
}

impl Densify {
    /// Parses the stage's object.
    ///
    /// # Errors
    /// `FailedToParse` for what is no object, 40414 and 40415 where a field is missing or not known, 57334xx, 5876900,
    /// 5946800, 5946802 and 6586400 for the range, those of paths.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        let Some(object) = value.as_object() else {
            let message = format!("the $densify stage specification must be an object, found {}", value.kind().alias());
            return Err(QueryError::failed_to_parse(message).at(&place));
        };
        let (mut field, mut range, mut partition_by) = (None, None, Vec::new());
        for entry in object {
            let place = place.name(entry.name());
            let inner = context.at(place);
            match entry.name() {
                "field" => field = Some(path(entry.value, &inner)?),
                "partitionByFields" => {
                    let Some(array) = entry.value.as_array() else {
                        return Err(QueryError::type_mismatch("'partitionByFields' is an array of paths").at(&place));
                    };
                    for (at, value) in array.iter().enumerate() {
                        partition_by.push(path(value, &inner.at(place.index(at)))?);
                    }
                }
                "range" => range = Some(parse_range(entry.value, &inner)?),
                unknown => return Err(unknown_field("$densify", unknown).at(&place)),
            }
        }
        let field = field.ok_or_else(|| missing_field("$densify", "field").at(&place))?;
        let (bounds, step) = range.ok_or_else(|| missing_field("$densify", "range").at(&place))?;
        if matches!(bounds, Bounds::Partition) && partition_by.is_empty() {
            let message = "one cannot specify the bounds as 'partition' without a non-empty array of partitionByFields; \
                           you may have meant 'full' bounds";
            return Err(QueryError::location(5_733_408, message).at(&place));
        }
        let parsed = Self { field, partition_by, bounds, step };
        parsed.fields().map_err(|e| QueryError::location(e.code(), e.message()).at(&place))?;
        Ok(parsed)
    }

    /// What writes the partition's fields and then the one that is filled.
    pub(super) fn fields(&self) -> Result<AddFields, QueryError> {
        let paths = self.partition_by.iter().chain([&self.field]).map(|p| &**p).collect::<Vec<_>>();
        AddFields::of_paths(&paths, &ParseContext::new("$densify"))
    }
}

fn unknown_field(of: &str, name: &str) -> QueryError {
    QueryError::location(40415, format!("BSON field '{of}.{name}' is an unknown field."))
}

fn missing_field(of: &str, name: &str) -> QueryError {
    QueryError::location(40414, format!("BSON field '{of}.{name}' is missing but a required field"))
}

fn path(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Box<str>, QueryError> {
    let Some(path) = value.as_str() else {
        let message = format!("a path is a string, not {}", value.kind().alias());
        return Err(QueryError::type_mismatch(message).at(&context.place));
    };
    check_path(path).map_err(|e| e.at(&context.place))?;
    Ok(path.into())
}

fn parse_range(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<(Bounds, Step), QueryError> {
    let place = context.place;
    let error = |code, message: &str| QueryError::location(code, message).at(&place);
    let Some(object) = value.as_object() else {
        return Err(QueryError::type_mismatch("the range of $densify is an object").at(&place));
    };
    if let Some(unknown) = object.iter().find(|e| !matches!(e.name(), "step" | "unit" | "bounds")) {
        return Err(unknown_field("$densify.range", unknown.name()).at(&place.name(unknown.name())));
    }
    let step = object.get("step").ok_or_else(|| missing_field("$densify.range", "step").at(&place))?;
    let bounds = object.get("bounds").ok_or_else(|| missing_field("$densify.range", "bounds").at(&place))?;
    let zero = Datum::int(0);
    let number = Number::of(step).filter(|n| Datum::Number(*n).compare(&zero).is_ok_and(Ordering::is_gt));
    let Some(number) = number.filter(|n| n.to_f64().is_finite()) else {
        let message = "the step parameter in a range statement must be a strictly positive numeric value";
        return Err(error(5_733_401, message));
    };
    let step = match object.get("unit") {
        None => Step::Number(number),
        Some(unit) => {
            let place = place.name("unit");
            let Some(amount) = number.as_whole() else {
                let message =
                    "the step parameter in a range statement must be a whole number when densifying a date range";
                return Err(error(6_586_400, message));
            };
            let Some(name) = unit.as_str() else {
                return Err(QueryError::type_mismatch("the unit of a range is a string").at(&place));
            };
            let unknown = || QueryError::failed_to_parse(format!("unknown time unit value: {name}")).at(&place);
            Step::Time(amount, Unit::by_name(name).ok_or_else(unknown)?)
        }
    };
    let place = place.name("bounds");
    let bounds = parse_bounds(bounds, step).map_err(|e| e.at(&place))?;
    Ok((bounds, step))
}

fn parse_bounds(value: JsonbRef<'_>, step: Step) -> Result<Bounds, QueryError> {
    let error = |code, message: &str| Err(QueryError::location(code, message));
    if let Some(name) = value.as_str() {
        return match name {
            "full" => Ok(Bounds::Full),
            "partition" => Ok(Bounds::Partition),
            _ => error(5_946_802, "bounds string must either be 'full' or 'partition'"),
        };
    }
    let Some(array) = value.as_array() else {
        let message = "the bounds in a range statement must be the string 'full', 'partition', or an ascending array of \
                       two numbers or two dates";
        return error(5_733_404, message);
    };
    let (2, Some(lower), Some(upper)) = (array.len(), array.get(0), array.get(1)) else {
        return error(5_733_403, "a bounding array in a range statement must have exactly two elements");
    };
    if quarrydb_jsonb::compare(lower, upper).is_gt() {
        return error(5_733_402, "a bounding array must be an ascending array of either two dates or two numbers");
    }
    let both = "a bounding array must contain either both dates or both numeric types";
    match (Value::of(lower), Value::of(upper), step) {
        (None, ..) => {
            let message = format!("explicit bounds must be numeric or dates, found {}", shown(lower));
            error(5_946_800, &message)
        }
        (Some(Value::Number(_)), _, Step::Time(..)) => error(5_733_409, "numeric bounds may not have unit parameter"),
        (Some(Value::Number(a)), Some(Value::Number(b)), Step::Number(step)) => {
            let kind = |n: Number| std::mem::discriminant(&n);
            if kind(a) != kind(b) || kind(a) != kind(step) {
                return error(5_876_900, "upper bound, lower bound, and step must all have the same type");
            }
            Ok(Bounds::Explicit(Value::Number(a), Value::Number(b)))
        }
        (Some(Value::Number(_)), ..) => error(5_733_406, both),
        (Some(Value::Date(a)), Some(Value::Date(b)), Step::Time(..)) => {
            Ok(Bounds::Explicit(Value::Date(a), Value::Date(b)))
        }
        (Some(Value::Date(_)), Some(Value::Date(_)), Step::Number(_)) => {
            error(5_733_410, "a bounding array of dates must specify a unit")
        }
        (Some(Value::Date(_)), ..) => error(5_733_405, both),
    }
}
