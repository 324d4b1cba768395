//! The stages that need no more than the document at hand or a count: `$match`, the transforms, `$limit`, `$skip`,
//! `$count`.

use super::host::Fault;
use super::operator::{Flow, Next, Operator};
use crate::expr::Datum;
use crate::filter::Filter;
use crate::transform::Transform;
use crate::{QueryError, scratch};
use quarrydb_jsonb::JsonbRef;
use std::sync::Arc;

pub(super) struct Match(pub Arc<Filter>);

impl Operator for Match {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        if self.0.matches_within(document, next.host().budget())? {
            next.push(document)
        } else {
            Ok(Flow::Continue(()))
        }
    }
}

pub(super) struct Transforming(pub Arc<Transform>);

impl Operator for Transforming {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let made = self.0.apply(document, next.host().budget())?;
        next.push(made.view())
    }
}

/// How many are still wanted.
pub(super) struct Limit(pub u64);

impl Operator for Limit {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        if self.0 == 0 {
            return Ok(Flow::Break(()));
        }
        self.0 -= 1;
        let flow = next.push(document)?;
        Ok(if self.0 == 0 { Flow::Break(()) } else { flow })
    }
}

/// How many are still to be left out.
pub(super) struct Skip(pub u64);

impl Operator for Skip {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        if self.0 == 0 {
            return next.push(document);
        }
        self.0 -= 1;
        Ok(Flow::Continue(()))
    }
}

pub(super) struct Count {
    pub name: Arc<str>,
    pub count: usize,
}

impl Operator for Count {
    fn push(&mut self, _: JsonbRef<'_>, _: &mut Next<'_>) -> Result<Flow, Fault> {
        self.count += 1;
        Ok(Flow::Continue(()))
    }

    /// Of no documents there is no count, as in MongoDB.
    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        if self.count == 0 {
            return Ok(());
        }
        let document = scratch::build(32, |out| {
            out.begin_object();
            out.field(&self.name);
            Datum::count(self.count).write(out)?;
            out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
        })?;
        next.push(document.view()).map(drop)
    }
}
