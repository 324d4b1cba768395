//! Standard deviations in one pass: B. P. Welford's method, merged by Chan, Golub and LeVeque's (1979).
//!
//! Takes doubles, gives the deviation of all of them or of a sample. How they were split changes the last bits.

/// Count, mean and squared distances from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Deviation {
    pub(super) count: u64,
    pub(super) mean: f64,
    pub(super) squares: f64,
}

impl Deviation {
    pub(super) fn add(&mut self, n: f64) {
        self.count += 1;
        let delta = n - self.mean;
        self.mean += delta / self.count as f64;
        self.squares += delta * (n - self.mean);
    }

    pub(super) fn merge(&mut self, later: &Self) {
        if self.count == 0 || later.count == 0 {
            if self.count == 0 {
                *self = later.clone();
            }
            return;
        }
        let (a, b) = (self.count as f64, later.count as f64);
        let delta = later.mean - self.mean;
        self.mean += delta * (b / (a + b));
        self.squares += later.squares + delta * delta * (a * b / (a + b));
        self.count += later.count;
    }

    /// None of too few numbers.
    pub(super) fn finish(&self, sample: bool) -> Option<f64> {
        let divisor = self.count.checked_sub(u64::from(sample)).filter(|d| *d > 0)?;
        Some((self.squares / divisor as f64).sqrt())
    }
}
