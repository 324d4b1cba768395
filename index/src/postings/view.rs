//! A roaring bitmap in its portable format, read where it lies: counts from headers, rows and membership without a copy.
//!
//! Takes bytes of any origin; what it gives stays within them and below `ROWS_MAX`. The format is that of
//! <https://github.com/RoaringBitmap/RoaringFormatSpec>; of it, a segment needs at most `CONTAINERS_MAX` containers.

use crate::error::{Result, corrupt};
use crate::format::{read_u32, slice};
use crate::row::{ROWS_MAX, RowId};
use crate::rowset::{Dense, RowSet, set_run};

/// Containers of 2^16 rows that the rows of a segment fill.
pub(crate) const CONTAINERS_MAX: usize = (ROWS_MAX >> 16) as usize;
const COOKIE_PLAIN: u32 = 12346;
const COOKIE_RUNS: u32 = 12347;
/// With fewer containers, a bitmap with runs has no offsets.
const OFFSETS_FROM: usize = 4;
const ARRAY_MAX: usize = 4096;
/// Bytes of a container that is a bitmap.
pub(crate) const BITMAP_BYTES: usize = 8192;

/// What lies in a container.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape<'a> {
    /// Ascending u16.
    Array(&'a [u8]),
    /// A bit for each of 2^16.
    Bitmap(&'a [u8]),
    /// Pairs of u16: first, and how many follow it.
    Runs(&'a [u8]),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Container<'a> {
    pub(crate) key: u16,
    pub(crate) count: u32,
    pub(crate) shape: Shape<'a>,
}

/// A set of rows where it lies.
#[derive(Debug, Clone, Copy)]
pub struct RoaringView<'a> {
    containers: [Container<'a>; CONTAINERS_MAX],
    len: usize,
}

pub(crate) fn u16_at(bytes: &[u8], index: usize) -> u16 {
    bytes.get(index * 2..).and_then(|rest| rest.first_chunk()).map_or(u16::MAX, |two| u16::from_le_bytes(*two))
}

pub(crate) fn u16s(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.as_chunks::<2>().0.iter().map(|two| u16::from_le_bytes(*two))
}

pub(crate) fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks::<8>().0.iter().map(|eight| u64::from_le_bytes(*eight))
}

/// First and last of each run.
pub(crate) fn runs(bytes: &[u8]) -> impl Iterator<Item = (u16, u16)> + '_ {
    let pairs = bytes.as_chunks::<4>().0.iter();
    pairs.map(|&[a, b, c, d]| {
        let first = u16::from_le_bytes([a, b]);
        (first, first.saturating_add(u16::from_le_bytes([c, d])))
    })
}

impl<'a> RoaringView<'a> {
    /// Opens a whole slice. Costs a look at each container's header, whatever the number of rows.
    ///
    /// # Errors
    /// `Corrupt` if containers are out of order, beyond the rows of a segment, or not where they should be.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let cookie = read_u32(bytes, 0)?;
        let (len, flags, mut at) = if cookie == COOKIE_PLAIN {
            (read_u32(bytes, 4)? as usize, &[][..], 8)
        } else if cookie & 0xffff == COOKIE_RUNS {
            let len = (cookie >> 16) as usize + 1;
            (len, slice(bytes, 4, len.div_ceil(8))?, 4 + len.div_ceil(8))
        } else {
            return Err(corrupt("the cookie of a roaring bitmap", 0));
        };
        if len > CONTAINERS_MAX {
            return Err(corrupt("containers of one segment", 4));
        }
        let heads = slice(bytes, at, len * 4)?;
        at += heads.len();
        let offsets = if flags.is_empty() || len >= OFFSETS_FROM { slice(bytes, at, len * 4)? } else { &[] };
        at += offsets.len();
        let nothing = Container { key: 0, count: 0, shape: Shape::Array(&[]) };
        let mut view = Self { containers: [nothing; CONTAINERS_MAX], len };
        let mut above = None;
        for (index, container) in view.containers.iter_mut().take(len).enumerate() {
            let (key, count) = (u16_at(heads, index * 2), u32::from(u16_at(heads, index * 2 + 1)) + 1);
            if above.is_some_and(|above| key <= above) || usize::from(key) >= CONTAINERS_MAX {
                return Err(corrupt("ascending containers of one segment", index));
            }
            above = Some(key);
            if !offsets.is_empty() && read_u32(offsets, index * 4)? as usize != at {
                return Err(corrupt("a container after the one before", at));
            }
            let is_runs = flags.get(index / 8).is_some_and(|flags| flags >> (index % 8) & 1 == 1);
            let shape = if is_runs {
                let count = usize::from(u16_at(slice(bytes, at, 2)?, 0));
                at += 2;
                Shape::Runs(slice(bytes, at, count * 4)?)
            } else if count as usize <= ARRAY_MAX {
                Shape::Array(slice(bytes, at, count as usize * 2)?)
            } else {
                Shape::Bitmap(slice(bytes, at, BITMAP_BYTES)?)
            };
            at += match shape {
                Shape::Array(bytes) | Shape::Bitmap(bytes) | Shape::Runs(bytes) => bytes.len(),
            };
            *container = Container { key, count, shape };
        }
        if at == bytes.len() { Ok(view) } else { Err(corrupt("the end of a roaring bitmap", at)) }
    }

    /// Whether what lies in the containers ascends and is as many as their headers say. Costs a pass.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn check(&self) -> Result<()> {
        for container in self.containers() {
            let (count, ascends) = match container.shape {
                Shape::Array(bytes) => (bytes.len() / 2, u16s(bytes).is_sorted_by(|a, b| a < b)),
                Shape::Bitmap(bytes) => (words(bytes).map(|word| word.count_ones() as usize).sum(), true),
                Shape::Runs(bytes) => {
                    let count = runs(bytes).map(|(first, last)| usize::from(last - first) + 1).sum();
                    let whole = (0..bytes.len() / 4)
                        .all(|run| u16_at(bytes, run * 2).checked_add(u16_at(bytes, run * 2 + 1)).is_some());
                    (count, whole && runs(bytes).is_sorted_by(|a, b| a.1 < b.0))
                }
            };
            if count != container.count as usize || !ascends {
                return Err(corrupt("as many ascending rows as the header says", usize::from(container.key)));
            }
        }
        Ok(())
    }

    pub(crate) fn containers(&self) -> &[Container<'a>] {
        self.containers.get(..self.len).unwrap_or_default()
    }

    pub(crate) fn container(&self, key: u16) -> Option<&Container<'a>> {
        self.containers().iter().find(|container| container.key == key)
    }

    /// How many rows: from the headers.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.containers().iter().map(|container| u64::from(container.count)).sum()
    }

    /// Whether none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a row is in it.
    #[must_use]
    pub fn contains(&self, row: RowId) -> bool {
        let Ok(key) = u16::try_from(row.number() >> 16) else { return false };
        self.container(key).is_some_and(|container| container.contains(row.number() as u16))
    }

    /// Gives its rows as runs of first and last, in order; of hostile bytes in any.
    fn for_runs(&self, mut give: impl FnMut(u32, u32)) {
        for container in self.containers() {
            let base = u32::from(container.key) << 16;
            match container.shape {
                Shape::Array(bytes) => u16s(bytes).for_each(|low| give(base + u32::from(low), base + u32::from(low))),
                Shape::Runs(bytes) => {
                    runs(bytes).for_each(|(a, b)| give(base + u32::from(a), base + u32::from(b)));
                }
                Shape::Bitmap(bytes) => {
                    for (index, mut word) in (0..).zip(words(bytes)) {
                        while word != 0 {
                            let row = base + index * 64 + word.trailing_zeros();
                            word &= word - 1;
                            give(row, row);
                        }
                    }
                }
            }
        }
    }

    /// Gives each row, in order.
    pub fn for_each(&self, mut give: impl FnMut(RowId)) {
        self.for_runs(|first, last| (first..=last).for_each(|row| give(RowId::at(row))));
    }

    /// Adds its rows to bits that a scan works with.
    pub fn add_to(&self, dense: &mut Dense) {
        let mut bits = Dense::none(dense.rows()).words().to_vec();
        for container in self.containers() {
            let from = usize::from(container.key) * (BITMAP_BYTES / 8);
            let Some(to) = bits.get_mut(from..) else { break };
            match container.shape {
                Shape::Bitmap(bytes) => to.iter_mut().zip(words(bytes)).for_each(|(to, word)| *to |= word),
                Shape::Runs(bytes) => runs(bytes).for_each(|(a, b)| set_run(to, u32::from(a)..u32::from(b) + 1)),
                Shape::Array(bytes) => u16s(bytes).for_each(|low| {
                    if let Some(word) = to.get_mut(usize::from(low) / 64) {
                        *word |= 1 << (low % 64);
                    }
                }),
            }
        }
        dense.add(&Dense::from_words(bits, dense.rows()));
    }

    /// A copy as a row set.
    #[must_use]
    pub fn to_row_set(&self) -> RowSet {
        if self.containers().iter().any(|container| matches!(container.shape, Shape::Bitmap(_))) {
            return self.by_bits();
        }
        let mut bitmap = roaring::RoaringBitmap::new();
        self.for_runs(|first, last| {
            if first < last {
                bitmap.insert_range(first..=last);
            } else if bitmap.try_push(first).is_err() {
                bitmap.insert(first);
            }
        });
        RowSet::from_bitmap(bitmap)
    }

    /// The same where there are many: not row by row.
    fn by_bits(&self) -> RowSet {
        let end = self.containers().iter().map(|container| usize::from(container.key) + 1).max().unwrap_or(0);
        let mut bits = vec![0_u8; end * BITMAP_BYTES];
        for container in self.containers() {
            let from = usize::from(container.key) * BITMAP_BYTES;
            let Some(own) = bits.get_mut(from..from + BITMAP_BYTES) else { continue };
            match container.shape {
                Shape::Bitmap(bytes) => own.copy_from_slice(bytes),
                Shape::Array(bytes) => u16s(bytes).for_each(|row| set(own, row)),
                Shape::Runs(bytes) => {
                    runs(bytes).for_each(|(first, last)| (first..=last).for_each(|row| set(own, row)));
                }
            }
        }
        RowSet::from_bitmap(roaring::RoaringBitmap::from_lsb0_bytes(0, &bits))
    }
}

impl Container<'_> {
    pub(crate) fn contains(&self, low: u16) -> bool {
        match self.shape {
            Shape::Bitmap(bytes) => bytes.get(usize::from(low) / 8).is_some_and(|byte| byte >> (low % 8) & 1 == 1),
            Shape::Array(bytes) => {
                let at = lower_bound(bytes.len() / 2, |index| u16_at(bytes, index) < low);
                at < bytes.len() / 2 && u16_at(bytes, at) == low
            }
            Shape::Runs(bytes) => {
                let after = lower_bound(bytes.len() / 4, |index| u16_at(bytes, index * 2) <= low);
                after.checked_sub(1).is_some_and(|run| {
                    let first = u16_at(bytes, run * 2);
                    low <= first.saturating_add(u16_at(bytes, run * 2 + 1))
                })
            }
        }
    }
}

fn set(bits: &mut [u8], row: u16) {
    bits[usize::from(row) / 8] |= 1 << (row % 8);
}

/// The first index below `len` for which `below` does not hold.
pub(crate) fn lower_bound(len: usize, below: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
