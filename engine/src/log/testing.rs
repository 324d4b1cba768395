//! What the log's tests share: small files, commits whose content follows from their number, reading all back.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

use super::*;
use crate::Result;
use crate::io::{MemoryStorage, Storage};
use std::sync::Arc;

pub(super) const DATABASE: u64 = 0x5eed_0f9a_4412_7c03;

/// Files of the smallest length, so that few commits rotate.
pub(super) fn options() -> LogOptions {
    LogOptions {
        database: DATABASE,
        file_bytes: FILE_BYTES_MIN,
        first_file_bytes: FILE_BYTES_MIN,
        spare_bytes_max: 16 << 10,
    }
}

/// The content of commit `seq`: different lengths, some above a sector.
pub(super) fn content(seq: u64) -> Vec<u8> {
    let len = (seq * 37 % 97 + if seq.is_multiple_of(5) { 900 } else { 0 }) as usize;
    (0..len).map(|i| (seq as usize * 131 + i * 7) as u8 | 1).collect()
}

pub(super) fn append(log: &Log, seq: u64) -> Result<()> {
    let payload = Payload::new(content(seq));
    log.reserve(payload.len())?;
    log.append(Seq::from_raw(seq), 1_700_000_000_000 + seq, 1 + (seq % 3) as u8, payload);
    Ok(())
}

pub(super) type Recovered = (Vec<u64>, LogEnd, RecoveryReport);

/// Recovers, and checks every commit against what was appended.
pub(super) fn read(storage: &MemoryStorage, floor: RecoverFloor) -> Result<Recovered> {
    let mut seqs = Vec::new();
    let (end, report) = recover(storage, &options(), floor, &mut |record| {
        let seq = record.seq.get();
        assert_eq!(record.payload, content(seq), "the payload of {seq}");
        assert_eq!(record.kind, 1 + (seq % 3) as u8);
        seqs.push(seq);
        Ok(())
    })?;
    assert_eq!(end.last_seq.get(), seqs.last().copied().unwrap_or(end.last_seq.get()));
    Ok((seqs, end, report))
}

pub(super) fn open(storage: &MemoryStorage, floor: RecoverFloor) -> Result<(Log, Recovered)> {
    let recovered = read(storage, floor)?;
    let log = Log::open(Arc::new(storage.clone()), options(), recovered.1.clone())?;
    Ok((log, recovered))
}

pub(super) const NO_FLOOR: RecoverFloor =
    RecoverFloor { first_file: LogFileId::from_raw(1), durable_at_least: Seq::from_raw(0) };

/// All files and their bytes, to show that nothing was changed.
pub(super) fn image(storage: &MemoryStorage) -> Vec<(String, Vec<u8>)> {
    let names = storage.list().unwrap();
    names.into_iter().map(|(name, _)| (name.clone(), storage.bytes(&name).unwrap())).collect()
}
