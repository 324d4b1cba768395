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
    /// Tails that wait for their seal, over the whole database, in bytes: beyond it writers wait. Default: 384 MiB.
    pub unsealed_bytes_max: usize,
    /// What all queries together may hold in memory, beyond it they are refused as `Busy`: keys of sorts, values of
    /// `distinct`, new documents of an update of many, pieces of answers on their way. Default: 512 MiB.
    pub query_bytes_max: usize,
    /// Decompressed row blocks kept in memory. Default: 128 MiB.
    pub cache_bytes: usize,
    /// How often documents are looked for whose `expireAfterSeconds` has passed. Default: 60 s.
    pub expiry_interval: Duration,
    /// A snapshot that has not been the newest for so long is ended, and whoever still reads at it gets an error: what
    /// ended after it is kept meanwhile. Default: 1 hour.
    pub snapshot_age_max: Duration,
    /// Interactive transactions that are open at once; beyond it beginning one is refused as `Busy`. Default: 1024.
    pub transactions_max: usize,
    /// An interactive transaction that is asked for nothing for so long is aborted. Default: 60 s.
    pub transaction_idle_max: Duration,
    /// An interactive transaction is aborted after so long, whatever it does. Default: 5 minutes.
    pub transaction_time_max: Duration,
    /// Log kept for change streams beyond what the database needs itself, in bytes; none before one was opened. Default:
    /// 1 GiB.
    pub change_bytes_max: u64,
    /// How long it is kept. Default: 24 hours.
    pub change_age_max: Duration,
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
            unsealed_bytes_max: 384 << 20,
            query_bytes_max: 512 << 20,
            cache_bytes: 128 << 20,
            expiry_interval: Duration::from_secs(60),
            snapshot_age_max: Duration::from_secs(3600),
            transactions_max: 1024,
            transaction_idle_max: Duration::from_secs(60),
            transaction_time_max: Duration::from_secs(300),
            change_bytes_max: 1 << 30,
            change_age_max: Duration::from_secs(24 * 3600),
            columns: true,
            background: true,
        }
    }
}

impl Options {
    /// The defaults for a process that may have `bytes` of memory: a tenth for documents that are not in segments yet,
    /// a tenth for queries, a twentieth for unpacked blocks, none above its default. The rest is the page cache's.
    #[must_use]
    pub fn for_memory(bytes: u64) -> Self {
        let default = Self::default();
        let part = |part: u64, least: usize, most: usize| {
            usize::try_from(bytes / part).unwrap_or(usize::MAX).clamp(least, most)
        };
        let tails = part(10, 16 << 20, default.unsealed_bytes_max);
        // What tails hold stands in the log too, so a bound on the log bounds the tails of many collections.
        let log_bytes_max = default.log_bytes_max.min(tails as u64);
        Self {
            unsealed_bytes_max: tails,
            tail_bytes_max: default.tail_bytes_max.min(tails / 4),
            log_bytes_max,
            log_file_bytes: default.log_file_bytes.min(log_bytes_max / 4),
            query_bytes_max: part(10, 16 << 20, usize::MAX),
            cache_bytes: part(20, 1 << 20, default.cache_bytes),
            ..default
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

    /// The moment `after` this one.
    #[must_use]
    pub fn plus(self, after: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(after.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// Whether it has passed.
    #[must_use]
    pub fn is_over(self) -> bool {
        crate::io::clock::monotonic_nanos() > self.0
    }

    /// An error once it has passed.
    pub(crate) fn check(deadline: Option<Self>) -> crate::Result<()> {
        match deadline {
            Some(deadline) if deadline.is_over() => Err(crate::Error::new(
                crate::ErrorKind::TimedOut,
                "the operation exceeded its time limit (maxTimeMS); nothing was changed by it",
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_follow_the_memory_and_stay_within_their_defaults() {
        let mib = |bytes: usize| bytes >> 20;
        let large = Options::for_memory(64 << 30);
        assert_eq!([mib(large.unsealed_bytes_max), mib(large.tail_bytes_max), mib(large.cache_bytes)], [384, 64, 128]);
        assert_eq!((large.log_bytes_max >> 20, large.log_file_bytes >> 20), (256, 64));
        assert_eq!(mib(large.query_bytes_max), 6553);
        let small = Options::for_memory(1 << 30);
        assert_eq!([mib(small.unsealed_bytes_max), mib(small.tail_bytes_max), mib(small.cache_bytes)], [102, 25, 51]);
        assert_eq!((small.log_bytes_max >> 20, small.log_file_bytes >> 20), (102, 25));
        for bytes in [0, 1, 100 << 20, 1 << 30, u64::MAX] {
            let options = Options::for_memory(bytes);
            let tails = options.unsealed_bytes_max as u64;
            assert!(tails <= (bytes / 10).max(16 << 20) && options.tail_bytes_max >= 4 << 20);
            assert!(options.cache_bytes as u64 <= (bytes / 20).max(1 << 20));
            assert!(options.log_file_bytes >= 4 << 20);
        }
    }
}
