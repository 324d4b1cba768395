//! Columns of a tail's rows, so that what was just written is found as fast as what has settled.
//!
//! Rows are covered from the first on by chunks, each made once and then kept: full ones of [`CHUNK_ROWS`] rows when they are
//! first asked for, the rest when it has grown enough to be worth it or is asked for again without having grown. Small
//! chunks at the end are joined, so that there are few. Rows that no chunk covers are looked at one by one.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};
use rayon::prelude::*;

use super::Tail;
use crate::columns::{Columns, Shredder, Source};
use crate::error::Result;
use crate::ids::RowId;

/// Rows of a full chunk.
pub(crate) const CHUNK_ROWS: u32 = 1 << 14;
/// Rows that are worth a chunk at once.
const WORTH_ROWS: u32 = 256;
/// Chunks that are not full, of which the last ones are joined.
const SMALL_MAX: usize = 8;

/// Columns of a run of a tail's rows.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// Which rows of the tail.
    pub rows: Range<u32>,
    columns: Columns,
}

impl Chunk {
    /// Its columns; their rows are counted from the chunk's first.
    pub(crate) fn source(&self) -> Source<'_> {
        Source::memory(&self.columns, self.rows.end - self.rows.start)
    }

    fn make(tail: &Tail, rows: Range<u32>) -> Result<Arc<Self>> {
        let mut shredder = Shredder::new();
        for row in rows.clone() {
            shredder.push(tail.view(RowId::from_raw(row)).unwrap_or(quarrydb_jsonb::NULL))?;
        }
        Ok(Arc::new(Self { rows, columns: Columns::of_rows(shredder)? }))
    }
}

/// The chunks of one tail.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// Without a gap, from the first row.
    list: RwLock<Vec<Arc<Chunk>>>,
    /// Only one at a time makes chunks; others wait for it, for they would make the same.
    making: Mutex<()>,
    /// Rows that the tail had when it was last asked, plus one.
    asked: AtomicU32,
}

impl Chunks {
    /// The chunks that cover the first `rows` rows of `tail`, or most of them: none reaches beyond the rows there are.
    ///
    /// # Errors
    /// `Internal` where a column cannot be made.
    pub(crate) fn cover(&self, tail: &Tail, rows: u32) -> Result<Vec<Arc<Chunk>>> {
        let again = self.asked.swap(rows + 1, Ordering::Relaxed) == rows + 1;
        let covered = |list: &[Arc<Chunk>]| list.last().map_or(0, |chunk| chunk.rows.end);
        let enough = |list: &[Arc<Chunk>]| {
            let left = rows.saturating_sub(covered(list));
            left == 0 || left < WORTH_ROWS && !again
        };
        {
            let list = self.list.read();
            if enough(&list) {
                return Ok(list.clone());
            }
        }
        let _making = self.making.lock();
        let mut list = self.list.read().clone();
        if !enough(&list) {
            let small = list.iter().rev().take_while(|chunk| chunk.rows.end - chunk.rows.start < CHUNK_ROWS).count();
            let last = list.last().map_or(0, |chunk| chunk.rows.end - chunk.rows.start);
            // What is small is made anew together with what came since, where that is as much again.
            let joined = if small >= SMALL_MAX {
                small
            } else {
                usize::from(small > 0 && rows.saturating_sub(covered(&list)) >= last)
            };
            list.truncate(list.len() - joined);
            let mut missing = Vec::new();
            let mut from = covered(&list);
            while from < rows {
                let to = rows.min(from.saturating_add(CHUNK_ROWS));
                missing.push(from..to);
                from = to;
            }
            list.extend(missing.into_par_iter().map(|rows| Chunk::make(tail, rows)).collect::<Result<Vec<_>>>()?);
            *self.list.write() = list.clone();
        }
        Ok(list)
    }

    /// The chunks there are, without making more.
    pub(crate) fn made(&self) -> Vec<Arc<Chunk>> {
        self.list.read().clone()
    }

    /// Bytes of all columns.
    pub(crate) fn bytes(&self) -> usize {
        self.list.read().iter().map(|chunk| chunk.columns.bytes()).sum()
    }
}
