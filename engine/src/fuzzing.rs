//! Bodies of the fuzz targets of what reads files: any bytes at all, and no panic, no endless loop, no memory beyond
//! what the file's length allows.
//!
//! Plain functions, so that `engine/fuzz` (nightly) and a test on the stable toolchain run the same. The first byte
//! picks how much is made right before reading: raw bytes seldom pass a checksum, and what lies behind one must hold
//! too. Not part of the library's surface.
#![allow(clippy::unwrap_used, reason = "a fuzz target panics on what must not be")]
#![allow(missing_docs, reason = "hidden from the documentation; the head says it all")]

use crate::columns::{self, Columns, Source};
use crate::ids::{LogFileId, RowId, SegmentId, Seq};
use crate::io::MemoryStorage;
use crate::log::{self, Log, LogOptions, RecoverFloor};
use crate::manifest::Manifest;
use crate::plan::Prepared;
use crate::segment::{self, BlockBuf, BlockCache, Deletes, Segment, segment_file_name};
use quarrydb_query::{Filter, ParseContext};
use std::sync::Arc;

const DATABASE: u64 = 42;
const SEGMENT: SegmentId = SegmentId::from_raw(7);
const PROBES: u64 = 50;

/// Bytes as the one file of a log: as they are, behind a header, or as records whose checksums are made right.
pub fn fuzz_log_read(data: &[u8]) {
    let Some((mode, bytes)) = data.split_first() else { return };
    let id = LogFileId::from_raw(1);
    let file = match mode % 3 {
        0 => bytes.to_vec(),
        1 => log::fuzz_file(DATABASE, id, bytes, false),
        _ => log::fuzz_file(DATABASE, id, bytes, true),
    };
    let storage = MemoryStorage::new();
    storage.put("log-1.qlog", &file);
    let small = LogOptions { file_bytes: 8 << 10, first_file_bytes: 8 << 10, ..LogOptions::new(DATABASE) };
    let floor = RecoverFloor { first_file: id, durable_at_least: Seq::default() };
    let mut first = Vec::new();
    let recovered = log::recover(&storage, &small, floor, &mut |record| {
        first.push((record.seq, record.payload.to_vec()));
        Ok(())
    });
    assert_eq!(storage.bytes("log-1.qlog").unwrap(), file, "recovery writes nothing");
    let Ok((end, _)) = recovered else { return };
    assert_eq!(end.last_seq, first.last().map_or(end.last_seq, |(seq, _)| *seq));
    // The same again after the log was opened, and whatever was left out stays out.
    drop(Log::open(Arc::new(storage.clone()), small, end.clone()).unwrap());
    let mut second = Vec::new();
    let (again, report) = log::recover(&storage, &small, floor, &mut |record| {
        second.push((record.seq, record.payload.to_vec()));
        Ok(())
    })
    .unwrap();
    assert_eq!((again.last_seq, second), (end.last_seq, first));
    assert_eq!(report.cut, None);
}

/// Bytes as a segment's file: as they are, or with all checksums made right.
pub fn fuzz_segment_open(data: &[u8]) {
    let Some((mode, bytes)) = data.split_first() else { return };
    let file = if mode % 2 == 0 { bytes.to_vec() } else { segment::fuzz_seal(bytes) };
    let storage = MemoryStorage::new();
    storage.put(&segment_file_name(SEGMENT), &file);
    let Ok(meta) = Segment::read_meta(&storage, SEGMENT) else { return };
    let segment = Segment::open(&storage, meta, Arc::new(BlockCache::new(1 << 20))).unwrap();
    let rows = segment.rows();
    let mut buffer = BlockBuf::default();
    let mut seen = 0;
    for block in 0..segment.block_count().unwrap_or(0) {
        let Ok(view) = segment.read_block_into(block, &mut buffer) else { continue };
        seen += view.docs().count();
    }
    assert!(seen <= rows as usize);
    for probe in 0..PROBES {
        let _ = segment.probe(probe.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let row = RowId::from_raw(probe as u32 * (rows / PROBES as u32).max(1));
        let _ = segment.doc(row).map(|doc| doc.len());
        let _ = segment.seq_of(row);
    }
    for section in segment.sections() {
        let _ = segment.section(section.kind, section.item);
    }
    if segment.verify().is_ok() {
        assert_eq!(seen, rows as usize, "what verifies can be read");
    }
    let _ = Deletes::decode("del-7-1.qdel", bytes, SEGMENT, rows);
    columns::fuzz_decode(bytes);
    if let Ok(Some(columns)) = Columns::of_segment(&segment) {
        let source = Source::segment(&columns, &segment);
        for path in ["a", "a.b", "k", "_id"] {
            for filter in [r#"{"$gt": 3}"#, r#"null"#, r#""x""#, r#"{"$in": [1, "y", null]}"#, r#"{"$regex": "z"}"#] {
                let text = format!("{{\"{path}\": {filter}}}");
                let Ok(text) = quarrydb_jsonb::parse(text.as_bytes()) else { continue };
                let Ok(filter) = Filter::parse(text.view(), &ParseContext::new("filter")) else { continue };
                let prepared = Prepared::new(&filter);
                let _ = prepared.rows(source, None);
                let _ = prepared.count(source);
            }
        }
    }
}

/// Any text as the resume token of a change stream.
pub fn fuzz_token(data: &[u8]) {
    crate::changes::fuzz_token(&String::from_utf8_lossy(data));
}

/// Bytes as a manifest: as they are, or with both checksums made right; what is accepted encodes to what was read.
pub fn fuzz_manifest(data: &[u8]) {
    let Some((mode, bytes)) = data.split_first() else { return };
    let mut file = bytes.to_vec();
    if mode % 2 == 1 && file.len() >= 32 {
        let len = (file.len() as u64 - 32).to_le_bytes();
        file[16..24].copy_from_slice(&len);
        let body = crc32c::crc32c(&file[32..]).to_le_bytes();
        file[24..28].copy_from_slice(&body);
        let header = crc32c::crc32c(&file[..28]).to_le_bytes();
        file[28..32].copy_from_slice(&header);
    }
    if let Ok(manifest) = Manifest::decode("MANIFEST", &file) {
        assert_eq!(manifest.encode(), file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Payload;
    use crate::segment::SegmentWriter;

    /// Seeded changes of `seed`: a few bytes set, a part cut out, doubled or overwritten.
    fn mutate(seed: &[u8], target: fn(&[u8]), rounds: u64) {
        let mut state = 1_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> 33) as usize % below.max(1)
        };
        for _ in 0..rounds {
            let mut bytes = seed.to_vec();
            for _ in 0..1 + next(4) {
                let at = next(bytes.len());
                match next(6) {
                    0 => bytes.truncate(at),
                    1 => drop(bytes.drain(at..(at + 1 + next(64)).min(bytes.len()))),
                    2 => {
                        let part = bytes[at..(at + 1 + next(64)).min(bytes.len())].to_vec();
                        let to = next(bytes.len());
                        bytes.splice(to..to, part);
                    }
                    _ => {
                        let value = [0, 1, 0x7f, 0x80, 0xff, next(256) as u8][next(6)];
                        if let Some(byte) = bytes.get_mut(at) {
                            *byte = value;
                        }
                    }
                }
                if bytes.is_empty() {
                    break;
                }
            }
            for mode in 0..3_u8 {
                target(&[&[mode], &bytes[..]].concat());
            }
        }
    }

    #[test]
    fn changed_log_files_are_read_or_refused() {
        let storage = MemoryStorage::new();
        let small = LogOptions { file_bytes: 8 << 10, first_file_bytes: 8 << 10, ..LogOptions::new(DATABASE) };
        let log = Log::open(Arc::new(storage.clone()), small, log::LogEnd::default()).unwrap();
        for seq in 1..=6_u8 {
            log.reserve(100).unwrap();
            log.append(Seq::from_raw(seq.into()), 0, 1, Payload::new(vec![seq; usize::from(seq) * 9]));
            log.sync().unwrap();
        }
        log.close().unwrap();
        let mut file = storage.bytes("log-1.qlog").unwrap();
        file.truncate(5000);
        mutate(&file, fuzz_log_read, 600);
        // Without the header, for the modes that put one before.
        mutate(&file[4096..], fuzz_log_read, 600);
    }

    #[test]
    fn changed_segment_files_are_read_or_refused() {
        let doc = |n: u64| format!("row {n} ").repeat(1 + n as usize % 5).into_bytes();
        let written = |dictionary: Option<Vec<u8>>, rows: u64| {
            let (storage, collection) = (MemoryStorage::new(), crate::ids::CollectionId::from_raw(1));
            let shared = Arc::new(storage.clone());
            let mut writer = match dictionary {
                None => SegmentWriter::create(shared, SEGMENT, collection),
                Some(dictionary) => SegmentWriter::create_dense(shared, SEGMENT, collection, dictionary),
            }
            .unwrap();
            for n in 0..rows {
                writer.push(Seq::from_raw(n / 3 + 1), n.wrapping_mul(0x9e37_79b9_7f4a_7c15), &doc(n)).unwrap();
            }
            writer.add_section(segment::KIND_FOREIGN_MIN, 1, b"column").unwrap();
            writer.finish().unwrap();
            storage.bytes(&segment_file_name(SEGMENT)).unwrap()
        };
        let dictionary: Vec<u8> = (100..140).flat_map(doc).collect();
        // The last is large enough for a filter.
        for (file, rounds) in
            [(written(None, 40), 1500), (written(Some(dictionary), 150), 300), (written(None, 4_200), 10)]
        {
            fuzz_segment_open(&[&[1], &file[..]].concat());
            mutate(&file, fuzz_segment_open, rounds);
        }
    }

    #[test]
    fn changed_manifests_are_read_or_refused() {
        let mut manifest = Manifest::new(1);
        manifest.dropped.push(crate::manifest::DroppedEntry {
            id: crate::ids::CollectionId::from_raw(3),
            seq: Seq::from_raw(4),
            db: "d".to_owned(),
            name: "gone".to_owned(),
        });
        mutate(&manifest.encode(), fuzz_manifest, 4000);
    }
}
