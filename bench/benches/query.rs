//! The language on one document of 17 fields: matching, updating, sorting, projecting; and parsing large filters.
#![allow(clippy::unwrap_used, reason = "a bench stops where it stands")]

use quarrydb_bench::micro::{Table, seconds};
use quarrydb_jsonb::{Builder, JsonbBuf, parse};
use quarrydb_query::{ApplyContext, Filter, ParseContext, Projection, Sort, Update};
use std::hint::black_box;

const COUNT: usize = 1_000_000;
const DOCUMENT: &str = r#"{"_id": {"$oid": "65a1b2c3d4e5f60718293a4b"}, "first": "Anna", "last": "Miller", "age": 41,
    "salary": 55000.5, "department": "sales", "city": "Bern", "zip": "3000", "tags": ["a", "b", "c"], "active": true,
    "hired": {"$date": "2020-01-01T00:00:00Z"}, "address": {"street": "X", "no": 5, "geo": {"lat": 1.5, "lon": 2.5}},
    "score": 7, "level": 3, "manager": null, "team": "red", "notes": "some text here"}"#;

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap()
}

fn filter(text: &str) -> Filter {
    Filter::parse(json(text).view(), &ParseContext::new("filter")).unwrap()
}

fn repeated(mut work: impl FnMut()) -> f64 {
    seconds(|| (0..COUNT).for_each(|_| work()))
}

fn matching(table: &Table, document: &JsonbBuf) {
    for (name, goal, text) in [
        ("two predicates", "<= 80", r#"{"department": "sales", "age": {"$gt": 30}}"#),
        ("two that miss at the second", "<= 80", r#"{"department": "sales", "city": "Basel"}"#),
        ("a range and $in", "", r#"{"age": {"$gte": 30, "$lt": 50}, "department": {"$in": ["sales", "x"]}}"#),
        ("a path of three", "", r#"{"address.geo.lat": 1.5}"#),
        ("an element of an array", "", r#"{"tags": "c"}"#),
        ("a regular expression", "", r#"{"notes": {"$regex": "te[xy]t"}}"#),
        ("$or of two", "", r#"{"$or": [{"age": 1}, {"department": "sales"}]}"#),
    ] {
        let filter = filter(text);
        table.alone(&format!("match, {name}"), COUNT, goal, || {
            repeated(|| {
                black_box(filter.matches(black_box(document.view())).unwrap());
            })
        });
    }
}

fn writing(table: &Table, document: &JsonbBuf) {
    let everything = Filter::everything();
    for (name, goal, text) in [
        ("$inc by path", "<= 250", r#"{"$inc": {"address.no": 1}}"#),
        ("$set of two", "", r#"{"$set": {"team": "blue", "level": 4}}"#),
    ] {
        let update = Update::parse(json(text).view(), None, &ParseContext::new("update")).unwrap();
        let context = ApplyContext::at(0);
        table.alone(&format!("update, {name}"), COUNT, goal, || {
            repeated(|| {
                black_box(update.apply(black_box(document.view()), &everything, &context).unwrap());
            })
        });
    }
}

fn shaping(table: &Table, document: &JsonbBuf) {
    let sort = Sort::parse(json(r#"{"age": 1, "last": -1}"#).view(), &ParseContext::new("sort")).unwrap();
    let mut key = Vec::new();
    table.alone("sort key of two", COUNT, "", || {
        repeated(|| {
            key.clear();
            sort.key(black_box(document.view()), &mut key).unwrap();
        })
    });
    let projection = json(r#"{"age": 1, "last": 1, "city": 1}"#);
    let projection = Projection::parse(projection.view(), &ParseContext::new("projection")).unwrap();
    let mut out = Builder::new();
    table.alone("project three", COUNT, "", || {
        repeated(|| {
            out.rewind(0);
            projection.apply(black_box(document.view()), &mut out).unwrap();
        })
    });
}

fn parsing(table: &Table) {
    let values: Vec<String> = (0..COUNT).map(|i| format!(r#""key {i}""#)).collect();
    let body = json(&format!(r#"{{"a": {{"$in": [{}]}}}}"#, values.join(",")));
    table.alone("parse $in of 1M strings, each", COUNT, "", || {
        seconds(|| {
            black_box(Filter::parse(body.view(), &ParseContext::new("filter")).unwrap());
        })
    });
}

fn main() {
    let document = json(DOCUMENT);
    let table = Table::begin("one document");
    matching(&table, &document);
    writing(&table, &document);
    shaping(&table, &document);
    parsing(&table);
}
