//! Where columns answer the front of a pipeline, asked before documents are.
//!
//! Takes the stages behind the filter; says whether columns may answer the first, and answers it from a scan. What is not
//! planned here, and what does not fit into the memory of a stage, runs on documents.

use std::sync::Arc;

use quarrydb_jsonb::JsonbRef;
use quarrydb_query::Sort;
use quarrydb_query::pipeline::{Fault, Flow, Host, Stage};

use super::host::EngineHost;
use crate::budget::Meter;
use crate::exec::group::{ColumnGroup, group};
use crate::exec::scan::Scan;

/// Groups kept for a sort with a limit up to which they are chosen before they become documents.
const TOP_MAX: u64 = 4096;

/// A `$group` that columns answer, and what of it is wanted.
#[derive(Debug)]
pub(super) struct ColumnPlan {
    group: ColumnGroup,
    /// The sort behind it, and how many groups of its front are enough.
    top: Option<(Arc<Sort>, usize)>,
}

/// How columns answer the first of `stages`, if they may.
pub(super) fn try_plan(stages: &[Stage]) -> Option<ColumnPlan> {
    let [Stage::Group(group), rest @ ..] = stages else { return None };
    let group = ColumnGroup::new(group)?;
    let top = match rest {
        [Stage::Sort(sort), Stage::Limit(n), ..] if *n <= TOP_MAX => Some((Arc::clone(sort), *n as usize)),
        _ => None,
    };
    Some(ColumnPlan { group, top })
}

impl ColumnPlan {
    /// Calls `each` with the groups of the documents of a scan, until it breaks: all of them, or those that the sort behind
    /// has in front. False, with nothing given, where documents are to be asked.
    ///
    /// # Errors
    /// Those of the stage and of the scan, and those of `each`.
    pub(super) fn run(
        &self,
        scan: &Scan,
        host: &EngineHost,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<bool, Fault> {
        let meter = Meter::new(&host.core().queries);
        let Some(grouped) = group(scan, &self.group, host.stage_bytes(), &meter)? else { return Ok(false) };
        if let Some((sort, keep)) = &self.top
            && *keep < grouped.len()
            && grouped.top(&self.group, sort, *keep, each)?
        {
            return Ok(true);
        }
        grouped.finish(&self.group, host, host.deadline(), each)?;
        Ok(true)
    }
}
