//! Reading commits again while the log is in use: what a change stream stands on.
//!
//! Takes a `Seq` to begin with, gives commits in order, up to what is written. A cursor keeps the file it reads from
//! being written over, not from being released: then it goes on to the next one, and who falls behind what is kept is
//! told so. Places that cursors came by are remembered, so that of many who begin in one file the first alone goes through
//! it. Next to read: nothing, this is the end of the log's chapter.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Log;
use super::file::{BLOCK_BYTES, OpenFile};
use super::reader::{Found, Window, look, payload};
use super::record::KIND_WATERMARK;
use crate::ids::{LogFileId, Seq};
use crate::{Error, ErrorKind, Result};

/// A cursor reads little ahead: at the end of the log it would read the same bytes again and again.
const STEP_BYTES: u64 = 64 << 10;
/// How far apart the places are that cursors remember for each other.
const MARK_BYTES: u64 = 1 << 20;
/// How many places are remembered.
const MARKS_MAX: usize = 4096;

/// Where some commits begin, by their `Seq`.
#[derive(Debug, Default)]
pub(super) struct Marks(Mutex<BTreeMap<Seq, (LogFileId, u64)>>);

impl Marks {
    fn note(&self, seq: Seq, file: LogFileId, offset: u64) {
        let mut marks = self.0.lock();
        marks.insert(seq, (file, offset));
        if marks.len() > MARKS_MAX {
            marks.pop_first();
        }
    }

    /// Where to begin in `file` to come to `seq`.
    fn before(&self, seq: Seq, file: LogFileId) -> u64 {
        let marks = self.0.lock();
        let found = marks.range(..=seq).next_back().map(|(_, place)| *place);
        found.filter(|(id, _)| *id == file).map_or(BLOCK_BYTES as u64, |(_, offset)| offset)
    }
}

/// A commit read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedRecord {
    /// Its place in the committing order.
    pub seq: Seq,
    /// Milliseconds since 1970.
    pub wall_ms: u64,
    /// As given to `Log::append`.
    pub kind: u8,
    /// As given to `Log::append`.
    pub payload: Vec<u8>,
}

/// A place in the log to read on from.
#[derive(Debug)]
pub struct LogCursor {
    next_seq: Seq,
    place: Option<Place>,
}

#[derive(Debug)]
struct Place {
    /// Held so that the file is not taken for other records.
    file: Arc<OpenFile>,
    window: Window,
    offset: u64,
    /// The last commit to read in this file.
    last_seq: Seq,
}

impl Log {
    /// A cursor whose first commit is `seq`, which may lie in the future.
    ///
    /// # Errors
    /// `NotFound` when it has been released.
    pub fn read_from(&self, seq: Seq) -> Result<LogCursor> {
        let seq = seq.max(Seq::from_raw(1));
        let mut cursor = LogCursor { next_seq: seq, place: None };
        cursor.place = Some(cursor.open(self)?);
        Ok(cursor)
    }
}

impl LogCursor {
    /// The commit that `next` will give.
    #[must_use]
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Gives back what was read ahead, for a cursor that is not asked for a while.
    pub fn rest(&mut self) {
        if let Some(place) = &mut self.place {
            place.window.let_go();
        }
    }

    /// The next commit, if it is at or below `limit` and written.
    ///
    /// # Errors
    /// `NotFound` when it has been released, `Corrupt`, `Io`.
    pub fn next(&mut self, log: &Log, limit: Seq) -> Result<Option<OwnedRecord>> {
        if self.next_seq > limit.min(log.written_seq()) {
            return Ok(None);
        }
        loop {
            let mut place = match self.place.take() {
                Some(place) => place,
                None => self.open(log)?,
            };
            let at = place.offset;
            let record = if self.next_seq > place.last_seq { None } else { place.step()? };
            let Some(record) = record else {
                // It is written, so it stands in a later file, or the bytes here are not what was written.
                let (later, _) = log.file_of(self.next_seq)?.ok_or_else(|| self.gone())?;
                if later.id == place.file.id {
                    let what = format!("{} was written here and is not to be found", self.next_seq);
                    return Err(Error::corrupt(place.file.file.name(), place.offset, what));
                }
                continue;
            };
            if record.kind != KIND_WATERMARK && at / MARK_BYTES != place.offset / MARK_BYTES {
                log.marks().note(record.seq, place.file.id, at);
            }
            self.place = Some(place);
            if record.kind != KIND_WATERMARK && record.seq >= self.next_seq {
                self.next_seq = record.seq.next();
                return Ok(Some(record));
            }
        }
    }

    fn gone(&self) -> Error {
        let message = format!("{} is no longer in the log: read the collection anew and go on from now", self.next_seq);
        Error::new(ErrorKind::NotFound, message)
    }

    /// Goes to the beginning of the file in which the next commit stands.
    fn open(&self, log: &Log) -> Result<Place> {
        let (file, last_seq) = match log.file_of(self.next_seq) {
            Ok(Some(found)) => found,
            Ok(None) => return Err(self.gone()),
            // Released between being looked up and being opened.
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(self.gone()),
            Err(error) => return Err(error),
        };
        let window = Window::with_step(Arc::clone(&file.file), STEP_BYTES)?;
        let offset = log.marks().before(self.next_seq, file.id);
        Ok(Place { file, window, offset, last_seq })
    }
}

impl Place {
    /// The record at the place, if a whole one stands there.
    fn step(&mut self) -> Result<Option<OwnedRecord>> {
        let epoch = self.file.epoch;
        let mut found = look(&mut self.window, epoch, self.offset)?;
        if !matches!(found, Found::Record { .. }) {
            // The window may have been read before the record was written.
            self.window.forget();
            found = look(&mut self.window, epoch, self.offset)?;
        }
        let Found::Record { header, next } = found else { return Ok(None) };
        let payload = payload(&mut self.window, &header, self.offset)?.to_vec();
        self.offset = next;
        Ok(Some(OwnedRecord { seq: Seq::from_raw(header.seq), wall_ms: header.wall_ms, kind: header.kind, payload }))
    }
}
