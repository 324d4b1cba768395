//! The commands: import, export, check, health, key, and what they say when something is wrong.

use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::{Server, gzip, quarrydb};

fn run(arguments: &[&str], input: &[u8]) -> Output {
    let mut child =
        quarrydb().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input);
    child.wait_with_output().unwrap()
}

/// A command on the collection `d.c`.
fn on<'a>(command: [&'a str; 3], rest: &[&'a str]) -> Vec<&'a str> {
    [&command[..], &["--db", "d", "--coll", "c"], rest].concat()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn help_and_version_are_there() {
    let help = run(&["serve", "--help"], b"");
    let help = String::from_utf8(help.stdout).unwrap();
    for option in ["QUARRYDB_DATA", "QUARRYDB_LISTEN", "127.0.0.1:7117", "--max-body", "48MiB", "QUARRYDB_CORS_ORIGINS"]
    {
        assert!(help.contains(option), "{option} is not in\n{help}");
    }
    assert!(String::from_utf8(run(&["--version"], b"").stdout).unwrap().starts_with("quarrydb "));
    assert_eq!(run(&["frobnicate"], b"").status.code(), Some(2));
}

#[test]
fn options_come_from_the_environment_too() {
    let dir = tempfile::tempdir().unwrap();
    let out =
        quarrydb().arg("serve").env("QUARRYDB_LISTEN", "0.0.0.0:0").env("QUARRYDB_DATA", dir.path()).output().unwrap();
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stderr).contains("0.0.0.0"));
}

#[test]
fn what_is_exported_is_imported_again_to_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let (data, other, file) = (dir.path().join("data"), dir.path().join("other"), dir.path().join("out.ndjson"));
    let source = dir.path().join("in.json");
    std::fs::write(&source, r#"[{"_id": 1, "n": {"$numberLong": "5"}, "d": {"$numberDouble": "NaN"}}, {"_id": 2, "b": {"$binary": {"base64": "AQID", "subType": "00"}}}]"#).unwrap();
    let loaded = run(&on(["import", "--data", text(&data)], &[text(&source)]), b"");
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    assert!(String::from_utf8_lossy(&loaded.stdout).contains("2 inserted"));
    assert!(run(&on(["export", "--data", text(&data)], &["-o", text(&file)]), b"").status.success());
    let exported = std::fs::read_to_string(&file).unwrap();
    assert!(exported.ends_with("{\"end\": {\"count\": 2}}\n") && exported.contains("$numberLong"), "{exported}");
    for (name, packed) in [
        ("plain", exported.clone().into_bytes()),
        ("gz", gzip(exported.as_bytes())),
        ("zst", zstd::encode_all(exported.as_bytes(), 3).unwrap()),
    ] {
        let data = other.join(name);
        let loaded = run(&on(["import", "--data", text(&data)], &["--require-trailer", "-"]), &packed);
        assert!(loaded.status.success(), "{name}: {}", String::from_utf8_lossy(&loaded.stderr));
        assert_eq!(String::from_utf8(run(&on(["export", "--data", text(&data)], &[]), b"").stdout).unwrap(), exported);
    }
    let cut = exported.lines().next().unwrap();
    let refused = run(&on(["import", "--data", text(&other.join("cut"))], &["--require-trailer", "-"]), cut.as_bytes());
    assert!(!refused.status.success() && String::from_utf8_lossy(&refused.stderr).contains("not whole"));
}

#[test]
fn import_and_export_talk_to_a_server() {
    let server = Server::start();
    let url = format!("http://{}", server.address);
    let lines: String = (0..3000).map(|i| format!("{{\"_id\":{i}}}\n")).collect();
    let loaded = run(&on(["import", "--url", &url], &["-"]), &gzip(lines.as_bytes()));
    assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
    assert!(String::from_utf8_lossy(&loaded.stdout).contains("3000 inserted, 0 refused"));
    let again = run(&on(["import", "--url", &url], &["-"]), b"{\"_id\": 1}\nnonsense\n{\"_id\": \"new\"}\n");
    let said = String::from_utf8_lossy(&again.stdout).into_owned();
    assert!(
        !again.status.success()
            && said.contains("1 inserted, 2 refused")
            && said.contains("line 1:")
            && said.contains("line 2:"),
        "{said}"
    );
    let exported = run(&on(["export", "--url", &url], &["--relaxed", "--filter", r#"{"_id": {"$lt": 2}}"#]), b"");
    assert!(exported.status.success());
    assert_eq!(String::from_utf8(exported.stdout).unwrap(), "{\"_id\":0}\n{\"_id\":1}\n{\"end\": {\"count\": 2}}\n");
    let gone = run(&["export", "--db", "d", "--coll", "c", "--url", "http://127.0.0.1:1"], b"");
    assert!(!gone.status.success() && gone.stdout.is_empty());
    let wrong = run(&on(["export", "--url", &url], &["--filter", "{"]), b"");
    assert!(!wrong.status.success());
}

#[test]
fn an_export_that_breaks_off_leaves_no_file_and_fails() {
    // A server that promises a stream and goes away in its middle.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        use std::io::Read;
        let (mut stream, _) = listener.accept().unwrap();
        let mut scrap = [0; 4096];
        let _ = stream.read(&mut scrap).unwrap();
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n{\"_id\":1}\n\r\n");
    });
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("out.ndjson");
    let out =
        run(&["export", "--db", "d", "--coll", "c", "--url", &format!("http://{address}"), "-o", text(&file)], b"");
    server.join().unwrap();
    assert!(!out.status.success());
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "a partial file was left");
}

#[test]
fn health_tells_a_server_from_none() {
    let server = Server::start();
    let url = format!("http://{}", server.address);
    assert_eq!(run(&["health", "--url", &url], b"").status.code(), Some(0));
    assert_eq!(run(&["health", "--url", &url, "--live"], b"").status.code(), Some(0));
    let listen = quarrydb().arg("health").env("QUARRYDB_LISTEN", &server.address).status().unwrap();
    assert_eq!(listen.code(), Some(0));
    assert_eq!(run(&["health", "--url", "http://127.0.0.1:1"], b"").status.code(), Some(1));
}

#[test]
fn keys_are_listed_without_their_secret() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys");
    let made = run(&["key", "add", "app", "--role", "read:shop", "--file", text(&file)], b"");
    let key = String::from_utf8(made.stdout).unwrap();
    let listed = String::from_utf8(run(&["key", "list", "--file", text(&file)], b"").stdout).unwrap();
    assert!(listed.contains("app\tread:shop") && !listed.contains(key.trim()));
    assert!(!run(&["key", "remove", "nobody", "--file", text(&file)], b"").status.success());
    assert!(run(&["key", "remove", "app", "--file", text(&file)], b"").status.success());
}
