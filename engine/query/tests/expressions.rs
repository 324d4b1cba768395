//! Expressions by family, as tables: expression, document, value. Expected values are those of MongoDB's manual.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "integration tests read files of the repository")]

use quarrydb_jsonb::{JsonbBuf, Style, parse, print};
use quarrydb_query::ParseContext;
use quarrydb_query::expr::{Budget, Expression, operator_names};

mod expression_tables;
#[path = "support/type_values.rs"]
mod type_values;

/// Enough for every row, and soon spent by those that have no end.
const BUDGET: Budget<'static> = Budget { bytes: 100 << 20, steps: 1 << 20, go_on: None };
const NOW_MS: i64 = 1_767_323_045_678;

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn text(value: &JsonbBuf) -> String {
    let mut out = Vec::new();
    print(value.view(), Style::Canonical, &mut out);
    String::from_utf8(out).unwrap()
}

/// The value in canonical Extended JSON, `missing`, or `error <code>`.
fn outcome(expression: &str, document: &str) -> String {
    let document = json(document);
    let expression = json(expression);
    let context = ParseContext::new("expression").with_now(NOW_MS);
    let parsed = Expression::parse(expression.view(), &context);
    if let Err(e) = &parsed {
        assert!(e.place().starts_with("expression"), "{e:?} has the place {:?}", e.place());
    }
    let value = parsed.and_then(|e| e.value(document.view(), BUDGET));
    match value {
        Ok(Some(value)) => text(&value),
        Ok(None) => "missing".to_owned(),
        Err(e) => format!("error {}", e.code()),
    }
}

/// Each row: an expression, the document, what comes out.
fn check(rows: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (expression, document, expected) in rows {
        let found = outcome(expression, document);
        let expected = match *expected {
            e if e == "missing" || e.starts_with("error ") => e.to_owned(),
            e => text(&json(e)),
        };
        if found != expected {
            wrong.push(format!("{expression} on {document}\n   gave {found}\n   want {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Each example of LANGUAGE.md: a line in a block `expression`, with its block's document.
fn language_examples() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/LANGUAGE.md")).unwrap();
    let (mut examples, mut document, mut inside) = (Vec::new(), "{}".to_owned(), false);
    for line in text.lines() {
        if line == "```expression" {
            inside = true;
            "{}".clone_into(&mut document);
        } else if line.starts_with("```") {
            inside = false;
        } else if inside && let Some(rest) = line.strip_prefix("doc ") {
            rest.clone_into(&mut document);
        } else if inside {
            let (expression, value) = line.split_once(" -> ").unwrap_or_else(|| panic!("no arrow in {line}"));
            examples.push((expression.to_owned(), document.clone(), value.to_owned()));
        }
    }
    examples
}

#[test]
fn every_example_of_the_language_runs_and_every_operator_has_one() {
    let examples = language_examples();
    check(&examples.iter().map(|(e, d, v)| (&**e, &**d, &**v)).collect::<Vec<_>>());
    let mut without: Vec<_> =
        operator_names().filter(|name| !examples.iter().any(|(e, ..)| e.contains(&format!("\"{name}\"")))).collect();
    without.sort_unstable();
    assert!(without.is_empty(), "no example of {without:?}");
}
