//! Documents that go by themselves: those whose date in a field with `expireAfterSeconds` has passed by so much.
//!
//! Looks now and then for rows with such a date in the index's own entries, and deletes them as anyone would, in commits of
//! some thousand. Of several dates in an array the earliest counts; what is no date stays. A part of a collection without
//! entries is looked through by whoever deletes.

use std::sync::Arc;

use quarrydb_index::RowSet;
use quarrydb_jsonb::{Builder, JsonbRef};
use quarrydb_query::{Filter, ParseContext};

use crate::catalog::CollectionState;
use crate::core::Core;
use crate::error::Result;
use crate::ids::{RowId, Seq};
use crate::indexes::bounds::bounds;
use crate::indexes::{Index, IndexSource};
use crate::mvcc::version::{Address, Version};
use crate::options::WriteOptions;
use crate::txn::modify;

/// Documents that one commit ends.
const BATCH_ROWS: usize = 4096;

/// Deletes what has expired; how many documents that were.
///
/// # Errors
/// `Corrupt`, `Io`, and what a delete may say; what was deleted before stays so.
pub(crate) fn step(core: &Arc<Core>) -> Result<u64> {
    let mut deleted = 0;
    for collection in core.catalog.all() {
        let indexes = collection.indexes();
        for index in indexes.iter().filter(|index| index.is_ready()) {
            if let Some(after) = index.definition.expire_after {
                let now = core.clock.wall_millis().cast_signed();
                let filter = expired(index, now.saturating_sub(i64::from(after) * 1000))?;
                deleted += expire(core, &collection, index, &filter)?;
            }
        }
    }
    Ok(deleted)
}

/// The documents of the index whose date is at or before `border`.
fn expired(index: &Index, border: i64) -> Result<Filter> {
    let mut builder = Builder::new();
    builder.begin_object();
    for field in &index.definition.fields {
        builder.field(field.path.as_str());
        builder.begin_object();
        builder.field("$lte");
        builder.date(border);
        builder.end_object()?;
    }
    if let Some(partial) = &index.definition.partial {
        builder.field("$and");
        builder.begin_array();
        builder.copy(partial.text.view());
        builder.end_array()?;
    }
    builder.end_object()?;
    Ok(Filter::parse(JsonbRef::from_valid(builder.bytes()), &ParseContext::new("filter"))?)
}

fn expire(core: &Arc<Core>, collection: &Arc<CollectionState>, index: &Index, filter: &Filter) -> Result<u64> {
    let mut deleted = 0;
    loop {
        let version = collection.version();
        let Some(rows) = rows(&version, index, filter)? else {
            let request = modify::DeleteRequest::many(filter.clone());
            let pending = modify::delete(core, Some(Arc::clone(collection)), &request, &WriteOptions::default())?;
            return Ok(deleted + pending.wait()?.deleted);
        };
        if rows.is_empty() {
            return Ok(deleted);
        }
        let (found, more) = (rows.len(), rows.len() >= BATCH_ROWS);
        let gone = modify::delete_rows(core, collection, filter, rows, &version)?.wait()?.deleted;
        deleted += gone;
        // Where nothing of it could be deleted, others have changed it meanwhile: the next look finds what is left.
        if !more || gone == 0 && found > 0 {
            return Ok(deleted);
        }
    }
}

/// Some rows that live and that the index says have expired; none where it cannot say of some part.
fn rows(version: &Version, index: &Index, filter: &Filter) -> Result<Option<Vec<Address>>> {
    let mut found = Vec::new();
    for sealed in &version.segments {
        let Some(source) = sealed.index(index)? else { return Ok(None) };
        let Some(rows) = in_bounds(&source, index, filter)? else { return Ok(None) };
        let live = rows.bitmap().iter().map(RowId::from_raw).filter(|row| !sealed.deletes.is_dead(*row, Seq::MAX));
        found.extend(live.take(BATCH_ROWS - found.len()).map(|row| Address::Segment(Arc::clone(sealed), row)));
    }
    for tail in version.tails() {
        let Some(rows) = in_bounds(&tail.index(index), index, filter)? else { return Ok(None) };
        let lives = |row: &RowId| tail.life(*row).is_some_and(|(_, ended)| ended.is_none());
        let live = rows.bitmap().iter().map(RowId::from_raw).filter(lives);
        found.extend(live.take(BATCH_ROWS - found.len()).map(|row| Address::Tail(Arc::clone(tail), row)));
    }
    Ok(Some(found))
}

fn in_bounds(source: &IndexSource, index: &Index, filter: &Filter) -> Result<Option<RowSet>> {
    bounds(&index.definition, source.facts()?, filter.ast()).map(|bounds| source.rows(&bounds.ranges)).transpose()
}
