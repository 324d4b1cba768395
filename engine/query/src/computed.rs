//! The seam to expressions: what filters (`$expr`) and projections (computed fields) ask of them.
//!
//! Takes a value that stands where an expression may; gives its value on a document.

use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef};

/// An expression of a filter or a projection.
#[derive(Clone, Debug)]
pub struct Computed {}

impl Computed {
    /// Parses an expression.
    pub(crate) fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let what = match value.as_object().and_then(|o| o.iter().next()) {
            Some(first) => format!("the expression {}", first.name()),
            None => "an expression".to_owned(),
        };
        Err(QueryError::unknown_operator(format!("{what} is not supported here yet")).at(&context.place))
    }

    /// Whether its value on a document is true: all but false, null, missing and zero.
    pub(crate) fn is_true(&self, document: JsonbRef<'_>) -> Result<bool, QueryError> {
        Ok(self.evaluate(document)?.is_some())
    }

    /// Its value on a document; none where it is missing.
    pub(crate) fn evaluate(&self, _document: JsonbRef<'_>) -> Result<Option<JsonbBuf>, QueryError> {
        Ok(None)
    }
}
