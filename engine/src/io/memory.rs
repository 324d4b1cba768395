//! Storage in memory that knows what is durable: the ground for every crash test.
//!
//! Each file has a live and a durable image, and so has the directory. `sync_data` and `sync_dir` carry live to
//! durable; [`MemoryStorage::crash`] gives what a power cut now would leave: everything durable, and of the rest each
//! 512-byte sector and each change of a name kept or lost as the seed says. Operations that change something are
//! counted, and from a given one on everything can be made to fail, so that a test can cut the power at each of them.
//!
//! Knows nothing of what the bytes mean. Pages are shared between images, so a crash copies little.

use super::{File, Section, Storage, check_name};
use crate::{Error, ErrorKind, Result};
use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

const PAGE_BYTES: usize = 4096;
/// What a disk writes whole.
const SECTOR_BYTES: usize = 512;

type Page = Arc<[u8; PAGE_BYTES]>;

/// Files in memory, with their durable images. Clones are handles on the same directory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    shared: Arc<Mutex<Directory>>,
}

#[derive(Debug, Default)]
struct Directory {
    live: BTreeMap<String, Arc<Mutex<Content>>>,
    durable: BTreeMap<String, Arc<Mutex<Content>>>,
    /// Changes of names since the last `sync_dir`, oldest first.
    pending: Vec<NameChange>,
    operations: u64,
    stop_at: Option<u64>,
}

#[derive(Clone, Debug)]
enum NameChange {
    Created(String, Arc<Mutex<Content>>),
    Renamed(String, String, Arc<Mutex<Content>>),
    Removed(String),
}

/// A file's bytes; a page that is not there is zeros.
#[derive(Clone, Debug, Default)]
struct Image {
    len: u64,
    pages: BTreeMap<u64, Page>,
}

#[derive(Debug, Default)]
struct Content {
    live: Image,
    durable: Image,
    /// Pages that differ between the two.
    dirty: BTreeSet<u64>,
}

impl MemoryStorage {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many operations that change something (create, write, sync, rename, remove) were asked for so far.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.shared.lock().operations
    }

    /// Lets the operation with this number (0 is the first ever) and all later ones fail without effect, as if the
    /// power had gone; `None` lifts that. Reads go on.
    pub fn stop_at(&self, operation: Option<u64>) {
        self.shared.lock().stop_at = operation;
    }

    /// The directory as a power cut now could leave it: one of the many possible ones, picked by `seed`. Seed 0 keeps
    /// only what is durable, `u64::MAX` keeps everything written; others mix. `self` stays as it is, and is itself what
    /// a process killed without a power cut leaves: everything written, part of it not durable yet.
    #[must_use]
    pub fn crash(&self, seed: u64) -> MemoryStorage {
        let directory = self.shared.lock();
        let mut dice = Dice::new(seed);
        let mut names = directory.durable.clone();
        for change in &directory.pending {
            if !dice.keep() {
                continue;
            }
            match change {
                NameChange::Created(name, content) => {
                    names.insert(name.clone(), Arc::clone(content));
                }
                NameChange::Renamed(from, to, content) => {
                    // What `from` names now may be another file made since: only its own entry goes.
                    if names.get(from).is_some_and(|c| Arc::ptr_eq(c, content)) {
                        names.remove(from);
                    }
                    names.insert(to.clone(), Arc::clone(content));
                }
                NameChange::Removed(name) => {
                    names.remove(name);
                }
            }
        }
        let mut survived = BTreeMap::new();
        for (name, content) in names {
            let image = content.lock().after_crash(&mut dice);
            let content = Content { durable: image.clone(), live: image, dirty: BTreeSet::new() };
            survived.insert(name, Arc::new(Mutex::new(content)));
        }
        let directory = Directory { durable: survived.clone(), live: survived, ..Directory::default() };
        MemoryStorage { shared: Arc::new(Mutex::new(directory)) }
    }

    /// All bytes of a file, or nothing when there is no such file: for comparing and damaging in tests.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let content = Arc::clone(self.shared.lock().live.get(name)?);
        let content = content.lock();
        let mut bytes = vec![0; usize::try_from(content.live.len).ok()?];
        content.live.read(0, &mut bytes);
        Some(bytes)
    }

    /// Puts a file there with these bytes, durably and whatever stood there before: for damaging in tests.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut image = Image::default();
        image.write(0, bytes);
        let content = Content { durable: image.clone(), live: image, dirty: BTreeSet::new() };
        let content = Arc::new(Mutex::new(content));
        let mut directory = self.shared.lock();
        directory.live.insert(name.to_owned(), Arc::clone(&content));
        directory.durable.insert(name.to_owned(), content);
    }
}

impl Directory {
    /// Counts one operation, and refuses it when the power is gone.
    fn operate(&mut self, name: &str) -> Result<()> {
        let number = self.operations;
        self.operations += 1;
        if self.stop_at.is_some_and(|stop| number >= stop) {
            return Err(Error::io(name, "stopped before changing", io::Error::other("the power is cut")));
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Result<Arc<Mutex<Content>>> {
        let missing = || Error::new(ErrorKind::NotFound, format!("{name} is missing in the memory directory"));
        self.live.get(name).cloned().ok_or_else(missing)
    }
}

impl Storage for MemoryStorage {
    fn create(&self, name: &str, len: u64) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let mut directory = self.shared.lock();
        directory.operate(name)?;
        if directory.live.contains_key(name) {
            return Err(Error::new(ErrorKind::Exists, format!("{name} exists already in the memory directory")));
        }
        let image = Image { len, pages: BTreeMap::new() };
        let content = Content { live: image.clone(), durable: image, dirty: BTreeSet::new() };
        let content = Arc::new(Mutex::new(content));
        directory.live.insert(name.to_owned(), Arc::clone(&content));
        directory.pending.push(NameChange::Created(name.to_owned(), Arc::clone(&content)));
        Ok(Arc::new(MemoryFile { name: name.to_owned(), content, directory: Arc::clone(&self.shared) }))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn File>> {
        check_name(name)?;
        let content = self.shared.lock().find(name)?;
        Ok(Arc::new(MemoryFile { name: name.to_owned(), content, directory: Arc::clone(&self.shared) }))
    }

    fn exists(&self, name: &str) -> Result<bool> {
        check_name(name)?;
        Ok(self.shared.lock().live.contains_key(name))
    }

    fn list(&self) -> Result<Vec<(String, u64)>> {
        let directory = self.shared.lock();
        Ok(directory.live.iter().map(|(name, content)| (name.clone(), content.lock().live.len)).collect())
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        check_name(to)?;
        let mut directory = self.shared.lock();
        directory.operate(from)?;
        let content = directory.find(from)?;
        directory.live.remove(from);
        directory.live.insert(to.to_owned(), Arc::clone(&content));
        directory.pending.push(NameChange::Renamed(from.to_owned(), to.to_owned(), content));
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        let mut directory = self.shared.lock();
        directory.operate(name)?;
        directory.find(name)?;
        directory.live.remove(name);
        directory.pending.push(NameChange::Removed(name.to_owned()));
        Ok(())
    }

    fn sync_dir(&self) -> Result<()> {
        let mut directory = self.shared.lock();
        directory.operate("the directory")?;
        directory.durable = directory.live.clone();
        directory.pending.clear();
        Ok(())
    }
}

#[derive(Debug)]
struct MemoryFile {
    name: String,
    content: Arc<Mutex<Content>>,
    directory: Arc<Mutex<Directory>>,
}

impl File for MemoryFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> Result<u64> {
        Ok(self.content.lock().live.len)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let content = self.content.lock();
        if offset.checked_add(buffer.len() as u64).is_none_or(|end| end > content.live.len) {
            let doing = format!("cannot read {} bytes at offset {offset} of", buffer.len());
            return Err(Error::io(&self.name, &doing, io::ErrorKind::UnexpectedEof.into()));
        }
        content.live.read(offset, buffer);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.directory.lock().operate(&self.name)?;
        let mut content = self.content.lock();
        let pages = content.live.write(offset, bytes);
        content.dirty.extend(pages);
        Ok(())
    }

    fn sync_data(&self) -> Result<()> {
        self.directory.lock().operate(&self.name)?;
        let mut content = self.content.lock();
        let content = &mut *content;
        content.durable.len = content.live.len;
        for page in std::mem::take(&mut content.dirty) {
            if let Some(bytes) = content.live.pages.get(&page) {
                content.durable.pages.insert(page, Arc::clone(bytes));
            }
        }
        Ok(())
    }

    fn section(&self, offset: u64, len: usize) -> Result<Section> {
        // Checked by the read; the length is bounded by the file's before it is allocated.
        if offset.checked_add(len as u64).is_none_or(|end| end > self.content.lock().live.len) {
            let doing = format!("cannot map {len} bytes at offset {offset} of");
            return Err(Error::io(&self.name, &doing, io::ErrorKind::UnexpectedEof.into()));
        }
        let mut bytes = vec![0; len];
        self.read_at(offset, &mut bytes)?;
        Ok(Section::owned(bytes))
    }
}

/// The pages a run of bytes touches, with the place of each part: (page, offset in page, range of the run).
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let within = (at % PAGE_BYTES as u64) as usize;
        let some = (PAGE_BYTES - within).min(len - done);
        let range = done..done + some;
        done += some;
        Some((at / PAGE_BYTES as u64, within, range))
    })
}

impl Image {
    fn read(&self, offset: u64, buffer: &mut [u8]) {
        for (page, within, range) in parts(offset, buffer.len()) {
            let len = range.len();
            let target = &mut buffer[range];
            match self.pages.get(&page) {
                Some(bytes) => target.copy_from_slice(&bytes[within..within + len]),
                None => target.fill(0),
            }
        }
    }

    /// The pages it touched.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> Vec<u64> {
        let mut touched = Vec::new();
        for (page, within, range) in parts(offset, bytes.len()) {
            let slot = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES]));
            Arc::make_mut(slot)[within..within + range.len()].copy_from_slice(&bytes[range]);
            touched.push(page);
        }
        self.len = self.len.max(offset + bytes.len() as u64);
        touched
    }
}

impl Content {
    /// The durable image with some of the unsynced sectors, as the dice fall. A length that grew is kept or not, too.
    fn after_crash(&self, dice: &mut Dice) -> Image {
        let mut image = self.durable.clone();
        if self.live.len > image.len && dice.keep() {
            image.len = self.live.len;
        }
        for page in &self.dirty {
            let Some(live) = self.live.pages.get(page) else { continue };
            let mut mixed = image.pages.get(page).map_or([0; PAGE_BYTES], |durable| **durable);
            // Three ways of a page: whole, gone, or torn between sectors.
            if dice.tears() {
                for (to, from) in mixed.chunks_exact_mut(SECTOR_BYTES).zip(live.chunks_exact(SECTOR_BYTES)) {
                    if dice.keep() {
                        to.copy_from_slice(from);
                    }
                }
            } else if dice.keep() {
                mixed = **live;
            }
            image.pages.insert(*page, Arc::new(mixed));
        }
        // Bytes past the length that survived are not there; a later growth must read zeros.
        let len = image.len;
        image.pages.retain(|page, _| page * (PAGE_BYTES as u64) < len);
        if let Some((page, bytes)) = image.pages.iter_mut().next_back() {
            let start = page * PAGE_BYTES as u64;
            let keep = usize::try_from(len - start).unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
            Arc::make_mut(bytes)[keep..].fill(0);
        }
        image
    }
}

/// Seeded coin throws (splitmix64, Steele, Lea and Flood 2014). Each seed also has its own bias, so that mostly kept
/// and mostly lost both occur.
#[derive(Debug)]
pub(super) struct Dice {
    state: u64,
    /// How many of 16 throws keep.
    bias: u64,
}

impl Dice {
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Self { state: seed, bias: 0 };
        dice.bias = match seed {
            0 => 0,
            u64::MAX => 16,
            _ => 1 + dice.next() % 15,
        };
        dice
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn keep(&mut self) -> bool {
        self.next() % 16 < self.bias
    }

    fn tears(&mut self) -> bool {
        self.next().is_multiple_of(4)
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
