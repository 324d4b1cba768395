//! What the engine's tests share: databases in memory, documents by number, a plain map as the model.
#![allow(
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "tests panic so that the line is known; not every test uses all"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use quarrydb::io::{ManualClock, MemoryStorage, Storage};
use quarrydb::{
    Collection, Database, DeleteRequest, Durability, FindRequest, InsertBatch, Options, Result, UpdateRequest,
    WriteOptions,
};
use quarrydb_jsonb::{JsonbBuf, parse};
use quarrydb_query::{Filter, ParseContext, Sort, Update};

/// Options under which everything happens after a few rows, and only when the test says so.
pub fn small() -> Options {
    Options {
        tail_rows_max: 7,
        segment_rows_max: 23,
        log_file_bytes: 16 << 10,
        log_bytes_max: 64 << 10,
        background: false,
        ..Options::default()
    }
}

pub fn open(storage: &MemoryStorage, options: Options) -> Result<Database> {
    Database::open_on(Arc::new(storage.clone()) as Arc<dyn Storage>, Arc::new(ManualClock::new(1_000_000)), options)
}

pub fn value(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap()
}

pub fn filter(text: &str) -> Filter {
    Filter::parse(value(text).view(), &ParseContext::new("filter")).unwrap()
}

pub fn update(text: &str) -> Update {
    Update::parse(value(text).view(), None, &ParseContext::new("update")).unwrap()
}

pub fn sort(text: &str) -> Sort {
    Sort::parse(value(text).view(), &ParseContext::new("sort")).unwrap()
}

/// Inserts a text's document; the error of that document as the error.
pub fn insert(db: &Database, collection: &Collection, text: &str) -> Result<()> {
    let mut batch = InsertBatch::new(db);
    batch.push_text(text.as_bytes()).unwrap();
    let mut outcome = collection.insert_batch(batch, true, &WriteOptions::default())?.wait()?;
    match outcome.errors.pop() {
        Some(failure) => Err(failure.error),
        None => Ok(()),
    }
}

/// All documents that match, printed, in the order of the answer.
pub fn find(collection: &Collection, text: &str) -> Vec<String> {
    let mut cursor = collection.find(FindRequest::new(filter(text))).unwrap();
    let mut found = Vec::new();
    while let Some(document) = cursor.next().unwrap() {
        found.push(print(document.view()));
    }
    found
}

pub fn print(value: quarrydb_jsonb::JsonbRef<'_>) -> String {
    let mut out = Vec::new();
    quarrydb_jsonb::print(value, quarrydb_jsonb::Style::Relaxed, &mut out);
    String::from_utf8(out).unwrap()
}

/// A generator of test data: xorshift64*, so that a seed says all.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// What a collection of `{_id, k, v}` documents should hold: from `_id` to (k, v).
pub type Model = BTreeMap<i64, (i64, i64)>;

/// One operation on both a collection and its model.
#[derive(Clone, Debug)]
pub enum Op {
    Insert(Vec<(i64, i64, i64)>),
    IncOne(i64),
    IncMany(i64),
    Upsert(i64, i64),
    Replace(i64, i64),
    DeleteOne(i64),
    DeleteMany(i64),
}

impl Op {
    pub fn random(chance: &mut Chance) -> Self {
        let id = chance.below(60) as i64;
        let k = chance.below(5) as i64;
        match chance.below(10) {
            0..=3 => {
                let count = 1 + chance.below(4);
                let document = |_| (chance.below(60) as i64, chance.below(5) as i64, chance.below(1000) as i64);
                Self::Insert((0..count).map(document).collect())
            }
            4 => Self::IncOne(id),
            5 => Self::IncMany(k),
            6 => Self::Upsert(id, k),
            7 => Self::Replace(id, k),
            8 => Self::DeleteOne(id),
            _ => Self::DeleteMany(k),
        }
    }

    /// What becomes of the model.
    pub fn on_model(&self, model: &mut Model) {
        match self {
            Self::Insert(documents) => {
                for &(id, k, v) in documents {
                    model.entry(id).or_insert((k, v));
                }
            }
            Self::IncOne(id) => {
                model.entry(*id).and_modify(|d| d.1 += 1);
            }
            Self::IncMany(k) => model.values_mut().filter(|d| d.0 == *k).for_each(|d| d.1 += 1),
            Self::Upsert(id, k) => {
                model.entry(*id).and_modify(|d| d.1 += 10).or_insert((*k, 10));
            }
            Self::Replace(id, k) => {
                model.entry(*id).and_modify(|d| *d = (*k, -1));
            }
            Self::DeleteOne(id) => {
                model.remove(id);
            }
            Self::DeleteMany(k) => model.retain(|_, d| d.0 != *k),
        }
    }

    /// The same on a collection.
    pub fn on_collection(&self, db: &Database, collection: &Collection) -> Result<()> {
        self.write_to(db, collection, &WriteOptions::default())
    }

    /// The same with a write's own options.
    pub fn write_to(&self, db: &Database, collection: &Collection, write: &WriteOptions) -> Result<()> {
        let id_is = |id: &i64| filter(&format!("{{\"_id\": {id}}}"));
        let k_is = |k: &i64| filter(&format!("{{\"k\": {k}}}"));
        match self {
            Self::Insert(documents) => {
                let mut batch = InsertBatch::new(db);
                for (id, k, v) in documents {
                    batch.push_text(format!("{{\"k\": {k}, \"_id\": {id}, \"v\": {v}}}").as_bytes()).unwrap();
                }
                collection.insert_batch(batch, false, write)?.wait()?;
            }
            Self::IncOne(id) => {
                let request = UpdateRequest::one(id_is(id), update(r#"{"$inc": {"v": 1}}"#));
                collection.update(&request, write)?.wait()?;
            }
            Self::IncMany(k) => {
                let request = UpdateRequest::many(k_is(k), update(r#"{"$inc": {"v": 1}}"#));
                collection.update(&request, write)?.wait()?;
            }
            Self::Upsert(id, k) => {
                let change = update(&format!("{{\"$inc\": {{\"v\": 10}}, \"$setOnInsert\": {{\"k\": {k}}}}}"));
                let mut request = UpdateRequest::one(id_is(id), change);
                request.upsert = true;
                collection.update(&request, write)?.wait()?;
            }
            Self::Replace(id, k) => {
                let replacement = value(&format!("{{\"k\": {k}, \"v\": -1}}"));
                let change = Update::parse_replacement(replacement.view(), &ParseContext::new("replacement")).unwrap();
                collection.update(&UpdateRequest::one(id_is(id), change), write)?.wait()?;
            }
            Self::DeleteOne(id) => {
                collection.delete(&DeleteRequest::one(id_is(id)), write)?.wait()?;
            }
            Self::DeleteMany(k) => {
                collection.delete(&DeleteRequest::many(k_is(k)), write)?.wait()?;
            }
        }
        Ok(())
    }
}

/// Reads a collection whole and gives it as a model; each document once.
pub fn contents(collection: &Collection) -> Model {
    let mut model = Model::new();
    let mut cursor = collection.find(FindRequest::new(filter("{}"))).unwrap();
    while let Some(document) = cursor.next().unwrap() {
        let number = |name: &str| document.view().get(name).unwrap().as_i64().unwrap();
        let before = model.insert(number("_id"), (number("k"), number("v")));
        assert!(before.is_none(), "_id {} is found twice", number("_id"));
    }
    model
}

/// Every way of asking gives what the model says.
pub fn check(collection: &Collection, model: &Model, when: &str) {
    assert_eq!(&contents(collection), model, "{when}: find");
    let count = |text: &str| collection.count(filter(text), 0, None, None).unwrap() as usize;
    assert_eq!(count("{}"), model.len(), "{when}: count of all");
    for k in 0..5 {
        let expected = model.values().filter(|d| d.0 == k).count();
        assert_eq!(count(&format!("{{\"k\": {k}}}")), expected, "{when}: count of k = {k}");
    }
    for id in 0..60 {
        let found = collection.get(value(&id.to_string()).view()).unwrap();
        let found =
            found.map(|d| (d.view().get("k").unwrap().as_i64().unwrap(), d.view().get("v").unwrap().as_i64().unwrap()));
        assert_eq!(found.as_ref(), model.get(&id), "{when}: get {id}");
    }
    let mut request = FindRequest::new(filter("{}"));
    request.sort = Some(sort(r#"{"v": -1, "_id": 1}"#));
    request.skip = 3;
    request.limit = Some(10);
    let mut cursor = collection.find(request).unwrap();
    let mut sorted = Vec::new();
    while let Some(document) = cursor.next().unwrap() {
        sorted.push(document.view().get("_id").unwrap().as_i64().unwrap());
    }
    let mut expected: Vec<_> = model.iter().map(|(&id, &(_, v))| (-v, id)).collect();
    expected.sort_unstable();
    let expected: Vec<_> = expected.into_iter().map(|(_, id)| id).skip(3).take(10).collect();
    assert_eq!(sorted, expected, "{when}: sorted");
}

pub fn interval() -> Durability {
    Durability::Interval(std::time::Duration::from_secs(3600))
}
