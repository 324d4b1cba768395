//! Pipelines answer the same however they run: over rows in memory, over segments, after a compaction and a reopening, by one
//! thread and by many, with memory and without. What they are held to is the stages sent one document after another, on a
//! host that keeps its collections in vectors.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use common::{Chance, open, small, value};
use quarrydb::io::MemoryStorage;
use quarrydb::{
    AggregateRequest, Collection, Database, ErrorKind, IndexDefinition, InsertBatch, Options, WriteOptions,
};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Style};
use quarrydb_query::expr::Budget;
use quarrydb_query::pipeline::{Fault, Flow, Host, Pipeline, Run};
use quarrydb_query::{Filter, ParseContext};

/// Collections as vectors, and all memory there is.
struct Vectors(BTreeMap<&'static str, Vec<JsonbBuf>>);

impl Host for Vectors {
    fn go_on(&self) -> bool {
        true
    }

    fn budget(&self) -> Budget<'_> {
        Budget::default()
    }

    fn stage_bytes(&self) -> usize {
        1 << 30
    }

    fn find(
        &self,
        _: Option<&str>,
        collection: &str,
        filter: &Filter,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        for document in self.0.get(collection).into_iter().flatten() {
            if filter.matches(document.view())? && each(document.view())?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn parse(pipeline: &str) -> Pipeline {
    Pipeline::parse(value(pipeline).view(), &ParseContext::new("pipeline")).unwrap()
}

fn text(document: JsonbRef<'_>) -> String {
    let mut out = Vec::new();
    quarrydb_jsonb::print(document, Style::Canonical, &mut out);
    String::from_utf8(out).unwrap()
}

type Answer = Result<Vec<String>, i32>;

/// What the stages make of the documents one after another; the number of the error where they fail.
fn reference(pipeline: &str, host: &Vectors) -> Answer {
    let pipeline = parse(pipeline);
    let mut run = Run::new(pipeline.stages());
    let mut out = Vec::new();
    let mut sink = |document: JsonbRef<'_>| {
        out.push(text(document));
        Ok(ControlFlow::Continue(()))
    };
    let mut all = || -> Result<(), Fault> {
        for document in &host.0["c"] {
            if run.push(document.view(), host, &mut sink)?.is_break() {
                break;
            }
        }
        run.finish(host, &mut sink)
    };
    match all() {
        Ok(()) => Ok(out),
        Err(Fault::Query(error)) => Err(error.code()),
        Err(Fault::Host(error)) => panic!("{error}"),
    }
}

fn answer(collection: &Collection, pipeline: &str) -> Answer {
    let mut out = Vec::new();
    let found = collection.aggregate(AggregateRequest::new(parse(pipeline))).and_then(|aggregation| {
        aggregation.each(&mut |document| {
            out.push(text(document));
            Ok(ControlFlow::Continue(()))
        })
    });
    match found {
        Ok(()) => Ok(out),
        Err(error) => Err(error.code().unwrap()),
    }
}

/// The same as a stream of lines.
fn streamed(collection: &Collection, pipeline: &str) -> Answer {
    let mut out = Vec::new();
    let print = |document: JsonbRef<'_>, out: &mut Vec<u8>| {
        quarrydb_jsonb::print(document, Style::Canonical, out);
        out.push(b'\n');
    };
    let mut sink = |piece: Vec<u8>, _: u64| {
        out.extend_from_slice(&piece);
        ControlFlow::Continue(())
    };
    match collection.aggregate(AggregateRequest::new(parse(pipeline))).and_then(|a| a.stream(&print, &mut sink)) {
        Ok(count) => {
            let lines: Vec<String> = String::from_utf8(out).unwrap().lines().map(str::to_owned).collect();
            assert_eq!(lines.len() as u64, count);
            Ok(lines)
        }
        Err(error) => Err(error.code().unwrap()),
    }
}

fn document(chance: &mut Chance, id: usize) -> String {
    let mut fields = vec![format!("\"_id\": {id}")];
    let number = |chance: &mut Chance| match chance.below(8) {
        0 => "null".to_owned(),
        1 => format!("{}.5", chance.below(9)),
        2 => format!("{{\"$numberLong\": \"{}\"}}", chance.below(9)),
        3 => format!("{{\"$numberDecimal\": \"{}.0\"}}", chance.below(9)),
        4 => "1e300".to_owned(),
        _ => chance.below(9).to_string(),
    };
    if chance.below(8) > 0 {
        fields.push(format!("\"k\": {}", number(chance)));
    }
    if chance.below(8) > 0 {
        fields.push(format!("\"n\": {}", number(chance)));
    }
    match chance.below(6) {
        0 => {}
        1 => fields.push("\"v\": []".to_owned()),
        2 => fields.push(format!("\"v\": {}", number(chance))),
        _ => {
            let many = 1 + chance.below(4);
            let values: Vec<String> = (0..many).map(|_| number(chance)).collect();
            fields.push(format!("\"v\": [{}]", values.join(", ")));
        }
    }
    fields.push(format!("\"s\": \"{}{}\"", "abc".repeat(chance.below(12) as usize), chance.below(50)));
    if chance.below(3) > 0 {
        fields.push(format!("\"o\": {{\"p\": {}, \"q\": \"{}\"}}", number(chance), chance.below(5)));
    }
    format!("{{{}}}", fields.join(", "))
}

fn stage(chance: &mut Chance, path: &str) -> String {
    let n = chance.below(9);
    match chance.below(22) {
        0 => format!("{{\"$match\": {{\"{path}\": {{\"$gte\": {n}}}}}}}"),
        1 => format!("{{\"$match\": {{\"$or\": [{{\"{path}\": {n}}}, {{\"v\": null}}]}}}}"),
        2 => format!("{{\"$match\": {{\"_id\": {{\"$lt\": {}}}}}}}", 500 * n),
        3 => format!("{{\"$set\": {{\"x\": {{\"$ifNull\": [\"${path}\", {n}]}}, \"k\": \"$n\"}}}}"),
        4 => format!("{{\"$project\": {{\"{path}\": 1, \"j\": 1, \"x\": 1}}}}"),
        5 => format!("{{\"$unset\": \"{path}\"}}"),
        6 => "{\"$unwind\": \"$v\"}".to_owned(),
        7 => "{\"$unwind\": {\"path\": \"$v\", \"preserveNullAndEmptyArrays\": true, \"includeArrayIndex\": \"i\"}}"
            .to_owned(),
        8 => format!(
            "{{\"$group\": {{\"_id\": \"${path}\", \"n\": {{\"$sum\": \"$n\"}}, \"a\": {{\"$avg\": \"$n\"}}, \"f\": {{\"$first\": \"$_id\"}}, \
             \"l\": {{\"$last\": \"$s\"}}, \"lo\": {{\"$min\": \"$k\"}}, \"hi\": {{\"$max\": \"$v\"}}}}}}"
        ),
        9 => format!(
            "{{\"$group\": {{\"_id\": {{\"a\": \"$s\", \"b\": \"${path}\"}}, \"p\": {{\"$push\": \"$_id\"}}, \"c\": {{\"$count\": {{}}}}, \
             \"t\": {{\"$topN\": {{\"n\": 2, \"sortBy\": {{\"n\": 1}}, \"output\": \"$_id\"}}}}}}}}"
        ),
        10 => format!("{{\"$sort\": {{\"{path}\": 1, \"i\": -1}}}}"),
        11 => format!("{{\"$sort\": {{\"{path}\": -1}}}}"),
        12 => format!("{{\"$limit\": {}}}", 1 + 300 * n),
        13 => format!("{{\"$skip\": {}}}", 100 * n),
        14 => "{\"$count\": \"n\"}".to_owned(),
        15 => format!("{{\"$sortByCount\": \"${path}\"}}"),
        16 => format!(
            "{{\"$lookup\": {{\"from\": \"other\", \"localField\": \"{path}\", \"foreignField\": \"k\", \"as\": \"j\"}}}}, {{\"$set\": {{\"j\": {{\"$size\": \"$j\"}}}}}}"
        ),
        17 => format!(
            "{{\"$lookup\": {{\"from\": \"other\", \"let\": {{\"x\": \"${path}\"}}, \"pipeline\": [{{\"$match\": {{\"$expr\": {{\"$eq\": [\"$n\", \"$$x\"]}}}}}}, \
             {{\"$limit\": 3}}, {{\"$project\": {{\"_id\": 1}}}}], \"as\": \"j\"}}}}"
        ),
        18 => "{\"$unionWith\": {\"coll\": \"other\", \"pipeline\": [{\"$match\": {\"k\": {\"$lt\": 4}}}]}}".to_owned(),
        19 => format!(
            "{{\"$facet\": {{\"a\": [{{\"$limit\": {}}}, {{\"$project\": {{\"_id\": 1}}}}], \"b\": [{{\"$sortByCount\": \"${path}\"}}]}}}}",
            n + 1
        ),
        20 => format!("{{\"$replaceWith\": {{\"_id\": \"$_id\", \"k\": \"${path}\", \"v\": \"$v\", \"n\": \"$n\"}}}}"),
        _ => format!("{{\"$redact\": {{\"$cond\": [{{\"$gt\": [\"${path}\", {n}]}}, \"$$KEEP\", \"$$PRUNE\"]}}}}"),
    }
}

fn pipeline(chance: &mut Chance) -> String {
    let stages = 1 + chance.below(4);
    let stage = |chance: &mut Chance| {
        let path = ["k", "n", "v", "s", "o.p", "o.q", "_id"][chance.below(7) as usize];
        stage(chance, path)
    };
    let stages: Vec<String> = (0..stages).map(|_| stage(chance)).collect();
    format!("[{}]", stages.join(", "))
}

/// Documents that two collections hold, in their storage and as vectors.
fn fill(db: &Database, rows: usize, chance: &mut Chance) -> Vectors {
    let mut all = BTreeMap::new();
    for (name, rows) in [("c", rows), ("other", 120)] {
        let documents: Vec<String> = (0..rows).map(|id| document(chance, id)).collect();
        for some in documents.chunks(500) {
            let mut batch = InsertBatch::new(db);
            some.iter().for_each(|document| batch.push_text(document.as_bytes()).unwrap());
            let collection = db.collection("d", name).unwrap();
            collection.insert_batch(batch, true, &WriteOptions::default()).unwrap().wait().unwrap();
        }
        all.insert(name, documents.iter().map(|document| value(document)).collect());
    }
    Vectors(all)
}

fn check(db: &Database, pipelines: &[(String, Answer)], when: &str) {
    let collection = db.collection("d", "c").unwrap();
    for (pipeline, expected) in pipelines {
        assert_eq!(&answer(&collection, pipeline), expected, "{when}: {pipeline}");
        assert_eq!(&streamed(&collection, pipeline), expected, "{when}, streamed: {pipeline}");
    }
}

fn pipelines(host: &Vectors, count: usize, chance: &mut Chance) -> Vec<(String, Answer)> {
    let mut made = Vec::new();
    while made.len() < count {
        let pipeline = pipeline(chance);
        let expected = reference(&pipeline, host);
        made.push((pipeline, expected));
    }
    made
}

#[test]
fn however_the_rows_lie() {
    let mut chance = Chance::new(11);
    let options = Options { tail_rows_max: 700, segment_rows_max: 5000, background: false, ..Options::default() };
    let storage = MemoryStorage::new();
    let db = open(&storage, options.clone()).unwrap();
    let host = fill(&db, 1500, &mut chance);
    let pipelines = pipelines(&host, 40, &mut chance);
    assert!(pipelines.iter().filter(|(_, answer)| answer.as_ref().is_ok_and(|a| !a.is_empty())).count() > 15);
    check(&db, &pipelines, "in memory");
    db.seal().unwrap();
    check(&db, &pipelines[..12], "sealed");
    for keys in ["{\"k\": 1}", "{\"n\": -1}"] {
        let keys = value(keys);
        let definition = IndexDefinition::parse(&|name| (name == "keys").then(|| keys.view())).unwrap();
        for name in ["c", "other"] {
            db.collection("d", name)
                .unwrap()
                .create_indexes(std::slice::from_ref(&definition), &WriteOptions::default())
                .unwrap();
        }
    }
    check(&db, &pipelines, "indexed");
    db.collection("d", "c").unwrap().compact(None).unwrap();
    check(&db, &pipelines[12..26], "compacted");
    db.close().unwrap();
    drop(db);
    let db = open(&storage, options).unwrap();
    check(&db, &pipelines[26..], "opened again");
}

#[test]
fn however_many_threads_there_are() {
    let mut chance = Chance::new(23);
    let options = Options { background: false, ..Options::default() };
    let db = open(&MemoryStorage::new(), options).unwrap();
    let host = fill(&db, 5000, &mut chance);
    let mut own = pipelines(&host, 6, &mut chance);
    // What parts are merged of.
    let group = "[{\"$unwind\": \"$v\"}, {\"$group\": {\"_id\": \"$k\", \"s\": {\"$sum\": \"$v\"}, \"a\": {\"$avg\": \"$n\"}, \"p\": {\"$push\": \"$_id\"}, \
                 \"f\": {\"$first\": \"$s\"}, \"t\": {\"$addToSet\": \"$n\"}}}]";
    own.push((group.to_owned(), reference(group, &host)));
    for threads in [1, 2, 8] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| check(&db, &own, &format!("{threads} threads")));
    }
}

#[test]
fn however_little_memory_there_is() {
    let mut chance = Chance::new(37);
    let options = Options { query_bytes_max: 2 << 20, background: false, ..Options::default() };
    let db = open(&MemoryStorage::new(), options).unwrap();
    let host = fill(&db, 6000, &mut chance);
    let collection = db.collection("d", "c").unwrap();
    let written = db.stats().spilled_bytes_total;
    for pipeline in [
        "[{\"$sort\": {\"s\": 1}}, {\"$project\": {\"s\": 1}}]",
        "[{\"$group\": {\"_id\": \"$_id\", \"n\": {\"$sum\": \"$n\"}, \"p\": {\"$push\": \"$s\"}}}]",
        "[{\"$unwind\": \"$v\"}, {\"$sort\": {\"v\": 1, \"s\": -1}}, {\"$group\": {\"_id\": \"$k\", \"f\": {\"$first\": \"$_id\"}, \"l\": {\"$last\": \"$_id\"}}}]",
        "[{\"$bucketAuto\": {\"groupBy\": \"$s\", \"buckets\": 7, \"output\": {\"n\": {\"$sum\": \"$n\"}}}}]",
    ] {
        let before = db.stats().spilled_bytes_total;
        assert_eq!(answer(&collection, pipeline), reference(pipeline, &host), "{pipeline}");
        assert!(db.stats().spilled_bytes_total > before, "the disk was not used: {pipeline}");
        let mut request = AggregateRequest::new(parse(pipeline));
        request.allow_disk_use = false;
        let refused = collection.aggregate(request).and_then(|a| a.each(&mut |_| Ok(ControlFlow::Continue(()))));
        assert_eq!(refused.unwrap_err().code(), Some(292), "{pipeline}");
    }
    assert!(db.stats().spilled_bytes_total > written);
    assert_eq!((db.stats().spill_files, db.stats().query_bytes), (0, 0), "all of it was given back");
}

#[test]
fn other_collections_are_seen_as_of_the_same_moment() {
    let db = open(&MemoryStorage::new(), small()).unwrap();
    let (one, other) = (db.collection("d", "one").unwrap(), db.collection("d", "other").unwrap());
    for id in 0..50 {
        common::insert(&db, &one, &format!("{{\"_id\": {id}}}")).unwrap();
        common::insert(&db, &other, &format!("{{\"_id\": {id}}}")).unwrap();
    }
    let pipeline = "[{\"$unionWith\": \"other\"}, {\"$count\": \"n\"}]";
    let begun = one.aggregate(AggregateRequest::new(parse(pipeline))).unwrap();
    common::insert(&db, &other, "{\"_id\": 50}").unwrap();
    other.drop(&WriteOptions::default()).unwrap().wait().unwrap();
    common::insert(&db, &one, "{\"_id\": 51}").unwrap();
    let mut found = Vec::new();
    begun
        .each(&mut |document| {
            found.push(common::print(document));
            Ok(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(found, ["{\"n\":100}"]);
}

#[test]
fn a_time_limit_and_nobody_waiting_end_every_stage() {
    let db = open(&MemoryStorage::new(), Options { background: false, ..Options::default() }).unwrap();
    let mut chance = Chance::new(5);
    fill(&db, 4000, &mut chance);
    let collection = db.collection("d", "c").unwrap();
    for last in [
        "{\"$sort\": {\"s\": 1}}",
        "{\"$group\": {\"_id\": \"$i\", \"n\": {\"$sum\": 1}}}",
        "{\"$lookup\": {\"from\": \"c\", \"pipeline\": [{\"$sort\": {\"n\": 1}}, {\"$limit\": 2}], \"as\": \"x\"}}",
        "{\"$facet\": {\"a\": [{\"$count\": \"n\"}]}}",
        "{\"$bucketAuto\": {\"groupBy\": \"$i\", \"buckets\": 3}}",
        "{\"$setWindowFields\": {\"sortBy\": {\"i\": 1}, \"output\": {\"r\": {\"$rank\": {}}}}}",
        "{\"$match\": {\"s\": \"none\"}}",
    ] {
        let text = format!("[{{\"$set\": {{\"i\": {{\"$range\": [0, 3000]}}}}}}, {{\"$unwind\": \"$i\"}}, {last}]");
        let mut request = AggregateRequest::new(parse(&text));
        request.deadline = Some(quarrydb::Deadline::after(std::time::Duration::from_millis(40)));
        let ended = collection.aggregate(request).and_then(|a| a.each(&mut |_| Ok(ControlFlow::Continue(()))));
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::TimedOut, "{last}");
        let mut request = AggregateRequest::new(parse(&text));
        let asked = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        request.is_wanted =
            Some(std::sync::Arc::new(move || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 3));
        let ended = collection.aggregate(request).and_then(|a| a.each(&mut |_| Ok(ControlFlow::Continue(()))));
        assert_eq!(ended.unwrap_err().kind(), ErrorKind::Cancelled, "{last}");
    }
}
