//! The rows of a scan in the order of a sort: all of them, or the first few.
//!
//! Takes memcmp-able keys; gives row addresses. Ties keep row order. Bounded: keys beyond `limits::SORT_BYTES_MAX` are
//! an error that says what to do, and with a limit little more than
//! that many keys are held.

use quarrydb_jsonb::JsonbRef;
use quarrydb_query::Sort;

use super::scan::{RowAt, Scan, within};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SORT_BYTES_MAX;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Morsels whose keys are looked at together before what cannot be in front is let go.
const MORSELS_AT_ONCE: usize = 64;

type Keyed = (Box<[u8]>, RowAt);

/// The rows of `scan` in the order of `sort`; with `keep` only that many from the front.
///
/// # Errors
/// As [`Scan::run`]; `LimitExceeded` beyond the memory that a sort may take.
pub(crate) fn sorted(scan: &Scan, sort: &Sort, keep: Option<usize>) -> Result<Vec<RowAt>> {
    let bytes = AtomicUsize::new(0);
    let keyed = |document: JsonbRef<'_>, at: RowAt| -> Result<Keyed> {
        let mut key = Vec::new();
        within(scan.deadline, |budget| sort.key_within(document, &mut key, budget))?;
        let all = bytes.fetch_add(key.len() + size_of::<Keyed>(), Ordering::Relaxed);
        if all > SORT_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("the sort needs more than {SORT_BYTES_MAX} bytes of memory: narrow the filter or add a limit"),
            )
            .with_code("QueryExceededMemoryLimitNoDiskUseAllowed", 292));
        }
        Ok((key.into_boxed_slice(), at))
    };
    let morsels = scan.morsels()?;
    let mut front: Vec<Keyed> = Vec::new();
    for some in morsels.chunks(MORSELS_AT_ONCE) {
        front.extend(scan.collect(some, keyed)?);
        if let Some(keep) = keep.filter(|&keep| keep < front.len()) {
            // Addresses are in row order, which breaks ties.
            if keep > 0 {
                front.select_nth_unstable(keep - 1);
            }
            front.truncate(keep);
            let held = front.iter().map(|(key, _)| key.len() + size_of::<Keyed>()).sum();
            bytes.store(held, Ordering::Relaxed);
        }
    }
    front.sort_unstable();
    Ok(front.into_iter().map(|(_, at)| at).collect())
}
