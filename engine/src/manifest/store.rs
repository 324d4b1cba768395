//! Loading and saving the manifest.
//!
//! Takes a `Manifest`, writes it as a whole and atomically; gives it back. That a directory without one is empty is
//! only believed when nothing else of a database lies in it. Decides nothing about what it holds.

use super::Manifest;
use crate::io::Storage;
use crate::segment::{parse_delete_file_name, parse_segment_file_name};
use crate::{Error, Result, log};
use std::sync::Arc;

/// The manifest's name in the directory.
pub const MANIFEST_FILE: &str = "MANIFEST";
/// A manifest longer than this (millions of collections) is not one; bounds what is read into memory.
const BYTES_MAX: u64 = 1 << 30;

/// The manifest of one directory.
#[derive(Clone, Debug)]
pub struct ManifestStore {
    storage: Arc<dyn Storage>,
}

impl ManifestStore {
    /// The store of `storage`'s directory.
    #[must_use]
    pub fn new(storage: Arc<dyn Storage>) -> Self {
        Self { storage }
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

    /// Makes `manifest` the durable one, all or nothing.
    ///
    /// # Errors
    /// `OutOfDiskSpace`: the old one stands. `Io`: it is not known which stands, save no other and let no file go.
    pub fn save(&self, manifest: &Manifest) -> Result<()> {
        self.storage.write_atomic(MANIFEST_FILE, &manifest.encode())
    }
}
