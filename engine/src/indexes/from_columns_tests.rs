//! Runs made of columns are those made of documents, byte by byte.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;
use crate::columns::{Columns, Shredder};
use crate::indexes::keys::KeyMaker;
use quarrydb_jsonb::JsonbBuf;

struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn of<'t>(&mut self, texts: &[&'t str]) -> &'t str {
        texts[self.below(texts.len() as u64) as usize]
    }
}

fn document(text: &str) -> JsonbBuf {
    quarrydb_jsonb::parse(text.as_bytes()).unwrap()
}

/// What the documents say, by the way that knows no columns.
fn of_documents(index: &IndexDefinition, documents: &[JsonbBuf]) -> Made {
    let (mut entries, mut maker) = (Entries::default(), KeyMaker::default());
    for (row, document) in (0..).zip(documents) {
        maker.each(index, document.view(), |key| entries.push(key, row)).unwrap();
    }
    entries.sort();
    let run = entries.to_run(documents.len() as u32).unwrap();
    Made { run, entries: entries.len() as u64, facts: maker.facts }
}

/// Whether columns tell; then they tell the same.
fn agree(index: &str, documents: &[JsonbBuf]) -> bool {
    let index = IndexDefinition::from_object(document(index).view()).unwrap();
    let mut shredder = Shredder::new();
    documents.iter().for_each(|document| shredder.push(document.view()).unwrap());
    let columns = Columns::of_rows(shredder).unwrap();
    let made = run_of(Source::memory(&columns, documents.len() as u32), &index).unwrap();
    let Some(made) = made else { return false };
    let expected = of_documents(&index, documents);
    assert!(made.run == expected.run, "{} over {} documents", index.to_text(), documents.len());
    assert_eq!((made.entries, made.facts), (expected.entries, expected.facts), "{}", index.to_text());
    true
}

const INDEXES: [&str; 9] = [
    r#"{"keys": {"a": 1}}"#,
    r#"{"keys": {"a": -1}}"#,
    r#"{"keys": {"a": 1}, "sparse": true}"#,
    r#"{"keys": {"a": 1, "d": 1}}"#,
    r#"{"keys": {"a": -1, "b.c": 1}}"#,
    r#"{"keys": {"b.c": 1, "a": -1, "d": 1}, "sparse": true}"#,
    r#"{"keys": {"b.0": 1}}"#,
    r#"{"keys": {"nowhere": -1, "d": -1}}"#,
    r#"{"keys": {"e": 1}}"#,
];

#[test]
fn columns_of_one_type_give_the_runs_of_their_documents() {
    let mut chance = Chance(7);
    let long = format!("\"{}\"", "l".repeat(250));
    // Each byte takes two in a key: this one is cut.
    let escaped = format!("\"{}\"", "\\u0001".repeat(252));
    let families: [&[&str]; 9] = [
        &["0", "1", "-1", "2147483647", "-2147483648", "77"],
        &["9223372036854775807", "-9223372036854775808", "4294967296"],
        &["0.5", "1.25", "-3.75", "30000.01"],
        &["0.1", "-0.0", "0.0", "1e300", "5e-324", r#"{"$numberDouble": "NaN"}"#, r#"{"$numberDouble": "-Infinity"}"#],
        &[r#""""#, r#""a""#, r#""ab""#, r#""b\u0000""#, r#""b\u0000a""#, r#""b""#, &long],
        &[&escaped, r#""x""#],
        &["true", "false"],
        &[r#"{"$date": {"$numberLong": "5"}}"#, r#"{"$date": {"$numberLong": "-5"}}"#],
        &[r#"{"$oid": "0123456789abcdef01234567"}"#, r#"{"$oid": "ffffffffffffffffffffffff"}"#],
    ];
    for (number, family) in families.iter().enumerate() {
        for rows in [1, 2, 40, 700] {
            let documents: Vec<_> = (0..rows)
                .map(|row| {
                    let mut fields = Vec::new();
                    for (name, from) in [("a", family), ("d", &families[(number + 2) % families.len()])] {
                        match chance.below(8) {
                            0 => {}
                            1 => fields.push(format!("{name:?}: null")),
                            _ => fields.push(format!("{name:?}: {}", chance.of(from))),
                        }
                    }
                    fields.push(format!("\"b\": {{\"c\": {}, \"0\": {}}}", chance.of(families[0]), chance.of(family)));
                    fields.push(format!("\"e\": \"{row} and {}\"", chance.below(1 << 30)));
                    document(&format!("{{{}}}", fields.join(",")))
                })
                .collect();
            for index in INDEXES {
                assert!(agree(index, &documents), "columns tell of {index} over {family:?}");
            }
        }
    }
}

#[test]
fn columns_of_any_values_tell_the_same_or_nothing() {
    let mut chance = Chance(11);
    let scalars = [
        "1",
        "1.0",
        "1.5",
        "-0.0",
        "null",
        "true",
        r#""t""#,
        r#"{"$numberLong": "1"}"#,
        r#"{"$numberLong": "9007199254740993"}"#,
        "9007199254740992.0",
        r#"{"$numberDecimal": "1"}"#,
        r#"{"$numberDecimal": "1.50"}"#,
        r#"{"$minKey": 1}"#,
        r#"{"$maxKey": 1}"#,
        r#"{"$binary": {"base64": "AQ==", "subType": "00"}}"#,
        r#"{"$timestamp": {"t": 1, "i": 2}}"#,
    ];
    let others = ["[]", "[1]", "[1, 2]", r#"{"c": [3]}"#, r#"[{"c": 3}]"#, r#"{"c": 3, "0": 4}"#, "{}"];
    let mut told = 0;
    for round in 0..400 {
        let documents: Vec<_> = (0..1 + chance.below(30))
            .map(|_| {
                let mut fields = Vec::new();
                for name in ["a", "b", "d"] {
                    let odd = round % 4 == 0 && chance.below(6) == 0;
                    let value = if odd { chance.of(&others) } else { chance.of(&scalars) };
                    if chance.below(6) > 0 {
                        fields.push(format!("{name:?}: {value}"));
                    }
                }
                document(&format!("{{{}}}", fields.join(",")))
            })
            .collect();
        told += INDEXES.iter().filter(|index| agree(index, &documents)).count();
    }
    assert!(told > 400, "{told} of {} indexes were told by columns", 400 * INDEXES.len());
}
