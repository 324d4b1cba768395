//! Whether documents may have the keys that they have: unique indexes, and what no index takes.
//!
//! Asked with the committing order held, of each document that a commit brings, before anything of it is applied: against
//! every tail and segment as of now, rows that the commit ends left out, and against the documents before it in the same
//! commit. So of many that bring one key at once one goes in. A collection without an index costs one look.

use std::collections::HashSet;
use std::sync::Arc;

use quarrydb_jsonb::{Builder, JsonbRef};

use crate::catalog::CollectionState;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{IndexId, RowId, SegmentId, Seq};
use crate::indexes::definition::print;
use crate::indexes::keys::KeyMaker;
use crate::indexes::range::KeyRange;
use crate::indexes::{Index, IndexSet};
use crate::mvcc::version::{Address, Version};
use crate::tail::Tail;

/// A key of one unique index.
pub(crate) type UniqueKey = (IndexId, Vec<u8>);

/// Where a row lies, to be told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// A tail by where it lies in memory.
    Tail(usize, RowId),
    Segment(SegmentId, RowId),
}

impl Place {
    fn of_tail(tail: &Arc<Tail>, row: RowId) -> Self {
        Self::Tail(Arc::as_ptr(tail).addr(), row)
    }

    fn of(address: &Address) -> Self {
        match address {
            Address::Tail(tail, row) => Self::of_tail(tail, *row),
            Address::Segment(sealed, row) => Self::Segment(sealed.segment.meta().id, *row),
        }
    }
}

/// What the documents of one commit are held against.
#[derive(Debug)]
pub(crate) struct Uniqueness {
    version: Arc<Version>,
    indexes: Arc<IndexSet>,
    /// Rows that end with the commit.
    ending: HashSet<Place>,
    /// Keys that the commit brings.
    claimed: HashSet<UniqueKey>,
    maker: KeyMaker,
}

impl Uniqueness {
    /// For a commit to `collection`, whose order is held; none where nothing has to be looked at.
    pub(crate) fn of(collection: &CollectionState) -> Option<Self> {
        let indexes = collection.indexes();
        (!indexes.is_empty()).then(|| Self::with(collection.version(), indexes))
    }

    /// The same with what is known already.
    pub(crate) fn with(version: Arc<Version>, indexes: Arc<IndexSet>) -> Self {
        let (ending, claimed) = (HashSet::new(), HashSet::new());
        Self { version, indexes, ending, claimed, maker: KeyMaker::default() }
    }

    /// The keys of a document in the unique indexes that serve; or why an index does not take it.
    pub(crate) fn keys(&mut self, document: JsonbRef<'_>) -> Result<Vec<UniqueKey>> {
        let mut keys = Vec::new();
        for index in self.indexes.iter() {
            let unique = index.definition.unique && index.is_ready();
            self.maker.each(&index.definition, document, |key| {
                if unique {
                    keys.push((index.id, key.to_vec()));
                }
            })?;
        }
        Ok(keys)
    }

    /// The error of a document with a key of `keys` that another document has.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn refuses(
        &self,
        names: (&str, &str),
        document: JsonbRef<'_>,
        keys: &[UniqueKey],
        taken: &dyn Fn(&UniqueKey) -> bool,
    ) -> Result<Option<Error>> {
        for key in keys {
            let Some(index) = self.indexes.by_id(key.0) else { continue };
            if taken(key) || self.holder(index, &key.1)?.is_some() {
                return Ok(Some(duplicate_in(names, index, document, &key.1)));
            }
        }
        Ok(None)
    }

    /// The version that documents are held against.
    pub(crate) fn version(&self) -> &Arc<Version> {
        &self.version
    }

    /// The row at `address` ends with the commit.
    pub(crate) fn ends(&mut self, address: &Address) {
        self.ending.insert(Place::of(address));
    }

    /// Lets the keys of a document be the commit's; what stands against it otherwise.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn claim(&mut self, collection: &CollectionState, document: JsonbRef<'_>) -> Result<Option<Error>> {
        let keys = match self.keys(document) {
            Ok(keys) => keys,
            Err(refused) => return Ok(Some(refused)),
        };
        let names = (collection.db.as_str(), collection.name.as_str());
        let refused = self.refuses(names, document, &keys, &|key| self.claimed.contains(key))?;
        if refused.is_none() {
            self.claimed.extend(keys);
        }
        Ok(refused)
    }

    /// A document that lives, does not end with the commit, and has a key.
    ///
    /// # Errors
    /// `Corrupt` and `Io` from a segment.
    pub(crate) fn holder(&self, index: &Index, key: &[u8]) -> Result<Option<Address>> {
        for tail in self.version.tails() {
            let mut holder = None;
            tail.probe(index, key, &mut |row| {
                let lives = tail.life(row).is_some_and(|(_, ended)| ended.is_none());
                let holds = lives
                    && !self.ending.contains(&Place::of_tail(tail, row))
                    && tail.view(row).is_some_and(|document| has_key(index, document, key));
                if holds {
                    holder = Some(row);
                }
                holds
            });
            if let Some(row) = holder {
                return Ok(Some(Address::Tail(Arc::clone(tail), row)));
            }
        }
        let range = KeyRange::prefix(key);
        for sealed in &self.version.segments {
            let Some(source) = sealed.index(index)? else {
                // One without a row that lives may be going.
                if sealed.deletes.count_dead_at(Seq::MAX) == u64::from(sealed.segment.rows()) {
                    continue;
                }
                let message =
                    format!("{} has no entries of the index {}", sealed.segment.file_name(), index.definition.name());
                return Err(Error::new(ErrorKind::Internal, message));
            };
            let rows = source.rows(std::slice::from_ref(&range))?;
            let id = sealed.segment.meta().id;
            let lives = |row: &RowId| {
                !sealed.deletes.is_dead(*row, Seq::MAX) && !self.ending.contains(&Place::Segment(id, *row))
            };
            if let Some(row) = rows.bitmap().iter().map(RowId::from_raw).find(lives) {
                return Ok(Some(Address::Segment(Arc::clone(sealed), row)));
            }
        }
        Ok(None)
    }
}

/// Whether a document has an entry of this key: hashes may be equal where keys are not.
fn has_key(index: &Index, document: JsonbRef<'_>, key: &[u8]) -> bool {
    let mut found = false;
    // What no index takes has no entry.
    let _ = KeyMaker::default().each(&index.definition, document, |own| found |= own == key);
    found
}

/// The error of a key that is taken, with the values that `document` has it by.
pub(crate) fn duplicate(collection: &CollectionState, index: &Index, document: JsonbRef<'_>, key: &[u8]) -> Error {
    duplicate_in((&collection.db, &collection.name), index, document, key)
}

fn duplicate_in((db, name): (&str, &str), index: &Index, document: JsonbRef<'_>, key: &[u8]) -> Error {
    let definition = &index.definition;
    let mut values = Builder::new();
    values.begin_object();
    let mut told = Vec::new();
    let _ = KeyMaker::default().each_with_values(definition, document, &mut |own, parts| {
        if own != key {
            return;
        }
        for (field, value) in definition.fields.iter().zip(parts) {
            let value = value.unwrap_or(quarrydb_jsonb::NULL);
            values.field(field.path.as_str());
            values.copy(value);
            told.push(format!("{}: {}", field.path.as_str(), print(value)));
        }
    });
    let message = format!(
        "E11000 duplicate key error collection: {db}.{name} index: {} dup key: {{ {} }}",
        definition.name(),
        told.join(", ")
    );
    let error = Error::new(ErrorKind::DuplicateKey, message);
    let mut details = Builder::new();
    details.begin_object();
    details.field("indexName");
    details.string(definition.name());
    details.field("keyPattern");
    details.copy(definition.keys());
    details.field("keyValue");
    let built = values.end_object().and_then(|()| {
        details.copy(JsonbRef::from_valid(values.bytes()));
        details.end_object()
    });
    if built.is_ok() { error.with_details(details.take()) } else { error }
}
