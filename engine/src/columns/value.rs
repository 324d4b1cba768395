//! Scalars of documents as values of lanes, and back.
//!
//! A lane's tag is the type that it holds. Its values are those of the documents, exactly, but for decimals and the rarer
//! types, which are kept by their `sort_key` (equal values share it), and texts too long to be worth keeping twice, of
//! which only the row is noted.

use quarrydb_index::column::Value;
use quarrydb_jsonb::{Builder, JsonbRef, Kind, Value as Scalar, sort_key};

/// What a lane holds; stands in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Tag {
    /// True and false.
    Bool = 1,
    /// 32-bit integers.
    Int32 = 2,
    /// 64-bit integers.
    Int64 = 3,
    /// Doubles.
    Double = 4,
    /// Decimals, by `sort_key`.
    Decimal = 5,
    /// Texts, as their UTF-8.
    String = 6,
    /// ObjectIds, as their bytes.
    ObjectId = 7,
    /// Dates, as milliseconds.
    Date = 8,
    /// Rows with an object there; the value is always true.
    Object = 9,
    /// All other types, by `sort_key`.
    Other = 10,
    /// Rows with a text, or a value of another type, too long to be kept; the value is always true.
    Long = 11,
    /// Rows with an array among the elements of an array there; the value is always true.
    Nested = 12,
}

/// Bytes of a text or a `sort_key` up to which it is kept in a column.
pub(crate) const VALUE_BYTES_MAX: usize = 256;

impl Tag {
    /// The tag of this number.
    pub(crate) fn of(number: u8) -> Option<Self> {
        const ALL: [Tag; 12] = [
            Tag::Bool,
            Tag::Int32,
            Tag::Int64,
            Tag::Double,
            Tag::Decimal,
            Tag::String,
            Tag::ObjectId,
            Tag::Date,
            Tag::Object,
            Tag::Other,
            Tag::Long,
            Tag::Nested,
        ];
        ALL.into_iter().find(|tag| *tag as u8 == number)
    }

    /// Whether its lanes hold the values of documents, for `scalar_of` to give back.
    pub(crate) fn is_exact(self) -> bool {
        !matches!(self, Self::Decimal | Self::Object | Self::Other | Self::Long | Self::Nested)
    }

    /// Whether its lanes hold numbers, which may equal those of another type.
    pub(crate) fn is_number(self) -> bool {
        matches!(self, Self::Int32 | Self::Int64 | Self::Double | Self::Decimal)
    }

    /// Whether its lanes only say which rows have something.
    pub(crate) fn is_mark(self) -> bool {
        matches!(self, Self::Object | Self::Long | Self::Nested)
    }
}

/// Gives the lane and the value of a scalar or an object; nothing for null and arrays, which are no values of lanes.
/// `key` is room for a `sort_key`.
#[inline]
pub(crate) fn lane_of<'v>(value: JsonbRef<'v>, key: &'v mut Vec<u8>) -> Option<(Tag, Value<'v>)> {
    Some(match value.value() {
        Scalar::Int32(number) => (Tag::Int32, Value::Int(number.into())),
        Scalar::String(text) if text.len() > VALUE_BYTES_MAX => (Tag::Long, Value::Bool(true)),
        Scalar::String(text) => (Tag::String, Value::Bytes(text.as_bytes())),
        Scalar::Double(number) => (Tag::Double, Value::Float(number)),
        Scalar::Int64(number) => (Tag::Int64, Value::Int(number)),
        Scalar::Bool(value) => (Tag::Bool, Value::Bool(value)),
        Scalar::Date(millis) => (Tag::Date, Value::Int(millis)),
        Scalar::Object(_) => (Tag::Object, Value::Bool(true)),
        Scalar::Null | Scalar::Array(_) => return None,
        Scalar::ObjectId(id) => {
            key.clear();
            key.extend(id);
            (Tag::ObjectId, Value::Bytes(key))
        }
        other => {
            key.clear();
            sort_key(value, key);
            match other {
                _ if key.len() > VALUE_BYTES_MAX => (Tag::Long, Value::Bool(true)),
                Scalar::Decimal128(_) => (Tag::Decimal, Value::Bytes(key)),
                _ => (Tag::Other, Value::Bytes(key)),
            }
        }
    })
}

/// Appends the document's value for one of a lane; false where the lane does not keep it.
pub(crate) fn scalar_of(tag: Tag, value: Value<'_>, out: &mut Builder) -> bool {
    match (tag, value) {
        (Tag::Bool, Value::Bool(value)) => out.bool(value),
        (Tag::Int32, Value::Int(number)) => match i32::try_from(number) {
            Ok(number) => out.int32(number),
            Err(_) => return false,
        },
        (Tag::Int64, Value::Int(number)) => out.int64(number),
        (Tag::Double, Value::Float(number)) => out.double(number),
        (Tag::Date, Value::Int(millis)) => out.date(millis),
        (Tag::String, Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => out.string(text),
            Err(_) => return false,
        },
        (Tag::ObjectId, Value::Bytes(bytes)) => match bytes.try_into() {
            Ok(id) => out.object_id(id),
            Err(_) => return false,
        },
        _ => return false,
    }
    true
}

/// All kinds of values.
pub(crate) const KINDS: [Kind; 16] = [
    Kind::Null,
    Kind::Bool,
    Kind::Int32,
    Kind::Int64,
    Kind::Double,
    Kind::Decimal128,
    Kind::String,
    Kind::Binary,
    Kind::ObjectId,
    Kind::Date,
    Kind::Regex,
    Kind::Timestamp,
    Kind::MinKey,
    Kind::MaxKey,
    Kind::Array,
    Kind::Object,
];

/// The tags whose lanes hold values of a kind; none for null and arrays.
pub(crate) fn tags_of(kind: Kind) -> &'static [Tag] {
    match kind {
        Kind::Bool => &[Tag::Bool],
        Kind::Int32 => &[Tag::Int32],
        Kind::Int64 => &[Tag::Int64],
        Kind::Double => &[Tag::Double],
        Kind::Decimal128 => &[Tag::Decimal],
        Kind::String => &[Tag::String, Tag::Long],
        Kind::ObjectId => &[Tag::ObjectId],
        Kind::Date => &[Tag::Date],
        Kind::Object => &[Tag::Object],
        Kind::Null | Kind::Array => &[],
        _ => &[Tag::Other, Tag::Long],
    }
}
