//! Pairs in memory: their bytes one behind the other in chunks, and a small slot for each, which is what is sorted.
//!
//! A slot has the first eight bytes of its key, so that most comparisons look at nothing else. Slots of equal keys are
//! ordered by where their bytes lie, which is the order in which they came.

use std::cmp::Ordering;

use rayon::prelude::*;

/// Bytes of a chunk where there is room; a pair that is larger has its own.
const CHUNK_BYTES_MAX: usize = 1 << 20;
/// The least, however little memory there is.
const CHUNK_BYTES_MIN: usize = 4 << 10;
/// Bytes of the first chunk: most sorts are small.
const CHUNK_BYTES_FIRST: usize = 16 << 10;
/// Slots that are sorted in place.
const FEW: usize = 8192;

/// Pairs in memory.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    chunks: Vec<Vec<u8>>,
    /// The chunk that is being filled; those behind it are empty.
    filling: usize,
    slots: Vec<Slot>,
    /// Capacity of all chunks.
    bytes: usize,
    chunk_bytes: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    prefix: u64,
    chunk: u32,
    at: u32,
    key: u32,
    payload: u32,
}

/// The first eight bytes of a key, zeros where it is shorter; orders as far as it goes.
pub(super) fn prefix(key: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = key.len().min(8);
    first.iter_mut().zip(&key[..len]).for_each(|(to, from)| *to = *from);
    u64::from_be_bytes(first)
}

impl Buffer {
    /// Nothing yet, of at most `memory_max` bytes.
    pub(super) fn new(memory_max: usize) -> Self {
        let chunk_bytes = (memory_max / 16).clamp(CHUNK_BYTES_MIN, CHUNK_BYTES_MAX);
        Self { chunk_bytes, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Bytes held once a pair of such lengths is added.
    pub(super) fn held_with(&self, key: usize, payload: usize) -> usize {
        let need = key + payload;
        let fits = self.chunks.get(self.filling).is_some_and(|chunk| chunk.capacity() - chunk.len() >= need);
        let next = self.chunks.get(self.filling + 1).is_some_and(|chunk| chunk.capacity() >= need);
        let more = if fits || next { 0 } else { need.max(self.next_chunk()) };
        // The slots double, and for a moment both are there.
        let slots = if self.slots.len() < self.slots.capacity() {
            self.slots.capacity()
        } else {
            (self.slots.capacity() * 3).max(64)
        };
        self.bytes + more + slots * size_of::<Slot>()
    }

    /// Bytes of the chunk that would be made next: each is twice as large as the one before, up to a limit.
    fn next_chunk(&self) -> usize {
        self.chunk_bytes.min(CHUNK_BYTES_FIRST << self.chunks.len().min(8))
    }

    pub(super) fn push(&mut self, key: &[u8], payload: &[u8]) {
        let need = key.len() + payload.len();
        let fits = |chunk: &Vec<u8>| chunk.capacity() - chunk.len() >= need;
        if !self.chunks.get(self.filling).is_some_and(fits) {
            self.filling = if self.chunks.is_empty() { 0 } else { self.filling + 1 };
            if !self.chunks.get(self.filling).is_some_and(fits) {
                let chunk = Vec::with_capacity(need.max(self.next_chunk()));
                self.bytes += chunk.capacity();
                self.chunks.insert(self.filling, chunk);
            }
        }
        let Some(chunk) = self.chunks.get_mut(self.filling) else { return };
        // Below 2^32 all of them: a chunk has CHUNK_BYTES_MAX or one pair, whose size is bounded.
        let slot = Slot {
            prefix: prefix(key),
            chunk: self.filling as u32,
            at: chunk.len() as u32,
            key: key.len() as u32,
            payload: payload.len() as u32,
        };
        chunk.extend_from_slice(key);
        chunk.extend_from_slice(payload);
        self.slots.push(slot);
    }

    /// Puts the slots into the order of their keys.
    pub(super) fn sort(&mut self) {
        let chunks = &self.chunks;
        let key = |slot: &Slot| part(chunks, slot, slot.at, slot.key);
        let by_place = |a: &Slot, b: &Slot| (a.chunk, a.at).cmp(&(b.chunk, b.at));
        let order = |a: &Slot, b: &Slot| match a.prefix.cmp(&b.prefix) {
            Ordering::Equal => key(a).cmp(key(b)).then_with(|| by_place(a, b)),
            other => other,
        };
        if self.slots.len() <= FEW {
            self.slots.sort_unstable_by(order);
        } else {
            self.slots.par_sort_unstable_by(order);
        }
    }

    /// The pair at a place.
    pub(super) fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let slot = self.slots.get(at)?;
        let payload = part(&self.chunks, slot, slot.at + slot.key, slot.payload);
        Some((part(&self.chunks, slot, slot.at, slot.key), payload))
    }

    /// Empty again, with the memory kept.
    pub(super) fn clear(&mut self) {
        self.slots.clear();
        // One of a large pair is let go: few will be as large.
        let most = 2 * self.chunk_bytes;
        self.chunks.retain(|chunk| chunk.capacity() <= most);
        self.chunks.iter_mut().for_each(Vec::clear);
        self.bytes = self.chunks.iter().map(Vec::capacity).sum();
        self.filling = 0;
    }
}

fn part<'c>(chunks: &'c [Vec<u8>], slot: &Slot, from: u32, len: u32) -> &'c [u8] {
    let chunk = chunks.get(slot.chunk as usize).map_or(&[][..], Vec::as_slice);
    chunk.get(from as usize..from as usize + len as usize).unwrap_or_default()
}
