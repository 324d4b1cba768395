//! From a change stream to an answer: server-sent events or lines, as long as the client listens.
//!
//! One task for each stream, which sleeps while there is nothing to tell. It reads what is in memory in place and all else on
//! a thread that may wait, a piece at a time, and hands pieces through a channel of two; who takes none for too long
//! (`--body-timeout`) is cut off. A stream that is asked to end (`wait`), that has nothing to tell any more, or whose server
//! stops, ends with a token; one that fails ends with the error. One that is cut has neither.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode, header};
use http_body::Frame;
use quarrydb::{ChangeStream, Reading};
use quarrydb_jsonb::Style;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::answer;
use crate::error::{ApiError, Result};
use crate::metrics;
use crate::state::Shared;

/// Pieces between the task and the socket.
const PIECES_MAX: usize = 2;
/// About how long a piece is.
const PIECE_BYTES: usize = 128 << 10;
/// Bytes of commits that are looked at in place, and on a thread that may wait, before the client is asked after.
const WORK_IN_PLACE: usize = 64 << 10;
const WORK_BYTES: usize = 16 << 20;
/// How long a stream waits for memory before it asks again.
const CROWD_PAUSE: Duration = Duration::from_millis(50);

/// The media type of server-sent events.
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// The form that events are told in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Server-sent events.
    Events,
    /// One a line.
    Lines,
}

/// How a stream is to be told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) told: Told,
    pub(crate) style: Style,
    /// Ends once all there is was told, after waiting so long for the first.
    pub(crate) wait: Option<Duration>,
    /// How often a stream without news says where it stands.
    pub(crate) heartbeat: Duration,
}

/// Answers with a stream.
pub(crate) fn answer(app: &Shared, stream: ChangeStream, ask: Ask) -> Response {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let feed = Feed { app: app.clone(), stream: Some(stream), ask, sender, spoke: Instant::now() };
    tokio::spawn(feed.run());
    let mut response = Response::new(Body::new(Pieces { receiver, done: false }));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, if ask.told == Told::Events { EVENTS } else { answer::NDJSON });
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A proxy that collects an answer before it passes it on would pass nothing on.
    headers.insert(HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
    response
}

/// A part of the body; nothing ends it.
type Piece = Option<Bytes>;

struct Feed {
    app: Shared,
    /// Away while a thread reads it.
    stream: Option<ChangeStream>,
    ask: Ask,
    sender: mpsc::Sender<Piece>,
    /// When something was told last.
    spoke: Instant,
}

/// The client is gone, or as good as gone.
struct Gone;

impl Feed {
    async fn run(mut self) {
        let app = self.app.clone();
        metrics::add(&app.metrics.change_streams, 1);
        let last = match self.tell().await {
            Ok(Ok(())) => self.place(true),
            Ok(Err(error)) => failure(&error, self.ask.told),
            Err(Gone) => {
                metrics::sub(&app.metrics.change_streams, 1);
                metrics::add(&app.metrics.streams_cancelled, 1);
                return;
            }
        };
        let _ = self.send(last).await.is_ok() && self.hand_over(None).await.is_ok();
        metrics::sub(&app.metrics.change_streams, 1);
    }

    /// Tells until there is a reason to end.
    async fn tell(&mut self) -> std::result::Result<Result<()>, Gone> {
        let mut ending = self.app.ending();
        let begun = Instant::now();
        let (mut told, mut is_over) = (false, false);
        if self.ask.wait.is_none() {
            // The head goes out with it, and the client has a token before anything happens.
            self.send(self.place(false)).await?;
        }
        while !self.app.is_stopping() {
            let has_news = !is_over && self.has_news().await;
            if has_news {
                let (piece, reading) = match self.read().await {
                    Ok(read) => read,
                    // Others hold the memory that a large commit takes: they are through in a moment.
                    Err(error) if is_crowded(&error) && self.spoke.elapsed() < self.app.settings.body_timeout => {
                        if self.sender.is_closed() {
                            return Err(Gone);
                        }
                        tokio::time::sleep(CROWD_PAUSE).await;
                        continue;
                    }
                    Err(error) => return Ok(Err(error)),
                };
                if !piece.is_empty() {
                    told = true;
                    self.send(piece).await?;
                } else if self.sender.is_closed() {
                    return Err(Gone);
                }
                is_over = reading == Reading::Ended;
                if self.ask.wait.is_none() && self.spoke.elapsed() >= self.ask.heartbeat && !is_over {
                    // It reads on, and nothing matches.
                    self.send(self.place(false)).await?;
                }
                continue;
            }
            let end = self.ask.wait.map(|wait| begun + wait);
            if is_over || end.is_some_and(|end| told || Instant::now() >= end) {
                break;
            }
            let sender = self.sender.clone();
            let at = end.unwrap_or(self.spoke + self.ask.heartbeat);
            let news = std::future::poll_fn(|context| poll_news(&mut self.stream, context));
            tokio::select! {
                () = news => {}
                () = sender.closed() => return Err(Gone),
                () = ended(&mut ending) => {}
                () = tokio::time::sleep_until(at) => {
                    if self.ask.wait.is_none() {
                        self.send(self.place(false)).await?;
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// Whether there may be something to read.
    async fn has_news(&mut self) -> bool {
        std::future::poll_fn(|context| Poll::Ready(poll_news(&mut self.stream, context).is_ready())).await
    }

    /// The next piece of what there is.
    async fn read(&mut self) -> Result<(Vec<u8>, Reading)> {
        let Some(mut stream) = self.stream.take() else { return Err(ApiError::internal(&"a change stream is lost")) };
        let ask = self.ask;
        if stream.is_at_hand() {
            let read = piece(&mut stream, ask, WORK_IN_PLACE);
            self.stream = Some(stream);
            return read;
        }
        let work = tokio::task::spawn_blocking(move || {
            let read = piece(&mut stream, ask, WORK_BYTES);
            (stream, read)
        });
        let (stream, read) = work.await.map_err(|e| ApiError::internal(&e))?;
        self.stream = Some(stream);
        read
    }

    /// A token of where the stream stands, alone; `last` where it ends with it.
    fn place(&self, last: bool) -> Vec<u8> {
        let token = self.stream.as_ref().map(ChangeStream::resume_token).unwrap_or_default();
        match self.ask.told {
            Told::Lines => format!("{{\"resumeToken\":\"{token}\"}}\n").into_bytes(),
            // Without data it is no event to a browser, which remembers the id all the same.
            Told::Events if !last || self.ask.wait.is_none() => format!(": heartbeat\nid: {token}\n\n").into_bytes(),
            Told::Events => format!("event: end\nid: {token}\ndata: {{\"resumeToken\":\"{token}\"}}\n\n").into_bytes(),
        }
    }

    async fn send(&mut self, bytes: Vec<u8>) -> std::result::Result<(), Gone> {
        self.hand_over(Some(Bytes::from(bytes))).await?;
        self.spoke = Instant::now();
        Ok(())
    }

    /// Hands a piece on; a client that takes none for too long is as good as gone.
    async fn hand_over(&self, piece: Piece) -> std::result::Result<(), Gone> {
        self.sender.send_timeout(piece, self.app.settings.body_timeout).await.map_err(|_| Gone)
    }
}

fn is_crowded(error: &ApiError) -> bool {
    error.status() == StatusCode::TOO_MANY_REQUESTS
}

/// Waits until the server closes.
async fn ended(ending: &mut watch::Receiver<bool>) {
    let _ = ending.wait_for(|ending| *ending).await;
}

fn poll_news(stream: &mut Option<ChangeStream>, context: &mut Context<'_>) -> Poll<()> {
    stream.as_mut().map_or(Poll::Ready(()), |stream| stream.poll_news(context))
}

/// Prints events until a piece is full or nothing more is to be read now.
fn piece(stream: &mut ChangeStream, ask: Ask, work: usize) -> Result<(Vec<u8>, Reading)> {
    let mut out = Vec::new();
    let reading = stream.read(work, &mut |token, event| {
        if ask.told == Told::Events {
            out.extend_from_slice(b"id: ");
            out.extend_from_slice(token.as_bytes());
            out.extend_from_slice(b"\ndata: ");
        }
        quarrydb_jsonb::print(event, ask.style, &mut out);
        out.extend_from_slice(if ask.told == Told::Events { b"\n\n" } else { b"\n" });
        if out.len() >= PIECE_BYTES { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    match reading {
        Ok(reading) => Ok((out, reading)),
        // What was told before goes out; the next read meets the same again.
        Err(_) if !out.is_empty() => Ok((out, Reading::More)),
        Err(error) => Err(error.into()),
    }
}

/// What a stream that cannot go on ends with.
fn failure(error: &ApiError, told: Told) -> Vec<u8> {
    tracing::warn!("a change stream broke off: {}", error.message());
    let json = error.to_json();
    let (before, after): (&[u8], &[u8]) = match told {
        Told::Lines => (b"", b"\n"),
        Told::Events => (b"event: error\ndata: ", b"\n\n"),
    };
    [before, &json, after].concat()
}

/// The body.
struct Pieces {
    receiver: mpsc::Receiver<Piece>,
    done: bool,
}

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.done {
            return Poll::Ready(None);
        }
        match self.receiver.poll_recv(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Some(bytes))) => Poll::Ready(Some(Ok(Frame::data(bytes)))),
            Poll::Ready(Some(None)) => {
                self.done = true;
                Poll::Ready(None)
            }
            // It fell silent without an end: the body must not look whole.
            Poll::Ready(None) => Poll::Ready(Some(Err(std::io::Error::other("the change stream was cut off")))),
        }
    }
}
