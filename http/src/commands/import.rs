//! `quarrydb import`: files of documents into a data directory or a running server, with progress and a summary.
//!
//! Takes NDJSON or a JSON array, plain, gzip or zstd. Exits 0 where every document went in.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use quarrydb::{Collection, Database, Durability, Options, WriteOptions};

use super::client::Client;
use super::{exit, say};
use crate::body;
use crate::cli::ImportArgs;
use crate::import::{self, Plan, Progress, Report};
use crate::negotiate::Coding;

/// The longest line of a file.
const LONGEST_LINE_BYTES: usize = 256 << 20;
const SYNC_EVERY: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(200);

/// Where documents go.
enum Target {
    Directory(Database, Collection),
    Server(Client),
}

/// Runs the command.
pub(crate) fn run(args: ImportArgs) -> ExitCode {
    exit(import_all(&args))
}

fn import_all(args: &ImportArgs) -> Result<(), String> {
    let target = match &args.place.url {
        Some(url) => Target::Server(Client::new(url, args.place.key.as_deref(), args.place.ca.as_deref(), None)?),
        None => {
            // Nobody is told that a document is safe before the end, which syncs.
            let options = Options { durability: Durability::Interval(SYNC_EVERY), ..Options::default() };
            let database = Database::open_with(&args.place.data, options).map_err(|e| e.to_string())?;
            let collection = database.collection(&args.db, &args.coll).map_err(|e| e.to_string())?;
            Target::Directory(database, collection)
        }
    };
    let mut refused = 0;
    for file in &args.files {
        let started = Instant::now();
        let outcome = import_file(args, &target, file);
        let summary = match outcome {
            Ok(summary) => summary,
            Err(message) => return Err(format!("{}: {message}", file.display())),
        };
        refused += summary.failed;
        print_summary(file, &summary, started.elapsed());
        if let Some(message) = summary.fatal {
            return Err(format!("{}: {message}", file.display()));
        }
        if args.ordered && refused > 0 {
            break;
        }
    }
    if let Target::Directory(database, _) = &target {
        database.close().map_err(|e| e.to_string())?;
    }
    if refused > 0 { Err(format!("{refused} documents were refused")) } else { Ok(()) }
}

/// What is said of a file at the end, wherever it went.
struct Summary {
    lines: u64,
    inserted: u64,
    failed: u64,
    /// Line and reason.
    errors: Vec<(u64, String)>,
    whole: bool,
    fatal: Option<String>,
}

impl From<Report> for Summary {
    fn from(report: Report) -> Self {
        Self {
            lines: report.lines,
            inserted: report.inserted,
            failed: report.failed,
            errors: report.errors.iter().map(|e| (e.line, e.error.message().to_owned())).collect(),
            whole: report.whole,
            fatal: report.fatal.map(|e| e.message().to_owned()),
        }
    }
}

fn print_summary(file: &Path, summary: &Summary, took: Duration) {
    let seconds = took.as_secs_f64().max(1e-9);
    let whole = if summary.whole { ", whole by its trailer" } else { "" };
    say(&format!(
        "{}: {} documents, {} inserted, {} refused{whole}, {:.0} documents/s",
        file.display(),
        summary.lines,
        summary.inserted,
        summary.failed,
        summary.inserted as f64 / seconds
    ));
    for (line, message) in &summary.errors {
        say(&format!("  line {line}: {message}"));
    }
    let named = summary.errors.len() as u64;
    if summary.failed > named {
        say(&format!("  and {} more", summary.failed - named));
    }
}

fn import_file(args: &ImportArgs, target: &Target, file: &Path) -> Result<Summary, String> {
    let told = |e: io::Error| e.to_string();
    let is_stdin = file.as_os_str() == "-";
    let size = if is_stdin { None } else { Some(std::fs::metadata(file).map_err(told)?.len()) };
    let source: Box<dyn Read + Send> =
        if is_stdin { Box::new(io::stdin()) } else { Box::new(File::open(file).map_err(told)?) };
    let read = AtomicU64::new(0);
    let counted = Counted { inner: source, read: &read };
    let (coding, packed) = detect(counted).map_err(told)?;
    let bar = bar(size);
    let progress = Progress::default();
    let done = AtomicBool::new(false);
    let summary = std::thread::scope(|scope| {
        let (watch, bar, read) = (&done, &bar, &read);
        let watched = &progress;
        scope.spawn(move || {
            let started = Instant::now();
            while !watch.load(Ordering::Relaxed) {
                bar.set_position(read.load(Ordering::Relaxed));
                let inserted = watched.inserted.load(Ordering::Relaxed);
                let rate = inserted as f64 / started.elapsed().as_secs_f64().max(1e-9);
                bar.set_message(format!("{inserted} documents, {rate:.0}/s"));
                std::thread::park_timeout(REDRAW);
            }
        });
        let summary = match target {
            Target::Directory(database, collection) => {
                let plan = Plan {
                    ordered: args.ordered,
                    require_trailer: args.require_trailer,
                    write: WriteOptions::default(),
                    longest: LONGEST_LINE_BYTES,
                };
                match body::reader(coding, packed) {
                    Ok(plain) => Ok(import::run(database, collection, plain, plan, &progress).into()),
                    Err(e) => Err(e.message().to_owned()),
                }
            }
            Target::Server(client) => send(args, client, coding, packed),
        };
        done.store(true, Ordering::Relaxed);
        summary
    });
    bar.finish_and_clear();
    summary
}

/// Streams the file to the import route as it is, packed or not.
fn send(args: &ImportArgs, client: &Client, coding: Coding, mut packed: impl Read) -> Result<Summary, String> {
    let path =
        format!("/v1/db/{}/{}/import?ordered={}&trailer={}", args.db, args.coll, args.ordered, args.require_trailer);
    let mut headers = vec![("Content-Type", "application/x-ndjson")];
    match coding {
        Coding::Identity => {}
        Coding::Gzip => headers.push(("Content-Encoding", "gzip")),
        Coding::Zstd => headers.push(("Content-Encoding", "zstd")),
    }
    let mut answer = client.post(&path, &headers, &mut packed)?;
    let text = answer.read_to_string().map_err(|e| e.to_string())?;
    let report: serde_json::Value = serde_json::from_str(&text).map_err(|e| format!("the server's report: {e}"))?;
    let number = |name: &str| report[name].as_u64().unwrap_or(0);
    let errors = report["errors"].as_array().into_iter().flatten();
    Ok(Summary {
        lines: number("lines"),
        inserted: number("insertedCount"),
        failed: number("failedCount"),
        errors: errors
            .map(|e| (e["line"].as_u64().unwrap_or(0), e["error"].as_str().unwrap_or_default().to_owned()))
            .collect(),
        whole: report["trailer"].as_bool().unwrap_or(false),
        fatal: None,
    })
}

/// Learns from the first bytes how a file is packed, whatever its name.
fn detect(mut source: impl Read) -> io::Result<(Coding, impl Read)> {
    let mut head = Vec::new();
    source.by_ref().take(4).read_to_end(&mut head)?;
    let coding = match head.as_slice() {
        [0x1f, 0x8b, ..] => Coding::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Coding::Zstd,
        _ => Coding::Identity,
    };
    Ok((coding, BufReader::with_capacity(256 << 10, io::Cursor::new(head).chain(source))))
}

fn bar(size: Option<u64>) -> ProgressBar {
    let (bar, template) = match size {
        Some(size) => (ProgressBar::new(size), "{bar:30} {bytes}/{total_bytes} {eta} left, {msg}"),
        None => (ProgressBar::new_spinner(), "{spinner} {bytes}, {msg}"),
    };
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar
}

/// Counts what was read of a file.
struct Counted<'a, R> {
    inner: R,
    read: &'a AtomicU64,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}
