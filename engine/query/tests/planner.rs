//! What a filter and a projection tell a planner, and an upsert.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{JsonbBuf, Style, parse, print};
use quarrydb_query::filter::{Node, Test};
use quarrydb_query::{Filter, ParseContext, Projection};

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap()
}

fn filter(text: &str) -> Filter {
    Filter::parse(json(text).view(), &ParseContext::new("filter")).unwrap()
}

fn text(value: quarrydb_jsonb::JsonbRef<'_>) -> String {
    let mut out = Vec::new();
    print(value, Style::Relaxed, &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn the_one_id_asked_for_is_known() {
    for (filter_text, expected) in [
        (r#"{"_id": 5}"#, Some("5")),
        (r#"{"_id": {"$eq": "x"}, "a": {"$gt": 1}}"#, Some(r#""x""#)),
        (r#"{"a": 1, "$and": [{"b": 1}, {"$and": [{"_id": 7}]}]}"#, Some("7")),
        (r#"{"$or": [{"_id": 7}]}"#, Some("7")),
        (r#"{"_id": {"a": 1}}"#, Some(r#"{"a":1}"#)),
        (r#"{"$or": [{"_id": 7}, {"_id": 8}]}"#, None),
        (r#"{"$nor": [{"_id": 7}]}"#, None),
        (r#"{"_id": {"$ne": 7}}"#, None),
        (r#"{"_id": {"$gte": 7, "$lte": 7}}"#, None),
        (r#"{"_id": {"$in": [7, 8]}}"#, None),
        (r#"{"_id": {"$not": {"$eq": 7}}}"#, None),
        (r#"{"_id.a": 7}"#, None),
        (r#"{"a._id": 7}"#, None),
        (r#"{"a": {"$elemMatch": {"_id": 7}}}"#, None),
        (r#"{"_id": {"$regularExpression": {"pattern": "x", "options": ""}}}"#, None),
        ("{}", None),
    ] {
        let f = filter(filter_text);
        assert_eq!(f.id_point().map(|v| text(v).replace(' ', "")).as_deref(), expected, "{filter_text}");
    }
}

#[test]
fn equalities_that_every_match_meets_are_known() {
    for (filter_text, expected) in [
        (r#"{"a": 1, "b": {"$gt": 2}}"#, "a=1"),
        (
            r#"{"f.x": 1, "f.y": {"$eq": 2}, "f.z": {"$ne": 3}, "$and": [{"w": 4}], "_id": "u"}"#,
            r#"f.x=1 f.y=2 w=4 _id="u""#,
        ),
        (r#"{"$or": [{"a": 1}]}"#, "a=1"),
        (r#"{"$or": [{"a": 1}, {"b": 1}]}"#, ""),
        (r#"{"$nor": [{"a": 1}]}"#, ""),
        (r#"{"a": {"$all": [1]}}"#, "a=1"),
        (r#"{"a": {"$in": [1]}}"#, "a=1"),
        (r#"{"a": {"$in": [1, 2]}}"#, ""),
        (r#"{"a": {"$nin": [1]}}"#, ""),
        (r#"{"a": {"$regularExpression": {"pattern": "x", "options": ""}}}"#, ""),
        (r#"{"a": {"$elemMatch": {"b": 1}}}"#, ""),
        (r#"{"a": null}"#, "a=null"),
        (r#"{"a": 1, "$and": [{"a": 1}]}"#, "error 54"),
        (r#"{"a": {"$all": [1, 2]}}"#, "error 54"),
        (r#"{"a.b": 1, "a-b": 2, "a": {}}"#, "error 54"),
        (r#"{"a.b": 1, "a.c": 2, "ab": 3}"#, "a.b=1 a.c=2 ab=3"),
    ] {
        let f = filter(filter_text);
        let found = match f.equality_fields() {
            Ok(fields) => {
                let fields: Vec<String> = fields.iter().map(|(p, v)| format!("{}={}", p.as_str(), text(*v))).collect();
                fields.join(" ")
            }
            Err(e) => format!("error {}", e.code()),
        };
        assert_eq!(found, expected, "{filter_text}");
    }
}

#[test]
fn what_every_document_matches_is_known() {
    for everything in ["{}", r#"{"$comment": "x"}"#, r#"{"$and": [{}]}"#, r#"{"a": {"$comment": "x"}}"#] {
        assert!(filter(everything).is_everything(), "{everything}");
    }
    for some in [r#"{"a": 1}"#, r#"{"$nor": [{}]}"#, r#"{"a": {"$exists": true}}"#] {
        assert!(!filter(some).is_everything(), "{some}");
    }
    assert!(Filter::everything().is_everything());
}

#[test]
fn many_equal_branches_are_one_set() {
    let branches: Vec<String> = (0..20).map(|i| format!(r#"{{"a": {i}}}"#)).collect();
    let f = filter(&format!(r#"{{"$or": [{}]}}"#, branches.join(",")));
    assert!(
        matches!(f.ast(), Node::Field(field) if matches!(&field.test, Test::In(set) if set.values().count() == 20))
    );
    let other = filter(&format!(r#"{{"$or": [{}, {{"b": 1}}]}}"#, branches.join(",")));
    assert!(matches!(other.ast(), Node::Any(nodes) if nodes.len() == 21));
}

#[test]
fn the_paths_of_an_inclusion_are_known() {
    for (projection, expected) in [
        (r#"{"a": 1, "b.c": 1}"#, Some(vec!["a", "b.c", "_id"])),
        (r#"{"_id": 0, "a": {"b": 1, "c": 1}}"#, Some(vec!["a.b", "a.c"])),
        (r#"{"a": 0}"#, None),
        (r#"{"a": 1, "b": {"$slice": 1}}"#, None),
        (r#"{"a": 1, "b": "$c"}"#, None),
        (r#"{"a.$": 1}"#, None),
    ] {
        let parsed = Projection::parse(json(projection).view(), &ParseContext::new("projection")).unwrap();
        let expected = expected.map(|paths| paths.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(parsed.included_paths(), expected, "{projection}");
    }
}

#[test]
fn the_element_that_matched_is_known() {
    let document = json(
        r#"{"_id": 1, "a": [1, 5, 9], "th": [{"n": "a", "q": 1}, {"n": "b", "q": 1}, {"n": "b", "q": 5}],
            "deep": [{"b": [2, 3]}, {"b": [4, 5]}], "x": 7, "o": {"v": [3, 4]}}"#,
    );
    for (filter_text, expected) in [
        (r#"{"a": 5}"#, Some(Some(1))),
        (r#"{"a": {"$gt": 4}}"#, Some(Some(1))),
        (r#"{"a": {"$in": [9, 5]}}"#, Some(Some(1))),
        (r#"{"th.n": "b"}"#, Some(Some(1))),
        (r#"{"_id": 1, "th.n": "b"}"#, Some(Some(1))),
        (r#"{"$and": [{"_id": 1}, {"th": {"$elemMatch": {"n": "b", "q": 5}}}]}"#, Some(Some(2))),
        (r#"{"th": {"$elemMatch": {"n": "b"}}, "_id": 1}"#, Some(Some(1))),
        (r#"{"a": {"$elemMatch": {"$gt": 5}}}"#, Some(Some(2))),
        // The outermost array that was searched, not one that a position named.
        (r#"{"deep.b": 5}"#, Some(Some(1))),
        (r#"{"deep.1.b": 5}"#, Some(Some(1))),
        (r#"{"deep.0.b": 3}"#, Some(Some(1))),
        (r#"{"o.v": 4}"#, Some(Some(1))),
        // Of an $or the branch that holds; of several conditions the last on an array.
        (r#"{"$or": [{"a": 77}, {"a": 9}]}"#, Some(Some(2))),
        (r#"{"a": 9, "th.n": "a"}"#, Some(Some(0))),
        // Conditions on no element, negations, and what does not match at all.
        (r#"{"x": 7}"#, Some(None)),
        (r#"{"a": [1, 5, 9]}"#, Some(None)),
        (r#"{"a": {"$size": 3}}"#, Some(None)),
        (r#"{"a": {"$ne": 4}}"#, Some(None)),
        (r#"{"$nor": [{"a": 4}]}"#, Some(None)),
        (r#"{"a": 5, "x": 8}"#, None),
        (r#"{"a": 4}"#, None),
    ] {
        assert_eq!(filter(filter_text).matches_at(document.view()).unwrap(), expected, "{filter_text}");
    }
}
