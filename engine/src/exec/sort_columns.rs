//! Sort keys and `_id`s from columns: what a sort or a deletion needs of a document without the document.
//!
//! For rows whose paths lead through no array, and whose values columns hold. Keys are those that `Sort::key` makes of the
//! documents, byte for byte.

use quarrydb_index::column::{Column, Value};
use quarrydb_index::{RowId, RowSet};
use quarrydb_jsonb::{Builder, JsonbRef};
use quarrydb_query::Sort;
use quarrydb_query::sort::{Direction, SortField};

use super::plain::{Plain, plain};
use crate::columns::value::{Tag, scalar_of};
use crate::columns::{Found, Source};
use crate::error::Result;

/// The path of the key that every document has.
const ID: &str = "_id";

/// Calls `give` with each row of `rows` and its key, in order; false, with nothing given, where columns are not enough.
///
/// # Errors
/// `Corrupt`, `Io`, and those of `give`.
pub(super) fn keys(
    source: Source<'_>,
    sort: &Sort,
    rows: &RowSet,
    give: &mut dyn FnMut(u32, &[u8]) -> Result<()>,
) -> Result<bool> {
    let mut fields = Vec::with_capacity(sort.fields().len());
    for field in sort.fields() {
        match field_keys(source, field, rows)? {
            Some(keys) => fields.push(keys),
            None => return Ok(false),
        }
    }
    let mut key = Vec::new();
    for (ordinal, row) in rows.iter().enumerate() {
        key.clear();
        fields.iter().for_each(|field| key.extend_from_slice(field.get(ordinal)));
        give(row.number(), &key)?;
    }
    Ok(true)
}

/// Calls `give` with each row of `rows` and its `_id`, in order; false, with nothing given, where columns are not enough.
///
/// # Errors
/// `Corrupt`, `Io`, and those of `give`.
pub(super) fn ids(
    source: Source<'_>,
    rows: &RowSet,
    give: &mut dyn FnMut(u32, JsonbRef<'_>) -> Result<()>,
) -> Result<bool> {
    let Found::Column(data) = source.find(ID)? else { return Ok(false) };
    let unreadable = |error| source.unreadable(ID, &error);
    let lanes = data.column().and_then(|column| column.lanes()).map_err(unreadable)?;
    // Of one type, and every row has it: else documents tell.
    let [lane] = &lanes[..] else { return Ok(false) };
    let Some(tag) = Tag::of(lane.tag()).filter(|tag| tag.is_exact()) else { return Ok(false) };
    if lane.presence().rows_with() != source.rows() || lane.presence().is_many() {
        return Ok(false);
    }
    let mut builder = Builder::new();
    let mut result = Ok(());
    let read = lane.for_rows(rows, |row, value| {
        builder.rewind(0);
        if result.is_ok() && scalar_of(tag, value, &mut builder) {
            result = give(row.number(), JsonbRef::from_valid(builder.bytes()));
        }
    });
    read.map_err(unreadable)?;
    result.map(|()| true)
}

/// The keys of one path by the place of the row among those asked for.
struct Keys {
    bytes: Vec<u8>,
    /// Where each begins and ends; rows without a value have the empty one of `none`.
    spans: Vec<(u32, u32)>,
}

impl Keys {
    fn get(&self, ordinal: usize) -> &[u8] {
        let (from, to) = self.spans.get(ordinal).copied().unwrap_or((0, 0));
        self.bytes.get(from as usize..to as usize).unwrap_or_default()
    }
}

fn field_keys(source: Source<'_>, field: &SortField, rows: &RowSet) -> Result<Option<Keys>> {
    let path = field.path.as_str();
    let Some(plain) = plain(source, path)? else { return Ok(None) };
    let mut bytes = Vec::new();
    // What is missing is as null.
    field.direction.key_of(None, &mut bytes);
    let none = (0, bytes.len() as u32);
    let mut keys = Keys { bytes, spans: vec![none; rows.len() as usize] };
    let Plain::Column(data) = plain else { return Ok(Some(keys)) };
    let added = data.column().and_then(|column| add_column(&column, field.direction, rows, &mut keys));
    let complete = added.map_err(|error| source.unreadable(path, &error))?;
    Ok(complete.then_some(keys))
}

/// Adds the keys of a column's values; false where it does not have them all.
fn add_column(
    column: &Column<'_>,
    direction: Direction,
    rows: &RowSet,
    keys: &mut Keys,
) -> quarrydb_index::Result<bool> {
    let lanes = column.lanes()?;
    if lanes.iter().any(|lane| Tag::of(lane.tag()).is_none_or(Tag::is_mark)) {
        return Ok(false);
    }
    let mut builder = Builder::new();
    for lane in lanes {
        let Some(tag) = Tag::of(lane.tag()) else { return Ok(false) };
        // Rows of the lane come in the order of `rows`.
        let mut places = rows.iter().enumerate();
        lane.for_rows(rows, |row, value| {
            let Some(place) = place_of(&mut places, row) else { return };
            let from = keys.bytes.len() as u32;
            match value {
                // These are kept as their keys.
                Value::Bytes(key) if matches!(tag, Tag::Decimal | Tag::Other) => {
                    direction.key_of_ascending(key, &mut keys.bytes);
                }
                value => {
                    builder.rewind(0);
                    if scalar_of(tag, value, &mut builder) {
                        direction.key_of(Some(JsonbRef::from_valid(builder.bytes())), &mut keys.bytes);
                    }
                }
            }
            if let Some(span) = keys.spans.get_mut(place) {
                *span = (from, keys.bytes.len() as u32);
            }
        })?;
    }
    Ok(true)
}

fn place_of(places: &mut impl Iterator<Item = (usize, RowId)>, row: RowId) -> Option<usize> {
    places.find(|(_, other)| *other == row).map(|(place, _)| place)
}
