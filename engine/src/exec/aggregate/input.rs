//! The documents that go into a pipeline: one by its `_id`, the first of a sort, or all of a scan.

use std::sync::atomic::Ordering;

use super::Place;
use super::host::EngineHost;
use super::plan::Plan;
use crate::error::Result;
use crate::exec::cursor::Cursor;
use crate::exec::find::{self, FindRequest};
use crate::exec::scan::{Ask, Scan};

/// Documents on their way in.
#[derive(Debug)]
pub(super) enum Input {
    /// There are none.
    Nothing,
    /// One after the other.
    Cursor(Box<Cursor>),
    /// All that a scan finds, in row order.
    Scan(Box<Scan>),
}

impl Input {
    pub(super) fn new(host: &EngineHost, plan: &Plan, place: &Place<'_>) -> Result<Self> {
        let collection = place.collection.filter(|_| plan.reads);
        let Some(view) = collection.and_then(|collection| host.view(None, collection)) else {
            return Ok(Self::Nothing);
        };
        let core = host.core();
        if let Some(id) = plan.filter.id_point().filter(|_| view.is_plain()) {
            let found = host.point(view, id, &plan.filter)?;
            let mut request = FindRequest::new(plan.filter.clone());
            request.skip = plan.skip;
            return find::of_found(core, found, request).map(|cursor| Self::Cursor(Box::new(cursor)));
        }
        if plan.sort.is_some() || plan.skip > 0 || plan.limit.is_some() {
            let mut request = FindRequest::new(plan.filter.clone());
            request.sort = plan.sort.as_deref().cloned();
            request.skip = plan.skip;
            request.limit = plan.limit;
            request.allow_disk_use = host.may_spill();
            request.deadline = host.deadline();
            let cursor = find::find_in(core, view.clone(), host.snapshot(), request)?;
            return Ok(Self::Cursor(Box::new(cursor)));
        }
        core.counters.cursors_opened.fetch_add(1, Ordering::Relaxed);
        let ask = if plan.columns.is_some() { Ask::Values } else { Ask::Filter };
        let ask = ask.within(&core.options);
        let scan = Scan::over(view.clone(), host.snapshot(), plan.filter.clone(), host.deadline(), ask)?;
        Ok(Self::Scan(Box::new(scan)))
    }
}

/// Counts what a scan looked at.
pub(super) fn note_examined(host: &EngineHost, scan: &Scan) {
    host.note_examined(scan.examined.load(Ordering::Relaxed));
}
