//! What a compaction in the background may not do, step by step, where `Collection::compact` would seal first.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use std::sync::Arc;

use quarrydb_query::{Filter, ParseContext};

use super::*;
use crate::collection::Collection;
use crate::io::{ManualClock, MemoryStorage, Storage};
use crate::options::{Durability, Options, WriteOptions};
use crate::txn::modify::DeleteRequest;

fn open(storage: &MemoryStorage) -> (Arc<Core>, Collection) {
    let options = Options {
        durability: Durability::Interval(std::time::Duration::from_secs(3600)),
        background: false,
        ..Options::default()
    };
    let storage: Arc<dyn Storage> = Arc::new(storage.clone());
    let (core, _) = crate::recovery::open(storage, Arc::new(ManualClock::new(1)), options).unwrap();
    let collection = Collection::new(Arc::clone(&core), "test", "c");
    (core, collection)
}

fn filter(text: &str) -> Filter {
    let text = quarrydb_jsonb::parse(text.as_bytes()).unwrap();
    Filter::parse(text.view(), &ParseContext::new("filter")).unwrap()
}

fn fill(core: &Core, collection: &Collection) {
    for id in 0..30 {
        collection.insert(&std::collections::BTreeMap::from([("_id", id)])).unwrap();
    }
    seal::seal_all(core).unwrap();
}

fn delete(collection: &Collection, below: i32) {
    let request = DeleteRequest::many(filter(&format!("{{\"_id\": {{\"$lt\": {below}}}}}")));
    collection.delete(&request, &WriteOptions::default()).unwrap().wait().unwrap();
}

fn count(collection: &Collection) -> u64 {
    // Not by the counts at hand.
    collection.count(filter(r#"{"_id": {"$gte": 0}}"#), 0, None, None).unwrap()
}

#[test]
fn rows_whose_end_is_not_durable_stay() {
    let storage = MemoryStorage::new();
    let (core, collection) = open(&storage);
    fill(&core, &collection);
    delete(&collection, 10);
    assert_eq!(count(&collection), 20);
    assert!(!unasked(&core).unwrap(), "a third is dead, and none of it for certain");
    assert_eq!(count(&open(&storage.crash(0)).1), 30, "the delete may be lost, its rows may not");
    // Asked all the same, it keeps them.
    let state = core.catalog.get("test", "c").unwrap();
    let all: Choice = |segments, _| Some(0..segments.len());
    assert_eq!(step(&core, &state, all, Seq::MAX, None).unwrap(), Some(0));
    assert_eq!(count(&collection), 20);
    // What names the new segments has synced the log before.
    assert_eq!(count(&open(&storage.crash(0)).1), 20);
    assert!(unasked(&core).unwrap());
    assert_eq!((count(&collection), state.version().segments[0].segment.rows()), (20, 20));
    let left = storage.crash(0);
    let (core, collection) = open(&left);
    assert_eq!(count(&collection), 20);
    // Its deletes were in the log alone; one by one they come again and find nothing.
    seal::seal_all(&core).unwrap();
    drop((core, collection));
    assert_eq!(count(&open(&left).1), 20);
}

#[test]
fn rows_that_end_after_it_was_asked_for_give_a_compaction_nothing_more_to_do() {
    let storage = MemoryStorage::new();
    let (core, collection) = open(&storage);
    fill(&core, &collection);
    let state = core.catalog.get("test", "c").unwrap();
    let durable = || core.group.reach_aside(true).unwrap();
    delete(&collection, 10);
    durable();
    let asked = core.watermarks().applied();
    assert_eq!(step(&core, &state, policy::fewest, asked, None).unwrap(), Some(10));
    // Else it would go on for as long as there are writers.
    delete(&collection, 20);
    durable();
    assert_eq!(step(&core, &state, policy::fewest, asked, None).unwrap(), None);
    let later = core.watermarks().applied();
    assert_eq!(step(&core, &state, policy::fewest, later, None).unwrap(), Some(10));
    assert_eq!(count(&collection), 10);
}

#[test]
fn ends_that_a_seal_folds_while_it_runs_are_carried_over() {
    let storage = MemoryStorage::new();
    let (core, collection) = open(&storage);
    fill(&core, &collection);
    let state = core.catalog.get("test", "c").unwrap();
    let segments = state.version().segments.clone();
    let horizons = core.snapshots.horizons(core.watermarks());
    let work = Work::begin(&core, &state, segments, (&horizons, core.watermarks().durable())).unwrap();
    let (mut made, mut given) = (Vec::new(), Vec::new());
    delete(&collection, 10);
    work.write(&mut made, &mut given, &mut Pace::new(&core, None)).unwrap();
    // Sealed, durable, seen by nobody: a seal folds them.
    seal::seal_all(&core).unwrap();
    delete(&collection, 15);
    work.publish(&mut made).unwrap();
    drop(work);
    assert_eq!(count(&collection), 15);
    delete(&collection, 16);
    core.group.reach_aside(true).unwrap();
    let left = storage.crash(0);
    assert_eq!((count(&collection), count(&open(&left).1)), (14, 14));
}

#[test]
fn segments_that_a_seal_lets_go_meanwhile_do_not_come_back() {
    let storage = MemoryStorage::new();
    let (core, collection) = open(&storage);
    fill(&core, &collection);
    let state = core.catalog.get("test", "c").unwrap();
    let segments = state.version().segments.clone();
    let horizons = core.snapshots.horizons(core.watermarks());
    let work = Work::begin(&core, &state, segments, (&horizons, core.watermarks().durable())).unwrap();
    delete(&collection, 30);
    seal::seal_all(&core).unwrap();
    assert!(state.version().segments.is_empty());
    work.run(&mut Pace::new(&core, None)).unwrap();
    assert!(state.version().segments.is_empty());
    let files = storage.list().unwrap();
    assert!(!files.iter().any(|(name, _)| name.ends_with(".qseg")), "{files:?}");
    assert_eq!(count(&open(&storage.crash(0)).1), 0);
}

#[test]
fn a_collection_that_is_dropped_meanwhile_stays_dropped() {
    let storage = MemoryStorage::new();
    let (core, collection) = open(&storage);
    fill(&core, &collection);
    let state = core.catalog.get("test", "c").unwrap();
    let segments = state.version().segments.clone();
    let horizons = core.snapshots.horizons(core.watermarks());
    let work = Work::begin(&core, &state, segments, (&horizons, core.watermarks().durable())).unwrap();
    collection.drop(&WriteOptions::default()).unwrap().wait().unwrap();
    work.run(&mut Pace::new(&core, None)).unwrap();
    assert!(core.catalog.get("test", "c").is_none());
    assert!(!storage.list().unwrap().iter().any(|(name, _)| name.ends_with(".qseg")));
    core.group.reach_aside(true).unwrap();
    let left = storage.crash(0);
    assert!(open(&left).0.catalog.get("test", "c").is_none());
}

#[test]
fn rows_keep_their_order_whatever_numbers_their_segments_have() {
    let storage = MemoryStorage::new();
    let (core, collection) = open(&storage);
    for part in 0..5 {
        let documents = (0..4).map(|i| std::collections::BTreeMap::from([("_id", part * 10 + i)]));
        collection.insert_many(documents).unwrap();
        seal::seal_all(&core).unwrap();
    }
    let state = core.catalog.get("test", "c").unwrap();
    let middle: Choice = |_, _| Some(1..3);
    assert_eq!(step(&core, &state, middle, Seq::MAX, None).unwrap(), Some(0));
    let in_order = |collection: &Collection| {
        let mut cursor = collection.find(crate::exec::find::FindRequest::new(filter("{}"))).unwrap();
        let mut found = Vec::new();
        while let Some(document) = cursor.next().unwrap() {
            found.extend(document.view().get("_id").unwrap().as_i64());
        }
        found
    };
    let expected: Vec<i64> = (0..20).map(|i| i / 4 * 10 + i % 4).collect();
    assert_eq!(state.version().segments.len(), 4);
    assert_eq!(in_order(&collection), expected);
    assert_eq!(in_order(&open(&storage.crash(0)).1), expected, "reopened");
}
