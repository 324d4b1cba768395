//! Integers and doubles as text.
//!
//! Takes numbers; appends their shortest text, doubles so that they read back as the same double and as a double.

use super::{CANONICAL, Printer};
use crate::parse::POWERS_OF_TEN;

/// The first integer that has more than eight digits.
const EIGHT_DIGITS_END: u64 = 100_000_000;
/// Doubles below this with a few digits after the point have at most 15 digits in all.
const SHORT_DOUBLE_END: f64 = 1e11;
/// The digits after the point that are tried: the money, scores and shares that most doubles in documents are.
const SHORT_FRACTIONS: [usize; 2] = [2, 4];

impl<const STYLE: u8> Printer<'_, '_, STYLE> {
    #[inline(always)]
    pub(super) fn integer(&mut self, v: i64, wrapper: &str) {
        if STYLE == CANONICAL {
            self.wrapped_text(wrapper, itoa::Buffer::new().format(v));
        } else if (0..EIGHT_DIGITS_END as i64).contains(&v) {
            self.small_integer(v as u32);
        } else {
            self.text(itoa::Buffer::new().format(v));
        }
    }

    /// An integer of at most eight digits.
    #[inline(always)]
    fn small_integer(&mut self, v: u32) {
        let digits = eight_digits(v);
        // The first digit is the lowest byte; 0 has one digit too.
        let zeros = (digits | 1 << 56).trailing_zeros() / 8;
        let text = (digits | u64::from_le_bytes([b'0'; 8])) >> (8 * zeros);
        let start = self.out.len();
        self.out.extend_from_slice(&text.to_le_bytes());
        self.out.truncate(start + 8 - zeros as usize);
    }

    #[inline]
    pub(super) fn double(&mut self, v: f64) {
        if !v.is_finite() {
            let text = match v {
                f64::INFINITY => "Infinity",
                f64::NEG_INFINITY => "-Infinity",
                _ => "NaN",
            };
            self.wrapped_text("$numberDouble", text);
        } else if STYLE == CANONICAL {
            self.wrapped_text("$numberDouble", zmij::Buffer::new().format_finite(v));
        } else if !self.short_double(v) {
            self.text(zmij::Buffer::new().format_finite(v));
        }
    }

    /// Prints a double of few digits. Where an integer of at most 15 digits divided by a power of ten (that is one rounded
    /// operation, as reading the text is) gives the double again, its digits are the shortest text: no two texts of so
    /// few digits mean one double.
    #[inline(always)]
    fn short_double(&mut self, v: f64) -> bool {
        let magnitude = v.abs();
        if magnitude >= SHORT_DOUBLE_END {
            return false;
        }
        let whole = magnitude as u64;
        if whole as f64 == magnitude {
            self.sign(v);
            self.unsigned(whole);
            self.text(".0");
            return true;
        }
        for places in SHORT_FRACTIONS {
            let power = POWERS_OF_TEN[places];
            let digits = (magnitude * power + 0.5) as u64;
            if digits as f64 / power == magnitude {
                self.sign(v);
                let power = power as u64;
                self.unsigned(digits / power);
                self.fraction((digits % power) as u32, places);
                return true;
            }
        }
        false
    }

    #[inline(always)]
    fn sign(&mut self, v: f64) {
        if v.is_sign_negative() {
            self.out.push(b'-');
        }
    }

    #[inline(always)]
    fn unsigned(&mut self, v: u64) {
        if v < EIGHT_DIGITS_END {
            self.small_integer(v as u32);
        } else {
            self.text(itoa::Buffer::new().format(v));
        }
    }

    /// The point and the `places` digits of `v`, which is not 0, without the zeros at their end.
    #[inline(always)]
    fn fraction(&mut self, v: u32, places: usize) {
        let digits = eight_digits(v);
        let zeros = digits.leading_zeros() as usize / 8;
        let text = (digits | u64::from_le_bytes([b'0'; 8])) >> (8 * (8 - places));
        self.out.push(b'.');
        let start = self.out.len();
        self.out.extend_from_slice(&text.to_le_bytes());
        self.out.truncate(start + places.saturating_sub(zeros));
    }
}

/// The eight decimal digits of `v`, a digit a byte, the first one lowest. Each step divides all parts at once by
/// multiplying with a reciprocal, exact for numbers of their size.
#[inline(always)]
fn eight_digits(v: u32) -> u64 {
    debug_assert!(u64::from(v) < EIGHT_DIGITS_END);
    let fours = u64::from(v / 10_000) | u64::from(v % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_those_of_the_standard_library() {
        let numbers = (0..20_000).chain((0..100_000_000).step_by(997)).chain([99_999_999]);
        for v in numbers {
            let text = eight_digits(v).to_le_bytes().map(|digit| digit + b'0');
            assert_eq!(core::str::from_utf8(&text), Ok(&*format!("{v:08}")));
        }
    }
}
