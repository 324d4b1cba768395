//! Sorted runs of several segments to the run of the one they become.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::run::{SortedCursor, SortedRun, SortedWriter};
use crate::error::{Error, Result};
use crate::remap::{RowRemap, origins};
use crate::row::RowId;

/// Merges runs; entries of rows that are dropped are left out. An input without a run is `None`.
///
/// # Errors
/// `Corrupt`; `Misuse` if a run has other rows than its remap or a new row does not come from exactly one old one.
pub fn merge(inputs: &[(Option<SortedRun<'_>>, &RowRemap)]) -> Result<Vec<u8>> {
    let remaps: Vec<&RowRemap> = inputs.iter().map(|(_, remap)| *remap).collect();
    let rows = origins(&remaps)?.len() as u32;
    let mut cursors = Vec::with_capacity(inputs.len());
    let mut heads: BinaryHeap<Reverse<(Vec<u8>, usize)>> = BinaryHeap::new();
    for (run, remap) in inputs {
        let Some(run) = run else { continue };
        if run.rows() != remap.rows() {
            return Err(Error::Misuse { what: "a remap has the rows of its run" });
        }
        let mut source = Source { cursor: run.cursor(0..run.len())?, remap, row: RowId::at(0) };
        let mut key = Vec::new();
        if source.advance(&mut key)? {
            heads.push(Reverse((key, cursors.len())));
        }
        cursors.push(source);
    }
    // All rows of one key, so that they can be put in their new order.
    let (mut writer, mut key, mut rows_of_key) = (SortedWriter::new(), Vec::new(), Vec::new());
    while let Some(Reverse((mut head, source))) = heads.pop() {
        if head != key {
            write(&mut writer, &key, &mut rows_of_key)?;
            key.clear();
            key.extend(&head);
        }
        let Some(from) = cursors.get_mut(source) else { continue };
        rows_of_key.push(from.row);
        if from.advance(&mut head)? {
            heads.push(Reverse((head, source)));
        }
    }
    write(&mut writer, &key, &mut rows_of_key)?;
    writer.finish(rows)
}

fn write(writer: &mut SortedWriter, key: &[u8], rows: &mut Vec<RowId>) -> Result<()> {
    rows.sort_unstable();
    rows.drain(..).try_for_each(|row| writer.push(key, row))
}

/// One input, at an entry that is kept.
struct Source<'a> {
    cursor: SortedCursor<'a>,
    remap: &'a RowRemap,
    row: RowId,
}

impl Source<'_> {
    /// To the next entry that is kept, its key in place of what `key` held; false at the end.
    fn advance(&mut self, key: &mut Vec<u8>) -> Result<bool> {
        while let Some((next, row)) = self.cursor.next()? {
            if let Some(row) = self.remap.get(row) {
                key.clear();
                key.extend(next);
                self.row = row;
                return Ok(true);
            }
        }
        Ok(false)
    }
}
