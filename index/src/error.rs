//! What can be wrong with bytes, and with what a writer was given. It knows nothing of files: the caller adds the name of one.

use std::fmt;

/// The result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a part could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The bytes are not what a writer wrote: `what` was expected `at` bytes from the beginning of the piece that was read.
    Corrupt {
        /// What was expected and not found.
        what: &'static str,
        /// Where, in bytes from the beginning of that piece.
        at: usize,
    },
    /// Written by a version that this one does not know.
    Unsupported {
        /// What was met.
        what: &'static str,
        /// Its version or number.
        version: u8,
    },
    /// The caller gave a writer or a merge what it may not: rows out of order, two types under one tag.
    Misuse {
        /// The rule that was broken.
        what: &'static str,
    },
    /// A part would pass what its format can hold.
    TooLarge {
        /// Which bound.
        what: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Corrupt { what, at } => write!(f, "corrupt index bytes: expected {what} at {at}"),
            Self::Unsupported { what, version } => write!(f, "unsupported {what}: {version}"),
            Self::Misuse { what } => write!(f, "index misused: {what}"),
            Self::TooLarge { what } => write!(f, "too large for an index: {what}"),
        }
    }
}

impl std::error::Error for Error {}

pub(crate) fn corrupt(what: &'static str, at: usize) -> Error {
    Error::Corrupt { what, at }
}
