//! The seam to expressions: what filters (`$expr`) and projections (computed fields) ask of them.
//!
//! Takes a value that stands where an expression may; gives its value on a document. Next: `expr/`.

use crate::expr::{Budget, Expression};
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{Builder, JsonbRef};
use std::sync::Arc;

/// An expression of a filter or a projection.
#[derive(Clone, Debug)]
pub struct Computed(Arc<Expression>);

impl Computed {
    /// Parses an expression.
    pub(crate) fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        Expression::parse(value, context).map(|e| Self(Arc::new(e)))
    }

    /// True with a probability of `rate`, anew for each document: `{$lt: [{$rand: {}}, rate]}`.
    pub(crate) fn below_random(rate: f64, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let mut out = Builder::new();
        out.begin_object();
        out.field("$lt");
        out.begin_array();
        out.begin_object();
        out.field("$rand");
        out.begin_object();
        let built = out.end_object().and_then(|()| out.end_object()).and_then(|()| {
            out.double(rate);
            out.end_array()?;
            out.end_object()
        });
        built.map_err(|e| QueryError::bad_value(e.to_string()))?;
        Self::parse(JsonbRef::from_valid(out.bytes()), context)
    }

    /// Whether its value on a document is true: all but false, null, missing and zero.
    pub(crate) fn is_true(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<bool, QueryError> {
        self.0.is_true(document, budget)
    }

    /// The expression.
    pub(crate) fn expression(&self) -> &Expression {
        &self.0
    }
}
