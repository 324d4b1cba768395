//! The error that leaves the engine: its kind says what the caller should do.
//!
//! Made where the fault is found, with a message for a person: what, where, what to do. `http` maps `ErrorKind` and
//! `code` to statuses; nothing here knows of HTTP.

use std::borrow::Cow;
use std::fmt;

/// What the caller should do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request is wrong; sent again it will fail again.
    InvalidInput,
    /// What is named does not exist.
    NotFound,
    /// What a change stream should go on from is no longer kept: read anew, then watch from now on.
    HistoryLost,
    /// A uniqueness rule stands against it.
    DuplicateKey,
    /// It exists already, with other options.
    Exists,
    /// Another writer was first; try again.
    Conflict,
    /// A time, memory or size limit was met.
    LimitExceeded,
    /// The deadline passed.
    TimedOut,
    /// The caller is gone or asked to stop.
    Cancelled,
    /// Too much is asked at once; try again in a moment.
    Busy,
    /// The disk is full: reads go on, writes resume when there is room.
    OutOfDiskSpace,
    /// Bytes on disk are not what was written. The message names file and offset.
    Corrupt,
    /// A file is of a format version newer than this build reads.
    UnsupportedVersion,
    /// Another process holds the directory.
    Locked,
    /// A failed write or sync: no more writes until the database is opened anew; reads go on.
    Poisoned,
    /// The operating system refused.
    Io,
    /// Not built yet; the message says what.
    NotImplemented,
    /// The database is closing.
    ShuttingDown,
    /// A fault of ours.
    Internal,
}

/// MongoDB's number of an operation that took too long.
const OUT_OF_TIME: i32 = 50;

/// What went wrong, for a program (`kind`, `code`) and for a person (`message`).
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    /// MongoDB's number where one exists.
    code: Option<i32>,
    /// MongoDB's name of `code`, or ours.
    name: Cow<'static, str>,
    message: String,
    /// Further fields for a program, as a JSONB object (for a duplicate key: `indexName`, `keyPattern`, `keyValue`).
    details: Option<Box<[u8]>>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// What every fallible call of the engine returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of `kind`, with a message that says what, where and what to do.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let (name, code) = match kind {
            ErrorKind::InvalidInput => ("BadValue", Some(2)),
            ErrorKind::NotFound => ("NoSuchDocument", None),
            ErrorKind::HistoryLost => ("ChangeStreamHistoryLost", Some(286)),
            ErrorKind::DuplicateKey => ("DuplicateKey", Some(11000)),
            ErrorKind::Exists => ("NamespaceExists", Some(48)),
            ErrorKind::Conflict => ("WriteConflict", Some(112)),
            ErrorKind::LimitExceeded => ("ExceededMemoryLimit", Some(146)),
            ErrorKind::TimedOut => ("MaxTimeMSExpired", Some(50)),
            ErrorKind::Cancelled => ("Interrupted", Some(11601)),
            ErrorKind::Busy => ("TooManyRequests", None),
            ErrorKind::OutOfDiskSpace => ("OutOfDiskSpace", Some(14031)),
            ErrorKind::NotImplemented => ("NotImplemented", Some(238)),
            ErrorKind::ShuttingDown => ("ShuttingDown", Some(91)),
            ErrorKind::Corrupt
            | ErrorKind::UnsupportedVersion
            | ErrorKind::Locked
            | ErrorKind::Poisoned
            | ErrorKind::Io
            | ErrorKind::Internal => ("Internal", Some(1)),
        };
        Self { kind, code, name: name.into(), message: message.into(), details: None, source: None }
    }

    /// The same with MongoDB's name and number.
    #[must_use]
    pub fn with_code(mut self, name: &'static str, code: i32) -> Self {
        self.name = name.into();
        self.code = Some(code);
        self
    }

    /// The same with further fields, an encoded JSONB object.
    #[must_use]
    pub fn with_details(mut self, object: Vec<u8>) -> Self {
        self.details = Some(object.into_boxed_slice());
        self
    }

    /// The same with what caused it.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Damage found on disk.
    pub fn corrupt(file: &str, offset: u64, what: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::Corrupt,
            format!(
                "{file} is damaged at offset {offset}: {what}; nothing was changed: run `quarrydb check` for the whole \
                 picture, `quarrydb check --salvage DIR` to copy what is whole"
            ),
        )
    }

    /// What the operating system said of `file`; a full disk and full quota become `OutOfDiskSpace`.
    pub fn io(file: &str, doing: &str, source: std::io::Error) -> Self {
        use std::io::ErrorKind as Os;
        let full = matches!(source.kind(), Os::StorageFull | Os::QuotaExceeded);
        let kind = if full { ErrorKind::OutOfDiskSpace } else { ErrorKind::Io };
        Self::new(kind, format!("{doing} {file}: {source}")).with_source(source)
    }

    /// The same to be told once more; what caused it is told the first time.
    pub(crate) fn again(&self) -> Self {
        let (kind, code, name) = (self.kind, self.code, self.name.clone());
        Self { kind, code, name, message: self.message.clone(), details: self.details.clone(), source: None }
    }

    /// What the caller should do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// MongoDB's number where one exists.
    pub fn code(&self) -> Option<i32> {
        self.code
    }

    /// The name that stands in `error_code` of an answer.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// For a person.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Further fields, an encoded JSONB object.
    pub fn details(&self) -> Option<&[u8]> {
        self.details.as_deref()
    }
}

impl From<quarrydb_jsonb::Error> for Error {
    /// What is wrong with one document.
    fn from(error: quarrydb_jsonb::Error) -> Self {
        use quarrydb_jsonb::ErrorKind as Kind;
        let (name, code) = match error.kind() {
            Kind::TooLarge => ("BSONObjectTooLarge", 10334),
            Kind::BadId => ("InvalidIdField", 53),
            Kind::TooDeep => ("Overflow", 15),
            Kind::BadWrapper | Kind::RepeatedKey | Kind::NulInName | Kind::NumberOutOfRange => ("FailedToParse", 9),
            _ => ("BadValue", 2),
        };
        Self::new(ErrorKind::InvalidInput, error.to_string()).with_code(name, code)
    }
}

impl From<quarrydb_query::QueryError> for Error {
    fn from(error: quarrydb_query::QueryError) -> Self {
        let name = error.name();
        let code = error.code();
        let message = error.to_string();
        // What ran out of time did nothing wrong.
        let kind = if code == OUT_OF_TIME { ErrorKind::TimedOut } else { ErrorKind::InvalidInput };
        let made = Self { code: Some(code), name: name.to_owned().into(), ..Self::new(kind, message) };
        if error.place().is_empty() {
            return made;
        }
        let mut details = quarrydb_jsonb::Builder::new();
        details.begin_object();
        details.field("place");
        details.string(error.place());
        match details.end_object() {
            Ok(()) => made.with_details(details.take()),
            // One name cannot stand twice.
            Err(_) => made,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|s| s as _)
    }
}
