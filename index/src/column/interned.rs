//! Byte strings of one lane as they come: each distinct one once while they repeat, else one after the other.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Values after which a lane whose values nearly all differ keeps them as they come; and again at each power of two.
const LOOK_AFTER: usize = 4096;

/// Strings behind one another.
#[derive(Debug, Default)]
pub(super) struct Arena {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Arena {
    fn push(&mut self, value: &[u8]) -> Option<u32> {
        let end = u32::try_from(self.bytes.len() + value.len()).ok()?;
        self.bytes.extend_from_slice(value);
        self.ends.push(end);
        Some(self.ends.len() as u32 - 1)
    }

    pub(super) fn get(&self, at: usize) -> &[u8] {
        let from = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let to = self.ends.get(at).copied().unwrap_or(from);
        self.bytes.get(from as usize..to as usize).unwrap_or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}

/// The strings of a lane, to be named by number.
#[derive(Debug)]
pub(super) struct Interned {
    arena: Arena,
    /// By value, while each distinct one is kept once.
    known: Option<HashTable<u32>>,
    hasher: DefaultHashBuilder,
}

impl Default for Interned {
    fn default() -> Self {
        Self { arena: Arena::default(), known: Some(HashTable::new()), hasher: DefaultHashBuilder::default() }
    }
}

impl Interned {
    /// The number of a value; `numbers` are those given so far, which may be made anew. None beyond 4 GiB.
    pub(super) fn number(&mut self, value: &[u8], numbers: &mut [u32]) -> Option<u32> {
        if numbers.len() >= LOOK_AFTER && numbers.len().is_power_of_two() && self.known.is_some() {
            self.look(numbers)?;
        }
        let Self { arena, known, hasher } = self;
        let Some(known) = known else { return arena.push(value) };
        let hash = hasher.hash_one(value);
        if let Some(&found) = known.find(hash, |&at| arena.get(at as usize) == value) {
            return Some(found);
        }
        let at = arena.push(value)?;
        known.insert_unique(hash, at, |&at| hasher.hash_one(arena.get(at as usize)));
        Some(at)
    }

    /// Where nearly all differ, keeps them as they come from here on.
    fn look(&mut self, numbers: &mut [u32]) -> Option<()> {
        if self.arena.len() <= numbers.len() / 4 * 3 {
            return Some(());
        }
        let mut all = Arena::default();
        for number in numbers {
            *number = all.push(self.arena.get(*number as usize))?;
        }
        self.arena = all;
        self.known = None;
        Some(())
    }

    /// Whether each distinct value is there once.
    pub(super) fn is_distinct(&self) -> bool {
        self.known.is_some()
    }

    /// The strings by number.
    pub(super) fn arena(&self) -> &Arena {
        &self.arena
    }
}
