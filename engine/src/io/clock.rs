//! Time, so that a test can move it.
//!
//! Two clocks that are never mixed: the wall clock, which may step back and forth, for people and TTLs; and the
//! monotonic one, for waiting and measuring. What orders commits is neither of them: it is `Seq`.
#![allow(clippy::disallowed_methods, reason = "this is the door to the clocks")]

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Where time comes from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970 by the wall clock. May step back between two calls.
    fn wall_millis(&self) -> u64;

    /// Nanoseconds since some moment before the first call. Never steps back.
    fn monotonic_nanos(&self) -> u64;
}

/// The machine's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    /// Clocks whose monotonic time begins now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn wall_millis(&self) -> u64 {
        // A clock set before 1970 reads as 1970.
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
    }

    fn monotonic_nanos(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug, Default)]
pub struct ManualClock {
    wall_millis: AtomicU64,
    monotonic_nanos: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `wall_millis`.
    #[must_use]
    pub fn new(wall_millis: u64) -> Self {
        Self { wall_millis: AtomicU64::new(wall_millis), monotonic_nanos: AtomicU64::new(0) }
    }

    /// Lets time pass: both clocks go on.
    pub fn advance_millis(&self, millis: u64) {
        self.wall_millis.fetch_add(millis, Ordering::SeqCst);
        self.monotonic_nanos.fetch_add(millis.saturating_mul(1_000_000), Ordering::SeqCst);
    }

    /// Sets the wall clock, back too, as an administrator or NTP would; the monotonic one does not notice.
    pub fn set_wall_millis(&self, millis: u64) {
        self.wall_millis.store(millis, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn wall_millis(&self) -> u64 {
        self.wall_millis.load(Ordering::SeqCst)
    }

    fn monotonic_nanos(&self) -> u64 {
        self.monotonic_nanos.load(Ordering::SeqCst)
    }
}

/// Nanoseconds of this process on the machine's monotonic clock, for deadlines.
pub(crate) fn monotonic_nanos() -> u64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    u64::try_from(START.get_or_init(Instant::now).elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wall_clock_steps_back_and_the_monotonic_one_does_not() {
        let clock = ManualClock::new(1_000);
        clock.advance_millis(5);
        clock.set_wall_millis(10);
        assert_eq!(clock.wall_millis(), 10);
        assert_eq!(clock.monotonic_nanos(), 5_000_000);
    }
}
