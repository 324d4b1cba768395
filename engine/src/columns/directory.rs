//! The directory of a segment's columns: which paths have one, and which rows have paths without.
//!
//! ```text
//! magic 8 | version u32 | columns u32 | path string, rows u32 each, by path | buckets u32 (0 or 256) |
//! bitmap (length u32, portable roaring) each
//! ```
//!
//! Its checksum is that of its section. The place of a path is the number of its column.

use crate::error::{Error, ErrorKind, Result};
use crate::io::fields::{Fields, PutFields};
use quarrydb_index::RowSet;
use roaring::RoaringBitmap;

use super::{BUCKETS, COLUMNS_MAX};

const MAGIC: [u8; 8] = *b"QUARCOL\n";
/// The newest version this build reads and the one it writes.
const VERSION: u32 = 0;

/// The directory, checked.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Paths with a column, ascending, and how many rows have each.
    pub paths: Vec<(Box<str>, u32)>,
    /// Rows with paths that have none, by bucket; empty where every path has one.
    pub buckets: Vec<RowSet>,
}

pub(super) fn encode<'p>(paths: impl ExactSizeIterator<Item = (&'p str, u32)>, buckets: &[RowSet]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&MAGIC);
    out.put_u32(VERSION);
    out.put_u32(paths.len() as u32);
    for (path, rows) in paths {
        out.put_short_bytes(path.as_bytes());
        out.put_u32(rows);
    }
    out.put_u32(buckets.len() as u32);
    for bucket in buckets {
        let mut bytes = Vec::new();
        bucket.bitmap().serialize_into(&mut bytes).expect("writing to memory cannot fail");
        out.put_short_bytes(&bytes);
    }
    out
}

pub(super) fn decode(file: &str, offset: u64, bytes: &[u8], rows: u32) -> Result<Directory> {
    let mut fields = Fields::new(file, offset, bytes);
    let wrong = fields.corrupt("this is no directory of columns");
    if fields.bytes(8)? != MAGIC {
        return Err(wrong);
    }
    let version = fields.u32()?;
    if version > VERSION {
        let message = format!("{file} has columns of format version {version}, this build reads up to {VERSION}");
        return Err(Error::new(ErrorKind::UnsupportedVersion, message));
    }
    // A path takes its length and its rows at least.
    let count = fields.count(8)?;
    if count > COLUMNS_MAX {
        return Err(fields.corrupt(format_args!("{count} columns are more than any segment has")));
    }
    let mut directory = Directory::default();
    for _ in 0..count {
        let at = fields.corrupt("the paths of columns do not ascend or their rows are not there");
        let (path, of) = (fields.string()?, fields.u32()?);
        if of > rows || directory.paths.last().is_some_and(|(last, _)| &**last >= path) {
            return Err(at);
        }
        directory.paths.push((path.into(), of));
    }
    let buckets = fields.count(4)?;
    if buckets != 0 && buckets != BUCKETS {
        return Err(fields.corrupt(format_args!("there are {BUCKETS} buckets of paths without a column, or none")));
    }
    for _ in 0..buckets {
        let at = fields.corrupt("a bitmap cannot be read or names rows that are not there");
        let mut rest = fields.short_bytes()?;
        match RoaringBitmap::deserialize_from(&mut rest) {
            Ok(bitmap) if rest.is_empty() && bitmap.max().is_none_or(|row| row < rows) => {
                directory.buckets.push(RowSet::from_bitmap(bitmap));
            }
            _ => return Err(at),
        }
    }
    fields.end()?;
    Ok(directory)
}

/// For fuzzing: any bytes are a directory or an error.
pub(crate) fn fuzz_decode(bytes: &[u8]) {
    let _ = decode("", 0, bytes, 1 << 20);
}
