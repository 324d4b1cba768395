//! Which part of a pipeline is answered by what: the filter of a scan, the sort of a find, columns, stages that each core
//! runs on its own documents, and the rest, one document after another.
//!
//! Takes a parsed pipeline; gives the plan. Every rearrangement leaves the answer as it is.

use std::sync::Arc;

use quarrydb_query::pipeline::{Pipeline, Stage, Write, wanted};
use quarrydb_query::{Filter, Sort};

use super::columns::{self, ColumnPlan};

/// How a pipeline runs.
#[derive(Debug)]
pub(super) struct Plan {
    /// Whether it takes documents of a collection.
    pub reads: bool,
    /// Which of them.
    pub filter: Filter,
    /// In which order, where the first of them are enough.
    pub sort: Option<Arc<Sort>>,
    /// How many are left out in front of those.
    pub skip: u64,
    /// How many there are at most.
    pub limit: Option<u64>,
    /// How columns answer the first stage of the rest, where they may.
    pub columns: Option<ColumnPlan>,
    /// Stages that take each document by itself.
    pub each: Vec<Stage>,
    /// The stages behind.
    pub rest: Vec<Stage>,
}

impl Plan {
    pub(super) fn new(pipeline: Pipeline) -> Self {
        let reads = pipeline.reads_input();
        let mut rest = matches_first(pipeline.into_stages());
        let mut plan = Self {
            reads,
            filter: Filter::everything(),
            sort: None,
            skip: 0,
            limit: None,
            columns: None,
            each: Vec::new(),
            rest: Vec::new(),
        };
        if !reads {
            plan.rest = rest;
            return plan;
        }
        if let Some(Stage::Match(filter)) = rest.first() {
            plan.filter = Filter::clone(filter);
            rest.remove(0);
        }
        plan.columns = columns::try_plan(&rest);
        if plan.columns.is_some() {
            plan.rest = rest;
            return plan;
        }
        let taken = plan.take_range(&rest);
        rest.drain(..taken);
        let each = rest.iter().take_while(|stage| is_of_each(stage)).count();
        plan.rest = rest.split_off(each);
        plan.each = rest;
        plan
    }

    /// Takes a sort whose first documents are enough, and skips and limits, from the front; gives how many stages.
    fn take_range(&mut self, stages: &[Stage]) -> usize {
        let mut taken = 0;
        if let [Stage::Sort(sort), rest @ ..] = stages {
            if wanted(rest).is_none() {
                return 0;
            }
            self.sort = Some(Arc::clone(sort));
            taken = 1;
        }
        for stage in stages.get(taken..).unwrap_or_default() {
            match stage {
                Stage::Skip(n) => match self.limit {
                    None => self.skip = self.skip.saturating_add(*n),
                    // Of what a limit left.
                    Some(limit) if limit > *n => {
                        self.limit = Some(limit - n);
                        self.skip = self.skip.saturating_add(*n);
                    }
                    Some(_) => break,
                },
                Stage::Limit(n) => self.limit = Some(self.limit.map_or(*n, |limit| limit.min(*n))),
                _ => break,
            }
            taken += 1;
        }
        taken
    }

    /// Whether it gives documents as they are found.
    pub(super) fn is_find(&self) -> bool {
        self.columns.is_none() && self.rest.is_empty()
    }

    /// Takes the stage that writes out of it.
    pub(super) fn take_write(&mut self) -> Option<Stage> {
        self.write().is_some().then(|| self.rest.pop()).flatten()
    }

    /// All stages that documents go through.
    pub(super) fn stages(&self) -> Vec<Stage> {
        self.each.iter().chain(&self.rest).cloned().collect()
    }

    /// The stage that writes, if the last one does.
    pub(super) fn write(&self) -> Option<&Arc<Write>> {
        match self.rest.last() {
            Some(Stage::Write(write)) => Some(write),
            _ => None,
        }
    }
}

/// Whether a stage makes what it makes of each document by itself, and keeps nothing.
fn is_of_each(stage: &Stage) -> bool {
    matches!(stage, Stage::Match(_) | Stage::Transform(_) | Stage::Unwind(_) | Stage::Redact(_))
}

/// `$match`es go before the `$sort` they stand behind, and those beside each other become one.
fn matches_first(stages: Vec<Stage>) -> Vec<Stage> {
    let mut out: Vec<Stage> = Vec::with_capacity(stages.len());
    for stage in stages {
        let Stage::Match(filter) = &stage else {
            out.push(stage);
            continue;
        };
        let mut at = out.len();
        while at > 0 && matches!(out.get(at - 1), Some(Stage::Sort(_))) {
            at -= 1;
        }
        match at.checked_sub(1).and_then(|before| out.get_mut(before)) {
            Some(Stage::Match(before)) => {
                *before = Arc::new(Filter::clone(before).and(Filter::clone(filter)));
            }
            _ => out.insert(at, stage),
        }
    }
    out
}
