//! A filter in front of the primary run: most hashes that a segment has not are told so by one cache line.
//!
//! Blocks of 64 bytes; a hash chooses one, and in it `PROBES` bits of 512. Ten bits a row let about one in a hundred
//! hashes through that are not there. A collection of many segments asks all of them for an `_id`, and one has it. Takes
//! hashes that are spread evenly; knows nothing of keys.

/// Below, the primary run itself is a few lines.
pub(crate) const ROWS_MIN: usize = 1 << 12;
const BLOCK_BYTES: usize = 64;
const BITS_PER_ROW: usize = 10;
const PROBES: u32 = 6;
/// Bits of the hash that choose a bit in a block.
const PROBE_BITS: u32 = 9;

const _: () = assert!(1 << PROBE_BITS == BLOCK_BYTES * 8);
const _: () = assert!(PROBES * PROBE_BITS <= u64::BITS);

/// The bytes of the section for (hash, row) pairs.
pub(crate) fn encode(pairs: &[(u64, u32)]) -> Vec<u8> {
    let blocks = (pairs.len() * BITS_PER_ROW).div_ceil(BLOCK_BYTES * 8).max(1);
    let mut out = vec![0; blocks * BLOCK_BYTES];
    for (hash, _) in pairs {
        let start = block_of(*hash, blocks) * BLOCK_BYTES;
        for bit in bits_of(*hash) {
            if let Some(byte) = out.get_mut(start + bit / 8) {
                *byte |= 1 << (bit % 8);
            }
        }
    }
    out
}

/// What is wrong with the section, if something is.
pub(crate) fn validate(bytes: &[u8]) -> Result<(), &'static str> {
    let whole = !bytes.is_empty() && bytes.len().is_multiple_of(BLOCK_BYTES);
    if whole { Ok(()) } else { Err("the filter is not made of whole blocks") }
}

/// Whether the hash may be one of those that the filter was made of; false is certain.
pub(crate) fn may_hold(bytes: &[u8], hash: u64) -> bool {
    let start = block_of(hash, bytes.len() / BLOCK_BYTES) * BLOCK_BYTES;
    // A filter that is cut short tells nothing.
    let Some(block) = bytes.get(start..start + BLOCK_BYTES) else { return true };
    bits_of(hash).all(|bit| block.get(bit / 8).is_some_and(|byte| byte >> (bit % 8) & 1 == 1))
}

fn block_of(hash: u64, blocks: usize) -> usize {
    // The high half of a product is spread as evenly as the hash is.
    ((u128::from(hash) * blocks as u128) >> 64) as usize
}

fn bits_of(hash: u64) -> impl Iterator<Item = usize> {
    // The block has taken the high bits; these come from all of them.
    let mixed = (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (0..PROBES).map(move |i| (mixed >> (u64::BITS - (i + 1) * PROBE_BITS)) as usize & (BLOCK_BYTES * 8 - 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;

    fn hash(n: u64) -> u64 {
        let mixed = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(17) ^ mixed
    }

    #[test]
    fn what_is_there_is_let_through_and_of_the_rest_about_one_in_a_hundred() {
        for rows in [1, 2, 50, 1000, 100_000_u64] {
            let pairs: Vec<(u64, u32)> = (0..rows).map(|n| (hash(n), n as u32)).collect();
            let bytes = encode(&pairs);
            validate(&bytes).unwrap();
            assert!(bytes.len() as u64 * 8 <= rows * BITS_PER_ROW as u64 + 512);
            assert!(pairs.iter().all(|(hash, _)| may_hold(&bytes, *hash)));
            let others = 100_000;
            let through = (rows..rows + others).filter(|n| may_hold(&bytes, hash(*n))).count() as u64;
            assert!(through * 1000 < others * 25, "{through} of {others} with {rows} rows");
        }
    }

    #[test]
    fn hostile_bytes_do_not_panic() {
        for len in 0..200 {
            let bytes = vec![0x55; len];
            let whole = validate(&bytes).is_ok();
            assert_eq!(whole, len > 0 && len % BLOCK_BYTES == 0);
            (0..50).for_each(|n| _ = may_hold(&bytes, hash(n)));
        }
        assert!(may_hold(&[], 7));
    }
}
