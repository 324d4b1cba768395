//! The floors alone, without a server of ours: what this machine gives, and whether it is quiet enough to measure on.

use super::{BATCH, Round, say};
use crate::floor::http::Work;
use crate::load::{Outcome, closed_loop};
use crate::report::{Goal, Sample};
use crate::server::{Scratch, Server};
use std::io;

/// Bytes of a document found, as an answer.
const DOCUMENT_BYTES: usize = 350;

impl Round<'_> {
    /// Every floor once.
    pub(super) fn floors(&mut self) -> io::Result<()> {
        self.machine()?;
        for work in [Work::Constant, Work::Write, Work::WriteSynced] {
            for (connections, count) in [(1, 5000), (8, 30_000), (64, 60_000), (256, 60_000)] {
                let row = format!("floor: {}, {connections} connections", work.name());
                say(&format!("  {row}"));
                let requests = self.singles(self.requests(count).max(connections));
                let outcome = self.floor_under(work, DOCUMENT_BYTES, connections, &requests)?;
                let sample = Sample::alone(outcome.rate()).latencies(&outcome, &outcome);
                self.record(&row, "1/s", "", Goal::None, sample);
            }
        }
        for work in [Work::Write, Work::WriteSynced] {
            let outcome = self.floor_under(work, BATCH * DOCUMENT_BYTES / 10, 1, self.batches)?;
            let rate = self.lines.len() as f64 / outcome.elapsed.as_secs_f64();
            self.record(
                &format!("floor: {}, by {BATCH}", work.name()),
                "documents/s",
                "",
                Goal::None,
                Sample::alone(rate),
            );
        }
        let rate = self.floor_of_import()?;
        self.record("floor: ingest", "documents/s", "", Goal::None, Sample::alone(rate));
        Ok(())
    }

    fn floor_under(&self, work: Work, answer: usize, connections: usize, requests: &[Vec<u8>]) -> io::Result<Outcome> {
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), work, answer)?;
        closed_loop(floor.address(), connections, requests)
    }
}
