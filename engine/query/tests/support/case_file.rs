//! Reads the case files of `testdata/queries` and runs them.
//!
//! A file is lines of a keyword and a JSON value. `case` names what follows and begins with no documents; `doc` adds one.
//! `find` begins a question with its filter, `sort`, `project`, `skip` and `limit` refine it, and then comes what is
//! expected: `ids` (a set), `ordered` (ids in order), `out` (one line for each document, types exact), or `error` with
//! the code and, where given, the place; `count`; `none`. `update` (with `filters` for its array filters) asks for the
//! matching documents after it, `upsert` for the document that it would make, both expected as `out`. `let` gives
//! variables to expressions. `distinct` asks for the values of a path, expected as `values`. `aggregate` asks what a pipeline
//! makes of the documents, `coll` gives a document to another collection, and `set` is one line of what comes out in any
//! order. `#` comments.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, Style, compare, parse, print};
use quarrydb_query::{ApplyContext, Distinct, Filter, ParseContext, Pipeline, Projection, QueryError, Sort, Update};

#[path = "pipeline_host.rs"]
mod pipeline_host;

use pipeline_host::{Collections, query_error};

#[derive(Default)]
struct Question {
    at: String,
    pipeline: Option<JsonbBuf>,
    filter: Option<JsonbBuf>,
    distinct: Option<JsonbBuf>,
    update: Option<JsonbBuf>,
    array_filters: Option<JsonbBuf>,
    upsert: bool,
    variables: Option<JsonbBuf>,
    sort: Option<JsonbBuf>,
    project: Option<JsonbBuf>,
    skip: usize,
    limit: Option<usize>,
    expected: Vec<(String, String)>,
}

fn json(text: &str, at: &str) -> JsonbBuf {
    parse(text.as_bytes()).unwrap_or_else(|e| panic!("{at}: {e} in {text}"))
}

fn text(value: JsonbRef<'_>) -> String {
    let mut out = Vec::new();
    print(value, Style::Canonical, &mut out);
    String::from_utf8(out).unwrap()
}

/// Runs one file; gives the number of questions in it.
pub(crate) fn run(name: &str, content: &str) -> usize {
    let mut documents: Vec<JsonbBuf> = Vec::new();
    let mut others: Vec<(String, JsonbBuf)> = Vec::new();
    let mut question: Option<Question> = None;
    let mut asked = 0;
    let mut case = String::new();
    for (number, line) in content.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at = format!("{name}:{} ({case})", number + 1);
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if matches!(word, "case" | "doc" | "coll" | "find" | "distinct" | "aggregate")
            && question.as_ref().is_some_and(|q| word != "distinct" || !q.expected.is_empty())
        {
            answer(&question.take().unwrap(), &documents, &others);
            asked += 1;
        }
        match word {
            "case" => {
                rest.clone_into(&mut case);
                documents.clear();
                others.clear();
            }
            "coll" => {
                let (name, document) = rest.split_once(' ').unwrap_or_else(|| panic!("{at}: a name and a document"));
                others.push((name.to_owned(), json(document, &at)));
            }
            "aggregate" => question = Some(Question { pipeline: Some(json(rest, &at)), at, ..Question::default() }),
            "doc" => documents.push(json(rest, &at)),
            "find" => question = Some(Question { filter: Some(json(rest, &at)), at, ..Question::default() }),
            "distinct" => {
                let q = question.get_or_insert_with(|| Question { at: at.clone(), ..Question::default() });
                q.distinct = Some(json(rest, &at));
            }
            _ => {
                let q = question.as_mut().unwrap_or_else(|| panic!("{at}: {word} before a question"));
                match word {
                    "sort" => q.sort = Some(json(rest, &at)),
                    "project" => q.project = Some(json(rest, &at)),
                    "update" => q.update = Some(json(rest, &at)),
                    "let" => q.variables = Some(json(rest, &at)),
                    "filters" => q.array_filters = Some(json(rest, &at)),
                    "upsert" => {
                        q.update = Some(json(rest, &at));
                        q.upsert = true;
                    }
                    "skip" => q.skip = rest.parse().unwrap(),
                    "limit" => q.limit = Some(rest.parse().unwrap()),
                    "ids" | "ordered" | "out" | "set" | "error" | "values" | "none" | "count" => {
                        q.expected.push((word.to_owned(), rest.to_owned()));
                    }
                    _ => panic!("{at}: unknown keyword {word}"),
                }
            }
        }
    }
    if let Some(question) = question {
        answer(&question, &documents, &others);
        asked += 1;
    }
    asked
}

fn answer(q: &Question, documents: &[JsonbBuf], others: &[(String, JsonbBuf)]) {
    let at = &q.at;
    assert!(!q.expected.is_empty(), "{at}: nothing is expected");
    let outcome = match &q.pipeline {
        Some(pipeline) => aggregated(q, pipeline, documents, others),
        None => evaluate(q, documents),
    };
    let (word, rest) = &q.expected[0];
    if word == "error" {
        let error = outcome.err().unwrap_or_else(|| panic!("{at}: no error, where {rest} is expected"));
        let (code, place) = rest.split_once(' ').unwrap_or((rest, ""));
        assert_eq!(error.code().to_string(), code, "{at}: {error:?}");
        assert!(place.is_empty() || error.place() == place, "{at}: {error:?}");
        return;
    }
    let found = outcome.unwrap_or_else(|e| panic!("{at}: {e:?}"));
    match word.as_str() {
        "out" => {
            let expected: Vec<String> = q.expected.iter().map(|(_, t)| text(json(t, at).view())).collect();
            let found: Vec<String> = found.iter().map(|v| text(v.view())).collect();
            assert_eq!(found, expected, "{at}");
        }
        "set" => {
            let mut expected: Vec<String> = q.expected.iter().map(|(_, t)| text(json(t, at).view())).collect();
            let mut found: Vec<String> = found.iter().map(|v| text(v.view())).collect();
            expected.sort();
            found.sort();
            assert_eq!(found, expected, "{at}");
        }
        "count" => assert_eq!(found.len().to_string(), *rest, "{at}"),
        "none" => assert!(found.is_empty(), "{at}: {found:?}"),
        _ => {
            let expected = json(rest, at);
            let mut expected: Vec<JsonbRef<'_>> = expected.view().as_array().unwrap().iter().collect();
            let mut found: Vec<JsonbRef<'_>> = match word.as_str() {
                "values" => found.iter().map(JsonbBuf::view).collect(),
                _ => found.iter().map(|d| d.view().get("_id").unwrap_or(quarrydb_jsonb::NULL)).collect(),
            };
            if word != "ordered" {
                expected.sort_by(|a, b| compare(*a, *b));
                found.sort_by(|a, b| compare(*a, *b));
            }
            assert_eq!(
                found.iter().map(|v| text(*v)).collect::<Vec<_>>(),
                expected.iter().map(|v| text(*v)).collect::<Vec<_>>(),
                "{at}"
            );
        }
    }
}

fn aggregated(
    q: &Question,
    pipeline: &JsonbBuf,
    documents: &[JsonbBuf],
    others: &[(String, JsonbBuf)],
) -> Result<Vec<JsonbBuf>, QueryError> {
    let variables = q.variables.as_ref().map(JsonbBuf::view);
    let context = ParseContext::new("pipeline").with_now(NOW_MS).with_variables(variables);
    let pipeline = placed(Pipeline::parse(pipeline.view(), &context), &["pipeline", "let"])?;
    let mut host = Collections::default();
    documents.iter().for_each(|d| host.add("main", d.clone()));
    others.iter().for_each(|(name, d)| host.add(name, d.clone()));
    host.aggregate("main", pipeline.stages()).map_err(query_error)
}

fn evaluate(q: &Question, documents: &[JsonbBuf]) -> Result<Vec<JsonbBuf>, QueryError> {
    let everything = json("{}", &q.at);
    let variables = q.variables.as_ref().map(JsonbBuf::view);
    let context = |name| ParseContext::new(name).with_now(NOW_MS).with_variables(variables);
    let filter = Filter::parse(q.filter.as_ref().unwrap_or(&everything).view(), &context("filter"));
    let filter = placed(filter, &["filter", "let"])?;
    let sort = q.sort.as_ref().map(|s| Sort::parse(s.view(), &ParseContext::new("sort")));
    let sort = placed(sort.transpose(), &["sort"])?;
    let projection = q.project.as_ref().map(|p| Projection::parse(p.view(), &context("projection")));
    let projection = projection.map(|p| p.and_then(|p| p.for_filter(&filter)));
    let projection = placed(projection.transpose(), &["projection", "let"])?;
    if let Some(update) = &q.update {
        return updated(q, update, &filter, documents);
    }
    let mut found = Vec::new();
    for document in documents {
        if filter.matches(document.view())? {
            found.push(document.clone());
        }
    }
    if let Some(key) = &q.distinct {
        let mut distinct = placed(Distinct::parse(key.view(), &ParseContext::new("key")), &["key"])?;
        found.iter().for_each(|d| distinct.add(d.view()));
        return Ok(distinct.values().map(JsonbRef::to_buf).collect());
    }
    if let Some(sort) = &sort {
        let mut keyed = Vec::new();
        for document in found {
            let mut key = Vec::new();
            sort.key(document.view(), &mut key)?;
            keyed.push((key, document));
        }
        keyed.sort_by(|a, b| a.0.cmp(&b.0));
        found = keyed.into_iter().map(|(_, d)| d).collect();
    }
    let found = found.into_iter().skip(q.skip).take(q.limit.unwrap_or(usize::MAX));
    let Some(projection) = projection else { return Ok(found.collect()) };
    let mut out = Builder::new();
    found
        .map(|document| {
            projection.apply(document.view(), &mut out)?;
            Ok(JsonbBuf::from_valid(out.take()))
        })
        .collect()
}

/// Every error of a parser says where in the body it was found: the field of the body, then what is inside it.
fn placed<T>(parsed: Result<T, QueryError>, fields: &[&str]) -> Result<T, QueryError> {
    if let Err(error) = &parsed {
        let place = error.place();
        let inside = |field: &&str| {
            place.strip_prefix(*field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        assert!(fields.iter().any(inside), "{error:?} has the place {place:?}, which begins with none of {fields:?}");
    }
    parsed
}

/// The operation's time: 2026-01-02T03:04:05.678Z.
const NOW_MS: i64 = 1_767_323_045_678;

fn updated(
    q: &Question,
    update: &JsonbBuf,
    filter: &Filter,
    documents: &[JsonbBuf],
) -> Result<Vec<JsonbBuf>, QueryError> {
    let context = ParseContext::new("update").with_now(NOW_MS);
    let update = Update::parse(update.view(), q.array_filters.as_ref().map(JsonbBuf::view), &context);
    let update = placed(update, &["update", "arrayFilters"])?;
    let context = ApplyContext::at(NOW_MS);
    if q.upsert {
        return Ok(vec![update.upsert(filter, &context, &mut || [7; 12])?]);
    }
    let mut found = Vec::new();
    for document in documents {
        if filter.matches(document.view())? {
            found.push(update.apply(document.view(), filter, &context)?.unwrap_or_else(|| document.clone()));
        }
    }
    Ok(found)
}
