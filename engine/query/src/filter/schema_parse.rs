//! From the object of `$jsonSchema` to its rules.
//!
//! Keywords that belong together (`minimum` and `exclusiveMinimum`, `items` and `additionalItems`) make one rule.

use super::in_set::InSet;
use super::parse::Parser;
use super::schema::{Fields, Items, Others, Rule, Schema, json_type};
use super::type_set::TypeSet;
use crate::number::{truncated_i64, whole_i64};
use crate::{Place, QueryError};
use hashbrown::HashMap;
use quarrydb_jsonb::{ArrayRef, JsonbRef, ObjectRef, compare_numbers, equal};
use std::cmp::Ordering;

impl Parser<'_> {
    /// Parses a schema.
    pub(super) fn schema(&mut self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Schema, QueryError> {
        let object = object(value, place)?;
        self.deeper(place, |parser| {
            let mut schema = Schema::default();
            for entry in object {
                let name = entry.name();
                let place = place.name(name);
                if let Some(rule) = parser.keyword(name, entry.value, object, &place)? {
                    schema.rules.push(rule);
                }
            }
            Ok(schema)
        })
    }

    /// One keyword. What recurses stands here alone, so that its frame is small.
    fn keyword(
        &mut self,
        name: &str,
        value: JsonbRef<'_>,
        all: ObjectRef<'_>,
        place: &Place<'_>,
    ) -> Result<Option<Rule>, QueryError> {
        match name {
            "allOf" => self.schemas(value, place).map(|s| Some(Rule::AllOf(s))),
            "anyOf" => self.schemas(value, place).map(|s| Some(Rule::AnyOf(s))),
            "oneOf" => self.schemas(value, place).map(|s| Some(Rule::OneOf(s))),
            "not" => self.schema(value, place).map(|s| Some(Rule::Not(Box::new(s)))),
            "properties" | "patternProperties" | "additionalProperties" => self.fields(name, all, place),
            "items" | "additionalItems" => self.items(name, all, place),
            "dependencies" => self.dependencies(value, place).map(|rules| Some(Rule::AllOf(vec![Schema { rules }]))),
            _ => self.simple_keyword(name, value, all, place),
        }
    }

    #[inline(never)]
    fn simple_keyword(
        &mut self,
        name: &str,
        value: JsonbRef<'_>,
        all: ObjectRef<'_>,
        place: &Place<'_>,
    ) -> Result<Option<Rule>, QueryError> {
        Ok(Some(match name {
            "title" | "description" => {
                string(value, place)?;
                return Ok(None);
            }
            "type" | "bsonType" => types(name, value, all, place)?,
            "enum" => {
                distinct_values(value, place)?;
                Rule::Enum(Box::new(InSet::of_values(value)))
            }
            "minimum" => Rule::Minimum {
                bound: number(value, place)?.to_buf(),
                exclusive: flag(all, "exclusiveMinimum", place)?,
            },
            "maximum" => Rule::Maximum {
                bound: number(value, place)?.to_buf(),
                exclusive: flag(all, "exclusiveMaximum", place)?,
            },
            "exclusiveMinimum" => return beside(all, "minimum", name, value, place),
            "exclusiveMaximum" => return beside(all, "maximum", name, value, place),
            "multipleOf" => Rule::MultipleOf(positive(value, place)?.to_buf()),
            "minLength" => Rule::Length { least: count(value, place)?, most: u64::MAX },
            "maxLength" => Rule::Length { least: 0, most: count(value, place)? },
            "pattern" => Rule::Pattern(Box::new(self.pattern(string(value, place)?, "", place)?)),
            "required" => Rule::Required(names(value, place)?),
            "minProperties" => Rule::FieldCount { least: count(value, place)?, most: u64::MAX },
            "maxProperties" => Rule::FieldCount { least: 0, most: count(value, place)? },
            "minItems" => Rule::ItemCount { least: count(value, place)?, most: u64::MAX },
            "maxItems" => Rule::ItemCount { least: 0, most: count(value, place)? },
            "uniqueItems" => return Ok(boolean(value, place)?.then_some(Rule::UniqueItems)),
            "$ref" | "$schema" | "default" | "definitions" | "format" | "id" => {
                let message = format!("$jsonSchema keyword '{name}' is not currently supported");
                return Err(QueryError::failed_to_parse(message).at(place));
            }
            _ => return Err(QueryError::failed_to_parse(format!("Unknown $jsonSchema keyword: {name}")).at(place)),
        }))
    }

    fn schemas(&mut self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Vec<Schema>, QueryError> {
        let array = nonempty(value, place)?;
        array.iter().enumerate().map(|(i, element)| self.schema(element, &place.index(i))).collect()
    }

    fn others(&mut self, value: Option<JsonbRef<'_>>, place: &Place<'_>) -> Result<Others, QueryError> {
        Ok(match value {
            None => Others::Allowed,
            Some(v) => match v.as_bool() {
                Some(true) => Others::Allowed,
                Some(false) => Others::Forbidden,
                None => Others::Schema(self.schema(v, place)?),
            },
        })
    }

    /// The three keywords about fields make one rule, at the first of them.
    fn fields(&mut self, name: &str, all: ObjectRef<'_>, place: &Place<'_>) -> Result<Option<Rule>, QueryError> {
        const NAMES: [&str; 3] = ["properties", "patternProperties", "additionalProperties"];
        if first_of(all, &NAMES) != Some(name) {
            return Ok(None);
        }
        let mut fields = Fields { named: HashMap::new(), patterns: Vec::new(), others: Others::Allowed };
        for entry in all.get("properties").map(|v| object(v, place)).transpose()?.into_iter().flatten() {
            let schema = self.schema(entry.value, &place.name(entry.name()))?;
            fields.named.insert(entry.name().into(), schema);
        }
        for entry in all.get("patternProperties").map(|v| object(v, place)).transpose()?.into_iter().flatten() {
            let place = place.name(entry.name());
            let pattern = self.pattern(entry.name(), "", &place)?;
            fields.patterns.push((pattern, self.schema(entry.value, &place)?));
        }
        fields.others = self.others(all.get("additionalProperties"), place)?;
        Ok(Some(Rule::Fields(Box::new(fields))))
    }

    fn items(&mut self, name: &str, all: ObjectRef<'_>, place: &Place<'_>) -> Result<Option<Rule>, QueryError> {
        if first_of(all, &["items", "additionalItems"]) != Some(name) {
            return Ok(None);
        }
        let additional = self.others(all.get("additionalItems"), place)?;
        let Some(items) = all.get("items") else { return Ok(None) };
        let rule = match items.as_array() {
            // Additional are those beyond a list; one schema for all leaves none.
            None => Items { first: Vec::new(), others: Others::Schema(self.schema(items, place)?) },
            Some(list) => {
                let first: Result<Vec<_>, _> =
                    list.iter().enumerate().map(|(i, v)| self.schema(v, &place.index(i))).collect();
                Items { first: first?, others: additional }
            }
        };
        Ok(Some(Rule::Items(Box::new(rule))))
    }

    fn dependencies(&mut self, value: JsonbRef<'_>, place: &Place<'_>) -> Result<Vec<Rule>, QueryError> {
        let mut rules = Vec::new();
        for entry in object(value, place)? {
            let place = place.name(entry.name());
            let name = entry.name().into();
            rules.push(match entry.value.as_array() {
                Some(_) => Rule::DependsOnFields { name, required: names(entry.value, &place)? },
                None => Rule::DependsOnSchema { name, schema: self.schema(entry.value, &place)? },
            });
        }
        Ok(rules)
    }
}

fn wrong_type(wanted: &str, value: JsonbRef<'_>, place: &Place<'_>) -> QueryError {
    let found = value.kind().alias();
    QueryError::type_mismatch(format!("$jsonSchema keyword must be {wanted}, not {found}")).at(place)
}

fn refused(message: impl Into<String>, place: &Place<'_>) -> QueryError {
    QueryError::failed_to_parse(message).at(place)
}

fn object<'v>(value: JsonbRef<'v>, place: &Place<'_>) -> Result<ObjectRef<'v>, QueryError> {
    value.as_object().ok_or_else(|| wrong_type("an object", value, place))
}

fn string<'v>(value: JsonbRef<'v>, place: &Place<'_>) -> Result<&'v str, QueryError> {
    value.as_str().ok_or_else(|| wrong_type("a string", value, place))
}

fn boolean(value: JsonbRef<'_>, place: &Place<'_>) -> Result<bool, QueryError> {
    value.as_bool().ok_or_else(|| wrong_type("a boolean", value, place))
}

fn number<'v>(value: JsonbRef<'v>, place: &Place<'_>) -> Result<JsonbRef<'v>, QueryError> {
    if value.kind().is_number() { Ok(value) } else { Err(wrong_type("a number", value, place)) }
}

fn positive<'v>(value: JsonbRef<'v>, place: &Place<'_>) -> Result<JsonbRef<'v>, QueryError> {
    let value = number(value, place)?;
    let zero = quarrydb_jsonb::JsonbBuf::from_valid(vec![quarrydb_jsonb::Kind::Int32.tag(0)]);
    // NaN is below zero in the order of numbers.
    if compare_numbers(value, zero.view()) == Ordering::Greater {
        Ok(value)
    } else {
        Err(refused("multipleOf must be a positive number", place))
    }
}

fn count(value: JsonbRef<'_>, place: &Place<'_>) -> Result<u64, QueryError> {
    let value = number(value, place)?;
    match whole_i64(value) {
        Some(n) if n >= 0 => Ok(n.unsigned_abs()),
        None if truncated_i64(value).is_some() => Err(refused("a whole number is expected", place)),
        _ => Err(refused("a non-negative whole number is expected", place)),
    }
}

fn nonempty<'v>(value: JsonbRef<'v>, place: &Place<'_>) -> Result<ArrayRef<'v>, QueryError> {
    let array = value.as_array().ok_or_else(|| wrong_type("an array", value, place))?;
    if array.is_empty() { Err(refused("an array of at least one element is expected", place)) } else { Ok(array) }
}

fn distinct_values<'v>(value: JsonbRef<'v>, place: &Place<'_>) -> Result<Vec<JsonbRef<'v>>, QueryError> {
    let mut values: Vec<_> = nonempty(value, place)?.iter().collect();
    values.sort_by(|a, b| quarrydb_jsonb::compare(*a, *b));
    if values.windows(2).any(|pair| equal(pair[0], pair[1])) {
        return Err(refused("the elements of this array must differ", place));
    }
    Ok(values)
}

fn names(value: JsonbRef<'_>, place: &Place<'_>) -> Result<Vec<Box<str>>, QueryError> {
    distinct_values(value, place)?.iter().map(|v| string(*v, place).map(Into::into)).collect()
}

/// The value of a flag beside another keyword; false where it is not there.
fn flag(all: ObjectRef<'_>, name: &str, place: &Place<'_>) -> Result<bool, QueryError> {
    all.get(name).map_or(Ok(false), |v| boolean(v, place))
}

fn beside(
    all: ObjectRef<'_>,
    other: &str,
    name: &str,
    value: JsonbRef<'_>,
    place: &Place<'_>,
) -> Result<Option<Rule>, QueryError> {
    boolean(value, place)?;
    match all.get(other) {
        Some(_) => Ok(None),
        None => Err(refused(format!("$jsonSchema keyword '{other}' must be present if {name} is present"), place)),
    }
}

fn first_of<'n>(all: ObjectRef<'_>, names: &[&'n str]) -> Option<&'n str> {
    all.iter().find_map(|entry| names.iter().copied().find(|name| name.as_bytes() == entry.name_bytes()))
}

fn types(name: &str, value: JsonbRef<'_>, all: ObjectRef<'_>, place: &Place<'_>) -> Result<Rule, QueryError> {
    if all.get("type").is_some() && all.get("bsonType").is_some() {
        return Err(refused("Cannot specify both $jsonSchema keywords 'type' and 'bsonType'", place));
    }
    let one = |value: JsonbRef<'_>, place: &Place<'_>| {
        let alias = string(value, place)?;
        if name == "bsonType" {
            return TypeSet::named(alias)
                .ok_or_else(|| QueryError::bad_value(format!("Unknown type name alias: {alias}")).at(place));
        }
        json_type(alias).ok_or_else(|| match alias {
            "integer" => {
                refused("$jsonSchema type 'integer' is not currently supported; say bsonType: 'int' or 'long'", place)
            }
            _ => QueryError::bad_value(format!("Unknown type name alias: {alias}")).at(place),
        })
    };
    if value.as_array().is_none() {
        return one(value, place).map(Rule::Types);
    }
    let mut types = TypeSet::default();
    for element in distinct_values(value, place)? {
        types = types.union(one(element, place)?);
    }
    Ok(Rule::Types(types))
}
