//! The newest rows of a collection, in memory: appended by the one committer, read by anyone without waiting.
//!
//! Takes rows as ranges of log payloads (the bytes are shared with the log, not copied), `_id` hashes and `Seq`s;
//! gives rows by number and by `_id` as of a `Seq`. A row is never moved or changed but for the `Seq` of its end.
//! Only `txn/commit.rs` and `recovery/replay.rs` write here. It must not know filters, files or durability.

pub(crate) mod chunks;
pub(crate) mod primary;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use quarrydb_jsonb::JsonbRef;

use roaring::RoaringBitmap;

use crate::ids::{IndexId, RowId, Seq};
use crate::indexes::tail::TailIndexes;
use crate::indexes::{Index, IndexSource};
use crate::log::Payload;
use chunks::Chunks;
use primary::Primary;

/// The `Seq` of an end that has not come.
const LIVE: u64 = u64::MAX;
const NO_ROW: u32 = u32::MAX;

/// One version of one document.
#[derive(Debug)]
struct Row {
    payload: Payload,
    start: u32,
    len: u32,
    created: Seq,
    ended: AtomicU64,
    /// The version before it in this tail.
    previous: u32,
}

/// The newest rows of a collection.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    rows: boxcar::Vec<Row>,
    primary: Primary,
    bytes: AtomicUsize,
    /// The first commit that touched the collection while this tail was its newest; 0: none yet.
    first_seq: AtomicU64,
    /// Rows that ended, in the order of their ends, so that a seal finds those that came meanwhile.
    ends: Mutex<Vec<(RowId, Seq)>>,
    /// Columns of its rows, made when they are asked for.
    chunks: Chunks,
    /// Made of the rows when asked for.
    indexes: TailIndexes,
}

/// A version of a document in a tail, with the bytes that keep it alive.
#[derive(Clone, Debug)]
pub(crate) struct TailDocument {
    payload: Payload,
    start: u32,
    len: u32,
}

impl TailDocument {
    /// The document in a part of a payload.
    #[must_use]
    pub(crate) fn of(payload: &Payload, (start, len): (u32, u32)) -> Self {
        Self { payload: payload.clone(), start, len }
    }

    /// What holds its bytes, and where they lie in it.
    #[must_use]
    pub(crate) fn place(&self) -> (&Payload, (u32, u32)) {
        (&self.payload, (self.start, self.len))
    }

    /// The document.
    #[must_use]
    pub(crate) fn view(&self) -> JsonbRef<'_> {
        slice(&self.payload, self.start, self.len)
    }
}

fn slice(payload: &Payload, start: u32, len: u32) -> JsonbRef<'_> {
    let bytes = payload.bytes().get(start as usize..start as usize + len as usize);
    bytes.map_or(quarrydb_jsonb::NULL, JsonbRef::from_valid)
}

/// What a tail knows of an `_id` at a `Seq`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The row to be seen.
    Row(RowId),
    /// The document is gone: older tails and segments need not be asked.
    Gone,
    /// Nothing: older tails and segments decide.
    Nothing,
}

impl Tail {
    /// Notes that a commit touched the collection.
    pub(crate) fn touch(&self, seq: Seq) {
        let _ = self.first_seq.compare_exchange(0, seq.get(), Ordering::Relaxed, Ordering::Relaxed);
    }

    /// The first commit that touched the collection since this tail began.
    #[must_use]
    pub(crate) fn first_seq(&self) -> Option<Seq> {
        match self.first_seq.load(Ordering::Relaxed) {
            0 => None,
            seq => Some(Seq::from_raw(seq)),
        }
    }

    /// Appends a version of a document; `previous` is the version in this tail that it takes the place of, if any.
    pub(crate) fn push(
        &self,
        payload: &Payload,
        span: (u32, u32),
        created: Seq,
        hash: u64,
        previous: Option<RowId>,
    ) -> RowId {
        let row = self.rows.push(Row {
            payload: payload.clone(),
            start: span.0,
            len: span.1,
            created,
            ended: AtomicU64::new(LIVE),
            previous: previous.map_or(NO_ROW, RowId::get),
        }) as u32;
        self.bytes.fetch_add(span.1 as usize, Ordering::Relaxed);
        match previous {
            Some(previous) => {
                self.primary.put(hash, row, |r| r == previous.get());
            }
            None => self.primary.add(hash, row),
        }
        RowId::from_raw(row)
    }

    /// Ends a version at `seq`.
    pub(crate) fn end(&self, row: RowId, seq: Seq) {
        if let Some(found) = self.rows.get(row.get() as usize) {
            found.ended.store(seq.get(), Ordering::Release);
            self.ends.lock().push((row, seq));
        }
    }

    /// The newest row with this `_id` whether it ended or not, and whether it lives: for the committer.
    #[must_use]
    pub(crate) fn newest(&self, hash: u64, id: JsonbRef<'_>) -> Option<(RowId, bool)> {
        let row = self.primary.get(hash, |row| self.has_id(row, id))?;
        let live = self.rows.get(row as usize).is_some_and(|r| r.ended.load(Ordering::Acquire) == LIVE);
        Some((RowId::from_raw(row), live))
    }

    /// The version of the document with this `_id` that is seen at `at`.
    #[must_use]
    pub(crate) fn find(&self, hash: u64, id: JsonbRef<'_>, at: Seq) -> Found {
        let Some(mut number) = self.primary.get(hash, |row| self.has_id(row, id)) else { return Found::Nothing };
        while let Some(row) = self.rows.get(number as usize) {
            if row.created <= at {
                let ended = row.ended.load(Ordering::Acquire);
                return if ended > at.get() { Found::Row(RowId::from_raw(number)) } else { Found::Gone };
            }
            number = row.previous;
        }
        Found::Nothing
    }

    fn has_id(&self, row: u32, id: JsonbRef<'_>) -> bool {
        self.rows.get(row as usize).is_some_and(|row| {
            let own = slice(&row.payload, row.start, row.len).get("_id");
            own.is_some_and(|own| own.as_bytes() == id.as_bytes() || quarrydb_jsonb::equal(own, id))
        })
    }

    /// The document of a row.
    #[must_use]
    pub(crate) fn document(&self, row: RowId) -> Option<TailDocument> {
        let row = self.rows.get(row.get() as usize)?;
        Some(TailDocument { payload: row.payload.clone(), start: row.start, len: row.len })
    }

    /// The document of a row, borrowed.
    #[must_use]
    pub(crate) fn view(&self, row: RowId) -> Option<JsonbRef<'_>> {
        self.rows.get(row.get() as usize).map(|row| slice(&row.payload, row.start, row.len))
    }

    /// The document of a row where it is seen at `at`.
    #[must_use]
    pub(crate) fn visible(&self, row: RowId, at: Seq) -> Option<JsonbRef<'_>> {
        let row = self.rows.get(row.get() as usize)?;
        let seen = row.created <= at && row.ended.load(Ordering::Acquire) > at.get();
        seen.then(|| slice(&row.payload, row.start, row.len))
    }

    /// What a snapshot at `at` sees: rows below the first number, without those of the set.
    #[must_use]
    pub(crate) fn seen(&self, at: Seq) -> (u32, RoaringBitmap) {
        // Rows are appended in the order of commits.
        let (mut low, mut high) = (0, self.rows());
        while low < high {
            let middle = low + (high - low) / 2;
            let created = self.rows.get(middle as usize).is_some_and(|row| row.created <= at);
            if created { low = middle + 1 } else { high = middle }
        }
        let ends = self.ends.lock();
        let ended = ends.partition_point(|(_, seq)| *seq <= at);
        (low, ends.iter().take(ended).map(|(row, _)| row.get()).collect())
    }

    /// Its rows' columns.
    #[must_use]
    pub(crate) fn chunks(&self) -> &Chunks {
        &self.chunks
    }

    /// When a row was created, and when it ended.
    #[must_use]
    pub(crate) fn life(&self, row: RowId) -> Option<(Seq, Option<Seq>)> {
        let row = self.rows.get(row.get() as usize)?;
        let ended = row.ended.load(Ordering::Acquire);
        Some((row.created, (ended != LIVE).then_some(Seq::from_raw(ended))))
    }

    /// The entries that an index has of the rows so far.
    #[must_use]
    pub(crate) fn index(&self, index: &Index) -> IndexSource {
        let document = |row| self.view(RowId::from_raw(row));
        IndexSource::Tail(self.indexes.get(index.id).sorted(index, self.rows(), &document))
    }

    /// Whether `found` says of a row that it is enough, among those that may have an entry of this key: for the committer.
    pub(crate) fn probe(&self, index: &Index, key: &[u8], found: &mut dyn FnMut(RowId) -> bool) -> bool {
        let document = |row| self.view(RowId::from_raw(row));
        let mut found = |row| found(RowId::from_raw(row));
        self.indexes.get(index.id).probe(index, self.rows(), key, &document, &mut found)
    }

    /// Lets the entries of an index go that was dropped.
    pub(crate) fn forget(&self, index: IndexId) {
        self.indexes.forget(index);
    }

    /// The number of rows, versions that ended included.
    #[must_use]
    pub(crate) fn rows(&self) -> u32 {
        self.rows.count() as u32
    }

    /// The bytes of all documents.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The rows that ended after `since`, in the order of their ends.
    #[must_use]
    pub(crate) fn ends_after(&self, since: Seq) -> Vec<(RowId, Seq)> {
        let ends = self.ends.lock();
        let after = ends.partition_point(|(_, seq)| *seq <= since);
        ends.get(after..).unwrap_or_default().to_vec()
    }

    /// The rows that ended, in the order of their ends, from the `skip`th on.
    #[must_use]
    pub(crate) fn ends_from(&self, skip: usize) -> Vec<(RowId, Seq)> {
        self.ends.lock().get(skip..).unwrap_or_default().to_vec()
    }
}
