//! decimal128 as text and as parts: exact, never rounding.
//!
//! Takes and gives the strings of the BSON decimal128 specification, and (sign, coefficient, exponent). A number that
//! has more than 34 significant digits or an exponent out of range is an error unless zeros make room for it (the
//! specification's clamping). The order of numbers is `number.rs`'s.

use core::fmt;

use crate::error::{Error, ErrorKind};
use crate::number::{Decimal128, Unpacked};

/// The digits of a coefficient.
const DIGITS_MAX: usize = 34;
const COEFFICIENT_MAX: u128 = 10_u128.pow(DIGITS_MAX as u32) - 1;
const EXPONENT_MIN: i32 = -6176;
const EXPONENT_MAX: i32 = 6111;
const EXPONENT_BIAS: i32 = 6176;
const EXPONENT_SHIFT: u32 = 113;
const SIGN: u128 = 1 << 127;
const INFINITY: u128 = 0x1e << 122;
const NAN: u128 = 0x1f << 122;
const SPECIAL_SHIFT: u32 = 122;
/// Below this, the adjusted exponent makes the scientific form (decimal128 specification, "To String Representation").
const ADJUSTED_PLAIN_MIN: i32 = -6;

impl Decimal128 {
    /// Not a number.
    pub const NAN: Self = Self::from_bits(NAN);
    /// Above every finite number.
    pub const INFINITY: Self = Self::from_bits(INFINITY);
    /// Below every finite number.
    pub const NEG_INFINITY: Self = Self::from_bits(SIGN | INFINITY);

    /// Reads the text of a decimal: `1.5`, `-1E+3`, `Infinity`, `NaN`.
    ///
    /// # Errors
    /// `NumberOutOfRange` where the value cannot be held exactly; `BadWrapper` where it is no number.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let sign = if negative { SIGN } else { 0 };
        if rest.eq_ignore_ascii_case("nan") {
            return Ok(Self::NAN);
        }
        if rest.eq_ignore_ascii_case("inf") || rest.eq_ignore_ascii_case("infinity") {
            return Ok(Self::from_bits(sign | INFINITY));
        }
        let no_number = || Error::new(ErrorKind::BadWrapper, format!("{:?} is no decimal number", shortened(text)));
        let mut digits = Digits::default();
        let (mut any, mut point, mut at) = (false, false, 0);
        let bytes = rest.as_bytes();
        while let Some(&b) = bytes.get(at) {
            match b {
                b'0'..=b'9' => {
                    any = true;
                    digits.push(b - b'0', point);
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        if !any {
            return Err(no_number());
        }
        let mut exponent = 0;
        if let Some(b'e' | b'E') = bytes.get(at) {
            let text = rest.get(at + 1..).unwrap_or_default();
            let (minus, figures) = match text.as_bytes().first() {
                Some(b'-') => (true, &text[1..]),
                Some(b'+') => (false, &text[1..]),
                _ => (false, text),
            };
            if figures.is_empty() || !figures.bytes().all(|b| b.is_ascii_digit()) {
                return Err(no_number());
            }
            let size = figures.bytes().fold(0_i64, |n, b| (n * 10 + i64::from(b - b'0')).min(1 << 40));
            exponent = if minus { -size } else { size };
            at = bytes.len();
        }
        if at != bytes.len() {
            return Err(no_number());
        }
        let out_of_range = || {
            let message = format!("{:?} has no exact decimal128: at most {DIGITS_MAX} digits", shortened(text));
            Error::new(ErrorKind::NumberOutOfRange, message)
        };
        if digits.inexact {
            return Err(out_of_range());
        }
        Self::clamped(negative, digits.coefficient, digits.exponent.saturating_add(exponent)).ok_or_else(out_of_range)
    }

    /// The number `coefficient * 10^exponent`; none where it does not fit exactly with this coefficient.
    #[must_use]
    pub fn from_parts(negative: bool, coefficient: u128, exponent: i32) -> Option<Self> {
        if coefficient > COEFFICIENT_MAX || !(EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent) {
            return None;
        }
        let sign = if negative { SIGN } else { 0 };
        let biased = (exponent + EXPONENT_BIAS) as u128;
        Some(Self::from_bits(sign | biased << EXPONENT_SHIFT | coefficient))
    }

    /// The same with an exponent out of range brought into it where zeros of the coefficient allow it.
    fn clamped(negative: bool, coefficient: u128, exponent: i64) -> Option<Self> {
        let (min, max) = (i64::from(EXPONENT_MIN), i64::from(EXPONENT_MAX));
        if coefficient == 0 {
            return Self::from_parts(negative, 0, exponent.clamp(min, max) as i32);
        }
        let (mut coefficient, mut exponent) = (coefficient, exponent);
        while exponent > max && coefficient <= COEFFICIENT_MAX / 10 {
            coefficient *= 10;
            exponent -= 1;
        }
        while exponent < min && coefficient % 10 == 0 {
            coefficient /= 10;
            exponent += 1;
        }
        Self::from_parts(negative, coefficient, i32::try_from(exponent).ok()?)
    }

    /// From an integer, exactly.
    #[must_use]
    pub fn from_i64(v: i64) -> Self {
        let magnitude = Self::from_u64(v.unsigned_abs());
        if v < 0 { Self::from_bits(magnitude.to_bits() | SIGN) } else { magnitude }
    }

    /// From an integer, exactly.
    #[must_use]
    pub const fn from_u64(v: u64) -> Self {
        Self::from_bits((EXPONENT_BIAS as u128) << EXPONENT_SHIFT | v as u128)
    }

    /// (negative, coefficient, exponent) of a finite number; a coefficient out of range means 0, as the standard says.
    /// None for infinities and NaN.
    #[must_use]
    pub const fn parts(self) -> Option<(bool, u128, i32)> {
        match self.unpack() {
            Unpacked::Finite { negative, coefficient, exponent } => Some((negative, coefficient, exponent)),
            Unpacked::Nan | Unpacked::Infinite { .. } => None,
        }
    }

    /// Whether it is not a number.
    #[must_use]
    pub const fn is_nan(self) -> bool {
        self.to_bits() >> SPECIAL_SHIFT & 0x1f == 0x1f
    }

    /// Whether it is one of the infinities.
    #[must_use]
    pub const fn is_infinite(self) -> bool {
        self.to_bits() >> SPECIAL_SHIFT & 0x1f == 0x1e
    }

    /// Whether its sign is minus; zeros and NaN have one too.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.to_bits() & SIGN != 0
    }
}

/// Digits on their way to a coefficient.
#[derive(Default)]
struct Digits {
    coefficient: u128,
    /// Of the last digit taken.
    exponent: i64,
    /// Zeros that are taken only when a digit follows them or they fit.
    inexact: bool,
}

impl Digits {
    /// Takes the next digit. Where the coefficient is full, zeros move the exponent and others make it inexact.
    fn push(&mut self, digit: u8, after_point: bool) {
        if self.coefficient <= (COEFFICIENT_MAX - 9) / 10 {
            self.coefficient = self.coefficient * 10 + u128::from(digit);
            self.exponent -= i64::from(after_point);
        } else {
            self.inexact |= digit != 0;
            self.exponent += i64::from(!after_point);
        }
    }
}

/// The beginning of a text that somebody sent, for a message.
pub(crate) fn shortened(text: &str) -> &str {
    const SHOWN_MAX: usize = 64;
    text.char_indices().nth(SHOWN_MAX).map_or(text, |(end, _)| &text[..end])
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_nan() {
            return f.write_str("NaN");
        }
        let Some((negative, coefficient, exponent)) = self.parts() else {
            return f.write_str(if self.is_negative() { "-Infinity" } else { "Infinity" });
        };
        if negative {
            f.write_str("-")?;
        }
        let digits = coefficient.to_string();
        let count = digits.len() as i32;
        let adjusted = exponent + count - 1;
        if exponent > 0 || adjusted < ADJUSTED_PLAIN_MIN {
            let (first, rest) = digits.split_at(1);
            f.write_str(first)?;
            if !rest.is_empty() {
                write!(f, ".{rest}")?;
            }
            return write!(f, "E{adjusted:+}");
        }
        if exponent == 0 {
            return f.write_str(&digits);
        }
        let whole = count + exponent;
        if whole > 0 {
            let (whole, fraction) = digits.split_at(whole as usize);
            write!(f, "{whole}.{fraction}")
        } else {
            f.write_str("0.")?;
            for _ in whole..0 {
                f.write_str("0")?;
            }
            f.write_str(&digits)
        }
    }
}

impl core::str::FromStr for Decimal128 {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}
