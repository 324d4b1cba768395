//! Counters and histograms of the server, printed as Prometheus text together with the engine's.
//!
//! Takes notes from the front and the routes, each a few relaxed additions; gives text. Never locks.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::operation::Operation;

/// Upper bounds of the buckets of a latency, in microseconds.
const BUCKETS_US: [u64; 16] = [
    50, 100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 102_400, 409_600, 1_638_400, 6_553_600,
    26_214_400,
];

/// Latencies of one operation.
#[derive(Debug, Default)]
struct Histogram {
    /// One more than the bounds: the last is what is above them all.
    buckets: [AtomicU64; BUCKETS_US.len() + 1],
    sum_us: AtomicU64,
}

/// What the server counts.
#[derive(Debug)]
pub(crate) struct Metrics {
    by_operation: [Histogram; Operation::COUNT],
    /// Answers by the first digit of the status.
    by_class: [AtomicU64; 6],
    pub(crate) request_bytes: AtomicU64,
    pub(crate) response_bytes: AtomicU64,
    pub(crate) connections_open: AtomicU64,
    pub(crate) connections_total: AtomicU64,
    pub(crate) connections_refused: AtomicU64,
    pub(crate) streams_open: AtomicU64,
    pub(crate) streams_cancelled: AtomicU64,
    pub(crate) change_streams: AtomicU64,
    pub(crate) documents_returned: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) auth_failures: AtomicU64,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            by_operation: std::array::from_fn(|_| Histogram::default()),
            by_class: Default::default(),
            request_bytes: AtomicU64::new(0),
            response_bytes: AtomicU64::new(0),
            connections_open: AtomicU64::new(0),
            connections_total: AtomicU64::new(0),
            connections_refused: AtomicU64::new(0),
            streams_open: AtomicU64::new(0),
            streams_cancelled: AtomicU64::new(0),
            change_streams: AtomicU64::new(0),
            documents_returned: AtomicU64::new(0),
            panics: AtomicU64::new(0),
            auth_failures: AtomicU64::new(0),
        }
    }
}

/// Adds to a counter.
#[inline]
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Takes from a gauge.
#[inline]
pub(crate) fn sub(gauge: &AtomicU64, n: u64) {
    gauge.fetch_sub(n, Ordering::Relaxed);
}

impl Metrics {
    /// Notes an answered operation.
    #[inline]
    pub(crate) fn operation(&self, operation: Operation, took: Duration) {
        let us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let bucket = BUCKETS_US.partition_point(|&bound| bound < us);
        if let Some(histogram) = self.by_operation.get(operation as usize) {
            if let Some(counter) = histogram.buckets.get(bucket) {
                add(counter, 1);
            }
            add(&histogram.sum_us, us);
        }
    }

    /// Notes an answer's status.
    #[inline]
    pub(crate) fn status(&self, status: http::StatusCode) {
        if let Some(counter) = self.by_class.get(usize::from(status.as_u16() / 100)) {
            add(counter, 1);
        }
    }

    /// Prometheus text of everything here.
    pub(crate) fn print(&self, out: &mut String) {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        head(out, "quarrydb_http_responses_total", "counter", "Answers by class of status.");
        for (class, counter) in self.by_class.iter().enumerate().skip(1) {
            let _ = writeln!(out, "quarrydb_http_responses_total{{class=\"{class}xx\"}} {}", get(counter));
        }
        head(out, "quarrydb_operation_seconds", "histogram", "Time from an operation's start until its answer begins.");
        for operation in Operation::ALL {
            let Some(histogram) = self.by_operation.get(operation as usize) else { continue };
            let name = operation.name();
            let mut total = 0;
            for (bound, counter) in BUCKETS_US.iter().zip(&histogram.buckets) {
                total += get(counter);
                let seconds = *bound as f64 / 1e6;
                let _ =
                    writeln!(out, "quarrydb_operation_seconds_bucket{{operation=\"{name}\",le=\"{seconds}\"}} {total}");
            }
            total += histogram.buckets.last().map_or(0, get);
            let sum = get(&histogram.sum_us) as f64 / 1e6;
            let _ = writeln!(
                out,
                "quarrydb_operation_seconds_bucket{{operation=\"{name}\",le=\"+Inf\"}} {total}\n\
                 quarrydb_operation_seconds_sum{{operation=\"{name}\"}} {sum}\n\
                 quarrydb_operation_seconds_count{{operation=\"{name}\"}} {total}"
            );
        }
        let lines = [
            ("http_request_bytes_total", "counter", "Bytes of bodies received, as sent.", &self.request_bytes),
            ("http_response_bytes_total", "counter", "Bytes of bodies answered, as sent.", &self.response_bytes),
            ("http_connections", "gauge", "Open connections.", &self.connections_open),
            ("http_connections_total", "counter", "Connections accepted.", &self.connections_total),
            (
                "http_connections_refused_total",
                "counter",
                "Connections beyond --max-connections.",
                &self.connections_refused,
            ),
            ("streams", "gauge", "Streamed answers that are being produced.", &self.streams_open),
            ("streams_cancelled_total", "counter", "Streamed answers whose client went away.", &self.streams_cancelled),
            ("change_streams", "gauge", "Change streams that clients listen to.", &self.change_streams),
            ("documents_returned_total", "counter", "Documents printed into answers.", &self.documents_returned),
            ("panics_total", "counter", "Requests that ended in a panic.", &self.panics),
            ("auth_failures_total", "counter", "Requests refused for want of a valid key.", &self.auth_failures),
        ];
        for (name, kind, help, counter) in lines {
            sample(out, name, kind, help, get(counter));
        }
    }
}

/// Appends one metric without labels; `name` goes without the common prefix.
pub(crate) fn sample(out: &mut String, name: &str, kind: &str, help: &str, value: u64) {
    let name = format!("quarrydb_{name}");
    head(out, &name, kind, help);
    let _ = writeln!(out, "{name} {value}");
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_counts_in_its_bucket_and_all_above() {
        let metrics = Metrics::default();
        metrics.operation(Operation::Count, Duration::from_micros(100));
        metrics.operation(Operation::Count, Duration::from_secs(3600));
        let mut text = String::new();
        metrics.print(&mut text);
        for line in [
            "quarrydb_operation_seconds_bucket{operation=\"count\",le=\"0.00005\"} 0",
            "quarrydb_operation_seconds_bucket{operation=\"count\",le=\"0.0001\"} 1",
            "quarrydb_operation_seconds_bucket{operation=\"count\",le=\"26.2144\"} 1",
            "quarrydb_operation_seconds_bucket{operation=\"count\",le=\"+Inf\"} 2",
            "quarrydb_operation_seconds_count{operation=\"count\"} 2",
        ] {
            assert!(text.lines().any(|l| l == line), "{line} is not in\n{text}");
        }
    }
}
