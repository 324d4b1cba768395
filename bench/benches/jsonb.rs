//! The document format beside its floors: text in beside simd-json's tape, text out beside a copy, one field.
#![allow(clippy::unwrap_used, reason = "a bench stops where it stands")]

use quarrydb_bench::dataset::{Lines, SEED};
use quarrydb_bench::micro::{Table, seconds};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, Path, Style, parse_document, print, validate};
use simd_json::{Buffers, Tape};
use std::hint::black_box;

fn encoded(texts: &[&[u8]]) -> Vec<JsonbBuf> {
    let one = |text: &&[u8]| {
        let mut builder = Builder::new();
        parse_document(text, &mut builder, &mut || *b"twelve bytes").unwrap();
        JsonbRef::from_valid(builder.bytes()).to_buf()
    };
    texts.iter().map(one).collect()
}

fn parsing(table: &Table, name: &str, texts: &[&[u8]]) {
    let bytes = texts.iter().map(|t| t.len()).sum();
    let mut builder = Builder::new();
    let (mut buffers, mut kept, mut copy) = (Buffers::default(), Some(Tape::null()), Vec::new());
    table.row(
        &format!("parse, {name}"),
        texts.len(),
        bytes,
        "simd-json tape",
        || {
            seconds(|| {
                for text in texts {
                    builder.rewind(0);
                    parse_document(text, &mut builder, &mut || *b"twelve bytes").unwrap();
                    black_box(builder.bytes());
                }
            })
        },
        || {
            seconds(|| {
                for text in texts {
                    copy.clear();
                    copy.extend_from_slice(text);
                    let mut tape = kept.take().unwrap().reset();
                    simd_json::fill_tape(&mut copy, &mut buffers, &mut tape).unwrap();
                    kept = Some(black_box(tape).reset());
                }
            })
        },
    );
}

fn printing(table: &Table, name: &str, texts: &[&[u8]]) {
    let documents = encoded(texts);
    let mut out = Vec::with_capacity(1 << 20);
    let mut copy = Vec::with_capacity(1 << 20);
    let bytes = texts.iter().map(|t| t.len()).sum();
    table.row(
        &format!("print, {name}"),
        texts.len(),
        bytes,
        "copy of the text",
        || {
            seconds(|| {
                for document in &documents {
                    out.clear();
                    print(document.view(), Style::Relaxed, &mut out);
                    black_box(&out);
                }
            })
        },
        || {
            seconds(|| {
                for text in texts {
                    copy.clear();
                    copy.extend_from_slice(text);
                    black_box(&copy);
                }
            })
        },
    );
}

/// Runs of all documents within one figure.
const TIMES: usize = 200;

fn reading(table: &Table, name: &str, goal: &str, documents: &[JsonbBuf], path: &str) {
    let path = Path::parse(path).unwrap();
    table.alone(name, documents.len() * TIMES, goal, || {
        seconds(|| {
            for document in (0..TIMES).flat_map(|_| documents) {
                black_box(path.get(black_box(document.view())));
            }
        })
    });
}

fn main() {
    let employees = Lines::employees(50_000, SEED);
    let texts: Vec<&[u8]> = employees.iter().collect();
    let features = include_str!("../../testdata/documents/web-features.ndjson");
    let nested: Vec<&[u8]> = features.lines().map(str::as_bytes).collect();
    let table = Table::begin("document");
    parsing(&table, "employees", &texts);
    parsing(&table, "web features", &nested);
    printing(&table, "employees", &texts);
    printing(&table, "web features", &nested);

    // A few documents, so that caches are not what is measured.
    let documents = encoded(&texts[..256]);
    reading(&table, "one of 14 fields", "at most 12", &documents, "department");
    reading(&table, "one that is not there", "at most 12", &documents, "absent");
    reading(&table, "a nested field", "at most 20", &documents, "address.zip");
    let fields: Vec<String> = (0..200).map(|i| format!("\"field_{i}\":{i}")).collect();
    let wide = format!("{{{}}}", fields.join(","));
    let wide = encoded(&[wide.as_bytes(); 32]);
    reading(&table, "one of 200 fields", "at most 30", &wide, "field_117");
    table.alone("validate, employees", documents.len() * TIMES, "", || {
        seconds(|| {
            for document in (0..TIMES).flat_map(|_| &documents) {
                black_box(validate(document.as_bytes()).unwrap());
            }
        })
    });
}
