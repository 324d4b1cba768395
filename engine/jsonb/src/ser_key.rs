//! The keys of maps on their way in: text as it is; numbers, booleans and variants without content as their text.
//!
//! Takes one key from serde, writes it as the name of the next field. Everything else is refused: an object has names.

use serde::ser::{Impossible, Serialize, Serializer};

use crate::builder::Builder;
use crate::error::ErrorKind;
use crate::ser::Failure;

pub(crate) struct KeySerializer<'b> {
    pub(crate) out: &'b mut Builder,
}

#[cold]
fn no_key() -> Failure {
    Failure::new(ErrorKind::Serde, "a map's key must be text, a number, a boolean or a variant without content")
}

/// Methods that write a scalar as its text.
macro_rules! as_text {
    ($($method:ident $type:ty),*) => {
        $(fn $method(self, v: $type) -> Result<(), Failure> {
            self.serialize_str(&v.to_string())
        })*
    };
}

type No = Impossible<(), Failure>;

impl Serializer for KeySerializer<'_> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = No;
    type SerializeStructVariant = No;

    #[inline]
    fn serialize_str(self, v: &str) -> Result<(), Failure> {
        if v.as_bytes().contains(&0) {
            return Err(Failure::new(ErrorKind::NulInName, "a NUL in a field name"));
        }
        self.out.field(v);
        Ok(())
    }

    as_text!(
        serialize_bool bool, serialize_char char, serialize_i8 i8, serialize_i16 i16, serialize_i32 i32,
        serialize_i64 i64, serialize_i128 i128, serialize_u8 u8, serialize_u16 u16, serialize_u32 u32,
        serialize_u64 u64, serialize_u128 u128, serialize_f32 f32, serialize_f64 f64
    );

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<(), Failure> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, v: &T) -> Result<(), Failure> {
        v.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), Failure> {
        v.serialize(self)
    }

    fn serialize_bytes(self, _v: &[u8]) -> Result<(), Failure> {
        Err(no_key())
    }

    fn serialize_none(self) -> Result<(), Failure> {
        Err(no_key())
    }

    fn serialize_unit(self) -> Result<(), Failure> {
        Err(no_key())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Failure> {
        Err(no_key())
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _v: &T,
    ) -> Result<(), Failure> {
        Err(no_key())
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<No, Failure> {
        Err(no_key())
    }

    fn serialize_tuple(self, _len: usize) -> Result<No, Failure> {
        Err(no_key())
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<No, Failure> {
        Err(no_key())
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<No, Failure> {
        Err(no_key())
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<No, Failure> {
        Err(no_key())
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<No, Failure> {
        Err(no_key())
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        _variant: &'static str,
        _len: usize,
    ) -> Result<No, Failure> {
        Err(no_key())
    }
}
