//! Engines of others, found by address or on the path.
//!
//! `postgres.rs` (its cluster by address, or one that `cluster.rs` makes), `mongo.rs` (anything that speaks MongoDB's
//! protocol, by address), `sqlite.rs` (linked). One that is not there is left out with a word; one that is there and fails
//! ends the run.

mod cluster;
mod mongo;
mod postgres;
mod sqlite;

use super::columns::Columns;
use super::data::Data;
use super::engine::{Durability, Engine};
use super::matrix::Matrix;
use super::ours::Ours;
use super::rows::{employees, small};
use super::singles::singles;
use super::{SMALL, compared};
use crate::report::Report;
use crate::suite::say;
use std::io;

/// What a comparison with others does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Employee documents: the 24 rows once for each of these sizes.
    pub sizes: Vec<usize>,
    /// Figures are medians of so many.
    pub repetitions: usize,
    /// Divides how often short questions are asked.
    pub hurry: usize,
    /// Equal for all.
    pub durability: Durability,
    /// Which engines beside ours, all if empty.
    pub peers: Vec<String>,
    /// Which of `rows`, `small` and `single`, all if empty.
    pub only: Vec<String>,
}

/// Ours beside whoever is there.
///
/// # Errors
/// Where an engine fails or answers wrongly.
pub fn beside(plan: &Plan, report: &mut Report) -> io::Result<()> {
    let does = |group: &str| plan.only.is_empty() || plan.only.iter().any(|o| o == group);
    let (repetitions, hurry, durability) = (plan.repetitions, plan.hurry, plan.durability);
    let mut engines = found(durability, &plan.peers)?;
    if does("rows") {
        for size in &plan.sizes {
            let (data, rows) = (Data::employees(*size), employees());
            report.attach(compared("suite A", data, rows, repetitions, hurry, &mut engines, durability)?);
        }
    }
    if does("small") {
        let (data, rows) = (Data::small(SMALL), small());
        report.attach(compared("small documents", data, rows, repetitions, hurry, &mut engines, durability)?);
    }
    if does("single") {
        let title = format!("single operations, durability {}", durability.option());
        let mut matrix = Matrix::new(&title, &[], &engines);
        for repetition in 0..repetitions {
            say(&format!("{title}: repetition {} of {repetitions}", repetition + 1));
            singles(repetition, hurry, &mut engines, &mut matrix)?;
        }
        report.attach(matrix);
    }
    Ok(())
}

/// Ours and whoever is there. `only` leaves others out by the beginning of their name.
///
/// # Errors
/// Where ours does not start, or one that is there does not.
pub fn found(durability: Durability, only: &[String]) -> io::Result<Vec<Box<dyn Engine>>> {
    let wanted =
        |name: &str| only.is_empty() || only.iter().any(|w| name.to_lowercase().starts_with(&w.to_lowercase()));
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(Ours::start(durability)?)];
    if wanted("postgresql") {
        match postgres::Postgres::start(durability)? {
            Some(engine) => engines.push(Box::new(engine)),
            None => say("no PostgreSQL: neither QUARRYDB_BENCH_POSTGRES nor initdb"),
        }
    }
    if wanted("mongodb") {
        let addresses = std::env::var("QUARRYDB_BENCH_MONGODB").unwrap_or_default();
        for address in addresses.split_whitespace() {
            engines.push(Box::new(mongo::Mongo::connect(address, durability)?));
        }
        if addresses.is_empty() {
            say("no server of MongoDB's protocol: QUARRYDB_BENCH_MONGODB names none");
        }
    }
    if wanted("sqlite") {
        engines.push(Box::new(sqlite::Sqlite::start(durability)?));
    }
    if wanted("duckdb") {
        match Columns::start()? {
            Some(engine) => engines.push(Box::new(engine)),
            None => say("no DuckDB: Python does not have the module"),
        }
    }
    Ok(engines)
}

/// An engine's error as ours.
fn other(error: impl std::error::Error) -> io::Error {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        said = format!("{said}: {inner}");
        cause = inner.source();
    }
    io::Error::other(said)
}
