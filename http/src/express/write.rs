//! Answers on the short way: head and body in one buffer and one write, streams in chunks.
//!
//! Takes a response; gives bytes to the connection, framed as hyper frames them on the long way. Knows no route.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::{Duration, UNIX_EPOCH};

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt;
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use super::Ahead;
use crate::encode;
use crate::metrics;
use crate::negotiate::Coding;
use crate::state::App;

/// A buffer that an answer has blown up beyond this is given back.
const BUFFER_BYTES_KEPT: usize = 16 << 10;
/// Bodies from here on are written from where they lie.
const COPIED_BYTES_MAX: usize = 64 << 10;

/// How a request is answered.
pub(super) struct Answer<'a> {
    pub(super) app: &'a App,
    /// The client's id of the request.
    pub(super) id: Option<&'a str>,
    pub(super) coding: Coding,
}

impl Answer<'_> {
    /// Sends an answer whole.
    ///
    /// # Errors
    /// The client is gone or takes nothing, or a stream broke off: the connection must be closed.
    pub(super) async fn send<S>(
        &self,
        mut response: Response,
        stream: &mut S,
        ahead: &mut Ahead<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        if self.coding != Coding::Identity {
            response = encode::whole(response, self.coding).await;
        }
        out.clear();
        out.shrink_to(BUFFER_BYTES_KEPT);
        self.begin(response.status(), out);
        for (name, value) in response.headers() {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
        let mut body = response.into_body();
        if body.size_hint().exact().is_none() {
            return self.chunks(body, stream, ahead, out).await;
        }
        let mut whole = Bytes::new();
        while let Some(frame) = body.frame().await {
            // Bodies of a known length are of one piece.
            whole = frame.map_err(io::Error::other)?.into_data().unwrap_or_default();
        }
        self.finish(&whole, stream, out).await
    }

    /// The status line and the fields that every answer has.
    fn begin(&self, status: StatusCode, out: &mut Vec<u8>) {
        self.app.metrics.status(status);
        let own;
        let id = match self.id {
            Some(theirs) => theirs,
            None => {
                own = self.app.request_id();
                &own
            }
        };
        if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
            tracing::warn!(id, status = status.as_u16(), "answered with a server error");
        }
        out.extend_from_slice(match status {
            StatusCode::OK => b"HTTP/1.1 200 OK\r\nx-request-id: ",
            StatusCode::CREATED => b"HTTP/1.1 201 Created\r\nx-request-id: ",
            _ => b"HTTP/1.1 ",
        });
        if !matches!(status, StatusCode::OK | StatusCode::CREATED) {
            for part in [status.as_str(), " ", status.canonical_reason().unwrap_or("Other"), "\r\nx-request-id: "] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        out.extend_from_slice(id.as_bytes());
        out.extend_from_slice(b"\r\n");
        if self.app.settings.web.varies() {
            out.extend_from_slice(b"vary: origin\r\n");
        }
        if self.app.is_stopping() {
            out.extend_from_slice(b"connection: close\r\n");
        }
        append_date(self.app.unix_seconds(), out);
    }

    /// The end of the head and a body that is whole.
    async fn finish<S: AsyncWrite + Unpin>(&self, body: &[u8], stream: &mut S, out: &mut Vec<u8>) -> io::Result<()> {
        metrics::add(&self.app.metrics.response_bytes, body.len() as u64);
        out.extend_from_slice(b"content-length: ");
        crate::answer::integer(i64::try_from(body.len()).unwrap_or(i64::MAX), out);
        out.extend_from_slice(b"\r\n\r\n");
        let rest = if body.len() <= COPIED_BYTES_MAX {
            out.extend_from_slice(body);
            &[]
        } else {
            body
        };
        self.write_both(out, rest, stream).await
    }

    /// A streamed body in chunks.
    async fn chunks<S>(
        &self,
        mut body: Body,
        stream: &mut S,
        ahead: &mut Ahead<'_>,
        out: &mut Vec<u8>,
    ) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
        loop {
            let piece = poll_fn(|cx| match Pin::new(&mut body).poll_frame(cx) {
                Poll::Ready(frame) => Poll::Ready(frame.transpose().map_err(io::Error::other)),
                Poll::Pending if ahead.poll_is_gone(stream, cx) => {
                    Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
                }
                Poll::Pending => Poll::Pending,
            });
            let Some(frame) = piece.await? else { break };
            let piece = frame.into_data().unwrap_or_default();
            // An empty chunk would be the end.
            if piece.is_empty() {
                continue;
            }
            metrics::add(&self.app.metrics.response_bytes, piece.len() as u64);
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            self.write_both(out, &piece, stream).await?;
            out.clear();
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"0\r\n\r\n");
        self.write(out, stream).await
    }

    /// Writes one behind the other, in one call where the stream can.
    async fn write_both<S: AsyncWrite + Unpin>(&self, first: &[u8], second: &[u8], stream: &mut S) -> io::Result<()> {
        if second.is_empty() || !stream.is_write_vectored() {
            self.write(first, stream).await?;
            return self.write(second, stream).await;
        }
        let both = [IoSlice::new(first), IoSlice::new(second)];
        let written = self.patiently(stream.write_vectored(&both)).await?;
        self.write(first.get(written..).unwrap_or_default(), stream).await?;
        self.write(second.get(written.saturating_sub(first.len())..).unwrap_or_default(), stream).await
    }

    /// Writes all of it.
    async fn write<S: AsyncWrite + Unpin>(&self, mut bytes: &[u8], stream: &mut S) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.patiently(stream.write(bytes)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = bytes.get(written..).unwrap_or_default();
        }
        self.patiently(stream.flush()).await
    }

    /// Waits for a step of writing; a client that takes nothing for as long as it may be idle is as good as gone.
    async fn patiently<T>(&self, step: impl Future<Output = io::Result<T>>) -> io::Result<T> {
        let mut step = pin!(step);
        // Mostly the socket takes it at once: no timer for that.
        match step.as_mut().now_or_never() {
            Some(done) => done,
            None => tokio::time::timeout(self.app.settings.idle_timeout, step).await?,
        }
    }
}

thread_local! {
    /// The date of a second, as the field has it. Printing it takes longer than the rest of a head.
    static DATE: Cell<(u64, [u8; DATE_BYTES])> = const { Cell::new((0, [0; DATE_BYTES])) };
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
const DATE_BYTES: usize = 29;

fn append_date(seconds: u64, out: &mut Vec<u8>) {
    let (mut of, mut text) = DATE.get();
    if of != seconds {
        of = seconds;
        let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds));
        text.copy_from_slice(date.as_bytes().get(..DATE_BYTES).unwrap_or(&[b'?'; DATE_BYTES]));
        DATE.set((of, text));
    }
    out.extend_from_slice(b"date: ");
    out.extend_from_slice(&text);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_written_as_the_rfc_does() {
        let mut out = Vec::new();
        // The example of RFC 9110, 5.6.7.
        append_date(784_111_777, &mut out);
        append_date(784_111_777, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".repeat(2));
    }
}
