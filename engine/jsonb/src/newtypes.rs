//! Types that serde does not know: ObjectId, date, timestamp, decimal, regular expression, binary, the two ends, and any
//! value.
//!
//! Each is a Rust type that is `Serialize` and `Deserialize`. To and from this format the value's own bytes pass through
//! serde as the content of a newtype struct of the name [`RAW_NAME`], which only `ser.rs` and `de.rs` know: nothing is
//! lost, and `to_jsonb` of an [`ObjectId`] is an ObjectId. To and from other human-readable formats (JSON) they are
//! Extended JSON, canonical: `{"$oid": "..."}`; to formats that are not (postcard), bytes. A [`JsonbBuf`] or
//! [`JsonbRef`] inside a struct is any value, taken as it is.

use core::fmt;
use std::collections::BTreeSet;

use serde::de::{Error as _, MapAccess, Unexpected, Visitor};
use serde::ser::{SerializeMap as _, SerializeSeq as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};

use crate::buf::JsonbBuf;
use crate::builder::Builder;
use crate::de_value::whole_of_map;
use crate::number::Decimal128;
use crate::ser::Failure;
use crate::tag::Kind;
use crate::view::{JsonbRef, Value};

/// The name of the newtype struct whose content is a whole value, in bytes.
pub(crate) const RAW_NAME: &str = "$quarrydb::jsonb";

/// An ObjectId; its text is hexadecimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId(pub [u8; 12]);

/// A date: milliseconds since 1970-01-01 UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DateTime(pub i64);

/// BSON's internal timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp {
    /// Seconds since 1970-01-01 UTC.
    pub seconds: u32,
    /// Counts within the second.
    pub increment: u32,
}

/// A regular expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Regex {
    /// The pattern.
    pub pattern: String,
    /// The options, in alphabetical order.
    pub options: String,
}

/// Bytes with BSON's subtype. Bytes of subtype 0 also come from `&[u8]` by way of `serde_bytes`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Binary {
    /// BSON's subtype.
    pub subtype: u8,
    /// The bytes.
    pub bytes: Vec<u8>,
}

/// The value below every other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MinKey;

/// The value above every other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MaxKey;

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl core::str::FromStr for ObjectId {
    type Err = crate::Error;

    /// From 24 hexadecimal digits.
    fn from_str(text: &str) -> Result<Self, crate::Error> {
        let bad = || crate::Error::new(crate::ErrorKind::BadWrapper, "an ObjectId has 24 hexadecimal digits");
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return Err(bad()) };
        if pairs.len() != 12 {
            return Err(bad());
        }
        let digit = |b: u8| (b as char).to_digit(16).ok_or_else(bad);
        let mut id = [0; 12];
        for (to, &[high, low]) in id.iter_mut().zip(pairs) {
            *to = (digit(high)? << 4 | digit(low)?) as u8;
        }
        Ok(Self(id))
    }
}

/// A whole value inside the newtype struct.
struct Raw<'a>(JsonbRef<'a>);

impl Serialize for JsonbRef<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_newtype_struct(RAW_NAME, &Raw(*self))
    }
}

impl Serialize for JsonbBuf {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.view().serialize(s)
    }
}

impl Serialize for Raw<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if !s.is_human_readable() {
            return s.serialize_bytes(self.0.as_bytes());
        }
        match self.0.value() {
            Value::Null => s.serialize_unit(),
            Value::Bool(v) => s.serialize_bool(v),
            Value::Int32(v) => s.serialize_i32(v),
            Value::Int64(v) => s.serialize_i64(v),
            Value::Double(v) if v.is_finite() => s.serialize_f64(v),
            Value::String(v) => s.serialize_str(v),
            Value::Array(array) => {
                let mut seq = s.serialize_seq(Some(array.len()))?;
                array.iter().try_for_each(|v| seq.serialize_element(&v))?;
                seq.end()
            }
            Value::Object(object) => {
                let mut map = s.serialize_map(Some(object.len()))?;
                object.iter().try_for_each(|field| map.serialize_entry(field.name(), &field.value))?;
                map.end()
            }
            other => Piece::of(other).serialize(s),
        }
    }
}

/// Writes a value of a known small size and serialises it.
fn serialize_fixed<S: Serializer, const N: usize>(s: S, kind: Kind, payload: [u8; N]) -> Result<S::Ok, S::Error> {
    const BYTES_MAX: usize = 17;
    let mut bytes = [0; BYTES_MAX];
    bytes[0] = kind.tag(0);
    bytes[1..=N].copy_from_slice(&payload);
    JsonbRef::from_valid(&bytes[..=N]).serialize(s)
}

fn serialize_built<S: Serializer>(s: S, write: impl FnOnce(&mut Builder)) -> Result<S::Ok, S::Error> {
    let mut b = Builder::new();
    write(&mut b);
    JsonbRef::from_valid(b.bytes()).serialize(s)
}

/// Takes a whole value and makes a type of it.
struct RawVisitor<T> {
    expected: &'static str,
    make: fn(Value<'_>) -> Option<T>,
}

impl<'de, T> Visitor<'de> for RawVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<T, E> {
        let value = JsonbRef::first_of(bytes);
        let made = if value.as_bytes().len() == bytes.len() { (self.make)(value.value()) } else { None };
        made.ok_or_else(|| E::custom(format_args!("expected {}, found {}", self.expected, value.kind().alias())))
    }

    /// The Extended JSON of another format, or of an untagged enum.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        let value = whole_of_map(map)?;
        (self.make)(value.view().value()).ok_or_else(|| A::Error::invalid_type(Unexpected::Map, &self))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<T, D::Error> {
        if d.is_human_readable() { d.deserialize_any(self) } else { d.deserialize_bytes(self) }
    }
}

macro_rules! newtype {
    ($type:ident, $expected:literal, $make:expr, |$self:ident, $s:ident| $serialize:expr) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, $s: S) -> Result<S::Ok, S::Error> {
                let $self = self;
                $serialize
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                d.deserialize_newtype_struct(RAW_NAME, RawVisitor { expected: $expected, make: $make })
            }
        }
    };
}

newtype!(ObjectId, "an objectId", |v| if let Value::ObjectId(id) = v { Some(ObjectId(id)) } else { None }, |v, s| {
    serialize_fixed(s, Kind::ObjectId, v.0)
});

newtype!(DateTime, "a date", |v| if let Value::Date(millis) = v { Some(DateTime(millis)) } else { None }, |v, s| {
    serialize_fixed(s, Kind::Date, v.0.to_le_bytes())
});

newtype!(
    Timestamp,
    "a timestamp",
    |v| if let Value::Timestamp { seconds, increment } = v { Some(Timestamp { seconds, increment }) } else { None },
    |v, s| serialize_built(s, |b| b.timestamp(v.seconds, v.increment))
);

newtype!(
    Decimal128,
    "a number",
    |v| match v {
        Value::Decimal128(v) => Some(v),
        Value::Int32(v) => Decimal128::from_integer(v < 0, v.unsigned_abs().into()),
        Value::Int64(v) => Decimal128::from_integer(v < 0, v.unsigned_abs().into()),
        _ => None,
    },
    |v, s| serialize_fixed(s, Kind::Decimal128, v.to_bits().to_le_bytes())
);

newtype!(
    Regex,
    "a regex",
    |v| match v {
        Value::Regex { pattern, options } => Some(Regex { pattern: pattern.to_owned(), options: options.to_owned() }),
        _ => None,
    },
    |v, s| {
        if v.pattern.contains('\0') || v.options.contains('\0') || !v.options.is_ascii() {
            return Err(serde::ser::Error::custom("a regular expression holds no NUL, and its options are letters"));
        }
        // The format has each once, in order.
        let options: String = v.options.chars().collect::<BTreeSet<_>>().into_iter().collect();
        serialize_built(s, |b| b.regex(&v.pattern, &options))
    }
);

newtype!(
    Binary,
    "binary data",
    |v| if let Value::Binary { subtype, bytes } = v { Some(Binary { subtype, bytes: bytes.to_vec() }) } else { None },
    |v, s| serialize_built(s, |b| b.binary(v.subtype, &v.bytes))
);

newtype!(MinKey, "minKey", |v| if let Value::MinKey = v { Some(MinKey) } else { None }, |_v, s| serialize_fixed(
    s,
    Kind::MinKey,
    []
));

newtype!(MaxKey, "maxKey", |v| if let Value::MaxKey = v { Some(MaxKey) } else { None }, |_v, s| serialize_fixed(
    s,
    Kind::MaxKey,
    []
));

/// The Extended JSON form of a value that JSON has no form for.
#[derive(Debug)]
pub(crate) enum Piece {
    Text(String),
    Number(i64),
    Map(Vec<(&'static str, Piece)>),
}

impl Piece {
    /// Of a value; none where JSON has a form for it.
    pub(crate) fn of(v: Value<'_>) -> Option<Self> {
        let text = |v: &str| Self::Text(v.to_owned());
        let (name, content) = match v {
            Value::ObjectId(id) => ("$oid", Self::Text(ObjectId(id).to_string())),
            Value::Date(millis) => ("$date", Self::Map(vec![("$numberLong", Self::Text(millis.to_string()))])),
            Value::Double(v) if !v.is_finite() => (
                "$numberDouble",
                text(if v.is_nan() {
                    "NaN"
                } else if v > 0.0 {
                    "Infinity"
                } else {
                    "-Infinity"
                }),
            ),
            Value::Decimal128(v) => ("$numberDecimal", Self::Text(v.to_string())),
            Value::Binary { subtype, bytes } => {
                let subtype = Self::Text(format!("{subtype:02x}"));
                ("$binary", Self::Map(vec![("base64", Self::Text(base64(bytes))), ("subType", subtype)]))
            }
            Value::Regex { pattern, options } => {
                ("$regularExpression", Self::Map(vec![("pattern", text(pattern)), ("options", text(options))]))
            }
            Value::Timestamp { seconds, increment } => {
                let (t, i) = (Self::Number(seconds.into()), Self::Number(increment.into()));
                ("$timestamp", Self::Map(vec![("t", t), ("i", i)]))
            }
            Value::MinKey => ("$minKey", Self::Number(1)),
            Value::MaxKey => ("$maxKey", Self::Number(1)),
            _ => return None,
        };
        Some(Self::Map(vec![(name, content)]))
    }
}

/// RFC 4648, section 4, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(word);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i)) as usize & 63] as char;
            out.push(if i <= group.len() { digit } else { '=' });
        }
    }
    out
}

impl Serialize for Piece {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(v) => s.serialize_str(v),
            Self::Number(v) => s.serialize_i64(*v),
            Self::Map(fields) => s.collect_map(fields.iter().map(|(name, v)| (name, v))),
        }
    }
}

impl<'de> Deserializer<'de> for Piece {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self {
            Self::Text(v) => visitor.visit_string(v),
            Self::Number(v) => visitor.visit_i64(v),
            Self::Map(fields) => visitor.visit_map(serde::de::value::MapDeserializer::new(fields.into_iter())),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl serde::de::IntoDeserializer<'_, Failure> for Piece {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}
