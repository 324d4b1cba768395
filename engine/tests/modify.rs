//! Find-and-modify, distinct, and the sort that says which document is the first.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{filter, insert, open, print, small, sort, update, value};
use quarrydb::io::MemoryStorage;
use quarrydb::{DeleteRequest, UpdateRequest, WriteOptions};
use quarrydb_query::{Distinct, ParseContext};

#[test]
fn find_and_modify_gives_the_document_as_it_was_and_as_it_is() {
    let db = open(&MemoryStorage::new(), small()).unwrap();
    let collection = db.collection("test", "modify").unwrap();
    for id in 0..20 {
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": {}, \"v\": {id}}}", id % 2)).unwrap();
        if id == 12 {
            db.seal().unwrap();
        }
    }
    let write = WriteOptions::default();
    let mut request = UpdateRequest::one(filter(r#"{"k": 1}"#), update(r#"{"$inc": {"v": 100}}"#));
    request.sort = Some(sort(r#"{"v": -1}"#));
    let (outcome, modified) = collection.find_and_update(&request, &write).unwrap().wait().unwrap();
    assert_eq!((outcome.matched, outcome.modified), (1, 1));
    assert_eq!(print(modified.before.unwrap().view()), r#"{"_id":19,"k":1,"v":19}"#);
    assert_eq!(print(modified.after.unwrap().view()), r#"{"_id":19,"k":1,"v":119}"#);

    let mut request = DeleteRequest::one(filter(r#"{"k": 0}"#));
    request.sort = Some(sort(r#"{"v": 1}"#));
    let gone = collection.find_and_delete(&request, &write).unwrap().wait().unwrap();
    assert_eq!(print(gone.before.unwrap().view()), r#"{"_id":0,"k":0,"v":0}"#);
    assert!(gone.after.is_none());
    assert_eq!(collection.count(filter("{}"), 0, None, None).unwrap(), 19);

    let mut request = UpdateRequest::one(filter(r#"{"_id": 77}"#), update(r#"{"$set": {"v": 1}}"#));
    let (outcome, modified) = collection.find_and_update(&request, &write).unwrap().wait().unwrap();
    assert!(outcome.matched == 0 && modified.before.is_none() && modified.after.is_none());
    request.upsert = true;
    let (outcome, modified) = collection.find_and_update(&request, &write).unwrap().wait().unwrap();
    assert_eq!(outcome.upserted_id, Some(value("77")));
    assert!(modified.before.is_none());
    assert_eq!(print(modified.after.unwrap().view()), r#"{"_id":77,"v":1}"#);

    let mut distinct = Distinct::parse(value(r#""k""#).view(), &ParseContext::new("key")).unwrap();
    collection.distinct(&mut distinct, filter("{}"), None).unwrap();
    let mut values: Vec<_> = distinct.values().map(print).collect();
    values.sort();
    assert_eq!(values, ["0", "1"]);
}
