//! What the machine was: its name for a directory, its parts for whoever reads figures later.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

/// Today, in UTC. Civil date from days since 1970 (Hinnant, `days_from_civil` turned round).
pub(super) fn date() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let z = seconds / 86_400 + 719_468;
    let (era, of_era) = (z / 146_097, z % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let mp = (5 * of_year + 2) / 153;
    let day = of_year - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + u64::from(month <= 2))
}

fn fact(file: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find(|l| l.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, std::num::NonZero::get)
}

/// Cores and model: what tells two machines apart without naming either.
pub(super) fn machine_name() -> String {
    let model = fact("/proc/cpuinfo", "model name").unwrap_or_default().to_lowercase();
    let words: Vec<&str> = model.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    let dull = ["r", "tm", "cpu", "processor", "with"];
    let kept: Vec<&str> = words.into_iter().filter(|w| !dull.contains(w)).take(4).collect();
    format!("{}core-{}", cores(), kept.join("-"))
}

fn said(program: &str, arguments: &[&str]) -> String {
    let output = std::process::Command::new(program).args(arguments).output();
    output.map_or_else(|_| "unknown".into(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}

pub(super) fn setup(command: &str) -> String {
    let dir = std::env::var("QUARRYDB_BENCH_DIR").unwrap_or_else(|_| "the system's temporary directory".into());
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "# Setup\n\n* command: `{command}`\n* date: {} (UTC)\n* processor: {}, {} cores\n* memory: {}\n* kernel: {}\n\
         * compiler: {}\n* commit: {}\n* data on: {dir}\n* client and server on the same machine, over loopback; no \
         other load was started by the harness\n",
        date(),
        fact("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".into()),
        cores(),
        fact("/proc/meminfo", "MemTotal").unwrap_or_else(|| "unknown".into()),
        kernel.trim(),
        said("rustc", &["--version"]),
        said("git", &["rev-parse", "--short", "HEAD"]),
    )
}
