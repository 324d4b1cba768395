//! Transactions: what is seen inside and outside, what becomes of it, and what each kind of them is held to.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::{Chance, Model, Op, check, contents, filter, find, insert, open, small, sort, update, value};
use quarrydb::io::{ManualClock, MemoryStorage};
use quarrydb::{
    Collection, Database, DeleteRequest, Error, ErrorKind, FindRequest, IndexDefinition, InsertBatch, Options, Pending,
    Result, UpdateRequest, WriteOptions,
};
use quarrydb_query::{Distinct, ParseContext};

const WRITE: WriteOptions = WriteOptions { journal: None, deadline: None };

fn new() -> (MemoryStorage, Database) {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    (storage, db)
}

/// An operation that succeeds on a model: inside a transaction a failure is the end.
fn fitting(chance: &mut Chance, model: &Model) -> Op {
    loop {
        match Op::random(chance) {
            Op::Insert(documents) => {
                let mut new = BTreeSet::new();
                let documents: Vec<_> =
                    documents.into_iter().filter(|d| !model.contains_key(&d.0) && new.insert(d.0)).collect();
                if !documents.is_empty() {
                    return Op::Insert(documents);
                }
            }
            other => return other,
        }
    }
}

fn index(text: &str) -> IndexDefinition {
    let text = value(text);
    IndexDefinition::parse(&|field| text.view().get(field)).unwrap()
}

fn set(collection: &Collection, id: i64, v: i64) -> Result<u64> {
    let change = update(&format!("{{\"$set\": {{\"v\": {v}}}}}"));
    let request = UpdateRequest::one(filter(&format!("{{\"_id\": {id}}}")), change);
    Ok(collection.update(&request, &WRITE)?.wait()?.matched)
}

fn inc(collection: &Collection, id: i64, by: i64) -> Result<u64> {
    let change = update(&format!("{{\"$inc\": {{\"v\": {by}}}}}"));
    let request = UpdateRequest::one(filter(&format!("{{\"_id\": {id}}}")), change);
    Ok(collection.update(&request, &WRITE)?.wait()?.matched)
}

fn v(collection: &Collection, id: i64) -> Option<i64> {
    let found = collection.get(value(&id.to_string()).view()).unwrap()?;
    found.view().get("v").unwrap().as_i64()
}

#[test]
fn inside_all_ways_of_asking_see_the_snapshot_and_what_was_done_over_it() {
    for seed in 1..=30 {
        let mut chance = Chance::new(seed);
        let (_, db) = new();
        let collection = db.collection("test", "inside").unwrap();
        if seed % 2 == 0 {
            let declared = index(r#"{"keys": {"k": 1}}"#);
            collection.create_indexes(&[declared], &WRITE).unwrap();
        }
        let mut outside = Model::new();
        for round in 0..6 {
            for _ in 0..chance.below(20) {
                let op = Op::random(&mut chance);
                op.on_collection(&db, &collection).unwrap();
                op.on_model(&mut outside);
            }
            let transaction = db.begin().unwrap();
            let within = transaction.collection("test", "inside").unwrap();
            let mut inside = outside.clone();
            for step in 0..chance.below(25) {
                let when = format!("seed {seed}, round {round}, step {step}");
                let op = fitting(&mut chance, &inside);
                op.on_collection(&db, &within).unwrap_or_else(|e| panic!("{when}: {op:?}: {e}"));
                op.on_model(&mut inside);
                match chance.below(8) {
                    0 => db.seal().unwrap(),
                    1 => drop(collection.compact(None).unwrap()),
                    2 | 3 => check(&within, &inside, &when),
                    4 => check(&collection, &outside, &when),
                    _ => {}
                }
            }
            let when = format!("seed {seed}, round {round}");
            check(&within, &inside, &when);
            check(&collection, &outside, &when);
            if chance.below(3) == 0 {
                assert!(transaction.abort());
            } else {
                transaction.commit(&WRITE).unwrap().wait().unwrap();
                outside = inside;
            }
            check(&collection, &outside, &when);
            assert_eq!(db.stats().snapshots, 0, "{when}");
        }
    }
}

#[test]
fn few_operations_are_one_commit_across_collections_and_databases() {
    let (storage, db) = new();
    let before = db.stats().log.records;
    let found: Pending<u64> = db
        .transact(&WRITE, |transaction| -> Result<u64> {
            let (a, b) = (transaction.collection("one", "a")?, transaction.collection("two", "b")?);
            insert(&db, &a, r#"{"_id": 1, "v": 1}"#)?;
            insert(&db, &b, r#"{"_id": 1, "v": 5}"#)?;
            inc(&a, 1, 10)?;
            assert_eq!(v(&a, 1), Some(11), "a later operation sees an earlier one");
            a.count(filter(r#"{"v": {"$gt": 10}}"#), 0, None, None)
        })
        .unwrap();
    assert_eq!(found.wait().unwrap(), 1);
    assert_eq!(db.stats().log.records, before + 1);
    let failed = db.transact(&WRITE, |transaction| -> Result<()> {
        inc(&transaction.collection("one", "a")?, 1, 100)?;
        insert(&db, &transaction.collection("two", "new")?, r#"{"_id": 3, "v": 1}"#)?;
        insert(&db, &transaction.collection("two", "b")?, r#"{"_id": 1, "v": 6}"#)
    });
    assert_eq!(failed.unwrap_err().kind(), ErrorKind::DuplicateKey);
    let all = |db: &Database| {
        let of = |db_name: &str, name: &str| find(&db.collection(db_name, name).unwrap(), "{}");
        (of("one", "a"), of("two", "b"), db.collections("two").unwrap().len())
    };
    let expected = (vec![r#"{"_id":1,"v":11}"#.to_owned()], vec![r#"{"_id":1,"v":5}"#.to_owned()], 1);
    assert_eq!(all(&db), expected);
    drop(db);
    assert_eq!(all(&open(&storage, small()).unwrap()), expected);
}

#[test]
fn a_failure_that_is_passed_over_undoes_all_the_same() {
    let (_, db) = new();
    let collection = db.collection("test", "c").unwrap();
    insert(&db, &collection, r#"{"_id": 1, "v": 1}"#).unwrap();
    let passed = db.transact(&WRITE, |transaction| -> Result<()> {
        let within = transaction.collection("test", "c")?;
        inc(&within, 1, 1)?;
        let _ = insert(&db, &within, r#"{"_id": 1, "v": 1}"#);
        Ok(())
    });
    assert_eq!(passed.unwrap_err().code(), Some(251));
    assert_eq!(v(&collection, 1), Some(1));
}

#[test]
fn a_write_beside_its_own_transaction_is_refused_and_waits_for_nobody() {
    let (_, db) = new();
    let collection = db.collection("test", "c").unwrap();
    let refused = db.transact(&WRITE, |transaction| -> Result<()> {
        insert(&db, &transaction.collection("test", "c")?, r#"{"_id": 1, "v": 1}"#)?;
        assert_eq!(collection.count(filter("{}"), 0, None, None)?, 0, "reading outside is no harm");
        insert(&db, &collection, r#"{"_id": 2, "v": 1}"#)
    });
    assert_eq!(refused.unwrap_err().code(), Some(263));
    insert(&db, &collection, r#"{"_id": 2, "v": 1}"#).unwrap();
    assert_eq!(find(&collection, "{}").len(), 1);
}

#[test]
fn few_operations_that_look_for_long_still_are_one_and_lose_nothing_beside_writers() {
    let storage = MemoryStorage::new();
    let options = Options { background: true, tail_rows_max: 300, ..small() };
    let db = open(&storage, options).unwrap();
    let collection = db.collection("test", "long").unwrap();
    for from in (0..2000).step_by(500) {
        let mut batch = InsertBatch::new(&db);
        for id in from..from + 500 {
            batch.push_text(format!("{{\"_id\": {id}, \"k\": {}, \"v\": 0}}", id % 4).as_bytes()).unwrap();
        }
        collection.insert_batch(batch, true, &WRITE).unwrap().wait().unwrap();
    }
    // Each takes what it counts and writes it down: were one to miss another's, a number would stand twice.
    let serial = || {
        db.transact(&WRITE, |transaction| -> Result<u64> {
            let within = transaction.collection("test", "long")?;
            let taken = within.count(filter(r#"{"v": {"$gt": 0}}"#), 0, None, None)?;
            let mut request = UpdateRequest::one(filter(r#"{"k": 1, "v": 0}"#), update(r#"{"$set": {"v": 1}}"#));
            request.sort = Some(sort(r#"{"_id": -1}"#));
            assert_eq!(within.update(&request, &WRITE)?.wait()?.modified, 1);
            Ok(taken)
        })
        .unwrap()
        .wait()
        .unwrap()
    };
    let mut numbers: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..25).map(|_| serial()).collect::<Vec<_>>())).collect();
        scope.spawn(|| (0..200).for_each(|i| assert_eq!(inc(&collection, i * 4, 0).unwrap(), 1)));
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    numbers.sort_unstable();
    assert_eq!(numbers, (0..100).collect::<Vec<u64>>());
    let taken = find(&collection, r#"{"v": 1}"#).len();
    assert_eq!(taken, 100);
}

#[test]
fn of_two_the_first_to_write_wins_and_a_write_outside_wins_over_both() {
    let (_, db) = new();
    let collection = db.collection("test", "c").unwrap();
    for id in 1..=3 {
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"v\": 0}}")).unwrap();
    }
    let (first, second) = (db.begin().unwrap(), db.begin().unwrap());
    let within = |transaction: &quarrydb::Transaction| transaction.collection("test", "c").unwrap();
    set(&within(&first), 1, 10).unwrap();
    let error = set(&within(&second), 1, 20).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Conflict, Some(112)));
    let details = quarrydb_jsonb::JsonbRef::from_valid(error.details().unwrap());
    assert_eq!(common::print(details), r#"{"errorLabels":["TransientTransactionError"]}"#);
    // It is over: the conflict was at the write.
    assert_eq!(second.commit(&WRITE).unwrap_err().code(), Some(251));
    // Outside nobody waits, and wins.
    set(&collection, 1, 30).unwrap();
    set(&collection, 2, 31).unwrap();
    assert_eq!(first.commit(&WRITE).unwrap_err().code(), Some(112));
    assert_eq!((v(&collection, 1), v(&collection, 2)), (Some(30), Some(31)));
    // What was changed since the snapshot is a conflict at the write too, and after a seal.
    let late = db.begin().unwrap();
    let very_late = db.begin().unwrap();
    set(&collection, 3, 32).unwrap();
    assert_eq!(v(&within(&late), 3), Some(0), "the snapshot is that of the begin");
    assert_eq!(set(&within(&late), 3, 1).unwrap_err().code(), Some(112));
    db.seal().unwrap();
    collection.compact(None).unwrap();
    assert_eq!(v(&within(&very_late), 3), Some(0));
    assert_eq!(set(&within(&very_late), 3, 1).unwrap_err().code(), Some(112));
    // What another gave up is free.
    let third = db.begin().unwrap();
    set(&within(&third), 1, 40).unwrap();
    third.commit(&WRITE).unwrap().wait().unwrap();
    assert_eq!(v(&collection, 1), Some(40));
    assert!(third.commit(&WRITE).unwrap().wait().is_ok(), "the answer again");
}

#[test]
fn inserts_of_one_id_and_of_one_unique_key_conflict() {
    let (_, db) = new();
    let collection = db.collection("test", "c").unwrap();
    let declared = index(r#"{"keys": {"u": 1}, "unique": true}"#);
    collection.create_indexes(&[declared], &WRITE).unwrap();
    insert(&db, &collection, r#"{"_id": 1, "u": 1}"#).unwrap();
    let begin = || {
        let transaction = db.begin().unwrap();
        let within = transaction.collection("test", "c").unwrap();
        (transaction, within)
    };
    let ((a, in_a), (_b, in_b), (_c, in_c), (_d, in_d)) = (begin(), begin(), begin(), begin());
    insert(&db, &in_a, r#"{"_id": 5, "u": 5}"#).unwrap();
    assert_eq!(insert(&db, &in_b, r#"{"_id": 5, "u": 6}"#).unwrap_err().code(), Some(112));
    assert_eq!(insert(&db, &in_c, r#"{"_id": 6, "u": 5}"#).unwrap_err().code(), Some(112));
    assert_eq!(insert(&db, &in_d, r#"{"_id": 7, "u": 1}"#).unwrap_err().code(), Some(11000));
    // Inside, a key that was given up is free, and one that was taken is not.
    let delete = DeleteRequest::one(filter(r#"{"_id": 1}"#));
    assert_eq!(in_a.delete(&delete, &WRITE).unwrap().wait().unwrap().deleted, 1);
    insert(&db, &in_a, r#"{"_id": 8, "u": 1}"#).unwrap();
    a.commit(&WRITE).unwrap().wait().unwrap();
    let mut keys = find(&collection, "{}");
    keys.sort();
    assert_eq!(keys, [r#"{"_id":5,"u":5}"#, r#"{"_id":8,"u":1}"#]);
    let (e, in_e) = begin();
    insert(&db, &in_e, r#"{"_id": 9, "u": 9}"#).unwrap();
    assert_eq!(insert(&db, &in_e, r#"{"_id": 10, "u": 9}"#).unwrap_err().code(), Some(11000));
    assert!(e.commit(&WRITE).is_err());
    // Outside wins at the commit.
    let (f, in_f) = begin();
    insert(&db, &in_f, r#"{"_id": 11, "u": 11}"#).unwrap();
    insert(&db, &collection, r#"{"_id": 12, "u": 11}"#).unwrap();
    assert_eq!(f.commit(&WRITE).unwrap_err().code(), Some(11000));
    assert_eq!(collection.count(filter(r#"{"u": 11}"#), 0, None, None).unwrap(), 1);
}

#[test]
fn collections_that_are_made_and_dropped_meanwhile_are_no_way_around() {
    let (_, db) = new();
    let kept = db.collection("test", "kept").unwrap();
    insert(&db, &kept, r#"{"_id": 1, "v": 1}"#).unwrap();
    let (dropped, made) = (db.begin().unwrap(), db.begin().unwrap());
    set(&dropped.collection("test", "kept").unwrap(), 1, 2).unwrap();
    let new = made.collection("test", "new").unwrap();
    insert(&db, &new, r#"{"_id": 1, "v": 1}"#).unwrap();
    assert_eq!(find(&new, r#"{"v": {"$gte": 1}}"#).len(), 1);
    assert!(db.collection("test", "new").unwrap().stats().is_none(), "not made before the commit");
    insert(&db, &db.collection("test", "new").unwrap(), r#"{"_id": 2, "v": 2}"#).unwrap();
    assert_eq!(find(&new, "{}").len(), 1, "what came since is not seen");
    made.commit(&WRITE).unwrap().wait().unwrap();
    assert_eq!(find(&db.collection("test", "new").unwrap(), "{}").len(), 2);
    let blind = db.begin().unwrap();
    kept.drop(&WRITE).unwrap().wait().unwrap();
    assert_eq!(dropped.commit(&WRITE).unwrap_err().code(), Some(112));
    let unseen = blind.collection("test", "kept").unwrap();
    assert_eq!(unseen.count(filter("{}"), 0, None, None).unwrap_err().code(), Some(112), "never an empty answer");
}

#[test]
fn distinct_sort_and_find_and_modify_work_on_what_is_seen_inside() {
    let (_, db) = new();
    let collection = db.collection("test", "c").unwrap();
    for id in 0..10 {
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": {}, \"v\": {id}}}", id % 3)).unwrap();
    }
    db.seal().unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.collection("test", "c").unwrap();
    let request = UpdateRequest::many(filter(r#"{"k": 2}"#), update(r#"{"$set": {"k": 7}}"#));
    assert_eq!(within.update(&request, &WRITE).unwrap().wait().unwrap().modified, 3);
    let mut distinct = Distinct::parse(value("\"k\"").view(), &ParseContext::new("key")).unwrap();
    within.distinct(&mut distinct, filter("{}"), None).unwrap();
    let mut values: Vec<_> = distinct.values().map(|value| value.as_i64().unwrap()).collect();
    values.sort_unstable();
    assert_eq!(values, [0, 1, 7]);
    let mut request = DeleteRequest::one(filter(r#"{"k": 7}"#));
    request.sort = Some(sort(r#"{"v": -1}"#));
    let gone = within.find_and_delete(&request, &WRITE).unwrap().wait().unwrap().before.unwrap();
    assert_eq!(common::print(gone.view()), r#"{"_id":8,"k":7,"v":8}"#);
    let mut request = UpdateRequest::one(filter(r#"{"k": 9, "v": 4}"#), update(r#"{"$inc": {"v": 1}}"#));
    request.upsert = true;
    let (outcome, modified) = within.find_and_update(&request, &WRITE).unwrap().wait().unwrap();
    assert!(outcome.upserted_id.is_some() && modified.before.is_none());
    let mut request = FindRequest::new(filter(r#"{"k": {"$gte": 7}}"#));
    request.sort = Some(sort(r#"{"v": 1}"#));
    let mut cursor = within.find(request).unwrap();
    let mut found = Vec::new();
    while let Some(document) = cursor.next().unwrap() {
        found.push(document.view().get("v").unwrap().as_i64().unwrap());
    }
    assert_eq!(found, [2, 5, 5]);
    drop(cursor);
    transaction.commit(&WRITE).unwrap().wait().unwrap();
    assert_eq!(collection.count(filter(r#"{"k": 7}"#), 0, None, None).unwrap(), 2);
}

#[test]
fn a_pipeline_inside_sees_what_the_transaction_sees_in_all_its_collections() {
    let (_, db) = new();
    let collection = db.collection("test", "c").unwrap();
    for id in 0..12 {
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"k\": {}, \"v\": {id}}}", id % 3)).unwrap();
    }
    db.seal().unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.collection("test", "c").unwrap();
    within.delete(&DeleteRequest::many(filter(r#"{"k": 2}"#)), &WRITE).unwrap().wait().unwrap();
    set(&within, 0, 100).unwrap();
    let other = transaction.collection("test", "other").unwrap();
    (0..3).for_each(|id| insert(&db, &other, &format!("{{\"_id\": {id}, \"of\": {}}}", 2 * id)).unwrap());
    let run = |of: &Collection, pipeline: serde_json::Value| {
        let request = quarrydb::AggregateRequest::new(Collection::pipeline(&pipeline).unwrap());
        let mut found = Vec::new();
        let each = &mut |document: quarrydb_jsonb::JsonbRef<'_>| {
            found.push(common::print(document));
            Ok(std::ops::ControlFlow::Continue(()))
        };
        of.aggregate(request).and_then(|aggregation| aggregation.each(each)).map(|()| found)
    };
    let grouped = serde_json::json!([{"$group": {"_id": "$k", "v": {"$sum": "$v"}}}, {"$sort": {"_id": 1}}]);
    assert_eq!(run(&within, grouped.clone()).unwrap(), [r#"{"_id":0,"v":118}"#, r#"{"_id":1,"v":22}"#]);
    assert_eq!(run(&collection, grouped.clone()).unwrap().len(), 3);
    // 2 is gone, 0 and 4 are there.
    let joined = serde_json::json!([
        {"$lookup": {"from": "c", "localField": "of", "foreignField": "_id", "as": "found"}},
        {"$project": {"n": {"$size": "$found"}}}, {"$sort": {"_id": 1}},
    ]);
    assert_eq!(run(&other, joined).unwrap(), [r#"{"_id":0,"n":1}"#, r#"{"_id":1,"n":0}"#, r#"{"_id":2,"n":1}"#]);
    assert!(within.explain(FindRequest::new(filter("{}"))).is_err());
    let failing = serde_json::json!([{"$project": {"v": {"$divide": ["$v", 0]}}}]);
    assert!(run(&within, failing).is_err());
    assert_eq!(run(&within, grouped).unwrap_err().code(), Some(251));
    assert_eq!(transaction.commit(&WRITE).unwrap_err().code(), Some(251));
}

#[test]
fn idle_and_old_transactions_end_and_a_commit_is_remembered() {
    let clock = Arc::new(ManualClock::new(1_000));
    let options = Options {
        transaction_idle_max: Duration::from_secs(60),
        transaction_time_max: Duration::from_secs(150),
        transactions_max: 3,
        ..small()
    };
    let db = Database::open_on(Arc::new(MemoryStorage::new()), Arc::clone(&clock) as _, options).unwrap();
    let collection = db.collection("test", "c").unwrap();
    insert(&db, &collection, r#"{"_id": 1, "v": 1}"#).unwrap();
    let ids: Vec<_> = (0..3).map(|_| db.begin_by_id().unwrap()).collect();
    assert_eq!(db.begin_by_id().unwrap_err().kind(), ErrorKind::Busy);
    assert!(ids.iter().all(|id| id.len() == 32) && ids[0] != ids[1]);
    let within = |id: &str| db.transaction_by_id(id)?.collection("test", "c");
    set(&within(&ids[1]).unwrap(), 1, 5).unwrap();
    db.commit_by_id(&ids[1], &WRITE).unwrap().wait().unwrap();
    for _ in 0..2 {
        db.commit_by_id(&ids[1], &WRITE).unwrap().wait().unwrap();
    }
    assert_eq!(within(&ids[1]).unwrap_err().code(), Some(251));
    db.abort_by_id(&ids[2]).unwrap();
    assert_eq!(db.abort_by_id(&ids[2]).unwrap_err().code(), Some(251));
    assert_eq!(db.commit_by_id(&ids[2], &WRITE).unwrap_err().code(), Some(251));
    for _ in 0..2 {
        clock.advance_millis(50_000);
        assert_eq!(v(&within(&ids[0]).unwrap(), 1), Some(1));
        assert_eq!(db.end_old(), 0);
    }
    clock.advance_millis(50_000);
    assert_eq!((db.end_old(), db.stats().transactions, db.stats().snapshots), (1, 0, 0));
    assert_eq!(within(&ids[0]).unwrap_err().code(), Some(251));
    let idle = db.begin_by_id().unwrap();
    clock.advance_millis(59_999);
    assert_eq!(db.end_old(), 0);
    clock.advance_millis(1);
    assert_eq!(db.end_old(), 1);
    assert_eq!(db.commit_by_id(&idle, &WRITE).unwrap_err().code(), Some(251));
    for wrong in ["", "x", "zz", &"0".repeat(32), &"A".repeat(32), &"1".repeat(33)] {
        assert_eq!(db.transaction_by_id(wrong).unwrap_err().code(), Some(251), "{wrong}");
    }
}

#[test]
fn a_snapshot_that_is_too_old_says_so_and_pins_nothing() {
    let clock = Arc::new(ManualClock::new(1_000));
    let options = Options { snapshot_age_max: Duration::from_secs(10), ..small() };
    let db = Database::open_on(Arc::new(MemoryStorage::new()), Arc::clone(&clock) as _, options).unwrap();
    let collection = db.collection("test", "c").unwrap();
    for id in 0..200 {
        insert(&db, &collection, &format!("{{\"_id\": {id}, \"v\": 0}}")).unwrap();
    }
    db.seal().unwrap();
    let mut cursor = collection.find(FindRequest::new(filter("{}"))).unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.collection("test", "c").unwrap();
    assert!(cursor.next().unwrap().is_some() && v(&within, 1) == Some(0));
    clock.advance_millis(60_000);
    assert_eq!(db.end_old(), 0, "nothing is newer");
    set(&collection, 1, 1).unwrap();
    assert_eq!(db.end_old(), 0, "it has become old just now");
    clock.advance_millis(9_999);
    assert_eq!((db.end_old(), v(&within, 1)), (0, Some(0)));
    clock.advance_millis(1);
    assert_eq!((db.end_old(), db.stats().snapshots), (2, 0));
    let error = loop {
        match cursor.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("a cursor that was ended looks whole"),
            Err(error) => break error,
        }
    };
    assert_eq!((error.name(), error.code()), ("SnapshotTooOld", Some(239)));
    assert_eq!(within.count(filter("{}"), 0, None, None).unwrap_err().code(), Some(239));
    assert_eq!(transaction.commit(&WRITE).unwrap_err().code(), Some(251));
    assert_eq!(collection.count(filter("{}"), 0, None, None).unwrap(), 200);
}

#[test]
fn a_transaction_of_a_closure_begins_anew_until_it_is_through() {
    let storage = MemoryStorage::new();
    let db = open(&storage, Options { background: true, ..small() }).unwrap();
    let collection = db.collection("test", "c").unwrap();
    insert(&db, &collection, r#"{"_id": 1, "v": 0}"#).unwrap();
    let step = || {
        db.transaction(|transaction| -> Result<()> {
            let within = transaction.collection("test", "c")?;
            let found = within.get(value("1").view())?.unwrap();
            let seen = found.view().get("v").unwrap().as_i64().unwrap();
            set(&within, 1, seen + 1).map(drop)
        })
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..25).for_each(|_| step().unwrap()));
        }
    });
    assert_eq!(v(&collection, 1), Some(100));
    let refused = db.transaction(|transaction| {
        set(&transaction.collection("test", "c")?, 1, -1)?;
        Err::<(), _>(Error::new(ErrorKind::InvalidInput, "no"))
    });
    assert_eq!((refused.unwrap_err().message(), v(&collection, 1)), ("no", Some(100)));
}

#[test]
fn ten_thousand_upserts_of_one_key_make_one_document() {
    let storage = MemoryStorage::new();
    let options = Options { background: true, tail_rows_max: 1 << 17, ..Options::default() };
    let db = open(&storage, options).unwrap();
    let collection = db.collection("test", "upserts").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (db, collection) = (&db, &collection);
            scope.spawn(move || {
                for i in 0..1250 {
                    let mut request = UpdateRequest::one(filter(r#"{"k": 7}"#), update(r#"{"$inc": {"v": 1}}"#));
                    request.upsert = true;
                    if (i + thread) % 5 == 0 {
                        let upsert = |transaction: &quarrydb::Transaction| -> Result<()> {
                            let within = transaction.collection("test", "upserts")?;
                            within.update(&request, &WRITE)?.wait().map(drop)
                        };
                        db.transact(&WRITE, upsert).unwrap().wait().unwrap();
                    } else {
                        collection.update(&request, &WRITE).unwrap().wait().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(collection.count(filter("{}"), 0, None, None).unwrap(), 1);
    assert_eq!(collection.count(filter(r#"{"k": 7, "v": 10000}"#), 0, None, None).unwrap(), 1);
}

#[test]
fn a_transaction_that_writes_too_much_is_refused_before_it_is_held() {
    let (_, db) = new();
    let options = Options { query_bytes_max: 4 << 20, ..small() };
    let tight = open(&MemoryStorage::new(), options).unwrap();
    for (db, most) in [(&db, 300), (&tight, 6)] {
        let transaction = db.begin().unwrap();
        let within = transaction.collection("test", "much").unwrap();
        let text = format!("{{\"t\": \"{}\"}}", "x".repeat(1 << 20));
        let mut written = 0;
        let error = loop {
            assert!(written < most, "nothing bounds it");
            match insert(db, &within, &text) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error.kind(), ErrorKind::LimitExceeded | ErrorKind::Busy), "{error}");
        assert_eq!((db.stats().query_bytes, contents_count(db)), (0, 0));
    }
}

fn contents_count(db: &Database) -> u64 {
    db.collection("test", "much").unwrap().count(filter("{}"), 0, None, None).unwrap()
}

#[test]
fn a_read_that_fails_ends_its_transaction() {
    let (_, db) = new();
    let collection = db.collection("test", "c").unwrap();
    insert(&db, &collection, r#"{"_id": 1, "k": 0, "v": 1}"#).unwrap();
    let transaction = db.begin().unwrap();
    let within = transaction.collection("test", "c").unwrap();
    set(&within, 1, 2).unwrap();
    let failing = filter(r#"{"$expr": {"$eq": [{"$divide": ["$v", 0]}, 1]}}"#);
    assert!(within.count(failing, 0, None, None).is_err());
    assert_eq!(transaction.commit(&WRITE).unwrap_err().code(), Some(251));
    assert_eq!(contents(&collection).get(&1), Some(&(0, 1)));
}
