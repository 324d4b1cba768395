//! Writing inside a transaction: the same requests as outside, whose documents are put into what it has done so far.
//!
//! Takes batches and requests; gives the same outcomes. Nothing is applied here, and nothing is seen by others.

use std::ops::ControlFlow;
use std::sync::Arc;

use quarrydb_jsonb::{JsonbBuf, JsonbRef, id_hash};
use quarrydb_query::update::ApplyContext;

use super::insert::{InsertOutcome, WriteFailure, check_id, duplicate_in, id_of, refused};
use super::modify::{DeleteRequest, Modified, UpdateOutcome, UpdateRequest};
use super::payload::Span;
use super::work::{Put, Work, document};
use super::writing::{Act, Change, Choice, Deleting, Done, Updating};
use crate::batch::{Incoming, InsertBatch};
use crate::budget::Meter;
use crate::error::{Error, Result};
use crate::exec::cursor::Document;
use crate::exec::sort;
use crate::log::Payload;
use crate::mvcc::version::Address;
use crate::options::WriteOptions;
use crate::segment::BlockBuf;
use crate::tail::TailDocument;

/// A document that a write is for.
struct Found {
    id: JsonbBuf,
    base: Option<Address>,
    change: Change,
}

impl Work {
    /// Inserts a batch; the first document that cannot be stored ends the transaction, and is told in the outcome.
    ///
    /// # Errors
    /// `Conflict`; the bounds of a transaction; `Corrupt` and `Io` from a segment.
    pub(super) fn insert(&mut self, at: usize, batch: InsertBatch) -> Result<InsertOutcome> {
        let (bytes, documents) = batch.finish();
        let payload = Payload::new(bytes);
        let mut spans = Vec::with_capacity(documents.len());
        for (index, incoming) in documents.into_iter().enumerate() {
            let failure = match incoming {
                Incoming::Bad(error) => Some(refused(error)),
                Incoming::Document { range, made_id } => {
                    let span = Span::new(range.start, range.end);
                    spans.push((index as u32, span));
                    self.insert_one(at, TailDocument::of(&payload, (span.start, span.len)), made_id)?
                }
            };
            if let Some(error) = failure {
                self.failed = true;
                let errors = vec![WriteFailure { index, error }];
                return Ok(InsertOutcome { payload: None, documents: Vec::new(), inserted: 0, errors });
            }
        }
        let inserted = spans.len() as u64;
        Ok(InsertOutcome { payload: Some(payload), documents: spans, inserted, errors: Vec::new() })
    }

    /// Inserts one document; what is wrong with it, if something is.
    fn insert_one(&mut self, at: usize, now: TailDocument, made_id: bool) -> Result<Option<Error>> {
        let id = id_of(now.view());
        if let Err(error) = check_id(id) {
            return Ok(Some(error));
        }
        let hash = id_hash(id);
        if !made_id && self.look_up(at, hash, id)?.is_some() {
            let touched = self.touched(at)?;
            return Ok(Some(duplicate_in((&touched.db, &touched.name), id)));
        }
        let id = id.to_buf();
        match self.put(at, vec![Put { hash, id, base: None, now: Some(now), made_id, replaced: true }]) {
            Err(error) if error.kind() == crate::ErrorKind::DuplicateKey => Ok(Some(error)),
            put => put.map(|()| None),
        }
    }

    /// Updates what a request asks for.
    ///
    /// # Errors
    /// The update's own; `Conflict`; `DuplicateKey`; the bounds of a transaction.
    pub(super) fn update(
        &mut self,
        at: usize,
        request: &UpdateRequest,
        options: &WriteOptions,
        keep: bool,
    ) -> Result<Done> {
        let context = ApplyContext::at(self.core.clock.wall_millis().cast_signed());
        let (filter, deadline) = (&request.filter, options.deadline);
        let act = Updating { filter, update: &request.update, context: &context, deadline, watched: false };
        let choice = Choice { filter, many: request.many, sort: request.sort.as_ref(), deadline, keep };
        let done = self.modify(at, &choice, &act)?;
        if done.outcome.matched > 0 || !request.upsert {
            return Ok(done);
        }
        let core = Arc::clone(&self.core);
        let mut make_id = || core.ids.next(core.clock.wall_millis());
        let new = request.update.upsert(filter, &context, &mut make_id)?;
        if let Some(error) = self.insert_one(at, document(&new), false)? {
            return Err(error);
        }
        let outcome = UpdateOutcome { upserted_id: Some(id_of(new.view()).to_buf()), ..UpdateOutcome::default() };
        let after = keep.then(|| Document::owned(new));
        Ok(Done { outcome, kept: Modified { before: None, after } })
    }

    /// Deletes what a request asks for; gives it with `keep`.
    ///
    /// # Errors
    /// The filter's own; `Conflict`; the bounds of a transaction.
    pub(super) fn delete(
        &mut self,
        at: usize,
        request: &DeleteRequest,
        options: &WriteOptions,
        keep: bool,
    ) -> Result<Done> {
        let choice = Choice {
            filter: &request.filter,
            many: request.many,
            sort: request.sort.as_ref(),
            deadline: options.deadline,
            keep,
        };
        self.modify(at, &choice, &Deleting)
    }

    fn modify(&mut self, at: usize, choice: &Choice<'_>, act: &dyn Act) -> Result<Done> {
        let meter = Meter::new(&self.core.queries);
        let mut kept = Modified::default();
        let found = match choice.filter.id_point().map(JsonbRef::to_buf) {
            Some(id) => match self.point(at, &id, choice.filter, choice.deadline)? {
                None => Vec::new(),
                Some(seen) => {
                    let change = act.change(seen.document.view())?;
                    let id = id_of(seen.document.view()).to_buf();
                    if choice.keep {
                        kept = modified(Document::stored(seen.document), &change);
                    }
                    vec![Found { id, base: seen.base, change }]
                }
            },
            None => self.candidates(at, choice, act, &meter, &mut kept)?,
        };
        let matched = found.len() as u64;
        let mut puts = Vec::with_capacity(found.len());
        for Found { id, base, change } in found {
            let now = match change {
                Change::Nothing => continue,
                Change::To(new, _) => Some(document(&new)),
                Change::Delete => None,
            };
            puts.push(Put { hash: id_hash(id.view()), id, base, now, made_id: false, replaced: act.is_replacement() });
        }
        let outcome = UpdateOutcome { matched, modified: puts.len() as u64, upserted_id: None };
        self.put(at, puts)?;
        Ok(Done { outcome, kept })
    }

    /// What a scan finds for a write.
    fn candidates(
        &mut self,
        at: usize,
        choice: &Choice<'_>,
        act: &dyn Act,
        meter: &Meter,
        kept: &mut Modified,
    ) -> Result<Vec<Found>> {
        let Some(scan) = self.scan(at, choice.filter, choice.deadline)? else { return Ok(Vec::new()) };
        let touched = self.touched(at)?;
        let found = |document: JsonbRef<'_>, address: Address| -> Result<Found> {
            let id = id_of(document).to_buf();
            let change = act.change(document)?;
            let new = if let Change::To(new, _) = &change { new.view().as_bytes().len() } else { 0 };
            meter.add(new + id.view().as_bytes().len())?;
            let base = if touched.is_own(&address) { None } else { Some(address) };
            Ok(Found { id, base, change })
        };
        if choice.many {
            return scan.collect_parts(&scan.morsels()?, |morsel, all| {
                let _ = scan.run(morsel, &mut BlockBuf::default(), &mut |document, at| {
                    all.push(found(document, scan.address(at))?);
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(())
            });
        }
        let first = match choice.sort {
            Some(sort) => sort::sorted(&self.core, &scan, sort, sort::Range::FIRST)?.next(&scan)?,
            None => scan.first()?,
        };
        let Some(first) = first else { return Ok(Vec::new()) };
        let address = scan.address(first);
        let stored = address.document()?;
        let found = found(stored.view(), address)?;
        if choice.keep {
            *kept = modified(Document::stored(stored), &found.change);
        }
        Ok(vec![found])
    }
}

/// A document as it was and as it is.
fn modified(before: Document, change: &Change) -> Modified {
    let after = match change {
        Change::Nothing => Some(before.clone()),
        Change::To(new, _) => Some(Document::owned(new.clone())),
        Change::Delete => None,
    };
    Modified { before: Some(before), after }
}
