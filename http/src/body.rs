//! A request's body, whole in one buffer: bounded in bytes, decoded bytes, time and the memory of all bodies together.
//!
//! Takes a request; gives its bytes with the reservation that holds them, or 400, 408, 413, 415, 429. Runs after the key
//! was checked: nothing is decoded for strangers. Who is next: `fields.rs` reads the object.

use std::io::Read;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use quarrydb::budget::Reservation;
use tokio::time::Instant;

use crate::error::{ApiError, Result};
use crate::metrics;
use crate::negotiate::{self, Coding, Takes};
use crate::state::App;

/// A body may take its pause limit, and beside it as long as a line of this speed would need.
const SLOWEST_BYTES_PER_SECOND: u64 = 16 << 10;
/// What is read and thrown away after a refusal, so that a client that sends first and reads later gets the answer.
const DRAIN_BYTES_MAX: usize = 256 << 20;
const DRAIN_TIME_MAX: Duration = Duration::from_secs(10);
/// The first buffer for a body that has not said its size.
const FIRST_BYTES: usize = 8 << 10;
/// Up to this a body that has said its size gets its buffer at once: pages are not touched before they are filled.
const AHEAD_BYTES_MAX: usize = 4 << 20;
/// The step in which a body is unpacked.
const UNPACK_BYTES: usize = 64 << 10;

/// A whole body and the memory it is counted with.
#[derive(Debug)]
pub(crate) struct Collected {
    /// The decoded bytes.
    pub(crate) bytes: Bytes,
    _held: Option<Reservation>,
}

/// Receives and decodes a JSON body.
///
/// # Errors
/// 400 where it ends early or is not what its coding says, 408, 413, 415, 429.
pub(crate) async fn collect(app: &App, headers: &HeaderMap, body: Body) -> Result<Collected> {
    negotiate::content_type(headers, Takes::Json)?;
    let coding = negotiate::body_coding(headers)?;
    let max = app.settings.max_body_bytes;
    let said = content_length(headers);
    if said.is_some_and(|n| n > max as u64) {
        drain(body);
        return Err(ApiError::body_too_large(max));
    }
    if body.is_end_stream() {
        return Ok(Collected { bytes: Bytes::new(), _held: None });
    }
    let said = said.and_then(|n| usize::try_from(n).ok());
    // What was said is not yet here: a client that says much and sends little must not keep others out.
    let mut held = app.budget.reserve(said.unwrap_or(FIRST_BYTES).min(FIRST_BYTES)).ok_or_else(busy)?;
    let bytes = receive(app, body, max, said, &mut held).await?;
    metrics::add(&app.metrics.request_bytes, bytes.len() as u64);
    if coding == Coding::Identity {
        return Ok(Collected { bytes, _held: Some(held) });
    }
    let unpacking = tokio::task::spawn_blocking(move || unpack(coding, &bytes, max, &mut held).map(|b| (b, held)));
    let (bytes, held) = unpacking.await.map_err(|e| ApiError::internal(&e))??;
    Ok(Collected { bytes: Bytes::from(bytes), _held: Some(held) })
}

async fn receive(app: &App, mut body: Body, max: usize, said: Option<usize>, held: &mut Reservation) -> Result<Bytes> {
    let pause = app.settings.body_timeout;
    let mut clock = Clock::new(pause);
    let Some(first) = next_frame(&mut body, &mut clock).await? else { return Ok(Bytes::new()) };
    if body.is_end_stream() && first.len() <= max {
        return if held.grow_to(first.len()) { Ok(first) } else { Err(busy()) };
    }
    let mut whole = BytesMut::with_capacity(first.len().max(said.unwrap_or(FIRST_BYTES).min(AHEAD_BYTES_MAX)));
    let mut next = Some(first);
    while let Some(chunk) = next {
        let len = whole.len() + chunk.len();
        if len > max {
            drain(body);
            return Err(ApiError::body_too_large(max));
        }
        if !held.grow_to(len) {
            drain(body);
            return Err(busy());
        }
        whole.extend_from_slice(&chunk);
        clock.received(chunk.len());
        next = next_frame(&mut body, &mut clock).await?;
    }
    Ok(whole.freeze())
}

/// When a body's patience ends.
pub(crate) struct Clock {
    started: Instant,
    pause: Duration,
    bytes: u64,
}

impl Clock {
    /// Starts now.
    pub(crate) fn new(pause: Duration) -> Self {
        Self { started: Instant::now(), pause, bytes: 0 }
    }

    /// Notes progress.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    /// Gives back time that passed on our side.
    pub(crate) fn forgive(&mut self, time: Duration) {
        self.started += time;
    }

    /// The next byte must be here by then.
    fn deadline(&self) -> Instant {
        let earned = Duration::from_secs(self.bytes / SLOWEST_BYTES_PER_SECOND);
        let whole = self.started + self.pause.saturating_mul(2) + earned;
        whole.min(Instant::now() + self.pause)
    }
}

/// The next data of a body; trailers are skipped.
///
/// # Errors
/// 408 where it does not come in time, 400 where the client breaks off.
pub(crate) async fn next_frame(body: &mut Body, clock: &mut Clock) -> Result<Option<Bytes>> {
    loop {
        // Most bodies are here with their head: no timer for them.
        let frame = match body.frame().now_or_never() {
            Some(frame) => frame,
            None => tokio::time::timeout_at(clock.deadline(), body.frame()).await.map_err(|_| {
                let message =
                    "the body did not arrive in time: it paused too long, or came too slowly (--body-timeout)";
                ApiError::new(StatusCode::REQUEST_TIMEOUT, "RequestTimeout", None, message)
                    .with_header(header::CONNECTION, http::HeaderValue::from_static("close"))
            })?,
        };
        match frame {
            None => return Ok(None),
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(data)),
                Err(_) => {}
            },
            Some(Err(e)) => return Err(ApiError::bad_value(format!("the body broke off: {e}"))),
        }
    }
}

/// Unpacks a compressed body, never to more than `max` bytes.
fn unpack(coding: Coding, packed: &[u8], max: usize, held: &mut Reservation) -> Result<Vec<u8>> {
    let mut reader = reader(coding, packed)?;
    let mut out = Vec::new();
    loop {
        let from = out.len();
        if !held.grow_to(from + UNPACK_BYTES) {
            return Err(busy());
        }
        out.resize(from + UNPACK_BYTES, 0);
        let n = match reader.read(&mut out[from..]) {
            Ok(n) => n,
            Err(e) => return Err(ApiError::bad_value(format!("the body is not whole {coding:?} data: {e}"))),
        };
        out.truncate(from + n);
        if out.len() > max {
            return Err(ApiError::body_too_large(max));
        }
        if n == 0 {
            return Ok(out);
        }
    }
}

/// A reader that unpacks; several gzip members or zstd frames follow one another as one text.
///
/// # Errors
/// Out of memory for the decoder.
pub(crate) fn reader<'a>(coding: Coding, from: impl Read + Send + 'a) -> Result<Box<dyn Read + Send + 'a>> {
    Ok(match coding {
        Coding::Identity => Box::new(from),
        Coding::Gzip => Box::new(flate2::read::MultiGzDecoder::new(from)),
        Coding::Zstd => {
            let mut decoder = zstd::stream::read::Decoder::new(from).map_err(|e| ApiError::internal(&e))?;
            decoder.window_log_max(ZSTD_WINDOW_LOG_MAX).map_err(|e| ApiError::internal(&e))?;
            Box::new(decoder)
        }
    })
}

/// A frame may ask for a window of at most 64 MiB, enough for level 19.
const ZSTD_WINDOW_LOG_MAX: u32 = 26;

/// Reads on in the background, for a while, what a refused client is still sending.
pub(crate) fn drain(mut body: Body) {
    tokio::spawn(async move {
        let reading = async {
            let mut bytes = 0;
            while let Some(Ok(frame)) = body.frame().await {
                bytes += frame.data_ref().map_or(0, Bytes::len);
                if bytes > DRAIN_BYTES_MAX {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(DRAIN_TIME_MAX, reading).await;
    });
}

/// The length that the client said.
pub(crate) fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn busy() -> ApiError {
    ApiError::too_many_requests("too many bodies are being received at once (--max-bodies): try again in a moment")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use std::io::Write;

    use super::*;
    use quarrydb::budget::Budget;

    fn unpacked(coding: Coding, packed: &[u8], max: usize) -> Result<Vec<u8>> {
        unpack(coding, packed, max, &mut Budget::new(64 << 20).reserve(0).unwrap())
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn packed_bodies_are_unpacked_within_bounds() {
        let text = vec![b'x'; 1 << 20];
        let twice = [gzip(&text), gzip(b"tail")].concat();
        assert_eq!(unpacked(Coding::Gzip, &twice, 2 << 20).unwrap().len(), (1 << 20) + 4);
        assert_eq!(unpacked(Coding::Gzip, &gzip(&text), 1 << 20).unwrap(), text);
        assert_eq!(unpacked(Coding::Gzip, &gzip(&text), (1 << 20) - 1).unwrap_err().status(), 413);
        let packed = zstd::encode_all(text.as_slice(), 1).unwrap();
        assert_eq!(unpacked(Coding::Zstd, &packed, 1 << 20).unwrap(), text);
        assert_eq!(unpacked(Coding::Zstd, &packed, 1000).unwrap_err().status(), 413);
    }

    #[test]
    fn a_packed_body_that_is_cut_or_is_none_is_refused() {
        let packed = gzip(b"{\"document\": {}}");
        for cut in 1..packed.len() {
            assert_eq!(unpacked(Coding::Gzip, &packed[..cut], 1 << 20).unwrap_err().status(), 400, "cut at {cut}");
        }
        assert_eq!(unpacked(Coding::Gzip, b"{\"document\": {}}", 1 << 20).unwrap_err().status(), 400);
        assert_eq!(unpacked(Coding::Zstd, b"{\"document\": {}}", 1 << 20).unwrap_err().status(), 400);
    }

    #[test]
    fn unpacking_stops_where_memory_ends() {
        let mut held = Budget::new(1 << 20).reserve(0).unwrap();
        let bomb = gzip(&vec![0; 8 << 20]);
        assert_eq!(unpack(Coding::Gzip, &bomb, 48 << 20, &mut held).unwrap_err().status(), 429);
    }
}
