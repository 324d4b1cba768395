//! What fuzzing asks of this crate, as plain functions: the targets call them, and so do tests without a fuzzer.
//!
//! Takes any bytes; panics where a promise is broken.

use crate::expr::{Budget, Expression};
use crate::pipeline::{Fault, Flow, Host, Run, Stage, Write};
use crate::{ApplyContext, Distinct, Filter, ParseContext, Pipeline, Projection, Sort, Update};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, compare, parse, validate};
use std::cell::Cell;

/// What one evaluation may spend here: little, so that a fuzzer gets on.
const BUDGET: Budget<'static> = Budget { bytes: 16 << 20, steps: 1 << 16, go_on: None };

/// Any JSON text is answered by every parser.
///
/// # Panics
/// Where an error has no words, no number or no place.
pub fn fuzz_query_parse(text: &[u8]) {
    let Ok(value) = parse(text) else { return };
    let value = value.view();
    let errors = [
        ("filter", Filter::parse(value, &ParseContext::new("filter")).err()),
        ("sort", Sort::parse(value, &ParseContext::new("sort")).err()),
        ("projection", Projection::parse(value, &ParseContext::new("projection")).err()),
        ("key", Distinct::parse(value, &ParseContext::new("key")).err()),
        ("update", Update::parse(value, None, &ParseContext::new("update")).err()),
        ("expression", Expression::parse(value, &ParseContext::new("expression")).err()),
        ("pipeline", Pipeline::parse(value, &ParseContext::new("pipeline")).err()),
        ("replacement", Update::parse_replacement(value, &ParseContext::new("replacement")).err()),
    ];
    for (field, error) in errors {
        let Some(error) = error else { continue };
        assert!(!error.message().is_empty() && error.code() != 0, "{error:?}");
        assert!(error.place().starts_with(field), "{error:?} has the place {:?}", error.place());
    }
}

/// A text of two lines or more: a query, then documents. What is asked of them is answered, a filter and its negation
/// part them, and what a projection leaves is valid.
///
/// # Panics
/// Where that does not hold.
pub fn fuzz_query_eval(text: &[u8]) {
    let mut lines = text.split(|b| *b == b'\n');
    let Some(query) = lines.next().and_then(|line| parse(line).ok()) else { return };
    let documents: Vec<JsonbBuf> = lines.filter_map(|line| parse(line).ok()).collect();
    let documents: Vec<JsonbRef<'_>> =
        documents.iter().map(JsonbBuf::view).filter(|d| d.as_object().is_some()).collect();
    // What is drawn anew each time parts nothing.
    let certain = [b"$rand".as_slice(), b"$sampleRate"].iter().all(|w| !text.windows(w.len()).any(|t| t == *w));
    evaluate(query.view(), &documents, certain);
}

fn evaluate(query: JsonbRef<'_>, documents: &[JsonbRef<'_>], certain: bool) {
    let filter = Filter::parse(query, &ParseContext::new("filter")).ok();
    let nor = filter.as_ref().map(|_| Filter::parse(negated(query).view(), &ParseContext::new("filter")));
    let sort = Sort::parse(query, &ParseContext::new("sort")).ok();
    let projection = Projection::parse(query, &ParseContext::new("projection")).ok();
    let mut distinct = Distinct::parse(query, &ParseContext::new("key")).ok();
    let update = Update::parse(query, None, &ParseContext::new("update")).ok();
    let expression = Expression::parse(query, &ParseContext::new("expression")).ok();
    let mut out = Builder::new();
    for &document in documents {
        if certain
            && let (Some(filter), Some(Ok(nor))) = (&filter, &nor)
            && let (Ok(yes), Ok(no)) = (filter.matches(document), nor.matches(document))
        {
            assert_ne!(yes, no, "{query:?} on {document:?}");
            assert_eq!(filter.matches_at(document).map(|at| at.is_some()), Ok(yes));
        }
        if let Some(sort) = &sort {
            let _parallel_arrays = sort.key(document, &mut Vec::new());
        }
        if let Some(distinct) = &mut distinct {
            distinct.add(document);
        }
        if let Some(projection) = &projection {
            out.rewind(0);
            if projection.apply_within(document, &mut out, BUDGET).is_ok() {
                assert!(validate(out.bytes()).is_ok(), "{query:?} on {document:?}");
            }
        }
        if let Some(expression) = &expression
            && let Ok(Some(value)) = expression.value(document, BUDGET)
        {
            assert!(validate(value.as_bytes()).is_ok(), "{query:?} on {document:?}");
        }
        if let Some(update) = &update {
            updated(update, query, document);
        }
    }
}

/// What an update makes is valid, has the old `_id`, and changes nothing where it says so; so does an upsert.
fn updated(update: &Update, query: JsonbRef<'_>, document: JsonbRef<'_>) {
    let context = ApplyContext::default();
    let everything = Filter::everything();
    if let Ok(Some(new)) = update.apply_within(document, &everything, &context, BUDGET) {
        assert!(validate(new.as_bytes()).is_ok(), "{query:?} on {document:?}");
        assert_ne!(new.as_bytes(), document.as_bytes(), "{query:?} on {document:?}");
        let ids = [document.get("_id"), new.view().get("_id")];
        let same = match ids {
            [Some(old), Some(new)] => compare(old, new).is_eq(),
            [old, new] => old.is_none() && new.is_none(),
        };
        assert!(same, "{query:?} on {document:?} gives the _id {ids:?}");
    }
    if let Ok(made) = update.upsert(&everything, &context, &mut || [7; 12]) {
        assert!(validate(made.as_bytes()).is_ok(), "{query:?}");
        assert!(made.view().get("_id").is_some(), "{query:?}");
    }
}

/// `{$nor: [query]}`.
fn negated(query: JsonbRef<'_>) -> JsonbBuf {
    let mut out = Builder::new();
    out.begin_object();
    out.field("$nor");
    out.begin_array();
    out.copy(query);
    let ended = out.end_array().and_then(|()| out.end_object());
    debug_assert!(ended.is_ok(), "one name cannot stand twice");
    JsonbBuf::from_valid(out.take())
}

/// A text of two lines or more: a pipeline, then documents, of which every collection has all. What comes out is valid,
/// whatever the pipeline is, and it ends.
///
/// # Panics
/// Where that does not hold.
pub fn fuzz_pipeline(text: &[u8]) {
    let mut lines = text.split(|b| *b == b'\n');
    let Some(pipeline) = lines.next().and_then(|line| parse(line).ok()) else { return };
    let Ok(pipeline) = Pipeline::parse(pipeline.view(), &ParseContext::new("pipeline")) else { return };
    let documents: Vec<JsonbBuf> = lines.filter_map(|line| parse(line).ok()).collect();
    let documents = documents.into_iter().filter(|d| d.view().as_object().is_some()).collect();
    let host = Documents { documents, steps: Cell::new(0) };
    let mut bytes = 0;
    let mut sink = |document: JsonbRef<'_>| {
        assert!(validate(document.as_bytes()).is_ok(), "{document:?}");
        bytes += document.as_bytes().len();
        Ok(if bytes > FUZZED_BYTES_MAX { Flow::Break(()) } else { Flow::Continue(()) })
    };
    let mut run = Run::new(pipeline.stages());
    if pipeline.stages().first().is_none_or(Stage::reads_input) {
        for document in &host.documents {
            match run.push(document.view(), &host, &mut sink) {
                Ok(flow) if flow.is_continue() => {}
                Ok(_) => break,
                Err(_) => return,
            }
        }
    }
    let _failed_on_a_document = run.finish(&host, &mut sink);
}

/// What one pipeline may give here.
const FUZZED_BYTES_MAX: usize = 16 << 20;

/// Documents read, questions asked: beyond it the host wants no more.
const FUZZED_STEPS_MAX: u64 = 1 << 14;

/// A host whose collections all have the same documents.
struct Documents {
    documents: Vec<JsonbBuf>,
    steps: Cell<u64>,
}

impl Documents {
    fn step(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.steps.get() < FUZZED_STEPS_MAX
    }
}

impl Host for Documents {
    fn go_on(&self) -> bool {
        self.step()
    }

    fn budget(&self) -> Budget<'_> {
        BUDGET
    }

    fn stage_bytes(&self) -> usize {
        1 << 20
    }

    fn find(
        &self,
        _: Option<&str>,
        _: &str,
        filter: &Filter,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        for document in &self.documents {
            if !self.step() {
                return Err(crate::QueryError::new("MaxTimeMSExpired", 50, "the fuzzer wants to get on").into());
            }
            if filter.matches_within(document.view(), BUDGET)? && each(document.view())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn write(&self, to: &Write, document: JsonbRef<'_>) -> Result<(), Fault> {
        let Write::Merge(merge) = to else { return Ok(()) };
        let Some(target) = merge.target(document)? else { return Ok(()) };
        for old in &self.documents {
            if target.matches(old.view())? {
                merge.merged(Some(old.view()), document, BUDGET)?;
            }
        }
        Ok(())
    }

    fn write_end(&self, _: &Write) -> Result<(), Fault> {
        Ok(())
    }
}
