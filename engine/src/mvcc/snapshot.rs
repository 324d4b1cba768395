//! The snapshots that are open, and the horizons: the `Seq`s that anyone may still ask about.
//!
//! A version that begins and ends between two of them is seen by nobody and may be dropped. Taking a snapshot and
//! reading the horizons happen under one lock, so that none slips between. A snapshot that has not been the newest for
//! longer than is allowed is ended: it holds nothing any more, and whoever reads at it is told so. They end from the
//! oldest, so one number says which: whoever reads asks it after he has looked, and believes what he saw only then.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::watermark::Watermarks;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Seq;

/// The open snapshots of a database.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    open: Mutex<BTreeMap<Seq, Open>>,
    /// Those at or before it were ended.
    ended: AtomicU64,
}

/// The open snapshots of one `Seq`.
#[derive(Debug, Default)]
struct Open {
    count: u32,
    /// Since when, in nanoseconds of the monotonic clock, there is a newer one; none: that was not seen yet.
    old_since: Option<u64>,
}

/// A `Seq` to read at, held open until dropped.
#[derive(Debug)]
pub(crate) struct Snapshot {
    seq: Seq,
    of: Arc<Snapshots>,
}

impl Snapshots {
    /// A snapshot of all that is visible now.
    pub(crate) fn take(self: &Arc<Self>, watermarks: &Watermarks) -> Snapshot {
        let mut open = self.open.lock();
        let seq = watermarks.visible();
        open.entry(seq).or_default().count += 1;
        drop(open);
        Snapshot { seq, of: Arc::clone(self) }
    }

    /// A snapshot of all that is applied, whether visible or not: for who holds the committing order and lets it go after
    /// the snapshot.
    pub(crate) fn take_applied(self: &Arc<Self>) -> Snapshot {
        self.open.lock().entry(ALL_APPLIED).or_default().count += 1;
        Snapshot { seq: ALL_APPLIED, of: Arc::clone(self) }
    }

    /// Ends the snapshots that have not been the newest for `most` nanoseconds at `now`; how many.
    pub(crate) fn end_old(&self, watermarks: &Watermarks, now: u64, most: u64) -> u64 {
        let mut open = self.open.lock();
        let visible = watermarks.visible();
        let mut ended = (Seq::default(), 0);
        for (&seq, entry) in open.iter_mut().take_while(|(seq, _)| **seq < visible) {
            let since = *entry.old_since.get_or_insert(now);
            if now.saturating_sub(since) < most {
                continue;
            }
            ended = (seq, ended.1 + u64::from(entry.count));
        }
        if ended.1 > 0 {
            self.ended.fetch_max(ended.0.get(), Ordering::SeqCst);
            open.retain(|&seq, _| seq > ended.0);
        }
        ended.1
    }

    /// All that anyone may still read at.
    pub(crate) fn horizons(&self, watermarks: &Watermarks) -> Horizons {
        let open = self.open.lock();
        let visible = watermarks.visible();
        Horizons { open: open.keys().copied().filter(|&seq| seq < visible).collect(), visible }
    }

    /// The number of open snapshots.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().values().map(|open| open.count as usize).sum()
    }
}

/// Behind every commit, and before the end of a row that lives.
const ALL_APPLIED: Seq = Seq::from_raw(u64::MAX - 1);

/// The `Seq`s that open snapshots read at, and the oldest that a later one may.
#[derive(Debug)]
pub(crate) struct Horizons {
    /// From the oldest; below `visible`.
    open: Vec<Seq>,
    visible: Seq,
}

impl Horizons {
    /// The oldest `Seq` at or after `created` that anyone may read at: what was created at `created` and ended at or
    /// before it is seen by nobody, however old the snapshots are that were there before.
    pub(crate) fn from(&self, created: Seq) -> Seq {
        let later = self.open.partition_point(|&seq| seq < created);
        self.open.get(later).copied().unwrap_or(self.visible)
    }

    /// The oldest of all.
    pub(crate) fn oldest(&self) -> Seq {
        self.from(Seq::default())
    }
}

impl Snapshot {
    /// The `Seq` to read at.
    #[must_use]
    pub(crate) fn seq(&self) -> Seq {
        self.seq
    }

    /// The same snapshot once more.
    pub(crate) fn again(&self) -> Self {
        // One that was ended stays so: nothing is kept for it.
        if let Some(open) = self.of.open.lock().get_mut(&self.seq) {
            open.count += 1;
        }
        Self { seq: self.seq, of: Arc::clone(&self.of) }
    }

    /// Whether what was read at it until now can be believed.
    ///
    /// # Errors
    /// `Conflict` (`SnapshotTooOld`, 239) once it was ended for its age.
    pub(crate) fn check(&self) -> Result<()> {
        if self.of.ended.load(Ordering::SeqCst) < self.seq.get() || self.seq == Seq::default() {
            return Ok(());
        }
        let message = "the snapshot that this reads at has grown too old and was ended (snapshot_age_max, --snapshot-age): \
                       begin anew, and take less at a time";
        Err(Error::new(ErrorKind::Conflict, message).with_code("SnapshotTooOld", 239))
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut open = self.of.open.lock();
        if let Some(entry) = open.get_mut(&self.seq) {
            entry.count -= 1;
            if entry.count == 0 {
                open.remove(&self.seq);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_is_the_oldest_open_snapshot_and_else_what_is_visible() {
        let watermarks = Watermarks::new(Seq::from_raw(5), true);
        let snapshots = Arc::new(Snapshots::default());
        let old = snapshots.take(&watermarks);
        watermarks.committing(Seq::from_raw(9), true);
        watermarks.committed(Seq::from_raw(9));
        watermarks.reached(Seq::from_raw(9), Some(Seq::from_raw(9)));
        let new = snapshots.take(&watermarks);
        assert_eq!((old.seq().get(), new.seq().get()), (5, 9));
        let horizons = snapshots.horizons(&watermarks);
        assert_eq!(horizons.oldest().get(), 5);
        let from = [4, 5, 6, 9, 10].map(|created| horizons.from(Seq::from_raw(created)).get());
        assert_eq!(from, [5, 5, 9, 9, 9], "what the old one does not see it does not keep");
        drop(old);
        assert_eq!(snapshots.horizons(&watermarks).oldest().get(), 9);
        drop(new);
        assert_eq!((snapshots.horizons(&watermarks).oldest().get(), snapshots.count()), (9, 0));
    }

    #[test]
    fn snapshots_end_from_the_oldest_once_a_newer_one_has_been_there_long_enough() {
        let watermarks = Watermarks::new(Seq::from_raw(5), true);
        let snapshots = Arc::new(Snapshots::default());
        let advance = |to: u64| {
            let to = Seq::from_raw(to);
            watermarks.committing(to, true);
            watermarks.committed(to);
            watermarks.reached(to, Some(to));
        };
        let first = snapshots.take(&watermarks);
        let again = first.again();
        // The newest never grows old.
        assert_eq!(snapshots.end_old(&watermarks, 1_000_000, 10), 0);
        advance(7);
        let second = snapshots.take(&watermarks);
        assert_eq!(snapshots.end_old(&watermarks, 1_000_000, 10), 0);
        advance(9);
        assert_eq!(snapshots.end_old(&watermarks, 1_000_009, 10), 0);
        assert_eq!(snapshots.end_old(&watermarks, 1_000_010, 10), 2);
        assert_eq!(first.check().expect_err("it was ended").code(), Some(239));
        assert!(again.check().is_err() && first.again().check().is_err() && second.check().is_ok());
        assert_eq!((snapshots.count(), snapshots.horizons(&watermarks).oldest().get()), (1, 7));
        drop((first, again));
        assert_eq!(snapshots.end_old(&watermarks, 1_000_019, 10), 1);
        let third = snapshots.take(&watermarks);
        assert!(second.check().is_err() && third.check().is_ok());
        drop(second);
        assert_eq!(snapshots.count(), 1);
    }
}
