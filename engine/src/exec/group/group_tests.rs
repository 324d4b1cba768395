//! Groups from columns are those of the documents, one after another.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use std::sync::Arc;

use quarrydb_jsonb::JsonbRef;
use quarrydb_query::expr::Budget;
use quarrydb_query::pipeline::{Fault, Flow, Host, Run, Stage};
use quarrydb_query::{Filter, ParseContext, Pipeline};

use super::*;
use crate::exec::scan::Ask;
use crate::io::{ManualClock, MemoryStorage};
use crate::{Collection, Database, InsertBatch, Options, WriteOptions};

struct Alone;

impl Host for Alone {
    fn go_on(&self) -> bool {
        true
    }

    fn budget(&self) -> Budget<'_> {
        Budget::default()
    }

    fn stage_bytes(&self) -> usize {
        1 << 24
    }

    fn find(
        &self,
        _: Option<&str>,
        _: &str,
        _: &Filter,
        _: &mut dyn FnMut(JsonbRef<'_>) -> std::result::Result<Flow, Fault>,
    ) -> std::result::Result<(), Fault> {
        Ok(())
    }
}

/// xorshift64*.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len() as u64) as usize]
    }
}

const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "2",
    "1.0",
    "1.5",
    "-0.0",
    "0.0",
    "0.1",
    "1e300",
    "-1e-300",
    "1e20",
    r#"{"$numberLong": "1"}"#,
    r#"{"$numberLong": "9223372036854775807"}"#,
    r#"{"$numberDouble": "NaN"}"#,
    r#"{"$numberDouble": "-Infinity"}"#,
    "2147483647",
];
const OTHERS: [&str; 9] = [
    "null",
    "true",
    "false",
    r#""x""#,
    r#""y""#,
    r#"{"$date": {"$numberLong": "5"}}"#,
    r#"{"$date": {"$numberLong": "-9000000000000"}}"#,
    r#"{"$oid": "0123456789abcdef01234567"}"#,
    r#""xyz""#,
];
/// What no column has as it is.
const HARD: [&str; 4] = ["[1, 2]", r#"{"q": 1}"#, r#"{"$numberDecimal": "1.0"}"#, "[]"];

fn document(chance: &mut Chance, id: u64, shape: u64) -> String {
    let mut fields = vec![format!("\"_id\": {id}")];
    for name in ["a", "b", "c"] {
        let value = match (shape, chance.below(20)) {
            (_, 0) => continue,
            // Whole numbers, few and many; doubles of one exponent; texts few and many.
            (0, _) if name == "a" => chance.below(5).to_string(),
            (0, _) if name == "b" => format!("{}.{:02}", chance.below(1000), chance.below(100)),
            (0, _) => (chance.below(1 << 40) as i64 - 5000).to_string(),
            (1, _) if name == "a" => format!("\"t{}\"", chance.below(6)),
            (1, _) if name == "b" => format!("\"u{}\"", chance.below(1 << 30)),
            (1, _) => chance.pick(&NUMBERS).to_owned(),
            (2, 1..=9) => chance.pick(&NUMBERS).to_owned(),
            (2, _) => chance.pick(&OTHERS).to_owned(),
            (_, 1) => chance.pick(&HARD).to_owned(),
            (_, 2..=10) => chance.pick(&NUMBERS).to_owned(),
            (_, _) => chance.pick(&OTHERS).to_owned(),
        };
        fields.push(format!("{name:?}: {value}"));
    }
    if chance.below(3) > 0 {
        fields.push(format!("\"o\": {{\"p\": {}}}", chance.pick(&OTHERS)));
    }
    format!("{{{}}}", fields.join(","))
}

fn group_text(chance: &mut Chance) -> String {
    const PATHS: [&str; 6] = ["\"$a\"", "\"$b\"", "\"$c\"", "\"$o.p\"", "\"$none\"", "\"$_id\""];
    const MADE: [&str; 7] = [
        "{\"$hour\": \"$o.p\"}",
        "{\"$hour\": {\"$toDate\": {\"$multiply\": [\"$c\", 977]}}}",
        "{\"$dateTrunc\": {\"date\": {\"$toDate\": {\"$multiply\": [\"$_id\", 1000000]}}, \"unit\": \"day\"}}",
        "{\"$cond\": [{\"$gt\": [\"$a\", 1]}, \"$a\", 1.0]}",
        "{\"$ifNull\": [\"$b\", 7]}",
        "{\"$type\": \"$a\"}",
        "{\"x\": [\"$b\"]}",
    ];
    let id = match chance.below(9) {
        6 => format!("{{\"x\": {}, \"y\": {}}}", chance.pick(&PATHS), chance.pick(&MADE)),
        7 => format!("{{\"x\": {}}}", chance.pick(&PATHS)),
        8 => chance.pick(&MADE).to_owned(),
        0 => "null".to_owned(),
        1 => format!("{{\"x\": {}, \"y\": {}}}", chance.pick(&PATHS), chance.pick(&PATHS)),
        _ => chance.pick(&PATHS).to_owned(),
    };
    let mut fields = vec![format!("\"_id\": {id}")];
    for at in 0..chance.below(4) {
        let path = if chance.below(4) == 0 { chance.pick(&MADE) } else { chance.pick(&PATHS) };
        let made = match chance.below(16) {
            0 => "{\"$count\": {}}".to_owned(),
            1 => "{\"$sum\": 1}".to_owned(),
            2 => "{\"$sum\": {\"$numberLong\": \"3\"}}".to_owned(),
            3 => "{\"$avg\": 2}".to_owned(),
            4 => format!("{{\"$minN\": {{\"n\": 2, \"input\": {path}}}}}"),
            n => {
                let names = [
                    "$sum",
                    "$avg",
                    "$min",
                    "$max",
                    "$first",
                    "$last",
                    "$push",
                    "$addToSet",
                    "$stdDevPop",
                    "$sum",
                    "$avg",
                ];
                format!("{{\"{}\": {path}}}", names[(n as usize - 5) % names.len()])
            }
        };
        fields.push(format!("\"f{at}\": {made}"));
    }
    format!("[{{\"$group\": {{{}}}}}]", fields.join(","))
}

fn print(value: JsonbRef<'_>) -> String {
    let mut out = Vec::new();
    quarrydb_jsonb::print(value, quarrydb_jsonb::Style::Canonical, &mut out);
    String::from_utf8(out).unwrap()
}

fn insert(db: &Database, collection: &Collection, texts: &[String]) {
    let mut batch = InsertBatch::new(db);
    for text in texts {
        batch.push_text(text.as_bytes()).unwrap();
    }
    let outcome = collection.insert_batch(batch, true, &WriteOptions::default()).unwrap().wait().unwrap();
    assert!(outcome.errors.is_empty());
}

/// Both ways; whether columns made all groups.
fn compare(collection: &Collection, text: &str, filter: &str) -> bool {
    let core = collection.core();
    let pipeline = quarrydb_jsonb::parse(text.as_bytes()).unwrap();
    let pipeline = Pipeline::parse(pipeline.view(), &ParseContext::new("pipeline")).unwrap();
    let [Stage::Group(spec)] = pipeline.stages() else { panic!("a group") };
    let Some(spec) = ColumnGroup::new(spec) else { return false };
    let filter = quarrydb_jsonb::parse(filter.as_bytes()).unwrap();
    let filter = || Filter::parse(filter.view(), &ParseContext::new("filter")).unwrap();
    let state = collection.state().unwrap();
    let mut expected = Vec::new();
    let mut sink = |document: JsonbRef<'_>| {
        expected.push(print(document));
        Ok(Flow::Continue(()))
    };
    let mut run = Run::new(pipeline.stages());
    let scan = Scan::new(&state, core.snapshot(), filter(), None, Ask::Nothing).unwrap();
    let mut failed = None;
    'all: for morsel in scan.morsels().unwrap() {
        let mut documents = Vec::new();
        let _ = scan
            .run(&morsel, &mut BlockBuf::default(), &mut |document, _| {
                documents.push(document.to_buf());
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        for document in documents {
            if let Err(error) = run.push(document.view(), &Alone, &mut sink) {
                failed = Some(error.to_string());
                break 'all;
            }
        }
    }
    if failed.is_none() {
        run.finish(&Alone, &mut sink).unwrap();
    }
    let scan = Scan::new(&state, core.snapshot(), filter(), None, Ask::Values).unwrap();
    let meter = Meter::new(&core.queries);
    let grouped = match group(&scan, &spec, 1 << 26, &meter) {
        Ok(grouped) => grouped.unwrap(),
        Err(error) => {
            // Of several documents that fail, any may be the one that is told.
            assert!(failed.is_some(), "{text}: {error}");
            return false;
        }
    };
    assert_eq!(failed, None, "{text}");
    let (of_columns, count) = (grouped.is_of_columns(), grouped.len());
    let mut found = Vec::new();
    let mut sink = |document: JsonbRef<'_>| {
        found.push(print(document));
        Ok(Flow::Continue(()))
    };
    grouped.finish(&spec, &Alone, None, &mut sink).unwrap();
    assert_eq!(found.len(), count);
    // Deviations promise a tolerance, not bits.
    if text.contains("$stdDev") {
        assert_eq!(found.len(), expected.len(), "{text}");
    } else {
        let (found, expected) = (found.join("\n"), expected.join("\n"));
        let at = found.bytes().zip(expected.bytes()).take_while(|(a, b)| a == b).count().saturating_sub(60);
        let near = |text: &str| format!("{} {}", text.len(), text.chars().skip(at).take(160).collect::<String>());
        assert!(found == expected, "{text}\nfound    {}\nexpected {}", near(&found), near(&expected));
    }
    of_columns
}

#[test]
fn columns_group_as_documents_do() {
    let seeds: u64 = std::env::var("QUARRY_SOAK").map_or(40, |_| 4000);
    let mut of_columns = 0;
    for seed in 1..=seeds {
        let mut chance = Chance(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let options = Options {
            tail_rows_max: 3000,
            segment_rows_max: if seed % 2 == 0 { 700 } else { 9000 },
            background: false,
            ..Options::default()
        };
        let storage = Arc::new(MemoryStorage::new());
        let db = Database::open_on(storage, Arc::new(ManualClock::new(1_000_000)), options).unwrap();
        let collection = db.collection("d", "c").unwrap();
        let shape = seed % 4;
        let rows = [3, 90, 900, 9000][chance.below(4) as usize];
        let texts: Vec<String> = (0..rows).map(|id| document(&mut chance, id, shape)).collect();
        insert(&db, &collection, &texts);
        if seed % 3 > 0 {
            db.seal().unwrap();
        }
        let texts: Vec<String> = (rows..rows + chance.below(200)).map(|id| document(&mut chance, id, shape)).collect();
        insert(&db, &collection, &texts);
        let filters = ["{}", r#"{"_id": {"$gt": 40}}"#, r#"{"a": {"$gte": 1}}"#, r#"{"_id": {"$mod": [97, 3]}}"#];
        for _ in 0..6 {
            let text = group_text(&mut chance);
            of_columns += u64::from(compare(&collection, &text, chance.pick(&filters)));
        }
    }
    assert!(of_columns > seeds / 2, "columns made only {of_columns} of {} answers", seeds * 6);
}
