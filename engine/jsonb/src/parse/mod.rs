//! JSON and Extended JSON v2 to documents, in one pass over the text and without a tree between.
//!
//! Takes a text of untrusted bytes; gives values as `builder.rs` would write them. What is wrong is one of two things: a
//! text that is not JSON is refused whole, with line and column; a document that may not be is that document's fault,
//! with its path, and the text goes on. Recursion is bounded by [`BODY_LEVELS_MAX`].
//!
//! Reading order: this file, `value.rs`, `string.rs`, `number.rs`, `shape.rs` (what makes it fast), `body.rs`,
//! `fault.rs`; wrappers such as `{"$oid": ...}` are in `../extended.rs`.

mod body;
mod fault;
mod number;
mod scan;
mod shape;
#[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
mod simd;
mod string;
mod value;

pub use body::parse_body;
pub(crate) use number::POWERS_OF_TEN;
pub(crate) use scan::{STRING_CHUNK, first_special};
pub(crate) use shape::Shapes;

use crate::buf::JsonbBuf;
use crate::builder::Builder;
use crate::directory::NameKey;
use crate::error::{Error, ErrorKind};
use crate::tag::Width;
use fault::Lines;
use shape::NO_SHAPE;
use value::Holder;

/// The levels of objects and arrays that a body may have.
pub const BODY_LEVELS_MAX: u32 = 200;
/// The levels of objects and arrays that a document may have, itself the first.
pub const DOCUMENT_LEVELS_MAX: u32 = 100;
/// The bytes that a document may take as BSON.
pub const DOCUMENT_BSON_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The text cannot be parsed on; why is in [`Parser::stopped`].
#[derive(Debug)]
pub(crate) struct Stop;

/// A parser in the middle of its text.
pub(crate) struct Parser<'t> {
    pub(crate) text: &'t [u8],
    /// The value in the making.
    pub(crate) out: Vec<u8>,
    /// The names of all open objects, the innermost's last.
    names: Vec<NameKey>,
    shapes: Shapes,
    /// The width of the last container at each level.
    widths: Vec<Width>,
    /// Where the document or value that is being read begins in the text.
    from: usize,
    /// Levels up to here need no look.
    levels_max: u32,
    /// The first fault of the document that is being read.
    fault: Option<Error>,
    stopped: Option<Error>,
    lines: Lines,
}

impl<'t> Parser<'t> {
    /// One that writes onto what `builder` holds and knows what it knows; [`Parser::give_back`] undoes it.
    fn new(text: &'t [u8], builder: &mut Builder) -> Self {
        Self {
            text,
            out: core::mem::take(&mut builder.out),
            names: core::mem::take(&mut builder.names),
            shapes: core::mem::take(&mut builder.shapes),
            widths: core::mem::take(&mut builder.guesses),
            from: 0,
            levels_max: BODY_LEVELS_MAX,
            fault: None,
            stopped: None,
            lines: Lines::default(),
        }
    }

    fn give_back(&mut self, builder: &mut Builder) {
        builder.out = core::mem::take(&mut self.out);
        builder.names = core::mem::take(&mut self.names);
        builder.shapes = core::mem::take(&mut self.shapes);
        builder.guesses = core::mem::take(&mut self.widths);
    }

    /// Checks the text's UTF-8 and gives the place and byte where its value begins.
    fn begin(&mut self) -> Result<(u8, usize), Stop> {
        if simdutf8::basic::from_utf8(self.text).is_err() {
            let valid = core::str::from_utf8(self.text).map_or_else(|e| e.valid_up_to(), str::len);
            return Err(self.syntax(valid, "bytes that are not UTF-8".to_owned()));
        }
        let mark = if self.text.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let (first, at) = self.next(mark);
        self.from = at;
        Ok((first, at))
    }

    /// Checks that nothing stands after a value that ended at `at`.
    fn finish(&mut self, at: usize) -> Result<(), Stop> {
        let (_, end) = self.next(at);
        if end < self.text.len() {
            let message = format!("found {} after the end of the value", self.found(end));
            return Err(self.syntax(end, message));
        }
        Ok(())
    }

    /// The byte at `at`; 0, which stands nowhere in JSON, at the end.
    #[inline(always)]
    pub(crate) fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// The first byte from `at` on that is not white space, and its place.
    #[inline(always)]
    pub(crate) fn next(&self, at: usize) -> (u8, usize) {
        let byte = self.byte(at);
        if byte > b' ' {
            return (byte, at);
        }
        // One space after a colon or comma is what most printers write.
        let second = self.byte(at + 1);
        if byte == b' ' && second > b' ' {
            return (second, at + 1);
        }
        let at = scan::skip_white(self.text, at);
        (self.byte(at), at)
    }
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Parses any one JSON or Extended JSON value, as deep as a body may be.
///
/// # Errors
/// Everything that can be wrong with a text or a value; a wrong wrapper or a repeated name has its path.
///
/// ```
/// let v = quarrydb_jsonb::parse(br#"{"a": [1, {"$numberLong": "2"}]}"#)?;
/// assert_eq!(v.view().get("a").and_then(|a| a.as_array()).map(|a| a.len()), Some(2));
/// # Ok::<(), quarrydb_jsonb::Error>(())
/// ```
pub fn parse(text: &[u8]) -> Result<JsonbBuf, Error> {
    let mut builder = Builder::new();
    let mut parser = Parser::new(text, &mut builder);
    let done = parser.begin().and_then(|(first, at)| {
        let end = parser.value(at, first, Holder { shape: NO_SHAPE, index: 0 }, 0)?;
        parser.finish(end)
    });
    match (done, parser.fault.take()) {
        (Err(Stop), _) => Err(parser.why()),
        (Ok(()), Some(fault)) => Err(fault),
        (Ok(()), None) => Ok(JsonbBuf::from_valid(parser.out)),
    }
}

/// Parses a text that is one document and appends it to `out`: `_id` first, made by `make_id` where it has none.
///
/// # Errors
/// Everything that can be wrong with a text or a document. `out` is then as it was.
pub fn parse_document(text: &[u8], out: &mut Builder, make_id: &mut dyn FnMut() -> [u8; 12]) -> Result<(), Error> {
    let start = out.len();
    let names = out.names.len();
    let mut parser = Parser::new(text, out);
    let done = parser.begin().and_then(|(first, at)| {
        let (end, document) = parser.document(at, first, 0, make_id)?;
        parser.finish(end)?;
        Ok(document)
    });
    let done = match done {
        Ok(document) => document.map(|_| ()),
        Err(Stop) => Err(parser.why()),
    };
    if done.is_err() {
        parser.out.truncate(start);
        parser.names.truncate(names);
    }
    parser.give_back(out);
    if done.is_ok() {
        out.value();
    }
    done
}

impl core::fmt::Debug for Parser<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Parser").field("text", &self.text.len()).field("out", &self.out.len()).finish_non_exhaustive()
    }
}

/// The fault of what is not an object where a document must stand.
fn not_a_document(found: &str) -> Error {
    Error::new(ErrorKind::NotADocument, format!("found {found} where a document must stand"))
}
