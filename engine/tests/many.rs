//! Many of everything: collections share their files, and values of an `$in` are looked up one by one.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{filter, insert, open, print, small, value};
use quarrydb::io::{MemoryStorage, Storage};
use quarrydb::{Collection, Database, FindRequest, IndexDefinition, InsertBatch, Options, WriteOptions};

fn declare(collection: &Collection, definition: &str) {
    let definition = IndexDefinition::from_object(value(definition).view()).unwrap();
    collection.create_indexes(&[definition], &WriteOptions::default()).unwrap();
}

fn count(collection: &Collection, question: &str) -> u64 {
    collection.count(filter(question), 0, None, None).unwrap()
}

/// One file for each collection and index takes all handles of a process.
#[test]
fn thousands_of_small_collections_take_a_few_files() {
    const COLLECTIONS: usize = 600;
    let storage = MemoryStorage::new();
    let options = Options { background: false, ..Options::default() };
    let all =
        |db: &Database| (0..COLLECTIONS).map(|i| db.collection("test", &format!("c{i}")).unwrap()).collect::<Vec<_>>();
    let db = open(&storage, options.clone()).unwrap();
    for (i, collection) in all(&db).iter().enumerate() {
        let mut batch = InsertBatch::new(&db);
        for j in 0..20 {
            batch.push_text(format!("{{\"_id\": {j}, \"a\": {}, \"b\": {}}}", j % 5, i * j).as_bytes()).unwrap();
        }
        collection.insert_batch(batch, false, &WriteOptions::default()).unwrap().wait().unwrap();
        declare(collection, r#"{"keys": {"a": 1}}"#);
        declare(collection, r#"{"keys": {"b": -1}}"#);
    }
    let files = || storage.list().unwrap().len();
    assert!(files() < 10, "{} files", files());
    // After a kill, and after a clean end.
    for clean in [false, true] {
        let db = open(&storage, options.clone()).unwrap();
        let collections = all(&db);
        for collection in &collections {
            assert_eq!((count(collection, r#"{"a": 3}"#), collection.indexes().len()), (4 + u64::from(clean), 2));
        }
        assert!(files() < 12, "{} files", files());
        if !clean {
            collections.iter().for_each(|c| insert(&db, c, r#"{"_id": "new", "a": 3}"#).unwrap());
        } else {
            for i in (0..COLLECTIONS).step_by(2) {
                collections[i].drop(&WriteOptions::default()).unwrap().wait().unwrap();
            }
            assert_eq!(db.collections("test").unwrap().len(), COLLECTIONS / 2);
        }
        drop(collections);
        db.close().unwrap();
    }
}

/// A list that is compared value by value with each document costs their product.
#[test]
fn a_long_in_is_looked_up_and_finds_each_document_once() {
    const DOCUMENTS: u64 = 20_000;
    let db = open(&MemoryStorage::new(), Options { tail_rows_max: 6000, ..small() }).unwrap();
    let collection = db.collection("test", "in").unwrap();
    let mut batch = InsertBatch::new(&db);
    for i in 0..DOCUMENTS {
        let fid = match i % 100 {
            7 => "null".to_owned(),
            8 => format!("[{}, {}]", i * 7, i * 7 + 7),
            9 => format!("\"s{i}\""),
            _ => (i * 7).to_string(),
        };
        batch.push_text(format!("{{\"_id\": {i}, \"fid\": {fid}, \"plain\": {}}}", i * 7).as_bytes()).unwrap();
    }
    collection.insert_batch(batch, false, &WriteOptions::default()).unwrap().wait().unwrap();
    db.seal().unwrap();
    let list = |n: u64, also: &str| {
        // Out of order, and each twice.
        let values: Vec<String> = (0..n).chain(0..n).map(|i| (i * 7919 % DOCUMENTS * 7).to_string()).collect();
        format!("[{}{also}]", values.join(","))
    };
    let ask = |question: &str| {
        let mut cursor = collection.find(FindRequest::new(filter(question))).unwrap();
        std::iter::from_fn(move || cursor.next().unwrap().map(|d| print(d.view()))).collect::<Vec<_>>()
    };
    let questions: Vec<String> =
        [(15, ""), (15, r#", null, "s9", "s109", 1.5, true, "none""#), (1000, ", null"), (10_000, "")]
            .iter()
            .flat_map(|&(n, also)| {
                let list = list(n, also);
                ["fid", "plain"]
                    .map(|path| format!(r#"{{"{path}": {{"$in": {list}}}}}"#))
                    .into_iter()
                    .chain([format!(r#"{{"fid": {{"$nin": {list}}}}}"#)])
            })
            .collect();
    let expected: Vec<Vec<String>> = questions
        .iter()
        .map(|question| {
            let filter = filter(question);
            ask("{}").into_iter().filter(|text| filter.matches(value(text).view()).unwrap()).collect()
        })
        .collect();
    for declared in [false, true] {
        if declared {
            declare(&collection, r#"{"keys": {"fid": 1}}"#);
        }
        for (question, expected) in questions.iter().zip(&expected) {
            assert!(ask(question) == *expected, "{declared} {}", &question[..60]);
            assert_eq!(count(&collection, question), expected.len() as u64);
        }
    }
    // No more documents are looked at than there are values, and columns know even without an index.
    let few = format!(r#"{{"fid": {{"$in": {}}}}}"#, list(15, ""));
    let explained = collection.explain(FindRequest::new(filter(&few))).unwrap();
    assert!(explained.documents_examined <= 30, "{} looked at", explained.documents_examined);
    let plain = format!(r#"{{"plain": {{"$in": {}}}}}"#, list(10_000, ""));
    let before = db.stats().documents_examined;
    assert_eq!((count(&collection, &plain), db.stats().documents_examined - before), (10_000, 0));
}
