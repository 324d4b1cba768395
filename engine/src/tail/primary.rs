//! The `_id` hash of a tail: from a hash of the `_id` to the newest row with it.
//!
//! Takes 64-bit hashes and row numbers; whether two `_id`s are equal the caller says, who can see the rows. Older
//! versions hang on the row itself. Sharded, so that a reader seldom meets the one writer.

use hashbrown::HashTable;
use parking_lot::RwLock;

/// A power of two.
const SHARDS: usize = 16;

#[derive(Debug)]
struct Entry {
    hash: u64,
    row: u32,
}

/// From the hash of an `_id` to its newest row.
#[derive(Debug)]
pub(crate) struct Primary {
    shards: [RwLock<HashTable<Entry>>; SHARDS],
}

impl Default for Primary {
    fn default() -> Self {
        Self { shards: std::array::from_fn(|_| RwLock::new(HashTable::new())) }
    }
}

impl Primary {
    fn shard(&self, hash: u64) -> &RwLock<HashTable<Entry>> {
        // The table itself takes the low and the top seven bits.
        &self.shards[(hash >> 40) as usize % SHARDS]
    }

    /// The newest row for which `same` holds among those with `hash`.
    pub(crate) fn get(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        self.shard(hash).read().find(hash, |e| e.hash == hash && same(e.row)).map(|e| e.row)
    }

    /// Makes `row` the newest with its `_id`; gives the row that was, which `same` names.
    pub(crate) fn put(&self, hash: u64, row: u32, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        let mut shard = self.shard(hash).write();
        match shard.find_mut(hash, |e| e.hash == hash && same(e.row)) {
            Some(entry) => Some(std::mem::replace(&mut entry.row, row)),
            None => {
                shard.insert_unique(hash, Entry { hash, row }, |e| e.hash);
                None
            }
        }
    }

    /// Adds a row whose `_id` is known to be new.
    pub(crate) fn add(&self, hash: u64, row: u32) {
        self.shard(hash).write().insert_unique(hash, Entry { hash, row }, |e| e.hash);
    }
}
