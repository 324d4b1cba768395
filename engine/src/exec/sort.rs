//! The rows of a scan in the order of a sort: all of them, or the first few.
//!
//! Takes memcmp-able keys; gives row addresses. Ties keep row order. Bounded: keys beyond `limits::SORT_BYTES_MAX` are
//! an error that says what to do, and with a limit only that many keys are held.

use quarrydb_query::Sort;

use super::scan::{RowAt, Scan};
use crate::error::{Error, ErrorKind, Result};
use crate::limits::SORT_BYTES_MAX;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The rows of `scan` in the order of `sort`; with `keep` only that many from the front.
///
/// # Errors
/// As [`Scan::run`]; `LimitExceeded` beyond the memory that a sort may take.
pub(crate) fn sorted(scan: &Scan, sort: &Sort, keep: Option<usize>) -> Result<Vec<RowAt>> {
    let bytes = AtomicUsize::new(0);
    let mut keyed = scan.collect(|document, at| {
        let mut key = Vec::new();
        sort.key(document, &mut key)?;
        let all = bytes.fetch_add(key.len() + size_of::<(Vec<u8>, RowAt)>(), Ordering::Relaxed);
        if all > SORT_BYTES_MAX {
            return Err(Error::new(
                ErrorKind::LimitExceeded,
                format!("the sort needs more than {SORT_BYTES_MAX} bytes of memory: narrow the filter or add a limit"),
            )
            .with_code("QueryExceededMemoryLimitNoDiskUseAllowed", 292));
        }
        Ok((key.into_boxed_slice(), at))
    })?;
    match keep {
        Some(0) => keyed.clear(),
        Some(keep) if keep < keyed.len() => {
            // Row order breaks ties: number the rows, select the front, sort only that.
            let mut numbered: Vec<_> = keyed.into_iter().enumerate().map(|(i, (key, at))| (key, i, at)).collect();
            numbered.select_nth_unstable_by(keep - 1, |a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
            numbered.truncate(keep);
            numbered.sort_unstable_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
            return Ok(numbered.into_iter().map(|(_, _, at)| at).collect());
        }
        _ => keyed.sort_by(|a, b| a.0.cmp(&b.0)),
    }
    Ok(keyed.into_iter().map(|(_, at)| at).collect())
}
