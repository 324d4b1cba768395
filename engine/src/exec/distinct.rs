//! The different values at a path, from columns where these hold all there is to say, else from documents.
//!
//! A column has the values in its lanes; which it does not have (decimals as they were written, objects, long texts, arrays
//! in arrays) its lanes tell, and then documents are read. Where numbers of two types may be equal, the first in row order
//! is the answer, which lanes do not know.

use std::collections::HashSet;
use std::ops::ControlFlow;

use quarrydb_index::column::{Column, Lane, Value, Values};
use quarrydb_jsonb::{Builder, JsonbRef, NULL};
use quarrydb_query::Distinct;
use quarrydb_query::path_walk::array_index;

use super::scan::Scan;
use super::select::Selection;
use crate::budget::Meter;
use crate::columns::value::{Tag, scalar_of};
use crate::columns::{Found, Source};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::DISTINCT_BYTES_MAX;
use crate::plan::Rows;
use crate::segment::BlockBuf;

/// Adds the values of all rows of a scan.
///
/// # Errors
/// As [`Scan::run`]; `LimitExceeded` where the values take more memory than an answer may, `Busy` where all queries together do.
pub(crate) fn distinct(scan: &Scan, distinct: &mut Distinct, meter: &Meter) -> Result<()> {
    let path = distinct.path().as_str().to_owned();
    // A position in an array is in no column.
    let positions = path.split('.').any(|part| array_index(part).is_some());
    let mut morsels = scan.morsels()?;
    for part in 0..scan.parts() {
        let of_columns =
            !positions && scan.ask(part, |source, selection| of_columns(source, selection, &path, distinct))?;
        let own = morsels.partition_point(|morsel| morsel.part() <= part);
        for morsel in morsels.drain(..own).filter(|_| !of_columns) {
            let _ = scan.run(&morsel, &mut BlockBuf::default(), &mut |document, _| {
                distinct.add(document);
                Ok(ControlFlow::Continue(()))
            })?;
            within_bounds(distinct, meter)?;
        }
        within_bounds(distinct, meter)?;
    }
    Ok(())
}

fn within_bounds(distinct: &Distinct, meter: &Meter) -> Result<()> {
    meter.set(distinct.bytes())?;
    if distinct.bytes() <= DISTINCT_BYTES_MAX {
        return Ok(());
    }
    let message = format!(
        "the distinct values take more than {DISTINCT_BYTES_MAX} bytes: narrow the filter, or group them by aggregate"
    );
    Err(Error::new(ErrorKind::LimitExceeded, message))
}

/// Adds the values of the selected rows from their column; false, with nothing added, where that is not enough.
fn of_columns(source: Option<Source<'_>>, selection: &Selection, path: &str, distinct: &mut Distinct) -> Result<bool> {
    let Some(source) = source.filter(|_| selection.is_exact()) else { return Ok(false) };
    let data = match source.find(path)? {
        Found::Rows(maybe) => return Ok(maybe.is_empty()),
        Found::Column(data) => data,
    };
    let read = data.column().and_then(|column| add_values(&column, &selection.rows, distinct));
    read.map_err(|error| source.unreadable(path, &error))
}

fn add_values(column: &Column<'_>, rows: &Rows, distinct: &mut Distinct) -> quarrydb_index::Result<bool> {
    let mut lanes = Vec::new();
    for lane in column.lanes()? {
        match Tag::of(lane.tag()) {
            Some(tag) if tag.is_exact() => lanes.push((tag, lane)),
            _ => return Ok(false),
        }
    }
    if lanes.iter().filter(|(tag, _)| tag.is_number()).count() > 1 {
        return Ok(false);
    }
    let nulls = match rows {
        Rows::None => return Ok(true),
        Rows::All => column.null_count()? > 0,
        Rows::Some(set) => column.nulls()?.and_len(set) > 0,
    };
    if nulls {
        distinct.add_value(NULL);
    }
    for (tag, lane) in lanes {
        add_lane(tag, &lane, rows, distinct)?;
    }
    Ok(true)
}

fn add_lane(tag: Tag, lane: &Lane<'_>, rows: &Rows, distinct: &mut Distinct) -> quarrydb_index::Result<()> {
    let mut builder = Builder::new();
    let mut add = |value: Value<'_>| {
        builder.rewind(0);
        if scalar_of(tag, value, &mut builder) {
            distinct.add_value(JsonbRef::from_valid(builder.bytes()));
        }
    };
    if let Values::Dictionary(dictionary) = lane.values() {
        let mut seen = vec![matches!(rows, Rows::All); dictionary.len()];
        if let Rows::Some(set) = rows {
            lane.codes_of_rows(set, |_, code| {
                if let Some(seen) = seen.get_mut(code) {
                    *seen = true;
                }
            })?;
        }
        return dictionary.for_each(|code, bytes, _| {
            if seen.get(code) == Some(&true) {
                add(Value::Bytes(bytes));
            }
        });
    }
    let mut known: HashSet<u64> = HashSet::new();
    let each = |_, value: Value<'_>| {
        let new = match value {
            Value::Bool(value) => known.insert(u64::from(value)),
            Value::Int(number) => known.insert(number.cast_unsigned()),
            Value::Float(number) => known.insert(number.to_bits()),
            Value::Bytes(_) => true,
        };
        if new {
            add(value);
        }
    };
    match rows {
        Rows::None => Ok(()),
        Rows::All => lane.for_each(each),
        Rows::Some(set) => lane.for_rows(set, each),
    }
}
