//! One look through a morsel: the rows that are wanted, read block by block, asked where columns left them open.

use std::ops::{ControlFlow, Range};

use quarrydb_jsonb::JsonbRef;

use super::parts::Part;
use super::scan::{Each, RowAt, Scan, matches};
use super::select::Selection;
use crate::error::Result;
use crate::ids::RowId;
use crate::mvcc::version::Sealed;
use crate::plan::Rows;
use crate::segment::BlockBuf;
use crate::tail::Tail;

/// Blocks that lie one behind the other are read so much at a time.
const AHEAD_BYTES: usize = 128 << 10;
/// Rows are close together where one of so many is wanted.
const SPARSE_ROWS: u64 = 64;

/// One look through a morsel.
pub(super) struct Look<'s> {
    pub scan: &'s Scan,
    pub part: &'s Part,
    pub selection: &'s Selection,
    pub exact: bool,
    /// Documents looked at.
    pub examined: u64,
}

impl Look<'_> {
    /// One row that is seen.
    fn row(&mut self, row: u32, document: JsonbRef<'_>, each: Each<'_>) -> Result<ControlFlow<()>> {
        self.examined += 1;
        let sure = self.exact
            || match &self.selection.sure {
                Rows::None => false,
                Rows::All => true,
                Rows::Some(set) => set.contains(quarrydb_index::RowId::at(row)),
            };
        if !sure && !matches(&self.scan.filter, document, self.scan.deadline)? {
            return Ok(ControlFlow::Continue(()));
        }
        each(document, RowAt { source: self.part.source, row: RowId::from_raw(self.part.first + row) })
    }

    /// Rows of a segment.
    pub(super) fn segment(
        &mut self,
        sealed: &Sealed,
        rows: &Range<u32>,
        buffer: &mut BlockBuf,
        each: Each<'_>,
    ) -> Result<ControlFlow<()>> {
        let selection = self.selection;
        let mut next = Wanted::new(&selection.rows, rows);
        // Where few rows of many are wanted, what lies between is not worth reading.
        let wanted = match &selection.rows {
            Rows::Some(set) => set.range_len(rows.clone()),
            _ => u64::from(rows.end - rows.start),
        };
        let close = wanted * SPARSE_ROWS >= u64::from(rows.end.saturating_sub(rows.start));
        buffer.read_ahead(if close { AHEAD_BYTES } else { 0 });
        while let Some(first) = next.peek() {
            let block = sealed.segment.block_of(RowId::from_raw(first))?;
            let view = sealed.segment.read_block_into(block, buffer)?;
            let (start, end) = (view.rows().start, view.rows().end);
            while let Some(row) = next.peek().filter(|&row| row < end) {
                next.advance();
                let Some(bytes) = view.doc(row.wrapping_sub(start)) else {
                    let what = "the ends of a block's rows are impossible";
                    return Err(crate::Error::corrupt(sealed.segment.file_name(), 0, what));
                };
                if self.row(row, JsonbRef::from_valid(bytes), each)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Rows of a tail.
    pub(super) fn tail(&mut self, tail: &Tail, rows: &Range<u32>, each: Each<'_>) -> Result<ControlFlow<()>> {
        let selection = self.selection;
        let mut next = Wanted::new(&selection.rows, rows);
        while let Some(row) = next.peek() {
            next.advance();
            let Some(document) = tail.view(RowId::from_raw(self.part.first + row)) else { continue };
            if self.row(row, document, each)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Rows of a range that are wanted, in order.
enum Wanted<'r> {
    Range(Range<u32>),
    Set(std::iter::Peekable<roaring::bitmap::Iter<'r>>, u32),
}

impl<'r> Wanted<'r> {
    fn new(wanted: &'r Rows, rows: &Range<u32>) -> Self {
        match wanted {
            Rows::None => Self::Range(0..0),
            Rows::All => Self::Range(rows.clone()),
            Rows::Some(set) => Self::Set(set.bitmap().range(rows.clone()).peekable(), rows.end),
        }
    }

    fn peek(&mut self) -> Option<u32> {
        match self {
            Self::Range(range) => (range.start < range.end).then_some(range.start),
            Self::Set(iter, end) => iter.peek().copied().filter(|row| row < end),
        }
    }

    fn advance(&mut self) {
        match self {
            Self::Range(range) => range.start += 1,
            Self::Set(iter, _) => {
                iter.next();
            }
        }
    }
}
