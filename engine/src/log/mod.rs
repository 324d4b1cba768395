//! The log: every commit, in order, in files that follow each other.
//!
//! Takes payloads (bytes to it) under numbers the caller gives, gives them back after a crash. Promises:
//!
//! 1. What `sync` has returned is there after any power cut. What comes back is a prefix of what was appended.
//! 2. Room is found in `reserve`, before anything is appended: a full disk refuses a commit, it never breaks one.
//! 3. After a write or a sync that failed nothing more is acknowledged (`Poisoned`) until the log is opened anew. A
//!    failed sync is never tried again: the kernel may have dropped the pages and report success the second time
//!    (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).
//! 4. A record's wall time is never below that of the one before, whatever the wall clock does.
//!
//! Knows nothing of documents, collections or visibility. Reading order: `record.rs`, `file.rs`, `state.rs` (where
//! records go), `writer.rs` (append, write, sync), `pool.rs` (files ahead and files released), `reader.rs`,
//! `recover.rs`, `kept.rs`, `cursor.rs`. Bytes: FORMAT.md.

mod cursor;
mod file;
mod kept;
mod pool;
mod queue;
mod reader;
mod record;
mod recover;
mod room;
mod salvage;
mod state;
mod stats;
mod writer;

pub use cursor::{LogCursor, OwnedRecord};
pub(crate) use kept::{damage as kept_damage, keep};
pub use record::{KIND_WATERMARK, PAYLOAD_BYTES_MAX, Payload};
pub use recover::{Cut, LogEnd, RecordRef, RecoverFloor, RecoveryReport, recover};
pub(crate) use salvage::whole_records;
pub use stats::LogStats;
pub use writer::{Log, LogPos};

use crate::ids::{LogFileId, Seq};
use file::BLOCK_BYTES;
pub(crate) use file::file_name;
use record::HEADER_BYTES;

/// How the log lays out its files.
#[derive(Clone, Copy, Debug)]
pub struct LogOptions {
    /// A number of this database, the same for its life and not guessable; keeps files of others out.
    pub database: u64,
    /// Length of a file in bytes; a longer record gets a file of its own.
    pub file_bytes: u64,
    /// Length of the first file after an opening. Each following is four times as long, up to `file_bytes`, so that a small
    /// database stays small.
    pub first_file_bytes: u64,
    /// How many bytes of released files are kept to be used again.
    pub spare_bytes_max: u64,
}

/// The shortest file: its header and a few records.
pub const FILE_BYTES_MIN: u64 = 8 << 10;

const _: () = assert!(FILE_BYTES_MIN > BLOCK_BYTES as u64 + 4 * HEADER_BYTES as u64);

impl LogOptions {
    /// 64 MiB files, beginning with 4 MiB, one full file kept as spare.
    #[must_use]
    pub fn new(database: u64) -> Self {
        Self { database, file_bytes: 64 << 20, first_file_bytes: 4 << 20, spare_bytes_max: 64 << 20 }
    }

    /// The same with lengths that are possible: at least [`FILE_BYTES_MIN`], whole blocks, the first not above the rest.
    fn possible(mut self) -> Self {
        self.file_bytes = self.file_bytes.max(FILE_BYTES_MIN).next_multiple_of(BLOCK_BYTES as u64);
        self.first_file_bytes =
            self.first_file_bytes.clamp(FILE_BYTES_MIN, self.file_bytes).next_multiple_of(BLOCK_BYTES as u64);
        self
    }
}

/// A file as `fuzzing` wants it: a right header before `bytes`, and, when `seal`, every record's checksums made right.
pub(crate) fn fuzz_file(database: u64, id: LogFileId, bytes: &[u8], seal: bool) -> Vec<u8> {
    let header = file::FileHeader::new(database, id, Seq::from_raw(1), Seq::default(), 0);
    let mut out = header.encode();
    out.extend_from_slice(bytes);
    if seal {
        record::fuzz_seal(&mut out, header.epoch, BLOCK_BYTES);
    }
    out
}

/// Whether a file of this name belongs to the log.
pub(crate) fn is_file_name(name: &str) -> bool {
    file::parse_name(name).is_some() || file::parse_spare_name(name).is_some()
}

/// A file of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogFileInfo {
    /// Its number.
    pub id: LogFileId,
    /// The first commit in it, or the one that would be.
    pub first_seq: Seq,
    /// The last commit in it; one below `first_seq` when there is none.
    pub last_seq: Seq,
    /// Its length on disk.
    pub bytes: u64,
    /// How much of that is written; of files that are kept for change streams alone, all of it.
    pub used_bytes: u64,
    /// No commit in it has an earlier wall time, none in files before it a later one.
    pub begun_ms: u64,
}

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod testing;
