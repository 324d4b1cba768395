//! The body of an insert: documents in one field, everything else beside them.
//!
//! Takes a text that is one object; gives each document as soon as it is read, and an object of the other fields.

use core::ops::Range;

use super::shape::NO_SHAPE;
use super::value::Holder;
use super::{Parser, Stop};
use crate::buf::JsonbBuf;
use crate::builder::{Builder, push_name};
use crate::directory::{self, NameKey, prefix, sort_names};
use crate::error::{Error, ErrorKind};
use crate::tag::{Kind, Width};

/// Where documents go and what is done about them.
struct Documents<'a> {
    field: &'a str,
    make_id: &'a mut dyn FnMut() -> [u8; 12],
    on_document: &'a mut dyn FnMut(Result<Range<usize>, Error>),
}

/// Parses an object whose field `documents_field` holds an array of documents, or one document. Each is appended to
/// `out`, and `on_document` gets its bytes' range or what is wrong with it, in the order of the text. The other fields
/// come back as one object; there too stands `documents_field` where it is neither array nor object, for the caller to
/// refuse.
///
/// # Errors
/// What is wrong with the whole body: its syntax (also after some documents were given), or a fault outside of the
/// documents. `out` is then as it was.
pub fn parse_body(
    text: &[u8],
    documents_field: &str,
    out: &mut Builder,
    make_id: &mut dyn FnMut() -> [u8; 12],
    on_document: &mut dyn FnMut(Result<Range<usize>, Error>),
) -> Result<JsonbBuf, Error> {
    let (start, names) = (out.len(), out.names.len());
    let mut parser = Parser::new(text, out);
    // Documents take about as much room as their text; growing by doubling would copy them several times.
    parser.out.reserve(text.len() + text.len() / 8 + 64);
    let mut documents = Documents { field: documents_field, make_id, on_document };
    let done = parser.begin().and_then(|(first, at)| {
        let (end, rest) = parser.body(at, first, &mut documents)?;
        parser.finish(end)?;
        Ok(rest)
    });
    let done = match (done, parser.fault.take()) {
        (Err(Stop), _) => Err(parser.why()),
        (Ok(_), Some(fault)) => Err(fault),
        (Ok(rest), None) => Ok(JsonbBuf::from_valid(rest)),
    };
    if done.is_err() {
        parser.out.truncate(start);
        parser.names.truncate(names);
    }
    parser.give_back(out);
    done
}

impl Parser<'_> {
    /// The object of the body, at `at`. Gives the place after it and its fields other than the documents.
    fn body(&mut self, at: usize, first: u8, documents: &mut Documents<'_>) -> Result<(usize, Vec<u8>), Stop> {
        if first != b'{' {
            return Err(self.unexpected(at, "an object as the body"));
        }
        let object_at = at;
        let first_name = self.names.len();
        let width = Width::W1;
        let mut rest = Vec::new();
        directory::open(&mut rest, Kind::Object, width);
        let header = rest.len();
        let mut had_documents = false;
        let (mut first, mut at) = self.next(at + 1);
        while first != b'}' {
            if first != b'"' {
                return Err(self.unexpected(at, "a field name in quotes"));
            }
            let name_at = at;
            let name_start = self.out.len();
            let (end, plain) = self.decode_string(at + 1)?;
            let name = self.out.split_off(name_start);
            (first, at) = self.next(end);
            if first != b':' {
                return Err(self.unexpected(at, "a colon"));
            }
            (first, at) = self.next(at + 1);
            if name == documents.field.as_bytes() && matches!(first, b'[' | b'{') {
                if had_documents {
                    self.repeated(object_at, documents.field.to_owned());
                }
                had_documents = true;
                at = self.documents(at, first, documents)?;
            } else {
                if name.contains(&0) {
                    self.fault(ErrorKind::NulInName, name_at, "a field name holds a NUL".to_owned());
                }
                self.names.push(NameKey { prefix: prefix(&name), at: rest.len() - header });
                push_name(&mut rest, &name, plain);
                core::mem::swap(&mut self.out, &mut rest);
                let value = self.value(at, first, Holder { shape: NO_SHAPE, index: 0 }, 1);
                core::mem::swap(&mut self.out, &mut rest);
                at = value?;
            }
            (first, at) = self.next(at);
            if first == b',' {
                (first, at) = self.next(at + 1);
                if first != b'"' {
                    return Err(self.unexpected(at, "a field name in quotes"));
                }
            } else if first != b'}' {
                return Err(self.unexpected(at, "a comma or the end of the object"));
            }
        }
        let names = &mut self.names[first_name..];
        if let Err(repeated) = sort_names(names, &rest[header..]) {
            self.repeated(object_at, repeated.path().to_owned());
        }
        let names = &self.names[first_name..];
        let ats = names.iter().map(|name| name.at);
        if directory::close(&mut rest, (0, Kind::Object, width), names.len(), ats).is_none() {
            self.fault(ErrorKind::TooLarge, object_at, "a value takes 4 GiB or more".to_owned());
        }
        self.names.truncate(first_name);
        Ok((at + 1, rest))
    }

    /// The array of documents at `at`, or the one document there. A fault noted outside of documents is kept.
    fn documents(&mut self, at: usize, first: u8, documents: &mut Documents<'_>) -> Result<usize, Stop> {
        let outside = self.fault.take();
        let end = if first == b'{' {
            self.one_document(at, first, 1, documents)?
        } else {
            self.many_documents(at, documents)?
        };
        self.fault = outside;
        Ok(end)
    }

    fn many_documents(&mut self, at: usize, documents: &mut Documents<'_>) -> Result<usize, Stop> {
        let (mut first, mut at) = self.next(at + 1);
        if first == b']' {
            return Ok(at + 1);
        }
        loop {
            at = self.one_document(at, first, 2, documents)?;
            (first, at) = self.next(at);
            match first {
                b',' => (first, at) = self.next(at + 1),
                b']' => return Ok(at + 1),
                _ => return Err(self.unexpected(at, "a comma or the end of the array")),
            }
        }
    }

    #[inline]
    fn one_document(&mut self, at: usize, first: u8, level: u32, documents: &mut Documents<'_>) -> Result<usize, Stop> {
        let (end, document) = self.document(at, first, level, documents.make_id)?;
        (documents.on_document)(document);
        Ok(end)
    }
}
