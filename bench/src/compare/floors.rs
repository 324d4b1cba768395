//! The floors of a comparison's rows: what the same question costs where nothing is behind it.
//!
//! For documents found, copying as many bytes once and sending them over loopback; for short answers, a bare axum program
//! that drops the same request and answers a constant; for inserts, the same program parsing and appending the batches.

use super::data::{BATCH, Data, Truth};
use super::matrix::{HTTP, Matrix, PRINT, WRITE};
use super::ours::Ours;
use super::rows::{Ask, Row};
use super::run::Suite;
use crate::client::{Connection, request};
use crate::floor::http::Work;
use crate::floor::machine::print_rate;
use crate::load::closed_loop;
use crate::server::{Scratch, Server};
use crate::timed::{Pace, Times, clocked, timed};
use std::io;
use std::time::Duration;

/// Bytes of a short answer.
const SHORT_BYTES: usize = 120;
/// Bytes of an `insertMany` answer for a document.
const ID_BYTES: usize = 9;
const PACE: Pace = Pace { least: 20, most: 400, budget: Duration::from_millis(200) };

/// The programs behind the floors, started once.
#[derive(Debug)]
pub struct Floors {
    constant: Server,
    write: Server,
    batches: Vec<Vec<u8>>,
    /// The programs' logs.
    _scratch: [Scratch; 2],
}

impl Floors {
    /// Starts them; `synced` is for comparisons in which each write is.
    ///
    /// # Errors
    /// Where one does not start.
    pub fn start(data: &Data, synced: bool) -> io::Result<Self> {
        let scratch = [Scratch::new("floor-http")?, Scratch::new("floor-write")?];
        let work = if synced { Work::WriteSynced } else { Work::Write };
        let constant = Server::floor(scratch[0].path(), Work::Constant, SHORT_BYTES)?;
        let write = Server::floor(scratch[1].path(), work, BATCH * ID_BYTES)?;
        let batches = data.lines.batches(BATCH).iter().map(|body| request("POST", "/", &[], body)).collect();
        Ok(Self { constant, write, batches, _scratch: scratch })
    }

    /// Measures the floor of a row, where it has one.
    ///
    /// # Errors
    /// Where a floor's program fails.
    pub fn measure(&mut self, suite: &Suite, row: &Row, truth: &Truth, matrix: &mut Matrix) -> io::Result<()> {
        let nanos = |seconds: f64| Times::new(vec![(seconds * 1e9) as u64]);
        match (&row.ask, truth) {
            (Ask::Insert, _) => {
                let outcome = closed_loop(self.write.address(), 1, &self.batches)?;
                matrix.add(row.name, WRITE, &nanos(outcome.elapsed.as_secs_f64()));
            }
            (Ask::Find(_), Truth::Documents(digest)) => {
                let text = suite.data.lines.text();
                let each = text.len() / suite.data.lines.len().max(1);
                let bytes = (digest.documents as usize * each).clamp(1, text.len());
                let rate = print_rate(&text[..bytes])?;
                matrix.add(row.name, PRINT, &nanos(bytes as f64 / rate));
            }
            (Ask::Count(_) | Ask::Group(_) | Ask::Get, _) => {
                let request = Ours::request_of(&row.ask);
                let mut connection = Connection::open(self.constant.address())?;
                let times = timed(PACE, || clocked(|| connection.fetch(&request)), |_| Ok(()))?;
                matrix.add(row.name, HTTP, &times);
            }
            _ => {}
        }
        Ok(())
    }
}
