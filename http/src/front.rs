//! What every request passes: host, origin, key, then the router; and every answer: id, CORS, compression, counting.
//!
//! One function in place of a stack of layers, because it stands before every point query. Takes a request from
//! `connection.rs`; gives it to the router; panics end here as 500. Next: `router.rs`.

use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tower_service::Service;

use crate::access::Grant;
use crate::connection::{self, HEAD_BYTES_MAX, Pulse};
use crate::encode;
use crate::error::{ApiError, Result};
use crate::metrics;
use crate::negotiate::{self, Coding};
use crate::origin::{OriginVerdict, WebRules};
use crate::state::{App, Shared};

/// The header that names a request in the log.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// An id that a client sent is taken over up to this length.
const CLIENT_ID_BYTES_MAX: usize = 64;
/// What is answered without a key.
const OPEN_PATHS: [&str; 5] = ["/healthz", "/readyz", "/livez", "/openapi.json", "/"];

/// What the request may do, for `routes`; absent where no keys are configured.
#[derive(Clone, Debug)]
pub(crate) struct Allowed(pub(crate) Arc<Grant>);

/// Answers one request.
pub(crate) async fn handle(
    app: Shared,
    router: Router,
    peer: SocketAddr,
    pulse: Arc<Pulse>,
    request: Request<Incoming>,
) -> Result<Response, std::convert::Infallible> {
    pulse.serving();
    let id = request_id(&app, request.headers());
    let coding = negotiate::answer_coding(request.headers());
    let logged = tracing::enabled!(tracing::Level::DEBUG)
        .then(|| (Instant::now(), request.method().clone(), request.uri().clone()));
    let mut verdict = OriginVerdict::None;
    let mut response = match admit(&app, peer, &request, &mut verdict) {
        Ok(Admission::Preflight) => {
            let mut response = StatusCode::NO_CONTENT.into_response();
            WebRules::preflight(response.headers_mut());
            response
        }
        Ok(Admission::Route(grant)) => route(&app, router, request, grant).await,
        Err(error) => {
            if request.body().is_end_stream() {
                error.into_response()
            } else {
                crate::body::drain(Body::new(request.into_body()));
                error.into_response()
            }
        }
    };
    if coding != Coding::Identity {
        response = encode::whole(response, coding).await;
    }
    let status = response.status();
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID, value);
    }
    app.settings.web.mark(&verdict, headers);
    if app.is_stopping() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    app.metrics.status(status);
    if let Some((started, method, uri)) = logged {
        let us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        tracing::debug!(id, %method, path = uri.path(), status = status.as_u16(), us, "request");
    }
    if status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED {
        tracing::warn!(id, peer = %peer.ip(), status = status.as_u16(), "answered with a server error");
    }
    let now_ms = app.now_ms();
    match response.body().size_hint().exact() {
        Some(bytes) => metrics::add(&app.metrics.response_bytes, bytes),
        None => response = response.map(|body| Body::new(Tracked::new(body, app, Arc::clone(&pulse)))),
    }
    pulse.served(now_ms);
    Ok(response)
}

enum Admission {
    Preflight,
    Route(Option<Arc<Grant>>),
}

/// Host, then origin, then preflight (it never carries a key), then key.
fn admit(app: &App, peer: SocketAddr, request: &Request<Incoming>, verdict: &mut OriginVerdict) -> Result<Admission> {
    let (web, headers) = (&app.settings.web, request.headers());
    let head_bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if head_bytes > HEAD_BYTES_MAX {
        return Err(connection::head_too_large());
    }
    web.check_host(request.uri().authority().map(|a| a.as_str()), request.version(), headers)?;
    *verdict = web.check_origin(headers)?;
    if WebRules::is_preflight(request.method(), headers) {
        return match verdict {
            OriginVerdict::Allowed(_) => Ok(Admission::Preflight),
            _ => Err(ApiError::new(StatusCode::FORBIDDEN, "Forbidden", None, "web pages of this origin may not call")),
        };
    }
    let path = request.uri().path();
    let Some(keys) = app.keys() else { return Ok(Admission::Route(None)) };
    let is_open = matches!(*request.method(), Method::GET | Method::HEAD) && OPEN_PATHS.contains(&path);
    let sent = sent_key(headers, path);
    match sent.as_deref().and_then(|key| keys.find(key)) {
        Some(grant) => Ok(Admission::Route(Some(Arc::clone(grant)))),
        None if is_open => Ok(Admission::Route(None)),
        None => {
            let why = if sent.is_some() { "the access key is not known here" } else { "no access key was sent" };
            metrics::add(&app.metrics.auth_failures, 1);
            // Who sends no key guesses none: that is 401 however often.
            if app.failures.failed(peer.ip(), why) && sent.is_some() {
                return Err(ApiError::too_many_requests("too many attempts without a valid access key: wait a little"));
            }
            let message = format!("{why}: send `Authorization: Bearer KEY`, made by `quarrydb key add`");
            Err(ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized", Some(13), message)
                .with_header(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"quarrydb\"")))
        }
    }
}

/// The key as sent: a bearer token, or on the Data API's routes the header `apiKey`.
fn sent_key<'a>(headers: &'a HeaderMap, path: &str) -> Option<std::borrow::Cow<'a, [u8]>> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return bearer(value.as_bytes()).map(Into::into);
    }
    if path.contains("/action/") {
        return headers.get("apikey").map(|v| v.as_bytes().trim_ascii().into());
    }
    None
}

/// The key in an `Authorization` header.
pub(crate) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

async fn route(app: &App, mut router: Router, mut request: Request<Incoming>, grant: Option<Arc<Grant>>) -> Response {
    if let Some(grant) = grant {
        request.extensions_mut().insert(Allowed(grant));
    }
    match AssertUnwindSafe(router.call(request)).catch_unwind().await {
        Ok(Ok(response)) => response,
        Ok(Err(never)) => match never {},
        Err(_) => {
            // The panic's own words are in the log already, by the hook that `main` sets.
            metrics::add(&app.metrics.panics, 1);
            ApiError::internal(&"a request panicked, see the line before").into_response()
        }
    }
}

/// The client's id where it is sane, else one of ours.
fn request_id(app: &App, headers: &HeaderMap) -> String {
    headers.get(REQUEST_ID).and_then(|v| sane_id(v.as_bytes())).map_or_else(|| app.request_id(), str::to_owned)
}

/// A client's id of its request, where it can stand in a log.
pub(crate) fn sane_id(value: &[u8]) -> Option<&str> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    let is_sane = (1..=CLIENT_ID_BYTES_MAX).contains(&value.len()) && value.iter().all(|&b| fits(b));
    std::str::from_utf8(value).ok().filter(|_| is_sane)
}

/// A streamed body: counts its bytes, and keeps its connection from being taken for an idle one.
struct Tracked {
    inner: Body,
    app: Shared,
    pulse: Arc<Pulse>,
}

impl Tracked {
    fn new(inner: Body, app: Shared, pulse: Arc<Pulse>) -> Self {
        pulse.stream_begins();
        Self { inner, app, pulse }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.pulse.stream_ends(self.app.now_ms());
    }
}

impl HttpBody for Tracked {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            metrics::add(&self.app.metrics.response_bytes, frame.data_ref().map_or(0, Bytes::len) as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_taken_from_its_headers_alone() {
        let mut headers = HeaderMap::new();
        assert!(sent_key(&headers, "/action/find").is_none());
        headers.insert("apikey", HeaderValue::from_static("k1"));
        assert_eq!(sent_key(&headers, "/app/x/endpoint/data/v1/action/find").as_deref(), Some(b"k1".as_slice()));
        assert!(sent_key(&headers, "/v1/db").is_none());
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("bearer k2"));
        assert_eq!(sent_key(&headers, "/v1/db").as_deref(), Some(b"k2".as_slice()));
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Basic k2"));
        assert!(sent_key(&headers, "/v1/db").is_none());
    }
}
