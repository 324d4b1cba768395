//! Documents to JSON text, in three styles.
//!
//! Takes a value; appends its text. What is printed in the Extended JSON styles parses back to an equal value, in the
//! canonical one to the identical bytes. Total: bytes that are not valid print as something, in bounded time and stack.

use crate::array::ArrayRef;
use crate::date::{FIRST_PLAIN_MS, ISO_BYTES_MAX, LAST_PLAIN_MS, YEAR_0_MS, write_iso};
use crate::object::ObjectRef;
use crate::parse::{BODY_LEVELS_MAX, POWERS_OF_TEN};
use crate::tag::Kind;
use crate::view::{JsonbRef, Value};
use std::io::Write as _;

/// How values print that JSON has no type for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// Extended JSON v2, relaxed: numbers and dates as people write them.
    Relaxed,
    /// Extended JSON v2, canonical: every type wrapped.
    Canonical,
    /// ObjectIds as their hexadecimal digits, dates as ISO strings, else relaxed. Does not parse back to the same types.
    Plain,
}

/// Appends the text of `v` to `out`.
pub fn print(v: JsonbRef<'_>, style: Style, out: &mut Vec<u8>) {
    out.reserve(v.as_bytes().len() + v.as_bytes().len() / 4 + 64);
    match style {
        Style::Relaxed => Printer::<RELAXED> { out }.value(v, BODY_LEVELS_MAX),
        Style::Canonical => Printer::<CANONICAL> { out }.value(v, BODY_LEVELS_MAX),
        Style::Plain => Printer::<PLAIN> { out }.value(v, BODY_LEVELS_MAX),
    }
}

const RELAXED: u8 = 0;
const CANONICAL: u8 = 1;
const PLAIN: u8 = 2;

/// Prints in one style, which is a constant so that each has its own code.
struct Printer<'o, const STYLE: u8> {
    out: &'o mut Vec<u8>,
}

impl<const STYLE: u8> Printer<'_, STYLE> {
    fn value(&mut self, v: JsonbRef<'_>, levels_left: u32) {
        match v.kind() {
            Kind::String => self.string(v.as_str_bytes().unwrap_or_default(), v.is_plain()),
            Kind::Int32 => self.integer(v.as_i64().unwrap_or(0), "$numberInt"),
            Kind::Int64 => self.integer(v.as_i64().unwrap_or(0), "$numberLong"),
            Kind::Double => self.double(v.as_f64().unwrap_or(0.0)),
            Kind::Bool => self.text(if v.as_bool() == Some(true) { "true" } else { "false" }),
            Kind::Object => self.object(ObjectRef::from_valid(v.as_bytes()), levels_left),
            Kind::Array => self.array(ArrayRef::from_valid(v.as_bytes()), levels_left),
            _ => self.rare(v),
        }
    }

    fn object(&mut self, object: ObjectRef<'_>, levels_left: u32) {
        if levels_left == 0 {
            return self.text("null");
        }
        self.out.push(b'{');
        let mut first = true;
        for entry in object.iter() {
            if !first {
                self.out.push(b',');
            }
            first = false;
            self.string(entry.name_bytes(), entry.name_is_plain());
            self.out.push(b':');
            self.value(entry.value, levels_left - 1);
        }
        self.out.push(b'}');
    }

    fn array(&mut self, array: ArrayRef<'_>, levels_left: u32) {
        if levels_left == 0 {
            return self.text("null");
        }
        self.out.push(b'[');
        let mut first = true;
        for element in array.iter() {
            if !first {
                self.out.push(b',');
            }
            first = false;
            self.value(element, levels_left - 1);
        }
        self.out.push(b']');
    }

    #[inline(always)]
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline(always)]
    fn string(&mut self, text: &[u8], plain: bool) {
        if plain {
            self.out.push(b'"');
            self.copy(text);
            self.out.push(b'"');
        } else {
            self.escaped(text);
        }
    }

    #[inline(always)]
    fn copy(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
    }

    #[inline(never)]
    fn escaped(&mut self, text: &[u8]) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        self.out.push(b'"');
        let mut rest = text;
        while let Some(at) = rest.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\') {
            self.out.extend_from_slice(&rest[..at]);
            let byte = rest[at];
            let short = match byte {
                b'"' | b'\\' => byte,
                0x08 => b'b',
                0x0c => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                _ => 0,
            };
            if short != 0 {
                self.out.extend_from_slice(&[b'\\', short]);
            } else {
                let [high, low] = [byte >> 4, byte & 15].map(|digit| HEX[digit as usize]);
                self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            rest = &rest[at + 1..];
        }
        self.out.extend_from_slice(rest);
        self.out.push(b'"');
    }

    #[inline(always)]
    fn integer(&mut self, v: i64, wrapper: &str) {
        if STYLE == CANONICAL {
            self.wrapped_text(wrapper, itoa::Buffer::new().format(v));
        } else {
            self.text(itoa::Buffer::new().format(v));
        }
    }

    #[inline]
    fn double(&mut self, v: f64) {
        if !v.is_finite() {
            let text = match v {
                f64::INFINITY => "Infinity",
                f64::NEG_INFINITY => "-Infinity",
                _ => "NaN",
            };
            self.wrapped_text("$numberDouble", text);
        } else if STYLE == CANONICAL {
            self.wrapped_text("$numberDouble", zmij::Buffer::new().format_finite(v));
        } else if !self.short_double(v) {
            self.text(zmij::Buffer::new().format_finite(v));
        }
    }

    /// Prints a double of few digits after the point: where the digits as an integer, divided by the power of ten, give
    /// the double again, they are its shortest text, since no two texts of at most 15 digits mean one double.
    #[inline(always)]
    fn short_double(&mut self, v: f64) -> bool {
        let _ = (v, POWERS_OF_TEN);
        false
    }

    /// `{"$wrapper":"text"}`; `text` needs no escaping.
    fn wrapped_text(&mut self, wrapper: &str, text: &str) {
        for part in ["{\"", wrapper, "\":\"", text, "\"}"] {
            self.text(part);
        }
    }

    #[inline(never)]
    fn rare(&mut self, v: JsonbRef<'_>) {
        match v.value() {
            Value::Decimal128(d) => self.formatted(format_args!("{{\"$numberDecimal\":\"{d}\"}}")),
            Value::Binary { subtype, bytes } => self.binary(subtype, bytes),
            Value::ObjectId(id) => self.object_id(id),
            Value::Date(millis) => self.date(millis),
            Value::Regex { pattern, options } => {
                self.text("{\"$regularExpression\":{\"pattern\":");
                self.escaped(pattern.as_bytes());
                self.text(",\"options\":");
                self.escaped(options.as_bytes());
                self.text("}}");
            }
            Value::Timestamp { seconds, increment } => {
                self.formatted(format_args!("{{\"$timestamp\":{{\"t\":{seconds},\"i\":{increment}}}}}"));
            }
            Value::MinKey => self.text("{\"$minKey\":1}"),
            Value::MaxKey => self.text("{\"$maxKey\":1}"),
            Value::Null
            | Value::Bool(_)
            | Value::Int32(_)
            | Value::Int64(_)
            | Value::Double(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.text("null"),
        }
    }

    fn formatted(&mut self, text: core::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a Vec takes everything");
    }

    fn object_id(&mut self, id: [u8; 12]) {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [0; 24];
        for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(id) {
            *pair = [HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]];
        }
        let (before, after) = if STYLE == PLAIN { ("\"", "\"") } else { ("{\"$oid\":\"", "\"}") };
        self.text(before);
        self.out.extend_from_slice(&digits);
        self.text(after);
    }

    fn date(&mut self, millis: i64) {
        let first = if STYLE == PLAIN { YEAR_0_MS } else { FIRST_PLAIN_MS };
        if STYLE == CANONICAL || !(first..=LAST_PLAIN_MS).contains(&millis) {
            self.text("{\"$date\":");
            self.wrapped_text("$numberLong", itoa::Buffer::new().format(millis));
            self.out.push(b'}');
            return;
        }
        let mut iso = [0; ISO_BYTES_MAX];
        let len = write_iso(millis, &mut iso);
        let (before, after) = if STYLE == PLAIN { ("\"", "\"") } else { ("{\"$date\":\"", "\"}") };
        self.text(before);
        self.out.extend_from_slice(iso.get(..len).unwrap_or_default());
        self.text(after);
    }

    fn binary(&mut self, subtype: u8, bytes: &[u8]) {
        const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        self.text("{\"$binary\":{\"base64\":\"");
        for group in bytes.chunks(3) {
            let byte = |i: usize| u32::from(group.get(i).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            let digit = |i: usize| DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            let padded = |i: usize| if i <= group.len() { digit(i) } else { b'=' };
            self.out.extend_from_slice(&[digit(0), digit(1), padded(2), padded(3)]);
        }
        self.formatted(format_args!("\",\"subType\":\"{subtype:02x}\"}}}}"));
    }
}
