//! What fuzzing asks of this crate, as plain functions: a target calls them, and so do tests without a fuzzer.
//!
//! Takes any bytes as a part; every reader answers with an error or with something bounded, never with a panic.

use std::ops::Bound;

use crate::column::{Column, Value, Values};
use crate::row::RowId;
use crate::rowset::RowSet;

/// Reads any bytes as a column, in every way there is.
pub fn column_any(part: &[u8]) {
    let Ok(column) = Column::open(part) else { return };
    let _ = (column.check(), column.nulls(), column.arrays(), column.present());
    let mut buffer = Vec::new();
    for tag in column.tags() {
        let Ok(Some(lane)) = column.lane(tag) else { continue };
        for row in [0, 1, 63, 64, 511, 512, column.rows().wrapping_sub(1), column.rows(), u32::MAX] {
            let values = lane.presence().values_of(RowId::at(row));
            let _ = lane.value(values.start, &mut buffer);
            let _ = lane.presence().row_of(values.end);
        }
        assert!(lane.presence().row_set().last().is_none_or(|last| last.number() < column.rows()));
        let wanted = [Value::Int(3), Value::Int(500), Value::Float(0.5), Value::Bytes(b"city-3"), Value::Bool(true)];
        for &value in &wanted {
            for low in [Bound::Unbounded, Bound::Included(value)] {
                let _ = lane.range_count(low, Bound::Excluded(value));
                if let Ok(rows) = lane.range(low, Bound::Included(value)) {
                    assert!(rows.last().is_none_or(|last| last.number() < column.rows()), "rows of the segment");
                }
            }
        }
        let _ = (lane.one_of(&wanted), lane.strings(|bytes| bytes.len() > 5));
        if lane.presence().values() < 1 << 16 {
            let _ = (lane.for_each(|_, _| ()), lane.value_counts(|_, _| ()));
            let _ = lane.for_rows(&RowSet::range(0..column.rows().min(99)), |_, _| ());
        }
        let (mut low, mut high) = (Vec::new(), Vec::new());
        let _ = lane.min_max(&mut low, &mut high);
        if let Values::Dictionary(dictionary) = lane.values() {
            let _ = (dictionary.code(b"city-3"), dictionary.rows(3), dictionary.value(17, &mut buffer));
        }
    }
}
