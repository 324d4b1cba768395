//! Files ahead of need and files no longer needed.
//!
//! A file that a commit may go to must be filled, and its name durable, before. This is where that happens: a released
//! file is taken again if there is one, else a new one is filled with zeros, which is slow and may find the disk full.
//! Takes numbers and lengths, gives open files whose first block is zeros; knows nothing of records.

use super::file::{BLOCK_BYTES, OpenFile, epoch, file_name, spare_name};
use super::{FILE_BYTES_MIN, LogOptions};
use crate::ids::LogFileId;
use crate::io::{File, Storage};
use crate::{ErrorKind, Result};
use std::sync::Arc;

/// Kept so that a database can be opened on a full disk. Not a number any file has.
const OPENING_FILE: &str = "spare-0.qlog";

/// What to make files from.
#[derive(Debug)]
pub(super) struct Pool {
    storage: Arc<dyn Storage>,
    options: LogOptions,
    next_id: LogFileId,
    spares: Vec<Spare>,
}

/// A file not in use, whatever it is called; its first block is zeros, durably.
#[derive(Debug)]
struct Spare {
    name: String,
    len: u64,
}

impl Pool {
    pub(super) fn new(storage: Arc<dyn Storage>, options: LogOptions, next_id: LogFileId) -> Self {
        Self { storage, options, next_id, spares: Vec::new() }
    }

    /// Takes over what an earlier run left lying about: some to use again, the rest is removed.
    pub(super) fn adopt(&mut self, leftovers: Vec<(String, u64)>) -> Result<()> {
        for (name, len) in leftovers {
            if !self.keeps(len) {
                self.storage.remove(&name)?;
                continue;
            }
            self.blank(&name)?;
            self.spares.push(Spare { name, len });
        }
        Ok(())
    }

    /// A file of at least `need` bytes, better `prefer`, under the next number. Its name is durable.
    ///
    /// # Errors
    /// `OutOfDiskSpace` when no file of `need` bytes can be made: nothing is changed then. Others mean that it is not
    /// known what is durable.
    pub(super) fn obtain(&mut self, need: u64, prefer: u64) -> Result<OpenFile> {
        let id = self.next_id;
        let name = file_name(id);
        let need = need.max(FILE_BYTES_MIN).next_multiple_of(BLOCK_BYTES as u64);
        let file = match self.take_spare(need.max(prefer)) {
            Some(spare) => self.reuse(&spare, &name)?,
            None => match self.create(&name, need, prefer.max(need)) {
                // A short file again and again would be a rotation again and again, but better than none.
                Err(error) if error.kind() == ErrorKind::OutOfDiskSpace => match self.take_spare(need) {
                    Some(spare) => self.reuse(&spare, &name)?,
                    None => return Err(error),
                },
                result => result?,
            },
        };
        self.storage.sync_dir()?;
        self.next_id = id.next();
        Ok(OpenFile { id, epoch: epoch(self.options.database, id), len: file.len()?, file })
    }

    /// The shortest spare of at least `len` bytes.
    fn take_spare(&mut self, len: u64) -> Option<Spare> {
        let fitting = self.spares.iter().enumerate().filter(|(_, spare)| spare.len >= len);
        let (at, _) = fitting.min_by_key(|(_, spare)| spare.len)?;
        Some(self.spares.swap_remove(at))
    }

    fn reuse(&self, spare: &Spare, name: &str) -> Result<Arc<dyn File>> {
        self.storage.rename(&spare.name, name)?;
        self.storage.open(name)
    }

    /// Tries shorter files as the disk fills, so that writes end only when there is really no room.
    fn create(&self, name: &str, need: u64, prefer: u64) -> Result<Arc<dyn File>> {
        let mut len = prefer;
        loop {
            match self.storage.create(name, len) {
                Err(error) if error.kind() == ErrorKind::OutOfDiskSpace && len > need => {
                    len = (len / 2).max(need).next_multiple_of(BLOCK_BYTES as u64);
                }
                result => return result,
            }
        }
    }

    /// The file an opening begins: as `obtain`, and on a full disk the one kept for that.
    pub(super) fn obtain_for_opening(&mut self, prefer: u64) -> Result<OpenFile> {
        match self.obtain(0, prefer) {
            Err(error) if error.kind() == ErrorKind::OutOfDiskSpace && self.storage.exists(OPENING_FILE)? => {
                // Half made by a crash, it is no help.
                if self.storage.open(OPENING_FILE)?.len()? < FILE_BYTES_MIN {
                    return Err(error);
                }
                self.spares.push(Spare { name: OPENING_FILE.to_owned(), len: FILE_BYTES_MIN });
                self.obtain(0, FILE_BYTES_MIN)
            }
            result => result,
        }
    }

    /// Keeps room for the next opening, if there is any: a database on a full disk must open all the same.
    pub(super) fn keep_room_for_opening(&self) -> Result<()> {
        if self.storage.exists(OPENING_FILE)? {
            return Ok(());
        }
        match self.storage.create(OPENING_FILE, FILE_BYTES_MIN) {
            Err(error) if error.kind() != ErrorKind::OutOfDiskSpace => Err(error),
            _ => Ok(()),
        }
    }

    /// A file that was made ready and is too short after all.
    pub(super) fn put_back(&mut self, file: &OpenFile) {
        self.spares.push(Spare { name: file_name(file.id), len: file.len });
    }

    /// A file whose records nobody needs any more. `shared`: someone still reads it, so its bytes must stay.
    pub(super) fn release(&mut self, id: LogFileId, len: u64, shared: bool) -> Result<()> {
        let name = file_name(id);
        // A longer file is worth more than a shorter one.
        while !shared && !self.keeps(len) {
            let shorter = self.spares.iter().position(|spare| spare.len < len && len <= self.options.file_bytes);
            let Some(at) = shorter else { break };
            self.storage.remove(&self.spares.swap_remove(at).name)?;
        }
        if shared || !self.keeps(len) {
            return self.storage.remove(&name);
        }
        // First the block, then the name: a spare's content is nothing under either name.
        self.blank(&name)?;
        let spare = spare_name(id);
        self.storage.rename(&name, &spare)?;
        self.spares.push(Spare { name: spare, len });
        Ok(())
    }

    /// Whether a file of this length is worth keeping: a usual one, and not too many.
    fn keeps(&self, len: u64) -> bool {
        let kept: u64 = self.spares.iter().map(|spare| spare.len).sum();
        let usual = self.options.first_file_bytes..=self.options.file_bytes;
        usual.contains(&len) && kept + len <= self.options.spare_bytes_max
    }

    fn blank(&self, name: &str) -> Result<()> {
        let file = self.storage.open(name)?;
        file.write_at(0, &[0; BLOCK_BYTES])?;
        file.sync_data()
    }
}
