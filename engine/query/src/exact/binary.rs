//! An exact sum of doubles: a binary integer wide enough for all of them.
//!
//! Takes finite doubles and integers in any order, gives the double nearest to their sum, ties to even: the order changes no
//! bit. Most sums stay within 128 bits around their first number; others take chunks of 32 bits for every exponent (R. M.
//! Neal, "Fast exact summation using small and large superaccumulators", 2015). Knows no infinities, no NaN, no types.

use super::codec::{Reader, put_u64};
use crate::QueryError;

/// The exponent of the lowest bit that a double has.
const EXPONENT_MIN: i32 = -1074;
/// Bits of a double's significand.
const SIGNIFICAND_BITS: i32 = 53;
/// Bits of one chunk; the rest of its 64 holds carries.
const CHUNK_BITS: u32 = 32;
const CHUNK_MASK: i64 = (1 << CHUNK_BITS) - 1;
/// 2098 bits of doubles, 64 for their number, 128 for a narrow total that is carried over.
const CHUNKS: usize = 72;
/// Numbers that chunks take before their carries must go on.
const ADDS_MAX: u32 = 1 << 30;
/// Bits kept free below the first number's.
const ROOM_BELOW: i32 = 24;
/// Significant bits that a narrow total may have.
const NARROW_BITS: i32 = 126;

/// The sum so far: both parts together.
#[derive(Clone, Debug, Default)]
pub(super) struct BinarySum {
    /// `total * 2^exponent`, which takes what fits.
    total: i128,
    exponent: i32,
    /// What did not fit.
    wide: Option<Box<Wide>>,
}

#[derive(Clone, Debug)]
struct Wide {
    chunks: [i64; CHUNKS],
    /// Since carries went on.
    adds: u32,
}

/// A sum as sign, magnitude (little-endian chunks of 32 bits) and the exponent of its lowest bit.
pub(super) struct Magnitude {
    pub(super) negative: bool,
    pub(super) chunks: Vec<u32>,
    pub(super) exponent: i32,
}

impl Default for Wide {
    fn default() -> Self {
        Self { chunks: [0; CHUNKS], adds: 0 }
    }
}

/// A finite double as `significand * 2^exponent`.
fn split(n: f64) -> (i64, i32) {
    let bits = n.to_bits();
    let biased = (bits >> 52 & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i64;
    let (significand, exponent) =
        if biased == 0 { (fraction, EXPONENT_MIN) } else { (fraction | 1 << 52, biased - 1075) };
    (if n.is_sign_negative() { -significand } else { significand }, exponent)
}

impl BinarySum {
    /// Adds a finite double.
    #[inline]
    pub(super) fn add(&mut self, n: f64) {
        debug_assert!(n.is_finite());
        let (significand, exponent) = split(n);
        if significand == 0 {
            return;
        }
        if self.total != 0
            && (0..=NARROW_BITS - SIGNIFICAND_BITS).contains(&(exponent - self.exponent))
            && let Some(sum) = self.total.checked_add(i128::from(significand) << (exponent - self.exponent))
        {
            self.total = sum;
            return;
        }
        self.add_slow(i128::from(significand), exponent);
    }

    /// Adds an integer.
    pub(super) fn add_integer(&mut self, n: i128) {
        // In halves, so that either has room to be moved.
        const HALF_BITS: u32 = 64;
        for (part, exponent) in [((n as u64).into(), 0), (n >> HALF_BITS, HALF_BITS as i32)] {
            if part != 0 {
                self.add_slow(part, exponent);
            }
        }
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.total != 0 {
            self.add_slow(other.total, other.exponent);
        }
        if let Some(other) = &other.wide {
            let mut other = other.clone();
            other.carry();
            let wide = self.wide.get_or_insert_default();
            wide.carry();
            wide.chunks.iter_mut().zip(other.chunks).for_each(|(a, b)| *a += b);
            wide.carry();
        }
    }

    fn add_slow(&mut self, n: i128, exponent: i32) {
        if self.total == 0 {
            self.begin(n, exponent);
            return;
        }
        // What has the lower end decides where both end.
        let low = exponent.min(self.exponent);
        let (up, old_up) = (exponent - low, self.exponent - low);
        if bits(n) + up <= NARROW_BITS
            && bits(self.total) + old_up <= NARROW_BITS
            && let Some(sum) = (self.total << old_up).checked_add(n << up)
        {
            (self.total, self.exponent) = (sum, low);
            return;
        }
        self.wide.get_or_insert_default().add(self.total, self.exponent);
        self.begin(n, exponent);
    }

    fn begin(&mut self, n: i128, exponent: i32) {
        let room = (NARROW_BITS - bits(n)).clamp(0, ROOM_BELOW).min(exponent - EXPONENT_MIN).max(0);
        (self.total, self.exponent) = (n << room, exponent - room);
    }

    /// Heap bytes.
    pub(super) fn bytes(&self) -> usize {
        if self.wide.is_some() { size_of::<Wide>() } else { 0 }
    }

    /// The double nearest to the sum; 0.0 where it is zero.
    pub(super) fn nearest(&self) -> f64 {
        let Magnitude { negative, chunks, exponent } = self.magnitude();
        let top = chunks.iter().rposition(|c| *c != 0).unwrap_or(0);
        let from = top.saturating_sub(2);
        let (below, kept) = chunks.split_at(from);
        let kept = kept.iter().take(3).rev().fold(0_u128, |n, c| n << CHUNK_BITS | u128::from(*c));
        let sticky = below.iter().any(|c| *c != 0);
        let magnitude = rounded(kept, exponent + (from as i32) * CHUNK_BITS as i32, sticky);
        if negative { -magnitude } else { magnitude }
    }

    pub(super) fn magnitude(&self) -> Magnitude {
        let Some(wide) = &self.wide else {
            let n = self.total.unsigned_abs();
            let chunks = (0..4).map(|i| (n >> (i * CHUNK_BITS)) as u32).collect();
            return Magnitude { negative: self.total < 0, chunks, exponent: self.exponent };
        };
        let mut wide = wide.clone();
        wide.add(self.total, self.exponent);
        wide.carry();
        let negative = wide.chunks.last().is_some_and(|top| *top < 0);
        if negative {
            wide.chunks.iter_mut().for_each(|c| *c = -*c);
            wide.carry();
        }
        Magnitude { negative, chunks: wide.chunks.iter().map(|c| *c as u32).collect(), exponent: EXPONENT_MIN }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_u64(self.total as u64, out);
        put_u64((self.total >> 64) as u64, out);
        put_u64(i64::from(self.exponent) as u64, out);
        put_u64(u64::from(self.wide.is_some()), out);
        if let Some(wide) = &self.wide {
            let mut wide = wide.clone();
            wide.carry();
            wide.chunks.iter().for_each(|c| put_u64(*c as u64, out));
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, QueryError> {
        let (low, high) = (from.u64()?, from.u64()?);
        let total = i128::from(high as i64) << 64 | i128::from(low);
        let exponent = (from.u64()? as i64).clamp(EXPONENT_MIN.into(), 1024) as i32;
        let mut sum = Self { total, exponent, wide: None };
        if from.u64()? != 0 {
            for chunk in &mut sum.wide.get_or_insert_default().chunks {
                *chunk = from.u64()? as i64;
            }
        }
        Ok(sum)
    }
}

/// The bits of a number's magnitude.
fn bits(n: i128) -> i32 {
    (u128::BITS - n.unsigned_abs().leading_zeros()) as i32
}

impl Wide {
    fn add(&mut self, n: i128, exponent: i32) {
        if self.adds >= ADDS_MAX {
            self.carry();
        }
        self.adds += 1;
        let position = (exponent - EXPONENT_MIN).max(0) as u32;
        let (at, shift) = ((position / CHUNK_BITS) as usize, position % CHUNK_BITS);
        let (negative, mut rest) = (n < 0, n.unsigned_abs());
        let mut carried = 0_u64;
        for chunk in self.chunks.iter_mut().skip(at) {
            let part = (rest as u64 & CHUNK_MASK as u64) << shift | carried;
            carried = part >> CHUNK_BITS;
            let part = part as i64 & CHUNK_MASK;
            *chunk += if negative { -part } else { part };
            rest >>= CHUNK_BITS;
            if rest == 0 && carried == 0 {
                break;
            }
        }
    }

    /// Makes each chunk but the last one of 32 bits; the last has the sign.
    fn carry(&mut self) {
        let mut carry = 0;
        for chunk in self.chunks.iter_mut().take(CHUNKS - 1) {
            let n = *chunk + carry;
            carry = n >> CHUNK_BITS;
            *chunk = n & CHUNK_MASK;
        }
        if let Some(top) = self.chunks.last_mut() {
            *top += carry;
        }
        self.adds = 0;
    }
}

/// The double nearest to `n * 2^exponent` (and a little more where `sticky`), ties to even.
fn rounded(n: u128, exponent: i32, sticky: bool) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let bits = (u128::BITS - n.leading_zeros()) as i32;
    // Bits to drop: those beyond the precision, or below what a double has at all.
    let drop = (bits - SIGNIFICAND_BITS).max(EXPONENT_MIN - exponent);
    if drop <= 0 {
        return scaled(n as u64, exponent);
    }
    let drop_bits = drop as u32;
    let mut kept = n.checked_shr(drop_bits).unwrap_or(0) as u64;
    let rest = n - (u128::from(kept).checked_shl(drop_bits).unwrap_or(0));
    let half = 1_u128.checked_shl(drop_bits - 1).unwrap_or(u128::MAX);
    if rest > half || rest == half && (sticky || kept & 1 == 1) {
        kept += 1;
    }
    scaled(kept, exponent + drop)
}

/// `n * 2^exponent` where a double is just that, or infinity. `n` has 53 bits, or is the next power of two.
fn scaled(n: u64, exponent: i32) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let up = (n.leading_zeros() as i32 - (u64::BITS as i32 - SIGNIFICAND_BITS)).min(exponent - EXPONENT_MIN);
    let (n, exponent) = if up >= 0 { (n << up, exponent - up) } else { (n >> -up, exponent - up) };
    let biased = exponent + 1075;
    if biased >= 0x7ff {
        return f64::INFINITY;
    }
    // A subnormal's leading bit is not set, which the exponent says.
    let biased = if n >> 52 == 0 { 0 } else { biased as u64 };
    f64::from_bits(biased << 52 | n & ((1 << 52) - 1))
}
