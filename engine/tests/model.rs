//! Random operations against a plain map, with seals and reopenings between, by seed.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{Chance, Model, Op, check, interval, open, small};
use quarrydb::io::MemoryStorage;

fn run(seed: u64, steps: usize) {
    let mut chance = Chance::new(seed);
    let storage = MemoryStorage::new();
    let mut options = small();
    if seed.is_multiple_of(3) {
        options.durability = interval();
    }
    let mut db = open(&storage, options.clone()).unwrap();
    let mut collection = db.collection("test", "model").unwrap();
    let mut other = db.collection("test", "other").unwrap();
    let (mut model, mut other_model) = (Model::new(), Model::new());
    for step in 0..steps {
        let op = Op::random(&mut chance);
        let when = format!("seed {seed} step {step} {op:?}");
        if chance.below(5) == 0 {
            op.on_collection(&db, &other).unwrap_or_else(|e| panic!("{when}: {e}"));
            op.on_model(&mut other_model);
        } else {
            op.on_collection(&db, &collection).unwrap_or_else(|e| panic!("{when}: {e}"));
            op.on_model(&mut model);
        }
        match chance.below(12) {
            0 => db.seal().unwrap_or_else(|e| panic!("{when}: seal: {e}")),
            1 | 2 => {
                if chance.below(2) == 0 {
                    db.close().unwrap();
                }
                drop((collection, other, db));
                db = open(&storage, options.clone()).unwrap_or_else(|e| panic!("{when}: reopen: {e}"));
                collection = db.collection("test", "model").unwrap();
                other = db.collection("test", "other").unwrap();
            }
            3 if chance.below(4) == 0 => {
                other.drop(&quarrydb::WriteOptions::default()).unwrap().wait().unwrap();
                other_model.clear();
            }
            _ => {}
        }
        check(&collection, &model, &when);
        check(&other, &other_model, &when);
    }
}

#[test]
fn random_operations_give_what_a_map_gives() {
    let (seeds, steps) = match std::env::var("QUARRY_SOAK") {
        Ok(_) => (2_000, 400),
        Err(_) => (30, 120),
    };
    for seed in 1..=seeds {
        run(seed, steps);
    }
}
