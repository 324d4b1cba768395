//! What may be an index, by MongoDB's documentation and its error numbers.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;

fn definition(text: &str) -> Result<IndexDefinition> {
    IndexDefinition::from_object(quarrydb_jsonb::parse(text.as_bytes()).unwrap().view())
}

#[test]
fn names_are_made_of_the_keys() {
    for (keys, name) in [
        (r#"{"a": 1}"#, "a_1"),
        (r#"{"a": 1, "b.c": -1}"#, "a_1_b.c_-1"),
        (r#"{"a": 1.0, "b": {"$numberLong": "-1"}}"#, "a_1_b_-1"),
        (r#"{"_id": 1}"#, "_id_"),
        (r#"{"_id": -1}"#, "_id_-1"),
    ] {
        assert_eq!(definition(&format!("{{\"keys\": {keys}}}")).unwrap().name(), name);
    }
}

#[test]
fn what_is_no_index_is_refused_with_its_number() {
    let many: Vec<String> = (0..33).map(|i| format!("\"f{i}\": 1")).collect();
    for (text, code) in [
        (r#"{}"#, 40414),
        (r#"{"keys": {}}"#, 67),
        (r#"{"keys": 1}"#, 14),
        (r#"{"keys": {"a": 0}}"#, 67),
        (r#"{"keys": {"a": {"$numberDouble": "NaN"}}}"#, 67),
        (r#"{"keys": {"a": true}}"#, 67),
        (r#"{"keys": {"a": "text"}}"#, 67),
        (r#"{"keys": {"a": "hashed"}}"#, 67),
        (r#"{"keys": {"$**": 1}}"#, 67),
        (r#"{"keys": {"": 1}}"#, 67),
        (r#"{"keys": {"a..b": 1}}"#, 67),
        (r#"{"keys": {"$a": 1}}"#, 67),
        (r#"{"keys": {"a": 1}, "name": ""}"#, 67),
        (r#"{"keys": {"a": 1}, "name": "*"}"#, 67),
        (r#"{"keys": {"a": 1}, "name": 5}"#, 14),
        (r#"{"keys": {"a": 1}, "name": "_id_"}"#, 2),
        (r#"{"keys": {"a": 1}, "unique": "yes"}"#, 14),
        (r#"{"keys": {"a": 1}, "sparse": true, "partialFilterExpression": {"a": 1}}"#, 67),
        (r#"{"keys": {"a": 1}, "partialFilterExpression": {"a": {"$ne": 1}}}"#, 67),
        (r#"{"keys": {"a": 1}, "partialFilterExpression": 1}"#, 14),
        (r#"{"keys": {"a": 1}, "expireAfterSeconds": -1}"#, 67),
        (r#"{"keys": {"a": 1}, "expireAfterSeconds": 2147483648}"#, 67),
        (r#"{"keys": {"a": 1, "b": 1}, "expireAfterSeconds": 1}"#, 67),
        (r#"{"keys": {"_id": 1}, "expireAfterSeconds": 1}"#, 197),
        (r#"{"keys": {"a": 1}, "weights": {}}"#, 2),
    ] {
        assert_eq!(definition(text).unwrap_err().code(), Some(code), "{text}");
    }
    assert_eq!(definition(&format!("{{\"keys\": {{{}}}}}", many.join(","))).unwrap_err().code(), Some(13103));
}

#[test]
fn an_object_says_all_there_is() {
    let text = r#"{"keys": {"a": 1, "b": -1}, "name": "n", "unique": true,
        "partialFilterExpression": {"a": {"$gt": 5}}}"#;
    let one = definition(text).unwrap();
    let again = IndexDefinition::from_object(one.to_object().unwrap().view()).unwrap();
    assert_eq!((again.compare(&one), again.name()), (Likeness::Same, "n"));
    for (other, likeness) in [
        (r#"{"keys": {"a": 1.0}, "expireAfterSeconds": 5}"#, Likeness::Equivalent),
        (r#"{"keys": {"a": -1}}"#, Likeness::Different),
        (r#"{"keys": {"a": 1}, "sparse": true}"#, Likeness::Different),
        (r#"{"keys": {"a": 1}, "unique": 1}"#, Likeness::Different),
        (r#"{"keys": {"a": 1}, "unique": false, "name": "x"}"#, Likeness::Same),
    ] {
        assert_eq!(
            definition(r#"{"keys": {"a": 1}}"#).unwrap().compare(&definition(other).unwrap()),
            likeness,
            "{other}"
        );
    }
}
