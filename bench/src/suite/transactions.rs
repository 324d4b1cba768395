//! TPC-B's shape: one branch that all update, ten tellers, 100,000 accounts, a history; one transaction a request, and
//! interactive ones, beside the write floor and beside PostgreSQL's `pgbench` where the machine has it.
//!
//! Each row ends by looking whether the balances agree with each other and with what the clients were told.

use super::{Round, pair, say};
use crate::client::{Connection, request};
use crate::floor::http::Work;
use crate::postgres::Postgres;
use crate::report::{Goal, Sample};
use crate::server::{Scratch, Server};
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;
/// Clients, and transactions sent by them together in one request each.
const SINGLE: [(usize, usize); 4] = [(1, 4000), (8, 20_000), (50, 60_000), (200, 60_000)];
/// How long interactive ones, and `pgbench`, run.
const INTERACTIVE: Duration = Duration::from_secs(4);
/// Bytes of an answer to one transaction.
const ANSWER_BYTES: usize = 175;
/// Times PostgreSQL's.
const BESIDE_POSTGRES: f64 = 5.0;

/// One transaction: who, and by how much.
#[derive(Clone, Copy)]
struct Transfer {
    account: u64,
    teller: u64,
    delta: i64,
}

/// Transfers from a seed.
struct Transfers(u64);

impl Iterator for Transfers {
    type Item = Transfer;

    fn next(&mut self) -> Option<Transfer> {
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 >> 11
        };
        let delta = i64::try_from(next() % 10_001).unwrap_or(0) - 5000;
        Some(Transfer { account: next() % ACCOUNTS, teller: next() % TELLERS, delta })
    }
}

impl Transfer {
    /// The three updates and the insert: collection, operation, body.
    fn parts(self) -> [(&'static str, &'static str, String); 4] {
        let Self { account, teller, delta } = self;
        let update = |id: u64| format!(r#"{{"filter":{{"_id":{id}}},"update":{{"$inc":{{"balance":{delta}}}}}}}"#);
        let history = format!(r#"{{"document":{{"account":{account},"teller":{teller},"branch":1,"delta":{delta}}}}}"#);
        [
            ("accounts", "updateOne", update(account)),
            ("tellers", "updateOne", update(teller)),
            ("branches", "updateOne", update(1)),
            ("history", "insertOne", history),
        ]
    }

    fn single(self) -> Vec<u8> {
        let parts =
            self.parts().map(|(name, operation, body)| format!(r#"{{"ns":"tpcb.{name}","{operation}":{body}}}"#));
        let body = format!(r#"{{"operations":[{}]}}"#, parts.join(","));
        request("POST", "/v1/transaction", &[], body.as_bytes())
    }
}

impl Round<'_> {
    /// All of it, on a server of its own in `commit` mode.
    pub(super) fn transactions(&mut self) -> io::Result<()> {
        let scratch = Scratch::new("transactions")?;
        let server = Server::product(&scratch.path().join("data"), "commit")?;
        fill(server.address())?;
        let floor_of = Scratch::new("floor")?;
        let floor = Server::floor(floor_of.path(), Work::WriteSynced, ANSWER_BYTES)?;
        let postgres = Postgres::start(scratch.path());
        if postgres.is_none() {
            say("  no PostgreSQL on this machine: its rows are left out");
        }
        let mut told = 0;
        for (index, (clients, count)) in SINGLE.into_iter().enumerate() {
            let row = format!("TPC-B, one request, {clients} clients");
            say(&format!("  {row}"));
            let seed = 1 + (self.repetition * SINGLE.len() + index) as u64;
            let transfers: Vec<_> = Transfers(seed * 0x9e37_79b9).take(self.requests(count).max(clients)).collect();
            let requests: Vec<_> = transfers.iter().map(|transfer| transfer.single()).collect();
            let (ours, floor) = pair(self.floor_first(), clients, &requests, &server, &floor)?;
            told += transfers.iter().map(|transfer| transfer.delta).sum::<i64>();
            check(server.address(), told)?;
            let sample = Sample::of(ours.rate(), floor.rate()).latencies(&ours, &floor);
            self.record(&row, "1/s", "write", Goal::None, sample);
            let beside = match &postgres {
                Some(postgres) => Some(postgres.tpcb(clients, self.time())?),
                None => None,
            };
            if let Some(theirs) = beside {
                let goal = if clients == 50 { Goal::Ratio(BESIDE_POSTGRES) } else { Goal::None };
                let row = format!("{row}, beside PostgreSQL");
                self.record(&row, "1/s", "pgbench", goal, Sample::of(ours.rate(), theirs));
            }
            let interactive = format!("TPC-B, interactive, {clients} clients");
            say(&format!("  {interactive}"));
            let (rate, again, sum) = interact(server.address(), clients, self.time(), seed)?;
            told += sum;
            check(server.address(), told)?;
            self.record(&interactive, "1/s", "", Goal::None, Sample::alone(rate));
            let row = format!("{interactive}: begun anew");
            self.record(&row, "each", "", Goal::None, Sample::alone(again));
        }
        Ok(())
    }

    fn time(&self) -> Duration {
        if self.plan.hurry > 1 { INTERACTIVE / 4 } else { INTERACTIVE }
    }
}

fn post(connection: &mut Connection, path: &str, body: &str) -> io::Result<Value> {
    let (status, said) = connection.fetch(&request("POST", path, &[], body.as_bytes()))?;
    if !matches!(status, 200 | 201) {
        return Err(io::Error::other(format!("{path} answered {status}: {}", String::from_utf8_lossy(&said))));
    }
    Ok(serde_json::from_slice(&said)?)
}

/// Branch, tellers and accounts, all with nothing.
fn fill(address: SocketAddr) -> io::Result<()> {
    let mut connection = Connection::open(address)?;
    let numbers: Vec<u64> = (0..ACCOUNTS).collect();
    for (name, ids) in [("branches", &[1][..]), ("tellers", &numbers[..TELLERS as usize]), ("accounts", &numbers[..])] {
        for some in ids.chunks(1000) {
            let filler = "-".repeat(84);
            let document = |id: &u64| format!(r#"{{"_id":{id},"balance":0,"filler":"{filler}"}}"#);
            let documents: Vec<_> = some.iter().map(document).collect();
            let body = format!(r#"{{"documents":[{}]}}"#, documents.join(","));
            post(&mut connection, &format!("/v1/db/tpcb/{name}/insertMany"), &body)?;
        }
    }
    Ok(())
}

/// Whether all balances are what they should be.
fn check(address: SocketAddr, expected: i64) -> io::Result<()> {
    let mut connection = Connection::open(address)?;
    for (name, field) in
        [("branches", "balance"), ("tellers", "balance"), ("accounts", "balance"), ("history", "delta")]
    {
        let body = format!(r#"{{"projection":{{"_id":0,"{field}":1}}}}"#);
        let found = post(&mut connection, &format!("/v1/db/tpcb/{name}/find"), &body)?;
        let documents = found["documents"].as_array().map(Vec::as_slice).unwrap_or_default();
        let sum: i64 = documents.iter().filter_map(|document| document[field].as_i64()).sum();
        if sum != expected {
            return Err(io::Error::other(format!("{name} add up to {sum}, and the clients were told {expected}")));
        }
    }
    Ok(())
}

/// Interactive transactions by `clients` for so long: how many a second, how often each was begun anew, and their sum.
fn interact(address: SocketAddr, clients: usize, time: Duration, seed: u64) -> io::Result<(f64, f64, i64)> {
    let (done, again, sum) = (AtomicU64::new(0), AtomicU64::new(0), AtomicI64::new(0));
    let begun = Instant::now();
    let one = |client: usize| -> io::Result<()> {
        let mut connection = Connection::open(address)?;
        let mut transfers = Transfers(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ (client as u64 + 1) << 20 | 1);
        while begun.elapsed() < time {
            let Some(transfer) = transfers.next() else { break };
            while !attempt(&mut connection, transfer)? {
                again.fetch_add(1, Ordering::Relaxed);
                if begun.elapsed() >= time {
                    return Ok(());
                }
            }
            sum.fetch_add(transfer.delta, Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let one = &one;
        let threads: Vec<_> = (0..clients).map(|client| scope.spawn(move || one(client))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread of the load does not panic"))
    })?;
    let done = done.into_inner() as f64;
    Ok((done / begun.elapsed().as_secs_f64(), again.into_inner() as f64 / done.max(1.0), sum.into_inner()))
}

/// One interactive transaction; false where another was first.
fn attempt(connection: &mut Connection, transfer: Transfer) -> io::Result<bool> {
    let begun = post(connection, "/v1/transactions", "")?;
    let id = begun["transactionId"].as_str().unwrap_or_default().to_owned();
    let inside = [("Transaction-Id", id.as_str())];
    for (name, operation, body) in transfer.parts() {
        let path = format!("/v1/db/tpcb/{name}/{operation}");
        let (status, said) = connection.fetch(&request("POST", &path, &inside, body.as_bytes()))?;
        match status {
            200 | 201 => {}
            409 => return Ok(false),
            _ => return Err(io::Error::other(format!("{path} answered {status}: {}", String::from_utf8_lossy(&said)))),
        }
    }
    let path = format!("/v1/transactions/{id}/commit");
    match connection.fetch(&request("POST", &path, &[], b""))? {
        (200, _) => Ok(true),
        (409, _) => Ok(false),
        (status, said) => {
            Err(io::Error::other(format!("{path} answered {status}: {}", String::from_utf8_lossy(&said))))
        }
    }
}
