//! A set of byte strings in one buffer: no allocation of its own for each.
//!
//! For `$in` and `distinct`, whose values may be millions.

use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::BuildHasher;

/// A set of byte strings in one buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ByteSet {
    bytes: Vec<u8>,
    /// Start and length in `bytes`.
    table: HashTable<(u32, u32)>,
    hash: DefaultHashBuilder,
}

impl ByteSet {
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        !self.is_empty() && self.table.find(self.hash.hash_one(key), |&at| slice(&self.bytes, at) == key).is_some()
    }

    /// The bytes that it holds, for a memory budget.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len() + self.table.len() * size_of::<(u32, u32)>()
    }

    /// Adds a string; says whether it is new. Holds 4 GiB at most, far above any body or budget, and takes no more then.
    pub(crate) fn insert(&mut self, key: &[u8]) -> bool {
        if self.contains(key) {
            return false;
        }
        let (Ok(start), Ok(len)) = (u32::try_from(self.bytes.len()), u32::try_from(key.len())) else { return false };
        self.bytes.extend_from_slice(key);
        let (bytes, hash) = (&self.bytes, &self.hash);
        self.table.insert_unique(hash.hash_one(key), (start, len), |&at| hash.hash_one(slice(bytes, at)));
        true
    }
}

fn slice(bytes: &[u8], (start, len): (u32, u32)) -> &[u8] {
    bytes.get(start as usize..start as usize + len as usize).unwrap_or_default()
}
