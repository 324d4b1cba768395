//! The short way of small requests answers as the long way does, and hands a connection over without losing a byte.
//!
//! A header that the short way leaves to the long one, and that means nothing otherwise, tells the two apart.

use crate::common::{Answer, Connection, Server};

/// Sends a request the long way.
const LONG: (&str, &str) = ("Proxy-Connection", "keep-alive");

/// Operation, headers, body.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a str);

/// An answer without what is new in each.
fn comparable(answer: &Answer) -> (u16, Vec<(String, String)>, String, bool) {
    let mut headers = answer.headers.clone();
    for (name, value) in &mut headers {
        if matches!(name.as_str(), "x-request-id" | "date") {
            assert!(!value.is_empty());
            value.clear();
        }
    }
    headers.sort_unstable();
    (answer.status, headers, answer.text(), answer.whole)
}

#[test]
fn both_ways_answer_alike() {
    let servers = [Server::start(), Server::start()];
    let documents: Vec<String> = (0..3000).map(|i| format!(r#"{{"_id": {i}, "a": {}}}"#, i % 7)).collect();
    for server in &servers {
        let many = format!(r#"{{"documents": [{}]}}"#, documents.join(","));
        server.post("/v1/db/d/c/insertMany", &many).expect(201);
    }
    let accept = |value| [("Accept", value), ("User-Agent", "test")];
    let cases: &[Case<'_>] = &[
        ("insertOne", &[], r#"{"document": {"_id": "x", "b": [1, {"c": 2.5}]}}"#),
        ("insertOne", &[], r#"{"document": {"_id": "x"}}"#),
        ("insertOne", &[], r#"{"document": {"_id": "#),
        ("insertOne", &[], ""),
        ("insertOne", &[], "[]"),
        ("insertMany", &[], r#"{"documents": [{"_id": "y"}, {"_id": "x"}, {"_id": "z"}], "ordered": false}"#),
        ("findOne", &accept("application/ejson"), r#"{"filter": {"_id": "x"}}"#),
        ("findOne", &accept("application/json;q=0.1, application/ejson"), r#"{"filter": {"_id": 5}}"#),
        ("findOne", &[("X-Request-Id", "mine-1")], r#"{"filter": {"_id": "none"}}"#),
        ("findOne", &[], r#"{"filter": {"$foo": 1}}"#),
        ("find", &accept("application/x-ndjson"), r#"{"filter": {"a": 3}, "limit": 40}"#),
        ("find", &[("Accept-Encoding", "gzip")], r#"{"filter": {"_id": 3}}"#),
        ("find", &[], r#"{"filter": {"a": {"$gt": 1}}, "sort": {"_id": 1}}"#),
        ("find", &[], r#"{"filter": {}, "sort": {"_id": 1}, "maxTimeMS": 60000}"#),
        ("find", &[], r#"{"limit": -1}"#),
        ("count", &[("Content-Type", "application/json; charset=utf-8")], r#"{"filter": {"a": 2}}"#),
        ("count", &[("Content-Type", "text/plain")], "{}"),
        ("count", &[("Host", "evil.test")], "{}"),
        ("count", &[("Transaction-Id", "t")], "{}"),
        ("count", &[("Content-Encoding", "gzip")], "{}"),
        ("count", &[("Origin", "https://evil.test")], "{}"),
        ("distinct", &[], r#"{"key": "a"}"#),
        ("updateOne", &[], r#"{"filter": {"_id": 1}, "update": {"$inc": {"a": 1}}}"#),
        ("updateMany", &[], r#"{"filter": {"a": 5}, "update": {"$set": {"s": 1}}}"#),
        ("replaceOne", &[], r#"{"filter": {"_id": 2}, "replacement": {"n": 1}, "upsert": true}"#),
        ("findOneAndUpdate", &[], r#"{"filter": {"_id": 1}, "update": {"$inc": {"a": 1}}, "returnDocument": "after"}"#),
        ("findOneAndDelete", &[], r#"{"filter": {"_id": 9}}"#),
        ("deleteOne", &[], r#"{"filter": {"_id": 8}}"#),
        ("deleteMany", &[], r#"{"filter": {"a": 6}}"#),
        ("bulkWrite", &[], r#"{"operations": [{"insertOne": {"document": {"_id": "b"}}}]}"#),
        (
            "transaction",
            &[],
            r#"{"operations": [{"ns": "d.c", "updateOne": {"filter": {"_id": 4}, "update": {"$inc": {"a": 1}}}}, {"ns": "e.f", "count": {}}]}"#,
        ),
        (
            "transaction",
            &[],
            r#"{"operations": [{"ns": "d.c", "find": {"filter": {"a": 2}, "limit": 3, "sort": {"_id": 1}}}]}"#,
        ),
        ("transaction", &[], r#"{"operations": [{"ns": "d.c", "insertOne": {"document": {"_id": 4}}}]}"#),
        ("transaction", &[], r#"{"operations": [{"ns": "d.c", "count": {}, "expect": {"count": 0}}]}"#),
        ("transaction", &[("Transaction-Id", "t")], r#"{"operations": [{"ns": "d.c", "count": {}}]}"#),
        ("transaction", &[], ""),
        ("transaction", &[], "{"),
        ("aggregate", &[], "{}"),
        ("frobnicate", &[], "{}"),
        ("count", &[], "{}"),
    ];
    for (operation, headers, body) in cases {
        let path = match *operation {
            "transaction" => "/v1/transaction".to_owned(),
            operation => format!("/v1/db/d/c/{operation}"),
        };
        // After a request of another kind a connection stays on the long way.
        let [mut short, mut long] = [servers[0].connect(), servers[1].connect()];
        let ours = short.request("POST", &path, headers, body.as_bytes());
        let theirs = long.request("POST", &path, &[headers, &[LONG][..]].concat(), body.as_bytes());
        let (ours, theirs) = (comparable(&ours), comparable(&theirs));
        if *operation == "find"
            && ours.1.iter().any(|(_, v)| v == "chunked") != theirs.1.iter().any(|(_, v)| v == "chunked")
        {
            // Whether a stream ends before it had to begin is up to the machine.
            assert_eq!((ours.0, ours.2, ours.3), (theirs.0, theirs.2, theirs.3), "{operation} {body}");
        } else {
            assert_eq!(ours, theirs, "{operation} {headers:?} {body}");
        }
    }
}

fn post(operation: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("POST /v1/db/d/c/{operation} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
}

#[test]
fn requests_of_all_kinds_sent_ahead_in_any_pieces_are_answered_in_order() {
    let server = Server::start();
    let insert = |i: usize, fields: &str| post("insertOne", fields, &format!(r#"{{"document": {{"_id": {i}}}}}"#));
    let ahead = [
        insert(0, ""),
        post("find", "", r#"{"filter": {"_id": 0}}"#),
        insert(1, ""),
        // From here on it is the long way's.
        "GET /v1/db/d/c/doc/1 HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        insert(2, ""),
        insert(3, "Connection: close\r\n"),
    ]
    .concat();
    for piece in [1, 7, 100, ahead.len()] {
        let mut connection = server.connect();
        for bytes in ahead.as_bytes().chunks(piece) {
            assert!(connection.send(bytes));
        }
        assert_eq!(connection.answer(false).expect(201)["insertedId"], 0);
        assert_eq!(connection.answer(false).expect(200)["documents"][0]["_id"], 0);
        assert_eq!(connection.answer(false).expect(201)["insertedId"], 1);
        assert_eq!(connection.answer(false).expect(200)["_id"], 1);
        assert_eq!(connection.answer(false).expect(201)["insertedId"], 2);
        let last = connection.answer(false);
        assert_eq!((last.expect(201)["insertedId"].as_i64(), last.header("connection")), (Some(3), Some("close")));
        server.post("/v1/db/d/c/deleteMany", "{}").expect(200);
    }
}

#[test]
fn a_body_beyond_the_short_way_and_one_behind_it_are_both_taken() {
    let server = Server::start();
    let mut connection = server.connect();
    for bytes in [10, 15_000, 17_000, 100_000, 10] {
        let body = format!(r#"{{"document": {{"a": "{}"}}}}"#, "x".repeat(bytes));
        connection.request("POST", "/v1/db/d/c/insertOne", &[], body.as_bytes()).expect(201);
    }
    assert_eq!(connection.request("POST", "/v1/db/d/c/count", &[], b"{}").expect(200)["count"], 5);
}

#[test]
fn keys_hold_on_the_short_way_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys");
    let added = crate::common::quarrydb()
        .args(["key", "add", "reader", "--role", "read:d", "--file"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(added.stdout).unwrap();
    let key = said.split_whitespace().find(|w| w.starts_with("qdb_")).unwrap_or_else(|| panic!("no key in {said:?}"));
    let server = Server::with(&["--access-keys", file.to_str().unwrap()]);
    let bearer = format!("Bearer {key}");
    let ask = |connection: &mut Connection, path: &str, value: Option<&str>, body: &[u8]| {
        let headers: Vec<_> = value.into_iter().map(|v| ("Authorization", v)).collect();
        connection.request("POST", path, &headers, body)
    };
    for (path, value, body, status) in [
        ("/v1/db/d/c/count", Some(bearer.as_str()), "{}", 200),
        ("/v1/db/d/c/count", None, "{}", 401),
        ("/v1/db/d/c/count", Some("Bearer qdb_none"), "{}", 401),
        ("/v1/db/other/c/count", Some(bearer.as_str()), "{}", 403),
        ("/v1/db/d/c/insertOne", Some(bearer.as_str()), r#"{"document": {}}"#, 403),
        ("/v1/db/d/c/find", Some(bearer.as_str()), "{}", 200),
    ] {
        assert_eq!(ask(&mut server.connect(), path, value, body.as_bytes()).status, status, "{path} {value:?}");
    }
}

/// Many clients send the head and the body apart; a connection must not leave the short way for that, however long it lives.
#[test]
fn a_body_behind_its_head_is_waited_for() {
    let server = Server::with(&["--header-timeout", "200ms"]);
    let mut connection = server.connect();
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 700 {
        let text = post("count", "", r#"{"filter": {}}"#);
        let (head, body) = text.split_at(text.len() - 14);
        assert!(connection.send(head.as_bytes()));
        std::thread::sleep(std::time::Duration::from_millis(3));
        assert!(connection.send(body.as_bytes()));
        assert_eq!(connection.answer(false).expect(200)["count"], 0);
    }
}
