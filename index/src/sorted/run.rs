//! A sorted run: ascending byte keys, each with a row. Range counts are two binary searches; iteration goes both ways.
//!
//! Keys may repeat; entries of one key are in the order of their rows. A row may come more than once, with several keys
//! (many values): then a range of entries is more than its rows, and counts of rows must make the set.

use super::block::{BLOCK_KEYS, Cursor, Keys, KeysWriter};
use crate::column::packed::{self, Packed};
use crate::error::{Error, Result, corrupt};
use crate::format::{self, PartKind, piece, read_u32, to_u32};
use crate::row::{ROWS_MAX, RowId};
use crate::rowset::RowSet;
use std::ops::{Bound, Range};

/// Rows, flags, and where the keys and the rows are.
const HEAD_BYTES: usize = 24;
/// Entries that are unpacked at a time on the way back.
const BACK_ENTRIES: usize = 256;

/// Entries whose rows are read one by one rather than a block at a time.
const FEW_ENTRIES: usize = 32;

/// Takes entries in order.
#[derive(Debug, Default)]
pub struct SortedWriter {
    keys: KeysWriter,
    rows: Vec<u64>,
    /// A bit for each row that has come, as far as rows have.
    seen: Vec<u64>,
    repeats: bool,
}

impl SortedWriter {
    /// Of so many entries each, writers can be put behind one another.
    pub const WHOLE: usize = BLOCK_KEYS;

    /// No entries yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an entry that is above the one before: by key, then by row.
    ///
    /// # Errors
    /// `Misuse` if it is not; `TooLarge`.
    pub fn push(&mut self, key: &[u8], row: RowId) -> Result<()> {
        if row.number() >= ROWS_MAX {
            return Err(Error::Misuse { what: "rows of a run are below their number" });
        }
        if self.keys.push(key)? && self.rows.last().is_some_and(|&last| last >= u64::from(row.number())) {
            return Err(Error::Misuse { what: "rows of one key ascend" });
        }
        self.note(row);
        Ok(())
    }

    /// Adds another row of the key that came last.
    ///
    /// # Errors
    /// `Misuse` if there is none or the row is not above the one before; `TooLarge`.
    pub fn push_again(&mut self, row: RowId) -> Result<()> {
        if row.number() >= ROWS_MAX || self.rows.last().is_some_and(|&last| last >= u64::from(row.number())) {
            return Err(Error::Misuse { what: "rows of one key ascend" });
        }
        self.keys.push_again()?;
        self.note(row);
        Ok(())
    }

    /// Adds the entries of another, all of them above those here: so that several threads can make one run. But for the
    /// last one, writers hold a multiple of [`SortedWriter::WHOLE`] entries.
    ///
    /// # Errors
    /// `Misuse` if they are not; `TooLarge`.
    pub fn append(&mut self, mut other: Self) -> Result<()> {
        let ends = (self.rows.last().copied(), other.rows.first().copied());
        if self.keys.append(other.keys)? && matches!(ends, (Some(last), Some(next)) if last >= next) {
            return Err(Error::Misuse { what: "rows of one key ascend" });
        }
        if other.seen.len() > self.seen.len() {
            std::mem::swap(&mut self.seen, &mut other.seen);
        }
        let mut both = 0;
        for (here, there) in self.seen.iter_mut().zip(&other.seen) {
            both |= *here & there;
            *here |= there;
        }
        self.repeats |= other.repeats || both != 0;
        self.rows.append(&mut other.rows);
        Ok(())
    }

    fn note(&mut self, row: RowId) {
        let (word, bit) = (row.number() as usize / 64, 1 << (row.number() % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        self.repeats |= self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        self.rows.push(u64::from(row.number()));
    }

    /// How many entries came.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether none came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The part for a segment of `rows` rows.
    ///
    /// # Errors
    /// `Misuse` if a row is not below `rows`; `TooLarge`.
    pub fn finish(self, rows: u32) -> Result<Vec<u8>> {
        if rows > ROWS_MAX || self.rows.iter().any(|&row| row >= u64::from(rows)) {
            return Err(Error::Misuse { what: "rows of a run are below their number" });
        }
        let mut packed = Vec::new();
        packed::write(&self.rows, &mut packed)?;
        drop((self.rows, self.seen));
        let keys = self.keys.bytes();
        let mut out = format::begin();
        out.reserve_exact(HEAD_BYTES + keys + packed.len());
        out.extend(rows.to_le_bytes());
        out.extend(u32::from(self.repeats).to_le_bytes());
        for (offset, length) in [(HEAD_BYTES, keys), (HEAD_BYTES + keys, packed.len())] {
            out.extend(to_u32(offset)?.to_le_bytes());
            out.extend(to_u32(length)?.to_le_bytes());
        }
        self.keys.finish(&mut out)?;
        out.extend(packed);
        format::finish(PartKind::Sorted, out)
    }
}

/// A sorted run where it lies.
#[derive(Debug, Clone, Copy)]
pub struct SortedRun<'a> {
    keys: Keys<'a>,
    entries: Packed<'a>,
    rows: u32,
    repeats: bool,
}

impl<'a> SortedRun<'a> {
    /// Opens the part that a `SortedWriter` gave.
    ///
    /// # Errors
    /// `Corrupt` or `Unsupported`.
    pub fn open(part: &'a [u8]) -> Result<Self> {
        let payload = format::open(PartKind::Sorted, part)?;
        let (rows, flags) = (read_u32(payload, 0)?, read_u32(payload, 4)?);
        let (keys, entries) = (Keys::open(piece(payload, 8)?)?, Packed::open(piece(payload, 16)?)?);
        let end = HEAD_BYTES + read_u32(payload, 12)? as usize + read_u32(payload, 20)? as usize;
        let within = entries.min_max().is_none_or(|(_, max)| max < u64::from(rows));
        if rows > ROWS_MAX || flags > 1 || keys.len() != entries.len() || !within || end != payload.len() {
            return Err(corrupt("a row for each key", 0));
        }
        Ok(Self { keys, entries, rows, repeats: flags == 1 })
    }

    /// Opens a part that was opened before: what that proved is not proved again.
    ///
    /// # Errors
    /// As [`SortedRun::open`].
    pub fn reopen(part: &'a [u8]) -> Result<Self> {
        let payload = format::open(PartKind::Sorted, part)?;
        let (rows, flags) = (read_u32(payload, 0)?, read_u32(payload, 4)?);
        let (keys, entries) = (Keys::open(piece(payload, 8)?)?, Packed::reopen(piece(payload, 16)?)?);
        Ok(Self { keys, entries, rows, repeats: flags == 1 })
    }

    /// Reads everything, and whether it is what a writer writes. Costs a pass.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn check(&self) -> Result<()> {
        self.keys.check(false)?;
        let (mut last, mut seen, mut repeats) = (None, RowSet::new(), false);
        let mut broken = None;
        let mut index = 0;
        self.for_each(0..self.len(), |key, row| {
            repeats |= !seen.insert(row);
            let follows = last.as_ref().is_none_or(|(k, r): &(Vec<u8>, RowId)| k.as_slice() != key || *r < row);
            if !follows || row.number() >= self.rows {
                broken.get_or_insert(index);
            }
            last = Some((key.to_vec(), row));
            index += 1;
        })?;
        match broken {
            None if repeats == self.repeats => Ok(()),
            broken => Err(corrupt("ascending rows of a key", broken.unwrap_or(0))),
        }
    }

    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.len()
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

    /// Whether some row has several entries; else the entries of a range are as many as its rows.
    #[must_use]
    pub fn repeats_rows(&self) -> bool {
        self.repeats
    }

    /// The entries of a range of keys: two binary searches.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn range(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Result<Range<usize>> {
        let from = match low {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.keys.rank(key, false)?,
            Bound::Excluded(key) => self.keys.rank(key, true)?,
        };
        let to = match high {
            Bound::Unbounded => self.len(),
            Bound::Included(key) => self.keys.rank(key, true)?,
            Bound::Excluded(key) => self.keys.rank(key, false)?,
        };
        Ok(from..to.max(from))
    }

    /// The entries whose keys begin with `prefix`: equality of the first fields of a compound key.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn prefix(&self, prefix: &[u8]) -> Result<Range<usize>> {
        let mut end = prefix.to_vec();
        while end.last() == Some(&0xff) {
            end.pop();
        }
        match end.last_mut() {
            Some(last) => {
                *last += 1;
                self.range(Bound::Included(prefix), Bound::Excluded(&end))
            }
            None => self.range(Bound::Included(prefix), Bound::Unbounded),
        }
    }

    /// The rows of entries.
    #[must_use]
    pub fn row_set(&self, entries: Range<usize>) -> RowSet {
        let mut rows = Vec::with_capacity(entries.len().min(self.len()));
        self.rows_of(entries, |row| rows.push(row.number()));
        rows.sort_unstable();
        rows.dedup();
        rows.into_iter().map(RowId::at).collect()
    }

    /// How many rows a range of keys has.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn range_count(&self, low: Bound<&[u8]>, high: Bound<&[u8]>) -> Result<u64> {
        let entries = self.range(low, high)?;
        Ok(if self.repeats { self.row_set(entries).len() } else { entries.len() as u64 })
    }

    /// Gives the rows of entries, in the order of the entries.
    pub fn rows_of(&self, entries: Range<usize>, mut give: impl FnMut(RowId)) {
        let end = entries.end.min(self.len());
        if end.saturating_sub(entries.start) <= FEW_ENTRIES {
            (entries.start..end).filter_map(|entry| self.row(entry)).for_each(give);
            return;
        }
        let mut block = Vec::new();
        let mut at = entries.start;
        while at < end {
            self.entries.block(at / packed::BLOCK, &mut block);
            let stop = (at / packed::BLOCK + 1) * packed::BLOCK;
            for row in block.iter().take(end.min(stop) + packed::BLOCK - stop).skip(at % packed::BLOCK) {
                give(RowId::at(u32::try_from(*row).unwrap_or(u32::MAX)));
            }
            at = stop;
        }
    }

    /// The row of an entry.
    #[must_use]
    pub fn row(&self, entry: usize) -> Option<RowId> {
        self.entries.get(entry).and_then(|row| u32::try_from(row).ok()).map(RowId::at)
    }

    /// The key of an entry, in place of what `out` held.
    ///
    /// # Errors
    /// `Corrupt` if there is none.
    pub fn key(&self, entry: usize, out: &mut Vec<u8>) -> Result<()> {
        self.keys.get(entry, out)
    }

    /// Gives entries in order.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn for_each(&self, entries: Range<usize>, mut give: impl FnMut(&[u8], RowId)) -> Result<()> {
        let mut cursor = self.cursor(entries)?;
        while let Some((key, row)) = cursor.next()? {
            give(key, row);
        }
        Ok(())
    }

    /// Entries one by one, in order.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn cursor(&self, entries: Range<usize>) -> Result<SortedCursor<'a>> {
        let end = entries.end.min(self.len());
        let keys = self.keys.cursor(entries.start)?;
        Ok(SortedCursor { run: *self, keys, end, block: Vec::new(), held: usize::MAX })
    }

    /// Entries one by one, from the last to the first.
    #[must_use]
    pub fn cursor_back(&self, entries: Range<usize>) -> BackCursor<'a> {
        let end = entries.end.min(self.len());
        BackCursor { run: *self, start: entries.start.min(end), end, held: Vec::new(), last: Vec::new() }
    }
}

/// Entries in order.
#[derive(Debug, Clone)]
pub struct SortedCursor<'a> {
    run: SortedRun<'a>,
    keys: Cursor<'a>,
    end: usize,
    block: Vec<u64>,
    held: usize,
}

impl SortedCursor<'_> {
    /// The next entry.
    ///
    /// # Errors
    /// `Corrupt`.
    #[allow(clippy::should_implement_trait, reason = "it lends the key, which an iterator cannot")]
    pub fn next(&mut self) -> Result<Option<(&[u8], RowId)>> {
        let Some((entry, key)) = self.keys.next()? else { return Ok(None) };
        if entry >= self.end {
            return Ok(None);
        }
        if entry / packed::BLOCK != self.held {
            self.held = entry / packed::BLOCK;
            self.run.entries.block(self.held, &mut self.block);
        }
        let row = self.block.get(entry % packed::BLOCK).and_then(|&row| u32::try_from(row).ok());
        Ok(Some((key, RowId::at(row.ok_or(corrupt("a row for each key", entry))?))))
    }
}

/// Entries from the last to the first.
#[derive(Debug, Clone)]
pub struct BackCursor<'a> {
    run: SortedRun<'a>,
    start: usize,
    end: usize,
    held: Vec<(Vec<u8>, RowId)>,
    last: Vec<u8>,
}

impl BackCursor<'_> {
    /// The entry before.
    ///
    /// # Errors
    /// `Corrupt`.
    #[allow(clippy::should_implement_trait, reason = "it lends the key, which an iterator cannot")]
    pub fn next(&mut self) -> Result<Option<(&[u8], RowId)>> {
        if self.held.is_empty() && self.start < self.end {
            let from = ((self.end - 1) / BACK_ENTRIES * BACK_ENTRIES).max(self.start);
            self.run.for_each(from..self.end, |key, row| self.held.push((key.to_vec(), row)))?;
            self.end = from;
        }
        let Some((key, row)) = self.held.pop() else { return Ok(None) };
        self.last = key;
        Ok(Some((&self.last, row)))
    }
}
