//! The meaning of an expression on one document.
//!
//! Takes the tree and a scope, gives a value. Recursion is bounded by the depth that the parser allows, memory and steps
//! by the scope's budget. Next: the families, by way of `registry.rs`.

use super::ast::{Call, Expr};
use super::datum::Datum;
use super::registry::Arguments;
use super::scope::Scope;
use super::{convert, date_parse, fresh, regex};
use crate::QueryError;
use crate::number::Number;
use quarrydb_jsonb::{ArrayRef, JsonbRef};
use std::borrow::Cow;

type Evaluated<'a> = Result<Datum<'a>, QueryError>;

/// Evaluates one node. What it charged is given back but for its result.
pub(super) fn evaluate<'a>(e: &'a Expr, scope: &mut Scope<'a>) -> Evaluated<'a> {
    scope.step(1)?;
    match e {
        Expr::Constant(value) => Ok(Datum::from(value.view())),
        Expr::Missing => Ok(Datum::Missing),
        Expr::Root(path) if path.is_empty() => Ok(scope.root().clone()),
        Expr::Random => Ok(Datum::double(fresh::random())),
        Expr::NewObjectId(now_ms) => Ok(Datum::made(|out| out.object_id(fresh::object_id(*now_ms)))),
        _ => {
            let before = scope.used();
            let value = inner(e, scope)?;
            scope.settle(before, value.bytes());
            Ok(value)
        }
    }
}

fn inner<'a>(e: &'a Expr, scope: &mut Scope<'a>) -> Evaluated<'a> {
    match e {
        Expr::Constant(_) | Expr::Missing | Expr::Random | Expr::NewObjectId(_) => Ok(Datum::Missing),
        Expr::Root(path) => {
            let root = scope.root().clone();
            walk(root, path, scope)
        }
        Expr::Shared { value, path } => walk(Datum::from(value.view()), path, scope),
        Expr::Variable { slot, path } => {
            let value = scope.variables.get(*slot).cloned().unwrap_or(Datum::Missing);
            walk(value, path, scope)
        }
        Expr::Array(items) => {
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(evaluate(item, scope)?);
            }
            Datum::array(values, scope)
        }
        Expr::Object(fields) => object(fields, scope),
        Expr::Call(call) => run(call, scope),
        Expr::And(parts) => {
            for part in parts {
                if !evaluate(part, scope)?.is_true() {
                    return Ok(Datum::Bool(false));
                }
            }
            Ok(Datum::Bool(true))
        }
        Expr::Or(parts) => {
            for part in parts {
                if evaluate(part, scope)?.is_true() {
                    return Ok(Datum::Bool(true));
                }
            }
            Ok(Datum::Bool(false))
        }
        Expr::Cond(parts) => {
            let [condition, then, otherwise] = &**parts;
            let chosen = if evaluate(condition, scope)?.is_true() { then } else { otherwise };
            evaluate(chosen, scope)
        }
        Expr::IfNull(parts) => {
            let mut last = Datum::Missing;
            for part in parts {
                last = evaluate(part, scope)?;
                if !last.is_nullish() {
                    break;
                }
            }
            Ok(last)
        }
        Expr::Switch { branches, default } => switch(branches, default.as_deref(), scope),
        Expr::Let { variables, slot, body } => {
            for variable in variables {
                let value = evaluate(variable, scope)?;
                // Variables of one $let do not see each other: they wait among the arguments until all are there.
                scope.arguments.push(value);
            }
            let values = scope.arguments.split_off(scope.arguments.len() - variables.len());
            scope.variables.truncate(*slot);
            scope.variables.extend(values);
            let value = evaluate(body, scope);
            scope.variables.truncate(*slot);
            value
        }
        Expr::Map { input, slot, body } => map(input, *slot, body, scope),
        Expr::Filter { input, limit, slot, condition } => filter(input, limit.as_deref(), *slot, condition, scope),
        Expr::Reduce { input, initial, slot, body } => reduce(input, initial, *slot, body, scope),
        Expr::Convert(call) => convert::evaluate_call(call, scope),
        Expr::DateFromString(call) => date_parse::evaluate_call(call, scope),
        Expr::Regex(call) => regex::evaluate_call(call, scope),
    }
}

fn object<'a>(fields: &'a [(Box<str>, Expr)], scope: &mut Scope<'a>) -> Evaluated<'a> {
    let mut values = Vec::with_capacity(fields.len());
    for (name, field) in fields {
        values.push((Cow::Borrowed(&**name), evaluate(field, scope)?));
    }
    Datum::object(values, scope)
}

fn run<'a>(call: &'a Call, scope: &mut Scope<'a>) -> Evaluated<'a> {
    let base = scope.arguments.len();
    let mut given = 0;
    for (i, argument) in call.arguments.iter().enumerate() {
        let value = match argument {
            Some(argument) => {
                given |= 1_u32.checked_shl(i as u32).unwrap_or(0);
                evaluate(argument, scope)?
            }
            None => Datum::Missing,
        };
        scope.arguments.push(value);
    }
    // Most operators look at all of a text. Where it is long that is the cost, not the call.
    let text: usize = scope.arguments.iter().skip(base).filter_map(Datum::as_str).map(str::len).sum();
    scope.step(text as u64 / TEXT_BYTES_PER_STEP)?;
    let mut arguments = Arguments { scope, name: call.operator.name, base, given };
    let value = (call.operator.run)(&mut arguments);
    scope.arguments.truncate(base);
    value
}

/// Text that an operator gets for the cost of one step.
const TEXT_BYTES_PER_STEP: u64 = 64;

fn switch<'a>(branches: &'a [(Expr, Expr)], default: Option<&'a Expr>, scope: &mut Scope<'a>) -> Evaluated<'a> {
    for (case, then) in branches {
        if evaluate(case, scope)?.is_true() {
            return evaluate(then, scope);
        }
    }
    match default {
        Some(default) => evaluate(default, scope),
        None => {
            let code = if branches.is_empty() { 40069 } else { 40066 };
            let message = "$switch could not find a matching branch for an input, and no default was specified";
            Err(QueryError::location(code, message))
        }
    }
}

fn map<'a>(input: &'a Expr, slot: usize, body: &'a Expr, scope: &mut Scope<'a>) -> Evaluated<'a> {
    let input = evaluate(input, scope)?;
    if input.is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(elements) = input.elements() else {
        let message = format!("input to $map must be an array, not {}", input.type_name());
        return Err(QueryError::location(16883, message));
    };
    let mut values = Vec::new();
    for element in elements {
        bind(scope, slot, element);
        values.push(evaluate(body, scope)?);
        scope.charge(size_of::<Datum<'_>>())?;
    }
    scope.variables.truncate(slot);
    Datum::array(values, scope)
}

/// Puts a value in a slot that is the next to be made, or was made in the round before.
fn bind<'a>(scope: &mut Scope<'a>, slot: usize, value: Datum<'a>) {
    scope.variables.truncate(slot);
    scope.variables.push(value);
}

fn filter<'a>(
    input: &'a Expr,
    limit: Option<&'a Expr>,
    slot: usize,
    condition: &'a Expr,
    scope: &mut Scope<'a>,
) -> Evaluated<'a> {
    let input = evaluate(input, scope)?;
    if input.is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(elements) = input.elements() else {
        let message = format!("input to $filter must be an array, not {}", input.type_name());
        return Err(QueryError::location(28651, message));
    };
    let mut left = usize::MAX;
    if let Some(limit) = limit {
        let limit = evaluate(limit, scope)?;
        if !limit.is_nullish() {
            left = filter_limit(&limit)?;
        }
    }
    let mut values = Vec::new();
    for element in elements {
        bind(scope, slot, element.clone());
        if evaluate(condition, scope)?.is_true() {
            scope.charge(size_of::<Datum<'_>>() + element.bytes())?;
            values.push(element);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    scope.variables.truncate(slot);
    Datum::array(values, scope)
}

fn filter_limit(limit: &Datum<'_>) -> Result<usize, QueryError> {
    let whole = limit.as_number().and_then(Number::as_whole).and_then(|n| i32::try_from(n).ok());
    match whole {
        None => {
            let message =
                format!("$filter: limit must be represented as a 32-bit integral value, not {}", limit.type_name());
            Err(QueryError::location(327_391, message))
        }
        Some(n) if n < 1 => {
            Err(QueryError::location(327_392, format!("$filter: limit must be greater than 0, not {n}")))
        }
        Some(n) => Ok(n as usize),
    }
}

fn reduce<'a>(input: &'a Expr, initial: &'a Expr, slot: usize, body: &'a Expr, scope: &mut Scope<'a>) -> Evaluated<'a> {
    let input = evaluate(input, scope)?;
    if input.is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(elements) = input.elements() else {
        let message = format!("input to $reduce must be an array, not {}", input.type_name());
        return Err(QueryError::location(40080, message));
    };
    let before = scope.used();
    let mut value = evaluate(initial, scope)?;
    for element in elements {
        bind(scope, slot, value);
        scope.variables.push(element);
        value = evaluate(body, scope)?;
        // The value of the round before is gone: only the new one counts.
        scope.settle(before, value.bytes());
        scope.charge(0)?;
    }
    scope.variables.truncate(slot);
    Ok(value)
}

/// The value at a path: through objects by name, through arrays by collecting what their objects have there.
pub(super) fn walk<'a>(start: Datum<'a>, path: &[Box<str>], scope: &mut Scope<'a>) -> Evaluated<'a> {
    let mut here = start;
    for (i, name) in path.iter().enumerate() {
        here = match here {
            Datum::StoredObject(object) => Datum::from(object.get(name)),
            Datum::Object(_) => {
                scope.step(here.fields_to_search())?;
                here.field(name)
            }
            Datum::StoredArray(array) => return collect_stored(array, &path[i..], scope),
            Datum::Array(_) => return collect(&here, &path[i..], scope),
            _ => return Ok(Datum::Missing),
        };
    }
    Ok(here)
}

fn collect_stored<'a>(array: ArrayRef<'a>, path: &[Box<str>], scope: &mut Scope<'a>) -> Evaluated<'a> {
    let mut values = Vec::new();
    for element in array.iter().filter_map(JsonbRef::as_object) {
        scope.step(1)?;
        match walk(Datum::StoredObject(element), path, scope)? {
            Datum::Missing => {}
            value => values.push(value),
        }
    }
    Datum::array(values, scope)
}

fn collect<'a>(array: &Datum<'a>, path: &[Box<str>], scope: &mut Scope<'a>) -> Evaluated<'a> {
    let mut values = Vec::new();
    for element in array.elements().into_iter().flatten().filter(Datum::is_object) {
        scope.step(1)?;
        match walk(element, path, scope)? {
            Datum::Missing => {}
            value => values.push(value),
        }
    }
    Datum::array(values, scope)
}
