//! What an expression looks at: for who has its values in columns and not the document.
//!
//! Takes parsed expressions, gives the paths from the document that they look at, and which of them go up in steps. It
//! evaluates nothing but what it is asked to.

use super::ast::{Expr, Path};
use super::{Budget, Expression, Scope};
use crate::QueryError;
use crate::number::Number;
use quarrydb_jsonb::JsonbRef;
use std::collections::BTreeSet;

/// Milliseconds of a second, a minute, an hour and a day.
const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

impl Expression {
    /// The dotted paths from the document that it looks at, each once; none where it looks at the whole document, or gives
    /// something else each time.
    #[must_use]
    pub fn paths(&self) -> Option<BTreeSet<String>> {
        let mut found = BTreeSet::new();
        collect(&self.0, &mut found).then_some(found)
    }

    /// The same as a function of the one number or date at a path that keeps its value over long runs of numbers: a part
    /// of a date in UTC.
    #[must_use]
    pub fn staircase(&self) -> Option<Staircase<'_>> {
        let Expr::Call(call) = &self.0 else { return None };
        let (step, given) = match call.operator.name {
            "$second" => (SECOND, 1),
            "$minute" => (MINUTE, 1),
            "$hour" => (HOUR, 1),
            "$dayOfMonth" | "$dayOfWeek" | "$dayOfYear" | "$week" | "$month" | "$year" | "$isoWeek"
            | "$isoDayOfWeek" | "$isoWeekYear" => (DAY, 1),
            "$dateTrunc" => match call.arguments.get(1)? {
                Some(Expr::Constant(unit)) => (step_of_unit(unit.view().as_str()?)?, 2),
                _ => return None,
            },
            _ => return None,
        };
        // A time zone or another beginning of the week moves the steps.
        if call.arguments.iter().skip(given).any(Option::is_some) {
            return None;
        }
        let date = call.arguments.first()?.as_ref()?;
        let path = rising(date)?;
        Some(Staircase { path, date, step })
    }
}

/// A function of one value that changes at most where a date passes from one step to the next.
#[derive(Clone, Copy, Debug)]
pub struct Staircase<'e> {
    path: &'e Path,
    /// Rises with the value, or stays.
    date: &'e Expr,
    /// Milliseconds.
    step: i64,
}

impl<'e> Staircase<'e> {
    /// Where the value stands in the document.
    #[must_use]
    pub fn path(&self) -> &'e [Box<str>] {
        self.path
    }

    /// The number of the step on which a document with the value stands: it rises with the value, or stays. None where
    /// there is no date.
    ///
    /// # Errors
    /// Those of the expression.
    pub fn step_of(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<Option<i64>, QueryError> {
        let mut scope = Scope::new(document, budget);
        match super::evaluate::evaluate(self.date, &mut scope)? {
            super::Datum::Date(ms) => Ok(Some(ms.div_euclid(self.step))),
            _ => Ok(None),
        }
    }
}

fn step_of_unit(unit: &str) -> Option<i64> {
    Some(match unit {
        "second" => SECOND,
        "minute" => MINUTE,
        "hour" => HOUR,
        "day" | "week" | "month" | "quarter" | "year" => DAY,
        _ => return None,
    })
}

/// The path of the one value with which the expression rises: through conversions and arithmetic with constants. Rounding
/// keeps the order, so doubles on the way do no harm.
fn rising(e: &Expr) -> Option<&Path> {
    match e {
        Expr::Root(path) if !path.is_empty() => Some(path),
        Expr::Call(call) => {
            let (first, second) = (call.arguments.first()?.as_ref()?, call.arguments.get(1).and_then(Option::as_ref));
            match (call.operator.name, second) {
                ("$toDate" | "$toLong" | "$toDouble" | "$floor" | "$ceil", None) => rising(first),
                ("$divide" | "$multiply", Some(by)) if is_above_zero(by) => rising(first),
                ("$add" | "$subtract", Some(by)) if number(by).is_some() => rising(first),
                _ => None,
            }
        }
        _ => None,
    }
}

fn number(e: &Expr) -> Option<f64> {
    let Expr::Constant(value) = e else { return None };
    Number::of(value.view()).filter(|n| !n.is_decimal()).map(Number::to_f64).filter(|n| n.is_finite())
}

fn is_above_zero(e: &Expr) -> bool {
    number(e).is_some_and(|n| n > 0.0)
}

/// Adds the paths; false where it takes more than paths. As deep as the parser let it be.
fn collect(e: &Expr, found: &mut BTreeSet<String>) -> bool {
    let mut all = |parts: &[&Expr]| parts.iter().all(|part| collect(part, found));
    match e {
        Expr::Constant(_) | Expr::Shared { .. } | Expr::Missing | Expr::Variable { .. } => true,
        Expr::Random | Expr::NewObjectId(_) => false,
        Expr::Root(path) => {
            found.insert(path.join("."));
            !path.is_empty()
        }
        Expr::Array(parts) | Expr::And(parts) | Expr::Or(parts) | Expr::IfNull(parts) => {
            parts.iter().all(|part| collect(part, found))
        }
        Expr::Object(fields) => fields.iter().all(|(_, part)| collect(part, found)),
        Expr::Call(call) => call.arguments.iter().flatten().all(|part| collect(part, found)),
        Expr::Cond(parts) => parts.iter().all(|part| collect(part, found)),
        Expr::Switch { branches, default } => {
            branches.iter().all(|(case, then)| collect(case, found) && collect(then, found))
                && default.as_deref().is_none_or(|part| collect(part, found))
        }
        Expr::Let { variables, body, .. } => variables.iter().all(|part| collect(part, found)) && collect(body, found),
        Expr::Map { input, body, .. } => all(&[input, body]),
        Expr::Filter { input, limit, condition, .. } => {
            collect(input, found)
                && collect(condition, found)
                && limit.as_deref().is_none_or(|part| collect(part, found))
        }
        Expr::Reduce { input, initial, body, .. } => all(&[input, initial, body]),
        Expr::Convert(call) => {
            let further = [&call.format, &call.on_error, &call.on_null, &call.byte_order];
            collect(&call.input, found)
                && collect(&call.to, found)
                && further.into_iter().flatten().all(|part| collect(part, found))
        }
        Expr::DateFromString(call) => {
            let further = [&call.format, &call.zone, &call.on_error, &call.on_null];
            collect(&call.text, found) && further.into_iter().flatten().all(|part| collect(part, found))
        }
        Expr::Regex(call) => call.parts().all(|part| collect(part, found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ParseContext;

    fn parse(text: &str) -> Expression {
        let value = quarrydb_jsonb::parse(text.as_bytes()).expect("JSON");
        Expression::parse(value.view(), &ParseContext::new("e")).expect("an expression")
    }

    #[test]
    fn all_paths_are_found() {
        for (text, expected) in [
            (r#""$a.b""#, Some(vec!["a.b"])),
            (r#"{"$add": ["$a", "$b", 1, "$a"]}"#, Some(vec!["a", "b"])),
            (r#"{"x": "$a", "y": ["$b", {"$literal": "$c"}]}"#, Some(vec!["a", "b"])),
            (r#"{"$cond": [{"$gt": ["$a", 1]}, "$b", "$c"]}"#, Some(vec!["a", "b", "c"])),
            (
                r#"{"$switch": {"branches": [{"case": "$a", "then": "$b"}], "default": "$c"}}"#,
                Some(vec!["a", "b", "c"]),
            ),
            (r#"{"$let": {"vars": {"v": "$a"}, "in": {"$add": ["$$v.x", "$b"]}}}"#, Some(vec!["a", "b"])),
            (r#"{"$map": {"input": "$a", "in": {"$add": ["$$this", "$b"]}}}"#, Some(vec!["a", "b"])),
            (r#"{"$filter": {"input": "$a", "cond": "$$this.c", "limit": "$b"}}"#, Some(vec!["a", "b"])),
            (r#"{"$reduce": {"input": "$a", "initialValue": "$b", "in": "$c"}}"#, Some(vec!["a", "b", "c"])),
            (
                r#"{"$convert": {"input": "$a", "to": "int", "onError": "$b", "onNull": "$c"}}"#,
                Some(vec!["a", "b", "c"]),
            ),
            (r#"{"$dateFromString": {"dateString": "$a", "timezone": "$b"}}"#, Some(vec!["a", "b"])),
            (r#"{"$regexMatch": {"input": "$a", "regex": "$b", "options": "$c"}}"#, Some(vec!["a", "b", "c"])),
            (r#"{"$ifNull": ["$a", "$b"]}"#, Some(vec!["a", "b"])),
            (r#"{"$and": ["$a", {"$or": ["$b"]}]}"#, Some(vec!["a", "b"])),
            (r#""$$CURRENT.a""#, Some(vec!["a"])),
            (r#""$$ROOT""#, None),
            (r#"{"$add": ["$a", {"$rand": {}}]}"#, None),
            ("1", Some(vec![])),
        ] {
            let expected = expected.map(|paths| paths.into_iter().map(str::to_owned).collect::<BTreeSet<_>>());
            assert_eq!(parse(text).paths(), expected, "{text}");
        }
    }

    #[test]
    fn staircases_are_parts_of_dates_of_what_rises() {
        for (text, expected) in [
            (r#"{"$hour": "$t"}"#, Some("t")),
            (r#"{"$hour": {"$toDate": {"$divide": ["$t.us", 1000]}}}"#, Some("t.us")),
            (r#"{"$dateTrunc": {"date": "$t", "unit": "month"}}"#, Some("t")),
            (r#"{"$dayOfWeek": {"$toDate": {"$add": [{"$multiply": ["$t", 2]}, 5]}}}"#, Some("t")),
            (r#"{"$hour": {"date": "$t", "timezone": "Europe/Rome"}}"#, None),
            (r#"{"$dateTrunc": {"date": "$t", "unit": "month", "binSize": 2}}"#, None),
            (r#"{"$dateTrunc": {"date": "$t", "unit": "$u"}}"#, None),
            (r#"{"$hour": {"$toDate": {"$divide": ["$t", -1000]}}}"#, None),
            (r#"{"$hour": {"$toDate": {"$divide": [1000, "$t"]}}}"#, None),
            (r#"{"$hour": {"$toDate": {"$add": ["$t", "$u"]}}}"#, None),
            (r#"{"$hour": {"$toDate": {"$mod": ["$t", 7]}}}"#, None),
            (r#"{"$millisecond": "$t"}"#, None),
        ] {
            let parsed = parse(text);
            let found = parsed.staircase().map(|s| s.path().join("."));
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_step_never_goes_down_and_the_value_changes_only_with_it() {
        let e = parse(r#"{"$hour": {"$toDate": {"$divide": ["$t", 1000]}}}"#);
        let stairs = e.staircase().expect("a staircase");
        let (mut last, mut value) = (None, None);
        for t in (0..20_000_i64).map(|i| 1_700_000_000_000_000 + i * 7_777_777) {
            let document = quarrydb_jsonb::parse(format!("{{\"t\": {{\"$numberLong\": \"{t}\"}}}}").as_bytes());
            let document = document.expect("JSON");
            let step = stairs.step_of(document.view(), Budget::default()).expect("a step");
            let now = e.value(document.view(), Budget::default()).expect("a value");
            assert!(step >= last, "{t}");
            assert!(step != last || now == value, "{t}");
            (last, value) = (step, now);
        }
    }
}
