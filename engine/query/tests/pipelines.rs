//! Pipelines as they run: what they hold in memory, what they ask their host, when they stop, how deep they may be.
//!
//! What each stage means stands in `testdata/queries/stages_*.case`.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{JsonbBuf, Style, parse, print};
use quarrydb_query::expr::Budget;
use quarrydb_query::pipeline::{Merged, Stage, Write};
use quarrydb_query::{ParseContext, Pipeline, QueryError};

#[path = "support/pipeline_host.rs"]
mod pipeline_host;

use pipeline_host::{Collections, query_error};

fn json(text: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{e}: {text}"))
}

fn text(value: &JsonbBuf) -> String {
    let mut out = Vec::new();
    print(value.view(), Style::Relaxed, &mut out);
    String::from_utf8(out).unwrap()
}

fn pipeline(text: &str) -> Pipeline {
    parsed(text).unwrap_or_else(|e| panic!("{e:?}: {text}"))
}

fn parsed(text: &str) -> Result<Pipeline, QueryError> {
    Pipeline::parse(json(text).view(), &ParseContext::new("pipeline"))
}

fn run(host: &Collections, text: &str) -> Result<Vec<JsonbBuf>, QueryError> {
    host.aggregate("main", pipeline(text).stages()).map_err(query_error)
}

fn texts(host: &Collections, pipeline: &str) -> Vec<String> {
    run(host, pipeline).unwrap_or_else(|e| panic!("{e:?}: {pipeline}")).iter().map(text).collect()
}

fn code(host: &Collections, pipeline: &str) -> i32 {
    run(host, pipeline).map_or_else(|e| e.code(), |found| panic!("{} documents of {pipeline}", found.len()))
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// `n` documents whose `k` is one of few values, so that there are ties.
fn with_ties(n: usize) -> Collections {
    let mut host = Collections::default();
    let mut random = Random(7);
    for id in 0..n {
        let k = random.below(n / 8 + 1);
        host.add("main", json(&format!("{{\"_id\": {id}, \"k\": {k}, \"text\": \"{}\"}}", "x".repeat(50))));
    }
    host
}

#[test]
fn a_sort_is_the_same_in_memory_through_a_spill_and_as_the_first_few() {
    let mut host = with_ties(500);
    let all = texts(&host, r#"[{"$sort": {"k": 1}}]"#);
    let mut by_hand: Vec<(i64, i64)> = host.documents["main"]
        .iter()
        .map(|d| ["k", "_id"].map(|f| d.view().get(f).and_then(|v| v.as_i64()).unwrap()).into())
        .collect();
    by_hand.sort_unstable();
    let ids: Vec<String> = by_hand.iter().map(|(_, id)| format!("{{\"_id\":{id},")).collect();
    assert!(all.iter().zip(&ids).all(|(found, id)| found.starts_with(id)), "ties stay as they came");
    for n in [1, 2, 3, 17, 499, 500, 501] {
        let few = texts(&host, &format!(r#"[{{"$sort": {{"k": 1}}}}, {{"$limit": {n}}}]"#));
        assert_eq!(few, all[..n.min(500)], "the first {n}");
        let later = texts(&host, &format!(r#"[{{"$sort": {{"k": 1}}}}, {{"$skip": 5}}, {{"$limit": {n}}}]"#));
        assert_eq!(later, all[5..(n + 5).min(500)], "{n} from the sixth");
    }
    host.stage_bytes = 5000;
    assert_eq!(code(&host, r#"[{"$sort": {"k": 1}}]"#), 292);
    assert_eq!(code(&host, r#"[{"$sort": {"k": 1}}, {"$limit": 400}]"#), 292);
    assert_eq!(texts(&host, r#"[{"$sort": {"k": 1}}, {"$limit": 10}]"#), all[..10], "few fit");
    host.spills = true;
    assert_eq!(texts(&host, r#"[{"$sort": {"k": 1}}]"#), all);
    assert_eq!(texts(&host, r#"[{"$sort": {"k": 1}}, {"$limit": 400}]"#), all[..400]);
    assert_eq!(run(&host, r#"[{"$sample": {"size": 450}}]"#).unwrap().len(), 450);
}

#[test]
fn a_sample_draws_each_document_about_as_often_as_any() {
    let mut host = Collections::default();
    (0..10).for_each(|id| host.add("main", json(&format!("{{\"_id\": {id}}}"))));
    let mut drawn = [0; 10];
    for _ in 0..2000 {
        let found = run(&host, r#"[{"$sample": {"size": 3}}]"#).unwrap();
        assert_eq!(found.len(), 3);
        for document in found {
            drawn[usize::try_from(document.view().get("_id").and_then(|v| v.as_i64()).unwrap()).unwrap()] += 1;
        }
    }
    // 600 are expected of each, with a deviation of about 20.
    assert!(drawn.iter().all(|n| (450..750).contains(n)), "{drawn:?}");
}

/// Documents with values of many kinds at `a`, `a.x` and so on.
fn value(random: &mut Random, depth: usize) -> String {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => random.below(4).to_string(),
        1 => format!("{}.0", random.below(4)),
        2 => "null".to_owned(),
        3 => format!("\"{}\"", random.below(3)),
        4 => "{\"$numberDecimal\": \"2\"}".to_owned(),
        5 | 6 => {
            let items: Vec<String> = (0..random.below(4)).map(|_| value(random, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        _ => format!("{{\"x\": {}}}", value(random, depth - 1)),
    }
}

#[test]
fn a_join_is_the_same_by_hash_and_by_asking() {
    for seed in 0..60 {
        let mut random = Random(seed);
        let mut host = Collections::default();
        for id in 0..30 {
            let a = if random.below(6) == 0 { String::new() } else { format!(", \"a\": {}", value(&mut random, 2)) };
            host.add("main", json(&format!("{{\"_id\": {id}{a}}}")));
            let b = if random.below(6) == 0 { String::new() } else { format!(", \"b\": {}", value(&mut random, 2)) };
            let foreign = json(&format!("{{\"_id\": {id}{b}}}"));
            host.add("f", foreign.clone());
            host.add("indexed", foreign);
        }
        for (local, foreign) in [("a", "b"), ("a.x", "b"), ("a", "b.x"), ("a.0", "b.0")] {
            for behind in ["", r#", "pipeline": [{"$match": {"_id": {"$gt": 9}}}, {"$project": {"_id": 1}}]"#] {
                let join = |from: &str| {
                    let spec = format!(
                        r#"[{{"$lookup": {{"from": "{from}", "localField": "{local}", "foreignField": "{foreign}", "as": "m"{behind}}}}}]"#
                    );
                    texts(&host, &spec)
                };
                assert_eq!(join("f"), join("indexed"), "{local} and {foreign}, seed {seed}");
            }
        }
    }
}

/// The stage between keeps the array from being taken apart as it is found.
#[test]
fn an_array_that_is_taken_apart_as_it_is_found_gives_the_same() {
    let mut host = Collections::default();
    for id in 0..40 {
        let k = if id % 9 == 0 { "[]".to_owned() } else { (id % 5).to_string() };
        host.add("main", json(&format!("{{\"_id\": {id}, \"k\": {k}, \"m\": 1, \"o\": {{\"p\": 1}}}}")));
        host.add("f", json(&format!("{{\"_id\": {id}, \"k\": {}}}", id % 3)));
    }
    for path in ["m", "new", "o.p", "o.q", "x.y"] {
        for options in [
            "",
            r#", "preserveNullAndEmptyArrays": true"#,
            r#", "includeArrayIndex": "at""#,
            r#", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "o.at""#,
        ] {
            for join in [
                r#""localField": "k", "foreignField": "k""#,
                r#""let": {"k": "$k"}, "pipeline": [{"$match": {"$expr": {"$lt": ["$_id", "$$k"]}}}]"#,
                r#""pipeline": [{"$match": {"$expr": {"$lt": [{"$rand": {}}, 2]}}}, {"$limit": 3}]"#,
            ] {
                for end in ["", r#", {"$limit": 7}"#] {
                    let with = |between: &str| {
                        let spec = format!(
                            r#"[{{"$lookup": {{"from": "f", {join}, "as": "{path}"}}}}, {between}{{"$unwind": {{"path": "${path}"{options}}}}}{end}]"#
                        );
                        texts(&host, &spec)
                    };
                    assert_eq!(with(""), with(r#"{"$match": {}}, "#), "{path}{options} {join}{end}");
                }
            }
        }
    }
    // No array is made, so none is too large.
    let big = "y".repeat(1 << 20);
    (0..20).for_each(|id| host.add("big", json(&format!("{{\"_id\": {id}, \"k\": 1, \"text\": \"{big}\"}}"))));
    let spec = r#"[{"$limit": 2}, {"$lookup": {"from": "big", "pipeline": [], "as": "m"}}, {"$unwind": "$m"}, {"$count": "n"}]"#;
    assert_eq!(texts(&host, spec), [r#"{"n":40}"#]);
}

#[test]
fn a_join_asks_for_what_an_index_can_find_and_for_the_same_once() {
    let mut host = Collections::default();
    for id in 0..100 {
        host.add("main", json(&format!("{{\"_id\": {id}, \"k\": {}, \"l\": [{}, 3]}}", id % 4, id % 4)));
        host.add("f", json(&format!("{{\"_id\": {id}, \"k\": {}}}", id % 7)));
        host.add("indexed", json(&format!("{{\"_id\": {id}, \"k\": {}}}", id % 7)));
    }
    let join = |from: &str, local: &str, host: &Collections| {
        host.finds.set(0);
        host.asked.borrow_mut().clear();
        let spec = format!(
            r#"[{{"$lookup": {{"from": "{from}", "localField": "{local}", "foreignField": "k", "as": "m"}}}}]"#
        );
        run(host, &spec).unwrap();
        (host.finds.get(), host.asked.borrow().clone())
    };
    let (finds, asked) = join("indexed", "k", &host);
    assert_eq!(finds, 4, "four values");
    assert!(asked.iter().all(|f| f.starts_with("Field") && f.contains("\"k\"") && f.contains("Compare")), "{asked:?}");
    let (finds, asked) = join("indexed", "l", &host);
    assert_eq!(finds, 4);
    assert!(asked.iter().all(|f| f.starts_with("Field") && f.contains("In(")), "{asked:?}");
    // Without an index the collection is read whole after a few questions.
    let (finds, asked) = join("f", "_id", &host);
    assert_eq!((finds, asked.last().map(String::as_str)), (9, Some("All([])")));
    // What does not fit is asked for each time.
    host.stage_bytes = 2000;
    assert!(join("f", "_id", &host).0 > 100);
    host.stage_bytes = 100 << 20;
    // Variables are constants in the filter, and each set of values is asked for once.
    host.finds.set(0);
    let by_pipeline = |body: &str| {
        host.finds.set(0);
        let spec = format!(r#"[{{"$lookup": {{"from": "f", "let": {{"k": "$k"}}, "pipeline": {body}, "as": "m"}}}}]"#);
        run(&host, &spec).unwrap();
        host.finds.get()
    };
    assert_eq!(by_pipeline(r#"[{"$match": {"$expr": {"$eq": ["$k", "$$k"]}}}]"#), 4);
    assert_eq!(by_pipeline(r#"[{"$match": {"$expr": {"$lt": [{"$rand": {}}, 2]}}}]"#), 100, "chance is not remembered");
    assert_eq!(by_pipeline(r#"[{"$sample": {"size": 1}}]"#), 100);
    assert_eq!(by_pipeline(r#"[{"$set": {"id": {"$createObjectId": {}}}}]"#), 100);
}

#[test]
fn no_stage_makes_more_than_a_document_may_hold() {
    let mut host = Collections::default();
    let big = format!("{{\"k\": 1, \"to\": 1, \"text\": \"{}\"}}", "y".repeat(1 << 20));
    host.add("main", json("{\"_id\": 1, \"k\": 1}"));
    for id in 0..20 {
        host.add("f", json(&format!("{{\"_id\": {id}, {}", &big[1..])));
        host.add("many", json(&format!("{{\"_id\": {id}, {}", &big[1..])));
    }
    let spec = r#"[{"$lookup": {"from": "f", "localField": "k", "foreignField": "k", "as": "m"}}]"#;
    assert_eq!(code(&host, spec), 10334);
    let spec = r#"[{"$lookup": {"from": "f", "pipeline": [], "as": "m"}}]"#;
    assert_eq!(code(&host, spec), 10334);
    let graph = r#"[{"$graphLookup": {"from": "f", "startWith": "$k", "connectFromField": "to", "connectToField": "k", "as": "m"}}]"#;
    assert_eq!(code(&host, graph), 10334);
    assert_eq!(code(&host, r#"[{"$unionWith": "f"}, {"$facet": {"a": []}}]"#), 10334);
    // One that is emptied in time is made.
    let spec = r#"[{"$unionWith": "f"}, {"$facet": {"a": [{"$project": {"_id": 1}}], "n": [{"$count": "n"}]}}]"#;
    assert_eq!(run(&host, spec).unwrap().len(), 1);
    host.stage_bytes = 4 << 20;
    assert_eq!(code(&host, graph), 40099);
    assert_eq!(code(&host, r#"[{"$unionWith": "f"}, {"$facet": {"a": []}}]"#), 292);
}

#[test]
fn pipelines_in_pipelines_have_an_end() {
    let nested = |depth: usize, stage: &str| {
        let mut text = "[]".to_owned();
        for _ in 0..depth {
            text = match stage {
                "$lookup" => format!(r#"[{{"$lookup": {{"from": "f", "as": "m", "pipeline": {text}}}}}]"#),
                "let" => {
                    format!(
                        r#"[{{"$lookup": {{"from": "f", "as": "m", "let": {{"x": "$_id"}}, "pipeline": {text}}}}}]"#
                    )
                }
                _ => format!(r#"[{{"$unionWith": {{"coll": "f", "pipeline": {text}}}}}]"#),
            };
        }
        text
    };
    let mut host = Collections::default();
    host.add("main", json("{\"_id\": 1}"));
    host.add("f", json("{\"_id\": 2}"));
    for stage in ["$lookup", "$unionWith", "let"] {
        assert!(!run(&host, &nested(20, stage)).unwrap().is_empty(), "{stage}");
        assert_eq!(parsed(&nested(21, stage)).unwrap_err().code(), 232, "{stage}");
    }
}

/// A test's thread has 2 MiB of stack; what a host takes of it is added.
#[test]
fn a_thousand_stages_run_on_a_small_stack_and_no_more() {
    let stages = |n: usize, stage: &str| format!("[{}]", vec![stage; n].join(","));
    let mut host = Collections::default();
    host.add("main", json("{\"_id\": 1, \"a\": {\"b\": [1]}}"));
    for stage in [
        r#"{"$set": {"n": {"$add": ["$_id", 1]}}}"#,
        r#"{"$unwind": "$a.b"}"#,
        r#"{"$redact": "$$DESCEND"}"#,
        r#"{"$sort": {"a": 1}}"#,
        r#"{"$lookup": {"from": "f", "localField": "a", "foreignField": "a", "as": "c"}}"#,
        r#"{"$graphLookup": {"from": "f", "startWith": 1, "connectFromField": "a", "connectToField": "a", "as": "c"}}"#,
    ] {
        assert_eq!(run(&host, &stages(1000, stage)).unwrap().len(), 1, "{stage}");
        assert_eq!(parsed(&stages(1001, stage)).unwrap_err().code(), 9);
    }
    // Stages of pipelines inside count with those around them.
    let inner = stages(600, r#"{"$match": {}}"#);
    let outer = format!(r#"[{{"$lookup": {{"from": "f", "as": "m", "pipeline": {inner}}}}}, {}"#, &inner[1..]);
    assert_eq!(parsed(&outer).unwrap_err().code(), 9);
    let branches = format!(r#"[{{"$facet": {{"a": {inner}, "b": {inner}}}}}]"#);
    assert_eq!(parsed(&branches).unwrap_err().code(), 9);
    let half = stages(400, r#"{"$match": {}}"#);
    let branches = format!(r#"[{{"$facet": {{"a": {half}, "b": {half}}}}}]"#);
    assert_eq!(run(&host, &branches).unwrap().len(), 1);
    // Joins that are taken apart as they are found, as deep as they may be.
    host.add("f", json("{\"_id\": 2, \"a\": 1}"));
    let pair = r#"{"$lookup": {"from": "f", "pipeline": [{"$limit": 1}], "as": "c"}}, {"$unwind": "$c"}"#;
    assert_eq!(run(&host, &stages(12, pair)).unwrap().len(), 1);
    assert_eq!(run(&host, &stages(490, pair)).unwrap().len(), 1);
    let mut deep = "[]".to_owned();
    for _ in 0..20 {
        deep = format!(
            r#"[{}, {{"$lookup": {{"from": "f", "pipeline": {deep}, "as": "d"}}}}, {{"$unwind": {{"path": "$d", "preserveNullAndEmptyArrays": true}}}}]"#,
            [pair; 10].join(",")
        );
    }
    assert_eq!(run(&host, &deep).unwrap().len(), 1);
}

#[test]
fn every_loop_asks_whether_to_go_on() {
    let mut host = Collections::default();
    let numbers: Vec<String> = (0..5000).map(|n| n.to_string()).collect();
    host.add("main", json(&format!("{{\"_id\": 1, \"a\": [{}]}}", numbers.join(","))));
    for id in 0..5000 {
        host.add("f", json(&format!("{{\"_id\": {id}, \"k\": 1}}")));
    }
    for (pipeline, patience) in [
        (r#"[{"$unwind": "$a"}]"#, 1),
        (r#"[{"$unwind": "$a"}, {"$sort": {"a": 1}}, {"$count": "n"}]"#, 5),
        (r#"[{"$documents": {"$map": {"input": {"$range": [0, 5000]}, "in": {"i": "$$this"}}}}]"#, 1),
    ] {
        host.patience.set(patience);
        assert_eq!(code(&host, pipeline), 50, "{pipeline}");
        assert_eq!(host.patience.get(), 0);
        host.patience.set(u64::MAX);
        assert!(run(&host, pipeline).is_ok());
    }
}

#[test]
fn what_writes_hands_everything_to_the_host_and_gives_nothing() {
    let mut host = Collections::default();
    (0..3).for_each(|id| host.add("main", json(&format!("{{\"_id\": {id}}}"))));
    for stage in [r#"{"$out": "x"}"#, r#"{"$merge": {"into": "x"}}"#] {
        assert_eq!(texts(&host, &format!(r#"[{{"$match": {{"_id": {{"$gt": 0}}}}}}, {stage}]"#)), Vec::<String>::new());
        assert_eq!(host.written.take().iter().map(text).collect::<Vec<_>>(), [r#"{"_id":1}"#, r#"{"_id":2}"#]);
        assert_eq!(host.ended.replace(0), 1);
    }
    // Of no documents too: $out empties its collection.
    assert_eq!(texts(&host, r#"[{"$match": {"_id": 9}}, {"$out": "x"}]"#), Vec::<String>::new());
    assert_eq!((host.written.take().len(), host.ended.get()), (0, 1));
}

/// What becomes of `new` where the collection has `old`: `insert`, `nothing`, the document, or the number of an error.
fn merged(spec: &str, old: Option<&str>, new: &str) -> String {
    let pipeline = pipeline(&format!(r#"[{{"$merge": {spec}}}]"#));
    let Some(Stage::Write(write)) = pipeline.stages().first() else { panic!("{spec}") };
    let Write::Merge(merge) = &**write else { panic!("{spec}") };
    let old = old.map(json);
    match merge.merged(old.as_ref().map(JsonbBuf::view), json(new).view(), Budget::default()) {
        Ok(Merged::Insert) => "insert".to_owned(),
        Ok(Merged::Nothing) => "nothing".to_owned(),
        Ok(Merged::Replace(made)) => text(&made),
        Err(error) => error.code().to_string(),
    }
}

#[test]
fn merge_makes_of_two_documents_what_it_says() {
    let old = r#"{"_id": 1, "a": 1, "b": {"x": 1}}"#;
    let new = r#"{"_id": 1, "b": {"y": 2}, "c": 3}"#;
    for (spec, matched, not_matched) in [
        (r#""x""#, r#"{"_id":1,"a":1,"b":{"y":2},"c":3}"#, "insert"),
        (
            r#"{"into": "x", "whenMatched": "merge", "whenNotMatched": "discard"}"#,
            r#"{"_id":1,"a":1,"b":{"y":2},"c":3}"#,
            "nothing",
        ),
        (
            r#"{"into": "x", "whenMatched": "replace", "whenNotMatched": "fail"}"#,
            r#"{"_id":1,"b":{"y":2},"c":3}"#,
            "13113",
        ),
        (r#"{"into": "x", "whenMatched": "keepExisting"}"#, "nothing", "insert"),
        (r#"{"into": "x", "whenMatched": "fail"}"#, "11000", "insert"),
        (
            r#"{"into": "x", "whenMatched": [{"$set": {"a": {"$add": ["$a", "$$new.c"]}, "n": "$$new.b.y", "m": "$$new.no"}}]}"#,
            r#"{"_id":1,"a":4,"b":{"x":1},"n":2}"#,
            "insert",
        ),
        (
            r#"{"into": "x", "let": {"f": "$c"}, "whenMatched": [{"$replaceWith": {"f": "$$f", "old": "$a"}}], "whenNotMatched": "discard"}"#,
            r#"{"_id":1,"f":3,"old":1}"#,
            "nothing",
        ),
        (r#"{"into": "x", "whenMatched": [{"$set": {"_id": 7}}]}"#, "66", "insert"),
        (r#"{"into": "x", "whenMatched": [{"$unset": "nothing"}]}"#, "nothing", "insert"),
        (r#"{"into": "x", "whenMatched": [{"$set": {"n": {"$divide": [1, 0]}}}]}"#, "2", "insert"),
    ] {
        assert_eq!(merged(spec, Some(old), new), matched, "{spec}");
        assert_eq!(merged(spec, None, new), not_matched, "{spec}");
    }
    // By another field than _id: the _id of the collection stays, and may not change.
    let spec = r#"{"into": "x", "on": "a", "whenMatched": "replace"}"#;
    assert_eq!(merged(spec, Some(old), r#"{"a": 1, "z": 1}"#), r#"{"_id":1,"a":1,"z":1}"#);
    assert_eq!(merged(spec, Some(old), r#"{"_id": 2, "a": 1}"#), "66");
    assert_eq!(merged(r#"{"into": "x", "on": "a"}"#, Some(old), r#"{"_id": 2, "a": 1}"#), "66");
}

#[test]
fn merge_finds_its_document_by_the_fields_it_names() {
    let target = |spec: &str, document: &str| {
        let pipeline = pipeline(&format!(r#"[{{"$merge": {spec}}}]"#));
        let Some(Stage::Write(write)) = pipeline.stages().first() else { panic!("{spec}") };
        let Write::Merge(merge) = &**write else { panic!("{spec}") };
        merge.target(json(document).view()).map_err(|e| e.code())
    };
    let spec = r#"{"into": "x", "on": ["a", "b.c"]}"#;
    let filter = target(spec, r#"{"a": 1, "b": {"c": "z"}}"#).unwrap().unwrap();
    for (document, matches) in [
        (r#"{"a": 1.0, "b": {"c": "z"}}"#, true),
        (r#"{"a": 1, "b": {"c": "y"}}"#, false),
        (r#"{"a": 2, "b": {"c": "z"}}"#, false),
    ] {
        assert_eq!(filter.matches(json(document).view()), Ok(matches), "{document}");
    }
    for (document, code) in [
        (r#"{"a": 1}"#, 51132),
        (r#"{"a": null, "b": {"c": 1}}"#, 51132),
        (r#"{"a": [1], "b": {"c": 1}}"#, 51132),
        (r#"{"a": 1, "b": [{"c": 1}]}"#, 51185),
    ] {
        assert_eq!(target(spec, document).map(|f| f.is_some()), Err(code), "{document}");
    }
    assert!(target(r#""x""#, "{}").unwrap().is_none(), "without an _id there is nothing to find");
    assert!(target(r#""x""#, r#"{"_id": 5}"#).unwrap().unwrap().id_point().is_some());
}
