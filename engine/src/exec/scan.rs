//! All rows of a collection that a snapshot sees and a filter matches, in morsels that any thread may take.
//!
//! Takes a version, a `Seq` and a filter; gives the documents that match, with where they lie. Row order: segments from
//! the oldest, tails from the oldest, each in the order of its rows. Which rows are worth a look is found from columns
//! (`select.rs`); of those the filter is asked only where columns leave it open. Blocks are unpacked into the caller's
//! buffer and not cached: a scan must not push out what point reads need.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quarrydb_index::RowSet;
use quarrydb_jsonb::JsonbRef;
use quarrydb_query::expr::Budget;
use quarrydb_query::{Filter, QueryError, Sort};
use rayon::prelude::*;
use roaring::RoaringBitmap;

use super::by_index::{ByIndex, few_of_tail};
use super::look::Look;
use super::parts::{Chunking, FewOfTail, Part, PartColumns, Seen, Unseen, add_tail};
use super::select::Selection;
use super::sort_columns;
use super::view::View;
use crate::catalog::CollectionState;
use crate::columns::Source;
use crate::error::Result;
use crate::ids::{RowId, Seq};
use crate::indexes::Index;
use crate::mvcc::Snapshot;
use crate::mvcc::version::{Address, Version};
use crate::options::{Deadline, Options};
use crate::plan::{Prepared, Rows, Stage};
use crate::segment::BlockBuf;
use crate::tail::Tail;

/// Row blocks in one morsel where all rows are wanted: about 256 KiB of documents.
const MORSEL_BLOCKS: u32 = 32;
/// Rows in one morsel where some are.
const MORSEL_ROWS: u32 = 1024;
/// Rows in the first morsel, so that an answer begins early.
const FIRST_ROWS: u32 = 32;
/// Rows of all segments and tails up to which they are looked through in place.
pub(super) const CHEAP_ROWS: u64 = 8192;

/// What columns are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Nothing: every document is looked at.
    Nothing,
    /// Which rows a filter matches.
    Filter,
    /// The same, of what is at hand already.
    AtHand,
    /// The values of rows too.
    Values,
}

impl Ask {
    /// What may be asked under a database's options.
    pub(crate) fn within(self, options: &Options) -> Self {
        if options.columns { self } else { Self::Nothing }
    }
}

/// A scan of one collection as of one snapshot.
#[derive(Debug)]
pub(crate) struct Scan {
    pub version: Arc<Version>,
    pub snapshot: Snapshot,
    pub filter: Filter,
    pub deadline: Option<Deadline>,
    pub(super) prepared: Prepared,
    /// Declared indexes that serve.
    pub(super) indexes: Vec<Arc<Index>>,
    pub(super) parts: Vec<Part>,
    /// Documents looked at so far.
    pub examined: AtomicU64,
    /// Whether some were looked at for their place in a sort.
    sorted_by_documents: AtomicBool,
    /// Rows that are not seen, by source.
    hidden: HashMap<u32, RoaringBitmap>,
}

/// A piece of a scan: rows of a part, counted in the part.
#[derive(Clone, Debug)]
pub(crate) struct Morsel {
    part: usize,
    rows: Range<u32>,
}

impl Morsel {
    /// Which part it is of.
    pub(super) fn part(&self) -> usize {
        self.part
    }
}

/// Where a row of a scan lies, counted in the scan's version; ordered as rows are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowAt {
    /// Segments first, then tails, from the oldest.
    pub(super) source: u32,
    pub(super) row: RowId,
}

impl RowAt {
    /// Bytes that order as rows do.
    pub(super) fn place(self) -> [u8; 8] {
        (u64::from(self.source) << 32 | u64::from(self.row.get())).to_be_bytes()
    }

    /// A key that orders rows from the last to the first.
    pub(super) fn backwards(self) -> [u8; 8] {
        (!u64::from_be_bytes(self.place())).to_be_bytes()
    }

    /// The row of such bytes; none where they are no eight.
    pub(super) fn from_place(place: &[u8]) -> Option<Self> {
        let place = u64::from_be_bytes(place.try_into().ok()?);
        Some(Self { source: (place >> 32) as u32, row: RowId::from_raw(place as u32) })
    }
}

/// Whether a document matches. The deadline holds inside one document too: a filter may look at millions of values.
///
/// # Errors
/// The filter's own, `TimedOut`.
pub(crate) fn matches(filter: &Filter, document: JsonbRef<'_>, deadline: Option<Deadline>) -> Result<bool> {
    within(deadline, |budget| filter.matches_within(document, budget))
}

/// What the language does with one document, with the deadline holding inside it.
///
/// # Errors
/// Its own, `TimedOut`.
pub(crate) fn within<T>(
    deadline: Option<Deadline>,
    work: impl FnOnce(Budget<'_>) -> std::result::Result<T, QueryError>,
) -> Result<T> {
    let in_time = || Deadline::check(deadline).is_ok();
    let budget = Budget { go_on: Some(&in_time), ..Budget::default() };
    work(budget).or_else(|error| {
        Deadline::check(deadline)?;
        Err(error.into())
    })
}

/// What is called with each row of a morsel.
pub(super) type Each<'e> = &'e mut dyn FnMut(JsonbRef<'_>, RowAt) -> Result<ControlFlow<()>>;

impl Scan {
    /// A scan of a version.
    ///
    /// # Errors
    /// `Internal` where columns of a tail cannot be made.
    pub(crate) fn new(
        collection: &CollectionState,
        snapshot: Snapshot,
        filter: Filter,
        deadline: Option<Deadline>,
        ask: Ask,
    ) -> Result<Self> {
        // The snapshot first, the version after it (see `mvcc`).
        Self::over(View::of(collection), snapshot, filter, deadline, ask)
    }

    /// A scan of a view, whose version is not older than the snapshot.
    ///
    /// # Errors
    /// As [`Scan::new`].
    pub(crate) fn over(
        View { version, indexes: declared, hidden, .. }: View,
        snapshot: Snapshot,
        filter: Filter,
        deadline: Option<Deadline>,
        ask: Ask,
    ) -> Result<Self> {
        let prepared = Prepared::new(&filter);
        let mut parts = Vec::new();
        let chunks = match ask {
            _ if prepared.is_unknown() => Chunking::None,
            Ask::Values => Chunking::Made,
            Ask::Filter if !filter.is_everything() => Chunking::Made,
            Ask::AtHand => Chunking::AsTheyAre,
            Ask::Filter | Ask::Nothing => Chunking::None,
        };
        let serve = ask == Ask::Values || ask != Ask::Nothing && !filter.is_everything();
        let indexes: Vec<_> = declared.iter().filter(|index| serve && index.is_ready()).map(Arc::clone).collect();
        for (source, sealed) in (0..).zip(&version.segments) {
            let of = if ask == Ask::Nothing { PartColumns::None } else { PartColumns::Segment(Arc::clone(sealed)) };
            parts.push(Part::new(source, 0..sealed.segment.rows(), of, Unseen::OfSegment));
        }
        let few: FewOfTail<'_> = &|tail, rows| match &indexes[..] {
            _ if filter.is_everything() => Ok(None),
            [] => Ok(None),
            indexes => few_of_tail(indexes, tail, rows, &filter),
        };
        let first_tail = parts.len() as u32;
        for (index, tail) in (0..).zip(version.tails().collect::<Vec<_>>().into_iter().rev()) {
            let source = first_tail + index;
            let seen = Seen { at: snapshot.seq(), hidden: hidden.get(&source) };
            add_tail(&mut parts, source, tail, seen, chunks, few)?;
        }
        Ok(Self {
            version,
            snapshot,
            filter,
            deadline,
            prepared,
            indexes,
            parts,
            examined: AtomicU64::new(0),
            sorted_by_documents: AtomicBool::new(false),
            hidden,
        })
    }

    /// Notes that documents are looked at for their place in a sort.
    pub(super) fn sorts_by_documents(&self) {
        self.sorted_by_documents.store(true, Ordering::Relaxed);
    }

    /// Counts documents that are read to be given in the order of a sort, if they were not looked at for it.
    pub(super) fn fetched(&self, documents: u64) {
        if !self.sorted_by_documents.load(Ordering::Relaxed) {
            self.examined.fetch_add(documents, Ordering::Relaxed);
        }
    }

    pub(crate) fn seq(&self) -> Seq {
        self.snapshot.seq()
    }

    pub(super) fn tail(&self, source: u32) -> &Arc<Tail> {
        let index = source as usize - self.version.segments.len();
        self.version.frozen.get(index).map_or(&self.version.tail, |frozen| &frozen.tail)
    }

    /// All rows of all parts, seen or not.
    pub(crate) fn rows(&self) -> u64 {
        self.parts.iter().map(|part| u64::from(part.rows)).sum()
    }

    pub(super) fn unseen(&self, part: &Part) -> Result<Option<RoaringBitmap>> {
        match (&part.unseen, self.version.segments.get(part.source as usize)) {
            (Unseen::Known(unseen), _) => Ok(unseen.clone()),
            (Unseen::OfSegment, Some(sealed)) => {
                let mut unseen = sealed.unseen(self.seq())?;
                if let Some(hidden) = self.hidden.get(&part.source) {
                    *unseen.get_or_insert_default() |= hidden;
                }
                // Since when rows are dead is kept for snapshots that are open alone.
                self.snapshot.check()?;
                Ok(unseen)
            }
            (Unseen::OfSegment, None) => Ok(None),
        }
    }

    /// The rows of a part that are worth a look, found when first asked for.
    pub(super) fn selection<'s>(&self, part: &'s Part) -> Result<&'s Selection> {
        if let Some(selection) = part.selection.get() {
            return Ok(selection);
        }
        let found = self.select(part, self.unseen(part)?)?;
        Ok(part.selection.get_or_init(|| found))
    }

    /// Finds the selections of all parts, on all cores where that pays.
    fn select_all(&self) -> Result<()> {
        let mut left = Vec::with_capacity(self.parts.len());
        for part in self.parts.iter().filter(|part| part.selection.get().is_none()) {
            // A look into an index takes less than waking another thread.
            match self.by_index(part)?.filter(ByIndex::is_few) {
                Some(_) => drop(self.selection(part)?),
                None => left.push(part),
            }
        }
        let rows: u64 = left.iter().map(|part| u64::from(part.rows)).sum();
        if rows <= CHEAP_ROWS || left.len() <= 1 || self.prepared.is_unknown() {
            return left.into_iter().try_for_each(|part| self.selection(part).map(drop));
        }
        left.into_par_iter().try_for_each(|part| self.selection(part).map(drop))
    }

    /// How many rows are worth a look, over all parts.
    ///
    /// # Errors
    /// As [`Scan::morsels`].
    pub(super) fn select_all_rows(&self) -> Result<u64> {
        self.select_all()?;
        self.parts.iter().map(|part| self.selection(part).map(Selection::len)).sum()
    }

    /// The pieces of the scan in row order.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment, `TimedOut`.
    pub(crate) fn morsels(&self) -> Result<Vec<Morsel>> {
        self.select_all()?;
        let mut morsels = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            match &self.selection(part)?.rows {
                Rows::None => {}
                Rows::Some(set) => {
                    let mut at = 0;
                    let mut step = if morsels.is_empty() { FIRST_ROWS } else { MORSEL_ROWS };
                    while let Some(from) = set.bitmap().select(at) {
                        at = at.saturating_add(step);
                        step = MORSEL_ROWS;
                        let to = set.bitmap().select(at).unwrap_or(part.rows);
                        morsels.push(Morsel { part: index, rows: from..to });
                    }
                }
                Rows::All => self.morsels_of_all(index, part, &mut morsels)?,
            }
        }
        Ok(morsels)
    }

    fn morsels_of_all(&self, index: usize, part: &Part, morsels: &mut Vec<Morsel>) -> Result<()> {
        let Some(sealed) = self.version.segments.get(part.source as usize) else {
            let mut from = 0;
            while from < part.rows {
                let step = if morsels.is_empty() { FIRST_ROWS } else { MORSEL_ROWS };
                let to = part.rows.min(from.saturating_add(step));
                morsels.push(Morsel { part: index, rows: from..to });
                from = to;
            }
            return Ok(());
        };
        let count = sealed.segment.block_count()?;
        let mut block = 0;
        while block < count {
            let last = count.min(block + if morsels.is_empty() { 1 } else { MORSEL_BLOCKS }) - 1;
            let rows = sealed.segment.block_rows(block)?.start..sealed.segment.block_rows(last)?.end;
            morsels.push(Morsel { part: index, rows });
            block = last + 1;
        }
        Ok(())
    }

    /// The matching rows of a morsel, in order, until `each` breaks.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment, the filter's own, `TimedOut`.
    pub(crate) fn run(&self, morsel: &Morsel, buffer: &mut BlockBuf, each: Each<'_>) -> Result<ControlFlow<()>> {
        Deadline::check(self.deadline)?;
        self.snapshot.check()?;
        let Some(part) = self.parts.get(morsel.part) else { return Ok(ControlFlow::Continue(())) };
        let selection = self.selection(part)?;
        let mut look = Look { scan: self, part, selection, exact: selection.is_exact(), examined: 0 };
        let flow = match self.version.segments.get(part.source as usize) {
            Some(sealed) => look.segment(sealed, &morsel.rows, buffer, each),
            None => look.tail(self.tail(part.source), &morsel.rows, each),
        };
        self.examined.fetch_add(look.examined, Ordering::Relaxed);
        flow
    }

    /// Some rows of a part as a morsel; those beyond its last are left out.
    pub(super) fn morsel_of(&self, part: usize, rows: Range<u32>) -> Morsel {
        let of = self.parts.get(part).map_or(0, |part| part.rows);
        Morsel { part, rows: rows.start.min(of)..rows.end.min(of) }
    }

    /// How many parts there are, in row order.
    pub(super) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Asks the columns of a part, if it has some, about the rows of it that are worth a look.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, and those of what is asked.
    pub(super) fn ask<T>(
        &self,
        part: usize,
        asks: impl FnOnce(Option<Source<'_>>, &Selection) -> Result<T>,
    ) -> Result<T> {
        let Some(part) = self.parts.get(part) else {
            return Err(crate::Error::new(crate::ErrorKind::Internal, format!("a scan has no part {part}")));
        };
        let selection = self.selection(part)?;
        part.columns.ask(|source| asks(source, selection))
    }

    /// The rows of a morsel where columns decided of all of them; none where documents must be asked.
    fn sure_rows(&self, morsel: &Morsel) -> Result<Option<(&Part, RowSet)>> {
        Deadline::check(self.deadline)?;
        let Some(part) = self.parts.get(morsel.part) else { return Ok(None) };
        let selection = self.selection(part)?;
        if !selection.is_exact() {
            return Ok(None);
        }
        let mut rows = RowSet::range(morsel.rows.clone());
        match &selection.rows {
            Rows::None => rows = RowSet::new(),
            Rows::All => {}
            Rows::Some(set) => rows.keep(set),
        }
        Ok(Some((part, rows)))
    }

    /// Calls `give` with the `_id` and the place of each matching row of a morsel, from columns; false, with nothing given,
    /// where documents must be looked at.
    ///
    /// # Errors
    /// As [`Scan::run`], and those of `give`.
    pub(crate) fn ids_of(
        &self,
        morsel: &Morsel,
        give: &mut dyn FnMut(JsonbRef<'_>, RowAt) -> Result<()>,
    ) -> Result<bool> {
        let Some((part, rows)) = self.sure_rows(morsel)? else { return Ok(false) };
        part.columns.ask(|source| match source {
            None => Ok(false),
            Some(source) => sort_columns::ids(source, &rows, &mut |row, id| {
                give(id, RowAt { source: part.source, row: RowId::from_raw(part.first + row) })
            }),
        })
    }

    /// Calls `give` with the sort key and the place of each matching row of a morsel, from columns; false, with nothing
    /// given, where documents must be looked at.
    ///
    /// # Errors
    /// As [`Scan::run`], and those of `give`.
    pub(super) fn keys_of(
        &self,
        morsel: &Morsel,
        sort: &Sort,
        give: &mut dyn FnMut(&[u8], RowAt) -> Result<()>,
    ) -> Result<bool> {
        let Some((part, rows)) = self.sure_rows(morsel)? else { return Ok(false) };
        part.columns.ask(|source| match source {
            None => Ok(false),
            Some(source) => sort_columns::keys(source, sort, &rows, &mut |row, key| {
                give(key, RowAt { source: part.source, row: RowId::from_raw(part.first + row) })
            }),
        })
    }

    /// Whether columns alone decide of every row.
    ///
    /// # Errors
    /// As [`Scan::morsels`].
    pub(crate) fn is_exact(&self) -> Result<bool> {
        self.parts.iter().try_fold(true, |exact, part| Ok(exact && self.selection(part)?.is_exact()))
    }

    /// Segments of which columns say that no row matches.
    ///
    /// # Errors
    /// As [`Scan::morsels`].
    pub(crate) fn segments_skipped(&self) -> Result<u64> {
        let mut skipped = 0;
        for part in self.parts.iter().filter(|part| (part.source as usize) < self.version.segments.len()) {
            skipped += u64::from(self.selection(part)?.rows.is_none());
        }
        Ok(skipped)
    }

    /// The stages in which columns find the rows, as the first part that has some answers; none where none has.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn describe(&self) -> Result<Option<Stage>> {
        if self.filter.is_everything() {
            return Ok(None);
        }
        for part in &self.parts {
            if let Some(found) = self.by_index(part)?.filter(ByIndex::is_enough) {
                return Ok(Some(found.describe()));
            }
            let described =
                part.columns.ask(|source| source.map_or(Ok(None), |source| self.prepared.describe(source)))?;
            if let Some(mut stage) = described {
                stage.name_indexes(&|path| {
                    let of = |index: &&Arc<Index>| {
                        index.definition.fields.first().is_some_and(|field| field.path.as_str() == path)
                    };
                    self.indexes.iter().find(of).map(|index| index.definition.name().to_owned())
                });
                return Ok(Some(stage));
            }
        }
        Ok(None)
    }

    /// What `look` finds in each of `morsels`, in row order, looked for in parallel.
    ///
    /// # Errors
    /// Those of `look`.
    pub(crate) fn collect_parts<T: Send>(
        &self,
        morsels: &[Morsel],
        look: impl Fn(&Morsel, &mut Vec<T>) -> Result<()> + Sync,
    ) -> Result<Vec<T>> {
        let run = |morsel: &Morsel| -> Result<Vec<T>> {
            let mut found = Vec::new();
            look(morsel, &mut found)?;
            Ok(found)
        };
        if let [only] = morsels {
            return run(only);
        }
        let parts = morsels.par_iter().map(run).collect::<Result<Vec<_>>>()?;
        Ok(parts.into_iter().flatten().collect())
    }

    /// The first matching row in row order, with its document.
    ///
    /// # Errors
    /// As [`Scan::run`].
    pub(crate) fn first(&self) -> Result<Option<RowAt>> {
        let mut found = None;
        let mut buffer = BlockBuf::default();
        for morsel in self.morsels()? {
            let flow = self.run(&morsel, &mut buffer, &mut |_, at| {
                found = Some(at);
                Ok(ControlFlow::Break(()))
            })?;
            if flow.is_break() {
                break;
            }
        }
        Ok(found)
    }

    /// The address of a row of this scan.
    pub(crate) fn address(&self, at: RowAt) -> Address {
        match self.version.segments.get(at.source as usize) {
            Some(sealed) => Address::Segment(Arc::clone(sealed), at.row),
            None => Address::Tail(Arc::clone(self.tail(at.source)), at.row),
        }
    }
}
