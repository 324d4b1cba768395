//! `$setWindowFields`. Expected values are those of MongoDB's manual; sliding windows are held to `$group` on their rows.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::JsonbBuf;
use quarrydb_query::pipeline::window::window_function_names;

#[path = "support/spilling_host.rs"]
mod spilling_host;

use spilling_host::{SpillingHost, check, check_error, json, run, text};

/// The manual's cakes.
const CAKES: [&str; 6] = [
    r#"{"_id": 0, "at": {"$date": "2020-05-18T14:10:30Z"}, "state": "CA", "price": 13, "q": 120}"#,
    r#"{"_id": 1, "at": {"$date": "2021-03-20T11:30:05Z"}, "state": "WA", "price": 14, "q": 140}"#,
    r#"{"_id": 2, "at": {"$date": "2021-01-11T06:31:15Z"}, "state": "CA", "price": 12, "q": 145}"#,
    r#"{"_id": 3, "at": {"$date": "2020-02-08T13:13:23Z"}, "state": "WA", "price": 13, "q": 104}"#,
    r#"{"_id": 4, "at": {"$date": "2019-05-18T16:09:01Z"}, "state": "CA", "price": 41, "q": 162}"#,
    r#"{"_id": 5, "at": {"$date": "2019-01-08T06:12:03Z"}, "state": "WA", "price": 43, "q": 134}"#,
];

/// What a stage gives for the cakes: `_id` and the field `r` of each, in order.
#[track_caller]
fn cakes(stage: &str, expected: &[(i32, &str)]) {
    let pipeline = format!(r#"[{{"$setWindowFields": {stage}}}, {{"$project": {{"r": 1}}}}]"#);
    let expected: Vec<String> = expected.iter().map(|(id, r)| format!(r#"{{"_id": {id}, "r": {r}}}"#)).collect();
    check(&pipeline, &CAKES, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn windows_by_documents() {
    cakes(
        r#"{"partitionBy": "$state", "sortBy": {"at": 1},
            "output": {"r": {"$sum": "$q", "window": {"documents": ["unbounded", "current"]}}}}"#,
        &[(4, "162"), (0, "282"), (2, "427"), (5, "134"), (3, "238"), (1, "378")],
    );
    cakes(
        r#"{"partitionBy": {"$year": "$at"}, "sortBy": {"at": 1},
            "output": {"r": {"$avg": "$q", "window": {"documents": [-1, 0]}}}}"#,
        &[(5, "134.0"), (4, "148.0"), (3, "104.0"), (0, "112.0"), (2, "145.0"), (1, "142.5")],
    );
    cakes(
        r#"{"partitionBy": {"$year": "$at"}, "sortBy": {"at": 1},
            "output": {"r": {"$max": "$q", "window": {"documents": ["unbounded", "unbounded"]}}}}"#,
        &[(5, "162"), (4, "162"), (3, "120"), (0, "120"), (2, "145"), (1, "145")],
    );
    // Without a window all of the partition counts, without a partition everything is one.
    cakes(
        r#"{"output": {"r": {"$sum": "$q"}}}"#,
        &[(0, "805"), (1, "805"), (2, "805"), (3, "805"), (4, "805"), (5, "805")],
    );
}

#[test]
fn windows_by_range() {
    cakes(
        r#"{"partitionBy": "$state", "sortBy": {"price": 1},
            "output": {"r": {"$sum": "$q", "window": {"range": [-10, 10]}}}}"#,
        &[(2, "265"), (0, "265"), (4, "162"), (3, "244"), (1, "244"), (5, "134")],
    );
    cakes(
        r#"{"partitionBy": "$state", "sortBy": {"at": 1},
            "output": {"r": {"$push": "$_id", "window": {"range": ["unbounded", 10], "unit": "month"}}}}"#,
        &[(4, "[4]"), (0, "[4, 0, 2]"), (2, "[4, 0, 2]"), (5, "[5]"), (3, "[5, 3]"), (1, "[5, 3, 1]")],
    );
    cakes(
        r#"{"partitionBy": "$state", "sortBy": {"at": 1},
            "output": {"r": {"$push": "$_id", "window": {"range": ["unbounded", -10], "unit": "month"}}}}"#,
        &[(4, "[]"), (0, "[4]"), (2, "[4]"), (5, "[]"), (3, "[5]"), (1, "[5, 3]")],
    );
    // The current document alone begins or ends at itself, whoever has the same value.
    check(
        r#"[{"$setWindowFields": {"sortBy": {"x": 1}, "output": {
            "a": {"$count": {}, "window": {"range": [0, 0]}},
            "b": {"$count": {}, "window": {"range": ["unbounded", "current"]}},
            "c": {"$sum": "$x", "window": {"range": [0.1, 0.3]}}}}}]"#,
        &[r#"{"x": 0.1}"#, r#"{"x": 0.1}"#, r#"{"x": 0.4}"#, r#"{"x": {"$numberDecimal": "0.2"}}"#],
        &[
            r#"{"x": 0.1, "a": 2, "b": 1, "c": {"$numberDecimal": "0.6000000000000000222044604925031308"}}"#,
            r#"{"x": 0.1, "a": 2, "b": 2, "c": {"$numberDecimal": "0.6000000000000000222044604925031308"}}"#,
            r#"{"x": {"$numberDecimal": "0.2"}, "a": 1, "b": 3, "c": 0.4}"#,
            r#"{"x": 0.4, "a": 1, "b": 4, "c": 0}"#,
        ],
    );
}

#[test]
fn ranks() {
    let ranked = |function: &str| {
        format!(
            r#"[{{"$setWindowFields": {{"partitionBy": "$p", "sortBy": {{"n": -1}}, "output": {{"r": {{"{function}": {{}}}}}}}}}},
                {{"$group": {{"_id": null, "r": {{"$push": "$r"}}}}}}, {{"$unset": "_id"}}]"#
        )
    };
    let documents =
        [r#"{"n": 5}"#, r#"{"n": 5.0}"#, r#"{"n": 7}"#, r#"{"n": 3}"#, r#"{"n": null}"#, "{}", r#"{"n": 1, "p": 1}"#];
    let long = |numbers: [u8; 7]| {
        let numbers: Vec<String> = numbers.iter().map(|n| format!("{{\"$numberLong\": \"{n}\"}}")).collect();
        format!("{{\"r\": [{}]}}", numbers.join(", "))
    };
    check(&ranked("$rank"), &documents, &[&long([1, 2, 2, 4, 5, 5, 1])]);
    check(&ranked("$denseRank"), &documents, &[&long([1, 2, 2, 3, 4, 4, 1])]);
    check(&ranked("$documentNumber"), &documents, &[&long([1, 2, 3, 4, 5, 6, 1])]);
}

#[test]
fn functions_of_neighbours() {
    cakes(
        r#"{"partitionBy": "$state", "sortBy": {"q": -1},
            "output": {"r": {"$shift": {"output": "$q", "by": 1, "default": "Not available"}}}}"#,
        &[(4, "145"), (2, "120"), (0, "\"Not available\""), (1, "134"), (5, "104"), (3, "\"Not available\"")],
    );
    cakes(
        r#"{"partitionBy": "$state", "sortBy": {"q": -1}, "output": {"r": {"$shift": {"output": "$q", "by": -1}}}}"#,
        &[(4, "null"), (2, "162"), (0, "145"), (1, "null"), (5, "140"), (3, "134")],
    );
    // The manual's stock prices.
    let prices = [
        r#"{"_id": 1, "p": 13.0}"#,
        r#"{"_id": 2, "p": 15.4}"#,
        r#"{"_id": 3, "p": 12.0}"#,
        r#"{"_id": 4, "p": 11.7}"#,
    ];
    let averaged = |by: &str| {
        format!(
            r#"[{{"$setWindowFields": {{"sortBy": {{"_id": 1}}, "output": {{"r": {{"$expMovingAvg": {{"input": "$p", {by}}}}}}}}}}},
                {{"$group": {{"_id": null, "r": {{"$push": "$r"}}}}}}, {{"$unset": "_id"}}]"#
        )
    };
    check(&averaged(r#""N": 2"#), &prices, &[r#"{"r": [13.0, 14.6, 12.866666666666667, 12.088888888888889]}"#]);
    check(&averaged(r#""alpha": 0.75"#), &prices, &[r#"{"r": [13.0, 14.8, 12.7, 11.95]}"#]);
}

#[test]
fn rates_and_areas() {
    // Speed between neighbours, and the way covered: 2 a second for 1.024 seconds, then from 2 to 4 for 2.048.
    let points = [
        r#"{"t": {"$date": "2021-01-01T00:00:00Z"}, "way": 0, "speed": 2}"#,
        r#"{"t": {"$date": "2021-01-01T00:00:01.024Z"}, "way": 2, "speed": 2}"#,
        r#"{"t": {"$date": "2021-01-01T00:00:03.072Z"}, "way": 8, "speed": 4}"#,
    ];
    check(
        r#"[{"$setWindowFields": {"sortBy": {"t": 1}, "output": {
            "rate": {"$derivative": {"input": "$way", "unit": "second"}, "window": {"documents": [-1, 0]}},
            "all": {"$integral": {"input": "$speed", "unit": "second"}},
            "area": {"$integral": {"input": "$speed", "unit": "second"}, "window": {"documents": ["unbounded", "current"]}},
            "last": {"$integral": {"input": "$speed", "unit": "second"}, "window": {"documents": [-1, "current"]}}}}},
            {"$unset": ["t", "way", "speed"]}]"#,
        &points,
        &[
            r#"{"rate": null, "all": 8.192, "area": 0.0, "last": 0.0}"#,
            r#"{"rate": 1.953125, "all": 8.192, "area": 2.048, "last": 2.048}"#,
            r#"{"rate": 2.9296875, "all": 8.192, "area": 8.192, "last": 6.144}"#,
        ],
    );
    check(
        r#"[{"$setWindowFields": {"sortBy": {"x": 1}, "output": {
            "d": {"$derivative": {"input": "$y"}, "window": {"documents": [0, 1]}},
            "i": {"$integral": {"input": "$y"}, "window": {"documents": [0, 1]}},
            "c": {"$covariancePop": ["$x", "$y"]},
            "s": {"$covarianceSamp": ["$x", "$y"], "window": {"documents": [-1, 0]}}}}}]"#,
        &[r#"{"x": 1, "y": 2}"#, r#"{"x": 2, "y": 4}"#, r#"{"x": 3, "y": 9}"#],
        &[
            // Means 2 and 5: products 3, 0 and 4.
            r#"{"x": 1, "y": 2, "d": 2.0, "i": 3.0, "c": 2.3333333333333335, "s": null}"#,
            r#"{"x": 2, "y": 4, "d": 5.0, "i": 6.5, "c": 2.3333333333333335, "s": 1.0}"#,
            r#"{"x": 3, "y": 9, "d": null, "i": 0, "c": 2.3333333333333335, "s": 2.5}"#,
        ],
    );
}

#[test]
fn what_is_filled() {
    // The manual's stock: two points and what lies between.
    let stock = [
        r#"{"t": 9, "price": 500}"#,
        r#"{"t": 10}"#,
        r#"{"t": 11, "price": 515}"#,
        r#"{"t": 12, "price": null}"#,
        r#"{"t": 13}"#,
        r#"{"t": 14, "price": 485}"#,
        r#"{"t": 15}"#,
    ];
    check(
        r#"[{"$setWindowFields": {"sortBy": {"t": 1},
            "output": {"linear": {"$linearFill": "$price"}, "locf": {"$locf": "$price"}}}}, {"$unset": "price"}]"#,
        &stock,
        &[
            r#"{"t": 9, "linear": 500, "locf": 500}"#,
            r#"{"t": 10, "linear": 507.5, "locf": 500}"#,
            r#"{"t": 11, "linear": 515, "locf": 515}"#,
            r#"{"t": 12, "linear": 505.0, "locf": 515}"#,
            r#"{"t": 13, "linear": 495.0, "locf": 515}"#,
            r#"{"t": 14, "linear": 485, "locf": 485}"#,
            r#"{"t": 15, "linear": null, "locf": 485}"#,
        ],
    );
}

#[test]
fn outputs_are_put_where_their_paths_lead() {
    check(
        r#"[{"$setWindowFields": {"output": {"a.b": {"$sum": "$n"}, "n": {"$min": "$n"}, "x.y": {"$count": {}}}}}]"#,
        &[r#"{"n": 1, "a": {"c": 1}}"#, r#"{"n": 2, "a": [{"b": 0}, 5]}"#],
        &[r#"{"n": 1, "a": {"c": 1, "b": 3}, "x": {"y": 2}}"#, r#"{"n": 1, "a": [{"b": 3}, {"b": 3}], "x": {"y": 2}}"#],
    );
}

/// Rows with values of many kinds.
fn rows() -> Vec<JsonbBuf> {
    let mut state = 5_u64;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut at = 0;
    (0..60)
        .map(|i| {
            at += next(4);
            let v = match next(8) {
                0 => "null".to_owned(),
                1 => "\"text\"".to_owned(),
                2 => format!("{{\"$numberDecimal\": \"{}.50\"}}", next(10)),
                3 => format!("{}.1e{}", next(10), next(20)),
                4 => format!("[{}]", next(3)),
                _ => next(6).to_string(),
            };
            let v = if next(10) == 0 { String::new() } else { format!(", \"v\": {v}") };
            json(&format!(r#"{{"_id": {i}, "x": {at}, "k": {}{v}}}"#, next(5)))
        })
        .collect()
}

/// Every accumulator that windows take and `$group` has.
const ACCUMULATORS: [&str; 21] = [
    r#"{"$sum": "$v"}"#,
    r#"{"$avg": "$v"}"#,
    r#"{"$min": "$v"}"#,
    r#"{"$max": "$v"}"#,
    r#"{"$count": {}}"#,
    r#"{"$first": "$v"}"#,
    r#"{"$last": "$v"}"#,
    r#"{"$push": "$v"}"#,
    r#"{"$addToSet": "$v"}"#,
    r#"{"$top": {"sortBy": {"k": 1}, "output": "$_id"}}"#,
    r#"{"$bottom": {"sortBy": {"k": 1}, "output": "$_id"}}"#,
    r#"{"$topN": {"n": 3, "sortBy": {"k": -1, "v": 1}, "output": "$_id"}}"#,
    r#"{"$bottomN": {"n": 3, "sortBy": {"k": -1}, "output": "$_id"}}"#,
    r#"{"$firstN": {"n": 2, "input": "$v"}}"#,
    r#"{"$lastN": {"n": 2, "input": "$v"}}"#,
    r#"{"$minN": {"n": 3, "input": "$v"}}"#,
    r#"{"$maxN": {"n": 3, "input": "$v"}}"#,
    r#"{"$median": {"input": "$v", "method": "approximate"}}"#,
    r#"{"$percentile": {"input": "$v", "p": [0.2, 0.8, 1], "method": "approximate"}}"#,
    r#"{"$stdDevPop": "$k"}"#,
    r#"{"$stdDevSamp": "$k"}"#,
];

/// The result of an accumulator over some rows by `$group`; that of no rows is what MongoDB's window functions give.
fn grouped(accumulator: &str, rows: &[JsonbBuf]) -> JsonbBuf {
    if rows.is_empty() {
        let name = accumulator.split('"').nth(1).unwrap();
        return json(match name {
            "$sum" | "$count" => "0",
            "$push" | "$addToSet" | "$topN" | "$bottomN" | "$firstN" | "$lastN" | "$minN" | "$maxN" => "[]",
            "$percentile" => "[null, null, null]",
            _ => "null",
        });
    }
    let pipeline = format!(r#"[{{"$group": {{"_id": null, "r": {accumulator}}}}}]"#);
    let found = run(&pipeline, rows, &SpillingHost::default()).unwrap();
    found[0].view().get("r").unwrap().to_buf()
}

fn x(row: &JsonbBuf) -> i64 {
    row.view().get("x").and_then(|x| x.as_i64()).unwrap()
}

#[test]
fn sliding_windows_are_groups_of_their_rows() {
    let rows = rows();
    let count = rows.len() as i64;
    let documents: &[(&str, i64, i64)] = &[
        ("[\"unbounded\", \"unbounded\"]", -count, count),
        ("[\"unbounded\", \"current\"]", -count, 0),
        ("[\"current\", \"unbounded\"]", 0, count),
        ("[-3, 2]", -3, 2),
        ("[-5, -2]", -5, -2),
        ("[2, 7]", 2, 7),
        ("[\"unbounded\", -4]", -count, -4),
        ("[4, \"unbounded\"]", 4, count),
        ("[0, 0]", 0, 0),
    ];
    let ranges: &[(&str, i64, i64)] =
        &[("[-4, 4]", -4, 4), ("[-9, -3]", -9, -3), ("[1, 6]", 1, 6), ("[\"unbounded\", 2]", -10_000, 2)];
    for accumulator in ACCUMULATORS {
        let mut outputs = Vec::new();
        for (at, (window, ..)) in documents.iter().enumerate() {
            let function = accumulator.strip_suffix('}').unwrap();
            outputs.push(format!(r#""d{at}": {function}, "window": {{"documents": {window}}}}}"#));
        }
        for (at, (window, ..)) in ranges.iter().enumerate() {
            let function = accumulator.strip_suffix('}').unwrap();
            outputs.push(format!(r#""r{at}": {function}, "window": {{"range": {window}}}}}"#));
        }
        let stage =
            format!(r#"[{{"$setWindowFields": {{"sortBy": {{"x": 1}}, "output": {{{}}}}}}}]"#, outputs.join(", "));
        let found = run(&stage, &rows, &SpillingHost::default()).unwrap();
        assert_eq!(found.len(), rows.len());
        let same = |found: Option<quarrydb_jsonb::JsonbRef<'_>>, expected: &JsonbBuf, what: &str| {
            let found = found.unwrap();
            if let (true, Some(a), Some(b)) = (what.contains("$stdDev"), found.as_f64(), expected.view().as_f64()) {
                assert!((a - b).abs() <= 1e-12 * b.abs().max(1.0), "{what}: {a} and {b}");
                return;
            }
            assert_eq!(text(found), text(expected.view()), "{what}");
        };
        for (row, document) in found.iter().enumerate() {
            let here = row as i64;
            for (at, (window, from, to)) in documents.iter().enumerate() {
                let start = (here + from).clamp(0, count) as usize;
                let end = (here + to + 1).clamp(start as i64, count) as usize;
                let expected = grouped(accumulator, &rows[start..end]);
                let what = format!("{accumulator} over documents {window} of row {row}");
                same(document.view().get(&format!("d{at}")), &expected, &what);
            }
            for (at, (window, from, to)) in ranges.iter().enumerate() {
                let base = x(&rows[row]);
                let inside = |r: &&JsonbBuf| (base + from..=base + to).contains(&x(r));
                let inside: Vec<JsonbBuf> = rows.iter().filter(inside).cloned().collect();
                let expected = grouped(accumulator, &inside);
                let what = format!("{accumulator} over range {window} of row {row}");
                same(document.view().get(&format!("r{at}")), &expected, &what);
            }
        }
    }
    for name in window_function_names() {
        assert!(include_str!("windows.rs").contains(&format!("\"{name}\"")), "{name} has no test");
    }
}

#[test]
fn memory_changes_nothing() {
    let pipeline = r#"[{"$setWindowFields": {"partitionBy": {"$mod": ["$_id", 2]}, "sortBy": {"k": 1}, "output": {
        "sum": {"$sum": "$_id", "window": {"documents": [-3, 3]}}, "rank": {"$rank": {}},
        "last": {"$last": "$_id", "window": {"documents": ["current", "unbounded"]}}}}}]"#;
    let rows = rows();
    let whole = run(pipeline, &rows, &SpillingHost::default()).unwrap();
    for bytes in [2600, 4000] {
        let spilled = run(pipeline, &rows, &SpillingHost { bytes, spills: true, ..SpillingHost::default() }).unwrap();
        assert_eq!(spilled, whole, "{bytes} bytes");
    }
    let error = |bytes, spills| {
        run(pipeline, &rows, &SpillingHost { bytes, spills, ..SpillingHost::default() }).unwrap_err().code()
    };
    assert_eq!(error(2600, false), 292);
    assert_eq!(error(500, true), 146);
}

#[test]
fn errors_of_the_stage_have_place_and_number() {
    for (spec, place, code) in [
        ("1", "", 9),
        ("{}", "", 40414),
        (r#"{"x": 1}"#, ".x", 40415),
        (r#"{"output": 1}"#, ".output", 14),
        (r#"{"sortBy": 1, "output": {}}"#, ".sortBy", 14),
        (r#"{"sortBy": {"a": 2}, "output": {}}"#, ".sortBy.a", 15975),
        (r#"{"partitionBy": [1], "output": {}}"#, ".partitionBy", 14),
        (r#"{"partitionBy": "$$x", "output": {}}"#, ".partitionBy", 17276),
        (r#"{"output": {"a": {"$sum": 1}, "a.b": {"$sum": 1}}}"#, ".output", 6_307_900),
        (r#"{"output": {"a": 1}}"#, ".output.a", 9),
        (r#"{"output": {"a": {}}}"#, ".output.a", 9),
        (r#"{"output": {"a": {"window": {}}}}"#, ".output.a", 9),
        (r#"{"output": {"a": {"$summ": 1}}}"#, ".output.a.$summ", 9),
        (r#"{"output": {"a": {"$mergeObjects": 1}}}"#, ".output.a.$mergeObjects", 9),
        (r#"{"output": {"a": {"$sum": 1, "windoww": {}}}}"#, ".output.a.windoww", 9),
        (r#"{"output": {"a": {"$sum": 1, "window": 1}}}"#, ".output.a.window", 9),
        (r#"{"output": {"a": {"$sum": 1, "window": {"x": 1}}}}"#, ".output.a.window.x", 9),
        (r#"{"output": {"a": {"$sum": 1, "window": {"unit": "day"}}}}"#, ".output.a.window", 9),
    ] {
        let place = format!("pipeline[0].$setWindowFields{place}");
        check_error(&format!("[{{\"$setWindowFields\": {spec}}}]"), &[], &place, code);
    }
}

#[test]
fn errors_of_windows_and_functions_have_place_and_number() {
    for (function, place, code) in [
        (r#"{"$sum": 1, "window": {"documents": [1], "range": [1, 2]}}"#, ".window", 9),
        (r#"{"$sum": 1, "window": {"documents": [1]}}"#, ".window.documents", 9),
        (r#"{"$sum": 1, "window": {"documents": ["x", 1]}}"#, ".window.documents[0]", 9),
        (r#"{"$sum": 1, "window": {"documents": [0, 1.5]}}"#, ".window.documents[1]", 9),
        (r#"{"$sum": 1, "window": {"documents": [0, "$a"]}}"#, ".window.documents[1]", 9),
        (r#"{"$sum": 1, "window": {"documents": [1, 0]}}"#, ".window.documents", 5_339_900),
        (r#"{"$sum": 1, "window": {"documents": ["current", -1]}}"#, ".window.documents", 5_339_900),
        (r#"{"$sum": 1, "window": {"range": [1, 0]}}"#, ".window.range", 5_339_900),
        (r#"{"$sum": 1, "window": {"range": [0, true]}}"#, ".window.range[1]", 9),
        (r#"{"$sum": 1, "window": {"range": [0, 1.5], "unit": "day"}}"#, ".window.range[1]", 9),
        (r#"{"$sum": 1, "window": {"range": [0, 1], "unit": "dayz"}}"#, ".window.unit", 9),
        (r#"{"$sum": 1, "window": {"range": [0, 1], "unit": 1}}"#, ".window.unit", 9),
        (r#"{"$rank": 1}"#, ".$rank", 5_371_603),
        (r#"{"$rank": {}, "window": {}}"#, ".$rank", 5_371_601),
        (r#"{"$shift": 1}"#, ".$shift", 9),
        (r#"{"$shift": {"by": 1}}"#, ".$shift", 9),
        (r#"{"$shift": {"output": 1}}"#, ".$shift", 9),
        (r#"{"$shift": {"output": 1, "by": 1.5}}"#, ".$shift.by", 9),
        (r#"{"$shift": {"output": 1, "by": 1, "default": "$a"}}"#, ".$shift.default", 9),
        (r#"{"$shift": {"output": 1, "by": 1, "x": 1}}"#, ".$shift.x", 9),
        (r#"{"$derivative": {"input": 1}}"#, ".$derivative", 9),
        (r#"{"$derivative": {"input": 1, "unit": "month"}, "window": {}}"#, ".$derivative.unit", 5_490_710),
        (r#"{"$integral": {}}"#, ".$integral", 9),
        (r#"{"$integral": {"x": 1}}"#, ".$integral.x", 9),
        (r#"{"$expMovingAvg": {"input": 1}}"#, ".$expMovingAvg", 9),
        (r#"{"$expMovingAvg": {"input": 1, "N": 0}}"#, ".$expMovingAvg.N", 9),
        (r#"{"$expMovingAvg": {"input": 1, "alpha": 1}}"#, ".$expMovingAvg.alpha", 9),
        (r#"{"$locf": "$a", "window": {}}"#, ".$locf", 9),
        (r#"{"$firstN": {"n": 0, "input": 1}}"#, ".$firstN.n", 5_787_908),
        (r#"{"$firstN": {"n": "$a", "input": 1}}"#, ".$firstN", 5_787_902),
    ] {
        let spec = format!(r#"{{"sortBy": {{"x": 1}}, "output": {{"r": {function}}}}}"#);
        let place = format!("pipeline[0].$setWindowFields.output.r{place}");
        check_error(&format!("[{{\"$setWindowFields\": {spec}}}]"), &[], &place, code);
    }
    for (function, place, code) in [
        (r#"{"$sum": 1, "window": {"documents": [0, 1]}}"#, ".window.documents", 5_339_901),
        (r#"{"$sum": 1, "window": {"range": [0, 1]}}"#, ".window.range", 5_339_902),
        (r#"{"$rank": {}}"#, ".$rank", 5_371_602),
        (r#"{"$shift": {"output": 1, "by": 1}}"#, ".$shift", 9),
        (r#"{"$derivative": {"input": 1}, "window": {}}"#, ".$derivative", 9),
        (r#"{"$expMovingAvg": {"input": 1, "N": 1}}"#, ".$expMovingAvg", 9),
        (r#"{"$linearFill": "$a"}"#, ".$linearFill", 605_001),
    ] {
        let spec = format!(r#"{{"output": {{"r": {function}}}}}"#);
        let place = format!("pipeline[0].$setWindowFields.output.r{place}");
        check_error(&format!("[{{\"$setWindowFields\": {spec}}}]"), &[], &place, code);
    }
    let descending =
        r#"[{"$setWindowFields": {"sortBy": {"x": -1}, "output": {"r": {"$sum": 1, "window": {"range": [0, 1]}}}}}]"#;
    check_error(descending, &[], "pipeline[0].$setWindowFields.output.r.window.range", 8_947_401);
}

#[test]
fn errors_on_documents_have_a_number() {
    for (output, document, code) in [
        (r#"{"$sum": 1, "window": {"range": [0, 1]}}"#, r#"{"x": "a"}"#, 5_429_414),
        (r#"{"$sum": 1, "window": {"range": [0, 1]}}"#, r#"{"x": {"$date": "2020-01-01T00:00:00Z"}}"#, 5_429_413),
        (r#"{"$sum": 1, "window": {"range": [0, 1], "unit": "day"}}"#, r#"{"x": 1}"#, 5_429_513),
        (r#"{"$derivative": {"input": "$y"}, "window": {}}"#, r#"{"x": {"$date": "2020-01-01T00:00:00Z"}}"#, 5_624_901),
        (r#"{"$derivative": {"input": "$y", "unit": "day"}, "window": {}}"#, r#"{"x": 1}"#, 5_624_900),
        (r#"{"$derivative": {"input": "$y"}, "window": {}}"#, r#"{"x": "a"}"#, 5_624_902),
        (r#"{"$derivative": {"input": "$y"}, "window": {}}"#, r#"{"x": 1}"#, 5_624_903),
        (r#"{"$integral": {"input": "$y"}}"#, r#"{"x": 1}"#, 5_423_900),
        (r#"{"$integral": {"input": "$y", "unit": "day"}}"#, r#"{"x": 1, "y": 1}"#, 5_423_901),
        (r#"{"$integral": {"input": "$y"}}"#, r#"{"x": {"$date": "2020-01-01T00:00:00Z"}, "y": 1}"#, 5_423_902),
        (r#"{"$linearFill": "$y"}"#, r#"{"x": 1, "y": "a"}"#, 14),
        (r#"{"$linearFill": "$y"}"#, r#"{"x": "a", "y": 1}"#, 14),
    ] {
        let stage = format!(r#"[{{"$setWindowFields": {{"sortBy": {{"x": 1}}, "output": {{"r": {output}}}}}}}]"#);
        check_error(&stage, &[document], "", code);
    }
    let repeated = r#"[{"$setWindowFields": {"sortBy": {"x": 1}, "output": {"r": {"$linearFill": "$y"}}}}]"#;
    check_error(repeated, &[r#"{"x": 1}"#, r#"{"x": 1.0}"#], "", 6_050_106);
    check_error(r#"[{"$setWindowFields": {"partitionBy": "$p", "output": {}}}]"#, &[r#"{"p": [1]}"#], "", 14);
}
