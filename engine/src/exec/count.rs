//! How many rows of a scan match: from counts and sets where they tell, else from documents.

use std::ops::ControlFlow;

use quarrydb_jsonb::JsonbRef;
use rayon::prelude::*;

use super::parts::Part;
use super::scan::{CHEAP_ROWS, Morsel, Scan};
use super::select::Counted;
use crate::error::Result;
use crate::options::Deadline;
use crate::segment::BlockBuf;

impl Scan {
    /// The number of matching rows: from counts and sets where they tell, else from documents, in parallel.
    ///
    /// # Errors
    /// As [`Scan::run`].
    pub(crate) fn count(&self) -> Result<u64> {
        let of_part = |part: &Part| -> Result<u64> {
            Deadline::check(self.deadline)?;
            let selection = match self.select_count(part, self.unseen(part)?)? {
                Counted::Exactly(count) => return Ok(count),
                Counted::Rows(selection) => part.selection.get_or_init(|| selection),
            };
            if selection.is_exact() {
                return Ok(selection.len());
            }
            Ok(0)
        };
        // Counts from metadata take less than waking another thread.
        let known: u64 = if self.rows() <= CHEAP_ROWS || self.prepared.is_one_test() {
            self.parts.iter().map(of_part).sum::<Result<u64>>()?
        } else {
            self.parts.par_iter().map(of_part).try_reduce(|| 0, |a, b| Ok(a + b))?
        };
        let open = |part: &Part| part.selection.get().is_some_and(|selection| !selection.is_exact());
        if !self.parts.iter().any(open) {
            return Ok(known);
        }
        let run = |morsel: &Morsel| -> Result<u64> {
            let mut count = 0;
            let _ = self.run(morsel, &mut BlockBuf::default(), &mut |_, _| {
                count += 1;
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(count)
        };
        let mut morsels = self.morsels()?;
        morsels.retain(|morsel| self.parts.get(morsel.part()).is_some_and(open));
        let asked: u64 = morsels.par_iter().map(run).try_reduce(|| 0, |a, b| Ok(a + b))?;
        Ok(known + asked)
    }

    /// The number of matching rows of one part.
    ///
    /// # Errors
    /// As [`Scan::run`].
    pub(super) fn count_part(&self, part: &Part) -> Result<u64> {
        if self.selection(part)?.is_exact() {
            return Ok(self.selection(part)?.len());
        }
        let index = self.parts.iter().position(|own| std::ptr::eq(own, part)).unwrap_or(self.parts.len());
        let mut count = 0;
        let _ = self.run_part(index, &mut |_| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(count)
    }

    /// The matching rows of one part, in order, until `take` breaks.
    ///
    /// # Errors
    /// As [`Scan::run`].
    pub(super) fn run_part(
        &self,
        part: usize,
        take: &mut dyn FnMut(JsonbRef<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        self.run(&self.morsel_of(part, 0..u32::MAX), &mut BlockBuf::default(), &mut |document, _| take(document))
    }
}
