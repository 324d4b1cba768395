//! Families of questions, generated from tables: every type against every comparison, bracket and form of storing.
//!
//! What is expected is computed from the tables below, which write down MongoDB's documented order ("Comparison/Sort
//! Order", "Query for Null or Missing Fields", "$type") and nothing of the code under test.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use pipeline_host::Collections;
use quarrydb_jsonb::{JsonbBuf, JsonbRef, parse};
use quarrydb_query::{Filter, ParseContext, Pipeline, Sort};
use std::cmp::Ordering;

#[path = "support/pipeline_host.rs"]
mod pipeline_host;

/// A value as Extended JSON, its bracket, and its place in the bracket: equal places are equal values.
type Row = (&'static str, &'static str, i32);

/// All types. Places are comparable inside a bracket only. NaN is beneath every number.
const VALUES: &[Row] = &[
    (r#"{"$minKey": 1}"#, "minKey", 0),
    ("null", "null", 0),
    (r#"{"$numberDouble": "NaN"}"#, "number", -100),
    (r#"{"$numberDecimal": "NaN"}"#, "number", -100),
    (r#"{"$numberDouble": "-Infinity"}"#, "number", -90),
    (r#"{"$numberDecimal": "-Infinity"}"#, "number", -90),
    (r#"{"$numberDecimal": "-1E+400"}"#, "number", -80),
    (r#"{"$numberDouble": "-1e308"}"#, "number", -70),
    (r#"{"$numberLong": "-9223372036854775808"}"#, "number", -60),
    (r#"{"$numberInt": "-2147483648"}"#, "number", -50),
    (r#"{"$numberDouble": "-1.5"}"#, "number", -40),
    (r#"{"$numberInt": "-1"}"#, "number", -30),
    (r#"{"$numberDouble": "-0.0"}"#, "number", 0),
    (r#"{"$numberInt": "0"}"#, "number", 0),
    (r#"{"$numberLong": "0"}"#, "number", 0),
    (r#"{"$numberDecimal": "0E-10"}"#, "number", 0),
    (r#"{"$numberDecimal": "0.1"}"#, "number", 1),
    // The double nearest to a tenth is a little more than a tenth.
    (r#"{"$numberDouble": "0.1"}"#, "number", 2),
    (r#"{"$numberDouble": "0.5"}"#, "number", 10),
    (r#"{"$numberDecimal": "0.50"}"#, "number", 10),
    (r#"{"$numberInt": "1"}"#, "number", 20),
    (r#"{"$numberLong": "1"}"#, "number", 20),
    (r#"{"$numberDouble": "1.0"}"#, "number", 20),
    (r#"{"$numberDecimal": "1.00"}"#, "number", 20),
    (r#"{"$numberInt": "2147483647"}"#, "number", 30),
    (r#"{"$numberDouble": "9007199254740992"}"#, "number", 40),
    (r#"{"$numberLong": "9007199254740993"}"#, "number", 41),
    (r#"{"$numberDecimal": "9007199254740993"}"#, "number", 41),
    (r#"{"$numberLong": "9223372036854775807"}"#, "number", 50),
    (r#"{"$numberDouble": "9223372036854775808"}"#, "number", 51),
    (r#"{"$numberDouble": "1e308"}"#, "number", 60),
    (r#"{"$numberDecimal": "1E+400"}"#, "number", 70),
    (r#"{"$numberDouble": "Infinity"}"#, "number", 80),
    (r#"{"$numberDecimal": "Infinity"}"#, "number", 80),
    (r#""""#, "string", 0),
    (r#""\u0000""#, "string", 1),
    (r#""A""#, "string", 2),
    (r#""a""#, "string", 3),
    (r#""a\u0000""#, "string", 4),
    (r#""ab""#, "string", 5),
    (r#""b""#, "string", 6),
    (r#""\u00e9""#, "string", 7),
    (r#""\uffff""#, "string", 8),
    (r#""\ud83d\ude00""#, "string", 9),
    ("{}", "object", 0),
    // A field's type comes before its name: numbers before strings.
    (r#"{"b": 1}"#, "object", 2),
    (r#"{"b": 1.0, "a": 1}"#, "object", 3),
    (r#"{"a": "x"}"#, "object", 4),
    (r#"{"$binary": {"base64": "", "subType": "00"}}"#, "binary", 0),
    (r#"{"$binary": {"base64": "/w==", "subType": "00"}}"#, "binary", 1),
    (r#"{"$binary": {"base64": "AA==", "subType": "05"}}"#, "binary", 2),
    (r#"{"$binary": {"base64": "AAA=", "subType": "00"}}"#, "binary", 3),
    (r#"{"$oid": "000000000000000000000000"}"#, "objectId", 0),
    (r#"{"$oid": "65a1b2c3d4e5f60718293a4b"}"#, "objectId", 1),
    (r#"{"$oid": "ffffffffffffffffffffffff"}"#, "objectId", 2),
    ("false", "bool", 0),
    ("true", "bool", 1),
    (r#"{"$date": {"$numberLong": "-62135596800000"}}"#, "date", 0),
    (r#"{"$date": "1970-01-01T00:00:00Z"}"#, "date", 1),
    (r#"{"$date": "2024-02-29T12:00:00.001Z"}"#, "date", 2),
    (r#"{"$timestamp": {"t": 0, "i": 1}}"#, "timestamp", 0),
    (r#"{"$timestamp": {"t": 1, "i": 0}}"#, "timestamp", 1),
    (r#"{"$timestamp": {"t": 4294967295, "i": 0}}"#, "timestamp", 2),
    (r#"{"$maxKey": 1}"#, "maxKey", 0),
];

/// The brackets from the smallest to the largest.
const BRACKETS: &[&str] = &[
    "minKey",
    "null",
    "number",
    "string",
    "object",
    "array",
    "binary",
    "objectId",
    "bool",
    "date",
    "timestamp",
    "regex",
    "maxKey",
];

const NAN: i32 = -100;

/// Whether a stored value passes a comparison.
fn passes(op: &str, stored: &Row, operand: &Row) -> bool {
    let takes_equal = matches!(op, "$eq" | "$gte" | "$lte");
    let (bracket, place) = (operand.1, operand.2);
    if stored.1 != bracket {
        return match bracket {
            "minKey" => matches!(op, "$gt" | "$gte"),
            "maxKey" => matches!(op, "$lt" | "$lte"),
            _ => false,
        };
    }
    if bracket == "number" && (place == NAN || stored.2 == NAN) {
        return takes_equal && place == stored.2;
    }
    match stored.2.cmp(&place) {
        Ordering::Equal => takes_equal,
        Ordering::Less => matches!(op, "$lt" | "$lte"),
        Ordering::Greater => matches!(op, "$gt" | "$gte"),
    }
}

/// What is missing is as null, and lies between the two keys at the ends.
fn missing_passes(op: &str, operand: &Row) -> bool {
    match operand.1 {
        "null" => matches!(op, "$eq" | "$gte" | "$lte"),
        "minKey" => matches!(op, "$gt" | "$gte"),
        "maxKey" => matches!(op, "$lt" | "$lte"),
        _ => false,
    }
}

/// An array as a stored value: only the keys at the ends compare with it, for no operand here is an array.
fn array_passes(op: &str, operand: &Row) -> bool {
    matches!((operand.1, op), ("minKey", "$gt" | "$gte") | ("maxKey", "$lt" | "$lte"))
}

fn doc(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn filter(text: &str) -> Filter {
    let value = doc(text);
    Filter::parse(value.view(), &ParseContext::new("filter")).unwrap_or_else(|e| panic!("{e:?}: {text}"))
}

fn matches(filter: &Filter, document: &JsonbBuf) -> bool {
    filter.matches(document.view()).unwrap()
}

const OPS: [&str; 5] = ["$eq", "$gt", "$gte", "$lt", "$lte"];

#[test]
fn every_value_compares_with_every_other_as_the_table_says() {
    let plain: Vec<_> = VALUES.iter().map(|v| doc(&format!(r#"{{"a": {}, "o": {{"p": {0}}}}}"#, v.0))).collect();
    let listed: Vec<_> = VALUES.iter().map(|v| doc(&format!(r#"{{"a": [{}], "o": [{{"p": {0}}}]}}"#, v.0))).collect();
    let nested: Vec<_> =
        VALUES.iter().map(|v| doc(&format!(r#"{{"a": [[{}]], "o": [[{{"p": {0}}}]]}}"#, v.0))).collect();
    let (missing, empty) = (doc("{}"), doc(r#"{"a": [], "o": []}"#));
    for operand in VALUES {
        for op in OPS {
            for path in ["a", "o.p"] {
                let text = format!(r#"{{"{path}": {{"{op}": {}}}}}"#, operand.0);
                let negated = filter(&format!(r#"{{"{path}": {{"$not": {{"{op}": {}}}}}}}"#, operand.0));
                let is = filter(&text);
                let check = |document: &JsonbBuf, expected: bool| {
                    assert_eq!(matches(&is, document), expected, "{text} on {document:?}");
                    assert_eq!(matches(&negated, document), !expected, "not {text} on {document:?}");
                };
                for (i, stored) in VALUES.iter().enumerate() {
                    let expected = passes(op, stored, operand);
                    check(&plain[i], expected);
                    let array = path == "a" && array_passes(op, operand);
                    check(&listed[i], expected || array);
                    // An array in an array is a value of its own on the last part, and out of reach before it.
                    check(&nested[i], array);
                }
                check(&missing, missing_passes(op, operand));
                check(&empty, path == "a" && array_passes(op, operand));
            }
        }
    }
}

#[test]
fn ne_in_and_nin_follow_from_equality() {
    let documents: Vec<_> = VALUES.iter().map(|v| doc(&format!(r#"{{"a": {}}}"#, v.0))).collect();
    let missing = doc(r#"{"b": 1}"#);
    for (i, operand) in VALUES.iter().enumerate() {
        let other = &VALUES[(i * 7 + 3) % VALUES.len()];
        let ne = filter(&format!(r#"{{"a": {{"$ne": {}}}}}"#, operand.0));
        let within = filter(&format!(r#"{{"a": {{"$in": [{}, {}]}}}}"#, operand.0, other.0));
        let outside = filter(&format!(r#"{{"a": {{"$nin": [{}, {}]}}}}"#, operand.0, other.0));
        let literal = filter(&format!(r#"{{"a": {}}}"#, operand.0));
        for (stored, document) in VALUES.iter().zip(&documents) {
            let equal = passes("$eq", stored, operand);
            let either = equal || passes("$eq", stored, other);
            assert_eq!(matches(&ne, document), !equal, "{operand:?} {stored:?}");
            assert_eq!(matches(&literal, document), equal, "{operand:?} {stored:?}");
            assert_eq!(matches(&within, document), either, "{operand:?} {other:?} {stored:?}");
            assert_eq!(matches(&outside, document), !either, "{operand:?} {other:?} {stored:?}");
        }
        let null = operand.1 == "null" || other.1 == "null";
        assert_eq!(matches(&within, &missing), null);
        assert_eq!(matches(&outside, &missing), !null);
    }
}

/// `$type`: alias, number, and the beginning of the Extended JSON of its values.
const TYPES: &[(&str, i32, &[&str])] = &[
    ("double", 1, &[r#"{"$numberDouble": "1.5"}"#, r#"{"$numberDouble": "NaN"}"#]),
    ("string", 2, &[r#""""#, r#""x""#]),
    ("object", 3, &["{}", r#"{"x": 1}"#]),
    ("binData", 5, &[r#"{"$binary": {"base64": "AA==", "subType": "00"}}"#]),
    ("objectId", 7, &[r#"{"$oid": "65a1b2c3d4e5f60718293a4b"}"#]),
    ("bool", 8, &["true", "false"]),
    ("date", 9, &[r#"{"$date": "1970-01-01T00:00:00Z"}"#]),
    ("null", 10, &["null"]),
    ("regex", 11, &[r#"{"$regularExpression": {"pattern": "x", "options": ""}}"#]),
    ("int", 16, &["0", "-5"]),
    ("timestamp", 17, &[r#"{"$timestamp": {"t": 1, "i": 1}}"#]),
    ("long", 18, &[r#"{"$numberLong": "5"}"#]),
    ("decimal", 19, &[r#"{"$numberDecimal": "5"}"#]),
    ("minKey", -1, &[r#"{"$minKey": 1}"#]),
    ("maxKey", 127, &[r#"{"$maxKey": 1}"#]),
];

#[test]
fn type_finds_its_type_by_name_and_number_also_in_arrays() {
    for (asked, code, _) in TYPES {
        let by_name = filter(&format!(r#"{{"a": {{"$type": "{asked}"}}}}"#));
        let by_code = filter(&format!(r#"{{"a": {{"$type": {code}}}}}"#));
        let by_list = filter(&format!(r#"{{"a": {{"$type": ["{asked}"]}}}}"#));
        let number = filter(r#"{"a": {"$type": "number"}}"#);
        let array = filter(r#"{"a": {"$type": "array"}}"#);
        for (name, _, values) in TYPES {
            for value in *values {
                let plain = doc(&format!(r#"{{"a": {value}}}"#));
                let listed = doc(&format!(r#"{{"a": ["", {value}]}}"#));
                let nested = doc(&format!(r#"{{"a": [[{value}]]}}"#));
                let is = asked == name;
                for f in [&by_name, &by_code, &by_list] {
                    assert_eq!(matches(f, &plain), is, "{asked} {value}");
                    assert_eq!(matches(f, &listed), is || *asked == "string", "{asked} {value}");
                    assert!(!matches(f, &nested), "{asked} {value}");
                }
                assert_eq!(matches(&number, &plain), matches!(*name, "int" | "long" | "double" | "decimal"));
                assert!(!matches(&array, &plain) && matches(&array, &listed) && matches(&array, &nested));
            }
        }
        assert!(!matches(&by_name, &doc("{}")), "what is missing has no type");
    }
}

#[test]
fn sorting_orders_brackets_then_places_whichever_way() {
    let rank = |row: &Row| (BRACKETS.iter().position(|b| *b == row.1).unwrap(), row.2);
    let up = Sort::parse(doc(r#"{"a": 1}"#).view(), &ParseContext::new("sort")).unwrap();
    let down = Sort::parse(doc(r#"{"a": -1}"#).view(), &ParseContext::new("sort")).unwrap();
    let key = |sort: &Sort, text: &str| {
        let mut key = Vec::new();
        sort.key(doc(text).view(), &mut key).unwrap();
        key
    };
    for a in VALUES {
        for b in VALUES {
            let expected = rank(a).cmp(&rank(b));
            let (ta, tb) = (format!(r#"{{"a": {}}}"#, a.0), format!(r#"{{"a": {}}}"#, b.0));
            assert_eq!(key(&up, &ta).cmp(&key(&up, &tb)), expected, "{a:?} {b:?}");
            assert_eq!(key(&down, &ta).cmp(&key(&down, &tb)), expected.reverse(), "{a:?} {b:?}");
            // Of an array the smallest counts upwards, the largest downwards.
            let both = format!(r#"{{"a": [{}, {}]}}"#, a.0, b.0);
            let (least, most) = if expected == Ordering::Greater { (&tb, &ta) } else { (&ta, &tb) };
            assert_eq!(key(&up, &both), key(&up, least));
            assert_eq!(key(&down, &both), key(&down, most));
        }
    }
    let (missing, null, empty) = (key(&up, "{}"), key(&up, r#"{"a": null}"#), key(&up, r#"{"a": []}"#));
    assert_eq!(missing, null);
    assert!(empty < null && key(&up, r#"{"a": {"$minKey": 1}}"#) < empty);
}

/// Stored values by what operators see in them: whole numbers, other numbers with a whole part, numbers without one,
/// strings, binary data, and everything else.
const SEEN: &[(&str, &str)] = &[
    ("whole", "0"),
    ("whole", "-7"),
    ("whole", "4.0"),
    ("whole", r#"{"$numberDouble": "-0.0"}"#),
    ("whole", r#"{"$numberLong": "9223372036854775807"}"#),
    ("whole", r#"{"$numberDecimal": "4E+2"}"#),
    ("whole", r#"{"$numberDecimal": "4.000"}"#),
    ("fraction", "0.5"),
    ("fraction", "-7.25"),
    ("fraction", r#"{"$numberDecimal": "1.5"}"#),
    ("beyond", "1e300"),
    ("beyond", "9223372036854775808.0"),
    ("beyond", r#"{"$numberDecimal": "9223372036854775808"}"#),
    ("beyond", r#"{"$numberDecimal": "1E+6000"}"#),
    ("beyond", r#"{"$numberDouble": "NaN"}"#),
    ("beyond", r#"{"$numberDouble": "-Infinity"}"#),
    ("beyond", r#"{"$numberDecimal": "Infinity"}"#),
    ("beyond", r#"{"$numberDecimal": "NaN"}"#),
    ("string", r#""""#),
    ("string", r#""0""#),
    ("binary", r#"{"$binary": {"base64": "", "subType": "00"}}"#),
    ("binary", r#"{"$binary": {"base64": "/w==", "subType": "05"}}"#),
    ("array", "[]"),
    ("other", "{}"),
    ("other", "null"),
    ("other", "true"),
    ("other", r#"{"$oid": "65a1b2c3d4e5f60718293a4b"}"#),
    ("other", r#"{"$date": "1970-01-01T00:00:00Z"}"#),
    ("other", r#"{"$timestamp": {"t": 0, "i": 1}}"#),
    ("other", r#"{"$regularExpression": {"pattern": "y", "options": ""}}"#),
    ("other", r#"{"$minKey": 1}"#),
    ("other", r#"{"$maxKey": 1}"#),
];

#[test]
fn operators_see_the_types_they_are_for() {
    let operators: [(&str, &[&str]); 6] = [
        // Every whole part leaves 0 when divided by 1.
        (r#"{"$mod": [1, 0]}"#, &["whole", "fraction"]),
        // All of no bits are set, and all are clear.
        (r#"{"$bitsAllSet": []}"#, &["whole", "binary"]),
        (r#"{"$bitsAllClear": 0}"#, &["whole", "binary"]),
        (r#"{"$bitsAnySet": []}"#, &[]),
        (r#"{"$regex": ""}"#, &["string"]),
        (r#"{"$size": 0}"#, &["array"]),
    ];
    for (operator, seen) in operators {
        let is = filter(&format!(r#"{{"a": {operator}}}"#));
        let not = filter(&format!(r#"{{"a": {{"$not": {operator}}}}}"#));
        let dotted = filter(&format!(r#"{{"o.p": {operator}}}"#));
        let element = filter(&format!(r#"{{"a": {{"$elemMatch": {operator}}}}}"#));
        for (kind, value) in SEEN {
            let expected = seen.contains(kind);
            let plain = doc(&format!(r#"{{"a": {value}, "o": {{"p": {value}}}}}"#));
            let listed = doc(&format!(r#"{{"a": ["no", {value}], "o": [7, {{"p": {value}}}]}}"#));
            let no = doc(r#"{"a": ["no"]}"#);
            assert_eq!(matches(&is, &plain), expected, "{operator} {value}");
            assert_eq!(matches(&not, &plain), !expected, "{operator} {value}");
            assert_eq!(matches(&dotted, &plain), expected, "{operator} {value}");
            assert_eq!(matches(&dotted, &listed), expected, "{operator} {value}");
            assert!(!matches(&element, &plain), "{operator} {value}: no array");
            assert_eq!(matches(&element, &listed), expected || matches(&element, &no), "{operator} {value}");
            // Only the field's own array has a size.
            let in_list = operator.contains("$size") || !expected && !matches(&is, &no);
            assert_eq!(matches(&is, &listed), !in_list, "{operator} {value}");
        }
        assert!(!matches(&is, &doc("{}")) && matches(&not, &doc("{}")), "{operator} on nothing");
    }
}

/// Equality of two rows of the table: what `$eq` says of them.
fn equal(a: &Row, b: &Row) -> bool {
    passes("$eq", a, b)
}

#[test]
fn every_value_joins_with_those_that_it_equals() {
    let mut host = Collections::default();
    for (i, value) in VALUES.iter().enumerate() {
        host.add("main", doc(&format!(r#"{{"_id": {i}, "a": {0}, "l": [{0}], "o": {{"p": {0}}}}}"#, value.0)));
        for from in ["f", "indexed"] {
            host.add(from, doc(&format!(r#"{{"_id": {i}, "b": {0}, "m": [[], {0}], "q": [{{"r": {0}}}]}}"#, value.0)));
        }
    }
    for from in ["f", "indexed"] {
        host.add(from, doc(r#"{"_id": "none"}"#));
        for local in ["a", "l", "o.p", "l.0"] {
            for foreign in ["b", "m", "q.r", "q.0.r"] {
                let spec = format!(
                    r#"[{{"$lookup": {{"from": "{from}", "localField": "{local}", "foreignField": "{foreign}", "as": "x"}}}}, {{"$project": {{"x": "$x._id"}}}}]"#
                );
                let stages = Pipeline::parse(doc(&spec).view(), &ParseContext::new("pipeline")).unwrap();
                let found = host.aggregate("main", stages.stages()).unwrap();
                for (value, found) in VALUES.iter().zip(&found) {
                    // A number on the way is a name too, which the objects in the array have not: a filter finds null there.
                    let all = value.1 == "null" && foreign == "q.0.r";
                    let ids = VALUES.iter().enumerate().filter(|(_, other)| all || equal(value, other));
                    let ids = ids.map(|(i, _)| i.to_string());
                    let missing = (value.1 == "null").then(|| "\"none\"".to_owned());
                    let expected = doc(&format!("[{}]", ids.chain(missing).collect::<Vec<_>>().join(",")));
                    let ids = found.view().get("x").unwrap();
                    assert!(equal_values(ids, expected.view()), "{value:?} by {local} and {foreign}: {ids:?}");
                }
            }
        }
    }
}

fn equal_values(a: JsonbRef<'_>, b: JsonbRef<'_>) -> bool {
    quarrydb_jsonb::compare(a, b).is_eq()
}

#[test]
fn every_value_reaches_those_that_it_equals() {
    let mut host = Collections::default();
    for (i, value) in VALUES.iter().enumerate() {
        host.add("main", doc(&format!(r#"{{"_id": {i}, "a": {}}}"#, value.0)));
        host.add("f", doc(&format!(r#"{{"_id": {i}, "b": {}}}"#, value.0)));
    }
    host.add("f", doc(r#"{"_id": "none"}"#));
    let spec = r#"[{"$graphLookup": {"from": "f", "startWith": "$a", "connectFromField": "c", "connectToField": "b", "as": "x"}}]"#;
    let stages = Pipeline::parse(doc(spec).view(), &ParseContext::new("pipeline")).unwrap();
    let found = host.aggregate("main", stages.stages()).unwrap();
    for (value, found) in VALUES.iter().zip(&found) {
        let reached = found.view().get("x").and_then(|x| x.as_array()).unwrap();
        let reached: Vec<i64> = reached.iter().map(|d| d.get("_id").and_then(|id| id.as_i64()).unwrap()).collect();
        let expected: Vec<i64> = (0..).zip(VALUES).filter(|(_, other)| equal(value, other)).map(|(i, _)| i).collect();
        assert_eq!(reached, expected, "{value:?}");
    }
}

#[test]
fn every_value_unwinds_as_itself_and_as_an_element() {
    let mut host = Collections::default();
    for value in VALUES {
        host.add("main", doc(&format!(r#"{{"v": {0}, "l": [{0}, [], {0}]}}"#, value.0)));
    }
    let run = |spec: &str| {
        let stages = Pipeline::parse(doc(spec).view(), &ParseContext::new("pipeline")).unwrap();
        host.aggregate("main", stages.stages()).unwrap()
    };
    let itself = run(r#"[{"$unwind": "$v"}]"#);
    let stays: Vec<&Row> = VALUES.iter().filter(|v| v.1 != "null").collect();
    assert_eq!(itself.len(), stays.len(), "null is no element");
    for (value, found) in stays.iter().zip(&itself) {
        assert_eq!(found.as_bytes(), doc(&format!(r#"{{"v": {0}, "l": [{0}, [], {0}]}}"#, value.0)).as_bytes());
    }
    let elements = run(r#"[{"$unwind": {"path": "$l", "includeArrayIndex": "i"}}]"#);
    assert_eq!(elements.len(), VALUES.len() * 3);
    for (value, found) in VALUES.iter().zip(elements.chunks(3)) {
        for (i, (element, found)) in [value.0, "[]", value.0].iter().zip(found).enumerate() {
            let expected = doc(&format!(r#"{{"v": {}, "l": {element}, "i": {{"$numberLong": "{i}"}}}}"#, value.0));
            assert_eq!(found.as_bytes(), expected.as_bytes(), "{value:?}");
        }
    }
}

#[test]
fn a_sort_of_documents_has_the_order_of_the_table() {
    let mut host = Collections::default();
    let rank = |row: &Row| (BRACKETS.iter().position(|b| *b == row.1).unwrap(), row.2);
    // Neither sorted nor reversed to begin with.
    let mixed: Vec<&Row> = (0..VALUES.len()).map(|i| &VALUES[i * 37 % VALUES.len()]).collect();
    for (i, value) in mixed.iter().enumerate() {
        host.add("main", doc(&format!(r#"{{"_id": {i}, "a": {{"b": {}}}}}"#, value.0)));
    }
    for direction in [1, -1] {
        let mut expected: Vec<usize> = (0..mixed.len()).collect();
        expected.sort_by_key(|&i| rank(mixed[i]));
        if direction < 0 {
            expected.sort_by_key(|&i| std::cmp::Reverse(rank(mixed[i])));
        }
        for limit in ["", r#", {"$limit": 20}"#, r#", {"$skip": 3}, {"$limit": 9}"#] {
            let spec = format!(r#"[{{"$sort": {{"a.b": {direction}}}}}{limit}]"#);
            let stages = Pipeline::parse(doc(&spec).view(), &ParseContext::new("pipeline")).unwrap();
            let found = host.aggregate("main", stages.stages()).unwrap();
            let ids: Vec<usize> = found
                .iter()
                .map(|d| usize::try_from(d.view().get("_id").and_then(|id| id.as_i64()).unwrap()).unwrap())
                .collect();
            let (skip, take) = match limit.len() {
                0 => (0, expected.len()),
                n if n < 20 => (0, 20),
                _ => (3, 9),
            };
            let wanted: Vec<usize> = expected.iter().copied().skip(skip).take(take).collect();
            assert_eq!(ids, wanted, "{spec}");
        }
    }
}
