//! SIGKILL under eight writers: every acknowledged write is there after the next start, one by one.
//!
//! Three rounds; `QUARRYDB_KILL_ROUNDS` asks for more. The directory is the same in all rounds.

use std::io::BufRead;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Connection, Server};

const WRITERS: usize = 8;
const ROUNDS: usize = 3;
/// Acknowledged writes before the kill.
const WRITES_MIN: u64 = 300;

/// What a writer knows for certain of one document.
#[derive(Clone, Copy, Debug)]
enum Known {
    Inserted,
    Updated,
    Deleted,
}

#[test]
fn no_acknowledged_write_is_lost_to_sigkill() {
    let rounds = std::env::var("QUARRYDB_KILL_ROUNDS").ok().and_then(|v| v.parse().ok()).unwrap_or(ROUNDS);
    let dir = tempfile::tempdir().unwrap();
    let mut known: Vec<(String, Known)> = Vec::new();
    let mut open: Vec<String> = Vec::new();
    for round in 0..rounds {
        let mut server = Server::on(dir.path(), &[]);
        check(&server, &known, &open);
        let (found, unsure) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
        let acknowledged = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for writer in 0..WRITERS {
                let (address, found, unsure, acknowledged) = (&server.address.clone(), &found, &unsure, &acknowledged);
                let address = address.clone();
                scope.spawn(move || write(&address, &format!("{round}-{writer}"), found, unsure, acknowledged));
            }
            while acknowledged.load(Ordering::Relaxed) < WRITES_MIN {
                std::thread::sleep(Duration::from_millis(2));
            }
            server.kill();
        });
        known.append(&mut found.into_inner().unwrap());
        open.append(&mut unsure.into_inner().unwrap());
    }
    let server = Server::on(dir.path(), &[]);
    check(&server, &known, &open);
    assert!(server.stop().success());
}

/// Inserts, then updates or deletes some, until the server is gone. What was asked and not answered is unsure.
fn write(
    address: &str,
    name: &str,
    found: &Mutex<Vec<(String, Known)>>,
    unsure: &Mutex<Vec<String>>,
    acknowledged: &AtomicU64,
) {
    let mut connection = Connection::to(address);
    let mut ask = |path: &str, body: &str| -> bool {
        let head = format!(
            "POST /v1/db/d/c/{path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let there = connection.send(head.as_bytes()) && connection.stream.fill_buf().is_ok_and(|b| !b.is_empty());
        there && connection.answer(false).status < 300
    };
    let mut own: Vec<(String, Known)> = Vec::new();
    for i in 0.. {
        let id = format!("{name}-{i}");
        let insert = format!(r#"{{"document": {{"_id": "{id}", "v": 1}}}}"#);
        let next = match i % 3 {
            0 => Some((
                Known::Updated,
                "updateOne",
                format!(r#"{{"filter": {{"_id": "{id}"}}, "update": {{"$set": {{"v": 2}}}}}}"#),
            )),
            1 => Some((Known::Deleted, "deleteOne", format!(r#"{{"filter": {{"_id": "{id}"}}}}"#))),
            _ => None,
        };
        let mut done = ask("insertOne", &insert);
        if done {
            own.push((id.clone(), Known::Inserted));
            acknowledged.fetch_add(1, Ordering::Relaxed);
            if let Some((known, operation, body)) = next {
                done = ask(operation, &body);
                if done {
                    own.pop();
                    own.push((id.clone(), known));
                }
            }
        }
        if !done {
            unsure.lock().unwrap().push(id);
            break;
        }
    }
    found.lock().unwrap().append(&mut own);
}

/// Asks for each document; one whose last write was not answered may be in either state.
fn check(server: &Server, known: &[(String, Known)], open: &[String]) {
    let mut connection = server.connect();
    for (id, state) in known.iter().filter(|(id, _)| !open.contains(id)) {
        let answer = connection.request("GET", &format!("/v1/db/d/c/doc/{id}"), &[], b"");
        match state {
            Known::Inserted => assert_eq!(answer.expect(200)["v"], 1, "{id}"),
            Known::Updated => assert_eq!(answer.expect(200)["v"], 2, "{id}"),
            Known::Deleted => assert_eq!(answer.status, 404, "{id} came back"),
        }
    }
    // The same by a scan: no document that nobody wrote.
    let all = server.post("/v1/db/d/c/find", "{}").expect(200);
    let stored = all["documents"].as_array().unwrap().len();
    let certain = known.iter().filter(|(id, state)| !matches!(state, Known::Deleted) && !open.contains(id)).count();
    assert!(
        stored >= certain && stored <= certain + open.len(),
        "{stored} stored, {certain} certain, {} unsure",
        open.len()
    );
}
