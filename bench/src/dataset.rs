//! The employee documents of the suites: by seed, byte for byte the same for every engine that is measured.
//!
//! Gives compact JSON. 14 fields, one nested object, one array; 292 bytes on average in the first million. The same
//! seed gives the same documents as Python's generator would that draws in this order, so that another engine's
//! harness can be fed without this crate. It knows nothing of servers. The next file is `client.rs`.

use crate::events::Firehose;
use crate::mersenne::Mersenne;
use std::io::Write as _;

const FIRST: [&str; 10] = ["Alice", "Bob", "Charlie", "Diana", "Eve", "Frank", "Grace", "Hank", "Ivy", "Jack"];
const LAST: [&str; 10] =
    ["Smith", "Johnson", "Williams", "Brown", "Jones", "Garcia", "Miller", "Davis", "Rodriguez", "Martinez"];
const CITY: [&str; 10] =
    ["New York", "London", "Tokyo", "Paris", "Berlin", "Sydney", "Toronto", "Mumbai", "Dubai", "Singapore"];
const COUNTRY: [&str; 10] = ["US", "UK", "JP", "FR", "DE", "AU", "CA", "IN", "AE", "SG"];
const DEPARTMENT: [&str; 5] = ["Engineering", "Sales", "Marketing", "Finance", "HR"];
const STATUS: [&str; 4] = ["active", "inactive", "suspended", "pending"];
const TAG: [&str; 5] = ["vip", "premium", "trial", "enterprise", "beta"];

/// The seed of the published figures.
pub const SEED: u32 = 42;

/// Employee documents without end.
#[derive(Clone, Debug)]
pub struct Employees {
    random: Mersenne,
    seq: u64,
}

impl Employees {
    /// From the first document on.
    #[must_use]
    pub fn new(seed: u32) -> Self {
        Self { random: Mersenne::new(seed), seq: 0 }
    }

    fn one_of(&mut self, words: &'static [&'static str]) -> &'static str {
        words[self.random.below(words.len() as u32) as usize]
    }

    fn whole(&mut self, below: u32) -> u32 {
        (self.random.unit() * f64::from(below)) as u32
    }

    /// Appends the next document, without a line's end.
    ///
    /// # Panics
    /// Never: writing to a vector cannot fail.
    pub fn append(&mut self, out: &mut Vec<u8>) {
        let (first, last, i) = (self.one_of(&FIRST), self.one_of(&LAST), self.seq);
        let email = format!("{first}.{last}.{i}@test.com").to_lowercase();
        let (age, salary) = (18 + self.whole(60), f64::from(30_000 + self.whole(170_000)));
        let (department, city) = (self.one_of(&DEPARTMENT), self.one_of(&CITY));
        let (country, status) = (self.one_of(&COUNTRY), self.one_of(&STATUS));
        let (score, verified) = (f64::from(self.whole(10_000)) / 100.0, self.random.unit() < 0.5);
        let rating = 1 + self.whole(5);
        write!(
            out,
            "{{\"seq\":{i},\"name\":\"{first} {last}\",\"email\":\"{email}\",\"age\":{age},\"salary\":{salary:?},\
             \"department\":\"{department}\",\"city\":\"{city}\",\"country\":\"{country}\",\"status\":\"{status}\",\
             \"score\":{score:?},\"verified\":{verified},\"rating\":{rating},\"tags\":["
        )
        .expect("a vector takes all");
        for n in 0..=self.whole(3) {
            let tag = self.one_of(&TAG);
            write!(out, "{}\"{tag}\"", if n > 0 { "," } else { "" }).expect("a vector takes all");
        }
        let (number, zip) = (100 + self.whole(9900), self.whole(100_000));
        write!(out, "],\"address\":{{\"street\":\"{number} Main St\",\"zip\":\"{zip:05}\"}}}}")
            .expect("a vector takes all");
        self.seq += 1;
    }
}

/// Documents in memory as lines, and where each stands.
#[derive(Debug)]
pub struct Lines {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    /// The first `documents` employees.
    #[must_use]
    pub fn employees(documents: usize, seed: u32) -> Self {
        let mut employees = Employees::new(seed);
        Self::written(documents, |out| employees.append(out))
    }

    /// The first `events` of a firehose that has no more.
    #[must_use]
    pub fn events(events: usize, seed: u32) -> Self {
        let mut firehose = Firehose::new(seed, events);
        Self::written(events, |out| firehose.append(out))
    }

    /// So many documents, each appended by `append`.
    #[must_use]
    pub fn written(documents: usize, mut append: impl FnMut(&mut Vec<u8>)) -> Self {
        let mut lines = Self { text: Vec::with_capacity(documents * 300), ends: Vec::with_capacity(documents) };
        for _ in 0..documents {
            append(&mut lines.text);
            lines.text.push(b'\n');
            lines.ends.push(lines.text.len());
        }
        lines
    }

    /// All of it: a document a line.
    #[must_use]
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// How many documents.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The documents, without their line's end.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|i| self.get(i))
    }

    /// The `i`th document, without its line's end.
    ///
    /// # Panics
    /// Where there are not so many.
    #[must_use]
    pub fn get(&self, i: usize) -> &[u8] {
        let from = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.text[from..self.ends[i] - 1]
    }

    /// Bodies of `insertMany`, `size` documents each.
    #[must_use]
    pub fn batches(&self, size: usize) -> Vec<Vec<u8>> {
        let mut batches = Vec::new();
        let mut documents = self.iter().peekable();
        while documents.peek().is_some() {
            let mut body = Vec::with_capacity(size * 300);
            body.extend_from_slice(b"{\"documents\":[");
            for (n, document) in documents.by_ref().take(size).enumerate() {
                if n > 0 {
                    body.push(b',');
                }
                body.extend_from_slice(document);
            }
            body.extend_from_slice(b"]}");
            batches.push(body);
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Expected: the suites' generator in Python, seed 42.
    const SECOND: &str = r#"{"seq":1,"name":"Ivy Miller","email":"ivy.miller.1@test.com","age":31,"salary":130175.0,"department":"Engineering","city":"Tokyo","country":"CA","status":"suspended","score":27.78,"verified":true,"rating":4,"tags":["enterprise"],"address":{"street":"1057 Main St","zip":"84749"}}"#;

    #[test]
    fn the_documents_are_those_of_the_other_engines() {
        let lines = Lines::employees(10_000, SEED);
        assert_eq!(lines.iter().nth(1).map(String::from_utf8_lossy).as_deref(), Some(SECOND));
        assert_eq!(lines.text().len(), 2_892_902);
        // FNV-1a of the 10,000 lines.
        let hash = |h: u64, b: &u8| (h ^ u64::from(*b)).wrapping_mul(0x0100_0000_01b3);
        assert_eq!(lines.text().iter().fold(0xcbf2_9ce4_8422_2325, hash), 0x540f_0888_3086_7438);
    }

    #[test]
    fn batches_hold_each_document_once() {
        let lines = Lines::employees(25, SEED);
        let batches = lines.batches(10);
        let counts: Vec<usize> = batches
            .iter()
            .map(|b| serde_json::from_slice::<serde_json::Value>(b).unwrap()["documents"].as_array().unwrap().len())
            .collect();
        assert_eq!(counts, [10, 10, 5]);
    }
}
