//! The manifest: which files are the database.
//!
//! Takes the whole set at once, keeps it in one checksummed file that is replaced atomically, gives it back at the
//! next opening. A file not named here is waste, whatever it holds; a file named here must be there and be what the
//! entry says. So the order of every change is: write the new files and sync them, save the manifest, then let go of
//! what it no longer names. Knows nothing of what collections' options or definitions mean: they are bytes.
//!
//! Next to read: `format.rs` for the bytes, `store.rs` for loading and saving.

mod format;
mod store;

pub use store::{MANIFEST_FILE, ManifestStore};

use crate::ids::{CollectionId, IndexId, LogFileId, SegmentId, Seq};
use crate::segment::SegmentMeta;

/// Everything a database is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// A number of this database, made when it was: `LogOptions::database`.
    pub database: u64,
    /// Counts saves.
    pub generation: u64,
    /// The number the next collection gets; numbers are never used twice.
    pub next_collection: CollectionId,
    /// The number the next segment gets.
    pub next_segment: SegmentId,
    /// The number the next list of dead rows gets.
    pub next_delete_file: u64,
    /// Commits known to be durable in the log or in segments: recovery refuses to end before.
    pub durable_at_least: Seq,
    /// Set by an orderly end: the log ends exactly here.
    pub clean_end: Option<Seq>,
    /// The first log file still needed, one that `Log::files` has named; lower ones are waste.
    pub first_log_file: LogFileId,
    /// The first log file that is kept for change streams; at most `first_log_file`.
    pub kept_log_file: LogFileId,
    /// Set once a change stream was opened: the last commit before that. What came after it is told to streams.
    pub watched_since: Option<Seq>,
    /// The collections.
    pub collections: Vec<CollectionEntry>,
    /// The segments; those of a collection in the order of their rows, oldest first.
    pub segments: Vec<SegmentEntry>,
    /// Collections that are gone while change streams may still read of them in the log.
    pub dropped: Vec<DroppedEntry>,
}

/// A collection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectionEntry {
    /// Its number in the log and in segments.
    pub id: CollectionId,
    /// The database (in the language's sense) it belongs to.
    pub db: String,
    /// Its name there.
    pub name: String,
    /// Its options, encoded by their owner.
    pub options: Vec<u8>,
    /// Its declared indexes, encoded by their owner.
    pub definitions: Vec<u8>,
    /// The commit that made it.
    pub created_seq: Seq,
    /// Commits to it up to here are in segments: replay begins after.
    pub sealed_seq: Seq,
}

/// A segment and the list of its dead rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// What opens it.
    pub meta: SegmentMeta,
    /// Where its dead rows stand, if it had any when they were last written.
    pub deletes: Option<DeleteFileRef>,
    /// The declared indexes that have their entries of it in a file.
    pub indexes: Vec<IndexFileRef>,
}

/// The entries of one index over one segment. The name of the file follows from both numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexFileRef {
    /// The index's number in the collection.
    pub index: IndexId,
    /// CRC32C of all bytes of the file.
    pub crc: u32,
    /// Length of the file.
    pub len: u64,
    /// How many entries it has.
    pub entries: u64,
}

/// A list of dead rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeleteFileRef {
    /// The name of its file.
    pub name: String,
    /// Length of the file.
    pub len: u64,
    /// CRC32C of all its bytes.
    pub crc: u32,
    /// Deletes up to here are in it.
    pub up_to: Seq,
}

/// A collection that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedEntry {
    /// Its number.
    pub id: CollectionId,
    /// The commit that dropped it: the entry may go when the log up to it has.
    pub seq: Seq,
    /// The database that it belonged to.
    pub db: String,
    /// Its name there.
    pub name: String,
}

impl Manifest {
    /// Of a database just made.
    #[must_use]
    pub fn new(database: u64) -> Self {
        Self {
            database,
            generation: 0,
            next_collection: CollectionId::from_raw(1),
            next_segment: SegmentId::from_raw(1),
            next_delete_file: 1,
            durable_at_least: Seq::default(),
            clean_end: None,
            first_log_file: LogFileId::from_raw(1),
            kept_log_file: LogFileId::from_raw(1),
            watched_since: None,
            collections: Vec::new(),
            segments: Vec::new(),
            dropped: Vec::new(),
        }
    }
}

#[cfg(test)]
mod manifest_tests;
