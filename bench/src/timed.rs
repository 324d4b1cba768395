//! One question, asked again and again: how long each answer took, and that each is right.
//!
//! Takes a closure that asks and one that judges. The clock runs while it is asked and stands still while it is judged, so
//! that no answer is too long to be looked at, and none that was timed was not looked at.

use std::io;
use std::time::{Duration, Instant};

/// How often one question is asked.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// At least so often, however long it takes.
    pub least: usize,
    /// At most so often.
    pub most: usize,
    /// No more once so much time went by, judging not counted.
    pub budget: Duration,
}

impl Pace {
    /// Once.
    pub const ONCE: Self = Self { least: 1, most: 1, budget: Duration::ZERO };
}

/// Nanoseconds of each answer, sorted.
#[derive(Clone, Debug)]
pub struct Times(Vec<u64>);

impl Times {
    /// Of latencies in nanoseconds.
    #[must_use]
    pub fn new(mut nanos: Vec<u64>) -> Self {
        nanos.sort_unstable();
        Self(nanos)
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Microseconds that a share `q` of them did not exceed.
    #[must_use]
    pub fn micros(&self, q: f64) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let at = (q * self.0.len() as f64).ceil() as usize;
        self.0.get(at.saturating_sub(1).min(last)).map_or(f64::NAN, |n| *n as f64 / 1000.0)
    }

    /// The middle, in milliseconds.
    #[must_use]
    pub fn millis(&self) -> f64 {
        self.micros(0.5) / 1000.0
    }
}

/// Asks at `pace`; `ask` gives the answer with the time that it took, `judge` looks at it.
///
/// # Errors
/// Those of `ask` and `judge`.
pub fn timed<A>(
    pace: Pace,
    mut ask: impl FnMut() -> io::Result<(A, Duration)>,
    mut judge: impl FnMut(&A) -> Result<(), String>,
) -> io::Result<Times> {
    let (mut nanos, mut spent) = (Vec::new(), Duration::ZERO);
    while nanos.len() < pace.least || nanos.len() < pace.most && spent < pace.budget {
        let (answer, elapsed) = ask()?;
        spent += elapsed;
        nanos.push(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX));
        judge(&answer).map_err(io::Error::other)?;
    }
    Ok(Times::new(nanos))
}

/// What `work` gives, with the time that it took.
///
/// # Errors
/// Those of `work`.
pub fn clocked<A>(work: impl FnOnce() -> io::Result<A>) -> io::Result<(A, Duration)> {
    let from = Instant::now();
    let done = work()?;
    Ok((done, from.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_that_was_timed_was_judged() {
        let mut asked = 0_u32;
        let pace = Pace { least: 3, most: 100, budget: Duration::from_secs(5) };
        let mut ask = || {
            asked += 1;
            Ok((asked, Duration::from_secs(1)))
        };
        assert_eq!(timed(pace, &mut ask, |_| Ok(())).unwrap().len(), 5);
        let wrong = timed(pace, &mut ask, |n| if *n == 7 { Err("seven".into()) } else { Ok(()) });
        assert!(wrong.is_err());
        assert_eq!(timed(Pace::ONCE, &mut ask, |_| Ok(())).unwrap().millis().round() as i64, 1000);
    }
}
