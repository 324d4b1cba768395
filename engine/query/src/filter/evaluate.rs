//! The meaning of a filter on one document: this is the reference that every index and column is held to.
//!
//! Takes the tree and a document, gives whether it matches and, where asked, which element of an array made it so.
//! Allocates nothing. Recursion is bounded by the nesting of the filter, which its parser has limited.

use super::ast::{FieldTest, Node, Test};
use crate::QueryError;
use crate::limits::MATCH_STEPS_MAX;
use crate::path_walk::{Candidate, any};
use quarrydb_jsonb::{JsonbRef, Kind};

/// What one evaluation carries along.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Whether `position` is asked for.
    pub(crate) track: bool,
    /// The matching element of an array: the position that `$` of an update or a projection means.
    pub(crate) position: Option<usize>,
    /// What went wrong in an expression. The answer is then worth nothing.
    pub(crate) error: Option<QueryError>,
    /// Candidates looked at so far.
    steps: u64,
}

impl Run {
    /// One that finds the position too.
    pub(crate) fn tracking() -> Self {
        Self { track: true, ..Self::default() }
    }

    /// Counts a candidate; false where it is one too many. Then there is an error, and what comes next does not matter.
    #[inline]
    fn step(&mut self) -> bool {
        self.steps += 1;
        self.steps <= MATCH_STEPS_MAX || self.stop()
    }

    #[cold]
    fn stop(&mut self) -> bool {
        let message = format!("the filter looks at more than {MATCH_STEPS_MAX} values of one document");
        self.error.get_or_insert_with(|| QueryError::new("MaxTimeMSExpired", 50, message));
        false
    }
}

/// Whether a document matches.
pub(crate) fn matches(node: &Node, document: JsonbRef<'_>, run: &mut Run) -> bool {
    match node {
        Node::Field(test) => field(test, document, run),
        Node::All(nodes) => {
            let all = nodes.iter().all(|n| matches(n, document, run));
            if !all && run.track {
                run.position = None;
            }
            all
        }
        Node::Any(nodes) => nodes.iter().any(|n| matches(n, document, run)),
        Node::Not(inner) => {
            // What made the inner condition true says nothing about this one.
            let track = std::mem::replace(&mut run.track, false);
            let holds = !matches(inner, document, run);
            run.track = track;
            holds
        }
        Node::Schema(schema) => schema.allows(document),
        Node::Expression(expression) => expression.is_true(document).unwrap_or_else(|error| {
            run.error.get_or_insert(error);
            false
        }),
        Node::Constant(always) => *always,
        Node::Value(test) => passes_in(test, Some(document), &mut None, run),
    }
}

#[inline]
fn field(field: &FieldTest, document: JsonbRef<'_>, run: &mut Run) -> bool {
    let mut inner = None;
    let mut outer = None;
    let found = any(&field.path, document, field.test.leaf(), |candidate, at| {
        if !run.step() {
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
#[inline]
pub(crate) fn passes(test: &Test, candidate: Candidate<'_>, at: &mut Option<usize>) -> bool {
    passes_in(test, candidate, at, &mut Run::default())
}

#[inline]
fn passes_in(test: &Test, candidate: Candidate<'_>, at: &mut Option<usize>, run: &mut Run) -> bool {
    match test {
        Test::Compare(comparison) => comparison.test(candidate),
        Test::In(set) => set.test(candidate),
        Test::Exists => candidate.is_some(),
        Test::Type(types) => candidate.is_some_and(|v| types.contains(v.kind())),
        Test::Size(size) => candidate.and_then(JsonbRef::as_array).is_some_and(|a| a.len() as u64 == *size),
        Test::Modulo(modulo) => modulo.test(candidate),
        Test::Pattern(pattern) => candidate.is_some_and(|v| pattern.test(v)),
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
    run: &mut Run,
    holds: impl Fn(JsonbRef<'_>, &mut Run) -> bool,
) -> bool {
    let Some(array) = candidate.and_then(JsonbRef::as_array) else { return false };
    // Positions inside the element are nobody's business.
    let track = std::mem::replace(&mut run.track, false);
    let found = array.iter().position(|v| !run.step() || holds(v, run));
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

    #[test]
    fn a_filter_that_looks_at_too_many_values_is_stopped() {
        let filter = parse(br#"{"a": {"$elemMatch": {"$elemMatch": {"$gt": 5}}}, "b.c": {"$gt": 5}}"#).unwrap();
        let filter = Filter::parse(filter.view(), &ParseContext::new("filter")).unwrap();
        let document = parse(br#"{"a": [[1, 9]], "b": [{"c": [1, 2, 3]}, {"c": 9}]}"#).unwrap();
        // One array, one in it, two elements; then three elements, their array, and a number.
        let steps = 4 + 5;
        for (left, expected) in [(steps, None), (steps - 1, Some(50)), (3, Some(50)), (0, Some(50))] {
            let mut run = Run { steps: MATCH_STEPS_MAX - left, ..Run::default() };
            let matched = matches(filter.ast(), document.view(), &mut run);
            assert_eq!(run.error.map(|e| e.code()), expected, "{left} left");
            assert!(matched || expected.is_some());
        }
    }
}
