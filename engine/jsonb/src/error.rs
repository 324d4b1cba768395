//! What can be wrong with a value: its kind for a program, its words for a person, its place.

use core::fmt;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The text is not JSON: syntax, UTF-8, a lone surrogate, a number without a value. Has a line and column.
    Syntax,
    /// The text nests deeper than a body may. Has a line and column.
    BodyTooDeep,
    /// A name stands twice in one object.
    RepeatedKey,
    /// A NUL in a field name.
    NulInName,
    /// A malformed Extended JSON wrapper.
    BadWrapper,
    /// An integer of more than 34 digits, or a decimal that does not fit.
    NumberOutOfRange,
    /// A document nests deeper than documents may.
    TooDeep,
    /// A document is larger than documents may be.
    TooLarge,
    /// `_id` is of a type that it may not have.
    BadId,
    /// What stands in a document's place is not an object.
    NotADocument,
    /// Bytes that are no value of this format. Has an offset.
    Malformed,
    /// A path or an edit that does not fit the document.
    BadPath,
    /// A value that serde asked for is not there, or of another type.
    Serde,
}

/// What is wrong with a value, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    /// The place inside the value: `address.zip`, `tags.3`; empty at the top.
    path: String,
    /// Line and column from 1 in the text, and the byte offset from 0.
    place: Option<Place>,
}

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// From 1; 0 where the place is one in binary, which has no lines.
    pub line: usize,
    /// In bytes, from 1; 0 in binary.
    pub column: usize,
    /// In bytes, from 0.
    pub offset: usize,
}

impl Place {
    /// A place in binary.
    #[must_use]
    pub const fn in_bytes(offset: usize) -> Self {
        Self { line: 0, column: 0, offset }
    }
}

impl Error {
    /// One of `kind`, in words.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), path: String::new(), place: None }
    }

    /// The same, at a path inside the value.
    #[must_use]
    pub fn at_path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// The same, at a place in the text.
    #[must_use]
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// What is wrong, for a program.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What is wrong, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The place inside the value; empty at the top.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The place in the text.
    #[must_use]
    pub fn place(&self) -> Option<Place> {
        self.place
    }

    /// Whether the whole text is refused (not JSON), rather than one document in it.
    #[must_use]
    pub fn is_syntax(&self) -> bool {
        matches!(self.kind, ErrorKind::Syntax | ErrorKind::BodyTooDeep)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message)?;
        match self.place {
            Some(Place { line: 0, offset, .. }) => write!(f, " at byte {offset}"),
            Some(Place { line, column, .. }) => write!(f, " at line {line} column {column}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
