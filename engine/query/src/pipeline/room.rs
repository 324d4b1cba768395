//! Room on the stack: a document goes through all stages of a pipeline, and of those in it, on one stack.
//!
//! Where little of it is left the rest runs on a new one, which costs as much as mapping memory does; pipelines that are
//! written by hand never come to that. What a host or an expression takes between two looks is well below [`ROOM_BYTES`].

use super::host::Fault;
use super::operator::{Flow, Next, Operator};
use quarrydb_jsonb::JsonbRef;

/// What is sure to be there.
const ROOM_BYTES: usize = 1 << 20;

/// What a new stack has.
const GROWN_BYTES: usize = 4 << 20;

/// Stages between two looks.
pub(super) const STAGES_BETWEEN: usize = 32;

/// Runs `run` with room on the stack.
pub(super) fn with_room<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ROOM_BYTES, GROWN_BYTES, run)
}

/// Stands between stages where there are many.
pub(super) struct Roomy;

impl Operator for Roomy {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        with_room(|| next.push(document))
    }
}
