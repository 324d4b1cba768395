//! The groups of a run of rows, made from columns: what one thread does at once.

use std::ops::Range;

use quarrydb_index::column::WINDOW_ROWS;
use quarrydb_jsonb::{Builder, JsonbRef, sort_key};

use super::codes::{MISSING, NULL};
use super::fold::{Fold, Made};
use super::picks::Picks;
use super::scalar::Scalar;
use super::spec::{ColumnGroup, Id};
use super::table::{Mix, Table};
use super::trouble::{Read, Trouble};
use super::values::Values;
use crate::columns::Source;
use crate::error::Result;
use crate::exec::plain::plain;
use crate::options::Deadline;

/// Groups in the order in which their first rows came.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// Keys and `_id`s of all.
    pub texts: Vec<u8>,
    pub entries: Vec<Entry>,
    /// What came of each accumulator, in the order of the fields.
    pub made: Vec<Made>,
}

/// One group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// Where its key stands; its `_id` is behind it.
    pub start: usize,
    pub key_bytes: u32,
    pub id_bytes: u32,
    /// Its first row, among all rows.
    pub first: u64,
}

impl Groups {
    /// What tells a group from others: equal for equal `_id`s.
    pub(super) fn key(&self, entry: &Entry) -> &[u8] {
        self.texts.get(entry.start..entry.start + entry.key_bytes as usize).unwrap_or_default()
    }

    /// Its `_id`.
    pub(super) fn id(&self, entry: &Entry) -> JsonbRef<'_> {
        let start = entry.start + entry.key_bytes as usize;
        JsonbRef::from_valid(self.texts.get(start..start + entry.id_bytes as usize).unwrap_or_default())
    }

    /// Adds a group.
    pub(super) fn push(&mut self, key: &[u8], id: &[u8], first: u64) {
        let start = self.texts.len();
        self.texts.extend_from_slice(key);
        self.texts.extend_from_slice(id);
        self.entries.push(Entry { start, key_bytes: key.len() as u32, id_bytes: id.len() as u32, first });
    }

    /// The memory that they take, about.
    pub(super) fn bytes(&self) -> usize {
        let made: usize = self.made.iter().map(Made::bytes).sum();
        self.texts.len() + self.entries.len() * size_of::<Entry>() + made
    }
}

/// The groups of the picked rows of some windows; none where columns are not enough. `first` is the number of the part's
/// first row among all rows.
///
/// # Errors
/// `Corrupt`, `Io`, `TimedOut`, those of accumulators.
pub(super) fn groups(
    spec: &ColumnGroup,
    source: Source<'_>,
    picks: &Picks,
    windows: Range<usize>,
    first: u64,
    deadline: Option<Deadline>,
) -> Result<Option<Groups>> {
    match read(spec, source, picks, windows, first, deadline) {
        Ok(groups) => Ok(groups),
        Err(trouble) => trouble.or_documents(),
    }
}

fn read(
    spec: &ColumnGroup,
    source: Source<'_>,
    picks: &Picks,
    windows: Range<usize>,
    first: u64,
    deadline: Option<Deadline>,
) -> Read<Option<Groups>> {
    let (mut keys, mut columns) = (Vec::new(), Vec::new());
    for (input, expression) in spec.keys() {
        let path = input.path.as_str();
        let Some(plain) = plain(source, path)? else { return Ok(None) };
        let values = Values::new(input, expression, &plain, windows.clone());
        let values = values.map_err(|error| source.unreadable(path, &error))?.map(Values::joining_equal);
        let Some(values) = values else { return Ok(None) };
        keys.push((path, values));
        columns.push(plain);
    }
    let Some(mix) = Mix::new(keys.iter().map(|(_, codes)| codes.bound())) else { return Ok(None) };
    let mut folds = Vec::new();
    for (accumulator, input) in spec.accumulators().zip(&spec.arguments) {
        let column = match input {
            None => None,
            Some(input) => match plain(source, &input.path)? {
                Some(plain) => Some((input, plain)),
                None => return Ok(None),
            },
        };
        let path = input.as_ref().map_or("", |input| input.path.as_str());
        let fold = Fold::new(accumulator, column, windows.clone());
        let Some(fold) = fold.map_err(|error| source.unreadable(path, &error))? else { return Ok(None) };
        folds.push((accumulator, path, fold));
    }
    let keys_of = keys.len();
    let mut table = Table::new(&mix);
    let (mut rows, mut of_rows) = (Vec::with_capacity(WINDOW_ROWS), Vec::with_capacity(WINDOW_ROWS));
    let (mut codes, mut mixed) = (Box::new([0; WINDOW_ROWS]), Box::new([0; WINDOW_ROWS]));
    for index in windows {
        Deadline::check(deadline)?;
        picks.window(index, &mut rows);
        if rows.is_empty() {
            continue;
        }
        for (at, (path, of_path)) in keys.iter_mut().enumerate() {
            of_path.window(index, &rows, &mut codes).map_err(|trouble| trouble.of(source, path))?;
            // One field of an object is grouped by like a value that stands alone.
            if keys_of == 1 {
                null_for_missing(&rows, &mut codes);
            }
            mix.add(at, &rows, &codes, &mut mixed);
        }
        table.groups_of((index * WINDOW_ROWS) as u32, &rows, &mixed, &mut of_rows);
        for (accumulator, path, fold) in &mut folds {
            let read = fold.window(accumulator, (index, &rows), &of_rows, table.groups.len(), &mut codes);
            read.map_err(|trouble| trouble.of(source, path))?;
        }
    }
    let first_rows: Vec<u32> = table.groups.iter().map(|(_, row)| *row).collect();
    let mut shown = Vec::with_capacity(keys.len());
    for ((path, values), plain) in keys.iter().zip(&columns) {
        // Of equal numbers the group's first row has the one that is shown.
        shown.push(values.at_rows(plain, &first_rows).map_err(|trouble| trouble.of(source, path))?);
    }
    let mut found = ids(spec, &keys, &shown, &mix, &table, first).map_err(|trouble| {
        // Which of the paths it was is not told; the first stands for all.
        trouble.of(source, keys.first().map_or("", |(path, _)| path))
    })?;
    for (accumulator, path, fold) in folds {
        let made = fold.finish(accumulator, &first_rows).map_err(|trouble| trouble.of(source, path))?;
        found.made.push(made);
    }
    Ok(Some(found))
}

/// As an `_id` of its own what is missing is null.
fn null_for_missing(rows: &[u16], codes: &mut [u32; WINDOW_ROWS]) {
    for &row in rows {
        if let Some(code) = codes.get_mut(usize::from(row)).filter(|code| **code == MISSING) {
            *code = NULL;
        }
    }
}

/// The `_id`s of all groups, with nothing made of their rows yet.
fn ids(
    spec: &ColumnGroup,
    keys: &[(&str, Values<'_>)],
    shown: &[Option<Vec<Scalar>>],
    mix: &Mix,
    table: &Table,
    first: u64,
) -> Read<Groups> {
    let mut found = Groups { entries: Vec::with_capacity(table.groups.len()), ..Groups::default() };
    let (mut codes, mut key, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    let mut id = Builder::new();
    for (group, (number, row)) in table.groups.iter().enumerate() {
        mix.split(*number, &mut codes);
        id.rewind(0);
        let mut write = |at: usize, id: &mut Builder| -> Read<()> {
            let of_row = shown.get(at).and_then(Option::as_ref).and_then(|shown| shown.get(group));
            if let (None, Some((_, of)), Some(code)) = (of_row, keys.get(at), codes.get(at)) {
                of.write(*code, &mut buffer, id)?;
            } else if !of_row.is_some_and(|value| value.write(id)) {
                id.null();
            }
            Ok(())
        };
        match &spec.id {
            Id::Constant(value) => id.copy(value.view()),
            Id::One(_) => write(0, &mut id)?,
            Id::Object(fields) => {
                id.begin_object();
                for (at, (name, _)) in fields.iter().enumerate() {
                    if codes.get(at).is_some_and(|code| *code != MISSING) {
                        id.field(name);
                        write(at, &mut id)?;
                    }
                }
                id.end_object().map_err(|error| Trouble::Other(error.into()))?;
            }
        }
        key.clear();
        sort_key(JsonbRef::from_valid(id.bytes()), &mut key);
        found.push(&key, id.bytes(), first + u64::from(*row));
    }
    Ok(found)
}
