//! The comparisons of `bitpack` compiled a second time, for processors with vectors of 32 bytes, where the machine has them.
//!
//! Takes and gives what they do. The one unsafe step of this crate is to call code that a processor must be able to run.
#![allow(unsafe_code, reason = "whether the processor has the instructions is asked before")]

use super::bitpack::{self, CHUNK_WORDS};

/// How many of `count` numbers are within `low..=high`.
#[inline]
pub(super) fn count_between(bytes: &[u8], width: u8, count: usize, low: u64, high: u64) -> u64 {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was asked right before.
        return unsafe { with_avx2::count_between(bytes, width, count, low, high) };
    }
    bitpack::count_between(bytes, width, count, low, high)
}

/// Sets the bit of each of `count` numbers within `low..=high`.
#[inline]
pub(super) fn between(bytes: &[u8], width: u8, count: usize, low: u64, high: u64, out: &mut [u64; CHUNK_WORDS]) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, as was asked right before.
        return unsafe { with_avx2::between(bytes, width, count, low, high, out) };
    }
    bitpack::between(bytes, width, count, low, high, out);
}

/// The same code: `bitpack`'s functions are inlined here, and compiled with the feature.
#[cfg(target_arch = "x86_64")]
mod with_avx2 {
    use super::bitpack::{self, CHUNK_WORDS};

    #[target_feature(enable = "avx2")]
    pub(super) fn count_between(bytes: &[u8], width: u8, count: usize, low: u64, high: u64) -> u64 {
        bitpack::count_between(bytes, width, count, low, high)
    }

    #[target_feature(enable = "avx2")]
    pub(super) fn between(bytes: &[u8], width: u8, count: usize, low: u64, high: u64, out: &mut [u64; CHUNK_WORDS]) {
        bitpack::between(bytes, width, count, low, high, out);
    }
}
