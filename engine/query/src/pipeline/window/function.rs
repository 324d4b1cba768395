//! Window functions from JSON.
//!
//! Takes one field of `output`, gives what is to be made of which rows. Accumulators are parsed as those of `$group`.
//! Next: `bounds.rs`, `running.rs`.

use super::bounds::{Bounds, parse_unit};
use super::order::Ordered;
use crate::decimal;
use crate::error::shown;
use crate::expr::{Expression, Unit};
use crate::number::Number;
use crate::pipeline::accumulate::{Accumulator, AccumulatorKind, State, Wanted};
use crate::sort::Sort;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{Decimal128, JsonbBuf, JsonbRef, NULL, ObjectRef};

/// A function and its window.
#[derive(Debug)]
pub(super) struct WindowFunction {
    pub(super) function: Function,
    pub(super) bounds: Bounds,
}

/// What a window that slides keeps of a row: a sum, and where it has doubles their exact total.
const SLIDING_BYTES: usize = size_of::<State>() + 128;

#[derive(Debug)]
pub(super) enum Function {
    Accumulate(Accumulator),
    Covariance { pair: Expression, sample: bool },
    Rank,
    DenseRank,
    DocumentNumber,
    Shift { output: Expression, by: i64, default: JsonbBuf },
    Derivative { input: Expression, unit: Option<Unit> },
    Integral { input: Expression, unit: Option<Unit> },
    ExpMovingAvg { input: Expression, alpha: Decimal128 },
    LinearFill(Expression),
    Locf(Expression),
}

/// The names of the functions that are no accumulators.
pub(super) const FUNCTIONS: [&str; 11] = [
    "$covariancePop",
    "$covarianceSamp",
    "$rank",
    "$denseRank",
    "$documentNumber",
    "$shift",
    "$derivative",
    "$integral",
    "$expMovingAvg",
    "$linearFill",
    "$locf",
];

/// The names of all window functions.
pub fn window_function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.into_iter().chain(AccumulatorKind::names().filter(|name| *name != "$mergeObjects"))
}

fn failed(message: impl Into<String>) -> QueryError {
    QueryError::failed_to_parse(message)
}

impl WindowFunction {
    /// Parses a field of `output`.
    pub(super) fn parse(
        value: JsonbRef<'_>,
        sort: Option<&Sort>,
        context: &ParseContext<'_>,
    ) -> Result<Self, QueryError> {
        let at = |e: QueryError| e.at(&context.place);
        let Some(object) = value.as_object() else {
            return Err(at(failed(format!("a window function is an object, not {}", value.kind().alias()))));
        };
        let Some(entry) = object.iter().find(|e| e.name().starts_with('$')) else {
            return Err(at(failed("expected a $-prefixed window function")));
        };
        let name = entry.name();
        let place = context.place.name(name);
        let inner = context.at(place);
        if !window_function_names().any(|known| known == name) {
            return Err(failed(format!("unrecognized window function, {name}")).at(&place));
        }
        let window = object.get("window");
        if let Some(unknown) = object.iter().find(|e| e.name() != name && e.name() != "window") {
            let code = if is_rank(name) { 5_371_601 } else { 9 };
            let message = format!("{name} got an unexpected argument beside it: {}", unknown.name());
            return Err(error(code, message).at(&context.place.name(unknown.name())));
        }
        let function = parse_function(name, entry.value, sort, window, &inner).map_err(|e| e.at(&place))?;
        let mut bounds = Bounds::ALL;
        if let Some(window) = window {
            let place = context.place.name("window");
            bounds = Bounds::parse(window, sort, &context.at(place))?;
        }
        Ok(Self { function, bounds })
    }

    /// What it takes of each row.
    pub(super) fn argument(&self) -> Option<&Expression> {
        match &self.function {
            Function::Accumulate(accumulator) => accumulator.argument(),
            Function::Covariance { pair: e, .. }
            | Function::Shift { output: e, .. }
            | Function::Derivative { input: e, .. }
            | Function::Integral { input: e, .. }
            | Function::ExpMovingAvg { input: e, .. }
            | Function::LinearFill(e)
            | Function::Locf(e) => Some(e),
            Function::Rank | Function::DenseRank | Function::DocumentNumber => None,
        }
    }

    /// The memory that it keeps for each row of a partition while it goes over them, about.
    pub(super) fn bytes_per_row(&self) -> usize {
        use AccumulatorKind as K;
        let kind = match &self.function {
            Function::Accumulate(accumulator) => accumulator.kind(),
            Function::Covariance { .. } | Function::Integral { .. } => K::Sum,
            _ => return 0,
        };
        match kind {
            K::Sum | K::Average | K::Count | K::DeviationPopulation | K::DeviationSample => {
                if self.bounds.slides() {
                    SLIDING_BYTES
                } else {
                    0
                }
            }
            K::First | K::Last | K::FirstN | K::LastN | K::Push | K::MergeObjects => 0,
            _ => Ordered::BYTES_PER_ROW,
        }
    }

    /// Whether it looks at the value that rows are sorted by.
    pub(super) fn needs_sort_value(&self) -> bool {
        matches!(self.bounds, Bounds::Range(..))
            || matches!(
                self.function,
                Function::Derivative { .. } | Function::Integral { .. } | Function::LinearFill(_)
            )
    }
}

fn error(code: i32, message: impl Into<String>) -> QueryError {
    if code == 9 { failed(message) } else { QueryError::location(code, message) }
}

fn is_rank(name: &str) -> bool {
    matches!(name, "$rank" | "$denseRank" | "$documentNumber")
}

fn parse_function(
    name: &str,
    value: JsonbRef<'_>,
    sort: Option<&Sort>,
    window: Option<JsonbRef<'_>>,
    context: &ParseContext<'_>,
) -> Result<Function, QueryError> {
    let without_window = || match window {
        Some(_) if is_rank(name) => Err(error(5_371_601, "rank style window functions take no other arguments")),
        Some(_) => Err(failed(format!("'window' field is not allowed in {name}"))),
        None => Ok(()),
    };
    let one_field = || sort.filter(|s| s.fields().len() == 1);
    if is_rank(name) {
        without_window()?;
        if !value.as_object().is_some_and(ObjectRef::is_empty) {
            return Err(error(5_371_603, format!("{name} must be specified with '{{}}' as the value")));
        }
        if one_field().is_none() {
            let message = format!("{name} must be specified with a top level sortBy with exactly one element");
            return Err(error(5_371_602, message));
        }
        return Ok(match name {
            "$rank" => Function::Rank,
            "$denseRank" => Function::DenseRank,
            _ => Function::DocumentNumber,
        });
    }
    Ok(match name {
        "$covariancePop" | "$covarianceSamp" => {
            Function::Covariance { pair: Expression::parse(value, context)?, sample: name == "$covarianceSamp" }
        }
        "$shift" => {
            without_window()?;
            parse_shift(value, sort, context)?
        }
        "$derivative" | "$integral" => {
            if one_field().is_none() {
                return Err(failed(format!("{name} requires a sortBy of one field")));
            }
            let (input, unit) = parse_with_unit(name, value, context)?;
            if name == "$integral" {
                return Ok(Function::Integral { input, unit });
            }
            if window.is_none() {
                return Err(failed("$derivative requires explicit window bounds"));
            }
            Function::Derivative { input, unit }
        }
        "$expMovingAvg" => {
            without_window()?;
            parse_moving_average(value, sort, context)?
        }
        "$linearFill" => {
            without_window()?;
            if one_field().is_none() {
                let message = "$linearFill must be specified with a top level sortBy with exactly one element";
                return Err(error(605_001, message));
            }
            Function::LinearFill(Expression::parse(value, context)?)
        }
        "$locf" => {
            without_window()?;
            Function::Locf(Expression::parse(value, context)?)
        }
        _ => {
            let accumulator = Accumulator::parse(name, value, context)?;
            if let Wanted::OfGroup(_) = accumulator.wanted() {
                // As in MongoDB it is asked of no document: what depends on one is no number.
                State::of_group(&accumulator, NULL, crate::expr::Budget::default())?;
                return Err(error(5_787_902, format!("the 'n' of {name} must be a constant here")));
            }
            Function::Accumulate(accumulator)
        }
    })
}

fn parse_shift(value: JsonbRef<'_>, sort: Option<&Sort>, context: &ParseContext<'_>) -> Result<Function, QueryError> {
    let Some(object) = value.as_object() else {
        return Err(failed(format!("the argument to $shift must be an object, but got {}", value.kind().alias())));
    };
    if sort.is_none() {
        return Err(failed("'$shift' requires a sortBy"));
    }
    let (mut output, mut by, mut default) = (None, None, NULL.to_buf());
    for field in object {
        let place = context.place.name(field.name());
        let inner = context.at(place);
        match field.name() {
            "output" => output = Some(Expression::parse(field.value, &inner)?),
            "by" => {
                let whole = Number::of(field.value).and_then(Number::as_whole).filter(|n| i32::try_from(*n).is_ok());
                let message =
                    || failed(format!("'$shift:by' field must be an integer, but found {}", shown(field.value)));
                by = Some(whole.ok_or_else(|| message().at(&place))?);
            }
            "default" => {
                let parsed = Expression::parse(field.value, &inner)?;
                let constant = parsed.constant();
                let message = "'$shift:default' expression must yield a constant value";
                default = constant.ok_or_else(|| failed(message).at(&place))?.to_buf();
            }
            unknown => return Err(failed(format!("unknown argument in $shift: {unknown}")).at(&place)),
        }
    }
    match (output, by) {
        (Some(output), Some(by)) => Ok(Function::Shift { output, by, default }),
        (None, _) => Err(failed("$shift requires an 'output' expression")),
        (_, None) => Err(failed("$shift requires 'by' as an integer value")),
    }
}

fn parse_with_unit(
    name: &str,
    value: JsonbRef<'_>,
    context: &ParseContext<'_>,
) -> Result<(Expression, Option<Unit>), QueryError> {
    let Some(object) = value.as_object() else {
        return Err(failed(format!("{name} expects an object, but got a {}", value.kind().alias())));
    };
    let (mut input, mut unit) = (None, None);
    for field in object {
        let place = context.place.name(field.name());
        match field.name() {
            "input" => input = Some(Expression::parse(field.value, &context.at(place))?),
            "unit" => {
                let parsed = parse_unit(field.value).map_err(|e| e.at(&place))?;
                if parsed.milliseconds().is_none() {
                    return Err(error(5_490_710, "unit must be 'week' or smaller").at(&place));
                }
                unit = Some(parsed);
            }
            unknown => return Err(failed(format!("{name} got an unexpected argument: {unknown}")).at(&place)),
        }
    }
    let input = input.ok_or_else(|| failed(format!("{name} requires an 'input' expression")))?;
    Ok((input, unit))
}

fn parse_moving_average(
    value: JsonbRef<'_>,
    sort: Option<&Sort>,
    context: &ParseContext<'_>,
) -> Result<Function, QueryError> {
    let wanted = "$expMovingAvg has exactly two fields: 'input', and either 'N' or 'alpha'";
    let object = value.as_object().ok_or_else(|| failed("$expMovingAvg must have one argument that is an object"))?;
    let input = object.get("input").filter(|_| object.len() == 2).ok_or_else(|| failed(wanted))?;
    if sort.is_none() {
        return Err(failed("$expMovingAvg requires an explicit 'sortBy'"));
    }
    let place = context.place.name("input");
    let input = Expression::parse(input, &context.at(place))?;
    let alpha = match (object.get("N"), object.get("alpha")) {
        (Some(n), _) => {
            let place = context.place.name("N");
            let whole = Number::of(n).and_then(Number::as_whole);
            let message = || failed(format!("'N' must be a whole number above zero, found {}", shown(n))).at(&place);
            let n = whole.filter(|n| *n > 0).ok_or_else(message)?;
            let one_more = decimal::add(Decimal128::from_i64(n), Decimal128::from_i64(1));
            decimal::div(Decimal128::from_i64(2), one_more)
        }
        (_, Some(alpha)) => {
            let place = context.place.name("alpha");
            let message = || failed(format!("'alpha' must be between 0 and 1, found {}", shown(alpha))).at(&place);
            let n = Number::of(alpha).ok_or_else(message)?;
            let inside = n.to_f64() > 0.0 && n.to_f64() < 1.0;
            Some(n.to_decimal()).filter(|_| inside).ok_or_else(message)?
        }
        (None, None) => return Err(failed(wanted)),
    };
    Ok(Function::ExpMovingAvg { input, alpha })
}
