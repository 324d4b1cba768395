//! The stream replayed into an empty map gives the collection: under random operations, with resumes at random tokens, over
//! restarts, seals, compactions and power cuts.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use common::{Chance, Model, Op, contents, filter, open, print, small, update};
use quarrydb::io::MemoryStorage;
use quarrydb::{
    ChangeRequest, ChangeStream, Database, ErrorKind, FullDocument, Options, Result, UpdateRequest, WriteOptions,
};
use serde_json::Value;

/// What a consumer has made of the events so far.
#[derive(Clone, Debug, Default)]
struct Consumer {
    documents: BTreeMap<i64, Value>,
    token: Option<String>,
}

impl Consumer {
    fn request(&self) -> ChangeRequest {
        let (db, full_document) = (Some("test".to_owned()), FullDocument::WhenAvailable);
        ChangeRequest { db, since: self.token.clone(), full_document, ..ChangeRequest::default() }
    }

    fn take(&mut self, text: &str, token: String) {
        let event: Value = serde_json::from_str(text).unwrap();
        self.token = Some(token);
        if event["ns"]["coll"] != "stream" {
            return;
        }
        let id = || event["documentKey"]["_id"].as_i64().unwrap();
        let whole = || event["fullDocument"].clone();
        match event["operationType"].as_str().unwrap() {
            "insert" => assert!(self.documents.insert(id(), whole()).is_none(), "inserted twice: {text}"),
            "replace" => assert!(self.documents.insert(id(), whole()).is_some(), "replaced and never told of: {text}"),
            "update" => {
                let document = self.documents.get_mut(&id()).unwrap_or_else(|| panic!("never told of: {text}"));
                let told = &event["updateDescription"];
                let fields = document.as_object_mut().unwrap();
                for name in told["removedFields"].as_array().unwrap() {
                    fields.remove(name.as_str().unwrap()).unwrap();
                }
                for (name, value) in told["updatedFields"].as_object().unwrap() {
                    fields.insert(name.clone(), value.clone());
                }
                assert_eq!(*document, whole(), "what is told to have changed makes another document: {text}");
            }
            "delete" => assert!(self.documents.remove(&id()).is_some(), "deleted and never told of: {text}"),
            "drop" => self.documents.clear(),
            other => panic!("{other}"),
        }
    }

    fn model(&self) -> Model {
        let number = |document: &Value, name: &str| document[name].as_i64().unwrap();
        self.documents.iter().map(|(&id, d)| (id, (number(d, "k"), number(d, "v")))).collect()
    }

    /// Takes up to `most` events.
    fn follow(&mut self, stream: &mut ChangeStream, most: u64, when: &str) {
        for _ in 0..most {
            match stream.next(Some(Duration::ZERO)) {
                Ok(Some(event)) => self.take(&print(event.document()), event.token),
                Ok(None) => {
                    self.token = Some(stream.resume_token());
                    return;
                }
                Err(error) => panic!("{when}: {error}"),
            }
        }
    }
}

/// One operation, in the collection that is watched or in another, or a drop.
fn step(chance: &mut Chance, db: &Database, write: &WriteOptions) -> Result<()> {
    let stream = db.collection("test", "stream")?;
    match chance.below(40) {
        0 => stream.drop(write)?.wait().map(|_| ()),
        1..=4 => Op::random(chance).write_to(db, &db.collection("test", "other")?, write),
        5..=7 => {
            let which = filter(&format!("{{\"k\": {}}}", chance.below(5)));
            let how = update(r#"{"$unset": {"extra": 1}}"#);
            stream.update(&UpdateRequest::many(which, how), write)?.wait().map(|_| ())
        }
        8..=10 => {
            let which = filter(&format!("{{\"_id\": {}}}", chance.below(60)));
            let how = update(&format!("{{\"$set\": {{\"extra\": {}}}}}", chance.below(9)));
            stream.update(&UpdateRequest::one(which, how), write)?.wait().map(|_| ())
        }
        11..=15 => {
            // A document that is there already ends a transaction, and then nothing of it is told.
            let ops: Vec<_> = (0..1 + chance.below(5)).map(|_| (Op::random(chance), chance.below(4) > 0)).collect();
            let done = db.transaction(|t| {
                let (stream, other) = (t.collection("test", "stream")?, t.collection("test", "other")?);
                ops.iter().try_for_each(|(op, here)| {
                    op.write_to(db, if *here { &stream } else { &other }, &WriteOptions::default())
                })
            });
            done.or_else(|error: quarrydb::Error| match error.kind() {
                ErrorKind::DuplicateKey | ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
        }
        _ => Op::random(chance).write_to(db, &stream, write),
    }
}

fn replay(seed: u64, steps: usize, options: impl Fn() -> Options) {
    let mut chance = Chance::new(seed);
    let mut storage = MemoryStorage::new();
    let mut db = open(&storage, options()).unwrap();
    let mut consumer = Consumer::default();
    let mut stream = db.watch(consumer.request()).unwrap();
    consumer.token = Some(stream.resume_token());
    for i in 0..steps {
        let when = format!("seed {seed}, step {i}");
        let write = WriteOptions { journal: Some(chance.below(4) > 0), ..WriteOptions::default() };
        step(&mut chance, &db, &write).unwrap_or_else(|e| panic!("{when}: {e}"));
        match chance.below(30) {
            0 => db.seal().unwrap(),
            1 => drop(db.collection("test", "stream").unwrap().compact(None).unwrap()),
            end @ 2..=3 => {
                // An orderly end, or a power cut.
                let left = storage.crash(chance.next());
                drop((stream, db));
                if end == 3 {
                    storage = left;
                }
                db = open(&storage, options()).unwrap_or_else(|e| panic!("{when}: {e}"));
                stream = db.watch(consumer.request()).unwrap_or_else(|e| panic!("{when}: {e}"));
            }
            // Another consumer goes on from where this one is.
            4 => stream = db.watch(consumer.request()).unwrap(),
            5..=20 => consumer.follow(&mut stream, 1 + chance.below(12), &when),
            _ => {}
        }
    }
    // All that is answered is made durable, and so may be told.
    db.collection("test", "last")
        .unwrap()
        .create(common::value("{}").view(), &WriteOptions { journal: Some(true), ..WriteOptions::default() })
        .unwrap()
        .wait()
        .unwrap();
    consumer.follow(&mut stream, u64::MAX, "at the end");
    assert_eq!(consumer.model(), contents(&db.collection("test", "stream").unwrap()), "seed {seed}");
}

#[test]
fn the_stream_replayed_gives_the_collection() {
    let seeds = if std::env::var("QUARRY_SOAK").is_ok() { 1..=400 } else { 1..=25 };
    for seed in seeds {
        replay(seed, 400, small);
        replay(seed + 10_000, 200, || Options { durability: common::interval(), ..small() });
    }
}

/// A power cut at any operation of the storage: what was told before it is there after it, and what is told after it is all
/// the rest.
#[test]
fn a_power_cut_at_any_operation_takes_back_nothing_that_was_told() {
    let run = |storage: &MemoryStorage, consumer: &mut Consumer, steps: usize| -> Result<()> {
        let db = open(storage, small())?;
        let mut chance = Chance::new(77);
        let mut stream = db.watch(consumer.request())?;
        consumer.token = Some(stream.resume_token());
        for i in 0..steps {
            step(&mut chance, &db, &WriteOptions::default())?;
            if i % 7 == 6 {
                db.seal()?;
            }
            if i % 3 == 2 {
                while let Some(event) = stream.next(Some(Duration::ZERO))? {
                    consumer.take(&print(event.document()), event.token);
                }
            }
        }
        Ok(())
    };
    let whole = MemoryStorage::new();
    run(&whole, &mut Consumer::default(), 40).unwrap();
    let total = whole.operations();
    let stride = if std::env::var("QUARRY_SOAK").is_ok() { 1 } else { 5 };
    for stop in (0..total).step_by(stride) {
        let storage = MemoryStorage::new();
        storage.stop_at(Some(stop));
        let mut consumer = Consumer::default();
        let _ = run(&storage, &mut consumer, 40);
        for leaving in [0, 3, u64::MAX] {
            let when = format!("stopped at {stop} of {total}, left as {leaving}");
            let mut consumer = consumer.clone();
            let left = storage.crash(leaving);
            let db = open(&left, small()).unwrap_or_else(|e| panic!("{when}: {e}"));
            if consumer.token.is_none() {
                continue;
            }
            let mut stream = db.watch(consumer.request()).unwrap_or_else(|e| panic!("{when}: {e}"));
            consumer.follow(&mut stream, u64::MAX, &when);
            assert_eq!(consumer.model(), contents(&db.collection("test", "stream").unwrap()), "{when}");
        }
    }
}
