//! Every way to an answer gives the answer of the plain one: the filter asked of each document.
//!
//! Random collections of every type, nested and mixed, with updates and deletes between; random filters, counts, distincts
//! and sorts; asked of tails with and without columns, of segments, after compaction and reopening, with declared indexes. A seed says all; `QUARRY_SEEDS` and
//! `QUARRY_SOAK` ask for more of them.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::{Chance, filter, open, print, sort, update, value};
use quarrydb::io::MemoryStorage;
use quarrydb::{
    Collection, Database, DeleteRequest, FindRequest, IndexDefinition, InsertBatch, Options, UpdateRequest,
    WriteOptions,
};
use quarrydb_jsonb::JsonbBuf;
use quarrydb_query::{Distinct, Filter, ParseContext};

const NAMES: [&str; 6] = ["a", "b", "c", "0", "1", "k"];

fn pick<'t>(chance: &mut Chance, from: &[&'t str]) -> &'t str {
    from[chance.below(from.len() as u64) as usize]
}

fn scalar(chance: &mut Chance) -> String {
    let long = format!("\"{}\"", "l".repeat(255 + chance.below(3) as usize));
    let texts = [r#""""#, r#""x""#, r#""y""#, r#""xy""#, r#""1""#, &long];
    let numbers = [
        "0",
        "1",
        "2",
        "3",
        "1.0",
        "1.5",
        "-1",
        "9007199254740993",
        "9007199254740992.0",
        "-0.0",
        r#"{"$numberLong": "1"}"#,
        r#"{"$numberLong": "9223372036854775807"}"#,
        r#"{"$numberDouble": "NaN"}"#,
        r#"{"$numberDouble": "Infinity"}"#,
        r#"{"$numberDouble": "-Infinity"}"#,
        r#"{"$numberDecimal": "1"}"#,
        r#"{"$numberDecimal": "1.50"}"#,
        r#"{"$numberDecimal": "NaN"}"#,
        r#"{"$numberDecimal": "9007199254740993"}"#,
        "1e300",
        "9223372036854775808.0",
    ];
    let others = [
        "true",
        "false",
        "null",
        "null",
        r#"{"$date": {"$numberLong": "5"}}"#,
        r#"{"$date": {"$numberLong": "-5"}}"#,
        r#"{"$oid": "0123456789abcdef01234567"}"#,
        r#"{"$oid": "ffffffffffffffffffffffff"}"#,
        r#"{"$binary": {"base64": "AQ==", "subType": "00"}}"#,
        r#"{"$timestamp": {"t": 1, "i": 2}}"#,
        r#"{"$regularExpression": {"pattern": "x", "options": ""}}"#,
        r#"{"$minKey": 1}"#,
        r#"{"$maxKey": 1}"#,
    ];
    match chance.below(8) {
        0..=3 => pick(chance, &numbers).to_owned(),
        4 | 5 => pick(chance, &texts).to_owned(),
        _ => pick(chance, &others).to_owned(),
    }
}

fn any_value(chance: &mut Chance, depth: u64) -> String {
    match chance.below(10) {
        0 | 1 if depth > 0 => {
            let elements: Vec<String> = (0..chance.below(4)).map(|_| any_value(chance, depth - 1)).collect();
            format!("[{}]", elements.join(","))
        }
        2 | 3 if depth > 0 => object(chance, depth - 1),
        _ => scalar(chance),
    }
}

fn object(chance: &mut Chance, depth: u64) -> String {
    let mut fields = Vec::new();
    for name in NAMES.iter().chain(&["a.b", "k9"]) {
        if chance.below(3) == 0 {
            fields.push(format!("{name:?}: {}", any_value(chance, depth)));
        }
    }
    format!("{{{}}}", fields.join(","))
}

fn document(chance: &mut Chance, id: u64, regular: bool) -> String {
    let mut fields = vec![format!("\"_id\": {id}")];
    for name in ["a", "b", "c"] {
        match chance.below(if regular { 12 } else { 4 }) {
            0 => {}
            1 if regular => fields.push(format!("{name:?}: null")),
            _ if regular => fields.push(format!("{name:?}: {}", chance.below(4))),
            _ => fields.push(format!("{name:?}: {}", any_value(chance, 3))),
        }
    }
    if chance.below(8) == 0 {
        fields.push(format!("\"k{}\": {}", chance.below(30), scalar(chance)));
    }
    format!("{{{}}}", fields.join(","))
}

fn path(chance: &mut Chance) -> String {
    let mut path = pick(chance, &["a", "b", "c", "a", "b", "k3", "_id"]).to_owned();
    while chance.below(3) == 0 {
        path.push('.');
        path.push_str(pick(chance, &NAMES));
    }
    path
}

fn operators(chance: &mut Chance, depth: u64) -> String {
    let list = |chance: &mut Chance| {
        let all: Vec<String> = (0..chance.below(5)).map(|_| any_value(chance, 1)).collect();
        format!("[{}]", all.join(","))
    };
    match chance.below(17) {
        0..=3 => format!("{{\"{}\": {}}}", pick(chance, &["$gt", "$gte", "$lt", "$lte"]), any_value(chance, 1)),
        4 => format!("{{\"$gte\": {0}, \"$lt\": {1}}}", scalar(chance), scalar(chance)),
        5 => format!("{{\"$ne\": {}}}", any_value(chance, 2)),
        6 => format!("{{\"$in\": {}}}", list(chance)),
        7 => format!("{{\"$nin\": {}}}", list(chance)),
        8 => format!("{{\"$exists\": {}}}", pick(chance, &["true", "false"])),
        9 => {
            let types = [
                "\"number\"",
                "\"string\"",
                "\"array\"",
                "\"object\"",
                "\"null\"",
                "\"int\"",
                "\"double\"",
                "\"bool\"",
                "\"decimal\"",
                "\"date\"",
                "\"regex\"",
                "\"binData\"",
            ];
            format!("{{\"$type\": {}}}", pick(chance, &types))
        }
        10 => format!("{{\"$size\": {}}}", chance.below(4)),
        11 => format!("{{\"$mod\": [2, {}]}}", chance.below(2)),
        12 => format!("{{\"$regex\": \"{}\"}}", pick(chance, &["x", "^x", "y$", "l{250}", "^$"])),
        13 => format!("{{\"$bitsAllSet\": {}}}", chance.below(4)),
        14 if depth > 0 => format!("{{\"$elemMatch\": {}}}", operators(chance, depth - 1)),
        15 if depth > 0 => format!("{{\"$elemMatch\": {}}}", question(chance, depth - 1)),
        16 if depth > 0 => format!("{{\"$not\": {}}}", operators(chance, depth - 1)),
        _ => format!("{{\"$eq\": {}}}", any_value(chance, 2)),
    }
}

fn question(chance: &mut Chance, depth: u64) -> String {
    let all = |chance: &mut Chance| {
        let all: Vec<String> = (0..1 + chance.below(3)).map(|_| question(chance, depth - 1)).collect();
        all.join(",")
    };
    match chance.below(8) {
        0 if depth > 0 => format!("{{\"$or\": [{}]}}", all(chance)),
        1 if depth > 0 => format!("{{\"$and\": [{}]}}", all(chance)),
        2 if depth > 0 => format!("{{\"$nor\": [{}]}}", all(chance)),
        3 => format!("{{\"{}\": {}}}", path(chance), any_value(chance, 2)),
        _ => format!("{{\"{}\": {}}}", path(chance), operators(chance, 2)),
    }
}

/// A sort that no document of a collection refuses: two paths may meet arrays that are not one, unless it is `regular`.
fn order(chance: &mut Chance, regular: bool) -> String {
    if regular && chance.below(2) == 0 {
        // Those of declared indexes, forwards and backwards, whole and in part.
        let whole =
            [r#"{"a": 1, "b": -1}"#, r#"{"a": -1, "b": 1}"#, r#"{"c": -1, "_id": 1}"#, r#"{"c": 1, "_id": -1}"#];
        let part = [r#"{"a": 1}"#, r#"{"a": -1}"#, r#"{"b": 1}"#, r#"{"b": -1}"#, r#"{"c": 1}"#, r#"{"c": -1}"#];
        return if chance.below(2) == 0 { pick(chance, &whole) } else { pick(chance, &part) }.to_owned();
    }
    let (first, way) = (path(chance), pick(chance, &["1", "-1"]));
    match chance.below(3) {
        0 => format!("{{{first:?}: {way}}}"),
        1 => format!("{{\"_id\": {way}}}"),
        _ if first != "_id" => format!("{{{first:?}: {way}, \"_id\": {}}}", pick(chance, &["1", "-1"])),
        _ => format!("{{\"k3\": {way}, \"_id\": {}}}", pick(chance, &["1", "-1"])),
    }
}

/// A question that the language allows.
fn parsed_question(chance: &mut Chance) -> String {
    loop {
        let text = question(chance, 2);
        if Filter::parse(value(&text).view(), &ParseContext::new("filter")).is_ok() {
            return text;
        }
    }
}

/// A question's answer by each of its forms, as text.
#[derive(Debug, PartialEq)]
struct Answers {
    found: Vec<String>,
    count: u64,
    distinct: Vec<String>,
    sorted: Vec<String>,
}

/// What of a sorted answer is asked for.
#[derive(Clone, Copy, Debug)]
struct Piece {
    skip: u64,
    limit: Option<u64>,
}

/// The plain way: each document is asked.
fn plainly(documents: &[JsonbBuf], question: &str, at: &str, order: &str, some: Piece) -> Answers {
    let filter = filter(question);
    let matching: Vec<&JsonbBuf> = documents.iter().filter(|d| filter.matches(d.view()).unwrap()).collect();
    let mut distinct = Distinct::parse(value(&format!("{at:?}")).view(), &ParseContext::new("key")).unwrap();
    matching.iter().for_each(|d| distinct.add(d.view()));
    let sort = sort(order);
    let mut keyed: Vec<(Vec<u8>, &JsonbBuf)> = Vec::new();
    for document in &matching {
        let mut key = Vec::new();
        sort.key(document.view(), &mut key).unwrap();
        keyed.push((key, document));
    }
    keyed.sort_by(|a, b| a.0.cmp(&b.0));
    Answers {
        found: matching.iter().map(|d| print(d.view())).collect(),
        count: matching.len() as u64,
        distinct: sorted(distinct.values().map(print)),
        sorted: keyed
            .iter()
            .skip(some.skip as usize)
            .take(some.limit.map_or(usize::MAX, |limit| limit as usize))
            .map(|(_, d)| print(d.view()))
            .collect(),
    }
}

fn sorted(values: impl Iterator<Item = String>) -> Vec<String> {
    let mut values: Vec<String> = values.collect();
    values.sort();
    values
}

fn asked(collection: &Collection, question: &str, at: &str, order: &str, some: Piece) -> Answers {
    let run = |request: FindRequest| {
        let mut cursor = collection.find(request).unwrap();
        std::iter::from_fn(move || cursor.next().unwrap().map(|d| print(d.view()))).collect::<Vec<_>>()
    };
    let mut request = FindRequest::new(filter(question));
    request.sort = Some(sort(order));
    (request.skip, request.limit) = (some.skip, some.limit);
    let mut distinct = Distinct::parse(value(&format!("{at:?}")).view(), &ParseContext::new("key")).unwrap();
    collection.distinct(&mut distinct, filter(question), None).unwrap();
    let count = collection.count(filter(question), 0, None, None).unwrap();
    if let Some(at_hand) = collection.count_at_hand(&filter(question), 0, None).unwrap() {
        assert_eq!(at_hand, count, "{question} at hand");
    }
    Answers {
        found: run(FindRequest::new(filter(question))),
        count,
        distinct: sorted(distinct.values().map(print)),
        sorted: run(request),
    }
}

fn everything(collection: &Collection) -> Vec<JsonbBuf> {
    let mut cursor = collection.find(FindRequest::new(filter("{}"))).unwrap();
    let mut all = Vec::new();
    while let Some(document) = cursor.next().unwrap() {
        all.push(JsonbBuf::from_valid(document.view().as_bytes().to_vec()));
    }
    all
}

fn change(chance: &mut Chance, db: &Database, collection: &Collection, next: &mut u64, regular: bool) {
    let write = WriteOptions::default();
    match chance.below(6) {
        0..=3 => {
            let mut batch = InsertBatch::new(db);
            for _ in 0..chance.below(120) {
                let text = document(chance, *next, regular);
                *next += 1;
                batch.push_text(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"));
            }
            collection.insert_batch(batch, false, &write).unwrap().wait().unwrap();
        }
        4 => {
            let chosen = filter(&format!("{{\"_id\": {{\"$mod\": [7, {}]}}}}", chance.below(7)));
            let change = update(&format!("{{\"$set\": {{\"b\": {}}}}}", any_value(chance, 2)));
            // A compound index refuses documents with two arrays, and then nothing is changed.
            if let Ok(pending) = collection.update(&UpdateRequest::many(chosen, change), &write) {
                pending.wait().unwrap();
            }
        }
        _ => {
            let chosen = filter(&format!("{{\"_id\": {{\"$mod\": [11, {}]}}}}", chance.below(11)));
            collection.delete(&DeleteRequest::many(chosen), &write).unwrap().wait().unwrap();
        }
    }
}

const INDEXES: [&str; 9] = [
    r#"{"keys": {"a": 1}}"#,
    r#"{"keys": {"b": -1}}"#,
    r#"{"keys": {"a.b": 1}}"#,
    r#"{"keys": {"b.0": 1}}"#,
    r#"{"keys": {"c": 1}, "sparse": true}"#,
    r#"{"keys": {"b": 1}, "partialFilterExpression": {"a": {"$exists": true}}, "name": "part"}"#,
    r#"{"keys": {"a": 1, "b": -1}}"#,
    r#"{"keys": {"c": -1, "_id": 1}}"#,
    r#"{"keys": {"k3": 1}}"#,
];

/// Declares an index, or drops one that is there.
fn declare(chance: &mut Chance, collection: &Collection) {
    let write = WriteOptions::default();
    if let Some(index) = collection.indexes().first().filter(|_| chance.below(3) == 0) {
        collection.drop_index(index.definition.name(), &write).unwrap().wait().unwrap();
    }
    let definition = IndexDefinition::from_object(value(pick(chance, &INDEXES)).view()).unwrap();
    match collection.create_indexes(&[definition], &write) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.code(), Some(171), "two arrays in one document alone are no entry: {error}"),
    }
}

fn options(chance: &mut Chance) -> Options {
    Options { tail_rows_max: 40 + chance.below(400) as u32, background: false, ..Options::default() }
}

/// One history; how many answers were compared.
fn history(seed: u64, questions: u64) -> u64 {
    let mut chance = Chance::new(seed);
    let storage = MemoryStorage::new();
    let regular = chance.below(3) == 0;
    let mut options = options(&mut chance);
    let mut db = open(&storage, options.clone()).unwrap();
    let mut next = 0;
    let mut compared = 0;
    for _ in 0..4 {
        let mut collection = db.collection("test", "all").unwrap();
        for _ in 0..1 + chance.below(4) {
            change(&mut chance, &db, &collection, &mut next, regular);
            if chance.below(3) == 0 {
                declare(&mut chance, &collection);
            }
        }
        match chance.below(5) {
            0 => {}
            1 => db.seal().unwrap(),
            2 => drop(collection.compact(None).unwrap()),
            _ => {
                drop(collection);
                db.close().unwrap();
                drop(db);
                options.columns = chance.below(4) != 0;
                db = open(&storage, options.clone()).unwrap();
                collection = db.collection("test", "all").unwrap();
            }
        }
        let documents = everything(&collection);
        for _ in 0..questions {
            let text = match chance.below(4) {
                // Sorts of everything, and behind one value of an index, are walked through an index where there is one.
                0 => "{}".to_owned(),
                1 => format!("{{\"{}\": {}}}", pick(&mut chance, &["a", "c"]), chance.below(4)),
                _ => parsed_question(&mut chance),
            };
            let (at, order) = (path(&mut chance), order(&mut chance, regular));
            let limit = [None, Some(1), Some(5), Some(40)][chance.below(4) as usize];
            let some = Piece { skip: chance.below(2) * chance.below(4), limit };
            let expected = plainly(&documents, &text, &at, &order, some);
            // Twice: the second time a tail's rows have columns that had none.
            for time in 0..2 {
                let answers = asked(&collection, &text, &at, &order, some);
                assert!(
                    answers == expected,
                    "seed {seed}, time {time}, columns {}, indexes {:?}: {text}, distinct {at}, sort {order} {some:?}\n {answers:#?}\n plainly {expected:#?}",
                    options.columns,
                    collection.indexes().iter().map(|i| i.definition.name().to_owned()).collect::<Vec<_>>()
                );
                compared += 4;
            }
        }
    }
    compared
}

#[test]
fn every_way_gives_the_plain_answer() {
    let soak = std::env::var_os("QUARRY_SOAK").is_some();
    let (seeds, questions) = if soak { (3000, 60) } else { (24, 25) };
    let from: u64 = std::env::var("QUARRY_SEEDS").ok().and_then(|from| from.parse().ok()).unwrap_or(1);
    let compared: u64 = (from..from + seeds).map(|seed| history(seed, questions)).sum();
    assert!(compared >= seeds * questions * 4 * 8, "{compared} answers were compared");
}
