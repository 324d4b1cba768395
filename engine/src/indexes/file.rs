//! The file of one index over one segment, and which a segment has.
//!
//! ```text
//! magic 8 | version u32 | zeros u32 | segment u64 | collection u32 | index u32 | rows u32 | arrays u32 | facts u32 |
//! zeros u32 | entries u64 | length u64 | a sorted run (FORMAT.md of the crate index) of that length
//! ```
//!
//! Takes sorted entries; gives them back where they lie. The whole file's checksum stands in the manifest and is held
//! against it at the first touch. A file is never changed; one that the manifest does not name is waste.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use quarrydb_index::RowSet;
use quarrydb_index::sorted::SortedRun;

use super::keys::Facts;
use super::range::KeyRange;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{CollectionId, IndexId, SegmentId};
use crate::io::fields::{Fields, PutFields};
use crate::io::{Section, Storage};
use crate::manifest::IndexFileRef;
use crate::segment::SegmentMeta;

const MAGIC: [u8; 8] = *b"QUARIDX\n";
const VERSION: u32 = 0;
const HEADER_BYTES: usize = 64;
const FACT_POSITIONAL: u32 = 1;
const FACT_CUT: u32 = 2;
const FACT_INCOMPLETE: u32 = 4;
/// How much is read at a time while a checksum is computed.
const CHECK_BYTES: usize = 1 << 20;
const PREFIX: &str = "idx-";
const SUFFIX: &str = ".qidx";

/// `idx-7-2.qidx`: index 2 of its collection over segment 7.
#[must_use]
pub(crate) fn index_file_name(segment: SegmentId, index: IndexId) -> String {
    format!("{PREFIX}{}-{}{SUFFIX}", segment.get(), index.get())
}

/// Whether a name is that of an index's file.
pub(crate) fn is_index_file_name(name: &str) -> bool {
    index_file_segment(name).is_some()
}

/// The segment that a name says an index's file is over.
pub(crate) fn index_file_segment(name: &str) -> Option<SegmentId> {
    let (segment, index) = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.split_once('-')?;
    let (segment, index) = (segment.parse().ok().map(SegmentId::from_raw)?, index.parse().ok().map(IndexId::from_raw)?);
    (index_file_name(segment, index) == name).then_some(segment)
}

/// What stands before a run of so many bytes.
pub(crate) fn header(meta: &SegmentMeta, index: IndexId, facts: Facts, entries: u64, run_bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&MAGIC);
    out.put_u32(VERSION);
    out.put_u32(0);
    out.put_u64(meta.id.get());
    out.put_u32(meta.collection.get());
    out.put_u32(index.get());
    out.put_u32(meta.rows);
    out.put_u32(facts.arrays);
    let bits = [(facts.positional, FACT_POSITIONAL), (facts.cut, FACT_CUT), (facts.incomplete, FACT_INCOMPLETE)];
    out.put_u32(bits.iter().filter(|(set, _)| *set).map(|(_, bit)| bit).sum());
    out.put_u32(0);
    out.put_u64(entries);
    out.put_u64(run_bytes as u64);
    assert!(out.len() == HEADER_BYTES, "the header takes what the format says");
    out
}

/// One index over one segment; its file is opened when first asked.
#[derive(Debug)]
pub(crate) struct SegmentIndex {
    storage: Arc<dyn Storage>,
    name: String,
    segment: SegmentId,
    collection: CollectionId,
    rows: u32,
    file: IndexFileRef,
    loaded: OnceLock<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    bytes: Section,
    facts: Facts,
    /// The first and the last key; none where there is no entry.
    ends: Option<(Vec<u8>, Vec<u8>)>,
}

impl SegmentIndex {
    /// The one that the manifest names by `file`.
    pub(crate) fn new(storage: Arc<dyn Storage>, meta: &SegmentMeta, file: IndexFileRef) -> Self {
        let name = index_file_name(meta.id, file.index);
        let (segment, collection, rows) = (meta.id, meta.collection, meta.rows);
        Self { storage, name, segment, collection, rows, file, loaded: OnceLock::new() }
    }

    /// Its index's number.
    pub(crate) fn index(&self) -> IndexId {
        self.file.index
    }

    /// What the manifest holds of it.
    pub(crate) fn file(&self) -> &IndexFileRef {
        &self.file
    }

    /// Whether it was read and checked before: asking it waits for no disk.
    pub(crate) fn is_open(&self) -> bool {
        self.loaded.get().is_some()
    }

    fn load(&self) -> Result<&Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.read()?;
        // Two threads may have read it; both found it good.
        Ok(self.loaded.get_or_init(|| loaded))
    }

    fn read(&self) -> Result<Loaded> {
        let file = self.storage.open(&self.name)?;
        let len = file.len()?;
        if len != self.file.len {
            let what = format!("it has {len} bytes, the manifest says {}", self.file.len);
            return Err(Error::corrupt(&self.name, len.min(self.file.len), what));
        }
        let mut buffer = vec![0; CHECK_BYTES.min(usize::try_from(len).unwrap_or(CHECK_BYTES))];
        let (mut at, mut crc) = (0, 0);
        while at < len {
            let some = usize::try_from(len - at).unwrap_or(CHECK_BYTES).min(buffer.len());
            let piece = &mut buffer[..some];
            file.read_at(at, piece)?;
            crc = crc32c::crc32c_append(crc, piece);
            at += some as u64;
        }
        if crc != self.file.crc {
            return Err(Error::corrupt(&self.name, 0, "it is not the file that the manifest names (checksum)"));
        }
        let too_long = |_| Error::corrupt(&self.name, 0, "the file is longer than memory");
        let bytes = file.section(0, usize::try_from(len).map_err(too_long)?)?;
        let facts = self.header(&bytes)?;
        let run = open_run(&self.name, &bytes)?;
        if run.len() as u64 != self.file.entries || run.rows() != self.rows {
            return Err(Error::corrupt(&self.name, HEADER_BYTES as u64, "the run is not that of the header"));
        }
        let (mut first, mut last) = (Vec::new(), Vec::new());
        let ends = match run.len().checked_sub(1) {
            None => None,
            Some(end) => {
                run.key(0, &mut first).and_then(|()| run.key(end, &mut last)).map_err(|e| self.corrupt(&e))?;
                Some((first, last))
            }
        };
        Ok(Loaded { bytes, facts, ends })
    }

    fn header(&self, bytes: &[u8]) -> Result<Facts> {
        let header = bytes.get(..HEADER_BYTES).unwrap_or_default();
        let mut fields = Fields::new(&self.name, 0, header);
        let wrong = fields.corrupt("this is no index of a segment");
        if fields.bytes(8)? != MAGIC {
            return Err(wrong);
        }
        let version = fields.u32()?;
        if version > VERSION {
            let message = format!("{} is of format version {version}, this build reads up to {VERSION}", self.name);
            return Err(Error::new(ErrorKind::UnsupportedVersion, message));
        }
        fields.zeros(4)?;
        let other = fields.corrupt("it is the index of another segment, or another index");
        let named = (fields.u64()?, fields.u32()?, fields.u32()?, fields.u32()?);
        if named != (self.segment.get(), self.collection.get(), self.file.index.get(), self.rows) {
            return Err(other);
        }
        let (arrays, bits) = (fields.u32()?, fields.u32()?);
        fields.zeros(4)?;
        let (entries, length) = (fields.u64()?, fields.u64()?);
        let known = bits & !(FACT_POSITIONAL | FACT_CUT | FACT_INCOMPLETE) == 0;
        if !known || entries != self.file.entries || length != (bytes.len() - HEADER_BYTES) as u64 {
            return Err(fields.corrupt("the header's numbers are impossible"));
        }
        let has = |bit| bits & bit != 0;
        Ok(Facts { arrays, positional: has(FACT_POSITIONAL), cut: has(FACT_CUT), incomplete: has(FACT_INCOMPLETE) })
    }

    /// What is wrong with its run.
    pub(crate) fn corrupt(&self, error: &quarrydb_index::Error) -> Error {
        Error::corrupt(&self.name, HEADER_BYTES as u64, error)
    }

    /// What its entries have in common.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn facts(&self) -> Result<Facts> {
        Ok(self.load()?.facts)
    }

    /// Its run.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn sorted_run(&self) -> Result<SortedRun<'_>> {
        self.run_of(self.load()?)
    }

    /// The run of bytes whose run was opened when they were loaded.
    fn run_of<'l>(&self, loaded: &'l Loaded) -> Result<SortedRun<'l>> {
        let run = loaded.bytes.get(HEADER_BYTES..).unwrap_or_default();
        SortedRun::reopen(run).map_err(|error| self.corrupt(&error))
    }

    /// Calls `with` with its run.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn run<T>(&self, with: impl FnOnce(SortedRun<'_>) -> quarrydb_index::Result<T>) -> Result<T> {
        let loaded = self.load()?;
        with(self.run_of(loaded)?).map_err(|error| self.corrupt(&error))
    }

    /// Whether no key of it lies in `range`, told by its first and last key alone.
    pub(crate) fn is_outside(&self, range: &KeyRange) -> Result<bool> {
        Ok(match &self.load()?.ends {
            None => true,
            Some((first, last)) => !range.overlaps(first, last),
        })
    }

    /// The entries of a range.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn entries(&self, range: &KeyRange) -> Result<Range<usize>> {
        if self.is_outside(range)? {
            return Ok(0..0);
        }
        self.run(|run| run.range(range.low(), range.high()))
    }

    /// The rows of a range.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn rows(&self, range: &KeyRange) -> Result<RowSet> {
        let entries = self.entries(range)?;
        if entries.is_empty() {
            return Ok(RowSet::new());
        }
        self.run(|run| Ok(run.row_set(entries)))
    }

    /// Reads everything and whether it can be what a writer wrote.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn verify(&self) -> Result<()> {
        self.run(|run| run.check())
    }
}

fn open_run<'a>(name: &str, bytes: &'a [u8]) -> Result<SortedRun<'a>> {
    let run = bytes.get(HEADER_BYTES..).unwrap_or_default();
    SortedRun::open(run).map_err(|error| Error::corrupt(name, HEADER_BYTES as u64, error))
}

/// The indexes that a segment has files of.
#[derive(Debug, Default)]
pub(crate) struct SegmentIndexes(ArcSwap<Vec<Arc<SegmentIndex>>>);

impl SegmentIndexes {
    /// Those that the manifest names.
    pub(crate) fn new(list: Vec<Arc<SegmentIndex>>) -> Self {
        Self(ArcSwap::from_pointee(list))
    }

    /// The one of an index, where it was made.
    pub(crate) fn get(&self, index: IndexId) -> Option<Arc<SegmentIndex>> {
        self.0.load().iter().find(|own| own.index() == index).cloned()
    }

    /// Adds those that were made; the manifest names them by now, or will before it names the segment.
    pub(crate) fn attach(&self, more: &[Arc<SegmentIndex>]) {
        self.0.rcu(|list| list.iter().chain(more).cloned().collect::<Vec<_>>());
    }

    /// Whether all were read and checked before.
    pub(crate) fn are_open(&self) -> bool {
        self.0.load().iter().all(|own| own.is_open())
    }

    /// Opens all files; one that cannot be read tells whoever reads it.
    pub(crate) fn touch(&self) {
        self.0.load().iter().for_each(|own| drop(own.load()));
    }

    /// Lets an index go that was dropped.
    pub(crate) fn detach(&self, index: IndexId) {
        self.0.rcu(|list| list.iter().filter(|own| own.index() != index).cloned().collect::<Vec<_>>());
    }

    /// What the manifest is to hold.
    pub(crate) fn files(&self) -> Vec<IndexFileRef> {
        self.0.load().iter().map(|own| own.file).collect()
    }
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
