//! Whether there is room for commits: what the last that found none was told.
//!
//! Takes what came of looking for room; gives the reason of the last refusal until as much room as was asked for is found.
//! Asked at every commit, so the good case takes no lock.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::{ErrorKind, Result};

/// What the last commit that found no room was told.
#[derive(Debug)]
pub(super) struct Room {
    why: Mutex<Option<String>>,
    /// What it wanted in bytes, up to `most`; 0 while there is room.
    wanted: AtomicU64,
    most: u64,
}

impl Room {
    /// With room. A refusal is over once `most` bytes are found, however many were asked for: a disk that has them is not
    /// full, though it may not take the largest commit.
    pub(super) fn new(most: u64) -> Self {
        Self { why: Mutex::new(None), wanted: AtomicU64::new(0), most }
    }

    /// Notes what came of looking for room for `need` bytes; other errors than a full disk say nothing about it.
    pub(super) fn note<T>(&self, need: u64, found: &Result<T>) {
        let wanted = self.wanted();
        match found {
            Ok(_) if wanted == 0 || need < wanted => {}
            Ok(_) => self.set(0, None),
            Err(error) if error.kind() == ErrorKind::OutOfDiskSpace => {
                self.set(need.clamp(1, self.most), Some(error.message().to_owned()));
            }
            Err(_) => {}
        }
    }

    fn set(&self, wanted: u64, why: Option<String>) {
        let mut noted = self.why.lock();
        self.wanted.store(wanted, Ordering::Relaxed);
        *noted = why;
    }

    /// How many bytes have to be found; 0 while there is room.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted.load(Ordering::Relaxed)
    }

    /// Why there was none.
    pub(super) fn refused(&self) -> Option<String> {
        self.why.lock().clone()
    }
}
