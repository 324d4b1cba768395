//! Pieces of work done on all cores and handed on in their order, a bounded number of them at a time.
//!
//! Takes what makes a piece and what takes it; the calling thread alone takes them, and may block there. The threads of the
//! pool never wait.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, ErrorKind};

/// A piece's place: filled by the thread that makes it, awaited in order by the one that hands it on.
struct Slot<T, E> {
    made: Mutex<Option<Result<T, E>>>,
    filled: Condvar,
}

impl<T, E> Slot<T, E> {
    fn fill(&self, made: Result<T, E>) {
        let mut slot = self.made.lock();
        if slot.is_none() {
            *slot = Some(made);
            self.filled.notify_one();
        }
    }

    fn take(&self) -> Result<T, E> {
        let of_pool = rayon::current_thread_index().is_some();
        let mut made = self.made.lock();
        loop {
            if let Some(made) = made.take() {
                return made;
            }
            if of_pool {
                // Whoever calls from the pool's own threads works on: else the pieces might wait for it.
                drop(made);
                if rayon::yield_now() != Some(rayon::Yield::Executed) {
                    std::thread::yield_now();
                }
                made = self.made.lock();
            } else {
                self.filled.wait(&mut made);
            }
        }
    }
}

/// Fills its slot with an error where the thread unwinds, so that nobody waits for ever.
struct FillOnUnwind<'a, T, E: From<Error>>(&'a Slot<T, E>);

impl<T, E: From<Error>> Drop for FillOnUnwind<'_, T, E> {
    fn drop(&mut self) {
        self.0.fill(Err(Error::new(ErrorKind::Internal, "a piece of the answer could not be made").into()));
    }
}

/// How many pieces are made or wait.
pub(super) fn ahead() -> usize {
    2 * rayon::current_num_threads() + 1
}

/// Makes pieces `0..count` on all cores, a few ahead, and hands them on in order until `sink` breaks.
///
/// # Errors
/// The first that `piece` or `sink` gives, in order.
pub(super) fn in_order<T: Send, E: From<Error> + Send>(
    count: usize,
    piece: &(dyn Fn(usize) -> Result<T, E> + Sync),
    sink: &mut dyn FnMut(T) -> Result<ControlFlow<()>, E>,
) -> Result<(), E> {
    let ahead = ahead();
    let stop = AtomicBool::new(false);
    let stop = &stop;
    rayon::in_place_scope(|scope| {
        let mut slots = VecDeque::new();
        let mut next = 0;
        loop {
            while next < count && slots.len() < ahead {
                let slot = Arc::new(Slot { made: Mutex::new(None), filled: Condvar::new() });
                let (index, filling) = (next, Arc::clone(&slot));
                scope.spawn(move |_| {
                    let guard = FillOnUnwind(&filling);
                    if !stop.load(Ordering::Relaxed) {
                        guard.0.fill(piece(index));
                    }
                });
                slots.push_back(slot);
                next += 1;
            }
            let Some(slot) = slots.pop_front() else { return Ok(()) };
            let flow = slot.take().and_then(&mut *sink);
            if !matches!(flow, Ok(ControlFlow::Continue(()))) {
                stop.store(true, Ordering::Relaxed);
                return flow.map(drop);
            }
        }
    })
}
