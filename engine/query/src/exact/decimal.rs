//! An exact sum of decimals, rounded once when it is asked for.
//!
//! Takes finite decimals and sums of doubles in any order, gives the decimal128 nearest to the sum, with as many places as
//! the number that has most, while 34 digits hold them. Knows no infinities and no NaN.

use super::binary::Magnitude;
use super::codec::{Reader, put_u64};
use crate::QueryError;
use crate::decimal::{DIGITS, from_parts};
use quarrydb_jsonb::Decimal128;

/// The exponent of the lowest digit that a decimal128 has.
const EXPONENT_MIN: i32 = -6176;
/// Digits of one chunk. 128 bits hold the sum of 10^20 of them.
const CHUNK_DIGITS: u32 = 18;
const CHUNK: i128 = 10_i128.pow(CHUNK_DIGITS);
/// Chunks of all exponents, of 40 digits above the greatest, and of their carries.
const CHUNKS_MAX: usize = (6176 + 6144 + 60) / CHUNK_DIGITS as usize + 8;

/// The sum so far.
#[derive(Clone, Debug, Default)]
pub(super) struct DecimalSum {
    /// By position, in order: `value * 10^(18 * position + EXPONENT_MIN)`. Values carry nothing until the end.
    chunks: Vec<(u16, i128)>,
    /// The least exponent that came; 0 at the start, as the sum starts with 0.
    exponent: i32,
}

impl DecimalSum {
    /// Adds `coefficient * 10^exponent`.
    pub(super) fn add(&mut self, negative: bool, coefficient: u128, exponent: i32) {
        self.exponent = self.exponent.min(exponent);
        let place = (exponent - EXPONENT_MIN).max(0) as u32;
        let (mut at, scale) = ((place / CHUNK_DIGITS) as u16, 10_i128.pow(place % CHUNK_DIGITS));
        let mut rest = coefficient;
        while rest != 0 {
            let scaled = (rest % CHUNK as u128) as i128 * scale;
            let scaled = if negative { -scaled } else { scaled };
            self.add_chunk(at, scaled % CHUNK);
            self.add_chunk(at + 1, scaled / CHUNK);
            rest /= CHUNK as u128;
            at += 1;
        }
    }

    fn add_chunk(&mut self, at: u16, value: i128) {
        if value == 0 {
            return;
        }
        match self.chunks.binary_search_by_key(&at, |(at, _)| *at) {
            Ok(found) => {
                if let Some((_, chunk)) = self.chunks.get_mut(found) {
                    *chunk += value;
                }
            }
            Err(place) => self.chunks.insert(place, (at, value)),
        }
    }

    /// Adds a sum of doubles exactly: a binary fraction has an end in decimal.
    pub(super) fn add_binary(&mut self, sum: &Magnitude) {
        let mut chunks = sum.chunks.clone();
        let mut exponent = sum.exponent;
        while chunks.last() == Some(&0) {
            chunks.pop();
        }
        if chunks.is_empty() {
            return;
        }
        // n * 2^-k = n * 5^k * 10^-k, and without the twos in n, k is the number of places.
        while exponent < 0 && chunks.first().is_some_and(|c| c & 1 == 0) {
            let down = chunks.first().map_or(0, |c| c.trailing_zeros()).clamp(1, 31).min(exponent.unsigned_abs());
            shift_down(&mut chunks, down);
            exponent += down as i32;
        }
        let places = exponent.min(0).unsigned_abs();
        for _ in 0..places {
            multiply(&mut chunks, 5);
        }
        for _ in 0..exponent.max(0) {
            multiply(&mut chunks, 2);
        }
        const STEP: u32 = 1_000_000_000;
        let mut at = -(places as i32);
        while !chunks.is_empty() {
            let digits = divide(&mut chunks, STEP);
            self.add(sum.negative, u128::from(digits), at);
            at += 9;
        }
        self.exponent = self.exponent.min(-(places as i32));
    }

    /// Adds another sum.
    pub(super) fn merge(&mut self, other: &Self) {
        self.exponent = self.exponent.min(other.exponent);
        for (at, value) in &other.chunks {
            self.add_chunk(*at, *value);
        }
    }

    /// Heap bytes.
    pub(super) fn bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<(u16, i128)>()
    }

    /// The decimal nearest to the sum, ties to even.
    pub(super) fn nearest(&self) -> Decimal128 {
        let (negative, digits, lowest) = self.digits();
        // How many digits stand above the wanted last place, and how many of those there is no room for.
        let wanted = digits.len() as i32 + lowest - self.exponent;
        let last = self.exponent + (wanted - DIGITS as i32).max(0);
        let kept = usize::try_from(digits.len() as i32 + lowest - last).unwrap_or(0);
        let mut coefficient = 0_u128;
        for i in 0..kept.min(DIGITS) {
            coefficient = coefficient * 10 + u128::from(digits.get(i).copied().unwrap_or(0));
        }
        let next = digits.get(kept).copied().unwrap_or(0);
        let more = digits.iter().skip(kept + 1).any(|d| *d != 0);
        if next > 5 || next == 5 && (more || coefficient & 1 == 1) {
            coefficient += 1;
        }
        // 10^34, where all nines were rounded up, has a digit too many, and that is a zero.
        if coefficient == 10_u128.pow(DIGITS as u32) {
            return from_parts(negative, coefficient / 10, last + 1);
        }
        from_parts(negative && coefficient != 0, coefficient, last)
    }

    /// The sum as its sign, its digits from the highest, and the exponent of the last of them.
    fn digits(&self) -> (bool, Vec<u8>, i32) {
        let first = self.chunks.first().map_or(0, |(at, _)| *at);
        let end = self.chunks.last().map_or(0, |(at, _)| *at - first + 1);
        // A chunk's carry has 20 digits: two chunks more hold the last one's.
        let mut dense = vec![0_i128; usize::from(end) + 3];
        for (at, value) in &self.chunks {
            if let Some(chunk) = dense.get_mut(usize::from(at - first)) {
                *chunk = *value;
            }
        }
        let negative = carry(&mut dense);
        if negative {
            dense.iter_mut().for_each(|c| *c = -*c);
            carry(&mut dense);
        }
        let mut digits = Vec::with_capacity(dense.len() * CHUNK_DIGITS as usize);
        for chunk in dense.iter().rev() {
            let mut scale = CHUNK / 10;
            while scale > 0 {
                digits.push((chunk / scale % 10) as u8);
                scale /= 10;
            }
        }
        let leading = digits.iter().position(|d| *d != 0).unwrap_or(digits.len());
        digits.drain(..leading);
        (negative, digits, i32::from(first) * CHUNK_DIGITS as i32 + EXPONENT_MIN)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_u64(i64::from(self.exponent) as u64, out);
        put_u64(self.chunks.len() as u64, out);
        for (at, value) in &self.chunks {
            put_u64(u64::from(*at), out);
            put_u64(*value as u64, out);
            put_u64((*value >> 64) as u64, out);
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, QueryError> {
        let exponent = (from.u64()? as i64).clamp(EXPONENT_MIN.into(), 0) as i32;
        let mut sum = Self { chunks: Vec::new(), exponent };
        for _ in 0..from.u64()?.min(CHUNKS_MAX as u64) {
            let at = (from.u64()?).min(CHUNKS_MAX as u64) as u16;
            let (low, high) = (from.u64()?, from.u64()?);
            sum.add_chunk(at, i128::from(high as i64) << 64 | i128::from(low));
        }
        Ok(sum)
    }
}

/// Makes all chunks but the last one of 0 to 10^18; says whether the whole is negative.
fn carry(chunks: &mut [i128]) -> bool {
    let mut carry = 0;
    let last = chunks.len().saturating_sub(1);
    for (i, chunk) in chunks.iter_mut().enumerate() {
        let n = *chunk + carry;
        carry = if i == last { 0 } else { n.div_euclid(CHUNK) };
        *chunk = if i == last { n } else { n.rem_euclid(CHUNK) };
    }
    chunks.last().is_some_and(|top| *top < 0)
}

fn shift_down(chunks: &mut Vec<u32>, by: u32) {
    let mut carried = 0_u64;
    for chunk in chunks.iter_mut().rev() {
        let wide = carried << 32 | u64::from(*chunk);
        carried = wide & ((1 << by) - 1);
        *chunk = (wide >> by) as u32;
    }
    while chunks.last() == Some(&0) {
        chunks.pop();
    }
}

fn multiply(chunks: &mut Vec<u32>, by: u32) {
    let mut carry = 0_u64;
    for chunk in chunks.iter_mut() {
        let n = u64::from(*chunk) * u64::from(by) + carry;
        *chunk = n as u32;
        carry = n >> 32;
    }
    if carry != 0 {
        chunks.push(carry as u32);
    }
}

/// Divides, gives what is left.
fn divide(chunks: &mut Vec<u32>, by: u32) -> u32 {
    let mut rest = 0_u64;
    for chunk in chunks.iter_mut().rev() {
        let n = rest << 32 | u64::from(*chunk);
        *chunk = (n / u64::from(by)) as u32;
        rest = n % u64::from(by);
    }
    while chunks.last() == Some(&0) {
        chunks.pop();
    }
    rest as u32
}
