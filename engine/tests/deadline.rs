//! A deadline holds inside one document too: a filter of many branches on a long array looks at 10^8 values.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::time::Duration;

use common::{filter, insert, open, small};
use quarrydb::io::MemoryStorage;
use quarrydb::{Deadline, ErrorKind};

#[test]
fn a_filter_ends_at_its_deadline_and_not_after_its_document() {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let collection = db.collection("test", "long").unwrap();
    let long = vec!["0"; 100_000].join(",");
    insert(&db, &collection, &format!(r#"{{"_id": 1, "a": [{long}]}}"#)).unwrap();
    let branches: Vec<String> = (1..1000).map(|i| format!(r#"{{"a": {{"$gt": {i}}}}}"#)).collect();
    let slow = filter(&format!(r#"{{"$or": [{}]}}"#, branches.join(",")));
    let soon = Some(Deadline::after(Duration::from_millis(5)));
    assert_eq!(collection.count(slow, 0, None, soon).unwrap_err().kind(), ErrorKind::TimedOut);
    let late = Some(Deadline::after(Duration::from_secs(3600)));
    assert_eq!(collection.count(filter(r#"{"a": 0}"#), 0, None, late).unwrap(), 1);
}
