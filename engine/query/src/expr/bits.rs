//! Bitwise operators on ints and longs.

use super::datum::Datum;
use super::registry::{ANY, Arguments, ONE, Operator};
use crate::QueryError;
use crate::number::Number;

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$bitAnd", shape: ANY, run: |args| fold(args, -1, |a, b| a & b) },
    Operator { name: "$bitOr", shape: ANY, run: |args| fold(args, 0, |a, b| a | b) },
    Operator { name: "$bitXor", shape: ANY, run: |args| fold(args, 0, |a, b| a ^ b) },
    Operator { name: "$bitNot", shape: ONE, run: not },
];

fn fold<'a>(args: &Arguments<'_, 'a>, neutral: i64, op: fn(i64, i64) -> i64) -> Outcome<'a> {
    let (mut bits, mut wide) = (neutral, false);
    let mut null = false;
    for argument in args.all() {
        match argument {
            Datum::Missing | Datum::Null => null = true,
            Datum::Number(n @ (Number::Int32(_) | Number::Int64(_))) => {
                wide |= matches!(n, Number::Int64(_));
                bits = op(bits, n.as_i64().unwrap_or(0));
            }
            other => return Err(wrong(args.name, other)),
        }
    }
    if null {
        return Ok(Datum::Null);
    }
    Ok(if wide { Datum::long(bits) } else { Datum::int(bits as i32) })
}

fn not<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    match args.get(0) {
        Datum::Missing | Datum::Null => Ok(Datum::Null),
        Datum::Number(Number::Int32(n)) => Ok(Datum::int(!n)),
        Datum::Number(Number::Int64(n)) => Ok(Datum::long(!n)),
        other => Err(wrong(args.name, other)),
    }
}

fn wrong(name: &str, found: &Datum<'_>) -> QueryError {
    QueryError::type_mismatch(format!("{name} only supports int and long operands, not {}", found.type_name()))
}
