//! The manifest's bytes, damaged in every way, and its replacement under crashes.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;
use crate::ErrorKind;
use crate::io::{Faults, FaultyStorage, MemoryStorage, Storage};
use std::sync::Arc;

fn sample(collections: u32, segments: u64) -> Manifest {
    let mut manifest = Manifest::new(0x1234_5678_9abc_def0);
    manifest.generation = 17;
    manifest.next_collection = CollectionId::from_raw(collections + 5);
    manifest.next_segment = SegmentId::from_raw(segments + 9);
    manifest.durable_at_least = Seq::from_raw(4_000);
    manifest.clean_end = (segments > 1).then_some(Seq::from_raw(4_001));
    manifest.first_log_file = LogFileId::from_raw(12);
    manifest.kept_log_file = LogFileId::from_raw(10);
    manifest.watched_since = (segments > 0).then_some(Seq::from_raw(2_000));
    for id in 1..=collections {
        manifest.collections.push(CollectionEntry {
            id: CollectionId::from_raw(id),
            db: "shop".to_owned(),
            name: format!("orders \u{e9} {id}"),
            options: vec![id as u8; id as usize],
            definitions: vec![9; 3],
            created_seq: Seq::from_raw(10 + u64::from(id)),
            sealed_seq: Seq::from_raw(3_000),
        });
    }
    for id in 1..=segments {
        let meta = SegmentMeta {
            id: SegmentId::from_raw(id),
            collection: CollectionId::from_raw(1),
            rows: 1000,
            min_seq: Seq::from_raw(1),
            max_seq: Seq::from_raw(3_000),
            row_bytes: 305_000,
            file_bytes: 120_000,
            footer_bytes: 304,
            footer_crc: 0xfeed_f00d,
        };
        let deletes = id.is_multiple_of(2).then(|| DeleteFileRef {
            name: format!("del-{id}-1.qdel"),
            len: 99,
            crc: 5,
            up_to: Seq::from_raw(3_500),
        });
        manifest.segments.push(SegmentEntry { meta, deletes, indexes: Vec::new() });
    }
    let (db, name) = ("shop".to_owned(), "gone".to_owned());
    manifest.dropped.push(DroppedEntry {
        id: CollectionId::from_raw(collections + 1),
        seq: Seq::from_raw(77),
        db,
        name,
    });
    manifest
}

#[test]
fn what_is_encoded_is_decoded() {
    for manifest in [Manifest::new(1), sample(1, 0), sample(3, 5)] {
        let bytes = manifest.encode();
        assert_eq!(Manifest::decode("MANIFEST", &bytes).unwrap(), manifest);
        assert_eq!(Manifest::decode("MANIFEST", &bytes).unwrap().encode(), bytes);
    }
}

/// D02: also the empty file, which must never pass for an empty database.
#[test]
fn every_flipped_bit_and_every_other_length_is_refused_with_file_and_offset() {
    let bytes = sample(2, 2).encode();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = Manifest::decode("MANIFEST", &damaged).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "bit {bit}");
        assert!(error.message().starts_with("MANIFEST is damaged at offset "), "{error}");
    }
    for len in 0..bytes.len() {
        assert_eq!(Manifest::decode("MANIFEST", &bytes[..len]).unwrap_err().kind(), ErrorKind::Corrupt);
    }
    let longer = [&bytes[..], b"\0"].concat();
    assert_eq!(Manifest::decode("MANIFEST", &longer).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// Sums are made right again after each change, as a fuzzer's custom mutator would: nothing may panic or allocate
/// beyond the file, and what is accepted must encode to what was read.
#[test]
fn bytes_with_right_checksums_are_not_believed_either() {
    let bytes = sample(2, 2).encode();
    let mut accepted = 0;
    for at in 16..bytes.len() {
        for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut hostile = bytes.clone();
            hostile[at] = value;
            seal(&mut hostile);
            if let Ok(manifest) = Manifest::decode("MANIFEST", &hostile) {
                assert_eq!(manifest.encode(), hostile);
                accepted += 1;
            }
        }
    }
    assert!(accepted > 100, "numbers that can be other numbers");
}

fn seal(bytes: &mut [u8]) {
    let body = crc32c::crc32c(&bytes[32..]).to_le_bytes();
    bytes[24..28].copy_from_slice(&body);
    let header = crc32c::crc32c(&bytes[..28]).to_le_bytes();
    bytes[28..32].copy_from_slice(&header);
}

#[test]
fn a_newer_version_is_named() {
    let mut bytes = sample(1, 1).encode();
    bytes[8] = 3;
    seal(&mut bytes);
    let error = Manifest::decode("MANIFEST", &bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert!(error.message().contains("MANIFEST is of format version 3"), "{error}");
}

#[test]
fn entries_that_contradict_each_other_are_refused() {
    let twice = |change: fn(&mut Manifest)| {
        let mut manifest = sample(2, 2);
        change(&mut manifest);
        Manifest::decode("MANIFEST", &manifest.encode()).unwrap_err()
    };
    let errors = [
        twice(|m| m.collections[1].id = m.collections[0].id),
        twice(|m| m.collections[1].id = m.next_collection),
        twice(|m| m.segments[1].meta.id = m.segments[0].meta.id),
        twice(|m| m.segments[1].meta.id = m.next_segment),
        twice(|m| m.segments[1].meta.collection = CollectionId::from_raw(9)),
    ];
    assert!(errors.iter().all(|error| error.kind() == ErrorKind::Corrupt));
}

#[test]
fn a_directory_without_a_manifest_is_new_only_when_nothing_else_is_there() {
    let memory = MemoryStorage::new();
    let store = ManifestStore::new(Arc::new(memory.clone()));
    assert_eq!(store.load().unwrap(), None);
    memory.put("MANIFEST.tmp", b"half");
    memory.put("notes.txt", b"a person's");
    assert_eq!(store.load().unwrap(), None);
    for name in ["log-1.qlog", "seg-1.qseg", "del-1-1.qdel"] {
        memory.put(name, b"");
        let error = store.load().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.message().contains("MANIFEST") && error.message().contains(name), "{error}");
        memory.remove(name).unwrap();
    }
    memory.put("MANIFEST", b"");
    assert_eq!(store.load().unwrap_err().kind(), ErrorKind::Corrupt, "an empty one is not a new database");
}

#[test]
fn saving_leaves_the_old_or_the_new_one_at_every_crash() {
    let (old, new) = (sample(1, 1), sample(3, 4));
    let dry = MemoryStorage::new();
    let store = ManifestStore::new(Arc::new(dry.clone()));
    store.save(&old).unwrap();
    let from = dry.operations();
    store.save(&new).unwrap();
    for stop in from..=dry.operations() {
        let memory = MemoryStorage::new();
        let store = ManifestStore::new(Arc::new(memory.clone()));
        store.save(&old).unwrap();
        memory.stop_at(Some(stop));
        let saved = store.save(&new).is_ok();
        for seed in 0..50 {
            let left = memory.crash(seed);
            let store = ManifestStore::new(Arc::new(left));
            let found = store.load().unwrap().unwrap();
            assert!(found == new || (found == old && !saved), "stop {stop} seed {seed}");
            store.save(&new).unwrap();
        }
    }
}

#[test]
fn a_full_disk_keeps_the_old_manifest() {
    let memory = MemoryStorage::new();
    let faulty = FaultyStorage::new(Arc::new(memory.clone()), 1);
    let store = ManifestStore::new(Arc::new(faulty.clone()));
    store.save(&sample(1, 1)).unwrap();
    let used = memory.bytes("MANIFEST").unwrap().len() as u64;
    faulty.set(Faults { byte_budget: Some(used + 50), ..Faults::default() });
    assert_eq!(store.save(&sample(3, 4)).unwrap_err().kind(), ErrorKind::OutOfDiskSpace);
    assert_eq!(store.load().unwrap().unwrap(), sample(1, 1));
    assert_eq!(memory.list().unwrap().len(), 1);
    faulty.set(Faults::default());
    store.save(&sample(3, 4)).unwrap();
    assert_eq!(store.load().unwrap().unwrap(), sample(3, 4));
}

/// After a failed sync of the directory the new manifest may stand or not, and a later save proves nothing.
#[test]
fn after_a_failed_sync_nothing_is_saved_any_more() {
    let memory = MemoryStorage::new();
    let faulty = FaultyStorage::new(Arc::new(memory.clone()), 1);
    let store = ManifestStore::new(Arc::new(faulty.clone()));
    store.save(&sample(1, 1)).unwrap();
    faulty.set(Faults { sync_error_ppm: 1_000_000, ..Faults::default() });
    assert_eq!(store.save(&sample(2, 2)).unwrap_err().kind(), ErrorKind::Poisoned);
    faulty.set(Faults::default());
    let error = store.clone().save(&sample(2, 2)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert!(error.message().contains("injected fault"), "{error}");
    let anew = ManifestStore::new(Arc::new(faulty));
    assert_eq!(anew.load().unwrap().unwrap(), sample(1, 1));
    anew.save(&sample(2, 2)).unwrap();
}
