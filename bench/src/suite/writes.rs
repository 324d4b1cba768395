//! Loading by `insertMany` and by import, single inserts synced and not.

use super::{COLLECTION, Round, pair, say};
use crate::client::{Connection, head, request};
use crate::dataset::Lines;
use crate::floor::http::Work;
use crate::load::{Outcome, closed_loop};
use crate::report::{Goal, Sample};
use crate::server::{Scratch, Server, disk_bytes};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

/// Bytes of an `insertMany` answer for a document.
const ANSWER_BYTES_EACH: usize = 36;
/// Bytes of an `insertOne` answer.
const ANSWER_BYTES_ONE: usize = 52;
/// Connections, and single inserts sent by them together.
const SYNCED: [(usize, usize); 4] = [(1, 5000), (8, 20_000), (64, 60_000), (256, 60_000)];
const UNSYNCED: [(usize, usize); 2] = [(1, 15_000), (8, 60_000)];

/// `count` requests that insert one document each, the documents taken in turn.
#[must_use]
pub fn singles(lines: &Lines, count: usize) -> Vec<Vec<u8>> {
    let path = format!("{COLLECTION}/insertOne");
    let body = |line: &[u8]| [b"{\"document\":", line, b"}"].concat();
    lines.iter().cycle().take(count).map(|line| request("POST", &path, &[], &body(line))).collect()
}

impl Round<'_> {
    fn floor_of_batches(&self, work: Work) -> io::Result<Outcome> {
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), work, super::BATCH * ANSWER_BYTES_EACH)?;
        closed_loop(floor.address(), 1, self.batches)
    }

    /// Loads an empty directory by `insertMany`, beside the write floor, and leaves the server running and at rest.
    pub(super) fn load(&mut self, dir: &Path, durability: &str) -> io::Result<Server> {
        let synced = durability == "commit";
        let work = if synced { Work::WriteSynced } else { Work::Write };
        let measured = self.plan.does("batch");
        say(&format!("  {} documents by insertMany, {durability}", self.lines.len()));
        let before = if measured && self.floor_first() { Some(self.floor_of_batches(work)?) } else { None };
        let server = Server::product(dir, durability)?;
        let ours = closed_loop(server.address(), 1, self.batches)?;
        let settled = server.settle()?;
        if !measured {
            return Ok(server);
        }
        let floor = before.map_or_else(|| self.floor_of_batches(work), Ok)?;
        let (mode, goal) = if synced { ("commit", 450e3) } else { ("interval", 600e3) };
        let documents = self.lines.len() as f64;
        let rate = |outcome: &Outcome| documents / outcome.elapsed.as_secs_f64();
        let sample = Sample::of(rate(&ours), rate(&floor)).latencies(&ours, &floor);
        self.record(&format!("insertMany by 1000, {mode}"), "documents/s", "write", Goal::AtLeast(goal), sample);
        let whole = documents / (ours.elapsed + settled).as_secs_f64();
        let row = format!("insertMany by 1000, {mode}, until at rest");
        self.record(&row, "documents/s", "", Goal::None, Sample::alone(whole));
        if !synced {
            let anonymous = server.anonymous_bytes()? as f64 / 1e6;
            self.record("anonymous memory at rest", "MB", "", Goal::AtMost(300.0), Sample::alone(anonymous));
            let taken = disk_bytes(dir)?.1 as f64;
            let share = taken / self.lines.text().len() as f64;
            self.record("disk, log included, by JSON's bytes", "x", "", Goal::None, Sample::alone(share));
        }
        Ok(server)
    }

    pub(super) fn singles(&self, count: usize) -> Vec<Vec<u8>> {
        singles(self.lines, count)
    }

    /// `insertOne` in `commit` mode beside the write floor.
    pub(super) fn singles_synced(&mut self, server: &Server) -> io::Result<()> {
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), Work::WriteSynced, ANSWER_BYTES_ONE)?;
        for (connections, count) in SYNCED {
            say(&format!("  insertOne, commit, {connections} connections"));
            let requests = self.singles(self.requests(count).max(connections));
            let (ours, floor) = pair(self.floor_first(), connections, &requests, server, &floor)?;
            let sample = Sample::of(ours.rate(), floor.rate()).latencies(&ours, &floor);
            let row = format!("insertOne, commit, {connections} connections");
            self.record(&row, "1/s", "write", Goal::Ratio(0.85), sample);
        }
        Ok(())
    }

    /// `insertOne` in `interval` mode beside the HTTP floor.
    pub(super) fn singles_unsynced(&mut self, server: &Server) -> io::Result<()> {
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), Work::Constant, ANSWER_BYTES_ONE)?;
        for (connections, count) in UNSYNCED {
            say(&format!("  insertOne, interval, {connections} connections"));
            let requests = self.singles(self.requests(count));
            let (ours, floor) = pair(self.floor_first(), connections, &requests, server, &floor)?;
            let sample = Sample::of(ours.rate(), floor.rate()).latencies(&ours, &floor);
            let row = format!("insertOne, interval, {connections} connections");
            self.record(&row, "1/s", "HTTP", Goal::Ratio(0.7), sample);
        }
        Ok(())
    }

    fn ingest(&self, address: SocketAddr) -> io::Result<f64> {
        let text = self.lines.text();
        let path = format!("{COLLECTION}/import");
        let head = head("POST", &path, &[("Content-Type", "application/x-ndjson")], text.len());
        let mut connection = Connection::open(address)?;
        let mut said = Vec::new();
        let from = Instant::now();
        let answer = connection.exchange_into(&head, text, &mut |piece| said.extend_from_slice(piece))?;
        let elapsed = from.elapsed().as_secs_f64();
        if answer.status != 200 {
            let said = String::from_utf8_lossy(&said).into_owned();
            return Err(io::Error::other(format!("import answered {}: {said}", answer.status)));
        }
        Ok(self.lines.len() as f64 / elapsed)
    }

    pub(super) fn floor_of_import(&self) -> io::Result<f64> {
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), Work::Ingest, ANSWER_BYTES_ONE)?;
        self.ingest(floor.address())
    }

    /// The same documents as one NDJSON stream.
    pub(super) fn import(&mut self) -> io::Result<()> {
        say("  import of NDJSON, interval");
        let before = if self.floor_first() { Some(self.floor_of_import()?) } else { None };
        let scratch = Scratch::new("import")?;
        let server = Server::product(scratch.path(), "interval:100ms")?;
        let ours = self.ingest(server.address())?;
        let floor = before.map_or_else(|| self.floor_of_import(), Ok)?;
        self.record(
            "import of NDJSON, interval",
            "documents/s",
            "ingest",
            Goal::AtLeast(800e3),
            Sample::of(ours, floor),
        );
        Ok(())
    }
}
