//! Expressions that want to take all: depth, width, steps, memory.

use crate::{BUDGET, json, outcome};
use quarrydb_query::ParseContext;
use quarrydb_query::expr::{Budget, Expression};

/// `inner` wrapped `times` times.
fn nested(before: &str, inner: &str, after: &str, times: usize) -> String {
    format!("{}{inner}{}", before.repeat(times), after.repeat(times))
}

#[test]
fn as_deep_as_a_body_may_nest_is_evaluated_on_a_small_stack() {
    // A body may nest 200 levels; a test's thread has 2 MiB of stack, less than a server's.
    for (before, after, levels) in [
        (r#"{"$abs": "#, "}", 1),
        (r#"{"$add": ["#, "]}", 2),
        (r#"{"$cond": [true, "#, ", 0]}", 2),
        (r#"{"$ifNull": ["#, ", 0]}", 2),
        (r#"{"$let": {"vars": {"x": 1}, "in": "#, "}}", 2),
        (r#"{"$first": {"$map": {"input": ["$a"], "in": "#, "}}}", 3),
        (r#"{"$first": {"$filter": {"input": [1], "cond": "#, "}}}", 3),
        (r#"{"$reduce": {"input": ["$a"], "initialValue": 0, "in": "#, "}}", 2),
        (r#"{"$switch": {"branches": [{"case": true, "then": "#, "}]}}", 4),
        (r#"{"$convert": {"input": "#, r#", "to": "int"}}"#, 2),
    ] {
        let text = nested(before, r#""$a""#, after, 198 / levels);
        let found = outcome(&text, r#"{"a": 1}"#);
        assert_eq!(found, r#"{"$numberInt":"1"}"#, "{before}");
    }
    let array = nested("[", r#""$a""#, "]", 170);
    assert!(outcome(&array, r#"{"a": 1}"#).starts_with("[["));
}

#[test]
fn many_constants_are_folded_within_one_budget() {
    let range = r#"{"$size": {"$reduce": {"input": {"$range": [0, 500]}, "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}}"#;
    let text = format!("[{}]", vec![range; 2000].join(","));
    let value = json(&text);
    // Parsing ends soon: what the budget does not cover is left for the evaluation, which has its own.
    let parsed = Expression::parse(value.view(), &ParseContext::new("expression")).unwrap();
    let error = parsed.value(json("{}").view(), Budget { steps: 1 << 20, ..BUDGET }).unwrap_err();
    assert_eq!(error.code(), 146);
    let wide = r#"{"$range": [0, 15000]}"#;
    let text = format!(r#"{{"$size": [[{}]]}}"#, vec![wide; 20_000].join(","));
    assert_eq!(outcome(&text, "{}"), "error 146");
}

#[test]
fn many_patterns_share_their_room() {
    let pattern = r#"{"$regexMatch": {"input": "$a", "regex": "\\w{1,200}"}}"#;
    let text = format!(r#"{{"$or": [{}]}}"#, vec![pattern; 5000].join(","));
    assert!(outcome(&text, "{}").starts_with("error "));
    let many = vec![r#"{"$expr": {"$regexMatch": {"input": "$a", "regex": "\\w{1,200}"}}}"#; 5000].join(",");
    let filter = json(&format!(r#"{{"$or": [{many}]}}"#));
    let _ = quarrydb_query::Filter::parse(filter.view(), &ParseContext::new("filter")).unwrap_err();
    let one = r#"{"$regexMatch": {"input": "$a", "regex": "\\w{1,200}"}}"#;
    assert_eq!(outcome(one, r#"{"a": "x"}"#), "true", "after a refusal the next query has its room");
    let dynamic = r#"{"$size": {"$map": {"input": {"$range": [0, 100000]}, "in": {"$regexMatch": {"input": "x", "regex": {"$concat": ["x", {"$toString": "$$this"}]}}}}}}"#;
    assert_eq!(outcome(dynamic, "{}"), "error 146");
}

#[test]
fn matches_that_each_look_at_the_rest_of_the_text_cost_what_they_took() {
    // `.*b` looks for a b in all that follows, and finds none: 300,000 times 300,000 bytes.
    let text = format!(r#"{{"s": "{}"}}"#, "a".repeat(300_000));
    let quadratic = r#"{"$size": {"$regexFindAll": {"input": "$s", "regex": ".*b|a"}}}"#;
    assert_eq!(outcome(quadratic, &text), "error 146");
}

#[test]
fn looking_again_and_again_at_a_long_text_or_array_costs_its_length() {
    let text = format!(r#"{{"s": "{}"}}"#, "a".repeat(1_000_000));
    for again in [
        r#"{"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": 0, "in": {"$strLenCP": {"$substrCP": ["$s", 999999, 1]}}}}"#,
        r#"{"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": 0, "in": {"$indexOfBytes": ["$s", "b"]}}}"#,
        r#"{"$size": {"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}}"#,
    ] {
        assert_eq!(outcome(again, &text), "error 146", "{again}");
    }
}

#[test]
fn an_evaluation_stops_when_it_is_told_to() {
    let text = r#"{"$size": {"$map": {"input": {"$range": [0, 100000]}, "in": {"$add": ["$$this", "$a"]}}}}"#;
    let value = json(text);
    let parsed = Expression::parse(value.view(), &ParseContext::new("expression")).unwrap();
    let no = || false;
    let error = parsed.value(json(r#"{"a": 1}"#).view(), Budget { go_on: Some(&no), ..Budget::default() }).unwrap_err();
    assert_eq!(error.code(), 50);
}

#[test]
fn variables_of_the_body_are_constants() {
    let variables = json(r#"{"x": 5, "y": {"$add": [1, 2]}, "o": {"p": [1, {"q": 2}]}}"#);
    let context = ParseContext::new("expression").with_variables(Some(variables.view()));
    let ask = |text: &str| {
        let value = json(text);
        let parsed = Expression::parse(value.view(), &context).map_err(|e| e.code())?;
        parsed.value(json(r#"{"a": 1}"#).view(), BUDGET).map_err(|e| e.code())
    };
    assert_eq!(ask(r#"{"$add": ["$$x", "$$y", "$a"]}"#).unwrap().unwrap().view().as_i64(), Some(9));
    assert_eq!(ask(r#"{"$first": "$$o.p.q"}"#).unwrap().unwrap().view().as_i64(), Some(2));
    assert_eq!(ask(r#"{"$let": {"vars": {"x": 1}, "in": "$$x"}}"#).unwrap().unwrap().view().as_i64(), Some(1));
    assert_eq!(ask(r#""$$none""#).unwrap_err(), 17276);
    // The next body's variables are its own.
    let other = json(r#"{"x": 6, "y": {"$add": [1, 2]}, "o": {"p": [1, {"q": 2}]}}"#);
    let next = ParseContext::new("expression").with_variables(Some(other.view()));
    let parsed = Expression::parse(json(r#""$$x""#).view(), &next).unwrap();
    assert_eq!(parsed.constant().and_then(|v| v.as_i64()), Some(6));
    let long = json(&format!(r#"{{"x": "{}"}}"#, "y".repeat(70_000)));
    let too_long = ParseContext::new("expression").with_variables(Some(long.view()));
    assert_eq!(Expression::parse(json("1").view(), &too_long).unwrap_err().code(), 9);
    let wrong = json(r#"{"X": 5}"#);
    let context = ParseContext::new("expression").with_variables(Some(wrong.view()));
    assert_eq!(Expression::parse(json("1").view(), &context).unwrap_err().code(), 9);
}

#[test]
fn elements_are_looked_up_by_position_one_after_another() {
    let stored = format!(r#"{{"v": [{}]}}"#, vec!["1"; 100_000].join(","));
    // By stepping from the front each time these would take 5 * 10^9 steps.
    for (expression, expected) in [
        (
            r#"{"$sum": {"$map": {"input": {"$range": [0, 100000]}, "in": {"$arrayElemAt": ["$v", "$$this"]}}}}"#,
            "100000",
        ),
        (
            r#"{"$sum": {"$map": {"input": {"$range": [0, 100000]}, "in": {"$arrayElemAt": ["$v", {"$subtract": [-1, "$$this"]}]}}}}"#,
            "100000",
        ),
        (
            r#"{"$sum": {"$map": {"input": {"$range": [70000, 99999]}, "in": {"$size": {"$slice": ["$v", "$$this", 2]}}}}}"#,
            "59998",
        ),
        (r#"{"$sum": {"$map": {"input": {"$range": [0, 100000]}, "in": {"$last": "$v"}}}}"#, "100000"),
    ] {
        assert_eq!(outcome(expression, &stored), format!(r#"{{"$numberInt":"{expected}"}}"#), "{expression}");
    }
}
