//! Loads a stream of documents into a collection: cutting, parsing and committing overlap, memory stays bounded.
//!
//! Takes a reader of plain text; gives a report of what went in and, by line, what did not and why. Used by the import
//! route and by `quarrydb import`, which knows no server. The caller's thread reads and cuts (`lines.rs`); workers parse;
//! one thread commits in order; one waits for the log. A small stream needs none of them.

pub(crate) mod lines;

use std::collections::VecDeque;
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use quarrydb::{Collection, Database, InsertBatch, InsertOutcome, Pending, WriteOptions};

use crate::error::ApiError;
use lines::{Block, Blocks, Content};

/// Errors that a report names; the others are counted.
pub(crate) const ERRORS_MAX: usize = 100;
/// Blocks between two stages.
const QUEUE_MAX: usize = 4;
const WORKERS_MAX: usize = 4;

/// How a stream is to be loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    /// Stop at the first document that is refused.
    pub(crate) ordered: bool,
    /// The stream must end with the trailer of an export.
    pub(crate) require_trailer: bool,
    /// For each commit.
    pub(crate) write: WriteOptions,
    /// The longest line.
    pub(crate) longest: usize,
}

/// A document that was refused.
#[derive(Debug)]
pub(crate) struct LineError {
    /// From 1.
    pub(crate) line: u64,
    /// Why.
    pub(crate) error: ApiError,
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Report {
    /// Lines or elements that were not blank; a trailer is none.
    pub(crate) lines: u64,
    pub(crate) inserted: u64,
    pub(crate) failed: u64,
    /// The first of them, in order.
    pub(crate) errors: Vec<LineError>,
    /// Whether the stream ended with a trailer that fits.
    pub(crate) whole: bool,
    /// Why it ended before its end.
    pub(crate) fatal: Option<ApiError>,
}

/// What others may watch while it runs.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Documents committed.
    pub(crate) inserted: AtomicU64,
    /// Set to end early.
    pub(crate) stop: AtomicBool,
}

/// A block after parsing.
struct Parsed {
    batch: InsertBatch,
    /// The line of each document of the batch, from 0 in the block.
    lines: Vec<u64>,
    /// What is no document, likewise.
    bad: Vec<(u64, ApiError)>,
    line_ends: u64,
    documents: u64,
    trailer: Option<u64>,
    trailer_line: u64,
    broken: Option<ApiError>,
}

/// Loads everything that `reader` gives.
pub(crate) fn run(
    database: &Database,
    collection: &Collection,
    reader: impl Read,
    plan: Plan,
    progress: &Progress,
) -> Report {
    let mut blocks = Blocks::new(reader, plan.longest);
    let first = match blocks.next() {
        Ok(Some(block)) => block,
        Ok(None) => return Report::default(),
        Err(e) => return Report { fatal: Some(unreadable(&e)), ..Report::default() },
    };
    let mut keeper = Keeper { plan, progress, report: Report::default(), next_line: 1 };
    if first.last {
        let parsed = parse(database, first, plan.ordered);
        let mut waiting = VecDeque::new();
        keeper.commit(collection, parsed, &mut |pending, lines| waiting.push_back((pending, lines)));
        for (pending, lines) in waiting {
            keeper.settle(pending, &lines);
        }
        return keeper.finish();
    }
    pipeline(database, collection, blocks, first, keeper)
}

fn pipeline<R: Read>(
    database: &Database,
    collection: &Collection,
    mut blocks: Blocks<R>,
    first: Block,
    keeper: Keeper<'_>,
) -> Report {
    let (plan, progress) = (keeper.plan, keeper.progress);
    let workers = thread::available_parallelism().map_or(2, usize::from).clamp(2, WORKERS_MAX);
    let (to_workers, jobs) = sync_channel::<(Block, SyncSender<Parsed>)>(QUEUE_MAX);
    let jobs = Mutex::new(jobs);
    let (to_committer, in_order) = sync_channel::<Receiver<Parsed>>(QUEUE_MAX);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((block, done)) = job else { return };
                    let _ = done.send(parse(database, block, plan.ordered));
                }
            });
        }
        let committer = scope.spawn(move || commit_all(collection, keeper, &in_order));
        let mut next = Some(first);
        let mut failed = None;
        while let Some(block) = next.take() {
            let (done, parsed) = sync_channel(1);
            if to_workers.send((block, done)).is_err() || to_committer.send(parsed).is_err() {
                break;
            }
            if progress.stop.load(Ordering::Relaxed) {
                break;
            }
            match blocks.next() {
                Ok(block) => next = block,
                Err(e) => failed = Some(unreadable(&e)),
            }
        }
        drop(to_workers);
        drop(to_committer);
        let mut report = committer.join().unwrap_or_else(|_| Report {
            fatal: Some(ApiError::internal(&"the committing thread of an import panicked")),
            ..Report::default()
        });
        if report.fatal.is_none() {
            report.fatal = failed;
        }
        report
    })
}

/// Commits block after block; the syncs are waited for on a thread of their own, so that the next block goes in meanwhile.
fn commit_all(collection: &Collection, mut keeper: Keeper<'_>, in_order: &Receiver<Receiver<Parsed>>) -> Report {
    let (to_waiter, pendings) = sync_channel::<(Pending<InsertOutcome>, Lines)>(QUEUE_MAX);
    let (settled_to, settled) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for (pending, lines) in pendings {
                let _ = settled_to.send((pending.wait(), lines));
            }
        });
        for parsed in in_order {
            let Ok(parsed) = parsed.recv() else {
                keeper.fail(ApiError::internal(&"a parsing thread of an import panicked"));
                break;
            };
            if keeper.stopped() {
                continue;
            }
            if keeper.plan.ordered {
                let mut waiting = VecDeque::new();
                keeper.commit(collection, parsed, &mut |pending, lines| waiting.push_back((pending, lines)));
                for (pending, lines) in waiting {
                    keeper.settle(pending, &lines);
                }
            } else {
                keeper.commit(collection, parsed, &mut |pending, lines| {
                    let _ = to_waiter.send((pending, lines));
                });
                while let Ok((outcome, lines)) = settled.try_recv() {
                    keeper.note(outcome, &lines);
                }
            }
        }
        drop(to_waiter);
        for (outcome, lines) in &settled {
            keeper.note(outcome, &lines);
        }
        keeper.finish()
    })
}

/// The lines of a batch's documents: the first line of its block, and the distances from there.
type Lines = (u64, Vec<u64>);

/// Keeps the report.
struct Keeper<'a> {
    plan: Plan,
    progress: &'a Progress,
    report: Report,
    next_line: u64,
}

impl Keeper<'_> {
    fn stopped(&self) -> bool {
        self.report.fatal.is_some() || (self.plan.ordered && self.report.failed > 0)
    }

    fn fail(&mut self, error: ApiError) {
        self.progress.stop.store(true, Ordering::Relaxed);
        self.report.fatal.get_or_insert(error);
    }

    fn refuse(&mut self, line: u64, error: ApiError) {
        self.report.failed += 1;
        if self.plan.ordered {
            self.progress.stop.store(true, Ordering::Relaxed);
        }
        // Parsing and committing find theirs at different times: the report is by line.
        let errors = &mut self.report.errors;
        let at = errors.partition_point(|e| e.line <= line);
        if at < ERRORS_MAX {
            errors.insert(at, LineError { line, error });
            errors.truncate(ERRORS_MAX);
        }
    }

    /// Puts a block's documents into the collection and hands the wait to `waits`.
    fn commit(
        &mut self,
        collection: &Collection,
        parsed: Parsed,
        waits: &mut dyn FnMut(Pending<InsertOutcome>, Lines),
    ) {
        let first_line = self.next_line;
        self.next_line += parsed.line_ends;
        self.report.lines += parsed.documents;
        if !parsed.batch.is_empty() {
            match collection.insert_batch(parsed.batch, self.plan.ordered, &self.plan.write) {
                Ok(pending) => waits(pending, (first_line, parsed.lines)),
                Err(e) => return self.fail(e.into()),
            }
        }
        for (line, error) in parsed.bad {
            self.refuse(first_line + line, error);
        }
        if let Some(error) = parsed.broken {
            self.fail(error.within(&format!("line {}", self.next_line)));
        }
        if let Some(count) = parsed.trailer {
            let lines = self.report.lines;
            self.report.whole = count == lines;
            if !self.report.whole {
                let message = format!(
                    "the trailer says {count} documents, but {lines} came before it: this is not the whole export"
                );
                let error = ApiError::bad_value(message);
                if self.plan.require_trailer {
                    self.fail(error);
                } else {
                    self.refuse(first_line + parsed.trailer_line, error);
                }
            }
        }
    }

    fn settle(&mut self, pending: Pending<InsertOutcome>, lines: &Lines) {
        self.note(pending.wait(), lines);
    }

    fn note(&mut self, outcome: quarrydb::Result<InsertOutcome>, (first_line, lines): &Lines) {
        match outcome {
            Ok(outcome) => {
                self.report.inserted += outcome.inserted;
                self.progress.inserted.fetch_add(outcome.inserted, Ordering::Relaxed);
                for failure in outcome.errors {
                    let line = first_line + lines.get(failure.index).copied().unwrap_or(0);
                    self.refuse(line, failure.error.into());
                }
            }
            Err(e) => self.fail(e.into()),
        }
    }

    fn finish(mut self) -> Report {
        if self.plan.require_trailer && !self.report.whole && !self.stopped() {
            let message = "the stream does not end with the trailer of an export: it is not whole";
            self.report.fatal = Some(ApiError::bad_value(message));
        }
        if self.plan.ordered && self.report.failed > 0 {
            // Lines behind the one that stopped it were not tried.
            self.report.lines = self.report.inserted + self.report.failed;
        }
        self.report
    }
}

/// Parses a block; with `ordered` up to its first bad line.
fn parse(database: &Database, block: Block, ordered: bool) -> Parsed {
    let mut parsed = Parsed {
        batch: InsertBatch::new(database),
        lines: Vec::with_capacity(block.text.len() / 256),
        bad: Vec::new(),
        line_ends: block.line_ends,
        documents: 0,
        trailer: None,
        trailer_line: 0,
        broken: None,
    };
    match &block.content {
        Content::Lines => {
            let mut text = block.text.as_slice();
            if block.last
                && let Some((rest, count)) = split_trailer(text)
            {
                text = rest;
                parsed.trailer = Some(count);
                parsed.trailer_line = memchr::memchr_iter(b'\n', rest).count() as u64;
            }
            let mut start = 0;
            for (line, end) in memchr::memchr_iter(b'\n', text).chain([text.len()]).enumerate() {
                let piece = &text[start..end];
                if !parsed.push(piece, line as u64, block.offset + start as u64, ordered) {
                    break;
                }
                start = end + 1;
            }
        }
        Content::Elements(elements) => {
            for (range, line) in elements {
                if !parsed.push(&block.text[range.clone()], *line, block.offset + range.start as u64, ordered) {
                    break;
                }
            }
        }
        Content::TooLong => {
            parsed.documents = 1;
            let message = "the line is longer than a body may be (--max-body)";
            parsed.bad.push((0, ApiError::bad("BSONObjectTooLarge", 10334, message)));
        }
        Content::Broken(what) => parsed.broken = Some(ApiError::bad("InvalidJson", 9, *what)),
    }
    parsed
}

impl Parsed {
    /// Adds one document's text; false where an ordered import ends with it.
    fn push(&mut self, piece: &[u8], line: u64, offset: u64, ordered: bool) -> bool {
        let document = piece.trim_ascii();
        if document.is_empty() {
            return true;
        }
        self.documents += 1;
        match self.batch.push_text(document) {
            Ok(()) => {
                self.lines.push(line);
                true
            }
            Err(e) => {
                let leading = piece.len() - piece.trim_ascii_start().len();
                self.bad.push((line, ApiError::in_line(&e, offset + leading as u64)));
                !ordered
            }
        }
    }
}

/// The text before a last line `{"end": {"count": n}}`, and n.
fn split_trailer(text: &[u8]) -> Option<(&[u8], u64)> {
    let whole = text.trim_ascii_end();
    let start = memchr::memrchr(b'\n', whole).map_or(0, |at| at + 1);
    let line: Vec<u8> = whole.get(start..)?.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    let count = line.strip_prefix(b"{\"end\":{\"count\":")?.strip_suffix(b"}}")?;
    let digits = !count.is_empty() && count.iter().all(u8::is_ascii_digit);
    let count = std::str::from_utf8(count).ok().filter(|_| digits)?.parse().ok()?;
    Some((text.get(..start)?, count))
}

fn unreadable(e: &std::io::Error) -> ApiError {
    ApiError::bad_value(format!("the stream cannot be read on: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trailer_is_the_last_line_alone() {
        let text = b"{\"a\":1}\n{\"end\": {\"count\": 12}}\n";
        assert_eq!(split_trailer(text), Some((b"{\"a\":1}\n".as_slice(), 12)));
        assert_eq!(split_trailer(b"{\"end\":{\"count\":0}}"), Some((b"".as_slice(), 0)));
        for none in [
            "{\"end\":{\"count\":-1}}",
            "{\"end\":{\"count\":1}}\n{}",
            "{\"end\":{\"count\":1,\"x\":2}}",
            "",
            "{\"_id\":1,\"end\":{\"count\":1}}",
        ] {
            assert_eq!(split_trailer(none.as_bytes()), None, "{none}");
        }
    }
}
