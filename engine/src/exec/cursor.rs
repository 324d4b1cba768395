//! What a `find` gives: documents one by one, or printed by all cores in order into a bounded stream.
//!
//! Takes rows from a scan or a sort; hands on documents, projected. Holds its snapshot until dropped. Memory is bounded
//! by the pieces in flight, whatever the number of documents. Next: `http/src/stream.rs`.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Condvar, Mutex};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef};
use quarrydb_query::Projection;

use super::scan::{Morsel, Scan, within};
use super::sort::Ordered;
use crate::budget::{self, Reservation};
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::mvcc::version::StoredDocument;
use crate::options::Deadline;
use crate::segment::BlockBuf;

/// Rows of a sorted answer in one piece.
const PIECE_ROWS: usize = 256;
/// Rows of a sorted answer whose pieces are made together.
const ROUND_ROWS: usize = 64 * PIECE_ROWS;
/// A piece of output is handed on at about this size.
const CHUNK_BYTES: usize = 256 * 1024;
/// What a piece takes.
const PIECE_BYTES: usize = CHUNK_BYTES + CHUNK_BYTES / 4;
/// A scan of no more rows than this is done in place.
const CHEAP_ROWS: u64 = 256;

/// A document that was found.
#[derive(Clone, Debug)]
pub struct Document(Found);

#[derive(Clone, Debug)]
enum Found {
    Stored(StoredDocument),
    Owned(JsonbBuf),
}

impl Document {
    pub(crate) fn stored(document: StoredDocument) -> Self {
        Self(Found::Stored(document))
    }

    pub(crate) fn owned(document: JsonbBuf) -> Self {
        Self(Found::Owned(document))
    }

    /// The document.
    #[must_use]
    pub fn view(&self) -> JsonbRef<'_> {
        match &self.0 {
            Found::Stored(document) => document.view(),
            Found::Owned(document) => document.view(),
        }
    }
}

/// What of each document is asked for, and until when.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    pub projection: Option<Projection>,
    pub deadline: Option<Deadline>,
}

/// The answer of a `find`.
#[derive(Debug)]
pub struct Cursor {
    core: Arc<Core>,
    wanted: Wanted,
    rows: Rows,
    ready: VecDeque<Document>,
    /// Memory for the pieces in flight, where there may be many.
    room: Option<Reservation>,
    /// Who is told how it fares.
    witness: Option<Arc<dyn Witness>>,
}

/// Who is told how a cursor fares.
pub(crate) trait Witness: std::fmt::Debug + Send + Sync {
    /// A piece of the answer was handed on.
    fn goes_on(&self);
    /// It has failed, and what was handed on is not the whole answer.
    fn failed(&self);
}

#[derive(Debug)]
enum Rows {
    /// At most one, at hand.
    Point(Option<StoredDocument>),
    /// In row order.
    Scan { scan: Scan, morsels: VecDeque<Morsel>, skip: u64, limit: Option<u64> },
    /// In the order of a sort.
    Sorted { scan: Scan, rows: Ordered },
}

/// What prints a document to the end of a buffer; called on several threads.
pub type Print<'a> = &'a (dyn Fn(JsonbRef<'_>, &mut Vec<u8>) + Sync);
/// What takes a finished piece and the number of documents in it; it may end the stream. Where nothing is found for a
/// while it is called with an empty piece and 0, so that it can end a search for somebody who is gone.
pub type Sink<'a> = &'a mut dyn FnMut(Vec<u8>, u64) -> ControlFlow<()>;

impl Cursor {
    pub(crate) fn of_point(core: &Arc<Core>, found: Option<StoredDocument>, wanted: Wanted) -> Self {
        Self {
            core: Arc::clone(core),
            wanted,
            rows: Rows::Point(found),
            ready: VecDeque::new(),
            room: None,
            witness: None,
        }
    }

    pub(crate) fn of_scan(core: &Arc<Core>, scan: Scan, wanted: Wanted, skip: u64, limit: Option<u64>) -> Result<Self> {
        let morsels = scan.morsels()?.into();
        let rows = Rows::Scan { scan, morsels, skip, limit };
        Self { core: Arc::clone(core), wanted, rows, ready: VecDeque::new(), room: None, witness: None }.with_room()
    }

    pub(crate) fn of_rows(core: &Arc<Core>, scan: Scan, rows: Ordered, wanted: Wanted) -> Result<Self> {
        let rows = Rows::Sorted { scan, rows };
        Self { core: Arc::clone(core), wanted, rows, ready: VecDeque::new(), room: None, witness: None }.with_room()
    }

    /// The same with somebody who is told how it fares.
    pub(crate) fn with_witness(mut self, witness: Arc<dyn Witness>) -> Self {
        self.witness = Some(witness);
        self
    }

    /// Reserves what `stream` may hold in pieces, before anything of the answer is sent.
    fn with_room(mut self) -> Result<Self> {
        let parallel = matches!(&self.rows, Rows::Scan { skip: 0, limit: None, .. } | Rows::Sorted { .. });
        if parallel && !self.is_cheap() {
            let queries = &self.core.queries;
            self.room = Some(queries.reserve(ahead() * PIECE_BYTES).ok_or_else(|| budget::busy(queries.max()))?);
        }
        Ok(self)
    }

    /// The scan behind it, where there is one.
    pub(crate) fn scan(&self) -> Option<&Scan> {
        match &self.rows {
            Rows::Point(_) => None,
            Rows::Scan { scan, .. } | Rows::Sorted { scan, .. } => Some(scan),
        }
    }

    /// The index in whose order it is, if it is one's, and whether the index decides which documents there are.
    pub(crate) fn sort_index(&self) -> Option<&(String, bool)> {
        match &self.rows {
            Rows::Sorted { rows, .. } => rows.index(),
            Rows::Point(_) | Rows::Scan { .. } => None,
        }
    }

    /// Bytes that its sort had to put on the disk.
    pub(crate) fn spilled_bytes(&self) -> u64 {
        match &self.rows {
            Rows::Sorted { rows, .. } => rows.spilled_bytes(),
            Rows::Point(_) | Rows::Scan { .. } => 0,
        }
    }

    /// Whether the whole answer costs less than handing it to another thread.
    #[must_use]
    pub fn is_cheap(&self) -> bool {
        match &self.rows {
            Rows::Point(_) => true,
            Rows::Scan { scan, .. } => {
                let tails: u64 = scan.version.tails().map(|tail| u64::from(tail.rows())).sum();
                scan.version.segments.is_empty() && tails <= CHEAP_ROWS
            }
            Rows::Sorted { scan, rows } => scan.version.segments.is_empty() && rows.left() <= CHEAP_ROWS,
        }
    }

    /// The next document.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `TimedOut`, the filter's and the projection's own.
    #[allow(clippy::should_implement_trait, reason = "it can fail, and Iterator cannot")]
    pub fn next(&mut self) -> Result<Option<Document>> {
        let next = self.advance_to_next();
        if let (Err(_), Some(witness)) = (&next, &self.witness) {
            witness.failed();
        }
        next
    }

    fn advance_to_next(&mut self) -> Result<Option<Document>> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Some(document));
            }
            let wanted = &self.wanted;
            match &mut self.rows {
                Rows::Point(found) => {
                    let Some(document) = found.take() else { return Ok(None) };
                    return project(wanted, document).map(Some);
                }
                Rows::Sorted { scan, rows } => {
                    let Some(at) = rows.next(scan)? else { return Ok(None) };
                    scan.fetched(1);
                    return project(wanted, scan.address(at).document()?).map(Some);
                }
                Rows::Scan { .. } => {
                    if !self.advance()? {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Looks through the next piece of a scan; false at its end.
    fn advance(&mut self) -> Result<bool> {
        let Rows::Scan { scan, morsels, skip, limit } = &mut self.rows else { return Ok(false) };
        if *limit == Some(0) {
            return Ok(false);
        }
        let Some(morsel) = morsels.pop_front() else { return Ok(false) };
        let (wanted, ready) = (&self.wanted, &mut self.ready);
        let flow = scan.run(&morsel, &mut BlockBuf::default(), &mut |document, _| {
            take(skip, limit, || {
                ready.push_back(Document(Found::Owned(projected(wanted, document)?)));
                Ok(())
            })
        })?;
        if flow.is_break() {
            *limit = Some(0);
        }
        Ok(true)
    }

    /// Hands on all documents as `print` prints them, in order, in pieces of about 256 KiB; gives how many there were.
    /// Pieces are made on all cores and taken by `sink` on the calling thread, which may block there.
    ///
    /// # Errors
    /// As [`Cursor::next`]; what was handed on before is then not the whole answer.
    pub fn stream(mut self, print: Print<'_>, sink: Sink<'_>) -> Result<u64> {
        let core = Arc::clone(&self.core);
        let witness = self.witness.take();
        let mut cancelled = false;
        let mut sent = 0;
        let mut counting = |chunk: Vec<u8>, documents: u64| {
            if let Some(witness) = &witness {
                witness.goes_on();
            }
            let flow = sink(chunk, documents);
            cancelled |= flow.is_break();
            sent += documents;
            flow
        };
        let wanted = &self.wanted;
        let result = match &mut self.rows {
            Rows::Scan { scan, morsels, skip: 0, limit: None } => {
                let piece = |index: usize, out: &mut Vec<u8>| print_morsel(scan, &morsels[index], wanted, print, out);
                in_order(morsels.len(), &piece, &mut counting)
            }
            Rows::Sorted { scan, rows } => print_sorted(scan, rows, wanted, print, &mut counting),
            _ => self.stream_serially(print, &mut counting),
        };
        if cancelled {
            core.counters.cursors_cancelled.fetch_add(1, Ordering::Relaxed);
        }
        if let (Err(_), Some(witness)) = (&result, &witness) {
            witness.failed();
        }
        result.map(|()| sent)
    }

    /// One document after another: where there are few, or they must be counted.
    fn stream_serially(mut self, print: Print<'_>, sink: Sink<'_>) -> Result<()> {
        let mut out = Vec::new();
        let mut documents = 0;
        let mut bytes_max = CHUNK_BYTES / 16;
        loop {
            while self.ready.is_empty() && self.advance()? {
                if self.ready.is_empty() && sink(Vec::new(), 0).is_break() {
                    return Ok(());
                }
            }
            let Some(document) = self.next()? else { break };
            print(document.view(), &mut out);
            documents += 1;
            if out.len() >= bytes_max {
                bytes_max = CHUNK_BYTES;
                if sink(std::mem::take(&mut out), std::mem::take(&mut documents)).is_break() {
                    return Ok(());
                }
            }
        }
        if documents > 0 {
            let _ = sink(out, documents);
        }
        Ok(())
    }
}

impl Drop for Cursor {
    /// However it ended: what it looked at is counted.
    fn drop(&mut self) {
        if let Some(scan) = self.scan() {
            let examined = scan.examined.load(Ordering::Relaxed);
            self.core.counters.documents_examined.fetch_add(examined, Ordering::Relaxed);
        }
    }
}

/// Counts a row against skip and limit; `keep` is called for those between.
fn take(skip: &mut u64, limit: &mut Option<u64>, keep: impl FnOnce() -> Result<()>) -> Result<ControlFlow<()>> {
    if *skip > 0 {
        *skip -= 1;
        return Ok(ControlFlow::Continue(()));
    }
    keep()?;
    if let Some(left) = limit {
        *left -= 1;
        if *left == 0 {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

pub(super) fn projected(wanted: &Wanted, document: JsonbRef<'_>) -> Result<JsonbBuf> {
    let Some(projection) = &wanted.projection else {
        return Ok(JsonbBuf::from_valid(document.as_bytes().to_vec()));
    };
    let mut builder = Builder::new();
    within(wanted.deadline, |budget| projection.apply_within(document, &mut builder, budget))?;
    Ok(JsonbBuf::from_valid(builder.take()))
}

fn project(wanted: &Wanted, document: StoredDocument) -> Result<Document> {
    match wanted.projection {
        None => Ok(Document(Found::Stored(document))),
        Some(_) => Ok(Document(Found::Owned(projected(wanted, document.view())?))),
    }
}

fn print_projected(wanted: &Wanted, document: JsonbRef<'_>, print: Print<'_>, out: &mut Vec<u8>) -> Result<()> {
    match wanted.projection {
        None => print(document, out),
        Some(_) => print(projected(wanted, document)?.view(), out),
    }
    Ok(())
}

fn print_morsel(scan: &Scan, morsel: &Morsel, wanted: &Wanted, print: Print<'_>, out: &mut Vec<u8>) -> Result<u64> {
    let mut documents = 0;
    let _ = scan.run(morsel, &mut BlockBuf::default(), &mut |document, _| {
        documents += 1;
        print_projected(wanted, document, print, out)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(documents)
}

/// Rows in the order of a sort, a round of pieces after the other.
fn print_sorted(scan: &Scan, rows: &mut Ordered, wanted: &Wanted, print: Print<'_>, sink: Sink<'_>) -> Result<()> {
    let mut gone = false;
    while !gone {
        let round = rows.next_rows(scan, ROUND_ROWS)?;
        if round.is_empty() {
            break;
        }
        let pieces: Vec<_> = round.chunks(PIECE_ROWS).collect();
        let piece = |index: usize, out: &mut Vec<u8>| {
            Deadline::check(scan.deadline)?;
            scan.fetched(pieces[index].len() as u64);
            for &at in pieces[index] {
                let document = scan.address(at).document()?;
                print_projected(wanted, document.view(), print, out)?;
            }
            Ok(pieces[index].len() as u64)
        };
        in_order(pieces.len(), &piece, &mut |chunk, documents| {
            let flow = sink(chunk, documents);
            gone |= flow.is_break();
            flow
        })?;
    }
    Ok(())
}

/// A piece and how many documents are in it.
type Made = Result<(Vec<u8>, u64)>;

/// A piece's place: filled by the thread that makes it, awaited in order by the one that hands it on.
#[derive(Default)]
struct Slot {
    made: Mutex<Option<Made>>,
    filled: Condvar,
}

impl Slot {
    fn fill(&self, made: Made) {
        let mut slot = self.made.lock();
        if slot.is_none() {
            *slot = Some(made);
            self.filled.notify_one();
        }
    }

    fn take(&self) -> Made {
        let mut made = self.made.lock();
        loop {
            if let Some(made) = made.take() {
                return made;
            }
            self.filled.wait(&mut made);
        }
    }
}

/// Fills its slot with an error where the thread unwinds, so that nobody waits for ever.
struct FillOnUnwind<'a>(&'a Slot);

impl Drop for FillOnUnwind<'_> {
    fn drop(&mut self) {
        self.0.fill(Err(Error::new(ErrorKind::Internal, "a piece of the answer could not be made")));
    }
}

/// How many pieces are made or wait.
fn ahead() -> usize {
    2 * rayon::current_num_threads() + 1
}

/// Makes pieces `0..count` on all cores, a few ahead, and hands them on in order. The threads of the pool never wait.
fn in_order(count: usize, piece: &(dyn Fn(usize, &mut Vec<u8>) -> Result<u64> + Sync), sink: Sink<'_>) -> Result<()> {
    let ahead = ahead();
    let stop = AtomicBool::new(false);
    let stop = &stop;
    rayon::in_place_scope(|scope| {
        let mut slots = VecDeque::new();
        let mut next = 0;
        loop {
            while next < count && slots.len() < ahead {
                let slot = Arc::new(Slot::default());
                let (index, filling) = (next, Arc::clone(&slot));
                scope.spawn(move |_| {
                    let guard = FillOnUnwind(&filling);
                    if !stop.load(Ordering::Relaxed) {
                        let mut out = Vec::with_capacity(PIECE_BYTES);
                        let made = piece(index, &mut out).map(|documents| (out, documents));
                        guard.0.fill(made);
                    }
                });
                slots.push_back(slot);
                next += 1;
            }
            let Some(slot) = slots.pop_front() else { return Ok(()) };
            let flow = slot.take().map(|(out, documents)| sink(out, documents));
            match flow {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => {
                    stop.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) => {
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
        }
    })
}
