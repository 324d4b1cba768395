//! Compaction: what it makes, what it leaves out, and what it must not: rows that a snapshot sees, ends that come
//! meanwhile, the order of rows, room for ever.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Chance, Model, Op, check, contents, filter, find, insert, open, print, small, update, value};
use quarrydb::io::{Faults, FaultyStorage, ManualClock, MemoryStorage, Storage};
use quarrydb::{Collection, Database, DeleteRequest, FindRequest, Options, UpdateRequest, WriteOptions};

fn fill(db: &Database, collection: &Collection, ids: std::ops::Range<i64>) {
    for id in ids {
        insert(db, collection, &format!("{{\"_id\": {id}, \"k\": {}, \"v\": {id}}}", id % 5)).unwrap();
    }
}

fn delete(collection: &Collection, text: &str) -> u64 {
    let request = DeleteRequest::many(filter(text));
    collection.delete(&request, &WriteOptions::default()).unwrap().wait().unwrap().deleted
}

fn segment_files(storage: &MemoryStorage) -> usize {
    storage.list().unwrap().iter().filter(|(name, _)| name.ends_with(".qseg")).count()
}

#[test]
fn segments_become_as_few_as_can_be_and_dead_rows_go() {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let collection = db.collection("test", "few").unwrap();
    assert_eq!(collection.compact(None).unwrap(), None, "there is no such collection");
    fill(&db, &collection, 0..100);
    db.seal().unwrap();
    assert_eq!(delete(&collection, r#"{"k": {"$in": [1, 3]}}"#), 40);
    let before = find(&collection, "{}");
    let done = collection.compact(None).unwrap().unwrap();
    assert_eq!((done.segments_before, done.segments_after), (15, 3), "23 rows go in one segment: {done:?}");
    assert_eq!((done.rows_after, done.rows_dropped), (60, 40));
    assert!(done.bytes_after < done.bytes_before);
    assert_eq!((db.stats().segments, segment_files(&storage)), (3, 3));
    assert_eq!(find(&collection, "{}"), before, "rows keep their order");
    let again = collection.compact(None).unwrap().unwrap();
    assert_eq!((again.segments_before, again.segments_after, again.rows_dropped), (3, 3, 0));
    assert_eq!(again.bytes_before, again.bytes_after, "nothing is left to do");
    // Ends in what was made anew are ends like any, sealed or not.
    assert_eq!(delete(&collection, r#"{"k": 0}"#), 20);
    db.seal().unwrap();
    assert_eq!(delete(&collection, r#"{"k": 2}"#), 20);
    drop((collection, db));
    let db = open(&storage, small()).unwrap();
    let collection = db.collection("test", "few").unwrap();
    assert_eq!(contents(&collection), (0..100).filter(|id| id % 5 == 4).map(|id| (id, (4, id))).collect());
    assert_eq!(delete(&collection, "{}"), 20);
    let done = collection.compact(None).unwrap().unwrap();
    assert_eq!((done.segments_after, done.rows_after, segment_files(&storage)), (0, 0, 0));
    drop((collection, db));
    let db = open(&storage, small()).unwrap();
    assert!(contents(&db.collection("test", "few").unwrap()).is_empty());
}

#[test]
fn an_open_cursor_keeps_what_it_sees_and_reads_it_from_files_that_are_gone() {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let collection = db.collection("test", "seen").unwrap();
    fill(&db, &collection, 0..70);
    db.seal().unwrap();
    let mut cursor = collection.find(FindRequest::new(filter("{}"))).unwrap();
    assert_eq!(delete(&collection, r#"{"_id": {"$gte": 30}}"#), 40);
    let done = collection.compact(None).unwrap().unwrap();
    assert_eq!((done.rows_after, done.rows_dropped), (70, 0), "the cursor sees them");
    // A later reader of the new segments, at a moment when all were there, would see them too.
    assert_eq!(contents(&collection).len(), 30);
    let mut seen = 0;
    while let Some(document) = cursor.next().unwrap() {
        assert_eq!(document.view().get("_id").unwrap().as_i64(), Some(seen));
        seen += 1;
    }
    assert_eq!(seen, 70);
    drop(cursor);
    let done = collection.compact(None).unwrap().unwrap();
    assert_eq!((done.rows_after, done.rows_dropped, done.segments_after), (30, 40, 2));
    assert_eq!(contents(&collection).len(), 30);
}

#[test]
fn a_delete_that_may_still_be_lost_drops_nothing() {
    let storage = MemoryStorage::new();
    let options = Options { durability: common::interval(), ..small() };
    let db = open(&storage, options.clone()).unwrap();
    let collection = db.collection("test", "lost").unwrap();
    fill(&db, &collection, 0..30);
    db.seal().unwrap();
    // Sealed with the tails, so it is durable then; a crash before keeps the rows, one after does not.
    delete(&collection, r#"{"_id": {"$lt": 10}}"#);
    let left = storage.crash(0);
    let reopened = open(&left, options.clone()).unwrap();
    let found = reopened.collection("test", "lost").unwrap();
    let done = found.compact(None).unwrap().unwrap();
    assert_eq!(done.rows_after + done.rows_dropped, 30);
    assert_eq!(contents(&found).len() as u64, done.rows_after);
}

#[test]
fn ends_that_come_while_it_runs_are_not_lost() {
    let rounds = if std::env::var("QUARRY_SOAK").is_ok() { 200 } else { 8 };
    for round in 0..rounds {
        let storage = MemoryStorage::new();
        let options = Options { background: round % 2 == 0, tail_rows_max: 30, segment_rows_max: 1000, ..small() };
        let db = open(&storage, options.clone()).unwrap();
        let collection = db.collection("test", "race").unwrap();
        let mut model: Model = (0..300).map(|id| (id, (id % 5, id))).collect();
        fill(&db, &collection, 0..300);
        let (done, compactions) = (AtomicBool::new(false), AtomicU64::new(0));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // At least once, however late this thread gets its turn.
                loop {
                    collection.compact(None).unwrap();
                    compactions.fetch_add(1, Ordering::Relaxed);
                    if done.load(Ordering::Acquire) {
                        return;
                    }
                }
            });
            scope.spawn(|| {
                // A reader never sees half of anything: each document once, and none come back.
                let mut most = usize::MAX;
                while !done.load(Ordering::Acquire) {
                    let now = contents(&collection).len();
                    assert!(now <= most, "{most} documents became {now}");
                    most = now;
                }
            });
            let mut chance = Chance::new(round + 1);
            for step in 0..400 {
                let op = match chance.below(3) {
                    0 => Op::DeleteOne(chance.below(300) as i64),
                    1 => Op::IncOne(chance.below(300) as i64),
                    _ => Op::Replace(chance.below(300) as i64, chance.below(5) as i64),
                };
                op.on_collection(&db, &collection).unwrap();
                op.on_model(&mut model);
                if step % 50 == 49 {
                    db.seal().unwrap();
                }
            }
            done.store(true, Ordering::Release);
        });
        assert!(compactions.load(Ordering::Relaxed) > 0);
        check(&collection, &model, &format!("round {round}"));
        let left = storage.crash(round);
        drop((collection, db));
        for (storage, how) in [(&storage, "reopened"), (&left, "after a crash")] {
            let db = open(storage, options.clone()).unwrap();
            check(&db.collection("test", "race").unwrap(), &model, &format!("round {round} {how}"));
        }
    }
}

#[test]
fn updates_for_ever_in_the_background_take_bounded_room() {
    let storage = MemoryStorage::new();
    let options = Options { background: true, tail_rows_max: 50, segment_rows_max: 1000, ..small() };
    let db = open(&storage, options).unwrap();
    let collection = db.collection("test", "updated").unwrap();
    fill(&db, &collection, 0..100);
    let most = |db: &Database| db.stats().segments;
    let mut worst = 0;
    let mut round = 0;
    // Until the compactor has shown that it keeps up, however slow this machine is.
    while db.stats().compactions < 5 {
        round += 1;
        let request =
            UpdateRequest::many(filter(&format!("{{\"k\": {}}}", round % 5)), update(r#"{"$inc": {"v": 1}}"#));
        collection.update(&request, &WriteOptions::default()).unwrap().wait().unwrap();
        worst = worst.max(most(&db));
        assert!(round < 1_000_000, "{:?}", db.stats());
        if most(&db) > 12 {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
    }
    assert_eq!(contents(&collection).len(), 100);
    let stats = db.stats();
    assert!(stats.compacted_rows_dropped > 0 && stats.compaction_trouble.is_none(), "{stats:?}");
}

#[test]
fn a_full_disk_ends_a_compaction_and_leaves_all_as_it_was() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), 3);
    let db = Database::open_on(Arc::new(storage.clone()), Arc::new(ManualClock::new(1)), small()).unwrap();
    let collection = db.collection("test", "full").unwrap();
    fill(&db, &collection, 0..120);
    delete(&collection, r#"{"k": 2}"#);
    db.seal().unwrap();
    let before = find(&collection, "{}");
    let used = |storage: &MemoryStorage| storage.list().unwrap().iter().map(|(_, bytes)| bytes).sum::<u64>();
    let names = |storage: &MemoryStorage| {
        let ours = |name: &String| name.ends_with(".qseg") || name.ends_with(".tmp");
        storage.list().unwrap().into_iter().map(|(name, _)| name).filter(ours).collect::<BTreeSet<_>>()
    };
    let files = names(&memory);
    for room in [0, 100, 2_000, 5_000] {
        storage.set(Faults { byte_budget: Some(used(&memory) + room), ..Faults::default() });
        let error = collection.compact(None).unwrap_err();
        assert_eq!(error.kind(), quarrydb::ErrorKind::OutOfDiskSpace, "{error}");
        assert_eq!(names(&memory), files, "what was begun is gone, what was there is not");
        assert_eq!(find(&collection, "{}"), before);
    }
    storage.set(Faults::default());
    assert!(collection.compact(None).unwrap().unwrap().segments_after < 10);
    assert_eq!(find(&collection, "{}"), before);
}

#[test]
fn versions_of_one_document_are_found_at_their_moments() {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let collection = db.collection("test", "versions").unwrap();
    fill(&db, &collection, 0..20);
    let mut cursors = Vec::new();
    for round in 0..6 {
        cursors.push(collection.find(FindRequest::new(filter("{}"))).unwrap());
        let all = UpdateRequest::many(filter("{}"), update(r#"{"$set": {"k": 0}, "$inc": {"v": 1000}}"#));
        collection.update(&all, &WriteOptions::default()).unwrap().wait().unwrap();
        collection.compact(None).unwrap();
        // By `_id`, among rows of which all but one ended.
        for id in [0, 7, 19] {
            let found = collection.get(value(&id.to_string()).view()).unwrap().unwrap();
            assert_eq!(found.view().get("v").unwrap().as_i64(), Some(id + 1000 * (round + 1)));
        }
    }
    for (round, mut cursor) in cursors.into_iter().enumerate() {
        let mut ids = BTreeSet::new();
        while let Some(document) = cursor.next().unwrap() {
            let number = |name: &str| document.view().get(name).unwrap().as_i64().unwrap();
            assert_eq!(number("v"), number("_id") + 1000 * round as i64, "{}", print(document.view()));
            assert!(ids.insert(number("_id")));
        }
        assert_eq!(ids.len(), 20, "round {round}");
    }
    let done = collection.compact(None).unwrap().unwrap();
    assert_eq!((done.segments_after, done.rows_after), (1, 20));
}
