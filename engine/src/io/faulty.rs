//! Storage that breaks on purpose, by seed: refused and torn writes, failed syncs, flipped bits, a full disk.
//!
//! Wraps another storage and passes everything on that the dice do not hit. Faults can be changed while it runs, so
//! that a test can let a disk fill up and give it room again. Unlike `memory`'s crashes the process lives on here.

use super::memory::Dice;
use super::{File, Section, Storage};
use crate::{Error, Result};
use parking_lot::Mutex;
use std::io;
use std::sync::Arc;

/// What goes wrong, in cases of a million; all zero and no budget: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Writes refused with EIO, nothing written.
    pub write_error_ppm: u32,
    /// Writes of which only a first part is written, then EIO.
    pub torn_write_ppm: u32,
    /// Syncs (of files and of the directory) that fail.
    pub sync_error_ppm: u32,
    /// Reads refused with EIO.
    pub read_error_ppm: u32,
    /// Reads in which one bit is turned over.
    pub flipped_read_ppm: u32,
    /// What all files together may take, in bytes; `create` and growing above it say the disk is full.
    pub byte_budget: Option<u64>,
}

/// A storage with faults. Clones share them.
#[derive(Clone, Debug)]
pub struct FaultyStorage {
    inner: Arc<dyn Storage>,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Debug)]
struct Plan {
    faults: Faults,
    dice: Dice,
}

impl Plan {
    fn hits(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.dice.next() % 1_000_000 < u64::from(ppm)
    }
}

impl FaultyStorage {
    /// Nothing fails until [`FaultyStorage::set`] says so.
    #[must_use]
    pub fn new(inner: Arc<dyn Storage>, seed: u64) -> Self {
        Self { inner, plan: Arc::new(Mutex::new(Plan { faults: Faults::default(), dice: Dice::new(seed) })) }
    }

    /// From now on these faults and no others.
    pub fn set(&self, faults: Faults) {
        self.plan.lock().faults = faults;
    }

    /// Bytes all files take now.
    fn used(&self) -> Result<u64> {
        Ok(self.inner.list()?.iter().map(|(_, len)| len).sum())
    }

    fn room_for(&self, name: &str, more: u64) -> Result<()> {
        let Some(budget) = self.plan.lock().faults.byte_budget else { return Ok(()) };
        if self.used()?.saturating_add(more) > budget {
            return Err(Error::io(name, "cannot make room for", io::ErrorKind::StorageFull.into()));
        }
        Ok(())
    }

    fn wrap(&self, file: Arc<dyn File>) -> Arc<dyn File> {
        Arc::new(FaultyFile { inner: file, storage: self.clone() })
    }

    fn sync_fault(&self, name: &str) -> Result<()> {
        let mut plan = self.plan.lock();
        let ppm = plan.faults.sync_error_ppm;
        if plan.hits(ppm) {
            return Err(Error::io(name, "cannot sync", io::Error::other("injected fault")));
        }
        Ok(())
    }
}

impl Storage for FaultyStorage {
    fn create(&self, name: &str, len: u64) -> Result<Arc<dyn File>> {
        self.room_for(name, len)?;
        self.inner.create(name, len).map(|file| self.wrap(file))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>> {
        self.inner.open(name).map(|file| self.wrap(file))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.inner.exists(name)
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        self.inner.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn sync_dir(&self) -> Result<()> {
        self.sync_fault("the directory")?;
        self.inner.sync_dir()
    }
}

#[derive(Debug)]
struct FaultyFile {
    inner: Arc<dyn File>,
    storage: FaultyStorage,
}

impl File for FaultyFile {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buffer)?;
        let mut plan = self.storage.plan.lock();
        let (error, flip) = (plan.faults.read_error_ppm, plan.faults.flipped_read_ppm);
        if plan.hits(error) {
            let doing = format!("cannot read {} bytes at offset {offset} of", buffer.len());
            return Err(Error::io(self.name(), &doing, io::Error::other("injected fault")));
        }
        if !buffer.is_empty() && plan.hits(flip) {
            let bit = plan.dice.next() % (buffer.len() as u64 * 8);
            if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|at| buffer.get_mut(at)) {
                *byte ^= 1 << (bit % 8);
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let grown = (offset + bytes.len() as u64).saturating_sub(self.inner.len()?);
        if grown > 0 {
            self.storage.room_for(self.name(), grown)?;
        }
        let torn = {
            let mut plan = self.storage.plan.lock();
            let (error, tear) = (plan.faults.write_error_ppm, plan.faults.torn_write_ppm);
            if plan.hits(error) {
                Some(0)
            } else if plan.hits(tear) {
                Some(usize::try_from(plan.dice.next() % (bytes.len() as u64 + 1)).unwrap_or(0))
            } else {
                None
            }
        };
        let Some(kept) = torn else { return self.inner.write_at(offset, bytes) };
        self.inner.write_at(offset, bytes.get(..kept).unwrap_or_default())?;
        let doing = format!("cannot write {} bytes at offset {offset} of", bytes.len());
        Err(Error::io(self.name(), &doing, io::Error::other("injected fault")))
    }

    fn sync_data(&self) -> Result<()> {
        self.storage.sync_fault(self.name())?;
        self.inner.sync_data()
    }

    fn section(&self, offset: u64, len: usize) -> Result<Section> {
        self.inner.section(offset, len)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;
    use crate::ErrorKind;
    use crate::io::MemoryStorage;

    #[test]
    fn a_full_disk_refuses_growth_only_and_room_can_come_back() {
        let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), 1);
        storage.set(Faults { byte_budget: Some(1000), ..Faults::default() });
        let file = storage.create("a", 900).unwrap();
        assert_eq!(storage.create("b", 200).unwrap_err().kind(), ErrorKind::OutOfDiskSpace);
        assert!(!storage.exists("b").unwrap());
        file.write_at(800, &[1; 100]).unwrap();
        assert_eq!(file.write_at(900, &[1; 101]).unwrap_err().kind(), ErrorKind::OutOfDiskSpace);
        storage.set(Faults { byte_budget: Some(2000), ..Faults::default() });
        storage.create("b", 200).unwrap();
    }

    #[test]
    fn a_torn_write_leaves_a_first_part() {
        let memory = MemoryStorage::new();
        let storage = FaultyStorage::new(Arc::new(memory.clone()), 3);
        let file = storage.create("a", 100).unwrap();
        storage.set(Faults { torn_write_ppm: 1_000_000, ..Faults::default() });
        file.write_at(0, &[1; 100]).unwrap_err();
        let bytes = memory.bytes("a").unwrap();
        let kept = bytes.iter().take_while(|b| **b == 1).count();
        assert!(bytes[kept..].iter().all(|b| *b == 0));
        storage.set(Faults { sync_error_ppm: 1_000_000, ..Faults::default() });
        assert_eq!(file.sync_data().unwrap_err().kind(), ErrorKind::Io);
        assert_eq!(storage.sync_dir().unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn a_flipped_read_differs_in_one_bit() {
        let storage = FaultyStorage::new(Arc::new(MemoryStorage::new()), 3);
        let file = storage.create("a", 64).unwrap();
        storage.set(Faults { flipped_read_ppm: 1_000_000, ..Faults::default() });
        let mut bytes = [0_u8; 64];
        file.read_at(0, &mut bytes).unwrap();
        assert_eq!(bytes.iter().map(|b| b.count_ones()).sum::<u32>(), 1);
    }
}
