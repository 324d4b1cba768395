//! One connection: hyper's HTTP/1.1 on a watched socket, with the patience that slow and idle clients get.
//!
//! Takes an accepted stream; gives requests to `front.rs`. What hyper itself refuses (a head that is no HTTP, or too
//! large) and what comes too slowly is answered in our JSON shape here. Knows nothing of routes.

use std::io::Cursor;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::watch;

use crate::error::ApiError;
use crate::express::{self, End};
use crate::front;
use crate::state::Shared;

/// The most that a request's head may take.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;
/// hyper's buffer: what is read at once of a large body, and where it refuses a head of itself.
const BUFFER_BYTES_MAX: usize = 256 << 10;
/// How long the last words to a client that is shown out may take.
const FAREWELL_TIME_MAX: Duration = Duration::from_secs(1);

const IDLE: u8 = 0;
const HEAD: u8 = 1;
const SERVICE: u8 = 2;

/// Where a connection stands, and since when.
#[derive(Debug)]
pub(crate) struct Pulse {
    state: AtomicU8,
    since_ms: AtomicU64,
    /// Streamed answers being written: their producers watch over them.
    streams: AtomicU32,
}

impl Pulse {
    /// A request has been on its way since then.
    fn new(since_ms: u64) -> Self {
        Self { state: AtomicU8::new(HEAD), since_ms: AtomicU64::new(since_ms), streams: AtomicU32::new(0) }
    }

    /// A request is being worked on.
    #[inline]
    pub(crate) fn serving(&self) {
        self.state.store(SERVICE, Ordering::Relaxed);
    }

    /// Its answer is being written, or is out.
    #[inline]
    pub(crate) fn served(&self, now_ms: u64) {
        self.since_ms.store(now_ms, Ordering::Relaxed);
        self.state.store(IDLE, Ordering::Relaxed);
    }

    /// A streamed answer begins.
    pub(crate) fn stream_begins(&self) {
        self.streams.fetch_add(1, Ordering::Relaxed);
    }

    /// A streamed answer ended.
    pub(crate) fn stream_ends(&self, now_ms: u64) {
        self.since_ms.store(now_ms, Ordering::Relaxed);
        self.streams.fetch_sub(1, Ordering::Relaxed);
    }

    fn state(&self) -> u8 {
        self.state.load(Ordering::Relaxed)
    }

    fn is_working(&self) -> bool {
        self.state() == SERVICE || self.streams.load(Ordering::Relaxed) > 0
    }

    fn waited(&self, now_ms: u64) -> Duration {
        Duration::from_millis(now_ms.saturating_sub(self.since_ms.load(Ordering::Relaxed)))
    }
}

/// Serves one connection until it ends, is shown out, or the server stops.
pub(crate) async fn serve<S>(
    app: Shared,
    router: Router,
    mut stream: S,
    peer: SocketAddr,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (before, since_ms) = match express::serve(&app, &mut stream, &mut stop).await {
        End::Closed => return,
        End::LongWay(before, since_ms) => (Cursor::new(before), since_ms),
    };
    let pulse = Arc::new(Pulse::new(since_ms));
    let watched = Watched { inner: stream, before, app: Arc::clone(&app), pulse: Arc::clone(&pulse), farewell: None };
    let (for_service, pulse_of_service) = (Arc::clone(&app), Arc::clone(&pulse));
    let service = service_fn(move |request| {
        front::handle(Arc::clone(&for_service), router.clone(), peer, Arc::clone(&pulse_of_service), request)
    });
    let mut connection = http1::Builder::new()
        .max_buf_size(BUFFER_BYTES_MAX)
        .half_close(false)
        .serve_connection(TokioIo::new(watched), service);
    let (header_patience, idle_patience) = (app.settings.header_timeout, app.settings.idle_timeout);
    let step = app.settings.patience_step();
    let mut tick = Box::pin(tokio::time::sleep(step));
    let mut stopping = *stop.borrow();
    loop {
        tokio::select! {
            biased;
            _ = &mut connection => return linger(connection.into_parts().io.into_inner()).await,
            () = &mut tick => {
                tick.as_mut().reset(tokio::time::Instant::now() + step);
                let waited = pulse.waited(app.now_ms());
                if pulse.is_working() {
                    continue;
                }
                match pulse.state() {
                    HEAD if waited > header_patience => break,
                    IDLE if waited > idle_patience => return,
                    _ => {}
                }
            }
            _ = stop.changed(), if !stopping => {
                stopping = true;
                if !pulse.is_working() && pulse.state() == IDLE && !pulse.waited(app.now_ms()).is_zero() {
                    return;
                }
                Pin::new(&mut connection).graceful_shutdown();
            }
        }
    }
    let message = "the head of the request did not arrive in time (--header-timeout)";
    let error = ApiError::new(http::StatusCode::REQUEST_TIMEOUT, "RequestTimeout", None, message);
    let mut stream = connection.into_parts().io.into_inner().inner;
    let last = raw_answer(&error);
    let farewell = async {
        stream.write_all(&last).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(FAREWELL_TIME_MAX, farewell).await;
}

/// Reads on for a moment after a refusal in the middle of a head: closing at once would reset the connection, and the
/// client would lose the answer.
async fn linger<S: AsyncRead + Unpin>(mut watched: Watched<S>) {
    if watched.farewell.is_none() {
        return;
    }
    let mut scrap = vec![0; 16 << 10];
    let reading = async { while watched.inner.read(&mut scrap).await.is_ok_and(|n| n > 0) {} };
    let _ = tokio::time::timeout(FAREWELL_TIME_MAX, reading).await;
}

/// A whole response as bytes, for where hyper is not at hand. The connection is closed after it.
pub(crate) fn raw_answer(error: &ApiError) -> Vec<u8> {
    let (status, body) = (error.status(), error.to_json());
    let mut out = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{}\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or(""),
        body.len(),
        if status == 503 { "retry-after: 1\r\n" } else { "" },
    )
    .into_bytes();
    out.extend_from_slice(&body);
    out
}

/// A socket that keeps the pulse, and puts our words in place of hyper's bare refusals.
struct Watched<S> {
    inner: S,
    /// What was read on the short way and not answered there.
    before: Cursor<Vec<u8>>,
    app: Shared,
    pulse: Arc<Pulse>,
    /// Our words, and how many of them are out.
    farewell: Option<(Vec<u8>, usize)>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let result = self.poll_read_all(cx, buf);
        if buf.filled().len() > before && self.pulse.state() == IDLE {
            self.pulse.since_ms.store(self.app.now_ms(), Ordering::Relaxed);
            self.pulse.state.store(HEAD, Ordering::Relaxed);
        }
        result
    }
}

impl<S: AsyncRead + Unpin> Watched<S> {
    /// Reads what was there before, then the socket.
    fn poll_read_all(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<std::io::Result<()>> {
        let before = std::io::BufRead::fill_buf(&mut self.before).unwrap_or_default();
        if before.is_empty() {
            return Pin::new(&mut self.inner).poll_read(cx, buf);
        }
        let some = before.len().min(buf.remaining());
        buf.put_slice(before.get(..some).unwrap_or_default());
        std::io::BufRead::consume(&mut self.before, some);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> Watched<S> {
    /// Writes what is left of the farewell.
    fn poll_farewell(&mut self, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if let Some((words, written)) = &mut self.farewell {
            while let Some(rest) = words.get(*written..).filter(|r| !r.is_empty()) {
                match Pin::new(&mut self.inner).poll_write(cx, rest) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(std::io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(n)) => *written += n,
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(e)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<std::io::Result<usize>> {
        if let Some(error) = bare_refusal(buf) {
            self.farewell = Some((raw_answer(&error), 0));
            return self.poll_farewell(cx).map_ok(|()| buf.len());
        }
        let written = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.note(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        if let Some(first) = bufs.iter().find(|b| !b.is_empty())
            && bare_refusal(first).is_some()
        {
            let first: &[u8] = first;
            return self.poll_write(cx, first);
        }
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.note(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.poll_farewell(cx) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.inner).poll_flush(cx),
            other => other,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.poll_farewell(cx) {
            Poll::Ready(Ok(())) => Pin::new(&mut self.inner).poll_shutdown(cx),
            other => other,
        }
    }
}

impl<S> Watched<S> {
    fn note(&self, written: &Poll<std::io::Result<usize>>) {
        if matches!(written, Poll::Ready(Ok(1..))) && self.pulse.state() == IDLE {
            self.pulse.since_ms.store(self.app.now_ms(), Ordering::Relaxed);
        }
    }
}

/// 431.
pub(crate) fn head_too_large() -> ApiError {
    let message = format!("the head of the request is larger than {HEAD_BYTES_MAX} bytes or has over 100 headers");
    ApiError::new(http::StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "HeadersTooLarge", None, message)
}

/// Our error for a response that hyper wrote of itself: a refusal without a body. All of ours carry a request id.
fn bare_refusal(head: &[u8]) -> Option<ApiError> {
    let rest = head.strip_prefix(b"HTTP/1.1 4")?;
    let is_bare = head.ends_with(b"\r\n\r\n")
        && memchr::memmem::find(head, b"content-length: 0\r\n").is_some()
        && memchr::memmem::find(head, front::REQUEST_ID.as_str().as_bytes()).is_none();
    if !is_bare {
        return None;
    }
    Some(match rest.get(..2)? {
        b"31" => head_too_large(),
        b"14" => ApiError::new(http::StatusCode::URI_TOO_LONG, "UriTooLong", None, "the address is too long"),
        _ => {
            ApiError::bad_value("the request is not HTTP/1.1 as it should be: its first line or a header is malformed")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bare_refusals_are_replaced() {
        let bare = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(bare_refusal(bare).map(|e| e.status().as_u16()), Some(431));
        let ours = b"HTTP/1.1 404 Not Found\r\nx-request-id: 1\r\ncontent-length: 0\r\n\r\n";
        assert!(bare_refusal(ours).is_none());
        assert!(bare_refusal(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").is_none());
    }
}
