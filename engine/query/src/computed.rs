//! The seam to expressions: what filters (`$expr`) and projections (computed fields) ask of them.
//!
//! Takes a value that stands where an expression may; gives its value on a document. Next: `expr/`.

use crate::expr::{Budget, Expression};
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use std::sync::Arc;

/// An expression of a filter or a projection.
#[derive(Clone, Debug)]
pub struct Computed(Arc<Expression>);

impl Computed {
    /// Parses an expression.
    pub(crate) fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        Expression::parse(value, context).map(|e| Self(Arc::new(e)))
    }

    /// Whether its value on a document is true: all but false, null, missing and zero.
    pub(crate) fn is_true(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<bool, QueryError> {
        self.0.is_true(document, budget)
    }

    /// Its value on a document; none where it is missing.
    pub(crate) fn evaluate(&self, document: JsonbRef<'_>) -> Result<Option<JsonbBuf>, QueryError> {
        self.0.value(document, Budget::default())
    }
}
