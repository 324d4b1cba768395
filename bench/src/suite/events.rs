//! The five questions about events: aggregations by HTTP, beside the HTTP floor and beside DuckDB in its own process.
//!
//! Every answer that is timed is held to what going through the events one by one gave.

use super::{Round, say};
use crate::answer::{Rows, agree, rows};
use crate::client::{Connection, head, request};
use crate::dataset::{Lines, SEED};
use crate::duckdb::DuckDb;
use crate::events::{FLAT, QUESTIONS, Question, answers};
use crate::floor::http::Work;
use crate::report::{Goal, Sample};
use crate::server::{Scratch, Server};
use crate::timed::{Pace, Times, clocked, timed};
use std::io;
use std::path::Path;
use std::time::Duration;

const EVENTS: &str = "/v1/db/bench/events";
/// A question is asked so often in one repetition.
const PACE: Pace = Pace { least: 5, most: 200, budget: Duration::from_secs(2) };
/// Times DuckDB's: within reach of columns without a server between.
const BESIDE_COLUMNS: f64 = 2.0;

impl Round<'_> {
    /// All of it, on a server of its own.
    pub(super) fn events(&mut self) -> io::Result<()> {
        let lines = Lines::events(self.lines.len(), SEED);
        say(&format!("  {} events", lines.len()));
        let truth = answers(lines.iter());
        let scratch = Scratch::new("events")?;
        let mut duck = started(scratch.path(), &lines)?;
        let server = Server::product(&scratch.path().join("data"), "interval:100ms")?;
        let mut connection = Connection::open(server.address())?;
        let kind = ("Content-Type", "application/x-ndjson");
        let import = head("POST", &format!("{EVENTS}/import"), &[kind], lines.text().len());
        let answer = connection.exchange_into(&import, lines.text(), &mut |_| {})?;
        if answer.status != 200 {
            return Err(io::Error::other(format!("import of events answered {}", answer.status)));
        }
        server.settle()?;
        let goals_bind = lines.len() >= 1_000_000;
        for (question, expected) in QUESTIONS.iter().zip(&truth) {
            let row = format!("events: {}", question.name);
            say(&format!("  {row}"));
            let body = format!("{{\"pipeline\":{}}}", question.pipeline);
            let asked = request("POST", &format!("{EVENTS}/aggregate"), &[], body.as_bytes());
            let theirs = columns(duck.as_mut(), question, expected)?;
            let (status, first) = connection.fetch(&asked)?;
            if status == 501 {
                self.report.absent(&row, "not built");
                continue;
            }
            let judged = |status: u16, body: &[u8]| {
                let said = |e: String| format!("{row}: {e}");
                if status != 200 {
                    return Err(said(format!("answered {status} {}", String::from_utf8_lossy(body))));
                }
                agree(expected, &rows(body, question.fields).map_err(said)?, question.ordered).map_err(said)
            };
            judged(status, &first).map_err(io::Error::other)?;
            let ours = timed(PACE, || clocked(|| connection.fetch(&asked)), |(status, body)| judged(*status, body))?;
            let floor = {
                let scratch = Scratch::new("floor")?;
                let floor = Server::floor(scratch.path(), Work::Constant, first.len())?;
                let mut connection = Connection::open(floor.address())?;
                timed(PACE, || clocked(|| connection.fetch(&asked)), |_| Ok(()))?
            };
            let goal = if goals_bind { Goal::AtMost(question.goal) } else { Goal::None };
            let sample = Sample::of(ours.millis(), floor.millis()).times(&ours, Some(&floor));
            self.record(&row, "ms", "HTTP", goal, sample);
            let Some(theirs) = theirs else { continue };
            let goal = if goals_bind { Goal::Within(BESIDE_COLUMNS) } else { Goal::None };
            let sample = Sample::of(ours.millis(), theirs.millis()).times(&ours, Some(&theirs));
            self.record(&format!("{row}, beside DuckDB"), "ms", "columns", goal, sample);
        }
        Ok(())
    }
}

/// DuckDB with the events in a flat table, where there is one on this machine.
fn started(dir: &Path, lines: &Lines) -> io::Result<Option<DuckDb>> {
    let Some(mut duck) = DuckDb::start(&dir.join("events.duckdb")) else {
        say("  no DuckDB on this machine: its rows are left out");
        return Ok(None);
    };
    let file = dir.join("events.ndjson");
    std::fs::write(&file, lines.text())?;
    duck.ask(&FLAT.replace("{}", &file.display().to_string()))?;
    std::fs::remove_file(&file)?;
    Ok(Some(duck))
}

/// What DuckDB took for a question, its answers held to the expected ones.
fn columns(duck: Option<&mut DuckDb>, question: &Question, expected: &Rows) -> io::Result<Option<Times>> {
    let Some(duck) = duck else { return Ok(None) };
    let said = |e: String| format!("events: {}, DuckDB: {e}", question.name);
    let judged = |rows: &Rows| agree(expected, rows, question.ordered).map_err(said);
    timed(PACE, || duck.ask(question.sql), judged).map(Some)
}
