//! Paths whose column has for each row the one value that the path means on the document: no array at it or on the way.
//!
//! What sorts and groups work with. Where an array may be, or paths share a bucket, documents must be asked.

use quarrydb_query::path_walk::array_index;

use crate::columns::{ColumnData, Found, Source};
use crate::error::Result;

/// What columns know of a path.
#[derive(Debug)]
pub(super) enum Plain<'a> {
    /// No row has it.
    Nothing,
    /// The one value of each row, or none.
    Column(&'a ColumnData),
}

/// The column of a path; none where rows may have an array at it or on the way, or the path is not known.
///
/// # Errors
/// `Corrupt`, `Io`.
pub(super) fn plain<'a>(source: Source<'a>, path: &str) -> Result<Option<Plain<'a>>> {
    // A position in an array is in no column.
    if path.split('.').any(|part| array_index(part).is_some()) {
        return Ok(None);
    }
    for (end, _) in path.match_indices('.') {
        let way = path.get(..end).unwrap_or_default();
        let arrays = match source.find(way)? {
            Found::Rows(maybe) => maybe.len(),
            Found::Column(data) => array_count(source, data, way)?,
        };
        if arrays > 0 {
            return Ok(None);
        }
    }
    match source.find(path)? {
        Found::Rows(maybe) => Ok(maybe.is_empty().then_some(Plain::Nothing)),
        Found::Column(data) if array_count(source, data, path)? == 0 => Ok(Some(Plain::Column(data))),
        Found::Column(_) => Ok(None),
    }
}

fn array_count(source: Source<'_>, data: &ColumnData, path: &str) -> Result<u64> {
    data.column().and_then(|column| column.array_count()).map_err(|error| source.unreadable(path, &error))
}
