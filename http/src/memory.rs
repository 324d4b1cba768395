//! How much memory this process may have: the container's limit, else the machine's.
//!
//! Takes what the system says; gives bytes. Where it says nothing, a small machine is assumed.

use std::fs::read_to_string;

/// Assumed where the system does not tell.
const UNKNOWN_BYTES: u64 = 2 << 30;
/// Bodies get one part in this many.
const SHARE_OF_BODIES: u64 = 10;

/// What all bodies together may hold unless the owner says otherwise: a tenth of the memory, and at least one body.
pub(crate) fn bodies_bytes(max_body_bytes: usize) -> usize {
    let share = usize::try_from(limit_bytes() / SHARE_OF_BODIES).unwrap_or(usize::MAX);
    share.max(max_body_bytes)
}

fn limit_bytes() -> u64 {
    let cgroups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let container = cgroups.iter().filter_map(|path| read_to_string(path).ok()?.trim().parse().ok()).min();
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    match (container, machine) {
        (Some(a), Some(b)) => u64::min(a, b),
        (Some(a), None) | (None, Some(a)) => a,
        (None, None) => UNKNOWN_BYTES,
    }
}

/// `MemTotal:  24631464 kB` in bytes.
fn total_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_words_are_understood() {
        assert_eq!(total_bytes("MemTotal:       24631464 kB\nMemFree: 1 kB\n"), Some(24_631_464 * 1024));
        assert_eq!(total_bytes("MemTotal: many"), None);
        assert!(bodies_bytes(1000) >= 1000 && bodies_bytes(usize::MAX) == usize::MAX);
    }
}
