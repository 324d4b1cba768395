//! Preferred numbers: the boundaries that `$bucketAuto` rounds to.
//!
//! Takes a number that is not negative, gives the next one of a series above or below it. The Renard series are those of
//! ISO 3, the E series those of IEC 60063, repeated for every power of ten. Must never know of buckets.

use crate::decimal;
use crate::expr::Datum;
use crate::number::Number;
use std::cmp::Ordering;

/// A series of preferred numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Granularity {
    /// Numbers of two or three digits, each times every power of ten.
    Decades(&'static [u16]),
    PowersOfTwo,
}

const R5: &[u16] = &[10, 16, 25, 40, 63];
const R10: &[u16] = &[100, 125, 160, 200, 250, 315, 400, 500, 630, 800];
const R20: &[u16] =
    &[100, 112, 125, 140, 160, 180, 200, 224, 250, 280, 315, 355, 400, 450, 500, 560, 630, 710, 800, 900];
const R40: &[u16] = &[
    100, 106, 112, 118, 125, 132, 140, 150, 160, 170, 180, 190, 200, 212, 224, 236, 250, 265, 280, 300, 315, 335, 355,
    375, 400, 425, 450, 475, 500, 530, 560, 600, 630, 670, 710, 750, 800, 850, 900, 950,
];
const R80: &[u16] = &[
    100, 103, 106, 109, 112, 115, 118, 122, 125, 128, 132, 136, 140, 145, 150, 155, 160, 165, 170, 175, 180, 185, 190,
    195, 200, 206, 212, 218, 224, 230, 236, 243, 250, 258, 265, 272, 280, 290, 300, 307, 315, 325, 335, 345, 355, 365,
    375, 387, 400, 412, 425, 437, 450, 462, 475, 487, 500, 515, 530, 545, 560, 575, 600, 615, 630, 650, 670, 690, 710,
    730, 750, 775, 800, 825, 850, 875, 900, 925, 950, 975,
];
const ONE_TWO_FIVE: &[u16] = &[10, 20, 50];
const E6: &[u16] = &[10, 15, 22, 33, 47, 68];
const E12: &[u16] = &[10, 12, 15, 18, 22, 27, 33, 39, 47, 56, 68, 82];
const E24: &[u16] = &[10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91];
const E48: &[u16] = &[
    100, 105, 110, 115, 121, 127, 133, 140, 147, 154, 162, 169, 178, 187, 196, 205, 215, 226, 237, 249, 261, 274, 287,
    301, 316, 332, 348, 365, 383, 402, 422, 442, 464, 487, 511, 536, 562, 590, 619, 649, 681, 715, 750, 787, 825, 866,
    909, 953,
];
const E96: &[u16] = &[
    100, 102, 105, 107, 110, 113, 115, 118, 121, 124, 127, 130, 133, 137, 140, 143, 147, 150, 154, 158, 162, 165, 169,
    174, 178, 182, 187, 191, 196, 200, 205, 210, 215, 221, 226, 232, 237, 243, 249, 255, 261, 267, 274, 280, 287, 294,
    301, 309, 316, 324, 332, 340, 348, 357, 365, 374, 383, 392, 402, 412, 422, 432, 442, 453, 464, 475, 487, 499, 511,
    523, 536, 549, 562, 576, 590, 604, 619, 634, 649, 665, 681, 698, 715, 732, 750, 768, 787, 806, 825, 845, 866, 887,
    909, 931, 953, 976,
];
const E192: &[u16] = &[
    100, 101, 102, 104, 105, 106, 107, 109, 110, 111, 113, 114, 115, 117, 118, 120, 121, 123, 124, 126, 127, 129, 130,
    132, 133, 135, 137, 138, 140, 142, 143, 145, 147, 149, 150, 152, 154, 156, 158, 160, 162, 164, 165, 167, 169, 172,
    174, 176, 178, 180, 182, 184, 187, 189, 191, 193, 196, 198, 200, 203, 205, 208, 210, 213, 215, 218, 221, 223, 226,
    229, 232, 234, 237, 240, 243, 246, 249, 252, 255, 258, 261, 264, 267, 271, 274, 277, 280, 284, 287, 291, 294, 298,
    301, 305, 309, 312, 316, 320, 324, 328, 332, 336, 340, 344, 348, 352, 357, 361, 365, 370, 374, 379, 383, 388, 392,
    397, 402, 407, 412, 417, 422, 427, 432, 437, 442, 448, 453, 459, 464, 470, 475, 481, 487, 493, 499, 505, 511, 517,
    523, 530, 536, 542, 549, 556, 562, 569, 576, 583, 590, 597, 604, 612, 619, 626, 634, 642, 649, 657, 665, 673, 681,
    690, 698, 706, 715, 723, 732, 741, 750, 759, 768, 777, 787, 796, 806, 816, 825, 835, 845, 856, 866, 876, 887, 898,
    909, 920, 931, 942, 953, 965, 976, 988,
];

/// All names.
pub(super) const GRANULARITIES: [(&str, Granularity); 13] = [
    ("R5", Granularity::Decades(R5)),
    ("R10", Granularity::Decades(R10)),
    ("R20", Granularity::Decades(R20)),
    ("R40", Granularity::Decades(R40)),
    ("R80", Granularity::Decades(R80)),
    ("1-2-5", Granularity::Decades(ONE_TWO_FIVE)),
    ("E6", Granularity::Decades(E6)),
    ("E12", Granularity::Decades(E12)),
    ("E24", Granularity::Decades(E24)),
    ("E48", Granularity::Decades(E48)),
    ("E96", Granularity::Decades(E96)),
    ("E192", Granularity::Decades(E192)),
    ("POWERSOF2", Granularity::PowersOfTwo),
];

impl Granularity {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        GRANULARITIES.iter().find(|(known, _)| *known == name).map(|(_, series)| *series)
    }

    /// The least number of the series above `n`; zero and infinity stay.
    pub(super) fn up(self, n: Number) -> Number {
        self.next(n, Ordering::Greater)
    }

    /// The greatest number of the series below `n`; zero and infinity stay.
    pub(super) fn down(self, n: Number) -> Number {
        self.next(n, Ordering::Less)
    }

    fn next(self, n: Number, wanted: Ordering) -> Number {
        let near = n.to_f64();
        if n.is_zero() || !near.is_finite() {
            return n;
        }
        // A decimal that is nothing as a double lies outside of what buckets are for.
        let near = near.max(f64::MIN_POSITIVE);
        let found = match self {
            Self::Decades(series) => {
                let digits = if series.first() == Some(&10) { 1 } else { 2 };
                let decade = near.log10().floor() as i32 - digits;
                let candidates = (decade - 1..=decade + 1)
                    .flat_map(|decade| series.iter().map(move |digits| decimal_number(n, *digits, decade)));
                nearest(n, candidates, wanted)
            }
            Self::PowersOfTwo => {
                let power = near.log2().floor() as i32;
                nearest(n, (power - 1..=power + 1).map(|power| power_of_two(n, power)), wanted)
            }
        };
        found.unwrap_or(n)
    }
}

/// The candidate next to `n` on one side of it.
fn nearest(n: Number, candidates: impl Iterator<Item = Number>, wanted: Ordering) -> Option<Number> {
    let order = |a: Number, b: Number| Datum::Number(a).compare(&Datum::Number(b)).unwrap_or(Ordering::Equal);
    candidates.filter(|c| order(*c, n) == wanted).min_by(|a, b| {
        let ascending = order(*a, *b);
        if wanted == Ordering::Greater { ascending } else { ascending.reverse() }
    })
}

/// `digits * 10^decade`: a decimal where `n` is one, else a double.
fn decimal_number(n: Number, digits: u16, decade: i32) -> Number {
    if n.is_decimal() {
        return Number::Decimal(decimal::from_parts(false, digits.into(), decade));
    }
    // Through text the double is the nearest.
    Number::Double(format!("{digits}e{decade}").parse().unwrap_or(f64::INFINITY))
}

/// `2^power` in the type of `n`, or where that is an integer it cannot be, as a double.
fn power_of_two(n: Number, power: i32) -> Number {
    let double = Number::Double(2_f64.powi(power));
    match n {
        Number::Decimal(_) => {
            let two = decimal::from_parts(false, 2, 0);
            let power = decimal::from_parts(power < 0, power.unsigned_abs().into(), 0);
            Number::Decimal(decimal::pow(two, power))
        }
        Number::Double(_) => double,
        Number::Int32(_) | Number::Int64(_) => match u32::try_from(power).map(|p| 1_i64.checked_shl(p)) {
            Ok(Some(whole)) if whole > 0 => i32::try_from(whole).map_or(Number::Int64(whole), Number::Int32),
            _ => double,
        },
    }
}
