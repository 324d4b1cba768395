//! Values of this format to Rust values, by serde.
//!
//! Takes a [`JsonbRef`], gives anything that is `Deserialize`. Text and bytes can be borrowed out of the document; nothing
//! is allocated for a field. The inverse of `ser.rs`, and a little wider: a number is taken for an integer type whatever
//! its own type where its value is one, and for a float type always (rounded to the nearest). ObjectIds and other types
//! that serde does not know go to the types of `newtypes.rs`; who asks for anything (`serde_json::Value`, untagged enums)
//! gets them, and bytes, as Extended JSON.

use serde::de::{
    self, DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use serde::{Deserialize, forward_to_deserialize_any};

use crate::array::ArrayIter;
use crate::de_key::KeyDeserializer;
use crate::error::{Error, ErrorKind};
use crate::newtypes::{Piece, RAW_NAME};
use crate::number::{Decimal128, Number, Unpacked, nearest_double};
use crate::object::ObjectIter;
use crate::ser::Failure;
use crate::tag::Kind;
use crate::view::{JsonbRef, Value};

/// The Rust value that `v` is.
///
/// ```
/// # use quarrydb_jsonb::{from_jsonb, to_jsonb};
/// let doc = to_jsonb(&("a", 1))?;
/// let (text, n): (&str, u8) = from_jsonb(doc.view())?;
/// assert_eq!((text, n), ("a", 1));
/// # Ok::<(), quarrydb_jsonb::Error>(())
/// ```
///
/// # Errors
/// `Serde` where a value is missing, of another type or out of range, with the path to it.
pub fn from_jsonb<'a, T: Deserialize<'a>>(v: JsonbRef<'a>) -> Result<T, Error> {
    T::deserialize(Deserializer(v)).map_err(|failure| *failure.0)
}

#[derive(Clone, Copy)]
pub(crate) struct Deserializer<'a>(pub(crate) JsonbRef<'a>);

fn visit_integer<'de, V: Visitor<'de>>(v: i128, visitor: V) -> Result<V::Value, Failure> {
    if let Ok(v) = i64::try_from(v) {
        visitor.visit_i64(v)
    } else if let Ok(v) = u64::try_from(v) {
        visitor.visit_u64(v)
    } else {
        visitor.visit_i128(v)
    }
}

/// The integer above int64 that a decimal is, where it is a u64.
fn beyond_int64(v: Decimal128) -> Option<u64> {
    match v.unpack() {
        Unpacked::Finite { negative: false, coefficient, exponent: 0 } => {
            u64::try_from(coefficient).ok().filter(|&v| v > i64::MAX as u64)
        }
        _ => None,
    }
}

/// The integer that a number is, whatever its type.
fn integer_of(number: Number) -> Option<i128> {
    match number {
        Number::Int(v) => Some(v.into()),
        // Above 2^100 a double is an integer that nobody meant.
        Number::Double(v) => (v.fract() == 0.0 && v.abs() < (1u128 << 100) as f64).then_some(v as i128),
        Number::Decimal(v) => match v.unpack() {
            Unpacked::Finite { negative, mut coefficient, mut exponent } => {
                while exponent < 0 && coefficient.is_multiple_of(10) && coefficient != 0 {
                    coefficient /= 10;
                    exponent += 1;
                }
                if coefficient == 0 {
                    return Some(0);
                }
                let power = 10i128.checked_pow(u32::try_from(exponent).ok()?)?;
                let magnitude = i128::try_from(coefficient).ok()?.checked_mul(power)?;
                Some(if negative { -magnitude } else { magnitude })
            }
            _ => None,
        },
    }
}

impl Number {
    /// The nearest double.
    fn to_f64(self) -> f64 {
        match self {
            Self::Int(v) => v as f64,
            Self::Double(v) => v,
            Self::Decimal(v) => match v.unpack() {
                Unpacked::Nan => f64::NAN,
                Unpacked::Infinite { negative } => {
                    if negative {
                        f64::NEG_INFINITY
                    } else {
                        f64::INFINITY
                    }
                }
                Unpacked::Finite { negative, coefficient, exponent } => {
                    let magnitude = nearest_double(coefficient, exponent);
                    if negative { -magnitude } else { magnitude }
                }
            },
        }
    }
}

macro_rules! integers {
    ($($method:ident)*) => {
        $(#[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            if let Some(v) = self.0.as_i64() {
                return visitor.visit_i64(v);
            }
            match Number::of(self.0).and_then(integer_of) {
                Some(v) => visit_integer(v, visitor),
                None => self.deserialize_any(visitor),
            }
        })*
    };
}

macro_rules! floats {
    ($($method:ident)*) => {
        $(#[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            match Number::of(self.0) {
                Some(number) => visitor.visit_f64(number.to_f64()),
                None => self.deserialize_any(visitor),
            }
        })*
    };
}

macro_rules! texts {
    ($($method:ident)*) => {
        $(#[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            match self.0.as_str() {
                Some(text) => visitor.visit_borrowed_str(text),
                None => self.deserialize_any(visitor),
            }
        })*
    };
}

impl<'de> de::Deserializer<'de> for Deserializer<'de> {
    type Error = Failure;

    #[inline]
    fn is_human_readable(&self) -> bool {
        true
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0.value() {
            Value::Int32(v) => visitor.visit_i32(v),
            Value::Int64(v) => visitor.visit_i64(v),
            Value::Double(v) => visitor.visit_f64(v),
            // What a u64 beyond int64 became.
            Value::Decimal128(v) if beyond_int64(v).is_some() => visitor.visit_u64(beyond_int64(v).unwrap_or_default()),
            Value::Null => visitor.visit_unit(),
            Value::Bool(v) => visitor.visit_bool(v),
            Value::String(v) => visitor.visit_borrowed_str(v),
            Value::Array(_) => self.deserialize_seq(visitor),
            Value::Object(_) => self.deserialize_map(visitor),
            other => match Piece::of(other) {
                Some(piece) => piece.deserialize_any(visitor),
                None => Err(Failure::custom("a value without a form in serde")),
            },
        }
    }

    integers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    floats! { deserialize_f32 deserialize_f64 }

    texts! { deserialize_char deserialize_str deserialize_string deserialize_identifier }

    #[inline]
    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.0.value() {
            Value::Binary { bytes, .. } => visitor.visit_borrowed_bytes(bytes),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        if self.0.kind() == Kind::Null { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        if name == RAW_NAME {
            return visitor.visit_borrowed_bytes(self.0.as_bytes());
        }
        visitor.visit_newtype_struct(self)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let Some(array) = self.0.as_array() else { return self.deserialize_any(visitor) };
        let mut elements = Elements { rest: array.iter(), left: array.len(), index: 0 };
        let value = visitor.visit_seq(&mut elements)?;
        if elements.left > 0 {
            return Err(Failure::invalid_length(array.len(), &"fewer elements"));
        }
        Ok(value)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Failure> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _len: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        let Some(object) = self.0.as_object() else { return self.deserialize_any(visitor) };
        visitor.visit_map(Fields { rest: object.iter(), left: object.len(), name: "", value: self.0 })
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        if let Some(variant) = self.0.as_str() {
            return visitor.visit_enum(Variant { variant, content: None });
        }
        let Some(object) = self.0.as_object() else { return self.deserialize_any(visitor) };
        match object.iter().next() {
            Some(field) if object.len() == 1 => {
                visitor.visit_enum(Variant { variant: field.name(), content: Some(field.value) })
            }
            _ => Err(Failure::invalid_length(object.len(), &"an object of one field, the variant")),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { bool unit unit_struct }
}

struct Elements<'a> {
    rest: ArrayIter<'a>,
    left: usize,
    index: usize,
}

impl<'de> SeqAccess<'de> for Elements<'de> {
    type Error = Failure;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Failure> {
        let Some(element) = self.rest.next() else { return Ok(None) };
        self.left -= 1;
        self.index += 1;
        match seed.deserialize(Deserializer(element)) {
            Ok(value) => Ok(Some(value)),
            Err(failure) => Err(failure.below(&(self.index - 1).to_string())),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

struct Fields<'a> {
    rest: ObjectIter<'a>,
    left: usize,
    name: &'a str,
    value: JsonbRef<'a>,
}

impl<'de> MapAccess<'de> for Fields<'de> {
    type Error = Failure;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Failure> {
        let Some(field) = self.rest.next() else { return Ok(None) };
        self.left = self.left.saturating_sub(1);
        self.name = field.name();
        self.value = field.value;
        seed.deserialize(KeyDeserializer(self.name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Failure> {
        match seed.deserialize(Deserializer(self.value)) {
            Ok(value) => Ok(value),
            Err(failure) => Err(failure.below(self.name)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left)
    }
}

struct Variant<'a> {
    variant: &'a str,
    content: Option<JsonbRef<'a>>,
}

impl<'de> EnumAccess<'de> for Variant<'de> {
    type Error = Failure;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Failure> {
        let variant: de::value::BorrowedStrDeserializer<'de, Failure> =
            de::value::BorrowedStrDeserializer::new(self.variant);
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> Variant<'de> {
    fn content(&self, expected: &str) -> Result<Deserializer<'de>, Failure> {
        self.content
            .map(Deserializer)
            .ok_or_else(|| Failure::new(ErrorKind::Serde, format!("the variant {:?} needs {expected}", self.variant)))
    }

    fn within<T>(&self, result: Result<T, Failure>) -> Result<T, Failure> {
        result.map_err(|failure| failure.below(self.variant))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de> {
    type Error = Failure;

    fn unit_variant(self) -> Result<(), Failure> {
        match self.content {
            Some(content) => self.within(<()>::deserialize(Deserializer(content))),
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Failure> {
        let content = self.content("a value")?;
        self.within(seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _len: usize, visitor: V) -> Result<V::Value, Failure> {
        let content = self.content("an array")?;
        self.within(de::Deserializer::deserialize_seq(content, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        let content = self.content("an object")?;
        self.within(de::Deserializer::deserialize_map(content, visitor))
    }
}

impl<'de> IntoDeserializer<'de, Failure> for Deserializer<'de> {
    type Deserializer = Self;
    fn into_deserializer(self) -> Self {
        self
    }
}
