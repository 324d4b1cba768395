//! Byte strings of one column: a sorted dictionary with a packed code for each value, or, where nearly all differ, the
//! values themselves in compressed blocks. It gives and takes bytes; that they are text is its callers' business.

use super::packed::{self, NUMBERS_MAX, Packed};
use crate::error::{Error, Result, corrupt};
use crate::format::{piece, put_varint, read_u32, slice, take, take_varint, to_u32};
use crate::sorted::block::{Keys, KeysWriter};

/// Bytes of a block of raw strings after which another begins.
const RAW_BLOCK_BYTES: usize = 16 << 10;
/// Bytes of one value at most, and so (with the block's others) of a block unpacked.
pub(crate) const VALUE_BYTES_MAX: usize = 1 << 24;
/// lz4 gives at most 255 bytes for one.
const LZ4_RATIO_MAX: usize = 255;
const RAW_HEAD_BYTES: usize = 8;
const RAW_ENTRY_BYTES: usize = 16;
const DICTIONARY_HEAD_BYTES: usize = 24;

/// Appends a dictionary: distinct keys ascending, the code of each value, the rows of each code.
pub(crate) fn write_dictionary<'k>(
    keys: impl Iterator<Item = &'k [u8]>,
    codes: &[u64],
    rows: &[u64],
    out: &mut Vec<u8>,
) -> Result<()> {
    let head = out.len();
    out.resize(head + DICTIONARY_HEAD_BYTES, 0);
    let mut writer = KeysWriter::default();
    for key in keys {
        writer.push(key)?;
    }
    let place = |index: usize, from: usize, out: &mut Vec<u8>| -> Result<()> {
        let (offset, length) = (to_u32(from - head)?, to_u32(out.len() - from)?);
        out[head + index * 8..][..4].copy_from_slice(&offset.to_le_bytes());
        out[head + index * 8 + 4..][..4].copy_from_slice(&length.to_le_bytes());
        Ok(())
    };
    let from = out.len();
    writer.finish(out)?;
    place(0, from, out)?;
    let from = out.len();
    packed::write(codes, out)?;
    place(1, from, out)?;
    let from = out.len();
    packed::write(rows, out)?;
    place(2, from, out)
}

/// A dictionary where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Dictionary<'a> {
    pub(crate) keys: Keys<'a>,
    pub(crate) codes: Packed<'a>,
    counts: Packed<'a>,
}

impl<'a> Dictionary<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let keys = Keys::open(piece(bytes, 0)?)?;
        let codes = Packed::open(piece(bytes, 8)?)?;
        let counts = Packed::open(piece(bytes, 16)?)?;
        Self::of(keys, codes, counts)
    }

    /// Opens one that was opened before.
    pub(crate) fn reopen(bytes: &'a [u8]) -> Result<Self> {
        let keys = Keys::open(piece(bytes, 0)?)?;
        Ok(Self { keys, codes: Packed::reopen(piece(bytes, 8)?)?, counts: Packed::reopen(piece(bytes, 16)?)? })
    }

    fn of(keys: Keys<'a>, codes: Packed<'a>, counts: Packed<'a>) -> Result<Self> {
        if counts.len() != keys.len() || codes.min_max().is_some_and(|(_, max)| max >= keys.len() as u64) {
            return Err(corrupt("a count for each key, a key for each code", 0));
        }
        Ok(Self { keys, codes, counts })
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.keys.check(true)?;
        let mut seen = vec![false; self.keys.len()];
        let mut beyond = false;
        self.codes.for_each(|code| match seen.get_mut(code as usize) {
            Some(seen) => *seen = true,
            None => beyond = true,
        });
        if beyond || seen.contains(&false) { Err(corrupt("codes of keys, each of some value", 0)) } else { Ok(()) }
    }

    /// Distinct values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a code, in place of what `out` held.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not what was written, or there is no such code.
    pub fn value(&self, code: usize, out: &mut Vec<u8>) -> Result<()> {
        self.keys.get(code, out)
    }

    /// The code of a value; `None` if no row has it.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn code(&self, value: &[u8]) -> Result<Option<usize>> {
        self.keys.find(value)
    }

    /// How many rows have the value of a code: no scan.
    #[must_use]
    pub fn rows(&self, code: usize) -> Option<u32> {
        self.counts.get(code).map(|rows| rows as u32)
    }

    /// The code of a value by its number (`Presence`).
    #[must_use]
    pub fn code_at(&self, value: usize) -> Option<usize> {
        self.codes.get(value).map(|code| code as usize)
    }

    /// Gives every distinct value in order, with its code and its rows.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn for_each(&self, mut give: impl FnMut(usize, &[u8], u32)) -> Result<()> {
        let mut cursor = self.keys.cursor(0)?;
        while let Some((code, key)) = cursor.next()? {
            give(code, key, self.rows(code).unwrap_or(0));
        }
        Ok(())
    }
}

/// Appends values as they are, in blocks.
pub(crate) fn write_raw<'v>(values: impl Iterator<Item = &'v [u8]>, out: &mut Vec<u8>) -> Result<()> {
    let (mut directory, mut data, mut count, mut blocks) = (Vec::new(), Vec::new(), 0_usize, 0_usize);
    let (mut lengths, mut bytes, mut first) = (Vec::new(), Vec::new(), 0_usize);
    let mut close = |first: usize, lengths: &mut Vec<u8>, bytes: &mut Vec<u8>| -> Result<()> {
        lengths.append(bytes);
        let packed = lz4_flex::block::compress(lengths);
        let smaller = packed.len() < lengths.len();
        let stored: &[u8] = if smaller { &packed } else { lengths };
        for number in [first, data.len(), stored.len(), lengths.len()] {
            directory.extend(to_u32(number)?.to_le_bytes());
        }
        data.extend(stored);
        lengths.clear();
        blocks += 1;
        Ok(())
    };
    for value in values {
        if value.len() > VALUE_BYTES_MAX {
            return Err(Error::TooLarge { what: "16 MiB in one value" });
        }
        put_varint(to_u32(value.len())?, &mut lengths);
        bytes.extend(value);
        count += 1;
        if bytes.len() >= RAW_BLOCK_BYTES {
            close(first, &mut lengths, &mut bytes)?;
            first = count;
        }
    }
    if first < count {
        close(first, &mut lengths, &mut bytes)?;
    }
    out.extend(to_u32(count)?.to_le_bytes());
    out.extend(to_u32(blocks)?.to_le_bytes());
    out.append(&mut directory);
    out.append(&mut data);
    Ok(())
}

/// Raw values where they lie.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a> {
    directory: &'a [u8],
    data: &'a [u8],
    count: usize,
}

impl<'a> Raw<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let (count, blocks) = (read_u32(bytes, 0)? as usize, read_u32(bytes, 4)? as usize);
        if count > NUMBERS_MAX || blocks > count || (blocks == 0) != (count == 0) {
            return Err(corrupt("blocks of strings", 0));
        }
        let directory = slice(bytes, RAW_HEAD_BYTES, blocks * RAW_ENTRY_BYTES)?;
        let raw = Self { directory, data: &bytes[RAW_HEAD_BYTES + directory.len()..], count };
        let (mut value, mut end) = (0, 0);
        for block in 0..blocks {
            let [first, offset, stored, length] = raw.entry(block)?;
            let follows = if block == 0 { first == 0 } else { first > value };
            let possible = stored <= length && length <= stored.saturating_mul(LZ4_RATIO_MAX) + 64;
            if !follows || first >= count || offset != end || !possible || length > 2 * VALUE_BYTES_MAX {
                return Err(corrupt("a block of strings", RAW_HEAD_BYTES + block * RAW_ENTRY_BYTES));
            }
            (value, end) = (first, end + stored);
        }
        if end != raw.data.len() {
            return Err(corrupt("the end of the strings", RAW_HEAD_BYTES + directory.len() + end));
        }
        Ok(raw)
    }

    fn entry(&self, block: usize) -> Result<[usize; 4]> {
        let mut entry = [0; 4];
        for (index, number) in entry.iter_mut().enumerate() {
            *number = read_u32(self.directory, block * RAW_ENTRY_BYTES + index * 4)? as usize;
        }
        Ok(entry)
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    fn blocks(&self) -> usize {
        self.directory.len() / RAW_ENTRY_BYTES
    }

    /// Gives the values of a block, with their numbers.
    fn block(&self, block: usize, mut give: impl FnMut(usize, &[u8])) -> Result<()> {
        let [first, offset, stored, length] = self.entry(block)?;
        let end = if block + 1 < self.blocks() { self.entry(block + 1)?[0] } else { self.count };
        let at = RAW_HEAD_BYTES + block * RAW_ENTRY_BYTES;
        let stored = slice(self.data, offset, stored)?;
        let unpacked;
        let mut lengths = if stored.len() == length {
            stored
        } else {
            unpacked = lz4_flex::block::decompress(stored, length).map_err(|_| corrupt("an lz4 block", at))?;
            if unpacked.len() != length {
                return Err(corrupt("an lz4 block of its length", at));
            }
            &unpacked
        };
        let mut bytes = lengths;
        for _ in first..end {
            take_varint(&mut bytes).ok_or(corrupt("the length of a string", at))?;
        }
        for value in first..end {
            let length = take_varint(&mut lengths).ok_or(corrupt("the length of a string", at))?;
            give(value, take(&mut bytes, length as usize).ok_or(corrupt("a whole string", at))?);
        }
        if bytes.is_empty() { Ok(()) } else { Err(corrupt("the end of a block of strings", at)) }
    }

    /// Gives all values in order, with their numbers. Costs unpacking them all.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn for_each(&self, mut give: impl FnMut(usize, &[u8])) -> Result<()> {
        (0..self.blocks()).try_for_each(|block| self.block(block, &mut give))
    }

    /// The value of this number, in place of what `out` held. Costs unpacking its block.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not what was written, or there is no such value.
    pub fn value(&self, value: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut held = RawBlock::default();
        out.clear();
        out.extend(self.value_in(value, &mut held)?);
        Ok(())
    }

    /// The value of this number; its block is unpacked unless it is the one held.
    pub(crate) fn value_in<'b>(&self, value: usize, held: &'b mut RawBlock) -> Result<&'b [u8]> {
        if value >= self.count {
            return Err(corrupt("a value of this number", value));
        }
        if !(held.first..held.first + held.ends.len()).contains(&value) {
            let (mut low, mut high) = (0, self.blocks());
            while high - low > 1 {
                let middle = low + (high - low) / 2;
                if self.entry(middle)?[0] <= value { low = middle } else { high = middle }
            }
            held.bytes.clear();
            held.ends.clear();
            held.first = self.entry(low)?[0];
            self.block(low, |_, bytes| {
                held.bytes.extend(bytes);
                held.ends.push(held.bytes.len());
            })?;
        }
        let at = value - held.first;
        let from = at.checked_sub(1).and_then(|before| held.ends.get(before)).copied().unwrap_or(0);
        let to = held.ends.get(at).copied().ok_or(corrupt("a value of this number", value))?;
        Ok(held.bytes.get(from..to).unwrap_or_default())
    }
}

/// A block of raw values, unpacked, for who asks for several of them.
#[derive(Debug, Default)]
pub(crate) struct RawBlock {
    first: usize,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}
