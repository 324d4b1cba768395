//! `$bucketAuto`. Expected values are those of MongoDB's manual.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

#[path = "support/spilling_host.rs"]
mod spilling_host;

use spilling_host::{SpillingHost, check, check_error, json, run, text};

#[test]
fn documents_are_spread_evenly() {
    let artwork = [
        r#"{"_id": 1, "price": 199.99}"#,
        r#"{"_id": 2, "price": 280.00}"#,
        r#"{"_id": 3, "price": 76.04}"#,
        r#"{"_id": 4, "price": 167.30}"#,
        r#"{"_id": 5, "price": 483.00}"#,
        r#"{"_id": 6, "price": 385.00}"#,
        r#"{"_id": 7, "price": 159.00}"#,
        r#"{"_id": 8, "price": 118.42}"#,
    ];
    check(
        r#"[{"$bucketAuto": {"groupBy": "$price", "buckets": 4}}]"#,
        &artwork,
        &[
            r#"{"_id": {"min": 76.04, "max": 159.00}, "count": 2}"#,
            r#"{"_id": {"min": 159.00, "max": 199.99}, "count": 2}"#,
            r#"{"_id": {"min": 199.99, "max": 385.00}, "count": 2}"#,
            r#"{"_id": {"min": 385.00, "max": 483.00}, "count": 2}"#,
        ],
    );
    check(
        r#"[{"$bucketAuto": {"groupBy": "$price", "buckets": 1, "output": {"ids": {"$push": "$_id"}}}}]"#,
        &artwork,
        &[r#"{"_id": {"min": 76.04, "max": 483.00}, "ids": [3, 8, 7, 4, 1, 2, 6, 5]}"#],
    );
    check(r#"[{"$bucketAuto": {"groupBy": "$price", "buckets": 4}}]"#, &[], &[]);
}

#[test]
fn equal_values_stay_together_and_there_may_be_fewer_buckets() {
    check(
        r#"[{"$bucketAuto": {"groupBy": "$x", "buckets": 5}}]"#,
        &[r#"{"x": 1}"#, r#"{"x": 1.0}"#, r#"{"x": 1}"#, r#"{"x": 2}"#, "{}", r#"{"x": "a"}"#],
        &[
            r#"{"_id": {"min": null, "max": 1}, "count": 1}"#,
            r#"{"_id": {"min": 1, "max": 2}, "count": 3}"#,
            r#"{"_id": {"min": 2, "max": "a"}, "count": 1}"#,
            r#"{"_id": {"min": "a", "max": "a"}, "count": 1}"#,
        ],
    );
}

#[test]
fn a_granularity_rounds_the_boundaries() {
    let things: Vec<String> = (0..100).map(|i| format!("{{\"_id\": {i}}}")).collect();
    let things: Vec<&str> = things.iter().map(String::as_str).collect();
    for (granularity, buckets) in [
        ("", &["0|20|20", "20|40|20", "40|60|20", "60|80|20", "80|99|20"][..]),
        ("R20", &["0|20.0|20", "20.0|40.0|20", "40.0|63.0|23", "63.0|90.0|27", "90.0|100.0|10"]),
        ("1-2-5", &["0|20.0|20", "20.0|50.0|30", "50.0|100.0|50"]),
        ("E24", &["0|20.0|20", "20.0|43.0|23", "43.0|68.0|25", "68.0|91.0|23", "91.0|100.0|9"]),
        ("POWERSOF2", &["0|32|32", "32|64|32", "64|128|36"]),
    ] {
        let given = if granularity.is_empty() { String::new() } else { format!(r#", "granularity": "{granularity}""#) };
        let pipeline = format!(r#"[{{"$bucketAuto": {{"groupBy": "$_id", "buckets": 5{given}}}}}]"#);
        let expected: Vec<String> = buckets
            .iter()
            .map(|bucket| {
                let parts: Vec<&str> = bucket.split('|').collect();
                format!(r#"{{"_id": {{"min": {}, "max": {}}}, "count": {}}}"#, parts[0], parts[1], parts[2])
            })
            .collect();
        check(&pipeline, &things, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
    // Fractions, decimals, all granularities by name; a bucket of zeros ends where the next begins.
    check(
        r#"[{"$bucketAuto": {"groupBy": "$x", "buckets": 2, "granularity": "E6"}}]"#,
        &[r#"{"x": 0}"#, r#"{"x": 0}"#, r#"{"x": 0.8}"#, r#"{"x": 0.9}"#],
        &[r#"{"_id": {"min": 0, "max": 0.68}, "count": 2}"#, r#"{"_id": {"min": 0.68, "max": 1.0}, "count": 2}"#],
    );
    check(
        r#"[{"$bucketAuto": {"groupBy": "$x", "buckets": 1, "granularity": "R5"}}]"#,
        &[r#"{"x": {"$numberDecimal": "17"}}"#, r#"{"x": {"$numberDecimal": "250"}}"#],
        &[r#"{"_id": {"min": {"$numberDecimal": "16"}, "max": {"$numberDecimal": "4.0E+2"}}, "count": 2}"#],
    );
    for name in ["R5", "R10", "R20", "R40", "R80", "1-2-5", "E6", "E12", "E24", "E48", "E96", "E192", "POWERSOF2"] {
        let pipeline = format!(r#"[{{"$bucketAuto": {{"groupBy": "$_id", "buckets": 3, "granularity": "{name}"}}}}]"#);
        let documents: Vec<_> = things.iter().map(|t| json(t)).collect();
        let found = run(&pipeline, &documents, &SpillingHost::default()).unwrap();
        let count = |d: &quarrydb_jsonb::JsonbBuf| d.view().get("count").and_then(|c| c.as_i64()).unwrap();
        assert_eq!(found.iter().map(count).sum::<i64>(), 100, "{name}");
        for pair in found.windows(2) {
            let end = |d: &quarrydb_jsonb::JsonbBuf, name| text(d.view().get("_id").unwrap().get(name).unwrap());
            assert_eq!(end(&pair[0], "max"), end(&pair[1], "min"), "{name}");
        }
    }
}

#[test]
fn memory_changes_nothing() {
    let documents: Vec<_> = (0..200).map(|i| json(&format!("{{\"x\": {}, \"i\": {i}}}", i * 37 % 101))).collect();
    let pipeline = r#"[{"$bucketAuto": {"groupBy": "$x", "buckets": 7, "output": {"all": {"$push": "$i"}}}}]"#;
    let whole = run(pipeline, &documents, &SpillingHost::default()).unwrap();
    let spilled =
        run(pipeline, &documents, &SpillingHost { bytes: 2000, spills: true, ..SpillingHost::default() }).unwrap();
    assert_eq!(whole, spilled);
    let error =
        run(pipeline, &documents, &SpillingHost { bytes: 2000, spills: false, ..SpillingHost::default() }).unwrap_err();
    assert_eq!(error.code(), 292);
}

#[test]
fn errors_have_place_and_number() {
    for (spec, place, code) in [
        ("1", "", 40240),
        ("{}", "", 40246),
        (r#"{"groupBy": "$x"}"#, "", 40246),
        (r#"{"groupBy": "x", "buckets": 1}"#, ".groupBy", 40239),
        (r#"{"groupBy": {"a": 1}, "buckets": 1}"#, ".groupBy", 40239),
        (r#"{"groupBy": {"$nope": 1}, "buckets": 1}"#, ".groupBy.$nope", 168),
        (r#"{"buckets": "1"}"#, ".buckets", 40241),
        (r#"{"buckets": 1.5}"#, ".buckets", 40242),
        (r#"{"buckets": 3000000000}"#, ".buckets", 40242),
        (r#"{"buckets": 0}"#, ".buckets", 40243),
        (r#"{"output": 1}"#, ".output", 40244),
        (r#"{"output": {"n": 1}}"#, ".output.n", 40234),
        (r#"{"output": {"n": {"$firstN": {"n": "$a", "input": 1}}}}"#, ".output.n", 4_544_714),
        (r#"{"x": 1}"#, ".x", 40245),
        (r#"{"granularity": 1}"#, ".granularity", 40261),
        (r#"{"granularity": "R6"}"#, ".granularity", 40257),
    ] {
        let place = format!("pipeline[0].$bucketAuto{place}");
        check_error(&format!("[{{\"$bucketAuto\": {spec}}}]"), &[], &place, code);
    }
    let rounded = r#"[{"$bucketAuto": {"groupBy": "$x", "buckets": 1, "granularity": "R5"}}]"#;
    check_error(rounded, &[r#"{"x": "a"}"#], "", 40258);
    check_error(rounded, &["{}"], "", 40258);
    check_error(rounded, &[r#"{"x": {"$numberDouble": "NaN"}}"#], "", 40259);
    check_error(rounded, &[r#"{"x": -1}"#], "", 40260);
}
