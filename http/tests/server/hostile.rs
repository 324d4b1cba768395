//! Bodies made to exhaust a server: each is answered or ends at its `maxTimeMS`, and the server goes on.

use serde_json::{Value, json};

use crate::common::Server;

/// A server with documents that make a filter work: long arrays, nested ones, long texts.
fn filled() -> Server {
    let server = Server::start();
    let long: Vec<i64> = (0..60_000).map(|_| -1).collect();
    let mut deep = json!(1);
    for _ in 0..45 {
        deep = json!([{"a": deep}, 2]);
    }
    let documents: Vec<Value> =
        (0..8).map(|i| json!({"_id": i, "a": long, "deep": deep, "s": "x".repeat(100_000), "n": i})).collect();
    server.post("/v1/db/d/c/insertMany", &json!({"documents": documents}).to_string()).expect(201);
    server
}

/// Asks with so little time that what has no end ends there: an answer, a refusal, or 408.
fn ask(server: &Server, operation: &str, body: &str) -> u16 {
    let body = format!("{{\"maxTimeMS\": 300, {body}}}");
    let answer = server.post(&format!("/v1/db/d/c/{operation}"), &body);
    match answer.status {
        408 => assert_eq!((answer.error(408).as_str(), &answer.json()["code"]), ("MaxTimeMSExpired", &json!(50))),
        200 | 400 => {}
        other => panic!("{operation}: {other} {}", answer.text()),
    }
    answer.status
}

#[test]
fn filters_without_end_end_in_time() {
    let server = filled();
    let many = |n: usize, one: &dyn Fn(usize) -> String| (0..n).map(one).collect::<Vec<_>>().join(",");
    let or_ranges = format!(r#""filter": {{"$or": [{}]}}"#, many(100_000, &|i| format!(r#"{{"a": {{"$gt": {i}}}}}"#)));
    let nested =
        |open: &str, inner: &str, close: &str, n: usize| format!("{}{inner}{}", open.repeat(n), close.repeat(n));
    let deep_and = nested(r#"{"$and": ["#, r#"{"n": 1}"#, "]}", 95);
    let deep_elem = nested(r#"{"$elemMatch": {"a": "#, "1", "}}", 90);
    let regexes = many(2000, &|i| {
        format!(r#"{{"$regularExpression": {{"pattern": "(a|b|x)*[a-z]{{30}}y{i}$", "options": "i"}}}}"#)
    });
    let cases = [
        ("count", or_ranges.clone(), Some(408)),
        ("find", or_ranges, Some(408)),
        ("count", format!(r#""filter": {{"$or": [{}]}}"#, many(100_000, &|i| format!(r#"{{"f{i}": {i}}}"#))), None),
        ("count", format!(r#""filter": {{"n": {{"$in": [{}]}}}}"#, many(1_000_000, &|i| i.to_string())), None),
        ("count", format!(r#""filter": {{"a": {{"$nin": [{}]}}}}"#, many(1_000_000, &|i| i.to_string())), None),
        ("count", format!(r#""filter": {deep_and}"#), None),
        ("count", format!(r#""filter": {{"deep": {deep_elem}}}"#), None),
        ("count", format!(r#""filter": {{"s": {{"$in": [{regexes}]}}}}"#), None),
        ("count", format!(r#""filter": {{"s": "{}"}}"#, "y".repeat(16 << 20)), None),
        ("count", format!(r#""filter": {{"s": {{"$regex": "{}"}}}}"#, "y".repeat(16 << 20)), Some(400)),
        ("find", r#""projection": {"x": {"$reduce": {"input": "$a", "initialValue": [], "in": {"$concatArrays": ["$$value", "$$value", ["$$this"]]}}}}"#.to_owned(), None),
        ("updateMany", r#""update": [{"$set": {"x": {"$map": {"input": "$a", "in": {"$map": {"input": "$a", "in": 1}}}}}}]"#.to_owned(), None),
        ("updateMany", format!(r#""update": {{"$pull": {{"a": {{"$in": [{}]}}}}}}"#, many(300_000, &|i| i.to_string())), None),
        ("findOneAndUpdate", format!(r#""update": {{"$set": {{{}}}}}"#, many(100_000, &|i| format!(r#""k{i}": {i}"#))), None),
    ];
    for (operation, body, expected) in cases {
        let found = ask(&server, operation, &body);
        let shown: String = body.chars().take(80).collect();
        assert!(expected.is_none_or(|expected| expected == found), "{operation} {shown}: {found}");
    }
    // Sorting, projecting and updating through such a filter too.
    server.post("/v1/db/d/c/find", r#"{"filter": {"n": 3}, "projection": {"n": 1}}"#).expect(200);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn patterns_are_compiled_no_longer_than_the_operation_may_take() {
    let server = Server::start();
    let patterns: Vec<String> = (0..4000)
        .map(|i| format!(r#"{{"$regularExpression": {{"pattern": "[a-z]{{40}}(x|yy){{20}}{i}", "options": "i"}}}}"#))
        .collect();
    let list = patterns.join(",");
    let calls: Vec<String> =
        patterns.iter().map(|p| format!(r#"{{"$regexMatch": {{"input": "$s", "regex": {p}}}}}"#)).collect();
    let operations: Vec<String> =
        patterns.iter().map(|p| format!(r#"{{"deleteOne": {{"filter": {{"s": {p}}}}}}}"#)).collect();
    for (operation, body) in [
        ("count", format!(r#""filter": {{"s": {{"$in": [{list}]}}}}"#)),
        ("find", format!(r#""projection": {{"x": {{"$or": [{}]}}}}"#, calls.join(","))),
        ("updateOne", format!(r#""update": {{"$pull": {{"s": {{"$in": [{list}]}}}}}}"#)),
        ("updateOne", format!(r#""update": [{{"$set": {{"x": {{"$or": [{}]}}}}}}]"#, calls.join(","))),
        ("bulkWrite", format!(r#""operations": [{}]"#, operations.join(","))),
    ] {
        let answer = server.post(&format!("/v1/db/d/c/{operation}"), &format!("{{\"maxTimeMS\": 1, {body}}}"));
        assert_eq!(answer.error(408), "MaxTimeMSExpired", "{operation}");
    }
}
