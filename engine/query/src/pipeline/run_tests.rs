//! Pipelines of the simplest stages: order, counts, an early end, places of errors.

use super::*;
use crate::expr::Budget;
use crate::{Filter, ParseContext, Pipeline, QueryError};

/// A host without collections.
#[derive(Debug)]
struct Alone;

impl Host for Alone {
    fn go_on(&self) -> bool {
        true
    }

    fn budget(&self) -> Budget<'_> {
        Budget::default()
    }

    fn stage_bytes(&self) -> usize {
        1 << 20
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

fn parse(pipeline: &str) -> Result<Pipeline, QueryError> {
    let value = quarrydb_jsonb::parse(pipeline.as_bytes()).expect("JSON");
    Pipeline::parse(value.view(), &ParseContext::new("pipeline"))
}

/// What comes out, as JSON, and how many documents went in before a break.
fn run(pipeline: &str, documents: &[&str]) -> (Vec<String>, usize) {
    let pipeline = parse(pipeline).expect("a pipeline");
    let mut run = Run::new(pipeline.stages());
    let (mut out, mut taken) = (Vec::new(), 0);
    let mut sink = |document: JsonbRef<'_>| {
        let mut text = Vec::new();
        quarrydb_jsonb::print(document, quarrydb_jsonb::Style::Relaxed, &mut text);
        out.push(String::from_utf8(text).expect("UTF-8"));
        Ok(Flow::Continue(()))
    };
    for document in documents {
        taken += 1;
        let document = quarrydb_jsonb::parse(document.as_bytes()).expect("JSON");
        if run.push(document.view(), &Alone, &mut sink).expect("a document").is_break() {
            break;
        }
    }
    run.finish(&Alone, &mut sink).expect("an end");
    (out, taken)
}

const NUMBERS: [&str; 4] = [r#"{"_id":1}"#, r#"{"_id":2}"#, r#"{"_id":3}"#, r#"{"_id":4}"#];

#[test]
fn stages_follow_each_other() {
    let (out, taken) = run(r#"[{"$match": {"_id": {"$gt": 1}}}, {"$set": {"n": {"$add": ["$_id", 1]}}}]"#, &NUMBERS);
    assert_eq!(out, [r#"{"_id":2,"n":3}"#, r#"{"_id":3,"n":4}"#, r#"{"_id":4,"n":5}"#]);
    assert_eq!(taken, 4);
}

#[test]
fn a_limit_ends_the_search_and_what_stands_behind_still_answers() {
    let (out, taken) = run(r#"[{"$skip": 1}, {"$limit": 2}, {"$count": "n"}]"#, &NUMBERS);
    assert_eq!((out, taken), (vec![r#"{"n":2}"#.to_owned()], 3));
    assert_eq!(run(r#"[{"$match": {"_id": 9}}, {"$count": "n"}]"#, &NUMBERS).0, Vec::<String>::new());
}

#[test]
fn errors_have_place_and_number() {
    for (pipeline, place, code) in [
        ("{}", "pipeline", 14),
        ("[1]", "pipeline[0]", 40323),
        (r#"[{"$match": {}, "$limit": 1}]"#, "pipeline[0]", 40323),
        (r#"[{"$limit": 1}, {"$nope": 1}]"#, "pipeline[1].$nope", 40324),
        (r#"[{"$limit": 0}]"#, "pipeline[0].$limit", 15958),
        (r#"[{"$limit": "1"}]"#, "pipeline[0].$limit", 5_107_201),
        (r#"[{"$skip": -1}]"#, "pipeline[0].$skip", 5_107_200),
        (r#"[{"$match": 1}]"#, "pipeline[0].$match", 15959),
        (r#"[{"$match": {"a": {"$in": 1}}}]"#, "pipeline[0].$match.a.$in", 2),
        (r#"[{"$count": "a.b"}]"#, "pipeline[0].$count", 40160),
        (r#"[{"$geoNear": {}}]"#, "pipeline[0].$geoNear", 40324),
    ] {
        let error = parse(pipeline).expect_err(pipeline);
        assert_eq!((error.place(), error.code()), (place, code), "{pipeline}: {error}");
    }
}
