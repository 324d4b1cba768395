//! Values for tests: a seeded generator of all types with awkward numbers, and a model of numbers as decimal text.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::cmp::Ordering;

use quarrydb_jsonb::{Builder, Decimal128, JsonbBuf};

pub fn value(write: impl FnOnce(&mut Builder)) -> JsonbBuf {
    let mut b = Builder::new();
    write(&mut b);
    JsonbBuf::from_valid(b.take())
}

pub fn object(fields: &[(&str, JsonbBuf)]) -> JsonbBuf {
    value(|b| {
        b.begin_object();
        for (name, v) in fields {
            b.field(name);
            b.copy(v.view());
        }
        b.end_object().unwrap();
    })
}

pub fn decimal(bits: u128) -> JsonbBuf {
    value(|b| b.decimal128(Decimal128::from_bits(bits)))
}

/// The bits of a finite decimal128: sign, exponent plus 6176 in 14 bits, coefficient in 113 bits.
pub fn decimal_bits(negative: bool, coefficient: u128, exponent: i32) -> u128 {
    assert!(coefficient < 10u128.pow(34) && (-6176..=6111).contains(&exponent));
    u128::from(negative) << 127 | ((exponent + 6176) as u128) << 113 | coefficient
}

/// A decimal from its digits and exponent.
pub fn number(digits: &str, exponent: i32) -> JsonbBuf {
    let negative = digits.starts_with('-');
    decimal(decimal_bits(negative, digits.trim_start_matches('-').parse().unwrap(), exponent))
}

/// A number as exact decimal text, ordered by comparing digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberText {
    negative: bool,
    integer: String,
    fraction: String,
}

/// As many digits after the point as the smallest double and the decimals made here have.
const FRACTION_DIGITS: usize = 1100;

pub fn double_text(v: f64) -> NumberText {
    // The formatter of the library writes every digit that is asked for exactly.
    let text = format!("{:.FRACTION_DIGITS$}", v.abs());
    let (integer, fraction) = text.split_once('.').unwrap();
    NumberText::new(v < 0.0, integer, fraction)
}

pub fn decimal_text(negative: bool, coefficient: u128, exponent: i32) -> NumberText {
    let mut digits = coefficient.to_string();
    if exponent >= 0 {
        digits.push_str(&"0".repeat(exponent as usize));
        return NumberText::new(negative, &digits, "");
    }
    let places = exponent.unsigned_abs() as usize;
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (integer, fraction) = digits.split_at(digits.len() - places);
    NumberText::new(negative, integer, fraction)
}

impl NumberText {
    fn new(negative: bool, integer: &str, fraction: &str) -> Self {
        let integer = integer.trim_start_matches('0').to_owned();
        let fraction = fraction.trim_end_matches('0').to_owned();
        let zero = integer.is_empty() && fraction.is_empty();
        Self { negative: negative && !zero, integer, fraction }
    }

    fn compare_magnitude(&self, other: &Self) -> Ordering {
        (self.integer.len(), &self.integer, &self.fraction).cmp(&(other.integer.len(), &other.integer, &other.fraction))
    }
}

impl PartialOrd for NumberText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for NumberText {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.compare_magnitude(other),
            (true, true) => other.compare_magnitude(self),
            (a, b) => b.cmp(&a),
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }

    pub fn int(&mut self) -> i64 {
        const SPECIAL: [i64; 12] =
            [0, 1, -1, 10, 1 << 31, 1 << 53, -(1 << 53), 1 << 62, i64::MAX, i64::MIN, 0x7fff_ffff_ffff_fe00, 1 << 54];
        match self.below(3) {
            0 => self.below(7) as i64 - 3,
            1 => self.pick(&SPECIAL).wrapping_add(self.below(5) as i64 - 2),
            _ => (self.next() as i64) >> self.below(63),
        }
    }

    pub fn double(&mut self) -> f64 {
        const SPECIAL: [f64; 12] = [
            0.0,
            -0.0,
            0.1,
            0.5,
            1.0,
            5e-324,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            1e22,
            9.2e18,
            9_007_199_254_740_993.0,
        ];
        let v = match self.below(4) {
            0 => self.pick(&SPECIAL),
            1 => self.int() as f64,
            2 => (self.below(2001) as f64 - 1000.0) / 100.0,
            _ => f64::from_bits(self.next()),
        };
        if v.is_finite() { v } else { 1.5 }
    }

    /// A finite decimal, often next to a double or an integer.
    pub fn decimal_parts(&mut self) -> (bool, u128, i32) {
        let negative = self.below(2) == 0;
        match self.below(5) {
            0 => (negative, u128::from(self.below(2001)), self.below(6) as i32 - 4),
            1 => {
                // A double cut to 34 digits, and its neighbours.
                let text = format!("{:.33e}", self.double().abs());
                let (digits, exponent) = text.split_once('e').unwrap();
                let coefficient: u128 = digits.replace('.', "").parse().unwrap();
                let near = coefficient.saturating_add_signed(i128::from(self.below(3) as i8) - 1);
                (negative, near.min(10u128.pow(34) - 1), exponent.parse::<i32>().unwrap() - 33)
            }
            2 => (negative, u128::from(self.int().unsigned_abs()), 0),
            3 => (negative, u128::from(self.int().unsigned_abs()) * 10 + u128::from(self.below(2)), -1),
            _ => {
                let coefficient = (u128::from(self.next()) << 64 | u128::from(self.next())) >> self.below(128);
                (negative, coefficient % 10u128.pow(34), self.below(800) as i32 - 400)
            }
        }
    }

    /// A finite number of any type and its text.
    pub fn number_with_text(&mut self) -> (JsonbBuf, NumberText) {
        match self.below(3) {
            0 => {
                let v = self.int();
                (value(|b| b.int64(v)), decimal_text(v < 0, u128::from(v.unsigned_abs()), 0))
            }
            1 => {
                let v = self.double();
                (value(|b| b.double(v)), double_text(v))
            }
            _ => {
                let (negative, coefficient, exponent) = self.decimal_parts();
                let v = decimal(decimal_bits(negative, coefficient, exponent));
                (v, decimal_text(negative, coefficient, exponent))
            }
        }
    }

    pub fn text(&mut self) -> String {
        const PARTS: [&str; 9] = ["", "a", "b", "\0", "\u{1}", "\u{2}", "\u{e9}", "\u{1f600}", "name"];
        (0..self.below(4)).map(|_| self.pick(&PARTS)).collect()
    }
}

/// Writes a value of any type, containers up to `depth` levels.
pub fn write_any(random: &mut Random, depth: usize, b: &mut Builder) {
    match random.below(if depth == 0 { 14 } else { 20 }) {
        0 => b.null(),
        1 => b.bool(random.below(2) == 0),
        2 => b.int32(random.int() as i32),
        3 => b.int64(random.int()),
        4 => b.double(random.double()),
        5 => b.double(random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY])),
        6 => {
            let (negative, coefficient, exponent) = random.decimal_parts();
            b.decimal128(Decimal128::from_bits(decimal_bits(negative, coefficient, exponent)));
        }
        7 => b.string(&random.text()),
        8 => {
            let subtype = random.pick(&[0, 4, 128]);
            b.binary(subtype, random.text().as_bytes());
        }
        9 => b.object_id([random.below(3) as u8; 12]),
        10 => b.date(random.int()),
        11 => b.timestamp(random.below(3) as u32, random.next() as u32),
        12 => {
            // No pattern holds a NUL.
            let pattern = random.text().replace('\0', "");
            b.regex(&pattern, random.pick(&["", "i", "im"]));
        }
        13 => {
            if random.below(2) == 0 {
                b.min_key();
            } else {
                b.max_key();
            }
        }
        14..=16 => {
            b.begin_array();
            for _ in 0..random.below(4) {
                write_any(random, depth - 1, b);
            }
            b.end_array().unwrap();
        }
        _ => {
            b.begin_object();
            let mut names: Vec<String> = Vec::new();
            for _ in 0..random.below(4) {
                // No field name holds a NUL.
                let name = random.text().replace('\0', "");
                if !names.contains(&name) {
                    b.field(&name);
                    write_any(random, depth - 1, b);
                    names.push(name);
                }
            }
            b.end_object().unwrap();
        }
    }
}

pub fn any_value(random: &mut Random, depth: usize) -> JsonbBuf {
    value(|b| write_any(random, depth, b))
}
