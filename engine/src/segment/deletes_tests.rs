//! Dead rows against a model, and their file's bytes when they are not what was written.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;
use std::collections::BTreeMap;

const ID: SegmentId = SegmentId::from_raw(7);
const ROWS: u32 = 1000;

fn row(n: u32) -> RowId {
    RowId::from_raw(n)
}

fn check(deletes: &Deletes, model: &BTreeMap<u32, u64>, from: u64, to: u64) {
    for at in from..=to {
        let at = Seq::from_raw(at);
        let expected: RoaringBitmap =
            model.iter().filter(|(_, since)| **since <= at.get()).map(|(row, _)| *row).collect();
        assert_eq!(deletes.dead_at(at), expected, "at {at}");
        assert_eq!(deletes.count_dead_at(at), expected.len());
        for n in 0..ROWS {
            assert_eq!(deletes.is_dead(row(n), at), expected.contains(n));
        }
    }
}

#[test]
fn marking_folding_and_coming_back_from_bytes_agree_with_a_model() {
    let deletes = Deletes::new(ID, ROWS);
    let mut model = BTreeMap::new();
    assert!(deletes.is_empty());
    for step in 1..=60_u64 {
        for n in 0..step % 4 {
            let dead = (step * 271 + n * 13) as u32 % ROWS;
            let fresh = !model.contains_key(&dead);
            assert_eq!(deletes.mark(row(dead), Seq::from_raw(step)), fresh);
            model.entry(dead).or_insert(step);
        }
    }
    check(&deletes, &model, 0, 61);
    deletes.fold(Seq::from_raw(30));
    check(&deletes, &model, 30, 61);
    assert_eq!(deletes.recent_len(), model.values().filter(|since| **since > 30).count());
    let after: Vec<u64> = deletes.marked_after(Seq::from_raw(50)).iter().map(|(_, seq)| seq.get()).collect();
    assert_eq!(after.len(), model.values().filter(|since| **since > 50).count());
    assert!(after.is_sorted() && after.iter().all(|seq| *seq > 50));
    for up_to in [30, 45, 60, 100] {
        let bytes = deletes.encode(Seq::from_raw(up_to));
        let (back, told) = Deletes::decode("del-7-1.qdel", &bytes, ID, ROWS).unwrap();
        assert_eq!(told.get(), up_to);
        check(&back, &model, 30, up_to.min(61));
        // The log is replayed over it, from anywhere: nothing changes but what is missing.
        let mut again: Vec<(u64, u32)> = model.iter().map(|(dead, since)| (*since, *dead)).collect();
        again.sort_unstable();
        for (since, dead) in again {
            back.mark(row(dead), Seq::from_raw(since));
        }
        check(&back, &model, 30, 61);
        assert_eq!(back.recent_len(), deletes.recent_len());
    }
}

#[test]
fn every_damaged_byte_and_every_shorter_file_is_refused() {
    let deletes = Deletes::new(ID, ROWS);
    (1..50).for_each(|n| assert!(deletes.mark(row(n * 7), Seq::from_raw(n.into()))));
    deletes.fold(Seq::from_raw(20));
    let bytes = deletes.encode(Seq::from_raw(49));
    let name = delete_file_name(ID, 3);
    assert_eq!(parse_delete_file_name(&name), Some((ID, 3)));
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = Deletes::decode(&name, &damaged, ID, ROWS).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("del-7-3.qdel is damaged at offset"), "{error}");
    }
    for len in 0..bytes.len() {
        assert_eq!(Deletes::decode(&name, &bytes[..len], ID, ROWS).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert!(Deletes::decode(&name, &bytes, SegmentId::from_raw(8), ROWS).is_err(), "of another segment");
    assert!(Deletes::decode(&name, &bytes, ID, 10).is_err(), "rows that are not there");
}

/// The checksum holds and the content is a lie: what a fuzzer makes.
#[test]
fn bytes_with_a_right_checksum_are_not_believed_either() {
    let deletes = Deletes::new(ID, ROWS);
    (1..50).for_each(|n| assert!(deletes.mark(row(n), Seq::from_raw(n.into()))));
    deletes.fold(Seq::from_raw(20));
    let bytes = deletes.encode(Seq::from_raw(49));
    for at in 0..bytes.len() - 4 {
        for value in [0x00, 0x01, 0x80, 0xff] {
            let mut hostile = bytes.clone();
            hostile[at] = value;
            let body = hostile.len() - 4;
            let crc = crc32c::crc32c(&hostile[..body]).to_le_bytes();
            hostile[body..].copy_from_slice(&crc);
            if let Ok((deletes, _)) = Deletes::decode("d", &hostile, ID, ROWS) {
                assert!(deletes.dead_at(Seq::from_raw(u64::MAX)).max().is_none_or(|row| row < ROWS));
            }
        }
    }
}
