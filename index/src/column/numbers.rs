//! Ints, doubles and bools as u64 of the same order; doubles as decimals of one exponent where that is exact for all.
//!
//! NaN is the least of doubles, -0.0 equals 0.0 and comes back as -0.0. Other payloads of NaN become the usual one.

use std::ops::Bound;

const SIGN: u64 = 1 << 63;
/// Decimals have at most this many digits after the point: 10^e and the digits are exact in a double then.
pub(crate) const EXPONENT_MAX: u8 = 14;
/// Largest digits of a decimal: the doubles of whole numbers are exact up to here.
const DIGITS_MAX: f64 = 9_007_199_254_740_992.0;

pub(crate) fn int_key(number: i64) -> u64 {
    number as u64 ^ SIGN
}

pub(crate) fn int_of(key: u64) -> i64 {
    (key ^ SIGN) as i64
}

fn raw_key(number: f64) -> u64 {
    let bits = number.to_bits();
    if number.is_nan() {
        0
    } else if bits & SIGN != 0 {
        !bits
    } else {
        bits | SIGN
    }
}

fn raw_of(key: u64) -> f64 {
    match key {
        0 => f64::NAN,
        _ if key & SIGN != 0 => f64::from_bits(key ^ SIGN),
        _ => f64::from_bits(!key),
    }
}

/// How the doubles of one column are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubles {
    /// As their bits, in order.
    Raw,
    /// As whole numbers, to be divided by 10 to this power.
    Decimal(u8),
}

/// Exact in a double, all of them.
const POWERS: [f64; EXPONENT_MAX as usize + 1] =
    [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14];

fn power(exponent: u8) -> f64 {
    POWERS.get(usize::from(exponent)).copied().unwrap_or(1.0)
}

fn digits(number: f64, exponent: u8) -> Option<i64> {
    let digits = (number * power(exponent)).round();
    // -0.0 would come back without its sign.
    let whole = !(number == 0.0 && number.is_sign_negative())
        && digits.abs() <= DIGITS_MAX
        && (digits / power(exponent)).to_bits() == number.to_bits();
    whole.then_some(digits as i64)
}

impl Doubles {
    /// How these can be written: as decimals if each comes back bit for bit.
    pub(crate) fn choose(numbers: &[f64]) -> Self {
        let mut exponent = 0;
        for &number in numbers {
            while digits(number, exponent).is_none() {
                exponent += 1;
                if exponent > EXPONENT_MAX || !number.is_finite() {
                    return Self::Raw;
                }
            }
        }
        let exact = numbers.iter().all(|&number| digits(number, exponent).is_some());
        if exact { Self::Decimal(exponent) } else { Self::Raw }
    }

    /// The key of a number for which `choose` chose this.
    pub(crate) fn key(self, number: f64) -> u64 {
        match self {
            Self::Raw => raw_key(number),
            Self::Decimal(exponent) => int_key(digits(number, exponent).unwrap_or(0)),
        }
    }

    pub(crate) fn of(self, key: u64) -> f64 {
        match self {
            Self::Raw => raw_of(key),
            Self::Decimal(exponent) => int_of(key) as f64 / power(exponent),
        }
    }

    /// A key with that of -0.0 as that of 0.0, which it equals.
    pub(crate) fn joined(self, key: u64) -> u64 {
        if self == Self::Raw && key == SIGN - 1 { SIGN } else { key }
    }

    /// The least key whose number is not below `number` (or, `beyond`, is above it).
    fn first(self, number: f64, beyond: bool) -> u64 {
        match self {
            Self::Raw if number.is_nan() => u64::from(beyond),
            Self::Raw if number == 0.0 => raw_key(if beyond { 0.0 } else { -0.0 }) + u64::from(beyond),
            Self::Raw => raw_key(number) + u64::from(beyond),
            Self::Decimal(_) if number.is_nan() => 0,
            Self::Decimal(exponent) => {
                let passes = |digits: i64| {
                    let at = digits as f64 / power(exponent);
                    at > number || (!beyond && at == number)
                };
                // Division rounds monotonically, so the keys that pass are an upper end of all keys.
                let limit = DIGITS_MAX as i64;
                let (mut low, mut high) = (-limit, limit + 1);
                let near = (number * power(exponent)).clamp(-DIGITS_MAX, DIGITS_MAX) as i64;
                if near - 4 >= low && !passes(near - 4) {
                    low = near - 3;
                }
                if near + 4 < high && passes(near + 4) {
                    high = near + 4;
                }
                while low < high {
                    let middle = low + (high - low) / 2;
                    if passes(middle) { high = middle } else { low = middle + 1 }
                }
                int_key(low)
            }
        }
    }

    /// The keys of a range of doubles, both ends within; `None` if there can be none. NaN is below all others.
    pub(crate) fn keys(self, low: Bound<f64>, high: Bound<f64>) -> Option<(u64, u64)> {
        let low = match low {
            Bound::Unbounded => 0,
            Bound::Included(number) => self.first(number, false),
            Bound::Excluded(number) => self.first(number, true),
        };
        let end = match high {
            Bound::Unbounded => return Some((low, u64::MAX)),
            Bound::Included(number) => self.first(number, true),
            Bound::Excluded(number) => self.first(number, false),
        };
        (low < end).then(|| (low, end - 1))
    }
}

/// The keys of a range of ints, both ends within; `None` if there can be none.
pub(crate) fn int_keys(low: Bound<i64>, high: Bound<i64>) -> Option<(u64, u64)> {
    let low = match low {
        Bound::Unbounded => i64::MIN,
        Bound::Included(number) => number,
        Bound::Excluded(number) => number.checked_add(1)?,
    };
    let high = match high {
        Bound::Unbounded => i64::MAX,
        Bound::Included(number) => number,
        Bound::Excluded(number) => number.checked_sub(1)?,
    };
    (low <= high).then(|| (int_key(low), int_key(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_keep_their_order_and_their_bits() {
        let numbers =
            [f64::NAN, f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, -0.0, 0.0, 5e-324, 0.1, 1e300, f64::INFINITY];
        for pair in numbers.windows(2) {
            assert!(raw_key(pair[0]) < raw_key(pair[1]), "{pair:?}");
        }
        for number in numbers {
            assert_eq!(raw_of(raw_key(number)).to_bits(), number.to_bits());
        }
        assert_eq!(Doubles::Raw.joined(raw_key(-0.0)), raw_key(0.0));
        assert_eq!(Doubles::Raw.joined(raw_key(-5e-324)), raw_key(-5e-324));
    }

    #[test]
    fn decimals_are_chosen_only_where_exact() {
        assert_eq!(Doubles::choose(&[0.1, 2.25, -3.0]), Doubles::Decimal(2));
        assert_eq!(Doubles::choose(&[1.0, 9_007_199_254_740_992.0]), Doubles::Decimal(0));
        for odd in [-0.0, f64::NAN, f64::INFINITY, 1.0 / 3.0, 1e300, 5e-324] {
            assert_eq!(Doubles::choose(&[1.0, odd]), Doubles::Raw, "{odd}");
        }
        assert_eq!(Doubles::choose(&[0.01, 9_007_199_254_740_991.0]), Doubles::Raw, "not both at once");
        let cents = Doubles::Decimal(2);
        assert_eq!(cents.of(cents.key(-1234.56)), -1234.56);
        assert_eq!(cents.keys(Bound::Included(0.3), Bound::Excluded(0.3)), None);
        assert_eq!(cents.keys(Bound::Excluded(0.295), Bound::Included(0.305)), Some((int_key(30), int_key(30))));
        assert_eq!(
            cents.keys(Bound::Included(f64::INFINITY), Bound::Unbounded).map(|k| k.0 > int_key(1 << 53)),
            Some(true)
        );
    }
}
