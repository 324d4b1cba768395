//! An index over a tail: made of its rows when it is asked, and gone on with from where it was.
//!
//! A tail's rows are only ever appended and never change, so their entries are a function of them: nothing has to be kept
//! in step with commits, replayed, or filled in for an index that is declared later. Sorted runs are immutable and shared
//! with readers; small ones are merged as more come. The committer has hashes of the keys beside them, for unique
//! indexes, under a lock that no reader takes.

use std::sync::Arc;

use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use quarrydb_jsonb::JsonbRef;
use xxhash_rust::xxh3::xxh3_64;

use super::entries::Entries;
use super::keys::{Facts, KeyMaker};
use super::state::Index;
use crate::ids::IndexId;

/// An index over a tail.
#[derive(Debug)]
pub(crate) struct TailIndex {
    id: IndexId,
    sorted: Mutex<Sorted>,
    hashed: Mutex<Hashed>,
}

/// The entries of a tail's first rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sorted {
    /// Rows whose entries are here: all before this.
    pub rows: u32,
    /// From the largest to the smallest.
    pub runs: Vec<Arc<Entries>>,
    /// What they have in common.
    pub facts: Facts,
}

#[derive(Debug, Default)]
struct Hashed {
    rows: u32,
    table: HashTable<(u64, u32)>,
}

impl TailIndex {
    fn new(id: IndexId) -> Self {
        Self { id, sorted: Mutex::default(), hashed: Mutex::default() }
    }

    /// The entries of all rows before `rows`, which `document` gives.
    pub(crate) fn sorted<'a>(
        &self,
        index: &Index,
        rows: u32,
        document: &dyn Fn(u32) -> Option<JsonbRef<'a>>,
    ) -> Sorted {
        let mut sorted = self.sorted.lock();
        if sorted.rows < rows {
            let mut made = Entries::default();
            let mut maker = KeyMaker::default();
            for row in sorted.rows..rows {
                let Some(document) = document(row) else { break };
                // It is refused where it is written; one from before the index makes the part incomplete.
                maker.facts.incomplete |= maker.each(&index.definition, document, |key| made.push(key, row)).is_err();
                sorted.rows = row + 1;
            }
            sorted.facts.merge(maker.facts);
            made.sort();
            sorted.runs.push(Arc::new(made));
            while let [.., before, last] = &sorted.runs[..]
                && before.len() < 2 * last.len().max(1)
            {
                let merged = Arc::new(Entries::merge(before, last));
                let kept = sorted.runs.len() - 2;
                sorted.runs.truncate(kept);
                sorted.runs.push(merged);
            }
        }
        sorted.clone()
    }

    /// Calls `found` with each row before `rows` that may have an entry of this key, until it says that it is enough;
    /// whether it did. For the committer.
    pub(crate) fn probe<'a>(
        &self,
        index: &Index,
        rows: u32,
        key: &[u8],
        document: &dyn Fn(u32) -> Option<JsonbRef<'a>>,
        found: &mut dyn FnMut(u32) -> bool,
    ) -> bool {
        let mut hashed = self.hashed.lock();
        let Hashed { rows: done, table } = &mut *hashed;
        let mut maker = KeyMaker::default();
        while *done < rows {
            let Some(document) = document(*done) else { break };
            let row = *done;
            let _ = maker.each(&index.definition, document, |key| {
                table.insert_unique(xxh3_64(key), (xxh3_64(key), row), |entry| entry.0);
            });
            *done += 1;
        }
        let hash = xxh3_64(key);
        table.iter_hash(hash).any(|&(other, row)| other == hash && found(row))
    }
}

/// The indexes that a tail has entries of.
#[derive(Debug, Default)]
pub(crate) struct TailIndexes(RwLock<Vec<Arc<TailIndex>>>);

impl TailIndexes {
    /// That of an index, made where it is not there.
    pub(crate) fn get(&self, id: IndexId) -> Arc<TailIndex> {
        let find = |list: &[Arc<TailIndex>]| list.iter().find(|own| own.id == id).cloned();
        if let Some(found) = find(&self.0.read()) {
            return found;
        }
        let mut list = self.0.write();
        if let Some(found) = find(&list) {
            return found;
        }
        let new = Arc::new(TailIndex::new(id));
        list.push(Arc::clone(&new));
        new
    }

    /// Lets an index go that was dropped.
    pub(crate) fn forget(&self, id: IndexId) {
        self.0.write().retain(|own| own.id != id);
    }
}
