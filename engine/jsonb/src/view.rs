//! The borrowed reader of a value: its kind, its size, its scalars.
//!
//! Takes bytes that `validate` has passed or that `builder` wrote; gives scalars, `ObjectRef`, `ArrayRef`. Total: on
//! bytes that are not valid it gives wrong values, but it never panics, and never reads past the slice. It allocates
//! nothing. Next: `object.rs`, `array.rs`.

use crate::array::ArrayRef;
use crate::number::Decimal128;
use crate::object::ObjectRef;
use crate::tag::{INT64_WIDTHS, Kind, Width, aux};

/// One value, borrowed: exactly its bytes, from its tag on.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct JsonbRef<'a>(&'a [u8]);

/// A value taken apart, for `match`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// `null`.
    Null,
    /// A boolean.
    Bool(bool),
    /// A 32-bit integer.
    Int32(i32),
    /// A 64-bit integer.
    Int64(i64),
    /// A binary64 number.
    Double(f64),
    /// A decimal128 number.
    Decimal128(Decimal128),
    /// A string.
    String(&'a str),
    /// Bytes with BSON's subtype.
    Binary {
        /// BSON's subtype.
        subtype: u8,
        /// The bytes.
        bytes: &'a [u8],
    },
    /// An ObjectId.
    ObjectId([u8; 12]),
    /// Milliseconds since 1970-01-01 UTC.
    Date(i64),
    /// A regular expression.
    Regex {
        /// The pattern.
        pattern: &'a str,
        /// The options, in alphabetical order.
        options: &'a str,
    },
    /// BSON's internal timestamp.
    Timestamp {
        /// Seconds since 1970-01-01 UTC.
        seconds: u32,
        /// Counts within the second.
        increment: u32,
    },
    /// Below every other value.
    MinKey,
    /// Above every other value.
    MaxKey,
    /// An array.
    Array(ArrayRef<'a>),
    /// An object.
    Object(ObjectRef<'a>),
}

/// The value null, for what is missing.
pub const NULL: JsonbRef<'static> = JsonbRef(&[Kind::Null.tag(0)]);

impl<'a> JsonbRef<'a> {
    /// Takes bytes known to be valid: written by [`crate::Builder`] or passed by [`crate::validate()`]. With others the
    /// answers are wrong, but nothing panics.
    #[inline]
    #[must_use]
    pub const fn from_valid(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The first value in `bytes`, which may go on; null where there is none.
    #[inline]
    #[must_use]
    pub(crate) fn first_of(bytes: &'a [u8]) -> Self {
        match bytes.get(..size_of(bytes)) {
            Some(exact) if !exact.is_empty() => Self(exact),
            _ => NULL,
        }
    }

    /// Its bytes.
    #[inline]
    #[must_use]
    pub const fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    #[inline]
    fn tag(self) -> u8 {
        self.0.first().copied().unwrap_or(Kind::Null as u8)
    }

    /// Its kind.
    #[inline]
    #[must_use]
    pub fn kind(self) -> Kind {
        Kind::of(self.tag()).unwrap_or(Kind::Null)
    }

    /// The value taken apart.
    #[must_use]
    pub fn value(self) -> Value<'a> {
        match self.kind() {
            Kind::Null => Value::Null,
            Kind::Bool => Value::Bool(aux(self.tag()) != 0),
            Kind::Int32 => Value::Int32(self.int_bits(aux(self.tag()).min(4) as usize) as i32),
            Kind::Int64 => Value::Int64(self.int_bits(INT64_WIDTHS[aux(self.tag()) as usize & 7])),
            Kind::Double => Value::Double(f64::from_bits(self.u64_at(1))),
            Kind::Decimal128 => {
                Value::Decimal128(Decimal128::from_bits(u128::from(self.u64_at(1)) | u128::from(self.u64_at(9)) << 64))
            }
            Kind::String => Value::String(text(self.sized_payload().0)),
            Kind::Binary => {
                let (len_then, rest) = self.sized_payload_after(1);
                Value::Binary { subtype: rest, bytes: len_then }
            }
            Kind::ObjectId => {
                Value::ObjectId(self.0.get(1..).and_then(|b| b.first_chunk()).copied().unwrap_or_default())
            }
            Kind::Date => Value::Date(self.u64_at(1) as i64),
            Kind::Regex => {
                let (pattern, end) = self.sized_payload();
                let options = self.0.get(end + 1..).unwrap_or_default();
                Value::Regex { pattern: text(pattern), options: text(options) }
            }
            Kind::Timestamp => {
                let bits = self.u64_at(1);
                Value::Timestamp { seconds: (bits >> 32) as u32, increment: bits as u32 }
            }
            Kind::MinKey => Value::MinKey,
            Kind::MaxKey => Value::MaxKey,
            Kind::Array => Value::Array(ArrayRef::from_valid(self.0)),
            Kind::Object => Value::Object(ObjectRef::from_valid(self.0)),
        }
    }

    /// The object, where it is one.
    #[inline]
    #[must_use]
    pub fn as_object(self) -> Option<ObjectRef<'a>> {
        (self.kind() == Kind::Object).then(|| ObjectRef::from_valid(self.0))
    }

    /// The array, where it is one.
    #[inline]
    #[must_use]
    pub fn as_array(self) -> Option<ArrayRef<'a>> {
        (self.kind() == Kind::Array).then(|| ArrayRef::from_valid(self.0))
    }

    /// The field `name`, where this is an object that has it.
    #[inline]
    #[must_use]
    pub fn get(self, name: &str) -> Option<JsonbRef<'a>> {
        self.as_object()?.get(name)
    }

    /// The string, where it is one.
    #[inline]
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        self.as_str_bytes().map(text)
    }

    /// The string's bytes, where it is one; for comparing and copying without a look at them.
    #[inline]
    #[must_use]
    pub fn as_str_bytes(self) -> Option<&'a [u8]> {
        (self.kind() == Kind::String).then(|| self.sized_payload().0)
    }

    /// Whether a string can stand between quotes in JSON as it is.
    #[inline]
    #[must_use]
    pub fn is_plain(self) -> bool {
        aux(self.tag()) & 1 != 0
    }

    /// The boolean, where it is one.
    #[inline]
    #[must_use]
    pub fn as_bool(self) -> Option<bool> {
        (self.kind() == Kind::Bool).then(|| aux(self.tag()) != 0)
    }

    /// The integer, where it is an int32 or int64.
    #[inline]
    #[must_use]
    pub fn as_i64(self) -> Option<i64> {
        match self.kind() {
            Kind::Int32 => Some(self.int_bits(aux(self.tag()).min(4) as usize)),
            Kind::Int64 => Some(self.int_bits(INT64_WIDTHS[aux(self.tag()) as usize & 7])),
            _ => None,
        }
    }

    /// The double, where it is one.
    #[inline]
    #[must_use]
    pub fn as_f64(self) -> Option<f64> {
        (self.kind() == Kind::Double).then(|| f64::from_bits(self.u64_at(1)))
    }

    #[inline]
    fn u64_at(self, at: usize) -> u64 {
        self.0.get(at..).and_then(|b| b.first_chunk()).map_or(0, |b| u64::from_le_bytes(*b))
    }

    /// `n` little-endian bytes after the tag, sign-extended.
    #[inline]
    fn int_bits(self, n: usize) -> i64 {
        let Some(b) = self.0.get(1..1 + n) else { return 0 };
        if n == 0 {
            return 0;
        }
        let mut word = [0; 8];
        word[..n].copy_from_slice(b);
        let unused = 64 - 8 * n as u32;
        (u64::from_le_bytes(word) as i64) << unused >> unused
    }

    /// The bytes that a length before them covers, and where they end.
    #[inline]
    fn sized_payload(self) -> (&'a [u8], usize) {
        let width = Width::of_code(aux(self.tag()) >> 1).unwrap_or(Width::W4);
        let start = 1 + width.bytes();
        let end = start + width.read(self.0, 1);
        (self.0.get(start..end).unwrap_or_default(), end)
    }

    /// The same where a byte stands between length and payload: the payload and that byte.
    #[inline]
    fn sized_payload_after(self, _gap: usize) -> (&'a [u8], u8) {
        let width = Width::of_code(aux(self.tag()) >> 1).unwrap_or(Width::W4);
        let start = 1 + width.bytes();
        let len = width.read(self.0, 1);
        (self.0.get(start + 1..start + 1 + len).unwrap_or_default(), self.0.get(start).copied().unwrap_or(0))
    }
}

/// The first of the values that lie one after another in `bytes`; none at the end, or where no value stands.
#[inline]
#[must_use]
pub fn first_value(bytes: &[u8]) -> Option<JsonbRef<'_>> {
    bytes.get(..size_of(bytes)).filter(|exact| !exact.is_empty()).map(JsonbRef)
}

impl core::fmt::Debug for JsonbRef<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Debug::fmt(&self.value(), f)
    }
}

#[inline]
pub(crate) fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or_default()
}

/// How many bytes the value at the start of `bytes` takes; 0 where no value stands there. Not checked against the end.
#[inline]
pub(crate) fn size_of(bytes: &[u8]) -> usize {
    let Some(&tag) = bytes.first() else { return 0 };
    let Some(kind) = Kind::of(tag) else { return 0 };
    match kind {
        Kind::Null | Kind::Bool | Kind::MinKey | Kind::MaxKey => 1,
        Kind::Int32 => 1 + aux(tag) as usize,
        Kind::Int64 => 1 + INT64_WIDTHS[aux(tag) as usize & 7],
        Kind::Double | Kind::Date | Kind::Timestamp => 9,
        Kind::Decimal128 => 17,
        Kind::ObjectId => 13,
        Kind::String | Kind::Binary | Kind::Regex => {
            let Some(width) = Width::of_code(aux(tag) >> 1) else { return 0 };
            let end = 1 + width.bytes() + width.read(bytes, 1);
            match kind {
                Kind::String => end,
                Kind::Binary => end + 1,
                _ => end + 1 + bytes.get(end).copied().unwrap_or(0) as usize,
            }
        }
        Kind::Array | Kind::Object => Width::of_code(aux(tag)).map_or(0, |width| width.read(bytes, 1)),
    }
}
