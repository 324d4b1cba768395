//! Asking inside a transaction: the snapshot with the transaction's own documents over it.
//!
//! Takes the same questions as a collection; gives the same answers, as if what the transaction wrote were committed. One
//! document by its `_id` is looked up in what was written and then in the snapshot; all else is a scan over a view.

use std::collections::HashMap;
use std::sync::Arc;

use quarrydb_jsonb::{JsonbBuf, JsonbRef, id_hash};
use quarrydb_query::{Distinct, Filter};

use super::work::{Mode, Work};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::aggregate::Seen;
use crate::exec::cursor::{Cursor, Document};
use crate::exec::find::{self, FindRequest};
use crate::exec::scan::{Ask, Scan, matches};
use crate::exec::{at_hand, view::View};
use crate::mvcc::version::{Address, StoredDocument};
use crate::options::Deadline;

/// A document as the transaction sees it.
pub(super) struct Present {
    pub document: StoredDocument,
    /// Its row in the snapshot; none where the transaction wrote it.
    pub base: Option<Address>,
}

impl Work {
    /// The document with an `_id`.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment; `SnapshotTooOld`.
    pub(super) fn look_up(&mut self, at: usize, hash: u64, id: JsonbRef<'_>) -> Result<Option<Present>> {
        let touched = self.touched(at)?;
        if let Some(slot) = touched.find(hash, id).and_then(|slot| touched.slots.get(slot)) {
            let document = slot.now.clone().map(StoredDocument::Tail);
            return Ok(document.map(|document| Present { document, base: None }));
        }
        let Some(state) = &touched.state else { return Ok(None) };
        let found = state.version().locate(hash, id, self.at())?;
        self.snapshot.check()?;
        Ok(found.map(|(address, document)| Present { document, base: Some(address) }))
    }

    /// The document that a filter with a known `_id` matches.
    pub(super) fn point(
        &mut self,
        at: usize,
        id: &JsonbBuf,
        filter: &Filter,
        deadline: Option<Deadline>,
    ) -> Result<Option<Present>> {
        self.note(at, filter);
        let Some(seen) = self.look_up(at, id_hash(id.view()), id.view())? else { return Ok(None) };
        Ok(matches(filter, seen.document.view(), deadline)?.then_some(seen))
    }

    /// Remembers what was asked, where that must still hold at the end.
    fn note(&mut self, at: usize, filter: &Filter) {
        if self.mode == Mode::Checked {
            self.reads.push((at, filter.clone()));
        }
    }

    /// What a scan with `filter` looks at; none where there is nothing.
    ///
    /// # Errors
    /// Where that takes longer than the committing order may be held: the transaction is run otherwise then.
    fn view_for(&mut self, at: usize, filter: &Filter) -> Result<Option<View>> {
        self.note(at, filter);
        if self.mode == (Mode::Ordered { scans: false })
            && let Some(state) = self.touched(at)?.state.clone()
        {
            let version = state.version();
            let rows: u64 = version.tails().map(|tail| u64::from(tail.rows())).sum();
            let small = version.segments.is_empty() && rows <= u64::from(at_hand::ROWS_MAX);
            if !small && !at_hand::find(&self.core, Some(&state), filter)? {
                self.wants_time = true;
                return Err(Error::new(ErrorKind::Busy, "this takes longer than others may wait"));
            }
        }
        self.view(at)
    }

    /// A scan of what the transaction sees; none where there is nothing.
    ///
    /// # Errors
    /// As [`Scan::new`].
    pub(super) fn scan(&mut self, at: usize, filter: &Filter, deadline: Option<Deadline>) -> Result<Option<Scan>> {
        let Some(view) = self.view_for(at, filter)? else { return Ok(None) };
        let ask = Ask::Filter.within(&self.core.options);
        Scan::over(view, self.snapshot.again(), filter.clone(), deadline, ask).map(Some)
    }

    /// What an aggregation sees of the collections that it names.
    ///
    /// # Errors
    /// As [`Work::scan`].
    pub(super) fn seen<'a>(&mut self, names: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Seen> {
        let mut views = HashMap::new();
        for (db, name) in names {
            let at = self.collection(db, name)?;
            if let Some(view) = self.view_for(at, &Filter::everything())? {
                views.insert((db.to_owned(), name.to_owned()), view);
            }
        }
        Ok(Seen { snapshot: self.snapshot.again(), views })
    }

    /// `Collection::get` inside.
    pub(super) fn get(&mut self, at: usize, id: JsonbRef<'_>) -> Result<Option<Document>> {
        Ok(self.look_up(at, id_hash(id), id)?.map(|seen| Document::stored(seen.document)))
    }

    /// `Collection::find` inside.
    pub(super) fn find(&mut self, at: usize, request: FindRequest) -> Result<Cursor> {
        let core = Arc::clone(&self.core);
        if let Some(id) = request.filter.id_point().map(JsonbRef::to_buf) {
            let found = self.point(at, &id, &request.filter, request.deadline)?;
            return find::of_found(&core, found.map(|seen| seen.document), request);
        }
        match self.view_for(at, &request.filter)? {
            Some(view) => find::find_in(&core, view, self.snapshot.again(), request),
            None => find::of_found(&core, None, request),
        }
    }

    /// `Collection::count` inside.
    pub(super) fn count(
        &mut self,
        at: usize,
        filter: Filter,
        skip: u64,
        limit: Option<u64>,
        deadline: Option<Deadline>,
    ) -> Result<u64> {
        let all = if let Some(id) = filter.id_point().map(JsonbRef::to_buf) {
            u64::from(self.point(at, &id, &filter, deadline)?.is_some())
        } else {
            match self.view_for(at, &filter)? {
                Some(view) => find::count_in(&self.core, view, self.snapshot.again(), filter, deadline)?,
                None => 0,
            }
        };
        Ok(find::between(all, skip, limit))
    }

    /// `Collection::distinct` inside.
    pub(super) fn distinct(
        &mut self,
        at: usize,
        distinct: &mut Distinct,
        filter: Filter,
        deadline: Option<Deadline>,
    ) -> Result<()> {
        match self.view_for(at, &filter)? {
            Some(view) => find::distinct_in(&self.core, view, self.snapshot.again(), distinct, filter, deadline),
            None => Ok(()),
        }
    }
}
