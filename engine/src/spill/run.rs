//! A sorted run in a temporary file: blocks of pairs, each believed only behind its checksum.
//!
//! A block is `crc32c u32 | length u32 | pairs`, a pair `key length u32 | payload length u32 | key | payload`, little-endian.
//! The checksum covers the length and the pairs. The file dies with its sort, so that no other build ever reads it.

use std::ops::Range;

use super::PAIR_BYTES_MAX;
use super::buffer::prefix;
use super::room::SpillFile;
use crate::error::{Error, Result};
use crate::options::Deadline;

/// A block is closed once it has so many bytes.
pub(super) const BLOCK_BYTES: usize = 128 << 10;
/// The head of a block.
const HEAD_BYTES: usize = 8;
/// The lengths of a pair.
const LENGTHS_BYTES: usize = 8;
/// The largest block: one that was nearly full, and a pair.
const BLOCK_BYTES_MAX: usize = BLOCK_BYTES + LENGTHS_BYTES + PAIR_BYTES_MAX;

const _: () = assert!(BLOCK_BYTES_MAX < u32::MAX as usize);

/// Where a run lies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    from: u64,
    to: u64,
    /// Its largest block: what reading it holds.
    pub(super) block_max: usize,
}

/// Writes one run at the end of a file.
pub(super) struct RunWriter<'f> {
    file: &'f mut SpillFile,
    deadline: Option<Deadline>,
    run: Run,
    block: Vec<u8>,
}

impl<'f> RunWriter<'f> {
    pub(super) fn new(file: &'f mut SpillFile, deadline: Option<Deadline>) -> Self {
        let at = file.len();
        Self { file, deadline, run: Run { from: at, to: at, block_max: 0 }, block: vec![0; HEAD_BYTES] }
    }

    /// Adds a pair, not before the one that was added last.
    ///
    /// # Errors
    /// `LimitExceeded`, `OutOfDiskSpace`, `Io`, `TimedOut`.
    pub(super) fn add(&mut self, key: &[u8], payload: &[u8]) -> Result<()> {
        self.block.extend_from_slice(&(key.len() as u32).to_le_bytes());
        self.block.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.block.extend_from_slice(key);
        self.block.extend_from_slice(payload);
        if self.block.len() >= BLOCK_BYTES { self.close_block() } else { Ok(()) }
    }

    fn close_block(&mut self) -> Result<()> {
        Deadline::check(self.deadline)?;
        let len = (self.block.len() - HEAD_BYTES) as u32;
        put(&mut self.block, 4, len);
        let crc = crc32c::crc32c(self.block.get(4..).unwrap_or_default());
        put(&mut self.block, 0, crc);
        self.file.append(&self.block)?;
        self.run.to = self.file.len();
        self.run.block_max = self.run.block_max.max(self.block.len());
        self.block.truncate(HEAD_BYTES);
        Ok(())
    }

    /// The run, whole.
    ///
    /// # Errors
    /// As [`RunWriter::add`].
    pub(super) fn finish(mut self) -> Result<Run> {
        if self.block.len() > HEAD_BYTES {
            self.close_block()?;
        }
        Ok(self.run)
    }
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    if let Some(place) = bytes.get_mut(at..at + 4) {
        place.copy_from_slice(&number.to_le_bytes());
    }
}

fn get(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

/// Reads a run from its beginning, one pair at a time.
#[derive(Debug)]
pub(super) struct RunReader {
    /// What is not read yet.
    from: u64,
    to: u64,
    block: Vec<u8>,
    /// Where the next pair begins in `block`.
    next: usize,
    key: Range<usize>,
    payload: Range<usize>,
    /// Of the key; orders as far as it goes.
    pub(super) prefix: u64,
    /// Whether there is a pair.
    pub(super) is_there: bool,
}

impl RunReader {
    /// Before the first pair.
    pub(super) fn new(run: Run) -> Self {
        Self {
            from: run.from,
            to: run.to,
            block: Vec::new(),
            next: 0,
            key: 0..0,
            payload: 0..0,
            prefix: 0,
            is_there: false,
        }
    }

    pub(super) fn key(&self) -> &[u8] {
        self.block.get(self.key.clone()).unwrap_or_default()
    }

    pub(super) fn payload(&self) -> &[u8] {
        self.block.get(self.payload.clone()).unwrap_or_default()
    }

    /// Goes to the next pair, if there is one.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `TimedOut`.
    pub(super) fn advance(&mut self, file: &SpillFile, deadline: Option<Deadline>) -> Result<()> {
        if self.next >= self.block.len() {
            if self.from >= self.to {
                self.is_there = false;
                return Ok(());
            }
            Deadline::check(deadline)?;
            self.read_block(file)?;
        }
        let damaged = || Error::corrupt(file.name(), self.from, "a pair of a sort is not inside its block");
        let lengths = (get(&self.block, self.next), get(&self.block, self.next + 4));
        let (Some(key), Some(payload)) = lengths else { return Err(damaged()) };
        let at = self.next + LENGTHS_BYTES;
        let (middle, end) = (at + key as usize, at + key as usize + payload as usize);
        if end > self.block.len() {
            return Err(damaged());
        }
        (self.key, self.payload, self.next) = (at..middle, middle..end, end);
        self.prefix = prefix(self.key());
        self.is_there = true;
        Ok(())
    }

    fn read_block(&mut self, file: &SpillFile) -> Result<()> {
        let damaged = |what: &str| Error::corrupt(file.name(), self.from, what);
        let mut head = [0; HEAD_BYTES];
        file.read(self.from, &mut head)?;
        let (Some(crc), Some(len)) = (get(&head, 0), get(&head, 4)) else { return Err(damaged("a block has no head")) };
        let end = self.from + HEAD_BYTES as u64 + u64::from(len);
        if len as usize > BLOCK_BYTES_MAX || end > self.to || len == 0 {
            return Err(damaged("the length of a block of a sort"));
        }
        self.block.resize(len as usize, 0);
        file.read(self.from + HEAD_BYTES as u64, &mut self.block)?;
        let found = crc32c::crc32c_append(crc32c::crc32c(head.get(4..).unwrap_or_default()), &self.block);
        if found != crc {
            return Err(damaged("the checksum of a block of a sort"));
        }
        (self.from, self.next) = (end, 0);
        Ok(())
    }
}
