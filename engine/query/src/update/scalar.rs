//! What `$inc`, `$mul`, `$min`, `$max`, `$bit` and `$currentDate` make of the value that stands at a path.
//!
//! Takes that value (or none) and appends the new one to a builder. Knows nothing of paths or documents. Next:
//! `arrays.rs` for the operators on arrays, `apply.rs` for who calls.

use super::ast::{BitOp, Leaf, Op};
use super::parse::kind;
use crate::QueryError;
use crate::number::{Number, Operation};
use quarrydb_jsonb::{Builder, JsonbRef, compare};
use std::cmp::Ordering;

/// The operation's time, for `$currentDate` and `$$NOW`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Milliseconds since 1970-01-01 UTC.
    pub now_ms: i64,
    /// Seconds since 1970-01-01 UTC and the count within that second, for timestamps.
    pub timestamp: (u32, u32),
}

/// Appends what a scalar operator makes of `current`. Operators of other kinds leave it as it is.
#[inline]
pub(super) fn write(
    leaf: &Leaf,
    current: Option<JsonbRef<'_>>,
    clock: Clock,
    out: &mut Builder,
) -> Result<(), QueryError> {
    match &leaf.op {
        Op::Inc(by) => arithmetic(leaf, "$inc", Operation::Add, *by, current)?.write(out),
        Op::Mul(by) => arithmetic(leaf, "$mul", Operation::Mul, *by, current)?.write(out),
        Op::Set(value) | Op::SetOnInsert(value) => out.copy(value.view()),
        Op::Min(value) => out.copy(extreme(value.view(), current, Ordering::Less)),
        Op::Max(value) => out.copy(extreme(value.view(), current, Ordering::Greater)),
        Op::Bit(ops) => bits(leaf, ops, current)?.write(out),
        Op::CurrentDate { timestamp: false } => out.date(clock.now_ms),
        Op::CurrentDate { timestamp: true } => out.timestamp(clock.timestamp.0, clock.timestamp.1),
        _ => out.copy(current.unwrap_or(quarrydb_jsonb::NULL)),
    }
    Ok(())
}

fn arithmetic(
    leaf: &Leaf,
    name: &str,
    op: Operation,
    by: Number,
    current: Option<JsonbRef<'_>>,
) -> Result<Number, QueryError> {
    let Some(current) = current else {
        return Ok(if op == Operation::Mul { by.zero_of_type() } else { by });
    };
    let Some(n) = Number::of(current) else {
        let message = format!(
            "cannot apply {name} to a value of non-numeric type: the field '{}' is of type {}",
            leaf.path,
            kind(current)
        );
        return Err(QueryError::type_mismatch(message));
    };
    n.combine(op, by).ok_or_else(|| {
        let message = format!("{name} on the field '{}' overflows a 64-bit integer", leaf.path);
        QueryError::bad_value(message)
    })
}

fn extreme<'a>(value: JsonbRef<'a>, current: Option<JsonbRef<'a>>, wanted: Ordering) -> JsonbRef<'a> {
    match current {
        Some(current) if compare(value, current) != wanted => current,
        _ => value,
    }
}

fn bits(leaf: &Leaf, ops: &[(BitOp, Number)], current: Option<JsonbRef<'_>>) -> Result<Number, QueryError> {
    let start = match current.map(|c| (c, Number::of(c))) {
        None => Number::Int32(0),
        Some((_, Some(n @ (Number::Int32(_) | Number::Int64(_))))) => n,
        Some((c, _)) => {
            let message = format!(
                "cannot apply $bit to a value of non-integral type: the field '{}' is of type {}",
                leaf.path,
                kind(c)
            );
            return Err(QueryError::bad_value(message));
        }
    };
    let mut wide = matches!(start, Number::Int64(_));
    let mut n = start.as_i64().unwrap_or(0);
    for (op, operand) in ops {
        wide |= matches!(operand, Number::Int64(_));
        let operand = operand.as_i64().unwrap_or(0);
        n = match op {
            BitOp::And => n & operand,
            BitOp::Or => n | operand,
            BitOp::Xor => n ^ operand,
        };
    }
    Ok(match i32::try_from(n) {
        Ok(n) if !wide => Number::Int32(n),
        _ => Number::Int64(n),
    })
}
