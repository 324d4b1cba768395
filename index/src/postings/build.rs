//! Postings of a lane with few distinct values: one pass over its packed values, no look at anything else.

use std::collections::BTreeMap;

use super::PostingsWriter;
use crate::column::{Lane, Value, Values};
use crate::error::Result;
use crate::rowset::RowSet;

/// Distinct values up to which `build` makes postings.
pub const LISTS_OF_LANE_MAX: u32 = 4096;

/// The key of a value, in place of what `out` held: of one kind, ordered as the values, and equal for equal values
/// (-0.0 and 0.0). Bools take a byte, ints and doubles eight, byte strings are themselves.
pub fn key_of(value: Value<'_>, out: &mut Vec<u8>) {
    const SIGN: u64 = 1 << 63;
    out.clear();
    match value {
        Value::Bool(value) => out.push(u8::from(value)),
        Value::Int(number) => out.extend((number as u64 ^ SIGN).to_be_bytes()),
        Value::Bytes(bytes) => out.extend(bytes),
        Value::Float(number) => {
            let bits = if number == 0.0 { 0 } else { number.to_bits() };
            let key = match bits {
                _ if number.is_nan() => 0,
                bits if bits & SIGN != 0 => !bits,
                bits => bits | SIGN,
            };
            out.extend(key.to_be_bytes());
        }
    }
}

/// The postings of a lane, a list for each distinct value under its `key_of`; `None` if there are more than
/// `LISTS_OF_LANE_MAX` or they were not counted exactly. They can be merged with those of other segments.
///
/// # Errors
/// `Corrupt`.
pub fn build(lane: &Lane<'_>) -> Result<Option<Vec<u8>>> {
    let rows = lane.presence().rows();
    if !lane.distinct().exact || lane.distinct().count > LISTS_OF_LANE_MAX {
        return Ok(None);
    }
    let mut writer = PostingsWriter::new();
    if let Values::Dictionary(dictionary) = lane.values() {
        let mut lists = vec![RowSet::new(); dictionary.len()];
        lane.codes_of_rows(&lane.presence().row_set(), |row, code| {
            if let Some(list) = lists.get_mut(code) {
                list.push(row);
            }
        })?;
        let mut broken = Ok(());
        dictionary.for_each(|code, bytes, _| {
            if let (Some(list), Ok(())) = (lists.get(code), &broken) {
                broken = writer.push(bytes, list);
            }
        })?;
        broken?;
        return writer.finish(rows).map(Some);
    }
    let mut lists: BTreeMap<Vec<u8>, RowSet> = BTreeMap::new();
    let mut key = Vec::new();
    lane.for_each(|row, value| {
        key_of(value, &mut key);
        match lists.get_mut(&key) {
            Some(list) => {
                list.push(row);
            }
            None => drop(lists.insert(key.clone(), RowSet::from_iter([row]))),
        }
    })?;
    lists.iter().try_for_each(|(key, list)| writer.push(key, list))?;
    writer.finish(rows).map(Some)
}
