//! Groups by the value of their `_id`, in the order in which they first came.
//!
//! Takes documents, or for who groups by columns values of `_id` and what their states get; tables of later rows merge into
//! it. Beyond the stage's memory all groups go to the host's spill and are merged when they come back. Equal `_id`s of all
//! number types are one group, and the first that came is shown.

use super::accumulate::State;
use super::group::Group;
use super::host::{Fault, Host, Pace, Spill};
use super::operator::Flow;
use crate::exact::codec::{Reader, damaged, put_bytes, put_u64};
use crate::expr::{Budget, Scope};
use crate::limits::{DOCUMENT_BYTES_MAX, WRITTEN_BYTES_MAX};
use crate::{QueryError, scratch};
use hashbrown::{DefaultHashBuilder, HashTable};
use quarrydb_jsonb::{JsonbRef, sort_key};
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::Arc;

/// The groups of some rows.
#[derive(Debug)]
pub struct GroupTable {
    group: Arc<Group>,
    index: HashTable<u32>,
    hash: DefaultHashBuilder,
    /// Keys and `_id`s of all groups.
    texts: Vec<u8>,
    entries: Vec<Entry>,
    /// Those of each group together, in the order of the fields.
    states: Vec<State>,
    state_bytes: usize,
    key: Vec<u8>,
}

/// Where a group's key and `_id` stand: the `_id` behind the key.
#[derive(Debug)]
struct Entry {
    start: usize,
    key_bytes: u32,
    id_bytes: u32,
}

impl Entry {
    fn key(&self) -> Range<usize> {
        self.start..self.start + self.key_bytes as usize
    }

    fn id(&self) -> Range<usize> {
        let start = self.start + self.key_bytes as usize;
        start..start + self.id_bytes as usize
    }
}

/// What a slot of the index takes, its spare ones and its control byte counted.
const SLOT_BYTES: usize = 10;

impl GroupTable {
    /// No groups.
    #[must_use]
    pub fn new(group: Arc<Group>) -> Self {
        Self {
            group,
            index: HashTable::new(),
            hash: DefaultHashBuilder::default(),
            texts: Vec::new(),
            entries: Vec::new(),
            states: Vec::new(),
            state_bytes: 0,
            key: Vec::new(),
        }
    }

    /// What it groups by, and into what.
    #[must_use]
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The number of groups.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The memory that it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let each = size_of::<Entry>() + SLOT_BYTES + self.group.fields().len() * size_of::<State>();
        self.texts.len() + self.entries.len() * each + self.state_bytes
    }

    /// Adds a document.
    ///
    /// # Errors
    /// Those of the expressions and of the accumulators.
    pub fn add(&mut self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<(), QueryError> {
        let group = Arc::clone(&self.group);
        let mut scope = Scope::new(document, budget);
        let id = group.id().evaluate(&mut scope)?;
        let encoded = id.encoded()?;
        let at = self.find_or_add(encoded.view(), budget)?;
        let states = self.states.get_mut(states_of(at, group.fields().len())).unwrap_or_default();
        for (field, state) in group.fields().iter().zip(states) {
            let before = state.bytes();
            state.add(&field.accumulator, &mut scope)?;
            self.state_bytes = (self.state_bytes + state.bytes()).saturating_sub(before);
        }
        Ok(())
    }

    /// Calls `add` with the states of the group of an `_id`, in the order of the fields; a group that is new has states of
    /// no rows.
    ///
    /// # Errors
    /// Those of `add`, and of a number of values that depends on the `_id`.
    pub fn update(
        &mut self,
        id: JsonbRef<'_>,
        budget: Budget<'_>,
        add: impl FnOnce(&Group, &mut [State]) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let at = self.find_or_add(id, budget)?;
        let states = self.states.get_mut(states_of(at, self.group.fields().len())).unwrap_or_default();
        let before: usize = states.iter().map(State::bytes).sum();
        add(&self.group, states)?;
        let after: usize = states.iter().map(State::bytes).sum();
        self.state_bytes = (self.state_bytes + after).saturating_sub(before);
        Ok(())
    }

    /// Adds the groups of later rows.
    ///
    /// # Errors
    /// Those of [`State::merge`].
    pub fn merge(&mut self, later: Self) -> Result<(), QueryError> {
        if self.is_empty() {
            *self = later;
            return Ok(());
        }
        let count = self.group.fields().len();
        let mut states = later.states.into_iter();
        for entry in &later.entries {
            let id = later.texts.get(entry.id()).unwrap_or_default();
            let key = later.texts.get(entry.key()).unwrap_or_default();
            self.merge_group(key, id, states.by_ref().take(count))?;
        }
        Ok(())
    }

    fn merge_group(&mut self, key: &[u8], id: &[u8], later: impl Iterator<Item = State>) -> Result<(), QueryError> {
        let (at, is_new) = self.find_or_insert(key, id)?;
        if is_new {
            let from = self.states.len();
            self.states.extend(later);
            self.state_bytes += self.states.iter().skip(from).map(State::bytes).sum::<usize>();
            return Ok(());
        }
        let fields = self.group.fields();
        let states = self.states.get_mut(states_of(at, fields.len())).unwrap_or_default();
        for ((field, state), later) in fields.iter().zip(states).zip(later) {
            let before = state.bytes();
            state.merge(&field.accumulator, later)?;
            self.state_bytes = (self.state_bytes + state.bytes()).saturating_sub(before);
        }
        Ok(())
    }

    /// The group of an `_id`, with its states.
    fn find_or_add(&mut self, id: JsonbRef<'_>, budget: Budget<'_>) -> Result<usize, QueryError> {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        sort_key(id, &mut key);
        let found = self.find_or_insert(&key, id.as_bytes());
        self.key = key;
        let (at, is_new) = found?;
        if is_new {
            for field in self.group.fields() {
                let state = State::of_group(&field.accumulator, id, budget)?;
                self.state_bytes += state.bytes();
                self.states.push(state);
            }
        }
        Ok(at)
    }

    /// The group of a key, and whether it is new: then its states are still to be put.
    fn find_or_insert(&mut self, key: &[u8], id: &[u8]) -> Result<(usize, bool), QueryError> {
        let Self { index, hash, texts, entries, .. } = self;
        let key_of = |at: &u32| {
            let entry: Option<&Entry> = entries.get(*at as usize);
            entry.and_then(|e| texts.get(e.key())).unwrap_or_default()
        };
        let hashed = hash.hash_one(key);
        if let Some(at) = index.find(hashed, |at| key_of(at) == key) {
            return Ok((*at as usize, false));
        }
        let too_many = || QueryError::new("ExceededMemoryLimit", 146, "$group has more groups than it can count");
        let at = u32::try_from(entries.len()).map_err(|_| too_many())?;
        let (key_bytes, id_bytes) = (u32::try_from(key.len()), u32::try_from(id.len()));
        let (Ok(key_bytes), Ok(id_bytes)) = (key_bytes, id_bytes) else { return Err(too_many()) };
        index.insert_unique(hashed, at, |at| hash.hash_one(key_of(at)));
        entries.push(Entry { start: texts.len(), key_bytes, id_bytes });
        texts.extend_from_slice(key);
        texts.extend_from_slice(id);
        Ok((at as usize, true))
    }

    /// Hands out what each group becomes, in the order in which they first came, until `each` breaks.
    ///
    /// # Errors
    /// The host's, those of `each`; 10334 for a document that is too large.
    pub fn finish(
        self,
        host: &dyn Host,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let mut pace = Pace::default();
        for (at, entry) in self.entries.iter().enumerate() {
            pace.step(host)?;
            let id = JsonbRef::from_valid(self.texts.get(entry.id()).unwrap_or_default());
            let states = self.states.get(states_of(at, self.group.fields().len())).unwrap_or_default();
            let document = result(&self.group, id, states)?;
            if each(document.view())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Gives all groups away. `first` is the number of the first of them.
    fn spill(&mut self, first: u64, to: &mut dyn Spill) -> Result<(), Fault> {
        let mut payload = Vec::new();
        for (at, entry) in self.entries.iter().enumerate() {
            payload.clear();
            put_u64(first + at as u64, &mut payload);
            put_bytes(self.texts.get(entry.id()).unwrap_or_default(), &mut payload);
            let states = self.states.get(states_of(at, self.group.fields().len())).unwrap_or_default();
            states.iter().for_each(|state| state.write(&mut payload));
            to.push(self.texts.get(entry.key()).unwrap_or_default(), &payload)?;
        }
        *self = Self::new(Arc::clone(&self.group));
        Ok(())
    }
}

/// Where the states of a group stand.
fn states_of(at: usize, fields: usize) -> Range<usize> {
    at * fields..(at + 1) * fields
}

/// What a group becomes.
fn result(group: &Group, id: JsonbRef<'_>, states: &[State]) -> Result<quarrydb_jsonb::JsonbBuf, QueryError> {
    let too_large = || {
        let message = format!("a group's document would take more than {DOCUMENT_BYTES_MAX} bytes");
        QueryError::new("BSONObjectTooLarge", 10334, message)
    };
    scratch::build(id.as_bytes().len() + 16 * (states.len() + 1), |out| {
        out.begin_object();
        out.field("_id");
        out.copy(id);
        for (field, state) in group.fields().iter().zip(states) {
            out.field(&field.name);
            state.finish(&field.accumulator, out)?;
            if out.len() > WRITTEN_BYTES_MAX {
                return Err(too_large());
            }
        }
        out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
    })
}

/// A `$group` that runs: a table, and what had no room in it.
pub struct Grouping {
    table: GroupTable,
    /// Groups that were spilled, those that came again counted again.
    spilled: u64,
    spill: Option<Box<dyn Spill>>,
}

impl std::fmt::Debug for Grouping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Grouping {{ {} groups, {} spilled }}", self.table.len(), self.spilled)
    }
}

impl Grouping {
    /// No groups.
    #[must_use]
    pub fn new(group: Arc<Group>) -> Self {
        Self { table: GroupTable::new(group), spilled: 0, spill: None }
    }

    /// Adds a document.
    ///
    /// # Errors
    /// Those of [`GroupTable::add`]; 292 where memory is not enough and the host has no other room.
    pub fn add(&mut self, document: JsonbRef<'_>, host: &dyn Host) -> Result<(), Fault> {
        self.table.add(document, host.budget())?;
        self.fit(host)
    }

    /// Adds the groups of later rows.
    ///
    /// # Errors
    /// As [`Grouping::add`].
    pub fn absorb(&mut self, later: GroupTable, host: &dyn Host) -> Result<(), Fault> {
        self.table.merge(later)?;
        self.fit(host)
    }

    #[inline]
    fn fit(&mut self, host: &dyn Host) -> Result<(), Fault> {
        if self.table.bytes() <= host.stage_bytes() { Ok(()) } else { self.make_room(host) }
    }

    #[cold]
    fn make_room(&mut self, host: &dyn Host) -> Result<(), Fault> {
        if self.spill.is_none() {
            self.spill = host.spill()?;
        }
        let Some(spill) = &mut self.spill else {
            let bytes = host.stage_bytes();
            let message = format!("$group exceeded its memory limit of {bytes} bytes, and may not use the disk");
            return Err(QueryError::new("QueryExceededMemoryLimitNoDiskUseAllowed", 292, message).into());
        };
        let groups = self.table.len() as u64;
        self.table.spill(self.spilled, &mut **spill)?;
        self.spilled += groups;
        Ok(())
    }

    /// Hands out what each group becomes, in the order in which they first came, until `each` breaks.
    ///
    /// # Errors
    /// As [`GroupTable::finish`].
    pub fn finish(
        mut self,
        host: &dyn Host,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let Some(mut spill) = self.spill.take() else { return self.table.finish(host, each) };
        self.table.spill(self.spilled, &mut *spill)?;
        // By key the parts of a group meet; then the groups go into the order of their first.
        let mut by_key = spill.finish()?;
        let Some(mut ordered) = host.spill()? else { return Err(damaged().into()) };
        let group = Arc::clone(&self.table.group);
        let mut whole: Option<Part> = None;
        let mut pace = Pace::default();
        while let Some((key, payload)) = by_key.next()? {
            pace.step(host)?;
            let part = Part::read(&group, key, payload)?;
            match &mut whole {
                Some(whole) if whole.key == part.key => whole.merge(&group, part)?,
                _ => {
                    if let Some(whole) = whole.replace(part) {
                        ordered
                            .push(&whole.first.to_be_bytes(), result(&group, whole.id(), &whole.states)?.as_bytes())?;
                    }
                }
            }
        }
        if let Some(whole) = whole {
            ordered.push(&whole.first.to_be_bytes(), result(&group, whole.id(), &whole.states)?.as_bytes())?;
        }
        let mut ordered = ordered.finish()?;
        while let Some((_, document)) = ordered.next()? {
            pace.step(host)?;
            if each(JsonbRef::from_valid(document))?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A part of a group that was spilled.
struct Part {
    key: Vec<u8>,
    /// Its number, by which groups are ordered.
    first: u64,
    id: Vec<u8>,
    states: Vec<State>,
}

impl Part {
    fn read(group: &Group, key: &[u8], payload: &[u8]) -> Result<Self, QueryError> {
        let mut from = Reader(payload);
        let first = from.u64()?;
        let id = from.bytes()?.to_vec();
        let mut rest = from.0;
        let mut states = Vec::with_capacity(group.fields().len());
        for field in group.fields() {
            let (state, behind) = State::read(&field.accumulator, rest)?;
            rest = behind;
            states.push(state);
        }
        Ok(Self { key: key.to_vec(), first, id, states })
    }

    fn id(&self) -> JsonbRef<'_> {
        JsonbRef::from_valid(&self.id)
    }

    fn merge(&mut self, group: &Group, later: Self) -> Result<(), QueryError> {
        for ((field, state), later) in group.fields().iter().zip(&mut self.states).zip(later.states) {
            state.merge(&field.accumulator, later)?;
        }
        Ok(())
    }
}
