//! Kills the server under eight writers, round after round, and looks for what was lost.
//!
//! Takes an empty directory; each writer keeps what it was told of its own documents, one request in doubt at most.
//! After SIGKILL and a new start every acknowledged document must be there with its acknowledged value, every deleted
//! one gone, nothing else present, and what was in doubt either done or not. In both durabilities: a killed process
//! loses no page cache. At the end `quarrydb check` finds nothing. It measures nothing.

use crate::client::{Connection, request};
use crate::mersenne::Mersenne;
use crate::server::{Server, executable};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// Writers, each with a connection and documents of its own.
const WRITERS: u64 = 8;
/// A writer's `_id`s start at its number times this.
const IDS_EACH: u64 = 1_000_000_000;
/// A round writes for a time between these; where seals are to be hit, which then go on all the time, a short one does.
const WRITE_MILLIS: (u32, u32) = (40, 400);
const WRITE_MILLIS_SEALING: (u32, u32) = (5, 80);
/// A seal at so many documents: several in each round, and compactions of what they make.
const SEALING: [&str; 2] = ["--seal-rows", "64"];
/// What a server says at its start of files that a seal or a compaction had begun.
const HALF_MADE: &str = "removed what a crash left half made";
/// Documents of one `insertMany`.
const MANY: u64 = 5;
const COLLECTION: &str = "/v1/db/soak/documents";

/// A writer's view of its documents: the value of each that it was told is there.
#[derive(Debug, Default)]
struct Writer {
    number: u64,
    next: u64,
    known: BTreeMap<u64, i64>,
    /// What the request in flight would make of each document, in its order; `None`: deleted.
    doubt: Vec<(u64, Option<i64>)>,
    /// Documents written in this round, looked up one by one.
    touched: Vec<u64>,
    acknowledged: u64,
}

/// What all rounds together saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Requests acknowledged before the kills.
    pub acknowledged: u64,
    /// Requests in flight when the server died, found done, and found not done.
    pub done: u64,
    /// See `done`.
    pub not_done: u64,
    /// Documents at the end.
    pub documents: u64,
    /// Rounds whose kill left a file half made: it hit a seal or a compaction.
    pub half_made: u64,
}

/// Runs `rounds` rounds in `dir`; with `sealing` the server seals all the time, so that many kills hit a seal. The same seed draws the same requests; when the kill hits is up to the machine.
///
/// # Errors
/// Naming the round, the document and both values where something was lost or appeared, or where a request failed for
/// another reason than the kill.
///
/// # Panics
/// Where a writer's thread does.
pub fn soak(dir: &Path, rounds: u32, seed: u32, sealing: bool) -> io::Result<Tally> {
    let (options, millis): (&[&str], _) = if sealing { (&SEALING, WRITE_MILLIS_SEALING) } else { (&[], WRITE_MILLIS) };
    let mut random = Mersenne::new(seed);
    let mut writers: Vec<Writer> = (0..WRITERS).map(|number| Writer { number, ..Writer::default() }).collect();
    let mut tally = Tally::default();
    for round in 0..rounds {
        let durability = if round % 2 == 0 { "commit" } else { "interval:50ms" };
        if round % 3 == 2 {
            interrupted_start(dir, durability, options, random.below(30))?;
        }
        let server = Server::product_with(dir, durability, options)?;
        let address = server.address();
        let seeds: Vec<u32> = writers.iter().map(|_| random.bits()).collect();
        let pause = millis.0 + random.below(millis.1 - millis.0);
        thread::scope(|scope| -> io::Result<()> {
            let threads: Vec<_> = writers
                .iter_mut()
                .zip(seeds)
                .map(|(writer, seed)| scope.spawn(move || writer.write_until_it_dies(address, seed)))
                .collect();
            thread::sleep(Duration::from_millis(u64::from(pause)));
            server.kill()?;
            threads.into_iter().try_for_each(|t| t.join().expect("a writer does not panic"))
        })?;
        let server = Server::product_with(dir, durability, options)?;
        tally.half_made += u64::from(server.said.contains(HALF_MADE));
        let said = |e: io::Error| io::Error::other(format!("round {round}, seed {seed}, {durability}: {e}"));
        verify(server.address(), &mut writers, &mut tally).map_err(said)?;
        // Every other round ends as an operator would end it.
        if round % 2 == 0 { server.stop().map(|_| ()) } else { server.kill() }?;
    }
    checked(dir)?;
    tally.acknowledged = writers.iter().map(|w| w.acknowledged).sum();
    Ok(tally)
}

/// Holds what the rounds have left against every checksum and invariant that the server knows of.
fn checked(dir: &Path) -> io::Result<()> {
    let output = Command::new(executable()?).args(["check", "--data"]).arg(dir).output()?;
    let said = || format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.success() { Ok(()) } else { Err(io::Error::other(format!("check found: {}", said()))) }
}

/// A start that is killed somewhere on the way: recovery must survive its own interruption.
fn interrupted_start(dir: &Path, durability: &str, options: &[&str], millis: u32) -> io::Result<()> {
    let mut child = Command::new(executable()?)
        .args(["serve", "--listen", "127.0.0.1:0", "--durability", durability, "--data"])
        .arg(dir)
        .args(options)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    thread::sleep(Duration::from_millis(u64::from(millis)));
    child.kill()?;
    child.wait().map(|_| ())
}

fn post(operation: &str, body: &Value) -> Vec<u8> {
    request("POST", &format!("{COLLECTION}/{operation}"), &[], body.to_string().as_bytes())
}

impl Writer {
    fn write_until_it_dies(&mut self, address: SocketAddr, seed: u32) -> io::Result<()> {
        let mut random = Mersenne::new(seed);
        self.touched.clear();
        let Ok(mut connection) = Connection::open(address) else { return Ok(()) };
        loop {
            let request = self.decide(&mut random);
            match connection.fetch(&request) {
                Ok((200 | 201, _)) => self.settle(true),
                Ok((status, body)) => {
                    let said = String::from_utf8_lossy(&body);
                    return Err(io::Error::other(format!("a write was answered {status}: {said}")));
                }
                // The kill. What was in flight stays in doubt.
                Err(_) => return Ok(()),
            }
        }
    }

    /// Draws the next request and notes what it would do.
    fn decide(&mut self, random: &mut Mersenne) -> Vec<u8> {
        let kind = random.below(10);
        let existing = self.known.len() as u32;
        if kind < 5 || existing == 0 {
            let ids = if kind == 0 { MANY } else { 1 };
            let first = self.number * IDS_EACH + self.next;
            self.next += ids;
            self.doubt = (first..first + ids).map(|id| (id, Some(0))).collect();
            let pad = "x".repeat(random.below(600) as usize);
            let document = |id: u64| json!({"_id": id, "v": 0, "writer": self.number, "pad": pad});
            return if kind == 0 {
                post("insertMany", &json!({"documents": (first..first + ids).map(document).collect::<Vec<_>>()}))
            } else {
                post("insertOne", &json!({"document": document(first)}))
            };
        }
        let (id, value) = self.known.iter().nth(random.below(existing) as usize).map_or((0, 0), |(k, v)| (*k, *v));
        if kind < 9 {
            self.doubt = vec![(id, Some(value + 1))];
            post("updateOne", &json!({"filter": {"_id": id}, "update": {"$inc": {"v": 1}}}))
        } else {
            self.doubt = vec![(id, None)];
            post("deleteOne", &json!({"filter": {"_id": id}}))
        }
    }

    /// The request in doubt is done, or is not.
    fn settle(&mut self, done: bool) {
        for (id, after) in std::mem::take(&mut self.doubt) {
            if done {
                match after {
                    Some(value) => self.known.insert(id, value),
                    None => self.known.remove(&id),
                };
            }
            self.touched.push(id);
        }
        self.acknowledged += u64::from(done);
    }
}

/// Holds what the server has against what the writers know, and settles their doubts.
fn verify(address: SocketAddr, writers: &mut [Writer], tally: &mut Tally) -> io::Result<()> {
    let mut connection = Connection::open(address)?;
    let mut stored = all(&mut connection)?;
    for writer in &mut *writers {
        let happened: Vec<bool> = writer.doubt.iter().map(|(id, after)| stored.get(id).copied() == *after).collect();
        // `insertMany` is a sequence: what it did of itself is a beginning.
        if happened.windows(2).any(|pair| !pair[0] && pair[1]) {
            return Err(io::Error::other(format!("an insertMany left a hole: {:?} {happened:?}", writer.doubt)));
        }
        let doubts = std::mem::take(&mut writer.doubt);
        for (doubt, done) in doubts.into_iter().zip(happened) {
            writer.doubt.push(doubt);
            writer.settle(done);
            // Not acknowledged, whatever it did.
            writer.acknowledged -= u64::from(done);
            *(if done { &mut tally.done } else { &mut tally.not_done }) += 1;
        }
        for (id, value) in &writer.known {
            let found = stored.remove(id);
            if found != Some(*value) {
                return Err(io::Error::other(format!("document {id}: acknowledged v = {value}, found {found:?}")));
            }
        }
        for id in &writer.touched {
            let body = json!({"filter": {"_id": id}});
            let (status, answer) = connection.fetch(&post("findOne", &body))?;
            let answer: Value = serde_json::from_slice(&answer)?;
            let found = answer["document"]["v"].as_i64();
            if status != 200 || found != writer.known.get(id).copied() {
                let known = writer.known.get(id);
                return Err(io::Error::other(format!("document {id} by _id: known {known:?}, found {answer}")));
            }
        }
    }
    if let Some((id, value)) = stored.first_key_value() {
        return Err(io::Error::other(format!("document {id} with v = {value}: deleted, or never written")));
    }
    let (status, answer) = connection.fetch(&post("count", &json!({})))?;
    let answer: Value = serde_json::from_slice(&answer)?;
    tally.documents = writers.iter().map(|w| w.known.len() as u64).sum();
    if answer["count"].as_u64() != Some(tally.documents) {
        return Err(io::Error::other(format!("{} documents, but count answered {status}: {answer}", tally.documents)));
    }
    Ok(())
}

/// Every document by a full find, each once.
fn all(connection: &mut Connection) -> io::Result<BTreeMap<u64, i64>> {
    let find = request(
        "POST",
        &format!("{COLLECTION}/find"),
        &[("Accept", "application/x-ndjson")],
        json!({"projection": {"v": 1}}).to_string().as_bytes(),
    );
    let (status, body) = connection.fetch(&find)?;
    let mut stored = BTreeMap::new();
    for line in body.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let document: Value = serde_json::from_slice(line)?;
        let (Some(id), Some(value)) = (document["_id"].as_u64(), document["v"].as_i64()) else {
            return Err(io::Error::other(format!("find answered {status}: {document}")));
        };
        if stored.insert(id, value).is_some() {
            return Err(io::Error::other(format!("document {id} was found twice")));
        }
    }
    Ok(stored)
}
