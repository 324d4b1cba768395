//! Change streams: what they tell of each operation, whom they refuse, what is kept for them.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::sync::Arc;
use std::time::Duration;

use common::{filter, insert, interval, open, print, small, update, value};
use quarrydb::io::{Faults, FaultyStorage, ManualClock, MemoryStorage, Storage};
use quarrydb::{
    ChangeRequest, ChangeStream, Collection, Database, DeleteRequest, ErrorKind, FullDocument, IndexDefinition,
    Options, Reading, UpdateRequest, WriteOptions, check_on,
};
use quarrydb_query::{ParseContext, Update};
use serde_json::{Value, json};

fn new() -> (MemoryStorage, Database) {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    (storage, db)
}

fn orders(db: &Database) -> Collection {
    db.collection("shop", "orders").unwrap()
}

fn server() -> ChangeRequest {
    ChangeRequest::default()
}

fn database(db: &str) -> ChangeRequest {
    ChangeRequest { db: Some(db.to_owned()), ..ChangeRequest::default() }
}

/// All events there are, `_id` taken out and checked.
fn drain(stream: &mut ChangeStream) -> Vec<Value> {
    let mut events = Vec::new();
    while let Some(event) = stream.next(Some(Duration::ZERO)).unwrap() {
        let mut json: Value = serde_json::from_str(&print(event.document())).unwrap();
        assert_eq!(json.as_object_mut().unwrap().remove("_id").unwrap(), json!(event.token));
        assert_eq!(json["wallTime"], json!({"$date": "1970-01-01T00:16:40Z"}));
        json.as_object_mut().unwrap().remove("wallTime").unwrap();
        assert_eq!(json["clusterTime"]["$timestamp"]["t"], json!(1000));
        json.as_object_mut().unwrap().remove("clusterTime").unwrap();
        events.push(json);
    }
    events
}

/// What happened, in a word each.
fn kinds(stream: &mut ChangeStream) -> Vec<String> {
    drain(stream).iter().map(|event| event["operationType"].as_str().unwrap().to_owned()).collect()
}

fn write() -> WriteOptions {
    WriteOptions::default()
}

fn change(collection: &Collection, which: &str, how: &str) {
    let request = UpdateRequest::many(filter(which), update(how));
    collection.update(&request, &write()).unwrap().wait().unwrap();
}

#[test]
fn every_operation_is_told_as_mongodb_tells_it() {
    let (_storage, db) = new();
    let orders = orders(&db);
    insert(&db, &orders, r#"{"_id": 0, "before": true}"#).unwrap();
    let mut stream = db.watch(ChangeRequest::collection("shop", "orders")).unwrap();
    assert_eq!(stream.next(Some(Duration::ZERO)).unwrap().map(|e| e.token), None);
    insert(&db, &orders, r#"{"_id": 1, "item": "lamp", "n": 1, "tags": ["a"]}"#).unwrap();
    change(&orders, r#"{"_id": 1}"#, r#"{"$inc": {"n": 1}, "$push": {"tags": "b"}, "$unset": {"item": 1}}"#);
    change(&orders, r#"{"n": 2}"#, r#"{"$set": {"n": 2}}"#);
    let replacement =
        Update::parse_replacement(value(r#"{"n": 5}"#).view(), &ParseContext::new("replacement")).unwrap();
    orders.update(&UpdateRequest::one(filter(r#"{"_id": 1}"#), replacement), &write()).unwrap().wait().unwrap();
    let mut upsert = UpdateRequest::one(filter(r#"{"_id": 2}"#), update(r#"{"$set": {"n": 1}}"#));
    upsert.upsert = true;
    orders.update(&upsert, &write()).unwrap().wait().unwrap();
    // Of others nothing is told, nor of indexes and empty collections.
    insert(&db, &db.collection("shop", "others").unwrap(), "{}").unwrap();
    let index = IndexDefinition::from_object(value(r#"{"keys": {"n": 1}}"#).view()).unwrap();
    orders.create_indexes(&[index], &write()).unwrap();
    orders.delete(&DeleteRequest::many(filter(r#"{"n": {"$exists": true}}"#)), &write()).unwrap().wait().unwrap();
    orders.drop(&write()).unwrap().wait().unwrap();
    insert(&db, &orders, r#"{"_id": 9}"#).unwrap();

    let ns = json!({"db": "shop", "coll": "orders"});
    let events = drain(&mut stream);
    assert_eq!(
        events,
        [
            json!({"operationType": "insert", "fullDocument": {"_id": 1, "item": "lamp", "n": 1, "tags": ["a"]}, "ns": ns,
                "documentKey": {"_id": 1}}),
            json!({"operationType": "update", "ns": ns, "documentKey": {"_id": 1}, "updateDescription":
                {"updatedFields": {"n": 2, "tags.1": "b"}, "removedFields": ["item"], "truncatedArrays": []}}),
            json!({"operationType": "replace", "fullDocument": {"_id": 1, "n": 5}, "ns": ns, "documentKey": {"_id": 1}}),
            json!({"operationType": "insert", "fullDocument": {"_id": 2, "n": 1}, "ns": ns, "documentKey": {"_id": 2}}),
            json!({"operationType": "delete", "ns": ns, "documentKey": {"_id": 1}}),
            json!({"operationType": "delete", "ns": ns, "documentKey": {"_id": 2}}),
            json!({"operationType": "drop", "ns": ns}),
            json!({"operationType": "invalidate"}),
        ]
    );
    // A stream on a collection ends with it; from where it ended another goes on.
    assert_eq!(stream.read(usize::MAX, &mut |_, _| unreachable!("it has ended")).unwrap(), Reading::Ended);
    let since = Some(stream.resume_token());
    let mut later = db.watch(ChangeRequest { since, ..ChangeRequest::collection("shop", "orders") }).unwrap();
    assert_eq!(kinds(&mut later), ["insert"]);
}

#[test]
fn each_event_of_a_commit_can_be_gone_on_from() {
    let (_storage, db) = new();
    let orders = orders(&db);
    let mut stream = db.watch(ChangeRequest::collection("shop", "orders")).unwrap();
    let start = stream.resume_token();
    for id in 0..4 {
        insert(&db, &orders, &format!(r#"{{"_id": {id}, "n": 0}}"#)).unwrap();
    }
    change(&orders, "{}", r#"{"$inc": {"n": 1}}"#);
    orders.delete(&DeleteRequest::many(filter("{}")), &write()).unwrap().wait().unwrap();
    orders.drop(&write()).unwrap().wait().unwrap();
    let (mut tokens, mut texts) = (vec![start], Vec::new());
    while let Some(event) = stream.next(Some(Duration::ZERO)).unwrap() {
        tokens.push(event.token.clone());
        texts.push(print(event.document()));
    }
    assert_eq!(texts.len(), 4 + 4 + 4 + 2);
    for (i, token) in tokens.iter().enumerate() {
        let since = Some(token.clone());
        let mut later = db.watch(ChangeRequest { since, ..ChangeRequest::collection("shop", "orders") }).unwrap();
        let mut rest = Vec::new();
        while let Some(event) = later.next(Some(Duration::ZERO)).unwrap() {
            rest.push(print(event.document()));
        }
        assert_eq!(rest, texts[i..], "after event {i}");
    }
}

#[test]
fn a_dropped_database_is_told_collection_by_collection_and_then_as_a_whole() {
    let (_storage, db) = new();
    let mut streams = [server(), database("shop"), database("other"), ChangeRequest::collection("shop", "orders")]
        .map(|request| db.watch(request).unwrap());
    insert(&db, &orders(&db), "{}").unwrap();
    insert(&db, &db.collection("shop", "people").unwrap(), "{}").unwrap();
    insert(&db, &db.collection("other", "people").unwrap(), "{}").unwrap();
    db.drop_database("shop", &write()).unwrap().wait().unwrap();
    db.drop_database("nothing", &write()).unwrap().wait().unwrap();
    let told = streams.each_mut().map(kinds);
    assert_eq!(told[0], ["insert", "insert", "insert", "drop", "drop", "dropDatabase"]);
    assert_eq!(told[1], ["insert", "insert", "drop", "drop", "dropDatabase", "invalidate"]);
    assert_eq!(told[2], ["insert"]);
    assert_eq!(told[3], ["insert", "drop", "invalidate"]);
    let mut again = db.watch(database("shop")).unwrap();
    insert(&db, &orders(&db), "{}").unwrap();
    let event = &drain(&mut again)[0];
    assert_eq!(event["ns"], json!({"db": "shop", "coll": "orders"}));
}

/// What a transaction did is one commit over several collections: of each document what became of it.
#[test]
fn a_transaction_is_told_document_by_document_and_can_be_gone_on_from_in_the_middle() {
    let (_storage, db) = new();
    for id in 1..=3 {
        insert(&db, &orders(&db), &format!(r#"{{"_id": {id}, "n": 0, "text": "which is not changed"}}"#)).unwrap();
    }
    db.seal().unwrap();
    let mut stream = db.watch(server()).unwrap();
    let start = stream.resume_token();
    db.transaction(|t| {
        let (orders, people) = (t.collection("shop", "orders")?, t.collection("town", "people")?);
        change(&orders, r#"{"_id": 1}"#, r#"{"$inc": {"n": 1}}"#);
        change(&orders, r#"{"_id": 1}"#, r#"{"$set": {"m": 1}}"#);
        insert(&db, &people, r#"{"_id": "a"}"#)?;
        change(&people, "{}", r#"{"$set": {"n": 1}}"#);
        orders.delete(&DeleteRequest::one(filter(r#"{"_id": 2}"#)), &write())?.wait()?;
        orders.delete(&DeleteRequest::one(filter(r#"{"_id": 3}"#)), &write())?.wait()?;
        insert(&db, &orders, r#"{"_id": 3, "n": 9}"#)?;
        Ok::<_, quarrydb::Error>(())
    })
    .unwrap();
    let mut events = Vec::new();
    while let Some(event) = stream.next(Some(Duration::ZERO)).unwrap() {
        events.push((event.token.clone(), serde_json::from_str::<Value>(&print(event.document())).unwrap()));
    }
    let told = |id: Value| {
        let found: Vec<_> = events.iter().filter(|(_, event)| event["documentKey"]["_id"] == id).collect();
        assert_eq!(found.len(), 1, "{id}");
        found[0].1.clone()
    };
    let one = told(json!(1));
    assert_eq!(one["operationType"], "update");
    assert_eq!(one["updateDescription"]["updatedFields"], json!({"n": 1, "m": 1}));
    assert_eq!(told(json!(2))["operationType"], "delete");
    let three = told(json!(3));
    assert_eq!((&three["operationType"], &three["fullDocument"]), (&json!("replace"), &json!({"_id": 3, "n": 9})));
    let person = told(json!("a"));
    assert_eq!((&person["operationType"], &person["fullDocument"]), (&json!("insert"), &json!({"_id": "a", "n": 1})));
    assert_eq!(person["ns"], json!({"db": "town", "coll": "people"}));
    assert!(events.iter().all(|(_, event)| event["clusterTime"] == one["clusterTime"]), "one commit has one time");
    for (i, token) in std::iter::once(start).chain(events.iter().map(|(token, _)| token.clone())).enumerate() {
        let mut later = db.watch(ChangeRequest { since: Some(token), ..server() }).unwrap();
        let rest: Vec<_> = std::iter::from_fn(|| later.next(Some(Duration::ZERO)).unwrap()).collect();
        assert_eq!(rest.len(), events.len() - i, "after {i}");
        assert!(rest.iter().map(|event| &event.token).eq(events[i..].iter().map(|(token, _)| token)));
    }
}

#[test]
fn full_documents_of_updates_come_from_the_change_or_from_now() {
    let (_storage, db) = new();
    let orders = orders(&db);
    insert(&db, &orders, r#"{"_id": 1, "n": 0}"#).unwrap();
    insert(&db, &orders, r#"{"_id": 2, "n": 0}"#).unwrap();
    let kinds = [FullDocument::Default, FullDocument::UpdateLookup, FullDocument::WhenAvailable];
    let mut streams = kinds.map(|full_document| db.watch(ChangeRequest { full_document, ..server() }).unwrap());
    change(&orders, "{}", r#"{"$inc": {"n": 1}}"#);
    change(&orders, r#"{"_id": 1}"#, r#"{"$inc": {"n": 1}}"#);
    orders.delete(&DeleteRequest::one(filter(r#"{"_id": 2}"#)), &write()).unwrap().wait().unwrap();
    let mut told = |at: usize| -> Vec<Option<Value>> {
        let events = drain(&mut streams[at]);
        assert!(events[3].get("fullDocument").is_none(), "of what is gone there is none");
        events[..3].iter().map(|event| event.get("fullDocument").cloned()).collect()
    };
    assert_eq!(told(0), [None, None, None]);
    let now = json!({"_id": 1, "n": 2});
    assert_eq!(told(1), [Some(now.clone()), Some(Value::Null), Some(now.clone())]);
    assert_eq!(told(2), [Some(json!({"_id": 1, "n": 1})), Some(json!({"_id": 2, "n": 1})), Some(now)]);
}

#[test]
fn a_filter_chooses_events_and_tokens_move_on_without_any() {
    let (_storage, db) = new();
    let orders = orders(&db);
    let only = r#"{"operationType": "insert", "fullDocument.n": {"$gte": 98}}"#;
    let request = || ChangeRequest { filter: Some(filter(only)), ..database("shop") };
    let mut stream = db.watch(request()).unwrap();
    let start = stream.resume_token();
    for n in 0..100 {
        insert(&db, &orders, &format!(r#"{{"_id": {n}, "n": {n}}}"#)).unwrap();
        change(&orders, &format!(r#"{{"_id": {n}}}"#), r#"{"$set": {"m": 1}}"#);
    }
    let found = drain(&mut stream);
    assert_eq!(
        found.iter().map(|event| event["documentKey"]["_id"].clone()).collect::<Vec<_>>(),
        [json!(98), json!(99)]
    );
    let token = stream.resume_token();
    assert_ne!(token, start);
    // What does not concern a stream moves its token too, whether it reads or sleeps.
    let mut other = db.watch(ChangeRequest { filter: Some(filter("{}")), ..database("other") }).unwrap();
    let before = other.resume_token();
    insert(&db, &orders, r#"{"_id": 1000, "n": 0}"#).unwrap();
    assert!(drain(&mut other).is_empty());
    assert_ne!(other.resume_token(), before);
    let mut later = db.watch(ChangeRequest { since: Some(token), ..request() }).unwrap();
    assert!(drain(&mut later).is_empty());
}

#[test]
fn tokens_of_others_and_of_the_future_are_refused() {
    let (storage, db) = new();
    insert(&db, &orders(&db), "{}").unwrap();
    let mut stream = db.watch(ChangeRequest::collection("shop", "orders")).unwrap();
    let older = storage.crash(u64::MAX);
    insert(&db, &orders(&db), "{}").unwrap();
    let token = stream.next(None).unwrap().unwrap().token;
    let told = |db: &Database, request: ChangeRequest| {
        let error = db.watch(ChangeRequest { since: Some(token.clone()), ..request }).unwrap_err();
        assert_eq!(
            (error.kind(), error.name(), error.code()),
            (ErrorKind::InvalidInput, "InvalidResumeToken", Some(260))
        );
        error.message().to_owned()
    };
    assert!(told(&new().1, ChangeRequest::collection("shop", "orders")).contains("another database"));
    assert!(told(&db, ChangeRequest::collection("shop", "people")).contains("another collection"));
    assert!(told(&db, server()).contains("another collection"));
    let older = open(&older, small()).unwrap();
    assert!(told(&older, ChangeRequest::collection("shop", "orders")).contains("ahead of this database"));
    for text in ["", "x", "null", &token[1..], &format!("{token}0"), &"F".repeat(52), "\u{1f980}"] {
        let error = db.watch(ChangeRequest { since: Some(text.to_owned()), ..server() }).unwrap_err();
        assert_eq!(error.name(), "InvalidResumeToken", "{text}");
    }
    let nameless = ChangeRequest { collection: Some("orders".to_owned()), ..server() };
    assert_eq!(db.watch(nameless).unwrap_err().name(), "InvalidNamespace");
}

/// Written is not yet durable: a crash could take it back, and give its place to another.
#[test]
fn what_is_not_durable_is_not_told() {
    let storage = MemoryStorage::new();
    let db = open(&storage, Options { durability: interval(), ..small() }).unwrap();
    let mut stream = db.watch(server()).unwrap();
    insert(&db, &orders(&db), r#"{"_id": 1}"#).unwrap();
    assert_eq!(orders(&db).count(filter("{}"), 0, None, None).unwrap(), 1, "readers see it");
    assert_eq!(stream.next(Some(Duration::ZERO)).unwrap().map(|e| e.token), None);
    let durable = WriteOptions { journal: Some(true), ..write() };
    orders(&db)
        .update(&UpdateRequest::one(filter("{}"), update(r#"{"$set": {"a": 1}}"#)), &durable)
        .unwrap()
        .wait()
        .unwrap();
    assert_eq!(kinds(&mut stream), ["insert", "update"]);
    // To begin now is to begin behind what was answered, and behind what no crash can take back.
    insert(&db, &orders(&db), r#"{"_id": 2}"#).unwrap();
    let mut late = db.watch(server()).unwrap();
    let token = late.resume_token();
    assert!(drain(&mut late).is_empty());
    let left = open(&storage.crash(0), small()).unwrap();
    assert_eq!(orders(&left).count(filter("{}"), 0, None, None).unwrap(), 2);
    insert(&left, &orders(&left), r#"{"_id": 3}"#).unwrap();
    let mut later = left.watch(ChangeRequest { since: Some(token), ..server() }).unwrap();
    assert_eq!(drain(&mut later)[0]["documentKey"], json!({"_id": 3}));
}

/// The first stream of all notes where it began: a crash must not leave that place ahead of the log.
#[test]
fn where_the_first_stream_began_is_durable() {
    let storage = MemoryStorage::new();
    let db = open(&storage, Options { durability: interval(), ..small() }).unwrap();
    for id in 0..5 {
        insert(&db, &orders(&db), &format!(r#"{{"_id": {id}}}"#)).unwrap();
    }
    let token = db.watch(server()).unwrap().resume_token();
    let left = open(&storage.crash(0), small()).unwrap();
    assert_eq!(orders(&left).count(filter("{}"), 0, None, None).unwrap(), 5);
    let mut fresh = left.watch(server()).unwrap();
    insert(&left, &orders(&left), r#"{"_id": 5}"#).unwrap();
    assert_eq!(drain(&mut fresh)[0]["documentKey"], json!({"_id": 5}));
    let mut later = left.watch(ChangeRequest { since: Some(token), ..server() }).unwrap();
    assert_eq!(kinds(&mut later), ["insert"]);
}

fn open_at(storage: &MemoryStorage, clock: &Arc<ManualClock>, options: Options) -> Database {
    Database::open_on(Arc::new(storage.clone()) as Arc<dyn Storage>, Arc::clone(clock) as _, options).unwrap()
}

/// Fills some log files and seals, so that the database itself needs none of them.
fn fill(db: &Database, from: i64) {
    for id in from..from + 60 {
        insert(db, &orders(db), &format!(r#"{{"_id": {id}, "text": "{}"}}"#, "x".repeat(900))).unwrap();
    }
    db.seal().unwrap();
}

fn log_files(storage: &MemoryStorage) -> usize {
    storage.list().unwrap().iter().filter(|(name, _)| name.starts_with("log-")).count()
}

#[test]
fn the_log_is_kept_for_streams_once_one_was_opened_and_no_longer_than_asked() {
    let (storage, clock) = (MemoryStorage::new(), Arc::new(ManualClock::new(1_000_000)));
    let options = || Options { change_bytes_max: 128 << 10, change_age_max: Duration::from_secs(60), ..small() };
    let db = open_at(&storage, &clock, options());
    fill(&db, 0);
    fill(&db, 100);
    assert!(log_files(&storage) <= 2, "nobody watches: {} files", log_files(&storage));
    assert_eq!(db.stats().change_log_bytes, 0);
    let mut stream = db.watch(server()).unwrap();
    let token = stream.resume_token();
    fill(&db, 200);
    let kept = db.stats().change_log_bytes;
    assert!((32 << 10..128 << 10).contains(&kept), "{kept}");
    drop(stream);
    // It is remembered without a stream, and across openings, orderly and not.
    drop(db);
    let db = open_at(&storage, &clock, options());
    assert_eq!(db.stats().change_log_bytes, kept);
    let storage = storage.crash(3);
    drop(db);
    let db = open_at(&storage, &clock, options());
    let watch = |db: &Database| db.watch(ChangeRequest { since: Some(token.clone()), ..server() });
    stream = watch(&db).unwrap();
    assert_eq!(drain_count(&mut stream), 60);
    drop(stream);
    // By bytes: what is above goes from the oldest on.
    fill(&db, 300);
    fill(&db, 400);
    assert!(db.stats().change_log_bytes <= 128 << 10, "{}", db.stats().change_log_bytes);
    let error = watch(&db).unwrap_err();
    assert_eq!(
        (error.kind(), error.name(), error.code()),
        (ErrorKind::HistoryLost, "ChangeStreamHistoryLost", Some(286))
    );
    // By age.
    let young = db.watch(server()).unwrap().resume_token();
    fill(&db, 500);
    assert!(db.watch(ChangeRequest { since: Some(young.clone()), ..server() }).is_ok());
    clock.advance_millis(61_000);
    fill(&db, 600);
    assert_eq!(db.watch(ChangeRequest { since: Some(young), ..server() }).unwrap_err().kind(), ErrorKind::HistoryLost);
    drop(db);
    let report = check_on(&(Arc::new(storage) as Arc<dyn Storage>)).unwrap();
    assert!(report.is_whole(), "{:?}", report.damage);
}

fn drain_count(stream: &mut ChangeStream) -> usize {
    std::iter::from_fn(|| stream.next(Some(Duration::ZERO)).unwrap()).count()
}

/// A file that only streams read is no reason not to open; what it held is history that is lost, and said to be.
#[test]
fn damage_in_what_is_kept_for_streams_refuses_nothing_but_the_streams() {
    let (storage, db) = new();
    let token = db.watch(server()).unwrap().resume_token();
    fill(&db, 0);
    fill(&db, 100);
    drop(db);
    let mut names: Vec<_> =
        storage.list().unwrap().into_iter().map(|(n, _)| n).filter(|n| n.starts_with("log-")).collect();
    names.sort_by_key(|name| name.trim_start_matches("log-").trim_end_matches(".qlog").parse::<u64>().unwrap());
    assert!(names.len() > 4, "{names:?}");
    let watch = |storage: &MemoryStorage| {
        let db = open(storage, small()).unwrap();
        assert_eq!(orders(&db).count(filter("{}"), 0, None, None).unwrap(), 120);
        db.watch(ChangeRequest { since: Some(token.clone()), ..server() }).map(|mut stream| {
            let mut events = 0;
            loop {
                match stream.next(Some(Duration::ZERO)) {
                    Ok(Some(_)) => events += 1,
                    Ok(None) => return Ok(events),
                    Err(error) => return Err((events, error.kind())),
                }
            }
        })
    };
    assert_eq!(watch(&storage.crash(u64::MAX)).unwrap(), Ok(120));
    let header_gone = storage.crash(u64::MAX);
    header_gone.put(&names[1], &[7; 8192]);
    assert_eq!(watch(&header_gone).unwrap_err().kind(), ErrorKind::HistoryLost);
    let missing = storage.crash(u64::MAX);
    missing.remove(&names[0]).unwrap();
    assert_eq!(watch(&missing).unwrap_err().kind(), ErrorKind::HistoryLost);
    let flipped = storage.crash(u64::MAX);
    let mut bytes = flipped.bytes(&names[1]).unwrap();
    bytes[5000] ^= 1;
    flipped.put(&names[1], &bytes);
    let report =
        |storage: &MemoryStorage| check_on(&(Arc::new(storage.crash(u64::MAX)) as Arc<dyn Storage>)).unwrap().damage;
    assert!(
        matches!(&report(&flipped)[..], [one] if one.starts_with(&names[1]) && one.contains("change streams alone"))
    );
    for whole in [&storage, &missing, &header_gone] {
        assert_eq!(report(whole), [""; 0], "history that is gone is no damage");
    }
    let (events, kind) = watch(&flipped).unwrap().unwrap_err();
    assert_eq!(kind, ErrorKind::Corrupt);
    assert!(events < 60, "{events}");
}

/// Thousands sleep without a thread each; a commit wakes those whom it concerns, and none is missed.
#[test]
fn thousands_of_idle_streams_are_woken_by_what_concerns_them() {
    let storage = MemoryStorage::new();
    let db = open(&storage, Options { background: true, ..small() }).unwrap();
    let mut streams: Vec<_> =
        (0..2000).map(|i| db.watch(ChangeRequest::collection("shop", &format!("c{}", i % 500))).unwrap()).collect();
    let mut all = db.watch(server()).unwrap();
    assert_eq!(db.stats().change_streams, 2001);
    let seen = std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while seen < 300 {
                seen += usize::from(all.next(Some(Duration::from_secs(30))).unwrap().is_some());
            }
            seen
        });
        for n in 0..300 {
            insert(&db, &db.collection("shop", &format!("c{}", n % 3)).unwrap(), &format!(r#"{{"_id": {n}}}"#))
                .unwrap();
        }
        reader.join().unwrap()
    });
    assert_eq!(seen, 300);
    for (i, stream) in streams.iter_mut().enumerate() {
        let expected = if i % 500 < 3 { 100 } else { 0 };
        assert_eq!(drain_count(stream), expected, "stream {i}");
    }
    drop((streams, all));
    assert_eq!(db.stats().change_streams, 0);
}

#[test]
fn a_waiting_stream_is_woken_and_the_end_of_the_database_ends_it() {
    let storage = MemoryStorage::new();
    let db = open(&storage, Options { background: true, ..small() }).unwrap();
    let told = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut stream = db.watch(ChangeRequest::collection("shop", "orders")).unwrap();
            let first = stream.next(None).unwrap().map(|event| print(event.document()));
            told.wait();
            let end = stream.next(None);
            (first, end.unwrap_err().kind())
        });
        while db.stats().change_streams == 0 {
            std::thread::yield_now();
        }
        insert(&db, &db.collection("shop", "others").unwrap(), r#"{"_id": 1}"#).unwrap();
        insert(&db, &orders(&db), r#"{"_id": 2}"#).unwrap();
        told.wait();
        db.close().unwrap();
        let (first, end) = waiting.join().unwrap();
        assert!(first.unwrap().contains(r#""documentKey":{"_id":2}"#));
        assert_eq!(end, ErrorKind::ShuttingDown);
    });
}

/// Writers need room more than streams need history.
#[test]
fn on_a_full_disk_what_is_kept_for_streams_goes_first() {
    let memory = MemoryStorage::new();
    let storage = FaultyStorage::new(Arc::new(memory.clone()), 1);
    let open = || {
        let clock = Arc::new(ManualClock::new(1_000_000));
        Database::open_on(Arc::new(storage.clone()) as Arc<dyn Storage>, clock, small())
    };
    let db = open().unwrap();
    let token = db.watch(server()).unwrap().resume_token();
    for round in 0..4 {
        fill(&db, round * 100);
    }
    assert!(db.stats().change_log_bytes > 128 << 10, "{}", db.stats().change_log_bytes);
    let used: u64 = memory.list().unwrap().iter().map(|(_, bytes)| bytes).sum();
    storage.set(Faults { byte_budget: Some(used + (8 << 10)), ..Faults::default() });
    let text = |id: i64| format!(r#"{{"_id": {id}, "text": "{}"}}"#, "x".repeat(900));
    let mut refused = 0;
    for id in 1000..1120 {
        if let Err(error) = insert(&db, &orders(&db), &text(id)) {
            assert_eq!(error.kind(), ErrorKind::OutOfDiskSpace, "{error}");
            refused += 1;
            // What the sealer does in the background.
            let _ = db.seal();
            insert(&db, &orders(&db), &text(id)).unwrap();
        }
    }
    assert!((1..3).contains(&refused), "{refused}");
    let watch = |db: &Database| db.watch(ChangeRequest { since: Some(token.clone()), ..server() });
    assert_eq!(watch(&db).unwrap_err().kind(), ErrorKind::HistoryLost);
    drop(db);
    storage.set(Faults::default());
    let db = open().unwrap();
    assert_eq!(orders(&db).count(filter("{}"), 0, None, None).unwrap(), 4 * 60 + 120);
    assert_eq!(watch(&db).unwrap_err().kind(), ErrorKind::HistoryLost);
    drop(db);
    let report = check_on(&(Arc::new(memory) as Arc<dyn Storage>)).unwrap();
    assert!(report.is_whole(), "{:?}", report.damage);
}
