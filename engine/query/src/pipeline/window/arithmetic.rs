//! Numbers and dates as window functions compute with them: `$subtract`, `$add`, `$multiply` and `$divide` of MongoDB.

use crate::decimal;
use crate::expr::Datum;
use crate::number::{Number, Operation};

/// A number, or a date's milliseconds.
pub(super) fn coordinate(value: &Datum<'_>) -> Option<Number> {
    match value {
        Datum::Number(n) => Some(*n),
        Datum::Date(ms) => Some(Number::Int64(*ms)),
        _ => None,
    }
}

/// An int64 that overflows becomes a double.
pub(super) fn combine(a: Number, op: Operation, b: Number) -> Number {
    a.combine(op, b).unwrap_or_else(|| {
        let (a, b) = (Number::Double(a.to_f64()), b.to_f64());
        a.combine(op, Number::Double(b)).unwrap_or(a)
    })
}

/// A decimal where one of them is, else a double; none where it is divided by zero.
pub(super) fn divide(a: Number, b: Number) -> Option<Number> {
    if b.is_zero() {
        return None;
    }
    if a.is_decimal() || b.is_decimal() {
        return Some(Number::Decimal(decimal::div(a.to_decimal(), b.to_decimal())));
    }
    Some(Number::Double(a.to_f64() / b.to_f64()))
}

/// The point at `x` on the line through two points with different `x`.
pub(super) fn interpolate((x1, y1): (Number, Number), (x2, y2): (Number, Number), x: Number) -> Option<Number> {
    let slope = divide(combine(y2, Operation::Sub, y1), combine(x2, Operation::Sub, x1))?;
    let rise = combine(combine(x, Operation::Sub, x1), Operation::Mul, slope);
    Some(combine(y1, Operation::Add, rise))
}

/// Half of a number: a double, or a decimal.
pub(super) fn half(n: Number) -> Number {
    divide(n, Number::Double(2.0)).unwrap_or(n)
}

/// Covariance of pairs, to be merged (Chan, Golub, LeVeque 1979; Bennett et al. 2009).
#[derive(Clone, Debug, Default)]
pub(super) struct Covariance {
    count: u64,
    mean_x: f64,
    mean_y: f64,
    products: f64,
}

impl Covariance {
    pub(super) fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let delta = x - self.mean_x;
        self.mean_x += delta / self.count as f64;
        self.mean_y += (y - self.mean_y) / self.count as f64;
        self.products += delta * (y - self.mean_y);
    }

    pub(super) fn merge(&mut self, later: &Self) {
        if later.count == 0 {
            return;
        }
        if self.count == 0 {
            *self = later.clone();
            return;
        }
        let (a, b) = (self.count as f64, later.count as f64);
        let (dx, dy) = (later.mean_x - self.mean_x, later.mean_y - self.mean_y);
        self.products += later.products + dx * dy * (a * b / (a + b));
        self.mean_x += dx * (b / (a + b));
        self.mean_y += dy * (b / (a + b));
        self.count += later.count;
    }

    /// None of too few pairs.
    pub(super) fn finish(&self, sample: bool) -> Option<f64> {
        let divisor = self.count.checked_sub(u64::from(sample)).filter(|d| *d > 0)?;
        Some(self.products / divisor as f64)
    }
}
