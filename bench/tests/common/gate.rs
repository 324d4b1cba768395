//! A gate before a server: hands requests on, but for those that it answers itself, wrongly.

use quarrydb_bench::client::{Connection, request};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

/// What the gate does instead of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    None,
    OneBatchIsDropped,
    TheFirstAnswerToAFindIsGivenAgain,
    DeletesAreOnlySaid,
}

/// Stands until the test's process ends.
pub(crate) struct Gate(SocketAddr);

impl Gate {
    pub(crate) fn before(server: SocketAddr, lie: Lie) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                thread::spawn(move || Keeper { lie, batches: 0, found: None }.keep(&stream, server));
            }
        });
        Self(address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.0
    }
}

struct Keeper {
    lie: Lie,
    batches: usize,
    found: Option<Vec<u8>>,
}

impl Keeper {
    fn keep(&mut self, stream: &TcpStream, server: SocketAddr) {
        let mut behind = Connection::open(server).unwrap();
        let mut requests = BufReader::new(stream);
        loop {
            let mut first = String::new();
            if requests.read_line(&mut first).unwrap_or(0) == 0 {
                return;
            }
            let mut length = 0;
            loop {
                let mut line = String::new();
                requests.read_line(&mut line).unwrap();
                if line.trim().is_empty() {
                    break;
                }
                if let Some(value) = line.strip_prefix("Content-Length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            requests.read_exact(&mut body).unwrap();
            let words: Vec<&str> = first.split(' ').collect();
            let (status, answer) = self.answer(&mut behind, words[0], words[1], &body);
            let head = format!("HTTP/1.1 {status} So\r\nContent-Length: {}\r\n\r\n", answer.len());
            let mut out = stream;
            if out.write_all(&[head.as_bytes(), &answer].concat()).is_err() {
                return;
            }
        }
    }

    fn answer(&mut self, behind: &mut Connection, method: &str, path: &str, body: &[u8]) -> (u16, Vec<u8>) {
        let operation = path.rsplit('/').next().unwrap_or_default();
        let mut onward = || behind.fetch(&request(method, path, &[], body)).unwrap();
        match (self.lie, operation) {
            (Lie::OneBatchIsDropped, "insertMany") => {
                self.batches += 1;
                if self.batches == 2 { (201, br#"{"insertedIds":[],"insertedCount":1000}"#.to_vec()) } else { onward() }
            }
            (Lie::TheFirstAnswerToAFindIsGivenAgain, "find") => {
                (200, self.found.get_or_insert_with(|| onward().1).clone())
            }
            (Lie::DeletesAreOnlySaid, "deleteMany") => {
                let counted =
                    behind.fetch(&request(method, &path.replace("deleteMany", "count"), &[], body)).unwrap().1;
                (200, String::from_utf8(counted).unwrap().replace("count", "deletedCount").into_bytes())
            }
            _ => onward(),
        }
    }
}
