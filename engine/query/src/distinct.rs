//! `distinct`: the different values that documents have at a path.
//!
//! Takes documents one by one; an array on the path and one at its end count as their elements. Values that are equal
//! across types are one, the first that came. Memory grows with the values: the caller watches [`Distinct::bytes`].

use crate::byte_set::ByteSet;
use crate::path_walk::{FieldPath, Part};
use crate::sort::check_path;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, ObjectRef, sort_key};

/// Collects the different values at a path.
#[derive(Debug)]
pub struct Distinct {
    path: FieldPath,
    seen: ByteSet,
    key: Vec<u8>,
    values: Vec<u8>,
    ends: Vec<usize>,
}

impl Distinct {
    /// For the path that a body's `key` names.
    ///
    /// # Errors
    /// `TypeMismatch` where it is no string, 40352 and its like where it is no path.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let Some(path) = value.as_str() else {
            let message = format!("the key of distinct is a path, not {}", value.kind().alias());
            return Err(QueryError::type_mismatch(message).at(&context.place));
        };
        check_path(path).map_err(|e| e.at(&context.place))?;
        let path = FieldPath::parse(path, &context.place)?;
        Ok(Self { path, seen: ByteSet::default(), key: Vec::new(), values: Vec::new(), ends: Vec::new() })
    }

    /// The path.
    #[must_use]
    pub fn path(&self) -> &FieldPath {
        &self.path
    }

    /// Adds a document's values.
    pub fn add(&mut self, document: JsonbRef<'_>) {
        let Self { path, seen, key, values, ends } = self;
        if let Some(object) = document.as_object() {
            each(object, path.parts(), &mut |value| add(value, seen, key, values, ends));
        }
    }

    /// Adds one value.
    pub fn add_value(&mut self, value: JsonbRef<'_>) {
        add(value, &mut self.seen, &mut self.key, &mut self.values, &mut self.ends);
    }

    /// The number of different values so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The bytes of memory that they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.seen.bytes() + self.values.len() + self.ends.len() * size_of::<usize>()
    }

    /// The values, in the order in which they came.
    pub fn values(&self) -> impl Iterator<Item = JsonbRef<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(from, to)| JsonbRef::from_valid(self.values.get(from..*to).unwrap_or_default()))
    }

    /// The values as one array.
    ///
    /// # Errors
    /// `BSONObjectTooLarge` where they take 4 GiB or more.
    pub fn to_array(&self) -> Result<JsonbBuf, QueryError> {
        let mut out = Builder::new();
        out.begin_array();
        self.values().for_each(|v| out.copy(v));
        out.end_array().map_err(|e| QueryError::new("BSONObjectTooLarge", 10334, e.to_string()))?;
        Ok(JsonbBuf::from_valid(out.take()))
    }
}

fn add(value: JsonbRef<'_>, seen: &mut ByteSet, key: &mut Vec<u8>, values: &mut Vec<u8>, ends: &mut Vec<usize>) {
    key.clear();
    sort_key(value, key);
    if seen.insert(key) {
        values.extend_from_slice(value.as_bytes());
        ends.push(values.len());
    }
}

/// Calls `visit` with each value at the path. A numeric part at an array names an element and nothing else. Recursion is
/// bounded by the parts.
fn each<'a>(object: ObjectRef<'a>, parts: &[Part], visit: &mut dyn FnMut(JsonbRef<'a>)) {
    let Some((first, rest)) = parts.split_first() else { return };
    if let Some(value) = object.get(first.name()) {
        each_in(value, rest, visit);
    }
}

fn each_in<'a>(value: JsonbRef<'a>, parts: &[Part], visit: &mut dyn FnMut(JsonbRef<'a>)) {
    match (value.as_array(), value.as_object(), parts.split_first()) {
        (Some(array), _, None) => array.iter().for_each(visit),
        (_, _, None) => visit(value),
        (Some(array), _, Some((first, rest))) => match first.index() {
            Some(index) => {
                if let Some(element) = array.get(index) {
                    each_in(element, rest, visit);
                }
            }
            None => array.iter().filter_map(JsonbRef::as_object).for_each(|o| each(o, parts, visit)),
        },
        (_, Some(object), _) => each(object, parts, visit),
        _ => {}
    }
}
