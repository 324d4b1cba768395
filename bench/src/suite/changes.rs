//! Change streams: draining what single inserts left, the way of one event to a listener, and what listeners cost writers.
//!
//! A drain is one request with the token from before the inserts. Its floor is the HTTP floor with an answer of as many
//! bytes. The inserts are synced, so that all of them may be told.

use super::{COLLECTION, Round, say};
use crate::client::{Connection, request};
use crate::floor::http::Work;
use crate::load::closed_loop;
use crate::report::{Goal, Sample};
use crate::server::{Scratch, Server};
use crate::timed::{Pace, clocked, timed};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Events in one drain.
const EVENTS: usize = 5000;
/// Three times the 121,000 events a second that another server publishes.
const DRAIN_GOAL: f64 = 363_000.0;
/// A drain is asked for so often in one repetition.
const PACE: Pace = Pace { least: 5, most: 50, budget: Duration::from_secs(2) };
/// Streams that listen to a collection that nobody writes to.
const IDLE: usize = 500;
/// Connections, and single inserts sent by them together, beside idle listeners.
const BESIDE: (usize, usize) = (8, 10_000);
/// Inserts whose way to a listener is measured.
const PUSHED: usize = 2000;

impl Round<'_> {
    /// All of it, on a server of its own.
    pub(super) fn changes(&mut self) -> io::Result<()> {
        let scratch = Scratch::new("changes")?;
        let server = Server::product(scratch.path(), "commit")?;
        self.drain(&server)?;
        self.push(&server)?;
        self.listeners(&server)
    }

    fn drain(&mut self, server: &Server) -> io::Result<()> {
        let events = self.requests(EVENTS);
        say(&format!("  drain of {events} events"));
        let mut connection = Connection::open(server.address())?;
        let token = token(&mut connection)?;
        closed_loop(server.address(), 8, &self.singles(events))?;
        let asked = get(&format!("{COLLECTION}/changes?wait=0&since={token}"));
        let whole = |status: u16, body: &[u8]| {
            let lines = body.iter().filter(|b| **b == b'\n').count();
            if status == 200 && lines == events + 1 { Ok(()) } else { Err(format!("{status}, {lines} lines")) }
        };
        let ours = timed(PACE, || clocked(|| connection.fetch(&asked)), |(status, body)| whole(*status, body))?;
        let (_, first) = connection.fetch(&asked)?;
        let floor = {
            let scratch = Scratch::new("floor")?;
            let floor = Server::floor(scratch.path(), Work::Constant, first.len())?;
            let mut connection = Connection::open(floor.address())?;
            let asked = request("POST", "/", &[], b"{}");
            timed(PACE, || clocked(|| connection.fetch(&asked)), |_| Ok(()))?
        };
        let rate = |millis: f64| events as f64 / millis * 1e3;
        let sample = Sample::of(rate(ours.millis()), rate(floor.millis())).times(&ours, Some(&floor));
        let goal = if events == EVENTS { Goal::AtLeast(DRAIN_GOAL) } else { Goal::None };
        self.record("changes: drain of 5,000 events", "events/s", "HTTP", goal, sample);
        Ok(())
    }

    /// From an insert that was answered to its event at a listener that waits: less than nothing where that is first.
    fn push(&mut self, server: &Server) -> io::Result<()> {
        let count = self.requests(PUSHED);
        say(&format!("  {count} inserts and their events at a listener"));
        let mut listener = Listener::open(server, &format!("{COLLECTION}/changes"))?;
        let mut connection = Connection::open(server.address())?;
        let mut micros: Vec<f64> = Vec::with_capacity(count);
        for request in self.singles(count) {
            let sent = Instant::now();
            connection.exchange(&request)?;
            listener.event()?;
            micros.push(sent.elapsed().as_secs_f64() * 1e6);
        }
        micros.sort_unstable_by(f64::total_cmp);
        let middle = micros.get(micros.len() / 2).copied().unwrap_or_default();
        self.record("changes: insert sent to its event received", "us", "", Goal::None, Sample::alone(middle));
        Ok(())
    }

    /// Single inserts alone, and beside listeners that they do not concern.
    fn listeners(&mut self, server: &Server) -> io::Result<()> {
        say(&format!("  insertOne beside {IDLE} idle listeners"));
        let (connections, count) = BESIDE;
        let requests = self.singles(self.requests(count));
        let alone = closed_loop(server.address(), connections, &requests)?;
        let before = server.anonymous_bytes()?;
        let idle: Vec<_> =
            (0..IDLE).map(|_| Listener::open(server, "/v1/db/bench/quiet/changes")).collect::<io::Result<_>>()?;
        let taken = server.anonymous_bytes()?.saturating_sub(before);
        let beside = closed_loop(server.address(), connections, &requests)?;
        drop(idle);
        let sample = Sample::of(beside.rate(), alone.rate());
        let row = format!("changes: insertOne, commit, 8 connections, {IDLE} idle listeners");
        self.record(&row, "1/s", "without listeners", Goal::None, sample);
        let each = taken as f64 / IDLE as f64 / 1e3;
        self.record("changes: memory of an idle listener", "KB", "", Goal::None, Sample::alone(each));
        Ok(())
    }
}

fn get(path: &str) -> Vec<u8> {
    request("GET", path, &[("Accept", "application/x-ndjson")], b"")
}

/// Where the collection's stream stands now.
fn token(connection: &mut Connection) -> io::Result<String> {
    let (status, body) = connection.fetch(&get(&format!("{COLLECTION}/changes?wait=0")))?;
    let answer: serde_json::Value = serde_json::from_slice(&body)?;
    let token = answer["resumeToken"].as_str();
    token.map(str::to_owned).ok_or_else(|| io::Error::other(format!("changes answered {status}: {answer}")))
}

/// A client that reads server-sent events, a socket and no more.
struct Listener {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Listener {
    fn open(server: &Server, path: &str) -> io::Result<Self> {
        let mut stream = TcpStream::connect(server.address())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.write_all(&request("GET", path, &[], b""))?;
        let mut listener = Self { stream, buffer: Vec::new() };
        // The heartbeat that every stream begins with.
        listener.until(b"\nid: ")?;
        Ok(listener)
    }

    fn event(&mut self) -> io::Result<()> {
        self.until(b"\ndata: ")
    }

    fn until(&mut self, mark: &[u8]) -> io::Result<()> {
        let mut piece = [0; 16 << 10];
        loop {
            if let Some(at) = self.buffer.windows(mark.len()).position(|w| w == mark) {
                self.buffer.drain(..at + mark.len());
                return Ok(());
            }
            match self.stream.read(&mut piece)? {
                0 => return Err(io::Error::other("a change stream ended")),
                n => self.buffer.extend_from_slice(piece.get(..n).unwrap_or_default()),
            }
        }
    }
}
