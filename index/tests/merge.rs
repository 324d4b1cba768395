//! Merging by row remapping: the merged part is what writing the remapped rows would have given.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{Random, Row, compare, rows, write};
use proptest::prelude::*;
use quarrydb_index::column::{Column, merge};
use quarrydb_index::{Error, RowId, RowRemap, RowSet};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn merged_columns_are_the_remapped_rows(
        inputs in prop::collection::vec((0..11_u64, 0..3000_u32, 0..=8_u64, 0..4_u64, any::<bool>()), 1..4), seed in any::<u64>(),
    ) {
        let mut random = Random(seed);
        let inputs: Vec<(Vec<Row>, bool)> = inputs
            .into_iter()
            .map(|(shape, count, fill, many, has)| (rows(shape, count, if has { fill } else { 0 }, many, random.next()), has))
            .collect();
        // Interleaved: each kept row gets the next new number in a random order of inputs.
        let mut places: Vec<(usize, usize)> = (0..inputs.len()).flat_map(|i| (0..inputs[i].0.len()).map(move |r| (i, r))).collect();
        places.retain(|_| random.below(4) != 0);
        places.sort_by_cached_key(|&(input, row)| (row / 7, input));
        let mut to: Vec<Vec<Option<RowId>>> = inputs.iter().map(|(rows, _)| vec![None; rows.len()]).collect();
        let mut expected = Vec::new();
        for (new, &(input, row)) in (0..).zip(&places) {
            to[input][row] = Some(RowId::at(new));
            expected.push(inputs[input].0[row].clone());
        }
        let remaps: Vec<RowRemap> = to.into_iter().map(|to| RowRemap::from_rows(to.into_iter())).collect();
        let parts: Vec<Vec<u8>> = inputs.iter().map(|(rows, _)| write(rows)).collect();
        let columns = parts.iter().zip(&inputs).map(|(part, (_, has))| has.then(|| Column::open(part).unwrap()));
        let merged = merge(&columns.zip(&remaps).collect::<Vec<_>>()).unwrap();
        compare(&merged, &expected);
        prop_assert!(merged == write(&expected), "byte for byte");
    }
}

#[test]
fn remaps_that_do_not_fit_are_refused() {
    let part = write(&rows(0, 10, 8, 0, 1));
    let column = Some(Column::open(&part).unwrap());
    let live = RowSet::range(2..9);
    let good = RowRemap::keeping(&live, 10, RowId::at(0));
    assert_eq!(good.get(RowId::at(1)), None);
    assert_eq!(good.get(RowId::at(4)), Some(RowId::at(2)));
    assert!(merge(&[(column, &good)]).is_ok());
    assert!(matches!(merge(&[(column, &good), (column, &good)]), Err(Error::Misuse { .. })));
    let short = RowRemap::keeping(&live, 9, RowId::at(0));
    assert!(matches!(merge(&[(column, &short)]), Err(Error::Misuse { .. })));
    let gap = RowRemap::keeping(&live, 10, RowId::at(1));
    assert!(matches!(merge(&[(column, &gap)]), Err(Error::Misuse { .. })));
}
