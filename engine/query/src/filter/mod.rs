//! Filters: which documents a query asks for.
//!
//! Takes the object of a body, gives a [`Filter`] that says of one document whether it matches. Next: `parse.rs` (the
//! text), `ast.rs` (what a planner reads), `evaluate.rs` (the meaning).

mod ast;
mod bits;
mod branches;
mod comparison;
mod evaluate;
mod implied;
mod in_set;
mod modulo;
mod parse;
mod parse_field;
mod pattern;
mod pattern_class;
mod pattern_syntax;
mod schema;
mod schema_parse;
mod type_set;

pub use ast::{FieldTest, Node, Test};
pub use bits::{Bits, BitsOp};
pub use branches::Branches;
pub use comparison::{CompareOp, Comparison};
pub(crate) use evaluate::passes;
pub use in_set::InSet;
pub use modulo::Modulo;
pub(crate) use parse::parse_elem_match;
pub(crate) use parse_field::is_truthy;
pub use pattern::Pattern;
pub use schema::Schema;
pub use type_set::TypeSet;

use crate::expr::Budget;
use crate::meter::Meter;
use crate::path_walk::FieldPath;
use crate::pattern_count::PatternCount;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::JsonbRef;

/// Conditions that a cheap filter may have: each may look at all of an array.
const CHEAP_NODES_MAX: usize = 32;

/// A parsed filter.
#[derive(Clone, Debug)]
pub struct Filter {
    root: Node,
}

impl Filter {
    /// Parses the object of a body.
    ///
    /// # Errors
    /// With the place, what was found and what is wanted: `BadValue` for most, `UnknownOperator` by name.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let _patterns = PatternCount::open();
        parse::parse(value, context).map(|root| Self { root }).map_err(|e| e.at(&context.place))
    }

    /// Parses what stands beside a field that is called `name`: a value to be equal to, or an object of operators.
    ///
    /// # Errors
    /// As [`Filter::parse`].
    pub(crate) fn parse_beside(
        name: &str,
        value: JsonbRef<'_>,
        context: &ParseContext<'_>,
    ) -> Result<Self, QueryError> {
        let _patterns = PatternCount::open();
        parse::parse_beside(name, value, context).map(|root| Self { root }).map_err(|e| e.at(&context.place))
    }

    /// The filter that every document matches.
    #[must_use]
    pub fn everything() -> Self {
        Self { root: Node::All(Vec::new()) }
    }

    /// The filter of the documents that have at `path` one of the values of the array `values`, as `$in` has it; a regular
    /// expression among them is a value like any other.
    #[must_use]
    pub fn one_of(path: &FieldPath, values: JsonbRef<'_>) -> Self {
        let only = values.as_array().filter(|a| a.len() == 1).and_then(|a| a.get(0));
        let test = match only {
            Some(value) => Test::Compare(Comparison::new(CompareOp::Eq, value)),
            None => Test::In(Box::new(InSet::of_values(values))),
        };
        Self { root: Node::Field(FieldTest { path: path.clone(), test }) }
    }

    /// The filter of the documents that have any value at `path`.
    #[must_use]
    pub fn exists(path: &FieldPath) -> Self {
        Self { root: Node::Field(FieldTest { path: path.clone(), test: Test::Exists }) }
    }

    /// The filter of the documents that match this and another.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut nodes = Vec::new();
        for root in [self.root, other.root] {
            match root {
                Node::All(mut all) => nodes.append(&mut all),
                node => nodes.push(node),
            }
        }
        Self { root: if nodes.len() == 1 { nodes.swap_remove(0) } else { Node::All(nodes) } }
    }

    /// Whether a document matches.
    ///
    /// # Errors
    /// Those of `$expr` on this document, and `MaxTimeMSExpired` where the filter would look at more than
    /// [`MATCH_STEPS_MAX`](crate::limits::MATCH_STEPS_MAX) values.
    #[inline]
    pub fn matches(&self, document: JsonbRef<'_>) -> Result<bool, QueryError> {
        let mut run = evaluate::Run::default();
        let matched = evaluate::matches(&self.root, document, &mut run);
        run.error.map_or(Ok(matched), Err)
    }

    /// The same with what an `$expr` may spend, and with a way to stop: it is asked now and then whether to go on.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    #[inline]
    pub fn matches_within(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<bool, QueryError> {
        let mut run = evaluate::Run::within(budget);
        let matched = evaluate::matches(&self.root, document, &mut run);
        run.error.map_or(Ok(matched), Err)
    }

    /// Whether a document matches, and if so the position in an array that `$` means: the element that met the
    /// condition on an array, the last of these conditions where there are several; none where there is none.
    ///
    /// # Errors
    /// As [`Filter::matches`].
    pub fn matches_at(&self, document: JsonbRef<'_>) -> Result<Option<Option<usize>>, QueryError> {
        self.matches_at_in(document, &Meter::default())
    }

    /// The same as part of an operation that counts all it looks at.
    pub(crate) fn matches_at_in(
        &self,
        document: JsonbRef<'_>,
        meter: &Meter<'_>,
    ) -> Result<Option<Option<usize>>, QueryError> {
        let mut run = evaluate::Run::counting(meter, true);
        let matched = evaluate::matches(&self.root, document, &mut run);
        let position = run.position;
        run.finish(meter, matched.then_some(position))
    }

    /// Whether a document matches, as part of an operation that counts all it looks at.
    pub(crate) fn matches_in(&self, document: JsonbRef<'_>, meter: &Meter<'_>) -> Result<bool, QueryError> {
        let mut run = evaluate::Run::counting(meter, false);
        let matched = evaluate::matches(&self.root, document, &mut run);
        run.finish(meter, matched)
    }

    /// Whether every document matches, whatever it is.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        matches!(&self.root, Node::All(nodes) if nodes.is_empty())
    }

    /// Whether a match is sure to be quick on any document: a few comparisons and no expression, pattern or schema. What
    /// is not belongs on a thread that may be kept.
    #[must_use]
    pub fn is_cheap(&self) -> bool {
        let mut room = CHEAP_NODES_MAX;
        self.root.is_cheap(&mut room)
    }

    /// The tree, for planning.
    #[must_use]
    pub fn ast(&self) -> &Node {
        &self.root
    }

    /// The one `_id` that the filter asks for by equality, at the top or inside a top-level `$and`. Other conditions may
    /// stand beside it.
    #[must_use]
    pub fn id_point(&self) -> Option<JsonbRef<'_>> {
        implied::id_point(&self.root)
    }

    /// The equalities that every matching document meets, for the document that an upsert makes: path and value, in the
    /// order of the filter.
    ///
    /// # Errors
    /// `NotSingleValueField` (54) where one path, or a path and one inside it, is given twice.
    pub fn equality_fields(&self) -> Result<Vec<(&FieldPath, JsonbRef<'_>)>, QueryError> {
        implied::equality_fields(&self.root)
    }
}
