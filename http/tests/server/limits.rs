//! What is too much is refused with its limit, early, in the one shape; what fits is taken whatever its framing.

use std::time::Instant;

use crate::common::{Server, chunked, gzip};

fn document(bytes: usize) -> Vec<u8> {
    let half = bytes / 2;
    format!(r#"{{"documents": [{{"a": "{}"}}, {{"b": "{}"}}, {{"c": 1}}]}}"#, "x".repeat(half), "y".repeat(half))
        .into_bytes()
}

#[test]
fn bodies_up_to_the_documented_limit_are_taken_and_none_beyond() {
    let server = Server::start();
    for (mb, status) in [(1.9, 201), (2.1, 201), (17.0, 201), (49.0 * 1.05, 413)] {
        let body = document((mb * 1e6) as usize);
        let plain = server.request("POST", "/v1/db/d/c/insertMany", &[], &body);
        assert_eq!(plain.status, status, "{mb} MB: {}", plain.text());
        let framed = chunked(&body, 60_000);
        let in_chunks = server.request("POST", "/v1/db/d/c/insertMany", &[("Transfer-Encoding", "chunked")], &framed);
        assert_eq!(in_chunks.status, status, "{mb} MB in chunks");
        if status == 413 {
            assert_eq!((plain.error(413).as_str(), in_chunks.error(413).as_str()), ("BodyTooLarge", "BodyTooLarge"));
            assert_eq!(plain.json()["limit"], 48 << 20);
        }
    }
    let large = format!(r#"{{"document": {{"a": "{}"}}}}"#, "x".repeat(17 << 20));
    assert_eq!(server.post("/v1/db/d/c/insertOne", &large).error(400), "BSONObjectTooLarge");
    assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 18);
}

#[test]
fn a_refusal_comes_before_the_body_is_sent() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(b"POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999999999\r\nExpect: 100-continue\r\n\r\n");
    assert_eq!(connection.answer(false).error(413), "BodyTooLarge");
}

#[test]
fn the_limit_is_on_what_a_packed_body_unpacks_to() {
    let server = Server::with(&["--max-body", "2MiB"]);
    let fits = gzip(&document(1 << 20));
    let send = |coding: &str, body: &[u8]| {
        server.request("POST", "/v1/db/d/c/insertMany", &[("Content-Encoding", coding)], body)
    };
    send("gzip", &fits).expect(201);
    let bomb = gzip(&vec![b' '; 200 << 20]);
    assert!(bomb.len() < 2 << 20);
    assert_eq!(send("gzip", &bomb).error(413), "BodyTooLarge");
    let bomb = zstd::encode_all(vec![b' '; 200 << 20].as_slice(), 1).unwrap();
    assert_eq!(send("zstd", &bomb).error(413), "BodyTooLarge");
    assert_eq!(send("gzip", &fits[..fits.len() - 5]).error(400), "BadValue");
    assert_eq!(send("gzip", br#"{"documents": []}"#).error(400), "BadValue");
    for unknown in ["gzip, gzip", "br", "deflate", "gzip, zstd"] {
        assert_eq!(send(unknown, &fits).error(415), "UnsupportedMediaType", "{unknown}");
    }
}

#[test]
fn nesting_without_end_is_refused_at_once_and_the_server_lives() {
    let server = Server::start();
    let deep = |open: &str, close: &str, n: usize| format!("{}1{}", open.repeat(n), close.repeat(n));
    for body in ["[".repeat(200_000), deep("{\"a\":", "}", 100_000), "[".repeat(5_000_000)] {
        for operation in ["find", "insertOne", "count"] {
            assert_eq!(server.post(&format!("/v1/db/d/c/{operation}"), &body).error(400), "InvalidJson");
        }
    }
    let begun = Instant::now();
    let inner = deep("{\"a\":", "}", 150);
    let answer = server.post("/v1/db/d/c/insertOne", &format!(r#"{{"document": {inner}}}"#));
    answer.error(400);
    let fits = deep("{\"a\":", "}", 99);
    server.post("/v1/db/d/c/insertOne", &format!(r#"{{"document": {fits}}}"#)).expect(201);
    server.post("/v1/db/d/c/find", "{}").expect(200);
    let filter = deep("{\"$and\":[", "]}", 500).replace('1', "{}");
    server.post("/v1/db/d/c/find", &format!(r#"{{"filter": {filter}}}"#)).error(400);
    assert!(begun.elapsed().as_secs() < 30);
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn heads_without_end_are_refused_in_our_shape() {
    let server = Server::start();
    for bytes in [100_000, 1_000_000] {
        let huge = "x".repeat(bytes);
        assert_eq!(server.request("GET", "/healthz", &[("X-Huge", &huge)], b"").error(431), "HeadersTooLarge");
    }
    let mut connection = server.connect();
    connection.send(b"this is not HTTP at all\r\n\r\n");
    assert_eq!(connection.answer(false).error(400), "BadValue");
    assert_eq!(server.get("/healthz").status, 200);
}

#[test]
fn all_bodies_together_are_bounded() {
    let server = Server::with(&["--max-body", "1MiB", "--max-bodies", "1MiB"]);
    let mut first = server.connect();
    first.send(b"POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: 950000\r\n\r\n");
    first.send(&[b' '; 940_000]);
    while server.metric("quarrydb_http_body_bytes_held") < 900_000 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let second = server.post("/v1/db/d/c/insertMany", &String::from_utf8(document(500_000)).unwrap());
    assert_eq!((second.error(429).as_str(), second.header("retry-after")), ("TooManyRequests", Some("1")));
    drop(first);
    while server.metric("quarrydb_http_body_bytes_held") > 0 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    server.post("/v1/db/d/c/insertOne", r#"{"document": {}}"#).expect(201);
}
