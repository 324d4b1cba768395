//! The import route: lines as editors and exports write them, bad ones by number, packed or not, of any length.

use serde_json::{Value, json};

use crate::common::{Answer, Server, chunked, gzip};

fn import(server: &Server, coll: &str, body: &[u8]) -> Answer {
    server.request("POST", &format!("/v1/db/d/{coll}/import"), &[("Content-Type", "application/x-ndjson")], body)
}

fn counts(report: &Value) -> (u64, u64, u64) {
    let n = |name: &str| report[name].as_u64().unwrap();
    (n("lines"), n("insertedCount"), n("failedCount"))
}

#[test]
fn the_last_line_counts_with_or_without_its_end() {
    let server = Server::start();
    let bodies: [&[u8]; 6] = [
        b"{\"_id\":1}\n{\"_id\":2}",
        b"{\"_id\":1}\r\n{\"_id\":2}\r\n",
        b"\xef\xbb\xbf{\"_id\":1}\n{\"_id\":2}\n",
        b"\n{\"_id\":1}\n\n   \n{\"_id\":2}  \n\n",
        b"[{\"_id\":1},{\"_id\":2}]",
        b" [ {\"_id\":1} ,\n {\"_id\":2} ] \n",
    ];
    for (i, body) in bodies.iter().enumerate() {
        let coll = format!("c{i}");
        assert_eq!(counts(&import(&server, &coll, body).expect(200)), (2, 2, 0), "body {i}");
        let found = server.post(&format!("/v1/db/d/{coll}/find"), "{}").expect(200);
        assert_eq!(found, json!({"documents": [{"_id": 1}, {"_id": 2}]}));
    }
    assert_eq!(counts(&import(&server, "e", b"").expect(200)), (0, 0, 0));
    assert_eq!(counts(&import(&server, "e", b"[]").expect(200)), (0, 0, 0));
}

#[test]
fn a_bad_line_is_named_wherever_it_stands() {
    let server = Server::start();
    server.post("/v1/db/d/u/insertOne", r#"{"document": {"_id": 2}}"#).expect(201);
    server.post("/v1/db/d/o/insertOne", r#"{"document": {"_id": 2}}"#).expect(201);
    let body = b"{\"_id\":1}\n{bad}\n{\"_id\":2}\n\n{\"_id\":3}{\"_id\":4}\n{\"_id\":5}\n";
    let unordered = import(&server, "u", body).expect(200);
    assert_eq!(counts(&unordered), (5, 2, 3));
    let errors: Vec<_> =
        unordered["errors"].as_array().unwrap().iter().map(|e| (e["line"].clone(), e["error_code"].clone())).collect();
    assert_eq!(
        errors,
        [(json!(2), json!("InvalidJson")), (json!(3), json!("DuplicateKey")), (json!(5), json!("InvalidJson"))]
    );
    assert_eq!(unordered["errors"][2]["byteOffset"], 36, "{unordered}");
    assert_eq!(unordered["errors"][1]["code"], 11000);
    let ordered = server.request("POST", "/v1/db/d/o/import?ordered=true", &[], body).expect(200);
    assert_eq!(counts(&ordered), (2, 1, 1));
    assert_eq!(ordered["errors"][0]["line"], 2);
    assert_eq!(server.post("/v1/db/d/o/count", "{}").expect(200)["count"], 2);
    assert_eq!(server.request("POST", "/v1/db/d/o/import?ordered=flase", &[], body).error(400), "BadValue");
}

#[test]
fn an_array_that_is_cut_off_is_no_whole_import() {
    let server = Server::start();
    let cut = import(&server, "c", b"[{\"_id\":1},{\"_id\":2},{\"_i");
    assert_eq!(cut.error(400), "InvalidJson");
    assert_eq!(counts(&cut.json()), (2, 2, 0), "{}", cut.text());
}

#[test]
fn packed_streams_are_unpacked_and_cut_ones_refused() {
    let server = Server::start();
    let lines: String =
        (0..5000).map(|i| format!("{{\"_id\":{i},\"text\":\"some text that packs well\"}}\n")).collect();
    let two = [gzip(lines.as_bytes()), gzip(b"{\"_id\":-1}\n")].concat();
    let answer = server.request("POST", "/v1/db/d/g/import", &[("Content-Encoding", "gzip")], &two);
    assert_eq!(counts(&answer.expect(200)), (5001, 5001, 0));
    let zstd = zstd::encode_all(lines.as_bytes(), 3).unwrap();
    let answer = server.request("POST", "/v1/db/d/z/import", &[("Content-Encoding", "zstd")], &zstd);
    assert_eq!(counts(&answer.expect(200)), (5000, 5000, 0));
    let cut = server.request("POST", "/v1/db/d/x/import", &[("Content-Encoding", "zstd")], &zstd[..zstd.len() - 9]);
    assert_eq!(cut.error(400), "BadValue");
    let plain = server.request("POST", "/v1/db/d/x/import", &[("Content-Encoding", "gzip")], lines.as_bytes());
    assert_eq!(plain.error(400), "BadValue");
    let unknown = server.request("POST", "/v1/db/d/x/import", &[("Content-Encoding", "br")], lines.as_bytes());
    assert_eq!(unknown.error(415), "UnsupportedMediaType");
}

#[test]
fn a_long_stream_goes_in_by_blocks_in_order_and_above_the_limit_of_bodies() {
    let server = Server::with(&["--max-body", "1MiB"]);
    let documents = 60_000;
    let mut lines = String::new();
    for i in 0..documents {
        lines.push_str(&format!("{{\"_id\":{i},\"name\":\"document number {i}\",\"tags\":[\"a\",\"b\"]}}\n"));
        if i == 40_000 {
            lines.push_str("{\"_id\": 5}\n");
        }
    }
    let body = chunked(lines.as_bytes(), 70_001);
    let answer = server.request("POST", "/v1/db/d/c/import", &[("Transfer-Encoding", "chunked")], &body);
    let report = answer.expect(200);
    assert_eq!(counts(&report), (documents + 1, documents, 1));
    assert_eq!((&report["errors"][0]["line"], &report["errors"][0]["code"]), (&json!(40_002), &json!(11000)));
    let last = server.post("/v1/db/d/c/find", r#"{"sort": {"_id": -1}, "limit": 1, "projection": {"_id": 1}}"#);
    assert_eq!(last.expect(200)["documents"][0]["_id"], documents - 1);
    let stopped = server
        .request("POST", "/v1/db/d/o/import?ordered=true", &[("Transfer-Encoding", "chunked")], &body)
        .expect(200);
    assert_eq!((&stopped["insertedCount"], &stopped["failedCount"]), (&json!(40_001), &json!(1)));
}

#[test]
fn a_trailer_proves_an_export_whole() {
    let server = Server::start();
    let whole = b"{\"_id\":1}\n{\"_id\":2}\n{\"end\": {\"count\": 2}}\n";
    let send =
        |coll: &str, body: &[u8]| server.request("POST", &format!("/v1/db/d/{coll}/import?trailer=true"), &[], body);
    let report = send("a", whole).expect(200);
    assert_eq!((counts(&report), &report["trailer"]), ((2, 2, 0), &json!(true)));
    send("b", b"{\"_id\":1}\n{\"_id\":2}\n").error(400);
    send("c", b"{\"_id\":1}\n{\"end\": {\"count\": 2}}\n").error(400);
    let unasked = import(&server, "d", whole).expect(200);
    assert_eq!(counts(&unasked), (2, 2, 0));
    let short = import(&server, "e", b"{\"_id\":1}\n{\"end\": {\"count\": 7}}\n").expect(200);
    assert_eq!((short["failedCount"].as_u64(), short["errors"][0]["line"].as_u64()), (Some(1), Some(2)));
}
