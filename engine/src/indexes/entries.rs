//! Entries in the order of their keys: gathered row by row, sorted once, read as a run.
//!
//! Takes keys as bytes with their rows; gives them sorted, to a file's writer or to be searched where they lie. One arena
//! holds all keys; what is sorted beside it carries the first bytes that differ.

use quarrydb_index::RowId;
use quarrydb_index::sorted::SortedWriter;
use rayon::prelude::*;

use crate::error::{Error, ErrorKind, Result};

/// One entry: where its key lies, the bytes of it behind what all have in common, its row.
#[derive(Clone, Copy, Debug)]
struct Item {
    front: u128,
    start: u64,
    len: u32,
    row: u32,
}

/// From this many on more than one thread sorts.
const PARALLEL_MIN: usize = 1 << 15;
const FRONT_BYTES: usize = size_of::<u128>();

/// Entries of one index over rows of one part.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    bytes: Vec<u8>,
    items: Vec<Item>,
    /// Bytes that all keys begin with.
    common: usize,
    longest: usize,
}

impl Entries {
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
        self.longest = self.longest.max(key.len());
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
        self.longest = self.longest.max(other.longest);
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
        let Self { bytes, items, common, longest } = self;
        for item in &mut *items {
            let key = &bytes[item.start as usize..item.start as usize + item.len as usize];
            let rest = &key[*common..];
            let mut front = [0; FRONT_BYTES];
            let held = rest.len().min(FRONT_BYTES);
            front[..held].copy_from_slice(&rest[..held]);
            item.front = u128::from_be_bytes(front);
        }
        if *longest - *common <= FRONT_BYTES {
            // A key that ends where another goes on with zeros is the shorter one.
            let order = |item: &Item| (item.front, item.len, item.row);
            if items.len() < PARALLEL_MIN {
                items.sort_unstable_by_key(order);
            } else {
                items.par_sort_unstable_by_key(order);
            }
            return;
        }
        let rest = |item: &Item| {
            let end = item.start as usize + item.len as usize;
            bytes.get((item.start as usize + *common + FRONT_BYTES).min(end)..end).unwrap_or_default()
        };
        let order = |a: &Item, b: &Item| {
            let by_key = a.front.cmp(&b.front).then_with(|| rest(a).cmp(rest(b))).then(a.len.cmp(&b.len));
            by_key.then(a.row.cmp(&b.row))
        };
        if items.len() < PARALLEL_MIN {
            items.sort_unstable_by(order);
        } else {
            items.par_sort_unstable_by(order);
        }
    }

    /// The part of a file that they are, once sorted, for a segment of `rows` rows.
    ///
    /// # Errors
    /// `LimitExceeded` where they are more than a run can hold.
    pub(crate) fn to_run(&self, rows: u32) -> Result<Vec<u8>> {
        let mut writer = SortedWriter::new();
        self.iter().try_for_each(|(key, row)| writer.push(key, RowId::at(row))).map_err(refused)?;
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

    /// Both in one, each of them sorted.
    pub(crate) fn merge(a: &Self, b: &Self) -> Self {
        let mut out = Self {
            bytes: Vec::with_capacity(a.bytes.len() + b.bytes.len()),
            items: Vec::with_capacity(a.items.len() + b.items.len()),
            common: 0,
            longest: 0,
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

fn refused(error: quarrydb_index::Error) -> Error {
    let kind = match error {
        quarrydb_index::Error::TooLarge { .. } => ErrorKind::LimitExceeded,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
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
        for longest in [1, 12, 40] {
            let mut plain: Vec<(Vec<u8>, u32)> = Vec::new();
            let (mut one, mut other) = (Entries::default(), Entries::default());
            for row in 0..500 {
                let mut key = b"common".to_vec();
                key.extend((0..next() % longest).map(|_| (next() % 3) as u8));
                if row < 300 { &mut one } else { &mut other }.push(&key, row);
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
