//! The one door to files and clocks, and what is durable when.
//!
//! Takes names and bytes, gives bytes back; knows nothing of what they mean. Everything above writes through
//! [`Storage`] and [`File`], so that `memory` can tell what a power cut would leave and `faulty` can break things on
//! purpose. `disk` is the real one. Next to read: `disk.rs`, then `memory.rs` for the crash model.
//!
//! # What may be relied on
//!
//! 1. One flat directory. A name is plain (`MANIFEST`, `log-7.qlog`): no separators, not hidden.
//! 2. A write is seen by every later read through any handle of the same file, at once.
//! 3. A write survives the process's death when `write_at` has returned; it survives a power cut only when a
//!    `sync_data` of that file that began after it has returned `Ok`. Until then any subset of its 512-byte sectors
//!    may survive, in any order.
//! 4. `create` returns when content and length are durable, the name is not. The name (like every `rename` and
//!    `remove`) survives a power cut only when a later `sync_dir` has returned `Ok`. Until then each such change is
//!    kept or lost on its own, a rename whole.
//! 5. A failed `sync_data` or `sync_dir` says nothing of what is durable, and calling it again proves nothing:
//!    whoever gets one stops writing (see `log`).
//! 6. Writing inside a file's length needs no room on the disk; growing it and `create` do, and say
//!    `ErrorKind::OutOfDiskSpace` when there is none. `create` leaves nothing behind when it fails.

pub(crate) mod clock;
pub mod disk;
mod faulty;
pub(crate) mod fields;
mod map;
mod memory;
mod section;

pub use clock::{Clock, ManualClock, SystemClock};
pub use disk::DiskStorage;
pub use faulty::{Faults, FaultyStorage};
pub use memory::MemoryStorage;
pub use section::Section;

use crate::{Error, ErrorKind, Result};
use std::fmt;
use std::io::IoSlice;
use std::sync::Arc;

/// What a name being written by [`Storage::write_atomic`] ends in until it is renamed. Whatever bears it after a
/// crash is waste.
pub const TEMPORARY_SUFFIX: &str = ".tmp";

/// A directory of files. The promises stand at the head of this module.
pub trait Storage: Send + Sync + fmt::Debug {
    /// Makes a file of `len` zero bytes that are really there: later writes inside it need neither room nor metadata.
    /// Content and length are durable on return, the name after [`Storage::sync_dir`].
    ///
    /// # Errors
    /// `Exists` when the name is taken, `OutOfDiskSpace`, `Io`.
    fn create(&self, name: &str, len: u64) -> Result<Arc<dyn File>>;

    /// Opens a file for reading and writing.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn open(&self, name: &str) -> Result<Arc<dyn File>>;

    /// Whether the name stands in the directory now.
    ///
    /// # Errors
    /// `Io`.
    fn exists(&self, name: &str) -> Result<bool>;

    /// Every file's name and length, sorted by name.
    ///
    /// # Errors
    /// `Io`.
    fn list(&self) -> Result<Vec<(String, u64)>>;

    /// Gives a file another name and replaces what bore it. Open handles stay with their files. Durable after
    /// [`Storage::sync_dir`]; after a power cut before that, `to` is the old or the new file, never neither.
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn rename(&self, from: &str, to: &str) -> Result<()>;

    /// Takes the name away; handles and sections still in use keep the bytes alive. Durable after
    /// [`Storage::sync_dir`].
    ///
    /// # Errors
    /// `NotFound`, `Io`.
    fn remove(&self, name: &str) -> Result<()>;

    /// Makes every `create`, `rename` and `remove` that has returned durable.
    ///
    /// # Errors
    /// `Io`; see point 5 above.
    fn sync_dir(&self) -> Result<()>;

    /// Writes a small file so that after a power cut at any moment it holds either its old bytes or `bytes`, whole.
    /// Durable on return.
    ///
    /// # Errors
    /// `OutOfDiskSpace`, `Io`. The old content stands unless the last step, `sync_dir`, was what failed.
    fn write_atomic(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let temporary = format!("{name}{TEMPORARY_SUFFIX}");
        if self.exists(&temporary)? {
            self.remove(&temporary)?;
        }
        let written = self.create(&temporary, 0).and_then(|file| {
            file.write_at(0, bytes)?;
            file.sync_data()
        });
        if let Err(error) = written {
            // Its own failure is of no interest: the name is overwritten or swept away next time.
            let _ = self.remove(&temporary);
            return Err(error);
        }
        self.rename(&temporary, name)?;
        self.sync_dir()
    }
}

/// An open file. Handles may be used by many threads at once; there is no cursor.
#[expect(clippy::len_without_is_empty, reason = "whether a file is empty is never the question")]
pub trait File: Send + Sync + fmt::Debug {
    /// The name it was opened or created by, for messages; a later rename does not change it.
    fn name(&self) -> &str;

    /// Its length in bytes now.
    ///
    /// # Errors
    /// `Io`.
    fn len(&self) -> Result<u64>;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `Io`, also when the file ends before the buffer is full.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Writes all of `bytes` at `offset`; past the end the file grows (a gap reads as zeros).
    ///
    /// # Errors
    /// `OutOfDiskSpace` (only when it grows), `Io`; then any part of it may have been written.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// The same for several pieces that lie one behind the other, without copying them together.
    ///
    /// # Errors
    /// As [`File::write_at`].
    fn write_vectored_at(&self, offset: u64, pieces: &[IoSlice<'_>]) -> Result<()> {
        let mut at = offset;
        for piece in pieces {
            self.write_at(at, piece)?;
            at += piece.len() as u64;
        }
        Ok(())
    }

    /// Makes everything written before the call, and the length, durable.
    ///
    /// # Errors
    /// `Io`; see point 5 of the module.
    fn sync_data(&self) -> Result<()>;

    /// Bytes to keep: mapped where that is possible, owned elsewhere. Only for files that are never written again,
    /// and only for ranges that were read with [`File::read_at`] and checked before: a failing disk under a
    /// mapping is a signal, under a read it is an error.
    ///
    /// # Errors
    /// `Io`, also when the range is not inside the file.
    fn section(&self, offset: u64, len: usize) -> Result<Section>;
}

/// Refuses names that would leave the directory.
fn check_name(name: &str) -> Result<()> {
    let plain = !name.is_empty()
        && name.len() <= 200
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    if plain {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, format!("{name:?} cannot be a file's name in a database directory")))
}
