//! Where columns answer the front of a pipeline, asked before documents are.
//!
//! Takes the stages behind the filter; says whether columns may answer the first, and answers it from a scan. What is not
//! planned here, and what does not fit into the memory of a stage, runs on documents.

use std::sync::Arc;

use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef};
use quarrydb_query::Sort;
use quarrydb_query::pipeline::{Fault, Flow, Host, Stage};

use super::host::EngineHost;
use crate::budget::Meter;
use crate::error::Error;
use crate::exec::group::{ColumnGroup, group};
use crate::exec::scan::Scan;

/// Groups kept for a sort with a limit up to which they are chosen before they become documents.
const TOP_MAX: u64 = 4096;

/// What columns answer.
#[derive(Debug)]
pub(super) enum ColumnPlan {
    /// A `$group`.
    Group {
        /// What it asks for.
        group: ColumnGroup,
        /// The sort behind it, and how many groups of its front are enough.
        top: Option<(Arc<Sort>, usize)>,
    },
    /// A `$count`, with the name of its field: from counts and sets where they tell.
    Count(Arc<str>),
}

/// How columns answer the first of `stages`, if they may.
pub(super) fn try_plan(stages: &[Stage]) -> Option<ColumnPlan> {
    let (group, rest) = match stages {
        [Stage::Group(group), rest @ ..] => (ColumnGroup::new(group)?, rest),
        [Stage::Count(name), ..] => return Some(ColumnPlan::Count(Arc::clone(name))),
        _ => return None,
    };
    let top = match rest {
        [Stage::Sort(sort), Stage::Limit(n), ..] if *n <= TOP_MAX => Some((Arc::clone(sort), *n as usize)),
        _ => None,
    };
    Some(ColumnPlan::Group { group, top })
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
        let (spec, top) = match self {
            Self::Group { group, top } => (group, top),
            Self::Count(name) => {
                let count = scan.count()?;
                // Of no documents there is no count, as in MongoDB.
                if count > 0 {
                    let _ = each(counted(name, count)?.view())?;
                }
                return Ok(true);
            }
        };
        let meter = Meter::new(&host.core().queries);
        let Some(grouped) = group(scan, spec, host.stage_bytes(), &meter)? else { return Ok(false) };
        if let Some((sort, keep)) = top
            && *keep < grouped.len()
            && grouped.top(spec, sort, *keep, each)?
        {
            return Ok(true);
        }
        grouped.finish(spec, host, host.deadline(), each)?;
        Ok(true)
    }
}

/// What `$count` makes of so many documents.
fn counted(name: &str, count: u64) -> Result<JsonbBuf, Error> {
    let mut out = Builder::new();
    out.begin_object();
    out.field(name);
    match i32::try_from(count) {
        Ok(count) => out.int32(count),
        Err(_) => out.int64(i64::try_from(count).unwrap_or(i64::MAX)),
    }
    out.end_object()?;
    Ok(JsonbBuf::from_valid(out.take()))
}
