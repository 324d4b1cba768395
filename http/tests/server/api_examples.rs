//! The examples of `http/API.md`, run in order; every route of the description has one.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::common::Server;

const PAGE: &str = include_str!("../../API.md");

struct Example<'a> {
    method: &'a str,
    path: &'a str,
    body: &'a str,
    status: u16,
    answer: Value,
}

fn examples() -> Vec<Example<'static>> {
    PAGE.split("```http\n").skip(1).map(|block| example(block.split("```").next().unwrap())).collect()
}

fn example(block: &'static str) -> Example<'static> {
    let (request, answer) = block.split_once("\n\n").unwrap_or_else(|| panic!("no empty line in {block}"));
    let (line, body) = request.split_once('\n').unwrap_or((request, ""));
    let (method, path) = line.split_once(' ').unwrap();
    let (status, answer) = answer.split_once('\n').unwrap();
    let answer = serde_json::from_str(answer).unwrap_or_else(|e| panic!("{e} in {answer}"));
    Example { method, path, body, status: status.parse().unwrap(), answer }
}

/// Whether an answer is as the page says: `"..."` is any value, the field `...` lets others be there.
fn fits(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (_, Value::String(any)) if any == "..." => true,
        (Value::Object(found), Value::Object(wanted)) => {
            let open = wanted.contains_key("...");
            let named = wanted.iter().filter(|(k, _)| *k != "...");
            named.clone().all(|(k, v)| found.get(k).is_some_and(|f| fits(f, v)))
                && (open || named.count() == found.len())
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| fits(f, w))
        }
        _ => found == wanted,
    }
}

#[test]
fn the_pages_examples_are_answered_as_it_says() {
    let server = Server::start();
    for e in examples() {
        let answer = server.request(e.method, e.path, &[("Content-Type", "application/json")], e.body.as_bytes());
        let line = format!("{} {} answered {}: {}", e.method, e.path, answer.status, answer.text());
        assert_eq!(answer.status, e.status, "{line}");
        assert!(fits(&answer.json(), &e.answer), "{line}\nwanted {}", e.answer);
    }
}

#[test]
fn every_route_has_an_example() {
    let server = Server::start();
    let open = server.get("/openapi.json").json();
    let shown: BTreeSet<(String, Vec<&str>)> = examples()
        .iter()
        .map(|e| (e.method.to_lowercase(), e.path.split('?').next().unwrap().split('/').collect()))
        .collect();
    let matches = |template: &[&str], path: &[&str]| {
        template.len() == path.len() && template.iter().zip(path).all(|(t, p)| t.starts_with('{') || t == p)
    };
    for (path, item) in open["paths"].as_object().unwrap() {
        if path == "/" || path == "/metrics" {
            continue;
        }
        let template: Vec<_> = path.split('/').collect();
        for method in item.as_object().unwrap().keys() {
            let has = shown.iter().any(|(m, p)| m == method && matches(&template, p));
            assert!(has, "no example of {method} {path}");
        }
    }
}
