//! Roaring bitmaps read where they lie against the `roaring` crate: counts, membership, copies, every mix of containers.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use quarrydb_index::postings::{Postings, PostingsWriter, RoaringView, merge};
use quarrydb_index::{Dense, Error, ROWS_MAX, RowId, RowRemap, RowSet, fuzzing};
use roaring::RoaringBitmap;

/// Lonely rows, runs and every other row, over up to sixteen containers: arrays, bitmaps and runs.
fn bitmap() -> impl Strategy<Value = RoaringBitmap> {
    let piece = (0..ROWS_MAX, 1..30_000_u32, prop_oneof![Just(1_u32), Just(2), Just(3), Just(5000)]);
    prop::collection::vec(piece, 0..7).prop_map(|pieces| {
        let rows = pieces
            .into_iter()
            .flat_map(|(from, count, step)| (from..ROWS_MAX.min(from + count)).step_by(step as usize));
        rows.collect()
    })
}

/// As written without runs, or with.
fn bytes_of(bitmap: &RoaringBitmap, runs: bool) -> Vec<u8> {
    let mut bitmap = bitmap.clone();
    if runs {
        bitmap.optimize();
    } else {
        bitmap.remove_run_compression();
    }
    let mut bytes = Vec::new();
    bitmap.serialize_into(&mut bytes).unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn views_count_what_roaring_counts(
        a in bitmap(), b in bitmap(), runs in any::<(bool, bool)>(), from in 0..ROWS_MAX, to in 0..=ROWS_MAX, rows in 0..=ROWS_MAX,
    ) {
        let (x, y) = (bytes_of(&a, runs.0), bytes_of(&b, runs.1));
        let (p, q) = (RoaringView::open(&x).unwrap(), RoaringView::open(&y).unwrap());
        p.check().unwrap();
        prop_assert_eq!(p.len(), a.len());
        prop_assert_eq!(p.and_len(&q), a.intersection_len(&b));
        prop_assert_eq!(p.or_len(&q), a.union_len(&b));
        prop_assert_eq!(p.and_not_len(&q), a.difference_len(&b));
        prop_assert_eq!(p.and_len_set(&RowSet::from_bitmap(b.clone())), a.intersection_len(&b));
        prop_assert_eq!(p.range_len(from..to), a.range_cardinality(from..to.max(from)));
        for row in a.iter().step_by(997).chain([from, to, 0, ROWS_MAX]) {
            prop_assert_eq!(p.contains(RowId::at(row)), a.contains(row));
        }
        prop_assert_eq!(p.to_row_set(), RowSet::from_bitmap(a.clone()));
        let mut each = Vec::new();
        p.for_each(|row| each.push(row.number()));
        prop_assert!(each.iter().copied().eq(a.iter()));
        let mut dense = RowSet::from_bitmap(b.clone()).to_dense(rows);
        p.add_to(&mut dense);
        prop_assert_eq!(dense.to_row_set(), RowSet::from_bitmap((&a | &b) & RowSet::range(0..rows).bitmap()));
        prop_assert_eq!(Dense::none(rows).rows(), rows);
    }

    #[test]
    fn damaged_bitmaps_are_answered(a in bitmap(), runs in any::<bool>(), at in any::<usize>(), to in any::<u32>()) {
        let mut bytes = bytes_of(&a, runs);
        let front = at % bytes.len().min(80);
        bytes.iter_mut().skip(front).zip(to.to_le_bytes()).for_each(|(byte, to)| *byte = to);
        fuzzing::bitmap_any(&bytes);
        bytes.truncate(at % (bytes.len() + 1));
        fuzzing::bitmap_any(&bytes);
    }

    #[test]
    fn merged_postings_are_the_remapped_rows(
        inputs in prop::collection::vec((1..3000_u32, 1..40_u32, any::<u64>()), 1..4),
    ) {
        let mut expected: BTreeMap<Vec<u8>, RowSet> = BTreeMap::new();
        let (mut parts, mut remaps, mut next) = (Vec::new(), Vec::new(), 0);
        for &(rows, keys, seed) in &inputs {
            let key_of = |row: u32| (u64::from(row).wrapping_mul(seed | 1) >> 7) as u32 % keys;
            let live: RowSet = (0..rows).filter(|row| (u64::from(*row) ^ seed) % 5 != 0).map(RowId::at).collect();
            let remap = RowRemap::keeping(&live, rows, RowId::at(next));
            next += live.len() as u32;
            let mut lists: BTreeMap<Vec<u8>, RowSet> = BTreeMap::new();
            for row in 0..rows {
                let key = format!("k{}", key_of(row)).into_bytes();
                lists.entry(key.clone()).or_default().insert(RowId::at(row));
                if let Some(to) = remap.get(RowId::at(row)) {
                    expected.entry(key).or_default().insert(to);
                }
            }
            let mut writer = PostingsWriter::new();
            lists.iter().for_each(|(key, rows)| writer.push(key, rows).unwrap());
            parts.push(writer.finish(rows).unwrap());
            remaps.push(remap);
        }
        let postings = parts.iter().map(|part| Some(Postings::open(part).unwrap()));
        let merged = merge(&postings.zip(&remaps).collect::<Vec<_>>()).unwrap();
        let merged = Postings::open(&merged).unwrap();
        merged.check().unwrap();
        prop_assert_eq!((merged.rows(), merged.len()), (next, expected.len()));
        let mut key = Vec::new();
        for (index, (expected_key, rows)) in expected.iter().enumerate() {
            merged.key(index, &mut key).unwrap();
            prop_assert_eq!(&key, expected_key);
            prop_assert_eq!(merged.find(&key).unwrap(), Some(index));
            prop_assert_eq!(merged.rank(&key, true).unwrap(), index + 1);
            prop_assert_eq!(&merged.list(index).unwrap().to_row_set(), rows);
        }
        prop_assert_eq!(merged.find(b"other").unwrap(), None);
        prop_assert!(merged.list(expected.len()).is_err());
    }
}

#[test]
fn postings_without_keys_are_asked_by_number() {
    let mut writer = PostingsWriter::new();
    writer.push_rows(&RowSet::range(0..5)).unwrap();
    writer.push_rows(&RowSet::new()).unwrap();
    assert!(matches!(writer.push(b"k", &RowSet::new()), Err(Error::Misuse { .. })));
    let part = writer.finish(5).unwrap();
    let postings = Postings::open(&part).unwrap();
    postings.check().unwrap();
    assert_eq!((postings.len(), postings.has_keys()), (2, false));
    assert_eq!(postings.list(0).unwrap().len(), 5);
    assert!(postings.list(1).unwrap().is_empty());
    let live = RowRemap::keeping(&RowSet::range(0..5), 5, RowId::at(0));
    assert!(matches!(merge(&[(Some(postings), &live)]), Err(Error::Misuse { .. })));
}

#[test]
fn writers_refuse_disorder_and_rows_beyond() {
    let mut writer = PostingsWriter::new();
    writer.push(b"b", &RowSet::range(0..5)).unwrap();
    assert!(matches!(writer.push(b"b", &RowSet::new()), Err(Error::Misuse { .. })));
    assert!(matches!(writer.push_rows(&RowSet::new()), Err(Error::Misuse { .. })));
    assert!(matches!(writer.finish(4), Err(Error::Misuse { .. })));
}

proptest! {
    #[test]
    fn damaged_postings_are_answered(lists in 0..40_u32, at in any::<usize>(), to in any::<u32>()) {
        let mut writer = PostingsWriter::new();
        for list in 0..lists {
            writer.push(format!("key-{list:03}").as_bytes(), &RowSet::range(list..list * 3)).unwrap();
        }
        let mut part = writer.finish(200).unwrap();
        let at = 16 + at % (part.len() - 16);
        part.iter_mut().skip(at).zip(to.to_le_bytes()).for_each(|(byte, to)| *byte = to);
        fuzzing::postings_any(&part);
        prop_assert!(Postings::open(&part[..at]).is_err());
    }
}
