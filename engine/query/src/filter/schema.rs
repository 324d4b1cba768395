//! `$jsonSchema`: draft 4 of JSON Schema as MongoDB has it, on one document.
//!
//! `schema_parse.rs` makes it. A rule for one kind of value says nothing of other kinds; what is missing is right unless
//! it is required. Allocates only for `uniqueItems`. Recursion is bounded by the nesting of the schema.

use super::in_set::InSet;
use super::pattern::Pattern;
use super::type_set::TypeSet;
use crate::decimal;
use crate::number::Number;
use crate::number::{is_nan, whole_i64};
use hashbrown::{HashMap, HashSet};
use quarrydb_jsonb::{ArrayRef, JsonbBuf, JsonbRef, Kind, ObjectRef, compare_numbers, sort_key};
use std::cmp::Ordering;

/// A parsed schema: every rule holds.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    pub(super) rules: Vec<Rule>,
}

/// One keyword, or several that belong together.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    Types(TypeSet),
    Enum(Box<InSet>),
    Minimum { bound: JsonbBuf, exclusive: bool },
    Maximum { bound: JsonbBuf, exclusive: bool },
    MultipleOf(JsonbBuf),
    Length { least: u64, most: u64 },
    Pattern(Box<Pattern>),
    Required(Vec<Box<str>>),
    FieldCount { least: u64, most: u64 },
    Fields(Box<Fields>),
    DependsOnFields { name: Box<str>, required: Vec<Box<str>> },
    DependsOnSchema { name: Box<str>, schema: Schema },
    ItemCount { least: u64, most: u64 },
    UniqueItems,
    Items(Box<Items>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Box<Schema>),
}

/// `properties`, `patternProperties` and `additionalProperties`.
#[derive(Clone, Debug)]
pub(super) struct Fields {
    pub(super) named: HashMap<Box<str>, Schema>,
    pub(super) patterns: Vec<(Pattern, Schema)>,
    pub(super) others: Others,
}

/// `items` and `additionalItems`.
#[derive(Clone, Debug)]
pub(super) struct Items {
    /// For the first elements, each its own.
    pub(super) first: Vec<Schema>,
    pub(super) others: Others,
}

/// What no other keyword names.
#[derive(Clone, Debug)]
pub(super) enum Others {
    Allowed,
    Forbidden,
    Schema(Schema),
}

impl Others {
    fn allows(&self, value: JsonbRef<'_>) -> bool {
        match self {
            Self::Allowed => true,
            Self::Forbidden => false,
            Self::Schema(schema) => schema.allows(value),
        }
    }
}

impl Schema {
    /// Whether a value keeps to the schema.
    #[must_use]
    pub fn allows(&self, value: JsonbRef<'_>) -> bool {
        self.rules.iter().all(|rule| rule.allows(value))
    }
}

impl Rule {
    fn allows(&self, value: JsonbRef<'_>) -> bool {
        match self {
            Self::Types(types) => types.contains(value.kind()),
            Self::Enum(values) => values.test(Some(value)),
            Self::Minimum { bound, exclusive } => within(value, bound, Ordering::Less, *exclusive),
            Self::Maximum { bound, exclusive } => within(value, bound, Ordering::Greater, *exclusive),
            Self::MultipleOf(divisor) => !value.kind().is_number() || is_multiple(value, divisor.view()),
            Self::Length { least, most } => {
                value.as_str().is_none_or(|s| (*least..=*most).contains(&(s.chars().count() as u64)))
            }
            Self::Pattern(pattern) => value.as_str().is_none_or(|s| pattern.is_match(s)),
            Self::Required(names) => value.as_object().is_none_or(|o| has_all(o, names)),
            Self::FieldCount { least, most } => {
                value.as_object().is_none_or(|o| (*least..=*most).contains(&(o.len() as u64)))
            }
            Self::Fields(fields) => value.as_object().is_none_or(|o| fields.allow(o)),
            Self::DependsOnFields { name, required } => {
                value.as_object().is_none_or(|o| o.get(name).is_none() || has_all(o, required))
            }
            Self::DependsOnSchema { name, schema } => {
                value.as_object().is_none_or(|o| o.get(name).is_none() || schema.allows(value))
            }
            Self::ItemCount { least, most } => {
                value.as_array().is_none_or(|a| (*least..=*most).contains(&(a.len() as u64)))
            }
            Self::UniqueItems => value.as_array().is_none_or(are_unique),
            Self::Items(items) => value.as_array().is_none_or(|a| items.allow(a)),
            Self::AllOf(schemas) => schemas.iter().all(|s| s.allows(value)),
            Self::AnyOf(schemas) => schemas.iter().any(|s| s.allows(value)),
            Self::OneOf(schemas) => schemas.iter().filter(|s| s.allows(value)).take(2).count() == 1,
            Self::Not(schema) => !schema.allows(value),
        }
    }
}

impl Fields {
    fn allow(&self, object: ObjectRef<'_>) -> bool {
        self.named.iter().all(|(name, schema)| object.get(name).is_none_or(|v| schema.allows(v)))
            && (self.patterns.is_empty() && matches!(self.others, Others::Allowed)
                || object.iter().all(|field| {
                    let mut named = self.named.contains_key(field.name());
                    let mut matching = self.patterns.iter().filter(|(pattern, _)| pattern.is_match(field.name()));
                    let right = matching.all(|(_, schema)| {
                        named = true;
                        schema.allows(field.value)
                    });
                    right && (named || self.others.allows(field.value))
                }))
    }
}

impl Items {
    fn allow(&self, array: ArrayRef<'_>) -> bool {
        array.iter().enumerate().all(|(i, element)| match self.first.get(i) {
            Some(schema) => schema.allows(element),
            None => self.others.allows(element),
        })
    }
}

/// Whether a value, where it is a number, does not lie beyond a bound.
fn within(value: JsonbRef<'_>, bound: &JsonbBuf, beyond: Ordering, exclusive: bool) -> bool {
    if !value.kind().is_number() {
        return true;
    }
    if is_nan(value) || is_nan(bound.view()) {
        return is_nan(value) && is_nan(bound.view()) && !exclusive;
    }
    let ordering = compare_numbers(value, bound.view());
    ordering != beyond && !(exclusive && ordering == Ordering::Equal)
}

/// Whether one number is a whole multiple of another; fractions as decimals, in which a tenth is one.
fn is_multiple(value: JsonbRef<'_>, divisor: JsonbRef<'_>) -> bool {
    if let (Some(v), Some(d)) = (whole_i64(value), whole_i64(divisor)) {
        return d != 0 && v.wrapping_rem(d) == 0;
    }
    match (Number::of(value), Number::of(divisor)) {
        (Some(v), Some(d)) => decimal::is_zero(decimal::rem(v.to_decimal(), d.to_decimal())),
        _ => false,
    }
}

fn has_all(object: ObjectRef<'_>, names: &[Box<str>]) -> bool {
    names.iter().all(|name| object.get(name).is_some())
}

fn are_unique(array: ArrayRef<'_>) -> bool {
    let mut seen = HashSet::with_capacity(array.len());
    array.iter().all(|element| {
        let mut key = Vec::new();
        sort_key(element, &mut key);
        seen.insert(key)
    })
}

/// The types of JSON itself, as `type` names them.
pub(super) fn json_type(name: &str) -> Option<TypeSet> {
    Some(match name {
        "string" => TypeSet::of(&[Kind::String]),
        "object" => TypeSet::of(&[Kind::Object]),
        "array" => TypeSet::of(&[Kind::Array]),
        "boolean" => TypeSet::of(&[Kind::Bool]),
        "null" => TypeSet::of(&[Kind::Null]),
        "number" => TypeSet::named("number")?,
        _ => return None,
    })
}
