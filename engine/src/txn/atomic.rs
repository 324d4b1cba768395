//! From what a transaction has done to one commit: one log record, whatever collections and databases it touched.
//!
//! With the committing order held: (1) what others did meanwhile is looked for, and where it stands against the transaction
//! nothing is changed; (2) the documents as they came to be, not the steps that led to them, become one record; (3) from the
//! room in the log on nothing can fail: collections that are new are there, rows end and begin, all at one `Seq`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use quarrydb_query::Filter;
use quarrydb_query::update::differences;

use super::commit::{Order, freeze_if_full};
use super::payload::{self, Op, Span};
use super::unique::Uniqueness;
use super::work::{Slot, Touched, Work};
use crate::catalog::CollectionState;
use crate::error::Result;
use crate::exec::scan::matches;
use crate::ids::{CollectionId, Seq};
use crate::limits::CHANGES_ASKED_MAX;
use crate::log::Payload;

/// What a collection is made with that a write makes.
const NO_OPTIONS: &[u8] = &[16, 3, 0];

/// A collection's part of the record.
struct Part {
    id: CollectionId,
    /// The names' places, where it is new.
    new: Option<(Span, Span, Span)>,
    /// Where each slot's document lies.
    spans: Vec<Option<Span>>,
    added: i64,
}

impl Work {
    /// Commits it; none where it wrote nothing.
    ///
    /// # Errors
    /// `Conflict` where another was first, `DuplicateKey`, and what `Order::begin` says; nothing has changed then.
    pub(super) fn commit(&mut self, order: &mut Order, journaled: bool) -> Result<Option<Seq>> {
        if self.is_beside_others() {
            self.check_reads()?;
            self.check_writes()?;
        }
        if !self.collections.iter().any(|touched| touched.slots.iter().any(has_changed)) {
            return Ok(None);
        }
        self.tell()?;
        let (payload, parts) = self.encode();
        let core = Arc::clone(&self.core);
        let commit = order.begin(&core, payload.bytes().len(), journaled)?;
        let seq = commit.seq();
        let mut applied = Vec::with_capacity(parts.len());
        for (at, part) in &parts {
            let Some(touched) = self.collections.get_mut(*at) else { continue };
            let state = match (&touched.state, part.new) {
                (Some(state), None) => Arc::clone(state),
                _ => {
                    let names = (touched.db.to_string(), touched.name.to_string());
                    let options = JsonbBuf::from_valid(NO_OPTIONS.to_vec());
                    core.catalog.add(CollectionState::new(part.id, names, options, seq))
                }
            };
            apply(&state, &touched.slots, part, &payload, seq);
            if part.added != 0 {
                state.count_changed(seq, part.added, core.watermarks().visible());
            }
            applied.push(state);
        }
        commit.finish(payload);
        for state in applied {
            freeze_if_full(&core, &state, &state.version(), seq);
        }
        Ok(Some(seq))
    }

    /// Whether all that was read would be read again, where that was asked for.
    fn check_reads(&mut self) -> Result<()> {
        let mut of_collections: BTreeMap<usize, Vec<Filter>> = BTreeMap::new();
        for (at, filter) in std::mem::take(&mut self.reads) {
            of_collections.entry(at).or_default().push(filter);
        }
        for (at, filters) in of_collections {
            let touched = self.touched(at)?;
            let state = self.core.catalog.get(&touched.db, &touched.name);
            let same = match (&touched.state, &state) {
                (Some(seen), Some(now)) => seen.id == now.id,
                (seen, _) => seen.is_none(),
            };
            let Some(state) = state.filter(|_| same) else {
                if same {
                    continue;
                }
                return Err(self.conflict("a collection that was read was dropped"));
            };
            let mut found = false;
            let all = state.version().changed_since(
                self.at(),
                CHANGES_ASKED_MAX / filters.len().max(1),
                &mut |document| {
                    for filter in &filters {
                        found |= matches(filter, document, None)?;
                    }
                    Ok(if found { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
                },
            )?;
            if found || !all {
                return Err(self.conflict("another write has changed what was read"));
            }
        }
        Ok(())
    }

    /// Whether nobody has touched what was written.
    fn check_writes(&mut self) -> Result<()> {
        let seq = self.at();
        let mut clash = None;
        for touched in self.collections.iter_mut().filter(|touched| !touched.slots.is_empty()) {
            let now = self.core.catalog.get(&touched.db, &touched.name);
            let state = match (&touched.state, now) {
                (None, None) => continue,
                (None, Some(now)) => now,
                (Some(seen), Some(now)) if seen.id == now.id => now,
                (Some(_), _) => {
                    clash = Some("a collection that was written was dropped");
                    break;
                }
            };
            // It may be one that was made since.
            touched.state = Some(Arc::clone(&state));
            let version = state.version();
            for slot in &mut touched.slots {
                if slot.base.as_ref().is_some_and(|base| version.holds(base) && base.is_live())
                    || slot.base.is_none() && slot.made_id
                {
                    continue;
                }
                let live = version.current(slot.hash, slot.id.view())?.live;
                match (&slot.base, live) {
                    (None, None) => {}
                    (Some(_), Some(live)) if live.created()? <= seq => slot.base = Some(live),
                    _ => clash = Some("another write has changed a document that this transaction wrote"),
                }
            }
            if clash.is_some() {
                break;
            }
            if let Some(error) = check_unique(&state, touched)? {
                return Err(error);
            }
        }
        match clash {
            Some(why) => Err(self.conflict(why)),
            None => Ok(()),
        }
    }

    /// What became of documents that were there before, where change streams are told: of all steps together.
    fn tell(&mut self) -> Result<()> {
        if !self.core.changes.is_watched() {
            return Ok(());
        }
        for slot in self.collections.iter_mut().flat_map(|touched| &mut touched.slots) {
            if let (Some(base), Some(now), false) = (&slot.base, &slot.now, slot.replaced) {
                slot.told = Some(differences(base.document()?.view(), now.view()));
            }
        }
        Ok(())
    }

    /// The record, and where in it each collection has its part.
    fn encode(&self) -> (Payload, Vec<(usize, Part)>) {
        let mut bytes = Vec::new();
        let (mut ops, mut parts) = (Vec::new(), Vec::new());
        let mut next = self.core.catalog.next_id();
        for (at, touched) in self.collections.iter().enumerate() {
            if !touched.slots.iter().any(has_changed) {
                continue;
            }
            let new = touched.state.is_none();
            let id = touched.state.as_ref().map_or(next, |state| state.id);
            let mut part = Part { id, new: None, spans: vec![None; touched.slots.len()], added: 0 };
            if new {
                next = next.next();
                let mut span = |text: &[u8]| put(&mut bytes, text);
                let (db, name) = (span(touched.db.as_bytes()), span(touched.name.as_bytes()));
                let options = span(NO_OPTIONS);
                ops.push(Op::Create { collection: id, db, name, options });
                part.new = Some((db, name, options));
            }
            encode_writes(touched, &mut part, &mut bytes, &mut ops);
            parts.push((at, part));
        }
        (Payload::new(payload::finish(bytes, &ops)), parts)
    }
}

/// Whether a slot makes a difference.
fn has_changed(slot: &Slot) -> bool {
    slot.base.is_some() || slot.now.is_some()
}

fn put(bytes: &mut Vec<u8>, more: &[u8]) -> Span {
    let start = bytes.len();
    bytes.extend_from_slice(more);
    Span::new(start, bytes.len())
}

fn encode_writes(touched: &Touched, part: &mut Part, bytes: &mut Vec<u8>, ops: &mut Vec<Op>) {
    let collection = part.id;
    let start = bytes.len();
    let mut count = 0;
    for slot in touched.slots.iter().filter(|slot| slot.base.is_some() && slot.now.is_none()) {
        put(bytes, slot.id.view().as_bytes());
        count += 1;
    }
    if count > 0 {
        ops.push(Op::Delete { collection, ids: Span::new(start, bytes.len()), count });
        part.added -= i64::from(count);
    }
    let start = bytes.len();
    let mut count = 0;
    for (slot, span) in touched.slots.iter().zip(&mut part.spans).filter(|(slot, _)| slot.base.is_none()) {
        if let Some(now) = &slot.now {
            *span = Some(put(bytes, now.view().as_bytes()));
            count += 1;
        }
    }
    if count > 0 {
        ops.push(Op::Insert { collection, documents: Span::new(start, bytes.len()), count });
        part.added += i64::from(count);
    }
    for (slot, span) in touched.slots.iter().zip(&mut part.spans).filter(|(slot, _)| slot.base.is_some()) {
        if let Some(now) = &slot.now {
            let document = put(bytes, now.view().as_bytes());
            let change = put(bytes, slot.told.as_ref().map_or(&[][..], JsonbBuf::as_bytes));
            ops.push(Op::Update { collection, document, change });
            *span = Some(document);
        }
    }
}

/// Ends the rows that slots take the place of and appends their documents, in the order of the record.
fn apply(state: &CollectionState, slots: &[Slot], part: &Part, payload: &Payload, seq: Seq) {
    let version = state.version();
    version.tail.touch(seq);
    let inserted = slots.iter().zip(&part.spans).filter(|(slot, _)| slot.base.is_none());
    let others = slots.iter().zip(&part.spans).filter(|(slot, _)| slot.base.is_some());
    for (slot, span) in inserted.chain(others) {
        if let Some(base) = &slot.base {
            base.end(seq);
        }
        if let Some(span) = span {
            let id = JsonbRef::from_valid(slot.id.view().as_bytes());
            let before = if slot.made_id { None } else { version.tail.newest(slot.hash, id).map(|(row, _)| row) };
            version.tail.push(payload, (span.start, span.len), seq, slot.hash, before);
        }
    }
}

/// Whether unique indexes take what was written, beside what others have committed.
fn check_unique(state: &CollectionState, touched: &Touched) -> Result<Option<crate::Error>> {
    let Some(mut unique) = Uniqueness::of(state) else { return Ok(None) };
    touched.slots.iter().filter_map(|slot| slot.base.as_ref()).for_each(|base| unique.ends(base));
    for now in touched.slots.iter().filter_map(|slot| slot.now.as_ref()) {
        if let Some(error) = unique.claim(state, now.view())? {
            return Ok(Some(error));
        }
    }
    Ok(None)
}
