//! Which rows have no value, one or many, and which value belongs to which row.
//!
//! Values are numbered 0.. in the order of their rows. Rows: all of them, a bitmap with rank and select, or (few) a list.
//! Many values: a bitmap over the values with a one where a row begins. It knows nothing of what the values are.

use std::ops::Range;

use super::bits::{self, Bits, select_in_word};
use crate::error::{Result, corrupt};
use crate::format::{read_u32, slice, to_u32};
use crate::row::{ROWS_MAX, RowId};
use crate::rowset::{Dense, RowSet};

const ALL: u8 = 0;
const BITMAP: u8 = 1;
const LIST: u8 = 2;
const HEAD_BYTES: usize = 16;

/// Appends the presence of values given by the row of each, ascending (rows of many values repeat).
pub(crate) fn write(row_of_value: &[u32], rows: u32, out: &mut Vec<u8>) -> Result<()> {
    let mut with: Vec<u32> = row_of_value.to_vec();
    with.dedup();
    let many = with.len() < row_of_value.len();
    let mut set = Vec::new();
    let kind = if with.len() == rows as usize {
        ALL
    } else if with.len() * 4 <= rows as usize / 8 {
        with.iter().for_each(|row| set.extend(row.to_le_bytes()));
        LIST
    } else {
        let mut words = vec![0_u64; rows.div_ceil(64) as usize];
        with.iter().for_each(|&row| words[row as usize / 64] |= 1 << (row % 64));
        bits::write(&words, rows as usize, &mut set)?;
        BITMAP
    };
    out.extend([kind, u8::from(many), 0, 0]);
    out.extend(rows.to_le_bytes());
    out.extend(to_u32(with.len())?.to_le_bytes());
    out.extend(to_u32(set.len())?.to_le_bytes());
    out.append(&mut set);
    if many {
        let mut words = vec![0_u64; row_of_value.len().div_ceil(64)];
        let mut before = None;
        for (value, &row) in row_of_value.iter().enumerate() {
            if before != Some(row) {
                words[value / 64] |= 1 << (value % 64);
            }
            before = Some(row);
        }
        bits::write(&words, row_of_value.len(), out)?;
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Rows<'a> {
    All,
    Bitmap(Bits<'a>),
    List(&'a [u8]),
}

/// Presence where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Presence<'a> {
    set: Rows<'a>,
    rows: u32,
    with: u32,
    starts: Option<Bits<'a>>,
}

impl<'a> Presence<'a> {
    pub(crate) fn open(bytes: &'a [u8]) -> Result<Self> {
        let (rows, with) = (read_u32(bytes, 4)?, read_u32(bytes, 8)?);
        let set = slice(bytes, HEAD_BYTES, read_u32(bytes, 12)? as usize)?;
        let rest = &bytes[HEAD_BYTES + set.len()..];
        let starts = match bytes[1] {
            0 if rest.is_empty() => None,
            1 => Some(Bits::open(rest)?),
            _ => return Err(corrupt("one value or many", 1)),
        };
        if rows > ROWS_MAX || with > rows || starts.is_some_and(|starts| starts.ones() != with as usize) {
            return Err(corrupt("rows with values within the rows", 4));
        }
        let set = match bytes[0] {
            ALL if set.is_empty() && with == rows => Rows::All,
            LIST if set.len() == with as usize * 4 => Rows::List(set),
            BITMAP => {
                let bits = Bits::open(set)?;
                if bits.len() != rows as usize || bits.ones() != with as usize {
                    return Err(corrupt("a bit for each row", HEAD_BYTES));
                }
                Rows::Bitmap(bits)
            }
            _ => return Err(corrupt("a kind of presence", 0)),
        };
        Ok(Self { set, rows, with, starts })
    }

    /// Whether all counts are right and the rows ascend. Costs a pass.
    pub(crate) fn check(&self) -> Result<()> {
        match self.set {
            Rows::All => {}
            Rows::Bitmap(bits) => bits.check()?,
            Rows::List(list) => {
                let mut numbers = (0..self.with as usize).map(|nth| list_at(list, nth));
                if !numbers.clone().is_sorted_by(|a, b| a < b)
                    || numbers.next_back().is_some_and(|row| row >= self.rows)
                {
                    return Err(corrupt("ascending rows", HEAD_BYTES));
                }
            }
        }
        let Some(starts) = self.starts else { return Ok(()) };
        if starts.len() > 0 && !starts.get(0) {
            return Err(corrupt("a row that begins with the first value", HEAD_BYTES));
        }
        starts.check()
    }

    /// Rows of the segment, with values or not.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Rows with at least one value.
    #[must_use]
    pub fn rows_with(&self) -> u32 {
        self.with
    }

    /// Values of all rows.
    #[must_use]
    pub fn values(&self) -> usize {
        self.starts.map_or(self.with as usize, |starts| starts.len())
    }

    /// Whether some row has more than one value.
    #[must_use]
    pub fn is_many(&self) -> bool {
        self.starts.is_some()
    }

    /// Which among the rows with values this row is.
    fn ordinal(&self, row: RowId) -> Option<usize> {
        let row = row.number();
        match self.set {
            Rows::All => (row < self.rows).then_some(row as usize),
            Rows::Bitmap(bits) => (row < self.rows && bits.get(row as usize)).then(|| bits.rank(row as usize)),
            Rows::List(list) => {
                let (mut low, mut high) = (0, self.with as usize);
                while low < high {
                    let middle = low + (high - low) / 2;
                    if list_at(list, middle) < row { low = middle + 1 } else { high = middle }
                }
                (low < self.with as usize && list_at(list, low) == row).then_some(low)
            }
        }
    }

    /// The numbers of the values of a row; empty if it has none.
    #[must_use]
    pub fn values_of(&self, row: RowId) -> Range<usize> {
        let Some(ordinal) = self.ordinal(row) else { return 0..0 };
        match self.starts {
            None => ordinal..ordinal + 1,
            Some(starts) => match starts.select(ordinal) {
                Some(start) => start..starts.select(ordinal + 1).unwrap_or(starts.len()).max(start),
                None => 0..0,
            },
        }
    }

    /// The row of a value.
    #[must_use]
    pub fn row_of(&self, value: usize) -> Option<RowId> {
        let ordinal = match self.starts {
            None => value,
            Some(starts) if value < starts.len() => starts.rank(value + 1).checked_sub(1)?,
            Some(_) => return None,
        };
        let row = match self.set {
            Rows::All => u32::try_from(ordinal).ok(),
            Rows::Bitmap(bits) => bits.select(ordinal).map(|row| row as u32),
            Rows::List(list) => (ordinal < self.with as usize).then(|| list_at(list, ordinal)),
        };
        row.filter(|&row| row < self.rows).map(RowId::at)
    }

    /// The rows with values.
    #[must_use]
    pub fn row_set(&self) -> RowSet {
        match self.set {
            Rows::All => RowSet::range(0..self.rows),
            Rows::Bitmap(bits) => Dense::from_words(bits.words().collect(), self.rows).to_row_set(),
            Rows::List(list) => {
                (0..self.with as usize).map(|n| list_at(list, n)).filter(|&r| r < self.rows).map(RowId::at).collect()
            }
        }
    }

    /// The rows of those values whose bit is set, each row once.
    pub(crate) fn rows_of_values(&self, values: Vec<u64>) -> RowSet {
        let ordinals = match self.starts {
            None => values,
            Some(starts) => ordinals_of(starts, &values),
        };
        match self.set {
            Rows::All => Dense::from_words(ordinals, self.rows).to_row_set(),
            Rows::Bitmap(bits) => Dense::from_words(spread(bits, &ordinals), self.rows).to_row_set(),
            Rows::List(list) => ones(&ordinals)
                .filter(|&ordinal| ordinal < self.with as usize)
                .map(|ordinal| list_at(list, ordinal))
                .filter(|&row| row < self.rows)
                .map(RowId::at)
                .collect(),
        }
    }
}

/// Where the values of a window of rows begin.
pub(crate) enum Spot {
    /// Every row has one: value and row have one number.
    All,
    /// Those of the rows whose bit is set follow from this one on.
    From(usize),
}

impl Presence<'_> {
    /// The rows with values of a window of as many rows as `present` has bits, whose first is a multiple of that.
    pub(crate) fn spot<const WORDS: usize>(&self, index: usize, present: &mut [u64; WORDS]) -> Spot {
        let first = index.saturating_mul(WORDS * 64);
        match self.set {
            Rows::All => {
                let count = (self.rows as usize).saturating_sub(first).min(WORDS * 64);
                crate::rowset::set_run(present, 0..count as u32);
                Spot::All
            }
            Rows::Bitmap(bits) => {
                let words = present.iter_mut().enumerate();
                words.for_each(|(at, word)| *word = bits.word(first / 64 + at));
                Spot::From(bits.rank(first))
            }
            Rows::List(list) => {
                let below = |row: usize| {
                    let (mut low, mut high) = (0, self.with as usize);
                    while low < high {
                        let middle = low + (high - low) / 2;
                        if (list_at(list, middle) as usize) < row { low = middle + 1 } else { high = middle }
                    }
                    low
                };
                let from = below(first);
                for nth in from..below(first + WORDS * 64) {
                    let at = (list_at(list, nth) as usize).saturating_sub(first);
                    if let Some(word) = present.get_mut(at / 64) {
                        *word |= 1 << (at % 64);
                    }
                }
                Spot::From(from)
            }
        }
    }
}

fn list_at(list: &[u8], nth: usize) -> u32 {
    read_u32(list, nth * 4).unwrap_or(u32::MAX)
}

/// The places of the ones.
pub(crate) fn ones(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(index, &word)| {
        let mut bits = word;
        std::iter::from_fn(move || {
            let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
            bits &= bits - 1;
            Some(index * 64 + bit)
        })
    })
}

/// From bits of values to bits of the rows (counted among those with values) that they belong to.
fn ordinals_of(starts: Bits<'_>, values: &[u64]) -> Vec<u64> {
    let mut out = vec![0_u64; starts.ones().div_ceil(64)];
    let mut before = 0_usize;
    for (word, &hits) in starts.words().zip(values) {
        let mut bits = hits;
        while bits != 0 {
            let bit = bits.trailing_zeros();
            bits &= bits - 1;
            let up_to = word & (u64::MAX >> (63 - bit));
            let ordinal = (before + up_to.count_ones() as usize).wrapping_sub(1);
            if let Some(out) = out.get_mut(ordinal / 64) {
                *out |= 1 << (ordinal % 64);
            }
        }
        before += word.count_ones() as usize;
    }
    out
}

/// The nth bit of `ordinals` to where the nth one of `bits` is.
fn spread(bits: Bits<'_>, ordinals: &[u64]) -> Vec<u64> {
    let mut at = 0_usize;
    let mut out = Vec::with_capacity(bits.len().div_ceil(64));
    for word in bits.words() {
        let count = word.count_ones() as usize;
        let low = ordinals.get(at / 64).map_or(0, |bits| bits >> (at % 64));
        let high =
            if at.is_multiple_of(64) { 0 } else { ordinals.get(at / 64 + 1).map_or(0, |bits| bits << (64 - at % 64)) };
        let mut hits = low | high;
        if count < 64 {
            hits &= (1 << count) - 1;
        }
        at += count;
        let mut spread = 0;
        if hits.count_ones() as usize == count {
            spread = word;
        } else {
            while hits != 0 {
                spread |= 1 << select_in_word(word, hits.trailing_zeros() as usize);
                hits &= hits - 1;
            }
        }
        out.push(spread);
    }
    out
}
