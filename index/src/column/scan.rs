//! Questions to all values of a lane, answered with rows: equality, range, membership, any predicate on strings.
//!
//! Numbers and codes are compared packed, block by block, and blocks are skipped or taken whole by their zone. A row is in
//! the answer once if any of its values is; a question of another kind than the lane's has no rows.

use std::ops::Bound;

use super::lane::{Lane, Values};
use super::numbers::{int_key, int_keys};
use super::packed::{BLOCK_WORDS, Packed};
use super::{Kind, Value};
use crate::error::Result;
use crate::rowset::RowSet;

/// Spans of a set of keys up to which membership is a bitmap.
const TABLE_SPAN_MAX: u64 = 1 << 20;

/// Ranges of keys up to which each is compared packed: as dear as unpacking once at about a dozen.
const PACKED_RANGES_MAX: usize = 8;
/// Codes of a range up to which its rows are the sum of the dictionary's counts, not a scan.
const SUM_CODES_MAX: u64 = 4096;

/// The first and the last key of a range; `None` if it holds none.
type KeyRange = Option<(u64, u64)>;

fn scan(packed: Packed<'_>, mut block: impl FnMut(usize, &mut [u64; BLOCK_WORDS])) -> Vec<u64> {
    let mut words = Vec::with_capacity(packed.blocks() * BLOCK_WORDS);
    for index in 0..packed.blocks() {
        let mut bits = [0; BLOCK_WORDS];
        block(index, &mut bits);
        words.extend(bits);
    }
    words
}

impl Lane<'_> {
    fn keys_between(&self, packed: Packed<'_>, keys: KeyRange) -> RowSet {
        let Some((low, high)) = keys else { return RowSet::new() };
        let everything = packed.min_max().is_none_or(|(min, max)| low <= min && max <= high);
        if everything {
            return self.presence().row_set();
        }
        self.presence().rows_of_values(scan(packed, |block, words| packed.between(block, low, high, words)))
    }

    fn count_between(&self, packed: Packed<'_>, keys: KeyRange) -> u64 {
        let Some((low, high)) = keys else { return 0 };
        if self.presence().is_many() {
            return self.keys_between(packed, keys).len();
        }
        packed.count_between(low, high)
    }

    /// The packed keys, and which of them a range of values is; `None` for raw strings.
    fn key_range<'k>(
        &'k self,
        low: Bound<Value<'_>>,
        high: Bound<Value<'_>>,
    ) -> Result<Option<(Packed<'k>, KeyRange)>> {
        let wrong = |bound: &Bound<Value<'_>>| match bound {
            Bound::Included(value) | Bound::Excluded(value) => value.kind() != self.kind(),
            Bound::Unbounded => false,
        };
        let none = wrong(&low) || wrong(&high);
        match self.values {
            Values::Numbers(numbers) if none => Ok(Some((numbers.packed, None))),
            Values::Numbers(numbers) => {
                let keys = match self.kind() {
                    Kind::Float => numbers.doubles.keys(low.map(as_float), high.map(as_float)),
                    Kind::Bool | Kind::Int | Kind::Bytes => {
                        // Bools are 0 and 1 as they are; the bounds of ints become keys.
                        let keys = int_keys(low.map(as_int), high.map(as_int));
                        if self.kind() == Kind::Bool { keys.and_then(bool_keys) } else { keys }
                    }
                };
                Ok(Some((numbers.packed, keys)))
            }
            Values::Dictionary(dictionary) if none => Ok(Some((dictionary.codes, None))),
            Values::Dictionary(dictionary) => {
                let from = match low {
                    Bound::Unbounded => 0,
                    Bound::Included(value) => dictionary.keys.rank(as_bytes(value), false)?,
                    Bound::Excluded(value) => dictionary.keys.rank(as_bytes(value), true)?,
                };
                let end = match high {
                    Bound::Unbounded => dictionary.len(),
                    Bound::Included(value) => dictionary.keys.rank(as_bytes(value), true)?,
                    Bound::Excluded(value) => dictionary.keys.rank(as_bytes(value), false)?,
                };
                Ok(Some((dictionary.codes, (from < end).then(|| (from as u64, end as u64 - 1)))))
            }
            Values::Raw(_) => Ok(None),
        }
    }

    /// Rows with a value in the range. -0.0 is 0.0; NaN is a number below all others, so that a range that shall not hold
    /// it begins after it: `Excluded(NaN)`.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn range(&self, low: Bound<Value<'_>>, high: Bound<Value<'_>>) -> Result<RowSet> {
        if let Some((packed, keys)) = self.key_range(low, high)? {
            return Ok(self.keys_between(packed, keys));
        }
        self.strings(|bytes| above(low, bytes) && below(high, bytes))
    }

    /// How many rows have a value in the range, without making them; of most blocks the zone alone is read.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn range_count(&self, low: Bound<Value<'_>>, high: Bound<Value<'_>>) -> Result<u64> {
        match self.key_range(low, high)? {
            Some((packed, keys)) => {
                if let (Values::Dictionary(dictionary), Some((low, high))) = (self.values, keys)
                    && (low == high || (!self.presence().is_many() && high - low < SUM_CODES_MAX))
                {
                    return Ok((low..=high).filter_map(|code| dictionary.rows(code as usize)).map(u64::from).sum());
                }
                Ok(self.count_between(packed, keys))
            }
            None => self.range(low, high).map(|rows| rows.len()),
        }
    }

    /// Rows with this value.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn equal(&self, value: Value<'_>) -> Result<RowSet> {
        self.range(Bound::Included(value), Bound::Included(value))
    }

    /// Rows with one of these values.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn one_of(&self, values: &[Value<'_>]) -> Result<RowSet> {
        if let Values::Raw(_) = self.values {
            let wanted: std::collections::BTreeSet<&[u8]> =
                values.iter().filter(|value| value.kind() == Kind::Bytes).map(|&value| as_bytes(value)).collect();
            return self.strings(|bytes| wanted.contains(bytes));
        }
        let (mut ranges, mut packed) = (Vec::new(), None);
        for &value in values {
            if let Some((of, Some(keys))) = self.key_range(Bound::Included(value), Bound::Included(value))? {
                packed = Some(of);
                ranges.push(keys);
            }
        }
        let Some(packed) = packed else { return Ok(RowSet::new()) };
        ranges.sort_unstable();
        Ok(self.keys_within(packed, &ranges))
    }

    /// Rows with a key in one of the ascending ranges.
    fn keys_within(&self, packed: Packed<'_>, ranges: &[(u64, u64)]) -> RowSet {
        let (Some(&(low, _)), Some(&(_, high))) = (ranges.first(), ranges.last()) else { return RowSet::new() };
        if ranges.len() == 1 {
            return self.keys_between(packed, Some((low, high)));
        }
        if ranges.len() <= PACKED_RANGES_MAX {
            let words = scan(packed, |block, words| {
                ranges.iter().for_each(|&(from, to)| packed.between(block, from, to, words));
            });
            return self.presence().rows_of_values(words);
        }
        let outside = |block| packed.zone(block).is_none_or(|(min, max)| max < low || high < min);
        let words = if high - low <= TABLE_SPAN_MAX {
            let mut table = vec![0_u64; ((high - low) / 64 + 1) as usize];
            for key in ranges.iter().flat_map(|&(from, to)| from - low..=to - low) {
                table[key as usize / 64] |= 1 << (key % 64);
            }
            let within = |key: u64| {
                let key = key.wrapping_sub(low);
                usize::try_from(key / 64)
                    .ok()
                    .and_then(|word| table.get(word))
                    .is_some_and(|w| w >> (key % 64) & 1 == 1)
            };
            scan(packed, |block, words| {
                if !outside(block) {
                    packed.matching(block, within, words);
                }
            })
        } else {
            let within = |key: u64| {
                let after = ranges.partition_point(|&(from, _)| from <= key);
                after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|&(_, to)| key <= to)
            };
            scan(packed, |block, words| {
                if !outside(block) {
                    packed.matching(block, within, words);
                }
            })
        };
        self.presence().rows_of_values(words)
    }

    /// Rows with a string that `test` accepts; a dictionary is asked once for each distinct value.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn strings(&self, mut test: impl FnMut(&[u8]) -> bool) -> Result<RowSet> {
        match self.values {
            Values::Numbers(_) => Ok(RowSet::new()),
            Values::Dictionary(dictionary) => {
                let mut ranges: Vec<(u64, u64)> = Vec::new();
                dictionary.for_each(|code, bytes, _| {
                    let code = code as u64;
                    if test(bytes) {
                        match ranges.last_mut() {
                            Some((_, end)) if *end + 1 == code => *end = code,
                            _ => ranges.push((code, code)),
                        }
                    }
                })?;
                Ok(self.keys_within(dictionary.codes, &ranges))
            }
            Values::Raw(raw) => {
                let mut words = vec![0_u64; raw.len().div_ceil(64)];
                raw.for_each(|value, bytes| {
                    if test(bytes)
                        && let Some(word) = words.get_mut(value / 64)
                    {
                        *word |= 1 << (value % 64);
                    }
                })?;
                Ok(self.presence().rows_of_values(words))
            }
        }
    }

    /// Gives each distinct value in order with the number of its rows. Dictionaries know; others are gathered and sorted.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn value_counts(&self, mut give: impl FnMut(Value<'_>, u32)) -> Result<()> {
        match self.values {
            Values::Dictionary(dictionary) => dictionary.for_each(|_, bytes, rows| give(Value::Bytes(bytes), rows)),
            Values::Numbers(numbers) => {
                let mut keys = Vec::new();
                numbers.packed.for_each(|key| keys.push(key));
                if self.presence().is_many() {
                    // Ranks that lie could give every row every value.
                    self.presence().check()?;
                    let mut pairs = Vec::with_capacity(keys.len());
                    for row in self.presence().row_set().iter() {
                        let values = self.presence().values_of(row);
                        pairs.extend(keys.get(values).unwrap_or_default().iter().map(|&key| (key, row)));
                    }
                    pairs.sort_unstable();
                    pairs.dedup();
                    keys = pairs.into_iter().map(|(key, _)| key).collect();
                } else {
                    keys.sort_unstable();
                }
                keys.chunk_by(|a, b| a == b).for_each(|same| give(self.value_of(same[0]), same.len() as u32));
                Ok(())
            }
            Values::Raw(raw) => {
                let mut pairs: Vec<(Box<[u8]>, u32)> = Vec::new();
                raw.for_each(|value, bytes| {
                    let row = self.presence().row_of(value).map_or(u32::MAX, |row| row.number());
                    pairs.push((bytes.into(), row));
                })?;
                pairs.sort_unstable();
                pairs.dedup();
                let same = pairs.chunk_by(|a, b| a.0 == b.0);
                same.for_each(|same| give(Value::Bytes(&same[0].0), same.len() as u32));
                Ok(())
            }
        }
    }
}

/// The keys of a range of 0 and 1; below 0 there is none.
fn bool_keys((low, high): (u64, u64)) -> Option<(u64, u64)> {
    let zero = int_key(0);
    Some((low.saturating_sub(zero), high.checked_sub(zero)?))
}

fn as_float(value: Value<'_>) -> f64 {
    if let Value::Float(number) = value { number } else { f64::NAN }
}

fn as_int(value: Value<'_>) -> i64 {
    match value {
        Value::Int(number) => number,
        Value::Bool(value) => i64::from(value),
        Value::Float(_) | Value::Bytes(_) => 0,
    }
}

fn as_bytes(value: Value<'_>) -> &[u8] {
    if let Value::Bytes(bytes) = value { bytes } else { &[] }
}

fn above(low: Bound<Value<'_>>, bytes: &[u8]) -> bool {
    match low {
        Bound::Unbounded => true,
        Bound::Included(value) => value.kind() == Kind::Bytes && bytes >= as_bytes(value),
        Bound::Excluded(value) => value.kind() == Kind::Bytes && bytes > as_bytes(value),
    }
}

fn below(high: Bound<Value<'_>>, bytes: &[u8]) -> bool {
    match high {
        Bound::Unbounded => true,
        Bound::Included(value) => value.kind() == Kind::Bytes && bytes <= as_bytes(value),
        Bound::Excluded(value) => value.kind() == Kind::Bytes && bytes < as_bytes(value),
    }
}
