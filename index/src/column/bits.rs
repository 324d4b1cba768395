//! A bitmap with rank and select, where it lies: words, and the count of ones before every 512 bits.
//!
//! A directory that lies gives wrong ranks, never a read outside; `check` finds it out.

use crate::error::{Result, corrupt};
use crate::format::{read_u32, slice, to_u32};

const HEAD_BYTES: usize = 8;
const RANK_BITS: usize = 512;

/// Appends a bitmap of `len` bits; the words have no bits beyond.
pub(crate) fn write(words: &[u64], len: usize, out: &mut Vec<u8>) -> Result<()> {
    let ones: usize = words.iter().map(|word| word.count_ones() as usize).sum();
    out.extend(to_u32(len)?.to_le_bytes());
    out.extend(to_u32(ones)?.to_le_bytes());
    for word in words.iter().take(len.div_ceil(64)) {
        out.extend(word.to_le_bytes());
    }
    let mut before = 0_u32;
    for words in words[..len.div_ceil(64)].chunks(RANK_BITS / 64) {
        out.extend(before.to_le_bytes());
        before += words.iter().map(|word| word.count_ones()).sum::<u32>();
    }
    Ok(())
}

/// A bitmap where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits<'a> {
    words: &'a [u8],
    ranks: &'a [u8],
    len: usize,
    ones: usize,
}

impl<'a> Bits<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let (len, ones) = (read_u32(bytes, 0)? as usize, read_u32(bytes, 4)? as usize);
        let words = slice(bytes, HEAD_BYTES, len.div_ceil(64) * 8)?;
        let ranks = slice(bytes, HEAD_BYTES + words.len(), len.div_ceil(RANK_BITS) * 4)?;
        if ones > len || bytes.len() != HEAD_BYTES + words.len() + ranks.len() {
            return Err(corrupt("a bitmap of its length", 0));
        }
        let bits = Self { words, ranks, len, ones };
        if !len.is_multiple_of(64) && bits.word(len / 64) >> (len % 64) != 0 {
            return Err(corrupt("no bits beyond the last", HEAD_BYTES));
        }
        Ok(bits)
    }

    /// Whether the counts are those of the bits. Costs a pass over them.
    pub(crate) fn check(&self) -> Result<()> {
        let mut before = 0;
        for word in 0..self.words.len() / 8 {
            if word % (RANK_BITS / 64) == 0 && self.rank_entry(word * 64 / RANK_BITS) != before {
                return Err(corrupt("the count of the bits before", word * 8));
            }
            before += self.word(word).count_ones() as usize;
        }
        if before == self.ones { Ok(()) } else { Err(corrupt("the count of all bits", 4)) }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn ones(&self) -> usize {
        self.ones
    }

    pub(crate) fn word(&self, word: usize) -> u64 {
        self.words.get(word * 8..).and_then(|rest| rest.first_chunk()).map_or(0, |eight| u64::from_le_bytes(*eight))
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = u64> + '_ {
        self.words.chunks_exact(8).map(|eight| eight.first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight)))
    }

    pub(crate) fn get(&self, index: usize) -> bool {
        self.word(index / 64) >> (index % 64) & 1 == 1
    }

    fn rank_entry(&self, entry: usize) -> usize {
        read_u32(self.ranks, entry * 4).map_or(self.ones, |rank| rank as usize)
    }

    /// Ones below `index`.
    pub(crate) fn rank(&self, index: usize) -> usize {
        if index >= self.len {
            return self.ones;
        }
        let from = index / RANK_BITS * (RANK_BITS / 64);
        let whole: u32 = (from..index / 64).map(|word| self.word(word).count_ones()).sum();
        let rest = self.word(index / 64) & ((1 << (index % 64)) - 1);
        self.rank_entry(index / RANK_BITS) + (whole + rest.count_ones()) as usize
    }

    /// Where the one is that has `nth` ones below it.
    pub(crate) fn select(&self, nth: usize) -> Option<usize> {
        if nth >= self.ones {
            return None;
        }
        let (mut low, mut high) = (0, self.ranks.len() / 4);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.rank_entry(middle) <= nth { low = middle } else { high = middle }
        }
        let mut left = nth.checked_sub(self.rank_entry(low))?;
        for word in low * (RANK_BITS / 64)..self.words.len() / 8 {
            let bits = self.word(word);
            let ones = bits.count_ones() as usize;
            if left < ones {
                return Some(word * 64 + select_in_word(bits, left));
            }
            left -= ones;
        }
        None
    }
}

/// Where the one of `bits` is that has `nth` ones below it; there are more than `nth`.
pub(crate) fn select_in_word(mut bits: u64, nth: usize) -> usize {
    for _ in 0..nth {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros() as usize
}
