//! Golden files: bytes that every later version must read, and damaged twins with the error they must give.
//!
//! `testdata/formats/{log,segment,manifest}/v0` together are one small database's files, written once. They are read and
//! held against values stated here, and written again to the same bytes. For a new version, `QUARRYDB_GOLDEN=write
//! cargo test -p quarrydb golden` writes what is missing and never another. `testdata/corrupt/<case>` holds what differs
//! from them, and
//! `expected.txt` with the kind of error, the beginning of its message and perhaps a file to leave out.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::disallowed_methods, reason = "golden files are read from the repository")]

use quarrydb::ids::{CollectionId, LogFileId, RowId, SegmentId, Seq};
use quarrydb::io::{MemoryStorage, Storage};
use quarrydb::log::{self, Log, LogEnd, LogOptions, Payload, RecoverFloor};
use quarrydb::manifest::{
    CollectionEntry, DeleteFileRef, DroppedEntry, MANIFEST_FILE, Manifest, ManifestStore, SegmentEntry,
};
use quarrydb::segment::{BlockCache, Deletes, KIND_FOREIGN_MIN, Segment, SegmentMeta, SegmentWriter};
use quarrydb::{ErrorKind, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const DATABASE: u64 = 0x0123_4567_89ab_cdef;
const COMMITS: u64 = 30;
const ROWS: u32 = 300;
const PACKED: SegmentId = SegmentId::from_raw(7);
const PLAIN: SegmentId = SegmentId::from_raw(8);
const DELETES: &str = "del-7-1.qdel";

type Files = BTreeMap<String, Vec<u8>>;
/// Seq, wall time, kind, payload.
type Commit = (u64, u64, u8, Vec<u8>);

fn testdata(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../testdata").join(path)
}

fn golden_directories() -> [PathBuf; 3] {
    ["log", "segment", "manifest"].map(|kind| testdata(&format!("formats/{kind}/v0")))
}

fn options() -> LogOptions {
    LogOptions { file_bytes: 8 << 10, first_file_bytes: 8 << 10, ..LogOptions::new(DATABASE) }
}

// What the files hold, stated once and without the code under test.

fn payload(seq: u64) -> Vec<u8> {
    format!("commit {seq}: ").into_bytes().repeat(seq as usize % 9 + 15)
}

fn wall(seq: u64) -> u64 {
    1_790_000_000_000 + seq * 250
}

fn kind(seq: u64) -> u8 {
    1 + (seq % 4) as u8
}

fn row(n: u32) -> Vec<u8> {
    format!("row {n} of the golden segment, and {n} again").into_bytes().repeat(1 + n as usize % 5)
}

/// Noise, so that no packing gains and the bytes do not hang on the packer's version.
fn noise(n: u32) -> Vec<u8> {
    (0..200_u64).map(|i| (hash(n * 1000 + i as u32) >> 24) as u8).collect()
}

fn hash(n: u32) -> u64 {
    (u64::from(n) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn seq_of(n: u32) -> Seq {
    Seq::from_raw(1 + u64::from(n) / 20)
}

fn write_log(storage: &MemoryStorage) {
    let log = Log::open(Arc::new(storage.clone()), options(), LogEnd::default()).unwrap();
    for seq in 1..=COMMITS {
        let payload = Payload::new(payload(seq));
        log.reserve(payload.len()).unwrap();
        log.append(Seq::from_raw(seq), wall(seq), kind(seq), payload);
        if seq % 3 == 0 {
            log.sync().unwrap();
        }
    }
    log.close().unwrap();
}

fn write_segment(storage: &MemoryStorage, id: SegmentId, rows: u32, row: fn(u32) -> Vec<u8>) -> SegmentMeta {
    let mut writer = SegmentWriter::create(Arc::new(storage.clone()), id, CollectionId::from_raw(2)).unwrap();
    for n in 0..rows {
        writer.push(seq_of(n), hash(n), &row(n)).unwrap();
    }
    writer.add_section(KIND_FOREIGN_MIN + 1, 4, b"a section of another module").unwrap();
    writer.finish().unwrap()
}

fn write_deletes() -> Vec<u8> {
    let deletes = Deletes::new(PACKED, ROWS);
    for n in 0..40 {
        deletes.mark(RowId::from_raw(n * 7), Seq::from_raw(16 + u64::from(n) / 4));
    }
    deletes.fold(Seq::from_raw(20));
    deletes.encode(Seq::from_raw(24))
}

fn manifest(metas: &[SegmentMeta], deletes: &[u8]) -> Manifest {
    let mut manifest = Manifest::new(DATABASE);
    manifest.generation = 5;
    manifest.next_collection = CollectionId::from_raw(4);
    manifest.next_segment = SegmentId::from_raw(9);
    manifest.next_delete_file = 2;
    manifest.durable_at_least = Seq::from_raw(24);
    manifest.clean_end = Some(Seq::from_raw(COMMITS));
    manifest.collections.push(CollectionEntry {
        id: CollectionId::from_raw(2),
        db: "golden".to_owned(),
        name: "r\u{f6}cke".to_owned(),
        options: vec![1, 2, 3],
        definitions: vec![],
        created_seq: Seq::from_raw(1),
        sealed_seq: Seq::from_raw(15),
    });
    for meta in metas {
        let deletes = (meta.id == PACKED).then(|| DeleteFileRef {
            name: DELETES.to_owned(),
            len: deletes.len() as u64,
            crc: crc32c::crc32c(deletes),
            up_to: Seq::from_raw(24),
        });
        manifest.segments.push(SegmentEntry { meta: *meta, deletes, indexes: Vec::new() });
    }
    manifest.watched_since = Some(Seq::from_raw(8));
    let (db, name) = ("golden".to_owned(), "gone".to_owned());
    manifest.dropped.push(DroppedEntry { id: CollectionId::from_raw(3), seq: Seq::from_raw(9), db, name });
    manifest
}

/// All files of the golden database, as this build writes them.
fn written() -> [Files; 3] {
    let files = |storage: &MemoryStorage| -> Files {
        storage.list().unwrap().into_iter().map(|(name, _)| (name.clone(), storage.bytes(&name).unwrap())).collect()
    };
    let log = MemoryStorage::new();
    write_log(&log);
    // The room kept for an opening on a full disk holds nothing.
    log.remove("spare-0.qlog").unwrap();
    let segments = MemoryStorage::new();
    let metas = [write_segment(&segments, PACKED, ROWS, row), write_segment(&segments, PLAIN, 30, noise)];
    let deletes = write_deletes();
    segments.put(DELETES, &deletes);
    let manifest = Files::from([(MANIFEST_FILE.to_owned(), manifest(&metas, &deletes).encode())]);
    [files(&log), files(&segments), manifest]
}

fn read_directory(path: &Path) -> Files {
    let entries = fs::read_dir(path)
        .unwrap_or_else(|e| panic!("{}: {e}; QUARRYDB_GOLDEN=write makes what is missing", path.display()));
    let files = entries.map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap())).collect()
}

fn golden() -> [Files; 3] {
    golden_directories().map(|path| read_directory(&path))
}

fn database(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> MemoryStorage {
    let storage = MemoryStorage::new();
    files.into_iter().for_each(|(name, bytes)| storage.put(&name, &bytes));
    storage
}

/// Reads everything, as an opening followed by a check does. Gives the commits of the log.
fn read_all(storage: &MemoryStorage) -> Result<Vec<Commit>> {
    let manifest = ManifestStore::new(Arc::new(storage.clone())).load()?.expect("the manifest is there");
    let floor = RecoverFloor { first_file: manifest.first_log_file, durable_at_least: manifest.durable_at_least };
    let mut commits = Vec::new();
    log::recover(storage, &options(), floor, &mut |record| {
        commits.push((record.seq.get(), record.wall_ms, record.kind, record.payload.to_vec()));
        Ok(())
    })?;
    for entry in &manifest.segments {
        let segment = Segment::open(storage, entry.meta, Arc::new(BlockCache::new(1 << 20)))?;
        segment.verify()?;
        if let Some(deletes) = &entry.deletes {
            let file = storage.open(&deletes.name)?;
            let mut bytes = vec![0; usize::try_from(file.len()?).unwrap()];
            file.read_at(0, &mut bytes)?;
            Deletes::decode(&deletes.name, &bytes, entry.meta.id, entry.meta.rows)?;
        }
    }
    Ok(commits)
}

/// Writes what is missing, when asked to.
#[test]
fn golden_files_are_there() {
    if std::env::var("QUARRYDB_GOLDEN").is_ok_and(|value| value == "write") {
        for (path, files) in golden_directories().iter().zip(written()) {
            fs::create_dir_all(path).unwrap();
            for (name, bytes) in files.iter().filter(|(name, _)| !path.join(name).exists()) {
                fs::write(path.join(name), bytes).unwrap();
            }
        }
        write_corrupt();
    }
    let names: Vec<String> = golden().into_iter().flat_map(BTreeMap::into_keys).collect();
    assert_eq!(names, ["log-1.qlog", "log-2.qlog", DELETES, "seg-7.qseg", "seg-8.qseg", MANIFEST_FILE]);
}

#[test]
fn golden_files_hold_what_was_put_in() {
    let storage = database(golden().into_iter().flatten());
    let expected: Vec<_> = (1..=COMMITS).map(|seq| (seq, wall(seq), kind(seq), payload(seq))).collect();
    assert_eq!(read_all(&storage).unwrap(), expected);
    let found = ManifestStore::new(Arc::new(storage.clone())).load().unwrap().unwrap();
    let metas: Vec<SegmentMeta> = found.segments.iter().map(|entry| entry.meta).collect();
    assert_eq!(found, manifest(&metas, &storage.bytes(DELETES).unwrap()));
    for (meta, rows, row) in [(metas[0], ROWS, row as fn(u32) -> Vec<u8>), (metas[1], 30, noise)] {
        let segment = Segment::open(&storage, meta, Arc::new(BlockCache::new(1 << 20))).unwrap();
        assert_eq!((segment.rows(), meta.collection.get()), (rows, 2));
        for n in 0..rows {
            let id = RowId::from_raw(n);
            assert_eq!(&*segment.doc(id).unwrap(), row(n));
            assert_eq!(segment.seq_of(id).unwrap(), seq_of(n));
            assert_eq!(segment.probe(hash(n)).unwrap().as_slice(), [id]);
        }
        let section = segment.section(KIND_FOREIGN_MIN + 1, 4).unwrap().unwrap();
        assert_eq!(&*section, b"a section of another module");
    }
    let (deletes, up_to) = Deletes::decode(DELETES, &storage.bytes(DELETES).unwrap(), PACKED, ROWS).unwrap();
    assert_eq!(up_to.get(), 24);
    for at in 20..=24 {
        let expected: Vec<u32> = (0..40).filter(|n| 16 + n / 4 <= at).map(|n| n * 7).collect();
        assert_eq!(deletes.dead_at(Seq::from_raw(at.into())).iter().collect::<Vec<_>>(), expected, "at {at}");
    }
}

#[test]
fn golden_files_are_written_again_to_the_same_bytes() {
    let (golden, written) = (golden(), written());
    for (kind, (golden, written)) in golden.iter().zip(&written).enumerate() {
        assert!(golden.keys().eq(written.keys()));
        for (name, bytes) in golden {
            // A newer packer may pack in another way; that is no change of the format. The manifest holds the
            // segment's checksum.
            let packed = kind == 2 || name == "seg-7.qseg";
            let same = written.get(name).is_some_and(|written| written == bytes);
            assert!(same || packed, "{name} is written in another way than its version says");
        }
    }
    let manifest = &golden[2][MANIFEST_FILE];
    assert_eq!(&Manifest::decode(MANIFEST_FILE, manifest).unwrap().encode(), manifest);
}

/// The cases: what is damaged, and how. Used once, to write them.
fn write_corrupt() {
    type Damage = fn(&mut Vec<u8>);
    let cases: [(&str, &str, Option<Damage>, &str, &str); 13] = [
        (
            "log-header-three-bytes-in-front",
            "log-1.qlog",
            Some(|b| drop(b.splice(0..0, *b"abc"))),
            "Corrupt",
            "log-1.qlog is damaged at offset 0: ",
        ),
        (
            "log-record-flipped",
            "log-1.qlog",
            Some(|b| b[4200] ^= 4),
            "Corrupt",
            "log-1.qlog is damaged at offset 4096: ",
        ),
        (
            "log-length-huge",
            "log-2.qlog",
            Some(|b| b[4096 + 32..4096 + 36].fill(0xff)),
            "Corrupt",
            "log-2.qlog is damaged at offset 4096: ",
        ),
        ("log-cut-short", "log-2.qlog", Some(|b| b.truncate(5000)), "Corrupt", "log-2.qlog is damaged at offset "),
        ("log-missing", "log-1.qlog", None, "Corrupt", "log-1.qlog is damaged at offset 0: the file is missing"),
        (
            "log-newer-version",
            "log-2.qlog",
            Some(|b| b[8] = 1),
            "UnsupportedVersion",
            "log-2.qlog is of log format version 1, ",
        ),
        (
            "segment-block-flipped",
            "seg-8.qseg",
            Some(|b| b[1000] ^= 1),
            "Corrupt",
            "seg-8.qseg is damaged at offset 64: a block's checksum",
        ),
        (
            "segment-text",
            "seg-7.qseg",
            Some(|b| *b = b"one line of text\n".to_vec()),
            "Corrupt",
            "seg-7.qseg is damaged at offset 17: ",
        ),
        ("segment-of-another-size", "seg-8.qseg", Some(|b| b.push(0)), "Corrupt", "seg-8.qseg is damaged at offset "),
        ("segment-missing", "seg-8.qseg", None, "NotFound", "seg-8.qseg is missing"),
        ("deletes-flipped", DELETES, Some(|b| b[50] ^= 1), "Corrupt", "del-7-1.qdel is damaged at offset "),
        ("manifest-empty", MANIFEST_FILE, Some(Vec::clear), "Corrupt", "MANIFEST is damaged at offset 0: "),
        ("manifest-missing", MANIFEST_FILE, None, "Corrupt", "MANIFEST is damaged at offset 0: the file is missing"),
    ];
    let golden: Files = golden().into_iter().flatten().collect();
    for (case, file, damage, kind, message) in cases {
        let path = testdata("corrupt").join(case);
        if path.exists() {
            continue;
        }
        fs::create_dir_all(&path).unwrap();
        let mut expected = format!("{kind}\n{message}\n");
        match damage {
            Some(damage) => {
                let mut bytes = golden[file].clone();
                damage(&mut bytes);
                fs::write(path.join(file), bytes).unwrap();
            }
            None => expected += &format!("without {file}\n"),
        }
        fs::write(path.join("expected.txt"), expected).unwrap();
    }
}

#[test]
fn corrupt_twins_of_golden_files_give_the_error_they_must_and_stay_as_they_are() {
    let golden: Files = golden().into_iter().flatten().collect();
    let mut cases = 0;
    for case in fs::read_dir(testdata("corrupt")).unwrap() {
        let path = case.unwrap().path();
        if !path.join("expected.txt").exists() {
            continue;
        }
        let mut twin = read_directory(&path);
        let expected = String::from_utf8(twin.remove("expected.txt").unwrap()).unwrap();
        let lines: Vec<&str> = expected.lines().collect();
        let mut files = golden.clone();
        files.extend(twin);
        if let Some(gone) = lines.get(2).and_then(|line| line.strip_prefix("without ")) {
            files.remove(gone).unwrap();
        }
        let storage = database(files.clone());
        let error = read_all(&storage).expect_err(&path.display().to_string());
        let kind = match lines[0] {
            "Corrupt" => ErrorKind::Corrupt,
            "UnsupportedVersion" => ErrorKind::UnsupportedVersion,
            "NotFound" => ErrorKind::NotFound,
            other => panic!("{}: {other} is not among the kinds", path.display()),
        };
        assert_eq!(error.kind(), kind, "{}: {error}", path.display());
        assert!(error.message().starts_with(lines[1]), "{}: {error}", path.display());
        let after: Files = storage
            .list()
            .unwrap()
            .into_iter()
            .map(|(name, _)| (name.clone(), storage.bytes(&name).unwrap()))
            .collect();
        assert_eq!(after, files, "{}: the files were changed", path.display());
        cases += 1;
    }
    assert!(cases >= 13);
}

/// The first file's number as the manifest of the golden database has it.
#[test]
fn golden_log_begins_with_file_one() {
    let golden = golden();
    let manifest = Manifest::decode(MANIFEST_FILE, &golden[2][MANIFEST_FILE]).unwrap();
    assert_eq!(manifest.first_log_file, LogFileId::from_raw(1));
}
