//! Looking at text many bytes at once: the end of a string, the end of white space.
//!
//! Takes chunks of text; gives positions. Knows nothing of values. With SSE2, which every x86-64 has, by
//! `simd.rs`; elsewhere eight bytes at a time in a word.

/// The bytes of a string that are looked at together.
pub(crate) const STRING_CHUNK: usize = 32;

/// The position of the first byte that ends plain text in a string: a quote, a backslash or a control character;
/// `STRING_CHUNK` where there is none.
#[inline(always)]
pub(crate) fn first_special(chunk: &[u8; STRING_CHUNK]) -> usize {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse2"))]
    return super::simd::first_special(chunk);
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse2")))]
    return first_special_by_words(chunk);
}

/// The portable twin of [`first_special`], which tests hold it to.
#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "sse2"))))]
#[inline(always)]
fn first_special_by_words(chunk: &[u8; STRING_CHUNK]) -> usize {
    let (words, _) = chunk.as_chunks::<8>();
    for (i, word) in words.iter().enumerate() {
        let mask = crate::builder::escape_mask(u64::from_le_bytes(*word));
        if mask != 0 {
            return 8 * i + mask.trailing_zeros() as usize / 8;
        }
    }
    STRING_CHUNK
}

/// The position of the first byte at or after `at` that is not white space; the end of the text where there is none.
pub(super) fn skip_white(text: &[u8], mut at: usize) -> usize {
    const SPACES: u64 = u64::from_le_bytes([b' '; 8]);
    // Indentation is mostly spaces.
    while let Some(chunk) = text.get(at..).and_then(|t| t.first_chunk::<8>()) {
        let other = u64::from_le_bytes(*chunk) ^ SPACES;
        if other != 0 {
            at += other.trailing_zeros() as usize / 8;
            match text.get(at) {
                Some(b'\n' | b'\r' | b'\t') => at += 1,
                _ => return at,
            }
        } else {
            at += 8;
        }
    }
    while let Some(b' ' | b'\n' | b'\r' | b'\t') = text.get(at) {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_judged_as_by_words() {
        for byte in 0..=255_u8 {
            for at in 0..STRING_CHUNK {
                for fill in [b'a', 0x7f, 0x80, 0xff] {
                    let mut chunk = [fill; STRING_CHUNK];
                    chunk[at] = byte;
                    let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                    let wanted = if special { at } else { STRING_CHUNK };
                    assert_eq!(first_special(&chunk), wanted, "byte {byte} at {at}");
                    assert_eq!(first_special_by_words(&chunk), wanted, "byte {byte} at {at} by words");
                }
            }
        }
    }

    #[test]
    fn white_space_ends_where_it_ends() {
        for n in 0..40 {
            let text = [&b" \n\t\r        ".repeat(4)[..n], b"x"].concat();
            assert_eq!(skip_white(&text, 0), n);
        }
    }
}
