//! Ours as an engine: a server of its own on a directory of its own, over HTTP like everyone.

use super::data::{BATCH, Data};
use super::engine::{Durability, Engine, Place, Reader, Session, Single, Takes, Timed, answers, unsupported};
use super::question::{Condition, Grouping};
use super::rows::Index;
use crate::answer::{Rows, rows};
use crate::client::{Connection, request};
use crate::server::{Scratch, Server, disk_bytes};
use crate::timed::clocked;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// The collection's routes.
const COLLECTION: &str = "/v1/db/bench/compared";

/// A server of ours, or whatever answers as one at an address.
#[derive(Debug)]
pub struct Ours {
    durability: Durability,
    at: Served,
    connection: Connection,
    batches: Vec<Vec<u8>>,
}

#[derive(Debug)]
enum Served {
    /// Started for this. The server ends before its directory goes.
    Started {
        server: Server,
        scratch: Scratch,
    },
    Address(SocketAddr),
}

fn post(operation: &str, body: &str) -> Vec<u8> {
    request("POST", &format!("{COLLECTION}/{operation}"), &[], body.as_bytes())
}

fn started(durability: Durability) -> io::Result<(Served, Connection)> {
    let scratch = Scratch::new("compared")?;
    let server = Server::product(scratch.path(), durability.option())?;
    let connection = Connection::open(server.address())?;
    Ok((Served::Started { server, scratch }, connection))
}

impl Ours {
    /// Starts a server.
    ///
    /// # Errors
    /// Where it does not start.
    pub fn start(durability: Durability) -> io::Result<Self> {
        let (at, connection) = started(durability)?;
        Ok(Self { durability, at, connection, batches: Vec::new() })
    }

    /// Takes what answers at `address` for ours. Its collection must be empty.
    ///
    /// # Errors
    /// Where nobody listens.
    pub fn at(address: SocketAddr, durability: Durability) -> io::Result<Self> {
        let connection = Connection::open(address)?;
        Ok(Self { durability, at: Served::Address(address), connection, batches: Vec::new() })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        match &self.at {
            Served::Started { server, .. } => server.address(),
            Served::Address(address) => *address,
        }
    }

    fn asked_into(&mut self, operation: &str, body: &str, into: &mut Vec<u8>) -> io::Result<Duration> {
        let request = post(operation, body);
        let mut sink = |piece: &[u8]| into.extend_from_slice(piece);
        let (answer, elapsed) = clocked(|| self.connection.exchange_into(&request, &[], &mut sink))?;
        let said = || String::from_utf8_lossy(&into[..into.len().min(500)]).into_owned();
        match answer.status {
            200 | 201 => Ok(elapsed),
            501 => Err(unsupported("not built")),
            status => Err(io::Error::other(format!("{operation} answered {status}: {}", said()))),
        }
    }

    fn asked(&mut self, operation: &str, body: &str) -> Timed<Vec<u8>> {
        let mut answer = Vec::new();
        let elapsed = self.asked_into(operation, body, &mut answer)?;
        Ok((answer, elapsed))
    }

    fn number(&mut self, operation: &str, body: &str, field: &str) -> Timed<u64> {
        let (answer, elapsed) = self.asked(operation, body)?;
        let answer: Value = serde_json::from_slice(&answer)?;
        let number = answer[field].as_u64();
        Ok((number.ok_or_else(|| io::Error::other(format!("no {field} in {answer}")))?, elapsed))
    }

    /// The request of a count or a grouping, for a floor that is to be asked the same.
    #[must_use]
    pub fn request_of(ask: &super::rows::Ask) -> Vec<u8> {
        match ask {
            super::rows::Ask::Count(condition) => post("count", &filter(condition)),
            super::rows::Ask::Group(grouping) => post("aggregate", &pipeline(grouping)),
            _ => post("findOne", &one(123_456)),
        }
    }
}

fn filter(condition: &Condition) -> String {
    json!({"filter": condition.filter()}).to_string()
}

fn pipeline(grouping: &Grouping) -> String {
    format!("{{\"pipeline\":{}}}", grouping.pipeline())
}

fn one(id: usize) -> String {
    format!("{{\"filter\":{{\"_id\":{id}}}}}")
}

/// Reads `{"document": ...}`.
fn single(bytes: &[u8], each: &mut dyn FnMut(Value)) -> Result<(), String> {
    let mut answer: Value = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    match answer.get_mut("document").map(Value::take) {
        Some(Value::Null) => Ok(()),
        Some(document) => {
            each(document);
            Ok(())
        }
        None => Err(format!("no document in {answer}")),
    }
}

impl Engine for Ours {
    fn name(&self) -> &str {
        "QuarryDB"
    }

    fn describe(&self) -> String {
        format!("over HTTP, durability {}", self.durability.option())
    }

    fn place(&self) -> Place {
        Place::Ours
    }

    fn fresh(&mut self) -> io::Result<()> {
        if matches!(self.at, Served::Started { .. }) {
            (self.at, self.connection) = started(self.durability)?;
        }
        Ok(())
    }

    fn insert(&mut self, data: &Data) -> io::Result<Duration> {
        if self.batches.is_empty() {
            let bodies = data.lines.batches(BATCH);
            self.batches =
                bodies.iter().map(|body| request("POST", &format!("{COLLECTION}/insertMany"), &[], body)).collect();
        }
        let mut statuses = Vec::with_capacity(self.batches.len());
        let ((), elapsed) = clocked(|| {
            for batch in &self.batches {
                statuses.push(self.connection.exchange(batch)?.status);
            }
            Ok(())
        })?;
        let refused = statuses.iter().find(|status| **status != 201);
        refused.map_or(Ok(elapsed), |status| Err(io::Error::other(format!("insertMany answered {status}"))))
    }

    fn rest(&mut self) -> io::Result<()> {
        if let Served::Started { server, .. } = &self.at {
            server.settle()?;
        }
        Ok(())
    }

    fn index(&mut self, index: &Index) -> io::Result<Duration> {
        let keys: Vec<String> = index.iter().map(|(path, _)| format!("\"{path}\":1")).collect();
        Ok(self.asked("createIndex", &format!("{{\"keys\":{{{}}}}}", keys.join(",")))?.1)
    }

    fn find(&mut self, condition: &Condition, into: &mut Vec<u8>) -> Timed<Reader> {
        Ok((answers, self.asked_into("find", &filter(condition), into)?))
    }

    fn count(&mut self, condition: &Condition) -> Timed<u64> {
        self.number("count", &filter(condition), "count")
    }

    fn group(&mut self, grouping: &Grouping) -> Timed<Rows> {
        let (answer, elapsed) = self.asked("aggregate", &pipeline(grouping))?;
        Ok((rows(&answer, grouping.fields()).map_err(io::Error::other)?, elapsed))
    }

    fn get(&mut self, id: usize, into: &mut Vec<u8>) -> Timed<Reader> {
        Ok((single, self.asked_into("findOne", &one(id), into)?))
    }

    fn update(&mut self, condition: &Condition) -> Timed<u64> {
        let body = json!({"filter": condition.filter(), "update": {"$inc": {"visits": 1}}});
        self.number("updateMany", &body.to_string(), "modifiedCount")
    }

    fn delete(&mut self, condition: &Condition) -> Timed<u64> {
        self.number("deleteMany", &filter(condition), "deletedCount")
    }

    fn session(&self) -> io::Result<Box<dyn Session + Send>> {
        let connection = Connection::open(self.address())?;
        Ok(Box::new(OurSession { connection, requests: Vec::new() }))
    }

    fn takes(&self) -> Takes {
        match &self.at {
            Served::Started { server, scratch } => {
                let disk = disk_bytes(scratch.path()).ok().map(|(_, taken)| taken);
                Takes { disk, memory: server.anonymous_bytes().ok() }
            }
            Served::Address(_) => Takes::default(),
        }
    }
}

struct OurSession {
    connection: Connection,
    /// Each with what a right answer holds.
    requests: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A request with what its answer must hold.
#[must_use]
pub fn encoded(data: &Data, single: Single) -> (Vec<u8>, Vec<u8>) {
    let line = |n: usize| data.lines.get(n);
    match single {
        Single::Insert(n) => {
            let body = [b"{\"document\":", line(n), b"}"].concat();
            (request("POST", &format!("{COLLECTION}/insertOne"), &[], &body), b"\"insertedId\"".to_vec())
        }
        // From behind the `_id` on, the document is as it was sent: to the byte, where ours prints what it was given.
        Single::Find(n) => (post("findOne", &one(n)), line(n).get(..48).unwrap_or_default().to_vec()),
        Single::Update(n) => {
            let body = format!("{{\"filter\":{{\"_id\":{n}}},\"update\":{{\"$inc\":{{\"visits\":1}}}}}}");
            (post("updateOne", &body), b"\"modifiedCount\":1".to_vec())
        }
        Single::Delete(n) => (post("deleteOne", &one(n)), b"\"deletedCount\":1".to_vec()),
        Single::Upsert(n) => {
            let body =
                format!("{{\"filter\":{{\"_id\":{n}}},\"update\":{{\"$set\":{{\"visits\":7}}}},\"upsert\":true}}");
            (post("updateOne", &body), b"\"matchedCount\":".to_vec())
        }
    }
}

impl Session for OurSession {
    fn ready(&mut self, data: &Data, work: &[Single]) -> io::Result<()> {
        self.requests = work.iter().map(|single| encoded(data, *single)).collect();
        Ok(())
    }

    fn go(&mut self, n: usize) -> io::Result<bool> {
        let (request, holds) = &self.requests[n];
        let (status, body) = self.connection.fetch(request)?;
        Ok(matches!(status, 200 | 201) && body.windows(holds.len()).any(|w| w == holds))
    }
}
