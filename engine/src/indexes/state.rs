//! The declared indexes of one collection: which there are, and how far each has come.
//!
//! Takes definitions in the order of commits; gives the set as of now, and its durable form for the manifest. A set is
//! immutable: a change puts another in its place, with the committing order held. Next: `maintain/indexes.rs`, which
//! builds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;
use quarrydb_jsonb::{Builder, JsonbRef};

use super::definition::{ID_INDEX, IndexDefinition, Likeness};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::IndexId;
use crate::limits::INDEXES_MAX;

const BUILDING: u8 = 0;
const READY: u8 = 1;
const GONE: u8 = 2;

/// How far an index has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexState {
    /// Its entries are being made.
    Building,
    /// It serves, and a unique one is enforced.
    Ready,
    /// It was dropped, or could not be built.
    Gone,
}

/// One declared index.
#[derive(Debug)]
pub(crate) struct Index {
    /// Its number in the collection: in the log, the manifest and names of files.
    pub id: IndexId,
    /// What it is.
    pub definition: IndexDefinition,
    state: AtomicU8,
    /// Rows that have their entries, of those that are to have them.
    done: AtomicU64,
    total: AtomicU64,
    /// Why it could not be built.
    failure: Mutex<Option<Error>>,
    /// It could not be dropped either: whoever waits need not wait for that.
    stuck: AtomicBool,
}

impl Index {
    /// One of number `id`, `ready` or to be built.
    pub(crate) fn new(id: IndexId, definition: IndexDefinition, ready: bool) -> Self {
        Self {
            id,
            definition,
            state: AtomicU8::new(if ready { READY } else { BUILDING }),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            failure: Mutex::new(None),
            stuck: AtomicBool::new(false),
        }
    }

    /// How far it has come.
    pub(crate) fn state(&self) -> IndexState {
        match self.state.load(Ordering::Acquire) {
            BUILDING => IndexState::Building,
            READY => IndexState::Ready,
            _ => IndexState::Gone,
        }
    }

    /// Whether it serves.
    pub(crate) fn is_ready(&self) -> bool {
        self.state() == IndexState::Ready
    }

    /// It serves from now on; called with the committing order held.
    pub(crate) fn set_ready(&self) {
        self.state.store(READY, Ordering::Release);
    }

    /// It is no more.
    pub(crate) fn set_gone(&self) {
        self.state.store(GONE, Ordering::Release);
    }

    /// Why it could not be built; whoever builds drops it then.
    pub(crate) fn fail(&self, error: Error) {
        self.failure.lock().get_or_insert(error);
    }

    /// Why it could not be built.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.failure.lock().as_ref().map(Error::again)
    }

    /// It could neither be built nor dropped, for now.
    pub(crate) fn set_stuck(&self) {
        self.stuck.store(true, Ordering::Release);
    }

    /// Why it could not be built, once that is all that will come of it.
    pub(crate) fn outcome(&self) -> Option<Error> {
        let final_word = self.state() == IndexState::Gone || self.stuck.load(Ordering::Acquire);
        if final_word { self.failure() } else { None }
    }

    /// Rows whose entries are made, of how many.
    pub(crate) fn set_progress(&self, done: u64, total: u64) {
        self.total.store(total, Ordering::Relaxed);
        self.done.store(done, Ordering::Relaxed);
    }

    /// From 0 to 1.
    pub(crate) fn progress(&self) -> f64 {
        if self.is_ready() {
            return 1.0;
        }
        let (done, total) = (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed));
        if total == 0 { 0.0 } else { (done as f64 / total as f64).min(1.0) }
    }
}

/// The declared indexes of one collection, `_id_` left out.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexSet {
    list: Vec<Arc<Index>>,
    /// The number that the next one gets.
    next: IndexId,
}

impl IndexSet {
    /// All of them, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.list.iter()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The number that the next one gets.
    pub(crate) fn next_id(&self) -> IndexId {
        self.next
    }

    /// The one of this number.
    pub(crate) fn by_id(&self, id: IndexId) -> Option<&Arc<Index>> {
        self.list.iter().find(|index| index.id == id)
    }

    /// The one of this name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Index>> {
        self.list.iter().find(|index| index.definition.name() == name)
    }

    /// Those with these keys, direction for direction.
    pub(crate) fn by_keys(&self, keys: JsonbRef<'_>) -> impl Iterator<Item = &Arc<Index>> {
        let keys = keys.as_bytes().to_vec();
        self.list
            .iter()
            .filter(move |index| quarrydb_jsonb::equal(index.definition.keys(), JsonbRef::from_valid(&keys)))
    }

    /// The same with one more, which takes the next number or a later one.
    pub(crate) fn with(&self, index: Arc<Index>) -> Self {
        let next = self.next.max(index.id.next());
        let mut list = self.list.clone();
        list.push(index);
        Self { list, next }
    }

    /// The same without one.
    pub(crate) fn without(&self, id: IndexId) -> Self {
        Self { list: self.list.iter().filter(|index| index.id != id).cloned().collect(), next: self.next }
    }

    /// The index that a definition asks for, where it is there already.
    ///
    /// # Errors
    /// `IndexOptionsConflict` (85), `IndexKeySpecsConflict` (86), `CannotCreateIndex` (67) where there are too many.
    pub(crate) fn same_as(&self, wanted: &IndexDefinition) -> Result<Option<&Arc<Index>>> {
        let conflict = |code, name, what: &str, other: &IndexDefinition| {
            let message = format!("{what}. Requested index: {}, existing index: {}", wanted.to_text(), other.to_text());
            Err(Error::new(ErrorKind::Exists, message).with_code(name, code))
        };
        if let Some(found) = self.by_name(wanted.name()) {
            return match wanted.compare(&found.definition) {
                Likeness::Same => Ok(Some(found)),
                Likeness::Equivalent => conflict(
                    85,
                    "IndexOptionsConflict",
                    "An equivalent index already exists with the same name but different options",
                    &found.definition,
                ),
                Likeness::Different => conflict(
                    86,
                    "IndexKeySpecsConflict",
                    "An existing index has the same name as the requested index. When index names are not specified, \
                     they are auto generated and can cause conflicts",
                    &found.definition,
                ),
            };
        }
        let alike = |index: &&Arc<Index>| wanted.compare(&index.definition) != Likeness::Different;
        if let Some(found) = self.list.iter().find(alike) {
            let what = match wanted.compare(&found.definition) {
                Likeness::Same => "Index already exists with a different name",
                _ => "An equivalent index already exists with a different name and options",
            };
            return conflict(85, "IndexOptionsConflict", what, &found.definition);
        }
        if self.list.len() + 1 >= INDEXES_MAX {
            let message = format!("a collection has at most {INDEXES_MAX} indexes: drop one first");
            return Err(Error::new(ErrorKind::InvalidInput, message).with_code("CannotCreateIndex", 67));
        }
        Ok(None)
    }

    /// The durable form; empty where there was never an index.
    pub(crate) fn encode(&self) -> Vec<u8> {
        if self.next == IndexId::default() {
            return Vec::new();
        }
        let mut builder = Builder::new();
        builder.begin_object();
        builder.field("next");
        builder.int64(self.next.get().into());
        builder.field("indexes");
        builder.begin_array();
        for index in &self.list {
            builder.begin_object();
            builder.field("id");
            builder.int64(index.id.get().into());
            builder.field("ready");
            builder.bool(index.is_ready());
            builder.field("definition");
            builder.begin_object();
            index.definition.describe(&mut builder);
            builder.end_object().expect("names differ, and a definition came in a request");
            builder.end_object().expect("names differ, and a definition came in a request");
        }
        builder.end_array().expect("64 definitions that came in requests");
        builder.end_object().expect("64 definitions that came in requests");
        builder.take()
    }

    /// The set that [`IndexSet::encode`] wrote.
    ///
    /// # Errors
    /// `Corrupt`, naming `file`.
    pub(crate) fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let wrong = || Error::corrupt(file, 0, "the indexes of a collection cannot be read");
        let value = quarrydb_jsonb::validate(bytes).map_err(|_| wrong())?;
        let number = |value: JsonbRef<'_>, name: &str| {
            let number = value.get(name)?.as_i64()?;
            u32::try_from(number).ok().map(IndexId::from_raw)
        };
        let next = number(value, "next").ok_or_else(wrong)?;
        let mut set = Self::default();
        for entry in value.get("indexes").and_then(JsonbRef::as_array).ok_or_else(wrong)? {
            let id = number(entry, "id").filter(|id| *id < next).ok_or_else(wrong)?;
            let ready = entry.get("ready").and_then(JsonbRef::as_bool).ok_or_else(wrong)?;
            let definition = entry.get("definition").ok_or_else(wrong)?;
            let definition = IndexDefinition::from_object(definition).map_err(|_| wrong())?;
            if set.by_id(id).is_some() {
                return Err(wrong());
            }
            set = set.with(Arc::new(Index::new(id, definition, ready)));
        }
        Ok(Self { next, ..set })
    }
}

/// Whether a hint names the index that every collection has, or the order in storage.
pub(crate) fn is_given(hint: JsonbRef<'_>) -> bool {
    if let Some(name) = hint.as_str() {
        return name == ID_INDEX;
    }
    hint.as_object().is_some_and(|keys| {
        keys.is_empty() || keys.len() == 1 && (keys.get("_id").is_some() || keys.get("$natural").is_some())
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    fn definition(text: &str) -> IndexDefinition {
        IndexDefinition::from_object(quarrydb_jsonb::parse(text.as_bytes()).unwrap().view()).unwrap()
    }

    #[test]
    fn conflicts_have_mongodb_s_numbers() {
        let one = definition(r#"{"keys": {"a": 1}}"#);
        let set = IndexSet::default().with(Arc::new(Index::new(IndexId::default(), one, true)));
        let same = |text: &str| set.same_as(&definition(text)).map(|found| found.is_some()).map_err(|e| e.code());
        assert_eq!(same(r#"{"keys": {"a": 1}}"#), Ok(true));
        assert_eq!(same(r#"{"keys": {"a": -1}}"#), Ok(false));
        assert_eq!(same(r#"{"keys": {"a": 1}, "name": "other"}"#), Err(Some(85)));
        assert_eq!(same(r#"{"keys": {"a": 1}, "expireAfterSeconds": 5}"#), Err(Some(85)));
        assert_eq!(same(r#"{"keys": {"a": 1}, "unique": true}"#), Err(Some(86)));
        assert_eq!(same(r#"{"keys": {"b": 1}, "name": "a_1"}"#), Err(Some(86)));
        assert_eq!(same(r#"{"keys": {"a": 1}, "unique": true, "name": "u"}"#), Ok(false));
    }

    #[test]
    fn a_set_is_read_back_and_damage_is_refused() {
        let one = definition(r#"{"keys": {"a": 1}, "unique": true}"#);
        let two = definition(r#"{"keys": {"b": -1}, "sparse": true, "name": "x"}"#);
        let set = IndexSet::default()
            .with(Arc::new(Index::new(IndexId::from_raw(0), one, true)))
            .with(Arc::new(Index::new(IndexId::from_raw(1), two, false)))
            .without(IndexId::from_raw(0));
        let bytes = set.encode();
        let again = IndexSet::decode("MANIFEST", &bytes).unwrap();
        assert_eq!((again.encode(), again.next_id().get()), (bytes.clone(), 2));
        assert_eq!(again.by_name("x").unwrap().state(), IndexState::Building);
        for cut in 1..bytes.len() {
            assert!(IndexSet::decode("MANIFEST", &bytes[..cut]).is_err());
        }
    }
}
