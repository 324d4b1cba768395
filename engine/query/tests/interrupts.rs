//! Whatever takes long on one document asks now and then whether to go on: filters, projections, updates, sort keys.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{Builder, JsonbBuf, parse};
use quarrydb_query::expr::Budget;
use quarrydb_query::{ApplyContext, Filter, ParseContext, Projection, QueryError, Sort, Update};
use std::cell::Cell;

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

/// What `work` gives when it may go on `times` times.
fn stopped_after<T>(times: usize, work: impl Fn(Budget<'_>) -> Result<T, QueryError>) -> (Result<T, i32>, usize) {
    let asked = Cell::new(0);
    let go_on = || {
        asked.set(asked.get() + 1);
        asked.get() <= times
    };
    let outcome = work(Budget { go_on: Some(&go_on), ..Budget::default() });
    (outcome.map_err(|e| e.code()), asked.get())
}

/// It is asked more than once, stops where the answer is no, and ends well where it is yes.
fn check<T: std::fmt::Debug>(what: &str, work: impl Fn(Budget<'_>) -> Result<T, QueryError>) {
    for times in [0, 2] {
        let (outcome, asked) = stopped_after(times, &work);
        assert_eq!(outcome.err(), Some(50), "{what}: not stopped");
        assert_eq!(asked, times + 1, "{what}");
    }
    let (outcome, asked) = stopped_after(usize::MAX, &work);
    assert!(outcome.is_ok(), "{what}: {outcome:?}");
    assert!(asked > 2, "{what} asks {asked} times");
}

fn array(element: &str, times: usize) -> String {
    format!("[{}]", vec![element; times].join(","))
}

#[test]
fn a_projection_can_be_stopped() {
    let objects = json(&format!(r#"{{"_id": 1, "v": {}}}"#, array(r#"{"a": 1, "b": 2}"#, 20_000)));
    let numbers = json(&format!(r#"{{"_id": 1, "v": {}}}"#, array("1", 20_000)));
    for (document, text) in [
        (&objects, r#"{"v.a": 1}"#),
        (&objects, r#"{"v.a": 0}"#),
        (&objects, r#"{"v": {"$elemMatch": {"a": 2}}}"#),
        (&objects, r#"{"x": {"$map": {"input": "$v", "in": "$$this.a"}}}"#),
        (&numbers, r#"{"x": {"$sum": {"$map": {"input": "$v", "in": {"$add": ["$$this", 1]}}}}}"#),
        (&numbers, r#"{"v": {"$elemMatch": {"$gt": 5}}}"#),
    ] {
        let projection = Projection::parse(json(text).view(), &ParseContext::new("projection")).unwrap();
        check(text, |budget| projection.apply_within(document.view(), &mut Builder::new(), budget));
    }
    // Where each expression is short, all of them together count.
    let many: Vec<String> = (0..20_000).map(|i| format!(r#""x{i}": {{"$add": ["$_id", {i}]}}"#)).collect();
    let many = json(&format!("{{{}}}", many.join(",")));
    let projection = Projection::parse(many.view(), &ParseContext::new("projection")).unwrap();
    check("many expressions", |budget| projection.apply_within(numbers.view(), &mut Builder::new(), budget));
    // The filter that the positional operator asks.
    let filter = Filter::parse(json(r#"{"v": {"$elemMatch": {"$gt": 5}}}"#).view(), &ParseContext::new("filter"));
    let positional = Projection::parse(json(r#"{"v.$": 1}"#).view(), &ParseContext::new("projection")).unwrap();
    let positional = positional.for_filter(&filter.unwrap()).unwrap();
    let last = json(&format!(r#"{{"_id": 1, "v": {}}}"#, array("1", 20_000).replace("1]", "9]")));
    check("v.$", |budget| positional.apply_within(last.view(), &mut Builder::new(), budget));
}

#[test]
fn an_update_can_be_stopped() {
    let numbers = json(&format!(r#"{{"_id": 1, "v": {}}}"#, array("1", 20_000)));
    for (update, filters) in [
        (r#"{"$inc": {"v.$[]": 1}}"#, None),
        (r#"{"$inc": {"v.$[e]": 1}}"#, Some(r#"[{"e": {"$gt": 0}}]"#)),
        (r#"{"$pull": {"v": {"$gt": 5}}}"#, None),
        (r#"[{"$set": {"v": {"$map": {"input": "$v", "in": {"$add": ["$$this", 1]}}}}}]"#, None),
        (r#"[{"$project": {"x": {"$map": {"input": "$v", "in": {"$add": ["$$this", 1]}}}}}]"#, None),
        (r#"[{"$replaceWith": {"x": {"$map": {"input": "$v", "in": {"$add": ["$$this", 1]}}}}}]"#, None),
    ] {
        let filters = filters.map(json);
        let context = ParseContext::new("update");
        let parsed = Update::parse(json(update).view(), filters.as_ref().map(JsonbBuf::view), &context).unwrap();
        let context = ApplyContext::default();
        check(update, |budget| parsed.apply_within(numbers.view(), &Filter::everything(), &context, budget));
    }
}

#[test]
fn a_sort_key_can_be_stopped() {
    let document = json(&format!(r#"{{"v": {}}}"#, array(r#"{"a": 1, "b": [1, 2, 3]}"#, 20_000)));
    for text in [r#"{"v.a": 1}"#, r#"{"v.b": -1, "v.a": 1}"#] {
        let sort = Sort::parse(json(text).view(), &ParseContext::new("sort")).unwrap();
        check(text, |budget| sort.key_within(document.view(), &mut Vec::new(), budget));
    }
}
