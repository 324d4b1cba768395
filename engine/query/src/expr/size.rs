//! Sizes in bytes, and the parts of a timestamp.

use super::datum::Datum;
use super::registry::{Arguments, ONE, Operator};
use crate::QueryError;
use quarrydb_jsonb::{Value, bson_size};

type Outcome<'a> = Result<Datum<'a>, QueryError>;

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$binarySize", shape: ONE, run: binary_size },
    Operator { name: "$bsonSize", shape: ONE, run: object_size },
    Operator { name: "$tsSecond", shape: ONE, run: |args| timestamp(args, true) },
    Operator { name: "$tsIncrement", shape: ONE, run: |args| timestamp(args, false) },
];

/// The longest string that an operator builds.
pub(super) const TEXT_BYTES_MAX: usize = 64 << 20;

/// What is said where a string would be longer.
pub(super) fn too_long(name: &str) -> QueryError {
    let message = format!("{name} would build a string of more than {TEXT_BYTES_MAX} bytes");
    QueryError::new("ExceededMemoryLimit", 146, message)
}

fn binary_size<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let argument = args.get(0);
    if argument.is_nullish() {
        return Ok(Datum::Null);
    }
    if let Some(s) = argument.as_str() {
        return Ok(Datum::count(s.len()));
    }
    match argument.other() {
        Some(Value::Binary { bytes, .. }) => Ok(Datum::count(bytes.len())),
        _ => {
            let message = format!("$binarySize requires a string or BinData argument, found: {}", argument.type_name());
            Err(QueryError::location(51276, message))
        }
    }
}

fn object_size<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let argument = args.get(0);
    if argument.is_nullish() {
        return Ok(Datum::Null);
    }
    if !argument.is_object() {
        let message = format!("$bsonSize requires a document input, found: {}", argument.type_name());
        return Err(QueryError::location(31393, message));
    }
    Ok(Datum::count(bson_size(argument.encoded()?.view())))
}

fn timestamp<'a>(args: &Arguments<'_, 'a>, second: bool) -> Outcome<'a> {
    let argument = args.get(0);
    if argument.is_nullish() {
        return Ok(Datum::Null);
    }
    match argument.other() {
        Some(Value::Timestamp { seconds, increment }) => {
            Ok(Datum::long(i64::from(if second { seconds } else { increment })))
        }
        _ => {
            let code = if second { 5_687_301 } else { 5_687_302 };
            let message = format!("{} requires a timestamp argument, found: {}", args.name, argument.type_name());
            Err(QueryError::location(code, message))
        }
    }
}
