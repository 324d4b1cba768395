//! `$addFields` and `$set` as a stage: computed fields put into a document, where nothing else changes.
//!
//! A dotted name and an object of names say the same. All expressions see the document as it was. A path goes through
//! every element of an array; what stands in its way and is no object is replaced by one. Takes the stage's object, gives
//! the new document. Next: `expr/`.

use crate::expr::{Budget, Datum, Expression, Scope};
use crate::limits::NESTING_MAX;
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, ObjectRef};
use std::borrow::Cow;
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

impl Level {
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

    /// The document with the fields.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn apply(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        let mut scope = Scope::new(document, budget);
        put(&self.root, Datum::from(document), &mut scope)?.to_buf()
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

/// `current` with the fields in it.
fn put<'a>(level: &'a Level, current: Datum<'a>, scope: &mut Scope<'a>) -> Result<Datum<'a>, QueryError> {
    scope.step(1)?;
    if let Some(elements) = current.elements() {
        let mut items = Vec::new();
        for element in elements {
            items.push(put(level, element, scope)?);
        }
        return Datum::array(items, scope);
    }
    let mut fields = current.fields().unwrap_or_default();
    // Where each part's field stands now.
    let mut places = vec![None; level.parts.len()];
    for (at, (name, _)) in fields.iter().enumerate() {
        if let Some(&part) = level.places.get(&**name) {
            places[part] = Some(at);
        }
    }
    for ((name, part), at) in level.parts.iter().zip(places) {
        let old = at.map_or(Datum::Missing, |at| fields[at].1.clone());
        let new = match part {
            Part::Computed(expression) => expression.evaluate(scope)?,
            Part::Nested(inner) => put(inner, old, scope)?,
        };
        match at {
            Some(at) => fields[at].1 = new,
            None => fields.push((Cow::Borrowed(name), new)),
        }
    }
    Datum::object(fields, scope)
}
