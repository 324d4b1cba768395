//! A value while an expression is evaluated: borrowed from the document or the query where it can be, owned where it
//! was made.
//!
//! Containers that were made are shared, so that a variable costs a count and no copy. Each knows how many bytes it
//! stands for and how deep it nests: sums of parts, however often a part is shared, so that doubling in a loop is seen
//! and stopped. Knows no operator. Next: `scope.rs`.

use super::scope::Scope;
use crate::number::Number;
use crate::{QueryError, scratch};
use quarrydb_jsonb::{ArrayRef, Builder, Decimal128, JsonbBuf, JsonbRef, Kind, NULL, ObjectRef, Value, type_rank};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

/// A value, or the lack of one.
#[derive(Clone, Debug)]
pub enum Datum<'a> {
    /// No value: a path that leads nowhere, `$$REMOVE`.
    Missing,
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number.
    Number(Number),
    /// Milliseconds since 1970-01-01 UTC.
    Date(i64),
    /// A string that stands in the document or the query.
    Text(&'a str),
    /// A string that was made.
    OwnedText(Rc<str>),
    /// An array of the document or the query.
    StoredArray(ArrayRef<'a>),
    /// An array that was made.
    Array(Rc<List<'a>>),
    /// An object of the document or the query.
    StoredObject(ObjectRef<'a>),
    /// An object that was made.
    Object(Rc<Fields<'a>>),
    /// Any other value of the document or the query.
    Stored(JsonbRef<'a>),
    /// Any other value that was made.
    Owned(Rc<JsonbBuf>),
}

/// The elements of an array that was made.
#[derive(Debug)]
pub struct List<'a> {
    items: Vec<Datum<'a>>,
    bytes: usize,
    depth: usize,
}

/// The fields of an object that was made, in order; names differ.
#[derive(Debug)]
pub struct Fields<'a> {
    fields: Vec<(Cow<'a, str>, Datum<'a>)>,
    bytes: usize,
    depth: usize,
}

/// What a `Datum` takes beside the bytes it refers to.
const DATUM_BYTES: usize = size_of::<Datum<'static>>();
/// What a shared container takes beside its elements.
const CONTAINER_BYTES: usize = 64;
/// Elements or fields of a new container that cost as much time as one step.
const ITEMS_PER_STEP: u64 = 8;
/// Bytes of a new string that cost as much time as one step.
const TEXT_BYTES_PER_STEP: u64 = 256;
/// How deep made containers may nest: what bodies and answers may.
const DEPTH_MAX: usize = 180;

impl<'a> From<JsonbRef<'a>> for Datum<'a> {
    #[inline]
    fn from(v: JsonbRef<'a>) -> Self {
        match v.value() {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(b),
            Value::Int32(n) => Self::Number(Number::Int32(n)),
            Value::Int64(n) => Self::Number(Number::Int64(n)),
            Value::Double(n) => Self::Number(Number::Double(n)),
            Value::Decimal128(n) => Self::Number(Number::Decimal(n)),
            Value::String(s) => Self::Text(s),
            Value::Date(ms) => Self::Date(ms),
            Value::Array(a) => Self::StoredArray(a),
            Value::Object(o) => Self::StoredObject(o),
            _ => Self::Stored(v),
        }
    }
}

impl<'a> From<Option<JsonbRef<'a>>> for Datum<'a> {
    fn from(v: Option<JsonbRef<'a>>) -> Self {
        v.map_or(Self::Missing, Self::from)
    }
}

impl<'a> Datum<'a> {
    /// An int32.
    #[must_use]
    pub fn int(n: i32) -> Self {
        Self::Number(Number::Int32(n))
    }

    /// An int64.
    #[must_use]
    pub fn long(n: i64) -> Self {
        Self::Number(Number::Int64(n))
    }

    /// A double.
    #[must_use]
    pub fn double(n: f64) -> Self {
        Self::Number(Number::Double(n))
    }

    /// A decimal.
    #[must_use]
    pub fn decimal(n: Decimal128) -> Self {
        Self::Number(Number::Decimal(n))
    }

    /// An int32 where it fits, else an int64.
    #[must_use]
    pub fn count(n: usize) -> Self {
        match i32::try_from(n) {
            Ok(n) => Self::int(n),
            Err(_) => Self::long(i64::try_from(n).unwrap_or(i64::MAX)),
        }
    }

    /// A string; its bytes count against the budget.
    ///
    /// # Errors
    /// Where the budget is spent.
    pub fn text(s: impl Into<Rc<str>>, scope: &mut Scope<'a>) -> Result<Self, QueryError> {
        let s = s.into();
        scope.charge(s.len())?;
        scope.step(s.len() as u64 / TEXT_BYTES_PER_STEP)?;
        Ok(Self::OwnedText(s))
    }

    /// An array; missing elements become null. It counts against the budget.
    ///
    /// # Errors
    /// Where the budget is spent or the array nests too deep.
    pub fn array(mut items: Vec<Self>, scope: &mut Scope<'a>) -> Result<Self, QueryError> {
        let (mut bytes, mut depth) = (CONTAINER_BYTES, 0);
        for item in &mut items {
            if matches!(item, Self::Missing) {
                *item = Self::Null;
            }
            bytes += DATUM_BYTES + item.bytes();
            depth = depth.max(item.depth());
        }
        let depth = deeper(depth)?;
        scope.charge(bytes)?;
        scope.step(items.len() as u64 / ITEMS_PER_STEP)?;
        Ok(Self::Array(Rc::new(List { items, bytes, depth })))
    }

    /// An object; missing fields are left out. Names must differ. It counts against the budget.
    ///
    /// # Errors
    /// As [`Datum::array`].
    pub fn object(mut fields: Vec<(Cow<'a, str>, Self)>, scope: &mut Scope<'a>) -> Result<Self, QueryError> {
        fields.retain(|(_, v)| !matches!(v, Self::Missing));
        let (mut bytes, mut depth) = (CONTAINER_BYTES, 0);
        for (name, value) in &fields {
            bytes += size_of::<Cow<'_, str>>() + name.len() + DATUM_BYTES + value.bytes();
            depth = depth.max(value.depth());
        }
        let depth = deeper(depth)?;
        scope.charge(bytes)?;
        scope.step(fields.len() as u64 / ITEMS_PER_STEP)?;
        Ok(Self::Object(Rc::new(Fields { fields, bytes, depth })))
    }

    /// The bytes that it owns or would own if nothing were shared.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::OwnedText(s) => s.len(),
            Self::Array(list) => list.bytes,
            Self::Object(fields) => fields.bytes,
            Self::Owned(buf) => buf.as_bytes().len(),
            // Stored values cost nothing until they are written; what writing them again and again costs is counted so.
            Self::Text(s) => s.len(),
            Self::StoredArray(a) => a.as_value().as_bytes().len(),
            Self::StoredObject(o) => o.as_value().as_bytes().len(),
            Self::Stored(v) => v.as_bytes().len(),
            _ => 0,
        }
    }

    fn depth(&self) -> usize {
        match self {
            Self::Array(list) => list.depth,
            Self::Object(fields) => fields.depth,
            _ => 0,
        }
    }

    /// Whether it is missing or null.
    #[inline]
    #[must_use]
    pub fn is_nullish(&self) -> bool {
        matches!(self, Self::Missing | Self::Null)
    }

    /// MongoDB's truth: all but false, null, missing and zero.
    #[must_use]
    pub fn is_true(&self) -> bool {
        match self {
            Self::Missing | Self::Null => false,
            Self::Bool(b) => *b,
            Self::Number(n) => !n.is_zero(),
            _ => true,
        }
    }

    /// The string, where it is one.
    #[inline]
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(s) => Some(s),
            Self::OwnedText(s) => Some(s),
            _ => None,
        }
    }

    /// The number, where it is one.
    #[inline]
    #[must_use]
    pub fn as_number(&self) -> Option<Number> {
        match self {
            Self::Number(n) => Some(*n),
            _ => None,
        }
    }

    /// Whether it is an array.
    #[must_use]
    pub fn is_array(&self) -> bool {
        matches!(self, Self::StoredArray(_) | Self::Array(_))
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        matches!(self, Self::StoredObject(_) | Self::Object(_))
    }

    /// The number of elements, where it is an array.
    #[must_use]
    pub fn array_len(&self) -> Option<usize> {
        match self {
            Self::StoredArray(a) => Some(a.len()),
            Self::Array(list) => Some(list.items.len()),
            _ => None,
        }
    }

    /// The elements, where it is an array. Those of a stored array are borrowed values.
    #[must_use]
    pub fn elements(&self) -> Option<Elements<'a>> {
        match self {
            Self::StoredArray(a) => Some(Elements::Stored(a.iter())),
            Self::Array(list) => Some(Elements::Made(Rc::clone(list), 0)),
            _ => None,
        }
    }

    /// The element at `index`, where it is an array that has it.
    #[must_use]
    pub fn element(&self, index: usize) -> Option<Self> {
        match self {
            Self::StoredArray(a) => a.get(index).map(Self::from),
            Self::Array(list) => list.items.get(index).cloned(),
            _ => None,
        }
    }

    /// The fields in order, where it is an object.
    #[must_use]
    pub fn fields(&self) -> Option<Vec<(Cow<'a, str>, Self)>> {
        match self {
            Self::StoredObject(o) => Some(o.iter().map(|e| (Cow::Borrowed(e.name()), Self::from(e.value))).collect()),
            Self::Object(fields) => Some(fields.fields.clone()),
            _ => None,
        }
    }

    /// The field `name`; missing where it is none or no object.
    #[must_use]
    pub fn field(&self, name: &str) -> Self {
        match self {
            Self::StoredObject(o) => Self::from(o.get(name)),
            Self::Object(fields) => {
                fields.fields.iter().find(|(n, _)| n == name).map_or(Self::Missing, |(_, v)| v.clone())
            }
            _ => Self::Missing,
        }
    }

    /// How many fields a look-up by name may have to pass.
    #[inline]
    pub(super) fn fields_to_search(&self) -> u64 {
        match self {
            Self::Object(fields) => fields.fields.len() as u64 / ITEMS_PER_STEP,
            _ => 0,
        }
    }

    /// The kind of the value; none where it is missing.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        Some(match self {
            Self::Missing => return None,
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Number(Number::Int32(_)) => Kind::Int32,
            Self::Number(Number::Int64(_)) => Kind::Int64,
            Self::Number(Number::Double(_)) => Kind::Double,
            Self::Number(Number::Decimal(_)) => Kind::Decimal128,
            Self::Date(_) => Kind::Date,
            Self::Text(_) | Self::OwnedText(_) => Kind::String,
            Self::StoredArray(_) | Self::Array(_) => Kind::Array,
            Self::StoredObject(_) | Self::Object(_) => Kind::Object,
            Self::Stored(v) => v.kind(),
            Self::Owned(buf) => buf.view().kind(),
        })
    }

    /// The name of its type, as `$type` gives it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        self.kind().map_or("missing", Kind::alias)
    }

    /// Any other value, for taking apart: binary, ObjectId, regular expression, timestamp, the two keys.
    #[must_use]
    pub fn other(&self) -> Option<Value<'_>> {
        match self {
            Self::Stored(v) => Some(v.value()),
            Self::Owned(buf) => Some(buf.view().value()),
            _ => None,
        }
    }

    /// A value of a kind that has no form of its own here, written by `write`.
    #[must_use]
    pub fn made(write: impl FnOnce(&mut Builder)) -> Self {
        let mut out = Builder::new();
        write(&mut out);
        Self::Owned(Rc::new(JsonbBuf::from_valid(out.take())))
    }

    /// Appends it; null where it is missing.
    ///
    /// # Errors
    /// Where it takes more than a value can.
    pub fn write(&self, out: &mut Builder) -> Result<(), QueryError> {
        match self {
            Self::Missing | Self::Null => out.null(),
            Self::Bool(b) => out.bool(*b),
            Self::Number(n) => n.write(out),
            Self::Date(ms) => out.date(*ms),
            Self::Text(s) => out.string(s),
            Self::OwnedText(s) => out.string(s),
            Self::StoredArray(a) => out.copy(a.as_value()),
            Self::StoredObject(o) => out.copy(o.as_value()),
            Self::Stored(v) => out.copy(*v),
            Self::Owned(buf) => out.copy(buf.view()),
            Self::Array(list) => {
                out.begin_array();
                for item in &list.items {
                    item.write(out)?;
                }
                out.end_array().map_err(|e| QueryError::bad_value(e.to_string()))?;
            }
            Self::Object(fields) => {
                out.begin_object();
                for (name, value) in &fields.fields {
                    out.field(name);
                    value.write(out)?;
                }
                out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))?;
            }
        }
        Ok(())
    }

    /// A copy of its own.
    ///
    /// # Errors
    /// As [`Datum::write`].
    pub fn to_buf(&self) -> Result<JsonbBuf, QueryError> {
        scratch::build(self.bytes(), |out| self.write(out))
    }

    /// Its bytes: those that are stored, or a copy.
    ///
    /// # Errors
    /// As [`Datum::write`].
    pub fn encoded(&self) -> Result<Encoded<'_>, QueryError> {
        Ok(match self {
            Self::StoredArray(a) => Encoded::Stored(a.as_value()),
            Self::StoredObject(o) => Encoded::Stored(o.as_value()),
            Self::Stored(v) => Encoded::Stored(*v),
            Self::Owned(buf) => Encoded::Stored(buf.view()),
            Self::Null => Encoded::Stored(NULL),
            other => Encoded::Made(other.to_buf()?),
        })
    }

    /// MongoDB's order over all values; what is missing stands below null and above MinKey.
    ///
    /// # Errors
    /// As [`Datum::write`].
    pub fn compare(&self, other: &Self) -> Result<Ordering, QueryError> {
        if let (Some(a), Some(b)) = (self.as_str(), other.as_str()) {
            return Ok(a.cmp(b));
        }
        if let (Self::Number(a), Self::Number(b)) = (self, other)
            && let Some(order) = a.compare_fast(*b)
        {
            return Ok(order);
        }
        if let (Some(a), Some(b)) = (self.kind(), other.kind()) {
            let order = type_rank(a).cmp(&type_rank(b));
            if order.is_ne() {
                return Ok(order);
            }
        }
        let is_min_key = |d: &Self| d.kind() == Some(Kind::MinKey);
        Ok(match (self, other) {
            (Self::Missing, Self::Missing) => Ordering::Equal,
            (Self::Missing, other) => {
                if is_min_key(other) {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (this, Self::Missing) => {
                if is_min_key(this) {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (Self::Date(a), Self::Date(b)) => a.cmp(b),
            _ => quarrydb_jsonb::compare(self.encoded()?.view(), other.encoded()?.view()),
        })
    }

    /// The order-preserving key: equal values have equal keys.
    ///
    /// # Errors
    /// As [`Datum::write`].
    pub fn sort_key(&self) -> Result<Vec<u8>, QueryError> {
        let mut key = Vec::new();
        quarrydb_jsonb::sort_key(self.encoded()?.view(), &mut key);
        Ok(key)
    }
}

fn deeper(depth: usize) -> Result<usize, QueryError> {
    if depth < DEPTH_MAX {
        return Ok(depth + 1);
    }
    let message = format!("a value nested deeper than {DEPTH_MAX} levels: that is the most an expression may make");
    Err(QueryError::new("Overflow", 15, message))
}

/// The bytes of a datum.
#[derive(Debug)]
pub enum Encoded<'d> {
    /// Where they lie.
    Stored(JsonbRef<'d>),
    /// A copy.
    Made(JsonbBuf),
}

impl Encoded<'_> {
    /// The value.
    #[must_use]
    pub fn view(&self) -> JsonbRef<'_> {
        match self {
            Encoded::Stored(v) => *v,
            Encoded::Made(buf) => buf.view(),
        }
    }
}

/// The elements of an array.
#[derive(Debug)]
pub enum Elements<'a> {
    /// Of one that is stored.
    Stored(quarrydb_jsonb::ArrayIter<'a>),
    /// Of one that was made, and which comes next.
    Made(Rc<List<'a>>, usize),
}

impl<'a> Iterator for Elements<'a> {
    type Item = Datum<'a>;

    #[inline]
    fn next(&mut self) -> Option<Datum<'a>> {
        match self {
            Self::Stored(iter) => iter.next().map(Datum::from),
            Self::Made(list, next) => {
                let item = list.items.get(*next).cloned();
                *next += 1;
                item
            }
        }
    }
}
