//! The names of fields on their way out as the keys of maps: text, or what text of a number or boolean says.
//!
//! Takes one name, gives it as the type that is asked for. The inverse of `ser_key.rs`.

use serde::de::{self, Visitor};
use serde::forward_to_deserialize_any;

use crate::ser::Failure;

#[derive(Clone, Copy)]
pub(crate) struct KeyDeserializer<'a>(pub(crate) &'a str);

/// Methods that read a scalar from the name; where it is none, the visitor says what it expected.
macro_rules! from_text {
    ($($method:ident $visit:ident $type:ty),* $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            match self.0.parse::<$type>() {
                Ok(v) => visitor.$visit(v),
                Err(_) => visitor.visit_borrowed_str(self.0),
            }
        })*
    };
}

impl<'de> de::Deserializer<'de> for KeyDeserializer<'de> {
    type Error = Failure;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_str(self.0)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_borrowed_str(self.0)
    }

    from_text! {
        deserialize_bool visit_bool bool,
        deserialize_i8 visit_i64 i64, deserialize_i16 visit_i64 i64, deserialize_i32 visit_i64 i64,
        deserialize_i64 visit_i64 i64, deserialize_i128 visit_i128 i128,
        deserialize_u8 visit_u64 u64, deserialize_u16 visit_u64 u64, deserialize_u32 visit_u64 u64,
        deserialize_u64 visit_u64 u64, deserialize_u128 visit_u128 u128,
        deserialize_f32 visit_f64 f64, deserialize_f64 visit_f64 f64,
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _name: &'static str, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_enum(de::value::BorrowedStrDeserializer::new(self.0))
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct ignored_any
    }
}
