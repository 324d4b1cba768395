//! The functions that look at neighbours: areas, rates, averages that fade, lines between known points.
//!
//! Takes columns by row, gives the value of one row. Next: `arithmetic.rs`.

use super::arithmetic::{combine, coordinate, divide, half, interpolate};
use super::rows::Column;
use super::running::Step;
use super::sliding::{Fold, Sliding};
use crate::exact::Sum;
use crate::expr::{Datum, Unit};
use crate::number::{Number, Operation};
use crate::pipeline::Fault;
use crate::{QueryError, decimal};
use quarrydb_jsonb::{Decimal128, JsonbBuf, NULL};
use std::ops::Range;

/// The areas between each row and the one before it.
struct Areas<'c> {
    x: &'c Column,
    y: &'c Column,
    unit: Option<Unit>,
}

impl Areas<'_> {
    fn point(&self, row: usize) -> Result<(Number, Number), QueryError> {
        let wrong = |code, message: &str| QueryError::location(code, format!("$integral: {message}"));
        let (x, y) = (self.x.datum(row), self.y.datum(row));
        match (&x, self.unit) {
            (Datum::Date(_), Some(_)) | (Datum::Number(_), None) => {}
            (Datum::Date(_), None) => {
                return Err(wrong(5_423_902, "without a 'unit' the sortBy field must be numeric, not a date"));
            }
            (Datum::Number(_), Some(_)) => {
                return Err(wrong(5_423_901, "with a 'unit' the sortBy field must be a date"));
            }
            _ => return Err(wrong(5_423_900, "the sortBy field must be numeric or a date")),
        }
        match (coordinate(&x), y.as_number()) {
            (Some(x), Some(y)) => Ok((x, y)),
            _ => Err(wrong(5_423_900, "the input must be numeric")),
        }
    }
}

impl Fold for Areas<'_> {
    type State = Sum;

    fn empty(&self) -> Sum {
        Sum::default()
    }

    fn add(&self, state: &mut Sum, row: usize) -> Result<(), QueryError> {
        let Some(before) = row.checked_sub(1) else { return Ok(()) };
        let ((x1, y1), (x2, y2)) = (self.point(before)?, self.point(row)?);
        let width = combine(x2, Operation::Sub, x1);
        let heights = combine(y1, Operation::Add, y2);
        state.add(half(combine(heights, Operation::Mul, width)));
        Ok(())
    }

    fn merge(&self, state: &mut Sum, later: &Sum) -> Result<(), QueryError> {
        state.merge(later);
        Ok(())
    }
}

/// The area under the rows of a window, by trapezoids.
pub(super) fn integral(
    sliding: &mut Sliding<Sum>,
    y: &Column,
    x: &Column,
    unit: Option<Unit>,
    window: &Range<usize>,
) -> Result<JsonbBuf, QueryError> {
    let areas = Areas { x, y, unit };
    if window.is_empty() {
        return Ok(NULL.to_buf());
    }
    // A row that stands alone in its window is looked at too.
    areas.point(window.start)?;
    let between = window.start + 1..window.end;
    let total = sliding.move_to(&between, &areas)?.finish();
    let per = unit.and_then(Unit::milliseconds).map(Number::Int64);
    let total = per.and_then(|per| divide(total, per)).unwrap_or(total);
    Datum::Number(total).to_buf()
}

/// Rise over run between the ends of a window; null where there is no run.
pub(super) fn derivative(
    y: &Column,
    x: &Column,
    unit: Option<Unit>,
    window: &Range<usize>,
) -> Result<JsonbBuf, QueryError> {
    let (Some(left), Some(right)) = (window.clone().next(), window.clone().next_back()) else {
        return Ok(NULL.to_buf());
    };
    let wrong = |code, message: &str| QueryError::location(code, format!("$derivative {message}"));
    let (x1, x2) = (x.datum(left), x.datum(right));
    let is_date = |d: &Datum<'_>| matches!(d, Datum::Date(_));
    if unit.is_some() && !(is_date(&x1) && is_date(&x2)) {
        return Err(wrong(5_624_900, "with 'unit' expects the sortBy field to be a Date"));
    }
    if unit.is_none() && (is_date(&x1) || is_date(&x2)) {
        return Err(wrong(5_624_901, "where the sortBy is a Date requires a 'unit'"));
    }
    let (Some(x1), Some(x2)) = (coordinate(&x1), coordinate(&x2)) else {
        return Err(wrong(5_624_902, "(with no 'unit') expects the sortBy field to be numeric"));
    };
    let (y1, y2) = (y.datum(left), y.datum(right));
    if y1.is_nullish() || y2.is_nullish() {
        return Err(wrong(5_624_903, "input must not be null or missing"));
    }
    let (Some(y1), Some(y2)) = (coordinate(&y1), coordinate(&y2)) else {
        let message = format!("$derivative: can't $subtract {} from {}", y1.type_name(), y2.type_name());
        return Err(QueryError::type_mismatch(message));
    };
    let slope = divide(combine(y2, Operation::Sub, y1), combine(x2, Operation::Sub, x1));
    let per = unit.and_then(Unit::milliseconds).map(Number::Int64);
    let slope = slope.map(|slope| per.map_or(slope, |per| combine(slope, Operation::Mul, per)));
    slope.map_or(Ok(NULL.to_buf()), |n| Datum::Number(n).to_buf())
}

/// In decimal, as MongoDB; a double unless a decimal came.
pub(super) fn moving_average(
    current: &mut Option<Decimal128>,
    is_decimal: &mut bool,
    n: Option<Number>,
    alpha: Decimal128,
) -> Result<JsonbBuf, QueryError> {
    if let Some(n) = n {
        *is_decimal |= n.is_decimal();
        let n = n.to_decimal();
        *current = Some(match *current {
            None => n,
            Some(before) => {
                let rest = decimal::sub(Decimal128::from_i64(1), alpha);
                decimal::add(decimal::mul(n, alpha), decimal::mul(before, rest))
            }
        });
    }
    match *current {
        None => Ok(NULL.to_buf()),
        Some(n) if *is_decimal => Datum::decimal(n).to_buf(),
        Some(n) => Datum::double(decimal::to_f64(n)).to_buf(),
    }
}

/// Between two known points a line.
#[derive(Debug, Default)]
pub(super) struct LinearFill {
    before: Option<(Number, Number)>,
    /// The next known point and its row, once it was looked for.
    after: Option<(usize, (Number, Number))>,
    /// Rows from here on have none.
    none_from: Option<usize>,
}

impl LinearFill {
    pub(super) fn next(&mut self, row: usize, y: &Column, x: &Column, step: Step<'_>) -> Result<JsonbBuf, Fault> {
        let mismatch = |message: String| QueryError::type_mismatch(message);
        let (value, at) = (y.datum(row), x.datum(row));
        if !value.is_nullish() && value.as_number().is_none() {
            let message = format!("value to be filled must be numeric or nullish, but found {}", value.type_name());
            return Err(mismatch(message).into());
        }
        let Some(here) = coordinate(&at) else {
            let message = format!("value of the sortBy field must be numeric or a date, but found {}", at.type_name());
            return Err(mismatch(message).into());
        };
        if let Some(before) = row.checked_sub(1).map(|before| x.datum(before)) {
            if before.compare(&at)?.is_eq() {
                let message = "there can be no repeated values in the sort field";
                return Err(QueryError::location(6_050_106, message).into());
            }
            if matches!(before, Datum::Date(_)) != matches!(at, Datum::Date(_)) {
                let message =
                    format!("conflicting sort value types, {} and then {}", before.type_name(), at.type_name());
                return Err(mismatch(message).into());
            }
        }
        if let Some(n) = value.as_number() {
            self.before = Some((here, n));
            return Ok(Datum::Number(n).to_buf()?);
        }
        let Some(before) = self.before else { return Ok(NULL.to_buf()) };
        if self.after.is_none_or(|(known, _)| known <= row) && self.none_from.is_none() {
            self.after = None;
            for later in row + 1..y.len() {
                step()?;
                if let (Some(n), Some(there)) = (y.datum(later).as_number(), coordinate(&x.datum(later))) {
                    self.after = Some((later, (there, n)));
                    break;
                }
            }
            if self.after.is_none() {
                self.none_from = Some(row);
            }
        }
        match self.after.filter(|(known, _)| *known > row).and_then(|(_, after)| interpolate(before, after, here)) {
            Some(n) => Ok(Datum::Number(n).to_buf()?),
            None => Ok(NULL.to_buf()),
        }
    }
}
