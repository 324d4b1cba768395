//! Sorting: the order of documents by some of their paths.
//!
//! Takes the object of a body, gives for each document a key whose order as bytes is the order asked for. What is missing
//! is as null. An array counts with its smallest element where ascending and with its largest where descending; an empty
//! one comes before null. Of several paths through one array, all take the same element. Ties are the caller's to break.

use crate::error::shown;
use crate::expr::Budget;
use crate::limits::SORT_FIELDS_MAX;
use crate::meter::Meter;
use crate::path_walk::{FieldPath, Part};
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{ArrayRef, JsonbRef, NULL, ObjectRef, sort_key, sort_key_descending};
use std::cmp::Ordering;

/// The bracket of undefined in a sort key, which an empty array sorts as: below null, above the least key.
const EMPTY_ARRAY_KEY: u8 = 3;

/// A parsed sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sort {
    fields: Vec<SortField>,
    natural: Option<Direction>,
}

/// One path of a sort.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortField {
    /// The path.
    pub path: FieldPath,
    /// Which way.
    pub direction: Direction,
}

/// Which way to sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Smallest first.
    Ascending,
    /// Largest first.
    Descending,
}

impl Sort {
    /// Parses `{path: 1 or -1, ...}`; `{$natural: 1 or -1}` asks for the order in storage.
    ///
    /// # Errors
    /// With MongoDB's number: 15974 and 15975 for a direction, 40352 and its like for a path.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        let Some(object) = value.as_object() else {
            let message = format!("a sort is an object of paths and directions, not {}", value.kind().alias());
            return Err(QueryError::type_mismatch(message).at(&place));
        };
        if object.len() > SORT_FIELDS_MAX {
            let message = format!("a sort by {} paths: it has at most {SORT_FIELDS_MAX}", object.len());
            return Err(QueryError::bad_value(message).at(&place));
        }
        let mut sort = Self { fields: Vec::with_capacity(object.len()), natural: None };
        for entry in object {
            let name = entry.name();
            let place = place.name(name);
            let direction = direction(name, entry.value, &place)?;
            if name == "$natural" {
                if object.len() > 1 {
                    return Err(QueryError::bad_value("$natural stands alone in a sort").at(&place));
                }
                sort.natural = Some(direction);
            } else {
                check_path(name).map_err(|e| e.at(&place))?;
                sort.fields.push(SortField { path: FieldPath::parse(name, &place)?, direction });
            }
        }
        Ok(sort)
    }

    /// The paths in their order.
    #[must_use]
    pub fn fields(&self) -> &[SortField] {
        &self.fields
    }

    /// The order in storage, where that is asked for.
    #[must_use]
    pub fn natural(&self) -> Option<Direction> {
        self.natural
    }

    /// Appends the key of a document.
    ///
    /// # Errors
    /// `BadValue` where two paths lead through different arrays.
    pub fn key(&self, document: JsonbRef<'_>, out: &mut Vec<u8>) -> Result<(), QueryError> {
        self.key_within(document, out, Budget::default())
    }

    /// The same with a way to stop: it is asked now and then whether to go on.
    ///
    /// # Errors
    /// As [`Sort::key`], `MaxTimeMSExpired` (50) where it was stopped.
    pub fn key_within(&self, document: JsonbRef<'_>, out: &mut Vec<u8>, budget: Budget<'_>) -> Result<(), QueryError> {
        let start = out.len();
        for field in &self.fields {
            match step(document.as_object(), field.path.parts()) {
                Step::Value(value) => field.direction.write(value.unwrap_or(NULL), out),
                Step::Array(..) => {
                    out.truncate(start);
                    return self.key_through_arrays(document, out, &Meter::new(budget));
                }
            }
        }
        Ok(())
    }

    /// The order of two documents.
    ///
    /// # Errors
    /// As [`Sort::key`].
    pub fn compare(&self, a: JsonbRef<'_>, b: JsonbRef<'_>) -> Result<Ordering, QueryError> {
        let (mut key_a, mut key_b) = (Vec::new(), Vec::new());
        self.key(a, &mut key_a)?;
        self.key(b, &mut key_b)?;
        Ok(key_a.cmp(&key_b))
    }

    fn key_through_arrays(
        &self,
        document: JsonbRef<'_>,
        out: &mut Vec<u8>,
        meter: &Meter<'_>,
    ) -> Result<(), QueryError> {
        let slots: Vec<Slot<'_, '_>> = self.fields.iter().map(|f| Slot::Open(f.path.parts())).collect();
        let mut least = None;
        self.expand(&slots, document.as_object(), &mut least, meter)?;
        out.extend_from_slice(&least.unwrap_or_default());
        Ok(())
    }

    /// Goes on from `object` with every path that is still open, element by element where they meet an array, and keeps
    /// the least key.
    fn expand<'a>(
        &self,
        slots: &[Slot<'a, '_>],
        object: Option<ObjectRef<'a>>,
        least: &mut Option<Vec<u8>>,
        meter: &Meter<'_>,
    ) -> Result<(), QueryError> {
        meter.step(self.fields.len() as u64)?;
        let mut array: Option<ArrayRef<'a>> = None;
        let mut next = Vec::with_capacity(slots.len());
        for slot in slots {
            next.push(match slot {
                Slot::Open(parts) => match step(object, parts) {
                    Step::Value(value) => Slot::Done(value.unwrap_or(NULL)),
                    Step::Array(found, rest) => {
                        if array.is_some_and(|a| !std::ptr::eq(a.as_value().as_bytes(), found.as_value().as_bytes())) {
                            return Err(QueryError::bad_value("cannot sort with keys that are parallel arrays"));
                        }
                        array = Some(found);
                        Slot::InArray(rest)
                    }
                },
                done => *done,
            });
        }
        let Some(array) = array else {
            self.keep_least(&next, least);
            return Ok(());
        };
        if array.is_empty() {
            for slot in &mut next {
                match slot {
                    Slot::InArray([]) => *slot = Slot::Empty,
                    Slot::InArray(_) => *slot = Slot::Done(NULL),
                    _ => {}
                }
            }
            self.keep_least(&next, least);
            return Ok(());
        }
        let mut inside = next.clone();
        for element in array {
            for (slot, into) in next.iter().zip(&mut inside) {
                *into = match slot {
                    Slot::InArray([]) => Slot::Done(element),
                    Slot::InArray(rest) => Slot::Open(rest),
                    other => *other,
                };
            }
            self.expand(&inside, element.as_object(), least, meter)?;
        }
        Ok(())
    }

    fn keep_least(&self, slots: &[Slot<'_, '_>], least: &mut Option<Vec<u8>>) {
        let mut key = Vec::new();
        for (field, slot) in self.fields.iter().zip(slots) {
            match slot {
                Slot::Done(value) => field.direction.write(*value, &mut key),
                _ => key.push(field.direction.byte(EMPTY_ARRAY_KEY)),
            }
        }
        if least.as_ref().is_none_or(|l| key < *l) {
            *least = Some(key);
        }
    }
}

impl Direction {
    /// Appends the key of a value that a path leads to without an array; none where it is missing.
    pub fn key_of(self, value: Option<JsonbRef<'_>>, out: &mut Vec<u8>) {
        self.write(value.unwrap_or(NULL), out);
    }

    /// Appends a key of an ascending order as one of this direction.
    pub fn key_of_ascending(self, key: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Ascending => out.extend_from_slice(key),
            Self::Descending => out.extend(key.iter().map(|byte| !byte)),
        }
    }

    fn write(self, value: JsonbRef<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Ascending => sort_key(value, out),
            Self::Descending => sort_key_descending(value, out),
        }
    }

    fn byte(self, byte: u8) -> u8 {
        if self == Self::Ascending { byte } else { !byte }
    }
}

/// How far one path has come.
#[derive(Clone, Copy)]
enum Slot<'a, 'p> {
    /// These parts are still to go, from the object at hand.
    Open(&'p [Part]),
    /// It met the array at hand with these parts to go.
    InArray(&'p [Part]),
    /// It ended at a value.
    Done(JsonbRef<'a>),
    /// It ended at an empty array.
    Empty,
}

enum Step<'a, 'p> {
    Value(Option<JsonbRef<'a>>),
    Array(ArrayRef<'a>, &'p [Part]),
}

/// Goes along a path to its end or to the first array that has to be taken apart. A numeric part names an element.
fn step<'a, 'p>(object: Option<ObjectRef<'a>>, mut parts: &'p [Part]) -> Step<'a, 'p> {
    let mut here = object.map(ObjectRef::as_value);
    // An array that a position named counts as a whole at the end of the path.
    let mut named = false;
    while let Some(value) = here {
        if let Some(array) = value.as_array() {
            let by_position = parts.first().and_then(Part::index).and_then(|i| array.get(i));
            match (by_position, parts.split_first()) {
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

fn direction(name: &str, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Direction, QueryError> {
    if value.get("$meta").is_some() {
        let message = "sorting by $meta is not supported: there is no text index to rank by";
        return Err(QueryError::unknown_operator(message).at(place));
    }
    if !value.kind().is_number() {
        let message = format!("Illegal key in $sort specification: {name}: {}", shown(value));
        return Err(QueryError::location(15974, message).at(place));
    }
    match crate::number::whole_i64(value) {
        Some(1) => Ok(Direction::Ascending),
        Some(-1) => Ok(Direction::Descending),
        _ => {
            let message = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
            Err(QueryError::location(15975, message).at(place))
        }
    }
}

/// What a path of a sort or a projection must be: nonempty parts, none beginning with `$`.
pub(crate) fn check_path(path: &str) -> Result<(), QueryError> {
    if path.is_empty() {
        return Err(QueryError::location(40352, "FieldPath cannot be constructed with empty string"));
    }
    if path.ends_with('.') {
        return Err(QueryError::location(40353, "FieldPath must not end with a '.'."));
    }
    for part in path.split('.') {
        if part.is_empty() {
            return Err(QueryError::location(15998, "FieldPath field names may not be empty strings."));
        }
        if part.starts_with('$') && !matches!(part, "$id" | "$ref" | "$db") {
            let message = "FieldPath field names may not start with '$'. Consider using $getField or $setField.";
            return Err(QueryError::location(16410, message));
        }
        if part.contains('\0') {
            return Err(QueryError::location(16411, "FieldPath field names may not contain '\\0'."));
        }
    }
    Ok(())
}
