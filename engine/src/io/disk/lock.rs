//! Who has the directory: one opener at a time, over processes and within one.
//!
//! The file `LOCK` is locked with `flock`, which the kernel gives back when the holder dies, however it dies: nobody
//! ever has to remove it. Its content is for people: the holder's pid. A second lock in the same process is refused
//! by a registry of inodes besides, for file systems where `flock` is emulated per process; by inode and not by
//! path, so that a symbolic link or a bind mount does not hide it.

use crate::{Error, ErrorKind};
use std::collections::HashSet;
use std::fs::{self, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Mutex;

/// The name of the lock's file.
pub const LOCK_FILE: &str = "LOCK";
/// A lock file is a line; more is not ours and not worth reading.
const CONTENT_BYTES_MAX: u64 = 64;

type Inode = (u64, u64);

static HELD_HERE: Mutex<Option<HashSet<Inode>>> = Mutex::new(None);

/// Held while it lives.
#[derive(Debug)]
pub(super) struct DirectoryLock {
    /// Closing it gives the lock back.
    _file: fs::File,
    inode: Inode,
}

pub(super) enum Failure {
    /// Somebody has it.
    Held(Error),
    /// The file could not be made or locked.
    Os(io::Error),
}

impl DirectoryLock {
    pub(super) fn acquire(directory: &Path) -> Result<Self, Failure> {
        // Not truncated: until the lock is ours, the content is its holder's.
        let mut options = fs::OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(directory.join(LOCK_FILE)).map_err(Failure::Os)?;
        let data = file.metadata().map_err(Failure::Os)?;
        let inode = (data.dev(), data.ino());
        if !register(inode) {
            return Err(Failure::Held(held(directory, &format!("pid {} (this process)", std::process::id()))));
        }
        let locked = match file.try_lock() {
            Ok(()) => note_pid(&mut file).map_err(Failure::Os),
            Err(TryLockError::WouldBlock) => {
                let mut content = String::new();
                let _ = (&file).take(CONTENT_BYTES_MAX).read_to_string(&mut content);
                let holder = content.trim();
                let holder = if holder.starts_with("pid ") { holder } else { "another process" };
                Err(Failure::Held(held(directory, holder)))
            }
            Err(TryLockError::Error(e)) => Err(Failure::Os(e)),
        };
        if let Err(failure) = locked {
            unregister(inode);
            return Err(failure);
        }
        Ok(Self { _file: file, inode })
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // The registry first: whoever finds the inode free there is then told the truth by `flock`.
        unregister(self.inode);
    }
}

/// For people; a full disk must not keep a database from opening, so it is written over what is there and may fail.
fn note_pid(file: &mut fs::File) -> io::Result<()> {
    let line = format!("pid {}\n", std::process::id());
    let noted = file.rewind().and_then(|()| file.write_all(line.as_bytes()));
    let noted = noted.and_then(|()| file.set_len(line.len() as u64));
    match noted {
        Err(e) if matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => Ok(()),
        result => result,
    }
}

fn held(directory: &Path, holder: &str) -> Error {
    let message = format!(
        "{} is in use by {holder}; stop that one first (a lock left by a killed process goes by itself, nothing has \
         to be removed)",
        directory.display()
    );
    Error::new(ErrorKind::Locked, message)
}

fn register(inode: Inode) -> bool {
    let mut held = HELD_HERE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    held.get_or_insert_with(HashSet::new).insert(inode)
}

fn unregister(inode: Inode) {
    let mut held = HELD_HERE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(held) = held.as_mut() {
        held.remove(&inode);
    }
}
