//! Which values of a document a dotted path means: the one place where MongoDB's rules for arrays on a path are written.
//!
//! Takes a parsed path and a value; gives the candidates one by one until the caller has seen enough. A candidate may be
//! *missing*, which is not null. The rules:
//!
//! * A name goes into an object. An object without it, and any scalar on the way, gives one missing candidate.
//! * An array on the way (the path goes on) is not itself a candidate: each of its elements that is an object is
//!   walked with the rest of the path; scalars and arrays among them give nothing. So an empty array gives none at all.
//! * A numeric part at an array names an element too: where it ends the path that element as it is (an array there is
//!   not taken apart); where it does not, an array there is walked in the same way, an object from its fields on.
//! * An array at the end of the path gives each element and then itself ([`Leaf::Elements`]), or itself alone
//!   ([`Leaf::Whole`]).
//!
//! Recursion is bounded by the parts of the path. Next: `filter/evaluate.rs`.

use crate::limits::PATH_PARTS_MAX;
use crate::{Place, QueryError};
use quarrydb_jsonb::{ArrayRef, JsonbRef, Kind, ObjectRef};
use std::collections::HashSet;
use std::fmt;

/// A dotted path, taken apart.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct FieldPath {
    text: Box<str>,
    parts: Box<[Part]>,
    numeric_parts: usize,
}

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    name: Box<str>,
    index: Option<usize>,
}

impl Part {
    fn new(name: &str) -> Self {
        Self { name: name.into(), index: array_index(name) }
    }

    /// The field name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The position that it names in an array: digits without leading zeros.
    #[must_use]
    pub fn index(&self) -> Option<usize> {
        self.index
    }
}

/// The array position that a field name means; none for `01`, `-1` or `1e3`.
#[must_use]
pub fn array_index(name: &str) -> Option<usize> {
    let bytes = name.as_bytes();
    let canonical = bytes == b"0" || (matches!(bytes.first(), Some(b'1'..=b'9')) && bytes.len() <= 10);
    if canonical && bytes.iter().all(u8::is_ascii_digit) { name.parse().ok() } else { None }
}

impl FieldPath {
    /// Takes a path apart at its dots. Empty parts are names like any other.
    ///
    /// # Errors
    /// `BadValue` where it has more than [`PATH_PARTS_MAX`] parts.
    pub fn parse(text: &str, place: &Place<'_>) -> Result<Self, QueryError> {
        let parts: Box<[Part]> = text.split('.').take(PATH_PARTS_MAX + 1).map(Part::new).collect();
        if parts.len() > PATH_PARTS_MAX {
            let message = format!("a path of more than {PATH_PARTS_MAX} parts: a path has at most that many");
            return Err(QueryError::bad_value(message).at(place));
        }
        let numeric_parts = parts.iter().filter(|p| p.index.is_some()).count();
        Ok(Self { text: text.into(), parts, numeric_parts })
    }

    /// The path as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Its parts; at least one.
    #[must_use]
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }
}

impl fmt::Debug for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

/// What an array at the end of a path gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// Each element, then the array itself.
    Elements,
    /// The array itself.
    Whole,
}

/// A value that a path leads to; none where it is missing.
pub type Candidate<'a> = Option<JsonbRef<'a>>;

/// Numeric parts up to here are walked without remembering where the walk has been. A numeric part at an array of
/// objects leads on in two ways, so the steps may double with each; with more of them the walk remembers.
const NUMERIC_PARTS_FREE: usize = 6;

/// Walks `path` from `root` and calls `visit` with each candidate and the position of the element that led to it in the
/// outermost array, until `visit` says true. Says whether it did. `root` is taken as an object: an array there has the
/// fields `0`, `1` and so on.
#[inline]
pub fn any<'a>(
    path: &FieldPath,
    root: JsonbRef<'a>,
    leaf: Leaf,
    mut visit: impl FnMut(Candidate<'a>, Option<usize>) -> bool,
) -> bool {
    let parts = &*path.parts;
    // The common case by hand: one name in an object, and no array there.
    if let ([part], Some(object)) = (parts, root.as_object()) {
        let value = object.get(&part.name);
        if leaf == Leaf::Whole || value.is_none_or(|v| v.kind() != Kind::Array) {
            return visit(value, None);
        }
    }
    any_slow(path, root, leaf, &mut visit)
}

fn any_slow<'a>(
    path: &FieldPath,
    root: JsonbRef<'a>,
    leaf: Leaf,
    visit: &mut dyn FnMut(Candidate<'a>, Option<usize>) -> bool,
) -> bool {
    let seen = (path.numeric_parts > NUMERIC_PARTS_FREE).then(HashSet::new);
    let mut walk = Walk { leaf, visit, seen };
    match (root.as_object(), root.as_array(), path.parts.split_first()) {
        (Some(object), _, _) => walk.object(object, &path.parts, None),
        (_, Some(array), Some((first, rest))) => match first.index.and_then(|i| array.get(i)) {
            Some(value) => walk.value(value, rest, None),
            None => (walk.visit)(None, None),
        },
        _ => (walk.visit)(None, None),
    }
}

struct Walk<'a, 'v> {
    leaf: Leaf,
    visit: &'v mut dyn FnMut(Candidate<'a>, Option<usize>) -> bool,
    /// Objects already walked, by address and parts left: they have no other candidates the second time.
    seen: Option<HashSet<(usize, usize)>>,
}

impl<'a> Walk<'a, '_> {
    /// An object, with all of `parts` before it.
    fn object(&mut self, object: ObjectRef<'a>, parts: &[Part], position: Option<usize>) -> bool {
        if let Some(seen) = &mut self.seen
            && !seen.insert((object.as_value().as_bytes().as_ptr() as usize, parts.len()))
        {
            return false;
        }
        // Objects in objects are stepped into here, so that only arrays recurse.
        let (mut object, mut parts) = (object, parts);
        while let Some((first, rest)) = parts.split_first() {
            let Some(value) = object.get(&first.name) else { return (self.visit)(None, position) };
            match value.as_object() {
                Some(inner) if !rest.is_empty() => (object, parts) = (inner, rest),
                _ => return self.value(value, rest, position),
            }
        }
        (self.visit)(Some(object.as_value()), position)
    }

    /// A value that the path before `rest` led to.
    fn value(&mut self, value: JsonbRef<'a>, rest: &[Part], position: Option<usize>) -> bool {
        if let Some(array) = value.as_array() {
            return if rest.is_empty() { self.leaf(array, position) } else { self.array(array, rest, position) };
        }
        match value.as_object() {
            _ if rest.is_empty() => (self.visit)(Some(value), position),
            Some(object) => self.object(object, rest, position),
            None => (self.visit)(None, position),
        }
    }

    /// An array at the end of the path.
    fn leaf(&mut self, array: ArrayRef<'a>, position: Option<usize>) -> bool {
        if self.leaf == Leaf::Elements {
            for (i, element) in array.iter().enumerate() {
                if (self.visit)(Some(element), position.or(Some(i))) {
                    return true;
                }
            }
        }
        (self.visit)(Some(array.as_value()), position)
    }

    /// An array on the way.
    fn array(&mut self, array: ArrayRef<'a>, parts: &[Part], position: Option<usize>) -> bool {
        let Some((first, rest)) = parts.split_first() else { return false };
        let outer = position;
        for (i, element) in array.iter().enumerate() {
            let position = outer.or(Some(i));
            let object = element.as_object();
            if let Some(object) = object
                && self.object(object, parts, position)
            {
                return true;
            }
            if first.index != Some(i) {
                continue;
            }
            let found = match (object, element.as_array()) {
                _ if rest.is_empty() => (self.visit)(Some(element), position),
                // The element was named, not found: the position is that in the next array, if one comes.
                (Some(object), _) => self.object(object, rest, outer),
                (_, Some(inner)) => self.array(inner, rest, outer),
                _ => false,
            };
            if found {
                return true;
            }
        }
        false
    }
}
