//! The log beside what the file system gives: appends of one document, written and synced, alone and in groups.
#![allow(clippy::unwrap_used, reason = "a bench stops where it stands")]
#![allow(clippy::disallowed_methods, reason = "the floor is the file system itself")]

use quarrydb::ids::{LogFileId, Seq};
use quarrydb::io::{DiskStorage, Storage};
use quarrydb::log::{Log, LogOptions, Payload, RecoverFloor, recover};
use quarrydb_bench::dataset::{Lines, SEED};
use quarrydb_bench::floor::machine::preallocated;
use quarrydb_bench::micro::{Table, seconds};
use quarrydb_bench::server::Scratch;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

fn opened(scratch: &Scratch) -> Log {
    let storage: Arc<dyn Storage> = Arc::new(DiskStorage::open(scratch.path().join("database")).unwrap());
    let options = LogOptions { first_file_bytes: 64 << 20, ..LogOptions::new(7) };
    let floor = RecoverFloor { first_file: LogFileId::from_raw(1), durable_at_least: Seq::from_raw(0) };
    let (end, _) = recover(storage.as_ref(), &options, floor, &mut |_| Ok(())).unwrap();
    Log::open(storage, options, end).unwrap()
}

fn main() {
    let lines = Lines::employees(20_000, SEED);
    let documents: Vec<&[u8]> = lines.iter().collect();
    let table = Table::begin("append of one document");
    for (name, group, synced) in [
        ("written by 1", 1, false),
        ("written by 100", 100, false),
        ("synced by 1", 1, true),
        ("synced by 100", 100, true),
    ] {
        let count = if synced { 200 * group } else { 20_000 };
        let chosen = &documents[..count.min(documents.len())];
        let bytes: usize = chosen.iter().map(|d| d.len()).sum();
        let scratch = Scratch::new("log-bench").unwrap();
        let log = opened(&scratch);
        let file = preallocated(&scratch.path().join("floor"), 64 << 20).unwrap();
        let (mut seq, mut at) = (log.last_seq(), 0);
        table.row(
            name,
            chosen.len(),
            bytes,
            if synced { "pwrite, fdatasync" } else { "pwrite" },
            || {
                seconds(|| {
                    for documents in chosen.chunks(group) {
                        for document in documents {
                            seq = seq.next();
                            log.reserve(document.len()).unwrap();
                            log.append(seq, 1, 1, Payload::new(document.to_vec()));
                        }
                        if synced { log.sync() } else { log.write() }.unwrap();
                    }
                })
            },
            || {
                let mut buffer = Vec::new();
                seconds(|| {
                    for documents in chosen.chunks(group) {
                        buffer.clear();
                        documents.iter().for_each(|d| buffer.extend_from_slice(d));
                        file.write_all_at(&buffer, at % (48 << 20)).unwrap();
                        at += buffer.len() as u64;
                        if synced {
                            file.sync_data().unwrap();
                        }
                    }
                })
            },
        );
    }
}
