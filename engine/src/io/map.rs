//! Mapping a file read-only: the one unsafe step of the storage layer.
//!
//! Takes an open file, gives a mapping of the length it has now. Knows nothing of names or formats.
#![allow(unsafe_code, reason = "mapping a file is unsafe by nature; what makes it sound stands at the block")]

use std::fs::File;
use std::io;
use std::sync::Arc;

/// The whole file as it is now. Only for files that nobody writes any more.
pub(super) fn map(file: &File) -> io::Result<Arc<memmap2::Mmap>> {
    // SAFETY: a mapping is a plain `&[u8]` as long as nobody changes or shortens the file underneath. Our process
    // maps only finished files (contract of `io::File::section`), there is no call in `io::Storage` that shortens a
    // file, and the directory's lock (`disk::lock`) keeps other instances of this program away. Someone who edits the
    // files of a running database by hand breaks that, as for every database that maps.
    let map = unsafe { memmap2::Mmap::map(file)? };
    Ok(Arc::new(map))
}
