//! What is answered without a document, and that it is: `explain` says how many were looked at.
//!
//! On data just written, settled, compacted and reopened; with nulls, missing fields, arrays and deleted rows; and where
//! columns cannot tell, documents are looked at.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{filter, open, small, sort, value};
use quarrydb::io::MemoryStorage;
use quarrydb::{Collection, Database, DeleteRequest, FindRequest, InsertBatch, Options, UpdateRequest, WriteOptions};
use quarrydb_query::{Distinct, ParseContext};

/// 600 documents: `n` counts, `k` has five values, `t` two tags, `o.p` is null in every third and missing in every fifth,
/// `x` is an array of objects.
fn fill(db: &Database, collection: &Collection) {
    let mut batch = InsertBatch::new(db);
    for n in 0..600 {
        let inner = match n {
            _ if n % 5 == 0 => "{}".to_owned(),
            _ if n % 3 == 0 => r#"{"p": null}"#.to_owned(),
            _ => format!("{{\"p\": {}}}", n % 7),
        };
        let text = format!(
            r#"{{"_id": {n}, "n": {n}, "k": "v{}", "t": ["a{}", "b{}"], "o": {inner}, "x": [{{"y": {n}}}, {{"z": 1}}]}}"#,
            n % 5,
            n % 2,
            n % 3
        );
        batch.push_text(text.as_bytes()).unwrap();
    }
    collection.insert_batch(batch, true, &WriteOptions::default()).unwrap().wait().unwrap();
}

fn options() -> Options {
    Options { tail_rows_max: 250, log_file_bytes: 1 << 20, log_bytes_max: 4 << 20, ..small() }
}

/// (question, documents that match of those there are)
fn questions(there: &dyn Fn(u64) -> bool) -> Vec<(&'static str, u64)> {
    let count = |holds: &dyn Fn(u64) -> bool| (0..600).filter(|n| there(*n) && holds(*n)).count() as u64;
    let missing = |n: u64| n.is_multiple_of(5);
    let null = |n: u64| !missing(n) && n.is_multiple_of(3);
    vec![
        (r#"{"k": "v2"}"#, count(&|n| n % 5 == 2)),
        (r#"{"k": {"$ne": "v2"}}"#, count(&|n| n % 5 != 2)),
        (r#"{"k": {"$in": ["v1", "v3", "none"]}}"#, count(&|n| n % 5 == 1 || n % 5 == 3)),
        (r#"{"n": {"$gte": 100, "$lt": 300}}"#, count(&|n| (100..300).contains(&n))),
        (r#"{"n": {"$gt": 99.5}}"#, count(&|n| n >= 100)),
        (r#"{"t": "a1"}"#, count(&|n| n % 2 == 1)),
        (r#"{"t": "a1", "k": "v2"}"#, count(&|n| n % 2 == 1 && n % 5 == 2)),
        (r#"{"$or": [{"t": "b0"}, {"n": {"$lt": 10}}]}"#, count(&|n| n % 3 == 0 || n < 10)),
        (r#"{"o.p": null}"#, count(&|n| missing(n) || null(n))),
        (r#"{"o.p": {"$exists": false}}"#, count(&missing)),
        (r#"{"o.p": {"$type": "null"}}"#, count(&null)),
        (r#"{"k": {"$regex": "^v[01]"}}"#, count(&|n| n % 5 < 2)),
        (r#"{"x.y": {"$gte": 590}}"#, count(&|n| n >= 590)),
        (r#"{"n": {"$mod": [10, 3]}}"#, count(&|n| n % 10 == 3)),
        (r#"{"nowhere": 1}"#, 0),
        (r#"{"nowhere": null}"#, count(&|_| true)),
    ]
}

fn hold(collection: &Collection, there: &dyn Fn(u64) -> bool, state: &str) {
    for (question, expected) in questions(there) {
        let explained = collection.explain_count(FindRequest::new(filter(question))).unwrap();
        let found = (explained.rows_returned, explained.documents_examined);
        assert_eq!(found, (expected, 0), "{state}: {question} by {}", common::print(explained.plan.view()));
        assert_eq!(collection.count(filter(question), 0, None, None).unwrap(), expected, "{state}: {question}");
    }
    // Through an array of objects a field may be missing in one and not in another: documents tell.
    for (question, expected) in
        [(r#"{"x.y": null}"#, (0..600).filter(|n| there(*n)).count() as u64), (r#"{"x.0.y": 3}"#, 1)]
    {
        let explained = collection.explain_count(FindRequest::new(filter(question))).unwrap();
        assert_eq!(explained.rows_returned, expected, "{state}: {question}");
        assert!(explained.documents_examined > 0, "{state}: {question}");
    }
    let mut request = FindRequest::new(filter("{}"));
    request.sort = Some(sort(r#"{"n": -1}"#));
    request.limit = Some(3);
    let explained = collection.explain(request).unwrap();
    assert_eq!((explained.rows_returned, explained.documents_examined), (3, 3), "{state}: the first three of a sort");
}

fn distinct(db: &Database, collection: &Collection, path: &str) -> (Vec<String>, u64) {
    let before = db.stats().documents_examined;
    let mut distinct = Distinct::parse(value(&format!("{path:?}")).view(), &ParseContext::new("key")).unwrap();
    collection.distinct(&mut distinct, filter("{}"), None).unwrap();
    let mut values: Vec<String> = distinct.values().map(common::print).collect();
    values.sort();
    (values, db.stats().documents_examined - before)
}

#[test]
fn counts_and_distincts_read_no_document() {
    let storage = MemoryStorage::new();
    let db = open(&storage, options()).unwrap();
    let collection = db.collection("test", "docs").unwrap();
    fill(&db, &collection);
    let mut there: Box<dyn Fn(u64) -> bool> = Box::new(|_| true);
    hold(&collection, &there, "just written");
    db.seal().unwrap();
    hold(&collection, &there, "settled");
    let write = WriteOptions::default();
    let gone = filter(r#"{"n": {"$mod": [4, 1]}}"#);
    collection.delete(&DeleteRequest::many(gone), &write).unwrap().wait().unwrap();
    there = Box::new(|n| n % 4 != 1);
    hold(&collection, &there, "with deleted rows");
    let touch = UpdateRequest::many(filter(r#"{"k": "v3"}"#), common::update(r#"{"$set": {"touched": true}}"#));
    collection.update(&touch, &write).unwrap().wait().unwrap();
    hold(&collection, &there, "with updated rows");
    assert_eq!(distinct(&db, &collection, "k"), (["v0", "v1", "v2", "v3", "v4"].map(|v| format!("{v:?}")).to_vec(), 0));
    assert_eq!(distinct(&db, &collection, "o.p").1, 0);
    assert_eq!(distinct(&db, &collection, "t").0.len(), 5);
    drop(collection);
    db.close().unwrap();
    drop(db);
    let db = open(&storage, options()).unwrap();
    let collection = db.collection("test", "docs").unwrap();
    hold(&collection, &there, "reopened");
    collection.compact(None).unwrap();
    hold(&collection, &there, "compacted");
    assert_eq!(distinct(&db, &collection, "k").1, 0);
    assert_eq!(distinct(&db, &collection, "x"), (distinct(&db, &collection, "x").0, 450), "objects are in no column");
}

#[test]
fn the_order_in_storage_goes_both_ways() {
    let db = open(&MemoryStorage::new(), options()).unwrap();
    let collection = db.collection("test", "docs").unwrap();
    fill(&db, &collection);
    for state in ["in tails", "settled"] {
        for (way, expected) in [("1", [0, 1, 2]), ("-1", [599, 598, 597])] {
            let mut request = FindRequest::new(filter("{}"));
            request.sort = Some(sort(&format!("{{\"$natural\": {way}}}")));
            request.limit = Some(3);
            let mut cursor = collection.find(request).unwrap();
            let found: Vec<i64> = std::iter::from_fn(|| cursor.next().unwrap())
                .map(|d| d.view().get("_id").unwrap().as_i64().unwrap())
                .collect();
            assert_eq!(found, expected, "{state}, {way}");
        }
        db.seal().unwrap();
    }
}

#[test]
fn a_map_with_thousands_of_keys_does_not_push_the_other_fields_out() {
    let storage = MemoryStorage::new();
    let options = Options { tail_rows_max: 10_000, log_file_bytes: 8 << 20, log_bytes_max: 64 << 20, ..small() };
    let db = open(&storage, options).unwrap();
    let collection = db.collection("test", "maps").unwrap();
    let mut batch = InsertBatch::new(&db);
    for n in 0..4000 {
        let text = format!(r#"{{"_id": {n}, "m": {{"u{n}": {{"c": {n}, "d": 1}}, "w{}": 2}}, "k": {}}}"#, n % 9, n % 4);
        batch.push_text(text.as_bytes()).unwrap();
    }
    collection.insert_batch(batch, true, &WriteOptions::default()).unwrap().wait().unwrap();
    for state in ["in the tail", "settled"] {
        if state == "settled" {
            db.seal().unwrap();
            let stats = collection.stats().unwrap();
            assert!(stats.overflow_paths > 0, "there are more paths than columns");
            assert!(stats.column_bytes < 2_000_000, "{} bytes of columns", stats.column_bytes);
        }
        for (question, expected) in [
            (r#"{"k": 3}"#, 1000),
            (r#"{"m.u3999.c": 3999}"#, 1),
            (r#"{"m.u17.c": {"$gte": 17}}"#, 1),
            (r#"{"m.u3998": {"$exists": true}}"#, 1),
            (r#"{"m.u3998.c": null}"#, 3999),
            (r#"{"m.nobody.c": 1}"#, 0),
        ] {
            assert_eq!(collection.count(filter(question), 0, None, None).unwrap(), expected, "{state}: {question}");
        }
        let explained = collection.explain_count(FindRequest::new(filter(r#"{"k": 3}"#))).unwrap();
        assert_eq!(explained.documents_examined, 0, "{state}");
        let explained = collection.explain_count(FindRequest::new(filter(r#"{"m.u3999.c": 3999}"#))).unwrap();
        assert!(explained.documents_examined < 400, "{state}: {} rows share its bucket", explained.documents_examined);
    }
}
