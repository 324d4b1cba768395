//! The golden files of each format version: written once, never again, read and written back byte for byte for ever.
//!
//! `testdata/formats/{column,postings,sorted}/v0`: parts of what the functions below say, and `corrupted.txt`, twins with one
//! thing wrong each. With `QUARRYDB_GOLDEN=write`, `write_golden_files` writes those that are missing and never one again.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::path::PathBuf;

use common::{Owned, Row, compare};
use quarrydb_index::column::{Column, ColumnWriter, Values};
use quarrydb_index::postings::{Postings, PostingsWriter};
use quarrydb_index::sorted::{SortedRun, SortedWriter};
use quarrydb_index::{RowId, RowSet, checksum_holds};

fn path(kind: &str, name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/formats").join(kind).join("v0").join(name)
}

fn row(values: Vec<Owned>) -> Row {
    Row { present: true, null: false, array: values.len() > 1, values }
}

/// 200 rows: a bool every second, cents in all, names that repeat, several ints in some, null in every ninth, nothing in
/// every tenth.
fn mixed() -> Vec<Row> {
    let one = |n: u32| {
        if n.is_multiple_of(10) {
            return Row::default();
        }
        let mut values = vec![Owned::Float(f64::from(n) / 100.0), Owned::Bytes(format!("name-{}", n % 7).into_bytes())];
        if n.is_multiple_of(2) {
            values.push(Owned::Bool(n.is_multiple_of(4)));
        }
        (0..n % 4).for_each(|times| values.push(Owned::Int(i64::from(n) * 1000 - 90_000 + i64::from(times))));
        Row { null: n.is_multiple_of(9), ..row(values) }
    };
    (0..200).map(one).collect()
}

/// 1100 rows, more than a chunk: ints of 40 bits, and doubles that are no decimals.
fn packed() -> Vec<Row> {
    let one =
        |n: i64| row(vec![Owned::Int((n * 7_777_777_777) % 1_000_003_000_001), Owned::Float(1.0 / (n + 1) as f64)]);
    (0..1100).map(one).collect()
}

/// 70 rows of as many long strings, kept raw; all else is missing.
fn raw() -> Vec<Row> {
    (0..70).map(|n| row(vec![Owned::Bytes(format!("{n} {}", "bottles of beer ".repeat(n % 5)).into_bytes())])).collect()
}

/// 1100 rows of a time a second apart, nearly, and a number below 7.
fn times() -> Vec<Row> {
    (0..1100).map(|n| row(vec![Owned::Int(1_700_000_000_000 + n * 1000 + n * n % 7)])).collect()
}

/// 6000 rows, every second of the first, each third, and one run.
fn few() -> Vec<(&'static str, RowSet)> {
    let every = |step: usize| (0..6000).step_by(step).map(RowId::at).collect();
    vec![("a", every(2)), ("b", every(3)), ("bc", RowSet::range(100..5000)), ("d", every(1000))]
}

fn names() -> Vec<(String, u32)> {
    let mut entries: Vec<(String, u32)> = (0..90).map(|n| (format!("person/{:02}", n * 7 % 40), n)).collect();
    entries.push(("zoe".into(), 5));
    entries.sort();
    entries
}

/// As tests write columns, but with `present` exactly as the row says.
fn column(rows: &[Row]) -> Vec<u8> {
    common::write(rows)
}

fn postings() -> Vec<u8> {
    let mut writer = PostingsWriter::new();
    few().iter().for_each(|(key, rows)| writer.push(key.as_bytes(), rows).unwrap());
    writer.finish(6000).unwrap()
}

fn sorted() -> Vec<u8> {
    let mut writer = SortedWriter::new();
    names().iter().for_each(|(key, row)| writer.push(key.as_bytes(), RowId::at(*row)).unwrap());
    writer.finish(100).unwrap()
}

fn columns() -> [(&'static str, Vec<Row>); 4] {
    [("mixed.qidx", mixed()), ("packed.qidx", packed()), ("raw.qidx", raw()), ("times.qidx", times())]
}

#[test]
fn golden_columns_read_and_write_the_same() {
    for (name, rows) in columns() {
        let golden = std::fs::read(path("column", name)).unwrap();
        compare(&golden, &rows);
        assert!(golden == column(&rows), "{name} written again");
    }
    let part = std::fs::read(path("column", "raw.qidx")).unwrap();
    assert!(matches!(Column::open(&part).unwrap().lane(2).unwrap().unwrap().values(), Values::Raw(_)));
    let empty = ColumnWriter::new().finish(0).unwrap();
    compare(&empty, &[]);
}

#[test]
fn golden_postings_read_and_write_the_same() {
    let golden = std::fs::read(path("postings", "few.qidx")).unwrap();
    assert!(checksum_holds(&golden));
    let read = Postings::open(&golden).unwrap();
    read.check().unwrap();
    for (index, (key, rows)) in few().iter().enumerate() {
        assert_eq!(read.find(key.as_bytes()).unwrap(), Some(index));
        assert_eq!(&read.list(index).unwrap().to_row_set(), rows);
    }
    assert_eq!(read.len(), few().len());
    assert!(golden == postings(), "written again");
}

#[test]
fn golden_runs_read_and_write_the_same() {
    let golden = std::fs::read(path("sorted", "names.qidx")).unwrap();
    assert!(checksum_holds(&golden));
    let run = SortedRun::open(&golden).unwrap();
    run.check().unwrap();
    let mut found = Vec::new();
    run.for_each(0..run.len(), |key, row| found.push((String::from_utf8(key.to_vec()).unwrap(), row.number())))
        .unwrap();
    assert_eq!(found, names());
    assert!(run.repeats_rows());
    assert!(golden == sorted(), "written again");
}

fn says(kind: &str, part: &[u8]) -> String {
    let answer = match kind {
        "column" => Column::open(part).and_then(|column| column.check()),
        "postings" => Postings::open(part).and_then(|postings| postings.check()),
        _ => SortedRun::open(part).and_then(|run| run.check()),
    };
    answer.map_or_else(|error| error.to_string(), |()| "nothing".into())
}

#[test]
fn corrupted_twins_are_refused_with_what_is_wrong() {
    let mut count = 0;
    for kind in ["column", "postings", "sorted"] {
        let table = std::fs::read_to_string(path(kind, "corrupted.txt")).unwrap();
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [name, offset, hex, expected] = cells[..] else { panic!("{line}") };
            let mut part = std::fs::read(path(kind, name)).unwrap();
            let at: usize = offset.parse().unwrap();
            for (index, two) in hex.as_bytes().chunks(2).enumerate() {
                part[at + index] = u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap();
            }
            assert!(!checksum_holds(&part), "{line}");
            assert_eq!(says(kind, &part), expected, "{line}");
            count += 1;
        }
    }
    assert!(count >= 20, "{count} twins");
}

/// For a new version, once: writes what is missing where `QUARRYDB_GOLDEN=write` asks for it.
#[test]
fn write_golden_files() {
    if !std::env::var("QUARRYDB_GOLDEN").is_ok_and(|value| value == "write") {
        return;
    }
    let columns = columns().map(|(name, rows)| ("column", name, column(&rows)));
    for (kind, name, part) in
        columns.into_iter().chain([("postings", "few.qidx", postings()), ("sorted", "names.qidx", sorted())])
    {
        if let Ok(mut file) = std::fs::File::create_new(path(kind, name)) {
            std::io::Write::write_all(&mut file, &part).unwrap();
        }
    }
}
