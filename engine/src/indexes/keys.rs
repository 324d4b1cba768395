//! The entries of a document in an index: one ordered byte key for each.
//!
//! Takes a definition and a document; gives keys, which compare as bytes as the index orders. What is missing is as null,
//! an array gives an entry for each element, an empty one that of undefined, below null; fields through one array take
//! the same element together, fields through two are refused (MongoDB's rules). Long values are cut, with a hash in the
//! place of the rest, so equality holds on and order does not: the facts say so.

use quarrydb_jsonb::{ArrayRef, JsonbRef, Kind, ObjectRef, Value, sort_key, sort_key_of};
use quarrydb_query::path_walk::Part;
use xxhash_rust::xxh3::xxh3_128;

use super::definition::IndexDefinition;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{INDEX_KEYS_BYTES_MAX, INDEX_KEYS_MAX};

/// The bracket of undefined, which an empty array is indexed as.
pub(super) const UNDEFINED: u8 = 3;
/// The bracket of null.
pub(super) const NULL_KEY: u8 = 5;
/// Bytes of one field's key that are kept of a longer one; a hash follows.
pub(super) const PART_BYTES_MAX: usize = 496;

/// What the entries of some documents have in common, gathered over all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Fields, from the first as the lowest bit, that lead through an array in some document.
    pub arrays: u32,
    /// A number in a path met an array: the path means a position and a name there, and the entries follow the position
    /// alone.
    pub positional: bool,
    /// Some value was cut.
    pub cut: bool,
    /// Some document has no entries though it should, because they are not allowed.
    pub incomplete: bool,
}

impl Facts {
    /// Those of both.
    pub(crate) fn merge(&mut self, other: Self) {
        self.arrays |= other.arrays;
        self.positional |= other.positional;
        self.cut |= other.cut;
        self.incomplete |= other.incomplete;
    }

    /// Whether a field leads through an array somewhere.
    pub(crate) fn is_array(&self, field: usize) -> bool {
        self.arrays >> field & 1 == 1
    }
}

/// The values of one entry, by field; none where the field is missing.
pub(crate) type EntryValues<'a> = [Option<JsonbRef<'a>>];

/// Takes the key and the values of one entry.
type Give<'g, 'a> = &'g mut dyn FnMut(&[u8], Vec<Option<JsonbRef<'a>>>) -> Result<()>;

/// Makes entries; keeps its room between documents.
#[derive(Debug, Default)]
pub(crate) struct KeyMaker {
    key: Vec<u8>,
    /// Of all documents so far.
    pub facts: Facts,
}

impl KeyMaker {
    /// Gives the key of each entry of `document`, each once; none where the index does not have the document.
    ///
    /// # Errors
    /// `CannotIndexParallelArrays` (171), `CannotBuildIndexKeys` (201); some may have been given then.
    #[inline]
    pub(crate) fn each(
        &mut self,
        index: &IndexDefinition,
        document: JsonbRef<'_>,
        mut give: impl FnMut(&[u8]),
    ) -> Result<()> {
        if index.partial.is_some() && !index.takes(document) {
            return Ok(());
        }
        self.key.clear();
        let object = document.as_object();
        let mut missing = true;
        for field in &index.fields {
            let value = match step(object, field.path.parts(), &mut self.facts) {
                Step::Value(value) => value,
                Step::Array(..) => return self.each_of_arrays(index, document, &mut |key, _| give(key)),
            };
            missing &= value.is_none();
            self.put(value.map_or(Place::Missing, Place::Value), field.descending);
        }
        if !(missing && index.sparse) {
            give(&self.key);
        }
        Ok(())
    }

    /// The same with the values of each entry.
    ///
    /// # Errors
    /// As [`KeyMaker::each`].
    pub(crate) fn each_with_values<'a>(
        &mut self,
        index: &IndexDefinition,
        document: JsonbRef<'a>,
        give: &mut dyn FnMut(&[u8], &EntryValues<'a>),
    ) -> Result<()> {
        if index.partial.is_some() && !index.takes(document) {
            return Ok(());
        }
        self.each_of_arrays(index, document, give)
    }

    #[cold]
    fn each_of_arrays<'a>(
        &mut self,
        index: &IndexDefinition,
        document: JsonbRef<'a>,
        give: &mut dyn FnMut(&[u8], &EntryValues<'a>),
    ) -> Result<()> {
        let slots: Vec<Slot<'a, '_>> = index.fields.iter().map(|field| Slot::Open(field.path.parts())).collect();
        let mut found = Vec::new();
        let mut bytes = 0;
        self.expand(index, &slots, document.as_object(), &mut |key, values| {
            bytes += key.len();
            if found.len() >= INDEX_KEYS_MAX || bytes > INDEX_KEYS_BYTES_MAX {
                return Err(too_many(index));
            }
            found.push((key.to_vec(), values));
            Ok(())
        })?;
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found.dedup_by(|a, b| a.0 == b.0);
        found.iter().for_each(|(key, values)| give(key, values));
        Ok(())
    }

    /// Goes on from `object` with every path that is still open, element by element where they meet an array.
    fn expand<'a>(
        &mut self,
        index: &IndexDefinition,
        slots: &[Slot<'a, '_>],
        object: Option<ObjectRef<'a>>,
        give: Give<'_, 'a>,
    ) -> Result<()> {
        let mut array: Option<(ArrayRef<'a>, usize)> = None;
        let mut next = Vec::with_capacity(slots.len());
        for (field, slot) in slots.iter().enumerate() {
            next.push(match slot {
                Slot::Open(parts) => match step(object, parts, &mut self.facts) {
                    Step::Value(value) => Slot::Done(value),
                    Step::Array(found, rest) => {
                        if let Some((other, of)) = array
                            && !std::ptr::eq(other.as_value().as_bytes(), found.as_value().as_bytes())
                        {
                            return Err(parallel(index, of, field));
                        }
                        array.get_or_insert((found, field));
                        self.facts.arrays |= 1 << field;
                        Slot::InArray(rest)
                    }
                },
                done => *done,
            });
        }
        let Some((array, _)) = array else { return self.finish(index, &next, give) };
        if array.is_empty() {
            for slot in &mut next {
                match slot {
                    Slot::InArray([]) => *slot = Slot::Empty(array),
                    Slot::InArray(_) => *slot = Slot::Done(None),
                    _ => {}
                }
            }
            return self.finish(index, &next, give);
        }
        let mut inside = next.clone();
        for element in array {
            for (slot, into) in next.iter().zip(&mut inside) {
                *into = match slot {
                    Slot::InArray([]) => Slot::Done(Some(element)),
                    Slot::InArray(rest) => Slot::Open(rest),
                    other => *other,
                };
            }
            self.expand(index, &inside, element.as_object(), give)?;
        }
        Ok(())
    }

    fn finish<'a>(&mut self, index: &IndexDefinition, slots: &[Slot<'a, '_>], give: Give<'_, 'a>) -> Result<()> {
        self.key.clear();
        let mut values = Vec::with_capacity(slots.len());
        let mut missing = true;
        for (field, slot) in index.fields.iter().zip(slots) {
            let (place, value) = match slot {
                Slot::Done(Some(value)) => (Place::Value(*value), Some(*value)),
                Slot::Empty(array) => (Place::Empty, Some(array.as_value())),
                _ => (Place::Missing, None),
            };
            missing &= value.is_none();
            self.put(place, field.descending);
            values.push(value);
        }
        if missing && index.sparse { Ok(()) } else { give(&self.key, values) }
    }

    /// Appends the key of one field.
    #[inline]
    fn put(&mut self, place: Place<'_>, descending: bool) {
        let from = self.key.len();
        match place {
            Place::Missing => self.key.push(NULL_KEY),
            Place::Empty => self.key.push(UNDEFINED),
            Place::Value(value) => self.facts.cut |= put_value(value, &mut self.key),
        }
        if descending {
            self.key[from..].iter_mut().for_each(|byte| *byte = !*byte);
        }
    }
}

/// Appends the ascending key of a value; whether it was cut.
#[inline]
pub(super) fn put_value(value: JsonbRef<'_>, out: &mut Vec<u8>) -> bool {
    let from = out.len();
    sort_key(value, out);
    cut(from, out)
}

/// The same of a value that lies in no document.
pub(super) fn put_scalar(value: &Value<'_>, out: &mut Vec<u8>) -> bool {
    let from = out.len();
    sort_key_of(value, out);
    cut(from, out)
}

#[inline]
fn cut(from: usize, out: &mut Vec<u8>) -> bool {
    if out.len() - from <= PART_BYTES_MAX {
        return false;
    }
    let hash = xxh3_128(&out[from..]);
    out.truncate(from + PART_BYTES_MAX);
    out.extend_from_slice(&hash.to_be_bytes());
    true
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Missing,
    Empty,
    Value(JsonbRef<'a>),
}

/// How far one path has come.
#[derive(Clone, Copy)]
enum Slot<'a, 'p> {
    /// These parts are still to go, from the object at hand.
    Open(&'p [Part]),
    /// It met the array at hand with these parts to go.
    InArray(&'p [Part]),
    /// It ended at a value, or nowhere.
    Done(Option<JsonbRef<'a>>),
    /// It ended at an empty array.
    Empty(ArrayRef<'a>),
}

enum Step<'a, 'p> {
    Value(Option<JsonbRef<'a>>),
    Array(ArrayRef<'a>, &'p [Part]),
}

/// Goes along a path to its end or to the first array that has to be taken apart. A number names an element where there
/// is one of that position.
#[inline]
fn step<'a, 'p>(object: Option<ObjectRef<'a>>, mut parts: &'p [Part], facts: &mut Facts) -> Step<'a, 'p> {
    let mut here = object.map(ObjectRef::as_value);
    // An array that a position named counts as a whole at the end of the path.
    let mut named = false;
    while let Some(value) = here {
        if value.kind() == Kind::Array
            && let Some(array) = value.as_array()
        {
            let position = parts.first().and_then(Part::index);
            facts.positional |= position.is_some();
            match (position.and_then(|i| array.get(i)), parts.split_first()) {
                (Some(element), Some((_, rest))) => (here, parts, named) = (Some(element), rest, true),
                (_, None) if named => return Step::Value(here),
                _ => return Step::Array(array, parts),
            }
            continue;
        }
        let Some((first, rest)) = parts.split_first() else { return Step::Value(here) };
        (here, parts, named) = (value.get(first.name()), rest, false);
    }
    Step::Value(None)
}

fn parallel(index: &IndexDefinition, one: usize, other: usize) -> Error {
    let path = |field: usize| index.fields.get(field).map_or("", |field| field.path.as_str());
    let message = format!("cannot index parallel arrays [{}] [{}] (index {})", path(other), path(one), index.name());
    Error::new(ErrorKind::InvalidInput, message).with_code("CannotIndexParallelArrays", 171)
}

fn too_many(index: &IndexDefinition) -> Error {
    let message = format!(
        "one document gives more than {INDEX_KEYS_MAX} entries, or {INDEX_KEYS_BYTES_MAX} bytes of them, in the index {}",
        index.name()
    );
    Error::new(ErrorKind::InvalidInput, message).with_code("CannotBuildIndexKeys", 201)
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
