//! A running server and a client that hides nothing: bytes out, status, headers and body in.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Long enough for a loaded machine; a test that meets it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The executable under test.
pub(crate) fn quarrydb() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quarrydb"));
    command.env_clear();
    command
}

/// A server process; killed when dropped.
pub(crate) struct Server {
    child: Child,
    /// `127.0.0.1:41233`.
    pub(crate) address: String,
    dir: Option<TempDir>,
    data: PathBuf,
}

impl Server {
    /// With default options in a new directory.
    pub(crate) fn start() -> Self {
        Self::with(&[])
    }

    /// With further options in a new directory.
    pub(crate) fn with(options: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut server = Self::on(&dir.path().join("data"), options);
        server.dir = Some(dir);
        server
    }

    /// On a directory that stays.
    pub(crate) fn on(data: &Path, options: &[&str]) -> Self {
        let mut command = quarrydb();
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(data).args(options);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().unwrap_or_default().to_owned();
        assert!(line.starts_with("listening on http"), "the server said {line:?}");
        Self { child, address, dir: None, data: data.to_owned() }
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// SIGTERM, and how it ended.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::TERM);
        self.wait()
    }

    /// Waits until it ends.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let begun = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(begun.elapsed() < PATIENCE, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// A connection.
    pub(crate) fn connect(&self) -> Connection {
        Connection::to(&self.address)
    }

    /// One request on a connection of its own.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.connect().request(method, path, headers, body)
    }

    /// A POST with JSON.
    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.request("POST", path, &[("Content-Type", "application/json")], body.as_bytes())
    }

    /// A GET.
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    /// A number from `/metrics`.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.get("/metrics").text();
        let line = text.lines().find(|l| l.starts_with(name) && l[name.len()..].starts_with(' '));
        line.unwrap_or_else(|| panic!("no metric {name}")).rsplit(' ').next().unwrap().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as its framing says.
    pub(crate) whole: bool,
}

impl Answer {
    /// A header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }

    /// The body as text.
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e} in {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The body as JSON, after checking the status.
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", String::from_utf8_lossy(&self.body));
        self.json()
    }

    /// Checks that it is an error in the one shape, and gives its name.
    pub(crate) fn error(&self, status: u16) -> String {
        let body = self.expect(status);
        assert_eq!(self.header("content-type"), Some("application/json"), "{body}");
        assert!(!body["error"].as_str().unwrap().is_empty());
        body["error_code"].as_str().unwrap().to_owned()
    }
}

/// A socket.
pub(crate) struct Connection {
    pub(crate) stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream: BufReader::new(stream) }
    }

    /// Writes bytes as they are; false where the server does not take them any more.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// One request and its answer.
    pub(crate) fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(k, _)| k.eq_ignore_ascii_case("host")) {
            head.push_str("Host: localhost\r\n");
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let framed = headers.iter().any(|(k, _)| k.eq_ignore_ascii_case("transfer-encoding"));
        if !framed && (!body.is_empty() || method != "GET") {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        // The server may refuse before all is sent: its answer counts all the same.
        let _ = self.send(head.as_bytes()) && self.send(body);
        self.answer(method == "HEAD")
    }

    /// Reads one answer.
    pub(crate) fn answer(&mut self, head_only: bool) -> Answer {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        let status = line.split(' ').nth(1).unwrap_or_else(|| panic!("no status in {line:?}")).parse().unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            self.stream.read_line(&mut line).unwrap();
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new(), whole: true };
        if head_only || status == 204 {
            return answer;
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.whole = self.chunks(&mut answer.body);
        } else {
            let len: u64 = answer.header("content-length").unwrap_or("0").parse().unwrap();
            let read = self.stream.by_ref().take(len).read_to_end(&mut answer.body).unwrap_or(0);
            answer.whole = read as u64 == len;
        }
        answer
    }

    fn chunks(&mut self, out: &mut Vec<u8>) -> bool {
        loop {
            let mut line = String::new();
            if self.stream.read_line(&mut line).unwrap_or(0) == 0 {
                return false;
            }
            let Ok(len) = u64::from_str_radix(line.trim(), 16) else { return false };
            if self.stream.by_ref().take(len).read_to_end(out).unwrap_or(0) as u64 != len {
                return false;
            }
            line.clear();
            if self.stream.read_line(&mut line).unwrap_or(0) == 0 {
                return false;
            }
            if len == 0 {
                return true;
            }
        }
    }
}

/// A body in chunked framing.
pub(crate) fn chunked(body: &[u8], piece: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for part in body.chunks(piece) {
        out.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
        out.extend_from_slice(part);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"0\r\n\r\n");
    out
}

/// gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Undoes gzip.
pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(bytes).read_to_end(&mut out).unwrap();
    out
}
