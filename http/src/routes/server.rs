//! The server about itself: health, readiness, metrics, the description of the API, the front page.

use std::fmt::Write;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Request, StatusCode, Uri, header};
use quarrydb::WriterState;

use super::check_everywhere;
use crate::access::Role;
use crate::answer::{JSON, respond};
use crate::error::ApiError;
use crate::metrics::sample;
use crate::openapi;
use crate::operation::Operation;
use crate::state::Shared;

const PROMETHEUS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const PAGE: &str = include_str!("page.html");

/// `GET /healthz`: the process is up, whatever the database does.
pub(crate) async fn healthz() -> Response {
    respond(StatusCode::OK, JSON, b"{\"status\":\"ok\"}".as_slice())
}

/// `GET /readyz`: recovered and taking writes.
pub(crate) async fn readyz(State(app): State<Shared>) -> Response {
    if app.is_stopping() {
        return ApiError::unavailable("ShuttingDown", "the server is stopping").into_response();
    }
    let database = match app.database() {
        Ok(database) => database,
        Err(error) => return error.into_response(),
    };
    match database.stats().writer {
        WriterState::Writable => respond(StatusCode::OK, JSON, b"{\"status\":\"ready\"}".as_slice()),
        // Without a key nothing is said of paths; the log has the whole story.
        WriterState::Stalled(_) => {
            ApiError::unavailable("OutOfDiskSpace", "writes are refused until there is room on the disk; reads go on")
                .into_response()
        }
        WriterState::Poisoned(_) => {
            ApiError::unavailable("Internal", "a write to the disk failed: reads go on, writes need a restart")
                .into_response()
        }
    }
}

/// `GET /metrics`.
pub(crate) async fn metrics(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (parts, _) = request.into_parts();
    if let Err(error) = check_everywhere(&parts, Operation::DescribeCollection, Role::Read) {
        return error.into_response();
    }
    let mut out = String::with_capacity(32 << 10);
    app.metrics.print(&mut out);
    sample(
        &mut out,
        "http_body_bytes_held",
        "gauge",
        "Memory of bodies being received or held.",
        app.budget.held() as u64,
    );
    let bodies_max = app.budget.max() as u64;
    sample(&mut out, "http_body_bytes_max", "gauge", "The most that bodies may hold (--max-bodies).", bodies_max);
    let memory = app.settings.memory_bytes;
    sample(&mut out, "memory_limit_bytes", "gauge", "What the process may take (--memory).", memory);
    if let Ok(database) = app.database() {
        engine(&database.stats(), &mut out);
    }
    respond(StatusCode::OK, PROMETHEUS, out)
}

fn engine(stats: &quarrydb::EngineStats, out: &mut String) {
    let log = &stats.log;
    let lines = [
        ("log_syncs_total", "counter", "Syncs of the log.", log.syncs),
        ("log_written_bytes_total", "counter", "Bytes written to the log.", log.bytes_written),
        ("log_records_total", "counter", "Records written to the log: one a commit.", log.records),
        ("log_bytes", "gauge", "Bytes of all log files.", stats.log_bytes),
        ("change_log_bytes", "gauge", "Bytes of log kept for change streams alone.", stats.change_log_bytes),
        ("seals_total", "counter", "Tails sealed to segments.", stats.seals),
        ("sealed_bytes_total", "counter", "Bytes of the segments made.", stats.sealed_bytes),
        ("compactions_total", "counter", "Runs of segments made anew.", stats.compactions),
        (
            "compaction_read_bytes_total",
            "counter",
            "Bytes of segments that compactions made anew.",
            stats.compacted_bytes_read,
        ),
        (
            "compaction_written_bytes_total",
            "counter",
            "Bytes of segments that compactions made.",
            stats.compacted_bytes_written,
        ),
        (
            "compaction_dropped_rows_total",
            "counter",
            "Dead rows that compactions left out.",
            stats.compacted_rows_dropped,
        ),
        (
            "compaction_failing",
            "gauge",
            "1 where the last compaction in the background failed.",
            u64::from(stats.compaction_trouble.is_some()),
        ),
        ("segments", "gauge", "Segment files.", stats.segments),
        ("unsealed_bytes", "gauge", "Bytes of documents in memory that wait for their seal.", stats.unsealed_bytes),
        (
            "unsealed_bytes_max",
            "gauge",
            "The most that tails waiting for their seal hold before writers wait.",
            stats.unsealed_bytes_max,
        ),
        ("query_bytes_held", "gauge", "Memory that queries hold.", stats.query_bytes),
        ("query_bytes_max", "gauge", "The most that queries may hold, beyond it 429.", stats.query_bytes_max),
        ("spill_bytes", "gauge", "What sorts hold in temporary files.", stats.spilled_bytes),
        ("spill_files", "gauge", "Temporary files of sorts.", stats.spill_files),
        ("spill_bytes_total", "counter", "Bytes written to temporary files of sorts.", stats.spilled_bytes_total),
        ("block_cache_bytes", "gauge", "Memory of unpacked blocks.", stats.cache_bytes),
        ("block_cache_bytes_max", "gauge", "The most that unpacked blocks may hold.", stats.cache_bytes_max),
        ("documents_examined_total", "counter", "Documents that queries looked at.", stats.documents_examined),
        ("cursors_total", "counter", "Finds begun.", stats.cursors_opened),
        ("cursors_cancelled_total", "counter", "Finds whose client went away.", stats.cursors_cancelled),
        ("snapshots", "gauge", "Open snapshots.", stats.snapshots),
        ("transactions_open", "gauge", "Open interactive transactions.", stats.transactions),
        ("writable", "gauge", "1 where writes are taken.", u64::from(stats.writer == WriterState::Writable)),
    ];
    for (name, kind, help, value) in lines {
        sample(out, name, kind, help, value);
    }
    head_of_syncs(out);
    let mut syncs = 0;
    for (i, count) in log.records_per_sync.iter().enumerate() {
        syncs += count;
        let most = (1_u64 << (i + 1)) - 1;
        let _ = writeln!(out, "quarrydb_log_commits_per_sync_bucket{{le=\"{most}\"}} {syncs}");
    }
    let _ = writeln!(
        out,
        "quarrydb_log_commits_per_sync_bucket{{le=\"+Inf\"}} {syncs}\nquarrydb_log_commits_per_sync_sum {}\n\
         quarrydb_log_commits_per_sync_count {syncs}",
        log.records
    );
    let version = env!("CARGO_PKG_VERSION");
    let _ = writeln!(
        out,
        "# HELP quarrydb_info The build.\n# TYPE quarrydb_info gauge\nquarrydb_info{{version=\"{version}\"}} 1"
    );
}

fn head_of_syncs(out: &mut String) {
    let name = "quarrydb_log_commits_per_sync";
    let _ = writeln!(out, "# HELP {name} Commits that one sync of the log covered.\n# TYPE {name} histogram");
}

/// `GET /openapi.json`.
pub(crate) async fn openapi_json() -> Response {
    respond(StatusCode::OK, JSON, openapi::json())
}

/// `GET /`.
pub(crate) async fn page() -> Response {
    let mut response = respond(StatusCode::OK, HTML, PAGE.replace("{version}", env!("CARGO_PKG_VERSION")));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// What leads nowhere. An empty name in a path is a name that is not allowed.
pub(crate) async fn no_such_route(uri: Uri) -> Response {
    let path = uri.path();
    let names = path.strip_prefix("/v1/db/").filter(|rest| rest.split('/').take(2).any(str::is_empty));
    if names.is_some_and(|rest| !rest.is_empty()) {
        return ApiError::bad("InvalidNamespace", 73, "the name of a database or collection is empty").into_response();
    }
    ApiError::no_such_route(path).into_response()
}

/// A path that is there, by another method; the router adds `Allow`.
pub(crate) async fn method_not_allowed(request: Request<Body>) -> Response {
    let message =
        format!("{} is not taken at {:.200}: the header Allow names what is", request.method(), request.uri().path());
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", None, message).into_response()
}
