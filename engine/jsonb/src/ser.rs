//! Rust values to values of this format, by serde.
//!
//! Takes anything that is `Serialize`; writes it through [`Builder`] as it comes, with no tree in between. Structs and
//! maps become objects, sequences and tuples arrays, enums what serde calls externally tagged, bytes binary of subtype
//! 0, `None` and `()` null. Integers of up to 32 bits become int32 where their type always fits (`u32` does not), others
//! int64, and decimal128 where they are beyond int64. Types that serde does not know come as `newtypes.rs` says. The
//! format calls itself human-readable, so that types with two forms (addresses, UUIDs) are stored as text.

use core::fmt;
use std::cell::Cell;

use serde::ser::{self, Serialize};

use crate::buf::JsonbBuf;
use crate::builder::Builder;
use crate::error::{Error, ErrorKind};
use crate::newtypes::RAW_NAME;
use crate::number::Decimal128;
use crate::parse::BODY_LEVELS_MAX;
use crate::tag::Kind;
use crate::view::JsonbRef;

/// Levels of containers that a value may have on its way through serde, as many as the text of a request.
pub(crate) const SERDE_DEPTH_MAX: usize = BODY_LEVELS_MAX as usize;

/// `value` as an owned value.
///
/// ```
/// # use quarrydb_jsonb::to_jsonb;
/// let pairs = std::collections::BTreeMap::from([("a", 1), ("b", 2)]);
/// let doc = to_jsonb(&pairs)?;
/// assert_eq!(doc.view().get("b").and_then(|v| v.as_i64()), Some(2));
/// # Ok::<(), quarrydb_jsonb::Error>(())
/// ```
///
/// # Errors
/// `Serde` with what the type said, or what this format cannot hold (a map key that is no text or number);
/// `RepeatedKey`, `NulInName`, `NumberOutOfRange` and `TooDeep`.
pub fn to_jsonb<T: Serialize + ?Sized>(value: &T) -> Result<JsonbBuf, Error> {
    // It is not there where a type that itself calls this is being written, or the thread ends: then a new one serves.
    let mut out = SCRATCH.try_with(Cell::take).ok().flatten().unwrap_or_default();
    let result = to_builder(value, &mut out).map(|()| JsonbBuf::from_valid(out.bytes().to_vec()));
    out.rewind(0);
    if out.capacity() <= SCRATCH_BYTES_MAX {
        // A thread that ends keeps nothing.
        let _ = SCRATCH.try_with(|scratch| scratch.set(Some(out)));
    }
    result
}

/// A buffer that grew beyond this is not kept.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

thread_local! {
    /// The builder of the last [`to_jsonb`]: its memory, and what it learned of the shapes written.
    static SCRATCH: Cell<Option<Builder>> = const { Cell::new(None) };
}

/// Appends `value` to `out`; faster than [`to_jsonb`] where one builder serves many values. After an error `out` is to be
/// rewound.
///
/// # Errors
/// As [`to_jsonb`].
pub fn to_builder<T: Serialize + ?Sized>(value: &T, out: &mut Builder) -> Result<(), Error> {
    value.serialize(Serializer { out, raw: false }).map_err(|failure| *failure.0)
}

/// An [`Error`] in one word: results of it stay in registers on the way through derived code.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Box<Error>);

impl Failure {
    #[cold]
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Error::new(kind, message)))
    }

    /// The same, with `name` before its path.
    #[cold]
    pub(crate) fn below(self, name: &str) -> Self {
        let path = match self.0.path() {
            "" => name.to_owned(),
            path => format!("{name}.{path}"),
        };
        Self(Box::new(self.0.at_path(path)))
    }
}

impl From<Error> for Failure {
    #[cold]
    fn from(error: Error) -> Self {
        Self(Box::new(error))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl core::error::Error for Failure {}

impl ser::Error for Failure {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(ErrorKind::Serde, message.to_string())
    }
}

impl serde::de::Error for Failure {
    #[cold]
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(ErrorKind::Serde, message.to_string())
    }
}

struct Serializer<'b> {
    out: &'b mut Builder,
    /// Inside a newtype of `newtypes.rs`: bytes are a whole value.
    raw: bool,
}

/// An open object or array; inside a variant also the object around it.
struct Container<'b> {
    out: &'b mut Builder,
    in_variant: bool,
}

impl<'b> Serializer<'b> {
    fn begin(self, kind: Kind, variant: Option<&'static str>) -> Result<Container<'b>, Failure> {
        if self.out.depth() >= SERDE_DEPTH_MAX {
            return Err(Failure::new(
                ErrorKind::TooDeep,
                format!("the value nests deeper than {SERDE_DEPTH_MAX} levels"),
            ));
        }
        if let Some(variant) = variant {
            self.out.begin_object();
            self.out.field(variant);
        }
        match kind {
            Kind::Array => self.out.begin_array(),
            _ => self.out.begin_object(),
        }
        Ok(Container { out: self.out, in_variant: variant.is_some() })
    }
}

impl Container<'_> {
    #[inline]
    fn below(&mut self) -> Serializer<'_> {
        Serializer { out: self.out, raw: false }
    }

    #[inline]
    fn end_object(self) -> Result<(), Failure> {
        self.out.end_object()?;
        if self.in_variant {
            self.out.end_object()?;
        }
        Ok(())
    }

    #[inline]
    fn end_array(self) -> Result<(), Failure> {
        self.out.end_array()?;
        if self.in_variant {
            self.out.end_object()?;
        }
        Ok(())
    }
}

impl<'b> ser::Serializer for Serializer<'b> {
    type Ok = ();
    type Error = Failure;
    type SerializeSeq = Container<'b>;
    type SerializeTuple = Container<'b>;
    type SerializeTupleStruct = Container<'b>;
    type SerializeTupleVariant = Container<'b>;
    type SerializeMap = Container<'b>;
    type SerializeStruct = Container<'b>;
    type SerializeStructVariant = Container<'b>;

    fn is_human_readable(&self) -> bool {
        !self.raw
    }

    #[inline]
    fn serialize_bool(self, v: bool) -> Result<(), Failure> {
        self.out.bool(v);
        Ok(())
    }

    #[inline]
    fn serialize_i8(self, v: i8) -> Result<(), Failure> {
        self.serialize_i32(v.into())
    }

    #[inline]
    fn serialize_i16(self, v: i16) -> Result<(), Failure> {
        self.serialize_i32(v.into())
    }

    #[inline]
    fn serialize_i32(self, v: i32) -> Result<(), Failure> {
        self.out.int32(v);
        Ok(())
    }

    #[inline]
    fn serialize_i64(self, v: i64) -> Result<(), Failure> {
        self.out.int64(v);
        Ok(())
    }

    fn serialize_i128(self, v: i128) -> Result<(), Failure> {
        if let Ok(v) = i64::try_from(v) {
            return self.serialize_i64(v);
        }
        let decimal = Decimal128::from_integer(v < 0, v.unsigned_abs());
        self.out.decimal128(decimal.ok_or_else(too_many_digits)?);
        Ok(())
    }

    #[inline]
    fn serialize_u8(self, v: u8) -> Result<(), Failure> {
        self.serialize_i32(v.into())
    }

    #[inline]
    fn serialize_u16(self, v: u16) -> Result<(), Failure> {
        self.serialize_i32(v.into())
    }

    #[inline]
    fn serialize_u32(self, v: u32) -> Result<(), Failure> {
        self.serialize_i64(v.into())
    }

    #[inline]
    fn serialize_u64(self, v: u64) -> Result<(), Failure> {
        match i64::try_from(v) {
            Ok(v) => self.serialize_i64(v),
            Err(_) => self.serialize_u128(v.into()),
        }
    }

    fn serialize_u128(self, v: u128) -> Result<(), Failure> {
        if let Ok(v) = i64::try_from(v) {
            return self.serialize_i64(v);
        }
        self.out.decimal128(Decimal128::from_integer(false, v).ok_or_else(too_many_digits)?);
        Ok(())
    }

    #[inline]
    fn serialize_f32(self, v: f32) -> Result<(), Failure> {
        self.serialize_f64(v.into())
    }

    #[inline]
    fn serialize_f64(self, v: f64) -> Result<(), Failure> {
        self.out.double(v);
        Ok(())
    }

    fn serialize_char(self, v: char) -> Result<(), Failure> {
        self.serialize_str(v.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, v: &str) -> Result<(), Failure> {
        self.out.string(v);
        Ok(())
    }

    #[inline]
    fn serialize_bytes(self, v: &[u8]) -> Result<(), Failure> {
        if self.raw {
            self.out.copy(JsonbRef::first_of(v));
        } else {
            self.out.binary(0, v);
        }
        Ok(())
    }

    #[inline]
    fn serialize_none(self) -> Result<(), Failure> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, v: &T) -> Result<(), Failure> {
        v.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<(), Failure> {
        self.out.null();
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Failure> {
        self.serialize_unit()
    }

    #[inline]
    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Result<(), Failure> {
        self.serialize_str(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, v: &T) -> Result<(), Failure> {
        v.serialize(Serializer { out: self.out, raw: name == RAW_NAME })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        v: &T,
    ) -> Result<(), Failure> {
        let mut object = self.begin(Kind::Object, None)?;
        object.out.field(variant);
        v.serialize(object.below())?;
        object.end_object()
    }

    #[inline]
    fn serialize_seq(self, _len: Option<usize>) -> Result<Container<'b>, Failure> {
        self.begin(Kind::Array, None)
    }

    fn serialize_tuple(self, _len: usize) -> Result<Container<'b>, Failure> {
        self.begin(Kind::Array, None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Container<'b>, Failure> {
        self.begin(Kind::Array, None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'b>, Failure> {
        self.begin(Kind::Array, Some(variant))
    }

    #[inline]
    fn serialize_map(self, _len: Option<usize>) -> Result<Container<'b>, Failure> {
        self.begin(Kind::Object, None)
    }

    #[inline]
    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Container<'b>, Failure> {
        self.begin(Kind::Object, None)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Container<'b>, Failure> {
        self.begin(Kind::Object, Some(variant))
    }
}

#[cold]
fn too_many_digits() -> Failure {
    Failure::new(ErrorKind::NumberOutOfRange, "an integer of more than 34 digits")
}

impl ser::SerializeSeq for Container<'_> {
    type Ok = ();
    type Error = Failure;
    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
        v.serialize(self.below())
    }
    #[inline]
    fn end(self) -> Result<(), Failure> {
        self.end_array()
    }
}

impl ser::SerializeTuple for Container<'_> {
    type Ok = ();
    type Error = Failure;
    #[inline]
    fn serialize_element<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
        v.serialize(self.below())
    }
    #[inline]
    fn end(self) -> Result<(), Failure> {
        self.end_array()
    }
}

impl ser::SerializeTupleStruct for Container<'_> {
    type Ok = ();
    type Error = Failure;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
        v.serialize(self.below())
    }
    fn end(self) -> Result<(), Failure> {
        self.end_array()
    }
}

impl ser::SerializeTupleVariant for Container<'_> {
    type Ok = ();
    type Error = Failure;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
        v.serialize(self.below())
    }
    fn end(self) -> Result<(), Failure> {
        self.end_array()
    }
}

impl ser::SerializeMap for Container<'_> {
    type Ok = ();
    type Error = Failure;
    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failure> {
        key.serialize(crate::ser_key::KeySerializer { out: self.out })
    }
    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, v: &T) -> Result<(), Failure> {
        v.serialize(self.below())
    }
    #[inline]
    fn end(self) -> Result<(), Failure> {
        self.end_object()
    }
}

impl ser::SerializeStruct for Container<'_> {
    type Ok = ();
    type Error = Failure;
    #[inline]
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, v: &T) -> Result<(), Failure> {
        self.out.field(name);
        v.serialize(self.below())
    }
    #[inline]
    fn end(self) -> Result<(), Failure> {
        self.end_object()
    }
}

impl ser::SerializeStructVariant for Container<'_> {
    type Ok = ();
    type Error = Failure;
    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, v: &T) -> Result<(), Failure> {
        self.out.field(name);
        v.serialize(self.below())
    }
    fn end(self) -> Result<(), Failure> {
        self.end_object()
    }
}
