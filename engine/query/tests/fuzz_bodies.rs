//! The bodies of the fuzz targets on what a small generator makes of fragments: bounded, the same everywhere.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_query::fuzzing::{fuzz_pipeline, fuzz_query_eval, fuzz_query_parse};

const WORDS: &[&str] = &[
    "$and",
    "$or",
    "$nor",
    "$not",
    "$eq",
    "$ne",
    "$gt",
    "$gte",
    "$lt",
    "$lte",
    "$in",
    "$nin",
    "$exists",
    "$type",
    "$mod",
    "$regex",
    "$options",
    "$all",
    "$elemMatch",
    "$size",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$jsonSchema",
    "$expr",
    "$comment",
    "$slice",
    "$set",
    "$inc",
    "$push",
    "$each",
    "$where",
    "$natural",
    "properties",
    "items",
    "required",
    "type",
    "not",
    "a",
    "b",
    "a.b",
    "a.0",
    "0",
    "a.$",
    "_id",
    "",
    "a.$.b",
    "$",
];
const LEAVES: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "1.5",
    "9223372036854775807",
    "\"\"",
    "\"a\"",
    "\"^a(b|c)*$\"",
    "\"int\"",
    "\"$a\"",
    "[]",
    "{}",
    r#"{"$numberDecimal": "NaN"}"#,
    r#"{"$minKey": 1}"#,
    r#"{"$date": "2024-01-01T00:00:00Z"}"#,
    r#"{"$regularExpression": {"pattern": "a+", "options": "i"}}"#,
    r#"{"$binary": {"base64": "AQI=", "subType": "00"}}"#,
];

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn value(&mut self, depth: usize, words: &[&str]) -> String {
        match self.below(if depth == 0 { 2 } else { 6 }) {
            0 | 1 => LEAVES[self.below(LEAVES.len())].to_owned(),
            2 => {
                let items: Vec<String> = (0..self.below(4)).map(|_| self.value(depth - 1, words)).collect();
                format!("[{}]", items.join(","))
            }
            _ => self.object(depth - 1, words),
        }
    }

    fn object(&mut self, depth: usize, words: &[&str]) -> String {
        let mut names: Vec<&str> = Vec::new();
        let mut fields = Vec::new();
        for _ in 0..1 + self.below(3) {
            let name = words[self.below(words.len())];
            if !names.contains(&name) {
                names.push(name);
                fields.push(format!("{name:?}:{}", self.value(depth, words)));
            }
        }
        format!("{{{}}}", fields.join(","))
    }
}

#[test]
fn no_query_made_of_fragments_breaks_a_promise() {
    let plain = &["a", "b", "0", "_id", "", "$a", "a.b"];
    for seed in 0..20_000 {
        let mut random = Random(seed);
        let query = random.object(5, WORDS);
        fuzz_query_parse(query.as_bytes());
        let documents: Vec<String> = (0..3).map(|_| random.object(4, plain)).collect();
        fuzz_query_eval(format!("{query}\n{}", documents.join("\n")).as_bytes());
    }
}

/// Stages that mean something more often than what is made of single words.
const STAGES: &[&str] = &[
    r#"{"$match": V}"#,
    r#"{"$set": {"a": V}}"#,
    r#"{"$project": {"a": 1, "b": V}}"#,
    r#"{"$unset": ["a", "b"]}"#,
    r#"{"$replaceWith": {"a": "$b", "c": V}}"#,
    r#"{"$limit": 2}"#,
    r#"{"$skip": 1}"#,
    r#"{"$count": "a"}"#,
    r#"{"$sort": {"a": 1, "b": -1}}"#,
    r#"{"$sort": {"a.b": 1}}"#,
    r#"{"$sample": {"size": 2}}"#,
    r#"{"$unwind": "$a"}"#,
    r#"{"$unwind": {"path": "$a.b", "includeArrayIndex": "a.0", "preserveNullAndEmptyArrays": true}}"#,
    r#"{"$redact": {"$cond": ["$a", "$$DESCEND", "$$PRUNE"]}}"#,
    r#"{"$redact": V}"#,
    r#"{"$sortByCount": "$a"}"#,
    r#"{"$bucket": {"groupBy": "$a", "boundaries": [0, 1, 2], "default": "x"}}"#,
    r#"{"$bucket": {"groupBy": "$a", "boundaries": V, "default": V}}"#,
    r#"{"$group": {"_id": "$a", "b": {"$push": "$$ROOT"}}}"#,
    r#"{"$facet": {"a": P, "b": P}}"#,
    r#"{"$lookup": {"from": "c", "localField": "a", "foreignField": "b", "as": "a.b"}}"#,
    r#"{"$lookup": {"from": "c", "let": {"a": "$a", "b": V}, "pipeline": P, "as": "a"}}"#,
    r#"{"$lookup": {"from": "c", "localField": "a", "foreignField": "b", "let": {"a": "$b"}, "pipeline": P, "as": "b"}}"#,
    r#"{"$graphLookup": {"from": "c", "startWith": "$a", "connectFromField": "b", "connectToField": "a", "as": "g", "depthField": "a"}}"#,
    r#"{"$graphLookup": {"from": "c", "startWith": V, "connectFromField": "a.b", "connectToField": "_id", "as": "g", "maxDepth": 3}}"#,
    r#"{"$unionWith": {"coll": "c", "pipeline": P}}"#,
    r#"{"$unionWith": {"pipeline": [{"$documents": [{"a": 1}, {"b": [1, 2]}]}]}}"#,
    r#"{"$documents": V}"#,
    r#"{"$out": "c"}"#,
    r#"{"$merge": {"into": "c", "on": "a"}}"#,
    r#"{"$merge": {"into": "c", "whenMatched": [{"$set": {"a": "$$new.b"}}]}}"#,
    r#"{"$collStats": {}}"#,
    r#"{"$group": {"_id": V, "b": {"$top": {"sortBy": {"a": 1}, "output": V}}, "c": {"$addToSet": "$b"}}}"#,
    r#"{"$bucketAuto": {"groupBy": "$a", "buckets": 2}}"#,
    r#"{"$densify": {"field": "a", "range": {"step": 1, "bounds": [0, 20]}}}"#,
    r#"{"$fill": {"sortBy": {"a": 1}, "output": {"b": {"method": "locf"}, "c": {"value": V}}}}"#,
    r#"{"$setWindowFields": {"partitionBy": "$b", "sortBy": {"a": 1}, "output": {"c": {"$sum": V, "window": {"documents": [-1, 1]}}}}}"#,
];

/// Expressions for the places where values stand.
const VALUES: &[&str] = &[
    r#""$a""#,
    r#""$b.a""#,
    r#""$$a""#,
    r#""$$ROOT""#,
    r#"{"a": {"$gt": 0}}"#,
    r#"{"$expr": {"$eq": ["$a", "$$a"]}}"#,
    r#"{"$add": ["$a", 1]}"#,
    r#"[0, 1]"#,
    r#"[{"a": 1}, {"b": "$b"}]"#,
];

impl Random {
    fn pipeline(&mut self, depth: usize) -> String {
        let stages: Vec<String> = (0..1 + self.below(4)).map(|_| self.stage(depth)).collect();
        format!("[{}]", stages.join(","))
    }

    fn stage(&mut self, depth: usize) -> String {
        let mut stage = STAGES[self.below(STAGES.len())].to_owned();
        while let Some(at) = stage.find(" V") {
            let value = match self.below(3) {
                0 => self.value(2, WORDS),
                _ => VALUES[self.below(VALUES.len())].to_owned(),
            };
            stage.replace_range(at..at + 2, &value);
        }
        while let Some(at) = stage.find(" P") {
            let inner = if depth == 0 { "[]".to_owned() } else { self.pipeline(depth - 1) };
            stage.replace_range(at..at + 2, &inner);
        }
        stage
    }
}

#[test]
fn no_pipeline_made_of_fragments_breaks_a_promise() {
    let plain = &["a", "b", "0", "_id", "c"];
    for seed in 0..6_000 {
        let mut random = Random(seed);
        let pipeline = random.pipeline(2);
        fuzz_query_parse(pipeline.as_bytes());
        let documents: Vec<String> = (0..12).map(|_| random.object(3, plain)).collect();
        fuzz_pipeline(format!("{pipeline}\n{}", documents.join("\n")).as_bytes());
    }
}
