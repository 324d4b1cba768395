//! Objects: merging, fields as arrays and back, fields by a name that no path can spell.

use super::datum::Datum;
use super::registry::{ANY, Arguments, ONE, Operator, Shape};
use crate::QueryError;
use std::borrow::Cow;
use std::collections::HashMap;

type Outcome<'a> = Result<Datum<'a>, QueryError>;
type Field<'a> = (Cow<'a, str>, Datum<'a>);

pub(super) const OPERATORS: &[Operator] = &[
    Operator { name: "$mergeObjects", shape: ANY, run: merge },
    Operator { name: "$objectToArray", shape: ONE, run: to_array },
    Operator { name: "$arrayToObject", shape: ONE, run: from_array },
    Operator { name: "$getField", shape: Shape::NamedOrFirst(&["field"], &["input"]), run: get_field },
    Operator { name: "$setField", shape: Shape::Named(&["field", "input", "value"], &[]), run: set_field },
    Operator { name: "$unsetField", shape: Shape::Named(&["field", "input"], &[]), run: unset_field },
];

/// Fields in order, the last of a name winning in the first one's place.
pub(super) struct Merged<'a> {
    fields: Vec<Field<'a>>,
    places: HashMap<Cow<'a, str>, usize>,
}

impl<'a> Merged<'a> {
    pub(super) fn new() -> Self {
        Self { fields: Vec::new(), places: HashMap::new() }
    }

    pub(super) fn put(&mut self, name: Cow<'a, str>, value: Datum<'a>) {
        match self.places.get(&name) {
            Some(&at) => self.fields[at].1 = value,
            None => {
                self.places.insert(name.clone(), self.fields.len());
                self.fields.push((name, value));
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Field<'a>> {
        self.fields
    }
}

fn merge<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let mut merged = Merged::new();
    for argument in super::statistics::operands(args) {
        if argument.is_nullish() {
            continue;
        }
        let Some(fields) = argument.fields() else {
            let message =
                format!("$mergeObjects requires object inputs, but an input is of type {}", argument.type_name());
            return Err(QueryError::location(40400, message));
        };
        args.scope.step(fields.len() as u64)?;
        for (name, value) in fields {
            merged.put(name, value);
        }
    }
    Datum::object(merged.finish(), args.scope)
}

fn to_array<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(fields) = args.get(0).fields() else {
        let message = format!("$objectToArray requires a document input, found: {}", args.get(0).type_name());
        return Err(QueryError::location(40390, message));
    };
    let mut pairs = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        let name = match name {
            Cow::Borrowed(name) => Datum::Text(name),
            Cow::Owned(name) => Datum::OwnedText(name.into()),
        };
        pairs.push(Datum::object(vec![(Cow::Borrowed("k"), name), (Cow::Borrowed("v"), value)], args.scope)?);
    }
    args.array(pairs)
}

fn from_array<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    if args.get(0).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(elements) = args.get(0).elements() else {
        let message = format!("$arrayToObject requires an array input, found: {}", args.get(0).type_name());
        return Err(QueryError::location(40386, message));
    };
    let mut merged = Merged::new();
    let mut pairs = None;
    for element in elements {
        let is_pair = element.is_array();
        if *pairs.get_or_insert(is_pair) != is_pair || !(is_pair || element.is_object()) {
            let code = match (pairs, element.is_array() || element.is_object()) {
                (_, false) => 40398,
                (Some(true), _) => 40396,
                _ => 40391,
            };
            let message = format!(
                "$arrayToObject requires a consistent input format, found a value of type {}",
                element.type_name()
            );
            return Err(QueryError::location(code, message));
        }
        let (name, value) = if is_pair { pair(&element)? } else { key_and_value(&element)? };
        if name.contains('\0') {
            let code = if is_pair { 4_940_400 } else { 4_940_401 };
            return Err(QueryError::location(code, "a key of $arrayToObject cannot contain NUL"));
        }
        merged.put(name, value);
    }
    Datum::object(merged.finish(), args.scope)
}

fn pair<'a>(element: &Datum<'a>) -> Result<Field<'a>, QueryError> {
    if element.array_len() != Some(2) {
        let message = "$arrayToObject requires an array of size 2 arrays";
        return Err(QueryError::location(40397, message));
    }
    let (key, value) = (element.element(0), element.element(1));
    match key.as_ref().and_then(name_of) {
        Some(name) => Ok((name, value.unwrap_or(Datum::Missing))),
        None => Err(QueryError::location(
            40395,
            "$arrayToObject requires an array of key-value pairs, where the key must be a string",
        )),
    }
}

fn key_and_value<'a>(element: &Datum<'a>) -> Result<Field<'a>, QueryError> {
    let fields = element.fields().unwrap_or_default();
    if fields.len() != 2 {
        let message = "$arrayToObject requires an object with exactly the fields 'k' and 'v'";
        return Err(QueryError::location(40392, message));
    }
    let (key, value) = (element.field("k"), element.field("v"));
    if matches!(key, Datum::Missing) || matches!(value, Datum::Missing) {
        return Err(QueryError::location(40393, "$arrayToObject requires an object with the fields 'k' and 'v'"));
    }
    match name_of(&key) {
        Some(name) => Ok((name, value)),
        None => Err(QueryError::location(40394, "$arrayToObject requires that 'k' be a string")),
    }
}

fn name_of<'a>(d: &Datum<'a>) -> Option<Cow<'a, str>> {
    match d {
        Datum::Text(s) => Some(Cow::Borrowed(s)),
        Datum::OwnedText(s) => Some(Cow::Owned(String::from(&**s))),
        _ => None,
    }
}

fn get_field<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let Some(name) = name_of(args.get(0)) else {
        let message =
            format!("$getField requires 'field' to evaluate to type String, but got {}", args.get(0).type_name());
        return Err(QueryError::location(3_041_704, message));
    };
    // The parser has put `$$CURRENT` where no input was given.
    Ok(match args.take(1) {
        Datum::Null => Datum::Null,
        input => input.field(&name),
    })
}

fn set_field<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    let value = args.take(2);
    replaced(args, value)
}

fn unset_field<'a>(args: &mut Arguments<'_, 'a>) -> Outcome<'a> {
    replaced(args, Datum::Missing)
}

fn replaced<'a>(args: &mut Arguments<'_, 'a>, value: Datum<'a>) -> Outcome<'a> {
    let Some(name) = name_of(args.get(0)) else {
        let message =
            format!("{} requires 'field' to evaluate to type String, but got {}", args.name, args.get(0).type_name());
        return Err(QueryError::location(4_161_107, message));
    };
    if name.contains('\0') {
        return Err(QueryError::location(9_423_101, "a field name cannot contain NUL"));
    }
    if args.get(1).is_nullish() {
        return Ok(Datum::Null);
    }
    let Some(mut fields) = args.get(1).fields() else {
        let message =
            format!("{} requires 'input' to evaluate to type Object, but got {}", args.name, args.get(1).type_name());
        return Err(QueryError::location(4_161_105, message));
    };
    match fields.iter_mut().find(|(n, _)| *n == name) {
        Some(field) => field.1 = value,
        None => fields.push((name, value)),
    }
    Datum::object(fields, args.scope)
}
