//! Documents on their way in: encoded one after another in one buffer that becomes the log record.
//!
//! Takes texts, values or structs; gives the buffer, and for each document its range or its own error. The buffer is
//! moved, not copied, into the commit (`txn/payload.rs`) and from there into the tail. Next: `write/insert.rs`.

use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;

use quarrydb_jsonb::{
    Builder, DOCUMENT_BSON_BYTES_MAX, DOCUMENT_LEVELS_MAX, Error as JsonbError, JsonbBuf, JsonbRef, Kind, bson_size,
};

use crate::io::Clock;
use crate::object_id::ObjectIds;

/// Documents on their way in.
#[derive(Debug)]
pub struct InsertBatch {
    pub(crate) builder: Builder,
    pub(crate) documents: Vec<Incoming>,
    maker: IdMaker,
}

/// One document: where it lies in the buffer and whether its `_id` was made here, or why it is none.
#[derive(Debug)]
pub(crate) enum Incoming {
    Document { range: Range<usize>, made_id: bool },
    Bad(JsonbError),
}

/// Makes `_id`s.
#[derive(Clone, Debug)]
pub(crate) struct IdMaker {
    ids: Arc<ObjectIds>,
    clock: Arc<dyn Clock>,
}

impl IdMaker {
    pub(crate) fn new(ids: Arc<ObjectIds>, clock: Arc<dyn Clock>) -> Self {
        Self { ids, clock }
    }

    pub(crate) fn next(&self) -> [u8; 12] {
        self.ids.next(self.clock.wall_millis())
    }
}

thread_local! {
    /// A builder between two batches of this thread: it remembers the shapes of the documents it has seen.
    static SPARE: Cell<Option<Builder>> = const { Cell::new(None) };
}

impl InsertBatch {
    pub(crate) fn with_maker(maker: IdMaker) -> Self {
        Self { builder: SPARE.take().unwrap_or_default(), documents: Vec::new(), maker }
    }

    /// The documents in `field` of a request's body (an array, or one document), and the body's other fields.
    /// Documents that cannot be stored keep their place and their error.
    ///
    /// # Errors
    /// When the text is not JSON, with line and column; nothing of it is kept.
    pub fn from_body(db: &crate::Database, text: &[u8], field: &str) -> Result<(Self, JsonbBuf), JsonbError> {
        let mut batch = Self::new(db);
        // The encoded form is about as long as the text; room for operations and for growth behind it.
        batch.builder.put(Vec::with_capacity(text.len() + text.len() / 8 + 64));
        let maker = batch.maker.clone();
        let made = Cell::new(false);
        let mut make_id = || {
            made.set(true);
            maker.next()
        };
        let documents = &mut batch.documents;
        let rest = quarrydb_jsonb::parse_body(text, field, &mut batch.builder, &mut make_id, &mut |document| {
            let made_id = made.replace(false);
            documents.push(match document {
                Ok(range) => Incoming::Document { range, made_id },
                Err(error) => Incoming::Bad(error),
            });
        })?;
        Ok((batch, rest))
    }

    /// Adds the document that a text is.
    ///
    /// # Errors
    /// When it is none that can be stored; nothing is added then.
    pub fn push_text(&mut self, text: &[u8]) -> Result<(), JsonbError> {
        let from = self.builder.len();
        let mut made_id = false;
        let maker = self.maker.clone();
        let made = &mut made_id;
        let mut make_id = move || {
            *made = true;
            maker.next()
        };
        if let Err(error) = quarrydb_jsonb::parse_document(text, &mut self.builder, &mut make_id) {
            self.builder.rewind(from);
            return Err(error);
        }
        self.documents.push(Incoming::Document { range: from..self.builder.len(), made_id });
        Ok(())
    }

    /// Adds a document that is encoded already.
    ///
    /// # Errors
    /// When it is no object, or its `_id` cannot be one.
    pub fn push(&mut self, document: JsonbRef<'_>) -> Result<(), JsonbError> {
        use quarrydb_jsonb::ErrorKind;
        let Some(object) = document.as_object() else {
            let found = document.kind().alias();
            return Err(JsonbError::new(ErrorKind::Serde, format!("a document is an object, not {found}")));
        };
        check_bounds(document)?;
        let from = self.builder.len();
        let first = object.iter().next();
        let made_id = match object.get("_id") {
            Some(id) if matches!(id.kind(), Kind::Array | Kind::Regex) => {
                let found = id.kind().alias();
                return Err(JsonbError::new(ErrorKind::BadId, format!("_id may not be of type {found}")).at_path("_id"));
            }
            Some(_) if first.is_some_and(|entry| entry.name_bytes() == b"_id") => {
                self.builder.copy(document);
                false
            }
            own => {
                self.builder.begin_document();
                for entry in object.iter() {
                    self.builder.field_unescaped(entry.name_bytes(), entry.name_is_plain());
                    self.builder.copy(entry.value);
                }
                let maker = &self.maker;
                if let Err(error) = self.builder.end_document(|| maker.next()) {
                    self.builder.rewind(from);
                    return Err(error);
                }
                own.is_none()
            }
        };
        self.documents.push(Incoming::Document { range: from..self.builder.len(), made_id });
        Ok(())
    }

    /// An empty batch for `db`.
    #[must_use]
    pub fn new(db: &crate::Database) -> Self {
        Self::with_maker(db.id_maker())
    }

    /// The documents' bytes, and where each lies in them.
    pub(crate) fn finish(mut self) -> (Vec<u8>, Vec<Incoming>) {
        let bytes = self.builder.take();
        SPARE.set(Some(self.builder));
        (bytes, self.documents)
    }

    /// The documents so far, bad ones left out.
    pub(crate) fn views(&self) -> impl Iterator<Item = JsonbRef<'_>> {
        self.documents.iter().filter_map(|document| match document {
            Incoming::Document { range, .. } => self.builder.bytes().get(range.clone()).map(JsonbRef::from_valid),
            Incoming::Bad(_) => None,
        })
    }

    /// The number of documents, bad ones included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    /// The bytes of the documents so far.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.builder.len()
    }
}

/// Whether a value that did not come through the parser is within what a document may be.
fn check_bounds(document: JsonbRef<'_>) -> Result<(), JsonbError> {
    use quarrydb_jsonb::ErrorKind;
    if !nests_within(document, DOCUMENT_LEVELS_MAX) {
        let message = format!("a document nests at most {DOCUMENT_LEVELS_MAX} levels");
        return Err(JsonbError::new(ErrorKind::TooDeep, message));
    }
    // An encoded value is at most sixteen times shorter than BSON has it.
    if document.as_bytes().len() > DOCUMENT_BSON_BYTES_MAX / 16 && bson_size(document) > DOCUMENT_BSON_BYTES_MAX {
        let message = format!("a document takes at most {DOCUMENT_BSON_BYTES_MAX} bytes as BSON");
        return Err(JsonbError::new(ErrorKind::TooLarge, message));
    }
    Ok(())
}

/// Whether `value` nests at most `levels` containers; recursion ends there.
fn nests_within(value: JsonbRef<'_>, levels: u32) -> bool {
    match (value.as_object(), value.as_array()) {
        (None, None) => true,
        _ if levels == 0 => false,
        (Some(object), _) => object.iter().all(|entry| nests_within(entry.value, levels - 1)),
        (_, Some(array)) => array.iter().all(|element| nests_within(element, levels - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_held_to_the_bounds_of_documents() {
        let nested = |levels: usize| {
            let text = format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
            quarrydb_jsonb::parse(text.as_bytes()).expect("a body may nest deeper")
        };
        assert!(check_bounds(nested(100).view()).is_ok());
        assert!(check_bounds(nested(101).view()).is_err());
        let long = |bytes: usize| {
            quarrydb_jsonb::parse(format!("{{\"a\":\"{}\"}}", "x".repeat(bytes)).as_bytes()).expect("JSON")
        };
        // Five bytes around the document, eight around its one string.
        assert!(check_bounds(long(DOCUMENT_BSON_BYTES_MAX - 13).view()).is_ok());
        assert!(check_bounds(long(DOCUMENT_BSON_BYTES_MAX - 12).view()).is_err());
    }
}
