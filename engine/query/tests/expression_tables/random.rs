//! Random expressions of all operators on values at the ends of their types: none may panic, and folding a constant gives
//! what evaluating it gives.

use crate::{BUDGET, json};
use quarrydb_query::ParseContext;
use quarrydb_query::expr::{Expression, operator_names};

const VALUES: [&str; 40] = [
    "0",
    "1",
    "-1",
    "2147483647",
    "-2147483648",
    "0.5",
    "-0.0",
    "1e308",
    "-1e308",
    "5e-324",
    "null",
    "true",
    "false",
    r#"{"$numberLong": "9223372036854775807"}"#,
    r#"{"$numberLong": "-9223372036854775808"}"#,
    r#"{"$numberDouble": "NaN"}"#,
    r#"{"$numberDouble": "Infinity"}"#,
    r#"{"$numberDouble": "-Infinity"}"#,
    r#"{"$numberDecimal": "9.999999999999999999999999999999999E+6144"}"#,
    r#"{"$numberDecimal": "1E-6176"}"#,
    r#"{"$numberDecimal": "NaN"}"#,
    r#"{"$numberDecimal": "-Infinity"}"#,
    r#"{"$numberDecimal": "-7.50"}"#,
    r#"{"$date": {"$numberLong": "9223372036854775807"}}"#,
    r#"{"$date": {"$numberLong": "-9223372036854775808"}}"#,
    r#"{"$date": "2026-03-29T00:30:00Z"}"#,
    r#"{"$oid": "5ab9c3da31c2ab715d421285"}"#,
    r#""""#,
    "\"caf\\u00e9 \\u00df\"",
    r#""day""#,
    r#""Europe/Berlin""#,
    r#""%Y-%m-%d""#,
    r#""2026-03-29""#,
    r#""int""#,
    "[]",
    "[1, [2], null]",
    r#"[{"k": "a", "v": 1}, {"k": "b"}]"#,
    r#"{"a": {"b": [1, {"c": 2}]}}"#,
    r#"{"$binary": {"base64": "AQI=", "subType": "04"}}"#,
    r#"{"$timestamp": {"t": 4294967295, "i": 1}}"#,
];

const ARGUMENTS: [&str; 38] = [
    "input",
    "in",
    "cond",
    "as",
    "initialValue",
    "inputs",
    "useLongestLength",
    "defaults",
    "n",
    "sortBy",
    "field",
    "value",
    "date",
    "timezone",
    "iso8601",
    "format",
    "onNull",
    "onError",
    "dateString",
    "startDate",
    "endDate",
    "unit",
    "amount",
    "binSize",
    "startOfWeek",
    "year",
    "month",
    "day",
    "hour",
    "isoWeekYear",
    "chars",
    "find",
    "replacement",
    "regex",
    "to",
    "p",
    "method",
    "second",
];

struct Random(u64);

impl Random {
    /// A number below `n` (xorshift64*, Vigna 2016).
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn operand(&mut self, operators: &[&str], depth: usize, paths: bool) -> String {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0 if paths => format!(r#""$v{}""#, self.below(VALUES.len())),
            1 if paths => r#""$v37.a.b.c""#.to_owned(),
            0..4 => VALUES[self.below(VALUES.len())].to_owned(),
            _ => self.call(operators, depth - 1, paths),
        }
    }

    fn call(&mut self, operators: &[&str], depth: usize, paths: bool) -> String {
        let name = operators[self.below(operators.len())];
        if self.below(3) == 0 {
            let mut fields = std::collections::BTreeMap::new();
            for _ in 0..1 + self.below(6) {
                fields.insert(ARGUMENTS[self.below(ARGUMENTS.len())], self.operand(operators, depth, paths));
            }
            let fields: Vec<_> = fields.iter().map(|(name, value)| format!(r#""{name}": {value}"#)).collect();
            return format!(r#"{{"{name}": {{{}}}}}"#, fields.join(", "));
        }
        let list: Vec<_> = (0..self.below(4) + 1).map(|_| self.operand(operators, depth, paths)).collect();
        format!(r#"{{"{name}": [{}]}}"#, list.join(", "))
    }
}

/// The named arguments that an operator takes, so that random ones are often complete.
const SHAPES: [&str; 14] = [
    r#"{"$dateAdd": {"startDate": @, "unit": @, "amount": @}}"#,
    r#"{"$dateSubtract": {"startDate": @, "unit": "month", "amount": @}}"#,
    r#"{"$dateAdd": {"startDate": @, "unit": "day", "amount": @, "timezone": "America/New_York"}}"#,
    r#"{"$dateDiff": {"startDate": @, "endDate": @, "unit": "week"}}"#,
    r#"{"$dateDiff": {"startDate": @, "endDate": @, "unit": "millisecond"}}"#,
    r#"{"$dateTrunc": {"date": @, "unit": "year", "binSize": @}}"#,
    r#"{"$dateTrunc": {"date": @, "unit": "week", "binSize": @, "timezone": "Asia/Tokyo"}}"#,
    r#"{"$dateToString": {"date": @, "timezone": "Europe/London"}}"#,
    r#"{"$dateToParts": {"date": @, "iso8601": true, "timezone": "+14:00"}}"#,
    r#"{"$dateFromParts": {"year": @, "month": @, "second": @, "millisecond": @}}"#,
    r#"{"$dateFromParts": {"isoWeekYear": @, "isoWeek": @, "isoDayOfWeek": @, "second": @}}"#,
    r#"{"$dateFromString": {"dateString": @}}"#,
    r#"{"$replaceAll": {"input": @, "find": @, "replacement": @}}"#,
    r#"{"$convert": {"input": @, "to": "date"}}"#,
];

#[test]
fn no_expression_panics() {
    let operators: Vec<_> = {
        let mut names: Vec<_> = operator_names().filter(|n| *n != "$rand").collect();
        names.sort_unstable();
        names
    };
    let fields: Vec<_> = VALUES.iter().enumerate().map(|(i, v)| format!(r#""v{i}": {v}"#)).collect();
    let document = json(&format!("{{{}}}", fields.join(", ")));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut parsed, mut evaluated) = (0, 0);
    for i in 0..40_000 {
        let text = if i % 4 == 0 {
            let shape = SHAPES[random.below(SHAPES.len())];
            let mut parts = shape.split('@');
            let mut text = parts.next().unwrap_or_default().to_owned();
            for part in parts {
                text.push_str(&random.operand(&operators, 1, true));
                text.push_str(part);
            }
            text
        } else {
            random.call(&operators, 2, i % 3 != 0)
        };
        let value = json(&text);
        let Ok(expression) = Expression::parse(value.view(), &ParseContext::new("expression")) else { continue };
        parsed += 1;
        if expression.value(document.view(), BUDGET).is_ok() {
            evaluated += 1;
        }
    }
    assert!(parsed > 5000 && evaluated > 1000, "{parsed} parsed, {evaluated} evaluated");
}

#[test]
fn a_folded_constant_is_what_it_evaluates_to() {
    let operators: Vec<_> =
        operator_names().filter(|n| !matches!(*n, "$rand" | "$getField" | "$literal" | "$const")).collect();
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut compared = 0;
    for _ in 0..10_000 {
        // The same call on constants, which is folded, and on fields that hold them, which is not.
        let name = operators[random.below(operators.len())];
        let chosen: Vec<_> = (0..random.below(3) + 1).map(|_| random.below(VALUES.len())).collect();
        let constants: Vec<_> = chosen.iter().map(|&i| format!(r#"{{"$literal": {}}}"#, VALUES[i])).collect();
        let paths: Vec<_> = chosen.iter().map(|&i| format!(r#""$v{i}""#)).collect();
        let fields: Vec<_> = VALUES.iter().enumerate().map(|(i, v)| format!(r#""v{i}": {v}"#)).collect();
        let document = format!("{{{}}}", fields.join(", "));
        let folded = crate::outcome(&format!(r#"{{"{name}": [{}]}}"#, constants.join(", ")), &document);
        let evaluated = crate::outcome(&format!(r#"{{"{name}": [{}]}}"#, paths.join(", ")), &document);
        if matches!(name, "$regexMatch" | "$regexFind" | "$regexFindAll" | "$setField" | "$unsetField") {
            continue;
        }
        assert_eq!(folded, evaluated, "{name} of {constants:?}");
        compared += 1;
    }
    assert!(compared > 5000);
}
