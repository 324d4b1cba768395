//! Ranges held to the language's own evaluation: random documents, random filters, every kind of index; over a tail's
//! entries and over a file's.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use std::ops::ControlFlow;
use std::sync::Arc;

use quarrydb_jsonb::{JsonbBuf, parse};
use quarrydb_query::{Filter, ParseContext};

use super::*;
use crate::ids::{CollectionId, IndexId, SegmentId, Seq};
use crate::indexes::entries::Entries;
use crate::indexes::file::{SegmentIndex, header, index_file_name};
use crate::indexes::keys::KeyMaker;
use crate::indexes::source::IndexSource;
use crate::indexes::state::Index;
use crate::indexes::tail::TailIndexes;
use crate::io::{MemoryStorage, Storage};
use crate::manifest::IndexFileRef;
use crate::segment::SegmentMeta;

struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len())]
    }

    fn scalar(&mut self) -> String {
        let long = format!("\"{}\"", "x".repeat(600));
        let longer = format!("\"{}y\"", "x".repeat(600));
        let scalars = [
            "0",
            "1",
            "2",
            "3",
            "1.0",
            "2.5",
            "-1",
            "null",
            "true",
            "false",
            "\"\"",
            "\"a\"",
            "\"ab\"",
            "\"b\"",
            "{\"$numberDouble\": \"NaN\"}",
            "{\"$numberDecimal\": \"1.0\"}",
            "{\"$numberDouble\": \"Infinity\"}",
            "{\"$date\": \"2020-01-01T00:00:00Z\"}",
            "{\"$date\": \"1960-01-01T00:00:00Z\"}",
            "{\"$oid\": \"65a1b2c3d4e5f60718293a4b\"}",
            "{\"$minKey\": 1}",
            "{\"$maxKey\": 1}",
            "{\"x\": 1}",
            "{}",
            "{\"$regularExpression\": {\"pattern\": \"^a\", \"options\": \"\"}}",
            "\"\\u0001\"",
            "9007199254740993",
            "9007199254740992.0",
            long.as_str(),
            longer.as_str(),
        ];
        self.of(&scalars).to_owned()
    }

    fn value(&mut self, arrays: bool, depth: usize) -> String {
        match self.below(12) {
            0 | 1 if arrays => {
                let count = self.below(4);
                let elements: Vec<_> = (0..count).map(|_| self.value(depth < 2, depth + 1)).collect();
                format!("[{}]", elements.join(","))
            }
            2 | 3 if depth < 3 => self.object(arrays, depth + 1, false),
            _ => self.scalar(),
        }
    }

    fn object(&mut self, arrays: bool, depth: usize, top: bool) -> String {
        // Arrays in one field of an object: several are seldom taken by one index.
        let only = self.of(&["b", "c"]);
        let mut fields = Vec::new();
        for name in if top { &["a", "b", "c"][..] } else { &["b", "c", "0"][..] } {
            if self.below(4) > 0 {
                let arrays = arrays && if top { *name == "a" } else { *name == only };
                fields.push(format!("\"{name}\": {}", self.value(arrays, depth)));
            }
        }
        format!("{{{}}}", fields.join(","))
    }

    fn path<'p>(&mut self, paths: &[&'p str]) -> &'p str {
        if self.below(4) > 0 { self.of(paths) } else { self.of(&["a", "b", "a.b", "a.c", "c"]) }
    }

    fn test(&mut self) -> String {
        let op = self.of(&["$eq", "$lt", "$lte", "$gt", "$gte", "$ne"]);
        match self.below(12) {
            0 => format!("{{\"$in\": [{}, {}]}}", self.value(true, 1), self.value(true, 1)),
            1 => format!("{{\"$gte\": {}, \"$lt\": {}}}", self.scalar(), self.scalar()),
            2 => format!(
                "{{\"$type\": [\"{}\", \"{}\"]}}",
                self.of(&["number", "int"]),
                self.of(&["string", "null", "bool"])
            ),
            3 => format!("{{\"$regex\": \"{}\"}}", self.of(&["^a", "a", "^a.*", "^ab?", "^x", "^a|b", "^\\\\u0061"])),
            4 => format!("{{\"$exists\": {}}}", self.of(&["true", "false"])),
            5 => format!("{{\"$elemMatch\": {{\"$gte\": {}, \"$lte\": {}}}}}", self.scalar(), self.scalar()),
            6 => format!("{{\"$elemMatch\": {{\"b\": {}, \"c\": {}}}}}", self.condition(), self.condition()),
            7 => format!("{{\"$not\": {{\"{op}\": {}}}}}", self.scalar()),
            _ => self.condition(),
        }
    }

    fn condition(&mut self) -> String {
        let op = self.of(&["$eq", "$eq", "$eq", "$lt", "$lte", "$gt", "$gte"]);
        format!("{{\"{op}\": {}}}", self.value(true, 1))
    }

    fn filter(&mut self, paths: &[&str]) -> String {
        let count = 1 + self.below(3);
        let parts: Vec<_> = (0..count).map(|_| format!("{{\"{}\": {}}}", self.path(paths), self.test())).collect();
        format!("{{\"$and\": [{}]}}", parts.join(","))
    }

    fn index(&mut self) -> String {
        let mut paths: Vec<&str> = Vec::new();
        for _ in 0..1 + self.below(3) {
            let path = self.of(&["a", "b", "a.b", "a.c", "c", "a", "b", "a.b", "a.c", "c", "a.0"]);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        let keys: Vec<_> = paths.iter().map(|path| format!("\"{path}\": {}", self.of(&["1", "-1"]))).collect();
        let options = self.of(&[
            "",
            "",
            ", \"sparse\": true",
            ", \"partialFilterExpression\": {\"b\": {\"$gt\": 0}}",
            ", \"partialFilterExpression\": {\"a\": {\"$exists\": true}}",
        ]);
        format!("{{\"keys\": {{{}}}{options}}}", keys.join(","))
    }
}

fn filter(text: &str) -> Filter {
    Filter::parse(parse(text.as_bytes()).unwrap().view(), &ParseContext::new("filter")).unwrap()
}

/// Both forms of one index over the same rows.
fn sources(index: &Index, documents: &[JsonbBuf]) -> [IndexSource; 2] {
    let document = |row: u32| documents.get(row as usize).map(JsonbBuf::view);
    let tail = TailIndexes::default().get(index.id);
    // Little by little, as readers come.
    for rows in (0..documents.len() as u32).step_by(7) {
        tail.sorted(index, rows, &document);
    }
    let sorted = tail.sorted(index, documents.len() as u32, &document);
    let meta = SegmentMeta {
        id: SegmentId::from_raw(1),
        collection: CollectionId::from_raw(1),
        rows: documents.len() as u32,
        min_seq: Seq::from_raw(1),
        max_seq: Seq::from_raw(1),
        row_bytes: 0,
        file_bytes: 0,
        footer_bytes: 0,
        footer_crc: 0,
    };
    let (mut entries, mut maker) = (Entries::default(), KeyMaker::default());
    for (row, document) in documents.iter().enumerate() {
        let made = maker.each(&index.definition, document.view(), |key| entries.push(key, row as u32));
        maker.facts.incomplete |= made.is_err();
    }
    entries.sort();
    let run = entries.to_run(meta.rows).unwrap();
    let bytes = [header(&meta, index.id, maker.facts, entries.len() as u64, run.len()), run].concat();
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    storage.write_atomic(&index_file_name(meta.id, index.id), &bytes).unwrap();
    let file = IndexFileRef {
        index: index.id,
        crc: crc32c::crc32c(&bytes),
        len: bytes.len() as u64,
        entries: entries.len() as u64,
    };
    let file = SegmentIndex::new(storage, &meta, file);
    file.verify().unwrap();
    [IndexSource::Tail(sorted), IndexSource::Segment(Arc::new(file))]
}

fn definition(text: &str) -> IndexDefinition {
    IndexDefinition::from_object(parse(text.as_bytes()).unwrap().view()).unwrap()
}

fn compare(seed: u64, rounds: usize) -> [usize; 3] {
    let mut chance = Chance(seed);
    let (mut asked, mut bounded, mut exact) = (0, 0, 0);
    for _ in 0..rounds {
        let arrays = chance.below(2) == 0;
        let count = 5 + chance.below(60);
        let documents: Vec<_> = (0..count).map(|_| parse(chance.object(arrays, 0, true).as_bytes()).unwrap()).collect();
        let text = chance.index();
        let index = Index::new(IndexId::from_raw(3), definition(&text), true);
        let sources = sources(&index, &documents);
        assert_eq!(sources[0].facts().unwrap(), sources[1].facts().unwrap(), "{text}");
        for _ in 0..20 {
            let paths: Vec<_> = index.definition.fields.iter().map(|field| field.path.as_str()).collect();
            let filter_text = chance.filter(&paths);
            // Some operands are not allowed, as a pattern in a range.
            let value = parse(filter_text.as_bytes()).unwrap();
            let Ok(filter) = Filter::parse(value.view(), &ParseContext::new("filter")) else { continue };
            asked += 1;
            let facts = sources[0].facts().unwrap();
            let Some(bounds) = bounds(&index.definition, facts, filter.ast()) else { continue };
            bounded += 1;
            exact += usize::from(bounds.exact);
            let matching: Vec<u32> = (0..documents.len() as u32)
                .filter(|&row| filter.matches(documents[row as usize].view()).unwrap())
                .collect();
            for source in &sources {
                let rows: Vec<u32> = source.rows(&bounds.ranges).unwrap().bitmap().iter().collect();
                let told = || format!("seed {seed}: index {text}, filter {filter_text}, {bounds:?}");
                if let Some(lost) = matching.iter().find(|row| !rows.contains(row)) {
                    panic!("{}: lost {:?}", told(), documents[*lost as usize]);
                }
                if bounds.exact {
                    let wrong = rows.iter().find(|row| !matching.contains(row));
                    assert_eq!(wrong.map(|row| &documents[*row as usize]), None, "{}", told());
                }
                check_walks(source, &bounds.ranges, &rows);
            }
        }
    }
    [asked, bounded, exact]
}

/// Walking gives what the sets and counts say, in order, both ways.
fn check_walks(source: &IndexSource, ranges: &[KeyRange], rows: &[u32]) {
    let walk = |backwards| {
        let mut found: Vec<(Vec<u8>, u32)> = Vec::new();
        let flow = source.walk(ranges, backwards, &mut |key, row| {
            assert!(ranges.iter().any(|range| range.contains(key)));
            found.push((key.to_vec(), row));
            ControlFlow::Continue(())
        });
        assert!(flow.unwrap().is_continue());
        found
    };
    let (forwards, mut back) = (walk(false), walk(true));
    assert!(forwards.is_sorted());
    back.reverse();
    assert_eq!(forwards, back);
    assert_eq!(forwards.len() as u64, source.entries(ranges).unwrap());
    let mut walked: Vec<u32> = forwards.iter().map(|(_, row)| *row).collect();
    walked.sort_unstable();
    walked.dedup();
    assert_eq!(walked, rows);
}

#[test]
fn ranges_hold_every_row_that_matches_and_no_other_where_they_say_so() {
    let rounds = if std::env::var("QUARRY_SOAK").is_ok() { 4000 } else { 60 };
    let mut all = [0; 3];
    for seed in 1..=8 {
        let counts = compare(seed, rounds);
        (0..3).for_each(|i| all[i] += counts[i]);
    }
    // The test would be worth nothing if the index said nothing.
    assert!(all[1] * 4 > all[0] && all[2] * 10 > all[1], "asked, bounded, exact: {all:?}");
}

#[test]
fn entries_in_order_are_the_order_of_a_sort() {
    let sort_of = |text: &str| Sort::parse(parse(text.as_bytes()).unwrap().view(), &ParseContext::new("sort")).unwrap();
    let index = definition(r#"{"keys": {"a": 1, "b": -1, "c": 1}}"#);
    let facts = Facts::default();
    for (sort, fixed, expected) in [
        (r#"{"a": 1}"#, 0, Some(false)),
        (r#"{"a": -1}"#, 0, Some(true)),
        (r#"{"a": 1, "b": -1}"#, 0, Some(false)),
        (r#"{"a": -1, "b": 1, "c": -1}"#, 0, Some(true)),
        (r#"{"a": 1, "b": 1}"#, 0, None),
        (r#"{"b": 1}"#, 0, None),
        (r#"{"b": 1}"#, 1, Some(true)),
        (r#"{"a": 1, "b": 1}"#, 1, Some(true)),
        (r#"{"b": -1, "a": 1, "c": 1}"#, 1, Some(false)),
        (r#"{"c": 1}"#, 1, None),
        (r#"{"d": 1}"#, 0, None),
        (r#"{"a": 1, "b": -1, "c": 1, "d": 1}"#, 0, None),
        (r#"{"$natural": 1}"#, 0, None),
    ] {
        assert_eq!(order(&index, facts, &sort_of(sort), fixed), expected, "{sort} {fixed}");
    }
    for facts in [
        Facts { arrays: 1, ..facts },
        Facts { cut: true, ..facts },
        Facts { positional: true, ..facts },
        Facts { incomplete: true, ..facts },
    ] {
        assert_eq!(order(&index, facts, &sort_of(r#"{"a": 1}"#), 0), None);
    }
}

#[test]
fn many_values_stay_single_and_descending_ones_too() {
    let index = Index::new(IndexId::from_raw(0), definition(r#"{"keys": {"a": -1, "b": 1}}"#), true);
    let documents: Vec<_> =
        (0..300).map(|i| parse(format!("{{\"a\": {}, \"b\": {}}}", i % 30, i).as_bytes()).unwrap()).collect();
    let values: Vec<String> = (0..20).map(|i| (i * 2).to_string()).collect();
    let filter =
        filter(&format!("{{\"a\": {{\"$in\": [{}, true, false]}}, \"b\": {{\"$gte\": 100}}}}", values.join(",")));
    for source in sources(&index, &documents) {
        let bounds = bounds(&index.definition, source.facts().unwrap(), filter.ast()).unwrap();
        assert!(bounds.exact && bounds.fields == 2 && bounds.fixed == 0);
        let expected = documents.iter().filter(|d| filter.matches(d.view()).unwrap()).count() as u64;
        assert_eq!((source.rows(&bounds.ranges).unwrap().len(), expected), (100, 100));
    }
}
