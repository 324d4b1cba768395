//! Change streams over the socket: events and lines, tokens, waiting, refusals, ends of either side.

use std::io::BufRead;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{Connection, PATIENCE, Server};

/// The lines of a drained stream, and the token that it ends with.
fn drain(server: &Server, query: &str) -> (Vec<Value>, String) {
    let answer = server.request("GET", &format!("/v1/changes?wait=0&{query}"), &[], b"");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.whole);
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"));
    lines(&answer.text())
}

fn lines(text: &str) -> (Vec<Value>, String) {
    let mut events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = events.pop().unwrap();
    assert_eq!(end.as_object().unwrap().len(), 1, "{end}");
    (events, end["resumeToken"].as_str().unwrap().to_owned())
}

fn insert(server: &Server, coll: &str, document: &str) {
    server.post(&format!("/v1/db/shop/{coll}/insertOne"), &format!(r#"{{"document": {document}}}"#)).expect(201);
}

/// A stream of server-sent events.
struct Events(Connection);

impl Events {
    fn open(server: &Server, path: &str, headers: &str) -> Self {
        let mut connection = server.connect();
        connection.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n").as_bytes());
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(connection.stream.read_line(&mut head).unwrap() > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.contains("content-type: text/event-stream\r\n") && head.contains("no-store"), "{head}");
        Self(connection)
    }

    /// The fields of the next block; none at the end.
    fn block(&mut self) -> Option<Vec<(String, String)>> {
        let mut fields = Vec::new();
        loop {
            let mut line = String::new();
            if self.0.stream.read_line(&mut line).unwrap_or(0) == 0 {
                return None;
            }
            let line = line.trim_end_matches('\n');
            // The framing of chunks stands between blocks, as each is sent alone here.
            if line == "0\r" {
                return None;
            }
            if line.ends_with('\r') {
                continue;
            }
            match line.split_once(": ") {
                Some((name, value)) => fields.push((name.to_owned(), value.to_owned())),
                None if line.is_empty() && !fields.is_empty() => return Some(fields),
                None => {}
            }
        }
    }

    /// The id of the next heartbeat, and the next event with its id.
    fn heartbeat(&mut self) -> String {
        let block = self.block().unwrap();
        assert_eq!(block[0], (String::new(), "heartbeat".to_owned()));
        assert_eq!((block.len(), block[1].0.as_str()), (2, "id"));
        block[1].1.clone()
    }

    fn event(&mut self) -> (String, Value) {
        let block = self.block().unwrap();
        assert_eq!((block[0].0.as_str(), block[1].0.as_str()), ("id", "data"), "{block:?}");
        let data: Value = serde_json::from_str(&block[1].1).unwrap();
        assert_eq!(data["_id"], json!(block[0].1));
        (block[0].1.clone(), data)
    }
}

#[test]
fn a_drain_tells_all_there_is_and_ends_with_a_token() {
    let server = Server::start();
    let (events, token) = drain(&server, "");
    assert!(events.is_empty());
    insert(&server, "orders", r#"{"_id": 1, "n": 1}"#);
    let update = r#"{"filter": {"_id": 1}, "update": {"$inc": {"n": 1}}}"#;
    server.post("/v1/db/shop/orders/updateOne", update).expect(200);
    server.post("/v1/db/shop/orders/replaceOne", r#"{"filter": {"_id": 1}, "replacement": {"n": 7}}"#).expect(200);
    server.post("/v1/db/shop/orders/deleteOne", r#"{"filter": {"_id": 1}}"#).expect(200);
    server.request("DELETE", "/v1/db/shop", &[], b"").expect(200);
    let (events, end) = drain(&server, &format!("since={token}"));
    let told: Vec<_> = events.iter().map(|event| event["operationType"].as_str().unwrap()).collect();
    assert_eq!(told, ["insert", "update", "replace", "delete", "drop", "dropDatabase"]);
    assert_eq!(events[0]["fullDocument"], json!({"_id": 1, "n": 1}));
    assert_eq!(events[0]["ns"], json!({"db": "shop", "coll": "orders"}));
    let names: Vec<_> = events[1].as_object().unwrap().keys().cloned().collect();
    let mut expected = ["_id", "operationType", "clusterTime", "wallTime", "ns", "documentKey", "updateDescription"];
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(events[1]["updateDescription"]["updatedFields"], json!({"n": 2}));
    assert_eq!(events[5]["ns"], json!({"db": "shop"}));
    assert_eq!(drain(&server, &format!("since={end}")), (vec![], end.clone()));
    for (i, event) in events.iter().enumerate() {
        let (rest, _) = drain(&server, &format!("since={}", event["_id"].as_str().unwrap()));
        assert_eq!(rest, events[i + 1..]);
    }
    // Canonical where that is asked for, and from the header before the address.
    let canonical = [("Accept", "application/x-ndjson, application/ejson"), ("Last-Event-ID", token.as_str())];
    let answer = server.request("GET", &format!("/v1/changes?wait=0&since={end}"), &canonical, b"");
    assert_eq!(lines(&answer.text()).0[0]["fullDocument"]["n"], json!({"$numberInt": "1"}));
}

#[test]
fn what_is_watched_and_matched_is_told_and_nothing_else() {
    let server = Server::start();
    let start = |query: &str| drain(&server, query).1;
    let (all, db) = (start(""), start("db=shop"));
    let coll = server.get("/v1/db/shop/orders/changes?wait=0");
    let coll = lines(&coll.text()).1;
    assert_eq!(start("db=shop&coll=orders"), coll, "two names of one stream");
    for n in 0..5 {
        insert(&server, "orders", &format!(r#"{{"_id": {n}, "n": {n}}}"#));
        insert(&server, "others", &format!(r#"{{"_id": {n}}}"#));
    }
    server.post("/v1/db/shop/orders/updateMany", r#"{"update": {"$inc": {"n": 10}}}"#).expect(200);
    server.post("/v1/db/elsewhere/c/insertOne", r#"{"document": {}}"#).expect(201);
    server.post("/v1/db/shop/orders/deleteOne", r#"{"filter": {"_id": 4}}"#).expect(200);
    assert_eq!(drain(&server, &format!("since={all}")).0.len(), 17);
    assert_eq!(drain(&server, &format!("db=shop&since={db}")).0.len(), 16);
    assert_eq!(drain(&server, &format!("db=shop&coll=orders&since={coll}")).0.len(), 11);
    // {"operationType": "insert", "fullDocument.n": {"$gte": 3}}
    let matching = "match=%7B%22operationType%22%3A+%22insert%22%2C%20%22fullDocument.n%22%3A%7B%22%24gte%22%3A3%7D%7D";
    let (events, _) = drain(&server, &format!("db=shop&coll=orders&since={coll}&{matching}"));
    assert_eq!(events.iter().map(|e| e["documentKey"]["_id"].clone()).collect::<Vec<_>>(), [json!(3), json!(4)]);
    let updates = |how: &str| -> Vec<Value> {
        let (events, _) = drain(&server, &format!("db=shop&coll=orders&since={coll}&fullDocument={how}"));
        events[5..10].iter().map(|event| event["fullDocument"].clone()).collect()
    };
    assert_eq!(updates("default"), vec![Value::Null; 5]);
    assert_eq!(updates("updateLookup")[3..], [json!({"_id": 3, "n": 13}), Value::Null]);
    assert_eq!(updates("required")[3..], [json!({"_id": 3, "n": 13}), json!({"_id": 4, "n": 14})]);
}

#[test]
fn events_are_pushed_and_a_client_goes_on_after_the_server_was_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(dir.path(), &["--seal-rows", "50"]);
    let mut events = Events::open(&server, "/v1/db/shop/orders/changes", "");
    let mut token = events.heartbeat();
    let mut next = 0;
    for round in 0..3 {
        for id in next..next + 100 {
            insert(&server, "orders", &format!(r#"{{"_id": {id}}}"#));
        }
        // Some are told before the end, the others after it.
        for id in next..next + 60 {
            let (id_of_event, data) = events.event();
            assert_eq!(data["documentKey"]["_id"], json!(id), "round {round}");
            token = id_of_event;
        }
        server.kill();
        server = Server::on(dir.path(), &["--seal-rows", "50"]);
        events =
            Events::open(&server, "/v1/db/shop/orders/changes?since=ignored", &format!("Last-Event-ID: {token}\r\n"));
        events.heartbeat();
        for id in next + 60..next + 100 {
            assert_eq!(events.event().1["documentKey"]["_id"], json!(id), "round {round}");
        }
        next += 100;
    }
    server.request("DELETE", "/v1/db/shop/orders", &[], b"").expect(200);
    assert_eq!(events.event().1["operationType"], json!("drop"));
    assert_eq!(events.event().1["operationType"], json!("invalidate"));
    events.heartbeat();
    assert!(events.block().is_none(), "it ends with what it watched");
}

#[test]
fn idle_streams_say_where_they_stand() {
    let server = Server::start();
    let mut events = Events::open(&server, "/v1/db/shop/orders/changes?heartbeat=100", "Accept: text/event-stream\r\n");
    let first = events.heartbeat();
    assert_eq!(events.heartbeat(), first, "nothing has happened");
    insert(&server, "others", "{}");
    let begun = Instant::now();
    while events.heartbeat() == first {
        assert!(begun.elapsed() < PATIENCE, "what does not concern it moves its token on");
    }
    let mut connection = server.connect();
    connection
        .send(b"GET /v1/changes?heartbeat=100 HTTP/1.1\r\nHost: localhost\r\nAccept: application/x-ndjson\r\n\r\n");
    let mut line = String::new();
    let mut beats = 0;
    while beats < 3 {
        line.clear();
        connection.stream.read_line(&mut line).unwrap();
        beats += usize::from(line.starts_with(r#"{"resumeToken":""#));
    }
}

/// A12: a filtered feed that tells nothing for hours let no consumer get ahead, so that each restart read it all again.
#[test]
fn a_feed_whose_filter_matches_nothing_gets_ahead_all_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(dir.path(), &["--seal-rows", "50"]);
    let path = "/v1/db/shop/orders/changes?heartbeat=100&match=%7B%22fullDocument.rare%22%3A1%7D";
    let mut events = Events::open(&server, path, "");
    let start = events.heartbeat();
    for id in 0..120 {
        insert(&server, "orders", &format!(r#"{{"_id": {id}}}"#));
    }
    let (begun, mut token) = (Instant::now(), start.clone());
    // Until a token is behind all that was written: from there a drain without a filter tells nothing.
    while !drain(&server, &format!("db=shop&coll=orders&since={token}")).0.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "the token stands still");
        token = events.heartbeat();
    }
    assert_ne!(token, start);
    server.kill();
    server = Server::on(dir.path(), &["--seal-rows", "50"]);
    insert(&server, "orders", r#"{"_id": "rare", "rare": 1}"#);
    server.post("/v1/db/shop/orders/compact", "{}").expect(200);
    let mut events = Events::open(&server, path, &format!("Last-Event-ID: {token}\r\n"));
    events.heartbeat();
    assert_eq!(events.event().1["documentKey"], json!({"_id": "rare"}));
}

#[test]
fn a_long_poll_answers_with_the_first_event_or_when_its_time_is_up() {
    let server = Server::start();
    let begun = Instant::now();
    let (events, token) = lines(&server.get("/v1/changes?wait=300").text());
    assert!(events.is_empty() && begun.elapsed() >= Duration::from_millis(300));
    std::thread::scope(|scope| {
        let polling = scope.spawn(|| server.get("/v1/db/shop/orders/changes?wait=60000").text());
        while server.metric("quarrydb_change_streams") == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        insert(&server, "others", r#"{"_id": 1}"#);
        insert(&server, "orders", r#"{"_id": 2}"#);
        let (events, _) = lines(&polling.join().unwrap());
        assert_eq!(events.len(), 1);
        assert_eq!(events[0]["documentKey"], json!({"_id": 2}));
    });
    let (events, _) = lines(&server.get(&format!("/v1/changes?wait=60000&since={token}")).text());
    assert_eq!(events.len(), 2);
}

#[test]
fn what_cannot_be_watched_is_refused_with_a_reason() {
    let server = Server::start();
    let (_, token) = drain(&server, "");
    let last = if token.ends_with('0') { '1' } else { '0' };
    let other = format!("{}{last}", &token[..51]);
    let cases = [
        ("/v1/changes?since=abc", 400, "InvalidResumeToken"),
        (&format!("/v1/changes?db=shop&since={token}"), 400, "InvalidResumeToken"),
        (&format!("/v1/changes?since={other}"), 400, "InvalidResumeToken"),
        ("/v1/changes?coll=orders", 400, "InvalidNamespace"),
        ("/v1/changes?db=sh%20op", 400, "InvalidNamespace"),
        ("/v1/db/shop/system.x/changes", 400, "InvalidNamespace"),
        ("/v1/db/shop/orders/changes?db=shop", 400, "BadValue"),
        ("/v1/changes?match=%7B", 400, "InvalidJson"),
        ("/v1/changes?match=5", 400, "TypeMismatch"),
        ("/v1/changes?match=%7B%22a%22%3A%7B%22%24no%22%3A1%7D%7D", 400, "UnknownOperator"),
        ("/v1/changes?match=%ff", 400, "BadValue"),
        ("/v1/changes?fullDocument=all", 400, "BadValue"),
        ("/v1/changes?wait=-1", 400, "BadValue"),
        ("/v1/changes?wait=soon", 400, "BadValue"),
        ("/v1/changes?heartbeat=1", 400, "BadValue"),
        ("/v1/changes?from=now", 400, "IDLUnknownField"),
        ("/v1/changes?db=a&db=b", 400, "BadValue"),
    ];
    for (path, status, name) in cases {
        assert_eq!(server.get(path).error(status), name, "{path}");
    }
    let other = Server::start();
    let body = other.get(&format!("/v1/changes?since={token}")).expect(400);
    assert!(body["error"].as_str().unwrap().contains("another database") && body["code"] == 260, "{body}");
    assert_eq!(server.request("POST", "/v1/changes", &[], b"{}").status, 405);
}

#[test]
fn what_is_no_longer_kept_is_gone() {
    let server = Server::with(&["--changes-bytes", "0B", "--seal-rows", "500"]);
    let (_, token) = drain(&server, "");
    let pad = "x".repeat(4000);
    let begun = Instant::now();
    loop {
        let lines: String = (0..2000).map(|_| format!("{{\"pad\":\"{pad}\"}}\n")).collect();
        server.request("POST", "/v1/db/d/c/import", &[], lines.as_bytes()).expect(200);
        let answer = server.get(&format!("/v1/changes?wait=0&match=%7B%22a%22%3A1%7D&since={token}"));
        if answer.status != 200 {
            assert_eq!(answer.error(410), "ChangeStreamHistoryLost");
            assert_eq!(answer.json()["code"], 286);
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "all of the log is kept");
    }
}

#[test]
fn a_key_watches_what_it_may_read() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys");
    let key = |name: &str, role: &str| {
        let mut command = crate::common::quarrydb();
        let output = command.args(["key", "add", name, "--role", role, "--file"]).arg(&keys).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let (shop, all) = (key("shop", "read:shop"), key("all", "read:*"));
    let server = Server::with(&["--access-keys", keys.to_str().unwrap()]);
    let status = |key: &str, path: &str| {
        let bearer = format!("Bearer {key}");
        server.request("GET", path, &[("Authorization", bearer.as_str())], b"").status
    };
    assert_eq!(server.get("/v1/changes?wait=0").status, 401);
    for (path, of_shop) in [
        ("/v1/changes?wait=0", 403),
        ("/v1/changes?wait=0&db=other", 403),
        ("/v1/db/other/orders/changes?wait=0", 403),
        ("/v1/changes?wait=0&db=shop", 200),
        ("/v1/db/shop/orders/changes?wait=0", 200),
    ] {
        assert_eq!((status(&shop, path), status(&all, path)), (of_shop, 200), "{path}");
    }
}

#[test]
fn the_end_of_the_server_ends_streams_and_the_end_of_a_client_frees_them() {
    let mut server = Server::start();
    let mut streams: Vec<_> =
        (0..300).map(|i| Events::open(&server, &format!("/v1/db/shop/c{i}/changes"), "")).collect();
    assert_eq!(server.metric("quarrydb_change_streams"), 300);
    streams.truncate(40);
    let begun = Instant::now();
    while server.metric("quarrydb_change_streams") > 40 {
        assert!(begun.elapsed() < PATIENCE, "streams without a client go on");
        std::thread::sleep(Duration::from_millis(10));
    }
    insert(&server, "c7", r#"{"_id": 1}"#);
    streams[7].heartbeat();
    assert_eq!(streams[7].event().1["documentKey"], json!({"_id": 1}));
    let begun = Instant::now();
    server.signal(Signal::TERM);
    assert!(server.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for events in &mut streams {
        while events.block().is_some() {}
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let server = Server::with(&["--body-timeout", "1s"]);
    let mut connection = server.connect();
    connection.send(b"GET /v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n");
    while server.metric("quarrydb_change_streams") == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pad = "x".repeat(1000);
    let lines: String = (0..40_000).map(|i| format!("{{\"_id\":{i},\"pad\":\"{pad}\"}}\n")).collect();
    server.request("POST", "/v1/db/d/c/import", &[], lines.as_bytes()).expect(200);
    let begun = Instant::now();
    while server.metric("quarrydb_change_streams") > 0 {
        assert!(begun.elapsed() < PATIENCE, "it is waited for");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(!connection.answer(false).whole, "what was cut off must not look whole");
}
