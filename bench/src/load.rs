//! Closed loops: N connections, each on a thread of its own, each sending its next request when it has its answer.
//!
//! Takes requests encoded ahead, gives how long all took and every single latency. A request that is not answered with
//! a status of 200 or 201 ends the run with an error: figures of failing requests mean nothing.

use crate::client::Connection;
use crate::timed::Times;
use std::io;
use std::net::SocketAddr;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// How much of a refusal is shown.
const SAID_BYTES: usize = 300;

/// What a run took.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Requests answered.
    pub requests: usize,
    /// From the first request sent to the last answer whole.
    pub elapsed: Duration,
    /// Bytes of all answers' bodies.
    pub body_bytes: u64,
    /// Processor time of the server for each request in microseconds, user and system; none where nobody looked.
    pub processor: [f64; 2],
    /// How long each request took.
    times: Times,
}

impl Outcome {
    /// The same with the processor time, user and system, that the server spent on all of it.
    #[must_use]
    pub fn spent(mut self, time: [Duration; 2]) -> Self {
        self.processor = time.map(|t| t.as_secs_f64() * 1e6 / self.requests as f64);
        self
    }

    /// Requests a second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency in microseconds that a share `q` of the requests did not exceed.
    #[must_use]
    pub fn micros(&self, q: f64) -> f64 {
        self.times.micros(q)
    }
}

/// Sends each of `requests` once, spread over `connections`.
///
/// # Errors
/// Where a connection breaks, or an answer's status is not 200 or 201 (with the beginning of its body).
///
/// # Panics
/// Where a thread of the load does.
pub fn closed_loop(address: SocketAddr, connections: usize, requests: &[Vec<u8>]) -> io::Result<Outcome> {
    let next = AtomicUsize::new(0);
    let ready = Barrier::new(connections + 1);
    let one = || -> io::Result<(Vec<u64>, u64)> {
        let opened = Connection::open(address);
        ready.wait();
        let mut connection = opened?;
        let (mut nanos, mut bytes) = (Vec::with_capacity(requests.len() / connections + 1), 0);
        let mut start = Vec::new();
        while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
            start.clear();
            let from = Instant::now();
            let answer = connection.exchange_into(request, &[], &mut |piece| {
                if start.is_empty() {
                    start.extend_from_slice(&piece[..piece.len().min(SAID_BYTES)]);
                }
            })?;
            nanos.push(u64::try_from(from.elapsed().as_nanos()).unwrap_or(u64::MAX));
            bytes += answer.body_bytes;
            if !matches!(answer.status, 200 | 201) {
                let said = String::from_utf8_lossy(&start).into_owned();
                return Err(io::Error::other(format!("answered {}: {said}", answer.status)));
            }
        }
        Ok((nanos, bytes))
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..connections).map(|_| scope.spawn(one)).collect();
        // Before the barrier: on a busy machine this thread may wake when the others have done half of the work.
        let from = Instant::now();
        ready.wait();
        let mut nanos = Vec::with_capacity(requests.len());
        let mut body_bytes = 0;
        let mut failed = None;
        for thread in threads {
            match thread.join().expect("a thread of the load does not panic") {
                Ok((mut own, bytes)) => {
                    nanos.append(&mut own);
                    body_bytes += bytes;
                }
                Err(error) => failed = Some(error),
            }
        }
        let elapsed = from.elapsed();
        let (requests, times, processor) = (nanos.len(), Times::new(nanos), [f64::NAN; 2]);
        failed.map_or(Ok(Outcome { requests, elapsed, body_bytes, processor, times }), Err)
    })
}

/// The middle of what repetitions gave; of an even number the lower of the two.
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_a_value_that_was_measured() {
        assert_eq!(median(&[3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]).to_bits(), 2.0_f64.to_bits());
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn quantiles_are_of_the_sorted_latencies() {
        let times = Times::new((1..=1000).rev().map(|n| n * 1000).collect());
        let outcome =
            Outcome { requests: 1000, elapsed: Duration::from_secs(2), body_bytes: 0, processor: [0.0; 2], times };
        let at = |q| outcome.micros(q).round() as i64;
        assert_eq!((at(0.5), at(0.9), at(0.99), at(0.999), at(1.0)), (500, 900, 990, 999, 1000));
        assert_eq!(outcome.rate().round() as i64, 500);
    }
}
