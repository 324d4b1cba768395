//! What a collection consists of at one moment: segments, tails that wait for their seal, the tail that takes writes.
//!
//! A version is immutable; a seal or a compaction puts a new one in its place, carrying over every end recorded in the
//! old. Gives the row of an `_id`, for a reader at a `Seq` and for the committer. Next: `exec/scan.rs` reads all rows.

use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};

use quarrydb_jsonb::JsonbRef;
use roaring::RoaringBitmap;

use crate::columns::{Columns, Source};
use crate::error::{ErrorKind, Result};
use crate::ids::{RowId, Seq};
use crate::indexes::file::SegmentIndexes;
use crate::indexes::{Index, IndexSource};
use crate::segment::{Deletes, DocRef, Segment};
use crate::tail::{Found, Tail, TailDocument};

/// A segment and what ended in it since.
#[derive(Debug)]
pub(crate) struct Sealed {
    /// The immutable part.
    pub segment: Segment,
    /// The part that changes.
    pub deletes: Deletes,
    /// Which declared indexes have their entries of it.
    pub indexes: SegmentIndexes,
    /// Its columns, opened when first asked for; none where it was written without.
    columns: OnceLock<Option<Columns>>,
}

/// A tail that takes no more rows and waits for its seal.
#[derive(Clone, Debug)]
pub(crate) struct Frozen {
    /// Its rows; they may still end.
    pub tail: Arc<Tail>,
    /// The last commit that it may hold rows of.
    pub last_seq: Seq,
}

/// What a collection consists of.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Oldest first.
    pub segments: Vec<Arc<Sealed>>,
    /// Oldest first.
    pub frozen: Vec<Frozen>,
    /// Takes the rows of new commits.
    pub tail: Arc<Tail>,
}

/// Where a version of a document lies; valid with the [`Version`] that gave it.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    /// In a tail.
    Tail(Arc<Tail>, RowId),
    /// In a segment.
    Segment(Arc<Sealed>, RowId),
}

/// A document with what keeps its bytes alive.
#[derive(Clone, Debug)]
pub(crate) enum StoredDocument {
    /// In a tail.
    Tail(TailDocument),
    /// In a segment.
    Segment(DocRef),
}

impl StoredDocument {
    /// The document.
    #[must_use]
    pub(crate) fn view(&self) -> JsonbRef<'_> {
        match self {
            Self::Tail(document) => document.view(),
            Self::Segment(document) => JsonbRef::from_valid(document),
        }
    }
}

/// What the committer finds of an `_id`.
#[derive(Debug)]
pub(crate) struct Current {
    /// Where the document lives, if it does.
    pub live: Option<Address>,
    /// The document itself, where it had to be read to know that.
    pub read: Option<StoredDocument>,
    /// The newest row with the `_id` in the tail that takes writes, ended or not, to chain the next one to.
    pub in_tail: Option<RowId>,
}

impl Address {
    /// Ends the version at `seq`.
    pub(crate) fn end(&self, seq: Seq) {
        match self {
            Self::Tail(tail, row) => tail.end(*row, seq),
            Self::Segment(sealed, row) => {
                sealed.deletes.mark(*row, seq);
            }
        }
    }

    /// Whether it has not ended.
    #[must_use]
    pub(crate) fn is_live(&self) -> bool {
        match self {
            Self::Tail(tail, row) => tail.life(*row).is_some_and(|(_, ended)| ended.is_none()),
            Self::Segment(sealed, row) => !sealed.deletes.is_dead(*row, Seq::MAX),
        }
    }

    /// The commit that it began with.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn created(&self) -> Result<Seq> {
        match self {
            Self::Tail(tail, row) => Ok(tail.life(*row).map_or(Seq::MAX, |(created, _)| created)),
            Self::Segment(sealed, row) => sealed.segment.seq_of(*row),
        }
    }

    /// The document.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn document(&self) -> Result<StoredDocument> {
        match self {
            Self::Tail(tail, row) => tail.document(*row).map(StoredDocument::Tail).ok_or_else(|| {
                crate::Error::new(ErrorKind::Internal, format!("{row} is not in the tail that named it"))
            }),
            Self::Segment(sealed, row) => sealed.segment.doc(*row).map(StoredDocument::Segment),
        }
    }
}

impl Version {
    /// One without a document.
    #[must_use]
    pub(crate) fn empty() -> Self {
        Self { segments: Vec::new(), frozen: Vec::new(), tail: Arc::default() }
    }

    /// The tails, newest first.
    pub(crate) fn tails(&self) -> impl Iterator<Item = &Arc<Tail>> {
        std::iter::once(&self.tail).chain(self.frozen.iter().rev().map(|frozen| &frozen.tail))
    }

    /// Whether `address` lies in a part of this version.
    #[must_use]
    pub(crate) fn holds(&self, address: &Address) -> bool {
        match address {
            Address::Tail(tail, _) => self.tails().any(|own| Arc::ptr_eq(own, tail)),
            Address::Segment(sealed, _) => self.segments.iter().any(|own| Arc::ptr_eq(own, sealed)),
        }
    }

    /// The document with this `_id` as seen at `at`.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn find(&self, hash: u64, id: JsonbRef<'_>, at: Seq) -> Result<Option<StoredDocument>> {
        for tail in self.tails() {
            match tail.find(hash, id, at) {
                Found::Row(row) => return Ok(tail.document(row).map(StoredDocument::Tail)),
                Found::Gone => return Ok(None),
                Found::Nothing => {}
            }
        }
        Ok(self.find_in_segments(hash, id, at)?.map(|(_, _, document)| StoredDocument::Segment(document)))
    }

    /// The same with where it lies.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn locate(&self, hash: u64, id: JsonbRef<'_>, at: Seq) -> Result<Option<(Address, StoredDocument)>> {
        for tail in self.tails() {
            match tail.find(hash, id, at) {
                Found::Row(row) => {
                    let found = tail.document(row).map(StoredDocument::Tail);
                    return Ok(found.map(|document| (Address::Tail(Arc::clone(tail), row), document)));
                }
                Found::Gone => return Ok(None),
                Found::Nothing => {}
            }
        }
        let found = self.find_in_segments(hash, id, at)?;
        Ok(found.map(|(sealed, row, document)| (Address::Segment(sealed, row), StoredDocument::Segment(document))))
    }

    /// Calls `each` with the documents that began or ended after `since`, in no order, until it says that it is enough;
    /// false where they are more than `most`, and not all were shown.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment, and those of `each`.
    pub(crate) fn changed_since(
        &self,
        since: Seq,
        most: usize,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let mut left = most;
        let mut show = |document: JsonbRef<'_>| -> Result<Option<bool>> {
            let Some(less) = left.checked_sub(1) else { return Ok(Some(false)) };
            left = less;
            Ok(each(document)?.is_break().then_some(true))
        };
        for tail in self.tails() {
            for row in (0..tail.rows()).rev().map(RowId::from_raw) {
                // Rows stand in the order of their creation.
                let Some(document) = tail.life(row).filter(|life| life.0 > since).and_then(|_| tail.view(row)) else {
                    break;
                };
                if let Some(end) = show(document)? {
                    return Ok(end);
                }
            }
            for (row, _) in tail.ends_after(since) {
                let Some(document) = tail.view(row) else { continue };
                if let Some(end) = show(document)? {
                    return Ok(end);
                }
            }
        }
        for sealed in &self.segments {
            let of_segment = &sealed.segment;
            let mut rows: Vec<RowId> = sealed.deletes.marked_after(since).into_iter().map(|(row, _)| row).collect();
            if of_segment.meta().max_seq > since {
                let mut seqs = Vec::new();
                of_segment.seqs(0..of_segment.rows(), &mut seqs)?;
                let new = (0..).zip(&seqs).filter(|(_, seq)| **seq > since.get());
                rows.extend(new.map(|(row, _)| RowId::from_raw(row)));
            }
            for row in rows {
                let document = of_segment.doc(row)?;
                if let Some(end) = show(JsonbRef::from_valid(&document))? {
                    return Ok(end);
                }
            }
        }
        Ok(true)
    }

    /// The document with this `_id` as the committer sees it: all commits so far.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn current(&self, hash: u64, id: JsonbRef<'_>) -> Result<Current> {
        let mut in_tail = None;
        for tail in self.tails() {
            if let Some((row, live)) = tail.newest(hash, id) {
                if Arc::ptr_eq(tail, &self.tail) {
                    in_tail = Some(row);
                }
                let live = live.then(|| Address::Tail(Arc::clone(tail), row));
                return Ok(Current { live, read: None, in_tail });
            }
        }
        Ok(match self.find_in_segments(hash, id, Seq::MAX)? {
            Some((sealed, row, document)) => {
                let read = Some(StoredDocument::Segment(document));
                Current { live: Some(Address::Segment(sealed, row)), read, in_tail }
            }
            None => Current { live: None, read: None, in_tail },
        })
    }

    fn find_in_segments(&self, hash: u64, id: JsonbRef<'_>, at: Seq) -> Result<Option<(Arc<Sealed>, RowId, DocRef)>> {
        for sealed in self.segments.iter().rev() {
            for row in sealed.segment.probe(hash)? {
                if sealed.deletes.is_dead(row, at) || !sealed.is_created(row, at)? {
                    continue;
                }
                let document = sealed.segment.doc(row)?;
                let own = JsonbRef::from_valid(&document).get("_id");
                if own.is_some_and(|own| own.as_bytes() == id.as_bytes() || quarrydb_jsonb::equal(own, id)) {
                    return Ok(Some((Arc::clone(sealed), row, document)));
                }
            }
        }
        Ok(None)
    }

    /// The first commit that touched what is not sealed yet, `sealed` counted as if it were.
    #[must_use]
    pub(crate) fn first_unsealed(&self, sealed: Option<&Arc<Tail>>) -> Option<Seq> {
        let open = self.tails().filter(|tail| !sealed.is_some_and(|sealed| Arc::ptr_eq(sealed, tail)));
        open.filter_map(|tail| tail.first_seq()).min()
    }

    /// The bytes of documents in tails that wait for their seal.
    #[must_use]
    pub(crate) fn frozen_bytes(&self) -> usize {
        self.frozen.iter().map(|f| f.tail.bytes()).sum()
    }
}

impl Sealed {
    /// A segment and what ended in it.
    pub(crate) fn new(segment: Segment, deletes: Deletes) -> Self {
        Self::with_indexes(segment, deletes, SegmentIndexes::default())
    }

    /// A segment, what ended in it, and the indexes that have files of it.
    pub(crate) fn with_indexes(segment: Segment, deletes: Deletes, indexes: SegmentIndexes) -> Self {
        Self { segment, deletes, indexes, columns: OnceLock::new() }
    }

    /// The entries that an index has of it; none where they are not made yet, or not any more.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from the index's file.
    pub(crate) fn index(&self, index: &Index) -> Result<Option<IndexSource>> {
        let Some(file) = self.indexes.get(index.id) else { return Ok(None) };
        match file.facts() {
            Ok(_) => Ok(Some(IndexSource::Segment(file))),
            // Its file may go with the index, or with the segment in a newer version, before it was first read.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Its columns.
    ///
    /// # Errors
    /// `Corrupt`, `UnsupportedVersion`, `Io` when they are opened.
    pub(crate) fn columns(&self) -> Result<Option<Source<'_>>> {
        let columns = match self.columns.get() {
            Some(columns) => columns,
            None => {
                let opened = Columns::of_segment(&self.segment)?;
                self.columns.get_or_init(|| opened)
            }
        };
        Ok(columns.as_ref().map(|columns| Source::segment(columns, &self.segment)))
    }

    /// Its columns where they were opened before.
    pub(crate) fn open_columns(&self) -> Option<Source<'_>> {
        self.columns.get()?.as_ref().map(|columns| Source::segment(columns, &self.segment))
    }

    /// Paths without a column, at least; 0 where its columns cannot be read, which asking them tells.
    pub(crate) fn overflow_paths(&self) -> u64 {
        let _ = self.columns();
        self.columns.get().and_then(Option::as_ref).map_or(0, Columns::overflow)
    }

    /// The rows that a snapshot at `at` does not see; none where it sees all.
    ///
    /// # Errors
    /// `Corrupt` and `Io` when the `Seq`s must be read.
    pub(crate) fn unseen(&self, at: Seq) -> Result<Option<RoaringBitmap>> {
        let mut unseen = if self.deletes.is_empty() { RoaringBitmap::new() } else { self.deletes.dead_at(at) };
        if self.segment.meta().max_seq > at {
            let mut seqs = Vec::new();
            self.segment.seqs(0..self.segment.rows(), &mut seqs)?;
            unseen.extend((0..).zip(&seqs).filter(|(_, seq)| **seq > at.get()).map(|(row, _)| row));
        }
        Ok((!unseen.is_empty()).then_some(unseen))
    }

    /// Whether `row` was created at or before `at`.
    ///
    /// # Errors
    /// `Corrupt` and `Io` when the `Seq`s must be read.
    pub(crate) fn is_created(&self, row: RowId, at: Seq) -> Result<bool> {
        Ok(self.segment.meta().max_seq <= at || self.segment.seq_of(row)? <= at)
    }
}
