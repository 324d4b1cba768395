//! Idle, slow and too many connections do not stop the others.

use std::io::Read;
use std::net::TcpStream;
use std::time::Duration;

use crate::common::{Connection, Server};

#[test]
fn a_thousand_idle_and_two_hundred_slow_clients_do_not_stop_others() {
    let server = Server::start();
    let idle: Vec<_> = (0..1000).map(|_| TcpStream::connect(&server.address).unwrap()).collect();
    let mut slow: Vec<Connection> = (0..200).map(|_| server.connect()).collect();
    for (i, connection) in slow.iter_mut().enumerate() {
        let half: &[u8] = match i % 3 {
            0 => b"POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: loc",
            1 => b"POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"doc",
            _ => b"POST /v1/db/d/c/import HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n",
        };
        assert!(connection.send(half));
    }
    let mut connection = server.connect();
    for i in 0..100 {
        let body = format!(r#"{{"document": {{"_id": {i}}}}}"#);
        let answer = connection.request("POST", "/v1/db/d/other/insertOne", &[], body.as_bytes());
        assert_eq!(answer.status, 201);
    }
    assert_eq!(server.post("/v1/db/d/other/count", "{}").expect(200)["count"], 100);
    assert!(server.metric("quarrydb_http_connections") >= 1200);
    drop(idle);
}

#[test]
fn beyond_the_limit_of_connections_503_and_room_again_when_one_goes() {
    let server = Server::with(&["--max-connections", "3"]);
    let mut held: Vec<_> = (0..3).map(|_| server.connect()).collect();
    for connection in &mut held {
        assert_eq!(connection.request("GET", "/healthz", &[], b"").status, 200);
    }
    let refused = server.get("/healthz");
    assert_eq!((refused.error(503).as_str(), refused.header("retry-after")), ("TooManyConnections", Some("1")));
    held.pop();
    while server.get("/healthz").status != 200 {
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn who_is_too_slow_is_told_so_and_shown_out() {
    let server = Server::with(&["--header-timeout", "300ms", "--body-timeout", "300ms", "--idle-timeout", "600ms"]);
    let mut head = server.connect();
    head.send(b"GET /healthz HTTP/1.1\r\nHost: loc");
    assert_eq!(head.answer(false).error(408), "RequestTimeout");
    let mut small = server.connect();
    small.send(b"POST /v1/db/d/c/count HTTP/1.1\r\nHost: loc");
    assert_eq!(small.answer(false).error(408), "RequestTimeout");
    let mut body = server.connect();
    body.send(b"POST /v1/db/d/c/count HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n{");
    assert_eq!(body.answer(false).error(408), "RequestTimeout");
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/healthz", &[], b"").status, 200);
    assert_eq!(idle.stream.read(&mut [0; 10]).unwrap(), 0, "an idle connection is closed");
}

#[test]
fn requests_sent_ahead_are_answered_in_order() {
    let server = Server::start();
    let mut connection = server.connect();
    let one = |i: usize| {
        let body = format!(r#"{{"document": {{"_id": {i}}}}}"#);
        format!("POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let ahead: String = (0..20).map(one).collect();
    assert!(connection.send(ahead.as_bytes()));
    for i in 0..20 {
        assert_eq!(connection.answer(false).expect(201)["insertedId"], i);
    }
}
