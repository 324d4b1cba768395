//! Every byte of a small database's files flipped in turn, files cut, emptied and gone: never a panic, never a wrong
//! answer given silently; the error names the file and the place, and nothing on disk is changed by refusing.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::sync::Arc;

use common::{contents, filter, open, small, value};
use quarrydb::io::{MemoryStorage, Storage};
use quarrydb::{ErrorKind, check_on};

/// A database with a segment that has dead rows, a tail, and log that is not sealed, closed or killed.
fn database(close: bool) -> (MemoryStorage, common::Model) {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let collection = db.collection("test", "damage").unwrap();
    let write = |op: common::Op| op.on_collection(&db, &collection).unwrap();
    write(common::Op::Insert((0..6).map(|i| (i, i % 3, i * 7)).collect()));
    db.seal().unwrap();
    write(common::Op::DeleteOne(2));
    write(common::Op::IncOne(4));
    db.seal().unwrap();
    write(common::Op::Insert((10..13).map(|i| (i, i % 3, i * 7)).collect()));
    write(common::Op::DeleteOne(0));
    let model = contents(&collection);
    if close {
        db.close().unwrap();
    }
    let left = storage.crash(u64::MAX);
    (left, model)
}

/// Every way of reading, each an answer or an error that says where.
fn read_all(storage: &MemoryStorage, model: &common::Model, may_cut: bool, when: &str) {
    let said = |error: &quarrydb::Error| {
        assert!(
            matches!(
                error.kind(),
                ErrorKind::Corrupt | ErrorKind::UnsupportedVersion | ErrorKind::NotFound | ErrorKind::Io
            ),
            "{when}: {error:?}"
        );
        let names_a_file = ["MANIFEST", "seg-", "log-", "del-"].iter().any(|name| error.message().contains(name));
        assert!(names_a_file, "{when}: the error does not name the file: {error}");
    };
    let before = files(storage);
    let db = match open(storage, small()) {
        Ok(db) => db,
        Err(error) => {
            said(&error);
            assert!(files(storage) == before, "{when}: a refusal changed the files");
            return;
        }
    };
    let collection = db.collection("test", "damage").unwrap();
    for (id, expected) in (0..20).map(|id| (id, model.get(&id))) {
        match collection.get(value(&id.to_string()).view()) {
            Ok(found) => {
                let found = found.map(|d| d.view().get("v").unwrap().as_i64().unwrap());
                let cut = may_cut && db.recovered().log.cut.is_some();
                assert!(cut || found == expected.map(|d| d.1), "{when}: get {id} gives {found:?}");
            }
            Err(error) => said(&error),
        }
    }
    match collection.count(filter(r#"{"k": 1}"#), 0, None, None) {
        Ok(count) => {
            let cut = may_cut && db.recovered().log.cut.is_some();
            assert!(cut || count == model.values().filter(|d| d.0 == 1).count() as u64, "{when}: count {count}");
        }
        Err(error) => said(&error),
    }
}

fn files(storage: &MemoryStorage) -> Vec<(String, Vec<u8>)> {
    storage.list().unwrap().into_iter().map(|(name, _)| (name.clone(), storage.bytes(&name).unwrap())).collect()
}

/// How much of a file may be worth flipping: zeros behind the end of a log hold nothing.
fn used(bytes: &[u8]) -> usize {
    let end = bytes.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
    (end + 64).min(bytes.len())
}

#[test]
fn a_flipped_byte_anywhere_is_told_or_harmless() {
    for close in [true, false] {
        let (storage, model) = database(close);
        assert!(check_on(&(Arc::new(storage.crash(u64::MAX)) as Arc<dyn Storage>)).unwrap().is_whole());
        let mut seen = 0;
        for (name, bytes) in files(&storage) {
            // The first block of a log file is mostly zeros that its checksum covers: a sample of them says as much.
            for at in (0..used(&bytes)).filter(|at| bytes[*at] != 0 || at % 29 == 0) {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << (at % 8);
                let damaged = storage.crash(u64::MAX);
                damaged.put(&name, &flipped);
                let when = format!("close {close}, byte {at} of {name}");
                // Without a clean close the last commits may be an unsynced tail, and it is said that they were cut.
                read_all(&damaged, &model, !close, &when);
                let _ = check_on(&(Arc::new(damaged) as Arc<dyn Storage>)).unwrap();
                seen += 1;
            }
        }
        assert!(seen > 1000, "only {seen} bytes were flipped");
    }
}

#[test]
fn the_check_finds_every_damaged_byte_that_is_believed() {
    let (storage, _) = database(true);
    for (name, bytes) in files(&storage).into_iter().filter(|(name, _)| name.contains("seg-") || name == "MANIFEST") {
        // What is zero may be the padding between sections, which nobody believes.
        for at in (0..bytes.len()).filter(|at| bytes[*at] != 0) {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x10;
            let damaged = storage.crash(u64::MAX);
            damaged.put(&name, &flipped);
            let report = check_on(&(Arc::new(damaged) as Arc<dyn Storage>)).unwrap();
            assert!(!report.is_whole(), "byte {at} of {name} was not noticed");
            assert!(report.damage[0].contains(&name), "byte {at} of {name}: {:?}", report.damage);
        }
    }
}

#[test]
fn a_file_that_is_replaced_emptied_cut_or_gone_is_refused_and_nothing_is_deleted() {
    let (storage, model) = database(true);
    for (name, bytes) in files(&storage) {
        if used(&bytes) <= 64 || name == "LOCK" {
            continue;
        }
        let variants: [(&str, Option<Vec<u8>>); 4] = [
            ("replaced by a line of text", Some(b"this is not the file you are looking for\n".to_vec())),
            ("emptied", Some(Vec::new())),
            ("cut in half", Some(bytes[..used(&bytes) / 2].to_vec())),
            ("gone", None),
        ];
        for (what, content) in variants {
            let damaged = storage.crash(u64::MAX);
            match content {
                Some(content) => damaged.put(&name, &content),
                None => damaged.remove(&name).unwrap(),
            }
            let before = files(&damaged);
            read_all(&damaged, &model, false, &format!("{name} {what}"));
            if name == "MANIFEST" || name.ends_with(".qlog") {
                assert!(open(&damaged, small()).is_err(), "{name} {what}: it opens");
                assert!(files(&damaged) == before, "{name} {what}: refusing changed the files");
            }
        }
    }
}

#[test]
fn the_log_cut_at_every_length_of_its_last_record_opens_with_all_earlier_commits() {
    let storage = MemoryStorage::new();
    let db = open(&storage, small()).unwrap();
    let collection = db.collection("test", "damage").unwrap();
    let mut states = Vec::new();
    let mut ends = Vec::new();
    let log = |storage: &MemoryStorage| {
        let (name, _) = storage.list().unwrap().into_iter().rfind(|(name, _)| name.starts_with("log-")).unwrap();
        let bytes = storage.bytes(&name).unwrap();
        (name, bytes)
    };
    for i in 0..5 {
        common::Op::Insert(vec![(i, 1, i)]).on_collection(&db, &collection).unwrap();
        states.push(contents(&collection));
        let (_, bytes) = log(&storage);
        // Records are padded to eight bytes, and end in zeros.
        ends.push((bytes.iter().rposition(|&b| b != 0).unwrap() + 1).next_multiple_of(8));
    }
    let left = storage.crash(u64::MAX);
    let (name, bytes) = log(&left);
    // Cut inside the zeros that fill it up to eight bytes, the last record is whole.
    let last_byte = bytes.iter().rposition(|&b| b != 0).unwrap();
    for cut in ends[3]..=last_byte {
        for filling in ["short", "zeros", "ones"] {
            let mut torn = bytes.clone();
            match filling {
                "short" => torn.truncate(cut),
                "zeros" => torn[cut..].fill(0),
                _ => torn[cut..].fill(0xff),
            }
            if torn == bytes {
                continue;
            }
            let damaged = left.crash(u64::MAX);
            damaged.put(&name, &torn);
            let when = format!("cut at {cut}, the rest {filling}");
            let db = open(&damaged, small()).unwrap_or_else(|e| panic!("{when}: {e}"));
            let collection = db.collection("test", "damage").unwrap();
            // Only padding behind the last record may be lost without losing the record.
            let whole = cut + 8 > ends[4] && contents(&collection) == states[4];
            assert!(whole || contents(&collection) == states[3], "{when}: {:?}", contents(&collection));
            // What is written from here on survives the next opening.
            common::Op::Insert(vec![(100, 2, 2)]).on_collection(&db, &collection).unwrap();
            let now = contents(&collection);
            drop((collection, db));
            let db = open(&damaged, small()).unwrap_or_else(|e| panic!("{when}, opened again: {e}"));
            assert_eq!(contents(&db.collection("test", "damage").unwrap()), now, "{when}, opened again");
        }
    }
}

#[test]
fn what_is_salvaged_is_the_collection_of_a_name_and_not_the_one_that_was_dropped() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let fresh = to.path().join("new");
    {
        let options = quarrydb::Options { background: false, ..quarrydb::Options::default() };
        let db = quarrydb::Database::open_with(from.path(), options).unwrap();
        let collection = db.collection("test", "again").unwrap();
        common::insert(&db, &collection, r#"{"_id": 1, "k": 0, "v": 1}"#).unwrap();
        collection.drop(&quarrydb::WriteOptions::default()).unwrap().wait().unwrap();
        // Long enough to be in the new database before the log is read.
        let long = format!("{{\"_id\": 2, \"k\": 0, \"v\": 2, \"pad\": \"{}\"}}", "x".repeat(2 << 20));
        common::insert(&db, &collection, &long).unwrap();
        // The manifest and a segment speak for the second; the log still tells of both.
        db.seal().unwrap();
        common::insert(&db, &collection, r#"{"_id": 3, "k": 0, "v": 3}"#).unwrap();
    }
    let report = quarrydb::salvage(from.path(), &fresh).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    let db = quarrydb::Database::open(&fresh).unwrap();
    let found = contents(&db.collection("test", "again").unwrap());
    assert_eq!(found.into_iter().collect::<Vec<_>>(), [(2, (0, 2)), (3, (0, 3))]);
}

#[test]
fn a_log_file_that_is_lost_after_a_quiet_moment_is_missed_also_without_a_clean_end() {
    let storage = MemoryStorage::new();
    let db = open(
        &storage,
        quarrydb::Options { background: true, tail_rows_max: 100_000, log_bytes_max: 1 << 20, ..small() },
    )
    .unwrap();
    let collection = db.collection("test", "damage").unwrap();
    // Enough for several log files, none of them sealed.
    for i in 0..60 {
        common::Op::Insert((0..20).map(|j| (i * 20 + j, 1, i)).collect()).on_collection(&db, &collection).unwrap();
    }
    let logs = |storage: &MemoryStorage| -> Vec<String> {
        files(storage)
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| name.ends_with(".qlog") && name.starts_with("log-"))
            .collect()
    };
    let mut tries = 0;
    loop {
        let left = storage.crash(u64::MAX);
        let refused = |damage: &dyn Fn(&MemoryStorage, &str)| {
            logs(&left)
                .iter()
                .filter(|name| {
                    let damaged = left.crash(u64::MAX);
                    damage(&damaged, name);
                    open(&damaged, small()).is_err_and(|e| e.kind() == ErrorKind::Corrupt)
                })
                .count()
        };
        let used = logs(&left).iter().filter(|name| left.bytes(name).unwrap().iter().any(|b| *b != 0)).count();
        assert!(used > 1, "several files hold commits");
        let gone = refused(&|storage, name| storage.remove(name).unwrap());
        let emptied = refused(&|storage, name| storage.put(name, &[]));
        if gone == used && emptied == used {
            break;
        }
        tries += 1;
        assert!(tries < 400, "of {used} files {gone} are missed when gone, {emptied} when emptied");
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
}
