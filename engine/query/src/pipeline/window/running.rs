//! The functions while they go over the rows of a partition: one value for each row.
//!
//! Takes the rows' columns; gives each row's value, in order. Next: `sliding.rs`, `order.rs`, `distinct.rs`, `scans.rs`.

use super::arithmetic::Covariance;
use super::bounds::Windows;
use super::distinct::Distinct;
use super::function::{Function, WindowFunction};
use super::order::Ordered;
use super::rows::{Column, Rows};
use super::scans::{LinearFill, derivative, integral, moving_average};
use super::sliding::{Fold, Sliding};
use crate::exact::Sum;
use crate::expr::Datum;
use crate::number::Number;
use crate::pipeline::Fault;
use crate::pipeline::accumulate::{Accumulator, AccumulatorKind, State, Wanted};
use crate::{QueryError, scratch};
use quarrydb_jsonb::{Builder, Decimal128, JsonbBuf, JsonbRef, NULL, sort_key, sort_key_descending};
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
pub(super) type Step<'s> = &'s mut dyn FnMut() -> Result<(), Fault>;

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
