//! Segments from writing to reading, and what happens when their bytes are not what was written.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;
use crate::ids::{CollectionId, RowId, SegmentId, Seq};
use crate::io::{Faults, FaultyStorage, MemoryStorage, Storage, TEMPORARY_SUFFIX};
use crate::{ErrorKind, Result};
use std::sync::Arc;

const ID: SegmentId = SegmentId::from_raw(7);

fn hash(n: u32) -> u64 {
    (u64::from(n) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Compressible, and different for each row.
fn doc(n: u32) -> Vec<u8> {
    format!("{{\"number\":{n},\"name\":\"name of number {n}\",\"square\":{}}}", u64::from(n) * u64::from(n))
        .repeat(1 + n as usize % 4)
        .into_bytes()
}

fn seq(n: u32) -> Seq {
    Seq::from_raw(1000 + u64::from(n) / 3 * 2)
}

fn write(storage: &Arc<dyn Storage>, rows: u32) -> Result<SegmentMeta> {
    fill(SegmentWriter::create(Arc::clone(storage), ID, CollectionId::from_raw(3))?, rows)
}

fn write_dense(storage: &Arc<dyn Storage>, rows: u32) -> Result<SegmentMeta> {
    let samples: Vec<u8> = (0..5_000).flat_map(doc).collect();
    let dictionary = train(&samples, DENSE_BYTES_MIN);
    assert!(!dictionary.is_empty());
    fill(SegmentWriter::create_dense(Arc::clone(storage), ID, CollectionId::from_raw(3), dictionary)?, rows)
}

fn fill(mut writer: SegmentWriter, rows: u32) -> Result<SegmentMeta> {
    for n in 0..rows {
        assert_eq!(writer.push(seq(n), hash(n), &doc(n))?, RowId::from_raw(n));
    }
    writer.add_section(KIND_FOREIGN_MIN, 5, b"a column")?;
    writer.add_section(KIND_FOREIGN_MIN, 6, b"")?;
    writer.finish()
}

fn cache() -> Arc<BlockCache> {
    Arc::new(BlockCache::new(1 << 20))
}

/// Everything a reader can ask for, held against what was written.
fn check(segment: &Segment, rows: u32) -> Result<()> {
    assert_eq!(segment.rows(), rows);
    let mut buffer = BlockBuf::default();
    let mut next = 0;
    for block in 0..segment.block_count()? {
        let view = segment.read_block_into(block, &mut buffer)?;
        assert_eq!(view.rows().start, next);
        assert_eq!(view.rows(), segment.block_rows(block)?);
        for (at, found) in view.rows().zip(view.docs()) {
            assert_eq!(found, doc(at), "row {at}");
            assert_eq!(segment.block_of(RowId::from_raw(at))?, block);
        }
        next = view.rows().end;
    }
    assert_eq!(next, rows);
    let mut seqs = Vec::new();
    segment.seqs(0..rows, &mut seqs)?;
    for n in 0..rows {
        let row = RowId::from_raw(n);
        assert_eq!(&*segment.doc(row)?, doc(n));
        assert_eq!((segment.seq_of(row)?, seqs[n as usize]), (seq(n), seq(n).get()));
        assert_eq!(segment.probe(hash(n))?.as_slice(), [row]);
        assert!(segment.probe(hash(n + rows))?.is_empty());
    }
    assert_eq!(&*segment.section(KIND_FOREIGN_MIN, 5)?.unwrap(), b"a column");
    assert_eq!(&*segment.section(KIND_FOREIGN_MIN, 6)?.unwrap(), b"");
    assert!(segment.section(KIND_FOREIGN_MIN, 7)?.is_none());
    segment.verify()
}

#[test]
fn what_is_written_is_read_from_memory_and_from_disk() {
    let directory = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Storage> = Arc::new(crate::io::DiskStorage::open(directory.path()).unwrap());
    for storage in [Arc::new(MemoryStorage::new()) as Arc<dyn Storage>, disk] {
        let rows = 5_000;
        let meta = write(&storage, rows).unwrap();
        let bytes: usize = (0..rows).map(|n| doc(n).len()).sum();
        assert_eq!((meta.rows, meta.row_bytes), (rows, bytes as u64));
        assert_eq!((meta.min_seq, meta.max_seq), (seq(0), seq(rows - 1)));
        assert!(meta.file_bytes < meta.row_bytes / 2, "lz4 packs it: {meta:?}");
        assert_eq!(Segment::read_meta(&*storage, ID).unwrap(), meta);
        let segment = Segment::open(&*storage, meta, cache()).unwrap();
        check(&segment, rows).unwrap();
        // Again, now that all is touched and part of it is in the cache.
        check(&segment, rows).unwrap();
        assert_eq!(storage.list().unwrap().len(), 1, "no temporary file is left");
    }
}

#[test]
fn what_is_packed_densely_reads_the_same() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let quick = write(&storage, 5_000).unwrap();
    assert!(!Segment::open(&*storage, quick, cache()).unwrap().is_dense());
    storage.remove(&segment_file_name(ID)).unwrap();
    let dense = write_dense(&storage, 5_000).unwrap();
    let segment = Segment::open(&*storage, dense, cache()).unwrap();
    assert!(segment.is_dense());
    check(&segment, 5_000).unwrap();
    check(&segment, 5_000).unwrap();
    // Without a dictionary that helps it is packed quickly, and as dense as can be.
    storage.remove(&segment_file_name(ID)).unwrap();
    let writer = SegmentWriter::create_dense(Arc::clone(&storage), ID, CollectionId::from_raw(3), Vec::new()).unwrap();
    let segment = Segment::open(&*storage, fill(writer, 300).unwrap(), cache()).unwrap();
    assert!(segment.is_dense());
    check(&segment, 300).unwrap();
}

#[test]
fn the_block_of_a_row_is_found_however_uneven_rows_are() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let mut writer = SegmentWriter::create(Arc::clone(&storage), ID, CollectionId::from_raw(3)).unwrap();
    let sizes = [(20_000, 1), (300, 9_000), (9_000, 30), (1, 1 << 20), (40, 5_000), (5_000, 2)];
    let rows: u32 = sizes.iter().map(|(count, _)| count).sum();
    for (count, size) in sizes {
        (0..count).for_each(|n| _ = writer.push(Seq::from_raw(1), hash(n), &vec![n as u8; size]).unwrap());
    }
    let segment = Segment::open(&*storage, writer.finish().unwrap(), cache()).unwrap();
    for block in 0..segment.block_count().unwrap() {
        for row in segment.block_rows(block).unwrap() {
            assert_eq!(segment.block_of(RowId::from_raw(row)).unwrap(), block, "row {row} of {rows}");
        }
    }
}

#[test]
fn blocks_keep_their_size_whatever_the_mix_of_rows() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let mut writer = SegmentWriter::create(Arc::clone(&storage), ID, CollectionId::from_raw(3)).unwrap();
    // Ten thousand tiny rows, one of 16 MiB, some of a size, one empty.
    let sizes: Vec<usize> = std::iter::repeat_n(1, 10_000).chain([16 << 20]).chain([5000; 50]).chain([0]).collect();
    for (n, size) in sizes.iter().enumerate() {
        writer.push(Seq::from_raw(1), n as u64, &vec![n as u8; *size]).unwrap();
    }
    let meta = writer.finish().unwrap();
    let segment = Segment::open(&*storage, meta, cache()).unwrap();
    let counts: Vec<u32> =
        (0..segment.block_count().unwrap()).map(|b| segment.block_rows(b).unwrap().len() as u32).collect();
    assert_eq!(
        counts[..5],
        [4096, 4096, 1808, 1, 2],
        "tiny ones by rows, the large one alone, 10000 bytes of the rest"
    );
    for (n, size) in sizes.iter().enumerate() {
        let found = segment.doc(RowId::from_raw(n as u32)).unwrap();
        assert!(found.len() == *size && found.iter().all(|b| *b == n as u8));
    }
    segment.verify().unwrap();
    assert!(segment.probe(5).unwrap().contains(&RowId::from_raw(5)));
}

#[test]
fn rows_that_cannot_be_packed_are_stored_as_they_are() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let mut writer = SegmentWriter::create(Arc::clone(&storage), ID, CollectionId::from_raw(3)).unwrap();
    let noise: Vec<u8> = (0..40_000_u64).map(|i| (hash(i as u32) >> 13) as u8).collect();
    writer.push(Seq::from_raw(1), 1, &noise).unwrap();
    writer.push(Seq::from_raw(1), 2, b"").unwrap();
    let segment = Segment::open(&*storage, writer.finish().unwrap(), cache()).unwrap();
    assert_eq!(&*segment.doc(RowId::from_raw(0)).unwrap(), noise);
    assert_eq!(segment.doc(RowId::from_raw(1)).unwrap().len(), 0);
    assert_eq!(segment.doc(RowId::from_raw(2)).unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(segment.seq_of(RowId::from_raw(2)).unwrap_err().kind(), ErrorKind::Internal);
}

#[test]
fn misuse_of_the_writer_is_refused_and_leaves_nothing() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let writer = SegmentWriter::create(Arc::clone(&storage), ID, CollectionId::from_raw(3)).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut writer = SegmentWriter::create(Arc::clone(&storage), ID, CollectionId::from_raw(3)).unwrap();
    assert_eq!(
        writer.push(Seq::from_raw(1), 1, &vec![0; ROW_BYTES_MAX + 1]).unwrap_err().kind(),
        ErrorKind::LimitExceeded
    );
    writer.push(Seq::from_raw(1), 1, b"x").unwrap();
    assert_eq!(writer.add_section(KIND_FOREIGN_MIN - 1, 0, b"").unwrap_err().kind(), ErrorKind::Internal);
    writer.add_section(KIND_FOREIGN_MIN, 0, b"").unwrap();
    assert_eq!(writer.add_section(KIND_FOREIGN_MIN, 0, b"").unwrap_err().kind(), ErrorKind::Internal);
    assert_eq!(writer.push(Seq::from_raw(1), 1, b"x").unwrap_err().kind(), ErrorKind::Internal);
    drop(writer);
    assert_eq!(memory.list().unwrap(), []);
    write(&storage, 5).unwrap();
    assert_eq!(SegmentWriter::create(storage, ID, CollectionId::from_raw(3)).unwrap_err().kind(), ErrorKind::Exists);
}

#[test]
fn a_full_disk_or_a_failing_one_leaves_no_segment() {
    let faults = [
        Faults { byte_budget: Some(200_000), ..Faults::default() },
        Faults { sync_error_ppm: 1_000_000, ..Faults::default() },
        Faults { torn_write_ppm: 1_000_000, ..Faults::default() },
    ];
    for fault in faults {
        let memory = MemoryStorage::new();
        let faulty = FaultyStorage::new(Arc::new(memory.clone()), 5);
        faulty.set(fault);
        let storage: Arc<dyn Storage> = Arc::new(faulty.clone());
        let error = write(&storage, 10_000).unwrap_err();
        let full = fault.byte_budget.is_some();
        assert_eq!(error.kind(), if full { ErrorKind::OutOfDiskSpace } else { ErrorKind::Io });
        assert_eq!(memory.list().unwrap(), [], "{fault:?}");
        faulty.set(Faults::default());
        write(&storage, 100).unwrap();
    }
}

#[test]
fn a_crash_while_writing_leaves_the_whole_segment_or_a_temporary_file_that_does_not_matter() {
    let dry = MemoryStorage::new();
    let shared: Arc<dyn Storage> = Arc::new(dry.clone());
    write(&shared, 150).unwrap();
    for stop in 0..=dry.operations() {
        let memory = MemoryStorage::new();
        memory.stop_at(Some(stop));
        let storage: Arc<dyn Storage> = Arc::new(memory.clone());
        let written = write(&storage, 150);
        assert_eq!(written.is_ok(), stop >= dry.operations());
        for seed in 0..8 {
            let left = memory.crash(seed);
            let names: Vec<String> = left.list().unwrap().into_iter().map(|(name, _)| name).collect();
            let whole = names.iter().any(|name| parse_segment_file_name(name).is_some());
            assert!(whole || written.is_err(), "acknowledged and gone");
            assert!(
                names.iter().all(|name| parse_segment_file_name(name).is_some() || name.ends_with(TEMPORARY_SUFFIX))
            );
            if whole {
                let meta = Segment::read_meta(&left, ID).unwrap();
                check(&Segment::open(&left, meta, cache()).unwrap(), 150).unwrap();
            }
            // Whatever is left, the number can be used again after the sweep.
            let storage: Arc<dyn Storage> = Arc::new(left.clone());
            if !whole {
                write(&storage, 10).unwrap();
            }
        }
    }
}

/// D02 for segments: every byte turned over, every shorter file, another file in its place.
#[test]
fn every_damaged_byte_is_an_error_with_file_and_offset_or_changes_nothing() {
    damage_every_byte(write, 1);
    damage_every_byte(write_dense, 23);
}

fn damage_every_byte(write: fn(&Arc<dyn Storage>, u32) -> Result<SegmentMeta>, stride: usize) {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let rows = 20;
    let meta = write(&storage, rows).unwrap();
    let name = segment_file_name(ID);
    let bytes = memory.bytes(&name).unwrap();
    let mut silent = Vec::new();
    for at in (0..bytes.len()).step_by(stride) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        memory.put(&name, &damaged);
        match Segment::open(&memory, meta, cache()).and_then(|segment| check(&segment, rows)) {
            Ok(()) => silent.push(at),
            Err(error) => {
                let kind = error.kind();
                assert!(matches!(kind, ErrorKind::Corrupt | ErrorKind::UnsupportedVersion), "byte {at}: {error}");
                assert!(error.message().contains(&name), "byte {at}: {error}");
                assert!(kind != ErrorKind::Corrupt || error.message().contains("offset"), "byte {at}: {error}");
            }
        }
        assert_eq!(memory.bytes(&name).unwrap(), damaged);
    }
    // Padding between sections carries nothing.
    assert!(silent.iter().all(|at| bytes[*at] == 0) && silent.len() < 8 * 64, "{silent:?}");
    for len in (0..bytes.len()).step_by(stride) {
        memory.put(&name, &bytes[..len]);
        let error = Segment::open(&memory, meta, cache()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        let _ = Segment::read_meta(&memory, ID).unwrap_err();
    }
    memory.put(&name, b"one line of text\n");
    assert_eq!(Segment::open(&memory, meta, cache()).unwrap_err().kind(), ErrorKind::Corrupt);
    memory.remove(&name).unwrap();
    assert_eq!(Segment::open(&memory, meta, cache()).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_newer_version_and_an_unknown_codec_are_named() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let meta = write(&storage, 10).unwrap();
    let name = segment_file_name(ID);
    let mut bytes = memory.bytes(&name).unwrap();
    let version_at = bytes.len() - 16;
    bytes[version_at] = 9;
    memory.put(&name, &bytes);
    let error = Segment::open(&memory, meta, cache()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
    assert!(error.message().contains("seg-7.qseg is of segment format version 9"), "{error}");
}

#[test]
fn a_failing_read_is_an_error_and_not_remembered() {
    let memory = MemoryStorage::new();
    let faulty = FaultyStorage::new(Arc::new(memory.clone()), 5);
    let storage: Arc<dyn Storage> = Arc::new(faulty.clone());
    let meta = write(&storage, 100).unwrap();
    let segment = Segment::open(&*storage, meta, cache()).unwrap();
    for fault in [
        Faults { read_error_ppm: 1_000_000, ..Faults::default() },
        Faults { flipped_read_ppm: 1_000_000, ..Faults::default() },
    ] {
        faulty.set(fault);
        let expected = if fault.read_error_ppm > 0 { ErrorKind::Io } else { ErrorKind::Corrupt };
        assert_eq!(segment.doc(RowId::from_raw(1)).unwrap_err().kind(), expected);
        assert_eq!(segment.probe(1).unwrap_err().kind(), expected);
        assert_eq!(segment.seq_of(RowId::from_raw(1)).unwrap_err().kind(), expected);
        assert_eq!(segment.section(KIND_FOREIGN_MIN, 5).unwrap_err().kind(), expected);
    }
    faulty.set(Faults::default());
    check(&segment, 100).unwrap();
}

#[test]
fn the_cache_stays_within_its_budget() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let meta = write(&storage, 3_000).unwrap();
    let cache = Arc::new(BlockCache::new(100_000));
    let segment = Segment::open(&*storage, meta, Arc::clone(&cache)).unwrap();
    for n in 0..3_000 {
        segment.doc(RowId::from_raw(n * 7919 % 3_000)).unwrap();
        assert!(cache.bytes() <= 100_000);
    }
    assert!(cache.blocks() > 3, "{cache:?}");
}
