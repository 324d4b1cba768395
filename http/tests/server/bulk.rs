//! bulkWrite: variables of the body, and an answer that never comes before what it tells of is kept.

use crate::common::Server;

#[test]
fn the_variables_of_the_body_reach_the_filter_and_the_update_of_every_operation() {
    let server = Server::start();
    let insert = r#"{"documents": [{"_id": 1, "a": 5}, {"_id": 2, "a": 6}, {"_id": 3, "a": 7}, {"_id": 4, "a": 8}]}"#;
    server.post("/v1/db/d/c/insertMany", insert).expect(201);
    let is = |name: &str| format!(r#"{{"$expr": {{"$eq": ["$a", "$${name}"]}}}}"#);
    let body = format!(
        r#"{{"let": {{"five": 5, "six": 6, "seven": 7, "eight": 8}}, "operations": [
            {{"updateOne": {{"filter": {}, "update": [{{"$set": {{"b": "$$eight"}}}}]}}}},
            {{"updateMany": {{"filter": {}, "update": {{"$set": {{"b": 1}}}}}}}},
            {{"replaceOne": {{"filter": {}, "replacement": {{"b": 2}}}}}},
            {{"deleteMany": {{"filter": {}}}}}]}}"#,
        is("five"),
        is("six"),
        is("seven"),
        is("eight"),
    );
    let done = server.post("/v1/db/d/c/bulkWrite", &body).expect(200);
    assert_eq!((&done["modifiedCount"], &done["deletedCount"]), (&3.into(), &1.into()), "{done}");
    let found = server.post("/v1/db/d/c/find", r#"{"sort": {"_id": 1}}"#).expect(200);
    let expected = r#"[{"_id":1,"a":5,"b":8},{"_id":2,"a":6,"b":1},{"_id":3,"b":2}]"#;
    assert_eq!(found["documents"], serde_json::from_str::<serde_json::Value>(expected).unwrap());
}

/// Whatever stands last, and does nothing: the answer waits for the write before it.
#[test]
fn what_is_answered_as_written_is_there_whatever_stands_behind_it() {
    for last in [
        r#"{"insertOne": {"document": {"_id": 0}}}"#,
        r#"{"insertOne": {"document": {"_id": [1]}}}"#,
        r#"{"insertOne": {"document": {"_id": {"$x": 1}}}}"#,
        r#"{"updateOne": {"filter": {"_id": 99}, "update": {"$set": {"a": 1}}}}"#,
        r#"{"updateOne": {"filter": {"_id": 0}, "update": {"$set": {"_id": 1}}}}"#,
        r#"{"replaceOne": {"filter": {"_id": 99}, "replacement": {}}}"#,
        r#"{"deleteOne": {"filter": {"_id": 99}}}"#,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Server::on(dir.path(), &[]);
        server.post("/v1/db/d/c/insertOne", r#"{"document": {"_id": 0}}"#).expect(201);
        let first = r#"{"updateOne": {"filter": {"_id": 1}, "update": {"$set": {"v": 1}}, "upsert": true}}"#;
        let body = format!(r#"{{"ordered": false, "operations": [{first}, {last}]}}"#);
        let answer = server.post("/v1/db/d/c/bulkWrite", &body);
        assert_eq!(answer.json()["upsertedCount"], 1, "{last}: {}", answer.text());
        server.kill();
        let server = Server::on(dir.path(), &[]);
        let count = server.post("/v1/db/d/c/count", r#"{"filter": {"v": 1}}"#).expect(200);
        assert_eq!(count["count"], 1, "lost by {last}");
    }
}

/// What no document can hold fails its own operation, as it fails its own document in insertMany.
#[test]
fn a_bad_value_is_the_failure_of_its_operation_alone() {
    let insert = |document: &str| format!(r#"{{"insertOne": {{"document": {document}}}}}"#);
    let bad = [
        r#"{"insertOne": {"document": {"_id": {"$oid": "zz"}}}}"#.to_owned(),
        r#"{"insertOne": {"document": {"a": 1, "a": 2}}}"#.to_owned(),
        r#"{"updateOne": {"filter": {"_id": {"$date": true}}, "update": {"$set": {"b": 1}}}}"#.to_owned(),
        insert(&format!("{}1{}", r#"{"a":"#.repeat(101), "}".repeat(101))),
    ];
    for bad in bad {
        let server = Server::start();
        let operations = [insert(r#"{"_id": 1}"#), bad.clone(), insert(r#"{"_id": 2}"#)].join(", ");
        let answer = server.post("/v1/db/d/c/bulkWrite", &format!(r#"{{"operations": [{operations}]}}"#));
        let said = answer.expect(400);
        assert_eq!((&said["insertedCount"], &said["insertedIds"]["0"]), (&1.into(), &1.into()), "{bad}: {said}");
        assert!(said["error"].as_str().unwrap().starts_with("operations[1]: "), "{said}");
        let failures = said["writeErrors"].as_array().unwrap();
        assert_eq!((failures.len(), &failures[0]["index"]), (1, &1.into()), "{bad}: {said}");
        let answer = server.post(
            "/v1/db/d/c/bulkWrite",
            &format!(r#"{{"ordered": false, "operations": [{bad}, {}, {bad}]}}"#, insert(r#"{"_id": 3}"#)),
        );
        let said = answer.expect(400);
        assert_eq!((&said["insertedCount"], &said["insertedIds"]["1"]), (&1.into(), &3.into()), "{bad}: {said}");
        let indexes: Vec<_> = said["writeErrors"].as_array().unwrap().iter().map(|e| e["index"].clone()).collect();
        assert_eq!(indexes, [0, 2], "{bad}: {said}");
        assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 2);
        // A mistake in the form, or a text that is no JSON, refuses all of it.
        for form in [r#"{"insertTwo": {}}"#, r#"{"insertOne": {"document": 5}}"#, "{"] {
            let body = format!(r#"{{"operations": [{}, {bad}, {form}]}}"#, insert(r#"{"_id": 9}"#));
            server.post("/v1/db/d/c/bulkWrite", &body).error(400);
        }
        assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 2);
    }
}
