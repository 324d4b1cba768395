//! Every operator with every type in each of its places: what it takes, what null and missing give, which error the rest.
//!
//! The rules are those of MongoDB's manual ("if the argument resolves to null or is missing, returns null") and the error
//! numbers that its server documents by use. A row says where the value stands (`@`), which types are taken, what null and
//! missing give, and the error of all other types.

use crate::outcome;
use crate::type_values::{ARRAY, INTEGERS, NUMBERS, OBJECT, VALUES};

const WHOLE: &[&str] = NUMBERS;
const STRING: &[&str] = &["string"];
const DATES: &[&str] = &["date", "objectId", "timestamp"];
const TEXTUAL: &[&str] = &["string", "double", "int", "long", "decimal", "date"];

/// What null and missing give.
enum Absent {
    /// Null.
    Nothing,
    /// An error, like other types.
    Error,
    /// This.
    Value(&'static str),
}
use Absent::{Error, Nothing, Value};

type Row = (&'static str, &'static [&'static str], Absent, i32);

const ROWS: &[Row] = &[
    // Arithmetic.
    (r#"{"$add": [1, "$@"]}"#, &["double", "int", "long", "decimal", "date"], Nothing, 14),
    (r#"{"$subtract": ["$@", 1]}"#, &["double", "int", "long", "decimal", "date"], Nothing, 14),
    (r#"{"$multiply": [1, "$@"]}"#, NUMBERS, Nothing, 14),
    (r#"{"$divide": ["$@", 2]}"#, NUMBERS, Nothing, 14),
    (r#"{"$divide": [2, "$@"]}"#, NUMBERS, Nothing, 14),
    (r#"{"$mod": ["$@", 2]}"#, NUMBERS, Nothing, 16611),
    (r#"{"$mod": [2, "$@"]}"#, NUMBERS, Nothing, 16611),
    (r#"{"$abs": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$ceil": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$floor": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$sqrt": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$exp": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$ln": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$log10": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$round": ["$@"]}"#, NUMBERS, Nothing, 51081),
    (r#"{"$trunc": ["$@"]}"#, NUMBERS, Nothing, 51081),
    (r#"{"$round": [1.5, "$@"]}"#, WHOLE, Nothing, 51082),
    (r#"{"$log": ["$@", 10]}"#, NUMBERS, Nothing, 28756),
    (r#"{"$log": [10, "$@"]}"#, NUMBERS, Nothing, 28757),
    (r#"{"$pow": ["$@", 2]}"#, NUMBERS, Nothing, 28762),
    (r#"{"$pow": [2, "$@"]}"#, NUMBERS, Nothing, 28763),
    (r#"{"$sin": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$cos": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$tan": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$atan": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$sinh": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$cosh": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$tanh": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$asinh": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$acosh": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$degreesToRadians": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$radiansToDegrees": "$@"}"#, NUMBERS, Nothing, 28765),
    (r#"{"$atan2": [1, "$@"]}"#, NUMBERS, Nothing, 51044),
    (r#"{"$bitAnd": [1, "$@"]}"#, INTEGERS, Nothing, 14),
    (r#"{"$bitOr": [1, "$@"]}"#, INTEGERS, Nothing, 14),
    (r#"{"$bitXor": [1, "$@"]}"#, INTEGERS, Nothing, 14),
    (r#"{"$bitNot": "$@"}"#, INTEGERS, Nothing, 14),
    // Strings.
    (r#"{"$concat": ["x", "$@"]}"#, STRING, Nothing, 16702),
    (r#"{"$toUpper": "$@"}"#, TEXTUAL, Value(r#""""#), 16007),
    (r#"{"$toLower": "$@"}"#, TEXTUAL, Value(r#""""#), 16007),
    (r#"{"$strcasecmp": ["", "$@"]}"#, TEXTUAL, Value(r#"{"$numberInt":"0"}"#), 16007),
    (r#"{"$strLenCP": "$@"}"#, STRING, Error, 34471),
    (r#"{"$strLenBytes": "$@"}"#, STRING, Error, 34473),
    (r#"{"$substrCP": ["$@", 0, 1]}"#, TEXTUAL, Value(r#""""#), 16007),
    (r#"{"$substrBytes": ["$@", 0, 1]}"#, TEXTUAL, Value(r#""""#), 16007),
    (r#"{"$substrCP": ["abc", 0, "$@"]}"#, WHOLE, Error, 34452),
    (r#"{"$substrBytes": ["abc", "$@", 1]}"#, NUMBERS, Error, 16034),
    (r#"{"$substrBytes": ["abc", 1, "$@"]}"#, NUMBERS, Error, 16035),
    (r#"{"$indexOfCP": ["$@", "x"]}"#, STRING, Nothing, 40093),
    (r#"{"$indexOfCP": ["x", "$@"]}"#, STRING, Error, 40094),
    (r#"{"$indexOfBytes": ["$@", "x"]}"#, STRING, Nothing, 40091),
    (r#"{"$indexOfBytes": ["x", "$@"]}"#, STRING, Error, 40092),
    (r#"{"$indexOfCP": ["xxx", "x", "$@"]}"#, WHOLE, Error, 40096),
    (r#"{"$split": ["$@", "x"]}"#, STRING, Nothing, 40085),
    (r#"{"$split": ["x", "$@"]}"#, STRING, Nothing, 10503900),
    (r#"{"$trim": {"input": "$@"}}"#, STRING, Nothing, 50699),
    (r#"{"$ltrim": {"input": "$@"}}"#, STRING, Nothing, 50699),
    (r#"{"$rtrim": {"input": "x", "chars": "$@"}}"#, STRING, Nothing, 50700),
    (r#"{"$replaceOne": {"input": "$@", "find": "x", "replacement": "y"}}"#, STRING, Nothing, 10503904),
    (r#"{"$replaceAll": {"input": "x", "find": "$@", "replacement": "y"}}"#, STRING, Nothing, 10503901),
    (r#"{"$replaceAll": {"input": "x", "find": "x", "replacement": "$@"}}"#, STRING, Nothing, 10503902),
    (r#"{"$regexMatch": {"input": "$@", "regex": "x"}}"#, STRING, Value("false"), 51104),
    (r#"{"$regexFind": {"input": "$@", "regex": "x"}}"#, STRING, Nothing, 51104),
    (r#"{"$regexFindAll": {"input": "$@", "regex": "x"}}"#, STRING, Value("[]"), 51104),
    (r#"{"$regexMatch": {"input": "x", "regex": "$@"}}"#, &["string", "regex"], Value("false"), 51105),
    // Arrays and sets.
    (r#"{"$arrayElemAt": ["$@", 0]}"#, ARRAY, Nothing, 28689),
    (r#"{"$first": "$@"}"#, ARRAY, Nothing, 28689),
    (r#"{"$last": "$@"}"#, ARRAY, Nothing, 28689),
    (r#"{"$firstN": {"n": 1, "input": "$@"}}"#, ARRAY, Error, 5_788_200),
    (r#"{"$maxN": {"n": 1, "input": "$@"}}"#, ARRAY, Error, 5_788_200),
    (r#"{"$minN": {"n": "$@", "input": [1]}}"#, WHOLE, Error, 5_787_902),
    (r#"{"$concatArrays": [[1], "$@"]}"#, ARRAY, Nothing, 28664),
    (r#"{"$in": [1, "$@"]}"#, ARRAY, Error, 40081),
    (r#"{"$indexOfArray": ["$@", 1]}"#, ARRAY, Nothing, 40090),
    (r#"{"$range": ["$@", 3]}"#, WHOLE, Error, 34443),
    (r#"{"$range": [0, "$@"]}"#, WHOLE, Error, 34445),
    (r#"{"$range": [0, 3, "$@"]}"#, WHOLE, Error, 34447),
    (r#"{"$reverseArray": "$@"}"#, ARRAY, Nothing, 34435),
    (r#"{"$size": "$@"}"#, ARRAY, Error, 17124),
    (r#"{"$slice": ["$@", 1]}"#, ARRAY, Nothing, 28724),
    (r#"{"$slice": [[1], "$@"]}"#, WHOLE, Nothing, 28725),
    (r#"{"$sortArray": {"input": "$@", "sortBy": 1}}"#, ARRAY, Nothing, 2_942_504),
    (r#"{"$zip": {"inputs": ["$@", [1]]}}"#, ARRAY, Nothing, 34468),
    (r#"{"$map": {"input": "$@", "in": 1}}"#, ARRAY, Nothing, 16883),
    (r#"{"$filter": {"input": "$@", "cond": true}}"#, ARRAY, Nothing, 28651),
    (r#"{"$reduce": {"input": "$@", "initialValue": 0, "in": 1}}"#, ARRAY, Nothing, 40080),
    (r#"{"$setUnion": [[1], "$@"]}"#, ARRAY, Nothing, 17043),
    (r#"{"$setIntersection": [[1], "$@"]}"#, ARRAY, Nothing, 17047),
    (r#"{"$setDifference": ["$@", [1]]}"#, ARRAY, Nothing, 17048),
    (r#"{"$setDifference": [[1], "$@"]}"#, ARRAY, Nothing, 17049),
    (r#"{"$setEquals": [[1], "$@"]}"#, ARRAY, Error, 17044),
    (r#"{"$setIsSubset": ["$@", [1]]}"#, ARRAY, Error, 17046),
    (r#"{"$setIsSubset": [[1], "$@"]}"#, ARRAY, Error, 17042),
    (r#"{"$anyElementTrue": ["$@"]}"#, ARRAY, Error, 17041),
    (r#"{"$allElementsTrue": ["$@"]}"#, ARRAY, Error, 17040),
    // Objects.
    (r#"{"$mergeObjects": [{"a": 1}, "$@"]}"#, OBJECT, Value(r#"{"a":{"$numberInt":"1"}}"#), 40400),
    (r#"{"$objectToArray": "$@"}"#, OBJECT, Nothing, 40390),
    (r#"{"$setField": {"field": "x", "input": "$@", "value": 1}}"#, OBJECT, Nothing, 4_161_105),
    (r#"{"$bsonSize": "$@"}"#, OBJECT, Nothing, 31393),
    (r#"{"$binarySize": "$@"}"#, &["string", "binData"], Nothing, 51276),
    // Dates.
    (r#"{"$year": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$month": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$dayOfMonth": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$dayOfWeek": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$dayOfYear": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$hour": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$minute": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$second": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$millisecond": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$week": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$isoWeek": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$isoWeekYear": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$isoDayOfWeek": "$@"}"#, DATES, Nothing, 16006),
    (r#"{"$dateToParts": {"date": "$@"}}"#, DATES, Nothing, 16006),
    (r#"{"$dateToString": {"date": "$@"}}"#, DATES, Nothing, 16006),
    (r#"{"$dateAdd": {"startDate": "$@", "unit": "day", "amount": 1}}"#, DATES, Nothing, 5_166_403),
    (r#"{"$dateSubtract": {"startDate": "$@", "unit": "day", "amount": 1}}"#, DATES, Nothing, 5_166_403),
    (r#"{"$dateAdd": {"startDate": {"$date": 0}, "unit": "day", "amount": "$@"}}"#, WHOLE, Nothing, 5_166_405),
    (r#"{"$dateDiff": {"startDate": "$@", "endDate": {"$date": 0}, "unit": "day"}}"#, DATES, Nothing, 5_166_307),
    (r#"{"$dateTrunc": {"date": "$@", "unit": "day"}}"#, DATES, Nothing, 5_439_012),
    (r#"{"$dateTrunc": {"date": {"$date": 0}, "unit": "day", "binSize": "$@"}}"#, WHOLE, Nothing, 5_439_017),
    (r#"{"$dateFromParts": {"year": 2026, "month": "$@"}}"#, WHOLE, Nothing, 40515),
    (r#"{"$tsSecond": "$@"}"#, &["timestamp"], Nothing, 5_687_301),
    (r#"{"$tsIncrement": "$@"}"#, &["timestamp"], Nothing, 5_687_302),
    // Conversion.
    (r#"{"$toInt": "$@"}"#, &["double", "binData", "bool", "int", "long", "decimal"], Nothing, 241),
    (r#"{"$toLong": "$@"}"#, &["double", "binData", "bool", "int", "long", "decimal", "date"], Nothing, 241),
    (r#"{"$toDouble": "$@"}"#, &["double", "bool", "int", "long", "decimal", "date"], Nothing, 241),
    (r#"{"$toDecimal": "$@"}"#, &["double", "bool", "int", "long", "decimal", "date"], Nothing, 241),
    (
        r#"{"$toString": "$@"}"#,
        &["double", "string", "objectId", "bool", "date", "int", "long", "decimal", "binData"],
        Nothing,
        241,
    ),
    (r#"{"$toDate": "$@"}"#, &["double", "objectId", "date", "timestamp", "long", "decimal"], Nothing, 241),
    (r#"{"$toObjectId": "$@"}"#, &["objectId"], Nothing, 241),
];

#[test]
fn every_operator_takes_its_types_and_refuses_the_others() {
    let mut wrong = Vec::new();
    let mut asked = 0;
    for (template, taken, null, code) in ROWS {
        for (kind, value) in VALUES.into_iter().chain([("missing", "")]) {
            let document = if value.is_empty() { "{}".to_owned() } else { format!(r#"{{"v": {value}}}"#) };
            let found = outcome(&template.replace('@', "v"), &document);
            let nullish = matches!(kind, "null" | "missing");
            let right = if taken.contains(&kind) {
                !found.starts_with("error")
            } else {
                match null {
                    Nothing if nullish => found == "null",
                    Value(value) if nullish => found == *value,
                    _ => found == format!("error {code}"),
                }
            };
            asked += 1;
            if !right {
                wrong.push(format!("{template} with {kind} gave {found}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {asked} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(asked > 2000);
}
