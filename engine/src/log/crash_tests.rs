//! Power cuts: at every operation that changes something, with several outcomes each, and again while recovering.
//!
//! What must hold each time: what comes back is a prefix of what was appended and holds everything a sync had
//! returned; reading it again, also after the log was opened and cut off once more, gives the same.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::testing::*;
use super::*;
use crate::io::MemoryStorage;

/// What is known outside the log when the power goes.
#[derive(Clone, Copy)]
struct Known {
    appended: u64,
    synced: u64,
    /// As a manifest would hold it, saved before files are released.
    floor: RecoverFloor,
}

/// A run with rotation, idle marks, files ahead, releases and a file of its own for a long record.
fn run(storage: &MemoryStorage, from: Known, commits: u64) -> Known {
    let mut known = from;
    let Ok((log, (found, ..))) = open(storage, known.floor) else { return known };
    known.appended = found.last().copied().unwrap_or(known.appended);
    known.synced = known.appended;
    let first = known.appended + 1;
    for seq in first..first + commits {
        if append(&log, seq).is_err() {
            return known;
        }
        known.appended = seq;
        let done = match seq % 5 {
            0 => log.write().map(|_| known.synced),
            1 | 3 => log.sync().map(Seq::get),
            _ => Ok(known.synced),
        };
        let Ok(synced) = done else { return known };
        known.synced = synced;
        if seq % 7 == 0
            && (log.sync().map(|seq| known.synced = seq.get()).is_err() || log.mark_durable_if_idle().is_err())
        {
            return known;
        }
        if seq % 4 == 0 && log.prepare_next().is_err() {
            return known;
        }
        let files = log.files();
        if files.len() > 2 && files[0].last_seq.get() <= known.synced {
            known.floor = RecoverFloor { first_file: files[1].id, durable_at_least: files[0].last_seq };
            if log.release(files[0].id).is_err() {
                return known;
            }
        }
    }
    match log.close() {
        Ok(seq) => known.synced = seq.get(),
        Err(_) => return known,
    }
    known
}

/// Recovers what a crash left and holds it against what is known; gives the last commit.
fn check(left: &MemoryStorage, known: Known, context: &str) -> u64 {
    let (seqs, end, _) = read(left, known.floor).unwrap_or_else(|error| panic!("{context}: {error}"));
    let first = known.floor.durable_at_least.get() + 1;
    let last = end.last_seq.get();
    assert_eq!(seqs, (seqs.first().copied().unwrap_or(last + 1)..=last).collect::<Vec<_>>(), "{context}: a hole");
    assert!(seqs.first().is_none_or(|seq| *seq <= first), "{context}: begins too late");
    assert!(last >= known.synced, "{context}: {} were synced, {last} came back", known.synced);
    assert!(last <= known.appended, "{context}: {} were appended, {last} came back", known.appended);
    last
}

const NEW: Known = Known { appended: 0, synced: 0, floor: NO_FLOOR };

#[test]
fn a_cut_at_every_operation_leaves_a_prefix_with_all_that_was_synced() {
    let dry = MemoryStorage::new();
    let whole = run(&dry, NEW, 90);
    assert_eq!((whole.appended, whole.synced), (90, 90));
    assert!(whole.floor.first_file.get() > 3, "files were released: {:?}", whole.floor);
    for stop in 0..=dry.operations() {
        let storage = MemoryStorage::new();
        storage.stop_at(Some(stop));
        let known = run(&storage, NEW, 90);
        for seed in [0, u64::MAX, stop * 7 + 1, stop * 7 + 2, stop * 7 + 3, stop * 7 + 4] {
            let context = format!("stop {stop} seed {seed}");
            let left = storage.crash(seed);
            let last = check(&left, known, &context);
            // Killed after reading and opening: nothing new, the same again.
            drop(open(&left, known.floor).unwrap_or_else(|error| panic!("{context}: {error}")));
            let settled = Known { appended: last, synced: last, ..known };
            assert_eq!(check(&left, settled, &context), last);
            // What was read once has been made durable by opening.
            assert_eq!(check(&left.crash(0), settled, &context), last);
        }
    }
}

/// The process is killed, started again, and then the power goes: what the second start has read and built upon was
/// never synced by the first, so opening must do it.
#[test]
fn what_a_start_after_a_kill_has_read_survives_a_cut() {
    for stop in 10..120 {
        let storage = MemoryStorage::new();
        storage.stop_at(Some(stop));
        let known = run(&storage, NEW, 40);
        storage.stop_at(None);
        let (log, (seqs, ..)) = open(&storage, known.floor).unwrap();
        let read_back = seqs.last().copied().unwrap_or(known.floor.durable_at_least.get());
        for seq in read_back + 1..=read_back + 3 {
            append(&log, seq).unwrap();
        }
        let synced = log.sync().unwrap().get();
        for seed in 0..5 {
            let known = Known { appended: synced, synced, ..known };
            check(&storage.crash(seed), known, &format!("stop {stop} seed {seed}"));
        }
    }
}

#[test]
fn cuts_that_follow_each_other_lose_nothing_that_was_synced_in_any_run() {
    for seed in 1..60_u64 {
        let mut storage = MemoryStorage::new();
        let mut known = NEW;
        for round in 0..6 {
            // Somewhere in the opening, the run, or never.
            let stop = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(round * 9) % 90;
            storage.stop_at(Some(storage.operations() + stop));
            known = run(&storage, known, 30);
            storage = storage.crash(seed * 31 + u64::from(round));
            let last = check(&storage, known, &format!("seed {seed} round {round}"));
            known = Known { appended: last, synced: known.synced, ..known };
        }
    }
}

/// The pages of an unsynced tail reach the disk in any order: whole records behind a lost one are left out, with one
/// line that says so, and stay left out when others have been written since.
#[test]
fn whole_records_behind_a_lost_one_are_left_out_for_good() {
    let storage = MemoryStorage::new();
    let (log, _) = open(&storage, NO_FLOOR).unwrap();
    (1..=3).for_each(|seq| append(&log, seq).unwrap());
    log.sync().unwrap();
    for seq in 4..=12 {
        append(&log, seq).unwrap();
    }
    log.write().unwrap();
    let mut cuts = 0;
    for seed in 1..200 {
        let left = storage.crash(seed);
        let (seqs, _, report) = read(&left, NO_FLOOR).unwrap();
        assert!(seqs.len() >= 3);
        let Some(cut) = report.cut else { continue };
        assert_eq!(cut.file, "log-1.qlog");
        cuts += u64::from(cut.bytes > 0);
        let (log, _) = open(&left, NO_FLOOR).unwrap();
        let last = seqs.len() as u64;
        (last + 1..=last + 5).for_each(|seq| append(&log, seq).unwrap());
        log.close().unwrap();
        let (again, _, report) = read(&left, NO_FLOOR).unwrap();
        assert_eq!(again, (1..=last + 5).collect::<Vec<_>>());
        assert_eq!(report.cut, None, "it was told once");
    }
    assert!(cuts > 5, "some crashes left whole records behind a lost one: {cuts}");
}
