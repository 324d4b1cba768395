//! A value of each type, and types by what operators take: for the tables of expressions and of updates.

/// Name of a type and a value of it.
pub(crate) const VALUES: [(&str, &str); 16] = [
    ("double", "2.0"),
    ("string", r#""text""#),
    ("object", r#"{"k": 1}"#),
    ("array", "[1, 2]"),
    ("binData", r#"{"$binary": {"base64": "AQI=", "subType": "00"}}"#),
    ("objectId", r#"{"$oid": "5ab9c3da31c2ab715d421285"}"#),
    ("bool", "true"),
    ("date", r#"{"$date": "2026-01-02T03:04:05Z"}"#),
    ("null", "null"),
    ("regex", r#"{"$regularExpression": {"pattern": "x", "options": ""}}"#),
    ("int", "2"),
    ("timestamp", r#"{"$timestamp": {"t": 7, "i": 2}}"#),
    ("long", r#"{"$numberLong": "2"}"#),
    ("decimal", r#"{"$numberDecimal": "2"}"#),
    ("minKey", r#"{"$minKey": 1}"#),
    ("maxKey", r#"{"$maxKey": 1}"#),
];

/// The types of numbers.
pub(crate) const NUMBERS: &[&str] = &["double", "int", "long", "decimal"];
/// Those that are whole.
pub(crate) const INTEGERS: &[&str] = &["int", "long"];
/// An array alone.
pub(crate) const ARRAY: &[&str] = &["array"];
/// An object alone.
pub(crate) const OBJECT: &[&str] = &["object"];
