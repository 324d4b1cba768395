//! Appending, writing and syncing.
//!
//! Three locks, taken in this order and none held for another's work: `pool` (making files ready), `writing` (whoever
//! writes does it for all), `state` (the queue: held for a copy of some hundred bytes). `syncing` lets one thread sync
//! for all while others append and write. A record's place is settled when it is appended; bytes go out in that order.
//!
//! When a file is full, `write` first syncs it, then writes and syncs the next one's header, then goes on: so a header
//! on disk proves that all before it is durable, which is what recovery builds on.

use super::cursor::Marks;
use super::file::{BLOCK_BYTES, FileHeader, OpenFile};
use super::pool::Pool;
use super::queue::{Queue, Run};
use super::record::{KIND_WATERMARK, PAYLOAD_BYTES_MAX, Payload, record_bytes};
use super::room::Room;
use super::state::{Finished, SLACK_BYTES, State};
use super::stats::{Counters, LogStats};
use super::{LogEnd, LogFileInfo, LogOptions};
use crate::ids::{LogFileId, Seq};
use crate::io::Storage;
use crate::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Where a commit stands in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogPos {
    /// The file.
    pub file: LogFileId,
    /// Where its record begins.
    pub offset: u64,
    /// The wall time it bears: the caller's, or the one before if that is later.
    pub wall_ms: u64,
}

/// The log, open for writing; shared by all threads.
#[derive(Debug)]
pub struct Log {
    storage: Arc<dyn Storage>,
    options: LogOptions,
    pool: Mutex<Pool>,
    writing: Mutex<Writing>,
    state: Mutex<State>,
    syncing: Mutex<()>,
    /// What is written, for whoever syncs.
    written: Mutex<Written>,
    durable: AtomicU64,
    /// The file in use on disk: its header is durable. `state` may be further.
    begun: AtomicU64,
    poison: OnceLock<String>,
    room: Room,
    counters: Counters,
    marks: Marks,
}

#[derive(Debug)]
struct Writing {
    /// The queue written last, emptied, to be used again.
    spent: Queue,
}

#[derive(Clone, Debug)]
struct Written {
    file: Arc<OpenFile>,
    seq: Seq,
    records: u64,
}

impl Log {
    /// Begins a new file behind what `recover` has found, after making sure that all of that is durable. Opens on a full
    /// disk too, for reading and as much writing as there is room.
    ///
    /// # Errors
    /// `OutOfDiskSpace` when there is no room for a new file, `Io`.
    pub fn open(storage: Arc<dyn Storage>, options: LogOptions, end: LogEnd) -> Result<Self> {
        let options = options.possible();
        if let Some(last) = end.files.last() {
            // A killed process leaves records that were written and never synced; others will be built on them.
            storage.open(&super::file::file_name(last.id))?.sync_data()?;
        }
        let mut pool = Pool::new(Arc::clone(&storage), options, end.next_file.max(LogFileId::from_raw(1)));
        pool.adopt(end.leftovers)?;
        let mut files = end.files;
        let first_seq = end.last_seq.next();
        let mut begun_ms = end.wall_ms;
        let file = match files.pop() {
            // Begun by an earlier opening and never written to: nothing distinguishes it from a new one.
            Some(last) if end.last_is_blank => {
                let name = super::file::file_name(last.id);
                let epoch = super::file::epoch(options.database, last.id);
                begun_ms = last.begun_ms;
                OpenFile { id: last.id, epoch, len: last.bytes, file: storage.open(&name)? }
            }
            last => {
                files.extend(last);
                let file = pool.obtain_for_opening(options.first_file_bytes)?;
                let header = FileHeader::new(options.database, file.id, first_seq, end.last_seq, end.wall_ms);
                file.file.write_at(0, &header.encode())?;
                file.file.sync_data()?;
                file
            }
        };
        pool.keep_room_for_opening()?;
        let file = Arc::new(file);
        let begun = file.id.get();
        let counters = Counters::default();
        counters.began_file();
        Ok(Self {
            storage,
            options,
            pool: Mutex::new(pool),
            writing: Mutex::new(Writing { spent: Queue::default() }),
            state: Mutex::new(State {
                current: Arc::clone(&file),
                current_first_seq: first_seq,
                current_begun_ms: begun_ms,
                offset: BLOCK_BYTES as u64,
                next: None,
                finished: files.into_iter().map(|info| Finished { info, file: None }).collect(),
                last_seq: end.last_seq,
                last_wall_ms: end.wall_ms,
                durable_noted: end.last_seq.get(),
                reserved: 0,
                queue: Queue::default(),
            }),
            syncing: Mutex::new(()),
            written: Mutex::new(Written { file, seq: end.last_seq, records: 0 }),
            durable: AtomicU64::new(end.last_seq.get()),
            begun: AtomicU64::new(begun),
            poison: OnceLock::new(),
            room: Room::new(options.first_file_bytes),
            counters,
            marks: Marks::default(),
        })
    }

    /// Makes sure that one append of up to `payload_len` bytes finds room. A later call replaces it. Fast unless a
    /// file is full and `prepare_next` was not called in time.
    ///
    /// # Errors
    /// `OutOfDiskSpace`: nothing is changed, later calls may succeed. `LimitExceeded` above [`PAYLOAD_BYTES_MAX`].
    /// `Poisoned`.
    pub fn reserve(&self, payload_len: usize) -> Result<()> {
        self.check_poison()?;
        if payload_len > PAYLOAD_BYTES_MAX {
            let message = format!("a commit of {payload_len} bytes is above the limit of {PAYLOAD_BYTES_MAX}");
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        let need = record_bytes(payload_len);
        let found = self.find_room(need);
        self.room.note(need, &found);
        found
    }

    fn find_room(&self, need: u64) -> Result<()> {
        if self.state.lock().reserve(need) {
            return Ok(());
        }
        let mut pool = self.pool.lock();
        // Somebody may have made the file while this thread waited.
        let short = {
            let mut state = self.state.lock();
            if state.reserve(need) {
                return Ok(());
            }
            state.next.take()
        };
        if let Some(short) = short {
            pool.put_back(&short);
        }
        let next = self.obtain(&mut pool, need)?;
        let mut state = self.state.lock();
        state.next = Some(Arc::new(next));
        state.reserved = need;
        Ok(())
    }

    /// Why the last commit that found no room did not, until there is as much as it asked for.
    #[must_use]
    pub fn refused(&self) -> Option<String> {
        self.room.refused()
    }

    /// Whether `prepare_next` has something to do: none is ready behind the current file, and that is a quarter full or a
    /// commit has found no room.
    #[must_use]
    pub fn wants_next(&self) -> bool {
        let state = self.state.lock();
        let is_due = state.offset > state.current.len / 4 || self.room.wanted() > 0;
        state.next.is_none() && is_due
    }

    /// Makes the next file ready if that is due, so that no commit has to wait for it. For a background thread.
    ///
    /// # Errors
    /// `OutOfDiskSpace`: nothing is changed. `Poisoned`.
    pub fn prepare_next(&self) -> Result<()> {
        self.check_poison()?;
        let mut pool = self.pool.lock();
        if !self.wants_next() {
            return Ok(());
        }
        let wanted = self.room.wanted();
        let next = self.obtain(&mut pool, wanted)?;
        self.state.lock().next = Some(Arc::new(next));
        self.room.note(wanted, &Ok(()));
        Ok(())
    }

    fn obtain(&self, pool: &mut Pool, need: u64) -> Result<OpenFile> {
        let prefer = self.state.lock().current.len.saturating_mul(4);
        let prefer = prefer.clamp(self.options.first_file_bytes, self.options.file_bytes);
        pool.obtain(BLOCK_BYTES as u64 + need + SLACK_BYTES, prefer).map_err(|error| match error.kind() {
            ErrorKind::OutOfDiskSpace => error,
            _ => self.poisoned_by(&error),
        })
    }

    /// Queues one commit, after a `reserve` that covers it. `seq` must follow the last one. Touches no file.
    pub fn append(&self, seq: Seq, wall_ms: u64, kind: u8, payload: Payload) -> LogPos {
        let mut state = self.state.lock();
        let in_order = seq == state.last_seq.next();
        assert!(in_order, "commits are appended in their order: {seq} after {}", state.last_seq);
        assert!(kind != KIND_WATERMARK, "the log writes its watermarks itself");
        let need = record_bytes(payload.len());
        state.reserved = 0;
        if !state.fits(need) {
            self.rotate(&mut state, seq);
        }
        state.last_seq = seq;
        state.last_wall_ms = state.last_wall_ms.max(wall_ms);
        let pos = LogPos { file: state.current.id, offset: state.offset, wall_ms: state.last_wall_ms };
        state.queue_record(kind, self.durable.load(Ordering::Acquire), payload);
        state.queue.records += 1;
        pos
    }

    /// Goes over to the file that `reserve` has made ready.
    fn rotate(&self, state: &mut State, first_seq: Seq) {
        let next = state.next.take().expect("reserve was called before append and has made a file ready");
        state.finished.push_back(Finished { info: state.info(), file: Some(Arc::clone(&state.current)) });
        let before = state.last_seq;
        let header = FileHeader::new(self.options.database, next.id, first_seq, before, state.last_wall_ms);
        state.current = next;
        state.current_first_seq = first_seq;
        state.current_begun_ms = state.last_wall_ms;
        state.offset = BLOCK_BYTES as u64;
        state.durable_noted = state.durable_noted.max(before.get());
        state.begin_run(Some(header));
    }

    /// Writes everything queued, to where a killed process does not lose it. Returns the last commit written.
    ///
    /// # Errors
    /// `Poisoned`, from the first failure on.
    pub fn write(&self) -> Result<Seq> {
        let mut writing = self.writing.lock();
        self.check_poison()?;
        let queue = {
            let mut state = self.state.lock();
            if state.queue.runs.is_empty() {
                return Ok(self.written.lock().seq);
            }
            let spent = std::mem::take(&mut writing.spent);
            std::mem::replace(&mut state.queue, spent)
        };
        for run in &queue.runs {
            self.write_run(run, &queue.buffer).map_err(|error| self.poisoned_by(&error))?;
        }
        let bytes = queue.runs.iter().map(|run| run.bytes).sum();
        self.counters.wrote(queue.records, bytes);
        let seq = {
            let mut written = self.written.lock();
            written.records += queue.records;
            written.seq
        };
        writing.spent = queue.emptied();
        Ok(seq)
    }

    fn write_run(&self, run: &Run, buffer: &[u8]) -> Result<()> {
        if let Some(header) = &run.header {
            let before = self.written.lock().clone();
            before.file.file.sync_data()?;
            self.counters.synced(before.records);
            // The header must not say more than was synced: what it names as before it has all been written.
            assert!(before.seq == header.durable, "a file begins behind everything that is written");
            self.publish_durable(before.seq);
            run.file.file.write_at(0, &header.encode())?;
            run.file.file.sync_data()?;
            self.counters.synced(0);
            self.begun.store(run.file.id.get(), Ordering::Release);
            self.counters.began_file();
            self.written.lock().records = 0;
        }
        match run.slices(buffer).as_slice() {
            [one] => run.file.file.write_at(run.offset, one)?,
            many => run.file.file.write_vectored_at(run.offset, many)?,
        }
        let mut written = self.written.lock();
        written.file = Arc::clone(&run.file);
        written.seq = run.last_seq;
        Ok(())
    }

    /// Writes everything queued and makes it durable. Returns the last durable commit, at least those appended before
    /// the call. One thread syncs for all who wait; appending and writing go on meanwhile.
    ///
    /// # Errors
    /// `Poisoned`, from the first failure on.
    pub fn sync(&self) -> Result<Seq> {
        let seq = self.write()?;
        if self.durable() < seq {
            let _turn = self.syncing.lock();
            if self.durable() < seq {
                self.sync_written()?;
            }
        }
        self.check_poison()?;
        Ok(self.durable())
    }

    /// Under `syncing`.
    fn sync_written(&self) -> Result<()> {
        self.check_poison()?;
        let target = {
            let mut written = self.written.lock();
            let target = written.clone();
            written.records = 0;
            target
        };
        target.file.file.sync_data().map_err(|error| self.poisoned_by(&error))?;
        self.counters.synced(target.records);
        // A sync of an earlier file may have failed meanwhile: then this one proves nothing.
        self.check_poison()?;
        self.publish_durable(target.seq);
        Ok(())
    }

    fn publish_durable(&self, seq: Seq) {
        self.durable.fetch_max(seq.get(), Ordering::AcqRel);
    }

    /// The last commit known to be durable.
    #[must_use]
    pub fn durable(&self) -> Seq {
        Seq::from_raw(self.durable.load(Ordering::Acquire))
    }

    /// The last commit appended.
    #[must_use]
    pub fn last_seq(&self) -> Seq {
        self.state.lock().last_seq
    }

    /// When everything appended is durable and the log does not say so yet, writes (and syncs) a record that does, so
    /// that damage to the last commits is not mistaken for an unsynced tail. Cheap to call when there is nothing to do.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn mark_durable_if_idle(&self) -> Result<()> {
        self.check_poison()?;
        {
            let mut state = self.state.lock();
            let durable = self.durable.load(Ordering::Acquire);
            if state.last_seq.get() != durable || state.durable_noted >= durable || !state.fits_watermark() {
                return Ok(());
            }
            state.queue_record(KIND_WATERMARK, durable, Payload::new(Vec::new()));
        }
        self.write()?;
        let _turn = self.syncing.lock();
        self.sync_written()
    }

    /// Makes everything durable and says so in the log. Nothing may be appended afterwards.
    ///
    /// # Errors
    /// `Poisoned`.
    pub fn close(&self) -> Result<Seq> {
        let seq = self.sync()?;
        self.mark_durable_if_idle()?;
        Ok(seq)
    }

    /// Every file of the log, oldest first; the last is the one in use. Each of them may be named by a manifest as the
    /// first needed: its header is durable.
    #[must_use]
    pub fn files(&self) -> Vec<LogFileInfo> {
        let begun = self.begun.load(Ordering::Acquire);
        let state = self.state.lock();
        let finished = state.finished.iter().map(|finished| finished.info);
        finished.chain([state.info()]).filter(|info| info.id.get() <= begun).collect()
    }

    /// Gives up the files up to and including `up_to`, never the one in use. Only after a manifest that names a later
    /// file as the first needed is durable.
    ///
    /// # Errors
    /// `Io`; the files not yet given up then remain and go at the next opening.
    pub fn release(&self, up_to: LogFileId) -> Result<()> {
        let mut pool = self.pool.lock();
        let begun = self.begun.load(Ordering::Acquire);
        let wanted = |finished: &Finished| finished.info.id <= up_to && finished.info.id.get() < begun;
        loop {
            let finished = {
                let mut state = self.state.lock();
                if !state.finished.front().is_some_and(wanted) {
                    return Ok(());
                }
                state.finished.pop_front()
            };
            let Some(Finished { info, file }) = finished else { return Ok(()) };
            // A file still on its way to the disk, or read by a cursor, is not to be written over.
            let shared = file.is_none_or(|file| Arc::strong_count(&file) > 1);
            pool.release(info.id, info.bytes, shared)?;
        }
    }

    /// Places that cursors came by.
    pub(super) fn marks(&self) -> &Marks {
        &self.marks
    }

    /// Counters since the opening.
    #[must_use]
    pub fn stats(&self) -> LogStats {
        self.counters.read()
    }

    /// Lengths of all files, also those not begun on disk.
    #[cfg(test)]
    pub(super) fn state_for_tests(&self) -> Vec<u64> {
        let state = self.state.lock();
        state.finished.iter().map(|finished| finished.info.bytes).chain([state.current.len]).collect()
    }

    /// Whether a write or sync has failed, and the log takes no more.
    #[must_use]
    pub fn is_poisoned(&self) -> bool {
        self.poison.get().is_some()
    }

    /// Nothing while it takes records.
    ///
    /// # Errors
    /// `Poisoned`, with the first failure.
    pub(crate) fn check_poison(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(first) => Err(poisoned(first)),
        }
    }

    fn poisoned_by(&self, error: &Error) -> Error {
        poisoned(self.poison.get_or_init(|| error.message().to_owned()))
    }
}

fn poisoned(first: &str) -> Error {
    let message = format!(
        "the log takes no more writes since: {first}; what was acknowledged is safe, reads go on: look after the disk, \
         then start the database again"
    );
    Error::new(ErrorKind::Poisoned, message)
}

impl Log {
    /// The last commit written: it can be read from its file.
    pub(super) fn written_seq(&self) -> Seq {
        self.written.lock().seq
    }

    /// The file in which `seq` stands or will stand, or nothing when it has been released. With it the last commit to
    /// read there: what stands behind it in a file of an earlier run was left out by recovery.
    pub(super) fn file_of(&self, seq: Seq) -> Result<Option<(Arc<OpenFile>, Seq)>> {
        let unbounded = Seq::from_raw(u64::MAX);
        let info = {
            let state = self.state.lock();
            if seq >= state.current_first_seq {
                return Ok(Some((Arc::clone(&state.current), unbounded)));
            }
            // Files without a commit share their first `Seq` with the next: the last such one it is.
            let found = state.finished.iter().rev().find(|finished| finished.info.first_seq <= seq);
            match found {
                None => return Ok(None),
                Some(Finished { file: Some(file), .. }) => return Ok(Some((Arc::clone(file), unbounded))),
                Some(Finished { info, file: None }) => *info,
            }
        };
        // Of an earlier run. It may be released at this moment, then it is gone or stays readable by this handle.
        let file = self.storage.open(&super::file::file_name(info.id))?;
        let epoch = super::file::epoch(self.options.database, info.id);
        Ok(Some((Arc::new(OpenFile { id: info.id, epoch, len: info.bytes, file }), info.last_seq)))
    }
}
