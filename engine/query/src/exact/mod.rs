//! Exact sums of numbers of all types: neither the order nor how they were split and merged changes a bit.
//!
//! Takes numbers one by one, gives their sum in the widest type among them, with MongoDB's promotion: int32 that overflows
//! is an int64, int64 that overflows a double. Doubles and decimals are rounded once, at the end. Must never know where
//! the numbers come from. Reading order: `binary.rs`, `decimal.rs`.

mod binary;
pub(crate) mod codec;
mod decimal;
#[cfg(test)]
#[path = "exact_tests.rs"]
mod tests;

use self::binary::BinarySum;
use self::codec::{Reader, put_u64};
use self::decimal::DecimalSum;
use crate::QueryError;
use crate::decimal::{Parts, div, infinity, nan, parts};
use crate::number::Number;
use quarrydb_jsonb::Decimal128;

/// The widest type of what was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Widest {
    /// int32, or nothing at all.
    #[default]
    Int32,
    /// int64.
    Int64,
    /// A double.
    Double,
    /// A decimal.
    Decimal,
}

impl Widest {
    /// The type of a number.
    #[must_use]
    pub fn of(n: Number) -> Self {
        match n {
            Number::Int32(_) => Self::Int32,
            Number::Int64(_) => Self::Int64,
            Number::Double(_) => Self::Double,
            Number::Decimal(_) => Self::Decimal,
        }
    }
}

const TWO_TO_MINUS_64: f64 = 1.0 / 18_446_744_073_709_551_616.0;

/// A sum of numbers.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    /// Integers, while they fit.
    small: i64,
    widest: Widest,
    rest: Option<Box<Rest>>,
}

/// What most sums do not have.
#[derive(Clone, Debug, Default)]
struct Rest {
    integers: i128,
    binary: BinarySum,
    decimal: DecimalSum,
    /// Whether there was a NaN, an infinity, a minus infinity.
    nan: bool,
    above: bool,
    below: bool,
}

impl Sum {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, n: Number) {
        match n {
            Number::Int32(n) => self.add_small(n.into()),
            Number::Int64(n) => {
                self.widest = self.widest.max(Widest::Int64);
                self.add_small(n);
            }
            Number::Double(n) => self.add_f64(n),
            Number::Decimal(n) => self.add_decimal(n),
        }
    }

    #[inline]
    fn add_small(&mut self, n: i64) {
        match self.small.checked_add(n) {
            Some(sum) => self.small = sum,
            None => self.rest().integers += i128::from(n),
        }
    }

    /// Adds the sum of many integers, of which the widest had the type `widest`.
    pub fn add_integers(&mut self, total: i128, widest: Widest) {
        self.widest = self.widest.max(widest);
        match i64::try_from(total) {
            Ok(total) => self.add_small(total),
            Err(_) => self.rest().integers += total,
        }
    }

    /// Adds a double.
    #[inline]
    pub fn add_f64(&mut self, n: f64) {
        self.widest = self.widest.max(Widest::Double);
        let rest = self.rest();
        if n.is_finite() {
            rest.binary.add(n);
        } else {
            rest.nan |= n.is_nan();
            rest.above |= n > 0.0;
            rest.below |= n < 0.0;
        }
    }

    /// Adds the sum of many doubles that are whole multiples of 2^-64, of which it is so many.
    pub fn add_scaled(&mut self, multiples: i128) {
        self.widest = self.widest.max(Widest::Double);
        let rest = self.rest();
        // Three doubles hold all bits: each takes 43 of them exactly.
        let mut left = multiples.unsigned_abs();
        let mut unit = if multiples < 0 { -TWO_TO_MINUS_64 } else { TWO_TO_MINUS_64 };
        while left > 0 {
            rest.binary.add((left & ((1 << 43) - 1)) as f64 * unit);
            left >>= 43;
            unit *= (1_u64 << 43) as f64;
        }
    }

    fn add_decimal(&mut self, n: Decimal128) {
        self.widest = Widest::Decimal;
        let rest = self.rest();
        match parts(n) {
            Parts::Finite { negative, coefficient, exponent } => rest.decimal.add(negative, coefficient, exponent),
            Parts::NaN => rest.nan = true,
            Parts::Infinity { negative: false } => rest.above = true,
            Parts::Infinity { negative: true } => rest.below = true,
        }
    }

    fn rest(&mut self) -> &mut Rest {
        self.rest.get_or_insert_default()
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &Self) {
        self.widest = self.widest.max(other.widest);
        self.add_small(other.small);
        if let Some(other) = &other.rest {
            let rest = self.rest();
            rest.integers += other.integers;
            rest.binary.merge(&other.binary);
            rest.decimal.merge(&other.decimal);
            rest.nan |= other.nan;
            rest.above |= other.above;
            rest.below |= other.below;
        }
    }

    /// The widest type that came.
    #[must_use]
    pub fn widest(&self) -> Widest {
        self.widest
    }

    /// Heap bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rest.as_ref().map_or(0, |r| size_of::<Rest>() + r.binary.bytes() + r.decimal.bytes())
    }

    /// The sum; int32 0 of nothing.
    #[must_use]
    pub fn finish(&self) -> Number {
        let widest = self.widest;
        let integers = i128::from(self.small) + self.rest.as_ref().map_or(0, |r| r.integers);
        match widest {
            Widest::Int32 | Widest::Int64 => match (i32::try_from(integers), i64::try_from(integers)) {
                (Ok(n), _) if widest == Widest::Int32 => Number::Int32(n),
                (_, Ok(n)) => Number::Int64(n),
                // The nearest double, as the cast is.
                _ => Number::Double(integers as f64),
            },
            Widest::Double => Number::Double(self.double(integers)),
            Widest::Decimal => Number::Decimal(self.decimal(integers)),
        }
    }

    /// The sum divided by how many there were: a decimal where one came, else a double; none of nothing.
    pub(crate) fn mean(&self, count: u64) -> Option<Number> {
        if count == 0 {
            return None;
        }
        Some(match self.finish() {
            Number::Decimal(total) => {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                Number::Decimal(div(total, Decimal128::from_i64(count)))
            }
            total => Number::Double(total.to_f64() / count as f64),
        })
    }

    fn double(&self, integers: i128) -> f64 {
        let Some(rest) = &self.rest else { return integers as f64 };
        match (rest.nan, rest.above, rest.below) {
            (false, false, false) => {
                let mut binary = rest.binary.clone();
                binary.add_integer(integers);
                binary.nearest()
            }
            (false, true, false) => f64::INFINITY,
            (false, false, true) => f64::NEG_INFINITY,
            _ => f64::NAN,
        }
    }

    fn decimal(&self, integers: i128) -> Decimal128 {
        let rest = self.rest.clone().unwrap_or_default();
        match (rest.nan, rest.above, rest.below) {
            (false, false, false) => {
                let mut decimal = rest.decimal;
                decimal.add(integers < 0, integers.unsigned_abs(), 0);
                decimal.add_binary(&rest.binary.magnitude());
                decimal.nearest()
            }
            (false, true, false) => infinity(false),
            (false, false, true) => infinity(true),
            _ => nan(),
        }
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u64(self.small as u64, out);
        put_u64(self.widest as u64 | u64::from(self.rest.is_some()) << 8, out);
        let Some(rest) = &self.rest else { return };
        put_u64(rest.integers as u64, out);
        put_u64((rest.integers >> 64) as u64, out);
        rest.binary.write(out);
        rest.decimal.write(out);
        for flag in [rest.nan, rest.above, rest.below] {
            put_u64(flag.into(), out);
        }
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, QueryError> {
        let small = from.u64()? as i64;
        let flags = from.u64()?;
        let widest = match flags & 0xff {
            0 => Widest::Int32,
            1 => Widest::Int64,
            2 => Widest::Double,
            _ => Widest::Decimal,
        };
        let mut sum = Self { small, widest, rest: None };
        if flags >> 8 != 0 {
            let (low, high) = (from.u64()?, from.u64()?);
            sum.rest = Some(Box::new(Rest {
                integers: i128::from(high as i64) << 64 | i128::from(low),
                binary: BinarySum::read(from)?,
                decimal: DecimalSum::read(from)?,
                nan: from.u64()? != 0,
                above: from.u64()? != 0,
                below: from.u64()? != 0,
            }));
        }
        Ok(sum)
    }
}
