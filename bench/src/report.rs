//! What came out: a table for people, a line of JSON for every sample, and what the machine was.
//!
//! Takes samples by row and repetition; the table shows medians, the ratio of ours to its floor repetition by
//! repetition (then the median of those), and whether a goal is met. Nothing here measures.

use crate::load::{Outcome, median};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Shares of requests whose latency is kept.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// When a row is good.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// It only informs.
    None,
    /// Ours at least this share of its floor.
    Ratio(f64),
    /// At least this.
    AtLeast(f64),
    /// At most this.
    AtMost(f64),
}

/// One repetition of one row.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    ours: f64,
    floor: f64,
    micros: [f64; 4],
    floor_micros: [f64; 4],
    /// Processor time of the server for each request in microseconds, user and system.
    processor: [f64; 2],
    floor_processor: [f64; 2],
}

impl Sample {
    /// Ours beside its floor, both in the row's unit.
    #[must_use]
    pub fn of(ours: f64, floor: f64) -> Self {
        let (micros, processor) = ([f64::NAN; 4], [f64::NAN; 2]);
        Self { ours, floor, micros, floor_micros: micros, processor, floor_processor: processor }
    }

    /// A figure that has no floor.
    #[must_use]
    pub fn alone(ours: f64) -> Self {
        Self::of(ours, f64::NAN)
    }

    /// The same with latencies and processor times.
    #[must_use]
    pub fn latencies(mut self, ours: &Outcome, floor: &Outcome) -> Self {
        self.micros = QUANTILES.map(|(_, q)| ours.micros(q));
        self.floor_micros = QUANTILES.map(|(_, q)| floor.micros(q));
        (self.processor, self.floor_processor) = (ours.processor, floor.processor);
        self
    }
}

#[derive(Debug)]
struct Row {
    name: String,
    unit: &'static str,
    floor: &'static str,
    goal: Goal,
    samples: Vec<Sample>,
}

impl Row {
    fn median_of(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        median(&self.samples.iter().map(value).collect::<Vec<f64>>())
    }

    fn met(&self) -> Option<bool> {
        let ours = self.median_of(|s| s.ours);
        match self.goal {
            Goal::None => None,
            Goal::Ratio(share) => Some(self.median_of(|s| s.ours / s.floor) >= share),
            Goal::AtLeast(least) => Some(ours >= least),
            Goal::AtMost(most) => Some(ours <= most),
        }
    }
}

/// All rows of a run, in the order in which they came.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
    raw: String,
}

impl Report {
    /// Adds a sample to the row of that name.
    pub fn add(
        &mut self,
        name: &str,
        unit: &'static str,
        floor: &'static str,
        goal: Goal,
        repetition: usize,
        sample: Sample,
    ) {
        let mut line = serde_json::json!({"repetition": repetition, "row": name, "unit": unit, "ours": sample.ours});
        if !sample.floor.is_nan() {
            line["floor"] = sample.floor.into();
        }
        for (side, micros) in [("ours", sample.micros), ("floor", sample.floor_micros)] {
            for ((label, _), value) in QUANTILES.iter().zip(micros).filter(|(_, v)| !v.is_nan()) {
                line[format!("{side}_{label}_us")] = value.into();
            }
        }
        for (side, times) in [("ours", sample.processor), ("floor", sample.floor_processor)] {
            for (label, value) in ["user", "system"].iter().zip(times).filter(|(_, v)| !v.is_nan()) {
                line[format!("{side}_{label}_us")] = value.into();
            }
        }
        let _ = writeln!(self.raw, "{line}");
        match self.rows.iter_mut().find(|row| row.name == name) {
            Some(row) => row.samples.push(sample),
            None => self.rows.push(Row { name: name.to_owned(), unit, floor, goal, samples: vec![sample] }),
        }
    }

    /// Names of the rows whose goal is missed.
    #[must_use]
    pub fn missed(&self) -> Vec<&str> {
        self.rows.iter().filter(|row| row.met() == Some(false)).map(|row| row.name.as_str()).collect()
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The table in markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = String::from(
            "| row | ours | floor | ratio | goal | met | ours p50 / p99 / p99.9 us | floor p50 / p99 us \
             | ours user + system us | floor user + system us |\n\
             | --- | ---: | ---: | ---: | --- | --- | --- | --- | --- | --- |\n",
        );
        for row in &self.rows {
            let floor = row.median_of(|s| s.floor);
            let shown = if floor.is_nan() { String::new() } else { format!("{} ({})", number(floor), row.floor) };
            let ratio = row.median_of(|s| s.ours / s.floor);
            let ratio = if ratio.is_nan() { String::new() } else { format!("{ratio:.2}") };
            let goal = match row.goal {
                Goal::None => String::new(),
                Goal::Ratio(share) => format!(">= {share} x"),
                Goal::AtLeast(least) => format!(">= {}", number(least)),
                Goal::AtMost(most) => format!("<= {}", number(most)),
            };
            let met = row.met().map_or("", |met| if met { "yes" } else { "no" });
            let quantiles = |pick: fn(&Sample) -> [f64; 4], which: &[usize]| {
                let values: Vec<f64> = which.iter().map(|&i| row.median_of(|s| pick(s)[i])).collect();
                let texts: Vec<String> = values.iter().filter(|v| !v.is_nan()).map(|v| number(*v)).collect();
                texts.join(" / ")
            };
            let (ours, theirs) = (quantiles(|s| s.micros, &[0, 2, 3]), quantiles(|s| s.floor_micros, &[0, 2]));
            let processor = |pick: fn(&Sample) -> [f64; 2]| {
                let [user, system] = [0, 1].map(|i| row.median_of(|s| pick(s)[i]));
                if user.is_nan() { String::new() } else { format!("{} + {}", number(user), number(system)) }
            };
            let (spent, their_spent) = (processor(|s| s.processor), processor(|s| s.floor_processor));
            let value = number(row.median_of(|s| s.ours));
            let _ = writeln!(
                out,
                "| {} | {value} {} | {shown} | {ratio} | {goal} | {met} | {ours} | {theirs} | {spent} | \
                 {their_spent} |",
                row.name, row.unit
            );
        }
        out
    }

    /// Writes `setup.md`, `raw.jsonl` and `summary.md` into `results/<date>-<machine>/` and gives the directory.
    ///
    /// # Errors
    /// Where the files cannot be written.
    pub fn write(&self, results: &Path, command: &str) -> io::Result<PathBuf> {
        let dir = results.join(format!("{}-{}", date(), machine_name()));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join("raw.jsonl"), &self.raw)?;
        fs::write(dir.join("setup.md"), setup(command))?;
        let mut summary = fs::File::create(dir.join("summary.md"))?;
        writeln!(summary, "# Summary\n\n`{command}`; medians of the repetitions, the machine in setup.md.\n")?;
        summary.write_all(self.table().as_bytes())?;
        Ok(dir)
    }
}

/// Three figures that matter, thousands apart.
fn number(value: f64) -> String {
    if value.abs() < 10.0 {
        return format!("{value:.2}");
    }
    if value.abs() < 100.0 {
        return format!("{value:.1}");
    }
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// Today, in UTC. Civil date from days since 1970 (Hinnant, `days_from_civil` turned round).
fn date() -> String {
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
fn machine_name() -> String {
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

fn setup(command: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_judged_by_medians() {
        let mut report = Report::default();
        for (i, (ours, floor)) in [(80.0, 100.0), (90.0, 100.0), (190.0, 200.0)].into_iter().enumerate() {
            report.add("kept", "1/s", "HTTP", Goal::Ratio(0.85), i, Sample::of(ours, floor));
            report.add("missed", "s", "", Goal::AtMost(79.0), i, Sample::alone(ours));
        }
        assert_eq!(report.missed(), ["missed"]);
        let table = report.table();
        assert!(table.contains("| kept | 90.0 1/s | 100 (HTTP) | 0.90 | >= 0.85 x | yes |"), "{table}");
        assert_eq!(report.raw.lines().count(), 6);
    }

    #[test]
    fn numbers_show_what_matters() {
        let shown = [0.031, 12.34, 999.6, 1_234_567.8].map(number);
        assert_eq!(shown, ["0.03", "12.3", "1,000", "1,234,568"]);
    }
}
