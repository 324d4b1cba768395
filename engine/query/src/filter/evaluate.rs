//! The meaning of a filter on one document: this is the reference that every index and column is held to.
//!
//! Takes the tree and a document, gives whether it matches and, where asked, which element of an array made it so.
//! Allocates nothing. Recursion is bounded by the nesting of the filter, which its parser has limited.

use super::ast::{FieldTest, Node, Test};
use crate::QueryError;
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
}

/// Whether a document matches.
pub(crate) fn matches(node: &Node, document: JsonbRef<'_>, run: &mut Run) -> bool {
    match node {
        Node::Field(test) => field(test, document, run),
        Node::All(nodes) => {
            let all = nodes.iter().all(|n| matches(n, document, run));
            if !all {
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
        Node::Value(test) => passes(test, Some(document), &mut None),
    }
}

#[inline]
fn field(field: &FieldTest, document: JsonbRef<'_>, run: &mut Run) -> bool {
    let mut inner = None;
    let mut outer = None;
    let found = any(&field.path, document, field.test.leaf(), |candidate, at| {
        let passes = passes(&field.test, candidate, &mut inner);
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
    match test {
        Test::Compare(comparison) => comparison.test(candidate),
        Test::In(set) => set.test(candidate),
        Test::Exists => candidate.is_some(),
        Test::Type(types) => candidate.is_some_and(|v| types.contains(v.kind())),
        Test::Size(size) => candidate.and_then(JsonbRef::as_array).is_some_and(|a| a.len() as u64 == *size),
        Test::Modulo(modulo) => modulo.test(candidate),
        Test::Pattern(pattern) => candidate.is_some_and(|v| pattern.test(v)),
        Test::Bits(bits) => bits.test(candidate),
        Test::ElemMatchObject(condition) => element(candidate, at, |v| {
            matches!(v.kind(), Kind::Object | Kind::Array) && matches(condition, v, &mut Run::default())
        }),
        Test::ElemMatchValue(condition) => element(candidate, at, |v| matches(condition, v, &mut Run::default())),
    }
}

fn element(candidate: Candidate<'_>, at: &mut Option<usize>, holds: impl Fn(JsonbRef<'_>) -> bool) -> bool {
    let Some(array) = candidate.and_then(JsonbRef::as_array) else { return false };
    match array.iter().position(holds) {
        Some(found) => {
            *at = Some(found);
            true
        }
        None => false,
    }
}
