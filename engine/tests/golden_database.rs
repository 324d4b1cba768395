//! A whole small database, written once: `testdata/formats/database/v0`. Every later version must open it and find what
//! is stated here; it was killed, not closed, so its log is replayed. `QUARRYDB_GOLDEN=write cargo test -p quarrydb
//! golden` writes it where it is missing and never again.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "golden files are read from the repository")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{filter, find, insert, update, value};
use quarrydb::io::{ManualClock, MemoryStorage, Storage};
use quarrydb::{Database, DeleteRequest, Options, UpdateRequest, WriteOptions, check_on};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/formats/database/v0")
}

fn options() -> Options {
    Options { log_file_bytes: 8 << 10, background: false, ..Options::default() }
}

fn open(storage: &MemoryStorage) -> Database {
    let clock = Arc::new(ManualClock::new(1_790_000_000_000));
    Database::open_on(Arc::new(storage.clone()) as Arc<dyn Storage>, clock, options()).unwrap()
}

/// Every kind of operation, before and after a seal.
fn write() -> MemoryStorage {
    let storage = MemoryStorage::new();
    let db = open(&storage);
    let options = WriteOptions::default();
    let people = db.collection("town", "people").unwrap();
    people.create(value(r#"{"note": "golden"}"#).view(), &options).unwrap().wait().unwrap();
    for text in [
        r#"{"_id": 1, "name": "Ada", "born": 1815, "tags": ["mathematics", "poetry"]}"#,
        r#"{"_id": "two", "name": "Grace", "score": 9.5, "at": {"$date": "1906-12-09T00:00:00Z"}}"#,
        r#"{"_id": {"$oid": "65a1b2c3d4e5f60718293a4b"}, "name": "Edsger", "exact": {"$numberDecimal": "0.10"}}"#,
        r#"{"_id": 4, "name": "Nobody"}"#,
    ] {
        insert(&db, &people, text).unwrap();
    }
    db.seal().unwrap();
    // From here on updates say what they change, and the log is kept.
    drop(db.watch(quarrydb::ChangeRequest::default()).unwrap());
    people.delete(&DeleteRequest::one(filter(r#"{"_id": 4}"#)), &options).unwrap().wait().unwrap();
    let change = UpdateRequest::many(filter(r#"{"born": {"$exists": true}}"#), update(r#"{"$inc": {"visits": 1}}"#));
    people.update(&change, &options).unwrap().wait().unwrap();
    insert(&db, &people, r#"{"_id": 5, "name": "Barbara"}"#).unwrap();
    let gone = db.collection("town", "gone").unwrap();
    insert(&db, &gone, r#"{"_id": 1}"#).unwrap();
    gone.drop(&options).unwrap().wait().unwrap();
    insert(&db, &db.collection("village", "gone").unwrap(), r#"{"_id": 1}"#).unwrap();
    db.drop_database("village", &options).unwrap().wait().unwrap();
    storage.crash(u64::MAX)
}

#[test]
fn golden_database_of_version_0_is_opened_and_found_as_it_was_written() {
    let directory = directory();
    if std::env::var("QUARRYDB_GOLDEN").is_ok_and(|v| v == "write") && !directory.exists() {
        std::fs::create_dir_all(&directory).unwrap();
        let storage = write();
        for (name, _) in storage.list().unwrap().into_iter().filter(|(name, _)| !name.starts_with("spare")) {
            std::fs::write(directory.join(&name), storage.bytes(&name).unwrap()).unwrap();
        }
    }
    let storage = MemoryStorage::new();
    for entry in std::fs::read_dir(&directory).unwrap() {
        let entry = entry.unwrap();
        storage.put(entry.file_name().to_str().unwrap(), &std::fs::read(entry.path()).unwrap());
    }
    let report = check_on(&(Arc::new(storage.crash(u64::MAX)) as Arc<dyn Storage>)).unwrap();
    assert!(report.is_whole(), "{:?}", report.damage);
    let db = open(&storage);
    let people = db.collection("town", "people").unwrap();
    let mut found = find(&people, "{}");
    found.sort();
    assert_eq!(
        found,
        [
            r#"{"_id":"two","name":"Grace","score":9.5,"at":{"$date":{"$numberLong":"-1990137600000"}}}"#,
            r#"{"_id":1,"name":"Ada","born":1815,"tags":["mathematics","poetry"],"visits":1}"#,
            r#"{"_id":5,"name":"Barbara"}"#,
            r#"{"_id":{"$oid":"65a1b2c3d4e5f60718293a4b"},"name":"Edsger","exact":{"$numberDecimal":"0.10"}}"#,
        ]
    );
    let stats = people.stats().unwrap();
    assert_eq!((stats.documents, stats.segments), (4, 1));
    assert_eq!(common::print(stats.options.view()), r#"{"note":"golden"}"#);
    assert!(db.collection("town", "gone").unwrap().stats().is_none());
    // It goes on: the database that is found takes writes.
    insert(&db, &people, r#"{"_id": 6}"#).unwrap();
    assert_eq!(find(&people, r#"{"_id": 6}"#), [r#"{"_id":6}"#]);
}
