//! `$group` from columns: no document is read where columns have what it asks for.
//!
//! Takes a scan and a group of constants and paths; gives the groups in the order of their first rows, exactly those that
//! the meaning on documents has (`engine/query`). Rows of parts whose columns are not enough (an array at a path, a tail's
//! last rows) are asked as documents, and all is joined.
//!
//! Read `spec.rs` (what can be asked), `local.rs` (one run of rows), then `values.rs` with `codes.rs` and `derived.rs`,
//! `table.rs`, `fold.rs` with `numbers.rs` and `extremes.rs`; `merge.rs` joins runs, `grouped.rs` hands the groups on.

mod codes;
mod derived;
mod extremes;
mod fold;
mod grouped;
mod local;
mod merge;
mod numbers;
mod picks;
mod scalar;
mod spec;
mod table;
mod trouble;
mod values;

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use quarrydb_index::column::WINDOW_ROWS;
use quarrydb_query::pipeline::GroupTable;
use rayon::prelude::*;

pub(crate) use self::grouped::Grouped;
pub(crate) use self::spec::ColumnGroup;

use self::local::Groups;
use self::picks::Picks;
use super::scan::{Scan, within};
use crate::budget::Meter;
use crate::error::Result;
use crate::segment::BlockBuf;

/// Windows that one thread takes at once: about 256 Ki rows.
const WINDOWS_AT_ONCE: usize = 64;
/// Rows up to which all is done on the calling thread.
const CHEAP_ROWS: u64 = 8192;

/// Some windows of a part, and the number of the part's first row among all.
struct Run {
    part: usize,
    windows: Range<usize>,
    first: u64,
}

/// What came of a run.
enum Found {
    Columns(Groups),
    Documents(Box<GroupTable>),
}

/// The groups of all rows of a scan; none where they take more than `bytes_max` of memory.
///
/// # Errors
/// As [`Scan::run`], those of expressions and accumulators, `Busy`.
pub(crate) fn group(scan: &Scan, spec: &ColumnGroup, bytes_max: usize, meter: &Meter) -> Result<Option<Grouped>> {
    let runs = runs(scan)?;
    let of_run = |run: &Run| -> Result<Option<Found>> {
        let groups = scan.ask(run.part, |source, selection| {
            let Some(source) = source.filter(|_| selection.is_exact()) else { return Ok(None) };
            let picks = Picks::new(&selection.rows, selection.of);
            local::groups(spec, source, &picks, run.windows.clone(), run.first, scan.deadline)
        })?;
        let found = match groups {
            Some(groups) => Found::Columns(groups),
            None => Found::Documents(Box::new(of_documents(scan, spec, run, bytes_max)?)),
        };
        let bytes = match &found {
            Found::Columns(groups) => groups.bytes(),
            Found::Documents(table) => table.bytes(),
        };
        Ok((meter.add(bytes)? <= bytes_max).then_some(found))
    };
    let found: Option<Vec<Found>> = if scan.rows() <= CHEAP_ROWS {
        runs.iter().map(of_run).collect::<Result<_>>()?
    } else {
        runs.par_iter().map(of_run).collect::<Result<_>>()?
    };
    let Some(found) = found else { return Ok(None) };
    if found.iter().all(|found| matches!(found, Found::Columns(_))) {
        return joined(spec, found).map(Some);
    }
    let mut table = GroupTable::new(Arc::clone(&spec.group));
    for found in found {
        match found {
            Found::Documents(later) => table.merge(*later)?,
            Found::Columns(groups) => grouped::add_to(&mut table, spec, &groups, scan.deadline)?,
        }
        if table.bytes() > bytes_max {
            return Ok(None);
        }
    }
    Ok(Some(Grouped::of_table(table)))
}

/// Runs of windows in row order.
fn runs(scan: &Scan) -> Result<Vec<Run>> {
    let mut runs = Vec::new();
    let mut first = 0;
    for part in 0..scan.parts() {
        let rows = scan.ask(part, |_, selection| Ok(u64::from(selection.of)))?;
        let windows = (rows as usize).div_ceil(WINDOW_ROWS);
        let mut at = 0;
        while at < windows {
            let end = windows.min(at + WINDOWS_AT_ONCE);
            runs.push(Run { part, windows: at..end, first });
            at = end;
        }
        first += rows;
    }
    Ok(runs)
}

/// The groups of a run's documents.
fn of_documents(scan: &Scan, spec: &ColumnGroup, run: &Run, bytes_max: usize) -> Result<GroupTable> {
    let mut table = GroupTable::new(Arc::clone(&spec.group));
    let rows = (run.windows.start * WINDOW_ROWS) as u32..(run.windows.end * WINDOW_ROWS) as u32;
    let morsel = scan.morsel_of(run.part, rows);
    let _ = scan.run(&morsel, &mut BlockBuf::default(), &mut |document, _| {
        within(scan.deadline, |budget| table.add(document, budget))?;
        // What is beyond the memory of a stage is given up as soon as it is seen.
        Ok(if table.bytes() > bytes_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    })?;
    Ok(table)
}

/// The groups of all runs, joined on as many threads as pay.
fn joined(spec: &ColumnGroup, found: Vec<Found>) -> Result<Grouped> {
    let runs: Vec<Groups> = found
        .into_iter()
        .filter_map(|found| match found {
            Found::Columns(groups) => Some(groups),
            Found::Documents(_) => None,
        })
        .collect();
    let shares = merge::shares(&runs);
    if shares == 1 {
        return merge::merge(spec, runs).map(|groups| Grouped::of_groups(vec![groups]));
    }
    let mut dealt: Vec<Vec<Groups>> = (0..shares).map(|_| Vec::new()).collect();
    let split: Vec<Vec<Groups>> = runs.into_par_iter().map(|groups| merge::split(groups, shares)).collect();
    for groups in split {
        for (share, groups) in dealt.iter_mut().zip(groups) {
            share.push(groups);
        }
    }
    let merged: Vec<Groups> = dealt.into_par_iter().map(|runs| merge::merge(spec, runs)).collect::<Result<_>>()?;
    Ok(Grouped::of_groups(merged))
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod tests;
