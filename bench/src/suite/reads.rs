//! Finding one document by `_id`, and all of them.

use super::{Awake, COLLECTION, Round, pair, say};
use crate::client::{Connection, request};
use crate::dataset::SEED;
use crate::floor::http::Work;
use crate::floor::machine;
use crate::mersenne::Mersenne;
use crate::report::{Goal, Sample};
use crate::server::{Scratch, Server};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Between two looks at the server's memory while it answers.
const LOOK: Duration = Duration::from_millis(2);

impl Round<'_> {
    /// The `_id`s that the server made, in the order in which it gives them.
    fn ids(server: &Server) -> io::Result<Vec<String>> {
        let body = br#"{"filter":{},"projection":{"_id":1}}"#;
        let mut connection = Connection::open(server.address())?;
        let (status, answer) = connection.fetch(&request("POST", &format!("{COLLECTION}/find"), &[], body))?;
        let text = String::from_utf8_lossy(&answer);
        if status != 200 {
            return Err(io::Error::other(format!("find answered {status}: {text}")));
        }
        Ok(text.split("\"$oid\":\"").skip(1).filter_map(|rest| rest.get(..24)).map(str::to_owned).collect())
    }

    /// `findOne` by `_id` beside the HTTP floor, cores idle and awake.
    pub(super) fn points(&mut self, server: &Server) -> io::Result<()> {
        let ids = Self::ids(server)?;
        if ids.len() != self.lines.len() {
            return Err(io::Error::other(format!("{} documents stored, {} found", self.lines.len(), ids.len())));
        }
        let mut random = Mersenne::new(SEED + self.repetition as u32);
        let path = format!("{COLLECTION}/findOne");
        let mut lookups = |count: usize| -> Vec<Vec<u8>> {
            let mut one = || {
                let id = &ids[random.below(ids.len() as u32) as usize];
                request("POST", &path, &[], format!("{{\"filter\":{{\"_id\":{{\"$oid\":\"{id}\"}}}}}}").as_bytes())
            };
            (0..count).map(|_| one()).collect()
        };
        let sample = lookups(1).remove(0);
        let (status, body) = Connection::open(server.address())?.fetch(&sample)?;
        if status != 200 || !body.windows(7).any(|w| w == b"\"email\"") {
            return Err(io::Error::other(format!("findOne answered {status}: {}", String::from_utf8_lossy(&body))));
        }
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), Work::Constant, body.len())?;
        for (connections, count, awake) in [(1, 15_000, false), (8, 60_000, false), (1, 30_000, true)] {
            let (cores, goal) = if awake { (", cores awake", Goal::None) } else { ("", Goal::Ratio(0.85)) };
            say(&format!("  findOne by _id, {connections} connections{cores}"));
            let requests = lookups(self.requests(count));
            let spinning = if awake { Some(Awake::start()?) } else { None };
            let (ours, floor) = pair(self.floor_first(), connections, &requests, server, &floor)?;
            drop(spinning);
            let sample = Sample::of(ours.rate(), floor.rate()).latencies(&ours, &floor);
            self.record(&format!("findOne by _id, {connections} connections{cores}"), "1/s", "HTTP", goal, sample);
        }
        Ok(())
    }

    /// Every document through HTTP, beside copying the same number of bytes once and sending them.
    pub(super) fn find_all(&mut self, server: &Server) -> io::Result<()> {
        say("  find of all documents");
        let find = request("POST", &format!("{COLLECTION}/find"), &[], br#"{"filter":{}}"#);
        let resting = server.anonymous_bytes()?;
        let mut connection = Connection::open(server.address())?;
        let done = AtomicBool::new(false);
        let (answer, elapsed, most) = std::thread::scope(|scope| {
            let watch = scope.spawn(|| {
                let mut most = 0;
                while !done.load(Ordering::Relaxed) {
                    most = most.max(server.anonymous_bytes().unwrap_or(0));
                    std::thread::sleep(LOOK);
                }
                most
            });
            let from = Instant::now();
            let answer = connection.exchange(&find);
            let elapsed = from.elapsed();
            done.store(true, Ordering::Relaxed);
            (answer, elapsed, watch.join().unwrap_or(0))
        });
        let answer = answer?;
        if answer.status != 200 || (answer.body_bytes as usize) < self.lines.text().len() {
            let said = format!("find answered {} with {} bytes", answer.status, answer.body_bytes);
            return Err(io::Error::other(said));
        }
        let floor = machine::print_rate(self.lines.text())? / 1e6;
        let rate = answer.body_bytes as f64 / elapsed.as_secs_f64() / 1e6;
        self.record("find of all documents", "MB/s", "print", Goal::AtLeast(900.0), Sample::of(rate, floor));
        let first = answer.first_byte.as_secs_f64() * 1e3;
        self.record("... its first byte after", "ms", "", Goal::AtMost(20.0), Sample::alone(first));
        let above = most.saturating_sub(resting) as f64 / 1e6;
        self.record("... its memory above rest", "MB", "", Goal::AtMost(100.0), Sample::alone(above));
        Ok(())
    }
}
