//! What all parts of an open database share: storage, clock, catalog, the committing order, the log's group.
//!
//! Made by `recovery`, held by `Database` and by every handle; `txn`, `write`, `exec` and `maintain` work on it. It has
//! no behaviour of its own beyond a few questions that all of them ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::budget::Budget;
use crate::catalog::Catalog;
use crate::changes::hub::Hub;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Clock, Storage};
use crate::maintain::pace::Compacting;
use crate::manifest::{Manifest, ManifestStore};
use crate::mvcc::{Snapshot, Snapshots, Watermarks};
use crate::object_id::ObjectIds;
use crate::options::{Deadline, Durability, Options, WriteOptions};
use crate::segment::BlockCache;
use crate::spill::SpillRoom;
use crate::txn::claims::Claims;
use crate::txn::commit::{CommitOrder, check_not_held};
use crate::txn::group::Group;
use crate::txn::registry::Transactions;

/// What all parts of an open database share.
#[derive(Debug)]
pub(crate) struct Core {
    pub options: Options,
    pub storage: Arc<dyn Storage>,
    pub clock: Arc<dyn Clock>,
    pub catalog: Catalog,
    pub order: CommitOrder,
    pub group: Arc<Group>,
    pub snapshots: Arc<Snapshots>,
    /// What open transactions have written first.
    pub claims: Claims,
    pub transactions: Transactions,
    pub cache: Arc<BlockCache>,
    /// What queries hold.
    pub queries: Arc<Budget>,
    /// Where sorts go that are larger than memory.
    pub spills: Arc<SpillRoom>,
    pub ids: Arc<ObjectIds>,
    /// Changed by seals, by the end of a compaction and by the clean close, one at a time.
    pub manifest: Mutex<(ManifestStore, Manifest)>,
    pub counters: Counters,
    pub sealing: Sealing,
    pub compaction: Compacting,
    pub indexing: Indexing,
    /// Who watches what is committed.
    pub changes: Arc<Hub>,
    pub closing: AtomicBool,
}

/// Who builds indexes, and who waits for them.
#[derive(Debug, Default)]
pub(crate) struct Indexing {
    /// Held while one is built.
    pub building: Mutex<()>,
    /// Told when one is declared, built or dropped, and at the end.
    pub changed: Condvar,
    pub lock: Mutex<()>,
}

/// What has happened, for `/metrics`.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub documents_examined: AtomicU64,
    pub cursors_opened: AtomicU64,
    pub cursors_cancelled: AtomicU64,
    pub seals: AtomicU64,
    pub sealed_bytes: AtomicU64,
    pub compactions: AtomicU64,
    pub compacted_bytes_read: AtomicU64,
    pub compacted_bytes_written: AtomicU64,
    pub compacted_rows_dropped: AtomicU64,
}

/// How far sealing lags, and whether it can go on.
#[derive(Debug, Default)]
pub(crate) struct Sealing {
    /// Bytes of documents in tails that wait for their seal.
    pub waiting_bytes: AtomicUsize,
    /// What the last attempt met, until one succeeds.
    pub trouble: Mutex<Option<(ErrorKind, String)>>,
    /// Told when a tail is frozen, when one is sealed, and at the end.
    pub changed: Condvar,
    pub lock: Mutex<()>,
    /// The first log file that the database needs itself, as its manifest says.
    pub first_log_file: AtomicU64,
    /// The first that is kept for change streams.
    pub kept_log_file: AtomicU64,
}

impl Sealing {
    pub(crate) fn new(manifest: &Manifest) -> Self {
        let sealing = Self::default();
        sealing.note(manifest);
        sealing
    }

    /// A manifest stands that says so.
    pub(crate) fn note(&self, manifest: &Manifest) {
        self.first_log_file.store(manifest.first_log_file.get(), Ordering::Release);
        self.kept_log_file.store(manifest.kept_log_file.get(), Ordering::Release);
    }
}

impl Core {
    pub(crate) fn watermarks(&self) -> &Watermarks {
        self.group.watermarks()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        self.snapshots.take(self.watermarks())
    }

    /// Whether a write with these options waits for stable storage.
    pub(crate) fn journaled(&self, options: &WriteOptions) -> bool {
        options.journal.unwrap_or(self.options.durability == Durability::Commit)
    }

    /// Whether a write may begin; waits where sealing lags behind, until the deadline of `write`.
    pub(crate) fn admit_write(&self, write: &WriteOptions) -> Result<()> {
        check_not_held()?;
        loop {
            if self.closing.load(Ordering::Acquire) {
                return Err(closing());
            }
            if let Some(error) = self.group.poisoned() {
                return Err(error);
            }
            // Where nobody seals in the background the caller does, and must not be kept from it.
            if self.sealing.waiting_bytes.load(Ordering::Relaxed) <= self.options.unsealed_bytes_max
                || !self.options.background
            {
                return Ok(());
            }
            Deadline::check(write.deadline)?;
            if let Some((kind, message)) = &*self.sealing.trouble.lock() {
                return Err(Error::new(*kind, format!("writes wait for a seal that fails: {message}")));
            }
            let mut lock = self.sealing.lock.lock();
            self.sealing.changed.wait_for(&mut lock, std::time::Duration::from_millis(20));
        }
    }

    /// Ends snapshots and transactions that are too old; how many.
    pub(crate) fn end_old(&self) -> u64 {
        let most = u64::try_from(self.options.snapshot_age_max.as_nanos()).unwrap_or(u64::MAX);
        let ended = self.snapshots.end_old(self.watermarks(), self.clock.monotonic_nanos(), most);
        ended + self.transactions.sweep(self)
    }

    /// Tells whoever builds or waits for indexes to look again.
    pub(crate) fn indexing_changed(&self) {
        let _lock = self.indexing.lock.lock();
        self.indexing.changed.notify_all();
    }

    /// Tells whoever waits for sealing to look again.
    pub(crate) fn sealing_changed(&self) {
        let _lock = self.sealing.lock.lock();
        self.sealing.changed.notify_all();
    }
}

pub(crate) fn closing() -> Error {
    Error::new(ErrorKind::ShuttingDown, "the database is closing: send the request again to the next server")
}
