//! A search for somebody who is gone ends, also before anything was found; an update ends at its deadline with nothing
//! changed.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::ops::ControlFlow;
use std::time::Duration;

use common::{contents, filter, insert, open, small, update};
use quarrydb::io::MemoryStorage;
use quarrydb::{Deadline, ErrorKind, FindRequest, Options, UpdateRequest, WriteOptions};

#[test]
fn a_search_that_finds_nothing_asks_whether_to_go_on() {
    let storage = MemoryStorage::new();
    let db = open(&storage, Options { tail_rows_max: 100_000, ..small() }).unwrap();
    let collection = db.collection("test", "gone").unwrap();
    let mut batch = quarrydb::InsertBatch::new(&db);
    for id in 0..5_000 {
        batch.push_text(format!("{{\"_id\": {id}, \"k\": 1, \"v\": 0}}").as_bytes()).unwrap();
    }
    collection.insert_batch(batch, true, &WriteOptions::default()).unwrap().wait().unwrap();
    for skip in [0, 1] {
        let mut request = FindRequest::new(filter(r#"{"$expr": {"$eq": ["$k", 2]}}"#));
        request.skip = skip;
        let mut asked = 0;
        let before = db.stats();
        let found = collection.find(request).unwrap().stream(&|_, _| {}, &mut |piece, documents| {
            assert!(piece.is_empty() && documents == 0);
            asked += 1;
            ControlFlow::Break(())
        });
        assert_eq!((found.unwrap(), asked), (0, 1), "skip {skip}");
        let after = db.stats();
        assert_eq!(after.cursors_cancelled - before.cursors_cancelled, 1);
        if skip > 0 {
            assert!(after.documents_examined - before.documents_examined < 5_000, "it went on to the end");
        }
    }
}

#[test]
fn an_update_past_its_deadline_changes_nothing() {
    let db = open(&MemoryStorage::new(), small()).unwrap();
    let collection = db.collection("test", "late").unwrap();
    insert(&db, &collection, r#"{"_id": 1, "k": 1, "v": 0}"#).unwrap();
    let late = WriteOptions { deadline: Some(Deadline::after(Duration::ZERO)), ..WriteOptions::default() };
    std::thread::park_timeout(Duration::from_millis(2));
    for by in [r#"{"_id": 1}"#, r#"{"k": 1}"#] {
        let request = UpdateRequest::many(filter(by), update(r#"{"$inc": {"v": 1}}"#));
        let error = collection.update(&request, &late).and_then(quarrydb::Pending::wait).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{by}");
    }
    assert_eq!(contents(&collection)[&1].1, 0);
}
