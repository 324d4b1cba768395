//! `$group`: which documents are one group, in which order groups come, and that memory changes nothing.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::JsonbBuf;
use quarrydb_query::ParseContext;
use quarrydb_query::expr::Budget;
use quarrydb_query::pipeline::{Flow, Group, GroupTable};
use std::sync::Arc;

#[path = "support/spilling_host.rs"]
mod spilling_host;

use spilling_host::{SpillingHost, check, json, run, text};

#[test]
fn equal_ids_are_one_group_in_the_order_of_their_first() {
    // Numbers of all types by value, and the first is shown; null and missing; objects by their fields in order; arrays as
    // they are.
    check(
        r#"[{"$group": {"_id": "$k", "n": {"$count": {}}}}]"#,
        &[
            r#"{"k": "b"}"#,
            r#"{"k": 1}"#,
            r#"{"k": null}"#,
            r#"{"k": {"$numberDecimal": "1.0"}}"#,
            r#"{"k": 1.0}"#,
            "{}",
            r#"{"k": "b"}"#,
            r#"{"k": [1, 2]}"#,
            r#"{"k": {"a": 1, "b": 2}}"#,
            r#"{"k": {"b": 2, "a": 1}}"#,
            r#"{"k": [1.0, 2]}"#,
            r#"{"k": {"$numberDouble": "-0.0"}}"#,
            r#"{"k": 0}"#,
            r#"{"k": {"$numberDouble": "NaN"}}"#,
            r#"{"k": {"$numberDecimal": "NaN"}}"#,
        ],
        &[
            r#"{"_id": "b", "n": 2}"#,
            r#"{"_id": 1, "n": 3}"#,
            r#"{"_id": null, "n": 2}"#,
            r#"{"_id": [1, 2], "n": 2}"#,
            r#"{"_id": {"a": 1, "b": 2}, "n": 1}"#,
            r#"{"_id": {"b": 2, "a": 1}, "n": 1}"#,
            r#"{"_id": {"$numberDouble": "-0.0"}, "n": 2}"#,
            r#"{"_id": {"$numberDouble": "NaN"}, "n": 2}"#,
        ],
    );
    check(
        r#"[{"$group": {"_id": {"x": "$a", "y": {"$add": ["$b", 1]}}, "sum": {"$sum": "$n"}}}]"#,
        &[r#"{"a": 1, "b": 1, "n": 5}"#, r#"{"b": 1, "n": 6}"#, r#"{"a": 1, "b": 1, "n": 7}"#],
        &[r#"{"_id": {"x": 1, "y": 2}, "sum": 12}"#, r#"{"_id": {"y": 2}, "sum": 6}"#],
    );
    // An object of one field is grouped by like the field alone, as MongoDB does; one of more tells null from missing.
    check(
        r#"[{"$group": {"_id": {"p": "$g.p"}, "n": {"$sum": 1}}}]"#,
        &[r#"{"g": {"p": "S"}}"#, "{}", r#"{"g": null}"#, r#"{"g": {}}"#, r#"{"g": {"p": null}}"#],
        &[r#"{"_id": {"p": "S"}, "n": 1}"#, r#"{"_id": {"p": null}, "n": 4}"#],
    );
    check(
        r#"[{"$group": {"_id": {"a": "$a", "b": "$b"}, "n": {"$sum": 1}}}]"#,
        &["{}", r#"{"a": null}"#, "{}"],
        &[r#"{"_id": {}, "n": 2}"#, r#"{"_id": {"a": null}, "n": 1}"#],
    );
    check(r#"[{"$group": {"_id": null, "n": {"$sum": 1}}}]"#, &["{}", "{}"], &[r#"{"_id": null, "n": 2}"#]);
    // Of no documents there are no groups, as in MongoDB.
    check(r#"[{"$group": {"_id": null, "n": {"$sum": 1}}}]"#, &[], &[]);
}

const EVERYTHING: &str = r#"{
    "_id": "$k", "sum": {"$sum": "$d"}, "avg": {"$avg": "$d"}, "min": {"$min": "$m"}, "max": {"$max": "$m"},
    "count": {"$count": {}}, "first": {"$first": "$i"}, "last": {"$last": "$i"}, "push": {"$push": "$i"},
    "set": {"$addToSet": "$m"}, "objects": {"$mergeObjects": "$o"},
    "top": {"$top": {"sortBy": {"m": 1}, "output": "$i"}}, "bottom": {"$bottom": {"sortBy": {"m": 1}, "output": "$i"}},
    "topN": {"$topN": {"n": 3, "sortBy": {"m": -1}, "output": "$i"}},
    "bottomN": {"$bottomN": {"n": 3, "sortBy": {"m": -1}, "output": "$i"}},
    "firstN": {"$firstN": {"n": 2, "input": "$i"}}, "lastN": {"$lastN": {"n": 2, "input": "$i"}},
    "minN": {"$minN": {"n": 3, "input": "$m"}}, "maxN": {"$maxN": {"n": 3, "input": "$m"}},
    "median": {"$median": {"input": "$d", "method": "approximate"}},
    "percentile": {"$percentile": {"input": "$d", "p": [0.1, 0.9], "method": "approximate"}}
}"#;

/// Documents of some groups, all different, by a generator.
fn many(count: u64, groups: u64) -> Vec<JsonbBuf> {
    let mut state = 11_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    (0..count)
        .map(|i| {
            let (k, m, d) = (next() % groups, next() % 5, next() % 1000);
            let m = match m {
                0 => "null".to_owned(),
                1 => "\"text\"".to_owned(),
                m => m.to_string(),
            };
            let d = match d % 10 {
                0 => "\"none\"".to_owned(),
                1 => format!("{{\"$numberDecimal\": \"{d}.25\"}}"),
                2 => format!("{{\"$numberLong\": \"{d}\"}}"),
                _ => format!("{d}.1e{}", d % 7),
            };
            json(&format!(r#"{{"i": {i}, "k": {k}, "m": {m}, "d": {d}, "o": {{"f{}": {i}}}}}"#, i % 4))
        })
        .collect()
}

#[test]
fn groups_that_are_split_merged_or_spilled_are_those_that_were_not() {
    let documents = many(400, 30);
    let pipeline = format!("[{{\"$group\": {EVERYTHING}}}]");
    let whole = run(&pipeline, &documents, &SpillingHost::default()).unwrap();
    let whole: Vec<String> = whole.iter().map(|d| text(d.view())).collect();
    assert_eq!(whole.len(), 30);
    for bytes in [1, 5_000, 40_000] {
        let host = SpillingHost { bytes, spills: true, ..SpillingHost::default() };
        let spilled = run(&pipeline, &documents, &host).unwrap();
        assert_eq!(spilled.iter().map(|d| text(d.view())).collect::<Vec<_>>(), whole, "spilled beyond {bytes} bytes");
    }
    let spec = json(EVERYTHING);
    let group = Arc::new(Group::parse(spec.view(), &ParseContext::new("group")).unwrap());
    for size in [1, 7, 100, 399] {
        // From the left, and as a tree.
        let tables = documents.chunks(size).map(|chunk| {
            let mut table = GroupTable::new(Arc::clone(&group));
            chunk.iter().for_each(|d| table.add(d.view(), Budget::default()).unwrap());
            table
        });
        let mut tables: Vec<GroupTable> = tables.collect();
        if size == 7 {
            while tables.len() > 1 {
                let mut pairs = Vec::new();
                let mut rest = tables.into_iter();
                while let Some(mut table) = rest.next() {
                    if let Some(later) = rest.next() {
                        table.merge(later).unwrap();
                    }
                    pairs.push(table);
                }
                tables = pairs;
            }
        }
        let mut merged = GroupTable::new(Arc::clone(&group));
        tables.into_iter().for_each(|table| merged.merge(table).unwrap());
        let mut found = Vec::new();
        let mut each = |d: quarrydb_jsonb::JsonbRef<'_>| {
            found.push(text(d));
            Ok(Flow::Continue(()))
        };
        merged.finish(&SpillingHost::default(), &mut each).unwrap();
        assert_eq!(found, whole, "in parts of {size}");
    }
}

#[test]
fn too_many_groups_for_the_memory_are_an_error_where_the_disk_is_forbidden() {
    let host = SpillingHost { bytes: 5_000, spills: false, ..SpillingHost::default() };
    let error = run(r#"[{"$group": {"_id": "$i"}}]"#, &many(400, 30), &host).unwrap_err();
    assert_eq!((error.code(), error.name()), (292, "QueryExceededMemoryLimitNoDiskUseAllowed"));
}

#[test]
fn errors_have_place_and_number() {
    for (stage, place, code) in [
        ("1", "", 15947),
        ("{}", "", 15955),
        (r#"{"n": {"$sum": 1}}"#, "", 15955),
        (r#"{"_id": 1, "n": 1}"#, ".n", 40234),
        (r#"{"_id": 1, "n": {}}"#, ".n", 40234),
        (r#"{"_id": 1, "n": {"sum": 1}}"#, ".n", 40234),
        (r#"{"_id": 1, "a.b": {"$sum": 1}}"#, ".a.b", 40235),
        (r#"{"_id": 1, "$n": {"$sum": 1}}"#, ".$n", 40236),
        (r#"{"_id": 1, "n": {"$sum": [1]}}"#, ".n", 40237),
        (r#"{"_id": 1, "n": {"$sum": 1, "$avg": 1}}"#, ".n", 40238),
        (r#"{"_id": 1, "n": {"$nope": 1}}"#, ".n.$nope", 15952),
        (r#"{"_id": 1, "n": {"$accumulator": {}}}"#, ".n.$accumulator", 15952),
        (r#"{"_id": {"$nope": 1}}"#, "._id.$nope", 168),
        (r#"{"_id": {"a": "$$x"}}"#, "._id.a", 17276),
        (r#"{"_id": 1, "n": {"$sum": {"$add": "$$x"}}}"#, ".n.$sum.$add", 17276),
        (r#"{"_id": 1, "n": {"$count": 1}}"#, ".n.$count", 14),
        (r#"{"_id": 1, "n": {"$count": {"a": 1}}}"#, ".n.$count", 14),
        (r#"{"_id": 1, "n": {"$topN": 1}}"#, ".n.$topN", 5_788_001),
        (r#"{"_id": 1, "n": {"$topN": {"m": 1}}}"#, ".n.$topN.m", 5_788_002),
        (r#"{"_id": 1, "n": {"$top": {"n": 1}}}"#, ".n.$top.n", 5_788_002),
        (r#"{"_id": 1, "n": {"$topN": {"sortBy": {"a": 1}, "output": 1}}}"#, ".n.$topN", 5_788_003),
        (r#"{"_id": 1, "n": {"$bottom": {"sortBy": {"a": 1}}}}"#, ".n.$bottom", 5_788_004),
        (r#"{"_id": 1, "n": {"$bottomN": {"n": 1, "output": 1}}}"#, ".n.$bottomN", 5_788_005),
        (r#"{"_id": 1, "n": {"$top": {"sortBy": 1, "output": 1}}}"#, ".n.$top.sortBy", 5_788_604),
        (r#"{"_id": 1, "n": {"$top": {"sortBy": {"a": 2}, "output": 1}}}"#, ".n.$top.sortBy.a", 15975),
        (r#"{"_id": 1, "n": {"$firstN": 1}}"#, ".n.$firstN", 5_787_801),
        (r#"{"_id": 1, "n": {"$minN": 1}}"#, ".n.$minN", 5_787_900),
        (r#"{"_id": 1, "n": {"$maxN": {"x": 1}}}"#, ".n.$maxN.x", 5_787_901),
        (r#"{"_id": 1, "n": {"$lastN": {"input": 1}}}"#, ".n.$lastN", 5_787_906),
        (r#"{"_id": 1, "n": {"$lastN": {"n": 1}}}"#, ".n.$lastN", 5_787_907),
        (r#"{"_id": 1, "n": {"$lastN": {"n": "1", "input": 1}}}"#, ".n.$lastN.n", 5_787_902),
        (r#"{"_id": 1, "n": {"$lastN": {"n": 1.5, "input": 1}}}"#, ".n.$lastN.n", 5_787_903),
        (r#"{"_id": 1, "n": {"$lastN": {"n": 0, "input": 1}}}"#, ".n.$lastN.n", 5_787_908),
        (r#"{"_id": 1, "n": {"$median": 1}}"#, ".n.$median", 7_436_100),
        (r#"{"_id": 1, "n": {"$percentile": 1}}"#, ".n.$percentile", 7_429_703),
        (r#"{"_id": 1, "n": {"$median": {"input": 1}}}"#, ".n.$median", 40414),
        (r#"{"_id": 1, "n": {"$median": {"input": 1, "method": "approximate", "p": [1]}}}"#, ".n.$median.p", 40415),
        (r#"{"_id": 1, "n": {"$median": {"input": 1, "method": "exact"}}}"#, ".n.$median.method", 2),
        (r#"{"_id": 1, "n": {"$median": {"input": 1, "method": 1}}}"#, ".n.$median.method", 14),
        (r#"{"_id": 1, "n": {"$percentile": {"p": "$a"}}}"#, ".n.$percentile.p", 7_750_300),
        (r#"{"_id": 1, "n": {"$percentile": {"p": []}}}"#, ".n.$percentile.p", 7_750_301),
        (r#"{"_id": 1, "n": {"$percentile": {"p": 0.5}}}"#, ".n.$percentile.p", 7_750_301),
        (r#"{"_id": 1, "n": {"$percentile": {"p": ["a"]}}}"#, ".n.$percentile.p", 7_750_302),
        (r#"{"_id": 1, "n": {"$percentile": {"p": [1.5]}}}"#, ".n.$percentile.p", 7_750_303),
    ] {
        let error = run(&format!("[{{\"$group\": {stage}}}]"), &[], &SpillingHost::default()).expect_err(stage);
        assert_eq!((error.place(), error.code()), (&*format!("pipeline[0].$group{place}"), code), "{stage}: {error}");
    }
}

#[test]
fn a_stage_stops_where_its_host_wants_no_more() {
    let documents: Vec<JsonbBuf> = (0..5000).map(|i| json(&format!("{{\"i\": {i}, \"k\": {}}}", i % 7))).collect();
    for (stage, spills) in [
        (r#"{"$group": {"_id": "$i"}}"#, false),
        (r#"{"$group": {"_id": "$i"}}"#, true),
        (r#"{"$bucketAuto": {"groupBy": "$i", "buckets": 3000}}"#, false),
        (
            r#"{"$setWindowFields": {"sortBy": {"i": 1}, "output": {"n": {"$sum": "$i", "window": {"documents": [-2, 2]}}}}}"#,
            false,
        ),
        (r#"{"$setWindowFields": {"sortBy": {"i": 1}, "output": {"n": {"$push": "$i"}}}}"#, false),
        (
            r#"{"$setWindowFields": {"sortBy": {"i": 1}, "output": {"n": {"$maxN": {"n": 4000, "input": "$i"}}}}}"#,
            false,
        ),
        (r#"{"$densify": {"field": "i", "range": {"step": 3, "bounds": "full"}}}"#, false),
        (r#"{"$densify": {"field": "i", "range": {"step": 1, "bounds": [9000, 90000]}}}"#, false),
    ] {
        let pipeline = format!("[{stage}, {{\"$count\": \"n\"}}]");
        let bytes = if spills { 100_000 } else { 100 << 20 };
        let host = |patience| SpillingHost { bytes, spills, patience: std::cell::Cell::new(patience) };
        let stopped = run(&pipeline, &documents, &host(2)).expect_err(stage);
        assert_eq!((stopped.code(), stopped.name()), (50, "MaxTimeMSExpired"), "{stage}");
    }
}
