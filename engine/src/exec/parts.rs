//! The parts of a scan: each segment, each run of a tail's rows that has columns, and the rows behind them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use roaring::RoaringBitmap;

use super::select::Selection;
use crate::columns::Source;
use crate::error::Result;
use crate::ids::Seq;
use crate::mvcc::version::Sealed;
use crate::plan::Answer;
use crate::tail::Tail;
use crate::tail::chunks::Chunk;

/// A run of rows with what is known of them.
#[derive(Debug)]
pub(super) struct Part {
    /// Counted as in [`RowAt`](super::scan::RowAt).
    pub source: u32,
    /// Its first row in the source.
    pub first: u32,
    pub rows: u32,
    pub columns: PartColumns,
    pub unseen: Unseen,
    pub selection: OnceLock<Selection>,
}

#[derive(Debug)]
pub(super) enum PartColumns {
    Segment(Arc<Sealed>),
    Chunk(Arc<Chunk>),
    None,
}

/// Which rows of a part a snapshot does not see.
#[derive(Debug)]
pub(super) enum Unseen {
    /// To be found out from the segment.
    OfSegment,
    Known(Option<RoaringBitmap>),
}

/// Whether a tail's rows have columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chunking {
    /// They are made where there are none.
    Made,
    /// Where there are some.
    AsTheyAre,
    None,
}

/// What is seen of a tail: what was there at a `Seq`, without what is hidden.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'s> {
    pub at: Seq,
    pub hidden: Option<&'s RoaringBitmap>,
}

/// The few rows of so many of a tail that a declared index leaves, if one does.
pub(super) type FewOfTail<'f> = &'f dyn Fn(&Tail, u32) -> Result<Option<Answer>>;

/// The parts of a tail: its chunks, and the rows behind them.
pub(super) fn add_tail(
    parts: &mut Vec<Part>,
    source: u32,
    tail: &Arc<Tail>,
    Seen { at, hidden }: Seen<'_>,
    chunks: Chunking,
    by_index: FewOfTail<'_>,
) -> Result<()> {
    let (seen, mut ended) = tail.seen(at);
    if let Some(hidden) = hidden {
        ended |= hidden;
    }
    if let Some(answer) = by_index(tail, seen)? {
        let ended = ended.iter().take_while(|row| *row < seen).collect::<RoaringBitmap>();
        let unseen = Unseen::Known((!ended.is_empty()).then(|| ended.clone()));
        let part = Part::new(source, 0..seen, PartColumns::None, unseen);
        let _ = part.selection.set(Selection::new(answer, (!ended.is_empty()).then_some(ended), seen));
        parts.push(part);
        return Ok(());
    }
    let chunks = match chunks {
        Chunking::Made => tail.chunks().cover(tail, seen)?,
        Chunking::AsTheyAre => tail.chunks().made(),
        Chunking::None => Vec::new(),
    };
    let unseen = |rows: &Range<u32>| {
        let mut unseen: RoaringBitmap = ended.range(rows.clone()).map(|row| row - rows.start).collect();
        unseen.insert_range(seen.clamp(rows.start, rows.end) - rows.start..rows.end - rows.start);
        Unseen::Known((!unseen.is_empty()).then_some(unseen))
    };
    let mut covered = 0;
    for chunk in chunks {
        let rows = chunk.rows.clone();
        if rows.start >= seen {
            break;
        }
        covered = rows.end;
        let unseen = unseen(&rows);
        parts.push(Part::new(source, rows, PartColumns::Chunk(chunk), unseen));
    }
    if covered < seen {
        let rows = covered..seen;
        let unseen = unseen(&rows);
        parts.push(Part::new(source, rows, PartColumns::None, unseen));
    }
    Ok(())
}

impl Part {
    pub(super) fn new(source: u32, rows: Range<u32>, columns: PartColumns, unseen: Unseen) -> Self {
        let (first, rows) = (rows.start, rows.end - rows.start);
        Self { source, first, rows, columns, unseen, selection: OnceLock::new() }
    }
}

impl PartColumns {
    pub(super) fn ask<T>(&self, asks: impl FnOnce(Option<Source<'_>>) -> Result<T>) -> Result<T> {
        match self {
            Self::Segment(sealed) => asks(sealed.columns()?),
            Self::Chunk(chunk) => asks(Some(chunk.source())),
            Self::None => asks(None),
        }
    }
}
