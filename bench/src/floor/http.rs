//! The floors with a server: a bare axum program, of the same version that the product is built on.
//!
//! It takes the very requests that the product takes, whatever their path, and does one thing with them. `Constant`
//! reads and drops the body and answers a constant of the size it was started with: the HTTP floor. `Write` parses the
//! body to simd-json's tape and appends it to a preallocated log, synced by a leader for all who wait, on the handling
//! thread: the write floor. `Ingest` does it line by line with a streamed body, not synced. There is no engine behind
//! any of them. Says `listening on http://...` when it answers, as the server does.

use crate::floor::machine::preallocated;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::routing::post;
use axum::serve::ListenerExt;
use simd_json::{Buffers, Tape};
use std::cell::RefCell;
use std::fs::File;
use std::future::poll_fn;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::oneshot;

/// The log's length. A run that writes more begins again at the front.
const LOG_BYTES: u64 = 512 << 20;
/// An `insertMany` of the suites has a third of a megabyte.
const BODY_BYTES_MAX: usize = 64 << 20;

/// What the program does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nothing.
    Constant,
    /// Parse and append, synced before the answer.
    WriteSynced,
    /// Parse and append.
    Write,
    /// Parse and append line by line.
    Ingest,
}

impl Work {
    /// By the name that stands on the command line.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Constant, Self::WriteSynced, Self::Write, Self::Ingest].into_iter().find(|w| w.name() == name)
    }

    /// The name that stands on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::WriteSynced => "write-synced",
            Self::Write => "write",
            Self::Ingest => "ingest",
        }
    }
}

/// How the program is started.
#[derive(Clone, Debug)]
pub struct Options {
    /// What it does.
    pub work: Work,
    /// Bytes of each answer.
    pub answer_bytes: usize,
    /// Where the log goes.
    pub log: PathBuf,
}

struct Floor {
    answer: Bytes,
    group: Group,
}

/// What waits for the next sync, and whether somebody is at it.
#[derive(Default)]
struct Queue {
    pending: Vec<u8>,
    waiting: Vec<oneshot::Sender<Turn>>,
    led: bool,
    at: u64,
}

/// What a follower is told.
enum Turn {
    Synced,
    Lead,
}

struct Group {
    queue: Mutex<Queue>,
    file: File,
    sync: bool,
}

impl Group {
    fn locked(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends `record`; with `sync`, returns once it is on the disk.
    async fn append(&self, record: &[u8]) -> io::Result<()> {
        let follow = {
            let mut queue = self.locked();
            queue.pending.extend_from_slice(&(record.len() as u32).to_le_bytes());
            queue.pending.extend_from_slice(record);
            if !self.sync {
                let bytes = std::mem::take(&mut queue.pending);
                let at = place(&mut queue, bytes.len());
                self.file.write_all_at(&bytes, at)?;
                queue.pending = bytes;
                queue.pending.clear();
                return Ok(());
            }
            if queue.led {
                let (tell, told) = oneshot::channel();
                queue.waiting.push(tell);
                Some(told)
            } else {
                queue.led = true;
                None
            }
        };
        match follow {
            None => self.lead(),
            Some(told) => match told.await {
                Ok(Turn::Synced) => Ok(()),
                Ok(Turn::Lead) => self.lead(),
                Err(_) => Err(io::Error::other("the leader failed")),
            },
        }
    }

    /// Writes and syncs for all who wait, wakes them, and hands on to the first who came meanwhile.
    fn lead(&self) -> io::Result<()> {
        let (bytes, waiting, at) = {
            let mut queue = self.locked();
            let bytes = std::mem::take(&mut queue.pending);
            let at = place(&mut queue, bytes.len());
            (bytes, std::mem::take(&mut queue.waiting), at)
        };
        self.file.write_all_at(&bytes, at)?;
        self.file.sync_data()?;
        for tell in waiting {
            let _ = tell.send(Turn::Synced);
        }
        let mut queue = self.locked();
        loop {
            if queue.waiting.is_empty() {
                queue.led = false;
                break;
            }
            // A client that has gone leaves a deaf end: the next one leads.
            if queue.waiting.remove(0).send(Turn::Lead).is_ok() {
                break;
            }
        }
        Ok(())
    }
}

/// Where the next `length` bytes go.
fn place(queue: &mut Queue, length: usize) -> u64 {
    if queue.at + length as u64 > LOG_BYTES {
        queue.at = 0;
    }
    let at = queue.at;
    queue.at += length as u64;
    at
}

thread_local! {
    static PARSER: RefCell<(Buffers, Option<Tape<'static>>, Vec<u8>)> = RefCell::new((Buffers::default(), None, Vec::new()));
}

/// Parses `text` to a tape with this thread's buffers and drops it.
fn parsed(text: &[u8]) -> Result<usize, StatusCode> {
    PARSER.with_borrow_mut(|(buffers, kept, copy)| {
        copy.clear();
        copy.extend_from_slice(text);
        let mut tape = kept.take().unwrap_or_else(Tape::null).reset();
        let nodes = simd_json::fill_tape(copy, buffers, &mut tape).map(|()| tape.0.len());
        *kept = Some(tape.reset());
        nodes.map_err(|_| StatusCode::BAD_REQUEST)
    })
}

async fn constant(State(floor): State<Arc<Floor>>, body: Bytes) -> ([(&'static str, &'static str); 1], Bytes) {
    drop(body);
    ([("content-type", "application/json")], floor.answer.clone())
}

async fn write(State(floor): State<Arc<Floor>>, body: Bytes) -> Result<(StatusCode, Bytes), StatusCode> {
    parsed(&body)?;
    floor.group.append(&body).await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok((StatusCode::CREATED, floor.answer.clone()))
}

async fn ingest(State(floor): State<Arc<Floor>>, mut body: Body) -> Result<Bytes, StatusCode> {
    let mut rest: Vec<u8> = Vec::new();
    while let Some(frame) = poll_fn(|cx| HttpBody::poll_frame(Pin::new(&mut body), cx)).await {
        let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
        let Ok(piece) = frame.into_data() else { continue };
        rest.extend_from_slice(&piece);
        let mut from = 0;
        while let Some(n) = rest[from..].iter().position(|b| *b == b'\n') {
            parsed(&rest[from..from + n])?;
            from += n + 1;
        }
        let at = place(&mut floor.group.locked(), from);
        floor.group.file.write_all_at(&rest[..from], at).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        rest.drain(..from);
    }
    Ok(floor.answer.clone())
}

/// Runs until it is killed.
///
/// # Errors
/// Where the log cannot be made or the port not be had.
pub fn serve(options: &Options) -> io::Result<()> {
    let log_bytes = if options.work == Work::Constant { 0 } else { LOG_BYTES };
    let file = preallocated(&options.log, log_bytes)?;
    let group = Group { queue: Mutex::default(), file, sync: options.work == Work::WriteSynced };
    let floor = Arc::new(Floor { answer: vec![b' '; options.answer_bytes].into(), group });
    let router = match options.work {
        Work::Constant => Router::new().fallback(post(constant)),
        Work::Write | Work::WriteSynced => Router::new().fallback(post(write)),
        Work::Ingest => Router::new().fallback(post(ingest)),
    };
    let router = router.layer(DefaultBodyLimit::max(BODY_BYTES_MAX)).with_state(floor);
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let mut out = io::stdout();
        writeln!(out, "listening on http://{}", listener.local_addr()?)?;
        out.flush()?;
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        axum::serve(listener, router).await
    })
}
