//! Rates of scans, counts and writing, in rows a second on one core: `cargo bench -p quarrydb-index`.
//!
//! Each line is the best of several runs over one column of 2^20 rows (what a segment holds at most).
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and stops where it stands")]

use std::hint::black_box;
use std::ops::Bound;
use std::time::Instant;

use quarrydb_index::column::{Column, ColumnWriter, Value};
use quarrydb_index::postings::RoaringView;
use quarrydb_index::sorted::{SortedRun, SortedWriter};
use quarrydb_index::{ROWS_MAX, RowId, RowSet};

const RUNS: usize = 15;

fn measure(name: &str, rows: u64, mut run: impl FnMut() -> u64) {
    let mut best = f64::INFINITY;
    let mut answer = 0;
    for _ in 0..RUNS {
        let start = Instant::now();
        answer = black_box(run());
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{name:44} {:9.1} us {:9.2} M rows/s  answer {answer}", best * 1e6, rows as f64 / best / 1e6);
}

fn scrambled(row: u32) -> u64 {
    u64::from(row).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

fn column(value: impl Fn(u32) -> Vec<u8>, int: impl Fn(u32) -> Option<i64>) -> Vec<u8> {
    let mut writer = ColumnWriter::new();
    for row in 0..ROWS_MAX {
        match int(row) {
            Some(number) => writer.push(1, RowId::at(row), Value::Int(number)).unwrap(),
            None => writer.push(1, RowId::at(row), Value::Bytes(&value(row))).unwrap(),
        }
    }
    writer.finish(ROWS_MAX).unwrap()
}

fn main() {
    let rows = u64::from(ROWS_MAX);
    for (name, distinct) in [("3-bit", 7), ("6-bit", 40), ("10-bit", 1000), ("16-bit", 60_000), ("20-bit", 1 << 20)] {
        let part = column(|_| Vec::new(), |row| Some((scrambled(row) % distinct) as i64));
        let lane = Column::open(&part).unwrap().lane(1).unwrap().unwrap();
        // In the middle, so that no zone helps.
        let wanted = (distinct / 2) as i64;
        let plain = (0..ROWS_MAX).filter(|&row| scrambled(row) % distinct == distinct / 2).count() as u64;
        assert_eq!(lane.equal(Value::Int(wanted)).unwrap().len(), plain);
        let bound = Bound::Included(Value::Int(wanted));
        measure(&format!("count equal, {name} ints"), rows, || lane.range_count(bound, bound).unwrap());
        measure(&format!("rows equal, {name} ints"), rows, || lane.equal(Value::Int(wanted)).unwrap().len());
    }
    let mut writer = ColumnWriter::new();
    (0..ROWS_MAX).for_each(|row| {
        writer.push(1, RowId::at(row), Value::Float((scrambled(row) % 10_000_000) as f64 / 100.0)).unwrap();
    });
    let part = writer.finish(ROWS_MAX).unwrap();
    let lane = Column::open(&part).unwrap().lane(1).unwrap().unwrap();
    let (from, to) = (Bound::Included(Value::Float(30_000.5)), Bound::Excluded(Value::Float(70_000.25)));
    measure("range count, doubles of two decimals", rows, || lane.range_count(from, to).unwrap());
    measure("rows of a range, doubles of two decimals", rows, || lane.range(from, to).unwrap().len());
    let part = column(|_| Vec::new(), |row| Some(1_700_000_000_000 + i64::from(row) * 1000 + (row % 7) as i64));
    let lane = Column::open(&part).unwrap().lane(1).unwrap().unwrap();
    let from = Bound::Included(Value::Int(1_700_000_000_000 + 300_000_000));
    measure("range count by zones, times", rows, || lane.range_count(from, Bound::Unbounded).unwrap());
    let start = Instant::now();
    let part = column(|row| format!("city-{}", scrambled(row) % 40).into_bytes(), |_| None);
    println!(
        "write 40 strings: {:.1} M rows/s, {} bytes",
        rows as f64 / start.elapsed().as_secs_f64() / 1e6,
        part.len()
    );
    let lane = Column::open(&part).unwrap().lane(1).unwrap().unwrap();
    measure("rows equal, 40 strings", rows, || lane.equal(Value::Bytes(b"city-7")).unwrap().len());
    measure("rows of a predicate, 40 strings", rows, || lane.strings(|s| s.ends_with(b"3")).unwrap().len());
    measure("value counts, 40 strings", rows, || {
        let mut total = 0;
        lane.value_counts(|_, rows| total += u64::from(rows)).unwrap();
        total
    });
    let bitmap = |step: usize, count: u32| {
        let mut bytes = Vec::new();
        RowSet::from_iter((0..count).step_by(step).map(RowId::at)).write(&mut bytes);
        bytes
    };
    let (x, y) = (bitmap(3, ROWS_MAX), bitmap(40, ROWS_MAX));
    measure("and of two lists, 350 K and 26 K rows", rows, || {
        RoaringView::open(&x).unwrap().and_len(&RoaringView::open(&y).unwrap())
    });
    let mut writer = SortedWriter::new();
    (0..ROWS_MAX).for_each(|row| writer.push(&u64::from(row).to_be_bytes(), RowId::at(row)).unwrap());
    let part = writer.finish(ROWS_MAX).unwrap();
    let run = SortedRun::open(&part).unwrap();
    let (low, high) = (5000_u64.to_be_bytes(), 700_000_u64.to_be_bytes());
    measure("range count, sorted run", rows, || {
        run.range_count(Bound::Included(&low), Bound::Excluded(&high)).unwrap()
    });
}
