//! What queries hold is bounded over all of them: beyond it they are sent away, and it is given back when they end.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{filter, insert, open, small, sort, update};
use quarrydb::io::MemoryStorage;
use quarrydb::{Collection, Cursor, Database, ErrorKind, FindRequest, Options, Result, UpdateRequest, WriteOptions};
use quarrydb_query::{Distinct, ParseContext};

const DOCUMENTS: usize = 600;

fn filled(query_bytes_max: usize) -> (Database, Collection) {
    let options = Options { query_bytes_max, tail_rows_max: 1000, ..small() };
    let db = open(&MemoryStorage::new(), options).unwrap();
    let collection = db.collection("test", "memory").unwrap();
    for id in 0..DOCUMENTS {
        let text = format!("{{\"_id\": {id}, \"text\": \"{id:04}{}\"}}", "x".repeat(2000));
        insert(&db, &collection, &text).unwrap();
    }
    db.seal().unwrap();
    (db, collection)
}

fn all(collection: &Collection) -> Result<Cursor> {
    collection.find(FindRequest::new(filter("{}")))
}

#[test]
fn answers_on_their_way_are_admitted_while_there_is_room() {
    let (db, collection) = filled(64 << 20);
    let mut open = Vec::new();
    let refused = loop {
        match all(&collection) {
            Ok(cursor) => open.push(cursor),
            Err(error) => break error,
        }
        assert!(open.len() < 1000, "nothing bounds them");
    };
    assert_eq!((refused.kind(), refused.name()), (ErrorKind::Busy, "TooManyRequests"));
    let stats = db.stats();
    assert!(stats.query_bytes > 32 << 20 && stats.query_bytes <= stats.query_bytes_max, "{stats:?}");
    // One document by its _id takes nothing.
    assert!(collection.get(common::value("7").view()).unwrap().is_some());
    open.pop();
    let mut cursor = all(&collection).unwrap();
    let mut documents = 0;
    while cursor.next().unwrap().is_some() {
        documents += 1;
    }
    assert_eq!(documents, DOCUMENTS);
    drop((cursor, open));
    assert_eq!(db.stats().query_bytes, 0);
}

#[test]
fn a_query_that_can_never_fit_says_so_and_holds_nothing_after() {
    let (db, collection) = filled(1 << 20);
    let sorted = || {
        let mut request = FindRequest::new(filter("{}"));
        request.sort = Some(sort(r#"{"text": 1}"#));
        request.allow_disk_use = false;
        collection.find(request)
    };
    assert_eq!(sorted().unwrap_err().kind(), ErrorKind::LimitExceeded, "1.2 MB of keys");
    let mut distinct = Distinct::parse(common::value("\"text\"").view(), &ParseContext::new("key")).unwrap();
    let error = collection.distinct(&mut distinct, filter("{}"), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    let many = UpdateRequest::many(filter("{}"), update(r#"{"$set": {"n": 1}}"#));
    let error = collection.update(&many, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
    assert_eq!(collection.count(filter(r#"{"n": 1}"#), 0, None, None).unwrap(), 0, "nothing was changed");
    let some = UpdateRequest::many(filter(r#"{"_id": {"$lt": 300}}"#), update(r#"{"$set": {"n": 1}}"#));
    assert_eq!(collection.update(&some, &WriteOptions::default()).unwrap().wait().unwrap().modified, 300);
    assert_eq!(db.stats().query_bytes, 0);
}
