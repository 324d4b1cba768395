//! Documents to JSON text, in three styles.
//!
//! Takes a value; appends its text. What is printed in the Extended JSON styles parses back to an equal value, in the
//! canonical one to the identical bytes. Total: bytes that are not valid print as something, in bounded time and stack.
//! Names and strings that need no escaping are copied in pieces of a fixed size and cut: that is cheaper than a copy of a
//! length that the compiler does not know. Next: `number.rs`, and `rare.rs` for the types that JSON lacks.

mod number;
mod rare;

use crate::parse::{BODY_LEVELS_MAX, STRING_CHUNK, first_special};
use crate::tag::{Kind, NAME_LEN_LONG, Width, aux};
use crate::view::JsonbRef;

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
///
/// ```
/// # use quarrydb_jsonb::{Style, parse, print};
/// let mut out = Vec::new();
/// print(parse(br#"{"a": 3.0}"#)?.view(), Style::Canonical, &mut out);
/// assert_eq!(out, br#"{"a":{"$numberDouble":"3.0"}}"#);
/// # Ok::<(), quarrydb_jsonb::Error>(())
/// ```
pub fn print(v: JsonbRef<'_>, style: Style, out: &mut Vec<u8>) {
    let bytes = v.as_bytes();
    out.reserve(bytes.len() + bytes.len() / 4 + 64);
    match style {
        Style::Relaxed => drop(Printer::<RELAXED> { bytes, out }.value(0, bytes.len(), BODY_LEVELS_MAX)),
        Style::Canonical => drop(Printer::<CANONICAL> { bytes, out }.value(0, bytes.len(), BODY_LEVELS_MAX)),
        Style::Plain => drop(Printer::<PLAIN> { bytes, out }.value(0, bytes.len(), BODY_LEVELS_MAX)),
    };
}

const RELAXED: u8 = 0;
const CANONICAL: u8 = 1;
const PLAIN: u8 = 2;

/// The bytes of a string or name that are copied at once.
const COPY_CHUNK: usize = 32;
/// The tag of a string that needs no escaping and has a length of one byte.
const SHORT_PLAIN_STRING: u8 = Kind::String.tag(1);

/// Prints in one style, which is a constant so that each has its own code.
struct Printer<'a, 'o, const STYLE: u8> {
    /// The outermost value.
    bytes: &'a [u8],
    out: &'o mut Vec<u8>,
}

impl<const STYLE: u8> Printer<'_, '_, STYLE> {
    /// Prints the value at `at`, which should end before `end`; gives its end, which is after `at`.
    fn value(&mut self, at: usize, end: usize, levels_left: u32) -> usize {
        let tag = self.byte(at);
        if tag == SHORT_PLAIN_STRING {
            let len = self.byte(at + 1) as usize;
            if len <= COPY_CHUNK && self.copy_quoted(at + 2, len) {
                return at + 2 + len;
            }
        }
        let v = JsonbRef::first_of(self.bytes.get(at..end).unwrap_or_default());
        let value_end = at + v.as_bytes().len().max(1);
        match v.kind() {
            Kind::Int32 => self.integer(v.as_i64().unwrap_or(0), "$numberInt"),
            Kind::Int64 => self.integer(v.as_i64().unwrap_or(0), "$numberLong"),
            Kind::Double => self.double(v.as_f64().unwrap_or(0.0)),
            Kind::Bool => self.text(if v.as_bool() == Some(true) { "true" } else { "false" }),
            Kind::String => self.string(v.as_str_bytes().unwrap_or_default(), v.is_plain()),
            Kind::Object | Kind::Array if levels_left == 0 => self.text("null"),
            Kind::Object => self.object(at, value_end, tag, levels_left - 1),
            Kind::Array => self.array(at, value_end, tag, levels_left - 1),
            Kind::Null
            | Kind::Decimal128
            | Kind::Binary
            | Kind::ObjectId
            | Kind::Date
            | Kind::Regex
            | Kind::Timestamp
            | Kind::MinKey
            | Kind::MaxKey => self.rare(v),
        }
        value_end
    }

    fn object(&mut self, at: usize, end: usize, tag: u8, levels_left: u32) {
        let width = Width::of_code(aux(tag)).unwrap_or(Width::W1);
        let count = width.read(self.bytes, at + 1 + width.bytes());
        let end = end.saturating_sub(count.saturating_mul(width.bytes()));
        let mut at = at + 1 + 2 * width.bytes();
        if at >= end {
            return self.text("{}");
        }
        self.out.push(b'{');
        loop {
            at = self.name(at, end);
            at = self.value(at, end, levels_left);
            if at >= end {
                break;
            }
            self.out.push(b',');
        }
        self.out.push(b'}');
    }

    fn array(&mut self, at: usize, end: usize, tag: u8, levels_left: u32) {
        let width = Width::of_code(aux(tag)).unwrap_or(Width::W1);
        let mut at = at + 1 + 2 * width.bytes();
        if at >= end {
            return self.text("[]");
        }
        self.out.push(b'[');
        loop {
            at = self.value(at, end, levels_left);
            if at >= end {
                break;
            }
            self.out.push(b',');
        }
        self.out.push(b']');
    }

    /// Prints the name at `at` and a colon; gives the place of its value.
    #[inline(always)]
    fn name(&mut self, at: usize, end: usize) -> usize {
        let header = self.byte(at);
        let (plain, mut len) = (header & 1 != 0, (header >> 1) as usize);
        if plain && len <= COPY_CHUNK && self.copy_quoted(at + 1, len) {
            self.out.push(b':');
            return at + 1 + len;
        }
        let mut start = at + 1;
        if len == NAME_LEN_LONG {
            len = Width::W4.read(self.bytes, start);
            start += 4;
        }
        let bytes = self.bytes;
        let name = bytes.get(start..end.min(start + len)).unwrap_or_default();
        self.string(name, plain);
        self.out.push(b':');
        start + len
    }

    /// Prints `len` plain bytes at `at` between quotes, where as many as are copied at once are there.
    #[inline(always)]
    fn copy_quoted(&mut self, at: usize, len: usize) -> bool {
        let Some(chunk) = self.bytes.get(at..).and_then(|b| b.first_chunk::<COPY_CHUNK>()) else { return false };
        self.out.push(b'"');
        let start = self.out.len();
        self.out.extend_from_slice(chunk);
        self.out.truncate(start + len);
        self.out.push(b'"');
        true
    }

    #[inline(always)]
    fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn text(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline(never)]
    fn string(&mut self, text: &[u8], plain: bool) {
        self.out.push(b'"');
        if plain {
            self.out.extend_from_slice(text);
        } else {
            self.escaped(text);
        }
        self.out.push(b'"');
    }

    /// Prints what stands between quotes of a text that may need escaping.
    fn escaped(&mut self, text: &[u8]) {
        let mut rest = text;
        loop {
            rest = self.copy_plain(rest);
            let [byte, after @ ..] = rest else { return };
            let short = match byte {
                b'"' | b'\\' => *byte,
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
                let [high, low] = rare::HEX[*byte as usize];
                self.out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
            rest = after;
        }
    }

    /// Copies up to the first byte that needs escaping; gives what begins with it.
    #[inline]
    fn copy_plain<'t>(&mut self, mut rest: &'t [u8]) -> &'t [u8] {
        while let Some(chunk) = rest.first_chunk::<STRING_CHUNK>() {
            let len = first_special(chunk);
            let start = self.out.len();
            self.out.extend_from_slice(chunk);
            self.out.truncate(start + len);
            rest = &rest[len..];
            if len < STRING_CHUNK {
                return rest;
            }
        }
        let len = rest.iter().position(|&b| b < 0x20 || b == b'"' || b == b'\\').unwrap_or(rest.len());
        self.out.extend_from_slice(&rest[..len]);
        &rest[len..]
    }
}
