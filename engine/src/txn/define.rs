//! Declaring an index and dropping one: commits like any other.
//!
//! Takes definitions; gives the indexes they are, new ones in the order of the log and waiting to be built. An index of a
//! collection without a row serves at once. Building and waiting for it are `maintain/indexes.rs`.

use std::sync::Arc;

use super::commit::Order;
use super::payload::{self, Op, Span};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{IndexId, Seq};
use crate::indexes::definition::ID_INDEX;
use crate::indexes::{Index, IndexDefinition};
use crate::log::Payload;

/// The indexes that definitions ask for, and the commit that declares those which are new; none where all are there.
///
/// # Errors
/// `IndexOptionsConflict`, `IndexKeySpecsConflict`, `CannotCreateIndex`, and what `Order::begin` says; nothing has changed.
pub(crate) fn create(
    core: &Core,
    order: &mut Order,
    collection: &CollectionState,
    definitions: &[IndexDefinition],
    journaled: bool,
) -> Result<(Vec<Arc<Index>>, Option<Seq>)> {
    let mut set = (*collection.indexes()).clone();
    let version = collection.version();
    let empty = version.segments.is_empty() && version.tails().all(|tail| tail.rows() == 0);
    let (mut all, mut new) = (Vec::new(), Vec::new());
    let (mut bytes, mut ops) = (Vec::new(), Vec::new());
    // What every collection has is there already.
    for definition in definitions.iter().filter(|definition| !definition.is_id()) {
        if let Some(same) = set.same_as(definition)? {
            all.push(Arc::clone(same));
            continue;
        }
        let id = set.next_id();
        let index = Arc::new(Index::new(id, definition.clone(), empty));
        let object = definition.to_object()?;
        let start = bytes.len();
        bytes.extend_from_slice(object.view().as_bytes());
        let definition = Span::new(start, bytes.len());
        ops.push(Op::CreateIndex { collection: collection.id, definition, index: id });
        if empty {
            ops.push(Op::IndexReady { collection: collection.id, index: id });
        }
        set = set.with(Arc::clone(&index));
        new.push(Arc::clone(&index));
        all.push(index);
    }
    if new.is_empty() {
        return Ok((all, None));
    }
    let payload = Payload::new(payload::finish(bytes, &ops));
    let commit = order.begin(core, payload.bytes().len(), journaled)?;
    collection.install_indexes(set);
    Ok((all, Some(commit.finish(payload))))
}

/// Lets indexes serve from here on.
///
/// # Errors
/// What `Order::begin` says; nothing has changed then.
pub(crate) fn ready(
    core: &Core,
    order: &mut Order,
    collection: &CollectionState,
    indexes: &[Arc<Index>],
) -> Result<Seq> {
    let op = |index: &Arc<Index>| Op::IndexReady { collection: collection.id, index: index.id };
    let seq = change(core, order, indexes.iter().map(op).collect(), true)?;
    indexes.iter().for_each(|index| index.set_ready());
    Ok(seq)
}

/// Ends indexes.
///
/// # Errors
/// What `Order::begin` says; nothing has changed then.
pub(crate) fn drop(
    core: &Core,
    order: &mut Order,
    collection: &CollectionState,
    indexes: &[Arc<Index>],
    journaled: bool,
) -> Result<Seq> {
    let op = |index: &Arc<Index>| Op::DropIndex { collection: collection.id, index: index.id };
    let seq = change(core, order, indexes.iter().map(op).collect(), journaled)?;
    let mut set = (*collection.indexes()).clone();
    let version = collection.version();
    for index in indexes {
        set = set.without(index.id);
        index.set_gone();
        forget(&version, index.id);
    }
    collection.install_indexes(set);
    // Its files go with the next manifest.
    core.catalog.note_changed();
    Ok(seq)
}

fn forget(version: &crate::mvcc::version::Version, index: IndexId) {
    version.segments.iter().for_each(|sealed| sealed.indexes.detach(index));
    version.tails().for_each(|tail| tail.forget(index));
}

fn change(core: &Core, order: &mut Order, ops: Vec<Op>, journaled: bool) -> Result<Seq> {
    let payload = Payload::new(payload::finish(Vec::new(), &ops));
    let commit = order.begin(core, payload.bytes().len(), journaled)?;
    Ok(commit.finish(payload))
}

/// The indexes that a name means: one, or with `*` all but `_id_`.
///
/// # Errors
/// `IndexNotFound` (27), `InvalidOptions` (72) for `_id_`.
pub(crate) fn named(collection: &CollectionState, name: &str) -> Result<Vec<Arc<Index>>> {
    let set = collection.indexes();
    if name == "*" {
        return Ok(set.iter().cloned().collect());
    }
    if name == ID_INDEX {
        let error = Error::new(ErrorKind::InvalidInput, "cannot drop _id index");
        return Err(error.with_code("InvalidOptions", 72));
    }
    match set.by_name(name) {
        Some(index) => Ok(vec![Arc::clone(index)]),
        None => Err(not_found(&collection.db, &collection.name, name)),
    }
}

/// The error of a name that no index has.
pub(crate) fn not_found(db: &str, collection: &str, name: &str) -> Error {
    let message = format!("index not found with name [{name:.200}] in {db}.{collection}: GET .../indexes lists them");
    Error::new(ErrorKind::NotFound, message).with_code("IndexNotFound", 27)
}
