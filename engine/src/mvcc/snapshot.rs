//! The snapshots that are open, and the horizon: the oldest `Seq` that anyone may still ask about.
//!
//! Versions that ended at or before the horizon are seen by nobody and may be dropped. Taking a snapshot and computing
//! the horizon happen under one lock, so that none slips between.

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

    /// The oldest `Seq` that an open snapshot reads at, or that the next one would.
    pub(crate) fn horizon(&self, watermarks: &Watermarks) -> Seq {
        let open = self.open.lock();
        let visible = watermarks.visible();
        open.keys().next().map_or(visible, |&oldest| oldest.min(visible))
    }

    /// The number of open snapshots.
    pub(crate) fn count(&self) -> usize {
        self.open.lock().values().map(|&n| n as usize).sum()
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
        assert_eq!(snapshots.horizon(&watermarks).get(), 5);
        drop(old);
        assert_eq!(snapshots.horizon(&watermarks).get(), 9);
        drop(new);
        assert_eq!((snapshots.horizon(&watermarks).get(), snapshots.count()), (9, 0));
    }
}
