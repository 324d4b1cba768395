//! The SSE2 kernel of `scan.rs`, which holds it to a portable twin.
//!
//! Takes a chunk of text; gives a position. The only `unsafe` of this crate is the call of a function that wants SSE2 where
//! the compiler was told that SSE2 is there; memory is reached by safe code alone.
#![allow(unsafe_code, reason = "calling a function with a target feature, where the feature is known to be there")]

use core::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
};

use super::scan::STRING_CHUNK;

/// The position of the first quote, backslash or control character; `STRING_CHUNK` where there is none.
#[inline(always)]
pub(super) fn first_special(chunk: &[u8; STRING_CHUNK]) -> usize {
    // SAFETY: this module is compiled only where SSE2 is enabled for the whole program (see `mod.rs`).
    unsafe { first_special_sse2(chunk) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn first_special_sse2(chunk: &[u8; STRING_CHUNK]) -> usize {
    let word = |at: usize| chunk[at..].first_chunk().map_or(0, |b| i64::from_le_bytes(*b));
    let half = |at: usize| {
        let bytes = _mm_set_epi64x(word(at + 8), word(at));
        let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1f)), bytes);
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) as u32
    };
    let mask = u64::from(half(0)) | u64::from(half(16)) << 16 | 1 << STRING_CHUNK;
    mask.trailing_zeros() as usize
}
