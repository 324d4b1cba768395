//! Numbers of a few bits each, 1024 to a chunk, laid out so that plain loops over them become vector code.
//!
//! A full chunk of width w is w rows of 128 bytes. For lanes of T bits (16, 32 or 64, the least that holds w) a row is 1024/T
//! lanes; number i lives in lane i % (1024/T), in the i / (1024/T)-th run of w bits of that lane, lowest first; the lane's
//! words are one row apart. So neighbours lie in neighbouring lanes and share every shift (the idea of FastLanes, Afroozeh
//! and Boncz 2023). A last chunk that is not full is packed lowest bit first, one number after the other.
//! It knows nothing of what the numbers mean. Bytes that are missing read as zeros.

/// Numbers of a full chunk.
pub(crate) const CHUNK: usize = 1024;
/// Bytes of a row of lanes.
const ROW_BYTES: usize = 128;
/// Words of a bit for each number of a chunk.
pub(crate) const CHUNK_WORDS: usize = CHUNK / 64;

/// Bytes that `count` (at most `CHUNK`) numbers take.
pub(crate) fn packed_bytes(count: usize, width: u8) -> usize {
    (count * usize::from(width)).div_ceil(8)
}

#[inline(always)]
fn row_at(bytes: &[u8], row: usize) -> &[u8; ROW_BYTES] {
    const ZEROS: [u8; ROW_BYTES] = [0; ROW_BYTES];
    bytes.get(row * ROW_BYTES..).and_then(|rest| rest.first_chunk()).unwrap_or(&ZEROS)
}

/// Eight flags of 0 or 1, a byte each, to eight bits.
#[inline(always)]
fn gather(flags: &[u8]) -> u64 {
    let eight = flags.first_chunk::<8>().map_or(0, |eight| u64::from_le_bytes(*eight));
    eight.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

macro_rules! lanes {
    ($module:ident, $word:ty) => {
        mod $module {
            use super::{CHUNK, CHUNK_WORDS, ROW_BYTES, gather, row_at};

            const BITS: usize = <$word>::BITS as usize;
            const LANES: usize = CHUNK / BITS;
            const SIZE: usize = BITS / 8;

            #[inline(always)]
            fn load(bytes: &[u8], row: usize) -> [$word; LANES] {
                let mut out = [0; LANES];
                for (lane, word) in out.iter_mut().zip(row_at(bytes, row).chunks_exact(SIZE)) {
                    *lane = <$word>::from_le_bytes(word.try_into().expect("a chunk has its size"));
                }
                out
            }

            #[inline(always)]
            fn unpack_row(bytes: &[u8], width: usize, row: usize) -> [$word; LANES] {
                let (word, shift) = (row * width / BITS, row * width % BITS);
                let mask = <$word>::MAX >> (BITS - width);
                let mut out = load(bytes, word);
                if shift + width > BITS {
                    let next = load(bytes, word + 1);
                    for (lane, high) in out.iter_mut().zip(next) {
                        *lane = ((*lane >> shift) | (high << (BITS - shift))) & mask;
                    }
                } else {
                    for lane in &mut out {
                        *lane = (*lane >> shift) & mask;
                    }
                }
                out
            }

            pub(super) fn unpack(bytes: &[u8], width: usize, out: &mut [u64; CHUNK]) {
                for (row, to) in out.chunks_exact_mut(LANES).enumerate() {
                    for (to, number) in to.iter_mut().zip(unpack_row(bytes, width, row)) {
                        *to = u64::from(number);
                    }
                }
            }

            pub(super) fn pack(numbers: &[u64; CHUNK], width: usize, out: &mut Vec<u8>) {
                let mut words = [[0 as $word; LANES]; BITS];
                for (row, from) in numbers.chunks_exact(LANES).enumerate() {
                    let (word, shift) = (row * width / BITS, row * width % BITS);
                    for (lane, &number) in from.iter().enumerate() {
                        let number = number as $word;
                        words[word][lane] |= number << shift;
                        if shift + width > BITS {
                            words[word + 1][lane] |= number >> (BITS - shift);
                        }
                    }
                }
                out.reserve(width * ROW_BYTES);
                for word in words.iter().take(width).flatten() {
                    out.extend(word.to_le_bytes());
                }
            }

            pub(super) fn get(bytes: &[u8], width: usize, index: usize) -> u64 {
                let (row, lane) = (index / LANES, index % LANES);
                let (word, shift) = (row * width / BITS, row * width % BITS);
                let at = |row: usize| {
                    let bytes = row_at(bytes, row).get(lane * SIZE..).and_then(|rest| rest.first_chunk());
                    bytes.map_or(0, |bytes| <$word>::from_le_bytes(*bytes))
                };
                let mut number = at(word) >> shift;
                if shift + width > BITS {
                    number |= at(word + 1) << (BITS - shift);
                }
                u64::from(number & (<$word>::MAX >> (BITS - width)))
            }

            /// Sets the bit of each number within `low..=low + span`.
            #[inline(always)]
            pub(super) fn between(bytes: &[u8], width: usize, low: u64, span: u64, out: &mut [u64; CHUNK_WORDS]) {
                let (low, span) = (low as $word, span.min(<$word>::MAX as u64) as $word);
                for row in 0..BITS {
                    let mut flags = [0_u8; LANES];
                    for (flag, number) in flags.iter_mut().zip(unpack_row(bytes, width, row)) {
                        *flag = u8::from(number.wrapping_sub(low) <= span);
                    }
                    let mut bits = 0_u64;
                    for (index, eight) in flags.chunks_exact(8).enumerate() {
                        bits |= gather(eight) << (index * 8);
                    }
                    let first = row * LANES;
                    out[first / 64] |= bits << (first % 64);
                }
            }

            /// How many numbers are within `low..=low + span`: no flag leaves its lane until the end.
            #[inline(always)]
            pub(super) fn count_between(bytes: &[u8], width: usize, low: u64, span: u64) -> u64 {
                let (low, span) = (low as $word, span.min(<$word>::MAX as u64) as $word);
                let mut counts = [0 as $word; LANES];
                for row in 0..BITS {
                    for (count, number) in counts.iter_mut().zip(unpack_row(bytes, width, row)) {
                        *count += <$word>::from(number.wrapping_sub(low) <= span);
                    }
                }
                counts.iter().map(|&count| u64::from(count)).sum()
            }
        }
    };
}

lanes!(lanes16, u16);
lanes!(lanes32, u32);
lanes!(lanes64, u64);

/// Appends the numbers (at most `CHUNK`), each below 2^width.
pub(crate) fn pack(numbers: &[u64], width: u8, out: &mut Vec<u8>) {
    let Some(full) = numbers.first_chunk::<CHUNK>() else {
        let (mut bits, mut held) = (0_u128, 0_u32);
        for &number in numbers {
            bits |= u128::from(number) << held;
            held += u32::from(width);
            while held >= 8 {
                out.push(bits as u8);
                bits >>= 8;
                held -= 8;
            }
        }
        if held > 0 {
            out.push(bits as u8);
        }
        return;
    };
    match usize::from(width) {
        0 => {}
        width @ 1..=16 => lanes16::pack(full, width, out),
        width @ 17..=32 => lanes32::pack(full, width, out),
        width => lanes64::pack(full, width, out),
    }
}

/// Unpacks `count` numbers; `out` beyond them is unspecified.
pub(crate) fn unpack(bytes: &[u8], width: u8, count: usize, out: &mut [u64; CHUNK]) {
    match usize::from(width) {
        0 => out.fill(0),
        _ if count < CHUNK => {
            for (index, to) in out.iter_mut().take(count).enumerate() {
                *to = get_last(bytes, width, index);
            }
        }
        width @ 1..=16 => lanes16::unpack(bytes, width, out),
        width @ 17..=32 => lanes32::unpack(bytes, width, out),
        width => lanes64::unpack(bytes, width.min(64), out),
    }
}

fn get_last(bytes: &[u8], width: u8, index: usize) -> u64 {
    let bit = index * usize::from(width);
    let mut sixteen = [0; 16];
    let from = bytes.get(bit / 8..).unwrap_or_default();
    let from = &from[..from.len().min(16)];
    sixteen[..from.len()].copy_from_slice(from);
    let number = (u128::from_le_bytes(sixteen) >> (bit % 8)) as u64;
    number & u64::MAX.checked_shr(64 - u32::from(width)).unwrap_or(0)
}

/// Number `index` of `count`.
pub(crate) fn get(bytes: &[u8], width: u8, count: usize, index: usize) -> u64 {
    match usize::from(width) {
        0 => 0,
        _ if count < CHUNK => get_last(bytes, width, index),
        width @ 1..=16 => lanes16::get(bytes, width, index),
        width @ 17..=32 => lanes32::get(bytes, width, index),
        width => lanes64::get(bytes, width.min(64), index),
    }
}

/// Sets the bit of each of `count` numbers within `low..=high`.
#[inline(always)]
pub(crate) fn between(bytes: &[u8], width: u8, count: usize, low: u64, high: u64, out: &mut [u64; CHUNK_WORDS]) {
    let span = high.wrapping_sub(low);
    match usize::from(width) {
        width @ 1..=16 if count == CHUNK => lanes16::between(bytes, width, low, span, out),
        width @ 17..=32 if count == CHUNK => lanes32::between(bytes, width, low, span, out),
        width @ 33..=64 if count == CHUNK => lanes64::between(bytes, width, low, span, out),
        _ => {
            for index in 0..count.min(CHUNK) {
                let within = get(bytes, width, count, index).wrapping_sub(low) <= span;
                out[index / 64] |= u64::from(within) << (index % 64);
            }
        }
    }
}

/// How many of `count` numbers are within `low..=high`.
#[inline(always)]
pub(crate) fn count_between(bytes: &[u8], width: u8, count: usize, low: u64, high: u64) -> u64 {
    let span = high.wrapping_sub(low);
    match usize::from(width) {
        width @ 1..=16 if count == CHUNK => lanes16::count_between(bytes, width, low, span),
        width @ 17..=32 if count == CHUNK => lanes32::count_between(bytes, width, low, span),
        width @ 33..=64 if count == CHUNK => lanes64::count_between(bytes, width, low, span),
        _ => {
            let within = |&index: &usize| get(bytes, width, count, index).wrapping_sub(low) <= span;
            (0..count.min(CHUNK)).filter(within).count() as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back_and_is_scanned() {
        let mut state = 1_u64;
        for width in 0..=64_u8 {
            for count in [CHUNK, 1023, 65, 1] {
                let mask = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                let mut next = || {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (state ^ (state >> 31)) & mask
                };
                let numbers: Vec<u64> = (0..count).map(|_| next()).collect();
                let mut bytes = Vec::new();
                pack(&numbers, width, &mut bytes);
                assert_eq!(bytes.len(), packed_bytes(count, width), "{width} {count}");
                let mut back = [0; CHUNK];
                unpack(&bytes, width, count, &mut back);
                assert_eq!(&back[..count], numbers, "{width} {count}");
                let (a, b) = (numbers[0], numbers[count / 2]);
                for (low, high) in [(a, a), (a.min(b), a.max(b)), (0, mask)] {
                    let mut bits = [0; CHUNK_WORDS];
                    between(&bytes, width, count, low, high, &mut bits);
                    let set: u64 = bits.iter().map(|bits| u64::from(bits.count_ones())).sum();
                    assert_eq!(count_between(&bytes, width, count, low, high), set, "{width} {count}");
                    for (index, &number) in numbers.iter().enumerate() {
                        assert_eq!(get(&bytes, width, count, index), number);
                        let within = bits[index / 64] >> (index % 64) & 1 == 1;
                        assert_eq!(within, (low..=high).contains(&number), "{width} {count} {index}");
                    }
                }
            }
        }
    }
}
