//! The harness under attack: engines that answer wrongly, and a server of ours that is made to skip work, are found out.
//!
//! The engine here is a model that goes through its documents one by one; each flaw is one lie in one operation. The
//! server stands behind a gate that hands requests on, but for those that it answers itself.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use common::gate::{Gate, Lie};
use quarrydb_bench::answer::Rows;
use quarrydb_bench::compare::data::Data;
use quarrydb_bench::compare::engine::{Durability, Engine, Place, Reader, Timed, lines};
use quarrydb_bench::compare::matrix::Matrix;
use quarrydb_bench::compare::ours::Ours;
use quarrydb_bench::compare::question::{Condition, Grouping};
use quarrydb_bench::compare::rows::{Index, employees, small};
use quarrydb_bench::compare::run::Suite;
use quarrydb_bench::server::{Scratch, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

const DOCUMENTS: usize = 400;

/// What an engine does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    None,
    LosesOneOnInsert,
    LosesOneOnFind,
    FindsOneTwice,
    ChangesANumber,
    ForgetsAField,
    CountsAll,
    AveragesRoughly,
    GroupsTheFirstHalf,
    GetsTheNext,
    DeletesOneLess,
    OnlySaysItDeleted,
    OnlySaysItUpdated,
}

struct Model {
    flaw: Flaw,
    documents: Vec<Value>,
}

const AT_ONCE: Duration = Duration::from_micros(1);

impl Model {
    fn meant(&self, condition: &Condition) -> Vec<&Value> {
        self.documents.iter().filter(|d| condition.holds(d)).collect()
    }

    fn write(documents: &[Value], into: &mut Vec<u8>) -> Reader {
        for document in documents {
            into.extend_from_slice(document.to_string().as_bytes());
            into.push(b'\n');
        }
        lines
    }
}

impl Engine for Model {
    fn name(&self) -> &str {
        "model"
    }

    fn describe(&self) -> String {
        format!("{:?}", self.flaw)
    }

    fn place(&self) -> Place {
        Place::InProcess
    }

    fn fresh(&mut self) -> io::Result<()> {
        self.documents.clear();
        Ok(())
    }

    fn insert(&mut self, data: &Data) -> io::Result<Duration> {
        self.documents = data.lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect();
        if self.flaw == Flaw::LosesOneOnInsert {
            self.documents.pop();
        }
        Ok(AT_ONCE)
    }

    fn rest(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn index(&mut self, _: &Index) -> io::Result<Duration> {
        Ok(AT_ONCE)
    }

    fn find(&mut self, condition: &Condition, into: &mut Vec<u8>) -> Timed<Reader> {
        let mut found: Vec<Value> = self.meant(condition).into_iter().cloned().collect();
        match self.flaw {
            Flaw::LosesOneOnFind => drop(found.pop()),
            Flaw::FindsOneTwice => {
                found.pop();
                found.push(found[0].clone());
            }
            Flaw::ChangesANumber => {
                let age = found[0]["age"].as_i64().unwrap();
                found[0]["age"] = json!(age + 1);
            }
            Flaw::ForgetsAField => drop(found[0].as_object_mut().unwrap().remove("age")),
            _ => found.reverse(),
        }
        Ok((Self::write(&found, into), AT_ONCE))
    }

    fn count(&mut self, condition: &Condition) -> Timed<u64> {
        let counted = if self.flaw == Flaw::CountsAll { &Condition::All } else { condition };
        Ok((self.meant(counted).len() as u64, AT_ONCE))
    }

    fn group(&mut self, grouping: &Grouping) -> Timed<Rows> {
        let seen = if self.flaw == Flaw::GroupsTheFirstHalf { self.documents.len() / 2 } else { self.documents.len() };
        let mut groups: BTreeMap<Option<String>, Vec<f64>> = BTreeMap::new();
        for (key, number) in self.documents[..seen].iter().filter_map(|d| grouping.takes(d)) {
            groups.entry(key).or_default().push(number);
        }
        let off = if self.flaw == Flaw::AveragesRoughly { 1.000_01 } else { 1.0 };
        let row = |(key, numbers): (Option<String>, Vec<f64>)| {
            let mut row = vec![json!(key), json!(numbers.len())];
            row.extend(grouping.average.map(|_| json!(numbers.iter().sum::<f64>() / numbers.len() as f64 * off)));
            row
        };
        let mut rows: Rows = groups.into_iter().map(row).collect();
        if let Some(top) = grouping.top {
            rows.sort_by_key(|row| std::cmp::Reverse(row[1].as_u64()));
            rows.truncate(top as usize);
        }
        Ok((rows, AT_ONCE))
    }

    fn get(&mut self, id: usize, into: &mut Vec<u8>) -> Timed<Reader> {
        let id = if self.flaw == Flaw::GetsTheNext { (id + 1) % DOCUMENTS } else { id };
        let found = self.documents.iter().find(|d| d["_id"] == id).cloned();
        Ok((Self::write(&found.into_iter().collect::<Vec<Value>>(), into), AT_ONCE))
    }

    fn update(&mut self, condition: &Condition) -> Timed<u64> {
        let count = self.meant(condition).len() as u64;
        if self.flaw != Flaw::OnlySaysItUpdated {
            for document in self.documents.iter_mut().filter(|d| condition.holds(d)) {
                document["visits"] = json!(document["visits"].as_i64().unwrap_or(0) + 1);
            }
        }
        Ok((count, AT_ONCE))
    }

    fn delete(&mut self, condition: &Condition) -> Timed<u64> {
        let count = self.meant(condition).len() as u64;
        let first = self.documents.iter().position(|d| condition.holds(d)).unwrap();
        let kept = self.documents[first].clone();
        if self.flaw != Flaw::OnlySaysItDeleted {
            self.documents.retain(|d| !condition.holds(d));
        }
        if self.flaw == Flaw::DeletesOneLess {
            self.documents.push(kept);
        }
        Ok((count, AT_ONCE))
    }
}

/// Both suites on one engine: what the harness says of it.
fn judged(mut engines: Vec<Box<dyn Engine>>) -> io::Result<()> {
    let suites =
        [Suite::new(Data::employees(DOCUMENTS), employees(), 50), Suite::new(Data::small(DOCUMENTS), small(), 50)];
    suites.iter().try_for_each(|suite| {
        let mut matrix = Matrix::new("judged", &suite.rows, &engines);
        suite.repeat(0, &mut engines, None, &mut matrix)
    })
}

#[test]
fn an_engine_that_answers_wrongly_is_named_with_the_row() {
    judged(vec![Box::new(Model { flaw: Flaw::None, documents: Vec::new() })]).unwrap();
    for (flaw, row) in [
        (Flaw::LosesOneOnInsert, "insert"),
        (Flaw::LosesOneOnFind, "all documents after insert"),
        (Flaw::FindsOneTwice, "all documents after insert"),
        (Flaw::ChangesANumber, "all documents after insert"),
        (Flaw::ForgetsAField, "all documents after insert"),
        (Flaw::CountsAll, "count: department"),
        (Flaw::AveragesRoughly, "group: department, avg"),
        (Flaw::GroupsTheFirstHalf, "group: department, avg"),
        (Flaw::GetsTheNext, "findOne by _id"),
        (Flaw::DeletesOneLess, "delete: status"),
        (Flaw::OnlySaysItDeleted, "delete: status"),
        (Flaw::OnlySaysItUpdated, "small: update half"),
    ] {
        let said = judged(vec![Box::new(Model { flaw, documents: Vec::new() })]).unwrap_err().to_string();
        assert!(said.starts_with(&format!("model, {row}: ")), "{flaw:?}: {said}");
    }
}

#[test]
fn one_wrong_engine_among_right_ones_ends_the_run() {
    let model = |flaw| -> Box<dyn Engine> { Box::new(Model { flaw, documents: Vec::new() }) };
    judged(vec![model(Flaw::None), model(Flaw::None)]).unwrap();
    assert!(judged(vec![model(Flaw::None), model(Flaw::CountsAll), model(Flaw::None)]).is_err());
}

#[test]
fn a_server_of_ours_that_skips_work_is_found_out() {
    common::built();
    for (lie, row) in [
        (Lie::None, None),
        (Lie::OneBatchIsDropped, Some("insert")),
        (Lie::TheFirstAnswerToAFindIsGivenAgain, Some("find: department")),
        (Lie::DeletesAreOnlySaid, Some("delete: status")),
    ] {
        let scratch = Scratch::new(&format!("honesty-{lie:?}")).unwrap();
        let server = Server::product(scratch.path(), "interval:100ms").unwrap();
        let gate = Gate::before(server.address(), lie);
        let ours = Ours::at(gate.address(), Durability::Interval).unwrap();
        let suite = Suite::new(Data::employees(2 * DOCUMENTS + 500), employees(), 50);
        let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(ours)];
        let mut matrix = Matrix::new("judged", &suite.rows, &engines);
        let said = suite.repeat(0, &mut engines, None, &mut matrix);
        match row {
            None => said.unwrap(),
            Some(row) => {
                let said = said.unwrap_err().to_string();
                assert!(said.starts_with(&format!("QuarryDB, {row}: ")), "{lie:?}: {said}");
            }
        }
    }
}
