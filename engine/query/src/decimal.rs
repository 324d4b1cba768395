//! Arithmetic on decimal128, correctly rounded (half to even) by IBM's decNumber.
//!
//! Takes and gives the document's `Decimal128`; the library's own type never leaves this file. Knows nothing of
//! documents or operators.

use dec::{Context, Decimal, Decimal128 as Dec, Rounding};
use quarrydb_jsonb::Decimal128;

/// Digits of a decimal128.
pub const DIGITS: usize = 34;
/// Units of three digits that hold a decimal128 with room to round once.
const UNITS: usize = 13;
/// The largest exponent with which the library computes powers and logarithms; a decimal128 has at most 6144.
const MATH_EXPONENT_MAX: isize = 999_999;
const EXPONENT_BIAS: i32 = 6176;
const SIGN: u128 = 1 << 127;
const INFINITY: u128 = 0x78 << 120;
const NAN: u128 = 0x7c << 120;

/// A decimal taken apart: `(-1)^negative * coefficient * 10^exponent`, or none of that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// Not a number.
    NaN,
    /// An infinity.
    Infinity {
        /// Whether it is the one below all numbers.
        negative: bool,
    },
    /// A finite number.
    Finite {
        /// The sign, of zero too.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// The power of ten.
        exponent: i32,
    },
}

/// Takes a decimal apart.
#[must_use]
pub fn parts(d: Decimal128) -> Parts {
    match d.parts() {
        Some((negative, coefficient, exponent)) => Parts::Finite { negative, coefficient, exponent },
        None if d.is_infinite() => Parts::Infinity { negative: d.is_negative() },
        None => Parts::NaN,
    }
}

/// The NaN.
#[must_use]
pub const fn nan() -> Decimal128 {
    Decimal128::from_bits(NAN)
}

/// An infinity.
#[must_use]
pub const fn infinity(negative: bool) -> Decimal128 {
    Decimal128::from_bits(if negative { SIGN | INFINITY } else { INFINITY })
}

fn to_dec(d: Decimal128) -> Dec {
    match parts(d) {
        Parts::NaN => Dec::NAN,
        Parts::Infinity { negative } => {
            let infinite = Context::<Dec>::default().div(Dec::from(1), Dec::from(0));
            if negative { -infinite } else { infinite }
        }
        Parts::Finite { negative, coefficient, exponent } => {
            let mut cx = Context::<Dec>::default();
            let mut d = cx.from_u128(coefficient);
            cx.set_exponent(&mut d, exponent);
            if negative { -d } else { d }
        }
    }
}

fn from_dec(d: Dec) -> Decimal128 {
    if d.is_nan() {
        return nan();
    }
    if d.is_infinite() {
        return infinity(d.is_signed());
    }
    let coefficient = d.coefficient().unsigned_abs();
    let biased = (d.exponent() + EXPONENT_BIAS).clamp(0, 0x3fff) as u128;
    Decimal128::from_bits(if d.is_signed() { SIGN } else { 0 } | biased << 113 | coefficient)
}

fn to_wide(d: Decimal128) -> Decimal<UNITS> {
    Decimal::from(to_dec(d))
}

fn from_wide(d: &Decimal<UNITS>) -> Decimal128 {
    from_dec(Context::<Dec>::default().from_decimal(d))
}

fn wide_context() -> Context<Decimal<UNITS>> {
    let mut cx = Context::<Decimal<UNITS>>::default();
    // 34 fits the 39 digits of the units, and the library takes these exponents, so that this cannot fail.
    let _ = cx.set_precision(DIGITS);
    // With wider ones it refuses powers and logarithms: they would be NaN.
    let _ = cx.set_max_exponent(MATH_EXPONENT_MAX).and_then(|()| cx.set_min_exponent(-MATH_EXPONENT_MAX));
    cx
}

fn binary(a: Decimal128, b: Decimal128, f: impl FnOnce(&mut Context<Dec>, Dec, Dec) -> Dec) -> Decimal128 {
    from_dec(f(&mut Context::default(), to_dec(a), to_dec(b)))
}

/// `a + b`.
#[must_use]
pub fn add(a: Decimal128, b: Decimal128) -> Decimal128 {
    binary(a, b, Context::<Dec>::add)
}

/// `a - b`.
#[must_use]
pub fn sub(a: Decimal128, b: Decimal128) -> Decimal128 {
    binary(a, b, Context::<Dec>::sub)
}

/// `a * b`.
#[must_use]
pub fn mul(a: Decimal128, b: Decimal128) -> Decimal128 {
    binary(a, b, Context::<Dec>::mul)
}

/// `a / b`.
#[must_use]
pub fn div(a: Decimal128, b: Decimal128) -> Decimal128 {
    binary(a, b, Context::<Dec>::div)
}

/// What is left of `a` after dividing by `b` towards zero, exact for operands of any distance.
#[must_use]
pub fn rem(a: Decimal128, b: Decimal128) -> Decimal128 {
    let (Parts::Finite { negative, coefficient: x, exponent: ex }, Parts::Finite { coefficient: y, exponent: ey, .. }) =
        (parts(a), parts(b))
    else {
        return binary(a, b, Context::<Dec>::rem);
    };
    if y == 0 {
        return nan();
    }
    // decNumber refuses quotients of more than 34 digits; fmod's way needs none: x * 10^(ex-ey) mod y by squaring.
    if ex >= ey {
        let left = mul_mod(x % y, pow_mod(10, (ex - ey) as u32, y), y);
        return from_parts(negative, left, ey);
    }
    binary(a, b, Context::<Dec>::rem)
}

fn pow_mod(mut base: u128, mut exponent: u32, modulus: u128) -> u128 {
    let mut result = 1 % modulus;
    base %= modulus;
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = mul_mod(result, base, modulus);
        }
        base = mul_mod(base, base, modulus);
        exponent >>= 1;
    }
    result
}

/// `a * b mod modulus` by doubling: all below 2^114, so that nothing overflows.
fn mul_mod(mut a: u128, mut b: u128, modulus: u128) -> u128 {
    let mut result = 0;
    while b > 0 {
        if b & 1 == 1 {
            result = (result + a) % modulus;
        }
        a = (a << 1) % modulus;
        b >>= 1;
    }
    result
}

/// Puts a finite number together; it is rounded where the coefficient has more than 34 digits, and becomes an infinity
/// or zero where the exponent does not fit.
#[must_use]
pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
    let mut cx = Context::<Dec>::default();
    let d = cx.from_u128(coefficient);
    let shift = Dec::from(exponent);
    let d = cx.scaleb(d, shift);
    from_dec(if negative { -d } else { d })
}

/// A double: the shortest decimal that reads back as it would surprise, so MongoDB's 15 digits are kept.
#[must_use]
pub fn from_f64(d: f64) -> Decimal128 {
    if d.is_nan() {
        return nan();
    }
    if d.is_infinite() {
        return infinity(d < 0.0);
    }
    if d == 0.0 {
        return from_parts(d.is_sign_negative(), 0, 0);
    }
    let text = format!("{d:.14e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let coefficient = digits.parse::<u128>().unwrap_or(0);
    from_parts(d < 0.0, coefficient, exponent.parse::<i32>().unwrap_or(0) - 14)
}

/// The nearest double.
#[must_use]
pub fn to_f64(d: Decimal128) -> f64 {
    match parts(d) {
        Parts::NaN => f64::NAN,
        Parts::Infinity { negative } => {
            if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            }
        }
        Parts::Finite { negative, coefficient, exponent } => {
            let sign = if negative { "-" } else { "" };
            format!("{sign}{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
        }
    }
}

/// The integer it is after cutting its fraction off, where it is finite and fits.
#[must_use]
pub fn to_i128(d: Decimal128) -> Option<i128> {
    let Parts::Finite { negative, coefficient, exponent } = parts(d) else { return None };
    let magnitude = if coefficient == 0 {
        0
    } else if exponent >= 0 {
        coefficient.checked_mul(10u128.checked_pow(exponent as u32)?)?
    } else {
        10u128.checked_pow(exponent.unsigned_abs()).map_or(0, |scale| coefficient / scale)
    };
    let n = i128::try_from(magnitude).ok()?;
    Some(if negative { -n } else { n })
}

/// Whether it is a zero of either sign.
#[must_use]
pub fn is_zero(d: Decimal128) -> bool {
    matches!(parts(d), Parts::Finite { coefficient: 0, .. })
}

/// The whole part, and whether there is no other; none for what is not finite or beyond int64.
#[must_use]
pub fn whole_part(d: Decimal128) -> Option<(i64, bool)> {
    let Parts::Finite { coefficient, exponent, .. } = parts(d) else { return None };
    let n = i64::try_from(to_i128(d)?).ok()?;
    let scale = 10u128.checked_pow(exponent.min(0).unsigned_abs());
    Some((n, coefficient == 0 || scale.is_some_and(|scale| coefficient.is_multiple_of(scale))))
}

/// Without its sign.
#[must_use]
pub fn abs(d: Decimal128) -> Decimal128 {
    Decimal128::from_bits(d.to_bits() & !SIGN)
}

/// With `places` digits after the point (before it where negative), rounded by `how`.
#[must_use]
pub fn round_to(d: Decimal128, places: i32, how: Round) -> Decimal128 {
    let Parts::Finite { exponent, .. } = parts(d) else { return d };
    if exponent >= -places {
        return d;
    }
    let mut cx = Context::<Dec>::default();
    cx.set_rounding(match how {
        Round::HalfEven => Rounding::HalfEven,
        Round::Down => Rounding::Down,
        Round::Floor => Rounding::Floor,
        Round::Ceiling => Rounding::Ceiling,
    });
    let mut unit = Dec::from(1);
    cx.set_exponent(&mut unit, -places);
    let rounded = cx.quantize(to_dec(d), unit);
    if rounded.is_nan() { d } else { from_dec(rounded) }
}

/// Ways to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To the nearest, ties to the even digit.
    HalfEven,
    /// Towards zero.
    Down,
    /// Towards minus infinity.
    Floor,
    /// Towards plus infinity.
    Ceiling,
}

/// The square root; NaN of what is below zero.
#[must_use]
pub fn sqrt(d: Decimal128) -> Decimal128 {
    unary(d, Context::<Decimal<UNITS>>::sqrt)
}

/// `e^d`.
#[must_use]
pub fn exp(d: Decimal128) -> Decimal128 {
    unary(d, Context::<Decimal<UNITS>>::exp)
}

/// The natural logarithm.
#[must_use]
pub fn ln(d: Decimal128) -> Decimal128 {
    unary(d, Context::<Decimal<UNITS>>::ln)
}

/// The decimal logarithm.
#[must_use]
pub fn log10(d: Decimal128) -> Decimal128 {
    unary(d, Context::<Decimal<UNITS>>::log10)
}

/// `a^b`.
#[must_use]
pub fn pow(a: Decimal128, b: Decimal128) -> Decimal128 {
    let mut x = to_wide(a);
    let y = to_wide(b);
    wide_context().pow(&mut x, &y);
    from_wide(&x)
}

fn unary(d: Decimal128, f: impl FnOnce(&mut Context<Decimal<UNITS>>, &mut Decimal<UNITS>)) -> Decimal128 {
    let mut x = to_wide(d);
    f(&mut wide_context(), &mut x);
    from_wide(&x)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decimal by sign, coefficient and exponent, as the standard's binary encoding has it.
    fn of(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        let bits = u128::from(negative) << 127 | ((exponent + EXPONENT_BIAS) as u128) << 113 | coefficient;
        Decimal128::from_bits(bits)
    }

    #[test]
    fn decimals_come_apart_exactly() {
        assert_eq!(whole_part(of(false, 5, 0)), Some((5, true)));
        assert_eq!(whole_part(of(true, 50, -1)), Some((-5, true)));
        assert_eq!(whole_part(of(true, 57, -1)), Some((-5, false)));
        assert_eq!(whole_part(of(false, 9_223_372_036_854_775_807, 0)), Some((i64::MAX, true)));
        assert_eq!(whole_part(of(false, 9_223_372_036_854_775_808, 0)), None);
        assert_eq!(whole_part(of(true, 9_223_372_036_854_775_808, 0)), Some((i64::MIN, true)));
        assert_eq!(whole_part(of(false, 1, 6000)), None);
        assert_eq!(whole_part(of(false, 1, -6000)), Some((0, false)));
        assert_eq!(whole_part(of(false, 0, 6000)), Some((0, true)));
        assert_eq!(whole_part(infinity(false)), None);
        assert_eq!(whole_part(nan()), None);
    }
}
