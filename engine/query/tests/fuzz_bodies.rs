//! The bodies of the fuzz targets on what a small generator makes of fragments: bounded, the same everywhere.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use quarrydb_query::fuzzing::{fuzz_query_eval, fuzz_query_parse};

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
