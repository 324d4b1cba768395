//! The file of an index, written once: `testdata/formats/index/v0`. `QUARRYDB_GOLDEN=write` writes it where it is missing
//! and never again.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "golden files are read from the repository")]

use std::ops::ControlFlow;
use std::path::Path;

use super::*;
use crate::ids::Seq;
use crate::indexes::definition::IndexDefinition;
use crate::indexes::entries::Entries;
use crate::indexes::keys::KeyMaker;
use crate::indexes::source::IndexSource;
use crate::io::MemoryStorage;

const DOCUMENTS: [&str; 5] = [
    r#"{"a": 5, "b": "x"}"#,
    r#"{"a": [1, 5.0, "s"], "b": null}"#,
    r#"{}"#,
    r#"{"a": [], "b": {"$date": "1990-01-01T00:00:00Z"}}"#,
    r#"{"a": {"$numberDecimal": "0.5"}, "b": true}"#,
];

fn meta() -> SegmentMeta {
    SegmentMeta {
        id: SegmentId::from_raw(7),
        collection: CollectionId::from_raw(2),
        rows: DOCUMENTS.len() as u32,
        min_seq: Seq::from_raw(1),
        max_seq: Seq::from_raw(5),
        row_bytes: 0,
        file_bytes: 0,
        footer_bytes: 0,
        footer_crc: 0,
    }
}

fn written() -> Vec<u8> {
    let definition = quarrydb_jsonb::parse(br#"{"keys": {"a": 1, "b": -1}}"#).unwrap();
    let definition = IndexDefinition::from_object(definition.view()).unwrap();
    let (mut entries, mut maker) = (Entries::default(), KeyMaker::default());
    for (row, text) in DOCUMENTS.iter().enumerate() {
        let document = quarrydb_jsonb::parse(text.as_bytes()).unwrap();
        maker.each(&definition, document.view(), |key| entries.push(key, row as u32)).unwrap();
    }
    entries.sort();
    let run = entries.to_run(meta().rows).unwrap();
    [header(&meta(), IndexId::from_raw(3), maker.facts, entries.len() as u64, run.len()), run].concat()
}

fn opened(bytes: &[u8], crc: u32) -> SegmentIndex {
    let storage = Arc::new(MemoryStorage::new());
    storage.write_atomic("idx-7-3.qidx", bytes).unwrap();
    let file = IndexFileRef { index: IndexId::from_raw(3), crc, len: bytes.len() as u64, entries: 7 };
    SegmentIndex::new(storage, &meta(), file)
}

#[test]
fn golden_index_of_version_0_is_read_and_written() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata/formats/index/v0/idx-7-3.qidx");
    if std::env::var("QUARRYDB_GOLDEN").is_ok_and(|v| v == "write") && !path.exists() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, written()).unwrap();
    }
    let golden = std::fs::read(&path).unwrap();
    let index = Arc::new(opened(&golden, crc32c::crc32c(&golden)));
    index.verify().unwrap();
    assert_eq!(index.facts().unwrap(), Facts { arrays: 1, ..Facts::default() });
    let mut rows = Vec::new();
    let source = IndexSource::Segment(index);
    let flow = source.walk(&[KeyRange::all()], false, &mut |_, row| {
        rows.push(row);
        ControlFlow::Continue(())
    });
    assert!(flow.unwrap().is_continue());
    // Empty array, missing, 0.5, 1, 5 with "x" before 5 with null (larger first), "s".
    assert_eq!(rows, [3, 2, 4, 1, 0, 1, 1]);
    assert_eq!(written(), golden);
}

#[test]
fn a_file_that_is_not_the_named_one_is_refused() {
    let bytes = written();
    assert!(opened(&bytes, crc32c::crc32c(&bytes)).facts().is_ok());
    for at in 0..bytes.len() {
        let mut bad = bytes.clone();
        bad[at] ^= 1;
        assert_eq!(opened(&bad, crc32c::crc32c(&bytes)).facts().unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
        // Behind a checksum that is right nothing may panic either.
        let _ = opened(&bad, crc32c::crc32c(&bad)).verify();
    }
    for cut in 0..bytes.len() {
        let _ = opened(&bytes[..cut], crc32c::crc32c(&bytes[..cut])).verify();
    }
}
