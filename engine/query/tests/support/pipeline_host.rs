//! A host of pipelines over a map of arrays: collections by name, and what it was asked for.

#![allow(dead_code, reason = "each test binary uses a part")]
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use quarrydb_query::expr::Budget;
use quarrydb_query::path_walk::FieldPath;
use quarrydb_query::pipeline::{
    CollStats, Fault, Flow, Host, IndexStats, KeyAndPayload, Run, Spill, Spilled, Stage, Write,
};
use quarrydb_query::{Filter, QueryError};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// A name that has an index on every path: the host is asked there again and again.
pub(crate) const INDEXED: &str = "indexed";

pub(crate) struct Collections {
    pub documents: BTreeMap<String, Vec<JsonbBuf>>,
    pub stage_bytes: usize,
    pub spills: bool,
    /// Questions until the host wants no more.
    pub patience: Cell<u64>,
    /// How often a collection was read.
    pub finds: Cell<usize>,
    /// Filters that were asked, as they print.
    pub asked: RefCell<Vec<String>>,
    /// What `$out` and `$merge` handed over.
    pub written: RefCell<Vec<JsonbBuf>>,
    pub ended: Cell<usize>,
}

impl Default for Collections {
    fn default() -> Self {
        Self {
            documents: BTreeMap::new(),
            stage_bytes: 100 << 20,
            spills: false,
            patience: Cell::new(u64::MAX),
            finds: Cell::new(0),
            asked: RefCell::default(),
            written: RefCell::default(),
            ended: Cell::new(0),
        }
    }
}

impl Collections {
    pub(crate) fn add(&mut self, collection: &str, document: JsonbBuf) {
        self.documents.entry(collection.to_owned()).or_default().push(document);
    }

    /// What a pipeline makes of the documents of a collection.
    pub(crate) fn aggregate(&self, collection: &str, stages: &[Stage]) -> Result<Vec<JsonbBuf>, Fault> {
        let mut out = Vec::new();
        let mut sink = |document: JsonbRef<'_>| {
            out.push(document.to_buf());
            Ok(Flow::Continue(()))
        };
        let mut run = Run::new(stages);
        if stages.first().is_none_or(Stage::reads_input) {
            for document in self.documents.get(collection).into_iter().flatten() {
                if run.push(document.view(), self, &mut sink)?.is_break() {
                    break;
                }
            }
        }
        run.finish(self, &mut sink)?;
        Ok(out)
    }
}

/// The query's own error of a fault.
pub(crate) fn query_error(fault: Fault) -> QueryError {
    match fault {
        Fault::Query(error) => error,
        Fault::Host(error) => panic!("the host's error {error}"),
    }
}

impl Host for Collections {
    fn go_on(&self) -> bool {
        let left = self.patience.get();
        self.patience.set(left.saturating_sub(1));
        left > 0
    }

    fn budget(&self) -> Budget<'_> {
        Budget { bytes: 100 << 20, steps: 1 << 20, go_on: None }
    }

    fn stage_bytes(&self) -> usize {
        self.stage_bytes
    }

    fn find(
        &self,
        _: Option<&str>,
        collection: &str,
        filter: &Filter,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        // As much of the stack as a search in a debug build takes.
        let searching = [0_u8; 16 << 10];
        std::hint::black_box(&searching);
        self.finds.set(self.finds.get() + 1);
        self.asked.borrow_mut().push(format!("{:?}", filter.ast()));
        for document in self.documents.get(collection).into_iter().flatten() {
            if filter.matches(document.view())? && each(document.view())?.is_break() {
                break;
            }
        }
        std::hint::black_box(&searching);
        Ok(())
    }

    fn finds_by(&self, _: Option<&str>, collection: &str, _: &FieldPath) -> bool {
        collection == INDEXED
    }

    fn spill(&self) -> Result<Option<Box<dyn Spill>>, Fault> {
        Ok(self.spills.then(|| Box::<Pairs>::default() as Box<dyn Spill>))
    }

    fn write(&self, _: &Write, document: JsonbRef<'_>) -> Result<(), Fault> {
        self.written.borrow_mut().push(document.to_buf());
        Ok(())
    }

    fn write_end(&self, _: &Write) -> Result<(), Fault> {
        self.ended.set(self.ended.get() + 1);
        Ok(())
    }

    fn collection_stats(
        &self,
        asked: &CollStats,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let name = asked.collection.as_deref().unwrap_or("main");
        let count = self.documents.get(name).map_or(0, Vec::len);
        let text = format!("{{\"ns\": {name:?}, \"count\": {count}}}");
        each(quarrydb_jsonb::parse(text.as_bytes()).unwrap().view()).map(drop)
    }

    fn index_stats(
        &self,
        asked: &IndexStats,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let text = format!("{{\"name\": \"_id_\", \"of\": {:?}}}", asked.collection.as_deref().unwrap_or("main"));
        each(quarrydb_jsonb::parse(text.as_bytes()).unwrap().view()).map(drop)
    }
}

/// A spill in memory: pairs, stably sorted.
#[derive(Default)]
struct Pairs {
    pairs: Vec<(Vec<u8>, Vec<u8>)>,
    next: usize,
}

impl Spill for Pairs {
    fn push(&mut self, key: &[u8], payload: &[u8]) -> Result<(), Fault> {
        self.pairs.push((key.to_vec(), payload.to_vec()));
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<Box<dyn Spilled>, Fault> {
        self.pairs.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(self)
    }
}

impl Spilled for Pairs {
    fn next(&mut self) -> Result<Option<KeyAndPayload<'_>>, Fault> {
        let at = self.next;
        self.next += 1;
        Ok(self.pairs.get(at).map(|(key, payload)| (key.as_slice(), payload.as_slice())))
    }
}
