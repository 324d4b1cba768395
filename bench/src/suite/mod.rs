//! What is measured, repetition by repetition: ours and its floor one after the other, who is first changing each time.
//!
//! `writes.rs` loads and inserts, `reads.rs` finds, `fields.rs` asks for fields, `reopen.rs` starts on what is there, `changes.rs` listens, `floors.rs` does without us. Each takes a running server or
//! an empty directory and leaves samples in a `Report`. No step asks the server how fast it was.

mod changes;
mod events;
mod fields;
mod floors;
mod reads;
mod reopen;
mod transactions;
mod writes;

pub use writes::singles;

use crate::compare::data::Data;
use crate::compare::rows::{employees, small};
use crate::compare::{SMALL, alone};
use crate::dataset::{Lines, SEED};
use crate::floor::machine;
use crate::load::{Outcome, closed_loop};
use crate::report::{Goal, Report, Sample};
use crate::server::{Scratch, Server};
use std::io;
use std::process::{Child, Command};

/// What a run does.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Employee documents loaded.
    pub documents: usize,
    /// How often all of it is done; figures are medians.
    pub repetitions: usize,
    /// Divides the number of single requests.
    pub hurry: usize,
    /// Which groups, all if empty.
    pub only: Vec<String>,
    /// No server of ours at all.
    pub floors_only: bool,
}

impl Plan {
    /// The published figures.
    #[must_use]
    pub fn full() -> Self {
        Self { documents: 1_000_000, repetitions: 5, hurry: 1, only: Vec::new(), floors_only: false }
    }

    /// Shows that the harness works; its figures mean nothing.
    #[must_use]
    pub fn smoke() -> Self {
        Self { documents: 10_000, repetitions: 1, hurry: 50, only: Vec::new(), floors_only: false }
    }

    fn does(&self, group: &str) -> bool {
        debug_assert!(GROUPS.contains(&group), "{group} is not in the list of groups");
        self.only.is_empty() || self.only.iter().any(|g| g == group)
    }
}

/// What can be run by itself.
pub const GROUPS: [&str; 12] = [
    "batch",
    "find",
    "point",
    "fields",
    "single",
    "import",
    "open",
    "events",
    "changes",
    "transactions",
    "rows",
    "small",
];
/// The collection's routes.
const COLLECTION: &str = "/v1/db/bench/employees";
/// Documents in one `insertMany`.
const BATCH: usize = 1000;

/// One repetition's surroundings.
struct Round<'a> {
    plan: &'a Plan,
    lines: &'a Lines,
    batches: &'a [Vec<u8>],
    report: &'a mut Report,
    repetition: usize,
}

/// Runs the plan.
///
/// # Errors
/// Where a server does not start, breaks off or refuses: then there are no figures.
pub fn run(plan: &Plan, report: &mut Report) -> io::Result<()> {
    let lines = Lines::employees(plan.documents, SEED);
    let batches: Vec<Vec<u8>> = lines
        .batches(BATCH)
        .iter()
        .map(|body| crate::client::request("POST", &format!("{COLLECTION}/insertMany"), &[], body))
        .collect();
    for repetition in 0..plan.repetitions {
        say(&format!("repetition {} of {}", repetition + 1, plan.repetitions));
        let mut round = Round { plan, lines: &lines, batches: &batches, report, repetition };
        if plan.floors_only {
            round.floors()?;
            continue;
        }
        round.machine()?;
        round.interval()?;
        round.commit()?;
        if plan.does("import") {
            round.import()?;
        }
        if plan.does("events") {
            round.events()?;
        }
        if plan.does("changes") {
            round.changes()?;
        }
        if plan.does("transactions") {
            round.transactions()?;
        }
    }
    if plan.floors_only {
        return Ok(());
    }
    drop((lines, batches));
    if plan.does("rows") {
        let data = Data::employees(plan.documents);
        report.attach(alone("suite A", data, employees(), plan.repetitions, plan.hurry)?);
    }
    if plan.does("small") {
        report.attach(alone("small documents", Data::small(SMALL), small(), plan.repetitions, plan.hurry)?);
    }
    Ok(())
}

impl Round<'_> {
    /// Whose turn is first.
    fn floor_first(&self) -> bool {
        self.repetition.is_multiple_of(2)
    }

    fn record(&mut self, row: &str, unit: &'static str, floor: &'static str, goal: Goal, sample: Sample) {
        self.report.add(row, unit, floor, goal, self.repetition, sample);
    }

    fn requests(&self, count: usize) -> usize {
        (count / self.plan.hurry).max(20)
    }

    fn machine(&mut self) -> io::Result<()> {
        let scratch = Scratch::new("machine")?;
        let micros = machine::sync_micros(scratch.path(), self.requests(2000))?;
        self.record("floor: 4 KiB append, fdatasync", "us", "", Goal::None, Sample::alone(micros));
        let rate = machine::parse_rate(self.lines);
        self.record("floor: simd-json tape, one core", "documents/s", "", Goal::None, Sample::alone(rate));
        let rate = machine::print_rate(self.lines.text())?;
        self.record("floor: copy and send", "MB/s", "", Goal::None, Sample::alone(rate / 1e6));
        Ok(())
    }

    /// What a database in `interval` mode is asked, on one data directory.
    fn interval(&mut self) -> io::Result<()> {
        let groups = ["batch", "find", "point", "fields", "single", "open"];
        if !groups.iter().any(|g| self.plan.does(g)) {
            return Ok(());
        }
        let scratch = Scratch::new("interval")?;
        let server = self.load(scratch.path(), "interval:100ms")?;
        if self.plan.does("find") {
            self.find_all(&server)?;
        }
        if self.plan.does("point") {
            self.points(&server)?;
        }
        if self.plan.does("fields") {
            self.fields(&server, scratch.path())?;
        }
        if self.plan.does("single") {
            self.singles_unsynced(&server)?;
        }
        if self.plan.does("open") { self.reopen(server, scratch.path()) } else { Ok(()) }
    }

    /// What a database in `commit` mode is asked.
    fn commit(&mut self) -> io::Result<()> {
        if !["batch", "single"].iter().any(|g| self.plan.does(g)) {
            return Ok(());
        }
        let scratch = Scratch::new("commit")?;
        let server = self.load(scratch.path(), "commit")?;
        if self.plan.does("single") {
            self.singles_synced(&server)?;
        }
        Ok(())
    }
}

/// A row of requests against ours and against its floor, in the turn of the repetition.
fn pair(
    floor_first: bool,
    connections: usize,
    requests: &[Vec<u8>],
    ours: &Server,
    floor: &Server,
) -> io::Result<(Outcome, Outcome)> {
    let run = |server: &Server| -> io::Result<Outcome> {
        let (outcome, time) = server.spending(|| closed_loop(server.address(), connections, requests))?;
        Ok(outcome.spent(time))
    };
    if floor_first {
        let floor = run(floor)?;
        Ok((run(ours)?, floor))
    } else {
        let ours = run(ours)?;
        Ok((ours, run(floor)?))
    }
}

/// Processes of the lowest priority that keep every core from sleeping, until dropped.
struct Awake(Vec<Child>);

impl Awake {
    fn start() -> io::Result<Self> {
        let cores = std::thread::available_parallelism()?.get();
        let own = std::env::current_exe()?;
        let spin = || Command::new("nice").args(["-n", "19"]).arg(&own).arg("spin").spawn();
        (0..cores).map(|_| spin()).collect::<io::Result<Vec<Child>>>().map(Self)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Progress goes to standard error: standard output is the table.
#[allow(clippy::print_stderr, reason = "a person waits for minutes")]
pub(crate) fn say(what: &str) {
    eprintln!("{what}");
}
