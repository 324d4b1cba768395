//! What is different each time: random numbers and new ObjectIds.
//!
//! From a seed of the thread's own; nothing here is for secrets.

use std::cell::Cell;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

thread_local! {
    static SEED: Cell<u64> = Cell::new(seed());
}

fn seed() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A double in [0, 1): splitmix64 (Steele, Lea, Flood 2014).
pub(crate) fn random() -> f64 {
    let state = SEED.with(|seed| {
        let next = seed.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        seed.set(next);
        next
    });
    let mut z = state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1_u64 << 53) as f64
}

/// A new ObjectId: the operation's time in seconds, five bytes of the process's own, a count.
pub(super) fn object_id(now_ms: i64) -> [u8; 12] {
    static PROCESS: LazyLock<u64> = LazyLock::new(seed);
    static COUNT: LazyLock<AtomicU32> = LazyLock::new(|| AtomicU32::new(seed() as u32));
    let seconds = u32::try_from(now_ms.div_euclid(1000)).unwrap_or(0).to_be_bytes();
    let [a, b, c, d, e, ..] = PROCESS.to_be_bytes();
    let [_, x, y, z] = COUNT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
    let [s, t, u, v] = seconds;
    [s, t, u, v, a, b, c, d, e, x, y, z]
}
