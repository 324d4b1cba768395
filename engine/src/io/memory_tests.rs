//! The crash model itself: what is durable stays, what is not may go, in every combination.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;

const SEEDS: std::ops::Range<u64> = 1..200;

#[test]
fn what_is_synced_stays_and_what_is_not_is_lost_in_some_crash_and_kept_in_another() {
    let storage = MemoryStorage::new();
    let file = storage.create("a", 8192).unwrap();
    storage.sync_dir().unwrap();
    file.write_at(0, b"synced").unwrap();
    file.sync_data().unwrap();
    file.write_at(4096, b"loose").unwrap();
    let mut outcomes = BTreeSet::new();
    for seed in SEEDS {
        let bytes = storage.crash(seed).bytes("a").unwrap();
        assert_eq!(&bytes[..6], b"synced");
        outcomes.insert(bytes[4096..4101].to_vec());
    }
    assert_eq!(outcomes, BTreeSet::from([b"loose".to_vec(), vec![0; 5]]));
}

#[test]
fn sectors_of_one_write_survive_on_their_own() {
    let storage = MemoryStorage::new();
    let file = storage.create("a", 8192).unwrap();
    storage.sync_dir().unwrap();
    file.write_at(0, &[7; 8192]).unwrap();
    let holed = SEEDS.filter(|&seed| {
        let bytes = storage.crash(seed).bytes("a").unwrap();
        let kept: Vec<bool> = bytes.chunks(SECTOR_BYTES).map(|s| s == [7; SECTOR_BYTES]).collect();
        // A later sector there and an earlier one not.
        kept.iter().rposition(|k| *k) > kept.iter().position(|k| !*k)
    });
    assert!(holed.count() > 10);
}

#[test]
fn names_are_durable_only_after_the_directory_is_synced() {
    let storage = MemoryStorage::new();
    storage.create("a", 1).unwrap();
    storage.sync_dir().unwrap();
    let file = storage.create("b", 0).unwrap();
    file.write_at(0, b"b").unwrap();
    file.sync_data().unwrap();
    storage.rename("b", "a").unwrap();
    storage.create("c", 0).unwrap();
    let mut outcomes = BTreeSet::new();
    for seed in SEEDS {
        let left = storage.crash(seed);
        // `a` is one of the two files whatever happens, never neither.
        let a = left.bytes("a").unwrap();
        assert!(a == b"b" || a == [0]);
        outcomes.insert((a, left.exists("c").unwrap()));
    }
    assert_eq!(outcomes.len(), 4, "rename and create are kept or lost independently: {outcomes:?}");
    storage.sync_dir().unwrap();
    let left = storage.crash(0);
    assert_eq!(left.bytes("a").unwrap(), b"b");
    assert_eq!(left.list().unwrap(), [("a".to_owned(), 1), ("c".to_owned(), 0)]);
}

/// The classic: rename is atomic, and the renamed file is empty because its content was never synced.
#[test]
fn a_rename_does_not_make_content_durable() {
    let storage = MemoryStorage::new();
    let file = storage.create("new.tmp", 0).unwrap();
    file.write_at(0, b"content").unwrap();
    storage.rename("new.tmp", "new").unwrap();
    storage.sync_dir().unwrap();
    assert_eq!(storage.crash(0).bytes("new").unwrap(), b"");
}

#[test]
fn write_atomic_leaves_old_or_new_at_every_crash() {
    let dry = MemoryStorage::new();
    dry.write_atomic("m", b"old").unwrap();
    let from = dry.operations();
    dry.write_atomic("m", b"newer").unwrap();
    for stop in from..dry.operations() {
        let storage = MemoryStorage::new();
        storage.write_atomic("m", b"old").unwrap();
        storage.stop_at(Some(stop));
        storage.write_atomic("m", b"newer").unwrap_err();
        for seed in SEEDS {
            let bytes = storage.crash(seed).bytes("m").unwrap();
            assert!(bytes == b"old" || bytes == b"newer", "stop {stop} seed {seed}: {bytes:?}");
        }
    }
    assert_eq!(dry.crash(0).bytes("m").unwrap(), b"newer");
}

#[test]
fn the_same_seed_gives_the_same_crash() {
    let storage = MemoryStorage::new();
    let file = storage.create("a", 0).unwrap();
    file.write_at(0, &[9; 20_000]).unwrap();
    for seed in SEEDS {
        assert_eq!(storage.crash(seed).bytes("a"), storage.crash(seed).bytes("a"));
    }
    assert_eq!(storage.crash(u64::MAX).bytes("a").unwrap(), [9; 20_000]);
}
