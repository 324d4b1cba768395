//! A whole value out of any serde format: what [`JsonbBuf`] as a type means.
//!
//! From this format the bytes are taken as they are. From another one (JSON, a `serde_json::Value`) the value is what
//! `parse` would make of the same JSON: an integer is as narrow as its value, Extended JSON becomes what it means.
//! (`to_jsonb` of a `serde_json::Value` does neither: a struct of the same content must give the same document.)

use core::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::buf::JsonbBuf;
use crate::builder::Builder;
use crate::error::Error;
use crate::newtypes::RAW_NAME;
use crate::parse::parse;
use crate::print::{Style, print};
use crate::ser::{SERDE_DEPTH_MAX, to_builder};
use crate::validate::validate;
use crate::view::JsonbRef;

impl<'de> Deserialize<'de> for JsonbBuf {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_newtype_struct(RAW_NAME, WholeVisitor)
    }
}

struct WholeVisitor;

impl<'de> Visitor<'de> for WholeVisitor {
    type Value = JsonbBuf;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    /// From `de.rs` the bytes are valid, but another format may call this too.
    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<JsonbBuf, E> {
        validate(bytes).map(JsonbRef::to_buf).map_err(E::custom)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<JsonbBuf, D::Error> {
        if !d.is_human_readable() {
            return d.deserialize_bytes(self);
        }
        let mut out = Builder::new();
        d.deserialize_any(Into(&mut out))?;
        with_extended_read(JsonbBuf::from_valid(out.take())).map_err(serde::de::Error::custom)
    }
}

/// The value that a map of another format is, Extended JSON in it read.
pub(crate) fn whole_of_map<'de, A: MapAccess<'de>>(map: A) -> Result<JsonbBuf, A::Error> {
    let mut out = Builder::new();
    Into(&mut out).visit_map(map)?;
    with_extended_read(JsonbBuf::from_valid(out.take())).map_err(serde::de::Error::custom)
}

/// The same with the objects in it that are Extended JSON read as the values they stand for.
fn with_extended_read(v: JsonbBuf) -> Result<JsonbBuf, Error> {
    if !has_wrapper(v.view()) {
        return Ok(v);
    }
    let mut text = Vec::new();
    print(v.view(), Style::Relaxed, &mut text);
    parse(&text)
}

/// Whether a field name begins with `$`. The value comes from [`Into`], so its depth is bounded.
fn has_wrapper(v: JsonbRef<'_>) -> bool {
    if let Some(object) = v.as_object() {
        return object.iter().any(|field| field.name_bytes().starts_with(b"$") || has_wrapper(field.value));
    }
    v.as_array().is_some_and(|array| array.iter().any(has_wrapper))
}

/// Writes what comes to a builder.
struct Into<'b>(&'b mut Builder);

impl Into<'_> {
    fn write<T: Serialize, E: serde::de::Error>(self, v: T) -> Result<(), E> {
        to_builder(&v, self.0).map_err(E::custom)
    }

    fn check_depth<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.0.depth() < SERDE_DEPTH_MAX {
            return Ok(());
        }
        Err(E::custom(format_args!("the value nests deeper than {SERDE_DEPTH_MAX} levels")))
    }
}

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }
}

macro_rules! written {
    ($($method:ident $type:ty),* $(,)?) => {
        $(fn $method<E: serde::de::Error>(self, v: $type) -> Result<(), E> {
            self.write(v)
        })*
    };
}

impl<'de> Visitor<'de> for Into<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    written! {
        visit_bool bool, visit_i128 i128, visit_u128 u128, visit_f64 f64, visit_str &str,
    }

    fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<(), E> {
        match i32::try_from(v) {
            Ok(v) => self.write(v),
            Err(_) => self.write(v),
        }
    }

    fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<(), E> {
        match i64::try_from(v) {
            Ok(v) => self.visit_i64(v),
            Err(_) => self.write(v),
        }
    }

    fn visit_bytes<E: serde::de::Error>(self, v: &[u8]) -> Result<(), E> {
        self.0.binary(0, v);
        Ok(())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.0.null();
        Ok(())
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.visit_unit()
    }

    fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.0.begin_array();
        while seq.next_element_seed(Into(self.0))?.is_some() {}
        self.0.end_array().map_err(serde::de::Error::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.check_depth()?;
        self.0.begin_object();
        while map.next_key_seed(Name(self.0))?.is_some() {
            map.next_value_seed(Into(self.0))?;
        }
        self.0.end_object().map_err(serde::de::Error::custom)
    }
}

/// Writes a key that comes as the name of the next field.
struct Name<'b>(&'b mut Builder);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
        d.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name without NUL")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<(), E> {
        if name.as_bytes().contains(&0) {
            return Err(E::invalid_value(serde::de::Unexpected::Str(name), &self));
        }
        self.0.field(name);
        Ok(())
    }
}
