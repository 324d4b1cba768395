//! The run of an index over a segment from the segment's columns: no document is read.
//!
//! Takes columns and a definition; gives the sorted run that the documents would give, or nothing where columns do not hold
//! all that an entry needs: arrays, objects, texts too long to be kept, paths without a column, a condition on documents.
//! Where each field's values have numbers of their order, numbers are sorted (`numbered.rs`); else keys are.

use quarrydb_index::RowSet;
use quarrydb_index::column::{Column, Lane, Value as Laid};
use quarrydb_jsonb::Value;

use super::definition::{IndexDefinition, KeyField};
use super::entries::Entries;
use super::keys::{Facts, NULL_KEY, put_scalar};
use super::numbered;
use crate::columns::value::Tag;
use crate::columns::{Found, Source};
use crate::error::{Error, ErrorKind, Result};

/// A run made of columns.
#[derive(Debug)]
pub(crate) struct Made {
    /// Its bytes.
    pub run: Vec<u8>,
    /// How many entries it has.
    pub entries: u64,
    /// What these have in common.
    pub facts: Facts,
}

/// One field of an index: at most one value for each row, or null, or nothing.
pub(super) struct Field<'a> {
    pub path: &'a str,
    pub descending: bool,
    /// None where no row has the path.
    pub column: Option<Column<'a>>,
    pub lanes: Vec<(Tag, Lane<'a>)>,
}

/// The run of an index over the rows of a segment; none where its columns do not tell.
///
/// # Errors
/// `Corrupt` and `Io` from columns; `LimitExceeded` where the entries are more than a run can hold.
pub(crate) fn run_of(source: Source<'_>, index: &IndexDefinition) -> Result<Option<Made>> {
    if index.partial.is_some() {
        return Ok(None);
    }
    let mut fields = Vec::with_capacity(index.fields.len());
    for field in &index.fields {
        match Field::open(source, field)? {
            Some(field) => fields.push(field),
            None => return Ok(None),
        }
    }
    // A sparse index has no rows that miss every field.
    let only = if index.sparse { Some(having_any(source, &fields)?) } else { None };
    if let Some(made) = numbered::run_of(source, &fields, only.as_ref())? {
        return Ok(Some(made));
    }
    by_keys(source, &fields, only.as_ref()).map(Some)
}

fn having_any(source: Source<'_>, fields: &[Field<'_>]) -> Result<RowSet> {
    let mut rows = RowSet::new();
    for field in fields {
        if let Some(column) = &field.column {
            rows.add(&column.present().map_err(|e| source.unreadable(field.path, &e))?);
        }
    }
    Ok(rows)
}

impl<'a> Field<'a> {
    /// The values of a path; none where some row may have several, or one that no lane has.
    fn open(source: Source<'a>, field: &'a KeyField) -> Result<Option<Self>> {
        let path = field.path.as_str();
        let mut own = Self { path, descending: field.descending, column: None, lanes: Vec::new() };
        for end in path.match_indices('.').map(|(at, _)| at).chain([path.len()]) {
            let before = path.get(..end).unwrap_or(path);
            match source.find(before)? {
                Found::Rows(rows) if rows.is_empty() => {
                    own.column = None;
                    return Ok(Some(own));
                }
                Found::Rows(_) => return Ok(None),
                Found::Column(data) => {
                    let column = data.column().map_err(|e| source.unreadable(before, &e))?;
                    if column.array_count().map_err(|e| source.unreadable(before, &e))? > 0 {
                        return Ok(None);
                    }
                    own.column = Some(column);
                }
            }
        }
        let Some(column) = &own.column else { return Ok(Some(own)) };
        for lane in column.lanes().map_err(|e| source.unreadable(path, &e))? {
            match Tag::of(lane.tag()) {
                Some(tag) if !tag.is_mark() && !lane.presence().is_many() => own.lanes.push((tag, lane)),
                _ => return Ok(None),
            }
        }
        Ok(Some(own))
    }
}

/// Appends the ascending key of a lane's value; whether it was cut. None where a lane holds what it cannot.
pub(super) fn put_laid(tag: Tag, value: Laid<'_>, out: &mut Vec<u8>) -> Option<bool> {
    let scalar = match (tag, value) {
        (Tag::Bool, Laid::Bool(value)) => Value::Bool(value),
        (Tag::Int32 | Tag::Int64, Laid::Int(number)) => Value::Int64(number),
        (Tag::Double, Laid::Float(number)) => Value::Double(number),
        (Tag::Date, Laid::Int(millis)) => Value::Date(millis),
        (Tag::String, Laid::Bytes(bytes)) => Value::String(std::str::from_utf8(bytes).ok()?),
        (Tag::ObjectId, Laid::Bytes(bytes)) => Value::ObjectId(bytes.try_into().ok()?),
        // They are kept by their keys.
        (Tag::Decimal | Tag::Other, Laid::Bytes(key)) => {
            out.extend_from_slice(key);
            return Some(false);
        }
        _ => return None,
    };
    Some(put_scalar(&scalar, out))
}

/// What a column holds that no writer writes.
pub(super) fn impossible(source: Source<'_>, path: &str) -> Error {
    let what = quarrydb_index::Error::Misuse { what: "a lane's values are of its type" };
    source.unreadable(path, &what)
}

/// The keys of one field, by row.
struct Keys {
    bytes: Vec<u8>,
    /// Where the key of a row lies; nowhere for null.
    of_row: Vec<(u32, u32)>,
    cut: bool,
}

impl Keys {
    fn of(source: Source<'_>, field: &Field<'_>) -> Result<Self> {
        let rows = source.rows() as usize;
        let mut keys = Self { bytes: Vec::new(), of_row: vec![(0, 0); rows], cut: false };
        for (tag, lane) in &field.lanes {
            let mut broken = false;
            let each = |row: quarrydb_index::RowId, value: Laid<'_>| {
                let from = keys.bytes.len();
                let put = put_laid(*tag, value, &mut keys.bytes);
                let (Some(cut), Some(slot), Ok(start)) =
                    (put, keys.of_row.get_mut(row.number() as usize), u32::try_from(from))
                else {
                    broken = true;
                    return;
                };
                if field.descending {
                    keys.bytes[from..].iter_mut().for_each(|byte| *byte = !*byte);
                }
                keys.cut |= cut;
                *slot = (start, (keys.bytes.len() - from) as u32);
            };
            lane.for_each(each).map_err(|e| source.unreadable(field.path, &e))?;
            if broken {
                return Err(impossible(source, field.path));
            }
        }
        Ok(keys)
    }

    fn get(&self, row: u32) -> Option<&[u8]> {
        let (start, len) = self.of_row.get(row as usize).copied().filter(|&(_, len)| len > 0)?;
        self.bytes.get(start as usize..start as usize + len as usize)
    }
}

/// The entries of one ascending field whose values lie in one lane: as they come.
fn of_lane(
    source: Source<'_>,
    path: &str,
    (tag, lane): &(Tag, Lane<'_>),
    only: Option<&RowSet>,
) -> Result<(Entries, Facts)> {
    let mut entries = Entries::with_capacity(source.rows() as usize);
    let (mut facts, mut key, mut next, mut broken) = (Facts::default(), Vec::new(), 0, false);
    let is_in = |row: &u32| only.is_none_or(|only| only.contains(quarrydb_index::RowId::at(*row)));
    let each = |row: quarrydb_index::RowId, value: Laid<'_>| {
        (next..row.number()).filter(is_in).for_each(|row| entries.push(&[NULL_KEY], row));
        next = row.number() + 1;
        key.clear();
        match put_laid(*tag, value, &mut key) {
            Some(cut) => facts.cut |= cut,
            None => broken = true,
        }
        entries.push(&key, row.number());
    };
    lane.for_each(each).map_err(|e| source.unreadable(path, &e))?;
    if broken {
        return Err(impossible(source, path));
    }
    (next..source.rows()).filter(is_in).for_each(|row| entries.push(&[NULL_KEY], row));
    Ok((entries, facts))
}

fn by_keys(source: Source<'_>, fields: &[Field<'_>], only: Option<&RowSet>) -> Result<Made> {
    let (mut entries, facts) = match fields {
        [Field { path, descending: false, lanes, .. }] if lanes.len() == 1 => of_lane(source, path, &lanes[0], only)?,
        _ => of_lanes(source, fields, only)?,
    };
    entries.sort();
    Ok(Made { run: entries.to_run(source.rows())?, entries: entries.len() as u64, facts })
}

fn of_lanes(source: Source<'_>, fields: &[Field<'_>], only: Option<&RowSet>) -> Result<(Entries, Facts)> {
    let keys = fields.iter().map(|field| Keys::of(source, field)).collect::<Result<Vec<_>>>()?;
    let mut entries = Entries::with_capacity(source.rows() as usize);
    let mut key = Vec::new();
    for row in 0..source.rows() {
        if only.is_some_and(|only| !only.contains(quarrydb_index::RowId::at(row))) {
            continue;
        }
        key.clear();
        for (field, keys) in fields.iter().zip(&keys) {
            let null = [if field.descending { !NULL_KEY } else { NULL_KEY }];
            key.extend_from_slice(keys.get(row).unwrap_or(&null));
        }
        entries.push(&key, row);
    }
    let facts = Facts { cut: keys.iter().any(|keys| keys.cut), ..Facts::default() };
    Ok((entries, facts))
}

/// The error of a run that cannot be written.
pub(super) fn refused(error: quarrydb_index::Error) -> Error {
    let kind = match error {
        quarrydb_index::Error::TooLarge { .. } => ErrorKind::LimitExceeded,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, error.to_string())
}

#[cfg(test)]
#[path = "from_columns_tests.rs"]
mod tests;
