//! Sorted runs against a sorted vector: ranges, prefixes, both ways, merges, and bytes no writer wrote.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use std::ops::Bound;

use proptest::prelude::*;
use quarrydb_index::sorted::{SortedRun, SortedWriter, merge};
use quarrydb_index::{Error, RowId, RowRemap, RowSet, checksum_holds, fuzzing};

const ROWS: u32 = 5000;

/// Keys with long common beginnings, many of them repeated.
fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..60_u32).prop_map(|n| format!("common/beginning/{n:02}").into_bytes()),
        prop::collection::vec(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()], 0..5),
    ]
}

fn entries(most: usize) -> impl Strategy<Value = Vec<(Vec<u8>, u32)>> {
    prop::collection::vec((key(), 0..ROWS), 0..most).prop_map(|mut entries| {
        entries.sort();
        entries.dedup();
        entries
    })
}

fn write(entries: &[(Vec<u8>, u32)], rows: u32) -> Vec<u8> {
    let mut writer = SortedWriter::new();
    entries.iter().for_each(|(key, row)| writer.push(key, RowId::at(*row)).unwrap());
    writer.finish(rows).unwrap()
}

/// The same by several writers, where a key that comes again is not told again.
fn write_in_parts(entries: &[(Vec<u8>, u32)], rows: u32, blocks: usize) -> Vec<u8> {
    let mut all = SortedWriter::new();
    for part in entries.chunks(blocks * SortedWriter::WHOLE) {
        let mut writer = SortedWriter::new();
        for (at, (key, row)) in part.iter().enumerate() {
            match at.checked_sub(1).and_then(|before| part.get(before)) {
                Some((before, _)) if before == key => writer.push_again(RowId::at(*row)).unwrap(),
                _ => writer.push(key, RowId::at(*row)).unwrap(),
            }
        }
        all.append(writer).unwrap();
    }
    all.finish(rows).unwrap()
}

fn bound(kind: u8, key: &[u8]) -> Bound<&[u8]> {
    match kind % 3 {
        0 => Bound::Included(key),
        1 => Bound::Excluded(key),
        _ => Bound::Unbounded,
    }
}

fn rows_of(entries: &[&(Vec<u8>, u32)]) -> RowSet {
    entries.iter().map(|(_, row)| RowId::at(*row)).collect()
}

fn compare(part: &[u8], model: &[(Vec<u8>, u32)]) {
    assert!(checksum_holds(part));
    let run = SortedRun::open(part).unwrap();
    run.check().unwrap();
    let mut all = Vec::new();
    run.for_each(0..run.len(), |key, row| all.push((key.to_vec(), row.number()))).unwrap();
    assert_eq!(all, model);
    assert_eq!(run.repeats_rows(), rows_of(&model.iter().collect::<Vec<_>>()).len() < model.len() as u64);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn runs_are_sorted_vectors(model in entries(700), low in key(), high in key(), kinds in any::<(u8, u8)>()) {
        let part = write(&model, ROWS);
        compare(&part, &model);
        for blocks in [1, 3, 100] {
            prop_assert_eq!(&write_in_parts(&model, ROWS, blocks), &part);
        }
        let run = SortedRun::open(&part).unwrap();
        let (from, to) = (bound(kinds.0, &low), bound(kinds.1, &high));
        let inside = |key: &[u8]| {
            let above = match from { Bound::Included(k) => key >= k, Bound::Excluded(k) => key > k, Bound::Unbounded => true };
            let below = match to { Bound::Included(k) => key <= k, Bound::Excluded(k) => key < k, Bound::Unbounded => true };
            above && below
        };
        let expected: Vec<&(Vec<u8>, u32)> = model.iter().filter(|(key, _)| inside(key)).collect();
        let range = run.range(from, to).unwrap();
        prop_assert_eq!(range.len(), expected.len());
        prop_assert_eq!(run.range_count(from, to).unwrap(), rows_of(&expected).len());
        prop_assert_eq!(run.row_set(range.clone()), rows_of(&expected));
        let mut rows = Vec::new();
        run.rows_of(range.clone(), |row| rows.push(row.number()));
        prop_assert!(rows.iter().eq(expected.iter().map(|(_, row)| row)));
        let mut back = run.cursor_back(range.clone());
        for (key, row) in expected.iter().rev() {
            prop_assert_eq!(back.next().unwrap(), Some((key.as_slice(), RowId::at(*row))));
        }
        prop_assert_eq!(back.next().unwrap(), None);
        let mut buffer = Vec::new();
        for (entry, (key, row)) in range.zip(&expected).step_by(7) {
            run.key(entry, &mut buffer).unwrap();
            prop_assert_eq!((&buffer, run.row(entry)), (key, Some(RowId::at(*row))));
        }
        let begins = model.iter().filter(|(key, _)| key.starts_with(&low)).count();
        prop_assert_eq!(run.prefix(&low).unwrap().len(), begins);
        prop_assert!(run.key(run.len(), &mut buffer).is_err());
    }

    #[test]
    fn merged_runs_are_the_remapped_entries(inputs in prop::collection::vec((entries(200), any::<u64>()), 1..4)) {
        let (mut expected, mut remaps, mut next) = (Vec::new(), Vec::new(), 0);
        for (model, seed) in &inputs {
            let live: RowSet = (0..ROWS).filter(|row| ((u64::from(*row) * 31) ^ seed) % 7 > 1).map(RowId::at).collect();
            let remap = RowRemap::keeping(&live, ROWS, RowId::at(next));
            next += live.len() as u32;
            expected.extend(model.iter().filter_map(|(key, row)| Some((key.clone(), remap.get(RowId::at(*row))?.number()))));
            remaps.push(remap);
        }
        expected.sort();
        let parts: Vec<Vec<u8>> = inputs.iter().map(|(model, _)| write(model, ROWS)).collect();
        let runs = parts.iter().map(|part| Some(SortedRun::open(part).unwrap()));
        let merged = merge(&runs.zip(&remaps).collect::<Vec<_>>()).unwrap();
        compare(&merged, &expected);
        prop_assert_eq!(SortedRun::open(&merged).unwrap().rows(), next);
    }

    #[test]
    fn damaged_runs_are_answered(model in entries(120), at in any::<usize>(), to in any::<u32>()) {
        let mut part = write(&model, ROWS);
        let at = 16 + at % (part.len() - 16);
        part.iter_mut().skip(at).zip(to.to_le_bytes()).for_each(|(byte, to)| *byte = to);
        fuzzing::sorted_any(&part);
        prop_assert!(SortedRun::open(&part[..at]).is_err());
    }
}

#[test]
fn entries_out_of_order_are_refused() {
    let mut writer = SortedWriter::new();
    writer.push(b"b", RowId::at(4)).unwrap();
    assert!(matches!(writer.push(b"b", RowId::at(4)), Err(Error::Misuse { .. })));
    assert!(matches!(writer.push(b"a", RowId::at(5)), Err(Error::Misuse { .. })));
    assert!(matches!(writer.finish(4), Err(Error::Misuse { .. })));
}
