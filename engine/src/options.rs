//! What the owner of a database may set: units and defaults. Hard limits are in `limits.rs`.

use std::time::Duration;

use crate::limits::ROWS_MAX;

/// When a write is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on stable storage; concurrent writes share one sync.
    Commit,
    /// Once it is written to the log file, which is synced at least this often: a crash of the process loses nothing
    /// that was answered, a crash of the machine may lose this window.
    Interval(Duration),
}

/// Settings of a database.
#[derive(Clone, Debug)]
pub struct Options {
    /// When a write is answered. Default: [`Durability::Commit`].
    pub durability: Durability,
    /// A tail is sealed to a segment at this many bytes of documents. Default: 64 MiB.
    pub tail_bytes_max: usize,
    /// A tail is sealed to a segment at this many rows. Default: 2^17; at most `limits::ROWS_MAX`.
    pub tail_rows_max: u32,
    /// A compaction makes segments of at most this many rows. Default, and at most: `limits::ROWS_MAX`.
    pub segment_rows_max: u32,
    /// The size of one log file. Default: 64 MiB.
    pub log_file_bytes: u64,
    /// Log kept for tails that are not sealed yet; beyond it small tails are sealed too. Default: 256 MiB.
    pub log_bytes_max: u64,
    /// Decompressed row blocks kept in memory. Default: 5 % of 8 GiB, at most 128 MiB.
    pub cache_bytes: usize,
    /// Whether columns are made and asked. Off only in tests, which hold the answers with columns to those without.
    pub columns: bool,
    /// Seals and compacts in the background. Off only in tests that step the engine themselves with `Database::seal`.
    pub background: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durability: Durability::Commit,
            tail_bytes_max: 64 << 20,
            tail_rows_max: 1 << 17,
            segment_rows_max: ROWS_MAX,
            log_file_bytes: 64 << 20,
            log_bytes_max: 256 << 20,
            cache_bytes: 128 << 20,
            columns: true,
            background: true,
        }
    }
}

/// What one write may say for itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct WriteOptions {
    /// `writeConcern.j`: true waits for stable storage, false for the log file alone; none: as the database is set.
    pub journal: Option<bool>,
    /// When to give up.
    pub deadline: Option<Deadline>,
}

/// A moment on the database's monotonic clock, in nanoseconds, by which an operation ends with `TimedOut`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub(crate) u64);

impl Deadline {
    /// `after` from now.
    #[must_use]
    pub fn after(after: Duration) -> Self {
        let now = crate::io::clock::monotonic_nanos();
        Self(now.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// An error once it has passed.
    pub(crate) fn check(deadline: Option<Self>) -> crate::Result<()> {
        match deadline {
            Some(Self(at)) if crate::io::clock::monotonic_nanos() > at => Err(crate::Error::new(
                crate::ErrorKind::TimedOut,
                "the operation exceeded its time limit (maxTimeMS); nothing was changed by it",
            )),
            _ => Ok(()),
        }
    }
}
