//! Reading the whole log back after a start, and telling a torn tail from damage.
//!
//! Takes the directory and what the manifest knows, gives every commit once and in order to `apply`, and then where
//! the log ends. Writes nothing: on refusal every file is byte for byte what it was.
//!
//! The rules, in the order they are asked:
//! 1. Files follow each other by number; each begins with the commit after the last one of the file before. A file's
//!    header is written only when all before it is durable, so a break between two files is damage.
//! 2. In the last file the first bad record ends the log if nothing shows that it or a later one was durable: an
//!    unsynced tail, also when whole records follow, for pages reach the disk in any order. What shows it: the
//!    `durable` of any valid record header, also behind the bad one, and the manifest's floor.
//! 3. Else it is damage: refused with file and offset.
//! 4. A file whose header is missing or damaged is a file that never came into use, unless records stand in it.

use super::file::{BLOCK_BYTES, Block, FileHeader, epoch, file_name, parse_name, parse_spare_name};
use super::reader::{Found, Window, holds_marks, look, look_behind, payload};
use super::record::KIND_WATERMARK;
use super::{LogFileInfo, LogOptions};
use crate::ids::{LogFileId, Seq};
use crate::io::Storage;
use crate::{Error, Result};

/// What the manifest knows of the log.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecoverFloor {
    /// The first file still needed: lower ones are waste. Must be one that `Log::files` has named.
    pub first_file: LogFileId,
    /// Commits known to be durable, at least those of files released.
    pub durable_at_least: Seq,
}

/// A commit as it stands in the log.
#[derive(Clone, Copy, Debug)]
pub struct RecordRef<'a> {
    /// Its place in the committing order.
    pub seq: Seq,
    /// Milliseconds since 1970, not decreasing from record to record.
    pub wall_ms: u64,
    /// As given to `Log::append`.
    pub kind: u8,
    /// As given to `Log::append`.
    pub payload: &'a [u8],
    /// Where it stands, for messages.
    pub file: LogFileId,
    /// Where it stands in the file, for messages.
    pub offset: u64,
}

/// Where the log ends; goes to `Log::open`.
#[derive(Clone, Debug, Default)]
pub struct LogEnd {
    /// The last commit; `Seq` 0 when there is none.
    pub last_seq: Seq,
    /// Its wall time, or the latest known.
    pub wall_ms: u64,
    pub(super) files: Vec<LogFileInfo>,
    /// Above every number in the directory.
    pub(super) next_file: LogFileId,
    /// Whether the last file holds no record and no trace of one.
    pub(super) last_is_blank: bool,
    /// Files not in use: released, prepared, spare.
    pub(super) leftovers: Vec<(String, u64)>,
}

/// An unsynced tail that was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The file's name.
    pub file: String,
    /// Where the first bad record begins.
    pub offset: u64,
    /// How far remains of records reach behind it, in bytes.
    pub bytes: u64,
    /// What is wrong with the first bad record.
    pub reason: &'static str,
}

/// What recovery met, for a line in the server's log.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// Commits given to `apply`.
    pub commits: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Files read.
    pub files: usize,
    /// Set when a tail was left out.
    pub cut: Option<Cut>,
}

struct Candidate {
    id: LogFileId,
    name: String,
    len: u64,
    block: Block,
}

/// Reads the log from `floor.first_file` on; see the head of this file.
///
/// # Errors
/// `Corrupt` with file and offset, `UnsupportedVersion`, `Io`, and whatever `apply` returns. Nothing is changed on disk
/// in any case.
pub fn recover(
    storage: &dyn Storage,
    options: &LogOptions,
    floor: RecoverFloor,
    apply: &mut dyn FnMut(RecordRef<'_>) -> Result<()>,
) -> Result<(LogEnd, RecoveryReport)> {
    let mut end = LogEnd::default();
    let candidates = candidates(storage, options, floor, &mut end)?;
    let mut walk = Walk { options, floor, last: None, wall_ms: 0, report: RecoveryReport::default(), stop: None };
    // Files not in use that were passed since the last one in use.
    let mut passed: Vec<&Candidate> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        let Block::Header(header) = &candidate.block else {
            passed.push(candidate);
            continue;
        };
        walk.follow(candidate, header, &passed)?;
        end.leftovers.extend(passed.drain(..).map(|c| (c.name.clone(), c.len)));
        let superseded_from =
            candidates.get(index + 1..).unwrap_or_default().iter().find_map(|later| match &later.block {
                Block::Header(header) => Some(header.first_seq),
                Block::Unused | Block::Damaged(_) => None,
            });
        end.files.push(walk.read(storage, candidate, header, superseded_from, apply)?);
    }
    for candidate in passed {
        refuse_records_without_header(storage, options, candidate)?;
        end.leftovers.push((candidate.name.clone(), candidate.len));
    }
    end.last_is_blank = walk.finish(storage)?;
    end.last_seq = walk.last.unwrap_or_default();
    end.wall_ms = walk.wall_ms;
    Ok((end, walk.report))
}

/// The files from the floor on with their first blocks, by number; the others become leftovers.
fn candidates(
    storage: &dyn Storage,
    options: &LogOptions,
    floor: RecoverFloor,
    end: &mut LogEnd,
) -> Result<Vec<Candidate>> {
    let mut candidates = Vec::new();
    end.next_file = floor.first_file.max(LogFileId::from_raw(1));
    for (name, len) in storage.list()? {
        let id = match (parse_name(&name), parse_spare_name(&name)) {
            (Some(id), _) if id >= floor.first_file => {
                let block = Window::new(storage.open(&name)?)?.block(&name, id, options.database)?;
                candidates.push(Candidate { id, name, len, block });
                id
            }
            (Some(id), _) | (None, Some(id)) => {
                end.leftovers.push((name, len));
                id
            }
            (None, None) => continue,
        };
        end.next_file = end.next_file.max(id.next());
    }
    candidates.sort_by_key(|c| c.id);
    Ok(candidates)
}

/// Rule 4, for files behind the last one in use.
fn refuse_records_without_header(storage: &dyn Storage, options: &LogOptions, candidate: &Candidate) -> Result<()> {
    let epoch = epoch(options.database, candidate.id);
    let mut window = Window::new(storage.open(&candidate.name)?)?;
    match &candidate.block {
        Block::Header(_) => Ok(()),
        Block::Unused => match look(&mut window, epoch, BLOCK_BYTES as u64)? {
            Found::Nothing => Ok(()),
            Found::Record { .. } | Found::Bad(_) => {
                Err(Error::corrupt(&candidate.name, 0, "records stand here and the file's header is gone"))
            }
        },
        Block::Damaged(why) if holds_marks(&mut window, epoch)? => Err(Error::corrupt(&candidate.name, 0, why)),
        // Torn while the header was written: nothing can stand behind it yet.
        Block::Damaged(_) => Ok(()),
    }
}

struct Walk<'a> {
    options: &'a LogOptions,
    floor: RecoverFloor,
    /// The last good commit; nothing before the first file.
    last: Option<Seq>,
    wall_ms: u64,
    report: RecoveryReport,
    /// Where and why the file read last ended, and the highest watermark met in it.
    stop: Option<Stop>,
}

struct Stop {
    id: LogFileId,
    name: String,
    offset: u64,
    reason: Option<&'static str>,
    durable: Seq,
}

impl Walk<'_> {
    /// Rule 1: `header` must continue where the file before ended.
    fn follow(&mut self, candidate: &Candidate, header: &FileHeader, passed: &[&Candidate]) -> Result<()> {
        let expected = match self.last {
            Some(last) => last.next(),
            None if candidate.id == self.floor.first_file => header.first_seq,
            // A database just made names a first file that a crash may have kept from coming into use. Any other
            // first file has been in use, and must be there.
            None => Seq::from_raw(1),
        };
        if header.first_seq == expected {
            self.last = Some(Seq::from_raw(header.first_seq.get().saturating_sub(1)));
            return Ok(());
        }
        let gap = format!(
            "{} begins with {}, commits from {expected} on are missing before it",
            candidate.name, header.first_seq
        );
        // Whatever lies between is the likelier culprit than the end of the file before.
        let damaged = passed.iter().find_map(|c| match &c.block {
            Block::Damaged(why) => Some((c, why)),
            Block::Header(_) | Block::Unused => None,
        });
        if let Some((culprit, why)) = damaged {
            return Err(Error::corrupt(&culprit.name, 0, format!("{why}; {gap}")));
        }
        if let Some(culprit) = passed.first() {
            return Err(Error::corrupt(&culprit.name, 0, format!("the header is gone; {gap}")));
        }
        let previous = self.stop.as_ref().map_or(self.floor.first_file, |stop| stop.id.next());
        if previous < candidate.id {
            return Err(Error::corrupt(&file_name(previous), 0, format!("the file is missing; {gap}")));
        }
        match &self.stop {
            Some(stop) => {
                let reason = stop.reason.unwrap_or("records end here");
                Err(Error::corrupt(&stop.name, stop.offset, format!("{reason}; {gap}")))
            }
            None => Err(Error::corrupt(&candidate.name, 0, gap)),
        }
    }

    /// Gives the records of one file to `apply`, up to the first place where none stands, or to where the next file
    /// begins: an earlier recovery may have found a bad record here that reads well now (the disk, or a cable, has
    /// recovered too), and commits have been built on what it left out.
    fn read(
        &mut self,
        storage: &dyn Storage,
        candidate: &Candidate,
        header: &FileHeader,
        superseded_from: Option<Seq>,
        apply: &mut dyn FnMut(RecordRef<'_>) -> Result<()>,
    ) -> Result<LogFileInfo> {
        let mut window = Window::new(storage.open(&candidate.name)?)?;
        let mut offset = BLOCK_BYTES as u64;
        let mut durable = header.durable;
        let mut last = Seq::from_raw(header.first_seq.get().saturating_sub(1));
        self.wall_ms = self.wall_ms.max(header.wall_ms);
        let reason = loop {
            let (record, next) = match look(&mut window, header.epoch, offset)? {
                Found::Record { header, next } => (header, next),
                Found::Nothing => break None,
                Found::Bad(reason) => break Some(reason),
            };
            let seq = Seq::from_raw(record.seq);
            let commit = record.kind != KIND_WATERMARK;
            if seq != if commit { last.next() } else { last } {
                break Some("a record is out of order");
            }
            if commit && superseded_from.is_some_and(|from| seq >= from) {
                break None;
            }
            if commit {
                let payload = payload(&mut window, &record, offset)?;
                let bytes = payload.len() as u64;
                let (wall_ms, kind) = (record.wall_ms, record.kind);
                apply(RecordRef { seq, wall_ms, kind, payload, file: candidate.id, offset })?;
                self.report.commits += 1;
                self.report.payload_bytes += bytes;
            }
            last = seq;
            self.wall_ms = self.wall_ms.max(record.wall_ms);
            durable = durable.max(Seq::from_raw(record.durable));
            offset = next;
        };
        self.last = Some(last);
        self.report.files += 1;
        self.stop = Some(Stop { id: candidate.id, name: candidate.name.clone(), offset, reason, durable });
        Ok(LogFileInfo {
            id: candidate.id,
            first_seq: header.first_seq,
            last_seq: last,
            bytes: candidate.len,
            used_bytes: offset,
            begun_ms: header.wall_ms,
        })
    }

    /// Rules 2 and 3, at the end of the last file. Whether there is one and it is blank.
    fn finish(&mut self, storage: &dyn Storage) -> Result<bool> {
        let floor = self.floor;
        let Some(stop) = &self.stop else {
            if floor.durable_at_least > Seq::default() {
                let what = format!("the file is missing; commits up to {} were durable", floor.durable_at_least);
                return Err(Error::corrupt(&file_name(floor.first_file), 0, what));
            }
            return Ok(false);
        };
        let mut window = Window::new(storage.open(&stop.name)?)?;
        let behind = look_behind(&mut window, epoch(self.options.database, stop.id), stop.offset)?;
        let durable = stop.durable.max(floor.durable_at_least).max(Seq::from_raw(behind.durable));
        let last = self.last.unwrap_or_default();
        if durable > last {
            let reason = stop.reason.unwrap_or("records end here");
            let what = format!("{reason}, and commits up to {durable} were durable while {last} is the last one whole");
            return Err(Error::corrupt(&stop.name, stop.offset, what));
        }
        if stop.reason.is_some() || behind.end > stop.offset {
            self.report.cut = Some(Cut {
                file: stop.name.clone(),
                offset: stop.offset,
                bytes: behind.end.saturating_sub(stop.offset),
                reason: stop.reason.unwrap_or("a record is missing"),
            });
        }
        Ok(stop.offset == BLOCK_BYTES as u64 && stop.reason.is_none() && behind.end == 0)
    }
}
