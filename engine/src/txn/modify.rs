//! Changing and deleting documents by filter: what is asked, and what came of it.
//!
//! Takes requests; gives outcomes, and for the find-and-modify forms the document as it was or as it is. The mechanism
//! is told in `writing.rs`.

use std::sync::Arc;

use quarrydb_jsonb::JsonbBuf;
use quarrydb_query::update::ApplyContext;
use quarrydb_query::{Filter, Sort, Update};

use super::commit::{Order, nothing_to_do};
use super::group::Pending;
use super::writing::{Choice, Deleting, Done, Updating, Writing};
use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::exec::cursor::Document;
use crate::mvcc::version::{Address, Version};
use crate::options::WriteOptions;

/// What an update asks.
#[derive(Debug)]
#[non_exhaustive]
pub struct UpdateRequest {
    /// Which documents.
    pub filter: Filter,
    /// What becomes of them; a replacement too.
    pub update: Update,
    /// All that match, or the first.
    pub many: bool,
    /// Whether to insert a document where none matches.
    pub upsert: bool,
    /// Which is the first; none: in row order.
    pub sort: Option<Sort>,
}

impl UpdateRequest {
    /// `update` for the first document that `filter` matches.
    #[must_use]
    pub fn one(filter: Filter, update: Update) -> Self {
        Self { filter, update, many: false, upsert: false, sort: None }
    }

    /// `update` for all documents that `filter` matches.
    #[must_use]
    pub fn many(filter: Filter, update: Update) -> Self {
        Self { many: true, ..Self::one(filter, update) }
    }
}

/// What a deletion asks.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeleteRequest {
    /// Which documents.
    pub filter: Filter,
    /// All that match, or the first.
    pub many: bool,
    /// Which is the first; none: in row order.
    pub sort: Option<Sort>,
}

impl DeleteRequest {
    /// The first document that `filter` matches.
    #[must_use]
    pub fn one(filter: Filter) -> Self {
        Self { filter, many: false, sort: None }
    }

    /// All documents that `filter` matches.
    #[must_use]
    pub fn many(filter: Filter) -> Self {
        Self { many: true, ..Self::one(filter) }
    }
}

/// What came of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateOutcome {
    /// Documents that matched.
    pub matched: u64,
    /// Documents that changed.
    pub modified: u64,
    /// The `_id` of the document that was inserted.
    pub upserted_id: Option<JsonbBuf>,
}

/// What came of a deletion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteOutcome {
    /// Documents that went.
    pub deleted: u64,
}

/// The one document of a find-and-modify, as it was and as it is.
#[derive(Clone, Debug, Default)]
pub struct Modified {
    /// As it was; none where none matched.
    pub before: Option<Document>,
    /// As it is; none where it was deleted, or none matched and none was inserted.
    pub after: Option<Document>,
}

/// Updates what matches.
///
/// # Errors
/// The filter's and the update's own, with nothing changed; `DuplicateKey` of an upsert; what `Order::begin` says.
pub(crate) fn update(
    core: &Arc<Core>,
    found: Option<Arc<CollectionState>>,
    open: &mut dyn FnMut() -> Result<Arc<CollectionState>>,
    request: &UpdateRequest,
    options: &WriteOptions,
) -> Result<Pending<UpdateOutcome>> {
    Ok(run_update(core, found, open, request, options, false)?.map(|done| done.outcome))
}

/// Updates one document that matches and gives it.
///
/// # Errors
/// As [`update`].
pub(crate) fn find_and_update(
    core: &Arc<Core>,
    found: Option<Arc<CollectionState>>,
    open: &mut dyn FnMut() -> Result<Arc<CollectionState>>,
    request: &UpdateRequest,
    options: &WriteOptions,
) -> Result<Pending<(UpdateOutcome, Modified)>> {
    Ok(run_update(core, found, open, request, options, true)?.map(|done| (done.outcome, done.kept)))
}

fn run_update(
    core: &Arc<Core>,
    found: Option<Arc<CollectionState>>,
    open: &mut dyn FnMut() -> Result<Arc<CollectionState>>,
    request: &UpdateRequest,
    options: &WriteOptions,
    keep: bool,
) -> Result<Pending<Done>> {
    core.admit_write(options)?;
    let context = ApplyContext::at(core.clock.wall_millis().cast_signed());
    let act = Updating {
        filter: &request.filter,
        update: &request.update,
        context: &context,
        deadline: options.deadline,
        watched: core.changes.is_watched(),
    };
    let choice = Choice {
        filter: &request.filter,
        many: request.many,
        sort: request.sort.as_ref(),
        deadline: options.deadline,
        keep,
    };
    let journaled = core.journaled(options);
    let mut collection = match (found, request.upsert) {
        (Some(collection), _) => collection,
        (None, true) => open()?,
        (None, false) => return Ok(nothing_to_do(core, Done::default(), journaled)),
    };
    loop {
        if collection.is_dropped() {
            if !request.upsert {
                return Ok(nothing_to_do(core, Done::default(), journaled));
            }
            collection = open()?;
        }
        let writing = Writing { core, collection: &collection, choice: &choice, act: &act, journaled };
        let upsert = |order: &mut Order| writing.insert_upserted(order, request, &context);
        if let Some((done, seq)) = writing.run(if request.upsert { Some(&upsert) } else { None })? {
            return Ok(Pending::new(done, &core.group, seq, journaled));
        }
    }
}

/// Deletes what matches.
///
/// # Errors
/// The filter's own, with nothing changed; what `Order::begin` says.
pub(crate) fn delete(
    core: &Arc<Core>,
    collection: Option<Arc<CollectionState>>,
    request: &DeleteRequest,
    options: &WriteOptions,
) -> Result<Pending<DeleteOutcome>> {
    Ok(run_delete(core, collection, request, options, false)?
        .map(|done| DeleteOutcome { deleted: done.outcome.matched }))
}

/// Deletes one document that matches and gives it.
///
/// # Errors
/// As [`delete`].
pub(crate) fn find_and_delete(
    core: &Arc<Core>,
    collection: Option<Arc<CollectionState>>,
    request: &DeleteRequest,
    options: &WriteOptions,
) -> Result<Pending<Modified>> {
    Ok(run_delete(core, collection, request, options, true)?.map(|done| done.kept))
}

/// Deletes those rows of `version` that still live and that `filter` matches.
///
/// # Errors
/// As [`delete`].
pub(crate) fn delete_rows(
    core: &Arc<Core>,
    collection: &Arc<CollectionState>,
    filter: &Filter,
    rows: Vec<Address>,
    version: &Arc<Version>,
) -> Result<Pending<DeleteOutcome>> {
    let options = WriteOptions::default();
    core.admit_write(&options)?;
    let journaled = core.journaled(&options);
    let choice = Choice { filter, many: true, sort: None, deadline: None, keep: false };
    let writing = Writing { core, collection, choice: &choice, act: &Deleting, journaled };
    Ok(match writing.run_on(rows, version)? {
        Some((done, seq)) => Pending::new(DeleteOutcome { deleted: done.outcome.matched }, &core.group, seq, journaled),
        None => nothing_to_do(core, DeleteOutcome::default(), journaled),
    })
}

fn run_delete(
    core: &Arc<Core>,
    collection: Option<Arc<CollectionState>>,
    request: &DeleteRequest,
    options: &WriteOptions,
    keep: bool,
) -> Result<Pending<Done>> {
    core.admit_write(options)?;
    let journaled = core.journaled(options);
    let Some(collection) = collection else { return Ok(nothing_to_do(core, Done::default(), journaled)) };
    let choice = Choice {
        filter: &request.filter,
        many: request.many,
        sort: request.sort.as_ref(),
        deadline: options.deadline,
        keep,
    };
    let writing = Writing { core, collection: &collection, choice: &choice, act: &Deleting, journaled };
    Ok(match writing.run(None)? {
        Some((done, seq)) => Pending::new(done, &core.group, seq, journaled),
        // Dropped meanwhile: there is nothing left to delete.
        None => nothing_to_do(core, Done::default(), journaled),
    })
}
