//! Bytes of a file that one keeps: a slice, whether mapped or owned.
//!
//! Readers hold a `Section` and never ask which it is; cloning shares. One that is decompressed (one day decrypted)
//! is owned and looks the same.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A shared, immutable run of bytes.
#[derive(Clone)]
pub struct Section(Bytes);

#[derive(Clone)]
enum Bytes {
    Owned(Arc<[u8]>),
    Mapped(Arc<memmap2::Mmap>, Range<usize>),
}

impl Section {
    /// Bytes in memory.
    #[must_use]
    pub fn owned(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(Bytes::Owned(bytes.into()))
    }

    /// A part of a mapping, or nothing when it is not inside it.
    pub(super) fn mapped(map: Arc<memmap2::Mmap>, range: Range<usize>) -> Option<Self> {
        map.get(range.clone())?;
        Some(Self(Bytes::Mapped(map, range)))
    }

    /// Whether the bytes lie in the page cache, not in the process's own memory.
    #[must_use]
    pub fn is_mapped(&self) -> bool {
        matches!(self.0, Bytes::Mapped(..))
    }
}

impl Deref for Section {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Owned(bytes) => bytes,
            // The range was checked when the section was made and a mapping does not shrink.
            Bytes::Mapped(map, range) => map.get(range.clone()).unwrap_or_default(),
        }
    }
}

impl AsRef<[u8]> for Section {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Section({} bytes, {})", self.len(), if self.is_mapped() { "mapped" } else { "owned" })
    }
}
