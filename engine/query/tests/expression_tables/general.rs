//! Comparison, boolean and conditional operators, objects, variables, literals, conversion, limits.

use crate::check;

#[test]
fn all_types_compare_and_missing_is_below_null() {
    check(&[
        (r#"{"$eq": ["$a", null]}"#, "{}", "false"),
        (r#"{"$eq": ["$a", null]}"#, r#"{"a": null}"#, "true"),
        (r#"{"$lt": ["$a", null]}"#, "{}", "true"),
        (r#"{"$eq": [1, 1.0]}"#, "{}", "true"),
        (r#"{"$gt": ["a", 1]}"#, "{}", "true"),
        (r#"{"$cmp": [2, 10]}"#, "{}", "-1"),
        (r#"{"$cmp": [[1, 2], [1, 3]]}"#, "{}", "-1"),
        (r#"{"$eq": [{"a": 1, "b": 2}, {"b": 2, "a": 1}]}"#, "{}", "false"),
        (r#"{"$eq": ["$a", 9007199254740992.0]}"#, r#"{"a": {"$numberLong": "9007199254740993"}}"#, "false"),
        (r#"{"$ne": ["$a", "$b"]}"#, "{}", "false"),
        (r#"{"$gte": [3]}"#, "{}", "error 16020"),
    ]);
}

#[test]
fn truth_is_all_but_false_null_missing_and_zero() {
    check(&[
        (r#"{"$and": []}"#, "{}", "true"),
        (r#"{"$or": []}"#, "{}", "false"),
        (r#"{"$and": [1, "x", [false]]}"#, "{}", "true"),
        (r#"{"$and": [1, "$a"]}"#, "{}", "false"),
        (r#"{"$or": [0, null, "$a", {"$numberDecimal": "0"}]}"#, "{}", "false"),
        (r#"{"$not": [0]}"#, "{}", "true"),
        (r#"{"$not": [[0]]}"#, "{}", "false"),
        (r#"{"$and": ["$a", {"$divide": [1, "$b"]}]}"#, r#"{"a": false, "b": 0}"#, "false"),
        (r#"{"$or": ["$a", {"$divide": [1, "$b"]}]}"#, r#"{"a": true, "b": 0}"#, "true"),
    ]);
}

#[test]
fn conditions_choose_and_evaluate_one_branch() {
    check(&[
        (r#"{"$cond": [{"$gte": ["$q", 250]}, 30, 20]}"#, r#"{"q": 300}"#, "30"),
        (r#"{"$cond": {"if": "$q", "then": 1, "else": {"$divide": [1, "$z"]}}}"#, r#"{"q": 1, "z": 0}"#, "1"),
        (r#"{"$cond": {"if": 1, "then": 2}}"#, "{}", "error 17082"),
        (r#"{"$cond": [1, 2]}"#, "{}", "error 16020"),
        (r#"{"$ifNull": ["$a", "$b", 7]}"#, r#"{"b": null}"#, "7"),
        (r#"{"$ifNull": ["$a", "$b"]}"#, "{}", "missing"),
        (r#"{"$ifNull": ["$a"]}"#, "{}", "error 1257300"),
        (
            r#"{"$switch": {"branches": [{"case": {"$eq": ["$a", 1]}, "then": "one"}], "default": "other"}}"#,
            r#"{"a": 2}"#,
            r#""other""#,
        ),
        (r#"{"$switch": {"branches": [{"case": {"$eq": ["$a", 1]}, "then": "one"}]}}"#, r#"{"a": 2}"#, "error 40066"),
        (r#"{"$switch": {"branches": []}}"#, "{}", "error 40068"),
        (r#"{"$switch": {"branches": [{"case": 1}]}}"#, "{}", "error 40065"),
        (r#"{"$switch": {"branches": [{"case": 1, "then": 2}], "x": 1}}"#, "{}", "error 40067"),
    ]);
}

#[test]
fn paths_go_through_objects_and_collect_from_arrays() {
    check(&[
        (r#""$a.b""#, r#"{"a": {"b": 1}}"#, "1"),
        (r#""$a.b""#, r#"{"a": [{"b": 1}, {"c": 2}, 5, {"b": [3]}]}"#, "[1, [3]]"),
        (r#""$a.b""#, r#"{"a": 5}"#, "missing"),
        (r#""$a.0""#, r#"{"a": [1, 2]}"#, "[]"),
        (r#""$a.b.c""#, r#"{"a": [{"b": [{"c": 1}, {"c": 2}]}, {"b": {"c": 3}}]}"#, "[[1, 2], 3]"),
        (r#""$$ROOT.a""#, r#"{"a": 1}"#, "1"),
        (r#""$$CURRENT.a""#, r#"{"a": 1}"#, "1"),
        (r#""$$NOW""#, "{}", r#"{"$date": {"$numberLong": "1767323045678"}}"#),
        (r#""$$REMOVE""#, "{}", "missing"),
        (r#"["$a", "$$REMOVE", 1]"#, "{}", "[null, null, 1]"),
        (r#"{"x": "$a", "y": "$b"}"#, r#"{"b": 1}"#, r#"{"y": 1}"#),
        (r#""$$none""#, "{}", "error 17276"),
        (r#""$""#, "{}", "error 16872"),
        (r#""$a..b""#, "{}", "error 15998"),
        (r#""$a.""#, "{}", "error 40353"),
        (r#""$a.$b""#, "{}", "error 16410"),
        (r#"{"$nope": 1}"#, "{}", "error 168"),
        (r#"{"$add": [1], "b": 1}"#, "{}", "error 15983"),
        (r#"{"a.b": 1}"#, "{}", "error 16412"),
        (r#"{"$literal": "$a"}"#, r#"{"a": 1}"#, r#""$a""#),
        (r#"{"$literal": {"$add": [1, 2]}}"#, "{}", r#"{"$add": [1, 2]}"#),
    ]);
}

#[test]
fn variables_are_bound_inside_and_not_outside() {
    check(&[
        (
            r#"{"$let": {"vars": {"x": {"$add": ["$a", 1]}, "y": 2}, "in": {"$multiply": ["$$x", "$$y"]}}}"#,
            r#"{"a": 3}"#,
            "8",
        ),
        (
            r#"{"$let": {"vars": {"x": 1}, "in": {"$let": {"vars": {"x": 2, "y": "$$x"}, "in": ["$$x", "$$y"]}}}}"#,
            "{}",
            "[2, 1]",
        ),
        (r#"{"$let": {"vars": {"CURRENT": "$a"}, "in": "$b"}}"#, r#"{"a": {"b": 5}, "b": 6}"#, "5"),
        (r#"{"$let": {"vars": {"x": "$a"}, "in": "$$x.b"}}"#, r#"{"a": {"b": 5}}"#, "5"),
        (r#"{"$let": {"vars": {"X": 1}, "in": 1}}"#, "{}", "error 9"),
        (r#"{"$let": {"vars": {"x": 1}}}"#, "{}", "error 16877"),
        (r#"{"$let": {"in": 1}}"#, "{}", "error 16876"),
        (r#"{"$let": {"vars": {}, "in": 1, "z": 1}}"#, "{}", "error 16875"),
        (r#"{"$add": [{"$let": {"vars": {"x": 1}, "in": "$$x"}}, "$$x"]}"#, "{}", "error 17276"),
    ]);
}

#[test]
fn objects_merge_and_turn_into_arrays() {
    check(&[
        (r#"{"$mergeObjects": ["$a", null, {"b": 2}]}"#, r#"{"a": {"b": 1, "c": 3}}"#, r#"{"b": 2, "c": 3}"#),
        (r#"{"$mergeObjects": "$a"}"#, r#"{"a": [{"x": 1}, {"y": 2}]}"#, r#"{"x": 1, "y": 2}"#),
        (r#"{"$mergeObjects": ["$missing", null]}"#, "{}", "{}"),
        (r#"{"$mergeObjects": [5]}"#, "{}", "error 40400"),
        (
            r#"{"$objectToArray": "$a"}"#,
            r#"{"a": {"x": 1, "y": [2]}}"#,
            r#"[{"k": "x", "v": 1}, {"k": "y", "v": [2]}]"#,
        ),
        (r#"{"$objectToArray": "$a"}"#, r#"{"a": 5}"#, "error 40390"),
        (r#"{"$objectToArray": null}"#, "{}", "null"),
        (r#"{"$arrayToObject": [[["a", 1], ["b", 2], ["a", 3]]]}"#, "{}", r#"{"a": 3, "b": 2}"#),
        (r#"{"$arrayToObject": "$a"}"#, r#"{"a": [{"k": "x", "v": 1}]}"#, r#"{"x": 1}"#),
        (r#"{"$arrayToObject": "$a"}"#, r#"{"a": [{"k": "x", "v": 1, "z": 2}]}"#, "error 40392"),
        (r#"{"$arrayToObject": "$a"}"#, r#"{"a": [{"k": 5, "v": 1}]}"#, "error 40394"),
        (r#"{"$arrayToObject": "$a"}"#, r#"{"a": [["x"]]}"#, "error 40397"),
        (r#"{"$arrayToObject": "$a"}"#, r#"{"a": [5]}"#, "error 40398"),
        (r#"{"$arrayToObject": "$a"}"#, r#"{"a": 5}"#, "error 40386"),
        (r#"{"$getField": {"field": "a.b", "input": "$o"}}"#, r#"{"o": {"a.b": 7}}"#, "7"),
        (r#"{"$getField": {"$literal": "$x"}}"#, r#"{"$x": 7}"#, "7"),
        (r#"{"$getField": "none"}"#, "{}", "missing"),
        (r#"{"$setField": {"field": "a.b", "input": "$$ROOT", "value": 1}}"#, r#"{"c": 1}"#, r#"{"c": 1, "a.b": 1}"#),
        (
            r#"{"$setField": {"field": "c", "input": "$$ROOT", "value": "$$REMOVE"}}"#,
            r#"{"c": 1, "d": 2}"#,
            r#"{"d": 2}"#,
        ),
        (r#"{"$setField": {"field": "c", "input": 5, "value": 1}}"#, "{}", "error 4161105"),
        (r#"{"$unsetField": {"field": "c", "input": "$$ROOT"}}"#, r#"{"c": 1, "d": 2}"#, r#"{"d": 2}"#),
    ]);
}

#[test]
fn conversion_is_exact_or_fails() {
    check(&[
        (r#"{"$toInt": 5.9}"#, "{}", "5"),
        (r#"{"$toInt": "-42"}"#, "{}", "-42"),
        (r#"{"$toInt": "5.5"}"#, "{}", "error 241"),
        (r#"{"$toInt": "$a"}"#, r#"{"a": 2147483648}"#, "error 241"),
        (r#"{"$toInt": true}"#, "{}", "1"),
        (r#"{"$toInt": {"$numberDouble": "NaN"}}"#, "{}", "error 241"),
        (r#"{"$toInt": null}"#, "{}", "null"),
        (r#"{"$toInt": "$missing"}"#, "{}", "null"),
        (r#"{"$toInt": [[1]]}"#, "{}", "error 241"),
        (r#"{"$toLong": "9223372036854775807"}"#, "{}", r#"{"$numberLong": "9223372036854775807"}"#),
        (r#"{"$toLong": {"$date": "1970-01-01T00:00:01Z"}}"#, "{}", r#"{"$numberLong": "1000"}"#),
        (r#"{"$toDouble": "2.5"}"#, "{}", "2.5"),
        (r#"{"$toDouble": "abc"}"#, "{}", "error 241"),
        (r#"{"$toDecimal": 2.5}"#, "{}", r#"{"$numberDecimal": "2.50000000000000"}"#),
        (r#"{"$toDecimal": "1.10"}"#, "{}", r#"{"$numberDecimal": "1.10"}"#),
        (r#"{"$toString": 2.5}"#, "{}", r#""2.5""#),
        (r#"{"$toString": 1e100}"#, "{}", r#""1e+100""#),
        (r#"{"$toString": 3.0}"#, "{}", r#""3""#),
        (r#"{"$toString": {"$oid": "5ab9c3da31c2ab715d421285"}}"#, "{}", r#""5ab9c3da31c2ab715d421285""#),
        (r#"{"$toString": {"$date": "2018-03-27T16:58:51.538Z"}}"#, "{}", r#""2018-03-27T16:58:51.538Z""#),
        (r#"{"$toString": true}"#, "{}", r#""true""#),
        (r#"{"$toString": [[1]]}"#, "{}", "error 241"),
        (r#"{"$toObjectId": "5ab9cbfa31c2ab715d42129e"}"#, "{}", r#"{"$oid": "5ab9cbfa31c2ab715d42129e"}"#),
        (r#"{"$toObjectId": "5ab9"}"#, "{}", "error 241"),
        (r#"{"$toDate": "2018-03-20"}"#, "{}", r#"{"$date": "2018-03-20T00:00:00Z"}"#),
        (r#"{"$toDate": {"$oid": "5ab9c3da31c2ab715d421285"}}"#, "{}", r#"{"$date": "2018-03-27T04:08:58Z"}"#),
        (r#"{"$toDate": 120000000000.5}"#, "{}", r#"{"$date": "1973-10-20T21:20:00Z"}"#),
        (r#"{"$toDate": "Friday"}"#, "{}", "error 241"),
        (r#"{"$toBool": "false"}"#, "{}", "true"),
        (r#"{"$toBool": 0}"#, "{}", "false"),
        (r#"{"$toBool": [[]]}"#, "{}", "true"),
        (r#"{"$convert": {"input": "x", "to": "int", "onError": "bad", "onNull": 0}}"#, "{}", r#""bad""#),
        (r#"{"$convert": {"input": null, "to": "int", "onError": "bad", "onNull": 0}}"#, "{}", "0"),
        (r#"{"$convert": {"input": "7", "to": 16}}"#, "{}", "7"),
        (r#"{"$convert": {"input": "7", "to": "nope"}}"#, "{}", "error 2"),
        (r#"{"$convert": {"input": 1}}"#, "{}", "error 9"),
        (
            r#"{"$toUUID": "0e3b9063-8abd-4eb3-9f9f-f4c59fd30a60"}"#,
            "{}",
            r#"{"$binary": {"base64": "DjuQY4q9TrOfn/TFn9MKYA==", "subType": "04"}}"#,
        ),
        (r#"{"$type": "$a"}"#, r#"{"a": 5}"#, r#""int""#),
        (r#"{"$type": "$a"}"#, "{}", r#""missing""#),
        (r#"{"$isNumber": "$a"}"#, r#"{"a": {"$numberDecimal": "1"}}"#, "true"),
        (r#"{"$bsonSize": "$$ROOT"}"#, r#"{"a": 1}"#, "12"),
        (r#"{"$binarySize": "e\u00e9"}"#, "{}", "3"),
        (r#"{"$binarySize": 5}"#, "{}", "error 51276"),
    ]);
}

#[test]
fn what_grows_without_end_stops_at_the_budget() {
    check(&[
        (r#"{"$size": {"$range": [0, 2147483647]}}"#, "{}", "error 146"),
        (
            r#"{"$reduce": {"input": {"$range": [0, 100]}, "initialValue": [1], "in": {"$concatArrays": ["$$value", "$$value"]}}}"#,
            "{}",
            "error 146",
        ),
        (
            r#"{"$reduce": {"input": {"$range": [0, 100]}, "initialValue": "x", "in": {"$concat": ["$$value", "$$value"]}}}"#,
            "{}",
            "error 146",
        ),
        (
            r#"{"$reduce": {"input": {"$range": [0, 100]}, "initialValue": 1, "in": ["$$value", "$$value"]}}"#,
            "{}",
            "error 146",
        ),
        (r#"{"$reduce": {"input": {"$range": [0, 100000]}, "initialValue": 1, "in": ["$$value"]}}"#, "{}", "error 15"),
        (
            r#"{"$map": {"input": {"$range": [0, 100000]}, "in": {"$size": {"$map": {"input": {"$range": [0, 100000]}, "in": 1}}}}}"#,
            "{}",
            "error 146",
        ),
        (
            r#"{"$size": {"$reduce": {"input": {"$range": [0, 1000]}, "initialValue": [], "in": {"$concatArrays": ["$$value", ["$$this"]]}}}}"#,
            "{}",
            "1000",
        ),
    ]);
}

/// The first three are MongoDB's own; the rest follows from its rules by another program (an MD5 over BSON bytes).
#[test]
fn hashed_index_keys_are_mongodbs() {
    let long = |n: i64| format!(r#"{{"$numberLong": "{n}"}}"#);
    let rows = [
        (r#""string to hash""#, 763_543_691_661_428_748),
        (r#""hello""#, 5_347_277_839_332_858_538),
        ("null", 2_338_878_944_348_059_895),
        (r#""$none""#, 2_338_878_944_348_059_895),
        ("5", 4_470_791_281_878_691_347),
        (r#"{"$numberLong": "5"}"#, 4_470_791_281_878_691_347),
        ("5.9", 4_470_791_281_878_691_347),
        (r#"{"$numberDecimal": "5"}"#, 4_470_791_281_878_691_347),
        ("true", 6_405_873_908_747_105_701),
        (r#"{"a": 1, "b": "x"}"#, -9_120_163_015_462_966_597),
        (r#"{"$literal": [1, null]}"#, -1_930_180_418_464_020_460),
        ("9223372036854775808.0", 4_532_067_210_535_695_462),
        (r#"{"$numberDouble": "NaN"}"#, 4_854_801_880_128_277_513),
        (r#"{"$numberDouble": "Infinity"}"#, 921_523_596_458_303_250),
        (r#"{"$binary": {"base64": "AQI=", "subType": "00"}}"#, -265_437_425_692_199_210),
        (r#"{"$timestamp": {"t": 7, "i": 2}}"#, -3_428_183_824_329_727_084),
        (r#"{"$regularExpression": {"pattern": "a", "options": "i"}}"#, -1_736_204_118_293_582_337),
        (r#"{"$minKey": 1}"#, 7_961_148_599_568_647_290),
        (r#"{"$date": "1970-01-01T00:00:01Z"}"#, -5_436_004_055_469_504_372),
        (r#"{"$numberDecimal": "2.5"}"#, 848_411_777_775_835_583),
    ];
    let rows: Vec<_> = rows.iter().map(|(v, n)| (format!(r#"{{"$toHashedIndexKey": {v}}}"#), long(*n))).collect();
    check(&rows.iter().map(|(e, n)| (&**e, "{}", &**n)).collect::<Vec<_>>());
}

#[test]
fn new_object_ids_differ_and_tell_the_time() {
    check(&[
        // The operation's time is 2026-01-02T03:04:05.678Z.
        (r#"{"$toDate": {"$createObjectId": {}}}"#, "{}", r#"{"$date": "2026-01-02T03:04:05Z"}"#),
        (r#"{"$eq": [{"$createObjectId": {}}, {"$createObjectId": {}}]}"#, "{}", "false"),
        (
            r#"{"$size": {"$setUnion": [{"$map": {"input": {"$range": [0, 500]}, "in": {"$createObjectId": {}}}}]}}"#,
            "{}",
            "500",
        ),
        (r#"{"$createObjectId": {"a": 1}}"#, "{}", "error 9"),
        (r#"{"$createObjectId": 1}"#, "{}", "error 9"),
    ]);
}

#[test]
fn the_sigmoid_goes_from_nothing_to_one() {
    check(&[
        (r#"{"$sigmoid": 0}"#, "{}", "0.5"),
        (r#"{"$sigmoid": "$x"}"#, r#"{"x": 1}"#, "0.7310585786300049"),
        (r#"{"$sigmoid": ["$x"]}"#, r#"{"x": -1000}"#, "0.0"),
        (r#"{"$sigmoid": "$x"}"#, r#"{"x": 1000}"#, "1.0"),
        (r#"{"$sigmoid": "$x"}"#, r#"{"x": {"$numberDouble": "NaN"}}"#, r#"{"$numberDouble": "NaN"}"#),
        (r#"{"$sigmoid": "$x"}"#, r#"{"x": {"$numberDecimal": "0"}}"#, r#"{"$numberDecimal": "0.5"}"#),
        (r#"{"$sigmoid": "$x"}"#, r#"{"x": null}"#, "null"),
        (r#"{"$sigmoid": "$x"}"#, "{}", "null"),
        (r#"{"$sigmoid": "$x"}"#, r#"{"x": "1"}"#, "error 14"),
        (r#"{"$sigmoid": [1, 2]}"#, "{}", "error 16020"),
    ]);
}

#[test]
fn numbers_stand_as_binary_data_in_both_orders() {
    let to = |input: &str, order: &str| format!(r#"{{"$convert": {{"input": {input}, "to": "binData"{order}}}}}"#);
    let from = |base64: &str, kind: &str, order: &str| {
        let data = format!(r#"{{"$binary": {{"base64": "{base64}", "subType": "00"}}}}"#);
        format!(r#"{{"$convert": {{"input": {data}, "to": "{kind}"{order}}}}}"#)
    };
    let binary = |base64: &str| format!(r#"{{"$binary": {{"base64": "{base64}", "subType": "00"}}}}"#);
    const BIG: &str = r#", "byteOrder": "big""#;
    const LITTLE: &str = r#", "byteOrder": "little""#;
    let rows = [
        (to("258", ""), binary("AgEAAA==")),
        (to("258", LITTLE), binary("AgEAAA==")),
        (to("258", BIG), binary("AAABAg==")),
        (to(r#"{"$numberLong": "258"}"#, BIG), binary("AAAAAAAAAQI=")),
        (to("1.0", BIG), binary("P/AAAAAAAAA=")),
        (from("AgEAAA==", "int", ""), "258".to_owned()),
        (from("AAABAg==", "int", BIG), "258".to_owned()),
        (from("/w==", "int", ""), "-1".to_owned()),
        (from("/v8=", "int", LITTLE), "-2".to_owned()),
        (from("AAAAAAAAAQI=", "int", BIG), "error 241".to_owned()),
        (from("AAAAAAAAAQI=", "long", BIG), r#"{"$numberLong": "258"}"#.to_owned()),
        (from("/w==", "long", BIG), r#"{"$numberLong": "-1"}"#.to_owned()),
        (from("AAEC", "long", BIG), "error 241".to_owned()),
        (from("P/AAAAAAAAA=", "double", BIG), "1.0".to_owned()),
        (from("AACAPw==", "double", LITTLE), "1.0".to_owned()),
        (from("AAE=", "double", BIG), "error 241".to_owned()),
        (to(r#"{"$numberDecimal": "1"}"#, BIG), "error 241".to_owned()),
    ];
    check(&rows.iter().map(|(e, v)| (&**e, "{}", &**v)).collect::<Vec<_>>());
}

#[test]
fn texts_mean_doubles_as_mongodb_reads_them() {
    check(&[
        (r#"{"$toDouble": "0"}"#, "{}", "0.0"),
        (r#"{"$toDouble": "+1"}"#, "{}", "1.0"),
        (r#"{"$toDouble": ".5"}"#, "{}", "0.5"),
        (r#"{"$toDouble": "5."}"#, "{}", "5.0"),
        (r#"{"$toDouble": "-0"}"#, "{}", "-0.0"),
        (r#"{"$toDouble": "1e10"}"#, "{}", "1e10"),
        (r#"{"$toDouble": "1.5e-3"}"#, "{}", "0.0015"),
        (r#"{"$toDouble": "1E10"}"#, "{}", "1e10"),
        (r#"{"$toDouble": "Infinity"}"#, "{}", r#"{"$numberDouble": "Infinity"}"#),
        (r#"{"$toDouble": "-Infinity"}"#, "{}", r#"{"$numberDouble": "-Infinity"}"#),
        (r#"{"$toDouble": "+Infinity"}"#, "{}", r#"{"$numberDouble": "Infinity"}"#),
        (r#"{"$toDouble": "inf"}"#, "{}", r#"{"$numberDouble": "Infinity"}"#),
        (r#"{"$toDouble": "-inf"}"#, "{}", r#"{"$numberDouble": "-Infinity"}"#),
        (r#"{"$toDouble": "+0x0p0"}"#, "{}", "0.0"),
        (r#"{"$toDouble": "+0x1p0"}"#, "{}", "1.0"),
        (r#"{"$toDouble": "+0x1p1"}"#, "{}", "2.0"),
        (r#"{"$toDouble": "+0x1p-1"}"#, "{}", "0.5"),
        (r#"{"$toDouble": "+0x1.8p1"}"#, "{}", "3.0"),
        (r#"{"$toDouble": "-0x1p0"}"#, "{}", "-1.0"),
        (r#"{"$toDouble": "0X1P0"}"#, "{}", "1.0"),
        (r#"{"$toDouble": "+0xffp0"}"#, "{}", "255.0"),
        (r#"{"$toDouble": "+0x1"}"#, "{}", "1.0"),
        (r#"{"$toDouble": "+0xff"}"#, "{}", "255.0"),
        (r#"{"$toDouble": "+0x1p-1074"}"#, "{}", "5e-324"),
        (r#"{"$toDouble": "0x"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "0x1p"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "0x1"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "0xp0"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "0x.p0"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "+0x.p0"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "+0x1p5000"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "abc"}"#, "{}", "error 241"),
        (r#"{"$toDouble": ""}"#, "{}", "error 241"),
        (r#"{"$toDouble": " 1"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "1 "}"#, "{}", "error 241"),
        (r#"{"$toDouble": "1 2"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "1e309"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "1e-400"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "1.5e"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "0e-400"}"#, "{}", "0.0"),
        (r#"{"$toDouble": "--1"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "1_0"}"#, "{}", "error 241"),
        (r#"{"$toDouble": "e5"}"#, "{}", "error 241"),
    ]);
}

#[test]
fn binary_data_counts_as_it_stands_in_bson() {
    let of = |base64: &str, subtype: &str| {
        format!(r#"{{"$toInt": {{"$binary": {{"base64": "{base64}", "subType": "{subtype}"}}}}}}"#)
    };
    let rows = [
        (of("fw==", "00"), "127"),
        (of("gA==", "00"), "-128"),
        (of("/38=", "00"), "32767"),
        (of("AAAAgA==", "00"), "-2147483648"),
        (of("fw==", "03"), "127"),
        (of("fw==", "80"), "127"),
        // The old subtype has its length before its bytes.
        (of("", "02"), "0"),
        (of("fw==", "02"), "error 241"),
        (of("", "00"), "error 241"),
        (of("AAAA", "00"), "error 241"),
    ];
    check(&rows.iter().map(|(e, v)| (&**e, "{}", *v)).collect::<Vec<_>>());
}
