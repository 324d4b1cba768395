//! The rows of a scan in the order of a sort: all of them, or the first few.
//!
//! Takes memcmp-able keys; gives row addresses. Ties keep row order. Bounded: keys beyond `limits::SORT_BYTES_MAX` are
//! an error that says what to do, and with a limit little more than
//! that many keys are held.

use std::ops::ControlFlow;

use quarrydb_query::Sort;
use quarrydb_query::sort::Direction;
use rayon::prelude::*;

use super::scan::{Morsel, RowAt, Scan, within};
use crate::budget::Meter;
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SORT_BYTES_MAX;
use crate::segment::BlockBuf;

/// Morsels whose keys are looked at together before what cannot be in front is let go.
const MORSELS_AT_ONCE: usize = 64;

type Keyed = (Box<[u8]>, RowAt);

/// The rows of `scan` in the order of `sort`; with `keep` only that many from the front.
///
/// # Errors
/// As [`Scan::run`]; `LimitExceeded` beyond the memory that a sort may take, `Busy` beyond that of all queries.
pub(crate) fn sorted(scan: &Scan, sort: &Sort, keep: Option<usize>, meter: &Meter) -> Result<Vec<RowAt>> {
    let morsels = scan.morsels()?;
    let mut front: Vec<Keyed> = Vec::new();
    // No key at or behind this one will be in front.
    let mut border: Option<Box<[u8]>> = None;
    for some in morsels.chunks(MORSELS_AT_ONCE) {
        let run = |morsel: &Morsel| keyed(scan, sort, morsel, border.as_deref(), meter);
        let found = match some {
            [only] => vec![run(only)?],
            some => some.par_iter().map(run).collect::<Result<Vec<_>>>()?,
        };
        front.extend(found.into_iter().flatten());
        if let Some(keep) = keep.filter(|&keep| keep < front.len()) {
            // Addresses are in row order, which breaks ties.
            if keep > 0 {
                front.select_nth_unstable(keep - 1);
            }
            front.truncate(keep);
            let held = front.iter().map(|(key, _)| key.len() + size_of::<Keyed>()).sum();
            meter.set(held)?;
            border = front.last().map(|(key, _)| key.clone());
        }
    }
    front.sort_unstable();
    Ok(front.into_iter().map(|(_, at)| at).collect())
}

/// The matching rows of a morsel with their keys, from columns or else from documents; those that cannot be in front of
/// `border` left out: they come after the rows that it was found among, which ties favour.
fn keyed(scan: &Scan, sort: &Sort, morsel: &Morsel, border: Option<&[u8]>, meter: &Meter) -> Result<Vec<Keyed>> {
    let mut found = Vec::new();
    let backwards = sort.natural() == Some(Direction::Descending);
    let mut add = |key: &[u8], at: RowAt| -> Result<()> {
        // The order in storage, turned around: rows have no other key then.
        let place = backwards.then(|| at.backwards());
        let key = place.as_ref().map_or(key, |place| &place[..]);
        if border.is_some_and(|border| key >= border) {
            return Ok(());
        }
        if meter.add(key.len() + size_of::<Keyed>())? > SORT_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("the sort needs more than {SORT_BYTES_MAX} bytes of memory: narrow the filter or add a limit"),
            )
            .with_code("QueryExceededMemoryLimitNoDiskUseAllowed", 292));
        }
        found.push((key.into(), at));
        Ok(())
    };
    if scan.keys_of(morsel, sort, &mut add)? {
        return Ok(found);
    }
    scan.sorts_by_documents();
    let mut key = Vec::new();
    let _ = scan.run(morsel, &mut BlockBuf::default(), &mut |document, at| {
        key.clear();
        within(scan.deadline, |budget| sort.key_within(document, &mut key, budget))?;
        add(&key, at)?;
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(found)
}
