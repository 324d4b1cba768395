//! The entries of documents, as MongoDB's manual has them ("Multikey Indexes", "Sparse Indexes"), told by their values.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;

fn definition(text: &str) -> IndexDefinition {
    IndexDefinition::from_object(quarrydb_jsonb::parse(text.as_bytes()).unwrap().view()).unwrap()
}

/// The entries as `a/b`, in the order of their keys; `-` is missing.
fn entries(index: &str, document: &str) -> Result<Vec<String>> {
    let index = definition(&format!("{{\"keys\": {index}}}"));
    let document = quarrydb_jsonb::parse(document.as_bytes()).unwrap();
    let (mut told, mut keys, mut plain) = (Vec::new(), Vec::new(), Vec::new());
    KeyMaker::default().each_with_values(&index, document.view(), &mut |key, values| {
        keys.push(key.to_vec());
        let told_value = |v: &Option<JsonbRef<'_>>| v.map_or("-".to_owned(), crate::indexes::definition::print);
        told.push(values.iter().map(told_value).collect::<Vec<_>>().join("/"));
    })?;
    KeyMaker::default().each(&index, document.view(), |key| plain.push(key.to_vec())).unwrap();
    assert_eq!(plain, keys, "both ways give the same");
    assert!(keys.is_sorted());
    Ok(told)
}

#[test]
fn entries_follow_arrays_and_what_is_missing() {
    for (index, document, expected) in [
        (r#"{"a": 1}"#, r#"{"a": 5}"#, "5"),
        (r#"{"a": 1}"#, r#"{}"#, "-"),
        (r#"{"a": 1}"#, r#"{"a": null}"#, "null"),
        (r#"{"a": 1}"#, r#"{"a": [3, 1, 2, 1.0]}"#, "1 2 3"),
        (r#"{"a": -1}"#, r#"{"a": [3, 1, 2]}"#, "3 2 1"),
        (r#"{"a": 1}"#, r#"{"a": []}"#, "[]"),
        (r#"{"a": 1}"#, r#"{"a": [[1, 2], 3]}"#, "3 [1,2]"),
        (r#"{"a": 1}"#, r#"{"a": [[], []]}"#, "[]"),
        (r#"{"a.b": 1}"#, r#"{"a": {"b": 1}}"#, "1"),
        (r#"{"a.b": 1}"#, r#"{"a": [{"b": 1}, {"b": [2, 3]}, {"c": 1}, 4]}"#, "- 1 2 3"),
        (r#"{"a.b": 1}"#, r#"{"a": []}"#, "-"),
        (r#"{"a.b": 1}"#, r#"{"a": 5}"#, "-"),
        (r#"{"a.0": 1}"#, r#"{"a": [7, 8]}"#, "7"),
        (r#"{"a.0": 1}"#, r#"{"a": [[7, 8]]}"#, "[7,8]"),
        (r#"{"a": 1, "b": -1}"#, r#"{"a": [1, 2], "b": 5}"#, "1/5 2/5"),
        (r#"{"a.b": 1, "a.c": 1}"#, r#"{"a": [{"b": 1, "c": 9}, {"b": 7, "c": 2}]}"#, "1/9 7/2"),
        (r#"{"a": 1, "a.b": 1}"#, r#"{"a": [{"b": 1}, 2]}"#, "2/- {\"b\":1}/1"),
        (r#"{"a": 1, "b": 1}"#, r#"{"b": 2}"#, "-/2"),
    ] {
        let found = entries(index, document).unwrap().join(" ").replace(": ", ":");
        assert_eq!(found, expected, "{index} {document}");
    }
    for (index, document) in [
        (r#"{"a": 1, "b": 1}"#, r#"{"a": [1], "b": [2]}"#),
        (r#"{"a": 1, "b": 1}"#, r#"{"a": [], "b": []}"#),
        (r#"{"a.b": 1, "a.c": 1}"#, r#"{"a": {"b": [1], "c": [2]}}"#),
        (r#"{"a.b": 1, "a.c": 1}"#, r#"{"a": [{"b": [1], "c": [2]}]}"#),
    ] {
        assert_eq!(entries(index, document).unwrap_err().code(), Some(171), "{index} {document}");
    }
}

#[test]
fn sparse_and_partial_indexes_leave_documents_out() {
    let count = |index: &str, document: &str| {
        let document = quarrydb_jsonb::parse(document.as_bytes()).unwrap();
        let mut count = 0;
        KeyMaker::default().each(&definition(index), document.view(), |_| count += 1).unwrap();
        count
    };
    let sparse = r#"{"keys": {"a": 1, "b": 1}, "sparse": true}"#;
    for (document, expected) in [(r#"{}"#, 0), (r#"{"a": null}"#, 1), (r#"{"b": 1}"#, 1), (r#"{"a": []}"#, 1)] {
        assert_eq!(count(sparse, document), expected, "{document}");
    }
    let partial = r#"{"keys": {"a": 1}, "partialFilterExpression": {"n": {"$gt": 5}}}"#;
    for (document, expected) in [(r#"{"a": 1}"#, 0), (r#"{"n": 5, "a": 1}"#, 0), (r#"{"n": 6}"#, 1)] {
        assert_eq!(count(partial, document), expected, "{document}");
    }
}

#[test]
fn facts_are_gathered() {
    let facts = |index: &str, document: &str| {
        let mut maker = KeyMaker::default();
        let document = quarrydb_jsonb::parse(document.as_bytes()).unwrap();
        let index = definition(&format!("{{\"keys\": {index}}}"));
        maker.each(&index, document.view(), |key| assert!(key.len() <= 2 * (PART_BYTES_MAX + 16))).unwrap();
        maker.facts
    };
    assert_eq!(facts(r#"{"a": 1, "b": 1}"#, r#"{"a": 1, "b": [1]}"#).arrays, 0b10);
    assert_eq!(facts(r#"{"a": 1, "b.c": 1}"#, r#"{"b": [{"c": 5}]}"#).arrays, 0b10);
    assert!(facts(r#"{"a.0": 1}"#, r#"{"a": [5]}"#).positional);
    assert!(!facts(r#"{"a.0": 1}"#, r#"{"a": {"0": 5}}"#).positional);
    assert!(facts(r#"{"a": 1}"#, &format!("{{\"a\": \"{}\"}}", "x".repeat(600))).cut);
    assert!(!facts(r#"{"a": 1}"#, &format!("{{\"a\": \"{}\"}}", "x".repeat(400))).cut);
}
