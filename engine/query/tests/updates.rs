//! Updates by operator, as tables: filter, update, document, what becomes of it. Expected values are those of MongoDB's
//! manual and of its documented errors.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{JsonbBuf, Style, parse, print};
use quarrydb_query::{ApplyContext, Filter, ParseContext, QueryError, Update};

#[path = "support/type_values.rs"]
mod type_values;
mod update_tables;

const NOW_MS: i64 = 1_767_323_045_678;

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn text(value: &JsonbBuf) -> String {
    let mut out = Vec::new();
    print(value.view(), Style::Canonical, &mut out);
    String::from_utf8(out).unwrap()
}

fn context() -> ParseContext<'static> {
    ParseContext::new("update").with_now(NOW_MS)
}

fn parse_update(update: &str, filters: Option<&str>) -> Result<Update, QueryError> {
    let filters = filters.map(json);
    let parsed = Update::parse(json(update).view(), filters.as_ref().map(JsonbBuf::view), &context());
    if let Err(e) = &parsed {
        let placed = e.place().starts_with("update") || e.place().starts_with("arrayFilters");
        assert!(placed, "{e:?} has the place {:?}", e.place());
    }
    parsed
}

fn filter(text: &str) -> Filter {
    Filter::parse(json(text).view(), &ParseContext::new("filter")).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn shown(result: Result<Option<JsonbBuf>, QueryError>) -> String {
    match result {
        Ok(Some(new)) => text(&new),
        Ok(None) => "same".to_owned(),
        Err(e) => format!("error {}", e.code()),
    }
}

fn expect(found: &str, expected: &str, what: &str, wrong: &mut Vec<String>) {
    let expected = match expected {
        e if e == "same" || e.starts_with("error ") => e.to_owned(),
        e => text(&json(e)),
    };
    if found != expected {
        wrong.push(format!("{what}\n   gave {found}\n   want {expected}"));
    }
}

/// Each row: a filter, an update, the document, what it becomes.
fn check_matched(rows: &[(&str, &str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (query, update, document, expected) in rows {
        let document = json(document);
        let result = parse_update(update, None)
            .and_then(|u| u.apply(document.view(), &filter(query), &ApplyContext::at(NOW_MS)));
        expect(&shown(result), expected, &format!("{update} where {query}"), &mut wrong);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The same without a filter.
fn check(rows: &[(&str, &str, &str)]) {
    check_matched(&rows.iter().map(|&(u, d, e)| ("{}", u, d, e)).collect::<Vec<_>>());
}

/// Each row: array filters, an update, the document, what it becomes.
fn check_filtered(rows: &[(&str, &str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (filters, update, document, expected) in rows {
        let document = json(document);
        let result = parse_update(update, Some(filters))
            .and_then(|u| u.apply(document.view(), &Filter::everything(), &ApplyContext::at(NOW_MS)));
        expect(&shown(result), expected, &format!("{update} with {filters}"), &mut wrong);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Each row: a filter, an update, the document that an upsert makes.
fn check_upsert(rows: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (query, update, expected) in rows {
        let result = parse_update(update, None)
            .and_then(|u| u.upsert(&filter(query), &ApplyContext::at(NOW_MS), &mut || [7; 12]));
        expect(&shown(result.map(Some)), expected, &format!("upsert {update} where {query}"), &mut wrong);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
