//! A disk that is full, fails or lies: what was acknowledged stays, what fails is said, reads go on.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::sync::Arc;

use common::{Chance, Model, Op, check, contents, filter, insert, open, small, value};
use quarrydb::io::{Faults, FaultyStorage, ManualClock, MemoryStorage, Storage};
use quarrydb::{Database, ErrorKind, WriterState};

fn faulty(seed: u64) -> (MemoryStorage, FaultyStorage) {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), seed);
    (memory, storage)
}

fn open_faulty(storage: &FaultyStorage) -> quarrydb::Result<Database> {
    Database::open_on(Arc::new(storage.clone()), Arc::new(ManualClock::new(1)), small())
}

fn used(storage: &MemoryStorage) -> u64 {
    storage.list().unwrap().iter().map(|(_, bytes)| bytes).sum()
}

#[test]
fn a_full_disk_refuses_writes_reads_go_on_and_writes_resume_when_there_is_room() {
    let (memory, storage) = faulty(1);
    let db = open_faulty(&storage).unwrap();
    let collection = db.collection("test", "full").unwrap();
    let mut model = Model::new();
    storage.set(Faults { byte_budget: Some(used(&memory) + (40 << 10)), ..Faults::default() });
    let mut refused = None;
    for id in 0..2_000 {
        match insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": 0, \"v\": {id}}}")) {
            Ok(()) => {
                model.insert(id, (0, id));
            }
            Err(error) => {
                refused = Some((id, error));
                break;
            }
        }
    }
    let (id, error) = refused.expect("the disk fills up");
    assert_eq!(error.kind(), ErrorKind::OutOfDiskSpace, "{error}");
    assert!(db.seal().is_err_and(|e| e.kind() == ErrorKind::OutOfDiskSpace));
    // What was refused is not there, what was acknowledged is, and asking again says the same.
    assert_eq!(contents(&collection), model);
    assert!(insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": 0, \"v\": 0}}")).is_err());
    assert!(matches!(db.stats().writer, WriterState::Stalled(_)), "a full disk stalls writes and poisons nothing");
    // A restart on the full disk, as a supervisor would do, either opens or says that the disk is full.
    drop((collection, db));
    match open_faulty(&storage) {
        Ok(db) => assert_eq!(contents(&db.collection("test", "full").unwrap()), model),
        Err(error) => assert_eq!(error.kind(), ErrorKind::OutOfDiskSpace, "{error}"),
    }
    storage.set(Faults::default());
    let db = open_faulty(&storage).unwrap();
    let collection = db.collection("test", "full").unwrap();
    assert_eq!(contents(&collection), model);
    insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": 0, \"v\": {id}}}")).unwrap();
    db.seal().unwrap();
    assert_eq!(contents(&collection).len(), model.len() + 1);
}

#[test]
fn room_that_comes_back_is_used_without_a_restart() {
    let (memory, storage) = faulty(2);
    let db = open_faulty(&storage).unwrap();
    let collection = db.collection("test", "full").unwrap();
    storage.set(Faults { byte_budget: Some(used(&memory)), ..Faults::default() });
    let mut id = 0;
    while insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": 0, \"v\": {id}}}")).is_ok() {
        id += 1;
        assert!(id < 2_000, "the disk never fills up");
    }
    storage.set(Faults::default());
    assert!(matches!(db.stats().writer, WriterState::Stalled(_)));
    insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": 0, \"v\": {id}}}")).unwrap();
    assert_eq!(db.stats().writer, WriterState::Writable);
    assert_eq!(contents(&collection).len() as i64, id + 1);
}

#[test]
fn after_a_failed_sync_nothing_more_is_acknowledged_and_a_restart_has_all_that_was() {
    for seed in 1..=20 {
        let (memory, storage) = faulty(seed);
        let db = open_faulty(&storage).unwrap();
        let collection = db.collection("test", "poison").unwrap();
        let mut acknowledged = Model::new();
        storage.set(Faults {
            sync_error_ppm: 60_000,
            write_error_ppm: 20_000,
            torn_write_ppm: 20_000,
            ..Faults::default()
        });
        let mut failed = false;
        for id in 0..300 {
            match insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": 0, \"v\": {id}}}")) {
                Ok(()) => {
                    assert!(
                        !failed || db.stats().writer == WriterState::Writable,
                        "seed {seed}: acknowledged after a failure"
                    );
                    acknowledged.insert(id, (0, id));
                }
                Err(error) => {
                    // A failure to make room changes nothing; a failure to write or sync ends all writing.
                    failed |= matches!(error.kind(), ErrorKind::Poisoned);
                }
            }
        }
        storage.set(Faults::default());
        if failed {
            let error = insert(&db, &collection, r#"{"_id": -1, "k": 0, "v": 0}"#).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Poisoned, "seed {seed}");
            assert!(matches!(db.stats().writer, WriterState::Poisoned(_)), "seed {seed}");
        }
        assert!(contents(&collection).len() >= acknowledged.len(), "seed {seed}: reads go on");
        drop((collection, db));
        let db = open(&memory.crash(seed), small()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let found = contents(&db.collection("test", "poison").unwrap());
        for (id, document) in &acknowledged {
            assert_eq!(found.get(id), Some(document), "seed {seed}: {id} was acknowledged");
        }
    }
}

#[test]
fn reads_that_lie_are_errors_and_never_other_documents() {
    for seed in 1..=20 {
        let (_memory, storage) = faulty(seed);
        let db = open_faulty(&storage).unwrap();
        let collection = db.collection("test", "lies").unwrap();
        let mut model = Model::new();
        let mut chance = Chance::new(seed);
        for _ in 0..40 {
            let op = Op::random(&mut chance);
            op.on_collection(&db, &collection).unwrap();
            op.on_model(&mut model);
        }
        db.seal().unwrap();
        drop((collection, db));
        storage.set(Faults { flipped_read_ppm: 100_000, read_error_ppm: 50_000, ..Faults::default() });
        for _ in 0..5 {
            let Ok(db) = open_faulty(&storage) else { continue };
            let collection = db.collection("test", "lies").unwrap();
            for id in 0..60 {
                if let Ok(found) = collection.get(value(&id.to_string()).view()) {
                    let found = found.map(|d| d.view().get("v").unwrap().as_i64().unwrap());
                    assert_eq!(found, model.get(&id).map(|d| d.1), "seed {seed}: get {id}");
                }
            }
            if let Ok(count) = collection.count(filter(r#"{"k": 2}"#), 0, None, None) {
                assert_eq!(count as usize, model.values().filter(|d| d.0 == 2).count(), "seed {seed}");
            }
        }
        storage.set(Faults::default());
        let db = open_faulty(&storage).unwrap();
        check(&db.collection("test", "lies").unwrap(), &model, &format!("seed {seed}"));
    }
}

#[test]
fn a_wall_clock_that_steps_back_changes_no_order_and_repeats_no_id() {
    let memory = MemoryStorage::new();
    let clock = Arc::new(ManualClock::new(1_800_000_000_000));
    let open = || Database::open_on(Arc::new(memory.clone()), Arc::clone(&clock) as _, small()).unwrap();
    let db = open();
    let collection = db.collection("test", "clock").unwrap();
    let set = |v: i64| {
        let request = quarrydb::UpdateRequest::one(
            filter(r#"{"_id": 1}"#),
            common::update(&format!("{{\"$set\": {{\"v\": {v}}}}}")),
        );
        collection.update(&request, &quarrydb::WriteOptions::default()).unwrap().wait().unwrap();
    };
    insert(&db, &collection, r#"{"_id": 1, "k": 0, "v": 2}"#).unwrap();
    let mut ids = Vec::new();
    let other = db.collection("test", "ids").unwrap();
    for step in [0, -600_000, 315_360_000_000_i64, -315_360_000_000] {
        clock.set_wall_millis((1_800_000_000_000 + step) as u64);
        set(step);
        let mut batch = quarrydb::InsertBatch::new(&db);
        (0..3).for_each(|_| batch.push_text(b"{}").unwrap());
        let outcome = other.insert_batch(batch, true, &quarrydb::WriteOptions::default()).unwrap().wait().unwrap();
        ids.extend(outcome.ids().map(|(_, id)| id.as_bytes().to_vec()));
    }
    set(3);
    db.seal().unwrap();
    drop((collection, other, db));
    let db = open();
    let found = contents(&db.collection("test", "clock").unwrap());
    assert_eq!(found[&1].1, 3);
    let mut sorted = ids.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted, ids, "ids grow and none is given twice");
}

#[test]
fn a_seal_that_finds_the_disk_full_midway_succeeds_when_there_is_room() {
    let mut failed = 0;
    for room in (0..60).map(|step| step * 200) {
        let (memory, storage) = faulty(3);
        let db = open_faulty(&storage).unwrap();
        let collection = db.collection("test", "pieces").unwrap();
        // One commit of more rows than a segment takes here, so that the seal makes several files.
        let documents: Vec<_> = (0..40).map(|id| (id, id % 5, id)).collect();
        let op = Op::Insert(documents);
        op.on_collection(&db, &collection).unwrap();
        let mut model = Model::new();
        op.on_model(&mut model);
        storage.set(Faults { byte_budget: Some(used(&memory) + room), ..Faults::default() });
        failed += usize::from(db.seal().is_err());
        storage.set(Faults::default());
        db.seal().unwrap_or_else(|e| panic!("room {room}: {e}"));
        check(&collection, &model, &format!("room {room}"));
        drop((collection, db));
        let db = open_faulty(&storage).unwrap();
        assert!(db.recovered().removed.is_empty(), "room {room}: {:?}", db.recovered().removed);
        check(&db.collection("test", "pieces").unwrap(), &model, &format!("room {room}, reopened"));
    }
    assert!(failed > 3, "the disk was never full midway");
}
