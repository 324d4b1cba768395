//! `$facet`: several pipelines over the same documents, each an array of one document.

use super::host::{Fault, Host};
use super::operator::{Flow, Next, Operator};
use super::run::Run;
use super::sub::SubPipeline;
use super::within::Inside;
use super::written::{Pile, check_size, too_large};
use crate::limits::NESTING_MAX;
use crate::transform::check_nesting;
use crate::{ParseContext, QueryError, scratch};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind};
use std::sync::Arc;

/// A parsed `$facet`.
#[derive(Debug)]
pub struct Facet {
    branches: Vec<(Box<str>, SubPipeline)>,
}

impl Facet {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// 40169 to 40171 for its shape, 16410 and its like for a name, 40600 for a stage that is not for branches.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let Some(object) = value.as_object().filter(|o| !o.is_empty()) else {
            let found = crate::error::shown(value);
            let message = format!("the $facet specification must be a non-empty object, but found: {found}");
            return Err(QueryError::location(40169, message).at(&context.place));
        };
        let mut branches = Vec::with_capacity(object.len());
        let mut within = context.within;
        for entry in object {
            let context = ParseContext { within, ..*context };
            let (name, place) = (entry.name(), context.place.name(entry.name()));
            check_name(name).map_err(|e| e.at(&place))?;
            let Some(stages) = entry.value.as_array() else {
                let message =
                    format!("arguments to $facet must be arrays, {name} is type {}", entry.value.kind().alias());
                return Err(QueryError::location(40170, message).at(&place));
            };
            if let Some((i, stage)) = stages.iter().enumerate().find(|(_, s)| s.kind() != Kind::Object) {
                let message = format!(
                    "elements of arrays in $facet spec must be non-empty objects, {name} argument contained an element \
                     of type {}",
                    stage.kind().alias()
                );
                return Err(QueryError::location(40171, message).at(&place.index(i)));
            }
            let branch = SubPipeline::parse(entry.value, &context.at(place), Inside::Facet, &[])?;
            branches.push((name.into(), branch));
            // All branches hold what they hold at the same time, so that their stages count together.
            within.stages += stages.len();
        }
        Ok(Self { branches })
    }

    /// The pipelines by name, in their order.
    #[must_use]
    pub fn branches(&self) -> &[(Box<str>, SubPipeline)] {
        &self.branches
    }
}

/// What the name of one field must be.
pub(super) fn check_name(name: &str) -> Result<(), QueryError> {
    if name.contains('.') {
        return Err(QueryError::location(16412, format!("the field name '{name}' may not contain '.'")));
    }
    crate::sort::check_path(name)
}

pub(super) struct Faceting {
    facet: Arc<Facet>,
    branches: Vec<Branch>,
    bytes: usize,
}

struct Branch {
    run: Run,
    found: Pile,
    /// It wants no more documents.
    done: bool,
}

impl Faceting {
    pub(super) fn new(facet: &Arc<Facet>) -> Self {
        let branches = facet.branches.iter().map(|(_, sub)| Branch {
            run: Run::new(sub.pipeline().stages()),
            found: Pile::default(),
            done: false,
        });
        Self { branches: branches.collect(), facet: Arc::clone(facet), bytes: 0 }
    }
}

const WHAT: &str = "the document that $facet makes";

impl Faceting {
    /// Lets branch `at` take what `run` gives it, within what all of them may hold.
    fn branch(
        &mut self,
        at: usize,
        host: &dyn Host,
        run: impl FnOnce(&mut Run, &mut Sink<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let most = host.stage_bytes();
        let (bytes, Some(branch)) = (&mut self.bytes, self.branches.get_mut(at)) else { return Ok(()) };
        let Branch { run: stages, found, done } = branch;
        let flow = run(stages, &mut |made| {
            *bytes += made.as_bytes().len();
            if *bytes > most {
                return Err(super::sorter::memory_exceeded("$facet", most).into());
            }
            found.push_for_one(made, WHAT)?;
            Ok(Flow::Continue(()))
        })?;
        *done = flow.is_break();
        Ok(())
    }

    #[inline(never)]
    fn made(&self) -> Result<JsonbBuf, QueryError> {
        let made = scratch::build(self.bytes, |out| {
            out.begin_object();
            for ((name, _), branch) in self.facet.branches.iter().zip(&self.branches) {
                out.field(name);
                branch.found.write(out)?;
            }
            out.end_object().map_err(too_large)
        })?;
        check_size(made.view(), WHAT)?;
        check_nesting(made.view(), NESTING_MAX)?;
        Ok(made)
    }
}

type Sink<'s> = dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault> + 's;

impl Operator for Faceting {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let (host, mut done) = (next.host(), true);
        for at in 0..self.branches.len() {
            if self.branches.get(at).is_some_and(|branch| !branch.done) {
                self.branch(at, host, |run, sink| run.push(document, host, sink))?;
            }
            done &= self.branches.get(at).is_none_or(|branch| branch.done);
        }
        Ok(if done { Flow::Break(()) } else { Flow::Continue(()) })
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        for at in 0..self.branches.len() {
            self.branch(at, host, |run, sink| run.finish(host, sink).map(Flow::Continue))?;
        }
        let made = self.made()?;
        next.push(made.view()).map(drop)
    }
}
