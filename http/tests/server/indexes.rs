//! Declared indexes over HTTP: made, listed, dropped, enforced, hinted at.

use serde_json::{Value, json};

use crate::common::Server;

fn indexes(server: &Server) -> Vec<Value> {
    server.get("/v1/db/d/c/indexes").expect(200)["indexes"].as_array().unwrap().clone()
}

#[test]
fn an_index_is_made_listed_and_dropped() {
    let server = Server::start();
    // It makes its collection.
    let made = server.post("/v1/db/d/c/createIndex", r#"{"keys": {"a": 1, "b.c": -1}}"#);
    assert_eq!(made.expect(201), json!({"name": "a_1_b.c_-1"}));
    assert_eq!(server.post("/v1/db/d/c/createIndex", r#"{"keys": {"a": 1, "b.c": -1}}"#).status, 200);
    assert_eq!(server.post("/v1/db/d/c/createIndex", r#"{"keys": {"_id": 1}}"#).expect(200), json!({"name": "_id_"}));
    let options = r#"{"keys": {"t": 1}, "name": "soon", "expireAfterSeconds": 3600, "comment": "x"}"#;
    server.post("/v1/db/d/c/createIndex", options).expect(201);
    let partial = r#"{"keys": {"p": 1}, "partialFilterExpression": {"n": {"$gt": 5}}, "unique": true}"#;
    server.post("/v1/db/d/c/createIndex", partial).expect(201);
    let list = indexes(&server);
    let names: Vec<_> = list.iter().map(|index| index["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["_id_", "a_1_b.c_-1", "soon", "p_1"]);
    assert_eq!(list[1]["keys"], json!({"a": 1, "b.c": -1}));
    assert_eq!((&list[1]["state"], &list[1]["progress"]), (&json!("ready"), &json!(1.0)));
    assert_eq!(list[2]["expireAfterSeconds"], 3600);
    assert_eq!((&list[3]["partialFilterExpression"], &list[3]["unique"]), (&json!({"n": {"$gt": 5}}), &json!(true)));
    let stats = server.get("/v1/db/d/c").expect(200);
    assert_eq!(stats["indexes"].as_array().unwrap().len(), 4);
    assert!(stats["indexSizes"]["soon"].is_number() && stats["bytes"]["indexes"].is_number());

    assert_eq!(server.post("/v1/db/d/c/dropIndex", r#"{"name": "soon"}"#).expect(200), json!({}));
    assert_eq!(server.post("/v1/db/d/c/dropIndex", r#"{"name": "soon"}"#).error(404), "IndexNotFound");
    assert_eq!(server.post("/v1/db/d/c/dropIndex", r#"{"name": "_id_"}"#).error(400), "InvalidOptions");
    assert_eq!(server.post("/v1/db/d/none/dropIndex", r#"{"name": "x"}"#).error(404), "IndexNotFound");
    assert_eq!(indexes(&server).len(), 3);
}

#[test]
fn what_cannot_be_an_index_is_refused() {
    let server = Server::start();
    server.post("/v1/db/d/c/createIndex", r#"{"keys": {"a": 1}}"#).expect(201);
    for (body, status, name) in [
        (r#"{"keys": {"a": "text"}}"#, 400, "CannotCreateIndex"),
        (r#"{"keys": {}}"#, 400, "CannotCreateIndex"),
        (r#"{"keys": {"a": 1}, "wrong": 1}"#, 400, "IDLUnknownField"),
        (r#"{"keys": {"a": 1}, "unique": true}"#, 409, "IndexKeySpecsConflict"),
        (r#"{"keys": {"a": 1}, "name": "b"}"#, 409, "IndexOptionsConflict"),
        (r#"{"keys": {"a": 1}, "expireAfterSeconds": 5}"#, 409, "IndexOptionsConflict"),
        (r#"{"indexes": []}"#, 400, "BadValue"),
        (r#"{"indexes": [{"keys": {"b": 1}}, {"keys": {"c": 0}}]}"#, 400, "CannotCreateIndex"),
        (r#"{"indexes": [{"keys": {"b": 1}}], "unique": true}"#, 400, "BadValue"),
        ("{}", 400, "IDLFailedToParse"),
    ] {
        assert_eq!(server.post("/v1/db/d/c/createIndex", body).error(status), name, "{body}");
    }
    assert_eq!(indexes(&server).len(), 2);
    let several = server.post("/v1/db/d/c/createIndex", r#"{"indexes": [{"keys": {"b": 1}}, {"keys": {"c": 1}}]}"#);
    assert_eq!(several.expect(201), json!({"names": ["b_1", "c_1"]}));
}

#[test]
fn a_unique_index_holds_in_every_operation_that_writes() {
    let server = Server::start();
    let documents = r#"{"documents": [{"_id": 1, "k": "a"}, {"_id": 2, "k": "b"}]}"#;
    server.post("/v1/db/d/c/insertMany", documents).expect(201);
    server.post("/v1/db/d/c/createIndex", r#"{"keys": {"k": 1}, "unique": true}"#).expect(201);
    for (operation, body) in [
        ("insertOne", r#"{"document": {"_id": 3, "k": "a"}}"#),
        ("updateOne", r#"{"filter": {"_id": 2}, "update": {"$set": {"k": "a"}}}"#),
        ("updateMany", r#"{"filter": {}, "update": {"$set": {"k": "z"}}}"#),
        ("replaceOne", r#"{"filter": {"_id": 2}, "replacement": {"k": "a"}}"#),
        ("updateOne", r#"{"filter": {"_id": 9}, "update": {"$set": {"k": "a"}}, "upsert": true}"#),
        ("findOneAndUpdate", r#"{"filter": {"_id": 2}, "update": {"$set": {"k": "a"}}}"#),
        ("findOneAndReplace", r#"{"filter": {"_id": 2}, "replacement": {"k": "a"}}"#),
    ] {
        let answer = server.post(&format!("/v1/db/d/c/{operation}"), body);
        assert_eq!(answer.error(409), "DuplicateKey", "{operation}");
        let error = answer.json();
        assert_eq!((&error["code"], &error["indexName"]), (&json!(11000), &json!("k_1")), "{operation}");
        assert_eq!(error["keyPattern"], json!({"k": 1}));
    }
    assert_eq!(server.request("PUT", "/v1/db/d/c/doc/7", &[], br#"{"k": "b"}"#).error(409), "DuplicateKey");
    let many = r#"{"documents": [{"_id": 4, "k": "d"}, {"_id": 5, "k": "d"}, {"_id": 6, "k": "e"}], "ordered": false}"#;
    let answer = server.post("/v1/db/d/c/insertMany", many).expect(409);
    assert_eq!((&answer["insertedCount"], &answer["writeErrors"][0]["index"]), (&json!(2), &json!(1)));
    assert_eq!(answer["writeErrors"][0]["keyValue"], json!({"k": "d"}));
    let bulk = r#"{"operations": [{"deleteOne": {"filter": {"_id": 1}}}, {"insertOne": {"document": {"_id": 8, "k": "a"}}},
        {"insertOne": {"document": {"_id": 9, "k": "a"}}}]}"#;
    let answer = server.post("/v1/db/d/c/bulkWrite", bulk).expect(409);
    assert_eq!((&answer["deletedCount"], &answer["insertedCount"]), (&json!(1), &json!(1)));
    assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 4);
    // Over what is there already.
    server.post("/v1/db/d/c/updateMany", r#"{"filter": {}, "update": {"$set": {"same": 1}}}"#).expect(200);
    let refused = server.post("/v1/db/d/c/createIndex", r#"{"keys": {"same": 1}, "unique": true}"#);
    assert_eq!(refused.error(409), "DuplicateKey");
    assert_eq!(refused.json()["keyValue"], json!({"same": 1}));
    assert_eq!(indexes(&server).len(), 2);
}

#[test]
fn hints_name_an_index_or_are_refused() {
    let server = Server::start();
    server.post("/v1/db/d/c/insertOne", r#"{"document": {"_id": 1, "a": 5}}"#).expect(201);
    server.post("/v1/db/d/c/createIndex", r#"{"keys": {"a": 1, "b": -1}}"#).expect(201);
    for hint in [r#""a_1_b_-1""#, r#"{"a": 1, "b": -1}"#, r#"{"a": 1.0, "b": -1}"#, r#""_id_""#, r#"{"$natural": 1}"#] {
        let body = format!("{{\"filter\": {{\"a\": 5}}, \"hint\": {hint}}}");
        assert_eq!(server.post("/v1/db/d/c/count", &body).expect(200)["count"], 1, "{hint}");
    }
    for hint in [r#""a_1""#, r#"{"a": 1}"#, r#"{"b": -1, "a": 1}"#] {
        let body = format!("{{\"filter\": {{\"a\": 5}}, \"hint\": {hint}}}");
        assert_eq!(server.post("/v1/db/d/c/find", &body).error(400), "BadValue", "{hint}");
    }
}
