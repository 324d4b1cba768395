//! `$addFields` and `$set` as a stage: computed fields put into a document, where nothing else changes.
//!
//! A dotted name and an object of names say the same. All expressions see the document as it was. A path goes through
//! every element of an array; what stands in its way and is no object is replaced by one. Takes the stage's object, gives
//! the new document. Next: `expr/`.

use crate::expr::{Budget, Datum, Expression, Scope};
use crate::limits::{DOCUMENT_BYTES_MAX, NESTING_MAX, WRITTEN_BYTES_MAX};
use crate::{ParseContext, Place, QueryError, scratch};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, ObjectRef, is_plain};
use std::collections::HashMap;

/// The parsed stage.
#[derive(Debug)]
pub struct AddFields {
    root: Level,
}

/// The fields of one object, in order and by name.
#[derive(Debug, Default)]
struct Level {
    parts: Vec<(Box<str>, Part)>,
    places: HashMap<Box<str>, usize>,
}

#[derive(Debug)]
enum Part {
    Computed(Expression),
    Nested(Level),
}

/// Linear search is faster than hashing up to here.
const LINEAR_SEARCH_MAX: usize = 4;

impl Level {
    fn find(&self, name: &[u8]) -> Option<&Part> {
        if self.parts.len() <= LINEAR_SEARCH_MAX {
            return self.parts.iter().find(|(n, _)| n.as_bytes() == name).map(|(_, part)| part);
        }
        let at = *self.places.get(std::str::from_utf8(name).ok()?)?;
        self.parts.get(at).map(|(_, part)| part)
    }

    fn push(&mut self, name: &str, part: Part) {
        self.places.insert(name.into(), self.parts.len());
        self.parts.push((name.into(), part));
    }
}

impl AddFields {
    /// Parses the object of a stage named `stage`.
    ///
    /// # Errors
    /// 40272 for what is no object, 40176 where two paths meet, those of expressions.
    pub fn parse(stage: &str, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let Some(object) = value.as_object() else {
            let message = format!("{stage} specification stage must be an object, got {}", value.kind().alias());
            return Err(QueryError::location(40272, message).at(&context.place));
        };
        let mut root = Level::default();
        fields(object, &mut root, context, 0)?;
        Ok(Self { root })
    }

    /// Fields whose values [`AddFields::put_values`] is given, in the order of `paths`.
    ///
    /// # Errors
    /// 40176 where two paths meet, those of paths.
    pub(crate) fn of_paths(paths: &[&str], context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let mut root = Level::default();
        for (slot, path) in paths.iter().enumerate() {
            let place = context.place.name(path);
            check_name(path, &place)?;
            let names: Vec<&str> = path.split('.').collect();
            if names.len() > NESTING_MAX {
                let message = format!("a field nested deeper than {NESTING_MAX} levels");
                return Err(QueryError::new("Overflow", 15, message).at(&place));
            }
            let (last, outer) = names.split_last().unwrap_or((&"", &[]));
            let mut here = &mut root;
            for name in outer {
                here = nested(here, name, &place)?;
            }
            if here.places.contains_key(*last) {
                return Err(conflict(last).at(&place));
            }
            here.push(last, Part::Computed(Expression::slot(slot)));
        }
        Ok(Self { root })
    }

    /// The document with values for the fields of [`AddFields::of_paths`].
    ///
    /// # Errors
    /// 10334 where it is too large.
    pub(crate) fn put_values(
        &self,
        document: JsonbRef<'_>,
        values: Vec<Datum<'_>>,
        budget: Budget<'_>,
    ) -> Result<JsonbBuf, QueryError> {
        let added: usize = values.iter().map(|v| v.bytes() + SPARE_BYTES).sum();
        let mut scope = Scope::new(document, budget).with_values(values);
        scratch::build(document.as_bytes().len() + added, |out| put(&self.root, Some(document), &mut scope, out))
    }

    /// The document with the fields.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn apply(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        let mut scope = Scope::new(document, budget);
        scratch::build(document.as_bytes().len() + SPARE_BYTES, |out| put(&self.root, Some(document), &mut scope, out))
    }
}

fn fields(
    object: ObjectRef<'_>,
    level: &mut Level,
    context: &ParseContext<'_>,
    depth: usize,
) -> Result<(), QueryError> {
    for field in object {
        let place = context.place.name(field.name());
        check_name(field.name(), &place)?;
        let names: Vec<&str> = field.name().split('.').collect();
        if depth + names.len() > NESTING_MAX {
            let message = format!("a field nested deeper than {NESTING_MAX} levels");
            return Err(QueryError::new("Overflow", 15, message).at(&place));
        }
        let mut here = &mut *level;
        let (last, outer) = names.split_last().unwrap_or((&"", &[]));
        for name in outer {
            here = nested(here, name, &place)?;
        }
        match field.value.as_object().filter(|o| !o.iter().next().is_some_and(|e| e.name().starts_with('$'))) {
            Some(inner) if inner.is_empty() => {
                let message =
                    format!("an empty object is not a valid value. Found empty object at path {}", field.name());
                return Err(QueryError::location(40180, message).at(&place));
            }
            Some(inner) => {
                let here = nested(here, last, &place)?;
                fields(inner, here, &context.at(place), depth + names.len())?;
            }
            None => {
                if here.places.contains_key(*last) {
                    return Err(conflict(last).at(&place));
                }
                let expression = Expression::parse(field.value, &context.at(place))?;
                here.push(last, Part::Computed(expression));
            }
        }
    }
    Ok(())
}

fn conflict(name: &str) -> QueryError {
    QueryError::location(40176, format!("the specification contains two conflicting paths that meet at '{name}'"))
}

fn nested<'p>(level: &'p mut Level, name: &str, place: &Place<'_>) -> Result<&'p mut Level, QueryError> {
    if !level.places.contains_key(name) {
        level.push(name, Part::Nested(Level::default()));
    }
    let at = level.places.get(name).copied().unwrap_or_default();
    match level.parts.get_mut(at) {
        Some((_, Part::Nested(inner))) => Ok(inner),
        _ => Err(conflict(name).at(place)),
    }
}

fn check_name(path: &str, place: &Place<'_>) -> Result<(), QueryError> {
    for name in path.split('.') {
        let error = if name.is_empty() {
            QueryError::location(15998, format!("the field path '{path}' holds an empty name"))
        } else if name.starts_with('$') {
            let message = format!("names in the field path '{path}' may not start with '$'; consider $setField");
            QueryError::location(16410, message)
        } else {
            continue;
        };
        return Err(error.at(place));
    }
    Ok(())
}

/// Room for what the fields add, so that most buffers need not grow.
const SPARE_BYTES: usize = 64;

/// Writes `current` with the fields in it.
fn put<'a>(
    level: &'a Level,
    current: Option<JsonbRef<'a>>,
    scope: &mut Scope<'a>,
    out: &mut Builder,
) -> Result<(), QueryError> {
    scope.step(1)?;
    let ended = |e: quarrydb_jsonb::Error| QueryError::bad_value(e.to_string());
    if let Some(array) = current.and_then(JsonbRef::as_array) {
        out.begin_array();
        for element in array {
            put(level, Some(element), scope, out)?;
        }
        return out.end_array().map_err(ended);
    }
    let object = current.and_then(JsonbRef::as_object);
    out.begin_object();
    let mut seen = 0;
    for entry in object.into_iter().flatten() {
        match level.find(entry.name_bytes()) {
            Some(part) => {
                seen += 1;
                put_field(part, (entry.name_bytes(), entry.name_is_plain()), Some(entry.value), scope, out)?;
            }
            None => {
                out.field_unescaped(entry.name_bytes(), entry.name_is_plain());
                out.copy(entry.value);
            }
        }
    }
    if seen < level.parts.len() {
        for (name, part) in &level.parts {
            if object.is_none_or(|o| o.get(name).is_none()) {
                put_field(part, (name.as_bytes(), is_plain(name.as_bytes())), None, scope, out)?;
            }
        }
    }
    out.end_object().map_err(ended)
}

/// Writes one field, its name and whether that is plain first; nothing where its new value is missing.
fn put_field<'a>(
    part: &'a Part,
    name: (&[u8], bool),
    old: Option<JsonbRef<'a>>,
    scope: &mut Scope<'a>,
    out: &mut Builder,
) -> Result<(), QueryError> {
    match part {
        Part::Computed(expression) => match expression.evaluate(scope)? {
            Datum::Missing => Ok(()),
            value => {
                out.field_unescaped(name.0, name.1);
                value.write(out)?;
                if out.len() <= WRITTEN_BYTES_MAX {
                    return Ok(());
                }
                let message = format!("the document would take more than {DOCUMENT_BYTES_MAX} bytes");
                Err(QueryError::new("BSONObjectTooLarge", 10334, message))
            }
        },
        Part::Nested(inner) => {
            out.field_unescaped(name.0, name.1);
            put(inner, old, scope, out)
        }
    }
}
