//! Arithmetic over the four number types with MongoDB's promotion.
//!
//! The wider type wins: int32, int64, double, decimal128. int32 that overflows becomes int64; int64 that overflows is
//! the caller's to judge (an error in updates, a double in expressions). Takes and gives numbers; knows no operator.

use crate::decimal;
use quarrydb_jsonb::{Builder, Decimal128, JsonbRef, Value};
use std::cmp::Ordering;

/// A number of a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// 32-bit integer.
    Int32(i32),
    /// 64-bit integer.
    Int64(i64),
    /// binary64.
    Double(f64),
    /// decimal128.
    Decimal(Decimal128),
}

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
}

impl Number {
    /// The number that a value is.
    #[inline]
    #[must_use]
    pub fn of(v: JsonbRef<'_>) -> Option<Self> {
        match v.value() {
            Value::Int32(n) => Some(Self::Int32(n)),
            Value::Int64(n) => Some(Self::Int64(n)),
            Value::Double(n) => Some(Self::Double(n)),
            Value::Decimal128(n) => Some(Self::Decimal(n)),
            _ => None,
        }
    }

    /// Writes it.
    #[inline]
    pub fn write(self, out: &mut Builder) {
        match self {
            Self::Int32(n) => out.int32(n),
            Self::Int64(n) => out.int64(n),
            Self::Double(n) => out.double(n),
            Self::Decimal(n) => out.decimal128(n),
        }
    }

    /// `self op other` in the wider type of both; none where an int64 overflows.
    #[inline]
    #[must_use]
    pub fn combine(self, op: Operation, other: Self) -> Option<Self> {
        if let (Some(a), Some(b)) = (self.as_i64(), other.as_i64()) {
            let n = match op {
                Operation::Add => a.checked_add(b),
                Operation::Sub => a.checked_sub(b),
                Operation::Mul => a.checked_mul(b),
            }?;
            let narrow = matches!((self, other), (Self::Int32(_), Self::Int32(_)));
            return Some(match i32::try_from(n) {
                Ok(n) if narrow => Self::Int32(n),
                _ => Self::Int64(n),
            });
        }
        if self.is_decimal() || other.is_decimal() {
            let (a, b) = (self.to_decimal(), other.to_decimal());
            return Some(Self::Decimal(match op {
                Operation::Add => decimal::add(a, b),
                Operation::Sub => decimal::sub(a, b),
                Operation::Mul => decimal::mul(a, b),
            }));
        }
        let (a, b) = (self.to_f64(), other.to_f64());
        Some(Self::Double(match op {
            Operation::Add => a + b,
            Operation::Sub => a - b,
            Operation::Mul => a * b,
        }))
    }

    /// The integer, where it is an int32 or int64.
    #[inline]
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Int32(n) => Some(i64::from(n)),
            Self::Int64(n) => Some(n),
            Self::Double(_) | Self::Decimal(_) => None,
        }
    }

    /// The int64 that equals it, whatever its type; none where it has a fraction, is too large or no number.
    #[must_use]
    pub fn as_whole(self) -> Option<i64> {
        match self {
            Self::Int32(n) => Some(i64::from(n)),
            Self::Int64(n) => Some(n),
            Self::Double(n) => whole_f64(n),
            Self::Decimal(n) => decimal::whole_part(n).and_then(|(n, whole)| whole.then_some(n)),
        }
    }

    /// The number without its fraction; none for what is not finite or beyond int64.
    #[must_use]
    pub fn truncated(self) -> Option<i64> {
        match self {
            Self::Int32(n) => Some(i64::from(n)),
            Self::Int64(n) => Some(n),
            Self::Double(n) => whole_f64(n.trunc()),
            Self::Decimal(n) => decimal::whole_part(n).map(|(n, _)| n),
        }
    }

    /// The nearest double.
    #[inline]
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Int32(n) => f64::from(n),
            Self::Int64(n) => n as f64,
            Self::Double(n) => n,
            Self::Decimal(n) => decimal::to_f64(n),
        }
    }

    /// The decimal: exact for integers, to 15 digits for doubles.
    #[must_use]
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Self::Int32(n) => Decimal128::from_i64(i64::from(n)),
            Self::Int64(n) => Decimal128::from_i64(n),
            Self::Double(n) => decimal::from_f64(n),
            Self::Decimal(n) => n,
        }
    }

    /// Whether it is a decimal128.
    #[inline]
    #[must_use]
    pub fn is_decimal(self) -> bool {
        matches!(self, Self::Decimal(_))
    }

    /// Whether it is a NaN.
    #[must_use]
    pub fn is_nan(self) -> bool {
        match self {
            Self::Double(n) => n.is_nan(),
            Self::Decimal(n) => n.is_nan(),
            Self::Int32(_) | Self::Int64(_) => false,
        }
    }

    /// Whether it equals zero.
    #[must_use]
    pub fn is_zero(self) -> bool {
        match self {
            Self::Int32(n) => n == 0,
            Self::Int64(n) => n == 0,
            Self::Double(n) => n == 0.0,
            Self::Decimal(n) => decimal::is_zero(n),
        }
    }

    /// The exact order of two numbers where that takes no detour; none for NaN, decimals and integers beyond 2^53 beside
    /// doubles.
    #[inline]
    #[must_use]
    pub fn compare_fast(self, other: Self) -> Option<Ordering> {
        const EXACT: std::ops::RangeInclusive<i64> = -(1 << 53)..=1 << 53;
        match (self, other) {
            (Self::Double(a), Self::Double(b)) => a.partial_cmp(&b),
            (Self::Double(a), b) => a.partial_cmp(&(b.as_i64().filter(|n| EXACT.contains(n))? as f64)),
            (a, Self::Double(b)) => (a.as_i64().filter(|n| EXACT.contains(n))? as f64).partial_cmp(&b),
            (a, b) => Some(a.as_i64()?.cmp(&b.as_i64()?)),
        }
    }

    /// A zero of the same type.
    #[must_use]
    pub fn zero_of_type(self) -> Self {
        match self {
            Self::Int32(_) => Self::Int32(0),
            Self::Int64(_) => Self::Int64(0),
            Self::Double(_) => Self::Double(0.0),
            Self::Decimal(_) => Self::Decimal(Decimal128::from_i64(0)),
        }
    }
}

/// Whether a value is the double or decimal NaN.
#[inline]
#[must_use]
pub(crate) fn is_nan(value: JsonbRef<'_>) -> bool {
    Number::of(value).is_some_and(Number::is_nan)
}

/// A value's number without its fraction; none for what is not a number, not finite, or beyond int64.
#[must_use]
pub(crate) fn truncated_i64(value: JsonbRef<'_>) -> Option<i64> {
    Number::of(value).and_then(Number::truncated)
}

/// A value's number where it is a whole one that an int64 holds.
#[inline]
#[must_use]
pub(crate) fn whole_i64(value: JsonbRef<'_>) -> Option<i64> {
    Number::of(value).and_then(Number::as_whole)
}

/// The int64 that equals a double.
#[must_use]
pub fn whole_f64(n: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    (n.trunc() == n && (-LIMIT..LIMIT).contains(&n)).then_some(n as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_at_the_end_of_int64_are_outside() {
        const INT64_END: f64 = 9_223_372_036_854_775_808.0;
        assert_eq!(whole_f64(-INT64_END), Some(i64::MIN));
        assert_eq!(whole_f64(INT64_END), None);
        assert_eq!(Number::Double(f64::NAN).truncated(), None);
        assert_eq!(Number::Double(-0.9).truncated(), Some(0));
        assert_eq!(Number::Double(-0.9).as_whole(), None);
    }
}
