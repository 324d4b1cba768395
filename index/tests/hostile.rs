//! Bytes that no writer wrote: every reader answers, within bounds. Damage is put in with care, and the checksum is not asked.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{Random, rows, write};
use proptest::prelude::*;
use quarrydb_index::column::Column;
use quarrydb_index::{HEADER_BYTES, fuzzing};

/// Damages a part: bits, whole words of extremes, lengths and offsets.
fn damage(part: &[u8], random: &mut Random) -> Vec<u8> {
    let mut twin = part.to_vec();
    for _ in 0..=random.below(3) {
        // Directories are at the front: half of the damage goes there.
        let end = if random.below(2) == 0 { twin.len().min(220) } else { twin.len() };
        let at = HEADER_BYTES + random.below((end - HEADER_BYTES) as u64) as usize;
        match random.below(4) {
            0 => twin[at] ^= 1 << random.below(8),
            1 => twin[at] = random.next() as u8,
            2 => {
                let word = [u32::MAX, 0, 1, 1 << 20, 1 << 31, random.next() as u32][random.below(6) as usize];
                twin.iter_mut().skip(at).zip(word.to_le_bytes()).for_each(|(to, byte)| *to = byte);
            }
            _ => twin.iter_mut().skip(at).take(8).for_each(|to| *to = 0xff),
        }
    }
    twin
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_columns_are_answered(
        shape in 0..11_u64, count in prop_oneof![8 => 1..400_u32, 1 => Just(5000_u32)], fill in 1..=8_u64, many in 0..6_u64,
        seed in any::<u64>(),
    ) {
        let part = write(&rows(shape, count, fill, many, seed));
        let mut random = Random(seed);
        for _ in 0..12 {
            fuzzing::column_any(&damage(&part, &mut random));
        }
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzzing::column_any(&bytes);
    }
}

#[test]
fn shortened_columns_are_refused() {
    for shape in 0..11 {
        let part = write(&rows(shape, 150, 6, 2, shape));
        for end in 0..part.len() {
            assert!(Column::open(&part[..end]).is_err(), "{shape} {end}");
        }
    }
}
