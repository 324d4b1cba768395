//! MongoDB's total order over values of all types.
//!
//! Takes two values, gives their order: first by bracket ([`type_rank`]), inside it by value. `sort_key.rs` writes keys
//! that have the same order; the two are tested against each other. Allocates nothing; the stack is bounded by
//! [`COMPARE_DEPTH_MAX`]. The documented rules are those of "Comparison/Sort Order" in MongoDB's manual.

use core::cmp::Ordering;

use crate::array::ArrayRef;
use crate::number::Number;
use crate::object::ObjectRef;
use crate::tag::Kind;
use crate::view::{JsonbRef, Value};

/// Containers nested deeper than this are ordered by their bytes: only values that `validate` refuses are, and these must
/// not exhaust the stack.
pub(crate) const COMPARE_DEPTH_MAX: usize = 256;

/// The bracket of the total order that a kind falls in; also the first byte of its sort key. The numbers leave room for
/// undefined (3, below null), DBPointer and JavaScript (55 to 65, above regex). 0 is no bracket.
#[inline]
#[must_use]
pub const fn type_rank(kind: Kind) -> u8 {
    match kind {
        Kind::MinKey => 1,
        Kind::Null => 5,
        Kind::Int32 | Kind::Int64 | Kind::Double | Kind::Decimal128 => 10,
        Kind::String => 15,
        Kind::Object => 20,
        Kind::Array => 25,
        Kind::Binary => 30,
        Kind::ObjectId => 35,
        Kind::Bool => 40,
        Kind::Date => 45,
        Kind::Timestamp => 47,
        Kind::Regex => 50,
        Kind::MaxKey => 127,
    }
}

/// The order of two values of any types. Numbers compare by value across their types, NaN below all of them; strings by
/// bytes; objects field by field in field order (bracket of the value, name, value, then fewer fields first); arrays
/// element by element; binary by length, subtype, bytes.
#[inline]
#[must_use]
pub fn compare(a: JsonbRef<'_>, b: JsonbRef<'_>) -> Ordering {
    compare_at(a, b, 0)
}

/// Whether two values are equal in the total order: `1`, `1.0` and decimal `1.00` are.
#[inline]
#[must_use]
pub fn equal(a: JsonbRef<'_>, b: JsonbRef<'_>) -> bool {
    // Equal bytes are equal values, whatever they are: NaN equals NaN.
    a.as_bytes() == b.as_bytes() || compare(a, b) == Ordering::Equal
}

fn compare_at(a: JsonbRef<'_>, b: JsonbRef<'_>, depth: usize) -> Ordering {
    let (kind_a, kind_b) = (a.kind(), b.kind());
    type_rank(kind_a).cmp(&type_rank(kind_b)).then_with(|| compare_in_bracket(a, b, depth))
}

/// The order of two values of one bracket.
fn compare_in_bracket(a: JsonbRef<'_>, b: JsonbRef<'_>, depth: usize) -> Ordering {
    if let (Some(a), Some(b)) = (a.as_str_bytes(), b.as_str_bytes()) {
        return a.cmp(b);
    }
    if let (Some(a), Some(b)) = (Number::of(a), Number::of(b)) {
        return a.compare(b);
    }
    match (a.value(), b.value()) {
        (Value::Object(a), Value::Object(b)) => compare_objects(a, b, depth),
        (Value::Array(a), Value::Array(b)) => compare_arrays(a, b, depth),
        (Value::Binary { subtype: s, bytes: a }, Value::Binary { subtype: t, bytes: b }) => {
            (a.len(), s, a).cmp(&(b.len(), t, b))
        }
        (Value::ObjectId(a), Value::ObjectId(b)) => a.cmp(&b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(&b),
        (Value::Date(a), Value::Date(b)) => a.cmp(&b),
        (Value::Timestamp { seconds: s, increment: i }, Value::Timestamp { seconds: t, increment: j }) => {
            (s, i).cmp(&(t, j))
        }
        (Value::Regex { pattern: p, options: o }, Value::Regex { pattern: q, options: r }) => {
            (p.as_bytes(), o.as_bytes()).cmp(&(q.as_bytes(), r.as_bytes()))
        }
        // MinKey, null and MaxKey are one value each.
        _ => Ordering::Equal,
    }
}

fn compare_objects(a: ObjectRef<'_>, b: ObjectRef<'_>, depth: usize) -> Ordering {
    if depth >= COMPARE_DEPTH_MAX {
        return a.as_value().as_bytes().cmp(b.as_value().as_bytes());
    }
    let (mut fields_a, mut fields_b) = (a.iter(), b.iter());
    loop {
        let (x, y) = match (fields_a.next(), fields_b.next()) {
            (Some(x), Some(y)) => (x, y),
            (x, y) => return x.is_some().cmp(&y.is_some()),
        };
        let order = type_rank(x.value.kind())
            .cmp(&type_rank(y.value.kind()))
            .then_with(|| x.name_bytes().cmp(y.name_bytes()))
            .then_with(|| compare_in_bracket(x.value, y.value, depth + 1));
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_arrays(a: ArrayRef<'_>, b: ArrayRef<'_>, depth: usize) -> Ordering {
    if depth >= COMPARE_DEPTH_MAX {
        return a.as_value().as_bytes().cmp(b.as_value().as_bytes());
    }
    let (mut elements_a, mut elements_b) = (a.iter(), b.iter());
    loop {
        let (x, y) = match (elements_a.next(), elements_b.next()) {
            (Some(x), Some(y)) => (x, y),
            (x, y) => return x.is_some().cmp(&y.is_some()),
        };
        let order = compare_at(x, y, depth + 1);
        if order != Ordering::Equal {
            return order;
        }
    }
}
