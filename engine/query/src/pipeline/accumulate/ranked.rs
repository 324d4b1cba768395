//! The first few of many values in some order: `$top`, `$topN`, `$bottom`, `$bottomN`, `$minN`, `$maxN`.
//!
//! Takes a key, whose order as bytes is the order asked for, with each value. Of equal keys the first that came stays.
//! Memory grows with what is kept.

use quarrydb_jsonb::JsonbBuf;
use std::collections::BinaryHeap;

/// The values with the least keys.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) wanted: u64,
    /// How many values came.
    pub(super) seen: u64,
    /// The greatest on top, to be dropped first.
    pub(super) kept: BinaryHeap<Entry>,
    bytes: usize,
}

/// A value that is kept. Ordered by key, then by when it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) key: Box<[u8]>,
    pub(super) seen: u64,
    pub(super) value: JsonbBuf,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key).then(self.seen.cmp(&other.seen))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Entry {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.value.as_bytes().len()
    }
}

impl Ranked {
    pub(super) fn new(wanted: u64) -> Self {
        // Many groups have one value each: a heap begins with four.
        let kept = BinaryHeap::with_capacity(usize::from(wanted == 1));
        Self { wanted, seen: 0, kept, bytes: 0 }
    }

    /// Whether a value with this key that comes next would be kept.
    pub(super) fn takes(&self, key: &[u8]) -> bool {
        (self.kept.len() as u64) < self.wanted || self.kept.peek().is_some_and(|worst| *key < *worst.key)
    }

    /// Adds a value that came.
    pub(super) fn add(&mut self, key: Box<[u8]>, value: JsonbBuf) {
        let seen = self.seen;
        self.seen += 1;
        if self.takes(&key) {
            self.keep(Entry { key, seen, value });
        }
    }

    /// Counts a value that is not kept.
    pub(super) fn pass(&mut self) {
        self.seen += 1;
    }

    pub(super) fn keep(&mut self, entry: Entry) {
        if self.kept.len() as u64 >= self.wanted
            && let Some(worst) = self.kept.pop()
        {
            self.bytes -= worst.bytes();
        }
        self.bytes += entry.bytes();
        self.kept.push(entry);
    }

    pub(super) fn merge(&mut self, later: Self) {
        for entry in later.kept.into_sorted_vec() {
            if self.takes(&entry.key) {
                self.keep(Entry { seen: self.seen + entry.seen, ..entry });
            }
        }
        self.seen += later.seen;
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// By key, then by when they came; `backwards` turns the keys around, not what came.
    pub(super) fn sorted(&self, backwards: bool) -> Vec<&Entry> {
        let mut entries: Vec<&Entry> = self.kept.iter().collect();
        entries.sort_unstable_by(|a, b| {
            let by_key = if backwards { b.key.cmp(&a.key) } else { a.key.cmp(&b.key) };
            by_key.then(a.seen.cmp(&b.seen))
        });
        entries
    }
}
