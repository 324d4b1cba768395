//! How many rows two sets where they lie have together, without a set of the answer: and, or, and-not; and of ranges.

use std::cmp::Ordering;
use std::ops::Range;

use super::view::{BITMAP_BYTES, Container, RoaringView, Shape, lower_bound, runs, u16_at, u16s, words};
use crate::rowset::RowSet;

/// From this ratio of lengths on, the longer array is searched instead of walked.
const SEARCH_RATIO: usize = 32;

impl RoaringView<'_> {
    /// Rows in both.
    #[must_use]
    pub fn and_len(&self, other: &RoaringView<'_>) -> u64 {
        let (mut left, mut right) = (self.containers().iter(), other.containers().iter());
        let (mut a, mut b) = (left.next(), right.next());
        let mut count = 0;
        while let (Some(x), Some(y)) = (a, b) {
            match x.key.cmp(&y.key) {
                Ordering::Less => a = left.next(),
                Ordering::Greater => b = right.next(),
                Ordering::Equal => {
                    count += both(x, y);
                    (a, b) = (left.next(), right.next());
                }
            }
        }
        count
    }

    /// Rows in either.
    #[must_use]
    pub fn or_len(&self, other: &RoaringView<'_>) -> u64 {
        (self.len() + other.len()).saturating_sub(self.and_len(other))
    }

    /// Rows in this one and not in the other.
    #[must_use]
    pub fn and_not_len(&self, other: &RoaringView<'_>) -> u64 {
        self.len().saturating_sub(self.and_len(other))
    }

    /// How many of the rows of a set in memory (the dead ones: few) are in it.
    #[must_use]
    pub fn and_len_set(&self, rows: &RowSet) -> u64 {
        if rows.len() > self.len() {
            let mut count = 0;
            self.for_each(|row| count += u64::from(rows.contains(row)));
            return count;
        }
        rows.iter().filter(|&row| self.contains(row)).count() as u64
    }

    /// How many rows of a range.
    #[must_use]
    pub fn range_len(&self, rows: Range<u32>) -> u64 {
        let mut count = 0;
        for container in self.containers() {
            let base = u32::from(container.key) << 16;
            let (from, to) = (rows.start.max(base), rows.end.min(base + (1 << 16)));
            if to <= from {
                continue;
            }
            let all = from == base && to == base + (1 << 16);
            count += if all { u64::from(container.count) } else { within(container, from - base, to - base - 1) };
        }
        count
    }
}

/// Rows of a container from `first` to `last`.
fn within(container: &Container<'_>, first: u32, last: u32) -> u64 {
    match container.shape {
        Shape::Array(bytes) => {
            let below = |end: u32| lower_bound(bytes.len() / 2, |index| u32::from(u16_at(bytes, index)) < end);
            below(last + 1).saturating_sub(below(first)) as u64
        }
        Shape::Bitmap(bytes) => ones(bytes, first, last),
        Shape::Runs(bytes) => runs(bytes).map(|run| overlap(run, first, last)).sum(),
    }
}

fn overlap((a, b): (u16, u16), first: u32, last: u32) -> u64 {
    let (from, to) = (u32::from(a).max(first), u32::from(b).min(last));
    u64::from((to + 1).saturating_sub(from))
}

/// Ones of a bitmap from `first` to `last`.
fn ones(bytes: &[u8], first: u32, last: u32) -> u64 {
    let (from, to) = (first as usize / 64, last as usize / 64);
    let mut count = 0;
    for (index, mut word) in words(bytes).enumerate().take(to + 1).skip(from) {
        if index == from {
            word &= u64::MAX << (first % 64);
        }
        if index == to {
            word &= u64::MAX >> (63 - last % 64);
        }
        count += u64::from(word.count_ones());
    }
    count
}

fn both(a: &Container<'_>, b: &Container<'_>) -> u64 {
    match (a.shape, b.shape) {
        (Shape::Bitmap(x), Shape::Bitmap(y)) => {
            debug_assert_eq!((x.len(), y.len()), (BITMAP_BYTES, BITMAP_BYTES), "bitmaps have all their words");
            words(x).zip(words(y)).map(|(x, y)| u64::from((x & y).count_ones())).sum()
        }
        (Shape::Array(x), Shape::Array(y)) => {
            let (short, long) = if x.len() <= y.len() { (x, y) } else { (y, x) };
            if short.len() * SEARCH_RATIO < long.len() { searched(short, long) } else { walked(short, long) }
        }
        (Shape::Array(bytes), _) => u16s(bytes).filter(|&low| b.contains(low)).count() as u64,
        (_, Shape::Array(bytes)) => u16s(bytes).filter(|&low| a.contains(low)).count() as u64,
        (Shape::Runs(bytes), Shape::Bitmap(bitmap)) | (Shape::Bitmap(bitmap), Shape::Runs(bytes)) => {
            runs(bytes).map(|(first, last)| ones(bitmap, u32::from(first), u32::from(last))).sum()
        }
        (Shape::Runs(x), Shape::Runs(y)) => {
            let (mut left, mut right) = (runs(x), runs(y));
            let (mut p, mut q) = (left.next(), right.next());
            let mut count = 0;
            while let (Some(one), Some(two)) = (p, q) {
                count += overlap(one, u32::from(two.0), u32::from(two.1));
                if one.1 < two.1 { p = left.next() } else { q = right.next() }
            }
            count
        }
    }
}

/// Two arrays of like length, side by side.
fn walked(x: &[u8], y: &[u8]) -> u64 {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < x.len() / 2 && j < y.len() / 2 {
        let (a, b) = (u16_at(x, i), u16_at(y, j));
        i += usize::from(a <= b);
        j += usize::from(b <= a);
        count += u64::from(a == b);
    }
    count
}

/// A short array in a long one, from where the one before was.
fn searched(short: &[u8], long: &[u8]) -> u64 {
    let (mut from, mut count) = (0, 0);
    for low in u16s(short) {
        from += lower_bound((long.len() / 2).saturating_sub(from), |index| u16_at(long, from + index) < low);
        count += u64::from(from < long.len() / 2 && u16_at(long, from) == low);
    }
    count
}
