//! What a scan looks at: a version with the indexes that were declared on it, and rows of it that are not to be seen.
//!
//! Mostly that is a collection as it stands. A transaction looks at the same with its own documents as the newest tail, and
//! with those rows hidden that it changed or deleted: so all ways of finding, counting and sorting answer as if it had
//! been committed already. Takes addresses; knows nothing of transactions.

use std::collections::HashMap;
use std::sync::Arc;

use roaring::RoaringBitmap;

use crate::catalog::CollectionState;
use crate::ids::Seq;
use crate::indexes::IndexSet;
use crate::mvcc::version::{Address, Frozen, Version};
use crate::tail::Tail;

/// What a scan looks at.
#[derive(Clone, Debug)]
pub(crate) struct View {
    pub version: Arc<Version>,
    pub indexes: Arc<IndexSet>,
    /// Rows that are not seen, by where they lie, counted as in [`RowAt`](super::scan::RowAt).
    pub(super) hidden: HashMap<u32, RoaringBitmap>,
    plain: bool,
}

impl View {
    /// A collection as it stands.
    pub(crate) fn of(collection: &CollectionState) -> Self {
        Self::new(collection.version(), collection.indexes())
    }

    /// A version, all of it.
    pub(crate) fn new(version: Arc<Version>, indexes: Arc<IndexSet>) -> Self {
        Self { version, indexes, hidden: HashMap::new(), plain: true }
    }

    /// Whether it is a collection as it stands, with nothing hidden and nothing of a transaction's own.
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// The same with the rows of `tail` behind its own, and without those at `hidden`, which all lie in its version.
    pub(crate) fn with(mut self, tail: Arc<Tail>, hidden: impl Iterator<Item = Address>) -> Self {
        self.plain = false;
        let version = &self.version;
        let segments = (0_u32..).zip(&version.segments).map(|(at, sealed)| (Arc::as_ptr(sealed).cast::<()>(), at));
        let first_tail = version.segments.len() as u32;
        let frozen = version.frozen.iter().map(|frozen| &frozen.tail).chain([&version.tail]);
        let tails = (first_tail..).zip(frozen).map(|(at, tail)| (Arc::as_ptr(tail).cast::<()>(), at));
        let places: HashMap<_, _> = segments.chain(tails).collect();
        for address in hidden {
            let (part, row) = match &address {
                Address::Tail(tail, row) => (Arc::as_ptr(tail).cast::<()>(), row),
                Address::Segment(sealed, row) => (Arc::as_ptr(sealed).cast::<()>(), row),
            };
            if let Some(place) = places.get(&part) {
                self.hidden.entry(*place).or_default().insert(row.get());
            }
        }
        let mut version = Version::clone(&self.version);
        let before = std::mem::replace(&mut version.tail, tail);
        version.frozen.push(Frozen { tail: before, last_seq: Seq::MAX });
        self.version = Arc::new(version);
        self
    }
}
