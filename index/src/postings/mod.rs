//! The rows of each of few values: ascending byte keys (or none: then a list is asked for by its number, a dictionary's
//! code), and for each a roaring bitmap that is read where it lies.
//!
//! Read `view`, then `count`. What a key stands for is its caller's business.

mod build;
mod count;
mod merge;
mod view;

pub use build::{LISTS_OF_LANE_MAX, build, key_of};
pub use merge::merge;
pub use view::RoaringView;

use crate::error::{Error, Result, corrupt};
use crate::format::{self, HEADER_BYTES, PartKind, piece, read_u32, slice, to_u32};
use crate::row::ROWS_MAX;
use crate::rowset::RowSet;
use crate::sorted::block::{Keys, KeysWriter};

/// Lists of one part at most.
pub const LISTS_MAX: usize = 1 << 20;
/// Rows, lists, and where the keys, the offsets and the bitmaps are.
const HEAD_BYTES: usize = 32;

/// Takes the lists of a part in the order of their keys.
#[derive(Debug, Default)]
pub struct PostingsWriter {
    keys: KeysWriter,
    last: Option<Vec<u8>>,
    offsets: Vec<u8>,
    bitmaps: Vec<u8>,
    lists: usize,
    above: u32,
}

impl PostingsWriter {
    /// No lists yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the rows of a key that is above all before.
    ///
    /// # Errors
    /// `Misuse` if it is not, or other lists came without a key; `TooLarge`.
    pub fn push(&mut self, key: &[u8], rows: &RowSet) -> Result<()> {
        if self.last.as_ref().map_or(self.lists > 0, |last| last.as_slice() >= key) {
            return Err(Error::Misuse { what: "keys of postings ascend, and all have one or none has" });
        }
        self.keys.push(key)?;
        self.last = Some(key.to_vec());
        self.add(rows)
    }

    /// Adds the rows of the next number.
    ///
    /// # Errors
    /// `Misuse` if other lists came with a key; `TooLarge`.
    pub fn push_rows(&mut self, rows: &RowSet) -> Result<()> {
        if self.last.is_some() {
            return Err(Error::Misuse { what: "keys of postings ascend, and all have one or none has" });
        }
        self.add(rows)
    }

    fn add(&mut self, rows: &RowSet) -> Result<()> {
        if self.lists >= LISTS_MAX {
            return Err(Error::TooLarge { what: "2^20 lists in one part" });
        }
        self.offsets.extend(to_u32(self.bitmaps.len())?.to_le_bytes());
        rows.write(&mut self.bitmaps);
        self.lists += 1;
        self.above = self.above.max(rows.last().map_or(0, |last| last.number() + 1));
        Ok(())
    }

    /// The part for a segment of `rows` rows.
    ///
    /// # Errors
    /// `Misuse` if a row is not below `rows`; `TooLarge`.
    pub fn finish(self, rows: u32) -> Result<Vec<u8>> {
        if self.above > rows || rows > ROWS_MAX {
            return Err(Error::Misuse { what: "rows of postings are below their number" });
        }
        let mut out = format::begin();
        out.resize(HEADER_BYTES + HEAD_BYTES, 0);
        out[HEADER_BYTES..][..4].copy_from_slice(&rows.to_le_bytes());
        out[HEADER_BYTES + 4..][..4].copy_from_slice(&to_u32(self.lists)?.to_le_bytes());
        let mut keys = Vec::new();
        self.keys.finish(&mut keys)?;
        for (at, bytes) in [(8, keys), (16, self.offsets), (24, self.bitmaps)] {
            let (offset, length) = (to_u32(out.len() - HEADER_BYTES)?, to_u32(bytes.len())?);
            out[HEADER_BYTES + at..][..4].copy_from_slice(&offset.to_le_bytes());
            out[HEADER_BYTES + at + 4..][..4].copy_from_slice(&length.to_le_bytes());
            out.extend(bytes);
        }
        format::finish(PartKind::Postings, out)
    }
}

/// Postings where they lie.
#[derive(Debug, Clone, Copy)]
pub struct Postings<'a> {
    keys: Keys<'a>,
    offsets: &'a [u8],
    bitmaps: &'a [u8],
    rows: u32,
}

impl<'a> Postings<'a> {
    /// Opens the part that a `PostingsWriter` gave.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported`.
    pub fn open(part: &'a [u8]) -> Result<Self> {
        let payload = format::open(PartKind::Postings, part)?;
        let (rows, lists) = (read_u32(payload, 0)?, read_u32(payload, 4)? as usize);
        let (keys, offsets, bitmaps) = (Keys::open(piece(payload, 8)?)?, piece(payload, 16)?, piece(payload, 24)?);
        let keyed = keys.len() == lists || keys.len() == 0;
        let end = HEAD_BYTES + read_u32(payload, 12)? as usize + offsets.len() + bitmaps.len();
        if rows > ROWS_MAX || lists > LISTS_MAX || !keyed || offsets.len() != lists * 4 || end != payload.len() {
            return Err(corrupt("a key and a place for each list", 0));
        }
        Ok(Self { keys, offsets, bitmaps, rows })
    }

    /// Reads everything, and whether it is what a writer writes. Costs a pass.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn check(&self) -> Result<()> {
        self.keys.check(true)?;
        for index in 0..self.len() {
            let list = self.list(index)?;
            list.check()?;
            if list.range_len(0..self.rows) != list.len() {
                return Err(corrupt("rows of the segment", index));
            }
        }
        Ok(())
    }

    /// How many lists.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len() / 4
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Rows of the segment.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Whether its lists have keys.
    #[must_use]
    pub fn has_keys(&self) -> bool {
        self.keys.len() > 0
    }

    /// The number of a key's list.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn find(&self, key: &[u8]) -> Result<Option<usize>> {
        self.keys.find(key)
    }

    /// How many keys are below `key` (or, `with_equal`, not above it): the ends of a range of lists.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn rank(&self, key: &[u8], with_equal: bool) -> Result<usize> {
        self.keys.rank(key, with_equal)
    }

    /// The key of a list, in place of what `out` held.
    ///
    /// # Errors
    /// `Corrupt` if there is none.
    pub fn key(&self, index: usize, out: &mut Vec<u8>) -> Result<()> {
        self.keys.get(index, out)
    }

    /// The rows of a list, where they lie.
    ///
    /// # Errors
    /// `Corrupt` if there is no such list.
    pub fn list(&self, index: usize) -> Result<RoaringView<'a>> {
        let from = read_u32(self.offsets, index.saturating_mul(4))? as usize;
        let to = read_u32(self.offsets, index * 4 + 4).map_or(self.bitmaps.len(), |to| to as usize);
        RoaringView::open(slice(self.bitmaps, from, to.checked_sub(from).ok_or(corrupt("ascending lists", index))?)?)
    }
}
