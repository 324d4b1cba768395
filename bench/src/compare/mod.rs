//! Ours beside others: the same questions to every engine, their answers held to the truth before their times are kept.
//!
//! Reading order: `question.rs` (what is asked, once for all), `rows.rs` (the suites), `data.rs` (documents and what the
//! answers should be), `engine.rs` (what an engine must do), `run.rs` (who is asked when), `matrix.rs` (what came out).
//! `ours.rs` and `columns.rs` are engines that need nothing but what a machine has; `peers/` are those behind the feature
//! of that name.

pub mod columns;
pub mod data;
pub mod engine;
pub mod floors;
pub mod matrix;
pub mod ours;
#[cfg(feature = "peers")]
pub mod peers;
pub mod question;
pub mod rows;
pub mod run;
pub mod singles;

use data::Data;
use engine::{Durability, Engine};
use floors::Floors;
use matrix::Matrix;
use rows::Row;
use run::Suite;
use std::io;

/// Documents of the suite of small ones.
pub const SMALL: usize = 10_000;

/// Ours, beside its floors and DuckDB where there is one: `rows` on `data`.
///
/// # Errors
/// Where an engine fails or answers wrongly.
pub fn alone(title: &str, data: Data, rows: Vec<Row>, repetitions: usize, hurry: usize) -> io::Result<Matrix> {
    let durability = Durability::Interval;
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(ours::Ours::start(durability)?)];
    if let Some(columns) = columns::Columns::start()? {
        engines.push(Box::new(columns));
    }
    compared(title, data, rows, repetitions, hurry, &mut engines, durability)
}

/// These engines on these documents, beside the floors.
///
/// # Errors
/// Where an engine fails or answers wrongly.
pub fn compared(
    title: &str,
    data: Data,
    rows: Vec<Row>,
    repetitions: usize,
    hurry: usize,
    engines: &mut [Box<dyn Engine>],
    durability: Durability,
) -> io::Result<Matrix> {
    let title = format!("{title}, {} documents, durability {}", data.lines.len(), durability.option());
    let mut matrix = Matrix::new(&title, &rows, engines);
    let suite = Suite::new(data, rows, hurry);
    let mut floors = Floors::start(&suite.data, durability == Durability::Commit)?;
    for repetition in 0..repetitions {
        crate::suite::say(&format!("{title}: repetition {} of {repetitions}", repetition + 1));
        suite.repeat(repetition, engines, Some(&mut floors), &mut matrix)?;
    }
    Ok(matrix)
}
