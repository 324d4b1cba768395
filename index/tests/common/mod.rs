//! Columns as plain vectors of values: what every reader is compared with.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::cmp::Ordering;

use quarrydb_index::column::{Column, ColumnWriter, Value};
use quarrydb_index::{RowId, RowSet};

/// An owned value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Owned {
    Bool(bool),
    Int(i64),
    Float(f64),
    Bytes(Vec<u8>),
}

impl Owned {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Float(value) => Value::Float(*value),
            Self::Bytes(value) => Value::Bytes(value),
        }
    }

    pub(crate) fn of(value: Value<'_>) -> Self {
        match value {
            Value::Bool(value) => Self::Bool(value),
            Value::Int(value) => Self::Int(value),
            Value::Float(value) => Self::Float(value),
            Value::Bytes(value) => Self::Bytes(value.to_vec()),
        }
    }

    /// Tags of the model: one for each kind.
    pub(crate) fn tag(&self) -> u8 {
        match self {
            Self::Bool(_) => 8,
            Self::Int(_) => 16,
            Self::Float(_) => 17,
            Self::Bytes(_) => 2,
        }
    }

    /// Doubles by bits, so that -0.0 and NaN are told apart.
    pub(crate) fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            _ => self == other,
        }
    }

    /// The order that ranges are in; `None` between kinds.
    pub(crate) fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Self::Int(a), Self::Int(b)) => Some(a.cmp(b)),
            (Self::Bytes(a), Self::Bytes(b)) => Some(a.cmp(b)),
            (Self::Float(a), Self::Float(b)) => Some(match (a.is_nan(), b.is_nan()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => a.partial_cmp(b).unwrap(),
            }),
            _ => None,
        }
    }
}

/// What a row has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) present: bool,
    pub(crate) null: bool,
    pub(crate) array: bool,
    pub(crate) values: Vec<Owned>,
}

/// A small generator (splitmix64): the same seed, the same rows.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }
}

/// Values of one shape: 0.. picks what a column is like.
fn value(shape: u64, row: u64, random: &mut Random) -> Owned {
    match shape {
        0 => Owned::Int(random.below(5) as i64),
        1 => Owned::Int(random.next() as i64 >> random.below(64)),
        2 => Owned::Int(1_700_000_000_000 + row as i64 * 1500 + random.below(40) as i64),
        3 => Owned::Float((random.below(10_000) as f64 - 5_000.0) / 100.0),
        4 => {
            let odd = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 1.0 / 3.0, 5e-324, 2.5];
            Owned::Float(odd[random.below(8) as usize])
        }
        5 => Owned::Bool(random.below(3) == 0),
        6 => Owned::Bytes(format!("city-{}", random.below(40)).into_bytes()),
        7 => Owned::Bytes(format!("name/{:x}/{}", random.next(), "x".repeat(random.below(40) as usize)).into_bytes()),
        8 => Owned::Bytes(vec![0; random.below(4) as usize]),
        9 => Owned::Int(7),
        _ => value(random.below(10), row, random),
    }
}

/// Rows of a column; `fill` of 8 rows have something, `many` of 8 of them more than one value.
pub(crate) fn rows(shape: u64, count: u32, fill: u64, many: u64, seed: u64) -> Vec<Row> {
    let mut random = Random(seed);
    let one = |row: u32| {
        let mut out = Row::default();
        if random.below(8) >= fill {
            return out;
        }
        out.present = true;
        let values = if random.below(8) < many {
            out.array = true;
            random.below(5)
        } else {
            1
        };
        out.null = fill < 8 && random.below(6) == 0;
        if !out.null || out.array {
            for _ in 0..values {
                out.values.push(value(shape, u64::from(row), &mut random));
            }
        }
        out
    };
    (0..count).map(one).collect()
}

pub(crate) fn write(rows: &[Row]) -> Vec<u8> {
    let mut writer = ColumnWriter::new();
    for (row, is) in (0..).map(RowId::at).zip(rows) {
        for value in &is.values {
            writer.push(value.tag(), row, value.value()).unwrap();
        }
        if is.present {
            writer.set_present(row);
        }
        if is.null {
            writer.set_null(row);
        }
        if is.array {
            writer.set_array(row);
        }
    }
    writer.finish(rows.len() as u32).unwrap()
}

pub(crate) fn select(rows: &[Row], test: impl Fn(&Row) -> bool) -> RowSet {
    (0..).map(RowId::at).zip(rows).filter(|(_, is)| test(is)).map(|(row, _)| row).collect()
}

/// Compares everything but the scans.
pub(crate) fn compare(part: &[u8], rows: &[Row]) {
    assert!(quarrydb_index::checksum_holds(part));
    let column = Column::open(part).unwrap();
    column.check().unwrap();
    assert_eq!(column.rows() as usize, rows.len());
    assert_eq!(column.nulls().unwrap(), select(rows, |row| row.null));
    assert_eq!(column.arrays().unwrap(), select(rows, |row| row.array));
    assert_eq!(column.present().unwrap(), select(rows, |row| row.present));
    let counts = [column.nulls().unwrap(), column.arrays().unwrap(), column.present().unwrap()].map(|set| set.len());
    assert_eq!([column.null_count(), column.array_count(), column.present_count()].map(Result::unwrap), counts);
    let mut tags: Vec<u8> = rows.iter().flat_map(|row| &row.values).map(Owned::tag).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(column.tags().collect::<Vec<_>>(), tags);
    let mut buffer = Vec::new();
    for lane in column.lanes().unwrap() {
        let expected: Vec<(u32, &Owned)> = (0..)
            .zip(rows)
            .flat_map(|(row, is)| is.values.iter().map(move |value| (row, value)))
            .filter(|(_, value)| value.tag() == lane.tag())
            .collect();
        let mut found = Vec::new();
        lane.for_each(|row, value| found.push((row.number(), Owned::of(value)))).unwrap();
        assert_eq!(found.len(), expected.len());
        for ((row, value), expected) in found.iter().zip(&expected) {
            assert!(*row == expected.0 && value.same(expected.1), "{row} {value:?} {expected:?}");
        }
        assert_eq!(lane.presence().values(), expected.len());
        for (number, &(row, value)) in expected.iter().enumerate().step_by(1 + expected.len() / 97) {
            assert_eq!(lane.presence().row_of(number), Some(RowId::at(row)));
            assert!(lane.presence().values_of(RowId::at(row)).contains(&number));
            assert!(Owned::of(lane.value(number, &mut buffer).unwrap()).same(value), "{number}");
        }
        assert!(lane.value(expected.len(), &mut buffer).is_err());
    }
}
