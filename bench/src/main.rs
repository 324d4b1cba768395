//! The command line of the benchmarks: what was typed, handed on.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for a terminal")]

use quarrydb_bench::dataset::{Employees, Lines, SEED};
use quarrydb_bench::events::Firehose;
use quarrydb_bench::floor::http::{Options, Work, serve};
use quarrydb_bench::kill;
use quarrydb_bench::load::closed_loop;
use quarrydb_bench::report::Report;
use quarrydb_bench::server::Scratch;
use quarrydb_bench::suite::{self, Plan};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "usage:
  quarrydb-bench run [--smoke] [--documents N] [--repetitions N] [--only GROUP[,GROUP]] [--results DIR]
        ours beside the floors; groups: batch find point fields single import open events changes
        transactions rows (the 24 of suite A) small (10,000 small documents)
        exit status 1 where a goal is missed, but not with --smoke
  quarrydb-bench peers [--documents N[,N]] [--repetitions N] [--durability interval|commit] [--peers NAME[,NAME]]
                       [--only rows|small|single[,...]] [--results DIR]
        ours beside others, built with `--features peers`: docs/benchmarks.md says how they are found
  quarrydb-bench floors [--smoke] [...]           the floors alone: what this machine gives
  quarrydb-bench load ADDRESS CONNECTIONS N       N insertOne to a server that runs already, for whoever profiles it
  quarrydb-bench kill [--rounds N] [--seed N] [--seals]
        kills the server under 8 writers and looks for what was lost; with --seals while it seals all the time
  quarrydb-bench dataset N [SEED]                 N employee documents, one a line
  quarrydb-bench events N [SEED]                  the N events of a firehose that has no more, one a line
environment:
  QUARRYDB_BIN         the server to measure, if not the one built beside this program
  QUARRYDB_BENCH_DIR   where data goes, if not the temporary directory";

/// `--name value` pairs and bare words, in order.
struct Arguments(Vec<String>);

impl Arguments {
    fn flag(&mut self, name: &str) -> bool {
        let at = self.0.iter().position(|a| a == name);
        at.map(|i| self.0.remove(i)).is_some()
    }

    fn value(&mut self, name: &str) -> Result<Option<String>, String> {
        let Some(at) = self.0.iter().position(|a| a == name) else { return Ok(None) };
        self.0.remove(at);
        if at < self.0.len() { Ok(Some(self.0.remove(at))) } else { Err(format!("{name} wants a value")) }
    }

    fn number<T: std::str::FromStr>(&mut self, name: &str, default: T) -> Result<T, String> {
        let Some(text) = self.value(name)? else { return Ok(default) };
        text.parse().map_err(|_| format!("{name} wants a number, not {text}"))
    }

    fn word<T: std::str::FromStr>(&mut self, what: &str) -> Result<Option<T>, String> {
        if self.0.is_empty() {
            return Ok(None);
        }
        self.0.remove(0).parse().map(Some).map_err(|_| format!("{what} is not understood"))
    }

    fn done(&self) -> Result<(), String> {
        self.0.first().map_or(Ok(()), |word| Err(format!("{word} is not understood")))
    }
}

fn main() -> ExitCode {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let command = if words.is_empty() { String::new() } else { words.remove(0) };
    let mut arguments = Arguments(words);
    let done = match command.as_str() {
        "run" | "floors" => run(&command, &mut arguments),
        "peers" => peers(&mut arguments),
        "load" => load(&mut arguments),
        "kill" => soak(&mut arguments),
        "dataset" => dataset(&mut arguments),
        "events" => events(&mut arguments),
        "floor" => floor(&mut arguments),
        "spin" => loop {
            std::hint::spin_loop();
        },
        "" | "help" | "--help" => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("{other} is not a command\n{USAGE}")),
    };
    done.unwrap_or_else(|message| {
        eprintln!("quarrydb-bench: {message}");
        ExitCode::from(2)
    })
}

fn told(error: io::Error) -> String {
    error.to_string()
}

fn run(command: &str, arguments: &mut Arguments) -> Result<ExitCode, String> {
    let line = format!("quarrydb-bench {command} {}", arguments.0.join(" "));
    let smoke = arguments.flag("--smoke");
    let mut plan = if smoke { Plan::smoke() } else { Plan::full() };
    plan.floors_only = command == "floors";
    plan.documents = arguments.number("--documents", plan.documents)?;
    plan.repetitions = arguments.number("--repetitions", plan.repetitions)?;
    if let Some(groups) = arguments.value("--only")? {
        plan.only = groups.split(',').map(str::to_owned).collect();
        if let Some(unknown) = plan.only.iter().find(|group| !suite::GROUPS.contains(&group.as_str())) {
            return Err(format!("{unknown} is not a group\n{USAGE}"));
        }
    }
    let results = arguments.value("--results")?.map(PathBuf::from);
    arguments.done()?;
    let mut report = Report::default();
    suite::run(&plan, &mut report).map_err(told)?;
    println!("{}", report.table());
    // Published figures are whole runs; anything less is written only where the user says.
    let whole = plan.documents >= Plan::full().documents && plan.only.is_empty() && !plan.floors_only;
    let place = results.or_else(|| whole.then(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("results")));
    if let Some(place) = place {
        let dir = report.write(&place, line.trim()).map_err(told)?;
        println!("written to {}", dir.display());
    }
    let missed = report.missed();
    if smoke || missed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("goals missed: {}", missed.join("; "));
    Ok(ExitCode::FAILURE)
}

#[cfg(feature = "peers")]
fn peers(arguments: &mut Arguments) -> Result<ExitCode, String> {
    use quarrydb_bench::compare::engine::Durability;
    use quarrydb_bench::compare::peers::{Plan, beside};
    let line = format!("quarrydb-bench peers {}", arguments.0.join(" "));
    let mut listed = |name: &str, default: &str| -> Result<Vec<String>, String> {
        let named = arguments.value(name)?.unwrap_or_else(|| default.to_owned());
        Ok(named.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect())
    };
    let sizes = listed("--documents", "10000,100000,1000000")?;
    let (peers, only) = (listed("--peers", "")?, listed("--only", "")?);
    let sizes = sizes.iter().map(|size| size.parse().map_err(|_| format!("--documents wants numbers, not {size}")));
    let sizes = sizes.collect::<Result<Vec<usize>, String>>()?;
    let repetitions = arguments.number("--repetitions", 5)?;
    let hurry = arguments.number("--hurry", 1)?;
    let durability = match arguments.value("--durability")?.as_deref() {
        None | Some("interval") => Durability::Interval,
        Some("commit") => Durability::Commit,
        Some(other) => return Err(format!("--durability is interval or commit, not {other}")),
    };
    let results = arguments.value("--results")?.map(PathBuf::from);
    arguments.done()?;
    let mut report = Report::default();
    let done = beside(&Plan { sizes, repetitions, hurry, durability, peers, only }, &mut report);
    // What came before a failure is shown all the same.
    println!("{}", report.table());
    done.map_err(told)?;
    if let Some(place) = results {
        let dir = report.write(&place, line.trim()).map_err(told)?;
        println!("written to {}", dir.display());
    }
    println!("behind what is wanted: {}", report.missed().join("; "));
    Ok(ExitCode::SUCCESS)
}

#[cfg(not(feature = "peers"))]
fn peers(_: &mut Arguments) -> Result<ExitCode, String> {
    Err("built without other engines: make bench-peers, or --features peers".into())
}

fn load(arguments: &mut Arguments) -> Result<ExitCode, String> {
    let wanted = || format!("where, by how many connections, and how many?\n{USAGE}");
    let address: SocketAddr = arguments.word("ADDRESS")?.ok_or_else(wanted)?;
    let connections: usize = arguments.word("CONNECTIONS")?.ok_or_else(wanted)?;
    let count: usize = arguments.word("N")?.ok_or_else(wanted)?;
    arguments.done()?;
    let requests = suite::singles(&Lines::employees(count.min(10_000), SEED), count);
    let outcome = closed_loop(address, connections.max(1), &requests).map_err(told)?;
    let micros = [0.5, 0.99].map(|q| outcome.micros(q));
    println!("{:.0} requests/s, p50 {:.0} us, p99 {:.0} us", outcome.rate(), micros[0], micros[1]);
    Ok(ExitCode::SUCCESS)
}

fn soak(arguments: &mut Arguments) -> Result<ExitCode, String> {
    let sealing = arguments.flag("--seals");
    let rounds = arguments.number("--rounds", 50)?;
    let seed = arguments.number("--seed", std::process::id())?;
    arguments.done()?;
    println!("{rounds} rounds, --seed {seed}");
    let scratch = Scratch::new("kill").map_err(told)?;
    let tally = kill::soak(scratch.path(), rounds, seed, sealing).map_err(told)?;
    println!(
        "nothing lost: {} acknowledged requests, {} in flight found done and {} not, {} kills left a file half made, {} \
         documents at the end",
        tally.acknowledged, tally.done, tally.not_done, tally.half_made, tally.documents
    );
    Ok(ExitCode::SUCCESS)
}

fn dataset(arguments: &mut Arguments) -> Result<ExitCode, String> {
    let documents: usize = arguments.word("N")?.ok_or_else(|| format!("how many?\n{USAGE}"))?;
    let mut employees = Employees::new(arguments.word("SEED")?.unwrap_or(SEED));
    arguments.done()?;
    print_lines(documents, |line| employees.append(line))
}

fn events(arguments: &mut Arguments) -> Result<ExitCode, String> {
    let events: usize = arguments.word("N")?.ok_or_else(|| format!("how many?\n{USAGE}"))?;
    let mut firehose = Firehose::new(arguments.word("SEED")?.unwrap_or(SEED), events);
    arguments.done()?;
    print_lines(events, |line| firehose.append(line))
}

fn print_lines(count: usize, mut append: impl FnMut(&mut Vec<u8>)) -> Result<ExitCode, String> {
    let mut out = io::BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut line = Vec::new();
    for _ in 0..count {
        line.clear();
        append(&mut line);
        line.push(b'\n');
        match out.write_all(&line) {
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            other => other.map_err(told)?,
        }
    }
    out.flush().map_err(told)?;
    Ok(ExitCode::SUCCESS)
}

/// Started by the harness itself, as a child.
fn floor(arguments: &mut Arguments) -> Result<ExitCode, String> {
    let work = arguments.value("--work")?.and_then(|name| Work::named(&name)).ok_or("--work is missing")?;
    let answer_bytes = arguments.number("--answer-bytes", 0)?;
    let log = arguments.value("--log")?.ok_or("--log is missing")?.into();
    arguments.done()?;
    serve(&Options { work, answer_bytes, log }).map_err(told)?;
    Ok(ExitCode::SUCCESS)
}
