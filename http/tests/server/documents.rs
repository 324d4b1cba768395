//! Storing, finding, changing and deleting documents; what is stored comes back as it was.

use serde_json::json;

use crate::common::Server;

#[test]
fn what_is_inserted_is_found_after_sigkill() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(dir.path(), &[]);
    let id = server.post("/v1/db/shop/items/insertOne", r#"{"document": {"name": "pick"}}"#).expect(201);
    assert_eq!(id["insertedId"]["$oid"].as_str().unwrap().len(), 24);
    server.kill();
    let server = Server::on(dir.path(), &[]);
    let found = server.post("/v1/db/shop/items/findOne", r#"{"filter": {"name": "pick"}}"#).expect(200);
    assert_eq!(found["document"], json!({"_id": id["insertedId"], "name": "pick"}));
}

#[test]
fn numbers_and_strings_come_back_digit_for_digit() {
    let server = Server::start();
    let text = r#"{"_id":1,"a":411222333444555661,"b":9223372036854775807,"c":-9007199254740993,"f":0.1,"g":1.0,"h":1700000000000000001,"s":"\u0000x"}"#;
    server.post("/v1/db/d/c/insertOne", &format!(r#"{{"document": {text}}}"#)).expect(201);
    assert_eq!(server.get("/v1/db/d/c/doc/1").text(), text);
    let count = |filter: &str| {
        server.post("/v1/db/d/c/count", &format!(r#"{{"filter": {filter}}}"#)).expect(200)["count"].clone()
    };
    assert_eq!(count(r#"{"a": 411222333444555661}"#), 1);
    assert_eq!(count(r#"{"a": 411222333444555660}"#), 0);
    for wrong in [r#"{"e": 1e400}"#, r#"{"s": "\ud800"}"#, r#"{"s": }"#] {
        let answer = server.post("/v1/db/d/c/insertOne", &format!(r#"{{"document": {wrong}}}"#));
        assert_eq!(answer.error(400), "InvalidJson", "{wrong}");
        assert!(answer.json()["line"] == 1 && answer.json()["column"].as_u64().unwrap() > 1, "{}", answer.text());
    }
    assert_eq!(count("{}"), 1);
}

#[test]
fn types_come_from_the_wire_form_only() {
    let server = Server::start();
    let hex = "65a1b2c3d4e5f60718293a4b";
    let document = format!(r#"{{"_id":"{hex}","r":{{"$oid":"{hex}"}},"n":{{"$numberLong":"5"}}}}"#);
    server.post("/v1/db/d/c/insertOne", &format!(r#"{{"document": {document}}}"#)).expect(201);
    let count = |filter: String| {
        server.post("/v1/db/d/c/count", &format!(r#"{{"filter": {filter}}}"#)).expect(200)["count"].clone()
    };
    assert_eq!(count(format!(r#"{{"_id": "{hex}"}}"#)), 1);
    assert_eq!(count(format!(r#"{{"_id": {{"$oid": "{hex}"}}}}"#)), 0);
    assert_eq!(count(format!(r#"{{"r": "{hex}"}}"#)), 0);
    assert_eq!(count(format!(r#"{{"r": {{"$oid": "{hex}"}}}}"#)), 1);
    assert_eq!(server.post("/v1/db/d/c/insertOne", r#"{"document": {"x": {"$oid": "zz"}}}"#).status, 400);
    let canonical = server.request("POST", "/v1/db/d/c/findOne", &[("Accept", "application/ejson")], b"{}");
    assert_eq!(canonical.header("content-type"), Some("application/ejson"));
    assert_eq!(canonical.text(), format!(r#"{{"document":{document}}}"#));
    let relaxed = server.post("/v1/db/d/c/findOne", "{}");
    assert_eq!(relaxed.text(), format!(r#"{{"document":{{"_id":"{hex}","r":{{"$oid":"{hex}"}},"n":5}}}}"#));
}

#[test]
fn insert_many_stops_or_goes_on_and_says_what_failed() {
    let server = Server::start();
    let body = |ordered| {
        format!(
            r#"{{"documents": [{{"_id": 1}}, {{"_id": 1}}, {{"_id": 2, "a": 1, "a": 2}}, {{"_id": 3}}], "ordered": {ordered}}}"#
        )
    };
    let ordered = server.post("/v1/db/d/ordered/insertMany", &body(true)).expect(409);
    assert_eq!((&ordered["insertedCount"], &ordered["insertedIds"]), (&json!(1), &json!([1])));
    assert_eq!(ordered["code"], 11000);
    let first = &ordered["writeErrors"][0];
    assert_eq!(
        (&first["index"], &first["code"], &first["error_code"]),
        (&json!(1), &json!(11000), &json!("DuplicateKey"))
    );
    assert_eq!(
        (&first["indexName"], &first["keyPattern"], &first["keyValue"]),
        (&json!("_id_"), &json!({"_id": 1}), &json!({"_id": 1}))
    );
    assert_eq!(ordered["writeErrors"].as_array().unwrap().len(), 1);
    let unordered = server.post("/v1/db/d/unordered/insertMany", &body(false)).expect(409);
    assert_eq!((&unordered["insertedCount"], &unordered["insertedIds"]), (&json!(2), &json!([1, 3])));
    let indexes: Vec<_> = unordered["writeErrors"].as_array().unwrap().iter().map(|e| e["index"].clone()).collect();
    assert_eq!(indexes, [json!(1), json!(2)]);
    let whole = server.post("/v1/db/d/whole/insertMany", r#"{"documents": [{"_id": 2}, {"_id": 1}]}"#).expect(201);
    assert_eq!(whole, json!({"insertedIds": [2, 1], "insertedCount": 2}));
}

#[test]
fn an_insert_takes_documents_and_nothing_else() {
    let server = Server::start();
    for (operation, body) in [
        ("insertOne", r#"{"document": [{"_id": 1}]}"#),
        ("insertOne", r#"{"document": [{"_id": 1}, {"_id": 2}]}"#),
        ("insertOne", r#"{"document": 5}"#),
        ("insertOne", r#"{}"#),
        ("insertOne", r#"{"documents": [{"_id": 1}]}"#),
        ("insertOne", r#"{"document": {"_id": [1]}}"#),
        ("insertMany", r#"{"documents": {"_id": 1}}"#),
        ("insertMany", r#"{"documents": []}"#),
        ("insertMany", r#"{"documents": [5]}"#),
        ("insertMany", r#"{"documents": [{"_id": 1}], "ordered": "yes"}"#),
        ("insertMany", r#"{"documents": [{"_id": 1}], "order": true}"#),
        ("insertMany", ""),
    ] {
        let answer = server.post(&format!("/v1/db/d/c/{operation}"), body);
        answer.error(400);
    }
    assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 0);
    assert_eq!(server.get("/v1/db").expect(200), json!({"databases": []}));
}

#[test]
fn updates_replacements_and_deletes_say_what_they_did() {
    let server = Server::start();
    let post = |op: &str, body: &str| server.post(&format!("/v1/db/d/c/{op}"), body).expect(200);
    server
        .post("/v1/db/d/c/insertMany", r#"{"documents": [{"_id": 1, "n": 1}, {"_id": 2, "n": 2}, {"_id": 3, "n": 3}]}"#)
        .expect(201);
    assert_eq!(
        post("updateOne", r#"{"filter": {"_id": 1}, "update": {"$inc": {"n": 10}}}"#),
        json!({"matchedCount": 1, "modifiedCount": 1})
    );
    assert_eq!(
        post("updateOne", r#"{"filter": {"_id": 1}, "update": {"$set": {"n": 11}}}"#),
        json!({"matchedCount": 1, "modifiedCount": 0})
    );
    assert_eq!(
        post("updateMany", r#"{"filter": {"n": {"$lt": 10}}, "update": {"$set": {"small": true}}}"#),
        json!({"matchedCount": 2, "modifiedCount": 2})
    );
    assert_eq!(
        post("updateOne", r#"{"filter": {"_id": 9}, "update": {"$set": {"n": 9}}, "upsert": true}"#),
        json!({"matchedCount": 0, "modifiedCount": 0, "upsertedId": 9})
    );
    assert_eq!(
        post("replaceOne", r#"{"filter": {"_id": 9}, "replacement": {"x": 1}}"#),
        json!({"matchedCount": 1, "modifiedCount": 1})
    );
    assert_eq!(post("findOne", r#"{"filter": {"_id": 9}}"#), json!({"document": {"_id": 9, "x": 1}}));
    assert_eq!(post("findOne", r#"{"filter": {"_id": 10}}"#), json!({"document": null}));
    assert_eq!(post("deleteOne", r#"{"filter": {"small": true}}"#), json!({"deletedCount": 1}));
    assert_eq!(post("deleteMany", r#"{"filter": {"n": {"$exists": true}}}"#), json!({"deletedCount": 2}));
    assert_eq!(post("find", "{}"), json!({"documents": [{"_id": 9, "x": 1}]}));
    assert_eq!(server.post("/v1/db/d/c/updateOne", r#"{"filter": {}}"#).error(400), "IDLFailedToParse");
    assert_eq!(
        server
            .post("/v1/db/d/c/updateMany", r#"{"filter": {}, "update": {"$set": {"a": 1}}, "sort": {"a": 1}}"#)
            .error(400),
        "IDLUnknownField"
    );
}

#[test]
fn a_document_by_its_id_for_a_person_with_curl() {
    let server = Server::start();
    let at = |id: &str| format!("/v1/db/d/c/doc/{id}");
    let json = [("Content-Type", "application/json")];
    assert_eq!(server.request("PUT", &at("a%20b%2Fc"), &json, br#"{"n": 1}"#).status, 201);
    assert_eq!(server.request("PUT", &at("a%20b%2Fc"), &json, br#"{"n": 2}"#).status, 200);
    assert_eq!(server.get(&at("a%20b%2Fc")).expect(200), json!({"_id": "a b/c", "n": 2}));
    assert_eq!(server.request("PUT", &at("7"), &json, br#"{"_id": 7}"#).status, 201);
    assert_eq!(server.get(&at("7")).expect(200), json!({"_id": 7}));
    assert_eq!(server.get(&at("7?type=string")).error(404), "NoSuchDocument");
    assert_eq!(server.request("PUT", &at("7"), &json, br#"{"_id": 8}"#).status, 400);
    assert_eq!(server.request("PATCH", &at("7"), &json, br#"{"$set": {"n": 5}}"#).expect(200)["modifiedCount"], 1);
    assert_eq!(server.request("PATCH", &at("77"), &json, br#"{"$set": {"n": 5}}"#).error(404), "NoSuchDocument");
    assert_eq!(server.request("DELETE", &at("7"), &[], b"").expect(200)["deletedCount"], 1);
    assert_eq!(server.request("DELETE", &at("7"), &[], b"").error(404), "NoSuchDocument");
    let hex = "65a1b2c3d4e5f60718293a4b";
    server.request("PUT", &at(hex), &json, b"{}").expect(201);
    assert_eq!(server.get(&at(hex)).expect(200)["_id"]["$oid"], hex);
    assert_eq!(server.get(&at("x?type=colour")).error(400), "BadValue");
    assert_eq!(server.get(&at("x?tpye=int")).error(400), "IDLUnknownField");
    assert_eq!(server.get(&at("%ff")).status, 400);
}

#[test]
fn collections_are_made_listed_described_and_dropped() {
    let server = Server::start();
    assert_eq!(server.request("PUT", "/v1/db/shop/items", &[], b"").status, 201);
    assert_eq!(server.request("PUT", "/v1/db/shop/items", &[], b"{}").status, 200);
    assert_eq!(server.request("PUT", "/v1/db/shop/items", &[], b"{\"capped\": true}").error(400), "IDLUnknownField");
    server.post("/v1/db/shop/items/insertOne", r#"{"document": {"a": 1}}"#).expect(201);
    let listed = server.get("/v1/db").expect(200)["databases"][0].clone();
    assert_eq!((&listed["name"], &listed["collections"], &listed["documents"]), (&json!("shop"), &json!(1), &json!(1)));
    assert_eq!(server.get("/v1/db/shop").expect(200)["collections"][0]["name"], "items");
    let described = server.get("/v1/db/shop/items").expect(200);
    assert_eq!((&described["documents"], &described["indexes"][0]["name"]), (&json!(1), &json!("_id_")));
    assert_eq!(server.get("/v1/db/shop/items/indexes").expect(200)["indexes"][0]["state"], "ready");
    assert_eq!(server.get("/v1/db/shop/nothing").expect(200)["documents"], 0);
    assert_eq!(server.request("DELETE", "/v1/db/shop/items", &[], b"").expect(200), json!({"dropped": true}));
    assert_eq!(server.request("DELETE", "/v1/db/shop/items", &[], b"").expect(200), json!({"dropped": false}));
    server.post("/v1/db/shop/b/insertOne", r#"{"document": {"a": 1}}"#).expect(201);
    assert_eq!(server.request("DELETE", "/v1/db/shop", &[], b"").expect(200), json!({"dropped": true}));
    assert_eq!(server.get("/v1/db").expect(200), json!({"databases": []}));
}

#[test]
fn the_data_api_answers_in_its_own_forms() {
    let server = Server::start();
    let head = r#""dataSource": "x", "database": "shop", "collection": "items""#;
    for (i, prefix) in ["", "/data/v1", "/app/my-app/endpoint/data/v1"].iter().enumerate() {
        let at = |action: &str| format!("{prefix}/action/{action}");
        let inserted = server
            .post(
                &at("insertOne"),
                &format!(r#"{{{head}, "document": {{"n": {i}, "at": {{"$date": "2024-01-15T12:30:00Z"}}}}}}"#),
            )
            .expect(201);
        let hex = inserted["insertedId"].as_str().unwrap().to_owned();
        assert_eq!(hex.len(), 24);
        let find = format!(r#"{{{head}, "filter": {{"n": {i}}}}}"#);
        let found = server.post(&at("findOne"), &find).expect(200)["document"].clone();
        assert_eq!((&found["_id"], &found["at"]), (&json!(hex), &json!("2024-01-15T12:30:00Z")));
        let canonical =
            server.request("POST", &at("find"), &[("Accept", "application/ejson")], find.as_bytes()).expect(200);
        assert_eq!(canonical["documents"][0]["n"], json!({"$numberInt": i.to_string()}));
        let updated = server.post(
            &at("updateOne"),
            &format!(r#"{{{head}, "filter": {{"n": {i}}}, "update": {{"$set": {{"n": {i}}}}}}}"#),
        );
        assert_eq!(updated.expect(200), json!({"matchedCount": 1, "modifiedCount": 0}));
    }
    let many =
        server.post("/action/insertMany", &format!(r#"{{{head}, "documents": [{{"_id": "a"}}, {{"_id": "b"}}]}}"#));
    assert_eq!(many.expect(201), json!({"insertedIds": ["a", "b"]}));
    assert_eq!(server.post("/action/find", r#"{"database": "shop", "filter": {}}"#).status, 400);
    assert_eq!(server.post("/action/dropDatabase", "{}").error(404), "NoSuchRoute");
    assert_eq!(server.post("/v1/db/shop/items/find", &format!("{{{head}}}")).error(400), "IDLUnknownField");
}
