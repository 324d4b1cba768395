//! The snapshots that are open, and the horizons: the `Seq`s that anyone may still ask about.
//!
//! A version that begins and ends between two of them is seen by nobody and may be dropped. Taking a snapshot and
//! reading the horizons happen under one lock, so that none slips between.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::watermark::Watermarks;
use crate::ids::Seq;

/// The open snapshots of a database.
#[derive(Debug, Default)]
pub(crate) struct Snapshots {
    open: Mutex<BTreeMap<Seq, u32>>,
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
        *open.entry(seq).or_default() += 1;
        drop(open);
        Snapshot { seq, of: Arc::clone(self) }
    }

    /// All that anyone may still read at.
    pub(crate) fn horizons(&self, watermarks: &Watermarks) -> Horizons {
        let open = self.open.lock();
        let visible = watermarks.visible();
        Horizons { open: open.keys().copied().filter(|&seq| seq < visible).collect(), visible }
    }

    /// The number of open snapshots.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().values().map(|&n| n as usize).sum()
    }
}

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
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let mut open = self.of.open.lock();
        if let Some(count) = open.get_mut(&self.seq) {
            *count -= 1;
            if *count == 0 {
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
}
