//! `$densify` and `$fill`. Expected values are those of MongoDB's manual.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

#[path = "support/spilling_host.rs"]
mod spilling_host;

use spilling_host::{SpillingHost, check, check_error, json, run};

#[test]
fn dates_between_explicit_bounds() {
    let at = |time: &str| format!("{{\"$date\": \"2021-05-18T{time}:00Z\"}}");
    let given = |time: &str, temp: i32| format!(r#"{{"sensor": 5578, "at": {}, "temp": {temp}}}"#, at(time));
    let made = |time: &str| format!(r#"{{"at": {}}}"#, at(time));
    let input = [given("00:00", 12), given("04:00", 11), given("08:00", 11), given("12:00", 12)];
    let stage = r#"[{"$densify": {"field": "at", "range": {"step": 1, "unit": "hour", "bounds": [
        {"$date": "2021-05-18T00:00:00Z"}, {"$date": "2021-05-18T08:00:00Z"}]}}}]"#;
    let expected = [
        given("00:00", 12),
        made("01:00"),
        made("02:00"),
        made("03:00"),
        given("04:00", 11),
        made("05:00"),
        made("06:00"),
        made("07:00"),
        given("08:00", 11),
        given("12:00", 12),
    ];
    fn refs(lines: &[String]) -> Vec<&str> {
        lines.iter().map(String::as_str).collect()
    }
    check(stage, &refs(&input), &refs(&expected));
}

/// The manual's coffees.
const COFFEES: [&str; 5] = [
    r#"{"altitude": 600, "variety": "Arabica Typica", "score": 68.3}"#,
    r#"{"altitude": 750, "variety": "Arabica Typica", "score": 69.5}"#,
    r#"{"altitude": 950, "variety": "Arabica Typica", "score": 70.5}"#,
    r#"{"altitude": 1250, "variety": "Gesha", "score": 88.15}"#,
    r#"{"altitude": 1700, "variety": "Gesha", "score": 95.5, "price": 1029}"#,
];

#[test]
fn numbers_of_the_full_range_in_partitions() {
    let typica = |altitude: i32| format!(r#"{{"variety": "Arabica Typica", "altitude": {altitude}}}"#);
    let gesha = |altitude: i32| format!(r#"{{"variety": "Gesha", "altitude": {altitude}}}"#);
    let (t800, t1000, t1200, t1400, t1600) = (typica(800), typica(1000), typica(1200), typica(1400), typica(1600));
    let (g600, g800, g1000, g1200, g1400, g1600) =
        (gesha(600), gesha(800), gesha(1000), gesha(1200), gesha(1400), gesha(1600));
    check(
        r#"[{"$densify": {"field": "altitude", "partitionByFields": ["variety"],
            "range": {"bounds": "full", "step": 200}}}]"#,
        &COFFEES,
        &[
            COFFEES[0], COFFEES[1], &t800, COFFEES[2], &g600, &g800, &g1000, &g1200, COFFEES[3], &g1400, &g1600,
            COFFEES[4], &t1000, &t1200, &t1400, &t1600,
        ],
    );
    let (g1450, g1650) = (gesha(1450), gesha(1650));
    check(
        r#"[{"$densify": {"field": "altitude", "partitionByFields": ["variety"],
            "range": {"bounds": "partition", "step": 200}}}]"#,
        &COFFEES,
        &[COFFEES[0], COFFEES[1], &t800, COFFEES[2], COFFEES[3], &g1450, &g1650, COFFEES[4]],
    );
}

#[test]
fn what_has_no_value_passes_and_bounds_hold() {
    check(
        r#"[{"$densify": {"field": "a.n", "range": {"bounds": "full", "step": 1}}}]"#,
        &[r#"{"a": {"n": 3}}"#, r#"{"_id": 1}"#, r#"{"a": {"n": null}}"#, r#"{"a": {"n": 0.5}}"#],
        &[
            r#"{"_id": 1}"#,
            r#"{"a": {"n": null}}"#,
            r#"{"a": {"n": 0.5}}"#,
            r#"{"a": {"n": 1.5}}"#,
            r#"{"a": {"n": 2.5}}"#,
            r#"{"a": {"n": 3}}"#,
        ],
    );
    let explicit = r#"[{"$densify": {"field": "n", "range": {"bounds": [0, 6], "step": 2}}}]"#;
    check(explicit, &[], &[r#"{"n": 0}"#, r#"{"n": 2}"#, r#"{"n": 4}"#]);
    check(
        explicit,
        &[r#"{"n": -5}"#, r#"{"n": 3}"#, r#"{"n": 9}"#],
        &[r#"{"n": -5}"#, r#"{"n": 0}"#, r#"{"n": 2}"#, r#"{"n": 3}"#, r#"{"n": 4}"#, r#"{"n": 9}"#],
    );
    check(
        r#"[{"$densify": {"field": "n", "partitionByFields": ["p", "q.r"], "range": {"bounds": [0, 2], "step": 1}}}]"#,
        &[r#"{"n": 1, "p": 1, "q": {"r": 2}}"#, r#"{"n": 0, "p": null}"#],
        &[
            r#"{"n": 0, "p": null}"#,
            r#"{"p": 1, "q": {"r": 2}, "n": 0}"#,
            r#"{"n": 1, "p": 1, "q": {"r": 2}}"#,
            r#"{"p": null, "q": {}, "n": 1}"#,
        ],
    );
    // Months end where they end.
    check(
        r#"[{"$densify": {"field": "t", "range": {"bounds": "full", "step": 1, "unit": "month"}}}]"#,
        &[r#"{"t": {"$date": "2021-01-31T00:00:00Z"}}"#, r#"{"t": {"$date": "2021-03-01T00:00:00Z"}}"#],
        &[
            r#"{"t": {"$date": "2021-01-31T00:00:00Z"}}"#,
            r#"{"t": {"$date": "2021-02-28T00:00:00Z"}}"#,
            r#"{"t": {"$date": "2021-03-01T00:00:00Z"}}"#,
        ],
    );
}

#[test]
fn memory_changes_nothing_and_there_is_an_end() {
    let documents: Vec<_> = (0..100).map(|i| json(&format!("{{\"n\": {}, \"i\": {i}}}", i * 61 % 307))).collect();
    let stage = r#"[{"$densify": {"field": "n", "range": {"bounds": "full", "step": 3}}}]"#;
    let whole = run(stage, &documents, &SpillingHost::default()).unwrap();
    assert_eq!(
        run(stage, &documents, &SpillingHost { bytes: 1500, spills: true, ..SpillingHost::default() }).unwrap(),
        whole
    );
    check_error(
        r#"[{"$densify": {"field": "n", "range": {"bounds": [0, 600000], "step": 1}}}, {"$count": "n"}]"#,
        &[],
        "",
        5_897_900,
    );
    // A step that is lost to rounding.
    check_error(
        r#"[{"$densify": {"field": "n", "range": {"bounds": "full", "step": 0.1}}}]"#,
        &[r#"{"n": 1e17}"#, r#"{"n": 2e17}"#],
        "",
        5_733_401,
    );
}

#[test]
fn errors_of_densify_have_place_and_number() {
    for (spec, place, code) in [
        ("1", "", 9),
        ("{}", "", 40414),
        (r#"{"x": 1}"#, ".x", 40415),
        (r#"{"field": 1}"#, ".field", 14),
        (r#"{"field": "$a"}"#, ".field", 16410),
        (r#"{"field": "a"}"#, "", 40414),
        (r#"{"field": "a", "partitionByFields": 1}"#, ".partitionByFields", 14),
        (r#"{"field": "a", "partitionByFields": ["b", 1]}"#, ".partitionByFields[1]", 14),
    ] {
        let place = format!("pipeline[0].$densify{place}");
        check_error(&format!("[{{\"$densify\": {spec}}}]"), &[], &place, code);
    }
    let date = r#"{"$date": "2020-01-01T00:00:00Z"}"#;
    for (range, place, code) in [
        ("1".to_owned(), ".range", 14),
        (r#"{"step": 1}"#.to_owned(), ".range", 40414),
        (r#"{"bounds": "full"}"#.to_owned(), ".range", 40414),
        (r#"{"step": 1, "bounds": "full", "x": 1}"#.to_owned(), ".range.x", 40415),
        (r#"{"step": 0, "bounds": "full"}"#.to_owned(), ".range", 5_733_401),
        (r#"{"step": "1", "bounds": "full"}"#.to_owned(), ".range", 5_733_401),
        (r#"{"step": 1.5, "bounds": "full", "unit": "day"}"#.to_owned(), ".range", 6_586_400),
        (r#"{"step": 1, "bounds": "full", "unit": "dayz"}"#.to_owned(), ".range.unit", 9),
        (r#"{"step": 1, "bounds": 1}"#.to_owned(), ".range.bounds", 5_733_404),
        (r#"{"step": 1, "bounds": "all"}"#.to_owned(), ".range.bounds", 5_946_802),
        (r#"{"step": 1, "bounds": [1]}"#.to_owned(), ".range.bounds", 5_733_403),
        (r#"{"step": 1, "bounds": [2, 1]}"#.to_owned(), ".range.bounds", 5_733_402),
        (r#"{"step": 1, "bounds": ["a", "b"]}"#.to_owned(), ".range.bounds", 5_946_800),
        (r#"{"step": 1, "bounds": [1, 2], "unit": "day"}"#.to_owned(), ".range.bounds", 5_733_409),
        (r#"{"step": 1, "bounds": [1, 2.5]}"#.to_owned(), ".range.bounds", 5_876_900),
        (r#"{"step": 1, "bounds": [1, "a"]}"#.to_owned(), ".range.bounds", 5_733_406),
        (format!(r#"{{"step": 1, "bounds": [{date}, {date}]}}"#), ".range.bounds", 5_733_410),
        (r#"{"step": 1, "bounds": "partition"}"#.to_owned(), "", 5_733_408),
    ] {
        let stage = format!(r#"[{{"$densify": {{"field": "a", "range": {range}}}}}]"#);
        check_error(&stage, &[], &format!("pipeline[0].$densify{place}"), code);
    }
    let full = r#"[{"$densify": {"field": "n", "range": {"bounds": "full", "step": 1}}}]"#;
    check_error(full, &[r#"{"n": "a"}"#], "", 5_733_201);
    check_error(full, &[&format!("{{\"n\": {date}}}")], "", 6_053_600);
    let nested =
        r#"[{"$densify": {"field": "a.n", "partitionByFields": ["a"], "range": {"bounds": [0, 2], "step": 1}}}]"#;
    check_error(nested, &[], "pipeline[0].$densify", 40176);
}

#[test]
fn fill_by_value_and_by_method() {
    // The manual's bakery and restaurant.
    check(
        r#"[{"$fill": {"output": {"boots": {"value": 0}, "b.c": {"value": {"$add": ["$n", 1]}}}}}]"#,
        &[r#"{"n": 1, "boots": null}"#, r#"{"n": 2, "boots": 5, "b": {"c": 7}}"#],
        &[r#"{"n": 1, "boots": 0, "b": {"c": 2}}"#, r#"{"n": 2, "boots": 5, "b": {"c": 7}}"#],
    );
    check(
        r#"[{"$fill": {"sortBy": {"t": 1}, "output": {"price": {"method": "linear"}}}}]"#,
        &[r#"{"t": 9, "price": 500}"#, r#"{"t": 10}"#, r#"{"t": 11, "price": 515}"#],
        &[r#"{"t": 9, "price": 500}"#, r#"{"t": 10, "price": 507.5}"#, r#"{"t": 11, "price": 515}"#],
    );
    for partition in [r#""partitionBy": {"r": "$r"}"#, r#""partitionBy": "$r""#, r#""partitionByFields": ["r"]"#] {
        let stage =
            format!(r#"[{{"$fill": {{"sortBy": {{"d": 1}}, {partition}, "output": {{"s": {{"method": "locf"}}}}}}}}]"#);
        check(
            &stage,
            &[
                r#"{"d": 1, "r": "J", "s": 94}"#,
                r#"{"d": 2, "r": "J"}"#,
                r#"{"d": 1, "r": "S", "s": 90}"#,
                r#"{"d": 2, "r": "S", "s": null}"#,
            ],
            &[
                r#"{"d": 1, "r": "J", "s": 94}"#,
                r#"{"d": 2, "r": "J", "s": 94}"#,
                r#"{"d": 1, "r": "S", "s": 90}"#,
                r#"{"d": 2, "r": "S", "s": 90}"#,
            ],
        );
    }
}

#[test]
fn errors_of_fill_have_place_and_number() {
    for (spec, place, code) in [
        ("1", "", 9),
        ("{}", "", 40414),
        (r#"{"x": 1}"#, ".x", 40415),
        (r#"{"output": {}}"#, ".output", 6_050_203),
        (r#"{"output": {"a": 1}}"#, ".output.a", 6_050_200),
        (r#"{"output": {"a": {"method": "linear", "value": 1}}}"#, ".output.a", 6_050_201),
        (r#"{"output": {"a": {"method": "cubic"}}}"#, ".output.a.method", 6_050_202),
        (r#"{"output": {"a": {"x": 1}}}"#, ".output.a.x", 40415),
        (r#"{"output": {"a": {"value": "$$x"}}}"#, ".output.a.value", 17276),
        (
            r#"{"output": {"a": {"value": 1}}, "partitionBy": "$a", "partitionByFields": []}"#,
            ".partitionByFields",
            6_050_204,
        ),
        (r#"{"output": {"a": {"value": 1}}, "partitionBy": 1}"#, ".partitionBy", 14),
        (r#"{"output": {"a": {"method": "linear"}}}"#, ".output.a.$linearFill", 605_001),
    ] {
        check_error(&format!("[{{\"$fill\": {spec}}}]"), &[], &format!("pipeline[0].$fill{place}"), code);
    }
}
