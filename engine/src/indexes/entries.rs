//! Entries in the order of their keys: gathered row by row, sorted once, read as a run.
//!
//! Takes keys as bytes with their rows; gives them sorted, to a file's writer or to be searched where they lie. One arena
//! holds all keys; what is sorted beside it carries some bytes of each: the first that differ, then, of keys alike in
//! them, the next.

use std::ops::Range;

use quarrydb_index::RowId;
use quarrydb_index::sorted::SortedWriter;
use rayon::prelude::*;

use super::from_columns::refused;
use super::range::KeyRange;
use crate::error::Result;

/// One entry: where its key lies, the bytes of it that are sorted by, its row.
#[derive(Clone, Copy, Debug)]
struct Item {
    front: u128,
    start: u64,
    len: u32,
    row: u32,
}

/// From this many on more than one thread sorts.
const PARALLEL_MIN: usize = 1 << 15;
/// Beginnings of keys, one behind the other, that are sorted on more than one thread.
const LEVELS_MAX: usize = 8;
/// Entries that one thread writes at a time.
const TASK_ITEMS: usize = 1 << 16;
/// Entries whose keys are fetched at a time.
const AHEAD_ITEMS: usize = 32;
const _: () = assert!(TASK_ITEMS.is_multiple_of(SortedWriter::WHOLE));
/// Bytes of a key that are sorted by at a time.
const FRONT_BYTES: u32 = size_of::<u128>() as u32;

impl Item {
    /// What orders entries whose first `depth` bytes are alike, as far as the bytes at hand go: of those alike in them too,
    /// one that ends goes before one that goes on.
    fn order(&self, depth: u32) -> (u128, u32, u32) {
        (self.front, self.len.min(depth + FRONT_BYTES + 1), self.row)
    }

    fn goes_on(&self, depth: u32) -> bool {
        self.len > depth + FRONT_BYTES
    }
}

/// Takes the bytes from `depth` on to hand. This is where keys are read: one after the other and independently, so that
/// the machine waits for several at once.
fn fill(bytes: &[u8], items: &mut [Item], depth: u32) {
    for item in items {
        let end = item.start as usize + item.len as usize;
        let rest = bytes.get((item.start as usize + depth as usize).min(end)..end).unwrap_or_default();
        let mut front = [0; FRONT_BYTES as usize];
        let held = rest.len().min(front.len());
        front[..held].copy_from_slice(&rest[..held]);
        item.front = u128::from_be_bytes(front);
    }
}

/// Runs of entries that the bytes at hand leave open.
fn open_runs(items: &[Item], depth: u32) -> Vec<Range<usize>> {
    let (mut runs, mut from) = (Vec::new(), 0);
    for run in items.chunk_by(|a, b| a.front == b.front && a.goes_on(depth) == b.goes_on(depth)) {
        if run.len() > 1 && run[0].goes_on(depth) {
            runs.push(from..from + run.len());
        }
        from += run.len();
    }
    runs
}

/// Sorts entries whose first `depth` bytes are alike.
fn sort(bytes: &[u8], items: &mut [Item], depth: u32) {
    let mut left = vec![(0..items.len(), depth)];
    while let Some((range, depth)) = left.pop() {
        let Some(items) = items.get_mut(range.clone()) else { continue };
        fill(bytes, items, depth);
        items.sort_unstable_by_key(|item| item.order(depth));
        let open = open_runs(items, depth).into_iter();
        left.extend(open.map(|run| (range.start + run.start..range.start + run.end, depth + FRONT_BYTES)));
    }
}

fn sort_in_parallel(bytes: &[u8], items: &mut [Item], depth: u32, levels: usize) {
    if items.len() < PARALLEL_MIN || levels == 0 {
        return sort(bytes, items, depth);
    }
    items.par_chunks_mut(PARALLEL_MIN).for_each(|items| fill(bytes, items, depth));
    items.par_sort_unstable_by_key(|item| item.order(depth));
    let (mut open, mut rest, mut at) = (Vec::new(), &mut items[..], 0);
    for run in open_runs(rest, depth) {
        let (_, behind) = std::mem::take(&mut rest).split_at_mut(run.start - at);
        let (own, behind) = behind.split_at_mut(run.len());
        open.push(own);
        (rest, at) = (behind, run.end);
    }
    open.into_par_iter().for_each(|run| sort_in_parallel(bytes, run, depth + FRONT_BYTES, levels - 1));
}

/// Entries of one index over rows of one part.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Bytes that all keys begin with.
    common: usize,
}

impl Entries {
    /// None yet, with room for so many.
    pub(crate) fn with_capacity(items: usize) -> Self {
        Self { items: Vec::with_capacity(items), ..Self::default() }
    }

    /// Adds an entry; rows come in order.
    #[inline]
    pub(crate) fn push(&mut self, key: &[u8], row: u32) {
        match self.items.first() {
            None => self.common = key.len(),
            Some(first) => {
                let first = &self.bytes[..first.len as usize];
                if !first.get(..self.common).is_some_and(|common| key.starts_with(common)) {
                    self.common = first.iter().zip(key).take(self.common).take_while(|(a, b)| a == b).count();
                }
            }
        }
        self.items.push(Item { front: 0, start: self.bytes.len() as u64, len: key.len() as u32, row });
        self.bytes.extend_from_slice(key);
    }

    /// Adds those of later rows.
    pub(crate) fn append(&mut self, other: &Self) {
        let Some((key, _)) = other.get(0) else { return };
        if self.items.is_empty() {
            self.common = other.common;
        } else {
            let first = &self.bytes[..self.items.first().map_or(0, |first| first.len as usize)];
            let alike = first.iter().zip(key).take_while(|(a, b)| a == b).count();
            self.common = self.common.min(other.common).min(alike);
        }
        let moved = self.bytes.len() as u64;
        self.bytes.extend_from_slice(&other.bytes);
        self.items.extend(other.items.iter().map(|item| Item { start: item.start + moved, ..*item }));
    }

    /// How many.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    fn key_of(&self, item: &Item) -> &[u8] {
        &self.bytes[item.start as usize..item.start as usize + item.len as usize]
    }

    /// Puts them in the order of key and row.
    pub(crate) fn sort(&mut self) {
        let Self { bytes, items, common } = self;
        sort_in_parallel(bytes, items, *common as u32, LEVELS_MAX);
    }

    /// The part of a file that they are, once sorted, for a segment of `rows` rows.
    ///
    /// # Errors
    /// `LimitExceeded` where they are more than a run can hold.
    pub(crate) fn to_run(&self, rows: u32) -> Result<Vec<u8>> {
        let write = |items: &[Item]| {
            let (mut writer, mut keys) = (SortedWriter::new(), Vec::new());
            // Keys lie anywhere: several are fetched before the first of them is looked at.
            for some in items.chunks(AHEAD_ITEMS) {
                keys.clear();
                some.iter().for_each(|item| keys.extend_from_slice(self.key_of(item)));
                let mut rest = &keys[..];
                for item in some {
                    let (key, behind) = rest.split_at(item.len as usize);
                    writer.push(key, RowId::at(item.row)).map_err(refused)?;
                    rest = behind;
                }
            }
            Ok(writer)
        };
        let parts = self.items.par_chunks(TASK_ITEMS).map(write).collect::<Result<Vec<_>>>()?;
        let mut writer = SortedWriter::new();
        parts.into_iter().try_for_each(|part| writer.append(part)).map_err(refused)?;
        writer.finish(rows).map_err(refused)
    }

    /// All of them in order, once sorted.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], u32)> {
        self.items.iter().map(|item| (self.key_of(item), item.row))
    }

    /// The key and the row of an entry, once sorted.
    pub(crate) fn get(&self, at: usize) -> Option<(&[u8], u32)> {
        self.items.get(at).map(|item| (self.key_of(item), item.row))
    }

    /// How many keys are below `key`, once sorted.
    pub(crate) fn rank(&self, key: &[u8]) -> usize {
        self.items.partition_point(|item| self.key_of(item) < key)
    }

    /// The entries of a range, once sorted.
    pub(crate) fn within(&self, range: &KeyRange) -> Range<usize> {
        let from = self.rank(&range.from);
        let to = range.to.as_ref().map_or(self.len(), |to| self.rank(to));
        from..to.max(from)
    }

    /// Both in one, each of them sorted.
    pub(crate) fn merge(a: &Self, b: &Self) -> Self {
        let mut out = Self {
            bytes: Vec::with_capacity(a.bytes.len() + b.bytes.len()),
            items: Vec::with_capacity(a.items.len() + b.items.len()),
            common: 0,
        };
        let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
        loop {
            let from_left = match (left.peek(), right.peek()) {
                (Some(one), Some(other)) => one <= other,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return out,
            };
            if let Some((key, row)) = if from_left { left.next() } else { right.next() } {
                out.items.push(Item { front: 0, start: out.bytes.len() as u64, len: key.len() as u32, row });
                out.bytes.extend_from_slice(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    #[test]
    fn sorted_and_merged_entries_are_those_of_a_plain_sort() {
        let mut seed = 7_u64;
        let mut next = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed >> 33
        };
        for (longest, times) in [(1, 1), (12, 1), (40, 1), (90, 80)] {
            let mut plain: Vec<(Vec<u8>, u32)> = Vec::new();
            let (mut one, mut other) = (Entries::default(), Entries::default());
            for row in 0..500 * times {
                let mut key = b"common".to_vec();
                key.extend((0..next() % longest).map(|at| if at % 19 == 5 { (next() % 3) as u8 } else { 0 }));
                if row < 400 * times { &mut one } else { &mut other }.push(&key, row);
                plain.push((key, row));
            }
            plain.sort();
            one.sort();
            other.sort();
            let merged = Entries::merge(&one, &other);
            let found: Vec<_> = merged.iter().map(|(key, row)| (key.to_vec(), row)).collect();
            assert_eq!(found, plain);
            let middle = plain[250].0.clone();
            assert_eq!(merged.rank(&middle), plain.iter().filter(|(key, _)| *key < middle).count());
        }
    }
}
