//! From a cursor to an answer: whole where that is cheap, streamed from a blocking thread where it is not.
//!
//! The one place where async and the engine's scans meet. A producer runs `Cursor::stream` on a thread of the blocking
//! pool and hands chunks through a bounded channel; a client that is gone or reads too slowly ends it. An answer that is
//! done before it had to begin goes out whole; an error before the first byte is an ordinary error; one after it ends
//! NDJSON with an error line and breaks JSON off with the chunked body unfinished.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use http_body::Frame;
use quarrydb::{Aggregation, Cursor, Print, Sink};
use quarrydb_jsonb::JsonbRef;
use tokio::sync::{Semaphore, mpsc};

use crate::answer::{self, Form};
use crate::encode::{self, Packer};
use crate::error::{ApiError, Result};
use crate::metrics;
use crate::negotiate::Coding;
use crate::state::Shared;

/// Chunks between the producer and the socket.
const CHUNKS_MAX: usize = 4;

/// Streams at once: each holds a thread of the blocking pool, which others need too.
static PLACES: Semaphore = Semaphore::const_new(512);

const OPEN: &[u8] = b"{\"documents\":[";
const CLOSE: &[u8] = b"]}";

/// What an answer of documents is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// How documents are printed.
    pub(crate) form: Form,
    /// How the body is packed.
    pub(crate) coding: Coding,
    /// Whether a last line proves that the stream is whole.
    pub(crate) trailer: bool,
}

impl Shape {
    fn content_type(self) -> HeaderValue {
        if self.form.lines { answer::NDJSON } else { self.form.content_type() }
    }

    /// The last bytes after `count` documents.
    fn end(self, count: u64, out: &mut Vec<u8>) {
        if !self.form.lines {
            out.extend_from_slice(CLOSE);
        } else if self.trailer {
            out.extend_from_slice(format!("{{\"end\": {{\"count\": {count}}}}}\n").as_bytes());
        }
    }

    /// Prints one document with what sets it apart. In JSON the comma stands before it; the first one's is cut.
    fn document(self, document: JsonbRef<'_>, out: &mut Vec<u8>) {
        if self.form.lines {
            quarrydb_jsonb::print(document, self.form.style, out);
            out.push(b'\n');
        } else {
            out.push(b',');
            quarrydb_jsonb::print(document, self.form.style, out);
        }
    }
}

/// Answers with the documents of a cursor whose whole answer is at hand.
///
/// # Errors
/// The cursor's.
pub(crate) fn in_place(app: &Shared, mut cursor: Cursor, shape: Shape) -> Result<Response> {
    let mut out = if shape.form.lines { Vec::new() } else { OPEN.to_vec() };
    let start = out.len();
    let mut count = 0;
    while let Some(document) = cursor.next()? {
        shape.document(document.view(), &mut out);
        count += 1;
    }
    if !shape.form.lines && out.len() > start {
        out.remove(start);
    }
    shape.end(count, &mut out);
    metrics::add(&app.metrics.documents_returned, count);
    Ok(answer::respond(StatusCode::OK, shape.content_type(), out))
}

/// What gives documents.
pub(crate) trait Documents {
    /// Hands them on as [`Cursor::stream`] does.
    ///
    /// # Errors
    /// Its own.
    fn stream(self, print: Print<'_>, sink: Sink<'_>) -> quarrydb::Result<u64>;
}

impl Documents for Cursor {
    fn stream(self, print: Print<'_>, sink: Sink<'_>) -> quarrydb::Result<u64> {
        Self::stream(self, print, sink)
    }
}

impl Documents for Aggregation {
    fn stream(self, print: Print<'_>, sink: Sink<'_>) -> quarrydb::Result<u64> {
        Self::stream(self, print, sink)
    }
}

/// Says, on any thread, whether the client still waits.
pub(crate) type IsWanted = Arc<dyn Fn() -> bool + Send + Sync>;

/// Answers with the documents that `open` finds on a blocking thread (a sort runs there too).
///
/// # Errors
/// What `open` gives, and what happens before the first byte is out.
pub(crate) async fn streamed<D: Documents>(
    app: &Shared,
    shape: Shape,
    namespace: String,
    open: impl FnOnce(IsWanted) -> Result<D> + Send + 'static,
) -> Result<Response> {
    let place = PLACES.try_acquire();
    let place =
        place.map_err(|_| ApiError::too_many_requests("too many streamed answers at once: try again in a moment"))?;
    let (sender, mut receiver) = mpsc::channel(CHUNKS_MAX);
    let packer = Packer::new(shape.coding).map_err(|e| ApiError::internal(&e))?;
    let producer = Producer { app: app.clone(), shape, sender, packer, namespace };
    tokio::task::spawn_blocking(move || {
        producer.run(open);
        drop(place);
    });
    // The status goes out with the first documents and not before: until then an error is an ordinary answer, with its
    // own status and the reason in the body. A client that leaves meanwhile drops this future, and so the receiver.
    let pending = match receiver.recv().await {
        Some(Ok(Piece { bytes, last: true })) => {
            let mut response = answer::respond(StatusCode::OK, shape.content_type(), bytes);
            label(&mut response, shape.coding);
            return Ok(response);
        }
        Some(Ok(piece)) => Some(piece.bytes),
        Some(Err(broken)) => return Err(broken.error),
        None => return Err(ApiError::internal(&"a producer ended without a word")),
    };
    let mut response = Response::new(Body::new(Pieces { pending, receiver, lines: shape.form.lines, done: false }));
    response.headers_mut().insert(header::CONTENT_TYPE, shape.content_type());
    label(&mut response, shape.coding);
    Ok(response)
}

fn label(response: &mut Response, coding: Coding) {
    let headers = response.headers_mut();
    if let Some(value) = encode::header_value(coding) {
        headers.insert(header::CONTENT_ENCODING, value);
    }
    headers.append(header::VARY, HeaderValue::from_static("accept, accept-encoding"));
}

/// A piece of a body; the last one says so.
struct Piece {
    bytes: Bytes,
    last: bool,
}

/// A stream that cannot go on: what the client is told where nothing is out yet, and the packed line that ends NDJSON.
struct Broken {
    error: ApiError,
    tail: Bytes,
}

type Sent = std::result::Result<Piece, Broken>;

/// Runs on a blocking thread from cursor to channel.
struct Producer {
    app: Shared,
    shape: Shape,
    sender: mpsc::Sender<Sent>,
    packer: Packer,
    /// For the log of slow operations.
    namespace: String,
}

impl Producer {
    fn run<D: Documents>(mut self, open: impl FnOnce(IsWanted) -> Result<D>) {
        let app = self.app.clone();
        metrics::add(&app.metrics.streams_open, 1);
        let started = Instant::now();
        let produced = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.produce(open)));
        metrics::sub(&app.metrics.streams_open, 1);
        let took = started.elapsed();
        if took >= app.settings.slow {
            let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(ns = self.namespace, ms, "slow stream, from its begin to its end");
        }
        match produced {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.break_off(error),
            Err(_) => {
                metrics::add(&app.metrics.panics, 1);
                self.break_off(ApiError::internal(&"a stream panicked, see the line before"));
            }
        }
    }

    fn break_off(mut self, error: ApiError) {
        let mut line = error.to_json();
        line.push(b'\n');
        let packer = std::mem::replace(&mut self.packer, Packer::Plain);
        let tail = Bytes::from(packer.end_with(line).unwrap_or_default());
        let _ = self.send(Err(Broken { error, tail }));
    }

    fn produce<D: Documents>(&mut self, open: impl FnOnce(IsWanted) -> Result<D>) -> Result<()> {
        let shape = self.shape;
        let sender = self.sender.clone();
        let documents = open(Arc::new(move || !sender.is_closed()))?;
        let (mut count, mut begun, mut gone, mut failed) = (0, false, false, None);
        // One chunk is kept back, so that a short answer is known to be whole when it is sent.
        let mut kept: Option<Vec<u8>> = None;
        documents.stream(&|document, out| shape.document(document, out), &mut |mut chunk, documents| {
            if documents == 0 {
                // Nothing matched for a while: nobody may be left to search for.
                gone = self.sender.is_closed();
                return if gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
            }
            count += documents;
            if !begun && !chunk.is_empty() {
                begun = true;
                if !shape.form.lines {
                    chunk.splice(..1, OPEN.iter().copied());
                }
            }
            let Some(before) = kept.replace(chunk) else { return ControlFlow::Continue(()) };
            match self.packer.pack(before) {
                Ok(bytes) => {
                    let flow = self.send_bytes(bytes, false);
                    gone = flow.is_break();
                    flow
                }
                Err(e) => {
                    failed = Some(ApiError::internal(&e));
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if gone || self.sender.is_closed() {
            metrics::add(&self.app.metrics.streams_cancelled, 1);
            return Ok(());
        }
        let mut last = kept.unwrap_or_default();
        if !begun && !shape.form.lines {
            last.extend_from_slice(OPEN);
        }
        shape.end(count, &mut last);
        let packer = std::mem::replace(&mut self.packer, Packer::Plain);
        let packed = packer.end_with(last).map_err(|e| ApiError::internal(&e))?;
        let _ = self.send_bytes(packed, true);
        metrics::add(&self.app.metrics.documents_returned, count);
        Ok(())
    }

    fn send_bytes(&mut self, bytes: Vec<u8>, last: bool) -> ControlFlow<()> {
        if bytes.is_empty() && !last {
            return ControlFlow::Continue(());
        }
        self.send(Ok(Piece { bytes: Bytes::from(bytes), last }))
    }

    /// Hands a piece on; a client that takes none for too long is as good as gone.
    fn send(&mut self, piece: Sent) -> ControlFlow<()> {
        let piece = match self.sender.try_send(piece) {
            Ok(()) => return ControlFlow::Continue(()),
            Err(mpsc::error::TrySendError::Closed(_)) => return ControlFlow::Break(()),
            Err(mpsc::error::TrySendError::Full(piece)) => piece,
        };
        let patience = self.app.settings.body_timeout;
        let runtime = tokio::runtime::Handle::current();
        match runtime.block_on(self.sender.send_timeout(piece, patience)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

/// The streamed body.
struct Pieces {
    pending: Option<Bytes>,
    receiver: mpsc::Receiver<Sent>,
    lines: bool,
    done: bool,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(bytes) = self.pending.take() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        if self.done {
            return Poll::Ready(None);
        }
        match self.receiver.poll_recv(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(piece))) => {
                self.done = piece.last;
                Poll::Ready(Some(Ok(Frame::data(piece.bytes))))
            }
            // A producer that fell silent: the body must not look whole.
            Poll::Ready(None) => Poll::Ready(Some(Err(std::io::Error::other("the answer was cut off")))),
            Poll::Ready(Some(Err(Broken { error, tail }))) => {
                tracing::warn!("an answer broke off: {}", error.message());
                if !self.lines || tail.is_empty() {
                    return Poll::Ready(Some(Err(std::io::Error::other(error.message().to_owned()))));
                }
                self.done = true;
                Poll::Ready(Some(Ok(Frame::data(tail))))
            }
        }
    }
}
