//! How a write by filter finds its documents and commits.
//!
//! Candidates are found on a snapshot, outside the committing order, and their new documents made there. With the order
//! held each candidate is looked at again: one that changed since is found anew by its `_id` and judged anew, so no
//! update is lost and a slow `updateMany` stalls nobody. For an upsert the rows that are newer than the snapshot are
//! judged with the order held too, so that of many upserts of one key one makes the document.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use quarrydb_jsonb::{JsonbBuf, JsonbRef, id_hash};
use quarrydb_query::update::ApplyContext;
use quarrydb_query::{Filter, Sort, Update};

use super::commit::{Order, freeze_if_full, too_large};
use super::insert::{check_id, duplicate, id_of};
use super::modify::{Modified, UpdateOutcome, UpdateRequest};
use super::payload::{self, Op, Span};
use super::unique::Uniqueness;
use crate::budget::Meter;
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::exec::cursor::Document;
use crate::exec::scan::{Ask, Scan, matches, within};
use crate::exec::sort;
use crate::ids::{RowId, Seq};
use crate::limits::{COMMIT_BYTES_MAX, DEADLINE_CHECK_ROWS, WRITE_RETRIES_MAX};
use crate::log::Payload;
use crate::mvcc::version::{Address, StoredDocument, Version};
use crate::options::Deadline;
use crate::segment::BlockBuf;

/// What a write does to one document that matches.
pub(super) trait Act: Sync {
    /// Its new form; none where nothing changes.
    fn change(&self, document: JsonbRef<'_>) -> Result<Change>;

    /// Whether it puts whole new documents in their place.
    fn is_replacement(&self) -> bool {
        false
    }

    /// Whether its changes say what changed, where there is something to say.
    fn is_told(&self) -> bool {
        true
    }

    /// What changed in a document, for change streams; none where it was replaced.
    fn describe(&self, _before: JsonbRef<'_>, _after: JsonbRef<'_>) -> Option<JsonbBuf> {
        None
    }

    /// Whether every document goes, whatever is in it.
    fn deletes(&self) -> bool {
        false
    }
}

pub(super) enum Change {
    Nothing,
    /// The new document, and what changed in it where change streams are told.
    To(JsonbBuf, Option<JsonbBuf>),
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

/// Makes of each document what an update says.
pub(super) struct Updating<'a> {
    pub filter: &'a Filter,
    pub update: &'a Update,
    pub context: &'a ApplyContext,
    pub deadline: Option<Deadline>,
    /// Whether change streams are told what changed.
    pub watched: bool,
}

impl Act for Updating<'_> {
    fn change(&self, document: JsonbRef<'_>) -> Result<Change> {
        let changed =
            within(self.deadline, |budget| self.update.apply_within(document, self.filter, self.context, budget))?;
        Ok(changed.map_or(Change::Nothing, |new| {
            let told = if self.watched { self.update.describe(document, new.view()) } else { None };
            Change::To(new, told)
        }))
    }

    fn is_replacement(&self) -> bool {
        self.update.is_replacement()
    }

    fn is_told(&self) -> bool {
        self.watched || self.update.is_replacement()
    }

    fn describe(&self, before: JsonbRef<'_>, after: JsonbRef<'_>) -> Option<JsonbBuf> {
        self.update.describe(before, after)
    }
}

/// Lets each document go.
pub(super) struct Deleting;

impl Act for Deleting {
    fn change(&self, _: JsonbRef<'_>) -> Result<Change> {
        Ok(Change::Delete)
    }

    fn deletes(&self) -> bool {
        true
    }
}

/// Which documents a write is for.
pub(super) struct Choice<'a> {
    pub filter: &'a Filter,
    pub many: bool,
    pub sort: Option<&'a Sort>,
    pub deadline: Option<Deadline>,
    /// Whether the document is asked for too.
    pub keep: bool,
}

/// What came of a write.
#[derive(Debug, Default)]
pub(super) struct Done {
    pub outcome: UpdateOutcome,
    pub kept: Modified,
}

type Upsert<'a> = &'a dyn Fn(&mut Order) -> Result<(Done, Seq)>;

/// One write by filter on its way.
pub(super) struct Writing<'a> {
    pub core: &'a Arc<Core>,
    pub collection: &'a Arc<CollectionState>,
    pub choice: &'a Choice<'a>,
    pub act: &'a dyn Act,
    pub journaled: bool,
}

impl Writing<'_> {
    /// The whole write; none where the collection was dropped meanwhile.
    pub(super) fn run(&self, upsert: Option<Upsert<'_>>) -> Result<Option<(Done, Seq)>> {
        if let Some(id) = self.choice.filter.id_point() {
            let id = JsonbBuf::from_valid(id.as_bytes().to_vec());
            let mut order = self.core.order.hold();
            if self.collection.is_dropped() {
                return Ok(None);
            }
            let targets: Vec<_> = self.judge(&self.collection.version(), id)?.into_iter().collect();
            return self.commit(&mut order, targets, upsert).map(Some);
        }
        let mut attempt = 0;
        loop {
            let seen = self.candidates()?;
            let mut order = self.core.order.hold();
            if self.collection.is_dropped() {
                return Ok(None);
            }
            let Seen { candidates, seq, version, meter: _held } = seen;
            let any = !candidates.is_empty();
            let targets = self.recheck(candidates, &version)?;
            let lost = any && targets.is_empty() && !self.choice.many;
            if lost && attempt < WRITE_RETRIES_MAX {
                attempt += 1;
                continue;
            }
            let targets =
                if targets.is_empty() && (lost || upsert.is_some()) { self.newer_than(seq, lost)? } else { targets };
            return self.commit(&mut order, targets, upsert).map(Some);
        }
    }

    /// The whole write on rows of `version` that were found already; none where the collection was dropped meanwhile.
    pub(super) fn run_on(&self, rows: Vec<Address>, version: &Arc<Version>) -> Result<Option<(Done, Seq)>> {
        let mut candidates = Vec::with_capacity(rows.len());
        for address in rows {
            let document = address.document()?;
            if self.matches(document.view())? {
                let id = JsonbBuf::from_valid(id_of(document.view()).as_bytes().to_vec());
                let change = self.act.change(document.view())?;
                candidates.push(Candidate { address, id, change });
            }
        }
        let mut order = self.core.order.hold();
        if self.collection.is_dropped() {
            return Ok(None);
        }
        let targets = self.recheck(candidates, version)?;
        self.commit(&mut order, targets, None).map(Some)
    }

    /// What matches on a snapshot, and what becomes of it.
    fn candidates(&self) -> Result<Seen> {
        let snapshot = self.core.snapshot();
        let scan = Scan::new(
            self.collection,
            snapshot,
            self.choice.filter.clone(),
            self.choice.deadline,
            Ask::Filter.within(&self.core.options),
        )?;
        let meter = Meter::new(&self.core.queries);
        let candidate = |document: JsonbRef<'_>, address: Address| -> Result<Candidate> {
            let id = JsonbBuf::from_valid(id_of(document).as_bytes().to_vec());
            let change = self.act.change(document)?;
            let new = match &change {
                Change::Nothing => 0,
                Change::To(document, told) => {
                    document.view().as_bytes().len() + told.as_ref().map_or(0, |told| told.as_bytes().len())
                }
                Change::Delete => id.view().as_bytes().len(),
            };
            // What cannot be one commit is given up before all of it is made.
            if meter.add(new)? > COMMIT_BYTES_MAX {
                return Err(too_large());
            }
            Ok(Candidate { address, id, change })
        };
        let candidates = if self.choice.many {
            // Of a document that goes, the `_id` is enough.
            let by_id = self.act.deletes() && !self.choice.keep;
            scan.collect_parts(&scan.morsels()?, |morsel, found| {
                let mut give = |id: JsonbRef<'_>, at| {
                    if meter.add(id.as_bytes().len())? > COMMIT_BYTES_MAX {
                        return Err(too_large());
                    }
                    let id = JsonbBuf::from_valid(id.as_bytes().to_vec());
                    found.push(Candidate { address: scan.address(at), id, change: Change::Delete });
                    Ok(())
                };
                if by_id && scan.ids_of(morsel, &mut give)? {
                    return Ok(());
                }
                let _ = scan.run(morsel, &mut BlockBuf::default(), &mut |document, at| {
                    found.push(candidate(document, scan.address(at))?);
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(())
            })?
        } else {
            let first = match self.choice.sort {
                Some(sort) => sort::sorted(self.core, &scan, sort, sort::Range::FIRST)?.next(&scan)?,
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
        Ok(Seen { candidates, seq: scan.seq(), version: Arc::clone(&scan.version), meter })
    }

    /// The candidates that still match, with the order held.
    fn recheck(&self, candidates: Vec<Candidate>, seen: &Arc<Version>) -> Result<Vec<Target>> {
        let version = self.collection.version();
        let same = Arc::ptr_eq(&version, seen);
        let mut targets = Vec::with_capacity(candidates.len());
        for (i, Candidate { address, id, change }) in candidates.into_iter().enumerate() {
            if i % DEADLINE_CHECK_ROWS == 0 {
                Deadline::check(self.choice.deadline)?;
            }
            // An address holds as long as nothing was sealed away under it.
            if (same || version.holds(&address)) && address.is_live() {
                let hash = id_hash(id.view());
                let in_tail = version.tail.newest(hash, id.view()).map(|(row, _)| row);
                targets.push(Target { address, hash, change, id, in_tail });
            } else {
                targets.extend(self.judge(&version, id)?);
            }
        }
        Ok(targets)
    }

    /// The document with this `_id` as it is now, if it matches.
    fn judge(&self, version: &Version, id: JsonbBuf) -> Result<Option<Target>> {
        let hash = id_hash(id.view());
        let current = version.current(hash, id.view())?;
        let Some(address) = current.live else { return Ok(None) };
        let document = current.read.map_or_else(|| address.document(), Ok)?;
        if !self.matches(document.view())? {
            return Ok(None);
        }
        let change = self.act.change(document.view())?;
        let id = JsonbBuf::from_valid(id_of(document.view()).as_bytes().to_vec());
        Ok(Some(Target { address, hash, change, id, in_tail: current.in_tail }))
    }

    fn matches(&self, document: JsonbRef<'_>) -> Result<bool> {
        matches(self.choice.filter, document, self.choice.deadline)
    }

    /// The first live document that matches, or with `all` not set only among those newer than what was `seen`.
    fn newer_than(&self, seen: Seq, all: bool) -> Result<Vec<Target>> {
        let version = self.collection.version();
        for tail in version.tails() {
            for row in (0..tail.rows()).rev().map(RowId::from_raw) {
                let Some((created, ended)) = tail.life(row) else { continue };
                // Rows stand in the order of their creation.
                if !all && created <= seen {
                    break;
                }
                if ended.is_some() {
                    continue;
                }
                let Some(document) = tail.document(row) else { continue };
                let document = StoredDocument::Tail(document);
                if self.matches(document.view())? {
                    let id = JsonbBuf::from_valid(id_of(document.view()).as_bytes().to_vec());
                    return Ok(self.judge(&version, id)?.into_iter().collect());
                }
            }
        }
        // A segment sealed since holds rows newer than the snapshot too; with `all` any segment counts.
        for sealed in version.segments.iter().filter(|s| all || s.segment.meta().max_seq > seen) {
            for row in (0..sealed.segment.rows()).map(RowId::from_raw) {
                if sealed.deletes.is_dead(row, Seq::MAX) || !all && sealed.segment.seq_of(row)? <= seen {
                    continue;
                }
                let document = sealed.segment.doc(row)?;
                let view = JsonbRef::from_valid(&document);
                if self.matches(view)? {
                    let id = JsonbBuf::from_valid(id_of(view).as_bytes().to_vec());
                    return Ok(self.judge(&version, id)?.into_iter().collect());
                }
            }
        }
        Ok(Vec::new())
    }

    /// Applies what was decided, as one commit.
    fn commit(&self, order: &mut Order, targets: Vec<Target>, upsert: Option<Upsert<'_>>) -> Result<(Done, Seq)> {
        if targets.is_empty()
            && let Some(upsert) = upsert
        {
            return upsert(order);
        }
        let matched = targets.len() as u64;
        let mut kept = Modified::default();
        if self.choice.keep
            && let [target] = &targets[..]
        {
            let before = Document::stored(target.address.document()?);
            kept.after = match &target.change {
                Change::Nothing => Some(before.clone()),
                Change::To(document, _) => Some(Document::owned(document.clone())),
                Change::Delete => None,
            };
            kept.before = Some(before);
        }
        let mut changes: Vec<_> = targets.into_iter().filter(|t| !matches!(t.change, Change::Nothing)).collect();
        let outcome = UpdateOutcome { matched, modified: changes.len() as u64, upserted_id: None };
        if changes.is_empty() {
            // The answer rests on commits that may still wait for the log.
            return Ok((Done { outcome, kept }, self.core.watermarks().applied()));
        }
        self.check_unique(&changes)?;
        self.tell(&mut changes)?;
        // The last place where it can still end with nothing changed.
        Deadline::check(self.choice.deadline)?;
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
        Ok((Done { outcome, kept }, seq))
    }

    /// What changed, where the first change stream was opened after the documents were found and before the order was held:
    /// from its first commit on every one is told whole.
    fn tell(&self, changes: &mut [Target]) -> Result<()> {
        if !self.core.changes.is_watched() || self.act.is_told() {
            return Ok(());
        }
        for target in changes {
            let Change::To(document, told) = &mut target.change else { continue };
            *told = self.act.describe(target.address.document()?.view(), document.view());
        }
        Ok(())
    }

    /// Whether the documents may be as they come to be, all of them at once: what one gives up another may take.
    fn check_unique(&self, changes: &[Target]) -> Result<()> {
        let Some(mut unique) = Uniqueness::of(self.collection) else { return Ok(()) };
        changes.iter().for_each(|target| unique.ends(&target.address));
        for target in changes {
            let Change::To(document, _) = &target.change else { continue };
            if let Some(error) = unique.claim(self.collection, document.view())? {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Inserts the document that an update without a match implies.
    pub(super) fn insert_upserted(
        &self,
        order: &mut Order,
        request: &UpdateRequest,
        context: &ApplyContext,
    ) -> Result<(Done, Seq)> {
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
        if let Some(mut unique) = Uniqueness::of(self.collection)
            && let Some(error) = unique.claim(self.collection, document.view())?
        {
            return Err(error);
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
        let outcome = UpdateOutcome { matched: 0, modified: 0, upserted_id };
        let after = self.choice.keep.then(|| Document::owned(document.clone()));
        Ok((Done { outcome, kept: Modified { before: None, after } }, seq))
    }
}

/// What was found on a snapshot.
struct Seen {
    candidates: Vec<Candidate>,
    seq: Seq,
    version: Arc<Version>,
    /// What the candidates hold.
    meter: Meter,
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
        let Change::To(document, told) = &target.change else {
            spans.push(None);
            continue;
        };
        let from = bytes.len();
        bytes.extend_from_slice(document.view().as_bytes());
        let document = Span::new(from, bytes.len());
        let from = bytes.len();
        bytes.extend_from_slice(told.as_ref().map_or(&[][..], JsonbBuf::as_bytes));
        ops.push(Op::Update { collection: collection.id, document, change: Span::new(from, bytes.len()) });
        spans.push(Some(document));
    }
    (Payload::new(payload::finish(bytes, &ops)), spans, deleted)
}
