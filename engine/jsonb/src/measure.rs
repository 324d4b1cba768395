//! How large a value would be as BSON: the measure that limits are stated in.
//!
//! Takes a value; gives bytes. Nothing is written.

use crate::parse::BODY_LEVELS_MAX;
use crate::view::{JsonbRef, Value};

/// The bytes that `v` would take as BSON, without the tag and name that an element has before it.
///
/// Containers nested deeper than any body may be count as empty.
#[must_use]
pub fn bson_size(v: JsonbRef<'_>) -> usize {
    size(v, BODY_LEVELS_MAX)
}

/// A container's length field and its closing NUL.
const FRAME_BYTES: usize = 4 + 1;
/// The type byte before an element's name, and the NUL after it.
const ELEMENT_BYTES: usize = 1 + 1;

fn size(v: JsonbRef<'_>, levels_left: u32) -> usize {
    match v.value() {
        Value::Null | Value::MinKey | Value::MaxKey => 0,
        Value::Bool(_) => 1,
        Value::Int32(_) => 4,
        Value::Int64(_) | Value::Double(_) | Value::Date(_) | Value::Timestamp { .. } => 8,
        Value::Decimal128(_) => 16,
        Value::ObjectId(_) => 12,
        Value::String(s) => 4 + s.len() + 1,
        // The old binary subtype has its length twice.
        Value::Binary { subtype, bytes } => 4 + 1 + bytes.len() + if subtype == 2 { 4 } else { 0 },
        Value::Regex { pattern, options } => pattern.len() + 1 + options.len() + 1,
        Value::Array(_) | Value::Object(_) if levels_left == 0 => FRAME_BYTES,
        Value::Array(array) => {
            let elements = array.iter().enumerate();
            let sizes = elements.map(|(i, v)| ELEMENT_BYTES + decimal_digits(i) + size(v, levels_left - 1));
            FRAME_BYTES + sizes.sum::<usize>()
        }
        Value::Object(object) => {
            let sizes = object.iter().map(|e| ELEMENT_BYTES + e.name_bytes().len() + size(e.value, levels_left - 1));
            FRAME_BYTES + sizes.sum::<usize>()
        }
    }
}

/// The digits of an array's index, which BSON has as the element's name.
fn decimal_digits(n: usize) -> usize {
    n.checked_ilog10().unwrap_or(0) as usize + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Builder;

    #[test]
    fn sizes_are_those_of_the_bson_specification() {
        // bsonspec.org, "Examples": {"hello": "world"} has 0x16 bytes, {"BSON": ["awesome", 5.05, 1986]} has 0x31.
        let mut b = Builder::new();
        b.begin_object();
        b.field("hello");
        b.string("world");
        b.end_object().expect("names differ");
        assert_eq!(bson_size(JsonbRef::from_valid(b.bytes())), 0x16);
        let from = b.len();
        b.begin_object();
        b.field("BSON");
        b.begin_array();
        b.string("awesome");
        b.double(5.05);
        b.int32(1986);
        b.end_array().expect("small");
        b.end_object().expect("names differ");
        assert_eq!(bson_size(JsonbRef::from_valid(&b.bytes()[from..])), 0x31);
    }
}
