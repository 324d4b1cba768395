//! The body's `let`: its variables, evaluated once and shared by all expressions of the body.
//!
//! A body may hold a million expressions, and each parser is told its `let` anew. So the thread remembers the last one:
//! the same bytes give the same variables. That they are bounded keeps the comparison cheap.

use super::evaluate::evaluate;
use super::parse::{Parser, check_variable_name};
use super::scope::{Budget, Scope};
use crate::limits::LET_BYTES_MAX;
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, NULL};
use std::cell::RefCell;
use std::sync::Arc;

/// Names and values; none for what is missing.
pub(crate) type LetVariables = Arc<Vec<(Box<str>, Option<Arc<JsonbBuf>>)>>;

/// A `let`, the time at which it was evaluated, and what came of it.
type Remembered = (JsonbBuf, i64, LetVariables);

/// What one variable may take: it is kept for as long as the body is.
const BUDGET: Budget<'static> = Budget { bytes: 16 << 20, steps: 1 << 20, go_on: None };

thread_local! {
    static LAST: RefCell<Option<Remembered>> = const { RefCell::new(None) };
}

/// The variables that a text sees: those that are bound, else the body's.
pub(crate) fn visible(context: &ParseContext<'_>) -> Result<LetVariables, QueryError> {
    match (context.bound, context.variables) {
        (Some(bound), _) => Ok(Arc::clone(bound)),
        (None, Some(variables)) => evaluated(variables, context.now_ms),
        (None, None) => Ok(LetVariables::default()),
    }
}

/// The variables of a `let`.
fn evaluated(variables: JsonbRef<'_>, now_ms: i64) -> Result<LetVariables, QueryError> {
    let root = Place::root("let");
    if variables.as_bytes().len() > LET_BYTES_MAX {
        let message = format!("let takes at most {LET_BYTES_MAX} bytes, not {}", variables.as_bytes().len());
        return Err(QueryError::failed_to_parse(message).at(&root));
    }
    let known = LAST.with_borrow(|last| match last {
        Some((bytes, at, known)) if *at == now_ms && bytes.as_bytes() == variables.as_bytes() => {
            Some(Arc::clone(known))
        }
        _ => None,
    });
    if let Some(known) = known {
        return Ok(known);
    }
    let Some(object) = variables.as_object() else {
        return Err(QueryError::type_mismatch("let is an object of variables").at(&root));
    };
    let mut values = Vec::new();
    for variable in object {
        let place = root.name(variable.name());
        check_variable_name(variable.name(), &place)?;
        let mut parser = Parser::new(&ParseContext::new("let").with_now(now_ms))?;
        let expression = parser.expression(variable.value, &place)?;
        let mut scope = Scope::new(NULL, BUDGET);
        let value = evaluate(&expression, &mut scope).and_then(|v| v.to_buf()).map_err(|e| e.at(&place))?;
        values.push((variable.name().into(), Some(Arc::new(value))));
    }
    let values = Arc::new(values);
    LAST.set(Some((variables.to_buf(), now_ms, Arc::clone(&values))));
    Ok(values)
}
