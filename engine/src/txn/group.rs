//! Waiting for the log, together: whoever waits first writes and syncs for all who wait.
//!
//! Takes the log and the watermarks; gives [`Pending`], a value that may be handed on once its commit has reached what
//! was asked for. It is a future and can be waited for on a plain thread: the poll that finds nobody leading leads,
//! on its own thread, because waking another costs as much as a short request. No lost wake: a waiter registers before
//! it tries to lead, and a leader looks at the waiters after it has stopped leading.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use parking_lot::Mutex;

use crate::changes::hub::Hub;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Seq;
use crate::log::Log;
use crate::mvcc::Watermarks;

/// What a waiter waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Need {
    /// Its commit must be visible.
    seq: Seq,
    /// It must be on stable storage too.
    durable: bool,
}

#[derive(Debug)]
struct Waiter {
    id: u64,
    need: Need,
    waker: Waker,
}

/// Waiting for the log.
#[derive(Debug)]
pub(crate) struct Group {
    log: Log,
    watermarks: Arc<Watermarks>,
    changes: Arc<Hub>,
    leading: AtomicBool,
    waiters: Mutex<Vec<Waiter>>,
    next_id: AtomicU64,
    poisoned: Mutex<Option<String>>,
}

impl Group {
    /// A group over `log`.
    #[must_use]
    pub(crate) fn new(log: Log, watermarks: Arc<Watermarks>, changes: Arc<Hub>) -> Self {
        Self {
            log,
            watermarks,
            changes,
            leading: AtomicBool::new(false),
            waiters: Mutex::default(),
            next_id: AtomicU64::new(0),
            poisoned: Mutex::new(None),
        }
    }

    /// The log, for the committer to append to.
    #[must_use]
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    /// How far it has got.
    #[must_use]
    pub(crate) fn watermarks(&self) -> &Arc<Watermarks> {
        &self.watermarks
    }

    /// Why no write can succeed any more, where one failed on the way to the disk.
    #[must_use]
    pub(crate) fn poisoned(&self) -> Option<Error> {
        let poisoned = self.poisoned.lock().as_ref().map(|why| {
            Error::new(ErrorKind::Poisoned, format!("an earlier write failed ({why}): restart to recover; reads go on"))
        });
        // Making room can break the log too, and then nobody may have led since.
        poisoned.or_else(|| self.log.check_poison().err())
    }

    fn done(&self, need: Need) -> bool {
        self.watermarks.visible() >= need.seq && (!need.durable || self.watermarks.durable() >= need.seq)
    }

    /// One round, by the thread that holds `leading`; gives it up.
    fn lead(&self, sync: bool) -> Result<()> {
        let result = self.advance(sync);
        self.leading.store(false, Ordering::Release);
        self.wake(result.is_err());
        result
    }

    /// Writes what is queued, and syncs it when asked; a failure ends all writing.
    fn advance(&self, sync: bool) -> Result<()> {
        if let Some(error) = self.poisoned() {
            return Err(error);
        }
        let reached = if sync { self.log.sync().map(|d| (d, Some(d))) } else { self.log.write().map(|w| (w, None)) };
        match reached {
            Ok((written, durable)) => {
                self.watermarks.reached(written, durable);
                self.changes.reached();
                Ok(())
            }
            Err(error) => {
                self.poisoned.lock().get_or_insert_with(|| error.to_string());
                Err(error)
            }
        }
    }

    /// Writes what is queued, and with `sync` makes it durable, for a background thread: without leading, so that writes
    /// that do not wait for stable storage go on meanwhile.
    ///
    /// # Errors
    /// `Poisoned`, from the first failure on.
    pub(crate) fn reach_aside(&self, sync: bool) -> Result<()> {
        let result = self.advance(sync);
        self.wake(result.is_err());
        result
    }

    /// Wakes those who are served, and one more to lead the rest; all of them when nothing will serve them.
    fn wake(&self, all: bool) {
        let mut waiters = self.waiters.lock();
        let served = |w: &mut Waiter| all || self.done(w.need);
        let woken: Vec<Waker> = waiters.extract_if(.., served).map(|w| w.waker).collect();
        let next = waiters.first().map(|w| w.waker.clone());
        drop(waiters);
        next.into_iter().chain(woken).for_each(Waker::wake);
    }

    fn poll(&self, need: Need, id: &mut Option<u64>, waker: &Waker) -> Poll<Result<()>> {
        if self.done(need) {
            return Poll::Ready(Ok(()));
        }
        // Who needs the log file alone writes on the spot: that takes less than waking somebody, and does not stand
        // behind a sync under way.
        if !need.durable && !self.watermarks.is_holding() {
            if let Err(error) = self.advance(false) {
                self.wake(true);
                return Poll::Ready(Err(error));
            }
            if self.done(need) {
                return Poll::Ready(Ok(()));
            }
        }
        // Nobody leads and nobody waits: no need to register to lead at once.
        if id.is_none() && self.leading.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            let led = self.lead(need.durable || self.someone_needs_sync());
            return match led {
                Ok(()) if self.done(need) => Poll::Ready(Ok(())),
                Ok(()) => {
                    self.register(need, id, waker);
                    self.poll_registered(need, waker)
                }
                Err(error) => Poll::Ready(Err(error)),
            };
        }
        self.register(need, id, waker);
        self.poll_registered(need, waker)
    }

    fn poll_registered(&self, need: Need, waker: &Waker) -> Poll<Result<()>> {
        loop {
            if self.done(need) {
                return Poll::Ready(Ok(()));
            }
            if let Some(error) = self.poisoned() {
                return Poll::Ready(Err(error));
            }
            if self.leading.compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire).is_err() {
                let _ = waker;
                return Poll::Pending;
            }
            if let Err(error) = self.lead(need.durable || self.someone_needs_sync()) {
                return Poll::Ready(Err(error));
            }
        }
    }

    /// A write that does not wait for storage itself may stand behind one that does.
    fn someone_needs_sync(&self) -> bool {
        self.watermarks.is_holding() || self.waiters.lock().iter().any(|w| w.need.durable)
    }

    fn register(&self, need: Need, id: &mut Option<u64>, waker: &Waker) {
        let mut waiters = self.waiters.lock();
        let known = id.and_then(|id| place_of(&waiters, id)).and_then(|at| waiters.get_mut(at));
        if let Some(waiter) = known {
            waiter.waker.clone_from(waker);
            return;
        }
        let new = self.next_id.fetch_add(1, Ordering::Relaxed);
        *id = Some(new);
        waiters.push(Waiter { id: new, need, waker: waker.clone() });
    }

    fn forget(&self, id: u64) {
        let mut waiters = self.waiters.lock();
        // Mostly it is gone: whoever served it took it off the list.
        if let Some(at) = place_of(&waiters, id) {
            waiters.remove(at);
        }
    }
}

/// Where a waiter stands: numbers are given under the list's lock, so that they rise along it.
fn place_of(waiters: &[Waiter], id: u64) -> Option<usize> {
    waiters.binary_search_by_key(&id, |w| w.id).ok()
}

/// A value that may be handed on once its commit has reached the log as was asked.
#[must_use = "the write is not acknowledged before it is waited for"]
#[derive(Debug)]
pub struct Pending<T> {
    value: Option<T>,
    wait: Option<(Arc<Group>, Need)>,
    id: Option<u64>,
}

impl<T> Pending<T> {
    /// Waits for the commit `seq`, and for stable storage if `durable`.
    pub(crate) fn new(value: T, group: &Arc<Group>, seq: Seq, durable: bool) -> Self {
        Self { value: Some(value), wait: Some((Arc::clone(group), Need { seq, durable })), id: None }
    }

    /// A value that rests on nothing that has to be waited for.
    pub(crate) fn ready(value: T) -> Self {
        Self { value: Some(value), wait: None, id: None }
    }

    /// The same wait for another value.
    pub fn map<U>(mut self, f: impl FnOnce(T) -> U) -> Pending<U> {
        Pending { value: self.value.take().map(f), wait: self.wait.take(), id: self.id.take() }
    }

    /// The value apart from the wait for it: nobody outside may be told of it before the wait is over.
    pub fn defer(mut self) -> (T, Pending<()>) {
        let value = self.value.take().expect("a write that was not waited for has its value");
        (value, Pending { value: Some(()), wait: self.wait.take(), id: self.id.take() })
    }

    /// Blocks until the value may be handed on.
    ///
    /// # Errors
    /// When the log could not be written or synced: the write is then not acknowledged, and not seen.
    pub fn wait(mut self) -> Result<T> {
        let thread = Arc::new(Unpark(std::thread::current(), AtomicBool::new(false)));
        let waker = Waker::from(Arc::clone(&thread));
        let mut context = Context::from_waker(&waker);
        loop {
            match Pin::new(&mut self).poll(&mut context) {
                Poll::Ready(result) => return result,
                Poll::Pending => {
                    while !thread.1.swap(false, Ordering::AcqRel) {
                        std::thread::park();
                    }
                }
            }
        }
    }
}

struct Unpark(std::thread::Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}

// The value is handed out whole and never pinned.
impl<T> Unpin for Pending<T> {}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let this = &mut *self;
        if let Some((group, need)) = &this.wait {
            match group.poll(*need, &mut this.id, context.waker()) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(result) => {
                    if let Some(id) = this.id.take() {
                        group.forget(id);
                    }
                    this.wait = None;
                    result?;
                }
            }
        }
        Poll::Ready(this.value.take().ok_or_else(|| Error::new(ErrorKind::Internal, "a write was waited for twice")))
    }
}

impl<T> Drop for Pending<T> {
    /// A waiter that leaves must not take a wake-up meant for the next leader with it.
    fn drop(&mut self) {
        if let (Some(id), Some((group, _))) = (self.id.take(), self.wait.take()) {
            group.forget(id);
            group.wake(false);
        }
    }
}
