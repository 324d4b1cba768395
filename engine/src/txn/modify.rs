//! Changing and deleting documents by filter: one commit for all that match.
//!
//! Candidates are found on a snapshot, outside the committing order, and their new documents made there. With the order
//! held each candidate is looked at again: one that changed since is found anew by its `_id` and judged anew, so no
//! update is lost and a slow `updateMany` stalls nobody. For an upsert the rows that are newer than the snapshot are
//! judged with the order held too, so that of many upserts of one key one makes the document.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::{JsonbBuf, JsonbRef, id_hash};
use quarrydb_query::update::ApplyContext;
use quarrydb_query::{Filter, Sort, Update};

use super::commit::{Order, freeze_if_full};
use super::group::Pending;
use super::insert::{check_id, duplicate, id_of};
use super::payload::{self, Op, Span};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::exec::scan::Scan;
use crate::exec::sort::sorted;
use crate::ids::{RowId, Seq};
use crate::limits::WRITE_RETRIES_MAX;
use crate::log::Payload;
use crate::mvcc::version::{Address, StoredDocument, Version};
use crate::options::{Deadline, WriteOptions};

/// What an update asks.
#[derive(Debug)]
#[non_exhaustive]
pub struct UpdateRequest {
    /// Which documents.
    pub filter: Filter,
    /// What becomes of them; a replacement too.
    pub update: Update,
    /// All that match, or the first.
    pub many: bool,
    /// Whether to insert a document where none matches.
    pub upsert: bool,
    /// Which is the first.
    pub sort: Option<Sort>,
}

impl UpdateRequest {
    /// `update` for the first document that `filter` matches.
    #[must_use]
    pub fn one(filter: Filter, update: Update) -> Self {
        Self { filter, update, many: false, upsert: false, sort: None }
    }

    /// `update` for all documents that `filter` matches.
    #[must_use]
    pub fn many(filter: Filter, update: Update) -> Self {
        Self { many: true, ..Self::one(filter, update) }
    }
}

/// What a deletion asks.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeleteRequest {
    /// Which documents.
    pub filter: Filter,
    /// All that match, or the first.
    pub many: bool,
}

impl DeleteRequest {
    /// The first document that `filter` matches.
    #[must_use]
    pub fn one(filter: Filter) -> Self {
        Self { filter, many: false }
    }

    /// All documents that `filter` matches.
    #[must_use]
    pub fn many(filter: Filter) -> Self {
        Self { filter, many: true }
    }
}

/// What came of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateOutcome {
    /// Documents that matched.
    pub matched: u64,
    /// Documents that changed.
    pub modified: u64,
    /// The `_id` of the document that was inserted.
    pub upserted_id: Option<JsonbBuf>,
}

/// What came of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Documents that went.
    pub deleted: u64,
}

/// What a write does to one document that matches.
trait Act: Sync {
    /// Its new form; none where nothing changes.
    fn change(&self, document: JsonbRef<'_>) -> Result<Change>;
}

enum Change {
    Nothing,
    To(JsonbBuf),
    Delete,
}

/// A document that matched on the snapshot.
struct Candidate {
    address: Address,
    id: JsonbBuf,
    change: Change,
}

/// A document that matches with the order held.
struct Target {
    address: Address,
    hash: u64,
    change: Change,
    id: JsonbBuf,
    in_tail: Option<RowId>,
}

struct Updating<'a> {
    filter: &'a Filter,
    update: &'a Update,
    context: &'a ApplyContext,
}

impl Act for Updating<'_> {
    fn change(&self, document: JsonbRef<'_>) -> Result<Change> {
        let changed = self.update.apply(document, self.filter, self.context)?;
        Ok(changed.map_or(Change::Nothing, Change::To))
    }
}

struct Deleting;

impl Act for Deleting {
    fn change(&self, _: JsonbRef<'_>) -> Result<Change> {
        Ok(Change::Delete)
    }
}

/// Which documents a write is for.
struct Choice<'a> {
    filter: &'a Filter,
    many: bool,
    sort: Option<&'a Sort>,
    deadline: Option<Deadline>,
}

/// Updates what matches.
///
/// # Errors
/// The filter's and the update's own, with nothing changed; `DuplicateKey` of an upsert; what `Order::begin` says.
pub(crate) fn update(
    core: &Arc<Core>,
    found: Option<Arc<CollectionState>>,
    open: &mut dyn FnMut() -> Result<Arc<CollectionState>>,
    request: &UpdateRequest,
    options: &WriteOptions,
) -> Result<Pending<UpdateOutcome>> {
    core.admit_write()?;
    let context = ApplyContext::at(core.clock.wall_millis().cast_signed());
    let act = Updating { filter: &request.filter, update: &request.update, context: &context };
    let choice =
        Choice { filter: &request.filter, many: request.many, sort: request.sort.as_ref(), deadline: options.deadline };
    let journaled = core.journaled(options);
    let mut collection = match (found, request.upsert) {
        (Some(collection), _) => collection,
        (None, true) => open()?,
        (None, false) => return Ok(Pending::ready(UpdateOutcome::default())),
    };
    loop {
        if collection.is_dropped() {
            if !request.upsert {
                return Ok(Pending::ready(UpdateOutcome::default()));
            }
            collection = open()?;
        }
        let writing = Writing { core, collection: &collection, choice: &choice, act: &act, journaled };
        let upsert = |order: &mut Order| writing.insert_upserted(order, request, &context);
        let done = writing.run(if request.upsert { Some(&upsert) } else { None })?;
        if let Some((outcome, seq)) = done {
            return Ok(Pending::new(outcome, &core.group, seq, journaled));
        }
    }
}

/// Deletes what matches.
///
/// # Errors
/// The filter's own, with nothing changed; what `Order::begin` says.
pub(crate) fn delete(
    core: &Arc<Core>,
    collection: Option<Arc<CollectionState>>,
    request: &DeleteRequest,
    options: &WriteOptions,
) -> Result<Pending<DeleteOutcome>> {
    core.admit_write()?;
    let Some(collection) = collection else { return Ok(Pending::ready(DeleteOutcome::default())) };
    let choice = Choice { filter: &request.filter, many: request.many, sort: None, deadline: options.deadline };
    let journaled = core.journaled(options);
    let writing = Writing { core, collection: &collection, choice: &choice, act: &Deleting, journaled };
    match writing.run(None)? {
        Some((outcome, seq)) => {
            Ok(Pending::new(DeleteOutcome { deleted: outcome.matched }, &core.group, seq, journaled))
        }
        // Dropped meanwhile: there is nothing left to delete.
        None => Ok(Pending::ready(DeleteOutcome::default())),
    }
}

type Upsert<'a> = &'a dyn Fn(&mut Order) -> Result<(UpdateOutcome, Seq)>;

/// One write by filter on its way.
struct Writing<'a> {
    core: &'a Arc<Core>,
    collection: &'a Arc<CollectionState>,
    choice: &'a Choice<'a>,
    act: &'a dyn Act,
    journaled: bool,
}

impl Writing<'_> {
    /// The whole write; none where the collection was dropped meanwhile.
    fn run(&self, upsert: Option<Upsert<'_>>) -> Result<Option<(UpdateOutcome, Seq)>> {
        if let Some(id) = self.choice.filter.id_point() {
            let id = JsonbBuf::from_valid(id.as_bytes().to_vec());
            let mut order = self.core.order.hold();
            if self.collection.is_dropped() {
                return Ok(None);
            }
            let targets: Vec<_> = self.judge(&self.collection.version(), id)?.into_iter().collect();
            return self.commit(&mut order, targets, upsert).map(Some);
        }
        for attempt in 0.. {
            let seen = self.candidates()?;
            let mut order = self.core.order.hold();
            if self.collection.is_dropped() {
                return Ok(None);
            }
            let targets = self.recheck(&seen)?;
            let lost = !seen.candidates.is_empty() && targets.is_empty() && !self.choice.many;
            if lost && attempt < WRITE_RETRIES_MAX {
                continue;
            }
            let targets =
                if targets.is_empty() && (lost || upsert.is_some()) { self.newer_than(&seen, lost)? } else { targets };
            return self.commit(&mut order, targets, upsert).map(Some);
        }
        unreachable!("the loop ends only by returning")
    }

    /// What matches on a snapshot, and what becomes of it.
    fn candidates(&self) -> Result<Seen> {
        let snapshot = self.core.snapshot();
        let version = self.collection.version();
        let scan = Scan::new(version, snapshot, self.choice.filter.clone(), self.choice.deadline);
        let candidate = |document: JsonbRef<'_>, address: Address| -> Result<Candidate> {
            let id = JsonbBuf::from_valid(id_of(document).as_bytes().to_vec());
            Ok(Candidate { address, id, change: self.act.change(document)? })
        };
        let candidates = if self.choice.many {
            scan.collect(|document, at| candidate(document, scan.address(at)))?
        } else {
            let first = match self.choice.sort {
                Some(sort) => sorted(&scan, sort, Some(1))?.first().copied(),
                None => scan.first()?,
            };
            match first {
                None => Vec::new(),
                Some(at) => {
                    let address = scan.address(at);
                    let document = address.document()?;
                    vec![candidate(document.view(), address)?]
                }
            }
        };
        let examined = scan.examined.load(Ordering::Relaxed);
        self.core.counters.documents_examined.fetch_add(examined, Ordering::Relaxed);
        Ok(Seen { candidates, seq: scan.seq(), version: Arc::clone(&scan.version) })
    }

    /// The candidates that still match, with the order held.
    fn recheck(&self, seen: &Seen) -> Result<Vec<Target>> {
        let version = self.collection.version();
        // Addresses hold as long as nothing was sealed away under them.
        let same = Arc::ptr_eq(&version, &seen.version);
        let mut targets = Vec::with_capacity(seen.candidates.len());
        for candidate in &seen.candidates {
            if same && candidate.address.is_live() {
                let hash = id_hash(candidate.id.view());
                let in_tail = version.tail.newest(hash, candidate.id.view()).map(|(row, _)| row);
                targets.push(Target {
                    address: candidate.address.clone(),
                    hash,
                    change: candidate.change.again(),
                    id: candidate.id.clone(),
                    in_tail,
                });
            } else {
                targets.extend(self.judge(&version, candidate.id.clone())?);
            }
        }
        Ok(targets)
    }

    /// The document with this `_id` as it is now, if it matches.
    fn judge(&self, version: &Version, id: JsonbBuf) -> Result<Option<Target>> {
        let hash = id_hash(id.view());
        let current = version.current(hash, id.view())?;
        let Some(address) = current.live else { return Ok(None) };
        let document = address.document()?;
        if !self.choice.filter.matches(document.view())? {
            return Ok(None);
        }
        let change = self.act.change(document.view())?;
        let id = JsonbBuf::from_valid(id_of(document.view()).as_bytes().to_vec());
        Ok(Some(Target { address, hash, change, id, in_tail: current.in_tail }))
    }

    /// The first live document that matches, or with `all` not set only among those newer than what was seen.
    fn newer_than(&self, seen: &Seen, all: bool) -> Result<Vec<Target>> {
        let version = self.collection.version();
        for tail in version.tails() {
            for row in (0..tail.rows()).rev().map(RowId::from_raw) {
                let Some((created, ended)) = tail.life(row) else { continue };
                // Rows stand in the order of their creation.
                if !all && created <= seen.seq {
                    break;
                }
                if ended.is_some() {
                    continue;
                }
                let Some(document) = tail.document(row) else { continue };
                let document = StoredDocument::Tail(document);
                if self.choice.filter.matches(document.view())? {
                    let id = JsonbBuf::from_valid(id_of(document.view()).as_bytes().to_vec());
                    return Ok(self.judge(&version, id)?.into_iter().collect());
                }
            }
        }
        // A segment sealed since holds rows newer than the snapshot too; with `all` any segment counts.
        for sealed in version.segments.iter().filter(|s| all || s.segment.meta().max_seq > seen.seq) {
            for row in (0..sealed.segment.rows()).map(RowId::from_raw) {
                if sealed.deletes.is_dead(row, Seq::MAX) || !all && sealed.segment.seq_of(row)? <= seen.seq {
                    continue;
                }
                let document = sealed.segment.doc(row)?;
                let view = JsonbRef::from_valid(&document);
                if self.choice.filter.matches(view)? {
                    let id = JsonbBuf::from_valid(id_of(view).as_bytes().to_vec());
                    return Ok(self.judge(&version, id)?.into_iter().collect());
                }
            }
        }
        Ok(Vec::new())
    }

    /// Applies what was decided, as one commit.
    fn commit(
        &self,
        order: &mut Order,
        targets: Vec<Target>,
        upsert: Option<Upsert<'_>>,
    ) -> Result<(UpdateOutcome, Seq)> {
        if targets.is_empty()
            && let Some(upsert) = upsert
        {
            return upsert(order);
        }
        let matched = targets.len() as u64;
        let changes: Vec<_> = targets.into_iter().filter(|t| !matches!(t.change, Change::Nothing)).collect();
        let outcome = UpdateOutcome { matched, modified: changes.len() as u64, upserted_id: None };
        if changes.is_empty() {
            // The answer rests on commits that may still wait for the log.
            return Ok((outcome, self.core.watermarks().applied()));
        }
        let (payload, spans, deleted) = encode(self.collection, &changes);
        let commit = order.begin(self.core, payload.bytes().len(), self.journaled)?;
        let seq = commit.seq();
        let version = self.collection.version();
        for (target, span) in changes.iter().zip(&spans) {
            target.address.end(seq);
            if let Some(span) = span {
                version.tail.push(&payload, (span.start, span.len), seq, target.hash, target.in_tail);
            }
        }
        version.tail.touch(seq);
        if deleted > 0 {
            self.collection.count_changed(seq, -(deleted as i64), self.core.watermarks().visible());
        }
        commit.finish(payload);
        freeze_if_full(self.core, self.collection, &version, seq);
        Ok((outcome, seq))
    }

    /// Inserts the document that an update without a match implies.
    fn insert_upserted(
        &self,
        order: &mut Order,
        request: &UpdateRequest,
        context: &ApplyContext,
    ) -> Result<(UpdateOutcome, Seq)> {
        let core = self.core;
        let mut make_id = || core.ids.next(core.clock.wall_millis());
        let document = request.update.upsert(&request.filter, context, &mut make_id)?;
        let id = id_of(document.view());
        check_id(id)?;
        let hash = id_hash(id);
        let version = self.collection.version();
        let current = version.current(hash, id)?;
        if current.live.is_some() {
            return Err(duplicate(self.collection, id));
        }
        let bytes = document.view().as_bytes().to_vec();
        let span = Span::new(0, bytes.len());
        let op = Op::Insert { collection: self.collection.id, documents: span, count: 1 };
        let payload = Payload::new(payload::finish(bytes, &[op]));
        let commit = order.begin(core, payload.bytes().len(), self.journaled)?;
        let seq = commit.seq();
        version.tail.push(&payload, (span.start, span.len), seq, hash, current.in_tail);
        version.tail.touch(seq);
        self.collection.count_changed(seq, 1, core.watermarks().visible());
        commit.finish(payload);
        freeze_if_full(core, self.collection, &version, seq);
        let upserted_id = Some(JsonbBuf::from_valid(id.as_bytes().to_vec()));
        Ok((UpdateOutcome { matched: 0, modified: 0, upserted_id }, seq))
    }
}

/// What was found on a snapshot.
struct Seen {
    candidates: Vec<Candidate>,
    seq: Seq,
    version: Arc<Version>,
}

impl Change {
    fn again(&self) -> Self {
        match self {
            Self::Nothing => Self::Nothing,
            Self::To(document) => Self::To(document.clone()),
            Self::Delete => Self::Delete,
        }
    }
}

/// The record of `changes`, where each new document lies in it, and how many go.
fn encode(collection: &CollectionState, changes: &[Target]) -> (Payload, Vec<Option<Span>>, usize) {
    let mut bytes = Vec::new();
    let mut ops = Vec::new();
    let mut spans = Vec::with_capacity(changes.len());
    let mut deleted = 0;
    let ids_from = bytes.len();
    for target in changes.iter().filter(|t| matches!(t.change, Change::Delete)) {
        bytes.extend_from_slice(target.id.view().as_bytes());
        deleted += 1;
    }
    if deleted > 0 {
        let ids = Span::new(ids_from, bytes.len());
        ops.push(Op::Delete { collection: collection.id, ids, count: deleted as u32 });
    }
    for target in changes {
        let Change::To(document) = &target.change else {
            spans.push(None);
            continue;
        };
        let from = bytes.len();
        bytes.extend_from_slice(document.view().as_bytes());
        let document = Span::new(from, bytes.len());
        ops.push(Op::Update { collection: collection.id, document, change: Span::new(0, 0) });
        spans.push(Some(document));
    }
    (Payload::new(payload::finish(bytes, &ops)), spans, deleted)
}
