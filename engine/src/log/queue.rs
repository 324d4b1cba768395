//! Records on their way from `append` to the file.
//!
//! Small payloads are copied into one buffer, so that many small commits are one write; large ones are written from
//! where they lie. Takes encoded headers and payloads, gives runs of slices; knows nothing of locks or syncs.

use super::file::{FileHeader, OpenFile};
use super::record::Payload;
use crate::ids::Seq;
use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

/// Payloads from this length on are written from where they lie; shorter ones are copied into one buffer.
const SHARE_BYTES_MIN: usize = 16 << 10;
/// A buffer that grew above this in a burst is given back.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// Records on their way: runs of pieces, each run to one file.
#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) buffer: Vec<u8>,
    pub(super) runs: Vec<Run>,
    pub(super) records: u64,
}

#[derive(Debug)]
pub(super) struct Run {
    pub(super) file: Arc<OpenFile>,
    /// Set when the run is the first of its file.
    pub(super) header: Option<FileHeader>,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pieces: Vec<Piece>,
    pub(super) last_seq: Seq,
}

#[derive(Debug)]
enum Piece {
    /// A part of the queue's buffer.
    Copied(Range<usize>),
    Shared(Payload),
}

impl Queue {
    /// Puts a record behind the last one of the last run, which there must be.
    pub(super) fn push(&mut self, header: &[u8], payload: Payload, padding: usize, seq: Seq) {
        let run = self.runs.last_mut().expect("a run is begun before a record goes into it");
        run.last_seq = seq;
        run.bytes += (header.len() + payload.len() + padding) as u64;
        run.copy(&mut self.buffer, header);
        if payload.len() < SHARE_BYTES_MIN {
            run.copy(&mut self.buffer, payload.bytes());
        } else {
            run.pieces.push(Piece::Shared(payload));
        }
        run.copy(&mut self.buffer, &[0; 8][..padding]);
    }
}

impl Run {
    pub(super) fn new(file: Arc<OpenFile>, header: Option<FileHeader>, offset: u64, last_seq: Seq) -> Self {
        Self { file, header, offset, bytes: 0, pieces: Vec::new(), last_seq }
    }

    /// The run's bytes, in order; `buffer` is the queue's.
    pub(super) fn slices<'a>(&'a self, buffer: &'a [u8]) -> Vec<IoSlice<'a>> {
        self.pieces.iter().map(|piece| IoSlice::new(piece.bytes(buffer))).collect()
    }

    /// Adds bytes to the run by way of the queue's buffer; runs of them become one piece.
    fn copy(&mut self, buffer: &mut Vec<u8>, bytes: &[u8]) {
        let start = buffer.len();
        buffer.extend_from_slice(bytes);
        match self.pieces.last_mut() {
            Some(Piece::Copied(range)) if range.end == start => range.end = buffer.len(),
            _ if bytes.is_empty() => {}
            _ => self.pieces.push(Piece::Copied(start..buffer.len())),
        }
    }
}

impl Piece {
    fn bytes<'a>(&'a self, buffer: &'a [u8]) -> &'a [u8] {
        match self {
            Piece::Copied(range) => &buffer[range.clone()],
            Piece::Shared(payload) => payload.bytes(),
        }
    }
}

impl Queue {
    /// The same without content, its buffer kept unless a burst has blown it up.
    pub(super) fn emptied(mut self) -> Self {
        self.runs.clear();
        self.buffer.clear();
        self.records = 0;
        if self.buffer.capacity() > BUFFER_BYTES_KEPT {
            self.buffer = Vec::new();
        }
        self
    }
}
