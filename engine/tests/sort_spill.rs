//! A sort whose keys are larger than its memory goes through the disk, and answers what one in memory answers.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::sync::Arc;

use common::{Chance, filter, insert, open, print, small, sort};
use quarrydb::io::{MemoryStorage, Storage};
use quarrydb::{Collection, Database, ErrorKind, FindRequest, Options};

const DOCUMENTS: i64 = 4500;
const TEXT: usize = 6000;

/// Documents with long texts, each text of five documents, in segments and a tail.
fn filled(storage: &MemoryStorage) -> (Database, Collection, Vec<(String, i64)>) {
    // A sort may take a quarter: 16 MiB of some 27 MiB of keys.
    let db = open(storage, Options { query_bytes_max: 64 << 20, tail_rows_max: 1000, ..small() }).unwrap();
    let collection = db.collection("test", "spill").unwrap();
    let mut chance = Chance::new(7);
    let mut rows = Vec::new();
    for id in 0..DOCUMENTS {
        let text = format!("{:05}{}", chance.below(900), "x".repeat(TEXT));
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"text\": \"{text}\"}}")).unwrap();
        rows.push((text, id));
        if id == DOCUMENTS - 100 {
            db.seal().unwrap();
        }
    }
    (db, collection, rows)
}

fn request(direction: i8, skip: u64, limit: Option<u64>) -> FindRequest {
    let mut request = FindRequest::new(filter("{}"));
    request.sort = Some(sort(&format!(r#"{{"text": {direction}}}"#)));
    (request.skip, request.limit) = (skip, limit);
    request
}

fn ids(collection: &Collection, request: FindRequest) -> Vec<i64> {
    let mut cursor = collection.find(request).unwrap();
    let mut found = Vec::new();
    while let Some(document) = cursor.next().unwrap() {
        found.push(document.view().get("_id").unwrap().as_i64().unwrap());
    }
    found
}

#[test]
fn a_sort_through_the_disk_is_the_sort_in_memory() {
    let storage = MemoryStorage::new();
    let (db, collection, mut rows) = filled(&storage);
    for direction in [1, -1] {
        // Stable: ties stay in the order of insertion, in both directions.
        rows.sort_by(|a, b| if direction == 1 { a.0.cmp(&b.0) } else { b.0.cmp(&a.0) }.then(a.1.cmp(&b.1)));
        let expected: Vec<i64> = rows.iter().map(|row| row.1).collect();
        for (skip, limit) in [(0, None), (10, None), (4000, Some(300)), (0, Some(4499)), (5000, None), (0, Some(7))] {
            let to = limit.map_or(expected.len(), |limit| expected.len().min((skip + limit) as usize));
            let of = expected.get(skip as usize..to).unwrap_or_default();
            assert_eq!(ids(&collection, request(direction, skip, limit)), of, "{direction} {skip} {limit:?}");
        }
        let mut printed = Vec::new();
        let print_id = |document: quarrydb_jsonb::JsonbRef<'_>, out: &mut Vec<u8>| {
            out.extend_from_slice(document.get("_id").unwrap().as_i64().unwrap().to_string().as_bytes());
            out.push(b' ');
        };
        let mut sink = |chunk: Vec<u8>, _: u64| {
            printed.extend_from_slice(&chunk);
            std::ops::ControlFlow::Continue(())
        };
        let sent = collection.find(request(direction, 3, None)).unwrap().stream(&print_id, &mut sink).unwrap();
        let text: Vec<i64> =
            std::str::from_utf8(&printed).unwrap().split_whitespace().map(|id| id.parse().unwrap()).collect();
        assert_eq!((sent as usize, &text[..]), (expected.len() - 3, &expected[3..]));
    }
    let method = |limit| {
        let plan = collection.explain(request(1, 0, limit)).unwrap().plan;
        print(plan.view())
    };
    assert!(method(None).contains(r#""method":"external""#), "{}", method(None));
    assert!(method(Some(7)).contains(r#""method":"topK""#), "{}", method(Some(7)));
    let stats = db.stats();
    assert!(stats.spilled_bytes_total > 16 << 20, "{stats:?}");
    assert_eq!((stats.spilled_bytes, stats.spill_files, stats.query_bytes), (0, 0, 0));
    assert!(storage.list().unwrap().iter().all(|(name, _)| !name.ends_with(".tmp")));
}

#[test]
fn a_sort_that_may_not_use_the_disk_says_so() {
    let (db, collection, _) = filled(&MemoryStorage::new());
    let refused = collection.find(without_disk()).unwrap_err();
    assert_eq!((refused.kind(), refused.code()), (ErrorKind::LimitExceeded, Some(292)));
    assert_eq!(db.stats().spilled_bytes_total, 0);
}

fn without_disk() -> FindRequest {
    let mut request = request(1, 0, None);
    request.allow_disk_use = false;
    request
}

#[test]
fn what_a_killed_sort_left_is_swept_away_at_the_next_start() {
    let storage = MemoryStorage::new();
    drop(filled(&storage));
    storage.create("sort-0.tmp", 100).unwrap();
    let db = open(&storage, small()).unwrap();
    assert!(db.recovered().removed.contains(&"sort-0.tmp".to_owned()), "{:?}", db.recovered());
    assert!(!Arc::new(storage).exists("sort-0.tmp").unwrap());
}
