//! One test on one column: rows that pass, rows that may.

use std::ops::Bound;

use quarrydb_index::RowSet;
use quarrydb_index::column::{Column, Lane, Value, Values};
use quarrydb_jsonb::{Builder, JsonbRef};
use quarrydb_query::filter::Test;

use super::answer::{Answer, Rows};
use super::numbers::Numbers;
use super::prepare::{Ask, Constant, Field, In};
use crate::columns::value::{Tag, scalar_of};
use crate::columns::{ColumnData, Found, Source};
use crate::error::Result;

type IndexResult<T> = quarrydb_index::Result<T>;

/// The answer of a test that is not made of other steps.
pub(super) fn answer(field: &Field, source: Source<'_>) -> Result<Answer> {
    let rows = source.rows();
    if matches!(field.ask, Ask::Never) {
        return Ok(Answer::exact(Rows::None));
    }
    let way = if field.numeric || matches!(field.ask, Ask::Null) || null_in(&field.ask) {
        arrays_on_way(field, source)?
    } else {
        Rows::None
    };
    let answer = match source.find(&field.path)? {
        Found::Rows(maybe) => without_column(&field.ask, maybe, &way, rows),
        Found::Column(data) => {
            of_column(&field.ask, data, &way, rows).map_err(|error| source.unreadable(&field.path, &error))?
        }
    };
    let missing = matches!(field.ask, Ask::Null) || null_in(&field.ask);
    Ok(if field.numeric {
        answer.unsure_of(&way, rows)
    } else if missing {
        // Through an array there may be missing candidates, or none at all; those found are found.
        Answer { possible: answer.possible.or(way), sure: answer.sure }
    } else {
        answer
    })
}

/// Whether no array leads to several values of the path in one row.
pub(super) fn is_single(field: &Field, source: Source<'_>) -> Result<bool> {
    if !arrays_on_way(field, source)?.is_none() {
        return Ok(false);
    }
    match source.find(&field.path)? {
        Found::Rows(maybe) => Ok(maybe.is_empty()),
        Found::Column(data) => {
            let arrays = data.column().and_then(|column| column.array_count());
            Ok(arrays.map_err(|error| source.unreadable(&field.path, &error))? == 0)
        }
    }
}

fn null_in(ask: &Ask) -> bool {
    matches!(ask, Ask::In(list) if list.null)
}

/// Rows with an array at a path that this one begins with.
fn arrays_on_way(field: &Field, source: Source<'_>) -> Result<Rows> {
    let mut way = Rows::None;
    for path in &field.ways {
        let rows = match source.find(path)? {
            Found::Rows(maybe) => maybe,
            Found::Column(data) => {
                data.column().and_then(|column| column.arrays()).map_err(|error| source.unreadable(path, &error))?
            }
        };
        way = way.or(Rows::of(rows, source.rows()));
    }
    Ok(way)
}

/// Where the path has no column: `maybe` are the rows that may have it.
fn without_column(ask: &Ask, maybe: RowSet, way: &Rows, rows: u32) -> Answer {
    let maybe = Rows::of(maybe, rows);
    match ask {
        Ask::Unknown => Answer::unknown(),
        Ask::Null => Answer { sure: maybe.not(rows).without(way, rows), possible: Rows::All },
        Ask::In(list) if list.null => Answer { sure: maybe.not(rows).without(way, rows), possible: Rows::All },
        _ => Answer::at_most(maybe),
    }
}

fn of_column(ask: &Ask, data: &ColumnData, way: &Rows, rows: u32) -> IndexResult<Answer> {
    let column = data.column()?;
    let set = |set: RowSet| Rows::of(set, rows);
    Ok(match ask {
        Ask::Never => Answer::exact(Rows::None),
        Ask::Unknown => Answer::unknown(),
        Ask::Null => Answer::exact(nulls(&column, way, rows)?),
        Ask::Numbers(numbers) => Answer::exact(set(number_rows(numbers, data)?)),
        Ask::Range { tag, low, high } => {
            let found = match column.lane(*tag as u8)? {
                Some(lane) => range_rows(
                    data,
                    *tag,
                    &lane,
                    low.as_ref().map(Constant::value),
                    high.as_ref().map(Constant::value),
                )?,
                None => RowSet::new(),
            };
            Answer::exact(set(found)).unsure_of(&long_rows(*tag, low, high, &column, rows)?, rows)
        }
        Ask::In(list) => one_of(list, data, way, rows)?,
        Ask::Exists => Answer::exact(set(column.present()?)),
        Ask::Types { tags, null, array } => types(tags, *null, *array, &column, rows)?,
        Ask::Tested { test, tags, unsure } => {
            let mut found = RowSet::new();
            for tag in *tags {
                if let Some(lane) = column.lane(*tag as u8)? {
                    found.add(&tested(test, *tag, &lane)?);
                }
            }
            let sure = set(found);
            let possible = sure.clone().or(set(lanes(unsure, &column)?));
            Answer { sure, possible }
        }
        Ask::Among(tags) => Answer::at_most(set(lanes(tags, &column)?)),
        Ask::Elements(_) => Answer::at_most(set(column.arrays()?)),
    })
}

/// Rows with values of these lanes.
fn lanes(tags: &[Tag], column: &Column<'_>) -> IndexResult<RowSet> {
    let mut found = RowSet::new();
    for tag in tags {
        if let Some(lane) = column.lane(*tag as u8)? {
            found.add(&lane.presence().row_set());
        }
    }
    Ok(found)
}

/// Rows with null, and rows that miss the path and have no array on the way.
fn nulls(column: &Column<'_>, way: &Rows, rows: u32) -> IndexResult<Rows> {
    let missing = Rows::of(column.present()?, rows).not(rows).without(way, rows);
    Ok(Rows::of(column.nulls()?, rows).or(missing))
}

/// Rows with values too long to be kept that a range may hold: equality with a short one holds none.
fn long_rows(
    tag: Tag,
    low: &Bound<Constant>,
    high: &Bound<Constant>,
    column: &Column<'_>,
    rows: u32,
) -> IndexResult<Rows> {
    let equality = matches!((low, high), (Bound::Included(_), Bound::Included(_)));
    let short = match low {
        Bound::Included(Constant::Bytes(bytes)) => bytes.len() <= crate::columns::value::VALUE_BYTES_MAX,
        _ => true,
    };
    if !matches!(tag, Tag::String | Tag::Other) || equality && short {
        return Ok(Rows::None);
    }
    lanes(&[Tag::Long], column).map(|set| Rows::of(set, rows))
}

fn types(tags: &[Tag], null: bool, array: bool, column: &Column<'_>, rows: u32) -> IndexResult<Answer> {
    // These two lanes hold several types.
    let shared = |tag: &Tag| matches!(tag, Tag::Other | Tag::Long);
    let own: Vec<Tag> = tags.iter().copied().filter(|tag| !shared(tag)).collect();
    let unsure: Vec<Tag> = tags.iter().copied().filter(shared).collect();
    let mut sure = lanes(&own, column)?;
    if null {
        sure.add(&column.nulls()?);
    }
    if array {
        sure.add(&column.arrays()?);
    }
    let sure = Rows::of(sure, rows);
    let possible = sure.clone().or(Rows::of(lanes(&unsure, column)?, rows));
    Ok(Answer { sure, possible })
}

/// Rows of a lane within a range: from a posting list where it is one value and there are lists, else by a scan.
fn range_rows(
    data: &ColumnData,
    tag: Tag,
    lane: &Lane<'_>,
    low: Bound<Value<'_>>,
    high: Bound<Value<'_>>,
) -> IndexResult<RowSet> {
    if let (Bound::Included(low), Bound::Included(high)) = (low, high)
        && low == high
        && let Some(postings) = data.postings(tag)?
    {
        let mut key = Vec::new();
        quarrydb_index::postings::key_of(low, &mut key);
        return match postings.find(&key)? {
            Some(list) => Ok(postings.list(list)?.to_row_set()),
            None => Ok(RowSet::new()),
        };
    }
    lane.range(low, high)
}

fn number_rows(numbers: &Numbers, data: &ColumnData) -> IndexResult<RowSet> {
    let column = data.column()?;
    let mut found: Option<RowSet> = None;
    let mut add = |rows: RowSet| match &mut found {
        Some(found) => found.add(&rows),
        none => *none = Some(rows),
    };
    for (tag, low, high) in ranges(numbers) {
        if let Some(lane) = column.lane(tag as u8)? {
            add(range_rows(data, tag, &lane, low, high)?);
        }
    }
    Ok(found.unwrap_or_default())
}

/// A range of values of the lane of a tag.
pub(super) type LaneRange<'n> = (Tag, Bound<Value<'n>>, Bound<Value<'n>>);

/// The ranges that a comparison with a number means, by lane.
pub(super) fn ranges(numbers: &Numbers) -> impl Iterator<Item = LaneRange<'_>> {
    let ints = numbers.ints.into_iter().flat_map(|(low, high)| {
        let (low, high) = (Bound::Included(Value::Int(low)), Bound::Included(Value::Int(high)));
        [(Tag::Int32, low, high), (Tag::Int64, low, high)]
    });
    let doubles = numbers
        .doubles
        .map(|(low, high)| (Tag::Double, Bound::Included(Value::Float(low)), Bound::Included(Value::Float(high))));
    let decimals = numbers.decimals.as_ref().map(|(low, high)| {
        (Tag::Decimal, low.as_ref().map(|key| Value::Bytes(key)), high.as_ref().map(|key| Value::Bytes(key)))
    });
    ints.chain(doubles).chain(decimals)
}

/// Rows with a value that passes a test, which is asked of each distinct one where there is a dictionary.
fn tested(test: &Test, tag: Tag, lane: &Lane<'_>) -> IndexResult<RowSet> {
    let mut builder = Builder::new();
    let mut passes = |value: Value<'_>| {
        builder.rewind(0);
        scalar_of(tag, value, &mut builder) && test.accepts(Some(JsonbRef::from_valid(builder.bytes())))
    };
    if let Values::Dictionary(_) | Values::Raw(_) = lane.values() {
        return lane.strings(|bytes| passes(Value::Bytes(bytes)));
    }
    let mut found = RowSet::new();
    lane.for_each(|row, value| {
        if passes(value) {
            found.insert(row);
        }
    })?;
    Ok(found)
}

fn one_of(list: &In, data: &ColumnData, way: &Rows, rows: u32) -> IndexResult<Answer> {
    let column = data.column()?;
    let mut found = RowSet::new();
    let mut add = |tag: Tag, values: Vec<Value<'_>>| -> IndexResult<()> {
        if !values.is_empty()
            && let Some(lane) = column.lane(tag as u8)?
        {
            found.add(&values_rows(data, tag, &lane, &values)?);
        }
        Ok(())
    };
    let ints: Vec<Value<'_>> = list.ints.iter().map(|&number| Value::Int(number)).collect();
    add(Tag::Int32, ints.clone())?;
    add(Tag::Int64, ints)?;
    add(Tag::Double, list.doubles.iter().map(|&number| Value::Float(number)).collect())?;
    add(Tag::Decimal, bytes(&list.decimals))?;
    add(Tag::Date, list.dates.iter().map(|&millis| Value::Int(millis)).collect())?;
    add(Tag::Bool, list.bools.iter().map(|&value| Value::Bool(value)).collect())?;
    add(Tag::String, bytes(&list.texts))?;
    add(Tag::ObjectId, bytes(&list.ids))?;
    add(Tag::Other, bytes(&list.others))?;
    let mut unsure: Vec<Tag> = Vec::new();
    if !list.patterns.is_empty() {
        if let Some(lane) = column.lane(Tag::String as u8)? {
            let any = |text: &str| list.patterns.iter().any(|pattern| pattern.is_match(text));
            found.add(&lane.strings(|bytes| std::str::from_utf8(bytes).is_ok_and(any))?);
        }
        unsure.extend([Tag::Other, Tag::Long]);
    }
    if list.any_decimal {
        unsure.push(Tag::Decimal);
    }
    if list.long {
        unsure.push(Tag::Long);
    }
    if list.objects {
        unsure.push(Tag::Object);
    }
    let mut sure = Rows::of(found, rows);
    if list.null {
        sure = sure.or(nulls(&column, way, rows)?);
    }
    let mut possible = sure.clone().or(Rows::of(lanes(&unsure, &column)?, rows));
    if list.arrays {
        possible = possible.or(Rows::of(column.arrays()?, rows));
    }
    Ok(Answer { sure, possible })
}

fn bytes(all: &[Vec<u8>]) -> Vec<Value<'_>> {
    all.iter().map(|bytes| Value::Bytes(bytes)).collect()
}

/// Values up to which posting lists are joined.
const LISTS_JOINED_MAX: usize = 8;

fn values_rows(data: &ColumnData, tag: Tag, lane: &Lane<'_>, values: &[Value<'_>]) -> IndexResult<RowSet> {
    if values.len() <= LISTS_JOINED_MAX && data.postings(tag)?.is_some() {
        let mut found = RowSet::new();
        for &value in values {
            found.add(&range_rows(data, tag, lane, Bound::Included(value), Bound::Included(value))?);
        }
        return Ok(found);
    }
    lane.one_of(values)
}

impl Constant {
    pub(super) fn value(&self) -> Value<'_> {
        match self {
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(number) => Value::Int(*number),
            Self::Bytes(bytes) => Value::Bytes(bytes),
        }
    }
}
