//! The log in ordinary use: what goes in comes back, files rotate, are released and used again.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::testing::*;
use super::*;
use crate::ErrorKind;
use crate::io::{Faults, FaultyStorage, MemoryStorage, Storage};
use std::sync::Arc;

fn seqs(range: std::ops::RangeInclusive<u64>) -> Vec<u64> {
    range.collect()
}

#[test]
fn commits_come_back_in_order_over_many_files_and_openings() {
    let storage = MemoryStorage::new();
    let mut last = 0;
    for opening in 0..5_u64 {
        let (log, (found, ..)) = open(&storage, NO_FLOOR).unwrap();
        assert_eq!(found, seqs(1..=last));
        for seq in last + 1..=last + 60 {
            append(&log, seq).unwrap();
            if seq.is_multiple_of(7) {
                assert_eq!(log.write().unwrap().get(), seq);
            }
        }
        last += 60;
        assert!(log.files().len() as u64 > opening * 2, "they rotate");
        assert_eq!(log.close().unwrap().get(), last);
        assert_eq!(log.durable().get(), last);
    }
    let (found, end, report) = read(&storage, NO_FLOOR).unwrap();
    assert_eq!(found, seqs(1..=last));
    assert_eq!((report.commits, report.cut), (last, None));
    assert_eq!(end.wall_ms, 1_700_000_000_000 + last);
}

#[test]
fn an_empty_directory_is_an_empty_log() {
    let storage = MemoryStorage::new();
    let (log, (found, end, _)) = open(&storage, NO_FLOOR).unwrap();
    assert_eq!((found, end.last_seq.get()), (vec![], 0));
    assert_eq!(log.sync().unwrap().get(), 0);
    log.mark_durable_if_idle().unwrap();
    assert_eq!(log.stats().bytes_written, 0, "nothing to say");
}

#[test]
fn a_record_longer_than_a_file_gets_one_of_its_own() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    append(&log, 1).unwrap();
    let large: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
    log.reserve(large.len()).unwrap();
    log.append(Seq::from_raw(2), 5, 9, Payload::new(large.clone()));
    log.reserve(10).unwrap();
    log.append(Seq::from_raw(3), 6, 9, Payload::new(vec![7; 10]));
    log.sync().unwrap();
    let lens: Vec<u64> = log.files().iter().map(|f| f.bytes).collect();
    assert_eq!(lens, [8192, 4096 * 75], "4096 + 300048 + 48 in whole blocks, the third fits behind");
    let mut found = Vec::new();
    recover(&storage, &options(), NO_FLOOR, &mut |r| {
        found.push((r.seq.get(), r.payload.to_vec()));
        Ok(())
    })
    .unwrap();
    assert_eq!(found[1], (2, large));
    assert_eq!(found[2], (3, vec![7; 10]));
    assert_eq!(log.reserve(PAYLOAD_BYTES_MAX + 1).unwrap_err().kind(), ErrorKind::LimitExceeded);
}

/// D15: the wall clock steps back ten minutes between two commits, and once more over a restart.
#[test]
fn wall_time_in_the_log_never_steps_back() {
    let storage = MemoryStorage::new();
    let mut stamps = Vec::new();
    for (opening, wall) in [(0, 1_000_000), (1, 400_000)] {
        let (_, end, _) = read_any(&storage);
        let log = Log::open(Arc::new(storage.clone()), options(), end).unwrap();
        for step in 0..3 {
            log.reserve(0).unwrap();
            let seq = Seq::from_raw(opening * 3 + step + 1);
            stamps.push(log.append(seq, wall - step * 1000, 1, Payload::new(vec![])).wall_ms);
        }
        log.close().unwrap();
    }
    assert_eq!(stamps, [1_000_000; 6]);
    let (found, ..) = read_any(&storage);
    assert_eq!(found, [1_000_000; 6]);
}

fn read_any(storage: &MemoryStorage) -> (Vec<u64>, LogEnd, RecoveryReport) {
    let mut walls = Vec::new();
    let (end, report) = recover(storage, &options(), NO_FLOOR, &mut |r| {
        walls.push(r.wall_ms);
        Ok(())
    })
    .unwrap();
    (walls, end, report)
}

#[test]
fn released_files_are_used_again_and_their_old_records_never_count() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    let mut released = Seq::default();
    for seq in 1..=2000 {
        append(&log, seq).unwrap();
        log.sync().unwrap();
        let files = log.files();
        if files.len() > 3 {
            released = files[0].last_seq;
            log.release(files[0].id).unwrap();
        }
        log.prepare_next().unwrap();
    }
    let total: u64 = storage.list().unwrap().iter().map(|(_, len)| len).sum();
    assert!(total <= 7 * FILE_BYTES_MIN, "files are used again: {total}");
    let files = log.files();
    log.release(files.last().unwrap().id).unwrap();
    assert_eq!(log.files().len(), 1, "the one in use stays");
    let floor = RecoverFloor { first_file: files[0].id, durable_at_least: released };
    // The file in use lies behind the floor's first: what is before it is gone, and that is damage.
    let error = read(&storage, floor).unwrap_err();
    assert!(error.message().contains("the file is missing"), "{error}");
    let last = files.last().unwrap();
    let floor = RecoverFloor { first_file: last.id, durable_at_least: Seq::from_raw(last.first_seq.get() - 1) };
    assert_eq!(read(&storage, floor).unwrap().0, seqs(last.first_seq.get()..=2000));
}

/// Files begin short and grow; what is kept of the short ones must not bring short files for ever.
#[test]
fn files_grow_to_their_usual_length_and_full_ones_are_what_is_kept() {
    let storage = MemoryStorage::new();
    let wide = LogOptions { file_bytes: 64 << 10, first_file_bytes: 8 << 10, spare_bytes_max: 64 << 10, ..options() };
    let log = Log::open(Arc::new(storage.clone()), wide, LogEnd::default()).unwrap();
    let mut lens = Vec::new();
    for seq in 1..=4000 {
        append(&log, seq).unwrap();
        log.sync().unwrap();
        let files = log.files();
        if files.len() > 1 {
            lens.push(files[0].bytes >> 10);
            log.release(files[0].id).unwrap();
        }
    }
    assert_eq!(lens[..6], [8, 32, 64, 64, 64, 64]);
    assert!(lens[3..].iter().all(|len| *len == 64));
    let names: Vec<String> = storage.list().unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 3, "one in use, one spare, and the room for an opening: {names:?}");
}

#[test]
fn a_full_disk_refuses_in_reserve_and_room_that_comes_back_is_used() {
    let memory = MemoryStorage::new();
    let faulty = FaultyStorage::new(Arc::new(memory.clone()), 1);
    faulty.set(Faults { byte_budget: Some(3 * FILE_BYTES_MIN), ..Faults::default() });
    let log = Log::open(Arc::new(faulty.clone()), options(), LogEnd::default()).unwrap();
    let mut seq = 1;
    let error = loop {
        match append(&log, seq) {
            Ok(()) => seq += 1,
            Err(error) => break error,
        }
        log.sync().unwrap();
    };
    assert_eq!(error.kind(), ErrorKind::OutOfDiskSpace);
    assert_eq!(log.refused().as_deref(), Some(error.message()));
    let before = image(&memory);
    for _ in 0..3 {
        assert_eq!(append(&log, seq).unwrap_err().kind(), ErrorKind::OutOfDiskSpace);
        assert_eq!(log.sync().unwrap().get(), seq - 1, "what is in stays acknowledged");
    }
    assert_eq!(image(&memory), before);
    assert_eq!(read(&memory, NO_FLOOR).unwrap().0, seqs(1..=seq - 1));
    // Room by releasing, then room by a larger disk.
    let files = log.files();
    log.release(files[0].id).unwrap();
    append(&log, seq).unwrap();
    assert_eq!(log.refused(), None);
    faulty.set(Faults::default());
    for next in seq + 1..=seq + 200 {
        append(&log, next).unwrap();
    }
    assert_eq!(log.close().unwrap().get(), seq + 200);
    let floor = RecoverFloor { first_file: files[1].id, durable_at_least: files[0].last_seq };
    assert_eq!(read(&memory, floor).unwrap().0, seqs(files[1].first_seq.get()..=seq + 200));
}

/// D08: started again on the full disk, any number of times, the log opens; it takes commits when there is room.
#[test]
fn a_log_opens_on_a_full_disk_again_and_again() {
    let memory = MemoryStorage::new();
    let faulty = FaultyStorage::new(Arc::new(memory.clone()), 1);
    let log = Log::open(Arc::new(faulty.clone()), options(), LogEnd::default()).unwrap();
    faulty.set(Faults { byte_budget: Some(0), ..Faults::default() });
    let mut seq = 1;
    while append(&log, seq).is_ok() {
        seq += 1;
    }
    log.close().unwrap();
    for _ in 0..3 {
        let (found, end, _) = read(&memory, NO_FLOOR).unwrap();
        assert_eq!(found, seqs(1..=seq - 1));
        let log = Log::open(Arc::new(faulty.clone()), options(), end).unwrap();
        assert_eq!(log.reserve(8000).unwrap_err().kind(), ErrorKind::OutOfDiskSpace);
    }
    faulty.set(Faults::default());
    let (_, end, _) = read(&memory, NO_FLOOR).unwrap();
    let log = Log::open(Arc::new(faulty), options(), end).unwrap();
    (seq..seq + 50).for_each(|seq| append(&log, seq).unwrap());
    log.close().unwrap();
    assert_eq!(read(&memory, NO_FLOOR).unwrap().0, seqs(1..=seq + 49));
}

/// Whoever prepares files finds out that there is room again, also where no writer comes to ask.
#[test]
fn room_that_comes_back_is_noticed_without_a_commit() {
    let memory = MemoryStorage::new();
    let faulty = FaultyStorage::new(Arc::new(memory), 1);
    let log = Log::open(Arc::new(faulty.clone()), options(), LogEnd::default()).unwrap();
    faulty.set(Faults { byte_budget: Some(0), ..Faults::default() });
    // More than a file has, though hardly anything is written yet.
    assert_eq!(log.reserve(1 << 20).unwrap_err().kind(), ErrorKind::OutOfDiskSpace);
    assert!(log.wants_next() && log.prepare_next().is_err() && log.refused().is_some());
    // A smaller one fits, which is not what was asked for.
    log.reserve(100).unwrap();
    assert!(log.refused().is_some());
    faulty.set(Faults::default());
    assert!(log.wants_next() && log.prepare_next().is_ok());
    assert_eq!((log.refused(), log.wants_next()), (None, false));
}

/// Starting without writing leaves no trail of files.
#[test]
fn a_file_begun_and_never_written_to_is_taken_again() {
    let storage = MemoryStorage::new();
    for _ in 0..5 {
        drop(open(&storage, NO_FLOOR).unwrap());
    }
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    assert_eq!(log.files().len(), 1);
    append(&log, 1).unwrap();
    log.close().unwrap();
    drop(log);
    for _ in 0..5 {
        let (log, (found, ..)) = open(&storage, NO_FLOOR).unwrap();
        assert_eq!((found, log.files().len()), (vec![1], 2));
    }
}

#[test]
fn shorter_files_are_made_when_the_disk_has_no_room_for_usual_ones() {
    let faulty = FaultyStorage::new(Arc::new(MemoryStorage::new()), 1);
    faulty.set(Faults { byte_budget: Some(100 << 10), ..Faults::default() });
    let wide = LogOptions { file_bytes: 1 << 20, first_file_bytes: 64 << 10, ..options() };
    let log = Log::open(Arc::new(faulty), wide, LogEnd::default()).unwrap();
    let mut seq = 1;
    while append(&log, seq).is_ok() {
        seq += 1;
    }
    let lens: Vec<u64> = log.state_for_tests();
    assert_eq!(lens, [64 << 10, 16 << 10, 8 << 10], "8 are kept for an opening, then 4 are left, too few for a file");
}

#[test]
fn a_failed_write_or_sync_poisons_and_nothing_is_acknowledged_afterwards() {
    let faults = [
        Faults { write_error_ppm: 1_000_000, ..Faults::default() },
        Faults { torn_write_ppm: 1_000_000, ..Faults::default() },
        Faults { sync_error_ppm: 1_000_000, ..Faults::default() },
    ];
    for fault in faults {
        let memory = MemoryStorage::new();
        let faulty = FaultyStorage::new(Arc::new(memory.clone()), 9);
        let log = Log::open(Arc::new(faulty.clone()), options(), LogEnd::default()).unwrap();
        append(&log, 1).unwrap();
        assert_eq!(log.sync().unwrap().get(), 1);
        append(&log, 2).unwrap();
        faulty.set(fault);
        assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned, "{fault:?}");
        // The disk is well again; the log is not.
        faulty.set(Faults::default());
        for _ in 0..2 {
            assert_eq!(log.sync().unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(log.write().unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(log.reserve(1).unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(log.mark_durable_if_idle().unwrap_err().kind(), ErrorKind::Poisoned);
            assert_eq!(log.close().unwrap_err().kind(), ErrorKind::Poisoned);
        }
        assert_eq!(log.durable().get(), 1);
        assert!(log.is_poisoned());
        let (found, ..) = read(&memory, NO_FLOOR).unwrap();
        assert!(found == [1] || found == [1, 2], "{found:?}");
        let (log, _) = open(&memory, NO_FLOOR).unwrap();
        append(&log, found.len() as u64 + 1).unwrap();
        log.sync().unwrap();
    }
}

#[test]
fn a_watermark_is_written_once_when_the_log_falls_idle_and_takes_no_promised_room() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    append(&log, 1).unwrap();
    log.mark_durable_if_idle().unwrap();
    assert_eq!(log.stats().bytes_written, 0, "not durable yet: nothing to mark");
    log.sync().unwrap();
    let before = log.stats().bytes_written;
    for _ in 0..10 {
        log.mark_durable_if_idle().unwrap();
    }
    assert_eq!(log.stats().bytes_written - before, 48);
    // Every fill of the file, with a promise outstanding while the watermark is asked for.
    for seq in 2..400 {
        log.reserve(content(seq).len()).unwrap();
        log.mark_durable_if_idle().unwrap();
        log.append(Seq::from_raw(seq), 0, 1 + (seq % 3) as u8, Payload::new(content(seq)));
        log.sync().unwrap();
    }
    log.close().unwrap();
    assert_eq!(read(&storage, NO_FLOOR).unwrap().0, seqs(1..=399));
}

#[test]
fn a_cursor_reads_what_is_written_across_files_and_openings() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    (1..=100).for_each(|seq| append(&log, seq).unwrap());
    log.close().unwrap();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    let mut cursor = log.read_from(Seq::from_raw(42)).unwrap();
    let mut found = Vec::new();
    for seq in 101..=200 {
        append(&log, seq).unwrap();
        let limit = log.durable();
        while let Some(record) = cursor.next(&log, limit).unwrap() {
            assert_eq!(record.payload, content(record.seq.get()));
            found.push(record.seq.get());
        }
        if seq.is_multiple_of(3) {
            log.sync().unwrap();
        }
    }
    assert_eq!(found, seqs(42..=198));
    assert_eq!(cursor.next(&log, Seq::from_raw(u64::MAX)).unwrap(), None, "199 is appended and not written");
    log.write().unwrap();
    assert_eq!(cursor.next(&log, Seq::from_raw(u64::MAX)).unwrap().unwrap().seq.get(), 199);
    // Releasing under a cursor: it finishes its file, and then is told.
    let mut slow = log.read_from(Seq::from_raw(1)).unwrap();
    assert_eq!(slow.next(&log, log.durable()).unwrap().unwrap().seq.get(), 1);
    let files = log.files();
    log.release(files[files.len() - 2].id).unwrap();
    (201..=400).for_each(|seq| append(&log, seq).unwrap());
    log.sync().unwrap();
    let error = loop {
        match slow.next(&log, log.durable()) {
            Ok(Some(record)) => assert!(record.seq <= files[0].last_seq),
            Ok(None) => panic!("a hole in the stream"),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(log.read_from(Seq::from_raw(1)).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(log.read_from(Seq::from_raw(401)).unwrap().next(&log, log.durable()).unwrap(), None);
}

#[test]
fn many_threads_share_syncs_and_each_is_told_the_truth() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    let order = parking_lot::Mutex::new(0_u64);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let seq = {
                        let mut order = order.lock();
                        *order += 1;
                        append(&log, *order).unwrap();
                        *order
                    };
                    assert!(log.sync().unwrap().get() >= seq);
                    assert!(log.durable().get() >= seq);
                }
            });
        }
    });
    let stats = log.stats();
    assert_eq!(stats.records, 1600);
    log.close().unwrap();
    assert_eq!(read(&storage.crash(0), NO_FLOOR).unwrap().0, seqs(1..=1600));
}
