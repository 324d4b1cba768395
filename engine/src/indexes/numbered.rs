//! Entries as numbers: where each field of an index has values of one type whose columns number them in their order, an
//! entry is the numbers of its fields and its row in one integer, and integers are sorted by their digits.
//!
//! Takes the fields of an index with their columns; gives the run, or nothing where a field has values of several types, texts that have no
//! dictionary, or more bits than fit. The key of a value is made once for all entries that follow each other with it.

use quarrydb_index::column::Lane;
use quarrydb_index::sorted::SortedWriter;
use quarrydb_index::{RowId, RowSet};
use rayon::prelude::*;

use super::from_columns::{Field, Made, impossible, put_laid, refused};
use super::keys::{Facts, NULL_KEY};
use crate::columns::Source;
use crate::columns::value::Tag;
use crate::error::Result;
use crate::limits::ROWS_MAX;

/// Bits of an entry that are its row.
const ROW_BITS: u32 = ROWS_MAX.trailing_zeros();
/// Bits that are sorted by at a time.
const DIGIT_BITS: u32 = 11;
/// Entries that one thread writes at a time.
const TASK_ENTRIES: usize = 1 << 16;
const _: () = assert!(ROWS_MAX.is_power_of_two() && TASK_ENTRIES.is_multiple_of(SortedWriter::WHOLE));

/// The numbers of one field: 0 is null and missing, others count from the least value; from the greatest on where the field
/// is descending, null last.
struct Numbering<'a> {
    path: &'a str,
    lane: Option<(Tag, Lane<'a>)>,
    least: u64,
    top: u64,
    descending: bool,
    /// The keys of a dictionary's values and where each ends.
    keys: Option<(Vec<u8>, Vec<u32>)>,
}

/// An entry as one integer.
trait Entry: Copy + Default + Send + Sync {
    const BITS: u32;
    fn of(number: u128) -> Self;
    fn number(self) -> u128;
    /// The low bits after `shift` others.
    fn digit(self, shift: u32) -> usize;
}

macro_rules! entry {
    ($word:ty) => {
        impl Entry for $word {
            const BITS: u32 = <$word>::BITS;

            #[inline]
            fn of(number: u128) -> Self {
                number as Self
            }

            #[inline]
            fn number(self) -> u128 {
                u128::from(self)
            }

            #[inline]
            fn digit(self, shift: u32) -> usize {
                (self >> shift) as usize & ((1 << DIGIT_BITS) - 1)
            }
        }
    };
}

entry!(u64);
entry!(u128);

/// The run of an index whose fields these are, over the rows of a segment, or those of `only`.
pub(super) fn run_of(source: Source<'_>, fields: &[Field<'_>], only: Option<&RowSet>) -> Result<Option<Made>> {
    let mut numberings = Vec::with_capacity(fields.len());
    for field in fields {
        match Numbering::of(source, field)? {
            Some(numbering) => numberings.push(numbering),
            None => return Ok(None),
        }
    }
    let bits = ROW_BITS + numberings.iter().map(Numbering::bits).sum::<u32>();
    if bits <= u64::BITS {
        sorted_run::<u64>(source, &numberings, only, bits).map(Some)
    } else if bits <= u128::BITS {
        sorted_run::<u128>(source, &numberings, only, bits).map(Some)
    } else {
        Ok(None)
    }
}

impl<'a> Numbering<'a> {
    fn of(source: Source<'_>, field: &Field<'a>) -> Result<Option<Self>> {
        let (path, descending) = (field.path, field.descending);
        let mut own = Self { path, lane: None, least: 0, top: 0, descending, keys: None };
        let (tag, lane) = match &field.lanes[..] {
            [] => return Ok(Some(own)),
            // Null is below all values of these types; decimals and others are kept by keys that are not.
            [(tag, lane)] if tag.is_exact() => (*tag, *lane),
            _ => return Ok(None),
        };
        let Some((least, greatest)) = lane.ordered_range() else { return Ok(None) };
        let Some(top) = greatest.checked_sub(least).and_then(|span| span.checked_add(1)) else { return Ok(None) };
        (own.lane, own.least, own.top) = (Some((tag, lane)), least, top);
        if let quarrydb_index::column::Values::Dictionary(dictionary) = lane.values() {
            let (mut bytes, mut ends, mut whole) = (Vec::new(), Vec::with_capacity(dictionary.len()), true);
            let each = |_: usize, value: &[u8], _: u32| {
                // One that is cut has lost its place in the order.
                let cut = put_laid(tag, quarrydb_index::column::Value::Bytes(value), &mut bytes);
                whole &= cut == Some(false);
                ends.push(bytes.len() as u32);
            };
            dictionary.for_each(each).map_err(|e| source.unreadable(path, &e))?;
            if !whole || u32::try_from(bytes.len()).is_err() {
                return Ok(None);
            }
            own.keys = Some((bytes, ends));
        }
        Ok(Some(own))
    }

    fn bits(&self) -> u32 {
        u64::BITS - self.top.leading_zeros()
    }

    /// Appends the key of a number; none where a lane holds what it cannot.
    fn put(&self, number: u64, buffer: &mut Vec<u8>, out: &mut Vec<u8>) -> Option<()> {
        let from = out.len();
        let ascending = if self.descending { self.top.checked_sub(number)? } else { number };
        match (ascending.checked_sub(1), &self.lane, &self.keys) {
            (None, ..) => out.push(NULL_KEY),
            (Some(above), _, Some((bytes, ends))) => {
                let code = (self.least + above) as usize;
                let start = code.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
                out.extend_from_slice(bytes.get(start as usize..*ends.get(code)? as usize)?);
            }
            (Some(above), Some((tag, lane)), None) => {
                let value = lane.of_ordered(self.least + above, buffer).ok()?;
                put_laid(*tag, value, out)?;
            }
            (Some(_), None, None) => return None,
        }
        if self.descending {
            out[from..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        Some(())
    }
}

fn sorted_run<E: Entry>(
    source: Source<'_>,
    fields: &[Numbering<'_>],
    only: Option<&RowSet>,
    bits: u32,
) -> Result<Made> {
    let mut entries = entries_of::<E>(source, fields, bits)?;
    if let Some(only) = only {
        entries.retain(|entry| only.contains(row_of(*entry)));
    }
    sort(&mut entries, bits);
    let parts: Vec<_> = entries.chunks(TASK_ENTRIES).collect();
    let parts = parts.into_par_iter().map(|part| write(source, fields, part)).collect::<Result<Vec<_>>>()?;
    let count = entries.len() as u64;
    drop(entries);
    let mut writer = SortedWriter::new();
    parts.into_iter().try_for_each(|part| writer.append(part)).map_err(refused)?;
    Ok(Made { run: writer.finish(source.rows()).map_err(refused)?, entries: count, facts: Facts::default() })
}

fn row_of<E: Entry>(entry: E) -> RowId {
    RowId::at(entry.number() as u32 & (ROWS_MAX - 1))
}

/// The entries of all rows, in the order of these.
fn entries_of<E: Entry>(source: Source<'_>, fields: &[Numbering<'_>], bits: u32) -> Result<Vec<E>> {
    // Where the number of each field begins.
    let mut end = bits;
    let shifts: Vec<u32> = fields
        .iter()
        .map(|field| {
            end -= field.bits();
            end
        })
        .collect();
    let last =
        |(field, shift): (&Numbering<'_>, &u32)| if field.descending { u128::from(field.top) << shift } else { 0 };
    let null: u128 = fields.iter().zip(&shifts).map(last).sum();
    let mut entries: Vec<E> = (0..source.rows()).map(|row| E::of(null | u128::from(row))).collect();
    for (field, shift) in fields.iter().zip(shifts) {
        let Some((_, lane)) = &field.lane else { continue };
        let mut broken = false;
        let each = |row: RowId, number: u64| {
            let above = number.wrapping_sub(field.least).wrapping_add(1);
            match entries.get_mut(row.number() as usize).filter(|_| above <= field.top) {
                Some(entry) if field.descending => *entry = E::of(entry.number() - (u128::from(above) << shift)),
                Some(entry) => *entry = E::of(entry.number() | u128::from(above) << shift),
                None => broken = true,
            }
        };
        lane.for_each_ordered(each).map_err(|e| source.unreadable(field.path, &e))?;
        if broken {
            return Err(impossible(source, field.path));
        }
    }
    Ok(entries)
}

/// Puts entries that are in the order of their rows in their own order: by one digit after the other, from the lowest.
fn sort<E: Entry>(entries: &mut Vec<E>, bits: u32) {
    let mut other = vec![E::default(); entries.len()];
    let mut shift = ROW_BITS;
    while shift < bits.min(E::BITS) {
        let mut starts = vec![0_u32; 1 << DIGIT_BITS];
        entries.iter().for_each(|entry| starts[entry.digit(shift)] += 1);
        if !starts.iter().any(|&count| count as usize == entries.len()) {
            let mut sum = 0;
            for start in &mut starts {
                sum += std::mem::replace(start, sum);
            }
            for &entry in &*entries {
                let at = &mut starts[entry.digit(shift)];
                other[*at as usize] = entry;
                *at += 1;
            }
            std::mem::swap(entries, &mut other);
        }
        shift += DIGIT_BITS;
    }
}

fn write<E: Entry>(source: Source<'_>, fields: &[Numbering<'_>], entries: &[E]) -> Result<SortedWriter> {
    let mut writer = SortedWriter::new();
    let (mut key, mut buffer, mut last) = (Vec::new(), Vec::new(), None);
    for &entry in entries {
        let numbers = entry.number() >> ROW_BITS;
        if last == Some(numbers) {
            writer.push_again(row_of(entry)).map_err(refused)?;
            continue;
        }
        last = Some(numbers);
        key.clear();
        let mut shift = fields.iter().map(Numbering::bits).sum::<u32>();
        for field in fields {
            shift -= field.bits();
            let number = (numbers >> shift) as u64 & (u64::MAX.checked_shr(u64::BITS - field.bits()).unwrap_or(0));
            field.put(number, &mut buffer, &mut key).ok_or_else(|| impossible(source, field.path))?;
        }
        writer.push(&key, row_of(entry)).map_err(refused)?;
    }
    Ok(writer)
}
