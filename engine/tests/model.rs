//! Random operations against a plain map, with seals, compactions and reopenings between, by seed.
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
            3 => {
                let which = if chance.below(3) == 0 { &other } else { &collection };
                which.compact(None).unwrap_or_else(|e| panic!("{when}: compact: {e}"));
            }
            4 if chance.below(4) == 0 => {
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
        Ok(_) => (300, 200),
        Err(_) => (30, 120),
    };
    for seed in 1..=seeds {
        run(seed, steps);
    }
}

#[test]
fn documents_rewritten_for_ever_take_bounded_room_and_an_open_cursor_keeps_what_it_sees() {
    let storage = MemoryStorage::new();
    let db = open(&storage, quarrydb::Options { tail_rows_max: 40, ..small() }).unwrap();
    let collection = db.collection("test", "rewritten").unwrap();
    let fill = |v: i64| {
        for id in 0..20 {
            Op::Upsert(id, v).on_collection(&db, &collection).unwrap();
        }
    };
    let files = || quarrydb::io::Storage::list(&storage).unwrap();
    let room = || files().iter().map(|(_, bytes)| bytes).sum::<u64>();
    fill(0);
    db.seal().unwrap();
    let mut cursor = None;
    for round in 1..=30 {
        if round == 10 {
            cursor = Some(collection.find(quarrydb::FindRequest::new(common::filter("{}"))).unwrap());
        }
        fill(round);
        db.seal().unwrap();
        // What the cursor sees is kept, and beside it what is newest.
        assert!(db.stats().segments <= if cursor.is_some() { 3 } else { 2 }, "round {round}: {:?}", db.stats());
    }
    let mut cursor = cursor.unwrap();
    let mut seen = 0;
    while let Some(document) = cursor.next().unwrap() {
        assert_eq!(document.view().get("v").unwrap().as_i64(), Some(100), "as it was at the cursor's beginning");
        seen += 1;
    }
    assert_eq!(seen, 20);
    let with_cursor = room();
    drop(cursor);
    for round in 31..=33 {
        fill(round);
        db.seal().unwrap();
    }
    assert!(db.stats().segments <= 2 && room() <= with_cursor, "{:?}: {:?}", db.stats(), files());
    let model: Model = (0..20).map(|id| (id, (0, 340))).collect();
    check(&collection, &model, "at the end");
    drop((collection, db));
    let db = open(&storage, small()).unwrap();
    check(&db.collection("test", "rewritten").unwrap(), &model, "reopened");
}
