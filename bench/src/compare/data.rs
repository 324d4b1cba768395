//! What a suite stores, and what each of its rows has for an answer: by going through the documents one by one.

use super::question::Grouping;
use super::rows::{Ask, Row, small_document};
use crate::answer::{Digest, Rows, hash_of};
use crate::dataset::{Employees, Lines, SEED};
use crate::mersenne::Mersenne;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Write as _;

/// Documents in one batch.
pub const BATCH: usize = 1000;

/// The documents, each with an `_id` that is its number.
#[derive(Debug)]
pub struct Data {
    /// As text.
    pub lines: Lines,
    /// The hash of each.
    pub hashes: Vec<u64>,
    /// Of all.
    pub all: Digest,
}

/// What a row should answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Truth {
    /// These documents: to be found, or to be gone.
    Documents(Digest),
    /// Rows of a grouping.
    Rows(Rows),
}

impl Data {
    /// So many employees.
    #[must_use]
    pub fn employees(documents: usize) -> Self {
        let mut employees = Employees::new(SEED);
        let (mut n, mut one) = (0_usize, Vec::new());
        Self::of(Lines::written(documents, |out| {
            one.clear();
            employees.append(&mut one);
            let _ = write!(out, "{{\"_id\":{n},");
            out.extend_from_slice(one.get(1..).unwrap_or_default());
            n += 1;
        }))
    }

    /// So many small documents.
    #[must_use]
    pub fn small(documents: usize) -> Self {
        let mut random = Mersenne::new(SEED);
        let mut n = 0;
        Self::of(Lines::written(documents, |out| {
            small_document(&mut random, n, out);
            n += 1;
        }))
    }

    fn of(lines: Lines) -> Self {
        let hashes: Vec<u64> = lines.iter().map(|line| hash_of(&parsed(line))).collect();
        let mut all = Digest::default();
        hashes.iter().for_each(|hash| all.add_hash(*hash));
        Self { lines, hashes, all }
    }

    /// What each of `rows` should answer.
    #[must_use]
    pub fn truth(&self, rows: &[Row]) -> Vec<Truth> {
        let mut digests = vec![Digest::default(); rows.len()];
        let mut groups: Vec<BTreeMap<Option<String>, (u64, f64)>> = vec![BTreeMap::new(); rows.len()];
        for (line, hash) in self.lines.iter().zip(&self.hashes) {
            let document = parsed(line);
            for ((row, digest), groups) in rows.iter().zip(&mut digests).zip(&mut groups) {
                match &row.ask {
                    Ask::Insert | Ask::Index(_) | Ask::Get => digest.add_hash(*hash),
                    Ask::Find(condition) | Ask::Count(condition) | Ask::Update(condition) | Ask::Delete(condition) => {
                        if condition.holds(&document) {
                            digest.add_hash(*hash);
                        }
                    }
                    Ask::Group(grouping) => {
                        if let Some((key, number)) = grouping.takes(&document) {
                            let (count, sum) = groups.entry(key).or_default();
                            *count += 1;
                            *sum += number;
                        }
                    }
                }
            }
        }
        let answers = rows.iter().zip(digests).zip(groups);
        answers
            .map(|((row, digest), groups)| match &row.ask {
                Ask::Group(grouping) => Truth::Rows(table(grouping, groups)),
                _ => Truth::Documents(digest),
            })
            .collect()
    }
}

fn parsed(line: &[u8]) -> Value {
    serde_json::from_slice(line).expect("the documents are JSON")
}

fn table(grouping: &Grouping, groups: BTreeMap<Option<String>, (u64, f64)>) -> Rows {
    let mut groups: Vec<_> = groups.into_iter().collect();
    if let Some(top) = grouping.top {
        groups.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        groups.truncate(top as usize);
    }
    let row = |(key, (count, sum)): (Option<String>, (u64, f64))| {
        let mut row = vec![json!(key), json!(count)];
        row.extend(grouping.average.map(|_| json!(sum / count as f64)));
        row
    };
    groups.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::super::rows::employees;
    use super::*;

    #[test]
    fn the_truth_is_what_the_text_says() {
        let data = Data::employees(2_000);
        let rows = employees();
        let truth = data.truth(&rows);
        let of = |name: &str| &truth[rows.iter().position(|r| r.name == name).unwrap()];
        assert_eq!(*of("insert"), Truth::Documents(data.all));
        // Counted in the text itself.
        let text = String::from_utf8_lossy(data.lines.text()).into_owned();
        let with = |part: &str| text.lines().filter(|l| l.contains(part)).count() as u64;
        let documents = |name| match of(name) {
            Truth::Documents(digest) => digest.documents,
            Truth::Rows(rows) => rows.len() as u64,
        };
        assert_eq!(documents("find: department"), with("\"department\":\"Engineering\""));
        assert_eq!(documents("find: verified"), with("\"verified\":true"));
        assert_eq!(documents("find: zip range"), with("\"zip\":\"5"));
        assert_eq!(documents("delete: status"), with("\"status\":\"inactive\""));
        let Truth::Rows(rows) = of("group: department, avg") else { panic!("a grouping has rows") };
        assert_eq!(rows.len(), 5);
        let hr = rows.iter().find(|r| r[0] == "HR").unwrap();
        assert_eq!(hr[1], with("\"department\":\"HR\""));
        let average = hr[2].as_f64().unwrap();
        assert!((100_000.0..130_000.0).contains(&average), "{average}");
        assert_eq!(documents("group: top 5 cities"), 5);
    }
}
