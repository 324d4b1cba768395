//! What an update is told to have changed. The rows are what MongoDB's manual documents of `updateDescription`; and
//! whatever an update does, what it is told to have changed makes the new document of the old one.

use crate::{json, parse_update, text};
use quarrydb_query::{ApplyContext, Filter, ParseContext, Update};
use serde_json::{Map, Value};

/// Each row: an update, array filters, the document, what is told of it.
fn check(rows: &[(&str, Option<&str>, &str, &str)]) {
    let mut wrong = Vec::new();
    for (update, filters, document, expected) in rows {
        let document = json(document);
        let update_of_row = parse_update(update, *filters).unwrap();
        let filter = crate::filter(r#"{"v": {"$gte": 2}}"#);
        let new = update_of_row.apply(document.view(), &filter, &ApplyContext::at(0)).unwrap().expect("a change");
        let told = text(&update_of_row.describe(document.view(), new.view()).unwrap());
        if told != text(&json(expected)) {
            wrong.push(format!("{update}\n   told {told}\n   want {}", text(&json(expected))));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn operators_tell_their_paths() {
    check(&[
        (
            r#"{"$set": {"a": 2, "b.c": 3, "n.m": 4}, "$unset": {"x": 1, "d.e": 1}}"#,
            None,
            r#"{"_id": 1, "a": 1, "b": {"c": 1, "k": 1}, "d": {"e": 1, "f": 1}, "x": 1}"#,
            r#"{"updatedFields": {"a": 2, "b.c": 3, "n": {"m": 4}}, "removedFields": ["x", "d.e"], "truncatedArrays": []}"#,
        ),
        // A path that was set is told whole, whatever stood there.
        (
            r#"{"$set": {"a": {"b": 1, "c": 2}}}"#,
            None,
            r#"{"_id": 1, "a": {"b": 1, "c": 1}}"#,
            r#"{"updatedFields": {"a": {"b": 1, "c": 2}}, "removedFields": [], "truncatedArrays": []}"#,
        ),
        (
            r#"{"$push": {"v": {"$each": [4, 5]}}}"#,
            None,
            r#"{"_id": 1, "v": [1, 2, 3]}"#,
            r#"{"updatedFields": {"v.3": 4, "v.4": 5}, "removedFields": [], "truncatedArrays": []}"#,
        ),
        (
            r#"{"$push": {"v": {"$each": [0], "$position": 0}}}"#,
            None,
            r#"{"_id": 1, "v": [1, 2]}"#,
            r#"{"updatedFields": {"v": [0, 1, 2]}, "removedFields": [], "truncatedArrays": []}"#,
        ),
        // Operators tell a shorter array whole.
        (
            r#"{"$pop": {"v": 1}}"#,
            None,
            r#"{"_id": 1, "v": [1, 2, 3]}"#,
            r#"{"updatedFields": {"v": [1, 2]}, "removedFields": [], "truncatedArrays": []}"#,
        ),
        (
            r#"{"$inc": {"v.$": 1}}"#,
            None,
            r#"{"_id": 1, "v": [1, 2, 3]}"#,
            r#"{"updatedFields": {"v.1": 3}, "removedFields": [], "truncatedArrays": []}"#,
        ),
        (
            r#"{"$set": {"g.$[e].mean": 100}}"#,
            Some(r#"[{"e.grade": {"$gte": 85}}]"#),
            r#"{"_id": 1, "g": [{"grade": 80, "mean": 75}, {"grade": 85, "mean": 90}, {"grade": 90, "mean": 85}]}"#,
            r#"{"updatedFields": {"g.1.mean": 100, "g.2.mean": 100}, "removedFields": [], "truncatedArrays": []}"#,
        ),
        (
            r#"{"$rename": {"a": "b"}}"#,
            None,
            r#"{"_id": 1, "a": 5}"#,
            r#"{"updatedFields": {"b": 5}, "removedFields": ["a"], "truncatedArrays": []}"#,
        ),
    ]);
}

#[test]
fn pipelines_tell_what_differs() {
    check(&[
        (
            r#"[{"$set": {"v": {"$slice": ["$v", 2]}, "n": {"$add": ["$n", 1]}}}, {"$unset": "x"}]"#,
            None,
            r#"{"_id": 1, "v": ["one of some length", "two", "three"], "n": 1, "x": 1}"#,
            r#"{"updatedFields": {"n": 2}, "removedFields": ["x"], "truncatedArrays": [{"field": "v", "newSize": 2}]}"#,
        ),
        (
            r#"[{"$set": {"a.b": 2}}]"#,
            None,
            r#"{"_id": 1, "a": {"b": 1, "c": "a long text beside it"}}"#,
            r#"{"updatedFields": {"a.b": 2}, "removedFields": [], "truncatedArrays": []}"#,
        ),
        (
            r#"[{"$replaceWith": {"_id": 1, "b": "$b", "a": "$a"}}]"#,
            None,
            r#"{"_id": 1, "a": 1, "b": 2}"#,
            r#"{"updatedFields": {"a": 1}, "removedFields": [], "truncatedArrays": []}"#,
        ),
    ]);
    let replacement = Update::parse_replacement(json("{}").view(), &ParseContext::new("replacement")).unwrap();
    assert!(replacement.describe(json("{}").view(), json("{}").view()).is_none());
}

/// A name with a dot in it may read like a path; then nothing is told twice, and no path is told that means another.
#[test]
fn names_with_dots_are_told_by_top_level_fields() {
    check(&[(
        r#"[{"$replaceWith": {"$setField": {"field": "a.b", "input": {"_id": 1, "a": {"b": 2, "c": "some longer text"}}, "value": 3}}}]"#,
        None,
        r#"{"_id": 1, "a": {"b": 1, "c": "some longer text"}}"#,
        r#"{"updatedFields": {"a": {"b": 2, "c": "some longer text"}, "a.b": 3}, "removedFields": [], "truncatedArrays": []}"#,
    )]);
}

fn value(document: &quarrydb_jsonb::JsonbBuf) -> Value {
    serde_json::from_str(&text(document)).unwrap()
}

fn at<'v>(document: &'v mut Value, path: &[&str]) -> &'v mut Value {
    path.iter().fold(document, |here, part| match here {
        Value::Array(array) => &mut array[part.parse::<usize>().unwrap()],
        other => other.get_mut(*part).unwrap(),
    })
}

/// Makes of a document what a description says, as a consumer would.
pub(crate) fn replay(document: &mut Value, told: &Value) {
    for entry in told["truncatedArrays"].as_array().unwrap() {
        let path: Vec<_> = entry["field"].as_str().unwrap().split('.').collect();
        let size = entry["newSize"]["$numberInt"].as_str().unwrap().parse().unwrap();
        at(document, &path).as_array_mut().unwrap().truncate(size);
    }
    for path in told["removedFields"].as_array().unwrap() {
        let path: Vec<_> = path.as_str().unwrap().split('.').collect();
        let (last, before) = path.split_last().unwrap();
        at(document, before).as_object_mut().unwrap().remove(*last).unwrap();
    }
    for (path, new) in told["updatedFields"].as_object().unwrap() {
        let path: Vec<_> = path.split('.').collect();
        let (last, before) = path.split_last().unwrap();
        match at(document, before) {
            Value::Array(array) => {
                let position: usize = last.parse().unwrap();
                array.resize((position + 1).max(array.len()), Value::Null);
                array[position] = new.clone();
            }
            other => {
                let _: Option<Value> =
                    other.as_object_mut().map(|o: &mut Map<_, _>| o.insert((*last).to_owned(), new.clone())).unwrap();
            }
        }
    }
}

/// Asked of random updates in `random.rs`.
pub(crate) fn holds(update: &Update, before: &quarrydb_jsonb::JsonbBuf, after: &quarrydb_jsonb::JsonbBuf, what: &str) {
    let told = update.describe(before.view(), after.view()).expect("no replacement");
    let mut replayed = value(before);
    replay(&mut replayed, &value(&told));
    assert_eq!(replayed, value(after), "{what}: {} became {}, told {}", text(before), text(after), text(&told));
}

#[test]
fn a_description_stays_within_the_size_of_the_document() {
    let name = "x".repeat(20_000);
    let elements = vec![r#"{"a": 1}"#; 2000].join(",");
    let document = json(&format!(r#"{{"_id": 1, "{name}": [{elements}]}}"#));
    let update = parse_update(&format!(r#"{{"$set": {{"{name}.$[].a": 2}}}}"#), None).unwrap();
    let new = update.apply(document.view(), &Filter::everything(), &ApplyContext::at(0)).unwrap().unwrap();
    let told = update.describe(document.view(), new.view()).unwrap();
    assert!(told.as_bytes().len() < 3 * new.as_bytes().len(), "{} of {}", told.as_bytes().len(), new.as_bytes().len());
    holds(&update, &document, &new, "a long name");
}
