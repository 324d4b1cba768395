//! The meaning of a filter on one document: this is the reference that every index and column is held to.
//!
//! Takes the tree and a document, gives whether it matches and, where asked, which element of an array made it so.
//! Allocates nothing. Recursion is bounded by the nesting of the filter, which its parser has limited.

use super::ast::{FieldTest, Node, Test};
use super::pattern::Pattern;
use crate::QueryError;
use crate::expr::{Budget, INTERRUPT_STEPS};
use crate::limits::MATCH_STEPS_MAX;
use crate::meter::Meter;
use crate::path_walk::{Candidate, any};
use quarrydb_jsonb::{JsonbRef, Kind};

/// What one evaluation carries along.
#[derive(Debug, Default)]
pub(crate) struct Run<'r> {
    /// Whether `position` is asked for.
    pub(crate) track: bool,
    /// The matching element of an array: the position that `$` of an update or a projection means.
    pub(crate) position: Option<usize>,
    /// What went wrong in an expression. The answer is then worth nothing.
    pub(crate) error: Option<QueryError>,
    /// What each `$expr` may spend, and whether to go on.
    budget: Budget<'r>,
    /// Candidates looked at so far.
    steps: u64,
}

/// Bytes of a text that a regular expression runs over in one step.
const STEP_BYTES: usize = 64;

impl<'r> Run<'r> {
    /// One with a budget.
    pub(crate) fn within(budget: Budget<'r>) -> Self {
        Self { budget, ..Self::default() }
    }

    /// One that counts on from what a whole operation has looked at, and finds the position too where it is asked for.
    pub(crate) fn counting(meter: &Meter<'r>, track: bool) -> Self {
        Self { track, budget: meter.budget(), steps: meter.steps(), ..Self::default() }
    }

    /// What came of it: the count goes back to the operation.
    pub(crate) fn finish<T>(self, meter: &Meter<'r>, found: T) -> Result<T, QueryError> {
        meter.set_steps(self.steps);
        self.error.map_or(Ok(found), Err)
    }

    /// Counts candidates; false where it is one too many. Then there is an error, and what comes next does not matter.
    #[inline]
    fn step(&mut self, steps: u64) -> bool {
        let before = self.steps;
        self.steps += steps;
        before / INTERRUPT_STEPS == self.steps / INTERRUPT_STEPS || self.goes_on()
    }

    #[cold]
    fn goes_on(&mut self) -> bool {
        let message = if self.steps > MATCH_STEPS_MAX {
            format!("the filter looks at more than {MATCH_STEPS_MAX} values of one document")
        } else if self.budget.go_on.is_some_and(|go_on| !go_on()) {
            "the operation ran out of time".to_owned()
        } else {
            return true;
        };
        self.error.get_or_insert_with(|| QueryError::new("MaxTimeMSExpired", 50, message));
        false
    }

    /// Whether a value passes a regular expression.
    fn pattern(&mut self, pattern: &Pattern, value: JsonbRef<'_>) -> bool {
        let bytes = value.as_str_bytes().map_or(0, <[u8]>::len);
        self.step((bytes / STEP_BYTES) as u64) && pattern.test(value)
    }
}

/// Whether a document matches.
pub(crate) fn matches(node: &Node, document: JsonbRef<'_>, run: &mut Run<'_>) -> bool {
    match node {
        Node::Field(test) => field(test, document, run),
        Node::All(nodes) => {
            let all = nodes.iter().all(|n| matches(n, document, run));
            if !all && run.track {
                run.position = None;
            }
            all
        }
        // The branch that is tried first gives the position.
        Node::Any(nodes) if run.track => nodes.iter().any(|n| matches(n, document, run)),
        Node::Any(nodes) => nodes.any(document, |n| run.step(1) && matches(n, document, run) || run.error.is_some()),
        Node::Not(inner) => {
            // What made the inner condition true says nothing about this one.
            let track = std::mem::replace(&mut run.track, false);
            let holds = !matches(inner, document, run);
            run.track = track;
            holds
        }
        Node::Schema(schema) => schema.allows(document),
        Node::Expression(expression) => expression.is_true(document, run.budget).unwrap_or_else(|error| {
            run.error.get_or_insert(error);
            false
        }),
        Node::Constant(always) => *always,
        Node::Value(test) => passes_in(test, Some(document), &mut None, run),
    }
}

#[inline]
fn field(field: &FieldTest, document: JsonbRef<'_>, run: &mut Run<'_>) -> bool {
    let mut inner = None;
    let mut outer = None;
    let found = any(&field.path, document, field.test.leaf(), |candidate, at| {
        if !run.step(1) {
            return true;
        }
        let passes = passes_in(&field.test, candidate, &mut inner, run);
        if passes {
            outer = at;
        }
        passes
    });
    if found
        && run.track
        && let Some(at) = outer.or(inner)
    {
        run.position = Some(at);
    }
    found
}

/// Whether one candidate passes. `at` is set to the element that `$elemMatch` found.
pub(crate) fn passes(
    test: &Test,
    candidate: Candidate<'_>,
    at: &mut Option<usize>,
    meter: &Meter<'_>,
) -> Result<bool, QueryError> {
    let mut run = Run::counting(meter, false);
    let passes = passes_in(test, candidate, at, &mut run);
    run.finish(meter, passes)
}

/// The same for one candidate alone.
pub(crate) fn passes_alone(test: &Test, candidate: Candidate<'_>) -> bool {
    passes_in(test, candidate, &mut None, &mut Run::default())
}

#[inline]
fn passes_in(test: &Test, candidate: Candidate<'_>, at: &mut Option<usize>, run: &mut Run<'_>) -> bool {
    match test {
        Test::Compare(comparison) => comparison.test(candidate),
        Test::In(set) => {
            set.test(candidate)
                || candidate.is_some_and(|v| set.patterns().iter().any(|pattern| run.pattern(pattern, v)))
        }
        Test::Exists => candidate.is_some(),
        Test::Type(types) => candidate.is_some_and(|v| types.contains(v.kind())),
        Test::Size(size) => candidate.and_then(JsonbRef::as_array).is_some_and(|a| a.len() as u64 == *size),
        Test::Modulo(modulo) => modulo.test(candidate),
        Test::Pattern(pattern) => candidate.is_some_and(|v| run.pattern(pattern, v)),
        Test::Bits(bits) => bits.test(candidate),
        Test::ElemMatchObject(condition) => element(candidate, at, run, |v, run| {
            matches!(v.kind(), Kind::Object | Kind::Array) && matches(condition, v, run)
        }),
        Test::ElemMatchValue(condition) => element(candidate, at, run, |v, run| matches(condition, v, run)),
    }
}

fn element(
    candidate: Candidate<'_>,
    at: &mut Option<usize>,
    run: &mut Run<'_>,
    holds: impl Fn(JsonbRef<'_>, &mut Run<'_>) -> bool,
) -> bool {
    let Some(array) = candidate.and_then(JsonbRef::as_array) else { return false };
    // Positions inside the element are nobody's business.
    let track = std::mem::replace(&mut run.track, false);
    let found = array.iter().position(|v| !run.step(1) || holds(v, run));
    run.track = track;
    if found.is_some() {
        *at = found;
    }
    found.is_some()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;
    use crate::{Filter, ParseContext};
    use quarrydb_jsonb::parse;

    fn filter(text: &str) -> Filter {
        Filter::parse(parse(text.as_bytes()).unwrap().view(), &ParseContext::new("filter")).unwrap()
    }

    #[test]
    fn a_filter_that_looks_at_too_many_values_is_stopped() {
        let filter = filter(r#"{"a": {"$elemMatch": {"$elemMatch": {"$gt": 5}}}, "b.c": {"$gt": 5}}"#);
        let document = parse(br#"{"a": [[1, 9]], "b": [{"c": [1, 2, 3]}, {"c": 9}]}"#).unwrap();
        // One array, one in it, two elements; then three elements, their array, and a number. The bound is looked at
        // where a whole number of intervals has passed.
        let steps = 4 + 5;
        let interval_end = MATCH_STEPS_MAX + INTERRUPT_STEPS;
        for (left, expected) in [(steps + 1, None), (steps, Some(50)), (3, Some(50)), (1, Some(50))] {
            let mut run = Run { steps: interval_end - left, ..Run::default() };
            let matched = matches(filter.ast(), document.view(), &mut run);
            assert_eq!(run.error.map(|e| e.code()), expected, "{left} left");
            assert!(matched || expected.is_some());
        }
    }

    #[test]
    fn a_match_ends_when_its_time_has_come() {
        let numbers = filter(r#"{"a": {"$gt": 5}}"#);
        let patterns = filter(r#"{"s": {"$in": [{"$regularExpression": {"pattern": "x.*y", "options": ""}}]}}"#);
        let zeros =
            parse(format!(r#"{{"a": [{}], "s": "{}"}}"#, vec!["0"; 5000].join(","), "x".repeat(300_000)).as_bytes());
        let document = zeros.unwrap();
        for filter in [numbers, patterns] {
            let out_of_time = Budget { go_on: Some(&|| false), ..Budget::default() };
            let error = filter.matches_within(document.view(), out_of_time).unwrap_err();
            assert_eq!((error.code(), error.name()), (50, "MaxTimeMSExpired"));
            let in_time = Budget { go_on: Some(&|| true), ..Budget::default() };
            assert_eq!(filter.matches_within(document.view(), in_time), Ok(false));
        }
    }
}
