//! What can go wrong while columns are read for a group: the columns, or what is made of their values.

use crate::columns::Source;
use crate::error::Error;

/// The result of reading for a group.
pub(super) type Read<T> = Result<T, Trouble>;

/// An error whose path is not known yet, or any other.
#[derive(Debug)]
pub(super) enum Trouble {
    Index(quarrydb_index::Error),
    Other(Error),
    /// Columns are not enough after all.
    Documents,
}

impl Trouble {
    /// It with the column of `path` named.
    pub(super) fn of(self, source: Source<'_>, path: &str) -> Self {
        match self {
            Self::Index(error) => Self::Other(source.unreadable(path, &error)),
            other => other,
        }
    }

    /// Nothing where documents are to be asked, else the error.
    ///
    /// # Errors
    /// That.
    pub(super) fn or_documents<T>(self) -> Result<Option<T>, Error> {
        match self {
            Self::Documents => Ok(None),
            Self::Other(error) => Err(error),
            Self::Index(error) => Err(Error::corrupt("a segment", 0, error)),
        }
    }
}

impl From<quarrydb_index::Error> for Trouble {
    fn from(error: quarrydb_index::Error) -> Self {
        Self::Index(error)
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

impl From<quarrydb_query::QueryError> for Trouble {
    fn from(error: quarrydb_query::QueryError) -> Self {
        Self::Other(error.into())
    }
}
