//! The values of one type in a column: by number, by row, for a set of rows. What is asked of all values at once is in `scan`.

use super::numbers::{Doubles, EXPONENT_MAX, int_of};
use super::packed::{BLOCK, Packed};
use super::presence::Presence;
use super::strings::{Dictionary, Raw, RawBlock};
use super::{DECIMAL, DICTIONARY, Kind, PLAIN, RAW, Value};
use crate::error::{Error, Result, corrupt};
use crate::format::{piece, read_u32};
use crate::row::RowId;
use crate::rowset::RowSet;
use crate::stats::Distinct;

/// How the values of a lane lie.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Values<'a> {
    /// Bools, ints or doubles: packed keys (`Lane::value` and scans read them).
    #[doc(hidden)]
    Numbers(Numbers<'a>),
    /// Strings by a dictionary.
    Dictionary(Dictionary<'a>),
    /// Strings as they are.
    Raw(Raw<'a>),
}

/// Packed keys and what they stand for.
#[derive(Debug, Clone, Copy)]
pub struct Numbers<'a> {
    pub(super) packed: Packed<'a>,
    pub(super) doubles: Doubles,
}

/// A lane where it lies.
#[derive(Debug, Clone, Copy)]
pub struct Lane<'a> {
    tag: u8,
    kind: Kind,
    distinct: Distinct,
    presence: Presence<'a>,
    pub(super) values: Values<'a>,
}

impl<'a> Lane<'a> {
    /// `again`: it was opened before, so that its blocks need no look.
    pub(super) fn open(payload: &'a [u8], at: usize, rows: u32, again: bool) -> Result<Self> {
        let head = read_u32(payload, at)?.to_le_bytes();
        let [tag, kind, encoding, exponent] = head;
        let count = read_u32(payload, at + 4)? as usize;
        let exact = read_u32(payload, at + 12)?;
        let presence = Presence::open(piece(payload, at + 16)?)?;
        let data = piece(payload, at + 24)?;
        let kind = match kind {
            1 => Kind::Bool,
            2 => Kind::Int,
            3 => Kind::Float,
            4 => Kind::Bytes,
            version => return Err(Error::Unsupported { what: "kind of lane", version }),
        };
        let packed = || if again { Packed::reopen(data) } else { Packed::open(data) };
        let numbers = |doubles| packed().map(|packed| Values::Numbers(Numbers { packed, doubles }));
        let values = match (kind, encoding) {
            (Kind::Bool | Kind::Int | Kind::Float, PLAIN) if exponent == 0 => numbers(Doubles::Raw)?,
            (Kind::Float, DECIMAL) if exponent <= EXPONENT_MAX => numbers(Doubles::Decimal(exponent))?,
            (Kind::Bytes, DICTIONARY) if again => Values::Dictionary(Dictionary::reopen(data)?),
            (Kind::Bytes, DICTIONARY) => Values::Dictionary(Dictionary::open(data)?),
            (Kind::Bytes, RAW) => Values::Raw(Raw::open(data)?),
            _ => return Err(Error::Unsupported { what: "encoding of a lane", version: encoding }),
        };
        let lane_count = match values {
            Values::Numbers(numbers) => numbers.packed.len(),
            Values::Dictionary(dictionary) => dictionary.codes.len(),
            Values::Raw(raw) => raw.len(),
        };
        if lane_count != count || presence.values() != count || presence.rows() != rows || exact > 1 {
            return Err(corrupt("as many values as the lane says", at));
        }
        let distinct = Distinct { count: read_u32(payload, at + 8)?, exact: exact == 1 };
        Ok(Self { tag, kind, distinct, presence, values })
    }

    pub(super) fn check(&self) -> Result<()> {
        self.presence.check()?;
        match self.values {
            Values::Numbers(numbers) => {
                let mut block = Vec::new();
                for index in 0..numbers.packed.blocks() {
                    numbers.packed.block(index, &mut block);
                    let zone = block.iter().min().copied().zip(block.iter().max().copied());
                    if zone != numbers.packed.zone(index) {
                        return Err(corrupt("the zone of its numbers", index));
                    }
                }
                let high = numbers.packed.min_max().map_or(0, |(_, max)| max);
                if self.kind == Kind::Bool && high > 1 { Err(corrupt("bools", 0)) } else { Ok(()) }
            }
            Values::Dictionary(dictionary) => dictionary.check(),
            Values::Raw(raw) => raw.for_each(|_, _| ()),
        }
    }

    /// The caller's tag.
    #[must_use]
    pub fn tag(&self) -> u8 {
        self.tag
    }

    /// What it holds.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Which rows have how many values.
    #[must_use]
    pub fn presence(&self) -> &Presence<'a> {
        &self.presence
    }

    /// How its values lie: dictionaries have codes and counts of their own.
    #[must_use]
    pub fn values(&self) -> &Values<'a> {
        &self.values
    }

    /// Distinct values (of -0.0 and 0.0, two).
    #[must_use]
    pub fn distinct(&self) -> Distinct {
        self.distinct
    }

    /// The value of this number; strings are put into `buffer`.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not what was written, or there is no such value.
    pub fn value<'b>(&self, value: usize, buffer: &'b mut Vec<u8>) -> Result<Value<'b>> {
        match self.values {
            Values::Numbers(numbers) => {
                let key = numbers.packed.get(value).ok_or(corrupt("a value of this number", value))?;
                Ok(self.value_of(key))
            }
            Values::Dictionary(dictionary) => {
                let code = dictionary.code_at(value).ok_or(corrupt("a value of this number", value))?;
                dictionary.value(code, buffer)?;
                Ok(Value::Bytes(buffer))
            }
            Values::Raw(raw) => {
                raw.value(value, buffer)?;
                Ok(Value::Bytes(buffer))
            }
        }
    }

    /// What a packed key stands for.
    pub(super) fn value_of(&self, key: u64) -> Value<'static> {
        match (self.kind, self.values) {
            (Kind::Bool, _) => Value::Bool(key != 0),
            (Kind::Float, Values::Numbers(numbers)) => Value::Float(numbers.doubles.of(key)),
            _ => Value::Int(int_of(key)),
        }
    }

    /// Gives the values of the rows of a set, in order: for numbers a pass over the blocks that hold some.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn for_rows(&self, rows: &RowSet, mut give: impl FnMut(RowId, Value<'_>)) -> Result<()> {
        let mut buffer = Vec::new();
        match self.values {
            Values::Numbers(numbers) => {
                self.keys_of_rows(numbers.packed, rows, |row, key| give(row, self.value_of(key)))
            }
            Values::Dictionary(_) => self.numbers_of_rows(rows, |row, value| {
                give(row, self.value(value, &mut buffer)?);
                Ok(())
            }),
            Values::Raw(raw) => {
                let mut held = RawBlock::default();
                self.numbers_of_rows(rows, |row, value| {
                    give(row, Value::Bytes(raw.value_in(value, &mut held)?));
                    Ok(())
                })
            }
        }
    }

    /// Gives the dictionary's code of each value of the rows of a set, in order: what grouping works with. Nothing where
    /// there is no dictionary.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn codes_of_rows(&self, rows: &RowSet, mut give: impl FnMut(RowId, usize)) -> Result<()> {
        let Values::Dictionary(dictionary) = self.values else { return Ok(()) };
        self.keys_of_rows(dictionary.codes, rows, |row, code| give(row, code as usize))
    }

    fn keys_of_rows(&self, packed: Packed<'_>, rows: &RowSet, mut give: impl FnMut(RowId, u64)) -> Result<()> {
        let (mut block, mut held) = (Vec::new(), usize::MAX);
        self.numbers_of_rows(rows, |row, value| {
            if value / BLOCK != held {
                held = value / BLOCK;
                packed.block(held, &mut block);
            }
            give(row, *block.get(value % BLOCK).ok_or(corrupt("a value of this number", value))?);
            Ok(())
        })
    }

    /// Gives the numbers of the values of rows.
    fn numbers_of_rows(&self, rows: &RowSet, mut give: impl FnMut(RowId, usize) -> Result<()>) -> Result<()> {
        let mut next = 0;
        for row in rows.iter() {
            let values = self.presence.values_of(row);
            if values.is_empty() {
                continue;
            }
            // Ranks that lie could give every row every value.
            if values.start < next {
                return Err(corrupt("values in the order of their rows", values.start));
            }
            next = values.end;
            for value in values {
                give(row, value)?;
            }
        }
        Ok(())
    }

    /// Gives all values in order of their rows, with the row of each.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn for_each(&self, mut give: impl FnMut(RowId, Value<'_>)) -> Result<()> {
        let rows = self.presence.row_set();
        let Values::Raw(raw) = self.values else { return self.for_rows(&rows, give) };
        let mut row_of_value = rows.iter().flat_map(|row| self.presence.values_of(row).map(move |_| row));
        raw.for_each(|_, bytes| {
            if let Some(row) = row_of_value.next() {
                give(row, Value::Bytes(bytes));
            }
        })
    }

    /// The packed numbers of its values where these have the values' order; none for raw strings.
    fn in_order(&self) -> Option<Packed<'a>> {
        match self.values {
            Values::Numbers(numbers) => Some(numbers.packed),
            Values::Dictionary(dictionary) => Some(dictionary.codes),
            Values::Raw(_) => None,
        }
    }

    /// What `for_each_ordered` gives for a packed number.
    fn ordered(&self, number: u64) -> u64 {
        match self.values {
            Values::Numbers(Numbers { doubles, .. }) if self.kind == Kind::Float => doubles.joined(number),
            _ => number,
        }
    }

    /// The least and the greatest of what `for_each_ordered` gives; none where that is nothing.
    #[must_use]
    pub fn ordered_range(&self) -> Option<(u64, u64)> {
        let (min, max) = self.in_order()?.min_max()?;
        Some((self.ordered(min), self.ordered(max)))
    }

    /// Gives each value as a number, in the order of their rows: greater ones for greater values, equal ones for equal
    /// values. Nothing for raw strings.
    ///
    /// # Errors
    /// `Corrupt`, after what could be read.
    pub fn for_each_ordered(&self, mut give: impl FnMut(RowId, u64)) -> Result<()> {
        let Some(packed) = self.in_order() else { return Ok(()) };
        if self.presence.rows_with() < self.presence.rows() || self.presence.is_many() {
            return self.keys_of_rows(packed, &self.presence.row_set(), |row, number| give(row, self.ordered(number)));
        }
        let mut row = 0;
        packed.for_each(|number| {
            give(RowId::at(row), self.ordered(number));
            row += 1;
        });
        Ok(())
    }

    /// The value of a number that `for_each_ordered` gave; strings are put into `buffer`.
    ///
    /// # Errors
    /// `Corrupt` if the bytes are not what was written, or there is no such value.
    pub fn of_ordered<'b>(&self, number: u64, buffer: &'b mut Vec<u8>) -> Result<Value<'b>> {
        if let Values::Dictionary(dictionary) = self.values {
            dictionary.value(number as usize, buffer)?;
            return Ok(Value::Bytes(buffer));
        }
        Ok(self.value_of(number))
    }

    /// Least and greatest value; for strings only where there is a dictionary. Costs the zone map.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn min_max<'b>(&self, low: &'b mut Vec<u8>, high: &'b mut Vec<u8>) -> Result<Option<(Value<'b>, Value<'b>)>> {
        match self.values {
            Values::Numbers(numbers) => {
                Ok(numbers.packed.min_max().map(|(min, max)| (self.value_of(min), self.value_of(max))))
            }
            Values::Dictionary(dictionary) if !dictionary.is_empty() => {
                dictionary.value(0, low)?;
                dictionary.value(dictionary.len() - 1, high)?;
                Ok(Some((Value::Bytes(low), Value::Bytes(high))))
            }
            Values::Dictionary(_) | Values::Raw(_) => Ok(None),
        }
    }
}
