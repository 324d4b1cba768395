//! The bodies of the fuzz targets on the case files, mutated: what people ask, a little wrong.
//!
//! The same everywhere for one seed. `QUARRY_SOAK` is how many seconds to go on instead, from a seed of the clock's.

#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(
    clippy::disallowed_methods,
    reason = "integration tests read files of the repository, and a soak runs by the clock"
)]

use quarrydb_query::fuzzing::{fuzz_query_eval, fuzz_query_parse};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A text that has grown beyond this begins anew.
const BYTES_MAX: usize = 20_000;
/// Mutations of an ordinary run.
const ROUNDS: usize = 20_000;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n.max(1)
    }

    fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.below(from.len())]
    }
}

/// Queries and documents: lines of the case files and of LANGUAGE.md's examples.
fn corpus() -> (Vec<String>, Vec<String>) {
    let here = env!("CARGO_MANIFEST_DIR");
    let mut texts = vec![std::fs::read_to_string(format!("{here}/LANGUAGE.md")).unwrap()];
    let mut files: Vec<_> =
        std::fs::read_dir(format!("{here}/testdata/queries")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    texts.extend(files.iter().map(|f| std::fs::read_to_string(f).unwrap()));
    let (mut queries, mut documents) = (Vec::new(), Vec::new());
    for line in texts.iter().flat_map(|t| t.lines()) {
        match line.split_once(' ') {
            Some(("doc", rest)) => documents.push(rest.to_owned()),
            Some(("find" | "project" | "sort" | "update" | "upsert" | "filters", rest)) => {
                queries.push(rest.to_owned())
            }
            _ => {
                if let Some((expression, _)) = line.split_once(" -> ") {
                    queries.push(expression.to_owned());
                }
            }
        }
    }
    (queries, documents)
}

/// Where JSON values and names begin and end, roughly: enough to cut between them.
fn joints(text: &str) -> Vec<usize> {
    text.bytes().enumerate().filter(|(_, b)| b"{}[],: \"".contains(b)).map(|(i, _)| i).collect()
}

fn mutated(random: &mut Random, queries: &[String]) -> String {
    const WORDS: [&str; 24] = [
        "$",
        "a",
        "a.$",
        "a.0",
        "0",
        "-1",
        "1e400",
        "null",
        "[]",
        "{}",
        "\"\"",
        "\"$$this\"",
        "\"$a\"",
        "true",
        "2147483648",
        "9223372036854775807",
        "0.5",
        "\"$$ROOT\"",
        "{\"$minKey\": 1}",
        "{\"$numberDecimal\": \"NaN\"}",
        "\"_id\"",
        "{\"$rand\": {}}",
        "[[1]]",
        "\"\\u0000\"",
    ];
    let mut text = random.pick(queries).clone();
    for _ in 0..1 + random.below(4) {
        let places = joints(&text);
        let (Some(&from), Some(&to)) = (places.get(random.below(places.len())), places.get(random.below(places.len())))
        else {
            break;
        };
        let (from, to) = (from.min(to), from.max(to));
        match random.below(6) {
            // A value for another.
            0 => text.replace_range(from..to, WORDS[random.below(WORDS.len())]),
            // A piece of another query.
            1 | 2 => {
                let other = random.pick(queries);
                let ends = joints(other);
                let (a, b) = (*random.pick(&ends), *random.pick(&ends));
                text.replace_range(from..to, other.get(a.min(b)..a.max(b)).unwrap_or_default());
            }
            // A whole query inside.
            3 => text.replace_range(from..to, random.pick(queries).as_str()),
            4 => {
                let piece = text.get(from..to).unwrap_or_default().to_owned();
                text.insert_str(to, &piece);
            }
            _ => text.replace_range(from..to, ""),
        }
        if text.len() > BYTES_MAX {
            text.clone_from(random.pick(queries));
        }
    }
    text
}

fn run(seed: u64, queries: &[String], documents: &[String]) {
    let mut random = Random(seed);
    let query = mutated(&mut random, queries);
    fuzz_query_parse(query.as_bytes());
    let some: Vec<&str> = (0..3).map(|_| random.pick(documents).as_str()).collect();
    fuzz_query_eval(format!("{}\n{}", query.replace('\n', " "), some.join("\n")).as_bytes());
}

#[test]
fn no_case_a_little_wrong_breaks_a_promise() {
    let (queries, documents) = corpus();
    assert!(queries.len() > 500 && documents.len() > 300, "{} queries, {} documents", queries.len(), documents.len());
    let seconds = std::env::var("QUARRY_SOAK").ok().and_then(|s| s.parse().ok());
    let Some(seconds) = seconds else {
        (0..ROUNDS as u64).for_each(|seed| run(seed, &queries, &documents));
        return;
    };
    let (start, mut seed) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64);
    while start.elapsed() < Duration::from_secs(seconds) {
        seed = seed.wrapping_add(1);
        let began = Instant::now();
        run(seed, &queries, &documents);
        let took = began.elapsed();
        assert!(took < Duration::from_secs(20), "seed {seed} took {took:?}");
    }
}
