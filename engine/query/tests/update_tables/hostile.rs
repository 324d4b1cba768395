//! Updates that want to take all, and the two ways of applying one held against each other.

use crate::{json, parse_update, shown, text};
use quarrydb_query::{ApplyContext, Filter};

fn apply(update: &str, document: &str) -> String {
    let result = parse_update(update, None)
        .and_then(|u| u.apply(json(document).view(), &Filter::everything(), &ApplyContext::at(0)));
    shown(result)
}

#[test]
fn writing_over_a_copy_agrees_with_writing_anew() {
    let values = [
        "0",
        "1",
        "-1",
        "127",
        "128",
        "255",
        "-129",
        "65535",
        "2147483647",
        "1.5",
        "-0.0",
        r#"{"$numberLong": "0"}"#,
        r#"{"$numberLong": "255"}"#,
        r#"{"$numberLong": "9223372036854775807"}"#,
        r#"{"$numberDecimal": "1.10"}"#,
        r#"{"$numberDouble": "NaN"}"#,
        r#""text""#,
        r#""same""#,
        "null",
        "true",
        "false",
        r#"{"$date": "2026-01-01T00:00:00Z"}"#,
        r#"{"$oid": "5ab9cbfa31c2ab715d42129e"}"#,
        "[1]",
        r#"{"x": 1}"#,
    ];
    let mut compared = 0;
    for stored in values {
        for operand in values {
            for operator in ["$set", "$inc", "$mul", "$min", "$max"] {
                for path in ["a", "o.a", "v.1"] {
                    let document =
                        format!(r#"{{"_id": 1, "a": {stored}, "o": {{"a": {stored}, "b": 2}}, "v": [0, {stored}]}}"#);
                    let fast = format!(r#"{{"{operator}": {{"{path}": {operand}}}}}"#);
                    // An operator that does nothing keeps the update from the short way.
                    let slow = format!(r#"{{"{operator}": {{"{path}": {operand}}}, "$unset": {{"none": 1}}}}"#);
                    assert_eq!(apply(&fast, &document), apply(&slow, &document), "{fast} on {document}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 5000);
}

#[test]
fn a_hundred_thousand_paths_are_entered_and_applied_once() {
    let fields: Vec<String> = (0..100_000).map(|i| format!(r#""f{i}.x": {i}"#)).collect();
    let update = format!(r#"{{"$set": {{{}}}}}"#, fields.join(","));
    let parsed = parse_update(&update, None).unwrap();
    let document = json(r#"{"_id": 1, "f7": {"y": 1}}"#);
    let new = parsed.apply(document.view(), &Filter::everything(), &ApplyContext::at(0)).unwrap().unwrap();
    assert_eq!(new.view().as_object().unwrap().len(), 100_001);
    assert_eq!(new.view().get("f99999").and_then(|f| f.get("x")).and_then(|x| x.as_i64()), Some(99_999));
    assert_eq!(text(&new.view().get("f7").unwrap().to_buf()), r#"{"y":{"$numberInt":"1"},"x":{"$numberInt":"7"}}"#);
    let again = parsed.apply(new.view(), &Filter::everything(), &ApplyContext::at(0)).unwrap();
    assert!(again.is_none());
}

#[test]
fn long_lists_are_compared_by_key() {
    let numbers: Vec<String> = (0..50_000).map(|i| i.to_string()).collect();
    let list = numbers.join(",");
    let document = format!(r#"{{"_id": 1, "a": [{list}]}}"#);
    assert_eq!(apply(&format!(r#"{{"$addToSet": {{"a": {{"$each": [{list}]}}}}}}"#), &document), "same");
    let pulled = apply(&format!(r#"{{"$pullAll": {{"a": [{list}]}}}}"#), &document);
    assert_eq!(pulled, r#"{"_id":{"$numberInt":"1"},"a":[]}"#);
}

#[test]
fn too_many_array_filters_are_refused() {
    let name = |i: usize| format!("x{i}");
    let filters: Vec<String> = (0..300).map(|i| format!(r#"{{"{}": {i}}}"#, name(i))).collect();
    let error = parse_update(r#"{"$set": {"a.$[x1]": 1}}"#, Some(&format!("[{}]", filters.join(",")))).unwrap_err();
    assert_eq!(error.code(), 9);
}

#[test]
fn what_would_grow_beyond_a_document_stops_while_it_is_written() {
    let zeros = vec!["0"; 100_000].join(",");
    let document = format!(r#"{{"_id": 1, "a": [{zeros}]}}"#);
    let long = "x".repeat(100_000);
    assert_eq!(apply(&format!(r#"{{"$set": {{"a.$[]": "{long}"}}}}"#), &document), "error 10334");
    assert_eq!(apply(&format!(r#"[{{"$set": {{"a.b": "{long}"}}}}]"#), &document), "error 10334");
    let far: Vec<String> = (1..200).map(|i| format!(r#""a.{}": 1"#, i * 1_400_000)).collect();
    assert_eq!(apply(&format!(r#"{{"$set": {{{}}}}}"#, far.join(",")), &document), "error 34");
}

#[test]
fn stages_that_nest_ever_deeper_are_refused() {
    let stages = vec![r#"{"$set": {"a": [["$a"]]}}"#; 900].join(",");
    assert_eq!(apply(&format!("[{stages}]"), r#"{"_id": 1, "a": 1}"#), "error 15");
    let stages = vec![r#"{"$set": {"a": ["$a"]}}"#; 120].join(",");
    assert_eq!(apply(&format!("[{stages}]"), r#"{"_id": 1, "a": 1}"#), "error 15");
}
