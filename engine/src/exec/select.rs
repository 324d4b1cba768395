//! The rows of a scan that need to be looked at, found from columns where there are some.
//!
//! Takes a version, a `Seq` and a filter made ready; gives, for each segment and each run of a tail's rows, the rows that
//! match for sure and those that must be asked, of those that the snapshot sees. Counts where counts are enough.

use quarrydb_index::RowSet;
use roaring::RoaringBitmap;

use super::by_index::{ByIndex, best};
use super::parts::{Part, PartColumns};
use super::scan::Scan;
use crate::columns::Source;
use crate::error::Result;
use crate::plan::{Answer, Rows};

/// The rows of one part that a snapshot sees and a filter may match.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    /// To be looked at, or given.
    pub rows: Rows,
    /// Those of them that match for sure.
    pub sure: Rows,
    /// Rows of the part.
    pub of: u32,
}

impl Selection {
    /// What is left of an answer where `unseen` rows are not seen.
    pub(super) fn new(answer: Answer, unseen: Option<RoaringBitmap>, of: u32) -> Self {
        let exact = answer.is_exact();
        let seen = |rows: Rows, unseen: &Rows| rows.without(unseen, of);
        let unseen = unseen.map_or(Rows::None, |unseen| Rows::of(RowSet::from_bitmap(unseen), of));
        let rows = seen(answer.possible, &unseen);
        let sure = if exact { rows.clone() } else { seen(answer.sure, &unseen) };
        Self { rows, sure, of }
    }

    /// Whether no document decides.
    pub(crate) fn is_exact(&self) -> bool {
        self.sure_len() == self.len()
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> u64 {
        len(&self.rows, self.of)
    }

    /// How many match for sure.
    pub(crate) fn sure_len(&self) -> u64 {
        len(&self.sure, self.of)
    }
}

fn len(rows: &Rows, of: u32) -> u64 {
    match rows {
        Rows::None => 0,
        Rows::All => u64::from(of),
        Rows::Some(set) => set.len(),
    }
}

/// A part's rows as far as counting goes.
pub(crate) enum Counted {
    /// So many match.
    Exactly(u64),
    /// These must be looked at, or their sure ones counted.
    Rows(Selection),
}

impl Scan {
    /// The rows of a part: `unseen` are those that the snapshot does not see.
    pub(super) fn select(&self, part: &Part, unseen: Option<RoaringBitmap>) -> Result<Selection> {
        let of = part.rows;
        let by_index = self.by_index(part)?;
        if let Some(by_index) = by_index.as_ref().filter(|found| found.is_enough()) {
            return Ok(Selection::new(by_index.answer(of)?, unseen, of));
        }
        let of_columns = if self.filter.is_everything() {
            Answer::exact(Rows::All)
        } else if self.prepared.is_unknown() {
            Answer::unknown()
        } else {
            let ask = |source: Source<'_>| self.prepared.rows(source, self.deadline);
            part.columns.ask(|source| source.map_or(Ok(Answer::unknown()), ask))?
        };
        let answer = match by_index.filter(|_| !of_columns.is_exact()) {
            Some(by_index) => of_columns.and_at_most(by_index.answer(of)?),
            None => of_columns,
        };
        Ok(Selection::new(answer, unseen, of))
    }

    /// The same, where a number may do.
    pub(super) fn select_count(&self, part: &Part, unseen: Option<RoaringBitmap>) -> Result<Counted> {
        if unseen.is_none() {
            let of_columns =
                part.columns.ask(|source| source.map_or(Ok(None), |source| self.prepared.count(source)))?;
            if let Some(count) = of_columns {
                return Ok(Counted::Exactly(count));
            }
            if let Some(by_index) = self.by_index(part)?
                && let Some(count) = by_index.count()?
            {
                return Ok(Counted::Exactly(count));
            }
        }
        self.select(part, unseen).map(Counted::Rows)
    }

    /// What a declared index says of a part.
    pub(super) fn by_index(&self, part: &Part) -> Result<Option<ByIndex>> {
        match &part.columns {
            PartColumns::Segment(sealed) if !self.indexes.is_empty() && !self.filter.is_everything() => {
                best(&self.indexes, sealed, &self.filter)
            }
            _ => Ok(None),
        }
    }
}
