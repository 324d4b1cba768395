//! The functions while they go over the rows of a partition: one value for each row.
//!
//! Takes the rows' columns; gives each row's value, in order. Next: `sliding.rs`, `order.rs`, `arithmetic.rs`.

use super::arithmetic::{Covariance, combine, coordinate, divide, half, interpolate};
use super::bounds::Windows;
use super::function::{Function, WindowFunction};
use super::order::Ordered;
use super::rows::{Column, Rows};
use super::sliding::{Fold, Sliding};
use crate::exact::Sum;
use crate::expr::{Datum, Unit};
use crate::number::{Number, Operation};
use crate::pipeline::Fault;
use crate::pipeline::accumulate::{Accumulator, AccumulatorKind, State, Wanted};
use crate::{QueryError, decimal, scratch};
use quarrydb_jsonb::{Builder, Decimal128, JsonbBuf, JsonbRef, NULL, sort_key, sort_key_descending};
use std::collections::BTreeSet;
use std::ops::Range;

/// A function on its way through a partition.
pub(super) struct Running<'p> {
    function: &'p Function,
    argument: &'p Column,
    rows: &'p Rows,
    windows: Windows<'p>,
    progress: Progress,
}

/// What a function carries from row to row.
enum Progress {
    /// Nothing: the rows of the window are looked at where they lie.
    Nothing,
    States(Sliding<State>),
    Ordered(Ordered),
    Set(Distinct),
    Covariance(Sliding<Covariance>),
    Integral(Sliding<Sum>),
    /// The rank and the dense rank.
    Rank(u64, u64),
    Average {
        current: Option<Decimal128>,
        decimal: bool,
    },
    Fill(LinearFill),
    /// The last row that had a value.
    Locf(Option<usize>),
}

/// What asks whether to go on.
type Step<'s> = &'s mut dyn FnMut() -> Result<(), Fault>;

impl<'p> Running<'p> {
    /// Function `at` of the stage.
    pub(super) fn new(function: &'p WindowFunction, at: usize, rows: &'p Rows) -> Result<Self, QueryError> {
        const EMPTY: &Column = &Column::EMPTY;
        let argument = rows.arguments.get(at).unwrap_or(EMPTY);
        let keys = rows.keys.get(at).unwrap_or(EMPTY);
        let progress = match &function.function {
            Function::Accumulate(accumulator) => progress(accumulator, argument, keys, rows.len()),
            Function::Covariance { .. } => Progress::Covariance(Sliding::new(Covariance::default())),
            Function::Integral { .. } => Progress::Integral(Sliding::new(Sum::default())),
            Function::Rank | Function::DenseRank | Function::DocumentNumber => Progress::Rank(0, 0),
            Function::Shift { .. } | Function::Derivative { .. } => Progress::Nothing,
            Function::ExpMovingAvg { .. } => Progress::Average { current: None, decimal: false },
            Function::LinearFill(_) => Progress::Fill(LinearFill::default()),
            Function::Locf(_) => Progress::Locf(None),
        };
        let windows = Windows::new(&function.bounds, rows.len());
        Ok(Self { function: &function.function, argument, rows, windows, progress })
    }

    /// The value of `row`, which is the next.
    pub(super) fn next(&mut self, row: usize, step: Step<'_>) -> Result<JsonbBuf, Fault> {
        let sort_values = &self.rows.sort_values;
        let window = self.windows.of(row, |row| sort_values.datum(row))?;
        let argument = self.argument;
        Ok(match (self.function, &mut self.progress) {
            (Function::Accumulate(accumulator), progress) => {
                return accumulated(accumulator, progress, argument, &window, step);
            }
            (Function::Covariance { sample, .. }, Progress::Covariance(sliding)) => {
                double_or_null(sliding.move_to(&window, &Pairs(argument))?.finish(*sample))?
            }
            (Function::Integral { unit, .. }, Progress::Integral(sliding)) => {
                integral(sliding, argument, sort_values, *unit, &window)?
            }
            (Function::Rank | Function::DenseRank | Function::DocumentNumber, Progress::Rank(rank, dense)) => {
                let keys = &self.rows.sort_keys;
                let number = row as u64 + 1;
                if row == 0 || keys.slice(row) != keys.slice(row - 1) {
                    (*rank, *dense) = (number, *dense + 1);
                }
                let n = match self.function {
                    Function::Rank => *rank,
                    Function::DenseRank => *dense,
                    _ => number,
                };
                Datum::long(i64::try_from(n).unwrap_or(i64::MAX)).to_buf()?
            }
            (Function::Shift { by, default, .. }, _) => {
                let at = usize::try_from(row as i64 + by).ok().filter(|at| *at < self.rows.len());
                at.map_or_else(|| default.clone(), |at| argument.get(at).unwrap_or(NULL).to_buf())
            }
            (Function::Derivative { unit, .. }, _) => derivative(argument, sort_values, *unit, &window)?,
            (Function::ExpMovingAvg { alpha, .. }, Progress::Average { current, decimal }) => {
                moving_average(current, decimal, argument.datum(row).as_number(), *alpha)?
            }
            (Function::LinearFill(_), Progress::Fill(fill)) => fill.next(row, argument, sort_values, step)?,
            (Function::Locf(_), Progress::Locf(last)) => {
                if !argument.datum(row).is_nullish() {
                    *last = Some(row);
                }
                last.and_then(|row| argument.get(row)).unwrap_or(NULL).to_buf()
            }
            _ => NULL.to_buf(),
        })
    }
}

fn progress(accumulator: &Accumulator, argument: &Column, keys: &Column, rows: usize) -> Progress {
    use AccumulatorKind as K;
    let rows = 0..rows;
    match accumulator.kind() {
        K::First | K::Last | K::FirstN | K::LastN | K::Push | K::MergeObjects => Progress::Nothing,
        K::Sum | K::Average | K::Count | K::DeviationPopulation | K::DeviationSample => {
            Progress::States(Sliding::new(State::new(accumulator)))
        }
        K::AddToSet => Progress::Set(Distinct::new(argument)),
        K::Min | K::MinN | K::Max | K::MaxN => {
            let descending = matches!(accumulator.kind(), K::Max | K::MaxN);
            let key = |row: usize| {
                let value = argument.get(row).filter(|v| !Datum::from(*v).is_nullish())?;
                let mut key = Vec::new();
                if descending {
                    sort_key_descending(value, &mut key)
                } else {
                    sort_key(value, &mut key)
                }
                Some(key)
            };
            Progress::Ordered(Ordered::new(&rows.map(key).collect::<Vec<_>>()))
        }
        K::Top | K::TopN => Progress::Ordered(Ordered::new(&rows.map(|row| Some(keys.slice(row))).collect::<Vec<_>>())),
        K::Bottom | K::BottomN => {
            let key = |row: usize| Some(std::cmp::Reverse(keys.slice(row)));
            Progress::Ordered(Ordered::new(&rows.map(key).collect::<Vec<_>>()))
        }
        K::Median | K::Percentile => {
            let key = |row: usize| number(argument, row).filter(|n| !n.is_nan()).map(Rankable);
            Progress::Ordered(Ordered::new(&rows.map(key).collect::<Vec<_>>()))
        }
    }
}

fn number(column: &Column, row: usize) -> Option<f64> {
    column.datum(row).as_number().map(Number::to_f64)
}

/// A double with a place in an order.
struct Rankable(f64);

impl Ord for Rankable {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Rankable {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rankable {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rankable {}

/// The accumulator's value over a window.
fn accumulated(
    accumulator: &Accumulator,
    progress: &mut Progress,
    argument: &Column,
    window: &Range<usize>,
    step: Step<'_>,
) -> Result<JsonbBuf, Fault> {
    use AccumulatorKind as K;
    let wanted = match accumulator.wanted() {
        Wanted::Count(n) => usize::try_from(*n).unwrap_or(usize::MAX),
        Wanted::OfGroup(_) => 1,
    };
    Ok(match progress {
        Progress::States(sliding) => {
            let rows = Accumulated { accumulator, argument };
            sliding.move_to(window, &rows)?.value(accumulator)?
        }
        Progress::Ordered(ordered) => {
            ordered.move_to(window);
            from_order(accumulator, ordered, argument, wanted, step)?
        }
        Progress::Set(distinct) => {
            distinct.move_to(window);
            array(distinct.inside.iter().map(|row| argument.get(*row as usize)), step)?
        }
        _ => {
            let of = |row: Option<usize>| row.and_then(|row| argument.get(row)).unwrap_or(NULL).to_buf();
            let or_null = |row: usize| Some(argument.get(row).unwrap_or(NULL));
            match accumulator.kind() {
                K::First => of(window.clone().next()),
                K::Last => of(window.clone().next_back()),
                K::FirstN => array(window.clone().take(wanted).map(or_null), step)?,
                K::LastN => array(window.clone().skip(window.len().saturating_sub(wanted)).map(or_null), step)?,
                _ => array(window.clone().map(|row| argument.get(row)), step)?,
            }
        }
    })
}

/// Bytes of an array that one document may get: beyond them it could not be handed on.
const ARRAY_BYTES_MAX: usize = crate::limits::WRITTEN_BYTES_MAX;

/// The values that are not missing.
fn array<'v>(values: impl Iterator<Item = Option<JsonbRef<'v>>>, step: Step<'_>) -> Result<JsonbBuf, Fault> {
    let mut out = Builder::new();
    out.begin_array();
    let too_large = |message: String| QueryError::new("BSONObjectTooLarge", 10334, message);
    for value in values.flatten() {
        step()?;
        out.copy(value);
        if out.len() > ARRAY_BYTES_MAX {
            return Err(too_large(format!("the values of a window take more than {ARRAY_BYTES_MAX} bytes")).into());
        }
    }
    out.end_array().map_err(|e| too_large(e.to_string()))?;
    Ok(JsonbBuf::from_valid(out.take()))
}

fn from_order(
    accumulator: &Accumulator,
    ordered: &Ordered,
    argument: &Column,
    wanted: usize,
    step: Step<'_>,
) -> Result<JsonbBuf, Fault> {
    use AccumulatorKind as K;
    let value = |at: Option<(usize, u32)>| at.and_then(|(row, _)| argument.get(row)).unwrap_or(NULL);
    Ok(match accumulator.kind() {
        K::Min | K::Max | K::Top | K::Bottom => value(ordered.at(0)).to_buf(),
        K::Median | K::Percentile => {
            let quantile = |share: &f64| {
                let rank = (share * ordered.len() as f64).ceil() as usize;
                ordered.at(rank.saturating_sub(1)).and_then(|(row, _)| number(argument, row))
            };
            let mut quantiles = accumulator.shares().iter().map(quantile);
            if accumulator.kind() == K::Median {
                return Ok(double_or_null(quantiles.next().flatten())?);
            }
            scratch::build(16, |out| {
                out.begin_array();
                quantiles.for_each(|q| write_double(q, out));
                out.end_array().map_err(|e| QueryError::bad_value(e.to_string()))
            })?
        }
        kind => {
            let mut first = Vec::new();
            for rank in 0..wanted.min(ordered.len()) {
                step()?;
                first.extend(ordered.at(rank));
            }
            if kind == K::BottomN {
                // Its order is the one asked for: the rows were taken from its end.
                first.sort_by_key(|(row, key)| (std::cmp::Reverse(*key), *row));
            }
            array(first.into_iter().map(|at| Some(value(Some(at)))), step)?
        }
    })
}

fn write_double(n: Option<f64>, out: &mut Builder) {
    match n {
        Some(n) => out.double(n),
        None => out.null(),
    }
}

fn double_or_null(n: Option<f64>) -> Result<JsonbBuf, QueryError> {
    scratch::build(16, |out| {
        write_double(n, out);
        Ok(())
    })
}

/// States of an accumulator over a column.
struct Accumulated<'c> {
    accumulator: &'c Accumulator,
    argument: &'c Column,
}

impl Fold for Accumulated<'_> {
    type State = State;

    fn empty(&self) -> State {
        State::new(self.accumulator)
    }

    fn add(&self, state: &mut State, row: usize) -> Result<(), QueryError> {
        state.add_value(self.accumulator, self.argument.get(row))
    }

    fn merge(&self, state: &mut State, later: &State) -> Result<(), QueryError> {
        state.merge(self.accumulator, later.clone())
    }
}

/// Pairs of numbers; what is none is passed over.
struct Pairs<'c>(&'c Column);

impl Fold for Pairs<'_> {
    type State = Covariance;

    fn empty(&self) -> Covariance {
        Covariance::default()
    }

    fn add(&self, state: &mut Covariance, row: usize) -> Result<(), QueryError> {
        let pair = self.0.datum(row);
        let element = |at| pair.element(at).and_then(|e| e.as_number()).map(Number::to_f64);
        if let (Some(2), Some(x), Some(y)) = (pair.array_len(), element(0), element(1)) {
            state.add(x, y);
        }
        Ok(())
    }

    fn merge(&self, state: &mut Covariance, later: &Covariance) -> Result<(), QueryError> {
        state.merge(later);
        Ok(())
    }
}

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
fn integral(
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
fn derivative(y: &Column, x: &Column, unit: Option<Unit>, window: &Range<usize>) -> Result<JsonbBuf, QueryError> {
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
fn moving_average(
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
struct LinearFill {
    before: Option<(Number, Number)>,
    /// The next known point and its row, once it was looked for.
    after: Option<(usize, (Number, Number))>,
    /// Rows from here on have none.
    none_from: Option<usize>,
}

impl LinearFill {
    fn next(&mut self, row: usize, y: &Column, x: &Column, step: Step<'_>) -> Result<JsonbBuf, Fault> {
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

/// The rows in a window whose values come first in it.
struct Distinct {
    /// Of each row the row before and the one behind it with an equal value; [`Distinct::NONE`] where there is none, and
    /// for a row whose value is missing, which is its own.
    before: Vec<u32>,
    behind: Vec<u32>,
    inside: BTreeSet<u32>,
    window: Range<usize>,
}

impl Distinct {
    const NONE: u32 = u32::MAX;

    fn new(column: &Column) -> Self {
        let rows = column.len();
        let (mut before, mut behind) = (vec![Self::NONE; rows], vec![Self::NONE; rows]);
        let key = |row: usize| {
            let mut key = Vec::new();
            sort_key(column.get(row)?, &mut key);
            Some((key, row))
        };
        let mut keyed: Vec<(Vec<u8>, usize)> = (0..rows).filter_map(key).collect();
        keyed.sort_unstable();
        for pair in keyed.windows(2) {
            if let [(key, row), (next_key, next)] = pair
                && key == next_key
                && let (Some(behind), Some(before)) = (behind.get_mut(*row), before.get_mut(*next))
            {
                (*behind, *before) = (*next as u32, *row as u32);
            }
        }
        for (row, before) in before.iter_mut().enumerate() {
            if column.get(row).is_none() {
                *before = row as u32;
            }
        }
        Self { before, behind, inside: BTreeSet::new(), window: 0..0 }
    }

    fn move_to(&mut self, to: &Range<usize>) {
        let start = to.start.max(self.window.start);
        let end = to.end.max(self.window.end).max(start);
        for row in self.window.start..start.min(self.window.end) {
            let behind = self.behind.get(row).copied().unwrap_or(Self::NONE);
            if self.inside.remove(&(row as u32)) && (behind as usize) < self.window.end {
                self.inside.insert(behind);
            }
        }
        for row in self.window.end.max(start)..end {
            let before = self.before.get(row).copied().unwrap_or(Self::NONE);
            let is_first = before == Self::NONE || (before as usize) < start;
            if is_first {
                self.inside.insert(row as u32);
            }
        }
        self.window = start..end;
    }
}
