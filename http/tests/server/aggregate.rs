//! aggregate: answers in every form, cases that others got wrong, what a key may reach, what ends a run.
//!
//! Expected values are MongoDB's, as its manual documents the stages, or those of the reports named beside them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::common::{PATIENCE, Server, quarrydb};

fn fill(server: &Server, collection: &str, documents: &Value) {
    server.post(&format!("/v1/db/d/{collection}/insertMany"), &json!({"documents": documents}).to_string()).expect(201);
}

fn ask(server: &Server, collection: &str, pipeline: &Value) -> Value {
    let body = json!({"pipeline": pipeline}).to_string();
    server.post(&format!("/v1/db/d/{collection}/aggregate"), &body).expect(200)["documents"].clone()
}

#[test]
fn min_and_max_leave_nulls_out_w07() {
    let server = Server::start();
    let documents = json!([
        {"_id": 1, "g": "a", "s": 100}, {"_id": 2, "g": "a", "s": 65}, {"_id": 3, "g": "a", "s": null}, {"_id": 4, "g": "a"},
        {"_id": 5, "g": "b", "s": null}, {"_id": 6, "g": "b"}
    ]);
    fill(&server, "c", &documents);
    let pipeline = json!([
        {"$group": {"_id": "$g", "lo": {"$min": "$s"}, "hi": {"$max": "$s"}, "av": {"$avg": "$s"}, "n": {"$sum": 1}}},
        {"$sort": {"_id": 1}}
    ]);
    let expected = json!([
        {"_id": "a", "lo": 65, "hi": 100, "av": 82.5, "n": 4}, {"_id": "b", "lo": null, "hi": null, "av": null, "n": 2}
    ]);
    assert_eq!(ask(&server, "c", &pipeline), expected);
}

#[test]
fn a_missing_part_of_a_path_is_the_group_of_null_w08() {
    let server = Server::start();
    let documents = json!([
        {"_id": 1, "g": {"p": "S"}}, {"_id": 2}, {"_id": 3, "g": null}, {"_id": 4, "g": {}}, {"_id": 5, "g": {"p": null}},
        {"_id": 6, "g": {"p": "S"}}
    ]);
    fill(&server, "c", &documents);
    let by = |id: Value| ask(&server, "c", &json!([{"$group": {"_id": id, "n": {"$sum": 1}}}, {"$sort": {"n": 1}}]));
    assert_eq!(by(json!("$g.p")), json!([{"_id": "S", "n": 2}, {"_id": null, "n": 4}]));
    assert_eq!(by(json!({"p": "$g.p"})), json!([{"_id": {"p": "S"}, "n": 2}, {"_id": {"p": null}, "n": 4}]));
}

#[test]
fn groups_keep_the_order_of_a_sort_before_them_w09() {
    let server = Server::start();
    let documents = json!([
        {"_id": 4, "n": "d", "g": "B"}, {"_id": 1, "n": "a", "g": "A"}, {"_id": 9, "n": "w", "g": "A"},
        {"_id": 2, "n": "c", "g": "B"}, {"_id": 5, "n": "k", "g": "A"}, {"_id": 3, "n": "f", "g": "A"}
    ]);
    fill(&server, "c", &documents);
    let pipeline = json!([
        {"$sort": {"_id": 1}},
        {"$group": {"_id": "$g", "ns": {"$push": "$n"}, "f": {"$first": "$n"}, "l": {"$last": "$n"}}},
        {"$sort": {"_id": 1}}
    ]);
    let expected = json!([
        {"_id": "A", "ns": ["a", "f", "k", "w"], "f": "a", "l": "w"}, {"_id": "B", "ns": ["c", "d"], "f": "c", "l": "d"}
    ]);
    assert_eq!(ask(&server, "c", &pipeline), expected);
}

#[test]
fn a_match_behind_a_join_is_kept_w10() {
    let server = Server::start();
    let books = json!([{"_id": 1, "t": "P", "a": "J"}, {"_id": 2, "t": "E", "a": "J"}, {"_id": 3, "t": "E", "a": "Z"}]);
    fill(&server, "books", &books);
    fill(&server, "authors", &json!([{"_id": 10, "name": "J"}]));
    let joined = |matched: Value| {
        let pipeline = json!([
            {"$lookup": {"from": "authors", "localField": "a", "foreignField": "name", "as": "w"}},
            {"$unwind": {"path": "$w", "preserveNullAndEmptyArrays": true}},
            {"$match": matched},
            {"$sort": {"_id": 1}}
        ]);
        ask(&server, "books", &pipeline)
    };
    let two = json!({"_id": 2, "t": "E", "a": "J", "w": {"_id": 10, "name": "J"}});
    let three = json!({"_id": 3, "t": "E", "a": "Z"});
    assert_eq!(joined(json!({"t": "E"})), json!([two, three]));
    assert_eq!(joined(json!({"w.name": null})), json!([three]));
    assert_eq!(joined(json!({"t": "E", "w.name": "J"})), json!([two]));
}

#[test]
fn sums_lose_nothing_w31() {
    let server = Server::start();
    let long = |n: &str| json!({"$numberLong": n});
    let documents = json!([
        {"_id": 1, "g": "d", "v": 9007199254740992.0}, {"_id": 2, "g": "d", "v": 1.0}, {"_id": 3, "g": "d", "v": -9007199254740992.0},
        {"_id": 4, "g": "i", "v": 2147483647}, {"_id": 5, "g": "i", "v": 1}, {"_id": 6, "g": "m", "v": "7"},
        {"_id": 7, "g": "m", "v": 2}, {"_id": 8, "g": "m", "v": [5]}, {"_id": 9, "g": "o", "v": long("9223372036854775807")},
        {"_id": 10, "g": "o", "v": 1}
    ]);
    fill(&server, "c", &documents);
    let body = json!({"pipeline": [{"$group": {"_id": "$g", "s": {"$sum": "$v"}}}, {"$sort": {"_id": 1}}]}).to_string();
    let answer = server.request("POST", "/v1/db/d/c/aggregate", &[("Accept", "application/ejson")], body.as_bytes());
    let sums: Vec<Value> =
        answer.expect(200)["documents"].as_array().unwrap().iter().map(|group| group["s"].clone()).collect();
    let expected = json!([
        {"$numberDouble": "1.0"}, {"$numberLong": "2147483648"}, {"$numberInt": "2"},
        {"$numberDouble": "9.223372036854775808E18"}
    ]);
    let as_f64 = |v: &Value| v["$numberDouble"].as_str().and_then(|n| n.parse::<f64>().ok());
    for (sum, wanted) in sums.iter().zip(expected.as_array().unwrap()) {
        assert!(sum == wanted || as_f64(sum).is_some() && as_f64(sum) == as_f64(wanted), "{sum} is not {wanted}");
    }
    assert_eq!(sums.len(), 4);
}

#[test]
fn unwind_and_skip_stop_at_nothing_w39() {
    let server = Server::start();
    let documents = json!([
        {"_id": 1, "v": ["a", "b"]}, {"_id": 2}, {"_id": 3, "v": ["c"]}, {"_id": 4, "v": []}, {"_id": 5, "v": null},
        {"_id": 6, "v": "x"}
    ]);
    fill(&server, "c", &documents);
    let cases = [
        (
            json!([{"$unwind": "$v"}, {"$sort": {"_id": 1, "v": 1}}]),
            json!([{"_id": 1, "v": "a"}, {"_id": 1, "v": "b"}, {"_id": 3, "v": "c"}, {"_id": 6, "v": "x"}]),
        ),
        (
            json!([
                {"$unwind": {"path": "$v", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i"}},
                {"$sort": {"_id": 1, "i": 1}}
            ]),
            json!([
                {"_id": 1, "v": "a", "i": 0}, {"_id": 1, "v": "b", "i": 1}, {"_id": 2, "i": null}, {"_id": 3, "v": "c", "i": 0},
                {"_id": 4, "i": null}, {"_id": 5, "v": null, "i": null}, {"_id": 6, "v": "x", "i": null}
            ]),
        ),
        (json!([{"$sort": {"_id": 1}}, {"$skip": 4}, {"$project": {"_id": 1}}]), json!([{"_id": 5}, {"_id": 6}])),
        (json!([{"$limit": 4}, {"$skip": 3}, {"$project": {"_id": 1}}]), json!([{"_id": 4}])),
        (json!([{"$limit": 2}, {"$skip": 3}]), json!([])),
        (json!([{"$skip": 9}]), json!([])),
    ];
    for (pipeline, expected) in cases {
        assert_eq!(ask(&server, "c", &pipeline), expected, "{pipeline}");
    }
}

#[test]
fn a_join_is_an_equality_of_the_language_w40() {
    let server = Server::start();
    let orders = json!([{"_id": 1, "item": "a"}, {"_id": 2, "item": ["a", "b"]}, {"_id": 3}, {"_id": 4, "item": null}]);
    fill(&server, "o", &orders);
    let stock = json!([
        {"_id": 10, "sku": "a"}, {"_id": 11, "sku": "b"}, {"_id": 12, "sku": null}, {"_id": 13}, {"_id": 14, "sku": ["a", "z"]}
    ]);
    fill(&server, "inv", &stock);
    let pipeline = json!([
        {"$lookup": {"from": "inv", "localField": "item", "foreignField": "sku", "as": "m"}},
        {"$project": {"m": {"$map": {"input": "$m", "in": "$$this._id"}}}},
        {"$sort": {"_id": 1}}
    ]);
    let expected = json!([
        {"_id": 1, "m": [10, 14]}, {"_id": 2, "m": [10, 11, 14]}, {"_id": 3, "m": [12, 13]}, {"_id": 4, "m": [12, 13]}
    ]);
    assert_eq!(ask(&server, "o", &pipeline), expected);
    server.post("/v1/db/d/inv/createIndex", r#"{"keys": {"sku": 1}}"#).expect(201);
    assert_eq!(ask(&server, "o", &pipeline), expected, "with an index");
}

#[test]
fn answers_are_streamed_in_every_form() {
    let server = Server::start();
    let lines: String = (0..20_000).map(|i| format!("{{\"_id\":{i},\"v\":[{i},0]}}\n")).collect();
    server.request("POST", "/v1/db/d/c/import", &[], lines.as_bytes()).expect(200);
    let body = br#"{"pipeline": [{"$match": {"_id": {"$gte": 10}}}, {"$unwind": "$v"}, {"$set": {"w": "$v"}}]}"#;
    let path = "/v1/db/d/c/aggregate?trailer=true";
    let answer = server.request("POST", path, &[("Accept", "application/x-ndjson")], body);
    let text = answer.text();
    assert_eq!(text.lines().count(), 2 * 19_990 + 1);
    assert_eq!(text.lines().next(), Some(r#"{"_id":10,"v":10,"w":10}"#));
    assert_eq!(text.lines().last(), Some(r#"{"end": {"count": 39980}}"#));
    let ids = text.lines().take(2 * 19_990).map(|l| serde_json::from_str::<Value>(l).unwrap()["_id"].as_u64().unwrap());
    assert!(ids.eq((10..20_000).flat_map(|i| [i, i])), "the order is that of the rows");
    let whole = server.post("/v1/db/d/c/aggregate", std::str::from_utf8(body).unwrap()).expect(200);
    assert_eq!(whole["documents"].as_array().map(Vec::len), Some(39_980));
    assert_eq!(server.post("/v1/db/d/none/aggregate", r#"{"pipeline": []}"#).text(), r#"{"documents":[]}"#);
    let own = r#"{"pipeline": [{"$documents": [{"a": 1}]}, {"$set": {"b": "$$x"}}], "let": {"x": 2}}"#;
    assert_eq!(server.post("/v1/db/d/none/aggregate", own).expect(200)["documents"], json!([{"a": 1, "b": 2}]));
    let action =
        json!({"dataSource": "x", "database": "d", "collection": "c", "pipeline": [{"$count": "n"}]}).to_string();
    assert_eq!(server.post("/action/aggregate", &action).expect(200), json!({"documents": [{"n": 20_000}]}));
}

#[test]
fn mistakes_name_their_place_and_number() {
    let server = Server::start();
    fill(&server, "c", &json!([{"_id": 1, "a": "x"}]));
    for (body, code, place) in [
        ("{}", 40414, "pipeline"),
        (r#"{"pipeline": {}}"#, 14, "pipeline"),
        (r#"{"pipeline": [{"$limit": 1}, {"$nope": 1}]}"#, 40324, "pipeline[1].$nope"),
        (r#"{"pipeline": [{"$group": {"_id": 1, "n": {"$nope": 1}}}]}"#, 15952, "pipeline[0].$group.n.$nope"),
        (r#"{"pipeline": [{"$out": "x"}, {"$limit": 1}]}"#, 40601, "pipeline[0].$out"),
        (r#"{"pipeline": [], "hint": "nope"}"#, 2, "hint"),
        (r#"{"pipeline": [], "cursor": {}}"#, 40415, "cursor"),
        (r#"{"pipeline": [], "allowDiskUse": 1}"#, 14, "allowDiskUse"),
    ] {
        let answer = server.post("/v1/db/d/c/aggregate", body).expect(400);
        assert_eq!((&answer["code"], &answer["place"]), (&json!(code), &json!(place)), "{body}: {answer}");
    }
    let fails = r#"{"pipeline": [{"$project": {"b": {"$add": ["$a", 1]}}}]}"#;
    assert_eq!(server.post("/v1/db/d/c/aggregate", fails).error(400), "TypeMismatch");
}

#[test]
fn a_pipeline_reaches_no_further_than_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("keys.jsonl");
    let key = |name: &str, roles: &[&str]| {
        let mut command = quarrydb();
        command.args(["key", "add", name, "--file"]).arg(&file);
        for role in roles {
            command.args(["--role", role]);
        }
        String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
    };
    let reader = key("reader", &["read:mine"]);
    let writer = key("writer", &["readWrite:mine", "read:theirs"]);
    let server = Server::on(&dir.path().join("data"), &["--access-keys", file.to_str().unwrap()]);
    let ask = |key: &str, stage: Value| {
        let body = json!({"pipeline": [stage]}).to_string();
        let bearer = format!("Bearer {key}");
        server.request("POST", "/v1/db/mine/c/aggregate", &[("Authorization", &bearer)], body.as_bytes()).status
    };
    assert_eq!(ask(&reader, json!({"$unionWith": "other"})), 200);
    for stage in [
        json!({"$out": "x"}),
        json!({"$merge": "x"}),
        json!({"$out": {"db": "theirs", "coll": "x"}}),
        json!({"$merge": {"into": {"db": "theirs", "coll": "x"}}}),
    ] {
        assert_eq!(ask(&reader, stage.clone()), 403, "{stage}");
    }
    assert_eq!(ask(&writer, json!({"$out": {"db": "theirs", "coll": "x"}})), 403);
    assert_eq!(ask(&writer, json!({"$merge": {"into": {"db": "theirs", "coll": "x"}}})), 403);
}

/// A pipeline that would run for minutes, and says nothing meanwhile.
const LONG: &str = r#"{"pipeline": [
    {"$set": {"k": {"$range": [0, 2000]}}}, {"$unwind": "$k"}, {"$set": {"j": {"$range": [0, 2000]}}}, {"$unwind": "$j"},
    {"$group": {"_id": {"$mod": ["$j", 7]}, "n": {"$sum": "$k"}}}], "maxTimeMS": 0}"#;

#[test]
fn the_time_limit_and_a_client_that_leaves_end_what_says_nothing() {
    let server = Server::start();
    let lines: String = (0..3000).map(|i| format!("{{\"_id\":{i}}}\n")).collect();
    server.request("POST", "/v1/db/d/c/import", &[], lines.as_bytes()).expect(200);
    let timed = LONG.replace("\"maxTimeMS\": 0", "\"maxTimeMS\": 100");
    assert_eq!(server.post("/v1/db/d/c/aggregate", &timed).error(408), "MaxTimeMSExpired");
    let before = server.metric("quarrydb_cursors_cancelled_total");
    let mut connection = server.connect();
    let length = LONG.len();
    let request =
        format!("POST /v1/db/d/c/aggregate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{LONG}");
    connection.send(request.as_bytes());
    let begun = Instant::now();
    while server.metric("quarrydb_streams") == 0 {
        assert!(begun.elapsed() < PATIENCE, "it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(connection);
    while server.metric("quarrydb_cursors_cancelled_total") == before || server.metric("quarrydb_streams") > 0 {
        assert!(begun.elapsed() < PATIENCE, "it goes on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn out_and_merge_write_and_explain_writes_nothing() {
    let server = Server::start();
    fill(
        &server,
        "sales",
        &json!([{"_id": 1, "item": "pen", "n": 3}, {"_id": 2, "item": "ink", "n": 1}, {"_id": 3, "item": "pen", "n": 4}]),
    );
    let group = json!({"$group": {"_id": "$item", "n": {"$sum": "$n"}}});
    let explained = |pipeline: Value| {
        let body = json!({"aggregate": {"pipeline": pipeline}}).to_string();
        server.post("/v1/db/d/sales/explain", &body).expect(200)
    };
    let plan = explained(json!([{"$match": {"n": {"$gt": 0}}}, {"$set": {"m": 1}}, {"$out": "totals"}]));
    assert_eq!(plan["plan"]["stage"], "Write", "{plan}");
    assert_eq!(
        (&plan["plan"]["input"]["stage"], &plan["execution"]["rowsReturned"]),
        (&json!("AddFields"), &json!(3)),
        "{plan}"
    );
    assert_eq!(server.post("/v1/db/d/totals/count", "{}").expect(200)["count"], 0);
    let plan = explained(json!([{"$sort": {"n": -1}}, {"$limit": 1}]));
    assert_eq!((&plan["plan"]["stage"], &plan["plan"]["input"]["method"]), (&json!("Limit"), &json!("topK")), "{plan}");
    assert_eq!(ask(&server, "sales", &json!([group, {"$out": "totals"}])), json!([]));
    let totals = || ask(&server, "totals", &json!([{"$sort": {"_id": 1}}]));
    assert_eq!(totals(), json!([{"_id": "ink", "n": 1}, {"_id": "pen", "n": 7}]));
    let adds = json!([{"$set": {"n": {"$add": ["$n", "$$new.n"]}}}]);
    let merge = json!({"$merge": {"into": "totals", "whenMatched": adds}});
    assert_eq!(ask(&server, "sales", &json!([{"$match": {"item": "pen"}}, group, merge])), json!([]));
    assert_eq!(totals(), json!([{"_id": "ink", "n": 1}, {"_id": "pen", "n": 14}]));
    let stats = ask(&server, "totals", &json!([{"$collStats": {"count": {}}}]));
    assert_eq!((&stats[0]["ns"], &stats[0]["count"]), (&json!("d.totals"), &json!(2)));
    assert_eq!(
        ask(&server, "totals", &json!([{"$indexStats": {}}, {"$project": {"name": 1}}])),
        json!([{"name": "_id_"}])
    );
    let none = server.post("/v1/db/d/none/aggregate", r#"{"pipeline": [{"$collStats": {"count": {}}}]}"#).expect(400);
    assert_eq!(none["code"], 26);
}

/// Ten times the documents take about ten times as long, not a hundred: one group holds them all.
#[test]
fn a_group_of_all_does_not_grow_with_its_square_p07() {
    let server = Server::start();
    let rows = 20_000;
    let lines: String =
        (0..rows).map(|i| format!("{{\"_id\":{i},\"g\":1,\"o\":{{\"k{i}\":{i}}},\"v\":{i}}}\n")).collect();
    server.request("POST", "/v1/db/d/c/import", &[], lines.as_bytes()).expect(200);
    let pipeline = json!([
        {"$sort": {"_id": 1}},
        {"$group": {"_id": "$g", "m": {"$mergeObjects": "$o"}, "p": {"$push": "$v"}, "s": {"$addToSet": "$v"}}},
        {"$project": {"m": {"$size": {"$objectToArray": "$m"}}, "p": {"$slice": ["$p", -2]}, "s": {"$size": "$s"}}}
    ]);
    // The square of so many steps would not end within this.
    let body = json!({"pipeline": pipeline, "maxTimeMS": 60_000}).to_string();
    let answer = server.post("/v1/db/d/c/aggregate", &body).expect(200);
    assert_eq!(answer["documents"], json!([{"_id": 1, "m": rows, "p": [rows - 2, rows - 1], "s": rows}]));
}
