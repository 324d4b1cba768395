//! The temporary files of a database's sorts: how many are open, how large they are together, what they are called.
//!
//! A file loses its name as soon as it is made, so that it ends with its last handle, also when the process is killed.
//! One whose name a crash left bears the suffix that opening a database sweeps away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::error::{Error, ErrorKind, Result};
use crate::io::{File, Storage, TEMPORARY_SUFFIX};

/// Files that all sorts of a database have open at once; one sort has one, and two while it merges in passes.
const FILES_MAX: usize = 64;
/// Bytes of all of them together.
const BYTES_MAX: u64 = 64 << 30;
/// Names tried: one is taken only where a crash left it and the sweep could not remove it.
const NAMES_MAX: usize = 16;

/// Where sorts of a database go when memory is not enough.
#[derive(Debug)]
pub(crate) struct SpillRoom {
    storage: Arc<dyn Storage>,
    next: AtomicU64,
    open: AtomicUsize,
    bytes: AtomicU64,
    /// Of all that ever were, for `/metrics`.
    written: AtomicU64,
}

impl SpillRoom {
    /// No files yet.
    pub(crate) fn new(storage: Arc<dyn Storage>) -> Arc<Self> {
        Arc::new(Self {
            storage,
            next: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            bytes: AtomicU64::new(0),
            written: AtomicU64::new(0),
        })
    }

    /// Bytes that were ever written to temporary files.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Files that are open now.
    pub(crate) fn open_files(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }

    /// Bytes of the files that are open now.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A new file.
    ///
    /// # Errors
    /// `Busy` where [`FILES_MAX`] are open; `OutOfDiskSpace`, `Io`.
    pub(super) fn file(self: &Arc<Self>) -> Result<SpillFile> {
        let fits = |open: usize| (open < FILES_MAX).then_some(open + 1);
        if self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            let message = format!("{FILES_MAX} sorts use the disk already: try again in a moment");
            return Err(Error::new(ErrorKind::Busy, message));
        }
        // From here on dropping it gives the place back.
        let mut made = SpillFile { room: Arc::clone(self), file: None, len: 0 };
        for _ in 0..NAMES_MAX {
            let name = format!("sort-{}{TEMPORARY_SUFFIX}", self.next.fetch_add(1, Ordering::Relaxed));
            match self.storage.create(&name, 0) {
                Ok(file) => {
                    self.storage.remove(&name)?;
                    made.file = Some(file);
                    return Ok(made);
                }
                Err(error) if error.kind() == ErrorKind::Exists => {}
                Err(error) => return Err(error),
            }
        }
        Err(Error::new(ErrorKind::Exists, format!("names of temporary files (sort-N{TEMPORARY_SUFFIX}) are all taken")))
    }
}

/// A temporary file, there as long as this is.
#[derive(Debug)]
pub(super) struct SpillFile {
    room: Arc<SpillRoom>,
    file: Option<Arc<dyn File>>,
    len: u64,
}

impl SpillFile {
    /// Its length in bytes.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    fn file(&self) -> Result<&dyn File> {
        self.file.as_deref().ok_or_else(|| Error::new(ErrorKind::Internal, "a temporary file was not made"))
    }

    /// Its name, for messages.
    pub(super) fn name(&self) -> &str {
        self.file.as_deref().map_or("", |file| file.name())
    }

    /// Writes at its end.
    ///
    /// # Errors
    /// `LimitExceeded` beyond [`BYTES_MAX`] of all of them; `OutOfDiskSpace`, `Io`.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let more = bytes.len() as u64;
        let fits = |held: u64| held.checked_add(more).filter(|&all| all <= BYTES_MAX);
        if self.room.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_err() {
            let message = format!("sorts hold {BYTES_MAX} bytes on the disk already: narrow the filter or add a limit");
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        let at = self.len;
        self.len += more;
        self.room.written.fetch_add(more, Ordering::Relaxed);
        self.file()?.write_at(at, bytes)
    }

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file()?.read_at(offset, buffer)
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        self.room.open.fetch_sub(1, Ordering::Relaxed);
        self.room.bytes.fetch_sub(self.len, Ordering::Relaxed);
    }
}
