//! The values of a lane laid out by row, 4096 rows at a time: what grouping, summing and comparing columns with each other
//! work with.
//!
//! A value is given by its packed key: for numbers in their order, for dictionaries the code. Lanes with several values in
//! a row, and raw strings, have no windows.

use super::lane::{Lane, Values};
use super::packed::{BLOCK, BLOCK_WORDS, Packed};
use super::presence::Spot;
use super::{Kind, Value};
use crate::error::{Error, Result, corrupt};

/// Rows of a window.
pub const WINDOW_ROWS: usize = BLOCK;

/// The keys of a window's rows.
#[derive(Debug, Clone)]
pub struct Window {
    keys: Vec<u64>,
    present: [u64; BLOCK_WORDS],
    /// The block of packed numbers that was unpacked last: rows of a lane with gaps need parts of it.
    block: Vec<u64>,
    held: Option<usize>,
}

impl Default for Window {
    fn default() -> Self {
        Self { keys: vec![0; WINDOW_ROWS], present: [0; BLOCK_WORDS], block: Vec::new(), held: None }
    }
}

impl Window {
    /// The keys by row of the window; what stands where there is no value means nothing.
    #[must_use]
    pub fn keys(&self) -> &[u64] {
        &self.keys
    }

    /// A bit for each row of the window that has a value.
    #[must_use]
    pub fn present(&self) -> &[u64; WINDOW_ROWS / 64] {
        &self.present
    }

    /// Whether a row of the window has a value.
    #[must_use]
    pub fn has(&self, row: usize) -> bool {
        self.present.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Holds the block of the value.
    fn hold(&mut self, packed: Packed<'_>, value: usize) {
        let block = value / BLOCK;
        if self.held != Some(block) {
            packed.block(block, &mut self.block);
            self.held = Some(block);
        }
    }
}

impl Lane<'_> {
    /// Whether it has windows.
    #[must_use]
    pub fn has_windows(&self) -> bool {
        !self.presence().is_many() && !matches!(self.values, Values::Raw(_))
    }

    /// Puts the keys of window `index` (rows `index * WINDOW_ROWS` and following) into `window`, which is to be used with
    /// this lane alone.
    ///
    /// # Errors
    /// `Misuse` where the lane has no windows, `Corrupt`.
    pub fn window(&self, index: usize, window: &mut Window) -> Result<()> {
        let packed = self.packed().filter(|_| !self.presence().is_many());
        let packed = packed.ok_or(Error::Misuse { what: "only lanes of one packed value a row have windows" })?;
        window.present = [0; BLOCK_WORDS];
        match self.presence().spot(index, &mut window.present) {
            Spot::All => {
                packed.block(index, &mut window.keys);
                window.keys.resize(WINDOW_ROWS, 0);
                Ok(())
            }
            Spot::From(mut value) => {
                let present = window.present;
                for row in super::presence::ones(&present) {
                    window.hold(packed, value);
                    let key = window.block.get(value % BLOCK).copied();
                    let slot = window.keys.get_mut(row).zip(key);
                    let (slot, key) = slot.ok_or(corrupt("a value of this number", value))?;
                    *slot = key;
                    value += 1;
                }
                Ok(())
            }
        }
    }

    /// The key of a row that has one value; none where it has none or several, or the lane is of raw strings.
    #[must_use]
    pub fn key_of_row(&self, row: crate::RowId) -> Option<u64> {
        let values = self.presence().values_of(row);
        self.packed().filter(|_| values.len() == 1).and_then(|packed| packed.get(values.start))
    }

    /// What a key of a window stands for; strings are put into `buffer`.
    ///
    /// # Errors
    /// `Corrupt` if there is no such key.
    pub fn value_of_key<'b>(&self, key: u64, buffer: &'b mut Vec<u8>) -> Result<Value<'b>> {
        match self.values {
            Values::Numbers(_) => Ok(self.value_of(key)),
            Values::Dictionary(dictionary) => {
                let code = usize::try_from(key).map_err(|_| corrupt("a key of a value", 0))?;
                dictionary.value(code, buffer)?;
                Ok(Value::Bytes(buffer))
            }
            Values::Raw(_) => Err(Error::Misuse { what: "raw strings have no keys" }),
        }
    }

    /// The number that a key of a lane of numbers stands for, as a double: exactly for doubles, rounded for ints.
    #[inline]
    #[must_use]
    pub fn float_of_key(&self, key: u64) -> f64 {
        match (self.kind(), self.values) {
            (Kind::Float, Values::Numbers(numbers)) => numbers.doubles.of(key),
            _ => super::numbers::int_of(key) as f64,
        }
    }

    /// The int that a key of a lane of ints stands for.
    #[inline]
    #[must_use]
    pub fn int_of_key(&self, key: u64) -> i64 {
        super::numbers::int_of(key)
    }

    /// The least and the greatest key; none where there is no value, or the lane is of raw strings.
    #[must_use]
    pub fn key_zone(&self) -> Option<(u64, u64)> {
        self.packed().and_then(|packed| packed.min_max())
    }

    fn packed(&self) -> Option<Packed<'_>> {
        match self.values {
            Values::Numbers(numbers) => Some(numbers.packed),
            Values::Dictionary(dictionary) => Some(dictionary.codes),
            Values::Raw(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;
    use crate::RowId;
    use crate::column::{Column, ColumnWriter};

    /// Every window of a lane against its values one by one.
    fn check(rows: u32, has: impl Fn(u32) -> bool, bytes: bool) {
        let mut writer = ColumnWriter::new();
        let text = |row: u32| format!("v{}", row % 7);
        for row in (0..rows).filter(|&row| has(row)) {
            if bytes {
                writer.push(6, RowId::at(row), Value::Bytes(text(row).as_bytes())).unwrap();
            } else {
                writer.push(2, RowId::at(row), Value::Int(i64::from(row) * 3 - 50)).unwrap();
            }
        }
        let part = writer.finish(rows).unwrap();
        let column = Column::open(&part).unwrap();
        let Some(lane) = column.lanes().unwrap().pop() else { return };
        assert!(lane.has_windows());
        let (mut window, mut buffer) = (Window::default(), Vec::new());
        for index in 0..(rows as usize).div_ceil(WINDOW_ROWS) {
            lane.window(index, &mut window).unwrap();
            for at in 0..WINDOW_ROWS {
                let row = (index * WINDOW_ROWS + at) as u32;
                assert_eq!(window.has(at), row < rows && has(row), "row {row}");
                if !window.has(at) {
                    continue;
                }
                let key = window.keys()[at];
                assert_eq!(lane.key_of_row(RowId::at(row)), Some(key));
                match lane.value_of_key(key, &mut buffer).unwrap() {
                    Value::Bytes(found) => assert_eq!(found, text(row).as_bytes()),
                    value => assert_eq!(value, Value::Int(i64::from(row) * 3 - 50)),
                }
            }
        }
    }

    #[test]
    fn windows_hold_what_the_rows_hold() {
        for bytes in [false, true] {
            for rows in [1, 63, 4096, 4097, 20_000] {
                check(rows, |_| true, bytes);
                check(rows, |row| row % 3 == 1, bytes);
                check(rows, |row| row % 97 == 5, bytes);
                check(rows, |row| !(2..4100).contains(&row), bytes);
            }
        }
    }
}
