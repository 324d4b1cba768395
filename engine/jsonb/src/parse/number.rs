//! Numbers in text: integers exactly, fractions and exponents as the nearest double.
//!
//! Takes the position of a number's first byte; appends the value and gives the position after it. An integer literal
//! is int32 where it fits, else int64, else decimal128 of up to 34 digits. Doubles of at most 15 or so digits are made
//! by one exact division or multiplication (W. D. Clinger, How to read floating point numbers accurately, 1990), others
//! by the standard library, which rounds correctly.

use super::{Parser, Stop};
use crate::builder::{push_eight, push_int32, push_int64};
use crate::error::ErrorKind;
use crate::number::Decimal128;
use crate::tag::Kind;

/// Powers of ten that a double holds exactly.
pub(crate) const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Integers up to here are doubles exactly.
const EXACT_MAX: u64 = 1 << 53;
/// So many digits always fit a u64.
const DIGITS_MAX_U64: usize = 19;
/// So many digits always fit an i64.
const DIGITS_MAX_I64: usize = 18;
/// The digits of a decimal128.
const DIGITS_MAX: usize = 34;

impl Parser<'_> {
    /// A number value that begins at `at` with a minus or a digit.
    #[inline(always)]
    pub(super) fn number(&mut self, at: usize) -> Result<usize, Stop> {
        let negative = self.byte(at) == b'-';
        let first = at + usize::from(negative);
        let (end, value) = self.digits(first, 0);
        let count = end - first;
        if count == 0 || (count > 1 && self.byte(first) == b'0') {
            return Err(self.bad_number(first, count));
        }
        if matches!(self.byte(end), b'.' | b'e' | b'E') {
            return self.double(at, end, value, count, negative);
        }
        if count > DIGITS_MAX_I64 {
            return self.long_integer(at, first, end);
        }
        let value = if negative { -(value as i64) } else { value as i64 };
        if let Ok(small) = i32::try_from(value) {
            push_int32(&mut self.out, small);
        } else {
            push_int64(&mut self.out, value);
        }
        Ok(end)
    }

    /// Reads digits onto `value`; more than a u64 holds wraps around.
    #[inline(always)]
    fn digits(&self, mut at: usize, mut value: u64) -> (usize, u64) {
        loop {
            let digit = self.byte(at).wrapping_sub(b'0');
            if digit > 9 {
                return (at, value);
            }
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit));
            at += 1;
        }
    }

    /// A number whose integer part ends at `end` before a point or an exponent.
    #[inline]
    fn double(&mut self, at: usize, end: usize, whole: u64, whole_count: usize, negative: bool) -> Result<usize, Stop> {
        let (mut end, mut value, mut count) = (end, whole, whole_count);
        let mut exponent = 0_i32;
        if self.byte(end) == b'.' {
            let (after, all) = self.digits(end + 1, value);
            let fraction = after - end - 1;
            if fraction == 0 {
                let message = format!("found {} where a digit must follow the point", self.found(after));
                return Err(self.syntax(after, message));
            }
            (end, value, count) = (after, all, count + fraction);
            // Longer ones do not come to use below.
            exponent = -(fraction.min(1000) as i32);
        }
        if self.byte(end) | 0x20 == b'e' {
            let (after, e) = self.exponent(end + 1)?;
            end = after;
            exponent += e;
        }
        let power = POWERS_OF_TEN.get(exponent.unsigned_abs() as usize);
        let v = match power {
            Some(power) if count <= DIGITS_MAX_U64 && value <= EXACT_MAX => {
                let v = if exponent < 0 { value as f64 / power } else { value as f64 * power };
                if negative { -v } else { v }
            }
            _ => self.long_double(at, end)?,
        };
        push_eight(&mut self.out, Kind::Double, v.to_bits());
        Ok(end)
    }

    /// The exponent whose sign or first digit is at `at`; far beyond any double's it is cut.
    fn exponent(&mut self, at: usize) -> Result<(usize, i32), Stop> {
        let sign = self.byte(at);
        let first = at + usize::from(matches!(sign, b'+' | b'-'));
        let mut end = first;
        let mut value = 0_i32;
        while self.byte(end).is_ascii_digit() {
            value = (value * 10 + i32::from(self.byte(end) - b'0')).min(100_000);
            end += 1;
        }
        if end == first {
            let message = format!("found {} where an exponent wants a digit", self.found(end));
            return Err(self.syntax(end, message));
        }
        Ok((end, if sign == b'-' { -value } else { value }))
    }

    #[cold]
    fn long_double(&mut self, at: usize, end: usize) -> Result<f64, Stop> {
        let literal = self.text.get(at..end).unwrap_or_default();
        let v = core::str::from_utf8(literal).ok().and_then(|s| s.parse::<f64>().ok());
        match v {
            Some(v) if v.is_finite() => Ok(v),
            _ => Err(self.syntax(at, "a number beyond the range of doubles".to_owned())),
        }
    }

    /// An integer of 19 digits or more.
    #[cold]
    fn long_integer(&mut self, at: usize, first: usize, end: usize) -> Result<usize, Stop> {
        let negative = at != first;
        if end - first > DIGITS_MAX {
            let message = format!("an integer of {} digits: at most {DIGITS_MAX} are exact", end - first);
            self.fault(ErrorKind::NumberOutOfRange, at, message);
            push_int32(&mut self.out, 0);
            return Ok(end);
        }
        let digits = self.text.get(first..end).unwrap_or_default();
        let value = digits.iter().fold(0_i128, |v, &b| v * 10 + i128::from(b - b'0'));
        let signed = if negative { -value } else { value };
        if let Ok(v) = i64::try_from(signed) {
            push_int64(&mut self.out, v);
        } else {
            let v = Decimal128::from_parts(negative, value.unsigned_abs(), 0);
            self.out.push(Kind::Decimal128.tag(0));
            self.out.extend_from_slice(&v.map_or(0, Decimal128::to_bits).to_le_bytes());
        }
        Ok(end)
    }

    #[cold]
    fn bad_number(&mut self, first: usize, count: usize) -> Stop {
        if count == 0 {
            let message = format!("found {} where a digit must follow the minus", self.found(first));
            self.syntax(first, message)
        } else {
            self.syntax(first, "a number does not begin with 0 and a further digit".to_owned())
        }
    }
}
