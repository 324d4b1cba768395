//! Transactions over HTTP: several operations in one request, and interactive ones by their header.

use serde_json::{Value, json};

use crate::common::{Answer, Server};

fn inside(server: &Server, id: &str, operation: &str, body: &str) -> Answer {
    server.request("POST", &format!("/v1/db/bank/accounts/{operation}"), &[("Transaction-Id", id)], body.as_bytes())
}

fn begin(server: &Server) -> String {
    let answer = server.request("POST", "/v1/transactions", &[], b"").expect(201);
    answer["transactionId"].as_str().unwrap().to_owned()
}

fn end(server: &Server, id: &str, how: &str) -> Answer {
    server.request("POST", &format!("/v1/transactions/{id}/{how}"), &[], b"")
}

fn money(server: &Server, id: &str) -> Value {
    let found = server.post("/v1/db/bank/accounts/findOne", &format!("{{\"filter\": {{\"_id\": {id}}}}}")).expect(200);
    found["document"]["money"].clone()
}

fn bank() -> Server {
    let server = Server::start();
    let documents = r#"{"documents": [{"_id": 1, "money": 100}, {"_id": 2, "money": 50}, {"_id": 3, "money": 0}]}"#;
    server.post("/v1/db/bank/accounts/insertMany", documents).expect(201);
    server
}

#[test]
fn every_operation_can_be_part_of_one_request_and_sees_those_before_it() {
    let server = bank();
    let body = json!({"operations": [
        {"ns": "bank.accounts", "updateOne": {"filter": {"_id": 1}, "update": {"$inc": {"money": -30}}}, "expect": {"matchedCount": 1}},
        {"ns": "bank.accounts", "updateOne": {"filter": {"_id": 2}, "update": {"$inc": {"money": 30}}}},
        {"ns": "other.log.book", "insertOne": {"document": {"_id": "t1", "of": 30}}},
        {"ns": "bank.accounts", "find": {"filter": {"money": {"$gte": 70}}, "sort": {"_id": -1}, "projection": {"money": 1}}},
        {"ns": "bank.accounts", "findOne": {"filter": {"_id": 9}}, "expect": {"document": null}},
        {"ns": "bank.accounts", "count": {"filter": {"money": {"$gt": 0}}}, "expect": {"count": 2.0}},
        {"ns": "bank.accounts", "distinct": {"key": "money"}},
        {"ns": "bank.accounts", "findOneAndUpdate": {"filter": {"_id": 3}, "update": {"$set": {"seen": true}}, "returnDocument": "after", "projection": {"seen": 1, "_id": 0}}},
        {"ns": "bank.accounts", "replaceOne": {"filter": {"_id": 4}, "replacement": {"money": 1}, "upsert": true}},
        {"ns": "bank.accounts", "bulkWrite": {"operations": [{"insertOne": {"document": {"_id": 5}}}, {"deleteOne": {"filter": {"_id": 5}}}, {"updateMany": {"filter": {}, "update": {"$set": {"b": 1}}}}]}},
        {"ns": "bank.accounts", "insertMany": {"documents": [{"_id": 6}, {"_id": 7}]}},
        {"ns": "bank.accounts", "deleteMany": {"filter": {"_id": {"$gte": 6}}}, "expect": {"deletedCount": 2}},
        {"ns": "bank.accounts", "findOneAndDelete": {"filter": {"_id": 4}}},
        {"ns": "bank.accounts", "findOneAndReplace": {"filter": {"_id": 3}, "replacement": {"money": 7}}},
        {"ns": "bank.accounts", "updateMany": {"filter": {"_id": {"$lte": 2}}, "update": {"$unset": {"b": 1}}}},
        {"ns": "bank.accounts", "deleteOne": {"filter": {"_id": 77}}},
    ], "writeConcern": {"j": true}, "comment": "all", "maxTimeMS": 60000});
    let answer = server.post("/v1/transaction", &body.to_string()).expect(200);
    assert_eq!(
        answer["results"],
        json!([
            {"matchedCount": 1, "modifiedCount": 1},
            {"matchedCount": 1, "modifiedCount": 1},
            {"insertedId": "t1"},
            {"documents": [{"_id": 2, "money": 80}, {"_id": 1, "money": 70}]},
            {"document": null},
            {"count": 2},
            {"values": [0, 70, 80]},
            {"document": {"seen": true}},
            {"matchedCount": 0, "modifiedCount": 0, "upsertedId": 4},
            {"insertedCount": 1, "matchedCount": 4, "modifiedCount": 4, "deletedCount": 1, "upsertedCount": 0, "insertedIds": {"0": 5}, "upsertedIds": {}},
            {"insertedIds": [6, 7], "insertedCount": 2},
            {"deletedCount": 2},
            {"document": {"_id": 4, "money": 1, "b": 1}},
            {"document": {"_id": 3, "money": 0, "seen": true, "b": 1}},
            {"matchedCount": 2, "modifiedCount": 2},
            {"deletedCount": 0},
        ])
    );
    let all = server.post("/v1/db/bank/accounts/find", r#"{"sort": {"_id": 1}}"#).expect(200);
    let expected = json!([{"_id": 1, "money": 70}, {"_id": 2, "money": 80}, {"_id": 3, "money": 7}]);
    assert_eq!(all["documents"], expected);
    assert_eq!(server.post("/v1/db/other/log.book/count", "{}").expect(200)["count"], 1);
}

#[test]
fn a_failure_or_an_unmet_expectation_undoes_all_and_says_where() {
    let server = bank();
    let take = r#"{"ns": "bank.accounts", "updateOne": {"filter": {"_id": 1}, "update": {"$inc": {"money": -1}}}}"#;
    let run = |second: &str| server.post("/v1/transaction", &format!("{{\"operations\": [{take}, {second}]}}"));
    let answer = run(
        r#"{"ns": "bank.accounts", "updateOne": {"filter": {"_id": 9}, "update": {"$inc": {"a": 1}}}, "expect": {"matchedCount": 1}}"#,
    );
    assert_eq!(answer.error(409), "ExpectationFailed");
    assert_eq!(answer.json()["index"], 1);
    let words = answer.json()["error"].as_str().unwrap().to_owned();
    assert!(words.contains("operations[1]: matchedCount was expected to be 1 and is 0"), "{words}");
    let answer = run(r#"{"ns": "bank.accounts", "insertOne": {"document": {"_id": 2}}}"#);
    assert_eq!((answer.error(409), answer.json()["index"].clone()), ("DuplicateKey".to_owned(), json!(1)));
    assert_eq!(answer.json()["keyValue"], json!({"_id": 2}));
    let answer = run(r#"{"ns": "bank.accounts", "updateOne": {"filter": {"_id": 2}, "update": {"$inc": {"_id": 1}}}}"#);
    assert_eq!(answer.error(400), "ImmutableField");
    for (second, status, code, place) in [
        (r#"{"insertOne": {"document": {}}}"#, 400, "IDLFailedToParse", "operations[1].ns"),
        (r#"{"ns": "bank", "insertOne": {"document": {}}}"#, 400, "InvalidNamespace", "operations[1].ns"),
        (r#"{"ns": "a b.c", "insertOne": {"document": {}}}"#, 400, "InvalidNamespace", "operations[1].ns"),
        (
            r#"{"ns": "a.b", "insertOne": {"documents": []}}"#,
            400,
            "IDLUnknownField",
            "operations[1].insertOne.documents",
        ),
        (r#"{"ns": "a.b", "find": {"filter": {"$foo": 1}}}"#, 400, "UnknownOperator", "operations[1].find.filter.$foo"),
        (
            r#"{"ns": "a.b", "updateOne": {"filter": {}, "update": {"$set": {"a": 1}}, "writeConcern": {}}}"#,
            400,
            "IDLUnknownField",
            "operations[1].updateOne.writeConcern",
        ),
        (r#"{"ns": "a.b", "count": {}, "expect": {"counts": 1}}"#, 400, "FailedToParse", "operations[1].expect.counts"),
    ] {
        let answer = run(second);
        assert_eq!(answer.error(status), code, "{second}: {}", answer.text());
        assert_eq!(answer.json()["place"], place, "{second}: {}", answer.text());
    }
    for (second, code) in [
        (r#"{"ns": "a.b", "createIndex": {"keys": {"a": 1}}}"#, "OperationNotSupportedInTransaction"),
        (r#"{"ns": "a.b", "import": {}}"#, "OperationNotSupportedInTransaction"),
        (r#"{"ns": "a.b", "fly": {}}"#, "UnknownOperator"),
        (r#"{"ns": "a.b", "count": {}, "find": {}}"#, "FailedToParse"),
        (r#"{"ns": "a.b"}"#, "FailedToParse"),
        ("5", "TypeMismatch"),
    ] {
        assert_eq!(run(second).error(400), code, "{second}");
    }
    assert_eq!(server.post("/v1/transaction", r#"{"operations": []}"#).error(400), "InvalidLength");
    assert_eq!(server.post("/v1/transaction", "{").error(400), "InvalidJson");
    assert_eq!(money(&server, "1"), 100);
    assert_eq!(server.get("/v1/db/a").expect(200)["collections"], json!([]));
}

#[test]
fn an_interactive_transaction_is_seen_by_itself_alone_until_its_commit() {
    let server = bank();
    let id = begin(&server);
    inside(&server, &id, "updateOne", r#"{"filter": {"_id": 1}, "update": {"$inc": {"money": -100}}}"#).expect(200);
    inside(&server, &id, "insertOne", r#"{"document": {"_id": 4, "money": 5}}"#).expect(201);
    inside(&server, &id, "deleteOne", r#"{"filter": {"_id": 2}}"#).expect(200);
    let patch = [("Transaction-Id", id.as_str())];
    let by_id = |method: &str, path: &str, body: &str| {
        server.request(method, &format!("/v1/db/bank/accounts/doc/{path}"), &patch, body.as_bytes())
    };
    by_id("PATCH", "3", r#"{"$set": {"money": 9}}"#).expect(200);
    by_id("PUT", "6", r#"{"money": 6}"#).expect(201);
    assert_eq!(by_id("GET", "6", "").expect(200)["money"], 6);
    let action = json!({"dataSource": "x", "database": "bank", "collection": "accounts", "filter": {"_id": 6}});
    let found = server.request("POST", "/action/findOne", &patch, action.to_string().as_bytes()).expect(200);
    assert_eq!(found["document"]["money"], 6);
    let found = inside(&server, &id, "find", r#"{"sort": {"money": -1}, "projection": {"money": 1}}"#).expect(200);
    let wanted =
        json!([{"_id": 3, "money": 9}, {"_id": 6, "money": 6}, {"_id": 4, "money": 5}, {"_id": 1, "money": 0}]);
    assert_eq!(found["documents"], wanted);
    assert_eq!(inside(&server, &id, "count", "{}").expect(200)["count"], 4);
    assert_eq!(
        inside(&server, &id, "distinct", r#"{"key": "money"}"#).expect(200)["values"].as_array().unwrap().len(),
        4
    );
    let pipeline = r#"{"pipeline": [{"$lookup": {"from": "accounts", "localField": "_id", "foreignField": "_id", "as": "same"}},
        {"$group": {"_id": null, "all": {"$sum": "$money"}, "n": {"$sum": 1}, "found": {"$sum": {"$size": "$same"}}}}]}"#;
    let found = inside(&server, &id, "aggregate", pipeline).expect(200);
    assert_eq!(found["documents"], json!([{"_id": null, "all": 20, "n": 4, "found": 4}]));
    // Outside nothing has happened.
    assert_eq!((money(&server, "1"), money(&server, "2")), (json!(100), json!(50)));
    assert_eq!(server.post("/v1/db/bank/accounts/count", "{}").expect(200)["count"], 3);
    assert_eq!(server.metric("quarrydb_transactions_open"), 1);
    for _ in 0..2 {
        assert_eq!(end(&server, &id, "commit").expect(200), json!({"committed": true}), "the same answer each time");
    }
    assert_eq!(server.post("/v1/db/bank/accounts/count", "{}").expect(200)["count"], 4);
    assert_eq!(money(&server, "1"), 0);
    assert_eq!(inside(&server, &id, "count", "{}").error(404), "NoSuchTransaction");
    assert_eq!(end(&server, &id, "abort").error(404), "NoSuchTransaction");
    assert_eq!(server.metric("quarrydb_transactions_open"), 0);
}

#[test]
fn the_header_is_never_passed_over() {
    let server = bank();
    let connection = &mut server.connect();
    let insert = br#"{"document": {"x": 1}}"#;
    let path = "/v1/db/bank/accounts/insertOne";
    // The short way has the connection when the header comes.
    connection.request("POST", path, &[], insert).expect(201);
    for name in ["Transaction-Id", "transaction-id", "TRANSACTION-ID"] {
        for value in ["nope", "", "00000000000000000000000000000000"] {
            assert_eq!(connection.request("POST", path, &[(name, value)], insert).status, 404, "{name}: {value}");
        }
    }
    let (open, other) = (begin(&server), begin(&server));
    let commit = format!("/v1/transactions/{open}/commit");
    assert_eq!(server.request("POST", &commit, &[("Transaction-Id", &other)], b"").error(400), "BadValue");
    server.request("POST", &commit, &[("Transaction-Id", &open)], b"").expect(200);
    end(&server, &other, "abort").expect(200);
    let two = [("Transaction-Id", "a"), ("Transaction-Id", "b")];
    assert_eq!(connection.request("POST", path, &two, insert).error(400), "BadValue");
    let gone = [("Transaction-Id", "nope")];
    for (method, path, body) in [
        ("POST", "/v1/db/bank/accounts/import", "{}"),
        ("POST", "/v1/db/bank/accounts/createIndex", r#"{"keys": {"a": 1}}"#),
        ("POST", "/v1/db/bank/accounts/explain", r#"{"find": {}}"#),
        ("PUT", "/v1/db/bank/other", "{}"),
        ("DELETE", "/v1/db/bank/accounts", ""),
        ("GET", "/v1/db/bank/accounts/doc/1", ""),
        ("POST", "/action/insertOne", r#"{"database": "bank", "collection": "accounts", "document": {}}"#),
    ] {
        assert_eq!(server.request(method, path, &gone, body.as_bytes()).error(404), "NoSuchTransaction", "{path}");
        let id = begin(&server);
        let answer = server.request(method, path, &[("Transaction-Id", &id)], body.as_bytes());
        if method != "GET" && !path.starts_with("/action") {
            assert_eq!(answer.error(400), "OperationNotSupportedInTransaction", "{path}");
            assert_eq!(end(&server, &id, "commit").error(404), "NoSuchTransaction", "it has failed");
        } else {
            end(&server, &id, "abort").expect(200);
        }
    }
    assert_eq!(server.post("/v1/db/bank/accounts/count", "{}").expect(200)["count"], 4);
}

#[test]
fn conflicts_and_failures_end_a_transaction_with_a_label() {
    let server = bank();
    let label = json!(["TransientTransactionError"]);
    let update = r#"{"filter": {"_id": 1}, "update": {"$inc": {"money": 1}}}"#;
    let (first, second) = (begin(&server), begin(&server));
    inside(&server, &first, "updateOne", update).expect(200);
    let lost = inside(&server, &second, "updateOne", update);
    assert_eq!((lost.error(409), lost.json()["code"].clone()), ("WriteConflict".to_owned(), json!(112)));
    assert_eq!(lost.json()["errorLabels"], label);
    let over = end(&server, &second, "commit");
    assert_eq!((over.error(404), over.json()["code"].clone()), ("NoSuchTransaction".to_owned(), json!(251)));
    assert_eq!(over.json()["errorLabels"], label);
    // A write outside waits for nobody, and wins.
    server.post("/v1/db/bank/accounts/updateOne", update).expect(200);
    let lost = end(&server, &first, "commit");
    assert_eq!((lost.error(409), lost.json()["errorLabels"].clone()), ("WriteConflict".to_owned(), label));
    assert_eq!(money(&server, "1"), 101);
    for (operation, body, status) in [
        ("insertOne", r#"{"document": {"_id": 1}}"#, 409),
        ("insertMany", r#"{"documents": [{"_id": 8}, {"_id": 1}], "ordered": false}"#, 409),
        ("bulkWrite", r#"{"operations": [{"insertOne": {"document": {"_id": 1}}}], "ordered": false}"#, 409),
        ("find", r#"{"filter": {"$foo": 1}}"#, 400),
        ("updateOne", r#"{"filter": {}, "update": {"$set": {"a": 1}}, "writeConcern": {"j": true}}"#, 400),
        ("count", "{", 400),
    ] {
        let id = begin(&server);
        inside(&server, &id, "insertOne", r#"{"document": {"_id": 99}}"#).expect(201);
        let failed = inside(&server, &id, operation, body);
        assert_eq!(failed.status, status, "{operation}: {}", failed.text());
        assert_eq!(end(&server, &id, "commit").error(404), "NoSuchTransaction", "{operation}");
    }
    assert_eq!(server.post("/v1/db/bank/accounts/count", "{}").expect(200)["count"], 3);
    let id = begin(&server);
    inside(&server, &id, "insertOne", r#"{"document": {"_id": 99}}"#).expect(201);
    assert_eq!(end(&server, &id, "abort").expect(200), json!({"aborted": true}));
    assert_eq!(server.post("/v1/db/bank/accounts/count", "{}").expect(200)["count"], 3);
}

#[test]
fn open_transactions_are_bounded_and_idle_ones_end() {
    let server = Server::with(&["--transactions", "2", "--transaction-idle", "300ms"]);
    let (a, _b) = (begin(&server), begin(&server));
    let refused = server.request("POST", "/v1/transactions", &[], b"");
    assert_eq!(refused.error(429), "TooManyRequests");
    // Asked again until those are let go of.
    let begun = std::time::Instant::now();
    while server.request("POST", "/v1/transactions", &[], b"").status != 201 {
        assert!(begun.elapsed() < crate::common::PATIENCE, "idle transactions do not end");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(end(&server, &a, "commit").error(404), "NoSuchTransaction");
}

#[test]
fn fifty_clients_on_one_row_lose_nothing() {
    let server = bank();
    std::thread::scope(|scope| {
        for client in 0..50 {
            let server = &server;
            scope.spawn(move || {
                let mut connection = server.connect();
                for i in 0..10 {
                    let body = json!({"operations": [
                        {"ns": "bank.accounts", "updateOne": {"filter": {"_id": 3}, "update": {"$inc": {"money": 1}}}, "expect": {"matchedCount": 1}},
                        {"ns": "bank.history", "insertOne": {"document": {"_id": client * 10 + i}}},
                    ]});
                    connection.request("POST", "/v1/transaction", &[], body.to_string().as_bytes()).expect(200);
                }
            });
        }
    });
    assert_eq!(money(&server, "3"), 500);
    assert_eq!(server.post("/v1/db/bank/history/count", "{}").expect(200)["count"], 500);
}
