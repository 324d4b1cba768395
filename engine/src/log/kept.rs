//! Log files that nothing but change streams reads any more: found again at an opening.
//!
//! Takes where recovery has found the log and its leftovers; gives back of these the files that are kept before the first
//! one needed, from the newest on, as far as their headers can be read. They are no part of the database: what is missing or
//! damaged among them ends the history that streams can read, and refuses nothing. Records are checked when they are read.

use super::file::{BLOCK_BYTES, Block, epoch, file_name, parse_name};
use super::reader::{Found, Window, look};
use super::record::KIND_WATERMARK;
use super::recover::LogEnd;
use super::{LogFileInfo, LogOptions};
use crate::ids::{LogFileId, Seq};
use crate::io::Storage;
use crate::{ErrorKind, Result};

/// Moves the files from `kept_from` on that precede those in use out of the leftovers, to where the log has its own.
///
/// # Errors
/// `Io`.
pub(crate) fn keep(storage: &dyn Storage, options: &LogOptions, kept_from: LogFileId, end: &mut LogEnd) -> Result<()> {
    let Some(first) = end.files.first().copied() else { return Ok(()) };
    let mut older: Vec<_> = end
        .leftovers
        .iter()
        .filter_map(|(name, len)| Some((parse_name(name)?, name.clone(), *len)))
        .filter(|(id, ..)| *id >= kept_from && *id < first.id)
        .collect();
    older.sort_unstable_by_key(|(id, ..)| std::cmp::Reverse(*id));
    let (mut kept, mut next_seq) = (Vec::new(), first.first_seq);
    for (id, name, len) in older {
        let block = Window::new(storage.open(&name)?)?.block(&name, id, options.database);
        let header = match block {
            Ok(Block::Header(header)) if header.first_seq <= next_seq => header,
            // Made ready and put back: no commit ever stood there.
            Ok(Block::Unused) => continue,
            Ok(_) => break,
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(_) => break,
        };
        kept.push(LogFileInfo {
            id,
            first_seq: header.first_seq,
            last_seq: Seq::from_raw(next_seq.get().saturating_sub(1)),
            bytes: len,
            used_bytes: len,
            begun_ms: header.wall_ms,
        });
        next_seq = header.first_seq;
        end.leftovers.retain(|(other, _)| *other != name);
    }
    end.files.splice(..0, kept.into_iter().rev());
    Ok(())
}

/// What is wrong with the records of files that [`keep`] has found: nothing where `end` has none.
///
/// # Errors
/// `Io`.
pub(crate) fn damage(
    storage: &dyn Storage,
    options: &LogOptions,
    first_file: LogFileId,
    end: &LogEnd,
) -> Result<Vec<String>> {
    let mut damage = Vec::new();
    for file in end.files.iter().filter(|file| file.id < first_file) {
        let mut window = Window::new(storage.open(&file_name(file.id))?)?;
        let (mut offset, mut next_seq) = (BLOCK_BYTES as u64, file.first_seq);
        while next_seq <= file.last_seq {
            let Found::Record { header, next } = look(&mut window, epoch(options.database, file.id), offset)? else {
                let name = file_name(file.id);
                damage.push(format!(
                    "{name} is damaged at offset {offset}: {next_seq} is not to be found; change streams alone need it"
                ));
                break;
            };
            if header.kind != KIND_WATERMARK {
                next_seq = Seq::from_raw(header.seq).next();
            }
            offset = next;
        }
    }
    Ok(damage)
}
