//! Loading and saving the manifest.
//!
//! Takes a `Manifest`, writes it as a whole and atomically; gives it back. That a directory without one is empty is
//! only believed when nothing else of a database lies in it. Decides nothing about what it holds.

use super::Manifest;
use crate::io::Storage;
use crate::segment::{parse_delete_file_name, parse_segment_file_name};
use crate::{Error, ErrorKind, Result, log};
use std::sync::{Arc, OnceLock};

/// The manifest's name in the directory.
pub const MANIFEST_FILE: &str = "MANIFEST";
/// A manifest longer than this (millions of collections) is not one; bounds what is read into memory.
const BYTES_MAX: u64 = 1 << 30;

/// The manifest of one directory.
#[derive(Clone, Debug)]
pub struct ManifestStore {
    storage: Arc<dyn Storage>,
    /// What failed when it could no longer be told which manifest stands.
    uncertain: Arc<OnceLock<String>>,
}

impl ManifestStore {
    /// The store of `storage`'s directory.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage, uncertain: Arc::default() }
    }

    /// The manifest, or `None` in a directory that never was a database.
    ///
    /// # Errors
    /// `Corrupt` with file and offset, also when the manifest is gone and other files are not; `UnsupportedVersion`,
    /// `Io`. Nothing is changed.
    pub fn load(&self) -> Result<Option<Manifest>> {
        if !self.storage.exists(MANIFEST_FILE)? {
            return self.refuse_orphans().map(|()| None);
        }
        let file = self.storage.open(MANIFEST_FILE)?;
        let len = file.len()?;
        if len > BYTES_MAX {
            return Err(Error::corrupt(MANIFEST_FILE, BYTES_MAX, format!("{len} bytes are too many for a manifest")));
        }
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        file.read_at(0, &mut bytes)?;
        Manifest::decode(MANIFEST_FILE, &bytes).map(Some)
    }

    fn refuse_orphans(&self) -> Result<()> {
        let files = self.storage.list()?;
        let ours = |name: &str| {
            log::is_file_name(name) || parse_segment_file_name(name).is_some() || parse_delete_file_name(name).is_some()
        };
        match files.iter().find(|(name, _)| ours(name)) {
            None => Ok(()),
            Some((name, _)) => {
                let what = format!("the file is missing while others of a database, as {name}, are here");
                Err(Error::corrupt(MANIFEST_FILE, 0, what))
            }
        }
    }

    /// Whether a manifest can be saved: to be asked before files are written that it would name, for under the same
    /// names others may be named already.
    ///
    /// # Errors
    /// `Poisoned`, from the first `save` on that left it unknown which one stands.
    pub fn check(&self) -> Result<()> {
        self.uncertain.get().map_or(Ok(()), |first| Err(uncertain(first)))
    }

    /// Makes `manifest` the durable one, all or nothing.
    ///
    /// # Errors
    /// `OutOfDiskSpace`: the old one stands, what the new one would have named may go. `Poisoned`: it is not known
    /// which stands, now or after the next power cut, so every file that either names must stay where it is; nothing
    /// is saved any more until the database is opened anew.
    pub fn save(&self, manifest: &Manifest) -> Result<()> {
        self.check()?;
        self.storage.write_atomic(MANIFEST_FILE, &manifest.encode()).map_err(|error| match error.kind() {
            // Room is needed only while the temporary file is written.
            ErrorKind::OutOfDiskSpace => error,
            _ => uncertain(self.uncertain.get_or_init(|| error.message().to_owned())),
        })
    }
}

fn uncertain(first: &str) -> Error {
    let message = format!(
        "the manifest is not saved any more since: {first}; nothing is lost: look after the disk, then start the \
         database again"
    );
    Error::new(ErrorKind::Poisoned, message)
}
