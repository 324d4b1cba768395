//! What a declared index is: its keys and its options, checked as MongoDB checks them.
//!
//! Takes the fields of a request (or of the manifest, which holds the same object); gives a definition, prints it, and
//! says how two stand to each other. Knows nothing of entries.

use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, Kind, Value};
use quarrydb_query::path_walk::FieldPath;
use quarrydb_query::{Filter, ParseContext, Place};

use super::partial;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::{INDEX_FIELDS_MAX, INDEX_NAME_BYTES_MAX};

/// The fields that a definition may have.
pub const DEFINITION_FIELDS: [&str; 6] =
    ["keys", "name", "unique", "sparse", "partialFilterExpression", "expireAfterSeconds"];
/// The index that every collection has.
pub(crate) const ID_INDEX: &str = "_id_";
/// Kinds of indexes that MongoDB has and QuarryDB has not.
const OTHER_KINDS: [&str; 7] = ["text", "2d", "2dsphere", "hashed", "geoHaystack", "wildcard", "columnstore"];
/// `expireAfterSeconds` at most.
const EXPIRE_AFTER_MAX: i64 = i32::MAX as i64;

/// One field of an index's keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyField {
    /// The path.
    pub path: FieldPath,
    /// Whether larger values come first.
    pub descending: bool,
}

/// Which documents a partial index has.
#[derive(Clone, Debug)]
pub(crate) struct Partial {
    /// As it was written.
    pub text: JsonbBuf,
    /// The condition.
    pub filter: Filter,
}

/// What an index is.
#[derive(Clone, Debug)]
pub struct IndexDefinition {
    pub(crate) name: Box<str>,
    /// As they were written.
    pub(crate) key_pattern: JsonbBuf,
    pub(crate) fields: Vec<KeyField>,
    pub(crate) unique: bool,
    pub(crate) sparse: bool,
    pub(crate) partial: Option<Partial>,
    /// Seconds after which a document goes.
    pub(crate) expire_after: Option<u32>,
}

/// How a definition stands to one that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// It is the same index.
    Same,
    /// The same entries with other options.
    Equivalent,
    /// Other entries.
    Different,
}

fn cannot(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidInput, message).with_code("CannotCreateIndex", 67)
}

fn wrong_type(field: &str, wanted: &str, found: JsonbRef<'_>) -> Error {
    let message = format!("{field} must be {wanted}, not {}", found.kind().alias());
    Error::new(ErrorKind::InvalidInput, message).with_code("TypeMismatch", 14)
}

impl IndexDefinition {
    /// The definition whose fields `get` gives by the names in [`DEFINITION_FIELDS`].
    ///
    /// # Errors
    /// `CannotCreateIndex` (67), `TypeMismatch` (14) and what the filter's parser says.
    pub fn parse<'a>(get: &dyn Fn(&str) -> Option<JsonbRef<'a>>) -> Result<Self> {
        let keys = get("keys").ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "the field \"keys\" is missing: an object of paths and 1 or -1")
                .with_code("IDLFailedToParse", 40414)
        })?;
        let fields = parse_keys(keys)?;
        let name = match get("name") {
            Some(name) => parse_name(name)?,
            None => default_name(keys),
        };
        let unique = flag("unique", get("unique"))?;
        let sparse = flag("sparse", get("sparse"))?;
        let partial = get("partialFilterExpression").map(parse_partial).transpose()?;
        let expire_after = get("expireAfterSeconds").map(|value| parse_expiry(value, &fields)).transpose()?;
        if sparse && partial.is_some() {
            return Err(cannot("cannot mix \"partialFilterExpression\" and \"sparse\" options"));
        }
        let key_pattern = JsonbBuf::from_valid(keys.as_bytes().to_vec());
        let definition = Self { name, key_pattern, fields, unique, sparse, partial, expire_after };
        if definition.name.as_ref() == ID_INDEX && !definition.is_id() {
            return Err(cannot("the name _id_ belongs to the index on {_id: 1}").with_code("BadValue", 2));
        }
        Ok(definition)
    }

    /// The definition that an object states.
    ///
    /// # Errors
    /// As [`IndexDefinition::parse`]; `BadValue` for a field that no index has.
    pub fn from_object(object: JsonbRef<'_>) -> Result<Self> {
        let Some(fields) = object.as_object() else { return Err(wrong_type("an index", "an object", object)) };
        if let Some(unknown) = fields.iter().find(|entry| !DEFINITION_FIELDS.contains(&entry.name())) {
            let message =
                format!("an index has no field {:?}: it has {}", unknown.name(), DEFINITION_FIELDS.join(", "));
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        Self::parse(&|name| object.get(name))
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its keys as they were written, an object.
    #[must_use]
    pub fn keys(&self) -> JsonbRef<'_> {
        self.key_pattern.view()
    }

    /// Whether it is the index that every collection has.
    #[must_use]
    pub(crate) fn is_id(&self) -> bool {
        matches!(&self.fields[..], [KeyField { path, descending: false }] if path.as_str() == "_id")
    }

    /// Appends its fields to an object under way.
    pub fn describe(&self, out: &mut Builder) {
        out.field("name");
        out.string(&self.name);
        out.field("keys");
        out.copy(self.key_pattern.view());
        for (name, set) in [("unique", self.unique), ("sparse", self.sparse)] {
            if set {
                out.field(name);
                out.bool(true);
            }
        }
        if let Some(partial) = &self.partial {
            out.field("partialFilterExpression");
            out.copy(partial.text.view());
        }
        if let Some(seconds) = self.expire_after {
            out.field("expireAfterSeconds");
            out.int64(seconds.into());
        }
    }

    /// It as an object.
    ///
    /// # Errors
    /// Where its parts take more than a document may.
    pub(crate) fn to_object(&self) -> Result<JsonbBuf> {
        let mut builder = Builder::new();
        builder.begin_object();
        self.describe(&mut builder);
        builder.end_object()?;
        Ok(JsonbBuf::from_valid(builder.take()))
    }

    /// How it stands to `other`, names left aside.
    pub(crate) fn compare(&self, other: &Self) -> Likeness {
        let partial = match (&self.partial, &other.partial) {
            (None, None) => true,
            (Some(a), Some(b)) => quarrydb_jsonb::equal(a.text.view(), b.text.view()),
            _ => false,
        };
        if self.fields != other.fields || self.unique != other.unique || self.sparse != other.sparse || !partial {
            return Likeness::Different;
        }
        if self.expire_after == other.expire_after { Likeness::Same } else { Likeness::Equivalent }
    }

    /// Whether it has an entry for `document` at all, what is sparse left aside.
    pub(crate) fn takes(&self, document: JsonbRef<'_>) -> bool {
        // The conditions that are allowed cannot fail but for looking at too many values; then it is taken in.
        self.partial.as_ref().is_none_or(|partial| partial.filter.matches(document).unwrap_or(true))
    }

    /// How it is told in an error: `{ name: "a_1", ... }`.
    pub(crate) fn to_text(&self) -> String {
        self.to_object().map_or_else(|_| self.name.to_string(), |object| print(object.view()))
    }
}

/// A value as JSON.
pub(crate) fn print(value: JsonbRef<'_>) -> String {
    let mut text = Vec::new();
    quarrydb_jsonb::print(value, quarrydb_jsonb::Style::Relaxed, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn parse_keys(keys: JsonbRef<'_>) -> Result<Vec<KeyField>> {
    let Some(object) = keys.as_object() else { return Err(wrong_type("keys", "an object", keys)) };
    if object.is_empty() {
        return Err(cannot("Index keys cannot be an empty object."));
    }
    if object.len() > INDEX_FIELDS_MAX {
        let message = format!("an index of {} fields: it has at most {INDEX_FIELDS_MAX}", object.len());
        return Err(Error::new(ErrorKind::InvalidInput, message).with_code("Location13103", 13103));
    }
    object.iter().map(|entry| key_field(entry.name(), entry.value)).collect()
}

fn key_field(path: &str, direction: JsonbRef<'_>) -> Result<KeyField> {
    if let Some(kind) = direction.as_str() {
        let why = if OTHER_KINDS.contains(&kind) { "is not supported by QuarryDB" } else { "is not known" };
        return Err(cannot(format!("Unknown index plugin '{kind:.60}': an index of that kind {why}, 1 and -1 are")));
    }
    if !direction.kind().is_number() {
        let message = format!(
            "Values in the index key pattern cannot be of type {}. Only numbers > 0 and numbers < 0 are allowed.",
            direction.kind().alias()
        );
        return Err(cannot(message));
    }
    let (zero, nan) = (number(0.0), number(f64::NAN));
    let order = quarrydb_jsonb::compare(direction, zero.view());
    if order.is_eq() || quarrydb_jsonb::equal(direction, nan.view()) {
        return Err(cannot("Values in the index key pattern cannot be 0."));
    }
    if path.split('.').any(str::is_empty) {
        return Err(cannot("Index keys cannot contain an empty field."));
    }
    if path.split('.').any(|part| part == "$**") {
        return Err(cannot("wildcard indexes are not supported by QuarryDB: every field has its column without one"));
    }
    if path.split('.').any(|part| part.starts_with('$') && !matches!(part, "$id" | "$ref" | "$db")) {
        return Err(cannot("Index key contains an illegal field name: field name starts with '$'."));
    }
    if path.contains('\0') {
        return Err(cannot("Index key contains an illegal field name: it holds a null character."));
    }
    Ok(KeyField { path: FieldPath::parse(path, &Place::root("keys"))?, descending: order.is_lt() })
}

fn number(value: f64) -> JsonbBuf {
    let mut builder = Builder::new();
    builder.double(value);
    JsonbBuf::from_valid(builder.take())
}

fn parse_name(name: JsonbRef<'_>) -> Result<Box<str>> {
    let Some(text) = name.as_str() else { return Err(wrong_type("name", "a string", name)) };
    if text.is_empty() || text == "*" || text.contains('\0') {
        return Err(cannot(format!("{text:?} cannot be the name of an index")));
    }
    if text.len() > INDEX_NAME_BYTES_MAX {
        return Err(cannot(format!("an index's name has at most {INDEX_NAME_BYTES_MAX} bytes")));
    }
    Ok(text.into())
}

/// `a_1_b.c_-1`.
fn default_name(keys: JsonbRef<'_>) -> Box<str> {
    let parts = keys.as_object().into_iter().flat_map(|object| object.iter().collect::<Vec<_>>());
    let parts = parts.map(|entry| {
        let direction = match entry.value.value() {
            Value::Double(d) if d.trunc() == d => format!("{d:.0}"),
            _ => print(entry.value),
        };
        format!("{}_{direction}", entry.name())
    });
    let name = parts.collect::<Vec<_>>().join("_");
    if name == "_id_1" { ID_INDEX.into() } else { name.into() }
}

fn flag(field: &str, value: Option<JsonbRef<'_>>) -> Result<bool> {
    let Some(value) = value else { return Ok(false) };
    match value.as_bool() {
        Some(set) => Ok(set),
        None if value.kind().is_number() => Ok(!quarrydb_jsonb::equal(value, number(0.0).view())),
        None => Err(wrong_type(field, "true or false", value)),
    }
}

fn parse_partial(text: JsonbRef<'_>) -> Result<Partial> {
    if text.kind() != Kind::Object {
        return Err(wrong_type("partialFilterExpression", "an object", text));
    }
    let filter = Filter::parse(text, &ParseContext::new("partialFilterExpression"))?;
    partial::check(filter.ast()).map_err(cannot)?;
    Ok(Partial { text: JsonbBuf::from_valid(text.as_bytes().to_vec()), filter })
}

fn parse_expiry(value: JsonbRef<'_>, fields: &[KeyField]) -> Result<u32> {
    if !value.kind().is_number() {
        return Err(wrong_type("expireAfterSeconds", "a number of seconds", value));
    }
    let [field] = fields else {
        return Err(cannot("TTL indexes are single-field indexes, compound indexes do not support TTL"));
    };
    if field.path.as_str() == "_id" {
        let message = "The field 'expireAfterSeconds' is not valid for an _id index specification.";
        let error = Error::new(ErrorKind::InvalidInput, message);
        return Err(error.with_code("InvalidIndexSpecificationOption", 197));
    }
    let seconds = value.as_i64().or_else(|| value.as_f64().map(|d| d as i64));
    seconds.filter(|seconds| (0..=EXPIRE_AFTER_MAX).contains(seconds)).map(|seconds| seconds as u32).ok_or_else(|| {
        cannot(format!("TTL index 'expireAfterSeconds' must be from 0 to {EXPIRE_AFTER_MAX}, not {}", print(value)))
    })
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
