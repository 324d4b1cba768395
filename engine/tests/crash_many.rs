//! Power cuts under what `crash.rs` leaves out: several collections that are dropped and made again, writes that wait for
//! stable storage among writes that do not, and seals in the background under many threads.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use common::{Chance, Model, Op, check, contents, filter, interval, open, small, update};
use quarrydb::io::MemoryStorage;
use quarrydb::{Database, DeleteRequest, Durability, ErrorKind, Options, Result, UpdateRequest, WriteOptions};

const COLLECTIONS: usize = 3;

/// What is done to a database of three collections.
#[derive(Clone, Debug)]
enum Step {
    On(usize, Op),
    Drop(usize),
    DropAll,
}

type State = [Model; COLLECTIONS];

impl Step {
    fn random(chance: &mut Chance) -> Self {
        let which = chance.below(COLLECTIONS as u64) as usize;
        match chance.below(12) {
            0 | 1 => Self::Drop(which),
            2 if chance.below(3) == 0 => Self::DropAll,
            _ => Self::On(which, Op::random(chance)),
        }
    }

    fn on_model(&self, state: &mut State) {
        match self {
            Self::On(which, op) => op.on_model(&mut state[*which]),
            Self::Drop(which) => state[*which].clear(),
            Self::DropAll => *state = State::default(),
        }
    }

    fn on_database(&self, db: &Database, write: &WriteOptions) -> Result<()> {
        match self {
            Self::On(which, op) => op.write_to(db, &collection(db, *which), write),
            Self::Drop(which) => collection(db, *which).drop(write)?.wait().map(drop),
            Self::DropAll => db.drop_database("test", write)?.wait().map(drop),
        }
    }
}

fn collection(db: &Database, which: usize) -> quarrydb::Collection {
    db.collection("test", &format!("c{which}")).unwrap()
}

fn found(db: &Database) -> State {
    std::array::from_fn(|which| contents(&collection(db, which)))
}

/// How far a workload came: all steps that were tried, and the last that was acknowledged as on stable storage.
struct Reached {
    tried: usize,
    durable: usize,
}

fn run(storage: &MemoryStorage, options: &Options, steps: &[(Step, Option<bool>)]) -> Reached {
    let mut reached = Reached { tried: 0, durable: 0 };
    let Ok(db) = open(storage, options.clone()) else { return reached };
    let by_default = options.durability == Durability::Commit;
    for (i, (step, journal)) in steps.iter().enumerate() {
        reached.tried = i + 1;
        let write = WriteOptions { journal: *journal, ..WriteOptions::default() };
        if step.on_database(&db, &write).is_err() {
            break;
        }
        if journal.unwrap_or(by_default) {
            reached.durable = i + 1;
        }
        if i % 7 == 6 && db.seal().is_err() {
            break;
        }
        if i % 11 == 10 && collection(&db, i % COLLECTIONS).compact(None).is_err() {
            break;
        }
    }
    reached
}

fn crash_everywhere(seed: u64, count: usize, durability: Durability, leavings: &[u64], stride: usize) {
    let mut chance = Chance::new(seed);
    let journal = |chance: &mut Chance| [None, None, Some(true), Some(false)][chance.below(4) as usize];
    let steps: Vec<_> = (0..count).map(|_| (Step::random(&mut chance), journal(&mut chance))).collect();
    let mut states = vec![State::default()];
    for (step, _) in &steps {
        let mut next = states.last().unwrap().clone();
        step.on_model(&mut next);
        states.push(next);
    }
    let options = Options { durability, ..small() };
    let whole = MemoryStorage::new();
    assert_eq!(run(&whole, &options, &steps).tried, steps.len());
    let total = whole.operations();
    for stop in (0..total).step_by(stride) {
        let storage = MemoryStorage::new();
        storage.stop_at(Some(stop));
        let reached = run(&storage, &options, &steps);
        for &leaving in leavings {
            let when = format!("seed {seed}, stopped at {stop} of {total}, left as {leaving}");
            let left = storage.crash(leaving);
            let db = open(&left, options.clone()).unwrap_or_else(|e| panic!("{when}: {e}"));
            let now = found(&db);
            // A state may come more than once: the newest possible is the one to go on from.
            let at = (reached.durable..=reached.tried).rev().find(|&i| states[i] == now);
            let at = at.unwrap_or_else(|| {
                panic!("{when}: {} of {} are durable, found {now:?}", reached.durable, reached.tried)
            });
            let mut model = states[at].clone();
            for (which, model) in model.iter().enumerate() {
                check(&collection(&db, which), model, &when);
            }
            for (step, _) in &steps[..4.min(steps.len())] {
                step.on_database(&db, &WriteOptions::default()).unwrap_or_else(|e| panic!("{when}: {step:?}: {e}"));
                step.on_model(&mut model);
            }
            db.seal().unwrap_or_else(|e| panic!("{when}: seal: {e}"));
            drop(db);
            let db = open(&left, options.clone()).unwrap_or_else(|e| panic!("{when}: reopened: {e}"));
            assert_eq!(found(&db), model, "{when}: reopened");
        }
    }
}

#[test]
fn collections_dropped_and_made_again_come_back_as_a_prefix_whatever_waits_for_storage() {
    if std::env::var("QUARRY_SOAK").is_ok() {
        for seed in 1..=40 {
            let durability = if seed % 2 == 0 { Durability::Commit } else { interval() };
            crash_everywhere(seed, 60, durability, &[0, 1, 2, 3, u64::MAX], 1);
        }
    } else {
        crash_everywhere(1, 40, Durability::Commit, &[0, 5], 3);
        crash_everywhere(2, 40, interval(), &[0, 5], 3);
    }
}

/// One thread's documents: what it did to them, and how much of that was acknowledged.
struct Thread {
    states: Vec<BTreeMap<i64, i64>>,
    acknowledged: usize,
}

const THREADS: usize = 4;
/// The thread that drops its own collection again and again.
const DROPPER: usize = THREADS - 1;

fn work(db: &Database, thread: usize, seed: u64, most: usize, all: &AtomicUsize) -> Thread {
    let mut chance = Chance::new(seed * 31 + thread as u64);
    let mut done = Thread { states: vec![BTreeMap::new()], acknowledged: 0 };
    let name = if thread == DROPPER { "dropped" } else { "shared" };
    let collection = db.collection("test", name).unwrap();
    let write = WriteOptions::default();
    for i in 0..most {
        let mut next = done.states.last().unwrap().clone();
        let id = (thread * 1000) as i64 + chance.below(9) as i64;
        let result = match chance.below(8) {
            0 if thread == DROPPER => {
                next.clear();
                collection.drop(&write).and_then(|pending| pending.wait().map(drop))
            }
            1 | 2 => {
                next.remove(&id);
                let request = DeleteRequest::one(filter(&format!("{{\"_id\": {id}}}")));
                collection.delete(&request, &write).and_then(|pending| pending.wait().map(drop))
            }
            _ => {
                next.insert(id, i as i64);
                let change = update(&format!("{{\"$set\": {{\"k\": {thread}, \"v\": {i}}}}}"));
                let mut request = UpdateRequest::one(filter(&format!("{{\"_id\": {id}}}")), change);
                request.upsert = true;
                collection.update(&request, &write).and_then(|pending| pending.wait().map(drop))
            }
        };
        done.states.push(next);
        if result.is_err() {
            break;
        }
        done.acknowledged += 1;
        all.fetch_add(1, Ordering::Relaxed);
    }
    done
}

/// Compacts again and again what the threads write to.
fn compact_until(db: &Database, done: &AtomicBool) {
    while !done.load(Ordering::Acquire) {
        for name in ["shared", "dropped"] {
            let _ = db.collection("test", name).unwrap().compact(None);
        }
    }
}

#[test]
fn a_power_cut_under_many_threads_and_background_seals_keeps_what_each_was_told() {
    let (rounds, most) = if std::env::var("QUARRY_SOAK").is_ok() { (2_000, 400) } else { (40, 150) };
    let options = Options { background: true, tail_rows_max: 12, ..small() };
    let mut acknowledged = 0;
    for round in 0..rounds {
        let storage = MemoryStorage::new();
        let db = open(&storage, options.clone()).unwrap();
        storage.stop_at(Some(storage.operations() + 40 + 37 * round % 1500));
        let (all, done) = (AtomicUsize::new(0), AtomicBool::new(false));
        let threads: Vec<_> = std::thread::scope(|scope| {
            let (db, all) = (&db, &all);
            let spawn = |thread| scope.spawn(move || work(db, thread, round, most, all));
            let running: Vec<_> = (0..THREADS).map(spawn).collect();
            scope.spawn(|| compact_until(db, &done));
            let threads = running.into_iter().map(|thread| thread.join().unwrap()).collect();
            done.store(true, Ordering::Release);
            threads
        });
        acknowledged += all.load(Ordering::Relaxed);
        let left = storage.crash(round);
        drop(db);
        let db = open(&left, options.clone()).unwrap_or_else(|e| panic!("round {round}: {e}"));
        let (shared, dropped) = (db.collection("test", "shared").unwrap(), db.collection("test", "dropped").unwrap());
        for (index, thread) in threads.iter().enumerate() {
            let of = if index == DROPPER { &dropped } else { &shared };
            let now: BTreeMap<i64, i64> =
                contents(of).into_iter().filter(|(_, d)| d.0 == index as i64).map(|(id, d)| (id, d.1)).collect();
            let possible = &thread.states[thread.acknowledged..];
            assert!(possible.contains(&now), "round {round}, thread {index}: found {now:?}, possible {possible:?}");
        }
        for of in [&shared, &dropped] {
            let listed = contents(of).len() as u64;
            let counted = of.count(filter("{}"), 0, None, None).unwrap();
            let scanned = of.count(filter(r#"{"k": {"$gte": 0}}"#), 0, None, None).unwrap();
            assert_eq!((counted, scanned), (listed, listed), "round {round}: counts after a crash");
        }
    }
    assert!(acknowledged > 0, "nothing was ever acknowledged");
}

#[test]
fn the_end_under_writers_loses_nothing_that_was_acknowledged() {
    for round in 0..10 {
        let storage = MemoryStorage::new();
        let options = Options { background: true, tail_rows_max: 20, ..small() };
        let db = open(&storage, options.clone()).unwrap();
        let acknowledged = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (db, acknowledged) = (&db, &acknowledged);
                scope.spawn(move || {
                    let collection = db.collection("test", "end").unwrap();
                    for i in 0..100_000 {
                        let text = format!("{{\"_id\": {}, \"k\": 0, \"v\": 0}}", thread * 1_000_000 + i);
                        match common::insert(db, &collection, &text) {
                            Ok(()) => acknowledged.fetch_add(1, Ordering::Relaxed),
                            Err(error) => {
                                assert_eq!(error.kind(), ErrorKind::ShuttingDown, "{error}");
                                return;
                            }
                        };
                    }
                });
            }
            while acknowledged.load(Ordering::Relaxed) < 30 + 10 * round {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            db.close().unwrap();
        });
        drop(db);
        let db = open(&storage.crash(0), options).unwrap();
        let kept = contents(&db.collection("test", "end").unwrap()).len();
        let acknowledged = acknowledged.load(Ordering::Relaxed);
        // A commit may be made durable by the end without its writer being told.
        assert!((acknowledged..=acknowledged + 3).contains(&kept), "{kept} kept of {acknowledged}");
    }
}
