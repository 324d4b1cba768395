//! Compresses answers: whole ones here, streamed ones through a `Packer` in their producer's thread.
//!
//! Takes bytes and a coding; gives bytes. Small answers stay as they are.

use std::io::Write;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderValue, header};
use http_body_util::BodyExt;

use crate::negotiate::Coding;

/// Below this a packed answer is hardly smaller.
const WORTH_BYTES: usize = 1 << 10;
/// Above this packing goes to a thread of its own.
const IN_PLACE_BYTES: usize = 64 << 10;
const ZSTD_LEVEL: i32 = 3;
const GZIP_LEVEL: u32 = 4;

/// The header's value.
pub(crate) fn header_value(coding: Coding) -> Option<HeaderValue> {
    match coding {
        Coding::Identity => None,
        Coding::Gzip => Some(HeaderValue::from_static("gzip")),
        Coding::Zstd => Some(HeaderValue::from_static("zstd")),
    }
}

/// Packs a stream chunk by chunk.
pub(crate) enum Packer {
    /// Passes everything on.
    Plain,
    /// gzip.
    Gzip(GzEncoder<Vec<u8>>),
    /// Zstandard.
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Packer {
    /// One for `coding`.
    ///
    /// # Errors
    /// Out of memory in the encoder.
    pub(crate) fn new(coding: Coding) -> std::io::Result<Self> {
        Ok(match coding {
            Coding::Identity => Self::Plain,
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
            Coding::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?),
        })
    }

    /// Takes a chunk and gives what is to be sent for it, flushed, so that the reader is never behind.
    ///
    /// # Errors
    /// The encoder's.
    pub(crate) fn pack(&mut self, chunk: Vec<u8>) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(chunk),
            Self::Gzip(encoder) => {
                encoder.write_all(&chunk)?;
                encoder.flush()?;
                Ok(std::mem::take(encoder.get_mut()))
            }
            Self::Zstd(encoder) => {
                encoder.write_all(&chunk)?;
                encoder.flush()?;
                Ok(std::mem::take(encoder.get_mut()))
            }
        }
    }

    /// The last chunk and the end.
    ///
    /// # Errors
    /// The encoder's.
    pub(crate) fn end_with(mut self, chunk: Vec<u8>) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(chunk),
            _ => {
                let mut out = self.pack(chunk)?;
                out.extend_from_slice(&self.finish()?);
                Ok(out)
            }
        }
    }

    /// The last bytes.
    ///
    /// # Errors
    /// The encoder's.
    pub(crate) fn finish(self) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Plain => Ok(Vec::new()),
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Packs an answer whose body is whole, where that is worth it.
pub(crate) async fn whole(response: Response, coding: Coding) -> Response {
    let len = response.body().size_hint().exact().and_then(|n| usize::try_from(n).ok());
    let Some(len) = len.filter(|&n| n >= WORTH_BYTES) else { return response };
    let Some(value) = header_value(coding).filter(|_| !response.headers().contains_key(header::CONTENT_ENCODING))
    else {
        return response;
    };
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = body.collect().await.map(http_body_util::Collected::to_bytes) else {
        return Response::from_parts(parts, Body::empty());
    };
    let pack = {
        let bytes = bytes.clone();
        move || -> std::io::Result<Vec<u8>> { Packer::new(coding)?.end_with(bytes.into()) }
    };
    let packed = if len <= IN_PLACE_BYTES {
        pack().ok()
    } else {
        tokio::task::spawn_blocking(pack).await.ok().and_then(std::io::Result::ok)
    };
    parts.headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
    let body = match packed {
        Some(packed) => {
            parts.headers.insert(header::CONTENT_ENCODING, value);
            Bytes::from(packed)
        }
        None => bytes,
    };
    Response::from_parts(parts, Body::from(body))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use super::*;

    #[test]
    fn a_packed_stream_reads_back_and_each_chunk_is_out_at_once() {
        let chunks = [vec![b'a'; 5000], b"{\"x\":1}".to_vec(), Vec::new()];
        let whole = chunks.concat();
        for coding in [Coding::Identity, Coding::Gzip, Coding::Zstd] {
            let mut packer = Packer::new(coding).unwrap();
            let mut out = Vec::new();
            for chunk in &chunks {
                let packed = packer.pack(chunk.clone()).unwrap();
                assert!(!packed.is_empty() || chunk.is_empty());
                out.extend_from_slice(&packed);
            }
            out.extend_from_slice(&packer.finish().unwrap());
            let mut back = Vec::new();
            std::io::Read::read_to_end(&mut crate::body::reader(coding, out.as_slice()).unwrap(), &mut back).unwrap();
            assert_eq!(back, whole);
        }
    }
}
