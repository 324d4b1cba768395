//! The primary run: from a key's hash to the rows that have it.
//!
//! ```text
//! bits u32 | zeros u32 | starts: u32 for each of 2^bits buckets, and the total | to a multiple of 8 | entries u64
//! ```
//!
//! A bucket is the hash's high `bits`; about eight entries fall in one, so a probe touches one line of the starts and
//! one or two of the entries. An entry is the next 32 bits of the hash over the row, sorted: with a million rows 49
//! bits of a hash are compared, and a row that is not meant comes up once in hundreds of millions. The caller compares
//! the real key in the end. Takes hashes that are spread evenly; knows nothing of keys.

use crate::ids::RowId;
use crate::io::fields::PutFields;
use smallvec::SmallVec;

/// About as many entries fall in one bucket: a cache line.
const BUCKET_ENTRIES: usize = 8;
const BITS_MAX: u32 = 24;
const HEADER_BYTES: usize = 8;

/// The bytes of the section. `pairs` are (hash, row), in any order.
pub(crate) fn encode(pairs: &mut [(u64, u32)]) -> Vec<u8> {
    pairs.sort_unstable();
    let bits = (pairs.len() / BUCKET_ENTRIES).checked_ilog2().map_or(0, |log| log + 1).min(BITS_MAX);
    let buckets = 1_usize << bits;
    let mut out = Vec::with_capacity(entries_at(bits) + pairs.len() * 8);
    out.put_u32(bits);
    out.put_u32(0);
    let mut filled = 0_usize;
    for bucket in 0..buckets {
        out.put_u32(u32::try_from(filled).expect("a segment has at most ROWS_MAX rows"));
        filled += pairs[filled..].iter().take_while(|(hash, _)| bucket_of(*hash, bits) == bucket).count();
    }
    out.put_u32(u32::try_from(filled).expect("a segment has at most ROWS_MAX rows"));
    out.resize(entries_at(bits), 0);
    for (hash, row) in pairs {
        out.put_u64(entry(*hash, *row, bits));
    }
    out
}

fn bucket_of(hash: u64, bits: u32) -> usize {
    // A shift by 64 is no shift, so no bits are asked for apart.
    if bits == 0 { 0 } else { (hash >> (64 - bits)) as usize }
}

fn entry(hash: u64, row: u32, bits: u32) -> u64 {
    u64::from(tag_of(hash, bits)) << 32 | u64::from(row)
}

fn tag_of(hash: u64, bits: u32) -> u32 {
    ((hash << bits) >> 32) as u32
}

const fn entries_at(bits: u32) -> usize {
    (HEADER_BYTES + ((1 << bits) + 1) * 4).next_multiple_of(8)
}

/// What is wrong with the section, if something is; after this, probing cannot fail.
pub(crate) fn validate(bytes: &[u8], rows: u32) -> Result<(), &'static str> {
    let bits = u32_at(bytes, 0).ok_or("the primary run has no header")?;
    if bits > BITS_MAX || u32_at(bytes, 4) != Some(0) {
        return Err("the primary run's header is impossible");
    }
    let expected = entries_at(bits) + rows as usize * 8;
    if bytes.len() != expected {
        return Err("the primary run's length does not fit its rows");
    }
    Ok(())
}

/// Every check that needs the whole section: buckets cover it in order, entries are sorted in each and name each row
/// once. For `verify`; a probe does without.
pub(crate) fn validate_deeply(bytes: &[u8], rows: u32) -> Result<(), &'static str> {
    validate(bytes, rows)?;
    let bits = u32_at(bytes, 0).unwrap_or(0);
    let mut seen = roaring::RoaringBitmap::new();
    let mut before = 0;
    for bucket in 0..1_usize << bits {
        let (start, end) = bucket_range(bytes, bits, bucket).ok_or("a bucket of the primary run is impossible")?;
        if start != before {
            return Err("buckets of the primary run do not follow each other");
        }
        before = end;
        let mut last = None;
        for index in start..end {
            let entry = entry_at(bytes, bits, index).ok_or("a bucket of the primary run is impossible")?;
            if last.is_some_and(|last| last >= entry) {
                return Err("entries of the primary run are out of order");
            }
            last = Some(entry);
            let row = entry as u32;
            if row >= rows || !seen.insert(row) {
                return Err("the primary run names a row twice, or one that is not there");
            }
        }
    }
    if before == rows as usize { Ok(()) } else { Err("the primary run does not name every row") }
}

/// The rows whose key may have this hash.
pub(crate) fn probe(bytes: &[u8], hash: u64) -> SmallVec<[RowId; 2]> {
    let mut found = SmallVec::new();
    let bits = u32_at(bytes, 0).unwrap_or(0).min(BITS_MAX);
    let Some((start, end)) = bucket_range(bytes, bits, bucket_of(hash, bits)) else { return found };
    let tag = tag_of(hash, bits);
    let (mut low, mut high) = (start, end);
    // Buckets are short; only an uneven hash makes a search worth it.
    while high - low > 2 * BUCKET_ENTRIES {
        let middle = low + (high - low) / 2;
        if entry_at(bytes, bits, middle).is_some_and(|entry| (entry >> 32) as u32 >= tag) {
            high = middle;
        } else {
            low = middle;
        }
    }
    for index in low..end {
        let Some(entry) = entry_at(bytes, bits, index) else { break };
        match ((entry >> 32) as u32).cmp(&tag) {
            std::cmp::Ordering::Less => {}
            std::cmp::Ordering::Equal => found.push(RowId::from_raw(entry as u32)),
            std::cmp::Ordering::Greater => break,
        }
    }
    found
}

fn bucket_range(bytes: &[u8], bits: u32, bucket: usize) -> Option<(usize, usize)> {
    let at = HEADER_BYTES + bucket * 4;
    let (start, end) = (u32_at(bytes, at)? as usize, u32_at(bytes, at + 4)? as usize);
    let total = bytes.len().checked_sub(entries_at(bits))? / 8;
    (start <= end && end <= total).then_some((start, end))
}

fn entry_at(bytes: &[u8], bits: u32, index: usize) -> Option<u64> {
    let at = entries_at(bits) + index * 8;
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;
    use std::collections::BTreeMap;

    fn hash(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    }

    #[test]
    fn every_hash_finds_its_rows_and_others_find_none() {
        for rows in [0_u32, 1, 7, 8, 9, 100, 5000] {
            let mut model: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
            // Some hashes are borne by several rows.
            let mut pairs: Vec<(u64, u32)> =
                (0..rows).map(|row| (hash(u64::from(row / 2 * 2 + row % 3 / 2)), row)).collect();
            for (hash, row) in &pairs {
                model.entry(*hash).or_default().push(*row);
            }
            let bytes = encode(&mut pairs);
            validate_deeply(&bytes, rows).unwrap();
            for (hash, expected) in &model {
                let mut found: Vec<u32> = probe(&bytes, *hash).iter().map(|row| row.get()).collect();
                found.sort_unstable();
                assert_eq!(&found, expected);
            }
            for n in 1_000_000..1_001_000 {
                assert!(probe(&bytes, hash(n)).is_empty());
            }
        }
    }

    #[test]
    fn an_uneven_hash_is_slow_and_right() {
        let mut pairs: Vec<(u64, u32)> = (0..3000).map(|row| (u64::from(row) << 20, row)).collect();
        let bytes = encode(&mut pairs);
        validate_deeply(&bytes, 3000).unwrap();
        for row in 0..3000_u32 {
            assert!(probe(&bytes, u64::from(row) << 20).contains(&RowId::from_raw(row)));
        }
    }

    #[test]
    fn hostile_bytes_find_nothing_and_do_not_panic() {
        let mut pairs: Vec<(u64, u32)> = (0..40).map(|row| (hash(row.into()), row)).collect();
        let bytes = encode(&mut pairs);
        for at in 0..bytes.len() {
            for value in [0, 0x7f, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                if validate(&damaged, 40).is_ok() {
                    (0..100).for_each(|n| drop(probe(&damaged, hash(n))));
                }
                let _ = validate_deeply(&damaged, 40);
            }
            (0..50).for_each(|n| drop(probe(&bytes[..at], hash(n))));
        }
    }
}
