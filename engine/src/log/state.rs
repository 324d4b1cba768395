//! Where the next record goes: the file in use, the one after it, what is queued.
//!
//! Takes lengths and payloads, settles each record's file and offset, and puts it into the queue; touches no file. All
//! of it stands under one lock of `writer.rs`, so nothing here is slow.

use super::LogFileInfo;
use super::file::{BLOCK_BYTES, FileHeader, OpenFile};
use super::queue::{Queue, Run};
use super::record::{HEADER_BYTES, Header, Payload, record_bytes};
use crate::ids::Seq;
use std::collections::VecDeque;
use std::sync::Arc;

/// Kept free at the end of every file, so that a watermark always finds room.
pub(super) const SLACK_BYTES: u64 = record_bytes(0);

#[derive(Debug)]
pub(super) struct State {
    pub(super) current: Arc<OpenFile>,
    pub(super) current_first_seq: Seq,
    /// The wall time in its header.
    pub(super) current_begun_ms: u64,
    /// Where the next record goes in `current`.
    pub(super) offset: u64,
    /// The file after `current`, ready for use.
    pub(super) next: Option<Arc<OpenFile>>,
    pub(super) finished: VecDeque<Finished>,
    pub(super) last_seq: Seq,
    pub(super) last_wall_ms: u64,
    /// The highest watermark in any record queued so far.
    pub(super) durable_noted: u64,
    /// What the last `reserve` was promised.
    pub(super) reserved: u64,
    pub(super) queue: Queue,
}

#[derive(Debug)]
pub(super) struct Finished {
    pub(super) info: LogFileInfo,
    /// Open when this run wrote it.
    pub(super) file: Option<Arc<OpenFile>>,
}

impl State {
    pub(super) fn fits(&self, need: u64) -> bool {
        self.offset + need + SLACK_BYTES <= self.current.len
    }

    /// Whether a watermark fits without taking away what `reserve` has promised.
    pub(super) fn fits_watermark(&self) -> bool {
        let promised_here = self.reserved > 0 && self.fits(self.reserved);
        let keep = if promised_here { self.reserved + SLACK_BYTES } else { 0 };
        self.offset + SLACK_BYTES + keep <= self.current.len
    }

    /// Whether there is room for a record of `need` bytes in the current or the next file.
    pub(super) fn reserve(&mut self, need: u64) -> bool {
        let next = |file: &Arc<OpenFile>| BLOCK_BYTES as u64 + need + SLACK_BYTES <= file.len;
        let room = self.fits(need) || self.next.as_ref().is_some_and(next);
        if room {
            self.reserved = need;
        }
        room
    }

    pub(super) fn info(&self) -> LogFileInfo {
        LogFileInfo {
            id: self.current.id,
            first_seq: self.current_first_seq,
            last_seq: self.last_seq,
            bytes: self.current.len,
            used_bytes: self.offset,
            begun_ms: self.current_begun_ms,
        }
    }

    pub(super) fn begin_run(&mut self, header: Option<FileHeader>) {
        self.queue.runs.push(Run::new(Arc::clone(&self.current), header, self.offset, self.last_seq));
    }

    /// Puts the record of `last_seq` into the queue.
    pub(super) fn queue_record(&mut self, kind: u8, durable: u64, payload: Payload) {
        let header = Header {
            seq: self.last_seq.get(),
            durable,
            wall_ms: self.last_wall_ms,
            // `reserve` has refused what does not fit.
            payload_len: u32::try_from(payload.len()).expect("a payload is within PAYLOAD_BYTES_MAX"),
            payload_crc: payload.crc(),
            kind,
        };
        if self.queue.runs.is_empty() {
            self.begin_run(None);
        }
        let encoded = header.encode(self.current.epoch, self.offset);
        let bytes = record_bytes(payload.len());
        let padding = bytes as usize - HEADER_BYTES - payload.len();
        self.offset += bytes;
        self.durable_noted = self.durable_noted.max(durable);
        self.queue.push(&encoded, payload, padding, self.last_seq);
    }
}
