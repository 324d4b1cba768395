//! Row sets against `BTreeSet`: every operation, iteration, batches, dense bits and bytes.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use std::collections::BTreeSet;

use proptest::prelude::*;
use quarrydb_index::{BATCH_ROWS, Dense, ROWS_MAX, RowId, RowSet};

/// Lonely rows and runs over a whole segment.
fn rows() -> impl Strategy<Value = BTreeSet<u32>> {
    prop::collection::vec((0..ROWS_MAX, prop_oneof![3 => 1..3_u32, 1 => 1..9000_u32]), 0..12)
        .prop_map(|runs| runs.into_iter().flat_map(|(from, count)| from..(from + count).min(ROWS_MAX)).collect())
}

fn set_of(model: &BTreeSet<u32>) -> RowSet {
    model.iter().copied().map(RowId::at).collect()
}

fn numbers(set: &RowSet) -> BTreeSet<u32> {
    set.iter().map(RowId::number).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn sets_do_what_sets_do(a in rows(), b in rows(), cut in 0..ROWS_MAX, width in 0..ROWS_MAX) {
        let (x, y) = (set_of(&a), set_of(&b));
        prop_assert_eq!(numbers(&x.and(&y)), a.intersection(&b).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(numbers(&x.or(&y)), a.union(&b).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(numbers(&x.and_not(&y)), a.difference(&b).copied().collect::<BTreeSet<_>>());
        prop_assert_eq!(x.and_len(&y), a.intersection(&b).count() as u64);
        let mut kept = x.clone();
        kept.keep_range(cut..cut + width);
        let inside: BTreeSet<u32> = a.range(cut..cut + width).copied().collect();
        prop_assert_eq!(x.range_len(cut..cut + width), inside.len() as u64);
        prop_assert_eq!(numbers(&kept), inside);
        prop_assert_eq!(x.complement(ROWS_MAX).len(), u64::from(ROWS_MAX) - a.len() as u64);
        let mut bytes = Vec::new();
        x.write(&mut bytes);
        prop_assert_eq!(RowSet::read(&bytes).unwrap(), x.clone());
        let from: Vec<u32> = x.iter_from(RowId::at(cut)).map(RowId::number).collect();
        prop_assert_eq!(from, a.range(cut..).copied().collect::<Vec<_>>());
        let mut of_batches = Vec::new();
        for batch in x.batches() {
            prop_assert!(!batch.rows.is_empty() && batch.base.number() % BATCH_ROWS == 0);
            prop_assert!(batch.rows.last().unwrap().number() - batch.base.number() < BATCH_ROWS);
            of_batches.extend(batch.rows.iter().map(RowId::number));
        }
        prop_assert_eq!(of_batches, a.iter().copied().collect::<Vec<_>>());
    }

    #[test]
    fn dense_bits_are_the_same_rows(a in rows(), b in rows(), rows in 0..=ROWS_MAX) {
        let (x, y) = (set_of(&a), set_of(&b));
        let below = |set: &BTreeSet<u32>| set.range(..rows).copied().collect::<BTreeSet<u32>>();
        let (p, q) = (x.to_dense(rows), y.to_dense(rows));
        prop_assert_eq!(p.len(), below(&a).len() as u64);
        prop_assert_eq!(numbers(&p.to_row_set()), below(&a));
        let (mut and, mut or, mut not) = (p.clone(), p.clone(), p.clone());
        and.keep(&q);
        or.add(&q);
        not.take_out(&q);
        prop_assert_eq!(and.to_row_set(), x.and(&y).and(&RowSet::range(0..rows)));
        prop_assert_eq!(or.to_row_set(), x.or(&y).and(&RowSet::range(0..rows)));
        prop_assert_eq!(not.to_row_set(), x.and_not(&y).and(&RowSet::range(0..rows)));
        prop_assert_eq!(Dense::all(rows).to_row_set(), RowSet::range(0..rows));
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), a in rows(), at in any::<usize>()) {
        let _ = RowSet::read(&bytes);
        let mut good = Vec::new();
        set_of(&a).write(&mut good);
        let index = at % good.len();
        good[index] ^= 1 << (at % 8);
        let _ = RowSet::read(&good);
        prop_assert!(RowSet::read(&good[..index]).is_err());
    }
}

#[test]
fn rows_beyond_a_segment_are_refused() {
    let mut bytes = Vec::new();
    RowSet::from_bitmap([ROWS_MAX].into_iter().collect()).write(&mut bytes);
    assert!(RowSet::read(&bytes).is_err());
}
