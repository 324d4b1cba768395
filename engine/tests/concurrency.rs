//! Many threads at once: upserts of one key, updates that must not be lost, readers that must see whole commits, seals
//! under writers.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{contents, filter, insert, open, small, update};
use quarrydb::io::MemoryStorage;
use quarrydb::{Database, FindRequest, Options, UpdateRequest, WriteOptions};

fn background() -> Options {
    let mut options = small();
    options.background = true;
    options.tail_rows_max = 50;
    options
}

fn with_threads(count: usize, body: impl Fn(usize) + Sync) {
    std::thread::scope(|scope| {
        for thread in 0..count {
            let body = &body;
            scope.spawn(move || body(thread));
        }
    });
}

fn new() -> (MemoryStorage, Database) {
    let storage = MemoryStorage::new();
    let db = open(&storage, background()).unwrap();
    (storage, db)
}

#[test]
fn many_concurrent_upserts_of_one_key_make_one_document() {
    let (storage, db) = new();
    let collection = db.collection("test", "upserts").unwrap();
    let each = if std::env::var("QUARRY_SOAK").is_ok() { 1250 } else { 150 };
    with_threads(8, |thread| {
        for i in 0..each {
            // Half by `_id`, half by another field, which no index guards.
            let by = if (thread + i) % 2 == 0 { r#"{"_id": 7, "key": 7}"# } else { r#"{"key": 7}"# };
            let mut request = UpdateRequest::one(filter(by), update(r#"{"$inc": {"n": 1}, "$setOnInsert": {"t": 1}}"#));
            request.upsert = true;
            match collection.update(&request, &WriteOptions::default()).unwrap().wait() {
                Ok(outcome) => assert!(outcome.matched == 1 || outcome.upserted_id.is_some()),
                Err(error) => panic!("{error}"),
            }
        }
    });
    let count = |db: &Database| db.collection("test", "upserts").unwrap().count(filter("{}"), 0, None, None).unwrap();
    // The first upsert may have been by the other field: then `_id: 7` is a second document and none is a third.
    assert!(count(&db) <= 2, "{}", count(&db));
    let mut cursor = collection.find(FindRequest::new(filter("{}"))).unwrap();
    let mut sum = 0;
    while let Some(document) = cursor.next().unwrap() {
        sum += document.view().get("n").unwrap().as_i64().unwrap();
    }
    assert_eq!(sum, 8 * each as i64, "no update is lost");
    let before = count(&db);
    drop((collection, db, cursor));
    let db = open(&storage, background()).unwrap();
    assert_eq!(count(&db), before);
}

#[test]
fn of_many_inserts_of_one_id_one_wins() {
    let (_storage, db) = new();
    let collection = db.collection("test", "ids").unwrap();
    let wins: Vec<_> = (0..200).map(|_| AtomicBool::new(false)).collect();
    with_threads(6, |thread| {
        for (id, won) in wins.iter().enumerate() {
            match insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": {thread}, \"v\": 0}}")) {
                Ok(()) => assert!(!won.swap(true, Ordering::Relaxed), "{id} was inserted twice"),
                Err(error) => assert_eq!(error.kind(), quarrydb::ErrorKind::DuplicateKey, "{error}"),
            }
        }
    });
    assert_eq!(contents(&collection).len(), 200);
}

#[test]
fn a_reader_sees_all_of_an_update_many_or_nothing_of_it() {
    let (_storage, db) = new();
    let collection = db.collection("test", "whole").unwrap();
    for id in 0..120 {
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": 1, \"v\": 0}}")).unwrap();
    }
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let seen = contents(&collection);
                    assert_eq!(seen.len(), 120);
                    let first = seen[&0].1;
                    assert!(seen.values().all(|d| d.1 == first), "half of an update is seen: {seen:?}");
                    assert_eq!(collection.count(filter("{}"), 0, None, None).unwrap(), 120);
                }
            });
        }
        for _ in 0..60 {
            let request = UpdateRequest::many(filter(r#"{"k": 1}"#), update(r#"{"$inc": {"v": 1}}"#));
            let outcome = collection.update(&request, &WriteOptions::default()).unwrap().wait().unwrap();
            assert_eq!((outcome.matched, outcome.modified), (120, 120));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(contents(&collection).values().all(|d| d.1 == 60));
}

#[test]
fn concurrent_updates_of_the_same_documents_are_all_counted_while_tails_are_sealed() {
    let (storage, db) = new();
    let collection = db.collection("test", "counts").unwrap();
    for id in 0..30 {
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": {}, \"v\": 0}}", id % 3)).unwrap();
    }
    with_threads(6, |thread| {
        for i in 0..50 {
            let (by, many) = match (thread + i) % 3 {
                0 => (format!("{{\"_id\": {}}}", i % 30), false),
                1 => (format!("{{\"k\": {}}}", i % 3), true),
                _ => (format!("{{\"v\": {{\"$gte\": 0}}, \"k\": {}}}", i % 3), false),
            };
            let mut request = UpdateRequest::one(filter(&by), update(r#"{"$inc": {"v": 1}}"#));
            request.many = many;
            let outcome = collection.update(&request, &WriteOptions::default()).unwrap().wait().unwrap();
            assert_eq!(outcome.matched, if many { 10 } else { 1 }, "{by}");
        }
    });
    let expected: i64 = (0..6i64).flat_map(|t| (0..50i64).map(move |i| if (t + i) % 3 == 1 { 10 } else { 1 })).sum();
    let seen = contents(&collection);
    assert_eq!(seen.values().map(|d| d.1).sum::<i64>(), expected);
    drop((collection, db));
    let db = open(&storage, background()).unwrap();
    assert_eq!(contents(&db.collection("test", "counts").unwrap()), seen);
}

#[test]
fn a_write_whose_writer_went_away_is_seen_all_the_same() {
    for durability in [quarrydb::Durability::Commit, common::interval()] {
        let storage = MemoryStorage::new();
        let options = Options { durability, ..background() };
        let db = open(&storage, options).unwrap();
        let collection = db.collection("test", "left").unwrap();
        let mut batch = quarrydb::InsertBatch::new(&db);
        batch.push_text(br#"{"_id": 1, "k": 0, "v": 0}"#).unwrap();
        drop(collection.insert_batch(batch, true, &WriteOptions::default()).unwrap());
        let mut tries = 0;
        while collection.count(filter("{}"), 0, None, None).unwrap() == 0 {
            tries += 1;
            assert!(tries < 2_000, "the document is never seen");
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
    }
}
