//! Blocks of rows: a few KiB that are packed, read and checked as one.
//!
//! Unpacked, a block is the end of each of its rows (u32, counted from the first row's beginning), then the rows: a
//! row is sliced without looking at the others. The table of blocks is a section of 32 bytes a block:
//!
//! ```text
//! first row u32 | codec u8 | zeros 3 | offset u64 | length u32 | raw length u32 | crc u32 | zeros 4
//! ```
//!
//! Takes rows, gives blocks and back. Knows nothing of files; `writer.rs` and `reader.rs` move the bytes.

use super::format::{Codec, SectionInfo, lz4_raw_max};
use super::pack::Packer;
use super::{BLOCK_BYTES_TARGET, BLOCK_ROWS_MAX, ROW_BYTES_MAX};
use crate::ids::SegmentId;
use crate::io::Section;
use crate::io::fields::{Fields, PutFields};
use crate::{Error, ErrorKind, Result};
use std::ops::Range;

pub(crate) const ENTRY_BYTES: usize = 32;
/// The most bytes of a block unpacked: one row at its limit, or small ones up to twice the target, and the rows' ends.
const RAW_BYTES_MAX: usize = ROW_BYTES_MAX + BLOCK_BYTES_TARGET + BLOCK_ROWS_MAX as usize * END_BYTES;
const END_BYTES: usize = 4;

/// Where a block lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub(crate) first_row: u32,
    pub(crate) codec: Codec,
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) raw_len: u32,
    pub(crate) crc: u32,
}

/// Gathers rows to a block and packs it.
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    first_row: u32,
    ends: Vec<u32>,
    bytes: Vec<u8>,
    raw: Vec<u8>,
    packer: Packer,
}

impl BlockBuilder {
    pub(crate) fn new(packer: Packer) -> Self {
        Self { first_row: 0, ends: Vec::new(), bytes: Vec::new(), raw: Vec::new(), packer }
    }

    /// Whether a row of `len` bytes belongs in a block of its own: reading its neighbours must not cost reading it.
    pub(crate) fn outgrown_by(&self, len: usize) -> bool {
        !self.is_empty() && self.bytes.len() + len > 2 * self.packer.block_bytes()
    }

    /// Adds a row. `true`: the block is full, `pack` it before the next.
    pub(crate) fn push(&mut self, row: &[u8]) -> bool {
        self.bytes.extend_from_slice(row);
        let end = u32::try_from(self.bytes.len()).expect("ROW_BYTES_MAX keeps a block below 4 GiB");
        self.ends.push(end);
        let next_row = self.first_row + self.ends.len() as u32;
        self.bytes.len() >= self.packer.block_bytes() || next_row.is_multiple_of(BLOCK_ROWS_MAX)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Appends the packed block to `out`, which stands at `base` of the file, and begins the next one.
    pub(crate) fn pack(&mut self, out: &mut Vec<u8>, base: u64) -> BlockEntry {
        self.raw.clear();
        for end in &self.ends {
            self.raw.put_u32(*end);
        }
        self.raw.extend_from_slice(&self.bytes);
        let start = out.len();
        let codec = self.packer.pack(&self.raw, out);
        let packed = &out[start..];
        let entry = BlockEntry {
            first_row: self.first_row,
            codec,
            offset: base + start as u64,
            len: u32::try_from(packed.len()).expect("a packed block is not longer than its rows"),
            raw_len: u32::try_from(self.raw.len()).expect("ROW_BYTES_MAX keeps a block below 4 GiB"),
            crc: crc32c::crc32c(packed),
        };
        self.first_row += self.ends.len() as u32;
        self.ends.clear();
        self.bytes.clear();
        if self.bytes.capacity() > 4 * BLOCK_BYTES_TARGET {
            self.bytes = Vec::new();
            self.raw = Vec::new();
        }
        entry
    }
}

/// The bytes of the section that tells where the blocks lie.
pub(crate) fn encode_table(entries: &[BlockEntry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(entries.len() * ENTRY_BYTES);
    for entry in entries {
        out.put_u32(entry.first_row);
        out.put_u8(entry.codec as u8);
        out.put_zeros(3);
        out.put_u64(entry.offset);
        out.put_u32(entry.len);
        out.put_u32(entry.raw_len);
        out.put_u32(entry.crc);
        out.put_zeros(4);
    }
    out
}

/// The table of a segment's blocks, read where it lies: a few thousand of them are no reason to hold anything.
#[derive(Debug)]
pub(crate) struct BlockTable {
    bytes: Section,
    rows: u32,
}

impl BlockTable {
    /// Holds the table against the rows' section: blocks lie in it one behind the other, none is empty.
    pub(crate) fn new(file: &str, at: &SectionInfo, bytes: Section, rows: u32, rows_at: &SectionInfo) -> Result<Self> {
        let mut fields = Fields::new(file, at.offset, &bytes);
        let mut before: Option<u32> = None;
        let mut next_offset = rows_at.offset;
        while fields.left() > 0 {
            let BlockEntry { first_row, codec, offset, len, raw_len, .. } = decode_entry(&mut fields, file)?;
            let in_order = match before {
                None => first_row == 0,
                Some(before) => before < first_row && first_row - before <= BLOCK_ROWS_MAX,
            };
            let lengths = match codec {
                Codec::None => raw_len == len,
                Codec::Lz4 | Codec::Lz4Dictionary => u64::from(raw_len) <= lz4_raw_max(u64::from(len)),
            };
            if !in_order || first_row >= rows || offset != next_offset || !lengths || raw_len as usize > RAW_BYTES_MAX {
                return Err(fields.corrupt("the table of blocks contradicts itself"));
            }
            next_offset = offset.saturating_add(u64::from(len));
            before = Some(first_row);
        }
        let last_holds = before.map_or(rows == 0, |last| rows - last <= BLOCK_ROWS_MAX);
        if !last_holds || next_offset != rows_at.offset.saturating_add(rows_at.len) {
            return Err(fields.corrupt("the table of blocks does not cover the rows"));
        }
        Ok(Self { bytes, rows })
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len() / ENTRY_BYTES
    }

    /// A block, and the row after its last.
    pub(crate) fn get(&self, index: usize) -> Option<(BlockEntry, u32)> {
        let bytes = self.bytes.get(index * ENTRY_BYTES..(index + 1) * ENTRY_BYTES)?;
        // It was read before, when the table was found good.
        let entry = decode_entry(&mut Fields::new("", 0, bytes), "").ok()?;
        Some((entry, self.first_row(index + 1)))
    }

    /// The first row of a block; of the one behind the last, the number of rows.
    fn first_row(&self, index: usize) -> u32 {
        let bytes = self.bytes.get(index * ENTRY_BYTES..index * ENTRY_BYTES + 4);
        bytes.and_then(|bytes| bytes.try_into().ok()).map_or(self.rows, u32::from_le_bytes)
    }

    /// The block that holds `row`, which there is. Rows are of about one length, so it is near where it would be if
    /// they all were of one: the search begins there and touches a line or two.
    pub(crate) fn find(&self, row: u32) -> usize {
        let count = self.len();
        let guess = (u64::from(row) * count as u64 / u64::from(self.rows.max(1))) as usize;
        let (mut low, mut high, mut step) = (guess, guess + 1, 1);
        while low > 0 && self.first_row(low) > row {
            (high, low) = (low, low.saturating_sub(step));
            step *= 2;
        }
        while high < count && self.first_row(high) <= row {
            (low, high) = (high, count.min(high + step));
            step *= 2;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.first_row(middle) <= row {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }
}

fn decode_entry(fields: &mut Fields<'_>, file: &str) -> Result<BlockEntry> {
    let first_row = fields.u32()?;
    let codec = fields.u8()?;
    fields.zeros(3)?;
    let (offset, len, raw_len, crc) = (fields.u64()?, fields.u32()?, fields.u32()?, fields.u32()?);
    fields.zeros(4)?;
    let Some(codec) = Codec::from_raw(codec) else {
        let message = format!("{file} holds a block packed with codec {codec}, which this build does not read");
        return Err(Error::new(ErrorKind::UnsupportedVersion, message));
    };
    Ok(BlockEntry { first_row, codec, offset, len, raw_len, crc })
}

/// Where row `index` of `count` lies in an unpacked block; nothing when the block's ends are impossible.
pub(crate) fn row_range(raw: &[u8], count: usize, index: usize) -> Option<Range<usize>> {
    let data = count * END_BYTES;
    let end = |i: usize| {
        let bytes = raw.get(i * END_BYTES..(i + 1) * END_BYTES)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?) as usize)
    };
    let start = if index == 0 { 0 } else { end(index - 1)? };
    let stop = end(index)?;
    let range = data + start..data.checked_add(stop)?;
    (index < count && start <= stop && range.end <= raw.len()).then_some(range)
}

/// Memory for unpacking blocks one after the other, kept between them.
#[derive(Debug, Default)]
pub struct BlockBuf {
    pub(crate) packed: Vec<u8>,
    pub(crate) raw: Vec<u8>,
    /// How much is read at once, where more than one block will be asked for.
    pub(crate) ahead: usize,
    /// Of which segment `packed` holds a run, and where it begins.
    pub(crate) window: Option<(SegmentId, u64)>,
}

impl BlockBuf {
    /// Memory for blocks that lie one behind the other, of which about `bytes` are read at once.
    #[must_use]
    pub fn reading_ahead(bytes: usize) -> Self {
        Self { ahead: bytes, ..Self::default() }
    }

    /// Reads so much at once from here on.
    pub fn read_ahead(&mut self, bytes: usize) {
        self.ahead = bytes;
    }
}

/// An unpacked block in a `BlockBuf`.
#[derive(Clone, Copy, Debug)]
pub struct BlockView<'a> {
    pub(crate) first_row: u32,
    pub(crate) count: u32,
    pub(crate) raw: &'a [u8],
}

impl<'a> BlockView<'a> {
    /// The rows in it.
    #[must_use]
    pub fn rows(&self) -> Range<u32> {
        self.first_row..self.first_row + self.count
    }

    /// The row at `index`, counted from the block's first. `None` when there is none, or when the block, though its
    /// checksum held, was not written by this code: to be reported as damage.
    #[must_use]
    pub fn doc(&self, index: u32) -> Option<&'a [u8]> {
        let range = row_range(self.raw, self.count as usize, index as usize)?;
        self.raw.get(range)
    }

    /// All rows' bytes in order, as far as they can be sliced.
    pub fn docs(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let view = *self;
        (0..view.count).map_while(move |index| view.doc(index))
    }
}
