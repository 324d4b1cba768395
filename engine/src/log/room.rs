//! Whether there is room for commits: what the last that asked for it was told.
//!
//! Takes what came of asking; gives the reason of the last refusal until something shows that there is room again. Asked
//! at every commit, so the good case takes no lock.

use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{ErrorKind, Result};

/// What the last commit that asked for room was told.
#[derive(Debug, Default)]
pub(super) struct Room {
    refused: Mutex<Option<String>>,
    is_refused: AtomicBool,
}

impl Room {
    /// Notes what came of looking for room; other errors than a full disk say nothing about it.
    pub(super) fn note<T>(&self, found: &Result<T>) {
        match found {
            Ok(_) if !self.is_refused() => {}
            Ok(_) => self.set(None),
            Err(error) if error.kind() == ErrorKind::OutOfDiskSpace => self.set(Some(error.message().to_owned())),
            Err(_) => {}
        }
    }

    fn set(&self, refused: Option<String>) {
        let mut noted = self.refused.lock();
        self.is_refused.store(refused.is_some(), Ordering::Relaxed);
        *noted = refused;
    }

    /// Whether it was refused.
    pub(super) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// Why.
    pub(super) fn refused(&self) -> Option<String> {
        self.refused.lock().clone()
    }
}
