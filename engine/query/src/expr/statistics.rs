//! Accumulators as expressions: sums, means, extremes, deviations, percentiles of one array or of the arguments.
//!
//! What is no number is passed over, but for the extremes, which compare all types. Next: `arithmetic.rs`.

use super::datum::Datum;
use super::registry::{ANY, Arguments, Operator, Shape};
use crate::QueryError;
use crate::decimal;
use crate::exact;
use crate::number::Number;
use quarrydb_jsonb::Decimal128;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$sum", shape: ANY, run: sum },
    Operator { name: "$avg", shape: ANY, run: average },
    Operator { name: "$min", shape: ANY, run: minimum },
    Operator { name: "$max", shape: ANY, run: maximum },
    Operator { name: "$stdDevPop", shape: ANY, run: deviation_population },
    Operator { name: "$stdDevSamp", shape: ANY, run: deviation_sample },
    Operator { name: "$median", shape: Shape::Named(&["input", "method"], &[]), run: median },
    Operator { name: "$percentile", shape: Shape::Named(&["input", "p", "method"], &[]), run: percentile },
];

/// A sum that is exact in integers as long as only integers come, and compensated in doubles (Neumaier 1974).
#[derive(Debug)]
pub(super) struct Sum {
    integers: i128,
    double: f64,
    compensation: f64,
    decimal: Option<Decimal128>,
    widest: u8,
}

impl Default for Sum {
    fn default() -> Self {
        Self { integers: 0, double: 0.0, compensation: 0.0, decimal: None, widest: 0 }
    }
}

impl Sum {
    pub(super) fn add(&mut self, n: Number) {
        match n {
            Number::Int32(n) => self.integers += i128::from(n),
            Number::Int64(n) => {
                self.integers += i128::from(n);
                self.widest = self.widest.max(1);
            }
            Number::Double(n) => {
                self.widest = self.widest.max(2);
                self.add_double(n);
            }
            Number::Decimal(n) => {
                self.widest = 3;
                self.decimal = Some(self.decimal.map_or(n, |d| decimal::add(d, n)));
            }
        }
    }

    fn add_double(&mut self, n: f64) {
        let t = self.double + n;
        if t.is_finite() {
            self.compensation +=
                if self.double.abs() >= n.abs() { (self.double - t) + n } else { (n - t) + self.double };
        }
        self.double = t;
    }

    pub(super) fn finish(mut self) -> Number {
        match self.widest {
            0 | 1 => match (i32::try_from(self.integers), i64::try_from(self.integers)) {
                (Ok(n), _) if self.widest == 0 => Number::Int32(n),
                (_, Ok(n)) => Number::Int64(n),
                _ => Number::Double(self.integers as f64),
            },
            2 => {
                self.add_double(self.integers as f64);
                let total = self.double + self.compensation;
                Number::Double(if total.is_nan() { self.double } else { total })
            }
            _ => {
                let mut total = self.decimal.unwrap_or_else(|| Decimal128::from_i64(0));
                if self.integers != 0 {
                    let n = decimal::from_parts(self.integers < 0, self.integers.unsigned_abs(), 0);
                    total = decimal::add(total, n);
                }
                if self.double != 0.0 || self.compensation != 0.0 {
                    total = decimal::add(total, decimal::from_f64(self.double + self.compensation));
                }
                Number::Decimal(total)
            }
        }
    }
}

/// The values that an accumulator works on: the elements of its one array, or its arguments.
pub(super) fn operands<'a>(args: &mut Arguments<'_, 'a>) -> Vec<Datum<'a>> {
    if args.len() == 1
        && let Some(elements) = args.get(0).elements()
    {
        return elements.collect();
    }
    args.take_all()
}

/// As exact as `$group`'s.
fn sum<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut sum = exact::Sum::default();
    operands(args).iter().filter_map(Datum::as_number).for_each(|n| sum.add(n));
    Ok(Datum::Number(sum.finish()))
}

fn average<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut sum = exact::Sum::default();
    let mut count = 0;
    for n in operands(args).iter().filter_map(Datum::as_number) {
        sum.add(n);
        count += 1;
    }
    Ok(sum.mean(count).map_or(Datum::Null, Datum::Number))
}

fn extreme<'a>(args: &mut Arguments<'_, 'a>, wanted: std::cmp::Ordering) -> Outcome<'a> {
    let mut best: Option<Datum<'a>> = None;
    for value in operands(args) {
        if value.is_nullish() {
            continue;
        }
        let better = match &best {
            None => true,
            Some(best) => value.compare(best)? == wanted,
        };
        if better {
            best = Some(value);
        }
    }
    Ok(best.unwrap_or(Datum::Null))
}

fn minimum<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    extreme(args, std::cmp::Ordering::Less)
}

fn maximum<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    extreme(args, std::cmp::Ordering::Greater)
}

fn deviation<'a>(args: &mut Arguments<'_, 'a>, sample: bool) -> Outcome<'a> {
    // Welford's method (Knuth, TAOCP 2, 4.2.2).
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for n in operands(args).iter().filter_map(Datum::as_number) {
        count += 1.0;
        let delta = n.to_f64() - mean;
        mean += delta / count;
        squares += delta * (n.to_f64() - mean);
    }
    let divisor = if sample { count - 1.0 } else { count };
    Ok(if divisor <= 0.0 { Datum::Null } else { Datum::double((squares / divisor).sqrt()) })
}

fn deviation_population<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    deviation(args, false)
}

fn deviation_sample<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    deviation(args, true)
}

/// The numbers of an input, in order; `method` must be one that is known.
fn sorted_numbers(args: &Arguments<'_, '_>, method: usize) -> Result<Vec<f64>, QueryError> {
    if args.get(method).as_str() != Some("approximate") {
        let message = format!("{}: the method must be 'approximate'", args.name);
        return Err(QueryError::failed_to_parse(message));
    }
    let input = args.get(0);
    let mut numbers: Vec<f64> = match input.elements() {
        Some(elements) => elements.filter_map(|e| e.as_number()).map(Number::to_f64).collect(),
        None => input.as_number().map(Number::to_f64).into_iter().collect(),
    };
    numbers.sort_by(f64::total_cmp);
    Ok(numbers)
}

/// The value that a share `p` of the numbers is not above.
fn at_share<'a>(numbers: &[f64], p: f64) -> Datum<'a> {
    let rank = (p * numbers.len() as f64).ceil() as usize;
    numbers.get(rank.saturating_sub(1)).map_or(Datum::Null, |&n| Datum::double(n))
}

fn median<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    const HALF: f64 = 0.5;
    Ok(at_share(&sorted_numbers(args, 1)?, HALF))
}

fn percentile<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let numbers = sorted_numbers(args, 2)?;
    let wrong = |code| {
        let message = "the 'p' of $percentile must be a non-empty array of numbers from 0.0 to 1.0";
        QueryError::location(code, message)
    };
    let mut shares = Vec::new();
    for share in args.get(1).elements().into_iter().flatten() {
        let share = share.as_number().map(Number::to_f64).ok_or_else(|| wrong(7_750_302))?;
        shares.push(Some(share).filter(|p| (0.0..=1.0).contains(p)).ok_or_else(|| wrong(7_750_303))?);
    }
    if shares.is_empty() {
        return Err(wrong(7_750_301));
    }
    let values = shares.into_iter().map(|p| at_share(&numbers, p)).collect();
    args.array(values)
}
