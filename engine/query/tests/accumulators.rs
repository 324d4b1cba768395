//! Accumulators on values of all types: what is missing, null, or no number. Expected values are those of MongoDB's manual.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_query::pipeline::accumulate::AccumulatorKind;

#[path = "support/spilling_host.rs"]
mod spilling_host;

use spilling_host::{SpillingHost, json, run, text};

/// The result of an accumulator over documents, in canonical Extended JSON; `error <code>` where it fails.
fn outcome(accumulator: &str, documents: &[String]) -> String {
    let documents: Vec<_> = documents.iter().map(|d| json(d)).collect();
    let pipeline = format!("[{{\"$group\": {{\"_id\": null, \"r\": {accumulator}}}}}]");
    match run(&pipeline, &documents, &SpillingHost::default()) {
        Ok(found) => text(found.first().unwrap().view().get("r").unwrap()),
        Err(e) => format!("error {}", e.code()),
    }
}

/// Each row: an accumulator, the values of `v` (an array; `missing` stands for none), what comes out.
fn check(rows: &[(&str, &str, &str)]) {
    let mut wrong = Vec::new();
    for (accumulator, values, expected) in rows {
        let values = json(values);
        let document = |v: quarrydb_jsonb::JsonbRef<'_>| match v.as_str() {
            Some("missing") => "{}".to_owned(),
            _ => format!("{{\"v\": {}}}", text(v)),
        };
        let documents: Vec<String> = values.view().as_array().unwrap().iter().map(document).collect();
        let found = outcome(accumulator, &documents);
        let expected = if expected.starts_with("error") { (*expected).to_owned() } else { text(json(expected).view()) };
        if found != expected {
            wrong.push(format!("{accumulator} of {}\n   gave {found}\n   want {expected}", text(values.view())));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// One value of each family.
const FAMILIES: &str = r#"["missing", null, "b", true, 2, {"$numberLong": "3"}, 1.5, {"a": 1}, [1, 2],
    {"$date": "1970-01-01T00:00:01Z"}]"#;
const NONE: &str = r#"["missing", null]"#;
const TEXT: &str = r#"["a", true, [1]]"#;

#[test]
fn each_accumulator_on_each_family() {
    check(&[
        (r#"{"$sum": "$v"}"#, FAMILIES, "6.5"),
        (r#"{"$avg": "$v"}"#, FAMILIES, "2.1666666666666665"),
        (r#"{"$min": "$v"}"#, FAMILIES, "1.5"),
        (r#"{"$max": "$v"}"#, FAMILIES, r#"{"$date": "1970-01-01T00:00:01Z"}"#),
        (r#"{"$count": {}}"#, FAMILIES, "10"),
        (r#"{"$sum": 1}"#, FAMILIES, "10"),
        (r#"{"$first": "$v"}"#, FAMILIES, "null"),
        (r#"{"$last": "$v"}"#, FAMILIES, r#"{"$date": "1970-01-01T00:00:01Z"}"#),
        (
            r#"{"$push": "$v"}"#,
            FAMILIES,
            r#"[null, "b", true, 2, {"$numberLong": "3"}, 1.5, {"a": 1}, [1, 2], {"$date": "1970-01-01T00:00:01Z"}]"#,
        ),
        (
            r#"{"$addToSet": "$v"}"#,
            FAMILIES,
            r#"[null, "b", true, 2, {"$numberLong": "3"}, 1.5, {"a": 1}, [1, 2], {"$date": "1970-01-01T00:00:01Z"}]"#,
        ),
        (r#"{"$mergeObjects": "$v"}"#, FAMILIES, "error 40400"),
        (r#"{"$firstN": {"n": 2, "input": "$v"}}"#, FAMILIES, "[null, null]"),
        (r#"{"$lastN": {"n": 2, "input": "$v"}}"#, FAMILIES, r#"[[1, 2], {"$date": "1970-01-01T00:00:01Z"}]"#),
        (r#"{"$minN": {"n": 2, "input": "$v"}}"#, FAMILIES, "[1.5, 2]"),
        (r#"{"$maxN": {"n": 2, "input": "$v"}}"#, FAMILIES, r#"[{"$date": "1970-01-01T00:00:01Z"}, true]"#),
        (r#"{"$median": {"input": "$v", "method": "approximate"}}"#, FAMILIES, "2.0"),
        (r#"{"$percentile": {"input": "$v", "p": [0, 0.5, 1], "method": "approximate"}}"#, FAMILIES, "[1.5, 2.0, 3.0]"),
        // Objects and arrays order as wholes; missing and null are least.
        (r#"{"$top": {"sortBy": {"v": 1}, "output": "$v"}}"#, FAMILIES, "null"),
        (r#"{"$bottom": {"sortBy": {"v": 1}, "output": "$v"}}"#, FAMILIES, r#"{"$date": "1970-01-01T00:00:01Z"}"#),
    ]);
}

#[test]
fn each_accumulator_of_nothing() {
    check(&[
        (r#"{"$sum": "$v"}"#, NONE, "0"),
        (r#"{"$sum": "$v"}"#, TEXT, "0"),
        (r#"{"$avg": "$v"}"#, NONE, "null"),
        (r#"{"$avg": "$v"}"#, TEXT, "null"),
        (r#"{"$min": "$v"}"#, NONE, "null"),
        (r#"{"$max": "$v"}"#, NONE, "null"),
        (r#"{"$count": {}}"#, NONE, "2"),
        (r#"{"$first": "$v"}"#, NONE, "null"),
        (r#"{"$last": "$v"}"#, NONE, "null"),
        (r#"{"$push": "$v"}"#, NONE, "[null]"),
        (r#"{"$addToSet": "$v"}"#, NONE, "[null]"),
        (r#"{"$push": "$v"}"#, r#"["missing"]"#, "[]"),
        (r#"{"$stdDevPop": "$v"}"#, TEXT, "null"),
        (r#"{"$stdDevSamp": "$v"}"#, NONE, "null"),
        (r#"{"$stdDevSamp": "$v"}"#, "[1]", "null"),
        (r#"{"$stdDevPop": "$v"}"#, "[1]", "0.0"),
        (r#"{"$mergeObjects": "$v"}"#, NONE, "{}"),
        (r#"{"$top": {"sortBy": {"v": 1}, "output": "$w"}}"#, NONE, "null"),
        (r#"{"$topN": {"n": 2, "sortBy": {"v": 1}, "output": "$w"}}"#, NONE, "[null, null]"),
        (r#"{"$firstN": {"n": 3, "input": "$v"}}"#, NONE, "[null, null]"),
        (r#"{"$lastN": {"n": 1, "input": "$v"}}"#, NONE, "[null]"),
        (r#"{"$minN": {"n": 2, "input": "$v"}}"#, NONE, "[]"),
        (r#"{"$maxN": {"n": 2, "input": "$v"}}"#, NONE, "[]"),
        (r#"{"$median": {"input": "$v", "method": "approximate"}}"#, TEXT, "null"),
        (r#"{"$percentile": {"input": "$v", "p": [0.1, 0.9], "method": "approximate"}}"#, NONE, "[null, null]"),
    ]);
}

#[test]
fn sums_and_means_have_the_widest_type() {
    check(&[
        (r#"{"$sum": "$v"}"#, "[1, 2]", "3"),
        (r#"{"$sum": "$v"}"#, "[2147483647, 1]", r#"{"$numberLong": "2147483648"}"#),
        (r#"{"$sum": "$v"}"#, r#"[1, {"$numberLong": "2"}]"#, r#"{"$numberLong": "3"}"#),
        (r#"{"$sum": "$v"}"#, r#"[{"$numberLong": "9223372036854775807"}, 1]"#, "9223372036854775808.0"),
        (r#"{"$sum": "$v"}"#, "[1, 0.5]", "1.5"),
        (r#"{"$sum": "$v"}"#, r#"[1, 0.5, {"$numberDecimal": "0.10"}]"#, r#"{"$numberDecimal": "1.60"}"#),
        (r#"{"$sum": "$v"}"#, "[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]", "1.0"),
        (r#"{"$sum": "$v"}"#, "[1e16, 1, -1e16]", "1.0"),
        (r#"{"$sum": "$v"}"#, r#"[1, {"$numberDouble": "NaN"}]"#, r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$sum": "$v"}"#, r#"[1, {"$numberDouble": "Infinity"}]"#, r#"{"$numberDouble": "Infinity"}"#),
        (
            r#"{"$sum": "$v"}"#,
            r#"[{"$numberDouble": "-Infinity"}, {"$numberDouble": "Infinity"}]"#,
            r#"{"$numberDouble": "NaN"}"#,
        ),
        (r#"{"$sum": "$v"}"#, r#"[{"$numberDouble": "-0.0"}]"#, "0.0"),
        (r#"{"$avg": "$v"}"#, "[1, 2]", "1.5"),
        (r#"{"$avg": "$v"}"#, r#"[{"$numberLong": "4"}, 2]"#, "3.0"),
        (r#"{"$avg": "$v"}"#, r#"[1, {"$numberDecimal": "2"}]"#, r#"{"$numberDecimal": "1.5"}"#),
        (
            r#"{"$avg": "$v"}"#,
            r#"[{"$numberLong": "9223372036854775807"}, {"$numberLong": "9223372036854775807"}]"#,
            "9223372036854775807.0",
        ),
        (r#"{"$sum": {"$multiply": ["$v", 2]}}"#, "[1, 2, 3]", "12"),
        (r#"{"$sum": 0.5}"#, "[1, 2, 3]", "1.5"),
    ]);
}

#[test]
fn extremes_compare_all_types_and_keep_the_first_of_equals() {
    check(&[
        (r#"{"$min": "$v"}"#, r#"[{"$numberDouble": "NaN"}, 1, -5]"#, r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$max": "$v"}"#, r#"[{"$numberDouble": "NaN"}, -5]"#, "-5"),
        (r#"{"$min": "$v"}"#, r#"[1.0, 1, {"$numberLong": "1"}]"#, "1.0"),
        (r#"{"$max": "$v"}"#, r#"[{"$numberLong": "1"}, 1, 1.0]"#, r#"{"$numberLong": "1"}"#),
        (r#"{"$max": "$v"}"#, r#"[[1], [1, 0], [0, 9]]"#, "[1, 0]"),
        (r#"{"$min": "$v"}"#, r#"[{"$minKey": 1}, 1]"#, r#"{"$minKey": 1}"#),
        (r#"{"$addToSet": "$v"}"#, r#"[1, 1.0, "a", 2, "a", [1], [1.0]]"#, r#"[1, "a", 2, [1]]"#),
        (r#"{"$minN": {"n": 2, "input": "$v"}}"#, r#"[3, 1, 2, 1.0, null]"#, "[1, 1.0]"),
        (r#"{"$maxN": {"n": 3, "input": "$v"}}"#, r#"[3, 1, 3.0, 2, "missing"]"#, "[3, 3.0, 2]"),
        (r#"{"$minN": {"n": 5, "input": "$v"}}"#, r#"[3, 1]"#, "[1, 3]"),
    ]);
}

#[test]
fn deviations_are_of_numbers_alone() {
    check(&[
        (r#"{"$stdDevPop": "$v"}"#, r#"[2, 4, 4, 4, "x", 5, 5, 7, 9, null]"#, "2.0"),
        (r#"{"$stdDevSamp": "$v"}"#, "[1, 3]", "1.4142135623730951"),
        (r#"{"$stdDevPop": "$v"}"#, r#"[1, {"$numberDecimal": "3"}]"#, "1.0"),
        (r#"{"$stdDevPop": "$v"}"#, r#"[1, {"$numberDouble": "Infinity"}]"#, r#"{"$numberDouble": "NaN"}"#),
    ]);
}

#[test]
fn objects_merge_and_arrays_are_values() {
    check(&[
        (
            r#"{"$mergeObjects": "$v"}"#,
            r#"[{"a": 1, "b": 1}, null, {"b": null, "c": 3}, "missing", {"a": 4}]"#,
            r#"{"a": 4, "b": null, "c": 3}"#,
        ),
        (r#"{"$push": {"x": "$v"}}"#, r#"[1, "missing"]"#, r#"[{"x": 1}, {}]"#),
        (r#"{"$sum": "$v"}"#, "[[1, 2], 3]", "3"),
    ]);
}

/// The manual's scores of two games.
const SCORES: [&str; 8] = [
    r#"{"playerId": "PlayerA", "gameId": "G1", "score": 31}"#,
    r#"{"playerId": "PlayerB", "gameId": "G1", "score": 33}"#,
    r#"{"playerId": "PlayerC", "gameId": "G1", "score": 99}"#,
    r#"{"playerId": "PlayerD", "gameId": "G1", "score": 1}"#,
    r#"{"playerId": "PlayerA", "gameId": "G2", "score": 10}"#,
    r#"{"playerId": "PlayerB", "gameId": "G2", "score": 14}"#,
    r#"{"playerId": "PlayerC", "gameId": "G2", "score": 66}"#,
    r#"{"playerId": "PlayerD", "gameId": "G2", "score": 80}"#,
];

#[test]
fn the_first_few_in_an_order() {
    for (accumulator, g1, g2) in [
        (
            r#"{"$top": {"output": ["$playerId", "$score"], "sortBy": {"score": -1}}}"#,
            r#"["PlayerC", 99]"#,
            r#"["PlayerD", 80]"#,
        ),
        (
            r#"{"$bottom": {"output": ["$playerId", "$score"], "sortBy": {"score": -1}}}"#,
            r#"["PlayerD", 1]"#,
            r#"["PlayerA", 10]"#,
        ),
        (
            r#"{"$topN": {"output": ["$playerId", "$score"], "sortBy": {"score": -1}, "n": 3}}"#,
            r#"[["PlayerC", 99], ["PlayerB", 33], ["PlayerA", 31]]"#,
            r#"[["PlayerD", 80], ["PlayerC", 66], ["PlayerB", 14]]"#,
        ),
        (
            r#"{"$bottomN": {"output": ["$playerId", "$score"], "sortBy": {"score": -1}, "n": 3}}"#,
            r#"[["PlayerB", 33], ["PlayerA", 31], ["PlayerD", 1]]"#,
            r#"[["PlayerC", 66], ["PlayerB", 14], ["PlayerA", 10]]"#,
        ),
        (
            r#"{"$firstN": {"input": ["$playerId", "$score"], "n": 3}}"#,
            r#"[["PlayerA", 31], ["PlayerB", 33], ["PlayerC", 99]]"#,
            r#"[["PlayerA", 10], ["PlayerB", 14], ["PlayerC", 66]]"#,
        ),
        (
            r#"{"$lastN": {"input": ["$playerId", "$score"], "n": 3}}"#,
            r#"[["PlayerB", 33], ["PlayerC", 99], ["PlayerD", 1]]"#,
            r#"[["PlayerB", 14], ["PlayerC", 66], ["PlayerD", 80]]"#,
        ),
        (
            r#"{"$maxN": {"input": ["$score", "$playerId"], "n": 2}}"#,
            r#"[[99, "PlayerC"], [33, "PlayerB"]]"#,
            r#"[[80, "PlayerD"], [66, "PlayerC"]]"#,
        ),
        (
            r#"{"$minN": {"input": ["$score", "$playerId"], "n": 2}}"#,
            r#"[[1, "PlayerD"], [31, "PlayerA"]]"#,
            r#"[[10, "PlayerA"], [14, "PlayerB"]]"#,
        ),
        // The number may depend on the group.
        (
            r#"{"$minN": {"input": "$score", "n": {"$cond": {"if": {"$eq": ["$gameId", "G2"]}, "then": 1, "else": 3}}}}"#,
            "[1, 31, 33]",
            "[10]",
        ),
    ] {
        let pipeline = format!(r#"[{{"$group": {{"_id": {{"gameId": "$gameId"}}, "r": {accumulator}}}}}]"#);
        let expected = [
            format!(r#"{{"_id": {{"gameId": "G1"}}, "r": {g1}}}"#),
            format!(r#"{{"_id": {{"gameId": "G2"}}, "r": {g2}}}"#),
        ];
        spilling_host::check(&pipeline, &SCORES, &[&expected[0], &expected[1]]);
    }
    // Of equal keys the first that came stays; a number that is none for the group is an error.
    check(&[
        (r#"{"$top": {"sortBy": {"w": 1}, "output": "$v"}}"#, "[3, 1, 2]", "3"),
        (r#"{"$bottom": {"sortBy": {"w": 1}, "output": "$v"}}"#, "[3, 1, 2]", "3"),
        (r#"{"$bottomN": {"n": 2, "sortBy": {"w": 1}, "output": "$v"}}"#, "[3, 1, 2]", "[3, 1]"),
        (r#"{"$firstN": {"n": "$x", "input": "$v"}}"#, "[1]", "error 5787902"),
    ]);
}

#[test]
fn where_order_does_not_matter_every_order_gives_the_same() {
    let values = [
        "1",
        "2.5",
        "1e300",
        "-1e300",
        "1e-300",
        r#"{"$numberLong": "9007199254740993"}"#,
        "0.1",
        "null",
        r#""text""#,
        "3",
    ];
    let decimal = r#"{"$numberDecimal": "0.30"}"#;
    for accumulator in [
        r#"{"$sum": "$v"}"#,
        r#"{"$avg": "$v"}"#,
        r#"{"$min": "$v"}"#,
        r#"{"$max": "$v"}"#,
        r#"{"$count": {}}"#,
        r#"{"$minN": {"n": 4, "input": "$v"}}"#,
        r#"{"$maxN": {"n": 4, "input": "$v"}}"#,
        r#"{"$median": {"input": "$v", "method": "approximate"}}"#,
        r#"{"$percentile": {"input": "$v", "p": [0.3, 0.99], "method": "approximate"}}"#,
        r#"{"$topN": {"n": 3, "sortBy": {"v": -1}, "output": "$v"}}"#,
        r#"{"$bottomN": {"n": 3, "sortBy": {"v": -1}, "output": "$v"}}"#,
    ] {
        for extra in [None, Some(decimal)] {
            let mut documents: Vec<String> =
                values.into_iter().chain(extra).map(|v| format!("{{\"v\": {v}}}")).collect();
            let expected = outcome(accumulator, &documents);
            for turn in 1..documents.len() {
                documents.rotate_left(1);
                documents.swap(0, turn);
                assert_eq!(outcome(accumulator, &documents), expected, "{accumulator} of {documents:?}");
            }
        }
    }
}

#[test]
fn every_accumulator_is_in_these_tables() {
    let tables = include_str!("accumulators.rs");
    for name in AccumulatorKind::names() {
        assert!(tables.contains(&format!("\"{name}\"")), "{name} has no row");
    }
}
