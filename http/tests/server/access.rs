//! Keys: what is refused without one, what each role may do, CORS before keys, TLS.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::common::{Server, quarrydb};

fn key(file: &Path, name: &str, roles: &[&str]) -> String {
    let mut command = quarrydb();
    command.args(["key", "add", name, "--file"]).arg(file);
    for role in roles {
        command.args(["--role", role]);
    }
    let out = command.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

fn keyed(dir: &Path, options: &[&str]) -> Server {
    let file = dir.join("keys.jsonl");
    let mut all = vec!["--access-keys", file.to_str().unwrap()];
    all.extend_from_slice(options);
    Server::on(&dir.join("data"), &all)
}

#[test]
fn without_a_key_nothing_but_health_is_answered() {
    let dir = tempfile::tempdir().unwrap();
    let admin = key(&dir.path().join("keys.jsonl"), "admin", &["admin:*"]);
    let server = keyed(dir.path(), &[]);
    for path in ["/v1/db", "/v1/db/d/c", "/metrics", "/nope", "/v1/db/d/c/doc/1", "/action/find", "/v1/changes"] {
        for method in ["GET", "POST", "HEAD", "OPTIONS", "DELETE"] {
            let refused = server.request(method, path, &[], b"");
            assert_eq!(refused.status, 401, "{method} {path}");
            assert!(refused.header("www-authenticate").unwrap().starts_with("Bearer"));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        // A valid key resets nothing and is not held up by the failures of its neighbours.
        let bearer = format!("Bearer {admin}");
        assert_ne!(server.request("GET", path, &[("Authorization", &bearer)], b"").status, 401);
        if path == "/metrics" {
            break;
        }
    }
    for open in ["/healthz", "/livez", "/readyz", "/openapi.json", "/"] {
        assert_eq!(server.get(open).status, 200, "{open}");
    }
}

#[test]
fn failed_attempts_are_slowed_and_valid_keys_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let admin = key(&dir.path().join("keys.jsonl"), "admin", &["admin:*"]);
    let server = keyed(dir.path(), &[]);
    let statuses: Vec<_> = (0..40)
        .map(|i| server.request("GET", "/v1/db", &[("Authorization", &format!("Bearer wrong-{i}"))], b"").status)
        .collect();
    assert_eq!((statuses[0], statuses[39]), (401, 429));
    // A request without a key guesses none: it is told what is missing, however many there were.
    assert_eq!(server.get("/v1/db").error(401), "Unauthorized");
    server.request("GET", "/v1/db", &[("Authorization", &format!("Bearer {admin}"))], b"").expect(200);
}

#[test]
fn a_role_opens_what_it_names() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys.jsonl");
    let (reader, writer, admin) = (
        key(&file, "r", &["read:shop"]),
        key(&file, "w", &["readWrite:shop", "read:other"]),
        key(&file, "a", &["admin:*"]),
    );
    let server = keyed(dir.path(), &[]);
    let send = |key: &str, method: &str, path: &str, body: &str| {
        server.request(
            method,
            path,
            &[("Authorization", &format!("Bearer {key}")), ("Content-Type", "application/json")],
            body.as_bytes(),
        )
    };
    let insert = r#"{"document": {"a": 1}}"#;
    assert_eq!(send(&reader, "POST", "/v1/db/shop/c/insertOne", insert).error(403), "Forbidden");
    assert_eq!(send(&writer, "POST", "/v1/db/other/c/insertOne", insert).error(403), "Forbidden");
    send(&writer, "POST", "/v1/db/shop/c/insertOne", insert).expect(201);
    send(&reader, "POST", "/v1/db/shop/c/find", "{}").expect(200);
    assert_eq!(send(&reader, "POST", "/v1/db/other/c/find", "{}").error(403), "Forbidden");
    assert_eq!(send(&reader, "POST", "/v1/db/shop/c/import", "{}").error(403), "Forbidden");
    assert_eq!(send(&reader, "PUT", "/v1/db/shop/c/doc/1", "{}").error(403), "Forbidden");
    assert_eq!(send(&writer, "DELETE", "/v1/db/shop", "").error(403), "Forbidden");
    assert_eq!(send(&reader, "GET", "/metrics", "").error(403), "Forbidden");
    send(&admin, "POST", "/v1/db/other/c/insertOne", insert).expect(201);
    assert_eq!(send(&admin, "GET", "/v1/db", "").expect(200)["databases"].as_array().unwrap().len(), 2);
    assert_eq!(send(&reader, "GET", "/v1/db", "").expect(200)["databases"].as_array().unwrap().len(), 1);
    let action = r#"{"database": "shop", "collection": "c", "document": {"a": 2}}"#;
    let by_header = |key: &str| server.request("POST", "/action/insertOne", &[("apiKey", key)], action.as_bytes());
    assert_eq!(by_header(&reader).error(403), "Forbidden");
    by_header(&writer).expect(201);
    send(&admin, "DELETE", "/v1/db/shop", "").expect(200);
}

#[test]
fn a_preflight_needs_no_key_and_a_refusal_can_be_read_by_the_page() {
    let dir = tempfile::tempdir().unwrap();
    key(&dir.path().join("keys.jsonl"), "a", &["admin:*"]);
    let server = keyed(dir.path(), &["--cors-origins", "https://app.test", "--cors-credentials"]);
    let ask = |origin: &str| {
        server.request(
            "OPTIONS",
            "/v1/db/d/c/find",
            &[("Origin", origin), ("Access-Control-Request-Method", "POST")],
            b"",
        )
    };
    let allowed = ask("https://app.test");
    assert_eq!(allowed.status, 204);
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.test"));
    assert!(allowed.header("access-control-allow-methods").unwrap().contains("POST"));
    assert!(allowed.header("access-control-allow-headers").unwrap().contains("authorization"));
    assert_eq!(allowed.header("access-control-allow-credentials"), Some("true"));
    assert_eq!(ask("https://evil.test").header("access-control-allow-origin"), None);
    let refused = server.request(
        "POST",
        "/v1/db/d/c/find",
        &[("Origin", "https://app.test"), ("Authorization", "Bearer no")],
        b"{}",
    );
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), Some("https://app.test"));
}

#[test]
fn a_packed_body_is_not_unpacked_for_strangers() {
    let dir = tempfile::tempdir().unwrap();
    key(&dir.path().join("keys.jsonl"), "a", &["admin:*"]);
    let server = keyed(dir.path(), &[]);
    let answer = server.request("POST", "/v1/db/d/c/insertOne", &[("Content-Encoding", "gzip")], b"not gzip at all");
    assert_eq!(answer.error(401), "Unauthorized");
}

#[test]
fn keys_are_read_again_at_sighup() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys.jsonl");
    let old = key(&file, "old", &["admin:*"]);
    let server = keyed(dir.path(), &[]);
    let new = key(&file, "new", &["admin:*"]);
    assert!(quarrydb().args(["key", "remove", "old", "--file"]).arg(&file).status().unwrap().success());
    server.signal(rustix::process::Signal::HUP);
    let status =
        |key: &str| server.request("GET", "/v1/db", &[("Authorization", &format!("Bearer {key}"))], b"").status;
    while status(&new) != 200 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    assert_eq!(status(&old), 401);
}

fn refused_start(options: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let out: Output = quarrydb().args(["serve", "--data"]).arg(dir.path().join("data")).args(options).output().unwrap();
    assert!(!out.status.success() && out.stdout.is_empty(), "{options:?} started");
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn an_unsafe_start_is_refused_with_the_way_out() {
    let open = refused_start(&["--listen", "0.0.0.0:0"]);
    assert!(open.contains("quarrydb key add") && open.contains("--insecure-no-auth"), "{open}");
    assert!(refused_start(&["--cors-origins", "*", "--cors-credentials"]).contains("credentials"));
    assert!(refused_start(&["--durability", "never"]).contains("interval:100ms"));
    assert!(refused_start(&["--access-keys", "/nonexistent/keys"]).contains("/nonexistent/keys"));
}

fn testdata(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata").join(name)
}

#[test]
fn tls_is_spoken_and_health_checks_it() {
    let (cert, secret) = (testdata("cert.pem"), testdata("key.pem"));
    let server = Server::with(&["--tls-cert", cert.to_str().unwrap(), "--tls-key", secret.to_str().unwrap()]);
    let url = format!("https://localhost:{}", server.address.rsplit(':').next().unwrap());
    let health = |url: &str, ca: bool| {
        let mut command = quarrydb();
        command.args(["health", "--url", url]);
        if ca {
            command.arg("--ca").arg(&cert);
        }
        command.output().unwrap()
    };
    let trusted = health(&url, true);
    assert!(trusted.status.success(), "{}", String::from_utf8_lossy(&trusted.stderr));
    assert_eq!(health(&url, false).status.code(), Some(1));
    assert_eq!(health(&url.replace("https", "http"), true).status.code(), Some(1));
}
