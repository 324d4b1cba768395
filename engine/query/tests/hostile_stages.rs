//! Stages that ask for as much as they can: each ends with a value or an error, and none of them takes long.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

#[path = "support/spilling_host.rs"]
mod spilling_host;

use spilling_host::{SpillingHost, json, run, text};

const MANY: i32 = 300;

/// `ok` or `error <code>` of a stage over some documents with extremes among them.
fn outcome(stage: &str) -> String {
    let mut documents: Vec<_> = (0..MANY).map(|i| json(&format!("{{\"_id\": {i}, \"n\": {i}}}"))).collect();
    for n in [
        r#"{"$numberLong": "9223372036854775807"}"#,
        r#"{"$numberLong": "-9223372036854775808"}"#,
        "1.7976931348623157e308",
        "-1.7976931348623157e308",
        "5e-324",
        r#"{"$numberDecimal": "9.999999999999999999999999999999999E+6144"}"#,
        r#"{"$numberDecimal": "1E-6176"}"#,
    ] {
        documents.push(json(&format!("{{\"n\": {n}}}")));
    }
    match run(&format!("[{stage}]"), &documents, &SpillingHost::default()) {
        Ok(found) => {
            // What comes out is whole.
            found.iter().for_each(|d| assert!(!text(d.view()).is_empty()));
            "ok".to_owned()
        }
        Err(e) => format!("error {}", e.code()),
    }
}

#[test]
fn extremes_end() {
    let long = "\"9223372036854775807\"";
    for (stage, expected) in [
        (r#"{"$group": {"_id": null, "r": {"$sum": "$n"}, "a": {"$avg": "$n"}, "s": {"$stdDevPop": "$n"}}}"#.to_owned(), "ok"),
        (format!(r#"{{"$group": {{"_id": null, "r": {{"$lastN": {{"n": {{"$numberLong": {long}}}, "input": "$n"}}}}}}}}"#), "ok"),
        (format!(r#"{{"$group": {{"_id": null, "r": {{"$topN": {{"n": {{"$numberLong": {long}}}, "sortBy": {{"n": 1}}, "output": 1}}}}}}}}"#), "ok"),
        (r#"{"$group": {"_id": null, "r": {"$minN": {"n": 1e300, "input": "$n"}}}}"#.to_owned(), "error 5787903"),
        (r#"{"$bucketAuto": {"groupBy": "$n", "buckets": 2147483647}}"#.to_owned(), "ok"),
        (r#"{"$bucketAuto": {"groupBy": {"$abs": {"$toDouble": "$n"}}, "buckets": 9, "granularity": "E192"}}"#.to_owned(), "error 241"),
        (r#"{"$bucketAuto": {"groupBy": {"$multiply": ["$_id", 1e305]}, "buckets": 9, "granularity": "R80"}}"#.to_owned(), "error 40258"),
        (r#"{"$bucketAuto": {"groupBy": {"$abs": {"$ifNull": ["$_id", 1e308]}}, "buckets": 9, "granularity": "POWERSOF2"}}"#.to_owned(), "ok"),
        (r#"{"$bucketAuto": {"groupBy": {"$ifNull": ["$_id", 5e-324]}, "buckets": 300, "granularity": "1-2-5"}}"#.to_owned(), "ok"),
        (
            r#"{"$setWindowFields": {"sortBy": {"n": 1}, "output": {
                "a": {"$sum": "$n", "window": {"documents": [-2147483648, 2147483647]}},
                "b": {"$stdDevSamp": "$n", "window": {"range": [-1e308, 1e308]}},
                "c": {"$shift": {"output": "$n", "by": -2147483648}},
                "d": {"$derivative": {"input": "$n"}, "window": {"documents": [-1, 1]}},
                "e": {"$integral": {"input": "$n"}, "window": {"documents": ["current", "unbounded"]}},
                "f": {"$expMovingAvg": {"input": "$n", "alpha": 5e-324}}}}}"#
                .to_owned(),
            "ok",
        ),
        (
            r#"{"$setWindowFields": {"sortBy": {"n": 1}, "output": {
                "a": {"$count": {}, "window": {"range": [{"$numberLong": "-9223372036854775808"}, {"$numberLong": "9223372036854775807"}]}}}}}"#
                .to_owned(),
            "ok",
        ),
        (r#"{"$densify": {"field": "n", "range": {"step": 1, "bounds": "full"}}}"#.to_owned(), "error 5733401"),
        (r#"{"$densify": {"field": "n", "range": {"step": 5e-324, "bounds": [0.0, 1.0]}}}"#.to_owned(), "error 5897900"),
        (
            r#"{"$densify": {"field": "t", "range": {"step": 9223372036854775807, "unit": "year", "bounds": [
                {"$date": {"$numberLong": "0"}}, {"$date": {"$numberLong": "9223372036854775807"}}]}}}"#
                .to_owned(),
            "error 5166406",
        ),
        (r#"{"$fill": {"sortBy": {"n": 1}, "output": {"_id": {"method": "linear"}}}}"#.to_owned(), "ok"),
    ] {
        assert_eq!(outcome(&stage), expected, "{stage}");
    }
}

#[test]
fn names_as_deep_as_can_be_and_deeper() {
    let path = |parts: usize| vec!["a"; parts].join(".");
    for (parts, fails) in [(90, false), (199, false), (201, true)] {
        let path = path(parts);
        for stage in [
            format!(r#"{{"$setWindowFields": {{"output": {{"{path}": {{"$count": {{}}}}}}}}}}"#),
            format!(r#"{{"$densify": {{"field": "{path}", "range": {{"step": 1, "bounds": [0, 3]}}}}}}"#),
            format!(r#"{{"$fill": {{"output": {{"{path}": {{"value": 1}}}}}}}}"#),
        ] {
            assert_eq!(outcome(&stage) == "error 15", fails, "{parts} parts: {}", &stage[..40]);
        }
    }
}
