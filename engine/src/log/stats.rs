//! What the log has done so far, in numbers: for the server's metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bounds of the histogram: a sync that covered n records counts in bucket log2(n).
const BUCKETS: usize = 16;

/// Counters since the log was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogStats {
    /// Commits appended.
    pub records: u64,
    /// Bytes written, with headers.
    pub bytes_written: u64,
    /// Syncs of files.
    pub syncs: u64,
    /// Files begun, the first included.
    pub files: u64,
    /// How many syncs covered 1, 2-3, 4-7, ... commits.
    pub records_per_sync: [u64; BUCKETS],
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    records: AtomicU64,
    bytes_written: AtomicU64,
    syncs: AtomicU64,
    files: AtomicU64,
    records_per_sync: [AtomicU64; BUCKETS],
}

impl Counters {
    pub(super) fn wrote(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes_written.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn synced(&self, records: u64) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        if let Some(bucket) = records.checked_ilog2() {
            let bucket = (bucket as usize).min(BUCKETS - 1);
            self.records_per_sync[bucket].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn began_file(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> LogStats {
        LogStats {
            records: self.records.load(Ordering::Relaxed),
            bytes_written: self.bytes_written.load(Ordering::Relaxed),
            syncs: self.syncs.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            records_per_sync: std::array::from_fn(|i| self.records_per_sync[i].load(Ordering::Relaxed)),
        }
    }
}
