//! Every refusal in one shape: routes, methods, options, content types, hosts, origins, what is not built yet.

use serde_json::json;

use crate::common::Server;

#[test]
fn every_fault_has_the_same_shape() {
    let server = Server::start();
    assert_eq!(server.get("/nope").error(404), "NoSuchRoute");
    assert_eq!(server.get("/v1/db/d/c/frobnicate/x").error(404), "NoSuchRoute");
    assert_eq!(server.post("/v1/db/d/c/frobnicate", "{}").error(404), "NoSuchRoute");
    let wrong = server.get("/v1/db/d/c/find");
    assert_eq!((wrong.error(405).as_str(), wrong.header("allow")), ("MethodNotAllowed", Some("POST")));
    assert_eq!(server.post("/healthz", "").error(405), "MethodNotAllowed");
    assert_eq!(server.request("BREW", "/v1/db", &[], b"").error(405), "MethodNotAllowed");
    assert!(server.get("/nope").header("x-request-id").is_some());
    let theirs = server.request("GET", "/healthz", &[("X-Request-Id", "mine-42")], b"");
    assert_eq!(theirs.header("x-request-id"), Some("mine-42"));
    let head = server.request("HEAD", "/healthz", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn a_body_that_is_no_json_and_a_wrong_method_are_told_apart() {
    let server = Server::start();
    assert_eq!(server.post("/v1/db/d/c/aggregate", "{").error(400), "InvalidJson");
    assert_eq!(server.get("/v1/db/d/c/aggregate").error(405), "MethodNotAllowed");
    assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 0);
}

#[test]
fn each_mistake_in_a_body_names_its_place() {
    let server = Server::start();
    for (operation, body, place) in [
        ("find", r#"{"filter": {"$or": [{}, {}, {"age": {"$in": 5}}]}}"#, "filter.$or[2].age.$in"),
        ("find", r#"{"filter": {"b": 1}, "hint": "nope"}"#, "hint"),
        ("find", r#"{"hint": 5}"#, "hint"),
        ("find", r#"{"filter": {"x": 1}, "projection": {"a.$": 1}}"#, "projection.a.$"),
        ("find", r#"{"limit": -1}"#, "limit"),
        ("find", r#"{"skip": 1.5}"#, "skip"),
        ("find", r#"{"limt": 5}"#, "limt"),
        ("find", r#"{"maxTimeMS": -5}"#, "maxTimeMS"),
        ("find", r#"{"sort": {"a": 7}}"#, "sort.a"),
        ("distinct", r#"{}"#, "key"),
        ("insertMany", r#"{"documents": []}"#, "documents"),
        ("updateOne", r#"{"filter": {}, "update": {"$set": {"a": 1}}, "writeConcern": {"w": 7}}"#, "writeConcern.w"),
        ("updateOne", r#"{"filter": {}, "update": {"$push": {"v": {"$each": 5}}}}"#, "update.$push.v.$each"),
        ("updateOne", r#"{"filter": {}}"#, "update"),
        ("findOneAndUpdate", r#"{"update": {"$set": {"a": 1}}, "returnDocument": "later"}"#, "returnDocument"),
        ("bulkWrite", r#"{"operations": []}"#, "operations"),
        ("bulkWrite", r#"{"operations": [{"frobnicate": {}}]}"#, "operations[0].frobnicate"),
        ("bulkWrite", r#"{"operations": [{"deleteOne": {"hint": "x"}}]}"#, "operations[0].deleteOne.hint"),
        ("bulkWrite", r#"{"operations": [{"insertOne": {}}]}"#, "operations[0].insertOne.document"),
    ] {
        let answer = server.post(&format!("/v1/db/d/c/{operation}"), body).expect(400);
        assert_eq!(answer["place"], place, "{operation} {body}: {answer}");
    }
    // What goes wrong on a document: the operator that could not be applied; an expression has none.
    server.post("/v1/db/d/c/insertOne", r#"{"document": {"_id": 1, "a": "x", "v": [{"x": 1}]}}"#).expect(201);
    for (update, code, place) in [
        (r#"{"$inc": {"a": 1}}"#, 14, "update.$inc.a"),
        (r#"{"$set": {"b": 1, "a.b": 1}}"#, 28, "update.$set.a.b"),
        (r#"{"$set": {"b": 1}, "$push": {"a": 1}}"#, 2, "update.$push.a"),
        (r#"{"$rename": {"v.x": "y"}}"#, 28, "update.$rename.v.x"),
        (r#"{"$rename": {"v.0.x": "y"}}"#, 2, "update.$rename.v.0.x"),
        (r#"{"$set": {"v.$.x": 1}}"#, 2, "update.$set.v.$.x"),
        (r#"{"$set": {"a.$[].x": 1}}"#, 2, "update.$set.a.$[].x"),
        (r#"{"$set": {"w.$[].x": 1}}"#, 2, "update.$set.w.$[].x"),
        (r#"{"$set": {"v.9999999": 1}}"#, 34, "update.$set.v.9999999"),
    ] {
        let answer = server.post("/v1/db/d/c/updateOne", &format!(r#"{{"update": {update}}}"#)).json();
        assert!(answer["code"] == code && answer["place"] == place, "{update}: {answer}");
    }
    let answer = server.post(
        "/v1/db/d/c/updateOne",
        r#"{"update": [{"$set": {"b": {"$divide": ["$_id", {"$subtract": ["$_id", 1]}]}}}]}"#,
    );
    assert!(answer.json().get("place").is_none(), "{}", answer.text());
}

#[test]
fn a_typo_in_an_option_never_returns_everything() {
    let server = Server::start();
    server.post("/v1/db/d/c/insertOne", r#"{"document": {"_id": 1, "a": 1}}"#).expect(201);
    for body in [
        r#"{"filter": {"b": 1}, "hint": "nope"}"#,
        r#"{"hint": {"zz": 1}}"#,
        r#"{"hint": 5}"#,
        r#"{"sort": {"a": "up"}}"#,
        r#"{"sort": [1]}"#,
        r#"{"limit": -1}"#,
        r#"{"skip": -1}"#,
        r#"{"limit": 1.5}"#,
        r#"{"limit": "5"}"#,
        r#"{"projection": {"a": {"$foo": 1}}}"#,
        r#"{"filter": [1]}"#,
        r#"{"filter": {"$foo": 1}}"#,
        r#"{"filter": {"a": {"$foo": 1}}}"#,
        r#"{"limt": 5}"#,
        r#"{"maxTimeMS": -5}"#,
        r#"{"maxTimeMS": "soon"}"#,
        r#"{"let": 5}"#,
        "[]",
        "5",
        "{",
        "",
        "\u{0}",
    ] {
        let answer = server.post("/v1/db/d/c/find", body);
        assert_eq!(answer.status, 400, "{body} answered {}", answer.text());
        answer.error(400);
    }
    let unknown = server.post("/v1/db/d/c/deleteMany", r#"{"filter": {}, "limit": 1}"#);
    assert!(unknown.json()["error"].as_str().unwrap().contains("\"limit\""), "{}", unknown.text());
    assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 1);
    for five in ["5", r#"{"$numberInt": "5"}"#, "5.0"] {
        let found =
            server.post("/v1/db/d/c/find", &format!(r#"{{"limit": {five}, "hint": "_id_", "comment": {{"a": [1]}}}}"#));
        assert_eq!(found.expect(200)["documents"].as_array().unwrap().len(), 1);
    }
    assert_eq!(server.request("POST", "/v1/db/d/c/find?trialer=true", &[], b"{}").error(400), "IDLUnknownField");
}

#[test]
fn content_types_are_json_and_nothing_a_form_can_send() {
    let server = Server::start();
    let send = |headers: &[(&str, &str)]| server.request("POST", "/v1/db/d/c/count", headers, b"{}");
    for fine in [
        "application/json",
        "application/ejson",
        "application/json; charset=utf-8",
        "application/x-www-form-urlencoded",
    ] {
        send(&[("Content-Type", fine)]).expect(200);
    }
    send(&[]).expect(200);
    for wrong in ["text/plain", "multipart/form-data; boundary=x", "application/xml", "application/x-ndjson"] {
        assert_eq!(send(&[("Content-Type", wrong)]).error(415), "UnsupportedMediaType");
    }
    let page = Server::with(&["--cors-origins", "https://app.test"]);
    let send = |kind: &str| {
        page.request("POST", "/v1/db/d/c/count", &[("Content-Type", kind), ("Origin", "https://app.test")], b"{}")
    };
    send("application/json").expect(200);
    assert_eq!(send("application/x-www-form-urlencoded").error(415), "UnsupportedMediaType");
    let bare = page.request("POST", "/v1/db/d/c/count", &[("Origin", "https://app.test")], b"{}");
    assert_eq!(bare.error(415), "UnsupportedMediaType");
}

#[test]
fn a_page_that_the_user_visits_cannot_reach_the_database() {
    let server = Server::start();
    for host in ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test:7117", "10.0.0.1"] {
        assert_eq!(server.request("GET", "/v1/db", &[("Host", host)], b"").error(403), "Forbidden", "{host}");
    }
    for host in ["localhost", "localhost:1", "127.0.0.1:7117", "[::1]:7117"] {
        server.request("GET", "/v1/db", &[("Host", host)], b"").expect(200);
    }
    assert_eq!(server.request("GET", "http://evil.test/v1/db", &[], b"").error(403), "Forbidden");
    let foreign = server.request(
        "POST",
        "/v1/db/d/c/count",
        &[("Origin", "https://evil.test"), ("Content-Type", "application/json")],
        b"{}",
    );
    assert_eq!(foreign.error(403), "Forbidden");
    assert_eq!(foreign.header("access-control-allow-origin"), None);
    let preflight = [("Origin", "https://evil.test"), ("Access-Control-Request-Method", "POST")];
    let refused = server.request("OPTIONS", "/v1/db/d/c/count", &preflight, b"");
    assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None));
    let allowed = Server::with(&["--allowed-hosts", "db.internal,other"]);
    allowed.request("GET", "/v1/db", &[("Host", "db.internal:80")], b"").expect(200);
}

#[test]
fn names_never_leave_their_place() {
    let server = Server::start();
    let insert = r#"{"document": {"a": 1}}"#;
    for name in ["%2e%2e%2fx", "..%2Fx", "a%2Fb", "a%5Cb", "a%00b", "system.x", "$x", "%C3%A9", "a%20b", "%20", "%FF"] {
        for path in [format!("/v1/db/d/{name}/insertOne"), format!("/v1/db/{name}/c/insertOne")] {
            if path == "/v1/db/system.x/c/insertOne" {
                continue;
            }
            let answer = server.post(&path, insert);
            assert_eq!(
                (answer.error(400).as_str(), answer.json()["code"].as_i64()),
                ("InvalidNamespace", Some(73)),
                "{path}"
            );
        }
    }
    // Dots name no database; a collection they may name, which is no file of that name.
    for dots in ["..", ".", "%2e%2e"] {
        assert_eq!(server.post(&format!("/v1/db/{dots}/c/insertOne"), insert).error(400), "InvalidNamespace");
        server.post(&format!("/v1/db/dots/{dots}/insertOne"), insert).expect(201);
    }
    server.request("DELETE", "/v1/db/dots", &[], b"").expect(200);
    let long = "x".repeat(300);
    assert_eq!(server.post(&format!("/v1/db/d/{long}/count"), "{}").error(400), "InvalidNamespace");
    assert_eq!(server.post("/v1/db//c/count", "{}").error(400), "InvalidNamespace");
    server.post("/v1/db/d/A/insertOne", r#"{"document": {"_id": 1}}"#).expect(201);
    assert_eq!(server.post("/v1/db/d/a/count", "{}").expect(200)["count"], 0);
    assert_eq!(server.get("/v1/db").expect(200)["databases"][0]["collections"], json!(1));
    let outside: Vec<_> =
        std::fs::read_dir(server.data().parent().unwrap()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(outside, ["data"]);
}

#[test]
fn the_server_describes_itself() {
    let server = Server::start();
    assert_eq!(server.get("/healthz").expect(200), json!({"status": "ok"}));
    assert_eq!(server.get("/livez").status, 200);
    assert_eq!(server.get("/readyz").expect(200), json!({"status": "ready"}));
    let page = server.get("/");
    assert!(page.status == 200 && page.text().contains("openapi.json"));
    let open = server.get("/openapi.json").expect(200);
    assert!(open["paths"]["/v1/db/{db}/{coll}/find"]["post"].is_object());
    server.post("/v1/db/d/c/insertOne", r#"{"document": {"a": 1}}"#).expect(201);
    server.post("/v1/db/d/c/count", r#"{"filter": {"a": 1}}"#).expect(200);
    assert_eq!(server.metric(r#"quarrydb_operation_seconds_count{operation="insertOne"}"#), 1);
    assert!(server.metric("quarrydb_log_syncs_total") >= 1);
    assert!(server.metric("quarrydb_documents_examined_total") >= 1);
    assert_eq!(server.metric("quarrydb_writable"), 1);
}
