//! Which rows of a partition a window holds: so many around the current one, or those whose sort value is near its own.
//!
//! Takes the `window` of a function; gives for each row, one after another, the first row of its window and the one behind
//! its last. Both only ever move forward. Must never know what is made of the rows.

use crate::error::shown;
use crate::expr::{Datum, Expression, Unit};
use crate::number::Number;
use crate::sort::{Direction, Sort};
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::JsonbRef;
use std::cmp::Ordering;
use std::ops::Range;

/// A parsed window.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bounds {
    /// By position.
    Documents(Bound<i64>, Bound<i64>),
    /// By the value of the sort's one field; in units of time where that is a date.
    Range(Bound<Number>, Bound<Number>, Option<Unit>),
}

/// One end of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound<T> {
    Unbounded,
    Current,
    /// So far from the current row.
    At(T),
}

impl Bounds {
    /// All rows of the partition.
    pub(super) const ALL: Self = Self::Documents(Bound::Unbounded, Bound::Unbounded);

    pub(super) fn parse(
        value: JsonbRef<'_>,
        sort: Option<&Sort>,
        context: &ParseContext<'_>,
    ) -> Result<Self, QueryError> {
        let failed = |message: &str| QueryError::failed_to_parse(message).at(&context.place);
        let Some(object) = value.as_object() else { return Err(failed("'window' field must be an object")) };
        if let Some(unknown) = object.iter().find(|e| !matches!(e.name(), "documents" | "range" | "unit")) {
            let message = format!("'window' has 'documents', or 'range' and 'unit'; found '{}'", unknown.name());
            return Err(QueryError::failed_to_parse(message).at(&context.place.name(unknown.name())));
        }
        let (documents, range, unit) = (object.get("documents"), object.get("range"), object.get("unit"));
        match (documents, range, unit) {
            (None, None, None) => Ok(Self::ALL),
            (Some(_), Some(_), _) => Err(failed("window bounds can specify either 'documents' or 'range', not both")),
            (_, None, Some(_)) => Err(failed("window bounds can only specify 'unit' with range-based bounds")),
            (Some(documents), ..) => {
                let place = context.place.name("documents");
                parse_documents(documents, sort, &context.at(place))
            }
            (_, Some(range), unit) => {
                let place = context.place.name("unit");
                let unit = unit.map(|unit| parse_unit(unit).map_err(|e| e.at(&place))).transpose()?;
                let place = context.place.name("range");
                parse_range(range, unit, sort, &context.at(place))
            }
        }
    }
}

impl Bounds {
    /// Whether so many rows leave the window again that it matters what is kept of each.
    pub(super) fn slides(&self) -> bool {
        const FEW: i64 = 1000;
        match self {
            Self::Documents(Bound::Unbounded, _) | Self::Range(Bound::Unbounded, ..) => false,
            Self::Documents(lower, upper) => {
                let at = |bound: &Bound<i64>| match bound {
                    Bound::Unbounded => None,
                    Bound::Current => Some(0),
                    Bound::At(n) => Some(*n),
                };
                at(upper).zip(at(lower)).is_none_or(|(upper, lower)| upper - lower > FEW)
            }
            Self::Range(..) => true,
        }
    }
}

/// The unit of a name.
pub(super) fn parse_unit(value: JsonbRef<'_>) -> Result<Unit, QueryError> {
    let Some(name) = value.as_str() else {
        return Err(QueryError::failed_to_parse(format!("'unit' must be a string, but got {}", value.kind().alias())));
    };
    Unit::by_name(name).ok_or_else(|| QueryError::failed_to_parse(format!("unknown time unit value: {name}")))
}

fn pair<'v>(value: JsonbRef<'v>, context: &ParseContext<'_>) -> Result<(JsonbRef<'v>, JsonbRef<'v>), QueryError> {
    let array = value.as_array().filter(|a| a.len() == 2);
    array.and_then(|a| Some((a.get(0)?, a.get(1)?))).ok_or_else(|| {
        let message = format!("window bounds must be a 2-element array: {}", shown(value));
        QueryError::failed_to_parse(message).at(&context.place)
    })
}

fn parse_bound<T>(
    value: JsonbRef<'_>,
    context: &ParseContext<'_>,
    read: impl FnOnce(Number) -> Option<T>,
    wanted: &str,
) -> Result<Bound<T>, QueryError> {
    let failed = |message: &str| QueryError::failed_to_parse(message).at(&context.place);
    if let Some(name) = value.as_str() {
        return match name {
            "unbounded" => Ok(Bound::Unbounded),
            "current" => Ok(Bound::Current),
            _ => Err(failed("window bounds must be 'unbounded', 'current', or a number")),
        };
    }
    let parsed = Expression::parse(value, context)?;
    let Some(constant) = parsed.constant() else { return Err(failed("a window bounds expression must be a constant")) };
    Number::of(constant).and_then(read).map(Bound::At).ok_or_else(|| failed(wanted))
}

fn parse_documents(value: JsonbRef<'_>, sort: Option<&Sort>, context: &ParseContext<'_>) -> Result<Bounds, QueryError> {
    let (lower, upper) = pair(value, context)?;
    let whole = |n: Number| n.as_whole().filter(|n| i32::try_from(*n).is_ok());
    let wanted = "numeric document-based bounds must be an integer";
    let lower = parse_bound(lower, &context.at(context.place.index(0)), whole, wanted)?;
    let upper = parse_bound(upper, &context.at(context.place.index(1)), whole, wanted)?;
    let at = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0),
        Bound::At(n) => Some(n),
    };
    if let (Some(from), Some(to)) = (at(lower), at(upper))
        && from > to
    {
        return Err(not_ascending(value).at(&context.place));
    }
    let bounds = Bounds::Documents(lower, upper);
    if bounds != Bounds::ALL && sort.is_none() {
        let message = "document-based bounds require a sortBy";
        return Err(QueryError::location(5_339_901, message).at(&context.place));
    }
    Ok(bounds)
}

fn not_ascending(value: JsonbRef<'_>) -> QueryError {
    QueryError::location(5_339_900, format!("lower bound must not exceed upper bound: {}", shown(value)))
}

fn parse_range(
    value: JsonbRef<'_>,
    unit: Option<Unit>,
    sort: Option<&Sort>,
    context: &ParseContext<'_>,
) -> Result<Bounds, QueryError> {
    let (lower, upper) = pair(value, context)?;
    let (read, wanted): (fn(Number) -> Option<Number>, _) = if unit.is_some() {
        (|n| n.as_whole().map(|_| n), "with 'unit', range-based bounds must be an integer")
    } else {
        (|n| Some(n).filter(|n| !n.is_nan()), "a range-based bounds expression must be a number")
    };
    let lower = parse_bound(lower, &context.at(context.place.index(0)), read, wanted)?;
    let upper = parse_bound(upper, &context.at(context.place.index(1)), read, wanted)?;
    let at = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(Number::Int32(0)),
        Bound::At(n) => Some(n),
    };
    if let (Some(from), Some(to)) = (at(lower), at(upper))
        && Datum::Number(from).compare(&Datum::Number(to))?.is_gt()
    {
        return Err(not_ascending(value).at(&context.place));
    }
    let field = match sort.map(Sort::fields) {
        Some([field]) => field,
        _ => {
            let message = "range-based bounds require sortBy a single field";
            return Err(QueryError::location(5_339_902, message).at(&context.place));
        }
    };
    if field.direction != Direction::Ascending {
        let message = "range-based bounds require an ascending sortBy";
        return Err(QueryError::location(8_947_401, message).at(&context.place));
    }
    Ok(Bounds::Range(lower, upper, unit))
}

/// The windows of a partition, one after another.
#[derive(Debug)]
pub(super) struct Windows<'b> {
    bounds: &'b Bounds,
    rows: usize,
    window: Range<usize>,
}

impl<'b> Windows<'b> {
    /// Of so many rows.
    pub(super) fn new(bounds: &'b Bounds, rows: usize) -> Self {
        Self { bounds, rows, window: 0..0 }
    }

    /// The rows in the window of `row`, which is the next. `value` gives the sort value of a row, for windows by range.
    pub(super) fn of<'v>(
        &mut self,
        row: usize,
        value: impl Fn(usize) -> Datum<'v>,
    ) -> Result<Range<usize>, QueryError> {
        let (start, end) = match self.bounds {
            Bounds::Documents(lower, upper) => {
                let at = |n: i64| usize::try_from(row as i64 + n).unwrap_or(0).min(self.rows);
                let start = match lower {
                    Bound::Unbounded => 0,
                    Bound::Current => row,
                    Bound::At(n) => at(*n),
                };
                let end = match upper {
                    Bound::Unbounded => self.rows,
                    Bound::Current => row + 1,
                    Bound::At(n) => at(n + 1),
                };
                (start, end)
            }
            Bounds::Range(lower, upper, unit) => {
                let base = value(row);
                check_base(&base, *unit)?;
                let mut start = self.window.start;
                match lower {
                    Bound::Unbounded => start = 0,
                    Bound::Current => start = row,
                    Bound::At(by) => {
                        let threshold = moved(&base, *by, *unit)?;
                        while start < self.rows && order(value(start), &threshold)? == Ordering::Less {
                            start += 1;
                        }
                    }
                }
                let mut end = self.window.end.max(start);
                match upper {
                    Bound::Unbounded => end = self.rows,
                    Bound::Current => end = row + 1,
                    Bound::At(by) => {
                        let threshold = moved(&base, *by, *unit)?;
                        while end < self.rows && order(value(end), &threshold)? != Ordering::Greater {
                            end += 1;
                        }
                    }
                }
                (start, end)
            }
        };
        // Neither end ever goes back, also where the window is empty.
        self.window = start.max(self.window.start)..end.max(start).max(self.window.end);
        Ok(start..end.max(start))
    }
}

/// A double is compared with a threshold as the decimal that it stands for, as it was in making it: 0.4 is within 0.3 of 0.1.
fn order(value: Datum<'_>, threshold: &Datum<'_>) -> Result<Ordering, QueryError> {
    match (&value, threshold) {
        (Datum::Number(n @ Number::Double(_)), Datum::Number(Number::Decimal(_))) => {
            Datum::decimal(n.to_decimal()).compare(threshold)
        }
        _ => value.compare(threshold),
    }
}

fn check_base(base: &Datum<'_>, unit: Option<Unit>) -> Result<(), QueryError> {
    let (code, message) = match (base, unit) {
        (Datum::Date(_), Some(_)) | (Datum::Number(_), None) => return Ok(()),
        (_, Some(_)) => (5_429_513, "expected the sortBy field to be a Date, but it was"),
        (Datum::Date(_), None) => {
            (5_429_413, "for windows that involve dates a unit must be provided; the sortBy is a")
        }
        (_, None) => (5_429_414, "expected the sortBy field to be a number, but it was"),
    };
    Err(QueryError::location(code, format!("invalid range: {message} {}", base.type_name())))
}

fn moved(base: &Datum<'_>, by: Number, unit: Option<Unit>) -> Result<Datum<'static>, QueryError> {
    if let (Datum::Date(date), Some(unit)) = (base, unit) {
        return unit.after(*date, by.as_whole().unwrap_or(0)).map(Datum::Date);
    }
    let base = base.as_number().unwrap_or(Number::Int32(0));
    if let (Some(a), Some(b)) = (base.as_i64(), by.as_i64())
        && let Some(sum) = a.checked_add(b)
    {
        return Ok(Datum::long(sum));
    }
    // In decimal, as MongoDB: 0.1 and 0.2 make 0.3.
    Ok(Datum::decimal(crate::decimal::add(base.to_decimal(), by.to_decimal())))
}
