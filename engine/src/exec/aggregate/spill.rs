//! What a stage cannot hold goes through the engine's sorter, which goes to the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quarrydb_query::pipeline::{Fault, KeyAndPayload, Spill, Spilled};

use crate::core::Core;
use crate::spill::{SortLimits, Sorted, Sorter};

/// Pairs on their way to the disk.
pub(super) struct SpillTo {
    sorter: Sorter,
    bytes: Arc<AtomicU64>,
}

impl SpillTo {
    /// Nothing yet; what goes to the disk is counted in `bytes`.
    pub(super) fn new(core: &Core, limits: SortLimits, bytes: &Arc<AtomicU64>) -> Self {
        Self { sorter: Sorter::new(&core.spills, &core.queries, limits), bytes: Arc::clone(bytes) }
    }
}

impl Spill for SpillTo {
    fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Fault> {
        Ok(self.sorter.push(key, payload)?)
    }

    fn finish(self: Box<Self>) -> Result<Box<dyn Spilled>, Fault> {
        let sorted = self.sorter.finish()?;
        self.bytes.fetch_add(sorted.spilled_bytes(), Ordering::Relaxed);
        Ok(Box::new(InOrder(sorted)))
    }
}

/// The same, in order.
struct InOrder(Sorted);

impl Spilled for InOrder {
    fn next(&mut self) -> Result<Option<KeyAndPayload<'_>>, Fault> {
        Ok(self.0.next()?)
    }
}
