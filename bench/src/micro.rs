//! What the micro benches share: time a thing some times, show the middle beside its floor.
//!
//! No statistics beyond a median of repetitions: what matters is the ratio to a floor that was measured in turn with
//! it. For one function at a time, in this process; the server is `suite/`.
#![allow(clippy::print_stdout, reason = "a table for a terminal")]

use crate::load::median;
use std::time::Instant;

/// How often each side is measured.
const REPETITIONS: usize = 7;

/// Seconds that `work` takes.
pub fn seconds(work: impl FnOnce()) -> f64 {
    let from = Instant::now();
    work();
    from.elapsed().as_secs_f64()
}

/// A table of nanoseconds for one, written as it is measured.
#[derive(Debug)]
pub struct Table;

impl Table {
    /// Begins a table: `one` says what is done once per figure.
    #[must_use]
    pub fn begin(one: &str) -> Self {
        println!(
            "\n| {one} | ours ns | floor ns | ours / floor | MB/s | floor |\n| --- | ---: | ---: | ---: | ---: | --- |"
        );
        Self
    }

    /// A row: both closures do the thing `count` times over `bytes` bytes together and give the seconds that it took.
    pub fn row(
        &self,
        name: &str,
        count: usize,
        bytes: usize,
        floor_name: &str,
        mut ours: impl FnMut() -> f64,
        mut floor: impl FnMut() -> f64,
    ) {
        let (mut own, mut least, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..REPETITIONS {
            let (a, b) = (floor(), ours());
            least.push(a);
            own.push(b);
            ratios.push(b / a);
        }
        let nanos = |values: &[f64]| median(values) * 1e9 / count as f64;
        let rate = bytes as f64 / median(&own) / 1e6;
        println!(
            "| {name} | {:.1} | {:.1} | {:.2} | {rate:.0} | {floor_name} |",
            nanos(&own),
            nanos(&least),
            median(&ratios)
        );
    }

    /// A row that has no floor, with what it should stay under.
    pub fn alone(&self, name: &str, count: usize, goal: &str, mut ours: impl FnMut() -> f64) {
        let own: Vec<f64> = (0..REPETITIONS).map(|_| ours()).collect();
        println!("| {name} | {:.1} |  |  |  | {goal} |", median(&own) * 1e9 / count as f64);
    }
}
