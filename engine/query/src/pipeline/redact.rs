//! `$redact`: parts of a document by what an expression says of each of them.
//!
//! The expression is asked of the document; where it says `$$DESCEND`, of each object in it, those in arrays too, with
//! `$$CURRENT` as the object. Recursion is bounded by the document's nesting.

use super::host::{Fault, Host};
use super::operator::{Flow, Next, Operator};
use super::written::too_large;
use crate::expr::{Expression, Scope};
use crate::{QueryError, scratch};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef};
use std::sync::Arc;

pub(super) struct Redacting(pub Arc<Expression>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Keep,
    Prune,
    Descend,
}

impl Operator for Redacting {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        match redacted(&self.0, document, next.host())? {
            (Says::Prune, _) => Ok(Flow::Continue(())),
            (_, None) => next.push(document),
            (_, Some(made)) => next.push(made.view()),
        }
    }
}

/// What becomes of a document, and what is left of one that was looked into.
#[inline(never)]
fn redacted(
    expression: &Expression,
    document: JsonbRef<'_>,
    host: &dyn Host,
) -> Result<(Says, Option<JsonbBuf>), QueryError> {
    let mut scope = Scope::new(document, host.budget());
    let says = said(expression, document, &mut scope)?;
    if says != Says::Descend {
        return Ok((says, None));
    }
    let made = scratch::build(document.as_bytes().len(), |out| descend(expression, document, &mut scope, out))?;
    Ok((says, Some(made)))
}

fn said<'a>(expression: &'a Expression, part: JsonbRef<'a>, scope: &mut Scope<'a>) -> Result<Says, QueryError> {
    let value = expression.evaluate_part(part, scope)?;
    match value.as_str() {
        Some("keep") => Ok(Says::Keep),
        Some("prune") => Ok(Says::Prune),
        Some("descend") => Ok(Says::Descend),
        _ => {
            let message = format!(
                "$redact's expression should not return anything aside from the variables $$KEEP, $$DESCEND, and \
                 $$PRUNE, but returned a value of type {}",
                value.type_name()
            );
            Err(QueryError::location(17053, message))
        }
    }
}

/// Writes an object or an array without what is pruned in it.
fn descend<'a>(
    expression: &'a Expression,
    part: JsonbRef<'a>,
    scope: &mut Scope<'a>,
    out: &mut Builder,
) -> Result<(), QueryError> {
    scope.step(1)?;
    if let Some(object) = part.as_object() {
        out.begin_object();
        for entry in object {
            let says = says(expression, entry.value, scope)?;
            if says == Says::Prune {
                continue;
            }
            out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
            write(expression, entry.value, says, scope, out)?;
        }
        return out.end_object().map_err(too_large);
    }
    out.begin_array();
    for element in part.as_array().into_iter().flatten() {
        let says = says(expression, element, scope)?;
        if says != Says::Prune {
            write(expression, element, says, scope, out)?;
        }
    }
    out.end_array().map_err(too_large)
}

/// What becomes of a value inside: objects are asked about, arrays are looked into, all else stays.
fn says<'a>(expression: &'a Expression, value: JsonbRef<'a>, scope: &mut Scope<'a>) -> Result<Says, QueryError> {
    match (value.as_object(), value.as_array()) {
        (Some(_), _) => said(expression, value, scope),
        (_, Some(_)) => Ok(Says::Descend),
        _ => Ok(Says::Keep),
    }
}

fn write<'a>(
    expression: &'a Expression,
    value: JsonbRef<'a>,
    says: Says,
    scope: &mut Scope<'a>,
    out: &mut Builder,
) -> Result<(), QueryError> {
    if says == Says::Descend {
        return descend(expression, value, scope, out);
    }
    out.copy(value);
    Ok(())
}
