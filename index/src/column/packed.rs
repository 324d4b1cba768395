//! A sequence of u64 in blocks of 4096: each block packed from its own frame of reference, or from a line through it, with
//! its least and greatest number as a zone map. What numbers, codes and rows are stored as.
//!
//! Takes and gives u64 by index; that they stand for something in the same order is its callers' business.

use super::bitpack::{self, CHUNK, CHUNK_WORDS};
use super::wide;
use crate::error::{Result, corrupt};
use crate::format::{read_u32, read_u64, slice, to_u32};

/// Numbers of a block: one zone of the zone map.
pub(crate) const BLOCK: usize = 4096;
/// Words of a bit for each number of a block.
pub(crate) const BLOCK_WORDS: usize = BLOCK / 64;
/// Numbers of one sequence at most.
pub(crate) const NUMBERS_MAX: usize = 1 << 28;
const HEAD_BYTES: usize = 8;
const ENTRY_BYTES: usize = 40;
/// The slope of a line is in 4096ths, so that it passes the ends of a block closely.
const SLOPE_SHIFT: u32 = 12;
const SLOPE_MAX: i128 = 1 << 50;

fn line(base: u64, slope: i64, index: usize) -> u64 {
    base.wrapping_add((slope.wrapping_mul(index as i64) >> SLOPE_SHIFT) as u64)
}

fn width_of(span: u64) -> u8 {
    (64 - span.leading_zeros()) as u8
}

/// Appends a sequence.
pub(crate) fn write(numbers: &[u64], out: &mut Vec<u8>) -> Result<()> {
    if numbers.len() > NUMBERS_MAX {
        return Err(crate::error::Error::TooLarge { what: "2^28 numbers in one column" });
    }
    let blocks = numbers.len().div_ceil(BLOCK);
    out.extend(to_u32(numbers.len())?.to_le_bytes());
    out.extend(to_u32(blocks)?.to_le_bytes());
    let directory = out.len();
    out.resize(directory + blocks * ENTRY_BYTES, 0);
    let data = out.len();
    let mut shifted = Vec::with_capacity(BLOCK);
    for (block, numbers) in numbers.chunks(BLOCK).enumerate() {
        let offset = to_u32(out.len() - data)?;
        let (base, slope) = frame(numbers);
        shifted.clear();
        shifted.extend(numbers.iter().enumerate().map(|(index, n)| n.wrapping_sub(line(base, slope, index))));
        let width = width_of(shifted.iter().copied().max().unwrap_or(0));
        for chunk in shifted.chunks(CHUNK) {
            bitpack::pack(chunk, width, out);
        }
        let entry = &mut out[directory + block * ENTRY_BYTES..][..ENTRY_BYTES];
        let (min, max) = (numbers.iter().min(), numbers.iter().max());
        entry[..8].copy_from_slice(&min.copied().unwrap_or(0).to_le_bytes());
        entry[8..16].copy_from_slice(&max.copied().unwrap_or(0).to_le_bytes());
        entry[16..24].copy_from_slice(&base.to_le_bytes());
        entry[24..32].copy_from_slice(&slope.to_le_bytes());
        entry[32..36].copy_from_slice(&offset.to_le_bytes());
        entry[36] = width;
    }
    Ok(())
}

/// From where a block is counted: its least number, or a line through its ends where that saves two bits or more.
fn frame(numbers: &[u64]) -> (u64, i64) {
    let (Some(&first), Some(&last)) = (numbers.first(), numbers.last()) else { return (0, 0) };
    let (min, max) = numbers.iter().fold((first, first), |(min, max), &n| (min.min(n), max.max(n)));
    let flat = width_of(max - min);
    let rise = i128::from(last) - i128::from(first);
    if numbers.len() < 2 || flat <= 2 || rise.abs() >= SLOPE_MAX >> SLOPE_SHIFT {
        return (min, 0);
    }
    let slope = ((rise << SLOPE_SHIFT) / (numbers.len() as i128 - 1)) as i64;
    let away = |(index, &n): (usize, &u64)| n.wrapping_sub(line(first, slope, index)) as i64;
    let lowest = numbers.iter().enumerate().map(away).min().unwrap_or(0);
    let base = first.wrapping_add(lowest as u64);
    let highest = numbers.iter().enumerate().map(|(index, n)| n.wrapping_sub(line(base, slope, index))).max();
    if width_of(highest.unwrap_or(0)) + 2 <= flat { (base, slope) } else { (min, 0) }
}

/// One entry of the directory.
struct Entry<'a> {
    min: u64,
    max: u64,
    base: u64,
    slope: i64,
    width: u8,
    count: usize,
    data: &'a [u8],
}

impl Entry<'_> {
    /// The bytes and the count of each chunk.
    fn chunks(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let full = bitpack::packed_bytes(CHUNK, self.width);
        (0..self.count.div_ceil(CHUNK)).map(move |chunk| {
            (self.data.get(chunk * full..).unwrap_or_default(), (self.count - chunk * CHUNK).min(CHUNK))
        })
    }
}

/// A sequence where it lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed<'a> {
    directory: &'a [u8],
    data: &'a [u8],
    len: usize,
}

impl<'a> Packed<'a> {
    /// Opens a sequence; afterwards no read of it can leave its bytes.
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let packed = Self::reopen(bytes)?;
        let Self { directory, data, .. } = packed;
        let (mut end, blocks) = (0, packed.blocks());
        for block in 0..blocks {
            let at = HEAD_BYTES + block * ENTRY_BYTES;
            let entry = packed.entry(block).ok_or(corrupt("a block of numbers", at))?;
            let offset = read_u32(bytes, at + 32)? as usize;
            if entry.min > entry.max || entry.width > 64 || offset != end || bytes[at + 37..at + 40] != [0; 3] {
                return Err(corrupt("a block of numbers", at));
            }
            let full = entry.count / CHUNK * bitpack::packed_bytes(CHUNK, entry.width);
            end += full + bitpack::packed_bytes(entry.count % CHUNK, entry.width);
        }
        if end != data.len() {
            return Err(corrupt("the end of the numbers", HEAD_BYTES + directory.len() + end));
        }
        Ok(packed)
    }

    /// Opens a sequence that was opened before: without a look at each block.
    pub(crate) fn reopen(bytes: &'a [u8]) -> Result<Self> {
        let len = read_u32(bytes, 0)? as usize;
        let blocks = read_u32(bytes, 4)? as usize;
        if len > NUMBERS_MAX || blocks != len.div_ceil(BLOCK) {
            return Err(corrupt("a block for every 4096 numbers", 0));
        }
        let directory = slice(bytes, HEAD_BYTES, blocks * ENTRY_BYTES)?;
        Ok(Self { directory, data: &bytes[HEAD_BYTES + directory.len()..], len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn blocks(&self) -> usize {
        self.directory.len() / ENTRY_BYTES
    }

    fn entry(&self, block: usize) -> Option<Entry<'a>> {
        let at = block * ENTRY_BYTES;
        let number = |field: usize| read_u64(self.directory, at + field).ok();
        let offset = read_u32(self.directory, at + 32).ok()? as usize;
        Some(Entry {
            min: number(0)?,
            max: number(8)?,
            base: number(16)?,
            slope: number(24)? as i64,
            width: *self.directory.get(at + 36)?,
            count: self.len.checked_sub(block * BLOCK)?.min(BLOCK),
            data: self.data.get(offset..)?,
        })
    }

    /// Least and greatest number of a block.
    pub(crate) fn zone(&self, block: usize) -> Option<(u64, u64)> {
        self.entry(block).map(|entry| (entry.min, entry.max))
    }

    /// Least and greatest number of all.
    pub(crate) fn min_max(&self) -> Option<(u64, u64)> {
        (0..self.blocks()).filter_map(|block| self.zone(block)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }

    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        if index >= self.len {
            return None;
        }
        let entry = self.entry(index / BLOCK)?;
        let within = index % BLOCK;
        let (bytes, count) = entry.chunks().nth(within / CHUNK)?;
        let number = bitpack::get(bytes, entry.width, count, within % CHUNK);
        Some(number.wrapping_add(line(entry.base, entry.slope, within)))
    }

    /// The numbers of a block, in place of what `out` held.
    pub(crate) fn block(&self, block: usize, out: &mut Vec<u64>) {
        out.clear();
        let Some(entry) = self.entry(block) else { return };
        let mut numbers = [0; CHUNK];
        for (bytes, count) in entry.chunks() {
            bitpack::unpack(bytes, entry.width, count, &mut numbers);
            let first = out.len();
            out.extend(
                numbers
                    .iter()
                    .take(count)
                    .enumerate()
                    .map(|(index, number)| number.wrapping_add(line(entry.base, entry.slope, first + index))),
            );
        }
    }

    /// All numbers, block by block.
    pub(crate) fn for_each(&self, mut give: impl FnMut(u64)) {
        let mut numbers = Vec::with_capacity(BLOCK.min(self.len));
        for block in 0..self.blocks() {
            self.block(block, &mut numbers);
            numbers.iter().for_each(|&number| give(number));
        }
    }

    /// Sets in `words` the bit of each number of a block that is within `low..=high`.
    pub(crate) fn between(&self, block: usize, low: u64, high: u64, words: &mut [u64; BLOCK_WORDS]) {
        let Some(entry) = self.entry(block) else { return };
        if low > high || high < entry.min || low > entry.max {
            return;
        }
        if low <= entry.min && entry.max <= high {
            crate::rowset::set_run(words, 0..entry.count as u32);
            return;
        }
        let (low, high) = (low.max(entry.min), high.min(entry.max));
        if entry.slope == 0 {
            let (low, high) = (low.wrapping_sub(entry.base), high.wrapping_sub(entry.base));
            for ((bytes, count), words) in entry.chunks().zip(words.as_chunks_mut::<CHUNK_WORDS>().0) {
                wide::between(bytes, entry.width, count, low, high, words);
            }
            return;
        }
        self.matching(block, |number| number.wrapping_sub(low) <= high - low, words);
    }

    /// How many numbers are within `low..=high`: of blocks that are inside or outside as a whole the zone alone is read.
    pub(crate) fn count_between(&self, low: u64, high: u64) -> u64 {
        let of_block = |block: usize| {
            let Some(entry) = self.entry(block) else { return 0 };
            if low > high || high < entry.min || low > entry.max {
                return 0;
            }
            if low <= entry.min && entry.max <= high {
                return entry.count as u64;
            }
            if entry.slope != 0 {
                let mut words = [0; BLOCK_WORDS];
                self.between(block, low, high, &mut words);
                return words.iter().map(|word| u64::from(word.count_ones())).sum();
            }
            let low = low.max(entry.min).wrapping_sub(entry.base);
            let high = high.min(entry.max).wrapping_sub(entry.base);
            entry.chunks().map(|(bytes, count)| wide::count_between(bytes, entry.width, count, low, high)).sum()
        };
        (0..self.blocks()).map(of_block).sum()
    }

    /// Sets in `words` the bit of each number of a block that `test` accepts.
    pub(crate) fn matching(&self, block: usize, test: impl Fn(u64) -> bool, words: &mut [u64; BLOCK_WORDS]) {
        let mut numbers = Vec::with_capacity(BLOCK);
        self.block(block, &mut numbers);
        for (numbers, word) in numbers.chunks(64).zip(words) {
            for (bit, &number) in numbers.iter().enumerate() {
                *word |= u64::from(test(number)) << bit;
            }
        }
    }
}
