//! Who listens to what, and the newest commits, which most listeners want.
//!
//! Takes commits as they get their place (while somebody listens), and the news that more of them are durable; wakes the
//! streams whose scope they touch and no others, from one thread, however many sleep. A stream that sleeps has told all
//! up to some commit; `seen` is how far the hub has looked on its behalf, so that a stream that nothing concerns has come
//! as far without reading anything. No news is lost: a stream lies down before it looks whether there is more, and who
//! moves the watermarks looks for sleepers afterwards. Takes no lock that a commit waits for longer than a push.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::task::Waker;

use parking_lot::{Condvar, Mutex};

use crate::catalog::Catalog;
use crate::ids::Seq;
use crate::log::Payload;
use crate::mvcc::Watermarks;
use crate::txn::payload;

/// Commits kept in memory while somebody listens, in bytes. Their documents are mostly the tail's own.
const RECENT_BYTES_MAX: usize = 8 << 20;
/// How many.
const RECENT_COMMITS_MAX: usize = 1 << 16;

/// A commit as the log has it.
#[derive(Clone, Debug)]
pub(crate) struct Committed {
    /// Its place in the order.
    pub seq: Seq,
    /// Its wall time, in milliseconds since 1970.
    pub wall_ms: u64,
    /// What it says.
    pub payload: Payload,
}

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Everything.
    Server,
    /// A database.
    Database(String),
    /// A collection, whatever number it has.
    Collection(String, String),
}

impl Scope {
    /// Whether a collection belongs to it.
    pub(crate) fn covers(&self, db: &str, name: &str) -> bool {
        match self {
            Self::Server => true,
            Self::Database(own) => own == db,
            Self::Collection(own, coll) => own == db && coll == name,
        }
    }
}

/// A stream's place among the listeners.
#[derive(Debug, Default)]
pub(crate) struct Seat(Mutex<Rest>);

#[derive(Debug, Default)]
struct Rest {
    /// Set while it sleeps.
    waker: Option<Waker>,
    /// Up to here nothing concerned it, found while it slept.
    quiet: Seq,
}

/// Who listens, and what was committed of late.
#[derive(Debug)]
pub(crate) struct Hub {
    watermarks: Arc<Watermarks>,
    /// The database's number.
    database: u64,
    /// Whether a stream was ever opened: writers then say what they change.
    watched: AtomicBool,
    /// The commit before the first that streams may read.
    since: AtomicU64,
    /// Streams that are open.
    open: AtomicUsize,
    /// Streams that sleep.
    sleeping: AtomicUsize,
    recent: Mutex<Recent>,
    seats: Mutex<Seats>,
    /// Whether a thread wakes the sleepers; without one whoever commits does.
    has_thread: AtomicBool,
    rung: Mutex<bool>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Recent {
    /// One behind the other without a gap.
    commits: VecDeque<Committed>,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Seats {
    by_scope: HashMap<Scope, Vec<Arc<Seat>>>,
    /// All commits up to here have been looked at for those who sleep.
    seen: Seq,
}

impl Hub {
    /// Of a database by its number, whose streams may read what follows `since`.
    pub(crate) fn new(watermarks: Arc<Watermarks>, database: u64, since: Option<Seq>) -> Self {
        Self {
            watermarks,
            database,
            watched: AtomicBool::new(since.is_some()),
            since: AtomicU64::new(since.unwrap_or(Seq::MAX).get()),
            open: AtomicUsize::new(0),
            sleeping: AtomicUsize::new(0),
            recent: Mutex::default(),
            seats: Mutex::default(),
            has_thread: AtomicBool::new(false),
            rung: Mutex::new(false),
            bell: Condvar::new(),
        }
    }

    /// The database's number.
    pub(crate) fn database(&self) -> u64 {
        self.database
    }

    /// Whether writers are to say what they change.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Ordering::Acquire)
    }

    /// From now on they are.
    pub(crate) fn begin_watching(&self) {
        self.watched.store(true, Ordering::Release);
    }

    /// The manifest says that what follows `seq` may be read.
    pub(crate) fn watched_since(&self, seq: Seq) {
        self.since.store(seq.get(), Ordering::Release);
    }

    /// The commit before the first that streams may read; `Seq::MAX` where none was ever opened.
    pub(crate) fn since(&self) -> Seq {
        Seq::from_raw(self.since.load(Ordering::Acquire))
    }

    /// What may be told: durable, and visible to readers.
    pub(crate) fn limit(&self) -> Seq {
        self.watermarks.visible().min(self.watermarks.durable())
    }

    /// Streams that are open.
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether the newest commits are worth keeping.
    #[inline]
    pub(crate) fn is_listened_to(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }

    /// A commit has its place; called in the order of commits.
    pub(crate) fn committed(&self, seq: Seq, wall_ms: u64, payload: Payload) {
        let mut recent = self.recent.lock();
        if recent.commits.back().is_some_and(|last| last.seq.next() != seq) {
            recent.clear();
        }
        recent.bytes += payload.len();
        recent.commits.push_back(Committed { seq, wall_ms, payload });
        while recent.bytes > RECENT_BYTES_MAX || recent.commits.len() > RECENT_COMMITS_MAX {
            let Some(oldest) = recent.commits.pop_front() else { break };
            recent.bytes -= oldest.payload.len();
        }
    }

    /// A commit, where it is still at hand.
    pub(crate) fn recent(&self, seq: Seq) -> Option<Committed> {
        let recent = self.recent.lock();
        let first = recent.commits.front()?.seq;
        let at = seq.get().checked_sub(first.get())?;
        recent.commits.get(usize::try_from(at).ok()?).cloned()
    }

    /// A stream begins to listen.
    pub(crate) fn sit(&self, scope: &Scope) -> Arc<Seat> {
        let seat = Arc::new(Seat::default());
        let mut seats = self.seats.lock();
        seats.by_scope.entry(scope.clone()).or_default().push(Arc::clone(&seat));
        self.open.fetch_add(1, Ordering::Relaxed);
        seat
    }

    /// It listens no longer.
    pub(crate) fn leave(&self, scope: &Scope, seat: &Arc<Seat>) {
        let mut seats = self.seats.lock();
        if let Some(all) = seats.by_scope.get_mut(scope) {
            all.retain(|other| !Arc::ptr_eq(other, seat));
            if all.is_empty() {
                seats.by_scope.remove(scope);
            }
        }
        if seat.0.lock().waker.take().is_some() {
            self.sleeping.fetch_sub(1, Ordering::Relaxed);
        }
        if self.open.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.recent.lock().clear();
        }
    }

    /// A stream that has told all up to `told` lies down; false where there is more already.
    pub(crate) fn lie_down(&self, seat: &Seat, told: Seq, waker: &Waker) -> bool {
        let mut seats = self.seats.lock();
        let mut rest = seat.0.lock();
        rest.quiet = rest.quiet.max(told);
        if rest.waker.replace(waker.clone()).is_none() && self.sleeping.fetch_add(1, Ordering::Relaxed) == 0 {
            // Nobody slept: what was committed before concerns no one who does.
            seats.seen = seats.seen.max(told);
        }
        fence(Ordering::SeqCst);
        if self.limit() > told {
            rest.waker = None;
            self.sleeping.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        true
    }

    /// How far nothing concerned a stream, whether it still sleeps or was woken.
    pub(crate) fn quiet(&self, seat: &Seat) -> Seq {
        let seats = self.seats.lock();
        let rest = seat.0.lock();
        if rest.waker.is_some() { rest.quiet.max(seats.seen) } else { rest.quiet }
    }

    /// The watermarks have moved.
    #[inline]
    pub(crate) fn reached(&self) {
        fence(Ordering::SeqCst);
        if self.sleeping.load(Ordering::Relaxed) > 0 {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        if self.has_thread.load(Ordering::Acquire) {
            if !std::mem::replace(&mut *self.rung.lock(), true) {
                self.bell.notify_one();
            }
        } else {
            self.wake_all();
        }
    }

    /// Wakes everyone: nobody has looked whom the news concerns, or there will be no more.
    pub(crate) fn wake_all(&self) {
        let limit = self.limit();
        let mut seats = self.seats.lock();
        let scopes: Vec<_> = seats.by_scope.keys().cloned().collect();
        let woken = self.wake(&mut seats, &scopes, limit);
        drop(seats);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Takes the sleepers of `scopes` off, all having been looked at up to `limit`.
    fn wake(&self, seats: &mut Seats, scopes: &[Scope], limit: Seq) -> Vec<Waker> {
        let before = seats.seen;
        let mut woken = Vec::new();
        for seat in scopes.iter().filter_map(|scope| seats.by_scope.get(scope)).flatten() {
            let mut rest = seat.0.lock();
            if let Some(waker) = rest.waker.take() {
                rest.quiet = rest.quiet.max(before);
                woken.push(waker);
            }
        }
        self.sleeping.fetch_sub(woken.len(), Ordering::Relaxed);
        seats.seen = seats.seen.max(limit);
        woken
    }

    /// The life of the thread that wakes the sleepers.
    pub(crate) fn serve(&self, catalog: &Catalog, is_stopping: &dyn Fn() -> bool) {
        self.has_thread.store(true, Ordering::Release);
        while !is_stopping() {
            {
                let mut rung = self.rung.lock();
                if !*rung {
                    self.bell.wait(&mut rung);
                }
                *rung = false;
            }
            self.look(catalog);
        }
        self.has_thread.store(false, Ordering::Release);
        self.wake_all();
    }

    /// Ends `serve`, which asks whether it is to stop.
    pub(crate) fn stop(&self) {
        *self.rung.lock() = true;
        self.bell.notify_one();
    }

    /// Finds out whom the news concerns.
    fn look(&self, catalog: &Catalog) {
        let limit = self.limit();
        let mut seats = self.seats.lock();
        let Some(scopes) = self.touched(catalog, seats.seen, limit) else {
            drop(seats);
            return self.wake_all();
        };
        let woken = self.wake(&mut seats, &scopes, limit);
        drop(seats);
        woken.into_iter().for_each(Waker::wake);
    }

    /// The scopes that commits after `seen` up to `limit` concern; none where they are not at hand any more.
    fn touched(&self, catalog: &Catalog, seen: Seq, limit: Seq) -> Option<Vec<Scope>> {
        let mut collections = HashSet::new();
        let mut scopes = HashSet::new();
        let mut seq = seen.next();
        while seq <= limit {
            let commit = self.recent(seq)?;
            let bytes = commit.payload.bytes();
            for op in payload::read(bytes, "the log", 0).ok()? {
                match op {
                    payload::Op::DropDatabase { db } => {
                        scopes.insert(Scope::Database(String::from_utf8_lossy(db.of(bytes)).into_owned()));
                    }
                    _ => {
                        collections.insert(op.collection());
                    }
                }
            }
            seq = seq.next();
        }
        for id in collections {
            let (db, name) = catalog.names_of(id)?;
            scopes.insert(Scope::Database(db.clone()));
            scopes.insert(Scope::Collection(db, name));
        }
        if seen < limit {
            scopes.insert(Scope::Server);
        }
        Some(scopes.into_iter().collect())
    }
}

impl Recent {
    fn clear(&mut self) {
        self.commits.clear();
        self.bytes = 0;
    }
}
