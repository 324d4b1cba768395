//! Ending: signals under load, second signals, a directory that is held, a start on what was left.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::{Connection, Server, quarrydb};

/// Ten seconds are promised; the machine may be slow beside that.
const END_TIME_MAX: Duration = Duration::from_secs(15);

#[test]
fn sigterm_under_load_loses_nothing_and_ends_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::on(dir.path(), &[]);
    let (stop, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    // A slow upload, a half head, an idle connection and an unread stream: none may hold up the end.
    let mut slow = server.connect();
    slow.send(b"POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
    let mut half = server.connect();
    half.send(b"POST /v1/db/d/c/insertOne HTTP/1.1\r\nHo");
    let _idle = server.connect();
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (address, stop, acknowledged) = (server.address.clone(), &stop, &acknowledged);
            scope.spawn(move || {
                let mut connection = Connection::to(&address);
                for i in 0..1_000_000 {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let body = format!(r#"{{"document": {{"_id": "{writer}-{i}"}}}}"#);
                    let head = format!(
                        "POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
                        body.len()
                    );
                    if !connection.send(head.as_bytes())
                        || !connection.send(body.as_bytes())
                        || !answered(&mut connection)
                    {
                        return;
                    }
                    acknowledged.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while acknowledged.load(Ordering::Relaxed) < 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let begun = Instant::now();
        server.signal(Signal::TERM);
        let status = server.wait();
        stop.store(true, Ordering::Relaxed);
        assert!(status.success(), "{status:?}");
        assert!(begun.elapsed() < END_TIME_MAX, "{:?}", begun.elapsed());
    });
    let server = Server::on(dir.path(), &[]);
    let stored = server.post("/v1/db/d/c/count", "{}").expect(200)["count"].as_u64().unwrap();
    let acknowledged = acknowledged.load(Ordering::Relaxed);
    assert!(stored >= acknowledged && stored <= acknowledged + 4, "{stored} stored, {acknowledged} acknowledged");
}

/// Whether a whole 201 came back.
fn answered(connection: &mut Connection) -> bool {
    use std::io::BufRead;
    match connection.stream.fill_buf() {
        Ok(bytes) if !bytes.is_empty() => connection.answer(false).status == 201,
        _ => false,
    }
}

#[test]
fn sigint_ends_it_too_and_at_once_where_nothing_runs() {
    let mut server = Server::start();
    let mut idle = server.connect();
    assert_eq!(idle.request("GET", "/healthz", &[], b"").status, 200);
    let begun = Instant::now();
    server.signal(Signal::INT);
    assert!(server.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(7), "an idle connection held it up: {:?}", begun.elapsed());
}

#[test]
fn a_second_signal_forces_the_end() {
    let mut server = Server::start();
    let mut slow = server.connect();
    slow.send(b"POST /v1/db/d/c/insertOne HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{");
    while server.metric("quarrydb_http_body_bytes_held") == 0 {
        std::thread::sleep(Duration::from_millis(5));
    }
    server.signal(Signal::TERM);
    std::thread::sleep(Duration::from_millis(300));
    server.signal(Signal::TERM);
    let begun = Instant::now();
    assert!(!server.wait().success());
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn a_second_server_on_the_directory_is_refused() {
    let server = Server::start();
    server.post("/v1/db/d/c/insertOne", r#"{"document": {}}"#).expect(201);
    let mut command = quarrydb();
    command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(server.data());
    let out = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(!out.status.success() && out.stdout.is_empty(), "a second server started");
    assert!(text.contains(server.data().to_str().unwrap()), "{text}");
    assert_eq!(server.post("/v1/db/d/c/count", "{}").expect(200)["count"], 1);
}

#[test]
fn a_data_path_that_cannot_be_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a-file");
    std::fs::write(&file, "x").unwrap();
    let out = quarrydb().args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(&file).output().unwrap();
    assert!(!out.status.success() && out.stdout.is_empty());
    assert!(String::from_utf8_lossy(&out.stderr).contains("a-file"));
}
