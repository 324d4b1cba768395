//! The values that a join reads at a path of a document: `localField` of `$lookup`, `connectFromField` of `$graphLookup`.
//!
//! As MongoDB reads them: an array at the end gives its elements and not itself, one on the way is looked into (not
//! arrays in it), a number names a position where an array stands and a field elsewhere. What is missing gives nothing.
//! Recursion is bounded by the parts of the path.

use crate::path_walk::{FieldPath, Part};
use quarrydb_jsonb::{JsonbRef, ObjectRef};

/// Calls `each` with the values.
pub(super) fn at_path<'a>(document: JsonbRef<'a>, path: &FieldPath, each: &mut dyn FnMut(JsonbRef<'a>)) {
    if let Some(object) = document.as_object() {
        from_object(object, path.parts(), each);
    }
}

fn from_object<'a>(object: ObjectRef<'a>, parts: &[Part], each: &mut dyn FnMut(JsonbRef<'a>)) {
    let Some((first, mut rest)) = parts.split_first() else { return };
    let Some(mut value) = object.get(first.name()) else { return };
    while let (Some(array), Some((next, after))) = (value.as_array(), rest.split_first()) {
        let Some(index) = next.index() else { break };
        let Some(element) = array.get(index) else { return };
        (value, rest) = (element, after);
    }
    match (value.as_array(), value.as_object()) {
        (Some(array), _) if rest.is_empty() => array.iter().for_each(each),
        _ if rest.is_empty() => each(value),
        (Some(array), _) => array.iter().filter_map(JsonbRef::as_object).for_each(|o| from_object(o, rest, each)),
        (_, Some(object)) => from_object(object, rest, each),
        _ => {}
    }
}
