//! A host of pipelines in tests: no collections, a bound for stages, and a spill that is a vector.

use quarrydb_jsonb::{JsonbBuf, JsonbRef, Style, parse, print};
use quarrydb_query::expr::Budget;
use quarrydb_query::pipeline::{Fault, Flow, Host, KeyAndPayload, Run, Spill, Spilled};
use quarrydb_query::{Filter, ParseContext, Pipeline, QueryError};
use std::cell::Cell;

/// The operation's time: 2026-01-02T03:04:05.678Z.
#[allow(dead_code, reason = "some tests know no time")]
pub(crate) const NOW_MS: i64 = 1_767_323_045_678;

pub(crate) struct SpillingHost {
    /// What a stage may hold.
    pub(crate) bytes: usize,
    /// Whether there is more room elsewhere.
    pub(crate) spills: bool,
    /// How often it says to go on.
    pub(crate) patience: Cell<u32>,
}

impl Default for SpillingHost {
    fn default() -> Self {
        Self { bytes: 100 << 20, spills: false, patience: Cell::new(u32::MAX) }
    }
}

impl Host for SpillingHost {
    fn go_on(&self) -> bool {
        let left = self.patience.get();
        self.patience.set(left.saturating_sub(1));
        left > 0
    }

    fn budget(&self) -> Budget<'_> {
        Budget::default()
    }

    fn stage_bytes(&self) -> usize {
        self.bytes
    }

    fn spill(&self) -> Result<Option<Box<dyn Spill>>, Fault> {
        Ok(if self.spills { Some(Box::new(Kept::default())) } else { None })
    }

    fn find(
        &self,
        _: Option<&str>,
        collection: &str,
        _: &Filter,
        _: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        Err(QueryError::bad_value(format!("no collection {collection}")).into())
    }
}

#[derive(Default)]
struct Kept(Vec<(Vec<u8>, Vec<u8>)>);

struct Ordered(std::vec::IntoIter<(Vec<u8>, Vec<u8>)>, (Vec<u8>, Vec<u8>));

impl Spill for Kept {
    fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Fault> {
        self.0.push((key.to_vec(), payload.to_vec()));
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Spilled>, Fault> {
        self.0.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Box::new(Ordered(self.0.into_iter(), (Vec::new(), Vec::new()))))
    }
}

impl Spilled for Ordered {
    fn next(&mut self) -> Result<Option<KeyAndPayload<'_>>, Fault> {
        let Some(next) = self.0.next() else { return Ok(None) };
        self.1 = next;
        Ok(Some((&self.1.0, &self.1.1)))
    }
}

pub(crate) fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

/// Canonical Extended JSON: types show.
pub(crate) fn text(value: JsonbRef<'_>) -> String {
    let mut out = Vec::new();
    print(value, Style::Canonical, &mut out);
    String::from_utf8(out).unwrap()
}

/// What a pipeline makes of documents, or how it fails.
pub(crate) fn run(pipeline: &str, documents: &[JsonbBuf], host: &SpillingHost) -> Result<Vec<JsonbBuf>, QueryError> {
    let value = json(pipeline);
    let pipeline = Pipeline::parse(value.view(), &ParseContext::new("pipeline").with_now(NOW_MS))?;
    let mut running = Run::new(pipeline.stages());
    let mut out = Vec::new();
    let mut sink = |document: JsonbRef<'_>| {
        out.push(document.to_buf());
        Ok(Flow::Continue(()))
    };
    let mut go = || -> Result<(), Fault> {
        for document in documents {
            if running.push(document.view(), host, &mut sink)?.is_break() {
                break;
            }
        }
        running.finish(host, &mut sink)
    };
    match go() {
        Ok(()) => Ok(out),
        Err(Fault::Query(error)) => Err(error),
        Err(Fault::Host(error)) => panic!("{error}"),
    }
}

/// Runs a pipeline on documents and compares what comes out, types and order exact.
#[track_caller]
#[allow(dead_code, reason = "not all tests look at documents")]
pub(crate) fn check(pipeline: &str, input: &[&str], expected: &[&str]) {
    let documents = |lines: &[&str]| lines.iter().map(|line| json(line)).collect::<Vec<_>>();
    let found = run(pipeline, &documents(input), &SpillingHost::default());
    let found = found.unwrap_or_else(|e| panic!("{pipeline}: {e:?}"));
    let found: Vec<String> = found.iter().map(|d| text(d.view())).collect();
    let expected: Vec<String> = documents(expected).iter().map(|d| text(d.view())).collect();
    assert_eq!(found, expected, "{pipeline}");
}

/// Runs a pipeline on documents and expects it to fail, at a place and with a number.
#[track_caller]
#[allow(dead_code, reason = "not all tests expect errors")]
pub(crate) fn check_error(pipeline: &str, input: &[&str], place: &str, code: i32) {
    let documents: Vec<JsonbBuf> = input.iter().map(|line| json(line)).collect();
    let error = run(pipeline, &documents, &SpillingHost::default()).expect_err(pipeline);
    assert_eq!((error.place(), error.code()), (place, code), "{pipeline}: {error}");
}
