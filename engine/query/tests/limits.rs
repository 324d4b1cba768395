//! Queries that would exhaust a server that does not look out: deep, wide, long, and made to take exponential time.
//!
//! Each ends on a small stack. None is timed: one that took exponential time would not end at all.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "a thread with a small stack is the subject")]

use quarrydb_jsonb::{Builder, JsonbBuf, parse};
use quarrydb_query::{Distinct, Filter, ParseContext, PatternCount, Projection, QueryError, Sort};

/// The stack of the threads that run these: half of what a worker has, and without optimising, frames are several times larger.
const STACK_BYTES: usize = 1 << 20;

fn on_a_small_stack(test: fn()) {
    std::thread::Builder::new().stack_size(STACK_BYTES).spawn(test).unwrap().join().unwrap();
}

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}"))
}

fn filter(text: &str) -> Result<Filter, QueryError> {
    Filter::parse(json(text).view(), &ParseContext::new("filter"))
}

fn matches(f: &Filter, document: &JsonbBuf) -> bool {
    f.matches(document.view()).unwrap()
}

/// `open` so many times, then `inner`, then `close` as often.
fn nested(open: &str, inner: &str, close: &str, times: usize) -> String {
    format!("{}{inner}{}", open.repeat(times), close.repeat(times))
}

#[test]
fn filters_nest_as_deep_as_a_body_may() {
    on_a_small_stack(|| {
        // Each level of `$and` is two levels of JSON.
        let deep = filter(&nested(r#"{"$and": ["#, r#"{"a": 1}"#, "]}", 99)).unwrap();
        assert!(matches(&deep, &json(r#"{"a": 1}"#)) && !matches(&deep, &json(r#"{"a": 2}"#)));
        let deep = filter(&nested(r#"{"$nor": ["#, r#"{"a": 1}"#, "]}", 99)).unwrap();
        assert!(!matches(&deep, &json(r#"{"a": 1}"#)) && matches(&deep, &json(r#"{"a": 2}"#)));
        let not = nested(r#"{"$not": "#, r#"{"$gt": 1}"#, "}", 190);
        let deep = filter(&format!(r#"{{"a": {not}}}"#)).unwrap();
        assert!(matches(&deep, &json(r#"{"a": 2}"#)) && !matches(&deep, &json(r#"{"a": 1}"#)));
        let elem = nested(r#"{"$elemMatch": "#, r#"{"$gt": 1}"#, "}", 90);
        let deep = filter(&format!(r#"{{"a": {elem}}}"#)).unwrap();
        assert!(matches(&deep, &json(&format!(r#"{{"a": {}}}"#, nested("[", "2", "]", 90)))));
        assert!(!matches(&deep, &json(&format!(r#"{{"a": {}}}"#, nested("[", "1", "]", 90)))));
        let schema = nested(r#"{"properties": {"a": "#, r#"{"type": "number"}"#, "}}", 98);
        let deep = filter(&format!(r#"{{"$jsonSchema": {schema}}}"#)).unwrap();
        assert!(matches(&deep, &json(&nested(r#"{"a": "#, "1", "}", 98))));
        assert!(!matches(&deep, &json(&nested(r#"{"a": "#, r#""x""#, "}", 98))));
    });
}

#[test]
fn deeper_than_a_body_may_be_is_refused_whoever_made_it() {
    on_a_small_stack(|| {
        let mut out = Builder::new();
        for _ in 0..300 {
            out.begin_object();
            out.field("$and");
            out.begin_array();
        }
        out.begin_object();
        out.end_object().unwrap();
        for _ in 0..300 {
            out.end_array().unwrap();
            out.end_object().unwrap();
        }
        let bytes = out.take();
        let error = Filter::parse(JsonbBuf::from_valid(bytes).view(), &ParseContext::new("filter")).unwrap_err();
        assert_eq!(error.code(), 2);
    });
}

#[test]
fn a_path_of_positions_takes_no_exponential_time() {
    on_a_small_stack(|| {
        // Each level is an array of one object with the field 0, where `0` is a position and a name.
        let document = json(&format!(r#"{{"a": {}}}"#, nested(r#"[{"0": "#, "7", "}]", 90)));
        let zeros = |n: usize| format!("a{}", ".0".repeat(n));
        for parts in [10, 60, 90, 135, 180] {
            assert!(!matches(&filter(&format!(r#"{{"{}": 8}}"#, zeros(parts))).unwrap(), &document));
            let sort = Sort::parse(json(&format!(r#"{{"{}": 1}}"#, zeros(parts))).view(), &ParseContext::new("sort"));
            sort.unwrap().key(document.view(), &mut Vec::new()).unwrap();
            let key = json(&format!(r#""{}""#, zeros(parts)));
            Distinct::parse(key.view(), &ParseContext::new("key")).unwrap().add(document.view());
            let projection = json(&format!(r#"{{"{}": 1}}"#, zeros(parts)));
            let projection = Projection::parse(projection.view(), &ParseContext::new("projection")).unwrap();
            projection.apply(document.view(), &mut Builder::new()).unwrap();
        }
        // Every level may be taken as a position alone, as a name alone, or as both.
        for parts in [90, 135, 180] {
            assert!(matches(&filter(&format!(r#"{{"{}": 7}}"#, zeros(parts))).unwrap(), &document), "{parts}");
        }
        let long = format!("a{}", ".b".repeat(300));
        assert_eq!(filter(&format!(r#"{{"{long}": 1}}"#)).unwrap_err().code(), 2);
    });
}

#[test]
fn a_hundred_thousand_branches_are_parsed_and_tried() {
    on_a_small_stack(|| {
        let equal: Vec<String> = (0..100_000).map(|i| format!(r#"{{"a": {i}}}"#)).collect();
        let f = filter(&format!(r#"{{"$or": [{}]}}"#, equal.join(","))).unwrap();
        assert!(matches(&f, &json(r#"{"a": 99999}"#)) && !matches(&f, &json(r#"{"a": -1}"#)));
        let mixed: Vec<String> = (0..100_000).map(|i| format!(r#"{{"a": {i}, "b": {{"$gt": {i}}}}}"#)).collect();
        let f = filter(&format!(r#"{{"$or": [{}]}}"#, mixed.join(","))).unwrap();
        assert!(matches(&f, &json(r#"{"a": 99999, "b": 100000}"#)) && !matches(&f, &json(r#"{"a": 99999, "b": 9}"#)));
    });
}

#[test]
fn a_hundred_thousand_branches_on_different_fields_cost_a_document_its_own_fields() {
    on_a_small_stack(|| {
        let branches: Vec<String> = (0..100_000)
            .map(|i| match i % 4 {
                0 => format!(r#"{{"f{i}": {i}}}"#),
                1 => format!(r#"{{"f{i}": {{"$gt": {i}}}}}"#),
                2 => format!(r#"{{"f0": "x{i}", "f{i}": {{"$regex": "x"}}}}"#).replace("$regex", "$ne"),
                _ => format!(r#"{{"f{i}.a": {{"$in": [1, 2]}}}}"#),
            })
            .collect();
        let f = filter(&format!(r#"{{"$or": [{}]}}"#, branches.join(","))).unwrap();
        let fields: Vec<String> = (0..40).map(|i| format!(r#""f{i}": -1"#)).collect();
        let none = json(&format!("{{{}}}", fields.join(",")));
        // So many documents times so many branches would be 2 * 10^8.
        for _ in 0..2000 {
            assert!(!matches(&f, &none));
        }
        for found in [
            r#"{"f99996": 99996}"#,
            r#"{"f99997": 99999}"#,
            r#"{"f99996": [7, 99996]}"#,
            r#"{"f0": "x99998"}"#,
            r#"{"f99999": [{"a": 3}, {"a": 2}]}"#,
        ] {
            assert!(matches(&f, &json(found)), "{found}");
        }
    });
}

#[test]
fn a_million_values_of_in_are_found_by_hash() {
    on_a_small_stack(|| {
        let values: Vec<String> =
            (0..1_000_000).map(|i| if i % 2 == 0 { i.to_string() } else { format!(r#""v{i}""#) }).collect();
        let f = filter(&format!(r#"{{"a": {{"$in": [{}]}}}}"#, values.join(","))).unwrap();
        for i in (0..1_000_000).step_by(997) {
            assert!(matches(&f, &json(&format!(r#"{{"a": {}}}"#, values[i]))));
            assert!(!matches(&f, &json(&format!(r#"{{"a": {}.5}}"#, i))));
        }
        // Many values against many: linear in either, not in their product.
        let document = json(&format!(r#"{{"a": [{}]}}"#, vec!["-1"; 200_000].join(",")));
        assert!(!matches(&f, &document));
    });
}

#[test]
fn many_and_large_regular_expressions_are_bounded() {
    on_a_small_stack(|| {
        let pattern = |text: String| format!(r#"{{"$regularExpression": {{"pattern": "{text}", "options": ""}}}}"#);
        let thousand: Vec<String> = (0..1000).map(|i| pattern(format!("^(x+)+y{i}$"))).collect();
        let f = filter(&format!(r#"{{"s": {{"$in": [{}]}}}}"#, thousand.join(","))).unwrap();
        let long = "x".repeat(100_000);
        assert!(matches(&f, &json(r#"{"s": "xxxxy999"}"#)));
        assert!(!matches(&f, &json(&format!(r#"{{"s": "{}"}}"#, &long[..2000]))));
        let too_many: Vec<String> = (0..5000).map(|i| pattern(i.to_string())).collect();
        assert_eq!(filter(&format!(r#"{{"s": {{"$in": [{}]}}}}"#, too_many.join(","))).unwrap_err().code(), 2);
        assert_eq!(filter(&format!(r#"{{"s": {{"$regex": "{long}"}}}}"#)).unwrap_err().code(), 2);
        // Later ones have less room, and the words say so.
        let wide: Vec<String> = (0..1000).map(|i| pattern(format!("\\\\p{{L}}{i}"))).collect();
        let error = filter(&format!(r#"{{"s": {{"$in": [{}]}}}}"#, wide.join(","))).unwrap_err();
        assert!(error.code() == 51091 && error.place().starts_with("filter.s.$in["), "{error:?}");
        assert!(error.message().contains("of one query"), "{error:?}");
        for pattern in ["a{1000}{1000}", "(a{1,500}){1,500}", &"(".repeat(20_000)] {
            assert_eq!(
                filter(&format!(r#"{{"s": {{"$regex": "{pattern}"}}}}"#)).unwrap_err().code(),
                51091,
                "{pattern}"
            );
        }
    });
}

#[test]
fn compiling_a_regular_expression_is_bounded_before_its_size_is_known() {
    on_a_small_stack(|| {
        // Each of these took seconds: classes are taken apart before anything is measured.
        for pattern in [
            r"[b-\\x{10ffff}]".repeat(2_000),
            "[b-\u{10ffff}]|".repeat(3_000),
            r"[\\1-\\o{4177777}]".repeat(1_500),
            r"\\pL|".repeat(7_000),
            r"[\\PN]".repeat(6_000),
        ] {
            let asked = filter(&format!(r#"{{"s": {{"$regex": "{pattern}", "$options": "i"}}}}"#));
            let error = asked.unwrap_err();
            assert_eq!((error.code(), error.place()), (51091, "filter.s.$regex"), "{error:?}");
            assert!(error.message().contains("Unicode"), "{error:?}");
        }
        // What people write is far from it.
        for pattern in [
            r"^[\\p{L}\\p{N}._-]+@[\\p{L}\\p{N}.-]+$",
            "[a-z\u{a1}-\u{ffff}0-9]+(?:-[a-z\u{a1}-\u{ffff}0-9]+)*",
            r"[^\\x00-\\x7f]{1,20}[\\x{80}-\\x{10ffff}]?",
        ] {
            filter(&format!(r#"{{"s": {{"$regex": "{pattern}", "$options": "i"}}}}"#)).unwrap();
        }
        // All of a filter together too.
        let many: Vec<String> = (0..200)
            .map(|i| {
                format!(r#"{{"$regularExpression": {{"pattern": "[{}]{i}", "options": "i"}}}}"#, r"\\pL".repeat(300))
            })
            .collect();
        let error = filter(&format!(r#"{{"s": {{"$in": [{}]}}}}"#, many.join(","))).unwrap_err();
        assert!(error.code() == 51091 && error.message().contains("all of one query"), "{error:?}");
    });
}

#[test]
fn compiling_many_regular_expressions_can_be_stopped() {
    let many: Vec<String> = (0..1000)
        .map(|i| format!(r#"{{"$regularExpression": {{"pattern": "[a-z]{{20}}{i}", "options": ""}}}}"#))
        .collect();
    let bodies = [
        format!(r#"{{"s": {{"$in": [{}]}}}}"#, many.join(",")),
        format!(
            r#"{{"$expr": {{"$or": [{}]}}}}"#,
            many.iter()
                .map(|p| format!(r#"{{"$regexMatch": {{"input": "$s", "regex": {p}}}}}"#))
                .collect::<Vec<_>>()
                .join(",")
        ),
    ];
    for body in bodies {
        let asked = std::rc::Rc::new(std::cell::Cell::new(0));
        let counting = std::rc::Rc::clone(&asked);
        let patterns = PatternCount::open_until(move || {
            counting.set(counting.get() + 1);
            counting.get() < 100
        });
        let error = filter(&body).unwrap_err();
        assert_eq!((error.code(), asked.get()), (50, 100), "{error:?}");
        drop(patterns);
        filter(&body).unwrap();
    }
}

#[test]
fn wide_documents_and_projections_stay_linear() {
    on_a_small_stack(|| {
        let fields: Vec<String> = (0..20_000).map(|i| format!(r#""f{i}": {i}"#)).collect();
        let document = json(&format!("{{{}}}", fields.join(",")));
        let names: Vec<String> = (0..20_000).step_by(2).map(|i| format!(r#""f{i}": 1"#)).collect();
        let projection = json(&format!("{{{}}}", names.join(",")));
        let projection = Projection::parse(projection.view(), &ParseContext::new("projection")).unwrap();
        let mut out = Builder::new();
        projection.apply(document.view(), &mut out).unwrap();
        let kept = JsonbBuf::from_valid(out.take());
        assert_eq!(kept.view().as_object().unwrap().len(), 10_000);
        let wide: Vec<String> = (0..33).map(|i| format!(r#""f{i}": 1"#)).collect();
        let sort = json(&format!("{{{}}}", wide.join(",")));
        assert_eq!(Sort::parse(sort.view(), &ParseContext::new("sort")).unwrap_err().code(), 2);
    });
}
