//! The short way of small requests: a connection's document operations and whole transactions, read, run and answered without a stack between.
//!
//! Takes a connection before hyper has it. A request that `head.rs` understands whole is run by the same `routes::run` as
//! every other, and `write.rs` answers it in one write. At the first request of another kind (a large or streamed body, a
//! GET, a page's `Origin`, a key that is not known, anything odd) the connection goes over to hyper for good, with all
//! bytes that are not answered yet: so every refusal has its one place, behind `connection.rs`. Keeps: what is answered
//! here has the same status, headers and body as there. Why it pays stands in docs/decisions/0005.

mod head;
mod write;

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::watch;

use crate::error::ApiError;
use crate::metrics;
use crate::routes::{self, Call};
use crate::state::Shared;
use head::Look;

pub(crate) use head::Head;

/// A request that is longer, head and body together, goes the long way. Each connection has a buffer of this size.
const REQUEST_BYTES_MAX: usize = 16 << 10;
/// How long an orderly end may take.
const END_TIME_MAX: Duration = Duration::from_secs(1);

/// How a connection left the short way.
pub(crate) enum End {
    /// It is over.
    Closed,
    /// It goes on behind these bytes, the first of which came at this time of `App::now_ms`.
    LongWay(Vec<u8>, u64),
}

/// What has arrived and is not answered yet.
struct Arrived {
    bytes: Box<[u8]>,
    filled: usize,
}

impl Arrived {
    fn new() -> Self {
        Self { bytes: vec![0; REQUEST_BYTES_MAX].into(), filled: 0 }
    }

    /// What has arrived, and the room behind it.
    fn split(&mut self) -> (&[u8], &mut [u8]) {
        let (seen, room) = self.bytes.split_at_mut(self.filled);
        (seen, room)
    }

    /// Lets the first `used` bytes go, after `more` have come behind what was there.
    fn advance(&mut self, used: usize, more: usize) {
        let end = self.filled + more;
        self.bytes.copy_within(used..end, 0);
        self.filled = end - used;
    }
}

/// What a connection meets while it waits for a request.
enum Event {
    Read(usize),
    Gone,
    Tick,
    Stop,
}

/// Serves small requests until another kind comes, the client goes, it is idle for too long, or the server stops.
pub(crate) async fn serve<S>(app: &Shared, stream: &mut S, stop: &mut watch::Receiver<bool>) -> End
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut arrived = Arrived::new();
    let mut out = Vec::new();
    // Since when it is idle, or its request is on its way.
    let mut since_ms = app.now_ms();
    let step = app.settings.patience_step();
    let mut tick = pin!(tokio::time::sleep(step));
    let mut stopped = pin!(stop.changed());
    let mut stopping = app.is_stopping();
    loop {
        let (seen, room) = arrived.split();
        let head = match head::look(seen) {
            Look::Request(head) => head,
            Look::Partial if stopping && seen.is_empty() => return close(stream).await,
            Look::Partial if !stopping && !room.is_empty() => {
                let event = poll_fn(|cx| {
                    let mut buffer = ReadBuf::new(room);
                    match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                        Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                            return Poll::Ready(Event::Read(buffer.filled().len()));
                        }
                        Poll::Ready(_) => return Poll::Ready(Event::Gone),
                        Poll::Pending => {}
                    }
                    if tick.as_mut().poll(cx).is_ready() {
                        return Poll::Ready(Event::Tick);
                    }
                    if stopped.as_mut().poll(cx).is_ready() { Poll::Ready(Event::Stop) } else { Poll::Pending }
                });
                let (event, is_idle) = (event.await, seen.is_empty());
                match event {
                    Event::Read(bytes) => {
                        arrived.filled += bytes;
                        if is_idle {
                            since_ms = app.now_ms();
                        }
                    }
                    Event::Stop => stopping = true,
                    Event::Gone if is_idle => return close(stream).await,
                    // Half a request is for the long way to judge.
                    Event::Gone => return End::LongWay(seen.to_vec(), since_ms),
                    Event::Tick => {
                        tick.as_mut().reset(tokio::time::Instant::now() + step);
                        let waited = Duration::from_millis(app.now_ms().saturating_sub(since_ms));
                        if is_idle && waited > app.settings.idle_timeout {
                            return close(stream).await;
                        }
                        if !is_idle && waited > step {
                            return End::LongWay(seen.to_vec(), since_ms);
                        }
                    }
                }
                continue;
            }
            Look::Partial | Look::Other => return End::LongWay(seen.to_vec(), since_ms),
        };
        let Some(call) = admit(app, &head) else { return End::LongWay(seen.to_vec(), since_ms) };
        let used = head.head_bytes + head.body_bytes;
        let body = seen.get(head.head_bytes..used).unwrap_or_default();
        let mut ahead = Ahead { room, filled: 0 };
        let Some(response) = answered(&call, body, stream, &mut ahead).await else { return End::Closed };
        let answer = write::Answer { app, id: head.request_id, coding: call.coding };
        if answer.send(response, stream, &mut ahead, &mut out).await.is_err() {
            return End::Closed;
        }
        let more = ahead.filled;
        since_ms = app.now_ms();
        arrived.advance(used, more);
        stopping = app.is_stopping();
        if stopping {
            return close(stream).await;
        }
    }
}

/// The call that a request is, where nothing about it is to be refused: refusals are said behind the long way.
fn admit(app: &Shared, head: &Head<'_>) -> Option<Call> {
    // Whoever reads the log of all requests gets it from one place.
    if tracing::enabled!(tracing::Level::DEBUG) {
        return None;
    }
    app.settings.web.check_host_name(head.host).ok()?;
    let grant = match app.keys() {
        None => None,
        Some(keys) => Some(Arc::clone(keys.find(head.key?)?)),
    };
    Call::express(app, head, grant).ok()
}

/// Runs a call, and looks meanwhile whether its client is still there. None where it is gone.
async fn answered<S>(call: &Call, body: &[u8], stream: &mut S, ahead: &mut Ahead<'_>) -> Option<Response>
where
    S: AsyncRead + Unpin,
{
    metrics::add(&call.app.metrics.request_bytes, body.len() as u64);
    let mut running = pin!(AssertUnwindSafe(routes::run(call, body)).catch_unwind());
    let result = poll_fn(|cx| match running.as_mut().poll(cx) {
        Poll::Ready(result) => Poll::Ready(Some(result)),
        Poll::Pending if ahead.poll_is_gone(stream, cx) => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let result = result.await?.unwrap_or_else(|_| {
        // The panic's own words are in the log already, by the hook that `main` sets.
        metrics::add(&call.app.metrics.panics, 1);
        Err(ApiError::internal(&"a request panicked, see the line before"))
    });
    let response = result.unwrap_or_else(IntoResponse::into_response);
    call.done(body, response.status());
    Some(response)
}

/// What a client sends before it has its answer.
struct Ahead<'a> {
    room: &'a mut [u8],
    filled: usize,
}

impl Ahead<'_> {
    /// Whether the client is gone, for whoever is about to wait: reads what it sends, as long as there is room. Without
    /// room nothing is asked; then it shows when it is written to.
    fn poll_is_gone<S: AsyncRead + Unpin>(&mut self, stream: &mut S, cx: &mut Context<'_>) -> bool {
        while let Some(rest) = self.room.get_mut(self.filled..).filter(|rest| !rest.is_empty()) {
            let mut buffer = ReadBuf::new(rest);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => self.filled += buffer.filled().len(),
                Poll::Ready(_) => return true,
                Poll::Pending => return false,
            }
        }
        false
    }
}

/// Ends a connection in order.
async fn close<S: AsyncWrite + Unpin>(stream: &mut S) -> End {
    let _ = tokio::time::timeout(END_TIME_MAX, stream.shutdown()).await;
    End::Closed
}
