//! The rows in a window that moves forward, in the order of a key: the first few, or the one at a rank.
//!
//! All rows of a partition are put in order once. A tree of counts (P. M. Fenwick, 1994) then says which of those in the
//! window stands where, in the logarithm of the rows. Knows keys as bytes and nothing of values.

use std::ops::Range;

/// The rows of a partition in order, and which of them are in the window.
#[derive(Debug)]
pub(super) struct Ordered {
    /// Of each row its place in the order; [`Ordered::OUT`] for rows that do not count.
    places: Vec<u32>,
    /// Of each place its row, and the number of its key: equal keys have equal numbers.
    rows: Vec<(u32, u32)>,
    counts: Vec<u32>,
    window: Range<usize>,
    inside: usize,
}

impl Ordered {
    const OUT: u32 = u32::MAX;

    /// Of each row the key, none for one that does not count. Of equal keys the earlier row comes first.
    pub(super) fn new<K: Ord>(keys: &[Option<K>]) -> Self {
        let mut sorted: Vec<u32> = (0..keys.len() as u32).filter(|row| key(keys, *row).is_some()).collect();
        sorted.sort_by(|a, b| key(keys, *a).cmp(&key(keys, *b)));
        let mut places = vec![Self::OUT; keys.len()];
        let mut rows: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
        for (place, row) in sorted.iter().enumerate() {
            if let Some(at) = places.get_mut(*row as usize) {
                *at = place as u32;
            }
            let number = match rows.last() {
                Some((before, number)) => *number + u32::from(key(keys, *before) != key(keys, *row)),
                None => 0,
            };
            rows.push((*row, number));
        }
        let counts = vec![0; rows.len() + 1];
        Self { places, rows, counts, window: 0..0, inside: 0 }
    }

    /// The memory that it takes for each row, and that of its keys while they are put in order.
    pub(super) const BYTES_PER_ROW: usize = 4 * size_of::<u32>() + 2 * size_of::<Vec<u8>>();

    /// Moves the window forward.
    pub(super) fn move_to(&mut self, to: &Range<usize>) {
        let start = to.start.max(self.window.start);
        let end = to.end.max(self.window.end);
        for row in self.window.start..start.min(self.window.end) {
            self.count(row, false);
        }
        for row in self.window.end.max(start)..end {
            self.count(row, true);
        }
        self.window = start..end.max(start);
    }

    /// The rows in the window that count.
    pub(super) fn len(&self) -> usize {
        self.inside
    }

    fn count(&mut self, row: usize, inside: bool) {
        let Some(place) = self.places.get(row).filter(|p| **p != Self::OUT) else { return };
        let mut at = *place as usize + 1;
        while let Some(count) = self.counts.get_mut(at) {
            *count = if inside { *count + 1 } else { count.saturating_sub(1) };
            at += at & at.wrapping_neg();
        }
        self.inside = if inside { self.inside + 1 } else { self.inside.saturating_sub(1) };
    }

    /// The row at a rank in the window, from 0, and the number of its key.
    pub(super) fn at(&self, rank: usize) -> Option<(usize, u32)> {
        if rank >= self.inside {
            return None;
        }
        let mut left = rank as u32;
        let mut at = 0_usize;
        let mut step = self.counts.len().next_power_of_two();
        while step > 0 {
            if let Some(count) = self.counts.get(at + step)
                && *count <= left
            {
                left -= count;
                at += step;
            }
            step /= 2;
        }
        self.rows.get(at).map(|(row, number)| (*row as usize, *number))
    }
}

fn key<K>(keys: &[Option<K>], row: u32) -> Option<&K> {
    keys.get(row as usize).and_then(Option::as_ref)
}
