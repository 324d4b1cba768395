//! Bytes that are not what was written: refused with file and offset, or content as before; never a panic, never
//! silently fewer commits than were acknowledged, and the files stay as they are.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::file::{epoch, file_name};
use super::record::Header;
use super::testing::*;
use super::*;
use crate::ErrorKind;
use crate::io::MemoryStorage;

/// Three files, closed in order: everything is known to be durable.
fn closed(commits: u64) -> MemoryStorage {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    for seq in 1..=commits {
        append(&log, seq).unwrap();
        log.sync().unwrap();
    }
    log.close().unwrap();
    // The room kept for an opening is no part of the log.
    crate::io::Storage::remove(&storage, "spare-0.qlog").unwrap();
    storage
}

/// Recovery of a damaged copy: an error that names a file and an offset, or the same commits as before; nothing
/// written in any case.
fn check(storage: &MemoryStorage, commits: u64, context: &str) -> Option<String> {
    let before = image(storage);
    let result = read(storage, NO_FLOOR);
    assert_eq!(image(storage), before, "{context}: recovery wrote");
    match result {
        Ok((seqs, ..)) => {
            assert_eq!(seqs, (1..=commits).collect::<Vec<_>>(), "{context}: silently other commits");
            None
        }
        Err(error) => {
            let message = error.message().to_owned();
            let named = message.contains("log-") && (message.contains("offset") || message.contains("version"));
            assert!(named, "{context}: {message}");
            assert!(matches!(error.kind(), ErrorKind::Corrupt | ErrorKind::UnsupportedVersion), "{context}: {message}");
            Some(message)
        }
    }
}

#[test]
fn every_flipped_byte_of_a_closed_log_is_refused_or_changes_nothing() {
    let commits = 30;
    let storage = closed(commits);
    let (_, end, _) = read(&storage, NO_FLOOR).unwrap();
    assert!(end.files.len() >= 2);
    let mut refused = 0;
    for info in &end.files {
        let name = file_name(info.id);
        let bytes = storage.bytes(&name).unwrap();
        for at in (0..80).chain(4000..bytes.len().min(info.used_bytes as usize + 60)) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            storage.put(&name, &damaged);
            let context = format!("{name} byte {at}");
            refused += u64::from(check(&storage, commits, &context).is_some());
        }
        storage.put(&name, &bytes);
    }
    assert!(refused > 3000, "{refused}");
}

/// D01: for every length of the newest file within its last three records, with what may stand behind the cut.
#[test]
fn a_log_cut_at_every_byte_of_its_last_records_starts_with_all_that_is_whole() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    let mut ends = Vec::new();
    for seq in 1..=9 {
        append(&log, seq).unwrap();
        log.sync().unwrap();
        ends.push(log.files()[0].used_bytes as usize);
    }
    let name = file_name(LogFileId::from_raw(1));
    let bytes = storage.bytes(&name).unwrap();
    let garbage = bytes[ends[0]..].to_vec();
    for cut in ends[5]..=ends[8] {
        let whole = ends.iter().filter(|end| **end <= cut).count() as u64;
        for fill in [None, Some(vec![0; 500]), Some(vec![0xff; 500]), Some(garbage.clone())] {
            let left = MemoryStorage::new();
            left.put(&name, &[&bytes[..cut], fill.as_deref().unwrap_or_default()].concat());
            let (log, (seqs, ..)) = open(&left, NO_FLOOR).unwrap();
            // Padding cut off at the end of a record, or zeros in its place, may leave it whole.
            let found = seqs.len() as u64;
            assert!(
                found == whole || (found == whole + 1 && bytes[cut..ends[found as usize - 1]].iter().all(|b| *b == 0))
            );
            (found + 1..=found + 10).for_each(|seq| append(&log, seq).unwrap());
            log.close().unwrap();
            assert_eq!(read(&left, NO_FLOOR).unwrap().0, (1..=found + 10).collect::<Vec<_>>());
        }
    }
}

/// D06: garbage before the log, lengths that point nowhere, files that stand for each other.
#[test]
fn garbage_in_front_impossible_lengths_and_swapped_files_end_with_a_clear_error() {
    let commits = 40;
    let storage = closed(commits);
    let names: Vec<String> = image(&storage).into_iter().map(|(name, _)| name).collect();
    for name in &names {
        let bytes = storage.bytes(name).unwrap();
        storage.put(name, &[b"abc", &bytes[..]].concat());
        assert!(check(&storage, commits, &format!("3 bytes before {name}")).is_some());
        storage.put(name, &bytes[3..]);
        assert!(check(&storage, commits, &format!("3 bytes gone from {name}")).is_some());
        for length in [0_u32, 1, 47, 0x7fff_ffff, 0xffff_ffff, 4096] {
            let mut damaged = bytes.clone();
            damaged[4096 + 32..4096 + 36].copy_from_slice(&length.to_le_bytes());
            storage.put(name, &damaged);
            assert!(check(&storage, commits, &format!("{name} length {length}")).is_some());
        }
        storage.put(name, &bytes);
    }
    // A file under the number of the next one, and one of them gone.
    let (first, second) = (storage.bytes(&names[0]).unwrap(), storage.bytes(&names[1]).unwrap());
    storage.put(&names[1], &first);
    assert!(check(&storage, commits, "twice the first").unwrap().contains("by its header it is log-1.qlog"));
    storage.put(&names[0], &second);
    storage.put(&names[1], &first);
    assert!(check(&storage, commits, "swapped").is_some());
}

/// The length is a lie and the checksum of the header holds: what only a hostile writer makes.
#[test]
fn a_length_with_a_right_checksum_is_not_believed() {
    let storage = closed(3);
    let id = LogFileId::from_raw(1);
    let bytes = storage.bytes(&file_name(id)).unwrap();
    for payload_len in [0, 1, u32::MAX, PAYLOAD_BYTES_MAX as u32, 9000] {
        for kind in [KIND_WATERMARK, 1] {
            let header = Header { seq: 1, durable: 0, wall_ms: 0, payload_len, payload_crc: 0, kind };
            let mut hostile = bytes.clone();
            hostile[4096..4144].copy_from_slice(&header.encode(epoch(DATABASE, id), 4096));
            storage.put(&file_name(id), &hostile);
            let error = recover(&storage, &options(), NO_FLOOR, &mut |_| Ok(())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{payload_len} {kind}");
            assert!(error.message().contains("log-1.qlog is damaged at offset 4"), "{error}");
        }
    }
}

#[test]
fn damage_below_the_watermark_names_file_and_offset_and_above_it_is_a_tail() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    let mut starts = Vec::new();
    for seq in 1..=6 {
        let payload = Payload::new(content(seq));
        log.reserve(payload.len()).unwrap();
        starts.push(log.append(Seq::from_raw(seq), 0, 1 + (seq % 3) as u8, payload).offset);
        log.sync().unwrap();
    }
    // Record 6 was written when 5 was durable; 6 itself is durable and nothing in the log says so.
    let name = file_name(LogFileId::from_raw(1));
    let bytes = storage.bytes(&name).unwrap();
    let damage = |seq: usize| {
        let mut damaged = bytes.clone();
        damaged[starts[seq - 1] as usize + 50] ^= 1;
        storage.put(&name, &damaged);
        read(&storage, NO_FLOOR)
    };
    for seq in 1..=5 {
        let error = damage(seq).unwrap_err();
        let expected =
            format!("log-1.qlog is damaged at offset {}: the checksum of a record's payload", starts[seq - 1]);
        assert!(error.message().starts_with(&expected), "{error}");
        assert!(error.message().contains("up to seq5 were durable"), "{error}");
    }
    let (seqs, _, report) = damage(6).unwrap();
    assert_eq!(seqs, [1, 2, 3, 4, 5]);
    assert_eq!(report.cut.unwrap().offset, starts[5]);
    // The manifest knows better, or an idle mark does.
    let floor = RecoverFloor { durable_at_least: Seq::from_raw(6), ..NO_FLOOR };
    assert_eq!(read(&storage, floor).unwrap_err().kind(), ErrorKind::Corrupt);
    storage.put(&name, &bytes);
    let (log, _) = open(&MemoryStorage::new(), NO_FLOOR).unwrap();
    drop(log);
    let marked = closed(6);
    let mut damaged = marked.bytes(&name).unwrap();
    damaged[starts[5] as usize + 50] ^= 1;
    marked.put(&name, &damaged);
    assert_eq!(read(&marked, NO_FLOOR).unwrap_err().kind(), ErrorKind::Corrupt);
}

/// A record is unreadable at one start, is left out as unsynced, and commits are written in its place; at the next
/// start it reads well again. The later ones stand.
#[test]
fn a_tail_once_left_out_stays_out_when_it_reads_well_again() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    (1..=6).for_each(|seq| append(&log, seq).unwrap());
    log.write().unwrap();
    let bytes = storage.bytes("log-1.qlog").unwrap();
    let mut damaged = bytes.clone();
    let fourth: usize = (1..=3).map(|seq| 48 + content(seq).len().next_multiple_of(8)).sum();
    damaged[4096 + fourth + 50] ^= 1;
    storage.put("log-1.qlog", &damaged);
    let (log, (seqs, ..)) = open(&storage, NO_FLOOR).unwrap();
    assert_eq!(seqs, [1, 2, 3]);
    for seq in 4..=5 {
        log.reserve(5).unwrap();
        log.append(Seq::from_raw(seq), 0, 9, Payload::new(b"later".to_vec()));
    }
    log.close().unwrap();
    storage.put("log-1.qlog", &bytes);
    let mut kinds = Vec::new();
    let (end, report) = recover(&storage, &options(), NO_FLOOR, &mut |record| {
        kinds.push(record.kind);
        Ok(())
    })
    .unwrap();
    assert_eq!((end.last_seq.get(), kinds.as_slice(), report.cut), (5, &[2, 3, 1, 9, 9][..], None));
    let log = Log::open(std::sync::Arc::new(storage), options(), end).unwrap();
    let mut cursor = log.read_from(Seq::from_raw(2)).unwrap();
    let read: Vec<u8> = std::iter::from_fn(|| cursor.next(&log, log.durable()).unwrap()).map(|r| r.kind).collect();
    assert_eq!(read, [3, 1, 9, 9]);
}

#[test]
fn a_missing_file_is_named() {
    let commits = 60;
    let storage = closed(commits);
    let images = image(&storage);
    assert!(images.len() >= 3);
    for (name, bytes) in &images {
        crate::io::Storage::remove(&storage, name).unwrap();
        match read(&storage, RecoverFloor { durable_at_least: Seq::from_raw(1), ..NO_FLOOR }) {
            // The last one: nothing in the log speaks of it.
            Ok((seqs, ..)) => assert!(*name == images[images.len() - 1].0 && !seqs.is_empty(), "{name}"),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corrupt);
                assert!(
                    error.message().contains(&format!("{name} is damaged at offset 0: the file is missing")),
                    "{error}"
                );
            }
        }
        // With a floor at the end, the last one is missed as well.
        let floor = RecoverFloor { durable_at_least: Seq::from_raw(commits), ..NO_FLOOR };
        assert_eq!(read(&storage, floor).unwrap_err().kind(), ErrorKind::Corrupt, "{name}");
        storage.put(name, bytes);
    }
    for (name, _) in &images {
        crate::io::Storage::remove(&storage, name).unwrap();
    }
    let floor = RecoverFloor { durable_at_least: Seq::from_raw(1), ..NO_FLOOR };
    assert!(read(&storage, floor).unwrap_err().message().contains("log-1.qlog"));
}

/// Zeroed blocks, as a disk gives them back that has lost its map.
#[test]
fn a_file_whose_header_is_gone_is_not_taken_for_one_never_used() {
    let commits = 40;
    let storage = closed(commits);
    for (name, bytes) in image(&storage) {
        for (what, block) in [("zeros", vec![0; 4096]), ("text", b"text\n".repeat(820)[..4096].to_vec())] {
            storage.put(&name, &[&block[..], &bytes[4096..]].concat());
            let message = check(&storage, commits, &format!("{what} in {name}")).unwrap();
            assert!(message.contains(&format!("{name} is damaged at offset 0")), "{message}");
        }
        storage.put(&name, &bytes);
    }
}

#[test]
fn a_newer_version_and_another_database_are_named() {
    let storage = closed(3);
    let bytes = storage.bytes("log-1.qlog").unwrap();
    let mut newer = bytes.clone();
    newer[8] = 1;
    storage.put("log-1.qlog", &newer);
    let error = read(&storage, NO_FLOOR).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert!(error.message().contains("log-1.qlog is of log format version 1"), "{error}");
    storage.put("log-1.qlog", &bytes);
    let other = LogOptions { database: DATABASE + 1, ..options() };
    let error = recover(&storage, &other, NO_FLOOR, &mut |_| Ok(())).unwrap_err();
    assert!(error.message().contains("it belongs to another database"), "{error}");
}
