//! Questions to fields that nobody declared an index on: counts, finds of many documents, a deletion, and what it all
//! takes on the disk before and after compaction.
//!
//! Each answer is held to what the data set itself says before its time is kept.

use super::{COLLECTION, Round, pair, say};
use crate::client::{Connection, request};
use crate::dataset::SEED;
use crate::floor::http::Work;
use crate::floor::machine;
use crate::mersenne::Mersenne;
use crate::report::{Goal, Sample};
use crate::server::{Scratch, Server, disk_bytes};
use std::io;
use std::path::Path;
use std::time::Instant;

/// Counts of one kind in one repetition.
const COUNTS: usize = 4000;

/// One question: its name, the filter, and which lines of the data set it means.
struct Question {
    name: &'static str,
    filter: &'static str,
    holds: fn(&Fields<'_>) -> bool,
}

/// What a line says, found by its text: the generator writes every line alike.
struct Fields<'l>(&'l str);

impl<'l> Fields<'l> {
    fn raw(&self, name: &str) -> &'l str {
        let key = format!("\"{name}\":");
        let Some(at) = self.0.find(&key) else { return "" };
        let rest = &self.0[at + key.len()..];
        let end = rest.find([',', '}']).unwrap_or(rest.len());
        rest[..end].trim_matches('"')
    }

    fn number(&self, name: &str) -> f64 {
        self.raw(name).parse().unwrap_or(f64::NAN)
    }
}

const FINDS: [Question; 8] = [
    Question {
        name: "department",
        filter: r#"{"department":"Engineering"}"#,
        holds: |f| f.raw("department") == "Engineering",
    },
    Question { name: "age >= 50", filter: r#"{"age":{"$gte":50}}"#, holds: |f| f.number("age") >= 50.0 },
    Question {
        name: "department and status",
        filter: r#"{"department":"Sales","status":"active"}"#,
        holds: |f| f.raw("department") == "Sales" && f.raw("status") == "active",
    },
    Question {
        name: "$or of department and city",
        filter: r#"{"$or":[{"department":"HR"},{"city":"Tokyo"}]}"#,
        holds: |f| f.raw("department") == "HR" || f.raw("city") == "Tokyo",
    },
    Question {
        name: "$in of two cities",
        filter: r#"{"city":{"$in":["Tokyo","London"]}}"#,
        holds: |f| matches!(f.raw("city"), "Tokyo" | "London"),
    },
    Question {
        name: "salary range",
        filter: r#"{"salary":{"$gte":80000,"$lte":120000}}"#,
        holds: |f| (80_000.0..=120_000.0).contains(&f.number("salary")),
    },
    Question { name: "verified", filter: r#"{"verified":true}"#, holds: |f| f.raw("verified") == "true" },
    Question {
        name: "zip range",
        filter: r#"{"address.zip":{"$gte":"50000","$lt":"60000"}}"#,
        holds: |f| ("50000".."60000").contains(&f.raw("zip")),
    },
];

const COUNTED: [Question; 4] = [
    Question { name: "all", filter: "{}", holds: |_| true },
    Question {
        name: "department",
        filter: r#"{"department":"Engineering"}"#,
        holds: |f| f.raw("department") == "Engineering",
    },
    Question { name: "age >= 50", filter: r#"{"age":{"$gte":50}}"#, holds: |f| f.number("age") >= 50.0 },
    Question {
        name: "salary range",
        filter: r#"{"salary":{"$gte":80000,"$lte":120000}}"#,
        holds: |f| (80_000.0..=120_000.0).contains(&f.number("salary")),
    },
];

fn ask(operation: &str, filter: &str) -> Vec<u8> {
    request("POST", &format!("{COLLECTION}/{operation}"), &[], format!("{{\"filter\":{filter}}}").as_bytes())
}

/// The number that an answer has in a field.
fn told(connection: &mut Connection, request: &[u8], field: &str) -> io::Result<u64> {
    let (status, body) = connection.fetch(request)?;
    let answer: serde_json::Value = serde_json::from_slice(&body)?;
    answer[field].as_u64().ok_or_else(|| io::Error::other(format!("{field} was asked for: {status} {answer}")))
}

fn agree(question: &Question, expected: u64, found: u64) -> io::Result<()> {
    if expected == found {
        return Ok(());
    }
    Err(io::Error::other(format!("{}: {found} documents answered, the data set has {expected}", question.name)))
}

impl Round<'_> {
    /// How many lines of the data set a question means.
    fn expected(&self, question: &Question) -> u64 {
        let lines = std::str::from_utf8(self.lines.text()).unwrap_or_default().lines();
        lines.filter(|line| (question.holds)(&Fields(line))).count() as u64
    }

    /// All of it, on a loaded server.
    pub(super) fn fields(&mut self, server: &Server, data: &Path) -> io::Result<()> {
        server.settle()?;
        let text = self.lines.text().len() as f64;
        let sealed = disk(server)? as f64;
        self.record("disk, settled", "x JSON", "", Goal::AtMost(0.6), Sample::alone(sealed / text));
        self.counts(server)?;
        self.finds(server, "")?;
        let mut connection = Connection::open(server.address())?;
        say("  compact");
        let from = Instant::now();
        told(&mut connection, &request("POST", &format!("{COLLECTION}/compact"), &[], b"{}"), "segmentsAfter")?;
        self.record("compact", "s", "", Goal::None, Sample::alone(from.elapsed().as_secs_f64()));
        let compacted = disk(server)? as f64;
        self.record("disk, compacted", "x JSON", "", Goal::AtMost(0.45), Sample::alone(compacted / text));
        self.record(
            "anonymous memory",
            "MB",
            "",
            Goal::AtMost(300.0),
            Sample::alone(server.anonymous_bytes()? as f64 / 1e6),
        );
        self.finds(server, ", compacted")?;
        self.declared(server)?;
        self.delete(server)?;
        let (all, _) = disk_bytes(data)?;
        self.record("data directory, with log", "x JSON", "", Goal::None, Sample::alone(all as f64 / text));
        Ok(())
    }

    fn counts(&mut self, server: &Server) -> io::Result<()> {
        let mut connection = Connection::open(server.address())?;
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), Work::Constant, br#"{"count":200000}"#.len())?;
        for question in &COUNTED {
            say(&format!("  count of {}", question.name));
            let asked = ask("count", question.filter);
            agree(question, self.expected(question), told(&mut connection, &asked, "count")?)?;
            let requests = vec![asked; self.requests(COUNTS)];
            let (ours, floor) = pair(self.floor_first(), 1, &requests, server, &floor)?;
            let sample = Sample::of(ours.rate(), floor.rate()).latencies(&ours, &floor);
            // Not slower than 1.15 times the floor.
            self.record(&format!("count of {}", question.name), "1/s", "HTTP", Goal::Ratio(1.0 / 1.15), sample);
        }
        Ok(())
    }

    fn finds(&mut self, server: &Server, state: &str) -> io::Result<()> {
        let mut connection = Connection::open(server.address())?;
        for question in &FINDS {
            say(&format!("  find by {}{state}", question.name));
            let expected = self.expected(question);
            agree(question, expected, told(&mut connection, &ask("count", question.filter), "count")?)?;
            let find = ask("find", question.filter);
            let (mut documents, mut tail) = (0_u64, Vec::new());
            connection.exchange_into(&find, &[], &mut |piece| {
                // Every document begins with its `_id`; a piece may cut one anywhere.
                tail.extend_from_slice(piece);
                documents += tail.windows(7).filter(|w| w == b"{\"_id\":").count() as u64;
                tail.drain(..tail.len().saturating_sub(6));
            })?;
            agree(question, expected, documents)?;
            let from = Instant::now();
            let answer = connection.exchange(&find)?;
            let rate = answer.body_bytes as f64 / from.elapsed().as_secs_f64() / 1e6;
            let floor = machine::print_rate(self.lines.text())? / 1e6;
            let goal = if expected >= 100_000 { Goal::AtLeast(900.0) } else { Goal::None };
            let name = format!("find by {}{state}", question.name);
            self.record(&name, "MB/s", "print", goal, Sample::of(rate, floor));
        }
        Ok(())
    }

    /// Four declared indexes, and documents found by one of them, one at a time.
    fn declared(&mut self, server: &Server) -> io::Result<()> {
        say("  four indexes");
        let mut connection = Connection::open(server.address())?;
        let from = Instant::now();
        for keys in [r#"{"email":1}"#, r#"{"salary":1}"#, r#"{"department":1,"age":1}"#, r#"{"score":-1}"#] {
            let body = format!("{{\"keys\":{keys}}}");
            let create = request("POST", &format!("{COLLECTION}/createIndex"), &[], body.as_bytes());
            let (status, answer) = connection.fetch(&create)?;
            if status != 201 {
                return Err(io::Error::other(format!("createIndex: {status} {}", String::from_utf8_lossy(&answer))));
            }
        }
        self.record("four indexes", "s", "", Goal::AtMost(0.5), Sample::alone(from.elapsed().as_secs_f64()));
        say("  findOne by an indexed field");
        let emails: Vec<&str> = {
            let lines = std::str::from_utf8(self.lines.text()).unwrap_or_default().lines();
            lines.map(|line| Fields(line).raw("email")).collect()
        };
        let mut random = Mersenne::new(SEED + self.repetition as u32);
        let path = format!("{COLLECTION}/findOne");
        let mut one = || {
            let email = emails[random.below(emails.len() as u32) as usize];
            request("POST", &path, &[], format!("{{\"filter\":{{\"email\":\"{email}\"}}}}").as_bytes())
        };
        let (status, body) = connection.fetch(&one())?;
        if status != 200 || !body.windows(7).any(|w| w == b"\"email\"") {
            return Err(io::Error::other(format!("findOne answered {status}: {}", String::from_utf8_lossy(&body))));
        }
        let requests: Vec<Vec<u8>> = (0..self.requests(15_000)).map(|_| one()).collect();
        let scratch = Scratch::new("floor")?;
        let floor = Server::floor(scratch.path(), Work::Constant, body.len())?;
        let (ours, floor) = pair(self.floor_first(), 1, &requests, server, &floor)?;
        let sample = Sample::of(ours.rate(), floor.rate()).latencies(&ours, &floor);
        self.record("findOne by an indexed field", "1/s", "HTTP", Goal::Ratio(0.85), sample);
        Ok(())
    }

    /// A tenth of all documents, by a range of a field.
    fn delete(&mut self, server: &Server) -> io::Result<()> {
        say("  deleteMany of a tenth");
        let question = Question {
            name: "a tenth by seq",
            filter: r#"{"seq":{"$mod":[10,3]}}"#,
            holds: |f| f.number("seq") % 10.0 == 3.0,
        };
        let mut connection = Connection::open(server.address())?;
        let from = Instant::now();
        let deleted = told(&mut connection, &ask("deleteMany", question.filter), "deletedCount")?;
        let elapsed = from.elapsed().as_secs_f64() * 1e3;
        agree(&question, self.expected(&question), deleted)?;
        self.record("deleteMany of a tenth", "ms", "", Goal::AtMost(50.0), Sample::alone(elapsed));
        Ok(())
    }
}

/// Bytes of the collection's segments.
fn disk(server: &Server) -> io::Result<u64> {
    let mut connection = Connection::open(server.address())?;
    let (status, body) = connection.fetch(&request("GET", COLLECTION, &[], b""))?;
    let answer: serde_json::Value = serde_json::from_slice(&body)?;
    let bytes = answer["bytes"]["total"].as_u64();
    bytes.ok_or_else(|| io::Error::other(format!("no bytes in the description: {status} {answer}")))
}
