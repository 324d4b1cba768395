//! Every operator with an operand of every type: taken, or refused with MongoDB's number.
//!
//! The tables say which; they are written from MongoDB's manual and its error codes.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{JsonbBuf, parse};
use quarrydb_query::{Filter, ParseContext, Sort};

/// A value of each type, the numbers whole and not negative unless they say otherwise.
const OPERANDS: &[(&str, &str)] = &[
    ("double", "2.0"),
    ("fraction", "2.5"),
    ("negative", "-2"),
    ("nan", r#"{"$numberDouble": "NaN"}"#),
    ("infinity", r#"{"$numberDouble": "Infinity"}"#),
    ("int", "2"),
    ("zero", "0"),
    ("long", r#"{"$numberLong": "2"}"#),
    ("decimal", r#"{"$numberDecimal": "2"}"#),
    ("string", r#""x""#),
    ("empty string", r#""""#),
    ("object", r#"{"b": 1}"#),
    ("empty object", "{}"),
    ("operators", r#"{"$gt": 1}"#),
    ("array", "[1, 2]"),
    ("empty array", "[]"),
    ("objects", r#"[{"b": 1}]"#),
    ("binData", r#"{"$binary": {"base64": "AQ==", "subType": "00"}}"#),
    ("objectId", r#"{"$oid": "65a1b2c3d4e5f60718293a4b"}"#),
    ("bool", "true"),
    ("date", r#"{"$date": "2024-01-01T00:00:00Z"}"#),
    ("null", "null"),
    ("regex", r#"{"$regularExpression": {"pattern": "x", "options": ""}}"#),
    ("timestamp", r#"{"$timestamp": {"t": 1, "i": 1}}"#),
    ("minKey", r#"{"$minKey": 1}"#),
    ("maxKey", r#"{"$maxKey": 1}"#),
];

const NUMBERS: &[&str] = &["double", "fraction", "negative", "nan", "infinity", "int", "zero", "long", "decimal"];
const COUNTS: &[&str] = &["double", "int", "zero", "long", "decimal"];

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The code that a filter is refused with; 0 where it is taken.
fn code(filter: &str) -> i32 {
    let error = Filter::parse(json(filter).view(), &ParseContext::new("filter")).err();
    if let Some(e) = &error {
        assert!(e.place().starts_with("filter."), "{e:?}");
    }
    error.map_or(0, |e| e.code())
}

/// Checks one operator: `taken` says of which kinds its operands may be, `refused` the code for each other.
fn check(operator: &str, template: &str, taken: &dyn Fn(&str) -> bool, refused: &dyn Fn(&str) -> i32) {
    for (kind, operand) in OPERANDS {
        let filter = template.replace('@', operator).replace('#', operand);
        let expected = if taken(kind) { 0 } else { refused(kind) };
        assert_eq!(code(&filter), expected, "{filter}");
    }
}

const BESIDE: &str = r##"{"a": {"@": #}}"##;
const AT_TOP: &str = r##"{"@": #}"##;

#[test]
fn operands_of_comparisons() {
    check("$eq", BESIDE, &|_| true, &|_| 2);
    for operator in ["$ne", "$gt", "$gte", "$lt", "$lte"] {
        check(operator, BESIDE, &|kind| kind != "regex", &|_| 2);
    }
    for operator in ["$in", "$nin", "$all"] {
        check(operator, BESIDE, &|kind| matches!(kind, "array" | "empty array" | "objects"), &|_| 2);
    }
}

#[test]
fn operands_of_logic() {
    for operator in ["$and", "$or", "$nor"] {
        check(operator, AT_TOP, &|kind| kind == "objects", &|_| 2);
        check(operator, BESIDE, &|_| false, &|_| 2);
    }
    check("$not", BESIDE, &|kind| matches!(kind, "operators" | "regex"), &|_| 2);
    check("$comment", AT_TOP, &|_| true, &|_| 2);
    check("$comment", BESIDE, &|_| true, &|_| 2);
}

#[test]
fn operands_of_elements_and_arrays() {
    check("$exists", BESIDE, &|_| true, &|_| 2);
    check("$size", BESIDE, &|kind| COUNTS.contains(&kind), &|_| 2);
    check("$elemMatch", BESIDE, &|kind| matches!(kind, "object" | "empty object" | "operators"), &|_| 2);
    // 2 is the number of string; 0 and -2 and fractions are of no type.
    let type_code = |kind: &str| match kind {
        "string" | "empty string" => 2,
        _ if NUMBERS.contains(&kind) => 2,
        "empty array" => 9,
        "objects" => 14,
        _ => 14,
    };
    check("$type", BESIDE, &|kind| matches!(kind, "double" | "int" | "long" | "decimal" | "array"), &type_code);
}

#[test]
fn operands_of_evaluation() {
    check("$mod", BESIDE, &|kind| kind == "array", &|_| 2);
    check("$regex", BESIDE, &|kind| matches!(kind, "string" | "empty string" | "regex"), &|_| 2);
    check(
        "$options",
        r##"{"a": {"$regex": "x", "@": #}}"##,
        &|kind| matches!(kind, "string" | "empty string"),
        &|kind| {
            if kind == "string" { 51108 } else { 2 }
        },
    );
    check("$jsonSchema", AT_TOP, &|kind| kind == "empty object", &|kind| match kind {
        "object" | "operators" => 9,
        _ => 14,
    });
    for operator in ["$bitsAllSet", "$bitsAllClear", "$bitsAnySet", "$bitsAnyClear"] {
        let taken = |kind: &str| COUNTS.contains(&kind) || matches!(kind, "binData" | "array" | "empty array");
        check(operator, BESIDE, &taken, &|kind| if NUMBERS.contains(&kind) { 9 } else { 2 });
    }
}

#[test]
fn operators_that_are_not_there_are_named() {
    for operator in ["$foo", "$", "$EQ", "$eq ", "$where", "$near", "$text", "$set", "$match", "$group"] {
        for template in [AT_TOP, BESIDE, r##"{"a": {"$not": {"@": #}}}"##, r##"{"$or": [{"a": {"@": #}}]}"##] {
            for (_, operand) in OPERANDS {
                let filter = template.replace('@', operator).replace('#', operand);
                let error = Filter::parse(json(&filter).view(), &ParseContext::new("filter")).unwrap_err();
                assert_eq!((error.code(), error.name()), (2, "UnknownOperator"), "{filter}");
                assert!(error.message().contains(operator) && error.place().ends_with(operator), "{error:?}");
            }
        }
    }
}

#[test]
fn directions_of_a_sort() {
    for (kind, operand) in OPERANDS {
        let expected = match *kind {
            _ if NUMBERS.contains(kind) => 15975,
            _ => 15974,
        };
        let sort = json(&format!(r#"{{"a": {operand}}}"#));
        let error = Sort::parse(sort.view(), &ParseContext::new("sort")).unwrap_err();
        assert_eq!((error.code(), error.place()), (expected, "sort.a"), "{operand}");
    }
    for operand in ["1", "-1", "1.0", r#"{"$numberLong": "-1"}"#, r#"{"$numberDecimal": "1"}"#] {
        assert!(Sort::parse(json(&format!(r#"{{"a": {operand}}}"#)).view(), &ParseContext::new("sort")).is_ok());
    }
}

#[test]
fn what_is_no_object_is_no_filter() {
    for (kind, operand) in OPERANDS {
        let error = Filter::parse(json(operand).view(), &ParseContext::new("filter")).err().map_or(0, |e| e.code());
        let expected = match *kind {
            "object" | "empty object" => 0,
            "operators" => 2,
            _ => 14,
        };
        assert_eq!(error, expected, "{operand}");
    }
}
