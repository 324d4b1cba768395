//! A sort in the order of a declared index: what it answers is what a sort without one answers, and it stops early.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{Chance, filter, open, print, small, sort, update, value};
use quarrydb::io::MemoryStorage;
use quarrydb::{
    Collection, Database, DeleteRequest, Explained, FindRequest, IndexDefinition, InsertBatch, Options, UpdateRequest,
    WriteOptions,
};

const DOCUMENTS: u64 = 2000;

/// Documents in segments and a tail, some deleted and some changed since: `g` has few values, `t` has many, nulls and
/// missing ones among both.
fn filled() -> (Database, Collection) {
    let storage = MemoryStorage::new();
    let db = open(&storage, Options { tail_rows_max: 450, ..small() }).unwrap();
    let collection = db.collection("test", "sorted").unwrap();
    let mut chance = Chance::new(11);
    let write = WriteOptions::default();
    for from in (0..DOCUMENTS).step_by(500) {
        let mut batch = InsertBatch::new(&db);
        for id in from..from + 500 {
            let g = match chance.below(12) {
                0 => "\"g\": null, ".to_owned(),
                1 => String::new(),
                g => format!("\"g\": {}, ", g % 7),
            };
            let t = if chance.below(20) == 0 { "null".to_owned() } else { chance.below(900).to_string() };
            batch
                .push_text(format!("{{\"_id\": {id}, {g}\"t\": {t}, \"u\": {}}}", chance.below(50)).as_bytes())
                .unwrap();
        }
        collection.insert_batch(batch, false, &write).unwrap().wait().unwrap();
        if from == 1000 {
            db.seal().unwrap();
        }
    }
    let some = |mod_: u64, is: u64| filter(&format!("{{\"_id\": {{\"$mod\": [{mod_}, {is}]}}}}"));
    collection.delete(&DeleteRequest::many(some(13, 4)), &write).unwrap().wait().unwrap();
    collection
        .update(&UpdateRequest::many(some(17, 2), update(r#"{"$inc": {"u": 100}, "$set": {"g": 3}}"#)), &write)
        .unwrap()
        .wait()
        .unwrap();
    (db, collection)
}

fn declare(collection: &Collection, definition: &str) {
    let definition = IndexDefinition::from_object(value(definition).view()).unwrap();
    collection.create_indexes(&[definition], &WriteOptions::default()).unwrap();
}

fn request(question: &str, order: &str, skip: u64, limit: Option<u64>) -> FindRequest {
    let mut request = FindRequest::new(filter(question));
    request.sort = Some(sort(order));
    (request.skip, request.limit) = (skip, limit);
    request
}

fn found(collection: &Collection, request: FindRequest) -> Vec<String> {
    let mut cursor = collection.find(request).unwrap();
    std::iter::from_fn(move || cursor.next().unwrap().map(|d| print(d.view()))).collect()
}

fn explained(collection: &Collection, request: FindRequest) -> (Explained, String) {
    let explained = collection.explain(request).unwrap();
    let plan = print(explained.plan.view());
    (explained, plan)
}

#[test]
fn an_index_gives_the_order_of_the_sort_without_one() {
    let (_db, collection) = filled();
    let questions = [
        "{}",
        r#"{"g": 3}"#,
        r#"{"g": null}"#,
        r#"{"g": {"$gte": 2}}"#,
        r#"{"g": 3, "u": {"$lt": 25}}"#,
        r#"{"u": 7}"#,
        r#"{"g": 3, "t": {"$gt": 100, "$lte": 600}}"#,
        r#"{"g": {"$in": [1, 4]}}"#,
        r#"{"t": {"$type": "number"}}"#,
    ];
    let orders = [
        r#"{"g": 1}"#,
        r#"{"g": -1}"#,
        r#"{"g": 1, "t": -1}"#,
        r#"{"g": -1, "t": 1}"#,
        r#"{"t": 1}"#,
        r#"{"t": -1}"#,
        r#"{"g": 1, "t": 1}"#,
        r#"{"t": -1, "g": 1}"#,
    ];
    let pieces = [(0, Some(1)), (0, Some(10)), (25, Some(30)), (0, None)];
    let ask = || {
        let mut all = Vec::new();
        for question in questions {
            for order in orders {
                for (skip, limit) in pieces {
                    all.push((question, order, skip, limit, found(&collection, request(question, order, skip, limit))));
                }
            }
        }
        all
    };
    let expected = ask();
    for definition in [
        r#"{"keys": {"g": 1, "t": -1}}"#,
        r#"{"keys": {"t": 1}}"#,
        r#"{"keys": {"g": -1}, "sparse": true}"#,
        r#"{"keys": {"t": -1, "g": 1}, "partialFilterExpression": {"g": 3}, "name": "part"}"#,
    ] {
        declare(&collection, definition);
        for (one, other) in ask().iter().zip(&expected) {
            assert!(one == other, "{definition}: {:?}", (one.0, one.1, one.2, one.3));
        }
    }
    collection.compact(None).unwrap();
    assert!(ask() == expected, "after compaction");
}

#[test]
fn a_sort_with_a_limit_looks_at_no_more_than_it_gives() {
    let (db, collection) = filled();
    declare(&collection, r#"{"keys": {"g": 1, "t": -1}}"#);
    db.seal().unwrap();
    for (question, order) in [
        ("{}", r#"{"g": 1, "t": -1}"#),
        ("{}", r#"{"g": -1}"#),
        (r#"{"g": 3}"#, r#"{"t": -1}"#),
        (r#"{"g": 3}"#, r#"{"g": 1, "t": 1}"#),
    ] {
        let (explained, plan) = explained(&collection, request(question, order, 2, Some(10)));
        assert!(
            plan.contains(r#""method":"indexOrder""#)
                && plan.contains(r#""stage":"RangeIndex","indexName":"g_1_t_-1""#),
            "{plan}"
        );
        assert_eq!((explained.rows_returned, explained.documents_examined), (10, 10), "{question} {order}");
    }
    // What the index does not decide is decided by columns: documents are read to be given.
    let (explained, plan) =
        explained(&collection, request(r#"{"u": {"$lt": 40}}"#, r#"{"g": 1, "t": -1}"#, 0, Some(5)));
    assert!(plan.contains(r#""method":"indexOrder""#) && plan.contains("Filter"), "{plan}");
    assert_eq!((explained.rows_returned, explained.documents_examined), (5, 5));
    // Few rows match: they are sorted.
    let rare = request(r#"{"_id": {"$in": [5, 900, 1400]}}"#, r#"{"g": 1, "t": -1}"#, 0, Some(5));
    assert!(!self::explained(&collection, rare).1.contains("indexOrder"));
}

#[test]
fn an_index_through_arrays_gives_no_order() {
    let (db, collection) = filled();
    declare(&collection, r#"{"keys": {"t": 1}}"#);
    let mut batch = InsertBatch::new(&db);
    batch.push_text(br#"{"_id": 100000, "t": [5, -1]}"#).unwrap();
    batch.push_text(br#"{"_id": 100001, "t": []}"#).unwrap();
    collection.insert_batch(batch, false, &WriteOptions::default()).unwrap().wait().unwrap();
    let first = |order: &str, limit| found(&collection, request("{}", order, 0, Some(limit)));
    // An empty array comes before null; the other counts with its least element.
    assert!(first(r#"{"t": 1}"#, 1)[0].contains("100001"));
    let up = found(&collection, request(r#"{"t": {"$lt": 0}}"#, r#"{"t": 1}"#, 0, None));
    assert!(up.len() == 1 && up[0].contains("100000"));
    let (_, plan) = explained(&collection, request("{}", r#"{"t": 1}"#, 0, Some(3)));
    assert!(!plan.contains("indexOrder"), "{plan}");
}

#[test]
fn a_write_of_the_first_in_an_order_finds_it_by_the_index() {
    let (_db, collection) = filled();
    let first = |question: &str| found(&collection, request(question, r#"{"t": -1, "_id": 1}"#, 0, Some(1)));
    declare(&collection, r#"{"keys": {"t": -1, "_id": 1}}"#);
    for _ in 0..20 {
        let expected = first(r#"{"done": null}"#);
        let mut change = UpdateRequest::one(filter(r#"{"done": null}"#), update(r#"{"$set": {"done": true}}"#));
        change.sort = Some(sort(r#"{"t": -1, "_id": 1}"#));
        let modified = collection.find_and_update(&change, &WriteOptions::default()).unwrap().wait().unwrap();
        assert_eq!(print(modified.1.before.unwrap().view()), expected[0]);
    }
}
