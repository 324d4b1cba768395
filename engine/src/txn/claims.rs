//! Which documents and which unique keys interactive transactions have written first, as long as these are open.
//!
//! Takes places (a collection's names, hashed; an index of it) and hashes of what is there; gives whether it was free. Two
//! that hash alike are taken for one: a transaction begins anew for nothing then, which is right all the same. Writes
//! outside interactive transactions ask nobody here.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use parking_lot::Mutex;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use crate::ids::IndexId;

/// What a transaction claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim(u64, u64);

impl Claim {
    /// The document with an `_id` of this hash, in the collection at `place`.
    pub(super) fn document(place: u64, hash: u64) -> Self {
        Self(place, hash)
    }

    /// A key of a unique index of the collection at `place`.
    pub(super) fn key(place: u64, index: IndexId, key: &[u8]) -> Self {
        Self(xxh3_64_with_seed(&index.get().to_le_bytes(), place), xxh3_64(key))
    }
}

/// The place of a collection.
pub(super) fn place(db: &str, name: &str) -> u64 {
    xxh3_64_with_seed(name.as_bytes(), xxh3_64(db.as_bytes()))
}

/// Who has claimed what.
#[derive(Debug, Default)]
pub(crate) struct Claims(Mutex<HashMap<Claim, u64>>);

impl Claims {
    /// Lets transaction `of` have it; none where another has, else whether it is new.
    pub(super) fn take(&self, claim: Claim, of: u64) -> Option<bool> {
        match self.0.lock().entry(claim) {
            Entry::Vacant(vacant) => {
                vacant.insert(of);
                Some(true)
            }
            Entry::Occupied(has) => (*has.get() == of).then_some(false),
        }
    }

    /// Gives back what a transaction has.
    pub(super) fn give_back(&self, claims: &[Claim]) {
        if claims.is_empty() {
            return;
        }
        let mut all = self.0.lock();
        for claim in claims {
            all.remove(claim);
        }
    }
}
