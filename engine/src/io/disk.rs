//! The real directory: files, their syncs, atomic replacement, and the lock that keeps a second opener out.
//!
//! Takes a path once; afterwards only plain names. What each call makes durable stands in `io/mod.rs`.
#![allow(clippy::disallowed_methods, reason = "this is the door to the files")]

mod lock;

use super::{File, Section, Storage, check_name, map};
use crate::{Error, ErrorKind, Result};
use lock::DirectoryLock;
use std::fs;
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use lock::LOCK_FILE;

/// How many zero bytes are written at a time when a file is filled ahead.
const FILL_BYTES: usize = 1 << 20;
/// The most pieces one vectored write takes (`IOV_MAX` on Linux).
const PIECES_MAX: usize = 1024;

/// One directory of a real file system, held by a lock for as long as this lives.
#[derive(Debug)]
pub struct DiskStorage {
    path: PathBuf,
    directory: fs::File,
    _lock: DirectoryLock,
}

impl DiskStorage {
    /// Opens the directory, making it (and its parents) when it is not there, and locks it.
    ///
    /// # Errors
    /// `Locked` when another opener has it, in this process or another; `Io` with path and owners when it cannot be
    /// made or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        make_directory(path)?;
        let path = fs::canonicalize(path).map_err(|e| refused(path, "cannot resolve", e))?;
        let directory = fs::File::open(&path).map_err(|e| refused(&path, "cannot open", e))?;
        let lock = DirectoryLock::acquire(&path).map_err(|failure| match failure {
            lock::Failure::Held(error) => error,
            lock::Failure::Os(e) => refused(&path, "cannot write in", e),
        })?;
        Ok(Self { path, directory, _lock: lock })
    }

    /// The directory, with symbolic links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn at(&self, name: &str) -> Result<PathBuf> {
        check_name(name)?;
        Ok(self.path.join(name))
    }
}

/// Whether anything lies at `path`: a directory that is not there or empty holds nothing.
///
/// # Errors
/// `Io` when that cannot be found out, as for a path that is no directory.
pub fn holds_something(path: &Path) -> Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(refused(path, "cannot look into", e)),
    }
}

impl Storage for DiskStorage {
    fn create(&self, name: &str, len: u64) -> Result<Arc<dyn File>> {
        let path = self.at(name)?;
        let file = fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).map_err(|e| {
            if e.kind() == io::ErrorKind::AlreadyExists {
                Error::new(ErrorKind::Exists, format!("{name} exists already in {}", self.path.display()))
            } else {
                refused_file(&path, "cannot create", e)
            }
        })?;
        if let Err(e) = fill(&file, len) {
            let _ = fs::remove_file(&path);
            return Err(Error::io(name, "cannot make room for", e));
        }
        Ok(Arc::new(DiskFile::new(name, file)))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>> {
        let file = fs::OpenOptions::new().read(true).write(true).open(self.at(name)?).map_err(|e| {
            if e.kind() == io::ErrorKind::NotFound {
                Error::new(ErrorKind::NotFound, format!("{name} is missing in {}", self.path.display())).with_source(e)
            } else {
                refused_file(&self.path.join(name), "cannot open", e)
            }
        })?;
        Ok(Arc::new(DiskFile::new(name, file)))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.at(name)?.try_exists().map_err(|e| Error::io(name, "cannot look for", e))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        let failed = |e| Error::io(&self.path.display().to_string(), "cannot list", e);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if name == LOCK_FILE || check_name(&name).is_err() {
                continue;
            }
            match entry.metadata() {
                Ok(data) if data.is_file() => names.push((name, data.len())),
                Ok(_) => {}
                // Removed since: a listing is of one moment.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io(&name, "cannot look at", e)),
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        fs::rename(self.at(from)?, self.at(to)?).map_err(|e| missing_or(from, "cannot rename", e))
    }

    fn remove(&self, name: &str) -> Result<()> {
        fs::remove_file(self.at(name)?).map_err(|e| missing_or(name, "cannot remove", e))
    }

    fn sync_dir(&self) -> Result<()> {
        self.directory.sync_all().map_err(|e| Error::io(&self.path.display().to_string(), "cannot sync directory", e))
    }
}

#[derive(Debug)]
struct DiskFile {
    name: String,
    file: fs::File,
    /// Made at the first `section`, of the length the file had then.
    map: OnceLock<Arc<memmap2::Mmap>>,
}

impl DiskFile {
    fn new(name: &str, file: fs::File) -> Self {
        Self { name: name.to_owned(), file, map: OnceLock::new() }
    }
}

impl File for DiskFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| Error::io(&self.name, "cannot look at", e))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let len = buffer.len();
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|e| Error::io(&self.name, &format!("cannot read {len} bytes at offset {offset} of"), e))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file
            .write_all_at(bytes, offset)
            .map_err(|e| Error::io(&self.name, &format!("cannot write {} bytes at offset {offset} of", bytes.len()), e))
    }

    fn write_vectored_at(&self, offset: u64, pieces: &[IoSlice<'_>]) -> Result<()> {
        let failed = |at: u64, e| Error::io(&self.name, &format!("cannot write at offset {at} of"), e);
        let mut at = offset;
        let mut first = 0; // the piece being written
        let mut skip = 0; // how much of it is written already
        while let Some(piece) = pieces.get(first) {
            if skip == piece.len() {
                (first, skip) = (first + 1, 0);
                continue;
            }
            if skip > 0 {
                // A short write ended inside a piece, which is rare: finish that one alone.
                let rest = piece.get(skip..).unwrap_or_default();
                self.file.write_all_at(rest, at).map_err(|e| failed(at, e))?;
                at += rest.len() as u64;
                (first, skip) = (first + 1, 0);
                continue;
            }
            let upto = pieces.len().min(first + PIECES_MAX);
            let some = pieces.get(first..upto).unwrap_or_default();
            let mut written = match rustix::io::pwritev(&self.file, some, at) {
                Ok(0) => return Err(failed(at, io::ErrorKind::WriteZero.into())),
                Ok(n) => n,
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(failed(at, e.into())),
            };
            at += written as u64;
            while let Some(piece) = pieces.get(first) {
                if written < piece.len() {
                    break;
                }
                written -= piece.len();
                first += 1;
            }
            skip = written;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io(&self.name, "cannot sync", e))
    }

    fn section(&self, offset: u64, len: usize) -> Result<Section> {
        let map = match self.map.get() {
            Some(map) => map,
            None => {
                let map = map::map(&self.file).map_err(|e| Error::io(&self.name, "cannot map", e))?;
                self.map.get_or_init(|| map)
            }
        };
        let range = usize::try_from(offset).ok().and_then(|start| Some(start..start.checked_add(len)?));
        range.and_then(|range| Section::mapped(Arc::clone(map), range)).ok_or_else(|| {
            let past = io::Error::from(io::ErrorKind::UnexpectedEof);
            Error::io(&self.name, &format!("cannot map {len} bytes at offset {offset} of"), past)
        })
    }
}

/// Writes zeros, not a hole: blocks only reserved are still unwritten to the file system, and the first sync of each
/// would have to change metadata.
fn fill(file: &fs::File, len: u64) -> io::Result<()> {
    if len > 0 {
        let zeros = vec![0_u8; FILL_BYTES.min(usize::try_from(len).unwrap_or(FILL_BYTES))];
        let mut at = 0;
        while at < len {
            let some = usize::try_from(len - at).unwrap_or(FILL_BYTES).min(FILL_BYTES);
            file.write_all_at(zeros.get(..some).unwrap_or_default(), at)?;
            at += some as u64;
        }
    }
    file.sync_all()
}

fn missing_or(name: &str, doing: &str, e: io::Error) -> Error {
    if e.kind() == io::ErrorKind::NotFound {
        return Error::new(ErrorKind::NotFound, format!("{doing} {name}: there is no such file")).with_source(e);
    }
    Error::io(name, doing, e)
}

/// Makes the directory and what lies above it; a new name is durable only when its parent is synced. As deep as the
/// path is long.
fn make_directory(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    make_directory(parent)?;
    match fs::create_dir(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        Err(e) => return Err(refused(path, "cannot create", e)),
    }
    fs::File::open(parent).and_then(|dir| dir.sync_all()).map_err(|e| refused(parent, "cannot sync", e))
}

/// An error a person can act on: the path, who we are, whose the directory is, what to do.
fn refused(path: &Path, doing: &str, e: io::Error) -> Error {
    if is_refusal(&e) {
        return refusal(path, &format!("{doing} directory"), e);
    }
    Error::io(&format!("directory {}", path.display()), doing, e)
}

/// The same of a file in the directory; of other errors its name is enough.
fn refused_file(path: &Path, doing: &str, e: io::Error) -> Error {
    if is_refusal(&e) {
        return refusal(path, &format!("{doing} file"), e);
    }
    Error::io(&path.file_name().unwrap_or_default().to_string_lossy(), doing, e)
}

fn is_refusal(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

fn refusal(path: &Path, doing: &str, e: io::Error) -> Error {
    let shown = path.display();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    // The nearest thing above that exists is whose permissions stand in the way.
    let owner = path.ancestors().find_map(|p| {
        let p = if p.as_os_str().is_empty() { Path::new(".") } else { p };
        fs::metadata(p).ok().map(|m| (p.to_owned(), m))
    });
    let mut found = String::new();
    let mut hint = format!("run `chown -R {uid}:{gid} {shown}`, or run as the owner, or choose another directory");
    if let Some((p, m)) = owner {
        found = format!("; {} belongs to {}:{} with mode {:o}", p.display(), m.uid(), m.gid(), m.mode() & 0o7777);
        if p == path && m.uid() == uid {
            hint = format!("run `chmod -R u+rwX {shown}`");
        }
    }
    if e.kind() == io::ErrorKind::ReadOnlyFilesystem {
        "the file system is mounted read-only: mount it for writing or choose another directory".clone_into(&mut hint);
    }
    let message = format!("{doing} {shown}: {e}; this process runs as {uid}:{gid}{found}; {hint}");
    Error::new(ErrorKind::Io, message).with_source(e)
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
