//! What all requests share: settings, the database once it is open, metrics, keys, the memory of bodies.
//!
//! Knows no route. The database arrives late: until then `database()` answers 503 `Recovering`.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use quarrydb::{Database, Durability, Pending};
use tokio::sync::watch;

use crate::access::{AccessKeys, Failures};
use crate::config::Settings;
use crate::error::{ApiError, Result};
use crate::metrics::Metrics;
use quarrydb::budget::Budget;

/// How exact the clock of connections is.
const TICK: Duration = Duration::from_millis(50);

/// So many writes at once are a crowd, where each waits for a sync and where it waits for a write to the log file. Below it
/// a turn of the scheduler, which looks at the sockets too, costs more than the few commits that it would gather.
const CROWD: (usize, usize) = (16, 4);

/// The handle that is passed around.
pub(crate) type Shared = Arc<App>;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) settings: Settings,
    pub(crate) metrics: Metrics,
    pub(crate) budget: Arc<Budget>,
    pub(crate) failures: Failures,
    database: OnceLock<Database>,
    /// Whether keys are asked for at all; fixed at start, so that the open case takes no lock.
    keyed: bool,
    keys: RwLock<Option<Arc<AccessKeys>>>,
    stopping: AtomicBool,
    /// The same for who waits for it.
    ending: watch::Sender<bool>,
    next_request: AtomicU64,
    /// Writes that have not been answered yet, and how many are a crowd.
    writing: AtomicUsize,
    crowd: usize,
    started: Instant,
    /// Milliseconds since the start, as of the last tick: patience needs no more, and reading a clock costs.
    now_ms: AtomicU64,
    /// As of the last tick too.
    unix_seconds: AtomicU64,
}

impl App {
    /// A server that is not open yet.
    pub(crate) fn new(settings: Settings, keys: Option<AccessKeys>) -> Shared {
        let budget = Budget::new(settings.max_bodies_bytes);
        Arc::new(Self {
            budget,
            metrics: Metrics::default(),
            failures: Failures::default(),
            database: OnceLock::new(),
            keyed: keys.is_some(),
            keys: RwLock::new(keys.map(Arc::new)),
            stopping: AtomicBool::new(false),
            ending: watch::Sender::new(false),
            next_request: AtomicU64::new(1),
            writing: AtomicUsize::new(0),
            crowd: if settings.durability == Durability::Commit { CROWD.0 } else { CROWD.1 },
            started: Instant::now(),
            now_ms: AtomicU64::new(0),
            unix_seconds: AtomicU64::new(seconds_now()),
            settings,
        })
    }

    /// The database.
    ///
    /// # Errors
    /// 503 while it is being opened.
    #[inline]
    pub(crate) fn database(&self) -> Result<&Database> {
        self.database.get().ok_or_else(|| {
            ApiError::unavailable(
                "Recovering",
                "the database is being opened: the log is replayed, come again in a moment",
            )
        })
    }

    /// The database is open: requests are answered from now on.
    pub(crate) fn opened(&self, database: Database) {
        let _ = self.database.set(database);
    }

    /// The keys, where keys are asked for.
    pub(crate) fn keys(&self) -> Option<Arc<AccessKeys>> {
        if !self.keyed {
            return None;
        }
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the keys; a server that started without keys stays without.
    pub(crate) fn replace_keys(&self, keys: AccessKeys) {
        *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(keys));
    }

    /// The server is closing: connections are not kept alive.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
        self.ending.send_replace(true);
    }

    /// Becomes true when it closes: for answers that would last for ever.
    pub(crate) fn ending(&self) -> watch::Receiver<bool> {
        self.ending.subscribe()
    }

    /// Whether it is closing.
    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// An id for a request, for the log.
    #[inline]
    pub(crate) fn request_id(&self) -> String {
        format!("{:08x}-{:x}", process_salt(), self.next_request.fetch_add(1, Ordering::Relaxed))
    }

    /// The time of day in seconds since 1970, at most `TICK` ago.
    #[inline]
    pub(crate) fn unix_seconds(&self) -> u64 {
        self.unix_seconds.load(Ordering::Relaxed)
    }

    /// Waits until a write has reached the log as was asked.
    ///
    /// In a crowd, those whose requests are here get their turn first: whoever waits first leads the log for all who wait,
    /// and would lead it for himself alone, with all others behind the sync that he began (docs/decisions/0005).
    ///
    /// # Errors
    /// The log's.
    pub(crate) async fn landed<T>(&self, pending: Pending<T>) -> Result<T> {
        let writing = Writing::begin(&self.writing);
        if writing.crowd >= self.crowd {
            tokio::task::yield_now().await;
        }
        Ok(pending.await?)
    }

    /// Milliseconds since the server started, at most `TICK` ago.
    #[inline]
    pub(crate) fn now_ms(&self) -> u64 {
        self.now_ms.load(Ordering::Relaxed)
    }

    /// Keeps the clocks of [`App::now_ms`] and [`App::unix_seconds`]. Never ends.
    pub(crate) async fn tick(self: Arc<Self>) {
        loop {
            let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
            self.now_ms.store(now, Ordering::Relaxed);
            self.unix_seconds.store(seconds_now(), Ordering::Relaxed);
            tokio::time::sleep(TICK).await;
        }
    }
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs())
}

/// One write that waits for the log.
struct Writing<'a> {
    count: &'a AtomicUsize,
    /// How many they are with it.
    crowd: usize,
}

impl<'a> Writing<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        Self { count, crowd: count.fetch_add(1, Ordering::Relaxed) + 1 }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A number of this process that other starts are unlikely to have: it begins ids in the log.
pub(crate) fn process_salt() -> u32 {
    static SALT: OnceLock<u32> = OnceLock::new();
    *SALT.get_or_init(|| {
        use ring::rand::SecureRandom;
        let mut bytes = [0; 4];
        // Without randomness ids repeat across starts, nothing worse.
        let _ = ring::rand::SystemRandom::new().fill(&mut bytes);
        u32::from_le_bytes(bytes)
    })
}
