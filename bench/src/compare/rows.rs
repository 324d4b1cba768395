//! The rows of a suite: what is asked, in which order, and by how much ours is to be ahead.
//!
//! `employees` are the 24 of the published suites, `small` the ones on 10,000 documents of 99 bytes. Rows that change what
//! is stored come where the suites have them: inserts first, deletions last.

use super::question::Literal::{Bool, Number, Text};
use super::question::{Condition, Grouping};
use crate::mersenne::Mersenne;
use std::io::Write as _;

/// What a row does.
#[derive(Clone, Debug)]
pub enum Ask {
    /// All documents into an empty collection, a thousand at a time, one after the other.
    Insert,
    /// One index after the other; each is a list of text (`true`) and number fields.
    Index(Vec<Index>),
    /// All documents that are meant, whole.
    Find(Condition),
    /// How many are meant.
    Count(Condition),
    /// A grouping.
    Group(Grouping),
    /// Single documents by `_id`, one after the other.
    Get,
    /// Adds 1 to `visits` of those that are meant.
    Update(Condition),
    /// Deletes those that are meant.
    Delete(Condition),
}

/// Fields of an index, each with whether it holds text.
pub type Index = Vec<(&'static str, bool)>;

/// What ours beside its floor should be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Nothing was agreed on.
    Open,
    /// At most so many times the floor that the ask has: the print floor for documents, else the HTTP floor.
    Floor(f64),
    /// At most the HTTP floor and what an engine of columns takes in its own process.
    Columns,
}

/// One row.
#[derive(Clone, Debug)]
pub struct Row {
    /// For a table; unique in its suite.
    pub name: &'static str,
    /// What is done.
    pub ask: Ask,
    /// Whether its time is a figure; others only prepare.
    pub counts: bool,
    /// Ours is to be so many times faster than the best server.
    pub ahead: f64,
    /// And this beside its floor.
    pub bound: Bound,
}

fn row(name: &'static str, ask: Ask, ahead: f64, bound: Bound) -> Row {
    Row { name, ask, counts: true, ahead, bound }
}

fn engineering() -> Condition {
    Condition::Is("department", Text("Engineering"))
}

fn sales_and_active() -> Condition {
    Condition::And(vec![Condition::Is("department", Text("Sales")), Condition::Is("status", Text("active"))])
}

fn salaries() -> Condition {
    Condition::Between("salary", Number(80_000.0), Number(120_000.0))
}

/// The 24, and what prepares two of them.
#[must_use]
pub fn employees() -> Vec<Row> {
    let of_print = Bound::Floor(4.0);
    let find = |name, condition, ahead| row(name, Ask::Find(condition), ahead, of_print);
    let count = |name, condition| row(name, Ask::Count(condition), 1.0, Bound::Floor(1.15));
    let age_50 = || Condition::From("age", Number(50.0), None);
    let tokyo_or = vec![Condition::Is("department", Text("HR")), Condition::Is("city", Text("Tokyo"))];
    let by = |by, average, top, matched| Ask::Group(Grouping { matched, by, average, top });
    let indexes = vec![vec![("department", true)], vec![("age", false)], vec![("city", true)], vec![("salary", false)]];
    let more = vec![vec![("department", true), ("status", true)], vec![("score", false)]];
    vec![
        row("insert", Ask::Insert, 2.0, Bound::Open),
        find("find: department", engineering(), 6.0),
        find("find: age >= 50", age_50(), 6.0),
        find("find: department and status", sales_and_active(), 6.0),
        find("find: $or of department and city", Condition::Or(tokyo_or), 6.0),
        find("find: $in of two cities", Condition::OneOf("city", &["Tokyo", "London"]), 6.0),
        find("find: salary range", salaries(), 6.0),
        find("find: verified", Condition::Is("verified", Bool(true)), 6.0),
        find("find: zip range", Condition::From("address.zip", Text("50000"), Some(Text("60000"))), 6.0),
        row("four indexes", Ask::Index(indexes), 4.0, Bound::Open),
        find("indexed: department", Condition::Is("department", Text("Sales")), 4.0),
        find("indexed: age >= 60", Condition::From("age", Number(60.0), None), 4.0),
        find("indexed: city", Condition::Is("city", Text("Tokyo")), 4.0),
        find("indexed: salary range", salaries(), 4.0),
        count("count: all", Condition::All),
        count("count: department", engineering()),
        count("count: age >= 50", age_50()),
        row(
            "group: department, avg",
            by(Some("department"), Some("salary"), None, Condition::All),
            1.0,
            Bound::Columns,
        ),
        row("group: top 5 cities", by(Some("city"), None, Some(5), Condition::All), 1.0, Bound::Floor(1.3)),
        row("match two, group, avg", by(None, Some("salary"), None, sales_and_active()), 1.0, Bound::Columns),
        Row { counts: false, ..row("two more indexes", Ask::Index(more), 1.0, Bound::Open) },
        find("indexed: compound", sales_and_active(), 4.0),
        row("findOne by _id", Ask::Get, 1.0, Bound::Floor(1.0 / 0.85)),
        find("indexed: score range", Condition::From("score", Number(45.0), Some(Number(55.0))), 4.0),
        row("delete: status", Ask::Delete(Condition::Is("status", Text("inactive"))), 1.0, Bound::Open),
    ]
}

/// Those on small documents. Change streams have a group of their own.
#[must_use]
pub fn small() -> Vec<Row> {
    let half = || Condition::From("age", Number(50.0), Some(Number(100.0)));
    let by = |top, matched| Ask::Group(Grouping { matched, by: Some("group"), average: Some("score"), top });
    let three = |name, ask| row(name, ask, 3.0, Bound::Open);
    vec![
        three("small: insert", Ask::Insert),
        Row { counts: false, ..three("small: an index", Ask::Index(vec![vec![("age", false)]])) },
        three("small: indexed range", Ask::Find(half())),
        three("small: full scan", Ask::Find(Condition::All)),
        three("small: filtered scan", Ask::Find(Condition::Is("active", Bool(true)))),
        three("small: update half", Ask::Update(half())),
        three("small: group", by(None, Condition::All)),
        three("small: match, group, sort, limit", by(Some(5), half())),
        three("small: delete half", Ask::Delete(half())),
    ]
}

/// A small document, the `n`th, without a line's end.
pub fn small_document(random: &mut Mersenne, n: usize, out: &mut Vec<u8>) {
    let (age, group) = (n % 100, random.below(20));
    let (score, active) = (f64::from(random.below(100_000)) / 100.0, random.unit() < 0.5);
    // A vector takes all.
    let _ = write!(
        out,
        "{{\"_id\":{n},\"name\":\"user number {n:06}\",\"age\":{age},\"group\":\"g{group:02}\",\"score\":{score:?},\
         \"active\":{active},\"visits\":0}}"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_suite_has_24_rows() {
        for (rows, figures) in [(employees(), 24), (small(), 8)] {
            assert_eq!(rows.iter().filter(|r| r.counts).count(), figures);
            assert_eq!(rows.iter().map(|r| r.name).collect::<HashSet<_>>().len(), rows.len());
        }
    }

    #[test]
    fn a_small_document_is_small() {
        let (mut random, mut out) = (Mersenne::new(42), Vec::new());
        (0..1000).for_each(|n| small_document(&mut random, n, &mut out));
        assert!((95..105).contains(&(out.len() / 1000)), "{} bytes each", out.len() / 1000);
    }
}
