//! Sorting through the disk, held to a stable sort of the same pairs in memory.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use std::sync::Arc;

use super::room::SpillRoom;
use super::{PAIR_BYTES_MAX, SortLimits, Sorted, Sorter};
use crate::ErrorKind;
use crate::budget::Budget;
use crate::io::{DiskStorage, Faults, FaultyStorage, MemoryStorage, Storage};
use crate::options::Deadline;

const MIB: usize = 1 << 20;

struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> usize {
        (self.next() % n) as usize
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// Pairs with keys of many lengths, most of them more than once, and payloads that say when they came.
fn pairs(seed: u64, count: usize, payload_max: u64) -> Vec<Pair> {
    let mut dice = Dice(seed * 2 + 1);
    let mut made = Vec::with_capacity(count);
    for at in 0..count {
        let letters = [0, 1, 0x7f, 0xff];
        let key: Vec<u8> = (0..dice.below(14)).map(|_| letters[dice.below(4)]).collect();
        let mut payload = at.to_le_bytes().to_vec();
        payload.resize(8 + dice.below(payload_max), at as u8);
        made.push((key, payload));
    }
    made
}

fn limits(memory_max: usize) -> SortLimits {
    SortLimits { memory_max, disk: true, deadline: None }
}

fn sorter(room: &Arc<SpillRoom>, memory_max: usize) -> Sorter {
    Sorter::new(room, &Budget::new(1 << 30), limits(memory_max))
}

fn all(sorted: &mut Sorted) -> Vec<Pair> {
    let mut found = Vec::new();
    while let Some((key, payload)) = sorted.next().unwrap() {
        found.push((key.to_vec(), payload.to_vec()));
    }
    found
}

fn holds(room: &Arc<SpillRoom>, mut pairs: Vec<Pair>, memory_max: usize) -> u64 {
    let mut sorter = sorter(room, memory_max);
    for (key, payload) in &pairs {
        sorter.push(key, payload).unwrap();
    }
    let mut sorted = sorter.finish().unwrap();
    assert_eq!(sorted.len(), pairs.len() as u64);
    // `sort_by` is stable.
    pairs.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(all(&mut sorted) == pairs, "another order than that of a stable sort");
    sorted.spilled_bytes()
}

#[test]
fn order_is_that_of_a_stable_sort_in_memory_and_through_the_disk() {
    let storage = Arc::new(MemoryStorage::new());
    let room = SpillRoom::new(storage.clone());
    for seed in 0..8 {
        for count in [0, 1, 2, 3, 1000, 9000] {
            assert_eq!(holds(&room, pairs(seed, count, 40), 64 * MIB), 0);
        }
        let spilled = holds(&room, pairs(seed, 30_000, 300), 2 * MIB);
        assert!(spilled > 4 * MIB as u64, "{spilled} bytes on the disk");
    }
    assert_eq!((room.open_files(), room.bytes()), (0, 0));
    assert!(storage.list().unwrap().is_empty());
}

#[test]
fn more_runs_than_memory_has_blocks_for_are_merged_in_passes() {
    let room = SpillRoom::new(Arc::new(MemoryStorage::new()));
    // A run each MiB or so, and blocks of 128 KiB: eight at once.
    let before = room.written();
    let spilled = holds(&room, pairs(3, 60_000, 800), 1 << 20);
    assert!(room.written() - before > spilled + spilled / 2, "one pass was enough");
}

#[test]
fn pairs_larger_than_the_memory_are_sorted_all_the_same() {
    let room = SpillRoom::new(Arc::new(MemoryStorage::new()));
    let mut large = pairs(5, 40, 10);
    large.iter_mut().step_by(3).for_each(|(_, payload)| payload.resize(3 * MIB, 7));
    holds(&room, large, MIB);
    let error = sorter(&room, MIB).push(&[], &vec![0; PAIR_BYTES_MAX + 1]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::LimitExceeded);
}

#[test]
fn memory_is_what_was_given_and_given_back() {
    let room = SpillRoom::new(Arc::new(MemoryStorage::new()));
    let budget = Budget::new(16 * MIB);
    let other = budget.reserve(8 * MIB).unwrap();
    let mut sorter = Sorter::new(&room, &budget, limits(64 * MIB));
    for (key, payload) in pairs(1, 60_000, 700) {
        sorter.push(&key, &payload).unwrap();
        assert!(sorter.held() <= 8 * MIB && budget.held() <= budget.max());
    }
    // The others came first: this one goes to the disk with what is left.
    let mut sorted = sorter.finish().unwrap();
    assert!(sorted.spilled_bytes() > 0 && all(&mut sorted).len() == 60_000);
    drop(sorted);
    assert_eq!(budget.held(), 8 * MIB);
    let rest = budget.reserve(8 * MIB).unwrap();
    let mut sorter = Sorter::new(&room, &budget, limits(64 * MIB));
    assert_eq!(sorter.push(b"a", b"b").unwrap_err().kind(), ErrorKind::Busy);
    drop((other, rest));
    sorter.push(b"a", b"b").unwrap();
}

#[test]
fn a_small_sort_takes_little() {
    let room = SpillRoom::new(Arc::new(MemoryStorage::new()));
    let budget = Budget::new(16 * MIB);
    let mut open = Vec::new();
    for _ in 0..100 {
        let mut sorter = Sorter::new(&room, &budget, limits(MIB));
        pairs(1, 100, 40).iter().for_each(|(key, payload)| sorter.push(key, payload).unwrap());
        open.push(sorter);
    }
    assert!(budget.held() <= 100 * (64 << 10), "{} bytes for a hundred", budget.held());
}

#[test]
fn without_the_disk_more_than_the_memory_is_an_error_with_its_number() {
    let room = SpillRoom::new(Arc::new(MemoryStorage::new()));
    let limits = SortLimits { disk: false, ..limits(MIB) };
    let mut sorter = Sorter::new(&room, &Budget::new(1 << 30), limits);
    let error = pairs(1, 60_000, 300).iter().find_map(|(key, payload)| sorter.push(key, payload).err()).unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::LimitExceeded, Some(292)));
    assert_eq!(room.written(), 0);
}

#[test]
fn files_are_bounded_and_have_no_name() {
    let directory = tempfile::tempdir().unwrap();
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage::open(directory.path()).unwrap());
    let room = SpillRoom::new(Arc::clone(&storage));
    let mut held = Vec::new();
    let error = loop {
        match room.file() {
            Ok(file) => held.push(file),
            Err(error) => break error,
        }
        assert!(held.len() <= 1000);
    };
    assert_eq!((error.kind(), held.len()), (ErrorKind::Busy, 64));
    assert!(storage.list().unwrap().is_empty());
    held.clear();
    assert!(holds(&room, pairs(9, 20_000, 400), MIB) > 0);
    // A name that a crash left is stepped over.
    storage.create("sort-0.tmp", 0).unwrap();
    let again = SpillRoom::new(Arc::clone(&storage));
    assert!(holds(&again, pairs(9, 20_000, 400), MIB) > 0);
    assert_eq!(storage.list().unwrap().len(), 1);
}

#[test]
fn a_deadline_ends_it_at_every_step() {
    let room = SpillRoom::new(Arc::new(MemoryStorage::new()));
    let over = Some(Deadline(0));
    let new = |deadline| Sorter::new(&room, &Budget::new(1 << 30), SortLimits { deadline, ..limits(MIB) });
    let mut sorter = new(over);
    let error = pairs(1, 60_000, 300).iter().find_map(|(key, payload)| sorter.push(key, payload).err()).unwrap();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
    drop(sorter);
    let mut sorter = new(over);
    sorter.push(b"a", b"").unwrap();
    assert_eq!(sorter.finish().unwrap_err().kind(), ErrorKind::TimedOut);
    assert_eq!(room.open_files(), 0);
}

#[test]
fn a_disk_that_is_full_fails_or_lies_is_an_error_and_leaves_nothing() {
    let memory = MemoryStorage::new();
    let storage = Arc::new(FaultyStorage::new(Arc::new(memory.clone()), 5));
    let room = SpillRoom::new(storage.clone());
    let pairs = pairs(2, 30_000, 400);
    let run = || -> Result<(), ErrorKind> {
        let mut sorter = sorter(&room, MIB);
        for (key, payload) in &pairs {
            sorter.push(key, payload).map_err(|error| error.kind())?;
        }
        let mut sorted = sorter.finish().map_err(|error| error.kind())?;
        let mut before: Vec<u8> = Vec::new();
        while let Some((key, _)) = sorted.next().map_err(|error| error.kind())? {
            assert!(*before <= *key, "an order that is none");
            before = key.to_vec();
        }
        Ok(())
    };
    storage.set(Faults { byte_budget: Some(64 << 10), ..Faults::default() });
    assert_eq!(run(), Err(ErrorKind::OutOfDiskSpace));
    storage.set(Faults { read_error_ppm: 100_000, ..Faults::default() });
    assert_eq!(run(), Err(ErrorKind::Io));
    storage.set(Faults { flipped_read_ppm: 200_000, ..Faults::default() });
    assert_eq!(run(), Err(ErrorKind::Corrupt));
    assert_eq!((room.open_files(), room.bytes(), memory.list().unwrap().len()), (0, 0, 0));
    storage.set(Faults::default());
    assert_eq!(run(), Ok(()));
}
