//! findOneAndUpdate, findOneAndReplace, findOneAndDelete, bulkWrite, distinct, explain; `sort` on writes to one document.
//!
//! Expected values are MongoDB's, as its manual documents the operation of the same name.

use serde_json::{Value, json};

use crate::common::Server;

/// A server with `{_id: 1, n: 30}`, `{_id: 2, n: 10}`, `{_id: 3, n: 20}`.
fn three() -> Server {
    let server = Server::start();
    let documents =
        r#"{"documents": [{"_id": 1, "n": 30, "v": [1, 2]}, {"_id": 2, "n": 10, "v": [2, [3]]}, {"_id": 3, "n": 20}]}"#;
    server.post("/v1/db/d/c/insertMany", documents).expect(201);
    server
}

fn ask(server: &Server, operation: &str, body: &str) -> Value {
    server.post(&format!("/v1/db/d/c/{operation}"), body).expect(200)
}

#[test]
fn find_one_and_update_gives_the_document_before_or_after() {
    let server = three();
    let before = ask(&server, "findOneAndUpdate", r#"{"filter": {}, "sort": {"n": 1}, "update": {"$inc": {"n": 1}}}"#);
    assert_eq!(before, json!({"document": {"_id": 2, "n": 10, "v": [2, [3]]}}));
    let after = ask(
        &server,
        "findOneAndUpdate",
        r#"{"filter": {}, "sort": {"n": -1}, "update": {"$inc": {"n": 1}}, "returnDocument": "after", "projection": {"n": 1, "_id": 0}}"#,
    );
    assert_eq!(after, json!({"document": {"n": 31}}));
    let computed = r#"{"filter": {"_id": 3}, "update": [{"$set": {"n": {"$add": ["$n", 1]}}}], "returnDocument": "after", "projection": {"twice": {"$multiply": ["$n", 2]}}}"#;
    assert_eq!(ask(&server, "findOneAndUpdate", computed), json!({"document": {"_id": 3, "twice": 42}}));
    let positional = r#"{"filter": {"v": 2, "_id": 1}, "update": {"$set": {"v.$": 9}}, "projection": {"v.$": 1}}"#;
    assert_eq!(ask(&server, "findOneAndUpdate", positional), json!({"document": {"_id": 1, "v": [2]}}));
    let none = r#"{"filter": {"_id": 7}, "update": {"$set": {"a": 1}}}"#;
    assert_eq!(ask(&server, "findOneAndUpdate", none), json!({"document": null}));
    let made = r#"{"filter": {"_id": 7}, "update": {"$set": {"a": 1}}, "upsert": true}"#;
    assert_eq!(ask(&server, "findOneAndUpdate", made), json!({"document": null}));
    let made = r#"{"filter": {"_id": 8}, "update": {"$set": {"a": 1}}, "upsert": true, "returnDocument": "after"}"#;
    assert_eq!(ask(&server, "findOneAndUpdate", made), json!({"document": {"_id": 8, "a": 1}}));
    let wrong = r#"{"filter": {}, "update": {"$set": {"a": 1}}, "returnDocument": "later"}"#;
    assert_eq!(server.post("/v1/db/d/c/findOneAndUpdate", wrong).error(400), "BadValue");
    assert_eq!(ask(&server, "count", r#"{"filter": {"a": 1}}"#)["count"], 2);
}

#[test]
fn find_one_and_replace_keeps_the_id_and_find_one_and_delete_gives_what_went() {
    let server = three();
    let replaced = r#"{"filter": {}, "sort": {"n": 1}, "replacement": {"z": 1}, "returnDocument": "after"}"#;
    assert_eq!(ask(&server, "findOneAndReplace", replaced), json!({"document": {"_id": 2, "z": 1}}));
    let operators = r#"{"filter": {}, "replacement": {"$set": {"a": 1}}}"#;
    server.post("/v1/db/d/c/findOneAndReplace", operators).error(400);
    let deleted = r#"{"filter": {"n": {"$exists": true}}, "sort": {"n": -1}, "projection": {"n": 1}}"#;
    assert_eq!(ask(&server, "findOneAndDelete", deleted), json!({"document": {"_id": 1, "n": 30}}));
    assert_eq!(ask(&server, "findOneAndDelete", r#"{"filter": {"_id": 1}}"#), json!({"document": null}));
    assert_eq!(ask(&server, "count", "{}")["count"], 2);
}

#[test]
fn a_sort_says_which_document_a_write_to_one_takes() {
    let server = three();
    ask(&server, "updateOne", r#"{"filter": {}, "sort": {"n": 1}, "update": {"$set": {"least": true}}}"#);
    ask(&server, "replaceOne", r#"{"filter": {}, "sort": {"n": -1}, "replacement": {"most": true}}"#);
    let bulk = r#"{"operations": [{"updateOne": {"filter": {"n": {"$gt": 10}}, "sort": {"n": 1}, "update": {"$set": {"middle": true}}}}]}"#;
    ask(&server, "bulkWrite", bulk);
    let found = ask(&server, "find", r#"{"sort": {"_id": 1}, "projection": {"v": 0, "n": 0}}"#);
    assert_eq!(
        found["documents"],
        json!([{"_id": 1, "most": true}, {"_id": 2, "least": true}, {"_id": 3, "middle": true}])
    );
}

const MIXED: &str = r#"[
    {"insertOne": {"document": {"_id": 10, "n": 1}}},
    {"updateOne": {"filter": {"_id": 1}, "update": {"$set": {"n": 31}}}},
    {"insertOne": {"document": {"_id": 2}}},
    {"updateOne": {"filter": {"_id": 20}, "update": {"$set": {"n": 5}}, "upsert": true}},
    {"replaceOne": {"filter": {"_id": 3}, "replacement": {"n": 21}}},
    {"insertOne": {"document": {"n": 2}}},
    {"updateMany": {"filter": {"n": {"$gte": 21}}, "update": {"$inc": {"n": 1}}}},
    {"deleteOne": {"filter": {"_id": 2}}},
    {"deleteMany": {"filter": {"n": {"$lt": 3}}}}
]"#;

#[test]
fn an_ordered_bulk_write_stops_at_its_first_failure() {
    let server = three();
    let answer = server.post("/v1/db/d/c/bulkWrite", &format!(r#"{{"operations": {MIXED}}}"#)).expect(409);
    assert_eq!((&answer["error_code"], &answer["code"]), (&json!("DuplicateKey"), &json!(11000)));
    let failed = answer["writeErrors"].as_array().unwrap();
    assert_eq!((failed.len(), &failed[0]["index"], &failed[0]["code"]), (1, &json!(2), &json!(11000)));
    assert_eq!((&answer["insertedCount"], &answer["insertedIds"]), (&json!(1), &json!({"0": 10})));
    assert_eq!((&answer["matchedCount"], &answer["modifiedCount"]), (&json!(1), &json!(1)));
    assert_eq!((&answer["upsertedCount"], &answer["deletedCount"]), (&json!(0), &json!(0)));
    assert_eq!(ask(&server, "count", "{}")["count"], 4);
}

#[test]
fn an_unordered_bulk_write_goes_on_and_keys_ids_by_their_operation() {
    let server = three();
    let body = format!(r#"{{"operations": {MIXED}, "ordered": false}}"#);
    let answer = server.post("/v1/db/d/c/bulkWrite", &body).expect(409);
    let failed: Vec<_> = answer["writeErrors"].as_array().unwrap().iter().map(|e| e["index"].clone()).collect();
    assert_eq!(failed, [json!(2)]);
    assert_eq!((&answer["insertedCount"], &answer["upsertedCount"]), (&json!(2), &json!(1)));
    let inserted = answer["insertedIds"].as_object().unwrap();
    assert_eq!((inserted.len(), &inserted["0"]), (2, &json!(10)));
    assert!(inserted["5"]["$oid"].is_string(), "{answer}");
    assert_eq!(answer["upsertedIds"], json!({"3": 20}));
    // updateOne 1, replaceOne 1, updateMany the two of them again.
    assert_eq!((&answer["matchedCount"], &answer["modifiedCount"]), (&json!(4), &json!(4)));
    assert_eq!(answer["deletedCount"], 3);
    let found = ask(&server, "find", r#"{"sort": {"_id": 1}, "projection": {"v": 0}}"#);
    assert_eq!(found["documents"], json!([{"_id": 1, "n": 32}, {"_id": 3, "n": 22}, {"_id": 20, "n": 5}]));
}

#[test]
fn a_mistake_in_a_bulk_write_names_its_place_and_changes_nothing() {
    let server = three();
    for (operations, place) in [
        (
            r#"[{"deleteOne": {"filter": {}}}, {"updateOne": {"filter": {"$or": [{"a": {"$in": 1}}]}, "update": {"$set": {"a": 1}}}}]"#,
            "operations[1].updateOne.filter.$or[0].a.$in",
        ),
        (
            r#"[{"deleteOne": {"filter": {}}}, {"updateOne": {"filter": {}, "update": {"$foo": {"a": 1}}}}]"#,
            "operations[1].updateOne.update.$foo",
        ),
    ] {
        let answer = server.post("/v1/db/d/c/bulkWrite", &format!(r#"{{"operations": {operations}}}"#)).expect(400);
        assert!(answer["error"].as_str().unwrap().starts_with(place), "{answer}");
        assert_eq!(answer["place"], place, "{answer}");
    }
    for operations in
        ["[]", "5", "[5]", r#"[{"frobnicate": {}}]"#, r#"[{"insertOne": {}}]"#, r#"[{"deleteOne": {"filtre": {}}}]"#]
    {
        server.post("/v1/db/d/c/bulkWrite", &format!(r#"{{"operations": {operations}}}"#)).error(400);
    }
    assert_eq!(ask(&server, "count", "{}")["count"], 3);
}

#[test]
fn the_patterns_of_a_bulk_write_count_together() {
    let server = three();
    let one = |i: usize| format!(r#"{{"deleteMany": {{"filter": {{"s": {{"$regex": "q{i}z"}}}}}}}}"#);
    let body = |n: usize| format!(r#"{{"operations": [{}]}}"#, (0..n).map(one).collect::<Vec<_>>().join(","));
    assert_eq!(ask(&server, "bulkWrite", &body(1000))["deletedCount"], 0);
    assert_eq!(server.post("/v1/db/d/c/bulkWrite", &body(5000)).status, 400);
}

#[test]
fn distinct_takes_arrays_apart_one_level() {
    let server = three();
    let sorted = |body: &str| {
        let mut values: Vec<_> =
            ask(&server, "distinct", body)["values"].as_array().unwrap().iter().map(ToString::to_string).collect();
        values.sort();
        values
    };
    assert_eq!(sorted(r#"{"key": "v"}"#), ["1", "2", "[3]"]);
    assert_eq!(sorted(r#"{"key": "n", "filter": {"n": {"$gt": 10}}}"#), ["20", "30"]);
    assert!(sorted(r#"{"key": "nothing"}"#).is_empty());
    server.post("/v1/db/d/c/distinct", r#"{"key": 5}"#).error(400);
    server.post("/v1/db/d/c/distinct", "{}").error(400);
}

#[test]
fn explain_says_how_and_changes_nothing() {
    let server = three();
    let find = ask(&server, "explain", r#"{"find": {"filter": {"n": {"$gt": 10}}, "sort": {"n": 1}}}"#);
    assert_eq!(find["execution"]["rowsReturned"], 2);
    // How many looks at documents that takes is the planner's, and held in the engine's tests.
    assert!(find["execution"]["documentsExamined"].as_u64().is_some_and(|n| n >= 2), "{find}");
    let plan = find["plan"].to_string();
    assert!(plan.contains("Sort") && plan.contains("DocumentScan"), "{plan}");
    let count = ask(&server, "explain", r#"{"count": {"filter": {}}}"#);
    assert_eq!(count["execution"]["documentsExamined"], 0);
    assert!(count["plan"].to_string().contains("CollectionCount"), "{count}");
    let point = ask(&server, "explain", r#"{"find": {"filter": {"_id": 2}}}"#);
    assert!(point["plan"].to_string().contains("IdLookup"), "{point}");
    let many = r#"{"updateMany": {"filter": {"n": {"$gt": 10}}, "update": {"$set": {"n": 0}}}}"#;
    assert_eq!(ask(&server, "explain", many)["execution"]["rowsReturned"], 2);
    assert_eq!(ask(&server, "count", r#"{"filter": {"n": 0}}"#)["count"], 0);
    for wrong in [
        "{}",
        r#"{"find": {}, "count": {}}"#,
        r#"{"find": {"filter": {"a": {"$in": 1}}}}"#,
        r#"{"updateMany": {"filter": {}}}"#,
        r#"{"updateMany": {"update": {"$foo": {"a": 1}}}}"#,
        r#"{"distinct": {}}"#,
        r#"{"insertOne": {}}"#,
    ] {
        server.post("/v1/db/d/c/explain", wrong).error(400);
    }
}

#[test]
fn one_slow_document_keeps_no_worker_of_the_network() {
    let server = Server::start();
    let text = "a".repeat(1_000_000);
    server.post("/v1/db/d/c/insertOne", &format!(r#"{{"document": {{"_id": 1, "s": "{text}"}}}}"#)).expect(201);
    // Each match looks at all of the rest: more than any machine does while this test runs, if nothing stops it.
    let slow = r#"{"filter": {"_id": 1}, "projection": {"x": {"$size": {"$regexFindAll": {"input": "$s", "regex": ".*b|a"}}}}}"#;
    let mut waiting: Vec<_> = (0..8).map(|_| server.connect()).collect();
    for connection in &mut waiting {
        let head =
            format!("POST /v1/db/d/c/findOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", slow.len());
        assert!(connection.send(head.as_bytes()) && connection.send(slow.as_bytes()));
    }
    assert_eq!(ask(&server, "count", r#"{"filter": {"_id": 1}}"#)["count"], 1);
    for mut connection in waiting {
        assert_eq!(connection.answer(false).error(400), "ExceededMemoryLimit");
    }
}

#[test]
fn compact_makes_one_segment_and_keeps_every_document() {
    let server = Server::start();
    let path = |operation: &str| format!("/v1/db/d/compacted/{operation}");
    let zeros = json!({"segmentsBefore": 0, "segmentsAfter": 0, "bytesBefore": 0, "bytesAfter": 0});
    assert_eq!(server.post(&path("compact"), "{}").expect(200), zeros, "no such collection");
    for round in 0..3 {
        let documents: Vec<_> = (0..500).map(|i| json!({"_id": round * 500 + i, "text": "x".repeat(20)})).collect();
        server.post(&path("insertMany"), &json!({"documents": documents}).to_string()).expect(201);
        let first = server.post(&path("compact"), "{}").expect(200);
        assert_eq!(first["segmentsAfter"], 1, "{first}");
    }
    server.post(&path("deleteMany"), r#"{"filter": {"_id": {"$lt": 1000}}}"#).expect(200);
    let done = server.post(&path("compact"), "{}").expect(200);
    assert_eq!((&done["segmentsBefore"], &done["segmentsAfter"]), (&json!(1), &json!(1)), "{done}");
    assert!(done["bytesAfter"].as_u64().unwrap() < done["bytesBefore"].as_u64().unwrap() / 2, "{done}");
    assert_eq!(server.get("/v1/db/d/compacted").expect(200)["segments"], 1);
    assert_eq!(server.post(&path("count"), r#"{"filter": {"text": {"$exists": true}}}"#).expect(200)["count"], 500);
    assert_eq!(server.post(&path("compact"), r#"{"filter": {}}"#).error(400), "IDLUnknownField");
    let metrics = server.get("/metrics");
    let metrics = String::from_utf8_lossy(&metrics.body);
    assert!(metrics.contains("\nquarrydb_compaction_dropped_rows_total 1000\n"), "{metrics}");
}
