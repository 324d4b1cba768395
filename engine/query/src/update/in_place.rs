//! The fast way for scalar operators at fixed paths: a copy of the document in which only the values are written over.
//!
//! Takes the simple leaves of an update and a document; gives the new document where each leaf finds a value that its
//! new value fits into to the byte, else nothing, and the general way of `apply.rs` is taken. It must agree with that.

use super::ast::{Leaf, Op};
use super::scalar::{self, Clock};
use crate::QueryError;
use crate::path_walk::FieldPath;
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, Kind};
use std::sync::Arc;

/// Bytes of one scalar and some more.
const SPARE_BYTES: usize = 32;

/// `Some(None)` where nothing changes; none where this way does not serve.
pub(super) fn apply(
    leaves: &[(FieldPath, Arc<Leaf>)],
    document: JsonbRef<'_>,
    clock: Clock,
) -> Result<Option<Option<JsonbBuf>>, QueryError> {
    let old = document.as_bytes();
    let mut copy = Vec::with_capacity(old.len() + SPARE_BYTES);
    copy.extend_from_slice(old);
    // The new values are written behind the copy, then moved to where the old ones are.
    let mut out = Builder::onto(copy);
    let mut moves = Moves::default();
    for (path, leaf) in leaves {
        let Some(current) = find(path, document) else { return Ok(None) };
        // What may nest deeper than what stands there is for the general way to judge.
        let nests = leaf.nesting > 0 || matches!(current.kind(), Kind::Array | Kind::Object);
        if nests || matches!(leaf.op, Op::SetOnInsert(_)) {
            return Ok(None);
        }
        let from = out.len();
        scalar::write(leaf, Some(current), clock, &mut out).map_err(|e| e.at_written(&leaf.place))?;
        let (to, len) = (offset(current, old), out.len() - from);
        if len != current.as_bytes().len() {
            return Ok(None);
        }
        if &out.bytes()[from..] != current.as_bytes() {
            moves.push((from, to, len));
        }
    }
    if moves.is_empty() {
        return Ok(Some(None));
    }
    let mut bytes = out.take();
    for (from, to, len) in moves.first.into_iter().chain(moves.more) {
        bytes.copy_within(from..from + len, to);
    }
    bytes.truncate(old.len());
    Ok(Some(Some(JsonbBuf::from_valid(bytes))))
}

/// A list whose first element needs no allocation.
#[derive(Default)]
struct Moves {
    first: Option<(usize, usize, usize)>,
    more: Vec<(usize, usize, usize)>,
}

impl Moves {
    fn push(&mut self, m: (usize, usize, usize)) {
        match self.first {
            None => self.first = Some(m),
            Some(_) => self.more.push(m),
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

#[inline]
fn find<'a>(path: &FieldPath, document: JsonbRef<'a>) -> Option<JsonbRef<'a>> {
    let mut here = document;
    for part in path.parts() {
        here = match here.as_object() {
            Some(object) => object.get(part.name())?,
            None => here.as_array()?.get(part.index()?)?,
        };
    }
    Some(here)
}

/// Where a value lies in the document that it was found in.
#[inline]
fn offset(value: JsonbRef<'_>, document: &[u8]) -> usize {
    value.as_bytes().as_ptr() as usize - document.as_ptr() as usize
}
