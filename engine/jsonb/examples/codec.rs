//! Times the codec on NDJSON: parsing, printing, reading fields, beside simd-json's tape over the same bytes.
//!
//! `cargo run --profile fast -p quarrydb-jsonb --example codec -- documents.ndjson`. Medians of rotated repetitions;
//! figures are per document.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program for a person at a terminal, which measures time on a file of theirs"
)]

use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

use quarrydb_jsonb::{Builder, JsonbRef, Style, parse_body, parse_document, print, validate};

/// So many documents stay in the second-level cache.
const HOT_DOCUMENTS: usize = 1000;
const REPETITIONS: usize = 9;

/// Documents that fit the cache, again and again.
fn hot(ranges: &[Range<usize>]) -> impl Iterator<Item = &Range<usize>> {
    let some = &ranges[..ranges.len().min(HOT_DOCUMENTS)];
    some.iter().cycle().take(ranges.len())
}

/// A name and what is timed under it.
type Task<'a> = (&'a str, Box<dyn FnMut() + 'a>);

fn main() {
    let file = std::env::args().nth(1).expect("a file of NDJSON");
    let lines: Vec<Vec<u8>> =
        std::fs::read(file).unwrap().split(|&b| b == b'\n').filter(|l| !l.is_empty()).map(<[u8]>::to_vec).collect();
    let bytes: usize = lines.iter().map(Vec::len).sum();
    let bodies: Vec<Vec<u8>> =
        lines.chunks(1000).map(|c| [b"{\"documents\":[", c.join(&b","[..]).as_slice(), b"]}"].concat()).collect();
    let mut built = Builder::new();
    let mut ranges = Vec::new();
    for line in &lines {
        let from = built.len();
        parse_document(line, &mut built, &mut || [7; 12]).unwrap();
        ranges.push(from..built.len());
    }
    let documents = built.take();
    println!(
        "{} documents, {} bytes of JSON, {} of ours a document",
        lines.len(),
        bytes / lines.len(),
        documents.len() / lines.len()
    );
    let wide_names: Vec<String> = (0..200).map(|i| format!("{}_{i}", ["id", "count", "description"][i % 3])).collect();
    let mut wide = Builder::new();
    wide.begin_object();
    for name in &wide_names {
        wide.field(name);
        wide.int32(7);
    }
    wide.end_object().unwrap();
    let wide = wide.take();
    let mut builder = Builder::new();
    let mut line_builder = Builder::new();
    let mut text = Vec::new();
    let mut buffers = simd_json::Buffers::default();
    let mut copy = Vec::new();
    let mut tasks: Vec<Task<'_>> = vec![
        (
            "parse bodies of 1000",
            Box::new(|| {
                for body in &bodies {
                    let mut out = builder.take();
                    out.clear();
                    builder.put(out);
                    parse_body(body, "documents", &mut builder, &mut || [7; 12], &mut |d| {
                        black_box(d.unwrap());
                    })
                    .unwrap();
                }
            }),
        ),
        (
            "parse lines",
            Box::new(|| {
                for line in &lines {
                    let mut out = line_builder.take();
                    out.clear();
                    line_builder.put(out);
                    parse_document(line, &mut line_builder, &mut || [7; 12]).unwrap();
                }
            }),
        ),
        (
            "simd-json tape, bodies (less its copy)",
            Box::new(|| {
                for body in &bodies {
                    copy.clear();
                    copy.extend_from_slice(body);
                    black_box(simd_json::to_tape_with_buffers(&mut copy, &mut buffers).unwrap());
                }
            }),
        ),
        (
            "print relaxed",
            Box::new(|| {
                for range in &ranges {
                    text.clear();
                    print(JsonbRef::from_valid(&documents[range.clone()]), Style::Relaxed, &mut text);
                    black_box(&text);
                }
            }),
        ),
        (
            "validate",
            Box::new(|| {
                for range in &ranges {
                    black_box(validate(&documents[range.clone()]).unwrap());
                }
            }),
        ),
        (
            "read age",
            Box::new(|| {
                for range in hot(&ranges) {
                    black_box(JsonbRef::from_valid(&documents[range.clone()]).get(black_box("age")));
                }
            }),
        ),
        (
            "read address.zip",
            Box::new(|| {
                for range in hot(&ranges) {
                    let address = JsonbRef::from_valid(&documents[range.clone()]).get(black_box("address"));
                    black_box(address.and_then(|a| a.get(black_box("zip"))));
                }
            }),
        ),
        (
            "read one of 200 fields",
            Box::new(|| {
                for _ in 0..lines.len() / wide_names.len() {
                    for name in &wide_names {
                        black_box(JsonbRef::from_valid(&wide).get(black_box(name)));
                    }
                }
            }),
        ),
    ];
    let mut times = vec![Vec::new(); tasks.len()];
    for repetition in 0..REPETITIONS {
        for i in 0..tasks.len() {
            let task = (i + repetition) % tasks.len();
            let start = Instant::now();
            (tasks[task].1)();
            times[task].push(start.elapsed().as_nanos() as f64 / lines.len() as f64);
        }
    }
    for (times, (name, _)) in times.iter_mut().zip(&tasks) {
        times.sort_by(f64::total_cmp);
        let median = times[times.len() / 2];
        println!(
            "{name:40} {median:7.1} ns  (least {:.1})  {:.2} GB/s of JSON",
            times[0],
            bytes as f64 / lines.len() as f64 / median
        );
    }
}
