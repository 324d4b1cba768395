//! Accumulators from JSON: one operand, or an object of named ones.
//!
//! Takes the name and the value of an accumulator, gives the [`Accumulator`]; errors have MongoDB's number and the place.

use super::{Accumulator, AccumulatorKind, Wanted};
use crate::error::shown;
use crate::expr::Expression;
use crate::number::Number;
use crate::sort::Sort;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbRef, ObjectRef};

/// The share of a median.
const HALF: f64 = 0.5;

/// MongoDB's numbers for what is wrong with an object of operands; they differ from family to family.
struct Codes {
    no_object: i32,
    unknown: i32,
    no_n: i32,
    no_input: i32,
}

const TOP: Codes = Codes { no_object: 5_788_001, unknown: 5_788_002, no_n: 5_788_003, no_input: 5_788_004 };
const FIRST_N: Codes = Codes { no_object: 5_787_801, unknown: 5_787_901, no_n: 5_787_906, no_input: 5_787_907 };
const MIN_N: Codes = Codes { no_object: 5_787_900, ..FIRST_N };

impl Accumulator {
    /// `{$count: {}}`.
    pub(crate) fn count() -> Self {
        let wanted = Wanted::Count(1);
        Self { kind: AccumulatorKind::Count, argument: None, wanted, sort: None, shares: Vec::new() }
    }

    /// Parses the value of the accumulator `name`.
    ///
    /// # Errors
    /// 15952 for a name that is not known, those of the operands.
    pub fn parse(name: &str, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let Some(kind) = AccumulatorKind::by_name(name) else {
            let message = match name {
                "$accumulator" | "$function" => {
                    format!("the accumulator {name} is not supported: there is no JavaScript")
                }
                _ => format!("unknown group operator '{name}'"),
            };
            return Err(QueryError::location(15952, message).at(&context.place));
        };
        let mut parsed = Self { kind, argument: None, wanted: Wanted::Count(1), sort: None, shares: Vec::new() };
        let filled = match kind {
            AccumulatorKind::Count => check_empty(value),
            AccumulatorKind::Top | AccumulatorKind::TopN | AccumulatorKind::Bottom | AccumulatorKind::BottomN => {
                parsed.named(value, &TOP, context)
            }
            AccumulatorKind::FirstN | AccumulatorKind::LastN => parsed.named(value, &FIRST_N, context),
            AccumulatorKind::MinN | AccumulatorKind::MaxN => parsed.named(value, &MIN_N, context),
            AccumulatorKind::Median | AccumulatorKind::Percentile => parsed.quantiles(value, context),
            _ => Expression::parse(value, context).map(|e| parsed.argument = Some(e)),
        };
        filled.map(|()| parsed).map_err(|e| e.at(&context.place))
    }

    /// Reads `{n, input}` or `{n, sortBy, output}`.
    fn named(&mut self, value: JsonbRef<'_>, codes: &Codes, context: &ParseContext<'_>) -> Result<(), QueryError> {
        let name = self.kind.name();
        let Some(object) = value.as_object() else {
            let message = format!("the specification of {name} must be an object; found {}", shown(value));
            return Err(QueryError::location(codes.no_object, message));
        };
        let sorted = codes.no_object == TOP.no_object;
        let input = if sorted { "output" } else { "input" };
        let single = matches!(self.kind, AccumulatorKind::Top | AccumulatorKind::Bottom);
        let mut wanted = None;
        for field in object {
            let place = context.place.name(field.name());
            let inner = context.at(place);
            match field.name() {
                "n" if !single => wanted = Some(wanted_count(field.value, &inner)?),
                "sortBy" if sorted => {
                    if field.value.as_object().is_none() {
                        let message = format!("the sortBy of {name} must be an object; found {}", shown(field.value));
                        return Err(QueryError::location(5_788_604, message).at(&place));
                    }
                    self.sort = Some(Sort::parse(field.value, &inner)?);
                }
                field_name if field_name == input => self.argument = Some(Expression::parse(field.value, &inner)?),
                unknown => {
                    let message = format!("unknown argument to {name}: '{unknown}'");
                    return Err(QueryError::location(codes.unknown, message).at(&place));
                }
            }
        }
        let missing = |code, what: &str| QueryError::location(code, format!("missing value for '{what}' of {name}"));
        if let Some(wanted) = wanted {
            self.wanted = wanted;
        } else if !single {
            return Err(missing(codes.no_n, "n"));
        }
        if self.argument.is_none() {
            return Err(missing(codes.no_input, input));
        }
        if sorted && self.sort.is_none() {
            return Err(missing(5_788_005, "sortBy"));
        }
        Ok(())
    }

    /// Reads `{input, method}` or `{input, p, method}`.
    fn quantiles(&mut self, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<(), QueryError> {
        let name = self.kind.name();
        let median = self.kind == AccumulatorKind::Median;
        let Some(object) = value.as_object() else {
            let code = if median { 7_436_100 } else { 7_429_703 };
            let message = format!("the specification of {name} must be an object; found {}", shown(value));
            return Err(QueryError::location(code, message));
        };
        for field in object {
            let place = context.place.name(field.name());
            let inner = context.at(place);
            match field.name() {
                "input" => self.argument = Some(Expression::parse(field.value, &inner)?),
                "method" => method(field.value).map_err(|e| e.at(&place))?,
                "p" if !median => self.shares = shares(field.value, &inner).map_err(|e| e.at(&place))?,
                unknown => {
                    let message = format!("BSON field '{name}.{unknown}' is an unknown field.");
                    return Err(QueryError::location(40415, message).at(&place));
                }
            }
        }
        if median {
            self.shares = vec![HALF];
        }
        let wanted: &[&str] = if median { &["input", "method"] } else { &["input", "p", "method"] };
        require(object, name, wanted)
    }
}

fn require(object: ObjectRef<'_>, name: &str, wanted: &[&str]) -> Result<(), QueryError> {
    match wanted.iter().find(|field| object.get(field).is_none()) {
        None => Ok(()),
        Some(field) => {
            let message = format!("BSON field '{name}.{field}' is missing but a required field");
            Err(QueryError::location(40414, message))
        }
    }
}

fn check_empty(value: JsonbRef<'_>) -> Result<(), QueryError> {
    if value.as_object().is_some_and(ObjectRef::is_empty) {
        return Ok(());
    }
    Err(QueryError::type_mismatch("$count takes no arguments, i.e. $count:{}"))
}

fn method(value: JsonbRef<'_>) -> Result<(), QueryError> {
    match value.as_str() {
        Some("approximate") => Ok(()),
        Some(_) => Err(QueryError::bad_value("only 'approximate' can be used as percentile 'method'")),
        None => Err(QueryError::type_mismatch(format!("the 'method' is a string, not {}", value.kind().alias()))),
    }
}

fn shares(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Vec<f64>, QueryError> {
    let parsed = Expression::parse(value, context)?;
    let Some(array) = parsed.constant() else {
        let message =
            format!("the $percentile 'p' field must be an array of constant values, but found {}", shown(value));
        return Err(QueryError::location(7_750_300, message));
    };
    let wrong = |code, found: JsonbRef<'_>| {
        let message = "the $percentile 'p' field must be a non-empty array of numbers from 0.0 to 1.0";
        QueryError::location(code, format!("{message}, but found {}", shown(found)))
    };
    let shares = array.as_array().filter(|a| !a.is_empty()).ok_or_else(|| wrong(7_750_301, array))?;
    let share = |v: JsonbRef<'_>| {
        let share = Number::of(v).map(Number::to_f64).ok_or_else(|| wrong(7_750_302, v))?;
        Some(share).filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| wrong(7_750_303, v))
    };
    shares.iter().map(share).collect()
}

fn wanted_count(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Wanted, QueryError> {
    let parsed = Expression::parse(value, context)?;
    match parsed.constant() {
        Some(n) => check_wanted(n).map(Wanted::Count).map_err(|e| e.at(&context.place)),
        None => Ok(Wanted::OfGroup(parsed)),
    }
}

/// An `n`: a whole number above zero.
pub(super) fn check_wanted(value: JsonbRef<'_>) -> Result<u64, QueryError> {
    let wrong = |code| {
        let message = format!("the value for 'n' must be of integral type, but found {}", shown(value));
        QueryError::location(code, message)
    };
    let n = Number::of(value).ok_or_else(|| wrong(5_787_902))?.as_whole().ok_or_else(|| wrong(5_787_903))?;
    match u64::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => Err(QueryError::location(5_787_908, format!("'n' must be greater than 0, found {n}"))),
    }
}
