//! `$toHashedIndexKey`: the number that MongoDB's hashed indexes keep for a value.
//!
//! The first 8 bytes of an MD5 of a seed, then of each value: its place in the order of types, its name inside a container,
//! its bytes as BSON. Numbers of all types are hashed as the int64 that they are cut to.

use super::datum::Datum;
use super::md5::Md5;
use super::registry::{Arguments, ONE, Operator};
use crate::QueryError;
use crate::decimal::{self, Round};
use quarrydb_jsonb::{JsonbRef, NULL, Value};

pub(super) const OPERATORS: &[Operator] = &[Operator { name: "$toHashedIndexKey", shape: ONE, run: hashed }];

/// The seed of hashed indexes.
const SEED: i32 = 0;
/// The place of what ends an object.
const END: i32 = 0;
/// 2^63: beyond every int64.
const INT64_END: f64 = 9_223_372_036_854_775_808.0;
/// How deep it looks: no document nests deeper.
const LEVELS_MAX: usize = crate::limits::NESTING_MAX;
/// Bytes hashed for the cost of one step.
const BYTES_PER_STEP: u64 = 64;

fn hashed<'a>(args: &mut Arguments<'_, 'a>) -> Result<Datum<'a>, QueryError> {
    let encoded = args.get(0).encoded()?;
    let value = match args.get(0) {
        Datum::Missing => NULL,
        _ => encoded.view(),
    };
    let bytes = value.as_bytes().len() as u64;
    let mut digest = Md5::new();
    digest.add(&SEED.to_le_bytes());
    add(&mut digest, value, LEVELS_MAX);
    let [a, b, c, d, e, f, g, h, ..] = digest.finish();
    drop(encoded);
    args.scope.step(bytes / BYTES_PER_STEP)?;
    Ok(Datum::long(i64::from_le_bytes([a, b, c, d, e, f, g, h])))
}

fn add(digest: &mut Md5, value: JsonbRef<'_>, levels: usize) {
    digest.add(&place(value).to_le_bytes());
    add_bytes(digest, value, levels);
}

fn add_named(digest: &mut Md5, name: &[u8], value: JsonbRef<'_>, levels: usize) {
    digest.add(&place(value).to_le_bytes());
    digest.add(name);
    digest.add(&[0]);
    add_bytes(digest, value, levels);
}

/// BSON's canonical type.
fn place(value: JsonbRef<'_>) -> i32 {
    match value.value() {
        Value::MinKey => -1,
        Value::Null => 5,
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => 10,
        Value::String(_) => 15,
        Value::Object(_) => 20,
        Value::Array(_) => 25,
        Value::Binary { .. } => 30,
        Value::ObjectId(_) => 35,
        Value::Bool(_) => 40,
        Value::Date(_) => 45,
        Value::Timestamp { .. } => 47,
        Value::Regex { .. } => 50,
        Value::MaxKey => 127,
    }
}

fn add_bytes(digest: &mut Md5, value: JsonbRef<'_>, levels: usize) {
    let length = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes();
    match value.value() {
        Value::Null | Value::MinKey | Value::MaxKey => {}
        Value::Bool(b) => digest.add(&[u8::from(b)]),
        Value::Int32(n) => digest.add(&i64::from(n).to_le_bytes()),
        Value::Int64(n) => digest.add(&n.to_le_bytes()),
        Value::Double(d) => digest.add(&cut(d).to_le_bytes()),
        Value::Decimal128(d) => {
            let whole = decimal::to_i128(decimal::round_to(d, 0, Round::HalfEven));
            let n = match whole {
                Some(n) => n.clamp(i64::MIN.into(), i64::MAX.into()) as i64,
                None if d.is_nan() => 0,
                None if d.is_negative() => i64::MIN,
                None => i64::MAX,
            };
            digest.add(&n.to_le_bytes());
        }
        Value::String(s) => {
            digest.add(&length(s.len() + 1));
            digest.add(s.as_bytes());
            digest.add(&[0]);
        }
        Value::Binary { subtype, bytes } => {
            // The old subtype has its length twice.
            let outer = if subtype == 2 { bytes.len() + 4 } else { bytes.len() };
            digest.add(&length(outer));
            digest.add(&[subtype]);
            if subtype == 2 {
                digest.add(&length(bytes.len()));
            }
            digest.add(bytes);
        }
        Value::ObjectId(id) => digest.add(&id),
        Value::Date(ms) => digest.add(&ms.to_le_bytes()),
        Value::Timestamp { seconds, increment } => {
            digest.add(&increment.to_le_bytes());
            digest.add(&seconds.to_le_bytes());
        }
        Value::Regex { pattern, options } => {
            for text in [pattern, options] {
                digest.add(text.as_bytes());
                digest.add(&[0]);
            }
        }
        Value::Array(_) | Value::Object(_) if levels == 0 => {}
        Value::Array(array) => {
            for (i, element) in array.iter().enumerate() {
                add_named(digest, i.to_string().as_bytes(), element, levels - 1);
            }
            digest.add(&END.to_le_bytes());
        }
        Value::Object(object) => {
            for field in object {
                add_named(digest, field.name_bytes(), field.value, levels - 1);
            }
            digest.add(&END.to_le_bytes());
        }
    }
}

/// A double without its fraction, as the int64 that MongoDB hashes: 2^63 alone becomes the least one, by history.
fn cut(d: f64) -> i64 {
    if d == INT64_END { i64::MIN } else { d as i64 }
}
