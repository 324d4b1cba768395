//! How much memory this process may have: the least limit of its control groups, else the machine's.
//!
//! Takes what the system says; gives bytes. Where it says nothing, a small machine is assumed. What the engine makes of
//! it stands in `quarrydb::Options::for_memory`.

use std::fs::read_to_string;

/// Assumed where the system does not tell.
const UNKNOWN_BYTES: u64 = 2 << 30;
/// Bodies get one part in this many.
const SHARE_OF_BODIES: u64 = 10;
/// Where control groups are, of version 2 and of version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/memory"];

/// What all bodies together may hold unless the owner says otherwise: a tenth of `memory`, and at least one body.
pub(crate) fn bodies_bytes(memory: u64, max_body_bytes: usize) -> usize {
    let share = usize::try_from(memory / SHARE_OF_BODIES).unwrap_or(usize::MAX);
    share.max(max_body_bytes)
}

/// What this process may have.
pub(crate) fn limit_bytes() -> u64 {
    let own = read_to_string("/proc/self/cgroup").unwrap_or_default();
    let container = limit_files(&own).iter().filter_map(|path| limit(&read_to_string(path).ok()?)).min();
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| total_bytes(&text));
    container.into_iter().chain(machine).min().unwrap_or(UNKNOWN_BYTES)
}

/// The files that may hold a limit, by what `/proc/self/cgroup` says: those of the process's group and of each group
/// around it, of both versions. In a container only the outermost are seen, and are the container's own.
fn limit_files(own: &str) -> Vec<String> {
    let mut files = Vec::new();
    let [root, root_of_version_1] = ROOTS;
    let mut add = |root: &str, file: &str, path: &str| {
        let mut path = path.trim_matches('/');
        loop {
            let slash = if path.is_empty() { "" } else { "/" };
            files.push(format!("{root}{slash}{path}/{file}"));
            if path.is_empty() {
                return;
            }
            path = path.rfind('/').map_or("", |at| &path[..at]);
        }
    };
    // `0::/system.slice/quarrydb.service`, or `5:memory:/docker/0123`.
    let group = |wanted: fn(&str, &str) -> bool| {
        own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':');
            let (number, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
            (wanted(number, controllers) && !path.contains("..")).then_some(path)
        })
    };
    let version_2 = group(|number, controllers| number == "0" && controllers.is_empty());
    let version_1 = group(|_, controllers| controllers.split(',').any(|name| name == "memory"));
    add(root, "memory.max", version_2.unwrap_or(""));
    add(root_of_version_1, "memory.limit_in_bytes", version_1.unwrap_or(""));
    files
}

/// A limit as its file says it; `max` is none, and version 1 says a number beyond all machines instead.
fn limit(text: &str) -> Option<u64> {
    text.trim().parse().ok().filter(|&bytes| bytes > 0)
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
        assert_eq!((limit("max\n"), limit("536870912\n"), limit("0"), limit("")), (None, Some(512 << 20), None, None));
        assert_eq!(bodies_bytes(8 << 30, 1000), (8 << 30) / 10);
        assert_eq!(bodies_bytes(8 << 30, usize::MAX), usize::MAX);
        assert!(limit_bytes() >= 1 << 20);
    }

    #[test]
    fn limits_are_looked_for_in_every_group_around_the_process() {
        let version_1 = "/sys/fs/cgroup/memory/memory.limit_in_bytes";
        let service = limit_files("0::/system.slice/quarrydb.service\n");
        let expected = [
            "/sys/fs/cgroup/system.slice/quarrydb.service/memory.max",
            "/sys/fs/cgroup/system.slice/memory.max",
            "/sys/fs/cgroup/memory.max",
            version_1,
        ];
        assert_eq!(service, expected);
        assert_eq!(limit_files("0::/\n"), ["/sys/fs/cgroup/memory.max", version_1]);
        let docker = limit_files("12:cpu,cpuacct:/docker/0f\n5:memory:/docker/0f\n1:name=systemd:/docker/0f\n");
        assert_eq!(docker[1], "/sys/fs/cgroup/memory/docker/0f/memory.limit_in_bytes");
        assert_eq!(limit_files("nonsense"), ["/sys/fs/cgroup/memory.max", version_1]);
        assert_eq!(limit_files("0::/../../elsewhere\n").len(), 2, "beyond what this process can see");
    }
}
