//! Takes the values of a column row by row and gives the part. Which encoding a lane gets is decided here, at the end,
//! from all of its values.

use std::borrow::Cow;

use super::interned::Interned;
use super::numbers::{Doubles, int_key};
use super::rows::RowList;
use super::strings::{VALUE_BYTES_MAX, write_dictionary, write_raw};
use super::{ARRAYS_AT, DECIMAL, DICTIONARY, HEAD_BYTES, Kind, LANE_BYTES, LANES_MAX, NULLS_AT};
use super::{PLAIN, PRESENT_AT, RAW, Value, packed, presence};
use crate::error::{Error, Result};
use crate::format::{self, HEADER_BYTES, PartKind, to_u32};
use crate::row::{ROWS_MAX, RowId};
use crate::rowset::RowSet;
use crate::stats::{Distinct, distinct};

/// Strings of a lane with fewer values always get a dictionary.
const RAW_VALUES_MIN: usize = 64;

#[derive(Debug)]
struct LaneWriter {
    tag: u8,
    kind: Kind,
    rows: RowList,
    /// Ints of 32 bits, bools as 0 and 1, strings by their number: while all values are such.
    narrow: Vec<u32>,
    /// Else all of them: ints as keys, doubles as bits.
    wide: Vec<u64>,
    strings: Interned,
}

/// Takes values in the order of their rows.
#[derive(Debug, Default)]
pub struct ColumnWriter {
    lanes: Vec<LaneWriter>,
    nulls: RowList,
    arrays: RowList,
    present: RowList,
}

impl ColumnWriter {
    /// A column of no values yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value of a row to the lane of this tag; the row counts as present. Rows of a lane come in order; a row may
    /// come more than once (many values, in their order).
    ///
    /// # Errors
    /// `Misuse` if the row is below one before or the lane has another kind; `TooLarge` for the 65th lane, a row beyond
    /// `ROWS_MAX`, or a string of more than 16 MiB.
    pub fn push(&mut self, tag: u8, row: RowId, value: Value<'_>) -> Result<()> {
        if row.number() >= ROWS_MAX {
            return Err(Error::TooLarge { what: "a row of a segment" });
        }
        let kind = value.kind();
        let index = match self.lanes.iter().position(|lane| lane.tag == tag) {
            Some(index) => index,
            None if self.lanes.len() >= LANES_MAX => return Err(Error::TooLarge { what: "64 lanes in one column" }),
            None => {
                let strings = Interned::default();
                let (rows, narrow, wide) = (RowList::default(), Vec::new(), Vec::new());
                self.lanes.push(LaneWriter { tag, kind, rows, narrow, wide, strings });
                self.lanes.len() - 1
            }
        };
        let lane = &mut self.lanes[index];
        if lane.kind != kind {
            return Err(Error::Misuse { what: "a lane has one kind" });
        }
        if lane.rows.last().is_some_and(|last| last > row.number()) {
            return Err(Error::Misuse { what: "rows of a lane ascend" });
        }
        match value {
            Value::Bool(value) => lane.narrow.push(u32::from(value)),
            Value::Int(value) => lane.push_int(value),
            Value::Float(value) => lane.wide.push(value.to_bits()),
            Value::Bytes(value) if value.len() > VALUE_BYTES_MAX => {
                return Err(Error::TooLarge { what: "16 MiB in one value" });
            }
            Value::Bytes(value) => {
                let number = lane.strings.number(value, &mut lane.narrow);
                lane.narrow.push(number.ok_or(Error::TooLarge { what: "4 GiB of strings in one lane" })?);
            }
        }
        lane.rows.push(row.number());
        self.set_present(row);
        Ok(())
    }

    /// The place exists in this row (also without a value: an empty array, an object).
    pub fn set_present(&mut self, row: RowId) {
        self.present.add(row);
    }

    /// The rows in which the place exists, so far.
    #[must_use]
    pub fn present_rows(&self) -> RowSet {
        self.present.to_row_set()
    }

    /// The row has null here (perhaps among other values). It counts as present.
    pub fn set_null(&mut self, row: RowId) {
        self.nulls.add(row);
        self.set_present(row);
    }

    /// The row has an array here, or came to its values through one. It counts as present.
    pub fn set_array(&mut self, row: RowId) {
        self.arrays.add(row);
        self.set_present(row);
    }

    /// The part for a segment of `rows` rows.
    ///
    /// # Errors
    /// `Misuse` if a row is not below `rows`; `TooLarge` beyond `ROWS_MAX` rows or 4 GiB.
    pub fn finish(mut self, rows: u32) -> Result<Vec<u8>> {
        if rows > ROWS_MAX {
            return Err(Error::TooLarge { what: "rows of a segment" });
        }
        let present = self.present.to_row_set();
        if present.last().is_some_and(|last| last.number() >= rows) {
            return Err(Error::Misuse { what: "rows of a column are below their number" });
        }
        self.lanes.sort_by_key(|lane| lane.tag);
        let mut out = format::begin();
        out.resize(HEADER_BYTES + HEAD_BYTES + self.lanes.len() * LANE_BYTES, 0);
        out[HEADER_BYTES..HEADER_BYTES + 4].copy_from_slice(&rows.to_le_bytes());
        out[HEADER_BYTES + 4] = self.lanes.len() as u8;
        let (nulls, arrays) = (self.nulls.to_row_set(), self.arrays.to_row_set());
        for (at, set) in [(NULLS_AT, &nulls), (ARRAYS_AT, &arrays), (PRESENT_AT, &present)] {
            let from = out.len();
            set.write(&mut out);
            place(&mut out, at, from)?;
        }
        for (index, lane) in self.lanes.iter().enumerate() {
            lane.write(HEAD_BYTES + index * LANE_BYTES, rows, &mut out)?;
        }
        format::finish(PartKind::Column, out)
    }
}

/// Notes at `at` of the payload where the piece lies that begins at `from` and ends here.
fn place(out: &mut [u8], at: usize, from: usize) -> Result<()> {
    let (offset, length) = (to_u32(from - HEADER_BYTES)?, to_u32(out.len() - from)?);
    out[HEADER_BYTES + at..][..4].copy_from_slice(&offset.to_le_bytes());
    out[HEADER_BYTES + at + 4..][..4].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

impl LaneWriter {
    fn push_int(&mut self, value: i64) {
        match i32::try_from(value) {
            Ok(value) if self.wide.is_empty() => self.narrow.push(value as u32),
            _ => {
                self.wide.extend(self.narrow.iter().map(|&bits| int_key(i64::from(bits as i32))));
                self.narrow = Vec::new();
                self.wide.push(int_key(value));
            }
        }
    }

    /// Ints as keys, bools as 0 and 1.
    fn keys(&self) -> Cow<'_, [u64]> {
        let wide = |&bits: &u32| if self.kind == Kind::Int { int_key(i64::from(bits as i32)) } else { u64::from(bits) };
        if self.wide.is_empty() { self.narrow.iter().map(wide).collect() } else { Cow::from(&self.wide) }
    }

    fn write(&self, at: usize, rows: u32, out: &mut Vec<u8>) -> Result<()> {
        let from = out.len();
        let row_of_value = self.rows.to_vec();
        presence::write(&row_of_value, rows, out)?;
        place(out, at + 16, from)?;
        let from = out.len();
        let (encoding, exponent, distinct) = match self.kind {
            Kind::Bool | Kind::Int => {
                let keys = self.keys();
                packed::write(&keys, out)?;
                (PLAIN, 0, distinct(&keys))
            }
            Kind::Float => {
                let numbers: Vec<f64> = self.wide.iter().map(|&bits| f64::from_bits(bits)).collect();
                let doubles = Doubles::choose(&numbers);
                let keys: Vec<u64> = numbers.iter().map(|&number| doubles.key(number)).collect();
                packed::write(&keys, out)?;
                let (encoding, exponent) = match doubles {
                    Doubles::Raw => (PLAIN, 0),
                    Doubles::Decimal(exponent) => (DECIMAL, exponent),
                };
                (encoding, exponent, distinct(&keys))
            }
            Kind::Bytes => {
                let (encoding, distinct) = self.write_strings(&row_of_value, out)?;
                (encoding, 0, distinct)
            }
        };
        place(out, at + 24, from)?;
        let values = to_u32(self.rows.len())?;
        let entry = &mut out[HEADER_BYTES + at..][..16];
        entry[..4].copy_from_slice(&[self.tag, self.kind as u8, encoding, exponent]);
        entry[4..8].copy_from_slice(&values.to_le_bytes());
        entry[8..12].copy_from_slice(&distinct.count.to_le_bytes());
        entry[12] = u8::from(distinct.exact);
        Ok(())
    }

    fn write_strings(&self, rows: &[u32], out: &mut Vec<u8>) -> Result<(u8, Distinct)> {
        let arena = self.strings.arena();
        if !self.strings.is_distinct() {
            write_raw((0..arena.len()).map(|number| arena.get(number)), out)?;
            return Ok((RAW, Distinct { count: arena.len() as u32, exact: false }));
        }
        let exact = Distinct { count: arena.len() as u32, exact: true };
        if self.narrow.len() >= RAW_VALUES_MIN && arena.len() > self.narrow.len() / 2 {
            write_raw(self.narrow.iter().map(|&number| arena.get(number as usize)), out)?;
            return Ok((RAW, exact));
        }
        let mut keys: Vec<(&[u8], u32)> = (0..arena.len() as u32).map(|id| (arena.get(id as usize), id)).collect();
        keys.sort_unstable();
        let mut code_of = vec![0_u64; keys.len()];
        for (code, &(_, id)) in keys.iter().enumerate() {
            code_of[id as usize] = code as u64;
        }
        let codes: Vec<u64> = self.narrow.iter().map(|&id| code_of[id as usize]).collect();
        let mut counts = vec![0_u64; keys.len()];
        let mut last_row = vec![u32::MAX; keys.len()];
        for (&code, &row) in codes.iter().zip(rows) {
            // A row with a value twice counts once.
            if last_row[code as usize] != row {
                last_row[code as usize] = row;
                counts[code as usize] += 1;
            }
        }
        write_dictionary(keys.iter().map(|&(key, _)| key), &codes, &counts, out)?;
        Ok((DICTIONARY, exact))
    }
}
