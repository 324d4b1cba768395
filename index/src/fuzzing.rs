//! What fuzzing asks of this crate, as plain functions: a target calls them, and so do tests without a fuzzer.
//!
//! Takes any bytes as a part; every reader answers with an error or with something bounded, never with a panic.

use std::ops::Bound;

use crate::column::{Column, Value, Values};
use crate::postings::{Postings, RoaringView};
use crate::row::{ROWS_MAX, RowId};
use crate::rowset::RowSet;
use crate::sorted::SortedRun;

/// Reads any bytes as a column, in every way there is.
pub fn column_any(part: &[u8]) {
    let Ok(column) = Column::open(part) else { return };
    let _ = (column.check(), column.nulls(), column.arrays(), column.present());
    let _ = (column.null_count(), column.array_count(), column.present_count());
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

/// Reads any bytes as a roaring bitmap, in every way there is; what passes its check is what `roaring` reads.
pub fn bitmap_any(bytes: &[u8]) {
    let Ok(view) = RoaringView::open(bytes) else { return };
    let set = view.to_row_set();
    assert!(set.last().is_none_or(|last| last.number() < ROWS_MAX), "rows of a segment");
    let few = RowSet::range(65_000..66_000);
    let counts = [view.len(), view.and_len(&view), view.or_len(&view), view.and_not_len(&view), view.and_len_set(&few)];
    let _ = view.range_len(5..700_000);
    let mut dense = few.to_dense(70_000);
    view.add_to(&mut dense);
    let _ = view.contains(RowId::at(65_536));
    if view.check().is_ok() {
        assert_eq!(counts, [set.len(), set.len(), set.len(), 0, set.and_len(&few)], "counts are those of the rows");
        if let Ok(read) = RowSet::read(bytes) {
            assert_eq!(read, set, "the same bytes are the same rows");
        }
    }
}

/// Reads any bytes as postings.
pub fn postings_any(part: &[u8]) {
    let Ok(postings) = Postings::open(part) else { return };
    let _ = (postings.check(), postings.find(b"key-007"), postings.rank(b"key-1", true));
    let mut key = Vec::new();
    for index in [0, 1, 15, 16, 17, postings.len().wrapping_sub(1), postings.len(), usize::MAX / 8] {
        let _ = postings.key(index, &mut key);
        if let Ok(list) = postings.list(index) {
            let _ = (list.len(), list.to_row_set());
        }
    }
}

/// Reads any bytes as a sorted run.
pub fn sorted_any(part: &[u8]) {
    let Ok(run) = SortedRun::open(part) else { return };
    let _ = run.check();
    let wanted: &[u8] = b"common/beginning/3";
    for high in [Bound::Unbounded, Bound::Excluded(&b"common/beginning/5"[..])] {
        if let Ok(entries) = run.range(Bound::Included(wanted), high) {
            assert!(entries.end <= run.len(), "entries of the run");
            let _ = (run.row_set(entries.clone()), run.range_count(Bound::Included(wanted), high));
            let mut back = run.cursor_back(entries);
            while let Ok(Some(_)) = back.next() {}
        }
    }
    let mut key = Vec::new();
    let _ = (run.prefix(wanted), run.key(17, &mut key), run.row(17), run.for_each(0..usize::MAX, |_, _| ()));
}
