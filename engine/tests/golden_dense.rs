//! The golden segment of a compaction: `testdata/formats/segment-dense/v0/seg-1.qseg`, written once. 400 rows packed by
//! LZ4 with a dictionary, read by every later version, whatever its LZ4 would make of them.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "golden files are read as they lie")]

use std::path::PathBuf;
use std::sync::Arc;

use quarrydb::ErrorKind;
use quarrydb::ids::{CollectionId, RowId, SegmentId, Seq};
use quarrydb::io::{MemoryStorage, Storage};
use quarrydb::segment::{BlockCache, DENSE_BYTES_MIN, Segment, SegmentWriter, train};

const ROWS: u32 = 400;
const NAME: &str = "seg-1.qseg";

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testdata/formats/segment-dense/v0").join(NAME)
}

fn row(n: u32) -> Vec<u8> {
    format!("a row of the golden dense segment, number {n}, and {} is its square", n * n).into_bytes()
}

fn hash(n: u32) -> u64 {
    u64::from(n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Writes the golden file, once in a version's life.
fn write() {
    let samples: Vec<u8> = (0..20_000).flat_map(row).collect();
    let mut dictionary = train(&samples, DENSE_BYTES_MIN);
    assert!(!dictionary.is_empty());
    dictionary.truncate(16 << 10);
    let storage = MemoryStorage::new();
    let shared: Arc<dyn Storage> = Arc::new(storage.clone());
    let id = SegmentId::from_raw(1);
    let mut writer = SegmentWriter::create_dense(shared, id, CollectionId::from_raw(2), dictionary).unwrap();
    for n in 0..ROWS {
        writer.push(Seq::from_raw(10 + u64::from(n) / 7), hash(n), &row(n)).unwrap();
    }
    writer.finish().unwrap();
    std::fs::create_dir_all(path().parent().unwrap()).unwrap();
    std::fs::write(path(), storage.bytes(NAME).unwrap()).unwrap();
}

#[test]
fn golden_dense_segment_is_read() {
    if std::env::var("QUARRYDB_GOLDEN").is_ok_and(|value| value == "write") && !path().exists() {
        write();
    }
    let bytes = std::fs::read(path()).unwrap();
    let storage = MemoryStorage::new();
    storage.put(NAME, &bytes);
    let meta = Segment::read_meta(&storage, SegmentId::from_raw(1)).unwrap();
    assert_eq!((meta.rows, meta.min_seq.get(), meta.max_seq.get()), (ROWS, 10, 10 + 399 / 7));
    let segment = Segment::open(&storage, meta, Arc::new(BlockCache::new(1 << 20))).unwrap();
    assert!(segment.is_dense());
    segment.verify().unwrap();
    for n in 0..ROWS {
        let at = RowId::from_raw(n);
        assert_eq!(&*segment.doc(at).unwrap(), row(n));
        assert_eq!(segment.seq_of(at).unwrap().get(), 10 + u64::from(n) / 7);
        assert_eq!(segment.probe(hash(n)).unwrap().as_slice(), [at]);
    }
    // Its corrupted twin: a block's byte turned over, a row of it asked for.
    let mut damaged = bytes.clone();
    damaged[80] ^= 4;
    storage.put(NAME, &damaged);
    let segment = Segment::open(&storage, meta, Arc::new(BlockCache::new(1 << 20))).unwrap();
    let error = segment.doc(RowId::from_raw(0)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.message().contains("seg-1.qseg is damaged at offset 64"), "{error}");
}
