//! Reading one log file: bytes through a window, records one behind the other, and what may stand behind the last.
//!
//! Every length is untrusted: it is held against the file's before a byte is allocated or a step taken, and each step
//! goes forward. Decides nothing: whether an end is a torn tail or damage is `recover.rs`'s question.

use super::file::{BLOCK_BYTES, Block, FileHeader};
use super::record::{
    ALIGN, HEADER_BYTES, Header, KIND_WATERMARK, MAGIC, PAYLOAD_BYTES_MAX, bears_mark, marked, record_bytes,
};
use crate::Result;
use crate::ids::LogFileId;
use crate::io::File;
use std::sync::Arc;

/// How much is read at a time when a whole file is.
const WINDOW_BYTES: u64 = 1 << 20;

/// A part of a file in memory, moved along as it is asked for.
#[derive(Debug)]
pub(crate) struct Window {
    file: Arc<dyn File>,
    len: u64,
    base: u64,
    bytes: Vec<u8>,
    /// How much is read at a time; more only for a payload that is longer.
    step: u64,
}

impl Window {
    pub(crate) fn new(file: Arc<dyn File>) -> Result<Self> {
        let len = file.len()?;
        Ok(Self { file, len, base: 0, bytes: Vec::new(), step: WINDOW_BYTES })
    }

    /// The same with smaller steps, for who reads single records.
    pub(crate) fn with_step(file: Arc<dyn File>, step: u64) -> Result<Self> {
        Ok(Self { step, ..Self::new(file)? })
    }

    pub(crate) fn file_len(&self) -> u64 {
        self.len
    }

    /// `want` bytes from `offset`, or nothing when the file ends before.
    pub(crate) fn get(&mut self, offset: u64, want: usize) -> Result<Option<&[u8]>> {
        let Some(end) = offset.checked_add(want as u64).filter(|end| *end <= self.len) else { return Ok(None) };
        if offset < self.base || end > self.base + self.bytes.len() as u64 {
            let fill = (want as u64).max(self.step).min(self.len - offset);
            // Bounded by the file's own length, so it fits what can be mapped at all.
            let fill = usize::try_from(fill).unwrap_or(usize::MAX);
            self.bytes.clear();
            self.bytes.resize(fill, 0);
            self.base = offset;
            let read = self.file.read_at(offset, &mut self.bytes);
            if read.is_err() {
                self.bytes.clear();
            }
            read?;
        }
        // The window now holds the range, so the difference is an index.
        let at = usize::try_from(offset - self.base).unwrap_or(usize::MAX);
        Ok(self.bytes.get(at..).and_then(|rest| rest.get(..want)))
    }

    /// Forgets what was read, for a file that is still written.
    pub(crate) fn forget(&mut self) {
        self.bytes.clear();
    }

    /// The same, and its memory too.
    pub(crate) fn let_go(&mut self) {
        self.bytes = Vec::new();
    }

    fn fixed<const N: usize>(&mut self, offset: u64) -> Result<Option<[u8; N]>> {
        Ok(self.get(offset, N)?.and_then(|bytes| bytes.try_into().ok()))
    }

    /// The file's first block.
    pub(crate) fn block(&mut self, name: &str, id: LogFileId, database: u64) -> Result<Block> {
        if let Some(block) = self.fixed::<BLOCK_BYTES>(0)? {
            return FileHeader::decode(&block, name, id, database);
        }
        // A crash while the file was being filled leaves a short one, of zeros.
        let short = usize::try_from(self.len).unwrap_or(BLOCK_BYTES);
        let zeros = self.get(0, short)?.is_some_and(|bytes| bytes.iter().all(|b| *b == 0));
        Ok(if zeros { Block::Unused } else { Block::Damaged("the file is shorter than its header") })
    }
}

/// What stands at a place where a record may begin.
pub(crate) enum Found {
    /// A whole record, header and payload, ending before `next`.
    Record { header: Header, next: u64 },
    /// Nothing of this file's: zeros, or bytes of an earlier use.
    Nothing,
    /// The remains of a record.
    Bad(&'static str),
}

/// What stands at `offset`; a payload is checked, and then got by [`payload`].
pub(crate) fn look(window: &mut Window, epoch: u64, offset: u64) -> Result<Found> {
    let Some(bytes) = window.fixed::<HEADER_BYTES>(offset)? else {
        // Fewer bytes than a header are left. A file is filled to its full length ahead, so if something stands
        // there, it was cut off.
        let rest = usize::try_from(window.file_len().saturating_sub(offset)).unwrap_or(0);
        let zeros = window.get(offset, rest)?.is_none_or(|bytes| bytes.iter().all(|b| *b == 0));
        return Ok(if zeros { Found::Nothing } else { Found::Bad("the file ends inside a record's header") });
    };
    let Some(header) = Header::decode(&bytes, epoch, offset) else {
        // Damage may have struck the mark itself: what is whole but for its mark was written here.
        let ours = bears_mark(&bytes, epoch) || Header::decode(&marked(bytes, epoch), epoch, offset).is_some();
        return Ok(if ours { Found::Bad("the checksum of a record's header is wrong") } else { Found::Nothing });
    };
    let len = header.payload_len as usize;
    if len > PAYLOAD_BYTES_MAX || (header.kind == KIND_WATERMARK && len > 0) {
        return Ok(Found::Bad("a record claims an impossible length"));
    }
    let Some(payload) = window.get(offset + HEADER_BYTES as u64, len)? else {
        return Ok(Found::Bad("the file ends inside a record"));
    };
    if crc32c::crc32c(payload) != header.payload_crc {
        return Ok(Found::Bad("the checksum of a record's payload is wrong"));
    }
    Ok(Found::Record { header, next: offset + record_bytes(len) })
}

/// The payload of a record that `look` has found at `offset`.
pub(crate) fn payload<'w>(window: &'w mut Window, header: &Header, offset: u64) -> Result<&'w [u8]> {
    Ok(window.get(offset + HEADER_BYTES as u64, header.payload_len as usize)?.unwrap_or_default())
}

/// What valid headers behind a bad record tell.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    /// The highest durable watermark in any of them.
    pub(crate) durable: u64,
    /// Where the furthest of their records ends; 0 when there is none.
    pub(crate) end: u64,
}

/// Looks at every place from `offset` to the end where a record could begin.
pub(crate) fn look_behind(window: &mut Window, epoch: u64, offset: u64) -> Result<Behind> {
    let mut behind = Behind::default();
    let mut candidates = Vec::new();
    let mut at = offset;
    while at < window.file_len() {
        let some = window.step.min(window.file_len() - at);
        let Some(bytes) = window.get(at, usize::try_from(some).unwrap_or(0))? else { break };
        // Only the magic is compared on the way: this goes over a whole file at every opening.
        let places = (at..).step_by(ALIGN as usize).zip(bytes.chunks_exact(ALIGN as usize));
        candidates.extend(places.filter(|(_, bytes)| bytes.starts_with(&MAGIC.to_le_bytes())).map(|(at, _)| at));
        for at in candidates.drain(..) {
            let header = window.fixed::<HEADER_BYTES>(at)?.and_then(|bytes| Header::decode(&bytes, epoch, at));
            if let Some(header) = header {
                behind.durable = behind.durable.max(header.durable);
                let end = at.saturating_add(record_bytes(header.payload_len as usize)).min(window.file_len());
                behind.end = behind.end.max(end);
            }
        }
        at += some.next_multiple_of(ALIGN);
    }
    Ok(behind)
}

/// Whether records of this file, or their remains, stand anywhere behind the first block, at any place: for a file
/// whose header is gone, where even the alignment may be.
pub(crate) fn holds_marks(window: &mut Window, epoch: u64) -> Result<bool> {
    let mut at = 0;
    while let Some(bytes) = window.fixed::<HEADER_BYTES>(at)? {
        if bears_mark(&bytes, epoch) {
            return Ok(true);
        }
        at += 1;
    }
    Ok(false)
}
