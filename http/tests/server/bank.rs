//! A bank under SIGKILL: sixteen clients move money between accounts of two databases, by both kinds of transactions, while
//! the server is killed again and again. The total never changes, and every transfer that was answered is in the books.
//!
//! Three rounds; `QUARRYDB_KILL_ROUNDS` asks for more. The directory is the same in all rounds.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Answer, Connection, Server};

const CLIENTS: u64 = 16;
const ROUNDS: usize = 3;
const ACCOUNTS: u64 = 20;
const MONEY: i64 = 1000;
/// Transfers answered before the kill.
const TRANSFERS_MIN: usize = 200;

/// The collection of an account.
fn place(account: u64) -> &'static str {
    if account.is_multiple_of(2) { "east.accounts" } else { "west.accounts" }
}

/// A client of a server that may go at any time.
struct Client {
    connection: Connection,
    chance: u64,
}

impl Client {
    /// A request; none where the server is gone.
    fn ask(&mut self, path: &str, inside: Option<&str>, body: &str) -> Option<Answer> {
        let header = inside.map_or(String::new(), |id| format!("Transaction-Id: {id}\r\n"));
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: {length}\r\n\r\n{body}");
        let there = self.connection.send(head.as_bytes())
            && self.connection.stream.fill_buf().is_ok_and(|answer| !answer.is_empty());
        there.then(|| self.connection.answer(false))
    }

    fn below(&mut self, n: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 11) % n
    }

    /// Moves money and writes it down as `name`; whether that was answered as done, none where the server is gone.
    fn transfer(&mut self, name: &str) -> Option<bool> {
        let (from, to, amount) = (self.below(ACCOUNTS), self.below(ACCOUNTS), 1 + self.below(50));
        let move_by = |account: u64, by: i64| json!({"filter": {"_id": account}, "update": {"$inc": {"money": by}}});
        let amount = i64::try_from(amount).unwrap();
        let steps = [
            (place(from), "updateOne", move_by(from, -amount)),
            (place(to), "updateOne", move_by(to, amount)),
            ("east.books", "insertOne", json!({"document": {"_id": name, "by": amount}})),
        ];
        if self.below(2) == 0 {
            let operations = steps.map(|(ns, operation, body)| json!({"ns": ns, operation: body}));
            let answer = self.ask("/v1/transaction", None, &json!({"operations": operations}).to_string())?;
            assert_eq!(answer.status, 200, "{}", answer.text());
            return Some(true);
        }
        let begun = self.ask("/v1/transactions", None, "")?;
        assert_eq!(begun.status, 201, "{}", begun.text());
        let id = begun.json()["transactionId"].as_str().unwrap().to_owned();
        for (ns, operation, body) in steps {
            let path = format!("/v1/db/{}/{operation}", ns.replace('.', "/"));
            let answer = self.ask(&path, Some(&id), &body.to_string())?;
            match answer.status {
                200 | 201 => {}
                409 => return Some(false),
                _ => panic!("{}", answer.text()),
            }
        }
        let answer = self.ask(&format!("/v1/transactions/{id}/commit"), None, "")?;
        match answer.status {
            200 => Some(true),
            409 => Some(false),
            _ => panic!("{}", answer.text()),
        }
    }
}

/// All accounts as of one moment.
fn total(server: &Server) -> i64 {
    let body = json!({"operations": [
        {"ns": "east.accounts", "find": {}}, {"ns": "west.accounts", "find": {}},
    ]});
    let answer = server.post("/v1/transaction", &body.to_string()).expect(200);
    let of = |i: usize| -> i64 {
        let documents = answer["results"][i]["documents"].as_array().unwrap();
        documents.iter().map(|document| document["money"].as_i64().unwrap()).sum()
    };
    of(0) + of(1)
}

#[test]
fn money_that_is_moved_under_sigkill_is_never_more_nor_less() {
    let rounds = std::env::var("QUARRYDB_KILL_ROUNDS").ok().and_then(|v| v.parse().ok()).unwrap_or(ROUNDS);
    let dir = tempfile::tempdir().unwrap();
    let all = i64::try_from(ACCOUNTS).unwrap() * MONEY;
    let mut written = BTreeSet::new();
    for round in 0..rounds {
        let mut server = Server::on(dir.path(), &["--seal-rows", "100"]);
        if round == 0 {
            let open = |account: u64| json!({"ns": place(account), "insertOne": {"document": {"_id": account, "money": MONEY}}});
            let body = json!({"operations": (0..ACCOUNTS).map(open).collect::<Vec<Value>>()});
            server.post("/v1/transaction", &body.to_string()).expect(200);
        }
        assert_eq!(total(&server), all, "round {round}: before");
        let answered = Mutex::new(BTreeSet::new());
        std::thread::scope(|scope| {
            for number in 0..CLIENTS {
                let (answered, connection) = (&answered, server.connect());
                scope.spawn(move || {
                    let mut client = Client { connection, chance: (round as u64 * 97 + number + 1) * 0x9e37_79b9 };
                    for i in 0.. {
                        let name = format!("{round}-{number}-{i}");
                        match client.transfer(&name) {
                            None => return,
                            Some(true) => drop(answered.lock().unwrap().insert(name)),
                            Some(false) => {}
                        }
                    }
                });
            }
            while answered.lock().unwrap().len() < TRANSFERS_MIN {
                assert_eq!(total(&server), all, "round {round}: meanwhile");
                std::thread::sleep(Duration::from_millis(2));
            }
            server.kill();
        });
        written.append(&mut answered.into_inner().unwrap());
    }
    let server = Server::on(dir.path(), &[]);
    assert_eq!(total(&server), all, "at the end");
    let books = server.post("/v1/db/east/books/find", "{}").expect(200);
    let books: BTreeSet<_> =
        books["documents"].as_array().unwrap().iter().map(|d| d["_id"].as_str().unwrap().to_owned()).collect();
    let lost: Vec<_> = written.difference(&books).collect();
    assert!(lost.is_empty(), "answered and lost: {lost:?}");
    // At most the one in flight of each client in each round was not answered and is there.
    assert!(books.len() - written.len() <= rounds * CLIENTS as usize);
}
