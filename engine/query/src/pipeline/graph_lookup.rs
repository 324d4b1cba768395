//! `$graphLookup`: with each document those of a collection that are reached from it, step by step.
//!
//! Each step asks for all documents that have a value of the last at `connectToField`; a document is found once, in the
//! first step that reaches it. Values that were asked for are not asked for again, so that circles end. Null finds null, and
//! nothing finds a document without the field.

use super::foreign::Foreign;
use super::host::{Fault, Host};
use super::lookup::check_collection;
use super::operator::{Flow, Next, Operator};
use super::stage::whole;
use super::values;
use super::written::{self, Pile};
use crate::byte_set::ByteSet;
use crate::expr::{Datum, Expression, Scope};
use crate::limits::{GRAPH_BYTES_MAX, NESTING_MAX};
use crate::path_walk::FieldPath;
use crate::transform::check_nesting;
use crate::{Filter, ParseContext, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind, sort_key};
use std::sync::Arc;

/// A parsed `$graphLookup`.
#[derive(Debug)]
pub struct GraphLookup {
    /// The collection.
    pub from: Box<str>,
    /// Where the array goes.
    pub as_path: FieldPath,
    /// The values of the first step.
    pub start_with: Expression,
    /// Where a document has the values of the next step.
    pub connect_from: FieldPath,
    /// Where a document has the value by which it is reached.
    pub connect_to: FieldPath,
    /// The last step; none where there is no limit.
    pub max_depth: Option<u64>,
    /// Where a document's step goes.
    pub depth_field: Option<FieldPath>,
    /// What else a document must match.
    pub restrict: Option<Filter>,
}

impl GraphLookup {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// With MongoDB's numbers: 9 for its shape, 40100 to 40105, 40185, and those of paths and expressions.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        let Some(object) = value.as_object() else {
            let message =
                format!("the $graphLookup stage specification must be an object, but found {}", value.kind().alias());
            return Err(QueryError::failed_to_parse(message).at(&place));
        };
        let (mut start, mut max_depth, mut restrict, mut from) = (None, None, None, None);
        let (mut as_path, mut connect_from, mut connect_to, mut depth_field) = (None, None, None, None);
        for entry in object {
            let place = place.name(entry.name());
            let here = context.at(place);
            match entry.name() {
                "startWith" => start = Some(Expression::parse(entry.value, &here)?),
                "maxDepth" => max_depth = Some(depth(entry.value).map_err(|e| e.at(&place))?),
                "restrictSearchWithMatch" => {
                    if entry.value.as_object().is_none() {
                        let message =
                            format!("restrictSearchWithMatch must be an object, found {}", entry.value.kind().alias());
                        return Err(QueryError::location(40185, message).at(&place));
                    }
                    restrict = Some(Filter::parse(entry.value, &here)?);
                }
                "from" => from = Some(text(entry.name(), entry.value).map_err(|e| e.at(&place))?),
                "as" | "connectFromField" | "connectToField" | "depthField" => {
                    let text = text(entry.name(), entry.value).map_err(|e| e.at(&place))?;
                    let path = Some(written::path(text, &here)?);
                    match entry.name() {
                        "as" => as_path = path,
                        "connectFromField" => connect_from = path,
                        "connectToField" => connect_to = path,
                        _ => depth_field = path,
                    }
                }
                name => {
                    let message = format!("Unknown argument to $graphLookup: {name}");
                    return Err(QueryError::location(40104, message).at(&place));
                }
            }
        }
        let Some(from) = from else {
            return Err(
                QueryError::failed_to_parse("missing 'from' option to $graphLookup stage specification").at(&place)
            );
        };
        check_collection(from).map_err(|e| e.at(&place.name("from")))?;
        let (Some(as_path), Some(start_with), Some(connect_from), Some(connect_to)) =
            (as_path, start, connect_from, connect_to)
        else {
            let message = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to \
                           be specified.";
            return Err(QueryError::location(40105, message).at(&place));
        };
        Ok(Self { from: from.into(), as_path, start_with, connect_from, connect_to, max_depth, depth_field, restrict })
    }
}

fn text<'v>(name: &str, value: JsonbRef<'v>) -> Result<&'v str, QueryError> {
    value.as_str().ok_or_else(|| {
        let message = format!("expected string as argument for {name}, found: {}", crate::error::shown(value));
        QueryError::location(40103, message)
    })
}

fn depth(value: JsonbRef<'_>) -> Result<u64, QueryError> {
    if !value.kind().is_number() {
        let message = format!("maxDepth must be numeric, found type: {}", value.kind().alias());
        return Err(QueryError::location(40100, message));
    }
    if value.as_f64().is_some_and(|n| n < 0.0) || whole(value).is_some_and(|n| n < 0) {
        let message = format!("maxDepth requires a nonnegative argument, found: {}", crate::error::shown(value));
        return Err(QueryError::location(40101, message));
    }
    whole(value).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
        let message = format!("maxDepth could not be represented as a long long: {}", crate::error::shown(value));
        QueryError::location(40102, message)
    })
}

pub(super) struct LookingAround {
    graph: Arc<GraphLookup>,
    foreign: Foreign,
}

impl LookingAround {
    pub(super) fn new(graph: &Arc<GraphLookup>) -> Self {
        Self { graph: Arc::clone(graph), foreign: Foreign::default() }
    }
}

const WHAT: &str = "the array that $graphLookup makes";

/// One search.
#[derive(Default)]
struct Search {
    found: Pile,
    seen: ByteSet,
    asked: ByteSet,
    /// Values of the next step.
    front: Pile,
    key: Vec<u8>,
}

impl Search {
    /// Takes a value for the next step, where it was in none before.
    fn add(&mut self, value: JsonbRef<'_>) {
        self.key.clear();
        sort_key(value, &mut self.key);
        if self.asked.insert(&self.key) {
            self.front.push(value);
        }
    }

    /// Takes a document that was reached in step `depth`.
    fn reach(&mut self, graph: &GraphLookup, document: JsonbRef<'_>, depth: u64) -> Result<(), QueryError> {
        let Some(id) = document.get("_id") else {
            let message = format!("Documents in the '{}' namespace must contain an _id", graph.from);
            return Err(QueryError::location(40271, message));
        };
        self.key.clear();
        sort_key(id, &mut self.key);
        if !self.seen.insert(&self.key) {
            return Ok(());
        }
        match &graph.depth_field {
            None => self.found.push_for_one(document, WHAT)?,
            Some(path) => {
                let depth = i64::try_from(depth).unwrap_or(i64::MAX);
                let made = written::with(document, path, 16, &mut |out| out.int64(depth))?;
                self.found.push_for_one(made.view(), WHAT)?;
            }
        }
        values::at_path(document, &graph.connect_from, &mut |value| self.add(value));
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.found.bytes() + self.seen.bytes() + self.asked.bytes() + self.front.bytes()
    }
}

impl Operator for LookingAround {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let made = self.joined(document, next.host())?;
        next.push(made.view())
    }
}

impl LookingAround {
    #[inline(never)]
    fn joined(&mut self, document: JsonbRef<'_>, host: &dyn Host) -> Result<JsonbBuf, Fault> {
        let graph = Arc::clone(&self.graph);
        let found = self.search(&graph, document, host)?;
        let made = written::with(document, &graph.as_path, found.as_bytes().len(), &mut |out| out.copy(found.view()))?;
        check_nesting(made.view(), NESTING_MAX)?;
        Ok(made)
    }

    fn search(&mut self, graph: &GraphLookup, document: JsonbRef<'_>, host: &dyn Host) -> Result<JsonbBuf, Fault> {
        let mut search = Search::default();
        start(graph, document, host, &mut search)?;
        let most = host.stage_bytes().min(GRAPH_BYTES_MAX);
        let mut depth = 0;
        while search.front.len() > 0 && graph.max_depth.is_none_or(|max| depth <= max) {
            let front = std::mem::take(&mut search.front);
            let values = front.to_array("what one step of $graphLookup asks for")?;
            // An equality with null would find what is missing too.
            let present = front.iter().any(|v| v.kind() == Kind::Null).then(|| Filter::exists(&graph.connect_to));
            let filter = match (&graph.restrict, present) {
                (Some(restrict), Some(present)) => Some(restrict.clone().and(present)),
                (restrict, present) => present.or_else(|| restrict.clone()),
            };
            self.foreign.each(
                (&graph.from, &graph.connect_to),
                values.view(),
                filter.as_ref(),
                host,
                &mut |document| {
                    search.reach(graph, document, depth)?;
                    if search.bytes() > most {
                        let message = format!("$graphLookup reached maximum memory consumption of {most} bytes");
                        return Err(QueryError::location(40099, message).into());
                    }
                    Ok(Flow::Continue(()))
                },
            )?;
            depth += 1;
        }
        Ok(search.found.to_array(WHAT)?)
    }
}

/// The values of the first step: the elements of an array, else the value; nothing where it is missing.
fn start(graph: &GraphLookup, document: JsonbRef<'_>, host: &dyn Host, search: &mut Search) -> Result<(), QueryError> {
    let mut scope = Scope::new(document, host.budget());
    let value: Datum<'_> = graph.start_with.evaluate(&mut scope)?;
    match value.elements() {
        Some(elements) => {
            for element in elements {
                search.add(element.encoded()?.view());
            }
        }
        None if value.kind().is_some() => search.add(value.encoded()?.view()),
        None => {}
    }
    Ok(())
}
