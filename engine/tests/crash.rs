//! A power cut at every operation that the storage is asked for: what is found afterwards is a prefix of the commits
//! that holds every acknowledged one and at most the one in flight more.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{Chance, Model, Op, check, contents, open, small};
use quarrydb::io::MemoryStorage;

/// The states after each operation of a workload; the first is empty.
fn states(ops: &[Op]) -> Vec<Model> {
    let mut states = vec![Model::new()];
    for op in ops {
        let mut next = states.last().unwrap().clone();
        op.on_model(&mut next);
        states.push(next);
    }
    states
}

/// Runs the workload until the storage stops; gives how many operations were acknowledged.
fn run(storage: &MemoryStorage, ops: &[Op]) -> usize {
    let mut acknowledged = 0;
    let Ok(db) = open(storage, small()) else { return 0 };
    let collection = db.collection("test", "crash").unwrap();
    for (i, op) in ops.iter().enumerate() {
        if op.on_collection(&db, &collection).is_err() {
            break;
        }
        acknowledged = i + 1;
        if i % 9 == 8 {
            let _ = db.seal();
        }
        if i % 13 == 12 {
            let _ = collection.compact(None);
        }
    }
    acknowledged
}

fn crash_everywhere(seed: u64, steps: usize, leavings: &[u64], stride: u64) {
    let mut chance = Chance::new(seed);
    let ops: Vec<_> = (0..steps).map(|_| Op::random(&mut chance)).collect();
    let states = states(&ops);
    let whole = MemoryStorage::new();
    assert_eq!(run(&whole, &ops), ops.len());
    let total = whole.operations();
    for stop in (0..total).step_by(stride as usize) {
        let storage = MemoryStorage::new();
        storage.stop_at(Some(stop));
        let acknowledged = run(&storage, &ops);
        for &leaving in leavings {
            let when = format!("seed {seed}, stopped at {stop} of {total}, left as {leaving}");
            let left = storage.crash(leaving);
            // A second crash in the middle of recovery must not make it worse.
            let mut left = left;
            if leaving % 2 == 1 {
                left.stop_at(Some(left.operations() + stop % 13));
                drop(open(&left, small()));
                left = left.crash(leaving.wrapping_mul(31));
            }
            let db = open(&left, small()).unwrap_or_else(|e| panic!("{when}: {e}"));
            let collection = db.collection("test", "crash").unwrap();
            let found = contents(&collection);
            let from = acknowledged;
            let to = (acknowledged + 1).min(ops.len());
            let state = states[from..=to].iter().position(|state| *state == found);
            let state = state.unwrap_or_else(|| {
                panic!("{when}: {acknowledged} acknowledged, found {found:?}, wanted {:?}", states[from])
            });
            check(&collection, &states[from + state], &when);
            // What was found goes on: the database takes writes and keeps them.
            let mut model = states[from + state].clone();
            for op in &ops[..3.min(ops.len())] {
                op.on_collection(&db, &collection).unwrap_or_else(|e| panic!("{when}: {e}"));
                op.on_model(&mut model);
            }
            drop((collection, db));
            let db = open(&left, small()).unwrap_or_else(|e| panic!("{when}: reopened: {e}"));
            check(&db.collection("test", "crash").unwrap(), &model, &when);
        }
    }
}

#[test]
fn a_power_cut_at_every_operation_leaves_a_prefix_with_all_that_was_acknowledged() {
    if std::env::var("QUARRY_SOAK").is_ok() {
        for seed in 1..=40 {
            crash_everywhere(seed, 60, &[0, 1, 2, 3, 4, 5, u64::MAX], 1);
        }
    } else {
        crash_everywhere(1, 30, &[0, 3, u64::MAX], 1);
        crash_everywhere(2, 60, &[0, 5], 3);
    }
}
