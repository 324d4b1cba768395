//! `$lookup`: with each document those of another collection that belong to it, as an array.
//!
//! By equality of two fields, by a pipeline that sees variables of the document, or both. What is the same for many
//! documents is asked once. An `$unwind` of the array right behind it is done here, so that the array is never made. Next:
//! `foreign.rs` (equality), `sub.rs` (pipelines), `values.rs`.

use super::foreign::Foreign;
use super::host::{Fault, Host};
use super::operator::{Flow, Next, Operator};
use super::room::with_room;
use super::run::Run;
use super::stage::Stage;
use super::sub::{self, Bound, SubPipeline};
use super::unwind::Unwind;
use super::within::Inside;
use super::written::{self, Pile};
use super::{options::Options, values};
use crate::expr::Expression;
use crate::limits::NESTING_MAX;
use crate::path_walk::FieldPath;
use crate::transform::check_nesting;
use crate::{ParseContext, QueryError, scratch};
use hashbrown::HashMap;
use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use std::sync::Arc;

/// A parsed `$lookup`.
#[derive(Debug)]
pub struct Lookup {
    /// The other collection; none where the pipeline brings its own documents.
    pub from: Option<Box<str>>,
    /// Where the array goes.
    pub as_path: FieldPath,
    /// `localField` and `foreignField`.
    pub fields: Option<(FieldPath, FieldPath)>,
    /// The variables of `let`, in their order.
    pub variables: Vec<(Box<str>, Expression)>,
    /// The pipeline.
    pub pipeline: Option<SubPipeline>,
}

const NAME: &str = "$lookup";

impl Lookup {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// `FailedToParse` (9) for its shape, those of paths, of expressions and of the pipeline.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let known = ["from", "as", "localField", "foreignField", "let", "pipeline"];
        let options = Options::parse(NAME, value, &known, context)?;
        let from = options.text("from")?;
        let (local, foreign) = (options.path("localField")?, options.path("foreignField")?);
        let as_path = options.path("as")?;
        let pipeline = options.get("pipeline");
        let variables = variables(options.get("let"), NAME, &context.at(context.place.name("let")))?;
        let refuse = |message: &str| Err(QueryError::failed_to_parse(message).at(&context.place));
        if let Some(from) = from {
            check_collection(from).map_err(|e| e.at(&context.place.name("from")))?;
        } else if !pipeline.is_some_and(brings_documents) {
            return refuse("$lookup must specify 'from', or a 'pipeline' that begins with $documents");
        }
        let Some(as_path) = as_path else { return refuse("must specify 'as' field for a $lookup") };
        let fields = match (local, foreign, pipeline) {
            (Some(local), Some(foreign), _) => Some((local, foreign)),
            (None, None, Some(_)) => None,
            (None, None, None) | (_, _, None) => {
                return refuse(
                    "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified",
                );
            }
            _ => return refuse("$lookup requires both or neither of 'localField' and 'foreignField' to be specified"),
        };
        if fields.is_some() && from.is_none() {
            return refuse("$lookup with 'localField' and 'foreignField' must specify 'from'");
        }
        if pipeline.is_none() && options.get("let").is_some() {
            return refuse("$lookup with a 'let' argument must also specify 'pipeline'");
        }
        let names: Vec<&str> = variables.iter().map(|(name, _)| &**name).collect();
        let place = context.place.name("pipeline");
        let pipeline = pipeline.map(|p| SubPipeline::parse(p, &context.at(place), Inside::Lookup(from), &names));
        Ok(Self { from: from.map(Box::from), as_path, fields, pipeline: pipeline.transpose()?, variables })
    }
}

/// The variables of a `let`: expressions on the document at hand.
pub(super) fn variables(
    value: Option<JsonbRef<'_>>,
    stage: &str,
    context: &ParseContext<'_>,
) -> Result<Vec<(Box<str>, Expression)>, QueryError> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let Some(object) = value.as_object() else {
        let message = format!("{stage} argument 'let' must be an object, is type {}", value.kind().alias());
        return Err(QueryError::failed_to_parse(message).at(&context.place));
    };
    let mut variables = Vec::with_capacity(object.len());
    for entry in object {
        let place = context.place.name(entry.name());
        crate::expr::check_variable_name(entry.name(), &place)?;
        variables.push((entry.name().into(), Expression::parse(entry.value, &context.at(place))?));
    }
    Ok(variables)
}

/// The values of variables on a document.
pub(super) fn evaluated(
    variables: &[(Box<str>, Expression)],
    document: JsonbRef<'_>,
    budget: crate::expr::Budget<'_>,
) -> Result<Vec<Bound>, QueryError> {
    variables.iter().map(|(_, expression)| Ok(expression.value(document, budget)?.map(Arc::new))).collect()
}

/// Whether a pipeline begins with `$documents`.
pub(super) fn brings_documents(pipeline: JsonbRef<'_>) -> bool {
    pipeline.as_array().and_then(|stages| stages.get(0)).is_some_and(|first| first.get("$documents").is_some())
}

/// What a collection of another stage may be called.
pub(super) fn check_collection(name: &str) -> Result<(), QueryError> {
    if name.is_empty() || name.contains(['\0', '$']) {
        return Err(QueryError::new("InvalidNamespace", 73, format!("invalid collection name: '{name}'")));
    }
    Ok(())
}

pub(super) struct LookingUp {
    lookup: Arc<Lookup>,
    /// The stage behind it, where that takes the array apart.
    unwind: Option<Arc<Unwind>>,
    foreign: Foreign,
    /// What was found for which values, where it is sure to be found again.
    known: HashMap<Box<[u8]>, JsonbBuf>,
    known_bytes: usize,
}

/// What a known result takes beside its bytes.
const KNOWN_BYTES: usize = 96;

/// Bytes of one result that is remembered where it is not made anyway.
const REMEMBERED_BYTES_MAX: usize = 1 << 20;

const WHAT: &str = "the array that $lookup makes";

type Sink<'s> = dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault> + 's;

impl LookingUp {
    pub(super) fn new(lookup: &Arc<Lookup>, unwind: Option<&Arc<Unwind>>) -> Self {
        Self {
            lookup: Arc::clone(lookup),
            unwind: unwind.map(Arc::clone),
            foreign: Foreign::default(),
            known: HashMap::new(),
            known_bytes: 0,
        }
    }
}

/// What a document is joined by.
struct Wanted {
    local: Option<JsonbBuf>,
    bound: Vec<Bound>,
    /// By what the result is remembered; none where it may be another the next time.
    key: Option<Box<[u8]>>,
}

impl Operator for LookingUp {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        if self.unwind.is_some() {
            return self.each(document, next);
        }
        let made = self.joined(document, next.host())?;
        next.push(made.view())
    }
}

/// The documents that a joined and unwound one becomes.
struct Each<'e> {
    lookup: &'e Lookup,
    unwind: &'e Unwind,
    document: JsonbRef<'e>,
    position: usize,
}

impl Each<'_> {
    fn push(&mut self, found: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let made = append(self.lookup, self.document, found)?;
        let made = self.unwind.with_index(made, Some(self.position))?;
        self.position += 1;
        next.push(made.view())
    }

    /// Of none there is one without the field, where that is wanted.
    fn finish(&self, next: &mut Next<'_>) -> Result<Flow, Fault> {
        if self.position > 0 || !self.unwind.preserve {
            return Ok(Flow::Continue(()));
        }
        let made = append(self.lookup, self.document, quarrydb_jsonb::NULL)?;
        let made = written::without(made.view(), &self.lookup.as_path)?;
        next.push(self.unwind.with_index(made, None)?.view())
    }
}

impl LookingUp {
    fn wanted(&self, document: JsonbRef<'_>, host: &dyn Host) -> Result<Wanted, QueryError> {
        let lookup = &*self.lookup;
        let local = lookup.fields.as_ref().map(|(local, _)| local_values(document, local)).transpose()?;
        let bound = evaluated(&lookup.variables, document, host.budget())?;
        let repeatable = lookup.pipeline.as_ref().is_none_or(SubPipeline::is_repeatable);
        let key = repeatable.then(|| key(local.as_ref(), &bound));
        Ok(Wanted { local, bound, key })
    }

    /// The document with its array. Apart from `push`, whose frame stands on the stack for each stage behind.
    #[inline(never)]
    fn joined(&mut self, document: JsonbRef<'_>, host: &dyn Host) -> Result<JsonbBuf, Fault> {
        let lookup = Arc::clone(&self.lookup);
        let wanted = self.wanted(document, host)?;
        if let Some(known) = wanted.key.as_ref().and_then(|key| self.known.get(key)) {
            return Ok(append(&lookup, document, known.view())?);
        }
        let mut pile = Pile::default();
        self.find(&lookup, &wanted, host, &mut |found| {
            pile.push_for_one(found, WHAT)?;
            Ok(Flow::Continue(()))
        })?;
        let found = pile.to_array(WHAT)?;
        let made = append(&lookup, document, found.view())?;
        if let Some(key) = wanted.key {
            self.remember(key, found, host);
        }
        Ok(made)
    }

    /// Hands on a document for each that belongs to it.
    #[inline(never)]
    fn each(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let (lookup, Some(unwind)) = (Arc::clone(&self.lookup), self.unwind.clone()) else {
            return Ok(Flow::Continue(()));
        };
        let host = next.host();
        let wanted = self.wanted(document, host)?;
        let mut each = Each { lookup: &lookup, unwind: &unwind, document, position: 0 };
        if let Some(known) = wanted.key.as_ref().and_then(|key| self.known.get(key)) {
            for found in known.view().as_array().into_iter().flatten() {
                if each.push(found, next)?.is_break() {
                    return Ok(Flow::Break(()));
                }
            }
            return each.finish(next);
        }
        let (mut pile, mut flow) = (wanted.key.is_some().then(Pile::default), Flow::Continue(()));
        self.find(&lookup, &wanted, host, &mut |found| {
            if flow.is_continue() {
                pile = pile.take().filter(|pile| pile.bytes() <= REMEMBERED_BYTES_MAX);
                if let Some(pile) = &mut pile {
                    pile.push(found);
                }
                flow = each.push(found, next)?;
            }
            Ok(flow)
        })?;
        if flow.is_break() {
            return Ok(flow);
        }
        if let (Some(pile), Some(key)) = (pile, wanted.key) {
            self.remember(key, pile.to_array(WHAT)?, host);
        }
        each.finish(next)
    }

    /// Hands on what belongs to a document.
    fn find(&mut self, lookup: &Lookup, wanted: &Wanted, host: &dyn Host, sink: &mut Sink<'_>) -> Result<(), Fault> {
        let pipeline = lookup.pipeline.as_ref().map(|sub| sub.bound(&wanted.bound)).transpose()?;
        let stages = pipeline.as_ref().map_or(&[][..], |pipeline| pipeline.stages());
        match (&lookup.fields, &wanted.local, &lookup.from) {
            (Some((_, foreign)), Some(values), Some(from)) if stages.first().is_none_or(Stage::reads_input) => {
                let (filter, rest) = sub::beginning(stages);
                let mut run = Run::new(rest);
                with_room(|| {
                    self.foreign
                        .each((from, foreign), values.view(), filter, host, &mut |found| run.push(found, host, sink))?;
                    run.finish(host, sink)
                })
            }
            _ => sub::run(stages, lookup.from.as_deref(), host, sink),
        }
    }

    /// Remembers what was found, as long as memory allows.
    fn remember(&mut self, key: Box<[u8]>, found: JsonbBuf, host: &dyn Host) {
        let bytes = key.len() + found.as_bytes().len() + KNOWN_BYTES;
        if self.known_bytes + self.foreign.bytes() + bytes <= host.stage_bytes() {
            self.known_bytes += bytes;
            self.known.insert(key, found);
        }
    }
}

/// The local values of an equality, as an array: null where there is none.
fn local_values(document: JsonbRef<'_>, path: &FieldPath) -> Result<JsonbBuf, QueryError> {
    scratch::build(64, |out| {
        out.begin_array();
        let mut any = false;
        values::at_path(document, path, &mut |value| {
            any = true;
            out.copy(value);
        });
        if !any {
            out.null();
        }
        out.end_array().map_err(written::too_large)
    })
}

/// What a result depends on.
fn key(local: Option<&JsonbBuf>, bound: &[Bound]) -> Box<[u8]> {
    let mut key = Vec::new();
    let values = local.into_iter().map(JsonbBuf::as_bytes).map(Some);
    for value in values.chain(bound.iter().map(|value| value.as_ref().map(|v| v.as_bytes()))) {
        let value = value.unwrap_or_default();
        // A missing value has no bytes, and every other has some.
        key.extend_from_slice(&value.len().to_le_bytes());
        key.extend_from_slice(value);
    }
    key.into()
}

fn append(lookup: &Lookup, document: JsonbRef<'_>, found: JsonbRef<'_>) -> Result<JsonbBuf, QueryError> {
    let made = written::with(document, &lookup.as_path, found.as_bytes().len(), &mut |out| out.copy(found))?;
    check_nesting(made.view(), NESTING_MAX)?;
    Ok(made)
}
