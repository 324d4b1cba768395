//! How far the committing order has got: applied, written to the log file, durable, visible.
//!
//! Takes what the committer and the log report; gives what a reader may see and whether a write may be answered. Keeps:
//! visible never passes a write that waits for stable storage and has not reached it (`commit` durability), and moves
//! in `Seq` order, so what is answered is a prefix of what is applied. Knows no log and no waiting; see `txn/group.rs`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::ids::Seq;

/// How far the committing order has got.
#[derive(Debug)]
pub(crate) struct Watermarks {
    applied: AtomicU64,
    written: AtomicU64,
    durable: AtomicU64,
    visible: AtomicU64,
    /// Whether what waits for stable storage stays unseen until it is there.
    hold: bool,
    /// Commits that wait for stable storage, in order, from the first that is not there.
    waiting: Mutex<VecDeque<Seq>>,
}

impl Watermarks {
    /// After recovery, all up to `seq` is durable. `hold`: a write that waits for stable storage is not seen before.
    #[must_use]
    pub(crate) fn new(seq: Seq, hold: bool) -> Self {
        let mark = || AtomicU64::new(seq.get());
        Self { applied: mark(), written: mark(), durable: mark(), visible: mark(), hold, waiting: Mutex::default() }
    }

    /// A commit has its place in the order; called by the committer in `Seq` order. `journaled`: it waits for stable
    /// storage. Said before the log is given its record: else another's write might carry it along and show it.
    pub(crate) fn committing(&self, seq: Seq, journaled: bool) {
        if journaled && self.hold {
            self.waiting.lock().push_back(seq);
        }
    }

    /// The log has its record: whoever waits for it can be served.
    pub(crate) fn committed(&self, seq: Seq) {
        self.applied.store(seq.get(), Ordering::Release);
    }

    /// The log has come this far.
    pub(crate) fn reached(&self, written: Seq, durable: Option<Seq>) {
        let mut waiting = self.waiting.lock();
        self.written.fetch_max(written.get(), Ordering::AcqRel);
        if let Some(durable) = durable {
            self.durable.fetch_max(durable.get(), Ordering::AcqRel);
        }
        let durable = Seq::from_raw(self.durable.load(Ordering::Acquire));
        while waiting.front().is_some_and(|&first| first <= durable) {
            waiting.pop_front();
        }
        let written = self.written.load(Ordering::Acquire);
        let visible = waiting.front().map_or(written, |first| written.min(first.get() - 1));
        self.visible.fetch_max(visible, Ordering::AcqRel);
    }

    /// Readers may see up to here.
    #[must_use]
    pub(crate) fn visible(&self) -> Seq {
        Seq::from_raw(self.visible.load(Ordering::Acquire))
    }

    /// All up to here is on stable storage.
    #[must_use]
    pub(crate) fn durable(&self) -> Seq {
        Seq::from_raw(self.durable.load(Ordering::Acquire))
    }

    /// Whether a commit that waits for stable storage holds back those after it.
    #[must_use]
    pub(crate) fn is_holding(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// The newest commit in the order.
    #[must_use]
    pub(crate) fn applied(&self) -> Seq {
        Seq::from_raw(self.applied.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(w: &Watermarks, seq: Seq, journaled: bool) {
        w.committing(seq, journaled);
        w.committed(seq);
    }

    #[test]
    fn what_waits_for_storage_is_not_seen_and_holds_back_what_follows_it() {
        let seq = Seq::from_raw;
        let w = Watermarks::new(seq(0), true);
        commit(&w, seq(1), false);
        commit(&w, seq(2), true);
        commit(&w, seq(3), false);
        w.reached(seq(3), None);
        assert_eq!(w.visible(), seq(1));
        w.reached(seq(3), Some(seq(2)));
        assert_eq!((w.visible(), w.durable()), (seq(3), seq(2)));
        commit(&w, seq(4), true);
        w.reached(seq(4), None);
        assert_eq!(w.visible(), seq(3));
    }

    #[test]
    fn without_holding_a_write_is_seen_once_it_is_in_the_file() {
        let w = Watermarks::new(Seq::from_raw(0), false);
        commit(&w, Seq::from_raw(1), true);
        w.reached(Seq::from_raw(1), None);
        assert_eq!(w.visible(), Seq::from_raw(1));
    }
}
