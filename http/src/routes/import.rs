//! `POST .../import`: a stream of documents of any length, read with bounded memory.
//!
//! The body's frames go through a bounded channel to a thread that unpacks, cuts and commits (`import/`).

use std::collections::VecDeque;
use std::io::{self, Read};

use axum::body::{Body, HttpBody};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::{Buf, Bytes};
use http::{Request, StatusCode};
use quarrydb::WriteOptions;
use tokio::sync::{Semaphore, mpsc};

use super::{Call, query_flag};
use crate::answer;
use crate::body::{self, Clock};
use crate::error::{ApiError, Result};
use crate::import::{self, Plan, Progress, Report};
use crate::metrics;
use crate::negotiate::{self, Takes};
use crate::operation::Operation;
use crate::state::Shared;

/// Imports at once; each holds a few blocks and threads.
static PLACES: Semaphore = Semaphore::const_new(32);
/// What is received before an import takes its place; short ones are here whole by then.
const AHEAD_BYTES: usize = 64 << 10;
/// Frames on their way to the import's thread.
const FRAMES_MAX: usize = 16;

/// The route.
pub(crate) async fn handle(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    let call = match Call::new(&app, Operation::Import, &mut parts).await {
        Ok(call) => call,
        Err(error) => {
            body::drain(body);
            return error.into_response();
        }
    };
    let mut rest = Some(body);
    let result = load(&call, &parts, &mut rest).await;
    if let Some(body) = rest.filter(|b| !b.is_end_stream()) {
        body::drain(body);
    }
    let response = match result {
        Ok(report) => answer_report(&call, &report),
        Err(error) => error.into_response(),
    };
    call.done(&[], response.status());
    response
}

async fn load(call: &Call, parts: &http::request::Parts, body: &mut Option<Body>) -> Result<Report> {
    negotiate::content_type(&parts.headers, Takes::Lines)?;
    let coding = negotiate::body_coding(&parts.headers)?;
    let known = ["ordered", "trailer"];
    let plan = Plan {
        ordered: query_flag(parts, "ordered", &known)?.unwrap_or(false),
        require_trailer: query_flag(parts, "trailer", &known)?.unwrap_or(false),
        write: WriteOptions::default(),
        longest: call.app.settings.max_body_bytes,
    };
    let super::Names::Path { db, coll } = &call.names else { return Err(ApiError::internal(&"no path")) };
    let database = call.database()?.clone();
    let collection = database.collection(db, coll)?;
    let mut clock = Clock::new(call.app.settings.body_timeout);
    let Some(body) = body.as_mut() else { return Ok(Report::default()) };
    let (ahead, ended) = receive_ahead(call, body, &mut clock).await?;
    // A place is for who has shown that there is something to load: slow clients wait outside.
    let _place = PLACES
        .try_acquire()
        .map_err(|_| ApiError::too_many_requests("too many imports at once: try again in a moment"))?;
    let (frames, receiver) = mpsc::channel(FRAMES_MAX);
    let work = tokio::task::spawn_blocking(move || -> Result<Report> {
        let reader = body::reader(coding, Frames { ahead, receiver, current: Bytes::new() })?;
        Ok(import::run(&database, &collection, reader, plan, &Progress::default()))
    });
    if ended {
        drop(frames);
    } else {
        feed(call, body, &mut clock, frames).await;
    }
    work.await.map_err(|e| ApiError::internal(&e))?
}

/// The first frames, and whether they are all.
async fn receive_ahead(call: &Call, body: &mut Body, clock: &mut Clock) -> Result<(VecDeque<Bytes>, bool)> {
    let (mut ahead, mut len) = (VecDeque::new(), 0);
    while len < AHEAD_BYTES {
        let Some(bytes) = body::next_frame(body, clock).await? else { return Ok((ahead, true)) };
        clock.received(bytes.len());
        metrics::add(&call.app.metrics.request_bytes, bytes.len() as u64);
        len += bytes.len();
        ahead.push_back(bytes);
    }
    Ok((ahead, false))
}

/// Hands the body's frames on until it ends, breaks, or nobody wants more.
async fn feed(call: &Call, body: &mut Body, clock: &mut Clock, frames: mpsc::Sender<io::Result<Bytes>>) {
    loop {
        let frame = match body::next_frame(body, clock).await {
            Ok(None) => return,
            Ok(Some(bytes)) => {
                clock.received(bytes.len());
                metrics::add(&call.app.metrics.request_bytes, bytes.len() as u64);
                Ok(bytes)
            }
            Err(e) => Err(io::Error::other(e.message().to_owned())),
        };
        let ends = frame.is_err();
        let waited = std::time::Instant::now();
        if frames.send(frame).await.is_err() || ends {
            return;
        }
        // Time that our own side took is not the client's.
        clock.forgive(waited.elapsed());
    }
}

/// The frames as a reader, on the import's thread.
struct Frames {
    ahead: VecDeque<Bytes>,
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    current: Bytes,
}

impl Read for Frames {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            if let Some(first) = self.ahead.pop_front() {
                self.current = first;
                continue;
            }
            match self.receiver.blocking_recv() {
                None => return Ok(0),
                Some(frame) => self.current = frame?,
            }
        }
        let n = out.len().min(self.current.len());
        self.current.copy_to_slice(&mut out[..n]);
        Ok(n)
    }
}

/// 200 with the report; 400 and the like where the stream itself was at fault, with what was done until then.
fn answer_report(call: &Call, report: &Report) -> Response {
    let mut out = vec![b'{'];
    let status = match &report.fatal {
        None => StatusCode::OK,
        Some(error) => {
            error.print_fields(&mut out);
            error.status()
        }
    };
    answer::count("lines", report.lines, &mut out);
    answer::count("insertedCount", report.inserted, &mut out);
    answer::count("failedCount", report.failed, &mut out);
    out.extend_from_slice(b",\"errors\":[");
    for (i, refused) in report.errors.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"line\":");
        answer::integer(i64::try_from(refused.line).unwrap_or(i64::MAX), &mut out);
        out.push(b',');
        refused.error.print_fields(&mut out);
        out.push(b'}');
    }
    out.push(b']');
    if report.whole {
        out.extend_from_slice(b",\"trailer\":true");
    }
    out.push(b'}');
    call.answer(status, out)
}
