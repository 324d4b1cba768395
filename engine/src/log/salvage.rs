//! Every whole record of a log, damage or not between them: for getting back what can be got back.
//!
//! Unlike `recover.rs` it refuses nothing and promises nothing about order or completeness beyond a file. Takes a
//! storage; gives records by file and offset, and a line for each place that is damaged.

use super::file::{BLOCK_BYTES, Block, file_name, parse_name};
use super::reader::{Found, Window, look, payload};
use super::record::{ALIGN, KIND_WATERMARK};
use super::recover::RecordRef;
use crate::Result;
use crate::ids::{LogFileId, Seq};
use crate::io::Storage;

/// Gives every whole record to `each`, file by file; `database` is the manifest's number.
///
/// # Errors
/// What `each` returns. What cannot be read is a line in `damage`.
pub(crate) fn whole_records(
    storage: &dyn Storage,
    database: u64,
    damage: &mut Vec<String>,
    each: &mut dyn FnMut(RecordRef<'_>) -> Result<()>,
) -> Result<()> {
    let mut files: Vec<LogFileId> = storage.list()?.iter().filter_map(|(name, _)| parse_name(name)).collect();
    files.sort_unstable();
    for id in files {
        let name = file_name(id);
        let opened = storage.open(&name).and_then(Window::new).and_then(|mut window| {
            let block = window.block(&name, id, database)?;
            Ok((window, block))
        });
        match opened {
            Ok((mut window, Block::Header(header))) => {
                let (epoch, first) = (header.epoch, header.first_seq);
                if let Err(error) = records_of(&mut window, &name, id, epoch, first, damage, each)? {
                    damage.push(error.to_string());
                }
            }
            Ok((_, Block::Unused)) => {}
            Ok((_, Block::Damaged(why))) => damage.push(format!("{name}: {why}: none of its records can be told")),
            Err(error) => damage.push(error.to_string()),
        }
    }
    Ok(())
}

/// The records of one file. The outer error is `each`'s, the inner one the disk's.
#[allow(clippy::too_many_arguments, reason = "one call, in the loop above")]
fn records_of(
    window: &mut Window,
    name: &str,
    id: LogFileId,
    epoch: u64,
    first: Seq,
    damage: &mut Vec<String>,
    each: &mut dyn FnMut(RecordRef<'_>) -> Result<()>,
) -> Result<Result<()>> {
    let mut offset = BLOCK_BYTES as u64;
    let mut lost_from = None;
    while offset < window.file_len() {
        let found = match look(window, epoch, offset) {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let Found::Record { header, next } = found else {
            if matches!(found, Found::Bad(_)) {
                lost_from.get_or_insert(offset);
            }
            offset += ALIGN;
            continue;
        };
        if let Some(from) = lost_from.take() {
            damage.push(format!("{name}: bytes {from} to {offset} hold records that cannot be read"));
        }
        let at = offset;
        offset = next;
        if header.kind == KIND_WATERMARK || header.seq < first.get() {
            continue;
        }
        let bytes = match payload(window, &header, at) {
            Ok(bytes) => bytes,
            Err(error) => return Ok(Err(error)),
        };
        each(RecordRef {
            seq: Seq::from_raw(header.seq),
            wall_ms: header.wall_ms,
            kind: header.kind,
            payload: bytes,
            file: id,
            offset: at,
        })?;
    }
    if let Some(from) = lost_from {
        damage.push(format!("{name}: from byte {from} on there are records that cannot be read"));
    }
    Ok(Ok(()))
}
