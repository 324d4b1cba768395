//! An HTTP/1.1 client that costs little: one kept-alive connection, requests encoded ahead, answers received whole.
//!
//! Takes bytes ready to send and gives status and body. It understands what a server of ours or a floor answers:
//! `Content-Length` or chunks, no trailers wanted. No decoding, no redirects, no TLS. The next file is `load.rs`.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// What one read asks for. Large answers arrive in pieces of about this size.
const READ_BYTES: usize = 256 * 1024;
/// Head of an answer: more is a fault of the server.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// How long a server may be silent in the middle of an answer.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// One request, ready to send. `body` may be empty.
#[must_use]
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut out = head(method, path, headers, body.len());
    out.extend_from_slice(body);
    out
}

/// The head of a request whose body of `length` bytes is sent apart.
#[must_use]
pub fn head(method: &str, path: &str, headers: &[(&str, &str)], length: usize) -> Vec<u8> {
    let mut out = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n");
    for (name, value) in headers {
        out.push_str(&format!("{name}: {value}\r\n"));
    }
    if length > 0 || method != "GET" {
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            out.push_str("Content-Type: application/json\r\n");
        }
        out.push_str(&format!("Content-Length: {length}\r\n"));
    }
    out.push_str("\r\n");
    out.into_bytes()
}

/// What came back.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Bytes of the body, chunk framing not counted.
    pub body_bytes: u64,
    /// From the request's last byte sent to the first byte of the body.
    pub first_byte: Duration,
}

/// One kept-alive connection.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

enum Framing {
    Length(u64),
    Chunks,
}

impl Connection {
    /// Connects to `address`.
    ///
    /// # Errors
    /// Where nobody listens there.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(SILENCE_MAX))?;
        Ok(Self { stream, buffer: vec![0; READ_BYTES], start: 0, end: 0 })
    }

    /// Sends a request and receives its answer whole, dropping the body.
    ///
    /// # Errors
    /// Where the connection breaks or the answer is not HTTP.
    pub fn exchange(&mut self, request: &[u8]) -> io::Result<Answer> {
        self.exchange_into(request, &[], &mut |_| {})
    }

    /// The same, keeping the body.
    ///
    /// # Errors
    /// As `exchange`.
    pub fn fetch(&mut self, request: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let mut body = Vec::new();
        let answer = self.exchange_into(request, &[], &mut |piece| body.extend_from_slice(piece))?;
        Ok((answer.status, body))
    }

    /// Sends `request` and then `more` (a long body, not copied), and hands each piece of the answer's body to `sink`.
    ///
    /// # Errors
    /// As `exchange`.
    pub fn exchange_into(&mut self, request: &[u8], more: &[u8], sink: &mut dyn FnMut(&[u8])) -> io::Result<Answer> {
        self.stream.write_all(request)?;
        self.stream.write_all(more)?;
        let sent = Instant::now();
        let (status, framing) = self.read_head()?;
        let mut first_byte = None;
        let mut body_bytes = 0_u64;
        let mut take = |piece: &[u8]| {
            first_byte.get_or_insert_with(|| sent.elapsed());
            body_bytes += piece.len() as u64;
            sink(piece);
        };
        match framing {
            Framing::Length(length) => self.read_exactly(length, &mut take)?,
            Framing::Chunks => loop {
                let size = self.read_chunk_size()?;
                if size == 0 {
                    while !self.read_line()?.is_empty() {}
                    break;
                }
                self.read_exactly(size, &mut take)?;
                self.read_line()?;
            },
        }
        Ok(Answer { status, body_bytes, first_byte: first_byte.unwrap_or_else(|| sent.elapsed()) })
    }

    fn fill(&mut self) -> io::Result<()> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let room = self.buffer.get_mut(self.end..).unwrap_or_default();
        if room.is_empty() {
            return Err(bad("a line longer than the buffer"));
        }
        match self.stream.read(room)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection in an answer")),
            n => {
                self.end += n;
                Ok(())
            }
        }
    }

    fn waiting(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    fn read_head(&mut self) -> io::Result<(u16, Framing)> {
        loop {
            if let Some(at) = self.waiting().windows(4).position(|w| w == b"\r\n\r\n") {
                let parsed = parse_head(&self.waiting()[..at + 2]);
                self.start += at + 4;
                return parsed;
            }
            if self.end - self.start > HEAD_BYTES_MAX {
                return Err(bad("a head without end"));
            }
            self.fill()?;
        }
    }

    fn read_exactly(&mut self, mut length: u64, take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        while length > 0 {
            if self.start == self.end {
                self.fill()?;
            }
            let n = usize::try_from(length).unwrap_or(usize::MAX).min(self.end - self.start);
            take(&self.buffer[self.start..self.start + n]);
            self.start += n;
            length -= n as u64;
        }
        Ok(())
    }

    fn read_line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(at) = self.waiting().windows(2).position(|w| w == b"\r\n") {
                let line = self.waiting()[..at].to_vec();
                self.start += at + 2;
                return Ok(line);
            }
            self.fill()?;
        }
    }

    fn read_chunk_size(&mut self) -> io::Result<u64> {
        let line = self.read_line()?;
        let digits = String::from_utf8_lossy(&line);
        let digits = digits.split(';').next().unwrap_or_default().trim();
        u64::from_str_radix(digits, 16).map_err(|_| bad("a chunk without a size"))
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not an answer that this client understands: {what}"))
}

fn parse_head(head: &[u8]) -> io::Result<(u16, Framing)> {
    let text = String::from_utf8_lossy(head);
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|l| l.split(' ').nth(1)).and_then(|s| s.parse::<u16>().ok());
    let status = status.ok_or_else(|| bad("no status"))?;
    let mut framing = None;
    for (name, value) in lines.filter_map(|l| l.split_once(':')) {
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            framing = Some(Framing::Length(value.parse().map_err(|_| bad("a length that is no number"))?));
        } else if name.eq_ignore_ascii_case("transfer-encoding") && value.eq_ignore_ascii_case("chunked") {
            framing = Some(Framing::Chunks);
        }
    }
    match framing {
        Some(framing) => Ok((status, framing)),
        None if status == 204 || status == 304 => Ok((status, Framing::Length(0))),
        None => Err(bad("neither a length nor chunks")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn served(answer: &'static [u8], piece: usize) -> (u16, Vec<u8>, (u16, Vec<u8>)) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut seen = vec![0; 1024];
            for _ in 0..2 {
                let _ = stream.read(&mut seen).unwrap();
                for part in answer.chunks(piece) {
                    stream.write_all(part).unwrap();
                }
            }
        });
        let mut connection = Connection::open(address).unwrap();
        let first = connection.fetch(&request("GET", "/", &[], b"")).unwrap();
        let second = connection.fetch(&request("GET", "/", &[], b"")).unwrap();
        server.join().unwrap();
        (first.0, first.1, second)
    }

    #[test]
    fn an_answer_is_whole_however_it_is_cut() {
        let long = b"HTTP/1.1 201 Created\r\ncontent-length: 11\r\n\r\nhello\r\nyou!";
        let chunks =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n\r\nyou!\r\n0\r\n\r\n";
        for piece in [1, 3, 7, 1000] {
            let (status, body, second) = served(long, piece);
            assert_eq!((status, body.as_slice()), (201, b"hello\r\nyou!".as_slice()));
            assert_eq!(second, (201, b"hello\r\nyou!".to_vec()));
            let (status, body, second) = served(chunks, piece);
            assert_eq!((status, body.as_slice()), (200, b"hello\r\nyou!".as_slice()));
            assert_eq!(second, (200, b"hello\r\nyou!".to_vec()));
        }
    }
}
