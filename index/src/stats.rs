//! How many values are distinct: exactly while they are few, then by linear counting (Whang et al. 1990).
//! It is given hashes or order-preserving keys; two equal values give equal ones.

/// Distinct values up to which the count is exact.
pub const EXACT_DISTINCT_MAX: usize = 4096;
/// Bits of the estimate: up to 2^20 values keep the error near one percent.
const ESTIMATE_BITS: usize = 1 << 18;

/// A number of distinct values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Distinct {
    /// How many.
    pub count: u32,
    /// Whether it is the count itself and not an estimate.
    pub exact: bool,
}

/// Slots of the table that counts exactly: four for each key it may hold.
const SLOTS: usize = EXACT_DISTINCT_MAX * 4;

/// Distinct ones among keys.
pub(crate) fn distinct(keys: &[u64]) -> Distinct {
    // Open addressing: the table is never more than a quarter full.
    let mut slots: Vec<Option<u64>> = vec![None; SLOTS];
    let (mut count, mut last) = (0, None);
    for &key in keys {
        if last == Some(key) {
            continue;
        }
        last = Some(key);
        let mut at = mix(key) as usize % SLOTS;
        while slots[at].is_some_and(|other| other != key) {
            at = (at + 1) % SLOTS;
        }
        if slots[at].is_none() {
            slots[at] = Some(key);
            count += 1;
            if count > EXACT_DISTINCT_MAX {
                return estimate(keys);
            }
        }
    }
    Distinct { count: count as u32, exact: true }
}

fn mix(key: u64) -> u64 {
    // The finaliser of splitmix64 (Steele et al. 2014).
    let key = (key ^ (key >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    key ^ (key >> 31)
}

fn estimate(keys: &[u64]) -> Distinct {
    let mut bits = vec![0_u64; ESTIMATE_BITS / 64];
    for &key in keys {
        let bit = mix(key) as usize % ESTIMATE_BITS;
        bits[bit / 64] |= 1 << (bit % 64);
    }
    let zeros: u32 = bits.iter().map(|word| word.count_zeros()).sum();
    let size = ESTIMATE_BITS as f64;
    let count = size * (size / f64::from(zeros.max(1))).ln();
    Distinct { count: count.round().min(keys.len() as f64) as u32, exact: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_counted_and_many_estimated() {
        let keys: Vec<u64> = (0..10_000).map(|n| n % 4096).collect();
        assert_eq!(distinct(&keys), Distinct { count: 4096, exact: true });
        let keys: Vec<u64> = (0..400_000).map(|n| n % 200_000).collect();
        let many = distinct(&keys);
        assert!(!many.exact && many.count.abs_diff(200_000) < 4_000, "{many:?}");
    }
}
