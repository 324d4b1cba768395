//! Unpacked blocks, shared by all segments within a budget of bytes.
//!
//! Takes blocks under (segment, block), gives them back while they last; sharded, so that readers seldom meet. Knows
//! nothing of files. A block in use lives on when it is thrown out. One is kept when it is wanted a second time within
//! some tens of thousands: what is read at random from more than memory holds is not worth the room and its making.

use super::block::row_range;
use crate::ids::SegmentId;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

/// What a block takes besides its bytes, about.
const OVERHEAD_BYTES: u64 = 128;
/// For the estimate of how many there will be.
const BLOCK_BYTES_USUAL: u64 = 20 << 10;

type Key = (SegmentId, u32);

/// Blocks that are remembered as wanted once.
const SEEN: usize = 1 << 16;

/// An unpacked block.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) count: u32,
    pub(crate) raw: Vec<u8>,
}

#[derive(Clone, Debug)]
struct ByBytes;

impl Weighter<Key, Arc<Block>> for ByBytes {
    fn weight(&self, _key: &Key, block: &Arc<Block>) -> u64 {
        block.raw.len() as u64 + OVERHEAD_BYTES
    }
}

/// The cache; one for a whole database.
pub struct BlockCache {
    blocks: Cache<Key, Arc<Block>, ByBytes>,
    /// A trace of each block that was wanted, until another takes its place.
    seen: Box<[AtomicU16]>,
}

impl BlockCache {
    /// A cache of at most `bytes`.
    #[must_use]
    pub fn new(bytes: u64) -> Self {
        let items = usize::try_from(bytes / BLOCK_BYTES_USUAL).unwrap_or(usize::MAX).max(1);
        let seen = (0..SEEN).map(|_| AtomicU16::new(0)).collect();
        Self { blocks: Cache::with_weighter(items, bytes, ByBytes), seen }
    }

    pub(crate) fn get(&self, segment: SegmentId, block: u32) -> Option<Arc<Block>> {
        self.blocks.get(&(segment, block))
    }

    /// Keeps a block that was not there, where it was wanted before.
    pub(crate) fn offer(&self, segment: SegmentId, block: u32, content: &Arc<Block>) {
        let mixed = (segment.get() << 24).wrapping_add(u64::from(block)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (slot, trace) = ((mixed >> 48) as usize % SEEN, (mixed >> 32) as u16);
        let before = self.seen.get(slot).map(|seen| seen.swap(trace, Ordering::Relaxed));
        if before == Some(trace) {
            self.blocks.insert((segment, block), Arc::clone(content));
        }
    }

    /// Bytes held now.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.blocks.weight()
    }

    /// Blocks held now.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockCache({} blocks, {} of {} bytes)", self.blocks(), self.bytes(), self.blocks.capacity())
    }
}

/// One row's bytes; keeps its block alive.
#[derive(Clone)]
pub struct DocRef {
    block: Arc<Block>,
    range: Range<usize>,
}

impl DocRef {
    /// Row `index` of the block, or nothing when the block cannot be sliced there.
    pub(crate) fn new(block: Arc<Block>, index: usize) -> Option<Self> {
        let range = row_range(&block.raw, block.count as usize, index)?;
        Some(Self { block, range })
    }
}

impl Deref for DocRef {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // `row_range` has held the range against the block.
        self.block.raw.get(self.range.clone()).unwrap_or_default()
    }
}

impl AsRef<[u8]> for DocRef {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for DocRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DocRef({} bytes)", self.len())
    }
}
