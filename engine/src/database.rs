//! A database: a directory that one process holds open, with its collections.
//!
//! Opened by `recovery`, closed on drop. Handles are cheap clones of one shared core.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::batch::IdMaker;
use crate::catalog::check_names;
use crate::changes::{ChangeRequest, ChangeStream};
use crate::collection::{Collection, stats};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::io::{Clock, DiskStorage, Storage, SystemClock};
use crate::log::LogStats;
use crate::maintain::seal;
use crate::maintain::worker::Worker;
use crate::options::{Options, WriteOptions};
use crate::recovery::{self, Recovered};
use crate::txn::commit::{drop_collections, nothing_to_do};
use crate::txn::group::Pending;

/// An open database.
#[derive(Clone, Debug)]
pub struct Database {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    core: Arc<Core>,
    recovered: Recovered,
    worker: Worker,
}

/// A database as it stands in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseInfo {
    /// Its name.
    pub name: String,
    /// Collections in it.
    pub collections: u64,
    /// Documents in them.
    pub documents: u64,
    /// Bytes of their segment files.
    pub bytes_on_disk: u64,
}

/// A collection as it stands in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionInfo {
    /// Its name.
    pub name: String,
    /// Documents in it.
    pub documents: u64,
    /// Bytes of its segment files.
    pub bytes_on_disk: u64,
}

/// Whether writes are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WriterState {
    /// They are.
    Writable,
    /// The disk is full, or a seal cannot go on, with the reason.
    Stalled(String),
    /// A write or sync failed, with the reason: only a restart helps.
    Poisoned(String),
}

/// What a database has done since it was opened, and how it stands.
#[derive(Clone, Debug)]
pub struct EngineStats {
    /// The log's counters.
    pub log: LogStats,
    /// Bytes of all log files.
    pub log_bytes: u64,
    /// Tails sealed to segments.
    pub seals: u64,
    /// Bytes of the segments that were made.
    pub sealed_bytes: u64,
    /// Runs of segments that were made anew.
    pub compactions: u64,
    /// Bytes of the segment files that compactions made anew.
    pub compacted_bytes_read: u64,
    /// Bytes of the segment files that they made of them.
    pub compacted_bytes_written: u64,
    /// Rows that nobody could see any more and that they left out.
    pub compacted_rows_dropped: u64,
    /// Why the last compaction in the background failed, until one succeeds; nothing waits for it.
    pub compaction_trouble: Option<String>,
    /// Segment files now.
    pub segments: u64,
    /// Bytes of documents in memory that wait for their seal.
    pub unsealed_bytes: u64,
    /// The most that tails waiting for their seal may hold before writers wait.
    pub unsealed_bytes_max: u64,
    /// What queries hold in memory.
    pub query_bytes: u64,
    /// The most that they may, together.
    pub query_bytes_max: u64,
    /// What sorts hold on the disk, in temporary files.
    pub spilled_bytes: u64,
    /// Such files now.
    pub spill_files: u64,
    /// Bytes that were ever written to such files.
    pub spilled_bytes_total: u64,
    /// What unpacked blocks hold in memory.
    pub cache_bytes: u64,
    /// The most that they may.
    pub cache_bytes_max: u64,
    /// Documents that queries looked at.
    pub documents_examined: u64,
    /// Finds begun.
    pub cursors_opened: u64,
    /// Finds whose client went away.
    pub cursors_cancelled: u64,
    /// Snapshots open now.
    pub snapshots: u64,
    /// Interactive transactions open now.
    pub transactions: u64,
    /// Change streams open now.
    pub change_streams: u64,
    /// Bytes of log files kept for change streams alone.
    pub change_log_bytes: u64,
    /// Whether writes are taken.
    pub writer: WriterState,
}

impl Database {
    /// Opens the database in a directory, which is made where it does not exist, with default options.
    ///
    /// # Errors
    /// `Locked` where a process holds it; `Corrupt` with file and offset, nothing changed; `UnsupportedVersion`; `Io`.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, Options::default())
    }

    /// The same with options.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_with(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let storage = Arc::new(DiskStorage::open(path.as_ref())?);
        Self::open_on(storage, Arc::new(SystemClock::new()), options)
    }

    /// Opens the database on a storage of the caller's, such as one in memory.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_on(storage: Arc<dyn Storage>, clock: Arc<dyn Clock>, options: Options) -> Result<Self> {
        let (core, recovered) = recovery::open(storage, clock, options)?;
        let worker = Worker::start(&core);
        Ok(Self { inner: Arc::new(Inner { core, recovered, worker }) })
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.inner.core
    }

    pub(crate) fn id_maker(&self) -> IdMaker {
        IdMaker::new(Arc::clone(&self.inner.core.ids), Arc::clone(&self.inner.core.clock))
    }

    /// A collection by name; makes nothing.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub fn collection(&self, db: &str, name: &str) -> Result<Collection> {
        check_names(db, Some(name))?;
        Ok(Collection::new(Arc::clone(&self.inner.core), db, name))
    }

    /// All databases that have a collection, by name.
    #[must_use]
    pub fn databases(&self) -> Vec<DatabaseInfo> {
        let info = |name: String| {
            let all = self.infos(&name);
            DatabaseInfo {
                collections: all.len() as u64,
                documents: all.iter().map(|c| c.documents).sum(),
                bytes_on_disk: all.iter().map(|c| c.bytes_on_disk).sum(),
                name,
            }
        };
        self.inner.core.catalog.databases().into_iter().map(info).collect()
    }

    /// The collections of a database, by name; none where there is no such database.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub fn collections(&self, db: &str) -> Result<Vec<CollectionInfo>> {
        check_names(db, None)?;
        Ok(self.infos(db))
    }

    fn infos(&self, db: &str) -> Vec<CollectionInfo> {
        let core = &self.inner.core;
        let info = |state: Arc<crate::catalog::CollectionState>| {
            let stats = stats(core, &state);
            CollectionInfo { name: state.name.clone(), documents: stats.documents, bytes_on_disk: stats.bytes_on_disk }
        };
        core.catalog.of_database(db).into_iter().map(info).collect()
    }

    /// Ends all collections of a database as one commit; false where there is none.
    ///
    /// # Errors
    /// `InvalidNamespace`; when the log has no room.
    pub fn drop_database(&self, db: &str, write: &WriteOptions) -> Result<Pending<bool>> {
        check_names(db, None)?;
        let core = &self.inner.core;
        core.admit_write(write)?;
        let journaled = core.journaled(write);
        let mut order = core.order.hold();
        let collections = core.catalog.of_database(db);
        let seq = drop_collections(core, &mut order, &collections, Some(db), journaled)?;
        drop(order);
        core.sealing_changed();
        Ok(match seq {
            Some(seq) => Pending::new(true, &core.group, seq, journaled),
            None => nothing_to_do(core, false, journaled),
        })
    }

    /// What it has done, and how it stands.
    #[must_use]
    pub fn stats(&self) -> EngineStats {
        let core = &self.inner.core;
        let log = core.group.log();
        let needed = core.sealing.first_log_file.load(Ordering::Acquire);
        let versions: Vec<_> = core.catalog.all().iter().map(|c| c.version()).collect();
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        EngineStats {
            log: log.stats(),
            log_bytes: log.files().iter().map(|file| file.bytes).sum(),
            seals: count(&core.counters.seals),
            sealed_bytes: count(&core.counters.sealed_bytes),
            compactions: count(&core.counters.compactions),
            compacted_bytes_read: count(&core.counters.compacted_bytes_read),
            compacted_bytes_written: count(&core.counters.compacted_bytes_written),
            compacted_rows_dropped: count(&core.counters.compacted_rows_dropped),
            compaction_trouble: core.compaction.trouble(),
            segments: versions.iter().map(|v| v.segments.len() as u64).sum(),
            unsealed_bytes: versions.iter().flat_map(|v| v.tails()).map(|t| t.bytes() as u64).sum(),
            unsealed_bytes_max: core.options.unsealed_bytes_max as u64,
            query_bytes: core.queries.held() as u64,
            query_bytes_max: core.queries.max() as u64,
            spilled_bytes: core.spills.bytes(),
            spill_files: core.spills.open_files() as u64,
            spilled_bytes_total: core.spills.written(),
            cache_bytes: core.cache.bytes(),
            cache_bytes_max: core.options.cache_bytes as u64,
            documents_examined: count(&core.counters.documents_examined),
            cursors_opened: count(&core.counters.cursors_opened),
            cursors_cancelled: count(&core.counters.cursors_cancelled),
            snapshots: core.snapshots.count() as u64,
            transactions: core.transactions.open() as u64,
            change_streams: core.changes.open() as u64,
            change_log_bytes: log.files().iter().filter(|file| file.id.get() < needed).map(|file| file.bytes).sum(),
            writer: self.writer_state(),
        }
    }

    fn writer_state(&self) -> WriterState {
        let core = &self.inner.core;
        if let Some(error) = core.group.poisoned() {
            return WriterState::Poisoned(error.to_string());
        }
        if let Some(message) = core.group.log().refused() {
            return WriterState::Stalled(message);
        }
        match &*core.sealing.trouble.lock() {
            Some((_, message)) => WriterState::Stalled(message.clone()),
            None => WriterState::Writable,
        }
    }

    /// Watches what is committed: a stream of changes, from now on or from where another has left off.
    ///
    /// The first one ever opened has the database keep the log for such streams, within the bounds of its options, and its
    /// updates say what they change. Waits until what was written before is on stable storage.
    ///
    /// # Errors
    /// `InvalidNamespace`; `InvalidResumeToken` (260) for a token that is none, or of another database or other names;
    /// `HistoryLost` (286) where what follows the token is no longer kept; `OutOfDiskSpace`, `Poisoned`, `ShuttingDown`.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = quarrydb::Database::open(directory.path())?;
    /// use quarrydb::{ChangeRequest, InsertBatch, WriteOptions};
    ///
    /// let mut changes = db.watch(ChangeRequest::collection("shop", "orders"))?;
    /// let mut batch = InsertBatch::new(&db);
    /// batch.push_text(br#"{"_id": 1, "item": "lamp"}"#)?;
    /// db.collection("shop", "orders")?.insert_batch(batch, true, &WriteOptions::default())?.wait()?;
    ///
    /// let event = changes.next(None)?.expect("an insert");
    /// assert_eq!(event.document().get("operationType").and_then(|v| v.as_str()), Some("insert"));
    ///
    /// // Another time, another process: whatever was committed since.
    /// let request = ChangeRequest { since: Some(event.token), ..ChangeRequest::collection("shop", "orders") };
    /// let mut later = db.watch(request)?;
    /// assert!(later.next(Some(std::time::Duration::ZERO))?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    pub fn watch(&self, request: ChangeRequest) -> Result<ChangeStream> {
        ChangeStream::open(&self.inner.core, request)
    }

    /// What opening it has met: how many commits were replayed, whether an unsynced tail was cut off.
    #[must_use]
    pub fn recovered(&self) -> &Recovered {
        &self.inner.recovered
    }

    /// Seals every tail to segments now. Writes go on meanwhile.
    ///
    /// # Errors
    /// `OutOfDiskSpace`, `Io`; nothing is lost, the log keeps what is not sealed.
    pub fn seal(&self) -> Result<()> {
        seal::seal_all(&self.inner.core)
    }

    /// Deletes the documents whose time is up, as `expireAfterSeconds` of their indexes says; how many. Where the database
    /// has its background threads they do, every [`Options::expiry_interval`](crate::Options::expiry_interval).
    ///
    /// # Errors
    /// As a deletion; what was deleted before stays so.
    pub fn expire(&self) -> Result<u64> {
        crate::maintain::expiry::step(&self.inner.core)
    }

    /// Builds every index that is still to be built now. Where the database has its background threads they do.
    ///
    /// # Errors
    /// `OutOfDiskSpace`, `Io`; the same is tried again at the next call.
    pub fn build_indexes(&self) -> Result<()> {
        while crate::maintain::indexes::step(&self.inner.core)? {}
        Ok(())
    }

    /// Refuses further writes, makes everything durable and says so, so that the next opening can tell damage from a
    /// crash. Called again it does nothing.
    ///
    /// # Errors
    /// When the log cannot be synced.
    pub fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

impl Inner {
    fn close(&self) -> Result<()> {
        if self.core.closing.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        self.worker.stop(&self.core);
        self.core.transactions.end();
        self.core.changes.wake_all();
        if let Some(error) = self.core.group.poisoned() {
            return Err(error);
        }
        seal::close(&self.core)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Nobody is left to tell; what was acknowledged is in the log whatever happens here.
        let _: Result<(), Error> = self.close();
    }
}
