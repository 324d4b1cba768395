//! Documents with another value at one path, and values piled up to become an array.
//!
//! What stages that add a field share: `$unwind`, `$lookup`, `$graphLookup`, `$facet`. Recursion is bounded by the parts of
//! the path.

use crate::limits::{DOCUMENT_BYTES_MAX, NESTING_MAX, WRITTEN_BYTES_MAX};
use crate::path_walk::{FieldPath, Part};
use crate::sort::check_path;
use crate::transform::check_nesting;
use crate::{ParseContext, QueryError, scratch};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, ObjectRef, bson_size};

/// Reads a path to write to.
pub(super) fn path(text: &str, context: &ParseContext<'_>) -> Result<FieldPath, QueryError> {
    check_path(text).map_err(|e| e.at(&context.place))?;
    FieldPath::parse(text, &context.place)
}

/// The value at a path, through objects alone.
pub(super) fn at<'a>(document: JsonbRef<'a>, path: &FieldPath) -> Option<JsonbRef<'a>> {
    path.parts().iter().try_fold(document, |here, part| here.as_object()?.get(part.name()))
}

/// The document with what `value` writes at `path`; what stands in the way gives place to objects.
pub(super) fn with(
    document: JsonbRef<'_>,
    path: &FieldPath,
    capacity: usize,
    value: &mut dyn FnMut(&mut Builder),
) -> Result<JsonbBuf, QueryError> {
    let made = scratch::build(document.as_bytes().len() + capacity, |out| {
        set(document.as_object(), path.parts(), value, out)
    })?;
    if path.parts().len() > 1 {
        check_nesting(made.view(), NESTING_MAX)?;
    }
    Ok(made)
}

/// The document with `new` at `path` in the place of `old`, which stands there.
pub(super) fn replaced(
    document: JsonbRef<'_>,
    path: &FieldPath,
    old: JsonbRef<'_>,
    new: JsonbRef<'_>,
) -> Result<JsonbBuf, QueryError> {
    let capacity = (document.as_bytes().len() + new.as_bytes().len()).saturating_sub(old.as_bytes().len());
    scratch::build(capacity, |out| set(document.as_object(), path.parts(), &mut |out| out.copy(new), out))
}

/// The document without what stands at `path`.
pub(super) fn without(document: JsonbRef<'_>, path: &FieldPath) -> Result<JsonbBuf, QueryError> {
    scratch::build(document.as_bytes().len(), |out| remove(document, path.parts(), out))
}

fn set(
    object: Option<ObjectRef<'_>>,
    parts: &[Part],
    value: &mut dyn FnMut(&mut Builder),
    out: &mut Builder,
) -> Result<(), QueryError> {
    let Some((first, rest)) = parts.split_first() else {
        value(out);
        return Ok(());
    };
    out.begin_object();
    let mut found = false;
    for entry in object.into_iter().flatten() {
        out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
        if entry.name_bytes() == first.name().as_bytes() {
            found = true;
            set(entry.value.as_object(), rest, value, out)?;
        } else {
            out.copy(entry.value);
        }
    }
    if !found {
        out.field(first.name());
        set(None, rest, value, out)?;
    }
    out.end_object().map_err(too_large)
}

fn remove(here: JsonbRef<'_>, parts: &[Part], out: &mut Builder) -> Result<(), QueryError> {
    let (Some((first, rest)), Some(object)) = (parts.split_first(), here.as_object()) else {
        out.copy(here);
        return Ok(());
    };
    out.begin_object();
    for entry in object {
        let named = entry.name_bytes() == first.name().as_bytes();
        if named && rest.is_empty() {
            continue;
        }
        out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
        if named {
            remove(entry.value, rest, out)?;
        } else {
            out.copy(entry.value);
        }
    }
    out.end_object().map_err(too_large)
}

/// Refuses a value of more than 16 MiB as BSON.
pub(super) fn check_size(value: JsonbRef<'_>, what: &str) -> Result<(), QueryError> {
    /// No value takes so much more as BSON.
    const LARGER_MAX: usize = 16;
    if value.as_bytes().len() * LARGER_MAX <= DOCUMENT_BYTES_MAX || bson_size(value) <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    Err(above_limit(what))
}

fn above_limit(what: &str) -> QueryError {
    let message = format!("{what} would take more than {DOCUMENT_BYTES_MAX} bytes, the most that a document may");
    QueryError::new("BSONObjectTooLarge", 10334, message)
}

pub(super) fn too_large(error: quarrydb_jsonb::Error) -> QueryError {
    QueryError::new("BSONObjectTooLarge", 10334, error.to_string())
}

/// Values one after another.
#[derive(Debug, Default)]
pub(super) struct Pile {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Pile {
    pub(super) fn push(&mut self, value: JsonbRef<'_>) {
        self.bytes.extend_from_slice(value.as_bytes());
        self.ends.push(self.bytes.len());
    }

    /// The same where all of them are to stand in one document.
    ///
    /// # Errors
    /// `BSONObjectTooLarge` (10334) once they cannot.
    pub(super) fn push_for_one(&mut self, value: JsonbRef<'_>, what: &str) -> Result<(), QueryError> {
        self.push(value);
        if self.bytes.len() > WRITTEN_BYTES_MAX { Err(above_limit(what)) } else { Ok(()) }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }

    pub(super) fn get(&self, at: usize) -> Option<JsonbRef<'_>> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.bytes.get(start..end).map(JsonbRef::from_valid)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = JsonbRef<'_>> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Writes them as an array.
    pub(super) fn write(&self, out: &mut Builder) -> Result<(), QueryError> {
        out.begin_array();
        self.iter().for_each(|value| out.copy(value));
        out.end_array().map_err(too_large)
    }

    /// They as an array, no larger than a document.
    pub(super) fn to_array(&self, what: &str) -> Result<JsonbBuf, QueryError> {
        let array = scratch::build(self.bytes.len(), |out| self.write(out))?;
        check_size(array.view(), what)?;
        Ok(array)
    }
}
