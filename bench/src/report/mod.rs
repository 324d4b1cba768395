//! What came out: a table for people, a line of JSON for every sample, and what the machine was.
//!
//! Takes samples by row and repetition; the table shows medians, the ratio of ours to its floor repetition by
//! repetition (then the median of those), and whether a goal is met. Nothing here measures. `setup.rs` says what the
//! machine was.

mod setup;

use crate::compare::matrix::Matrix;
use crate::load::{Outcome, median};
use crate::timed::Times;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Shares of requests whose latency is kept.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// When a row is good.
#[derive(Clone, Copy, Debug)]
pub enum Goal {
    /// It only informs.
    None,
    /// Ours at least this share of its floor.
    Ratio(f64),
    /// Ours at most this many times its floor.
    Within(f64),
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

    /// The same with latencies alone, a floor's where it has them.
    #[must_use]
    pub fn times(mut self, ours: &Times, floor: Option<&Times>) -> Self {
        self.micros = QUANTILES.map(|(_, q)| ours.micros(q));
        self.floor_micros = QUANTILES.map(|(_, q)| floor.map_or(f64::NAN, |f| f.micros(q)));
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
    /// Why there is no figure.
    absent: &'static str,
}

impl Row {
    fn median_of(&self, value: impl Fn(&Sample) -> f64) -> f64 {
        median(&self.samples.iter().map(value).collect::<Vec<f64>>())
    }

    fn met(&self) -> Option<bool> {
        if self.samples.is_empty() {
            return None;
        }
        let ours = self.median_of(|s| s.ours);
        match self.goal {
            Goal::None => None,
            Goal::Ratio(share) => Some(self.median_of(|s| s.ours / s.floor) >= share),
            Goal::Within(times) => Some(self.median_of(|s| s.ours / s.floor) <= times),
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
    compared: Vec<Matrix>,
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
            None => self.rows.push(Row { name: name.to_owned(), unit, floor, goal, samples: vec![sample], absent: "" }),
        }
    }

    /// Says that a row has no figure, and why.
    pub fn absent(&mut self, name: &str, why: &'static str) {
        if !self.rows.iter().any(|row| row.name == name) {
            let _ = writeln!(self.raw, "{}", serde_json::json!({"row": name, "absent": why}));
            let (name, samples) = (name.to_owned(), Vec::new());
            self.rows.push(Row { name, unit: "", floor: "", goal: Goal::None, samples, absent: why });
        }
    }

    /// Adds a comparison, as a table of its own.
    pub fn attach(&mut self, matrix: Matrix) {
        let _ = writeln!(self.raw, "{}", matrix.json());
        self.compared.push(matrix);
    }

    /// Names of the rows whose goal is missed.
    #[must_use]
    pub fn missed(&self) -> Vec<&str> {
        let rows = self.rows.iter().filter(|row| row.met() == Some(false)).map(|row| row.name.as_str());
        rows.chain(self.compared.iter().flat_map(Matrix::missed)).collect()
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    /// The table in markdown.
    #[must_use]
    pub fn table(&self) -> String {
        let mut out = if self.rows.is_empty() {
            String::new()
        } else {
            String::from(
                "| row | ours | floor | ratio | goal | met | ours p50 / p99 / p99.9 us | floor p50 / p99 us \
             | ours user + system us | floor user + system us |\n\
             | --- | ---: | ---: | ---: | --- | --- | --- | --- | --- | --- |\n",
            )
        };
        for row in &self.rows {
            if row.samples.is_empty() {
                let _ = writeln!(out, "| {} | {} |  |  |  |  |  |  |  |  |", row.name, row.absent);
                continue;
            }
            let floor = row.median_of(|s| s.floor);
            let shown = if floor.is_nan() { String::new() } else { format!("{} ({})", number(floor), row.floor) };
            let ratio = row.median_of(|s| s.ours / s.floor);
            let ratio = if ratio.is_nan() { String::new() } else { format!("{ratio:.2}") };
            let goal = match row.goal {
                Goal::None => String::new(),
                Goal::Ratio(share) => format!(">= {} x", number(share)),
                Goal::Within(times) => format!("<= {} x", number(times)),
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
        for matrix in &self.compared {
            let _ = write!(out, "\n{}", matrix.table());
        }
        out
    }

    /// Writes `setup.md`, `raw.jsonl` and `summary.md` into `results/<date>-<machine>/` and gives the directory.
    ///
    /// # Errors
    /// Where the files cannot be written.
    pub fn write(&self, results: &Path, command: &str) -> io::Result<PathBuf> {
        let dir = results.join(format!("{}-{}", setup::date(), setup::machine_name()));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join("raw.jsonl"), &self.raw)?;
        fs::write(dir.join("setup.md"), setup::setup(command))?;
        let mut summary = fs::File::create(dir.join("summary.md"))?;
        writeln!(summary, "# Summary\n\n`{command}`; medians of the repetitions, the machine in setup.md.\n")?;
        summary.write_all(self.table().as_bytes())?;
        Ok(dir)
    }
}

/// Three figures that matter, thousands apart.
pub(crate) fn number(value: f64) -> String {
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
