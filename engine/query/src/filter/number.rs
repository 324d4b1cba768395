//! What filters ask of a number beyond its order: whether it is NaN, its whole part, whether it is a whole int64.
//!
//! Takes a value of any kind; gives an answer about its exact value, never by way of a double.

use quarrydb_jsonb::{JsonbRef, Value};

const EXPONENT_BIAS: i32 = 6176;
/// Coefficients beyond this are not canonical and mean zero (IEEE 754-2008, 3.5.2).
const COEFFICIENT_MAX: u128 = 9_999_999_999_999_999_999_999_999_999_999_999;
/// 2^63 as a double: the first that an int64 does not hold.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;

/// Whether it is the double or decimal NaN.
#[inline]
#[must_use]
pub(crate) fn is_nan(value: JsonbRef<'_>) -> bool {
    match value.value() {
        Value::Double(d) => d.is_nan(),
        Value::Decimal128(d) => (d.to_bits() >> 120) & 0x7c == 0x7c,
        _ => false,
    }
}

/// The number without its fraction; none for what is not a number, not finite, or beyond int64.
#[must_use]
pub(crate) fn truncated_i64(value: JsonbRef<'_>) -> Option<i64> {
    match value.value() {
        Value::Int32(n) => Some(n.into()),
        Value::Int64(n) => Some(n),
        Value::Double(d) => double_to_i64(d),
        Value::Decimal128(d) => decimal_to_i64(d.to_bits()).map(|(n, _)| n),
        _ => None,
    }
}

/// The number where it is a whole one that an int64 holds.
#[must_use]
pub(crate) fn whole_i64(value: JsonbRef<'_>) -> Option<i64> {
    match value.value() {
        Value::Int32(n) => Some(n.into()),
        Value::Int64(n) => Some(n),
        Value::Double(d) if d.trunc() == d => double_to_i64(d),
        Value::Decimal128(d) => decimal_to_i64(d.to_bits()).and_then(|(n, whole)| whole.then_some(n)),
        _ => None,
    }
}

fn double_to_i64(d: f64) -> Option<i64> {
    (-INT64_END..INT64_END).contains(&d).then_some(d as i64)
}

/// The whole part, and whether there is no other.
fn decimal_to_i64(bits: u128) -> Option<(i64, bool)> {
    if (bits >> 125) & 3 == 3 {
        // An infinity, NaN, or the form whose coefficients are all beyond the canonical ones: zero.
        return ((bits >> 123) & 0xf != 0xf).then_some((0, true));
    }
    let exponent = ((bits >> 113) & 0x3fff) as i32 - EXPONENT_BIAS;
    let coefficient = bits & ((1 << 113) - 1);
    if coefficient == 0 || coefficient > COEFFICIENT_MAX {
        return Some((0, true));
    }
    let (magnitude, whole) = if exponent >= 0 {
        (coefficient.checked_mul(10u128.checked_pow(exponent as u32)?)?, true)
    } else {
        match 10u128.checked_pow(exponent.unsigned_abs()) {
            Some(scale) => (coefficient / scale, coefficient.is_multiple_of(scale)),
            None => (0, false),
        }
    };
    let magnitude = i128::try_from(magnitude).ok()?;
    let signed = if bits >> 127 == 1 { -magnitude } else { magnitude };
    i64::try_from(signed).ok().map(|n| (n, whole))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decimal by sign, coefficient and exponent, as the standard's binary encoding has it.
    fn bits(negative: bool, coefficient: u128, exponent: i32) -> u128 {
        u128::from(negative) << 127 | ((exponent + EXPONENT_BIAS) as u128) << 113 | coefficient
    }

    #[test]
    fn decimals_come_apart_exactly() {
        assert_eq!(decimal_to_i64(bits(false, 5, 0)), Some((5, true)));
        assert_eq!(decimal_to_i64(bits(true, 50, -1)), Some((-5, true)));
        assert_eq!(decimal_to_i64(bits(true, 57, -1)), Some((-5, false)));
        assert_eq!(decimal_to_i64(bits(false, 9_223_372_036_854_775_807, 0)), Some((i64::MAX, true)));
        assert_eq!(decimal_to_i64(bits(false, 9_223_372_036_854_775_808, 0)), None);
        assert_eq!(decimal_to_i64(bits(true, 9_223_372_036_854_775_808, 0)), Some((i64::MIN, true)));
        assert_eq!(decimal_to_i64(bits(false, 1, 6000)), None);
        assert_eq!(decimal_to_i64(bits(false, 1, -6000)), Some((0, false)));
        assert_eq!(decimal_to_i64(bits(false, 0, 6000)), Some((0, true)));
        assert_eq!(decimal_to_i64(0x78 << 120), None);
        assert_eq!(decimal_to_i64(0x7c << 120), None);
    }

    #[test]
    fn doubles_at_the_end_of_int64_are_outside() {
        assert_eq!(double_to_i64(-INT64_END), Some(i64::MIN));
        assert_eq!(double_to_i64(INT64_END), None);
        assert_eq!(double_to_i64(f64::NAN), None);
        assert_eq!(double_to_i64(-0.9), Some(0));
    }
}
