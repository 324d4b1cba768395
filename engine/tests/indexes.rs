//! Declared indexes: made over what is there, kept, dropped; unique ones enforced among many writers.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{filter, find, insert, open, small, update, value};
use quarrydb::io::{ManualClock, MemoryStorage, Storage};
use quarrydb::{
    Collection, Database, DeleteRequest, Error, ErrorKind, IndexDefinition, IndexState, Options, UpdateRequest,
    WriteOptions, check_on,
};

fn definition(text: &str) -> IndexDefinition {
    IndexDefinition::from_object(value(text).view()).unwrap()
}

fn create(collection: &Collection, text: &str) -> Result<bool, Error> {
    Ok(collection.create_indexes(&[definition(text)], &WriteOptions::default())?.new)
}

fn names(collection: &Collection) -> Vec<String> {
    collection.indexes().iter().map(|index| index.definition.name().to_owned()).collect()
}

fn change(collection: &Collection, which: &str, what: &str) -> Result<u64, Error> {
    let request = UpdateRequest::many(filter(which), update(what));
    Ok(collection.update(&request, &WriteOptions::default())?.wait()?.modified)
}

fn delete(collection: &Collection, which: &str) -> u64 {
    let request = DeleteRequest::many(filter(which));
    collection.delete(&request, &WriteOptions::default()).unwrap().wait().unwrap().deleted
}

const UNIQUE_K: &str = r#"{"keys": {"k": 1}, "unique": true}"#;

#[test]
fn a_unique_key_is_one_document_s_wherever_that_lies() {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let c = db.collection("test", "unique").unwrap();
    for i in 0..20 {
        insert(&db, &c, &format!("{{\"_id\": {i}, \"k\": {i}}}")).unwrap();
    }
    db.seal().unwrap();
    insert(&db, &c, r#"{"_id": 20, "k": 20}"#).unwrap();
    assert!(create(&c, UNIQUE_K).unwrap());
    assert!(!create(&c, UNIQUE_K).unwrap());
    for taken in ["3", "20", "3.0", "{\"$numberDecimal\": \"3\"}"] {
        let error = insert(&db, &c, &format!("{{\"_id\": \"x\", \"k\": {taken}}}")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateKey, "{taken}");
        assert!(
            error.message().starts_with("E11000 duplicate key error collection: test.unique index: k_1 dup key: { k: ")
        );
        let details = quarrydb_jsonb::JsonbRef::from_valid(error.details().unwrap());
        assert_eq!(common::print(details.get("keyPattern").unwrap()), "{\"k\":1}");
    }
    // Missing is a value like any other, once.
    insert(&db, &c, r#"{"_id": "none"}"#).unwrap();
    assert_eq!(insert(&db, &c, r#"{"_id": "null", "k": null}"#).unwrap_err().code(), Some(11000));
    // Its own key is nobody else's, a freed one is free, and a failed update changes nothing.
    assert_eq!(change(&c, r#"{"_id": 1}"#, r#"{"$set": {"k": 1, "v": 2}}"#).unwrap(), 1);
    assert_eq!(change(&c, r#"{"_id": 1}"#, r#"{"$set": {"k": 2, "v": 9}}"#).unwrap_err().code(), Some(11000));
    assert_eq!(find(&c, r#"{"_id": 1}"#), ["{\"_id\":1,\"k\":1,\"v\":2}"]);
    assert_eq!(delete(&c, r#"{"_id": 2}"#), 1);
    assert_eq!(change(&c, r#"{"_id": 1}"#, r#"{"$set": {"k": 2}}"#).unwrap(), 1);
    insert(&db, &c, r#"{"_id": 21, "k": 1}"#).unwrap();
    // What one document of an operation gives up another may take.
    assert_eq!(change(&c, r#"{"_id": {"$gte": 3, "$lt": 10}}"#, r#"{"$inc": {"k": 100}}"#).unwrap(), 7);
    assert_eq!(change(&c, r#"{"_id": {"$gte": 3, "$lt": 10}}"#, r#"{"$inc": {"k": 1}}"#).unwrap(), 7);
    assert_eq!(
        change(&c, r#"{"_id": {"$gte": 3, "$lt": 10}}"#, r#"{"$set": {"k": 5}}"#).unwrap_err().code(),
        Some(11000)
    );
    db.seal().unwrap();
    assert_eq!(insert(&db, &c, r#"{"_id": "y", "k": 104}"#).unwrap_err().code(), Some(11000));
    drop((c, db));
    let db = open(&storage, small()).unwrap();
    let c = db.collection("test", "unique").unwrap();
    assert_eq!(insert(&db, &c, r#"{"_id": "y", "k": 104}"#).unwrap_err().code(), Some(11000));
    insert(&db, &c, r#"{"_id": "y", "k": 99}"#).unwrap();
    // An array's elements are all its keys, and none stands against the document itself.
    insert(&db, &c, r#"{"_id": "array", "k": [300, 301, 300]}"#).unwrap();
    assert_eq!(insert(&db, &c, r#"{"_id": "z", "k": 301}"#).unwrap_err().code(), Some(11000));
    db.close().unwrap();
    drop((c, db));
    let report = check_on(&(Arc::new(storage) as Arc<dyn Storage>)).unwrap();
    assert!(report.is_whole(), "{report:?}");
}

#[test]
fn an_index_over_what_cannot_be_in_it_leaves_nothing_behind() {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let c = db.collection("test", "refused").unwrap();
    insert(&db, &c, r#"{"_id": 1, "k": 7, "a": [1], "b": [2]}"#).unwrap();
    db.seal().unwrap();
    insert(&db, &c, r#"{"_id": 2, "k": 7.0}"#).unwrap();
    let error = create(&c, UNIQUE_K).unwrap_err();
    assert_eq!((error.code(), names(&c).len()), (Some(11000), 0));
    assert_eq!(create(&c, r#"{"keys": {"a": 1, "b": 1}}"#).unwrap_err().code(), Some(171));
    assert!(names(&c).is_empty());
    // One of several that fails does not take the others along.
    let both = [definition(r#"{"keys": {"x": 1}}"#), definition(UNIQUE_K)];
    assert_eq!(c.create_indexes(&both, &WriteOptions::default()).unwrap_err().code(), Some(11000));
    assert_eq!(names(&c), ["x_1"]);
    assert_eq!(delete(&c, r#"{"_id": 2}"#), 1);
    assert!(create(&c, UNIQUE_K).unwrap());
    assert_eq!(delete(&c, r#"{"_id": 1}"#), 1);
    assert!(create(&c, r#"{"keys": {"a": 1, "b": 1}}"#).unwrap());
    assert_eq!(insert(&db, &c, r#"{"_id": 3, "a": [], "b": [1]}"#).unwrap_err().code(), Some(171));
    assert_eq!(change(&c, "{}", r#"{"$set": {"a": [1]}}"#).unwrap(), 0);
    insert(&db, &c, r#"{"_id": 3, "a": [1], "b": 1}"#).unwrap();
    assert_eq!(change(&c, "{}", r#"{"$set": {"b": [1]}}"#).unwrap_err().code(), Some(171));
}

#[test]
fn sparse_and_partial_unique_indexes_are_about_their_documents_alone() {
    let db = open(&MemoryStorage::new(), small()).unwrap();
    let c = db.collection("test", "some").unwrap();
    create(&c, r#"{"keys": {"s": 1}, "unique": true, "sparse": true}"#).unwrap();
    create(&c, r#"{"keys": {"p": 1}, "unique": true, "partialFilterExpression": {"live": true}}"#).unwrap();
    for i in 0..10 {
        insert(&db, &c, &format!("{{\"_id\": {i}, \"p\": 1}}")).unwrap();
    }
    insert(&db, &c, r#"{"_id": 10, "p": 1, "live": true, "s": null}"#).unwrap();
    assert_eq!(insert(&db, &c, r#"{"_id": 11, "p": 1, "live": true}"#).unwrap_err().code(), Some(11000));
    assert_eq!(insert(&db, &c, r#"{"_id": 11, "s": null}"#).unwrap_err().code(), Some(11000));
    assert_eq!(change(&c, r#"{"_id": 3}"#, r#"{"$set": {"live": true}}"#).unwrap_err().code(), Some(11000));
    assert_eq!(change(&c, r#"{"_id": 3}"#, r#"{"$set": {"live": true, "p": 2}}"#).unwrap(), 1);
}

#[test]
fn definitions_are_kept_and_dropped_ones_stay_dropped() {
    let storage = MemoryStorage::new();
    let write = WriteOptions::default();
    for round in 0..4 {
        let db = open(&storage, small()).unwrap();
        let c = db.collection("test", "kept").unwrap();
        if round == 0 {
            create(&c, r#"{"keys": {"a": 1, "b.c": -1}, "name": "first", "sparse": true}"#).unwrap();
            for i in 0..30 {
                insert(&db, &c, &format!("{{\"_id\": {i}, \"a\": {i}, \"b\": {{\"c\": 1}}}}")).unwrap();
            }
            create(&c, r#"{"keys": {"gone": 1}}"#).unwrap();
            create(&c, r#"{"keys": {"t": 1}, "expireAfterSeconds": 60}"#).unwrap();
            c.drop_index("gone_1", &write).unwrap().wait().unwrap();
            assert_eq!(c.drop_index("gone_1", &write).unwrap_err().code(), Some(27));
            assert_eq!(c.drop_index("_id_", &write).unwrap_err().code(), Some(72));
        }
        assert_eq!(names(&c), ["first", "t_1"], "round {round}");
        let first = &c.indexes()[0];
        assert_eq!((first.state, first.progress), (IndexState::Ready, 1.0));
        assert!(c.takes_hint(value("\"first\"").view()) && c.takes_hint(value(r#"{"t": 1}"#).view()));
        assert!(!c.takes_hint(value("\"gone_1\"").view()) && !c.takes_hint(value(r#"{"a": 1}"#).view()));
        if round % 2 == 0 {
            db.seal().unwrap();
            assert_eq!(c.indexes()[0].entries, 30, "all are in segments");
            assert!(c.indexes()[0].bytes > 0 && c.stats().unwrap().index_bytes >= c.indexes()[0].bytes);
        }
        if round == 2 {
            c.drop_index("*", &write).unwrap().wait().unwrap();
            create(&c, r#"{"keys": {"a": 1, "b.c": -1}, "name": "first", "sparse": true}"#).unwrap();
            create(&c, r#"{"keys": {"t": 1}, "expireAfterSeconds": 60}"#).unwrap();
            db.seal().unwrap();
        }
    }
}

#[test]
fn of_many_that_bring_one_key_one_wins() {
    let db = open(&MemoryStorage::new(), Options { tail_rows_max: 50, ..Options::default() }).unwrap();
    let c = db.collection("test", "race").unwrap();
    create(&c, r#"{"keys": {"g": 1, "n": 1}, "unique": true}"#).unwrap();
    let rounds = if std::env::var("QUARRY_SOAK").is_ok() { 2000 } else { 150 };
    let won: Vec<AtomicUsize> = (0..rounds).map(|_| AtomicUsize::new(0)).collect();
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (db, c, won) = (&db, &c, &won);
            scope.spawn(move || {
                for (round, won) in won.iter().enumerate() {
                    let text = format!("{{\"g\": \"g{round}\", \"n\": 1, \"w\": {client}}}");
                    match insert(db, c, &text) {
                        Ok(()) => drop(won.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => assert_eq!(error.code(), Some(11000)),
                    }
                }
            });
        }
    });
    assert!(won.iter().all(|won| won.load(Ordering::Relaxed) == 1));
    assert_eq!(c.count(filter("{}"), 0, None, None).unwrap(), rounds as u64);
}

#[test]
fn upserts_of_one_unique_key_make_one_document() {
    let db = open(&MemoryStorage::new(), Options { tail_rows_max: 20, ..Options::default() }).unwrap();
    let c = db.collection("test", "upserts").unwrap();
    create(&c, UNIQUE_K).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for k in 0..60 {
                    let mut request =
                        UpdateRequest::one(filter(&format!("{{\"k\": {k}}}")), update(r#"{"$inc": {"n": 1}}"#));
                    request.upsert = true;
                    c.update(&request, &WriteOptions::default()).unwrap().wait().unwrap();
                }
            });
        }
    });
    assert_eq!(c.count(filter("{}"), 0, None, None).unwrap(), 60);
    assert_eq!(c.count(filter(r#"{"n": 4}"#), 0, None, None).unwrap(), 60);
}

#[test]
fn documents_go_when_their_time_is_up() {
    let (storage, clock) = (MemoryStorage::new(), Arc::new(ManualClock::new(1_000_000_000)));
    let db = Database::open_on(Arc::new(storage) as Arc<dyn Storage>, Arc::clone(&clock) as _, small()).unwrap();
    let c = db.collection("test", "ttl").unwrap();
    let date = |seconds: i64| format!("{{\"$date\": {{\"$numberLong\": \"{}\"}}}}", 1_000_000_000 + seconds * 1000);
    for i in 0..30 {
        insert(&db, &c, &format!("{{\"_id\": {i}, \"at\": {}}}", date(i))).unwrap();
    }
    db.seal().unwrap();
    for (id, at) in [
        ("\"early\"", format!("[{}, {}]", date(100), date(-1))),
        ("\"late\"", format!("[{}, 5]", date(100))),
        ("\"number\"", "5".to_owned()),
        ("\"null\"", "null".to_owned()),
    ] {
        insert(&db, &c, &format!("{{\"_id\": {id}, \"at\": {at}}}")).unwrap();
    }
    insert(&db, &c, r#"{"_id": "missing"}"#).unwrap();
    create(&c, r#"{"keys": {"at": 1}, "expireAfterSeconds": 10}"#).unwrap();
    assert_eq!(db.expire().unwrap(), 0, "ten seconds have not passed");
    clock.advance_millis(10_000);
    assert_eq!(db.expire().unwrap(), 2, "the first, and the array's earliest");
    clock.advance_millis(12_000);
    assert_eq!(db.expire().unwrap(), 12);
    assert_eq!(db.expire().unwrap(), 0);
    clock.advance_millis(1_000_000);
    assert_eq!(db.expire().unwrap(), 18);
    assert_eq!(c.count(filter("{}"), 0, None, None).unwrap(), 3);
}

/// Writers that make and end duplicates while a unique index is built: it is refused, or no two documents have one key.
#[test]
fn a_unique_index_built_under_writers_is_exact() {
    for seed in 0..if std::env::var("QUARRY_SOAK").is_ok() { 200 } else { 12 } {
        let db = open(&MemoryStorage::new(), Options { tail_rows_max: 40, ..Options::default() }).unwrap();
        let c = db.collection("test", "building").unwrap();
        for i in 0..200 {
            insert(&db, &c, &format!("{{\"_id\": {i}, \"k\": {i}}}")).unwrap();
        }
        let built = std::thread::scope(|scope| {
            let writer = |first: i64| {
                let (db, c) = (&db, &c);
                move || {
                    for i in 0..60 {
                        let id = first + i;
                        // Every third comes twice for a while; the last of some seeds stays.
                        let k = if i % 3 == 0 { i } else { id };
                        let _ = insert(db, c, &format!("{{\"_id\": {id}, \"k\": {k}}}"));
                        if i % 3 == 0 && !(seed % 3 == 0 && i == 57) {
                            delete(c, &format!("{{\"_id\": {id}}}"));
                        }
                    }
                }
            };
            scope.spawn(writer(1000));
            scope.spawn(writer(2000));
            create(&c, UNIQUE_K)
        });
        match built {
            Ok(_) => assert_eq!(names(&c), ["k_1"]),
            Err(error) => {
                assert_eq!((error.code(), names(&c).len()), (Some(11000), 0));
                delete(&c, r#"{"_id": {"$gte": 1000}}"#);
                create(&c, UNIQUE_K).unwrap();
            }
        }
        let mut keys =
            find(&c, "{}").into_iter().map(|d| d.split("\"k\":").nth(1).unwrap().to_owned()).collect::<Vec<_>>();
        let all = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), all, "seed {seed}");
    }
}

#[test]
fn a_build_that_is_given_up_ends_and_one_that_a_close_stops_goes_on() {
    let storage = MemoryStorage::new();
    let options = || Options { background: false, tail_rows_max: 10, ..Options::default() };
    let db = open(&storage, options()).unwrap();
    let c = db.collection("test", "later").unwrap();
    for i in 0..35 {
        insert(&db, &c, &format!("{{\"_id\": {i}, \"k\": {i}}}")).unwrap();
    }
    db.seal().unwrap();
    let none =
        WriteOptions { deadline: Some(quarrydb::Deadline::after(std::time::Duration::ZERO)), ..Default::default() };
    // The deadline has passed when the build is through; it serves then, or it is gone.
    let _ = c.create_indexes(&[definition(UNIQUE_K)], &none);
    for index in c.indexes() {
        assert_eq!(index.state, IndexState::Ready);
    }
    db.build_indexes().unwrap();
    drop((c, db));
    let db: Database = open(&storage, options()).unwrap();
    db.build_indexes().unwrap();
    let c = db.collection("test", "later").unwrap();
    assert!(c.indexes().iter().all(|index| index.state == IndexState::Ready && index.entries == 35));
}
