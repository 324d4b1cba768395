//! The background threads of a database: one seals, one compacts, one keeps the log's time, one has its next file ready,
//! one builds indexes, one wakes change streams. The only file that spawns.
//!
//! The sealer sleeps until a tail is set aside. The ticker syncs what nobody waits for, and notes in an idle log what is
//! durable.
#![allow(clippy::disallowed_methods, reason = "this is the door to threads")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::{compact, expiry, indexes, seal};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::ErrorKind;
use crate::indexes::IndexState;
use crate::io::clock::monotonic_nanos;
use crate::options::Durability;

/// How often the ticker looks.
const TICK: Duration = Duration::from_millis(20);
/// How often the next log file is looked after while commits come in.
const BUSY_TICK: Duration = Duration::from_millis(2);
/// The log is also synced when this much waits for it, so that a file that is full is synced quickly.
const UNSYNCED_BYTES_MAX: u64 = 8 << 20;
/// In `commit` durability, how soon a write that did not wait for stable storage gets there.
const UNJOURNALED_SYNC: Duration = Duration::from_millis(100);
/// How long a thread waits before it tries again after a failure, and the sealer before it looks around unasked.
const RETRY: Duration = Duration::from_millis(250);
/// How often the compactor looks around, and how long it waits after a failure: it may be a full disk.
const LOOK_AROUND: Duration = Duration::from_millis(500);
/// The same while something is written or sealed: what there is to do after it begins at once.
const LOOK_SOON: Duration = Duration::from_millis(200);
/// What is much to be written between two such looks.
const BUSY_BYTES: u64 = 2 << 20;
/// Segments of one collection from which on a compaction waits for nothing.
const SEGMENTS_MANY: usize = 64;
/// How far the compactor stands back behind other threads.
const COMPACTOR_NICE: i32 = 10;
const RETRY_COMPACTION: Duration = Duration::from_secs(30);
/// Ticks without a write after which the log notes what is durable.
const IDLE_TICKS: u32 = 10;

/// The background threads of a database.
#[derive(Debug)]
pub(crate) struct Worker {
    threads: Mutex<Vec<JoinHandle<()>>>,
    stopping: Arc<AtomicBool>,
}

impl Worker {
    /// Starts them, unless the options leave that to the caller.
    pub(crate) fn start(core: &Arc<Core>) -> Self {
        let stopping = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        if core.options.background {
            // The pool's threads take after the one that asks for it first: that must not be the compactor, which stands back.
            let _ = rayon::current_num_threads();
            type Body = fn(&Arc<Core>, &AtomicBool);
            let bodies: [(&str, Body); 6] = [
                ("quarry-seal", sealer),
                ("quarry-tick", ticker),
                ("quarry-log", preparer),
                ("quarry-compact", compactor),
                ("quarry-index", indexer),
                ("quarry-changes", announcer),
            ];
            for (name, body) in bodies {
                let (of_thread, stopping) = (Arc::clone(core), Arc::clone(&stopping));
                let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                    let _guard = TellOnUnwind(&of_thread, name);
                    body(&of_thread, &stopping);
                });
                // Without them the engine works on; where writers would wait for a seal they are told the reason.
                match thread {
                    Ok(thread) => threads.push(thread),
                    Err(error) => trouble(core, ErrorKind::Io, format!("the thread {name} cannot be started: {error}")),
                }
            }
        }
        Self { threads: Mutex::new(threads), stopping }
    }

    /// Ends them and waits until they have.
    pub(crate) fn stop(&self, core: &Core) {
        self.stopping.store(true, Ordering::Release);
        core.sealing_changed();
        core.compaction.wake();
        core.indexing_changed();
        core.changes.stop();
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
    }
}

fn trouble(core: &Core, kind: ErrorKind, message: String) {
    *core.sealing.trouble.lock() = Some((kind, message));
}

/// Where a thread ends by a fault of ours, says so: nobody must wait for what it will not do.
struct TellOnUnwind<'a>(&'a Core, &'static str);

impl Drop for TellOnUnwind<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            trouble(self.0, ErrorKind::Internal, format!("the thread {} has ended by a fault: start again", self.1));
        }
    }
}

fn sealer(core: &Arc<Core>, stopping: &AtomicBool) {
    while !stopping.load(Ordering::Acquire) {
        let mut failed = false;
        let more = match seal::step(core) {
            Ok(more) => {
                *core.sealing.trouble.lock() = None;
                more
            }
            Err(error) => {
                trouble(core, error.kind(), error.to_string());
                failed = true;
                false
            }
        };
        if !more {
            let mut lock = core.sealing.lock.lock();
            // Looked at under the lock that the news comes under: none is missed.
            let news = !failed && core.catalog.all().iter().any(|c| !c.version().frozen.is_empty());
            if !news && !stopping.load(Ordering::Acquire) {
                core.sealing.changed.wait_for(&mut lock, RETRY);
            }
        }
    }
}

/// Makes segments anew where that is worth it. Nobody waits for it, so its failure is only told to who asks.
fn compactor(core: &Arc<Core>, stopping: &AtomicBool) {
    // Where the system refuses, it competes with writers as an equal.
    let _ = rustix::process::nice(COMPACTOR_NICE);
    let mut written = core.group.log().stats().bytes_written;
    while !stopping.load(Ordering::Acquire) {
        // While much is written or waits for its seal, writers and seals have the cores, and the memory in which columns
        // are made, unless readers would meet too many segments.
        let before = std::mem::replace(&mut written, core.group.log().stats().bytes_written);
        let many = core.catalog.all().iter().any(|c| c.version().segments.len() > SEGMENTS_MANY);
        let sealing = core.sealing.waiting_bytes.load(Ordering::Relaxed) > 0;
        let look = if sealing || written > before { LOOK_SOON } else { LOOK_AROUND };
        if (sealing || written.saturating_sub(before) > BUSY_BYTES) && !many {
            core.compaction.rest(look, || stopping.load(Ordering::Acquire));
            continue;
        }
        let result = compact::unasked(core);
        let rest = match &result {
            Ok(true) => Duration::ZERO,
            Ok(false) => look,
            Err(_) => RETRY_COMPACTION,
        };
        core.compaction.note(result.err());
        if !rest.is_zero() {
            core.compaction.rest(rest, || stopping.load(Ordering::Acquire));
        }
    }
}

/// Builds what is declared, now and then deletes what has expired, and ends snapshots and transactions that are too old.
fn indexer(core: &Arc<Core>, stopping: &AtomicBool) {
    let interval = u64::try_from(core.options.expiry_interval.as_nanos()).unwrap_or(u64::MAX);
    let mut looked = monotonic_nanos();
    while !stopping.load(Ordering::Acquire) {
        core.end_old();
        if monotonic_nanos().saturating_sub(looked) >= interval {
            // What fails, as on a full disk, is tried again at the next look.
            let _ = expiry::step(core);
            looked = monotonic_nanos();
        }
        let (more, failed) = match indexes::step(core) {
            Ok(more) => (more, false),
            // Whoever waits for the index is told; it is tried again.
            Err(_) => (false, true),
        };
        if !more {
            let mut lock = core.indexing.lock.lock();
            let is_building = |c: &Arc<CollectionState>| c.indexes().iter().any(|i| i.state() == IndexState::Building);
            // Looked at under the lock that the news comes under: none is missed.
            let news = !failed && core.catalog.all().iter().any(is_building);
            if !news && !stopping.load(Ordering::Acquire) {
                core.indexing.changed.wait_for(&mut lock, RETRY);
            }
        }
    }
}

/// Tells change streams what concerns them.
fn announcer(core: &Arc<Core>, stopping: &AtomicBool) {
    core.changes.serve(&core.catalog, &|| stopping.load(Ordering::Acquire));
}

fn ticker(core: &Arc<Core>, stopping: &AtomicBool) {
    let interval = match core.options.durability {
        Durability::Interval(interval) => interval,
        // A write may ask not to wait for stable storage; it gets there soon all the same.
        Durability::Commit => UNJOURNALED_SYNC,
    };
    let tick = interval.clamp(Duration::from_millis(1), TICK);
    let mut since_sync = Duration::ZERO;
    let mut synced_bytes = 0;
    let mut idle = 0;
    let mut last = core.watermarks().applied();
    while !stopping.load(Ordering::Acquire) {
        std::thread::sleep(tick);
        if core.group.poisoned().is_some() {
            continue;
        }
        since_sync += tick;
        let bytes = core.group.log().stats().bytes_written;
        if since_sync >= interval || bytes - synced_bytes > UNSYNCED_BYTES_MAX {
            since_sync = Duration::ZERO;
            synced_bytes = bytes;
            if core.watermarks().applied() > core.watermarks().durable() {
                // A failure poisons the group, which every writer is told.
                let _ = core.group.reach_aside(true);
            }
        }
        let applied = core.watermarks().applied();
        idle = if applied == last { (idle + 1).min(IDLE_TICKS) } else { 0 };
        last = applied;
        if idle == 1 && core.watermarks().visible() < applied {
            // Its writer went away before it led the log: nobody else may come to do it.
            let _ = core.group.reach_aside(core.options.durability == Durability::Commit);
        }
        if idle >= IDLE_TICKS {
            // Its failure poisons the log, which the next writer is told.
            let _ = core.group.log().mark_durable_if_idle();
            // What it would have said is a help after damage alone.
            let _ = seal::note_durable(core);
        }
    }
}

/// Has the next log file ready before the current one is full: filling one takes as long as many commits.
fn preparer(core: &Arc<Core>, stopping: &AtomicBool) {
    let mut last = core.watermarks().applied();
    let mut files = core.group.log().stats().files;
    while !stopping.load(Ordering::Acquire) {
        let applied = core.watermarks().applied();
        std::thread::sleep(if applied == last { TICK } else { BUSY_TICK });
        last = applied;
        if core.group.log().wants_next() {
            // Not having it ready costs time only; a full disk is told to the writer that needs the room.
            if core.group.log().prepare_next().is_err() {
                std::thread::sleep(RETRY);
            }
        }
        let begun = core.group.log().stats().files;
        if begun != files {
            files = begun;
            // A new file has begun, so the one before it is durable. Said as a help after damage alone.
            let _ = seal::note_durable(core);
        }
    }
}
