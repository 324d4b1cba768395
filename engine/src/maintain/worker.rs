//! The background threads of a database: one seals, one keeps the log's time. The only file that spawns.
//!
//! The sealer sleeps until a tail is set aside. The ticker syncs the log in `interval` durability, makes the next log
//! file ahead of need, and notes in an idle log what is durable.
#![allow(clippy::disallowed_methods, reason = "this is the door to threads")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;

use super::seal;
use crate::core::Core;
use crate::options::Durability;
use crate::txn::group::Pending;

/// How often the ticker looks.
const TICK: Duration = Duration::from_millis(20);
/// How long the sealer waits before it tries again after a failure, or looks around unasked.
const RETRY: Duration = Duration::from_millis(250);
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
            type Body = fn(&Core, &AtomicBool);
            let bodies: [(&str, Body); 2] = [("quarry-seal", sealer), ("quarry-tick", ticker)];
            for (name, body) in bodies {
                let (core, stopping) = (Arc::clone(core), Arc::clone(&stopping));
                let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || body(&core, &stopping));
                // Without them the engine still works; seals then wait for the next opening.
                threads.extend(thread.ok());
            }
        }
        Self { threads: Mutex::new(threads), stopping }
    }

    /// Ends them and waits until they have.
    pub(crate) fn stop(&self, core: &Core) {
        self.stopping.store(true, Ordering::Release);
        core.sealing_changed();
        for thread in self.threads.lock().drain(..) {
            let _ = thread.join();
        }
    }
}

fn sealer(core: &Core, stopping: &AtomicBool) {
    while !stopping.load(Ordering::Acquire) {
        let more = match seal::step(core) {
            Ok(more) => {
                *core.sealing.trouble.lock() = None;
                more
            }
            Err(error) => {
                *core.sealing.trouble.lock() = Some((error.kind(), error.to_string()));
                false
            }
        };
        if !more {
            let mut lock = core.sealing.lock.lock();
            if !stopping.load(Ordering::Acquire) {
                core.sealing.changed.wait_for(&mut lock, RETRY);
            }
        }
    }
}

fn ticker(core: &Core, stopping: &AtomicBool) {
    let interval = match core.options.durability {
        Durability::Interval(interval) => Some(interval),
        Durability::Commit => None,
    };
    let tick = interval.map_or(TICK, |interval| interval.clamp(Duration::from_millis(1), TICK));
    let mut since_sync = Duration::ZERO;
    let mut idle = 0;
    let mut last = core.watermarks().applied();
    while !stopping.load(Ordering::Acquire) {
        std::thread::sleep(tick);
        if core.group.poisoned().is_some() {
            continue;
        }
        since_sync += tick;
        if interval.is_some_and(|interval| since_sync >= interval) {
            since_sync = Duration::ZERO;
            let applied = core.watermarks().applied();
            if applied > core.watermarks().durable() {
                // A failure poisons the group, which every writer is told.
                let _ = Pending::new((), &core.group, applied, true).wait();
            }
        }
        if core.group.log().wants_next() {
            // Not having it ready costs time only; a full disk is told to the writer that needs the room.
            let _ = core.group.log().prepare_next();
        }
        let applied = core.watermarks().applied();
        idle = if applied == last { idle + 1 } else { 0 };
        last = applied;
        if idle == 1
            && (core.watermarks().visible() < applied || interval.is_none() && core.watermarks().durable() < applied)
        {
            // Its writer went away before it led the log, or asked for no sync: nobody else may come to do it.
            let _ = Pending::new((), &core.group, applied, interval.is_none()).wait();
        }
        if idle == IDLE_TICKS {
            // Its failure poisons the log, which the next writer is told.
            let _ = core.group.log().mark_durable_if_idle();
        }
    }
}
