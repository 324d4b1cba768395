//! Streamed finds: both forms, packed, trailers, clients that leave, errors in the middle.

use std::io::Read;
use std::time::{Duration, Instant};

use crate::common::{PATIENCE, Server, gunzip};

/// A collection of `n` documents of about a kilobyte.
fn filled(n: usize) -> Server {
    let server = Server::start();
    let pad = "x".repeat(1000);
    let lines: String = (0..n).map(|i| format!("{{\"_id\":{i},\"pad\":\"{pad}\"}}\n")).collect();
    let report = server.request("POST", "/v1/db/d/c/import", &[], lines.as_bytes()).expect(200);
    assert_eq!(report["insertedCount"], n);
    server
}

#[test]
fn a_large_answer_is_whole_in_every_form() {
    let server = filled(5000);
    let find = |accept: &str, coding: &str, path: &str| {
        server.request(
            "POST",
            &format!("/v1/db/d/c/find{path}"),
            &[("Accept", accept), ("Accept-Encoding", coding)],
            b"{}",
        )
    };
    let json = find("application/json", "identity", "");
    assert!(json.whole && json.header("content-type") == Some("application/json"));
    let ids: Vec<_> = json.json()["documents"].as_array().unwrap().iter().map(|d| d["_id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..5000).collect::<Vec<_>>());
    let packed = find("application/json", "gzip", "");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < json.body.len() / 5);
    assert_eq!(gunzip(&packed.body), json.body);
    let packed = find("application/json", "zstd", "");
    assert_eq!(packed.header("content-encoding"), Some("zstd"));
    assert_eq!(zstd::decode_all(packed.body.as_slice()).unwrap(), json.body);
    let lines = find("application/x-ndjson", "identity", "?trailer=true");
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    let text = lines.text();
    assert_eq!(text.lines().count(), 5001);
    assert_eq!(text.lines().last(), Some(r#"{"end": {"count": 5000}}"#));
    assert_eq!(find("application/x-ndjson", "identity", "").text().lines().count(), 5000);
    let canonical = find("application/x-ndjson, application/ejson", "identity", "").text();
    assert!(canonical.starts_with(r#"{"_id":{"$numberInt":"0"}"#));
}

#[test]
fn an_empty_answer_is_whole_too() {
    let server = Server::start();
    assert_eq!(server.post("/v1/db/d/c/find", "{}").text(), r#"{"documents":[]}"#);
    let lines = server.request("POST", "/v1/db/d/c/find?trailer=true", &[("Accept", "application/x-ndjson")], b"{}");
    assert_eq!(lines.text(), "{\"end\": {\"count\": 0}}\n");
    let server = filled(2000);
    assert_eq!(server.post("/v1/db/d/c/find", r#"{"filter": {"pad": "y"}}"#).text(), r#"{"documents":[]}"#);
}

#[test]
fn a_client_that_hangs_up_stops_the_find() {
    let server = filled(40_000);
    for _ in 0..3 {
        let mut connection = server.connect();
        connection.send(b"POST /v1/db/d/c/find HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
        let mut some = [0; 100];
        connection.stream.read_exact(&mut some).unwrap();
    }
    let begun = Instant::now();
    while server.metric("quarrydb_cursors_cancelled_total") < 3 || server.metric("quarrydb_streams") > 0 {
        assert!(begun.elapsed() < PATIENCE, "the finds go on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_reader_that_stalls_is_let_go_and_sees_that_its_answer_is_cut() {
    let server = Server::with(&["--body-timeout", "1s"]);
    let pad = "x".repeat(1000);
    let lines: String = (0..40_000).map(|i| format!("{{\"_id\":{i},\"pad\":\"{pad}\"}}\n")).collect();
    server.request("POST", "/v1/db/d/c/import", &[], lines.as_bytes()).expect(200);
    let mut connection = server.connect();
    connection.send(b"POST /v1/db/d/c/find HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}");
    let begun = Instant::now();
    while server.metric("quarrydb_streams_cancelled_total") < 1 {
        assert!(begun.elapsed() < PATIENCE, "the find waits for ever");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!connection.answer(false).whole);
}

#[test]
fn an_error_is_an_ordinary_one_or_cuts_the_answer_but_never_looks_whole() {
    use std::io::BufRead;
    let server = filled(20_000);
    let count = server.post("/v1/db/d/c/count", r#"{"filter": {"pad": {"$regex": "y"}}, "maxTimeMS": 1}"#);
    if count.status != 200 {
        assert_eq!(count.error(408), "MaxTimeMSExpired");
        assert_eq!(count.json()["code"], 50);
    }
    for _ in 0..5 {
        let body = r#"{"maxTimeMS": 1, "sort": {"pad": 1, "_id": -1}}"#;
        let mut connection = server.connect();
        let head =
            format!("POST /v1/db/d/c/find HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        assert!(connection.send(head.as_bytes()));
        if connection.stream.fill_buf().unwrap_or_default().is_empty() {
            continue;
        }
        let answer = connection.answer(false);
        match answer.status {
            200 => assert!(!answer.whole || answer.json()["documents"].as_array().unwrap().len() == 20_000),
            _ => assert_eq!(answer.error(408), "MaxTimeMSExpired"),
        }
    }
}

/// However long the search for the first document takes: until then an error has its status, in both forms.
#[test]
fn an_error_before_the_first_document_is_an_ordinary_error_however_late() {
    let server = Server::start();
    let lines: String = (0..200_000).map(|i| format!("{{\"_id\": {i}, \"s\": \"x{i}\"}}\n")).collect();
    server
        .request("POST", "/v1/db/d/c/import", &[("Content-Type", "application/x-ndjson")], lines.as_bytes())
        .expect(200);
    let late = r#"{"filter": {"$expr": {"$gt": [{"$divide": [1, {"$subtract": ["$_id", 199999]}]}, 5]}}}"#;
    let slow = r#"{"filter": {"$expr": {"$regexMatch": {"input": "$s", "regex": "y$"}}}, "maxTimeMS": 15}"#;
    for accept in ["application/json", "application/x-ndjson"] {
        let find = |body: &str| server.request("POST", "/v1/db/d/c/find", &[("Accept", accept)], body.as_bytes());
        assert_eq!(find(late).error(400), "BadValue", "{accept}");
        assert_eq!(find(slow).error(408), "MaxTimeMSExpired", "{accept}");
    }
}
