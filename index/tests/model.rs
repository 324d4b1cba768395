//! Columns against plain vectors: every value comes back, every question has the rows that the vectors have.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::cmp::Ordering;
use std::ops::Bound;

use common::{Owned, Random, Row, compare, rows, select, write};
use proptest::prelude::*;
use quarrydb_index::RowSet;
use quarrydb_index::column::{Column, Values};

fn within(value: &Owned, low: Bound<&Owned>, high: Bound<&Owned>, tag: u8) -> bool {
    let above = match low {
        Bound::Unbounded => true,
        Bound::Included(low) => matches!(value.order(low), Some(Ordering::Greater | Ordering::Equal)),
        Bound::Excluded(low) => value.order(low) == Some(Ordering::Greater),
    };
    let below = match high {
        Bound::Unbounded => true,
        Bound::Included(high) => matches!(value.order(high), Some(Ordering::Less | Ordering::Equal)),
        Bound::Excluded(high) => value.order(high) == Some(Ordering::Less),
    };
    value.tag() == tag && above && below
}

fn bound<'v>(random: &mut Random, values: &[&'v Owned]) -> Bound<&'v Owned> {
    let value = values[random.below(values.len() as u64) as usize];
    match random.below(5) {
        0 => Bound::Unbounded,
        1 | 2 => Bound::Included(value),
        _ => Bound::Excluded(value),
    }
}

fn questions(part: &[u8], rows: &[Row], random: &mut Random) {
    let column = Column::open(part).unwrap();
    // Values of the column, and some that are near and not in it.
    let near = [
        Owned::Int(i64::MIN),
        Owned::Int(i64::MAX),
        Owned::Int(3),
        Owned::Float(0.015),
        Owned::Float(-0.0),
        Owned::Float(1e300),
        Owned::Float(f64::NAN),
        Owned::Float(f64::NEG_INFINITY),
        Owned::Bytes(b"city-2x".to_vec()),
        Owned::Bytes(Vec::new()),
        Owned::Bool(true),
        Owned::Bool(false),
    ];
    let mut all: Vec<&Owned> = rows.iter().flat_map(|row| &row.values).collect();
    all.truncate(3000);
    all.extend(&near);
    for lane in column.lanes().unwrap() {
        let tag = lane.tag();
        let mut values: Vec<&Owned> = all.iter().copied().filter(|value| value.tag() == tag).collect();
        for _ in 0..12 {
            let (low, high) = (bound(random, &values), bound(random, &values));
            let expected = select(rows, |row| row.values.iter().any(|value| within(value, low, high, tag)));
            let (from, to) = (low.map(Owned::value), high.map(Owned::value));
            assert_eq!(lane.range(from, to).unwrap(), expected, "{low:?} {high:?}");
            assert_eq!(lane.range_count(from, to).unwrap(), expected.len(), "{low:?} {high:?}");
        }
        // A question of another kind has no rows.
        values.push(all[random.below(all.len() as u64) as usize]);
        for take in [1, 2, 9, 30] {
            let wanted: Vec<&Owned> = (0..take).map(|_| values[random.below(values.len() as u64) as usize]).collect();
            let expected = select(rows, |row| {
                let is = |value: &Owned| {
                    value.tag() == tag && wanted.iter().any(|w| value.order(w) == Some(Ordering::Equal))
                };
                row.values.iter().any(is)
            });
            let found = lane.one_of(&wanted.iter().map(|value| value.value()).collect::<Vec<_>>()).unwrap();
            assert_eq!(found, expected, "{wanted:?}");
            assert!(take > 1 || lane.equal(wanted[0].value()).unwrap() == expected);
        }
        let odd = |bytes: &[u8]| bytes.iter().map(|&b| u32::from(b)).sum::<u32>() % 3 == 1;
        let expected =
            select(rows, |row| row.values.iter().any(|v| matches!(v, Owned::Bytes(b) if tag == 2 && odd(b))));
        assert_eq!(lane.strings(odd).unwrap(), expected);
        counts(&lane, rows);
        if rows.len() < 1000 || lane.distinct().count < 50 {
            postings_of(&lane, rows);
        }
    }
}

/// The postings of a lane are the rows of its values, and its codes are those of its rows.
fn postings_of(lane: &quarrydb_index::column::Lane<'_>, rows: &[Row]) {
    use quarrydb_index::postings::{LISTS_OF_LANE_MAX, Postings, build, key_of};
    if let Values::Dictionary(dictionary) = lane.values() {
        let (mut found, mut buffer) = (Vec::new(), Vec::new());
        lane.codes_of_rows(&lane.presence().row_set(), |row, code| found.push((row, code))).unwrap();
        let mut found = found.into_iter();
        lane.for_each(|row, value| {
            let (of, code) = found.next().unwrap();
            dictionary.value(code, &mut buffer).unwrap();
            assert!(of == row && value == quarrydb_index::column::Value::Bytes(&buffer));
        })
        .unwrap();
        assert!(found.next().is_none());
    }
    let Some(part) = build(lane).unwrap() else {
        assert!(!lane.distinct().exact || lane.distinct().count > LISTS_OF_LANE_MAX);
        return;
    };
    let postings = Postings::open(&part).unwrap();
    postings.check().unwrap();
    let mut key = Vec::new();
    let mut found = RowSet::new();
    lane.value_counts(|value, _| {
        let value = Owned::of(value);
        key_of(value.value(), &mut key);
        let list = postings.list(postings.find(&key).unwrap().unwrap()).unwrap().to_row_set();
        let is = |other: &Owned| other.order(&value) == Some(Ordering::Equal);
        assert_eq!(list, select(rows, |row| row.values.iter().any(is)), "{value:?}");
        found.add(&list);
    })
    .unwrap();
    assert_eq!(found, lane.presence().row_set());
}

fn counts(lane: &quarrydb_index::column::Lane<'_>, rows: &[Row]) {
    let mut expected: Vec<(&Owned, u32)> = Vec::new();
    for row in rows {
        let mut of_row: Vec<&Owned> = Vec::new();
        for value in row.values.iter().filter(|value| value.tag() == lane.tag()) {
            if !of_row.iter().any(|other| other.same(value)) {
                of_row.push(value);
            }
        }
        expected.extend(of_row.into_iter().map(|value| (value, 1)));
    }
    // Of doubles, -0.0 comes before 0.0.
    let total = |a: &Owned, b: &Owned| match (a, b) {
        (Owned::Float(a), Owned::Float(b)) if *a == 0.0 && *b == 0.0 => a.total_cmp(b),
        _ => a.order(b).unwrap(),
    };
    expected.sort_by(|a, b| total(a.0, b.0));
    expected.dedup_by(|next, first| {
        let same = next.0.same(first.0);
        first.1 += u32::from(same) * next.1;
        same
    });
    let mut found = Vec::new();
    lane.value_counts(|value, rows| found.push((Owned::of(value), rows))).unwrap();
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.0.same(expected.0) && found.1 == expected.1, "{found:?} {expected:?}");
    }
    if lane.distinct().exact {
        assert_eq!(lane.distinct().count as usize, expected.len());
    }
    let (mut low, mut high) = (Vec::new(), Vec::new());
    if let Some((low, high)) = lane.min_max(&mut low, &mut high).unwrap() {
        assert!(Owned::of(low).same(expected[0].0) && Owned::of(high).same(expected[expected.len() - 1].0));
    } else {
        assert!(matches!(lane.values(), Values::Raw(_)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn columns_are_vectors(
        shape in 0..11_u64, count in prop_oneof![0..200_u32, 4000..9000_u32], fill in 0..=8_u64,
        many in prop_oneof![2 => Just(0_u64), 1 => 1..8_u64], seed in any::<u64>(),
    ) {
        let rows = rows(shape, count, fill, many, seed);
        let part = write(&rows);
        compare(&part, &rows);
        questions(&part, &rows, &mut Random(seed ^ 1));
    }
}

#[test]
fn encodings_are_small_where_values_allow() {
    let bytes_per_row = |shape| write(&rows(shape, 65_536, 8, 0, 7)).len() as f64 / 65_536.0;
    assert!(bytes_per_row(0) < 0.45, "five ints: 3 bits");
    assert!(bytes_per_row(2) < 0.85, "times that nearly follow a line: 6 bits");
    assert!(bytes_per_row(3) < 1.8, "cents: 14 bits");
    assert!(bytes_per_row(5) < 0.15, "bools: a bit");
    assert!(bytes_per_row(6) < 0.8, "forty cities: 6 bits");
    assert!(bytes_per_row(9) < 0.02, "one value: its zones");
}

#[test]
fn writers_refuse_what_they_may_not_be_given() {
    use quarrydb_index::column::{ColumnWriter, Value};
    use quarrydb_index::{Error, ROWS_MAX, RowId};
    let mut writer = ColumnWriter::new();
    writer.push(1, RowId::at(5), Value::Int(1)).unwrap();
    assert!(matches!(writer.push(1, RowId::at(4), Value::Int(1)), Err(Error::Misuse { .. })));
    assert!(matches!(writer.push(1, RowId::at(6), Value::Bool(true)), Err(Error::Misuse { .. })));
    assert!(matches!(writer.push(1, RowId::at(ROWS_MAX), Value::Int(1)), Err(Error::TooLarge { .. })));
    assert!(matches!(writer.finish(5), Err(Error::Misuse { .. })));
}
