//! Numbers: decimal128 as bits, and the exact comparison of all four types.
//!
//! Takes numbers as they are stored; gives their order by value, and the form (`OrderedNumber`) that `sort_key.rs`
//! writes. Nothing here rounds: 2^53+1 as int64 is above 2^53 as double, decimal 0.1 is below double 0.1. NaN equals NaN
//! and is below all numbers, -0.0 equals 0. Must never know where a number stood. Next: `bignum.rs`, `order.rs`.

use core::cmp::Ordering;

use crate::bignum::Bignum;
use crate::tag::Kind;
use crate::view::{JsonbRef, Value};

/// An IEEE 754-2008 decimal128 in the binary integer encoding, as BSON has it. `==` is that of the bits; by value
/// compare with [`crate::compare_numbers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal128(u128);

/// The largest coefficient: 34 nines. An encoding above it is not canonical and means 0 (IEEE 754-2008, 3.5.2).
const COEFFICIENT_MAX: u128 = 10u128.pow(DIGITS_MAX) - 1;
const DIGITS_MAX: u32 = 34;
const EXPONENT_BIAS: i32 = 6176;
const COEFFICIENT_BITS: u32 = 113;
/// Where the exponent begins where the two bits below the sign are both set.
const LARGE_EXPONENT_SHIFT: u32 = 111;

/// A decimal128 taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unpacked {
    /// Any of the NaNs.
    Nan,
    /// An infinity.
    Infinite {
        /// Whether it is the one below all numbers.
        negative: bool,
    },
    /// `coefficient * 10^exponent`, with its sign.
    Finite {
        /// The sign, of zeros too.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// From -6176.
        exponent: i32,
    },
}

impl Decimal128 {
    /// From its bits.
    #[inline]
    #[must_use]
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    #[inline]
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        self.0
    }

    /// The integer of this sign and magnitude; none where it has more than 34 digits.
    pub(crate) const fn from_integer(negative: bool, magnitude: u128) -> Option<Self> {
        if magnitude > COEFFICIENT_MAX {
            return None;
        }
        Some(Self((negative as u128) << 127 | (EXPONENT_BIAS as u128) << COEFFICIENT_BITS | magnitude))
    }

    /// Taken apart; a coefficient that is not canonical reads as 0.
    pub(crate) const fn unpack(self) -> Unpacked {
        let negative = self.0 >> 127 != 0;
        match (self.0 >> 122) & 0x1f {
            0x1f => Unpacked::Nan,
            0x1e => Unpacked::Infinite { negative },
            combination if combination >> 3 == 3 => {
                let exponent = ((self.0 >> LARGE_EXPONENT_SHIFT) & 0x3fff) as i32 - EXPONENT_BIAS;
                Unpacked::Finite { negative, coefficient: 0, exponent }
            }
            _ => {
                let exponent = ((self.0 >> COEFFICIENT_BITS) & 0x3fff) as i32 - EXPONENT_BIAS;
                let coefficient = self.0 & ((1 << COEFFICIENT_BITS) - 1);
                let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
                Unpacked::Finite { negative, coefficient, exponent }
            }
        }
    }
}

/// A number of any type, read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    Int(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Number {
    /// The number that `v` is; none where it is another kind.
    #[inline]
    pub(crate) fn of(v: JsonbRef<'_>) -> Option<Self> {
        match v.kind() {
            Kind::Int32 | Kind::Int64 => v.as_i64().map(Self::Int),
            Kind::Double => v.as_f64().map(Self::Double),
            Kind::Decimal128 => match v.value() {
                Value::Decimal128(d) => Some(Self::Decimal(d)),
                _ => None,
            },
            _ => None,
        }
    }

    /// The form in which all numbers have one order.
    #[inline]
    pub(crate) fn ordered(self) -> OrderedNumber {
        match self {
            Self::Int(v) => OrderedNumber::of_int(v),
            Self::Double(v) => OrderedNumber::of_double(v),
            Self::Decimal(v) => OrderedNumber::of_decimal(v),
        }
    }

    /// The order of two numbers by value.
    #[inline]
    pub(crate) fn compare(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a.cmp(&b),
            (Self::Double(a), Self::Double(b)) => compare_doubles(a, b),
            (Self::Int(a), Self::Double(b)) => compare_int_double(a, b),
            (Self::Double(a), Self::Int(b)) => compare_int_double(b, a).reverse(),
            (Self::Decimal(a), Self::Decimal(b)) if a == b => Ordering::Equal,
            _ => self.ordered().cmp(&other.ordered()),
        }
    }
}

/// The order of two numbers by value, exact across all four types; what is no number counts as NaN.
#[must_use]
pub fn compare_numbers(a: JsonbRef<'_>, b: JsonbRef<'_>) -> Ordering {
    let or_nan = |v| Number::of(v).unwrap_or(Number::Double(f64::NAN));
    or_nan(a).compare(or_nan(b))
}

#[inline]
fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

/// 2^63: the first double above every int64.
const TWO_63: f64 = 9_223_372_036_854_775_808.0;

#[inline]
fn compare_int_double(a: i64, b: f64) -> Ordering {
    if b.is_nan() || b < -TWO_63 {
        Ordering::Greater
    } else if b >= TWO_63 {
        Ordering::Less
    } else {
        // In this range the cast only drops the fraction, and the fraction is exact.
        a.cmp(&(b as i64)).then_with(|| compare_doubles(0.0, b.fract()))
    }
}

/// A number as the order has it: the largest double that is not above it, and where that is not the number itself, the
/// number in decimal.
///
/// The derived order is that of the values. Between two neighbouring doubles lie only int64s and decimals, both of which
/// have at most 34 digits; all have the sign of the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OrderedNumber {
    /// The double's bits, mapped so that they order as unsigned; 0 is NaN.
    pub(crate) floor: u64,
    /// The exponent of the first digit plus [`REST_EXPONENT_BIAS`]; inverted for negative numbers; 0 only where the
    /// double is exact.
    pub(crate) exponent: u16,
    /// 34 digits as one integer, of [`REST_DIGIT_BITS`] bits; inverted for negative numbers.
    pub(crate) digits: u128,
}

const REST_EXPONENT_BIAS: i32 = 8192;
/// The bits of the 34 digits, in whole bytes.
pub(crate) const REST_DIGIT_BITS: u32 = 120;
const _: () = assert!(COEFFICIENT_MAX < 1 << REST_DIGIT_BITS);

/// Every integer up to this magnitude is a double.
const EXACT_INT_MAX: u64 = 1 << 53;

impl OrderedNumber {
    const NAN: Self = Self { floor: 0, exponent: 0, digits: 0 };

    #[inline]
    const fn exact(v: f64) -> Self {
        // -0.0 + 0.0 is 0.0.
        let bits = (v + 0.0).to_bits();
        let floor = if bits >> 63 != 0 { !bits } else { bits | 1 << 63 };
        Self { floor, exponent: 0, digits: 0 }
    }

    /// Of a double; always exact.
    #[inline]
    pub(crate) const fn of_double(v: f64) -> Self {
        if v.is_nan() { Self::NAN } else { Self::exact(v) }
    }

    /// Of an integer.
    #[inline]
    pub(crate) fn of_int(v: i64) -> Self {
        let nearest = v as f64;
        // A double of this size converts to i128 without loss; 2^63 does not to i64.
        let order =
            if v.unsigned_abs() <= EXACT_INT_MAX { Ordering::Equal } else { i128::from(v).cmp(&(nearest as i128)) };
        if order == Ordering::Equal {
            return Self::exact(nearest);
        }
        let floor = if order == Ordering::Less { nearest.next_down() } else { nearest };
        Self::between(floor, v < 0, u128::from(v.unsigned_abs()), 0)
    }

    /// Of a decimal.
    pub(crate) fn of_decimal(v: Decimal128) -> Self {
        let (negative, mut coefficient, mut exponent) = match v.unpack() {
            Unpacked::Nan => return Self::NAN,
            Unpacked::Infinite { negative: true } => return Self::exact(f64::NEG_INFINITY),
            Unpacked::Infinite { negative: false } => return Self::exact(f64::INFINITY),
            Unpacked::Finite { coefficient: 0, .. } => return Self::exact(0.0),
            Unpacked::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        while exponent < 0 && coefficient.is_multiple_of(10) {
            coefficient /= 10;
            exponent += 1;
        }
        if exponent == 0
            && let Ok(v) = i64::try_from(coefficient)
        {
            return Self::of_int(if negative { -v } else { v });
        }
        let nearest = nearest_double(coefficient, exponent);
        let order = compare_to_double(coefficient, exponent, nearest);
        let floor = match (order, negative) {
            (Ordering::Equal, _) => return Self::exact(if negative { -nearest } else { nearest }),
            (Ordering::Less, false) => nearest.next_down(),
            (Ordering::Greater, false) => nearest,
            (Ordering::Less, true) => -nearest,
            (Ordering::Greater, true) => -nearest.next_up(),
        };
        Self::between(floor, negative, coefficient, exponent)
    }

    /// `coefficient * 10^exponent`, which is above the double `floor` and below the next.
    fn between(floor: f64, negative: bool, coefficient: u128, exponent: i32) -> Self {
        let count = coefficient.checked_ilog10().map_or(1, |log| log + 1);
        let digits = coefficient * 10u128.pow(DIGITS_MAX.saturating_sub(count));
        let exponent = (exponent + count as i32 - 1 + REST_EXPONENT_BIAS) as u16;
        let floor = Self::exact(floor).floor;
        if negative {
            Self { floor, exponent: !exponent, digits: (1 << REST_DIGIT_BITS) - 1 - digits }
        } else {
            Self { floor, exponent, digits }
        }
    }

    /// Whether the double is the number itself.
    #[inline]
    pub(crate) const fn is_exact(self) -> bool {
        self.exponent == 0
    }
}

/// The double nearest to `coefficient * 10^exponent`; infinity and 0 at the ends.
pub(crate) fn nearest_double(coefficient: u128, exponent: i32) -> f64 {
    use core::fmt::Write as _;
    let mut text = ShortText { bytes: [0; SHORT_TEXT_BYTES], len: 0 };
    // The library's reader of decimals rounds correctly for any number of digits.
    let written = write!(text, "{coefficient}e{exponent}");
    debug_assert!(written.is_ok(), "39 digits, e and a sign with four digits fit");
    core::str::from_utf8(&text.bytes[..text.len]).ok().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)
}

const SHORT_TEXT_BYTES: usize = 56;

struct ShortText {
    bytes: [u8; SHORT_TEXT_BYTES],
    len: usize,
}

impl core::fmt::Write for ShortText {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        let end = self.len + s.len();
        self.bytes.get_mut(self.len..end).ok_or(core::fmt::Error)?.copy_from_slice(s.as_bytes());
        self.len = end;
        Ok(())
    }
}

/// `coefficient * 10^exponent` (not 0) against `near`, the nearest double (not negative).
fn compare_to_double(coefficient: u128, exponent: i32, near: f64) -> Ordering {
    if near == 0.0 {
        return Ordering::Greater;
    }
    if !near.is_finite() {
        return Ordering::Less;
    }
    let bits = near.to_bits();
    let (biased, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let (mantissa, two) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased as i32 - 1075) };
    // coefficient * 5^exponent * 2^exponent against mantissa * 2^two, each power on the side where it is positive.
    let (mut left, mut right) = (Bignum::of(coefficient), Bignum::of(u128::from(mantissa)));
    if exponent >= 0 {
        left.multiply_by_power_of_5(exponent.unsigned_abs());
    } else {
        right.multiply_by_power_of_5(exponent.unsigned_abs());
    }
    let shift = exponent - two;
    if shift >= 0 {
        left.shift_left(shift.unsigned_abs());
    } else {
        right.shift_left(shift.unsigned_abs());
    }
    left.compare(&right)
}
