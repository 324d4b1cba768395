//! `$out` takes the place of a collection whole or not at all, also where the power goes; `$merge` does what it says.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::ops::ControlFlow;

use common::{find, insert, open, small, value};
use quarrydb::io::MemoryStorage;
use quarrydb::{AggregateRequest, Collection, IndexDefinition, Result, WriteOptions};
use quarrydb_query::ParseContext;
use quarrydb_query::pipeline::Pipeline;

fn run(collection: &Collection, pipeline: &str) -> Result<()> {
    let pipeline = Pipeline::parse(value(pipeline).view(), &ParseContext::new("pipeline")).unwrap();
    collection.aggregate(AggregateRequest::new(pipeline))?.each(&mut |_| Ok(ControlFlow::Continue(())))
}

/// The number and the place of writing of all documents of `out`: of the run before or the run after, never of both.
fn generation(collection: &Collection) -> Vec<String> {
    find(collection, "{}")
}

#[test]
fn out_is_whole_or_not_there_wherever_the_power_goes() {
    let prepare = |storage: &MemoryStorage| -> Result<quarrydb::Database> {
        let db = open(storage, small())?;
        let from = db.collection("d", "from")?;
        for id in 0..20 {
            insert(&db, &from, &format!("{{\"_id\": {id}}}"))?;
        }
        let old = db.collection("d", "out")?;
        for id in 100..110 {
            insert(&db, &old, &format!("{{\"_id\": {id}, \"old\": true}}"))?;
        }
        db.seal()?;
        Ok(db)
    };
    let pipeline = "[{\"$set\": {\"new\": 1}}, {\"$out\": \"out\"}]";
    let whole = MemoryStorage::new();
    let db = prepare(&whole).unwrap();
    let (from, out) = (db.collection("d", "from").unwrap(), db.collection("d", "out").unwrap());
    let (begun, old) = (whole.operations(), generation(&out));
    run(&from, pipeline).unwrap();
    let (ended, new) = (whole.operations(), generation(&out));
    assert_eq!((old.len(), new.len()), (10, 20));
    assert!(new.iter().all(|document| document.contains("\"new\":1")), "{new:?}");
    drop((from, out, db));
    assert!(ended > begun);
    for stop in begun..ended {
        for leaving in [0, 3, u64::MAX] {
            let storage = MemoryStorage::new();
            let db = prepare(&storage).unwrap();
            storage.stop_at(Some(stop));
            let acknowledged = run(&db.collection("d", "from").unwrap(), pipeline).is_ok();
            drop(db);
            let left = storage.crash(leaving);
            let db = open(&left, small()).unwrap();
            let found = generation(&db.collection("d", "out").unwrap());
            assert!(found == new || found == old && !acknowledged, "stopped at {stop}, left as {leaving}: {found:?}");
        }
    }
}

#[test]
fn out_that_fails_leaves_the_collection_and_its_indexes_stay() {
    let db = open(&MemoryStorage::new(), small()).unwrap();
    let (from, out) = (db.collection("d", "from").unwrap(), db.collection("d", "out").unwrap());
    for id in 0..5 {
        insert(&db, &from, &format!("{{\"_id\": {id}, \"k\": {}}}", id % 2)).unwrap();
    }
    insert(&db, &out, "{\"_id\": 9, \"k\": 9}").unwrap();
    let keys = value("{\"k\": 1}");
    let yes = value("[true]");
    let unique = yes.view().as_array().unwrap().get(0).unwrap();
    let definition = IndexDefinition::parse(&|name| match name {
        "keys" => Some(keys.view()),
        "unique" => Some(unique),
        _ => None,
    });
    out.create_indexes(&[definition.unwrap()], &WriteOptions::default()).unwrap();
    // Two documents of one key, and two of one _id.
    for pipeline in [
        "[{\"$out\": \"out\"}]",
        "[{\"$set\": {\"_id\": 1, \"k\": \"$_id\"}}, {\"$out\": \"out\"}]",
        "[{\"$set\": {\"k\": {\"$divide\": [1, {\"$subtract\": [\"$_id\", 3]}]}}}, {\"$out\": \"out\"}]",
    ] {
        assert!(run(&from, pipeline).is_err(), "{pipeline}");
        assert_eq!(find(&out, "{}"), ["{\"_id\":9,\"k\":9}"], "{pipeline}");
    }
    run(&from, "[{\"$set\": {\"k\": \"$_id\"}}, {\"$out\": {\"db\": \"d\", \"coll\": \"out\"}}]").unwrap();
    assert_eq!((find(&out, "{\"k\": 3}").len(), find(&out, "{}").len(), out.indexes().len()), (1, 5, 1));
    // Of itself, and of nothing.
    run(&out, "[{\"$match\": {\"k\": {\"$gt\": 2}}}, {\"$out\": \"out\"}]").unwrap();
    assert_eq!(find(&out, "{}").len(), 2);
    run(&out, "[{\"$match\": {\"k\": \"none\"}}, {\"$out\": \"empty\"}]").unwrap();
    assert!(db.collection("d", "empty").unwrap().stats().is_some());
}

#[test]
fn merge_does_what_it_says_for_each_document() {
    let db = open(&MemoryStorage::new(), small()).unwrap();
    let from = db.collection("d", "from").unwrap();
    for id in 0..200 {
        insert(&db, &from, &format!("{{\"_id\": {id}, \"n\": {id}}}")).unwrap();
    }
    let into = db.collection("d", "into").unwrap();
    let fill = || {
        into.drop(&WriteOptions::default()).unwrap().wait().unwrap();
        for id in [1, 2] {
            insert(&db, &into, &format!("{{\"_id\": {id}, \"old\": true, \"n\": -1}}")).unwrap();
        }
    };
    let merge = |options: &str| {
        let pipeline = format!(
            "[{{\"$match\": {{\"_id\": {{\"$in\": [2, 150]}}}}}}, {{\"$merge\": {{\"into\": \"into\"{options}}}}}]"
        );
        fill();
        run(&from, &pipeline).map(|()| find(&into, "{}")).map_err(|error| error.code().unwrap())
    };
    let one = "{\"_id\":1,\"old\":true,\"n\":-1}".to_owned();
    let two = |text: &str| format!("{{\"_id\":2,{text}}}");
    let new = "{\"_id\":150,\"n\":150}".to_owned();
    let sorted = |options: &str| {
        let mut found = merge(options).unwrap();
        found.sort();
        found
    };
    let expected = |second: String| {
        let mut all = vec![one.clone(), second, new.clone()];
        all.sort();
        all
    };
    assert_eq!(sorted(""), expected(two("\"old\":true,\"n\":2")));
    assert_eq!(sorted(", \"whenMatched\": \"replace\""), expected(two("\"n\":2")));
    assert_eq!(sorted(", \"whenMatched\": \"keepExisting\""), expected(two("\"old\":true,\"n\":-1")));
    let adds = ", \"whenMatched\": [{\"$set\": {\"n\": {\"$add\": [\"$n\", \"$$new.n\"]}}}]";
    assert_eq!(sorted(adds), expected(two("\"old\":true,\"n\":1")));
    assert_eq!(merge(", \"whenMatched\": \"fail\"").unwrap_err(), 11000);
    assert_eq!(merge(", \"whenNotMatched\": \"fail\"").unwrap_err(), 13113);
    assert_eq!(merge(", \"whenNotMatched\": \"discard\"").unwrap().len(), 2);
    assert_eq!(merge(", \"on\": \"n\"").unwrap_err(), 51183, "without a unique index");
    run(&from, "[{\"$merge\": \"into\"}]").unwrap();
    assert_eq!(find(&into, "{}").len(), 200);
}
