//! ObjectIds for documents that bring no `_id`: seconds, five bytes of this process's chance, a counter.
//!
//! Keeps: each is larger than the one before within a process, also when the wall clock steps back (the greater of clock
//! and counter goes on), and two processes do not meet. Layout: MongoDB's manual, "ObjectId".

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that another process would not come upon.
pub(crate) fn chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

const COUNTER_BITS: u32 = 24;

/// Makes ObjectIds.
#[derive(Debug)]
pub(crate) struct ObjectIds {
    process: [u8; 5],
    /// Seconds and counter as one number.
    last: AtomicU64,
}

impl Default for ObjectIds {
    fn default() -> Self {
        let chance = chance().to_le_bytes();
        Self { process: [chance[0], chance[1], chance[2], chance[3], chance[4]], last: AtomicU64::new(0) }
    }
}

impl ObjectIds {
    /// The next one, at `wall_millis`.
    pub(crate) fn next(&self, wall_millis: u64) -> [u8; 12] {
        let now = (wall_millis / 1000) << COUNTER_BITS;
        let step = |last: u64| Some(now.max(last + 1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step).unwrap_or_default();
        let id = now.max(last + 1);
        let seconds = ((id >> COUNTER_BITS) as u32).to_be_bytes();
        let counter = (id as u32).to_be_bytes();
        let p = self.process;
        [
            seconds[0], seconds[1], seconds[2], seconds[3], p[0], p[1], p[2], p[3], p[4], counter[1], counter[2],
            counter[3],
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_grow_also_when_the_clock_steps_back() {
        let ids = ObjectIds::default();
        let mut last = ids.next(5_000);
        for wall in [5_000, 5_999, 6_000, 1_000, 1_000, 6_001] {
            let next = ids.next(wall);
            assert!(next > last);
            last = next;
        }
    }
}
