//! How much of the log is kept for change streams once the database needs it no more.
//!
//! Takes the log's files and the bounds of bytes and age; gives the first file to keep. Nothing is kept before a stream was
//! opened: that is noted in the manifest, so that a restart knows it too. On a full disk all of it is given up at once.

use crate::core::Core;
use crate::error::Result;
use crate::ids::{LogFileId, Seq};
use crate::log::LogFileInfo;
use crate::manifest::Manifest;
use crate::txn::group::Pending;

/// The first file to keep of `files`, oldest first, of which those from `needed` on are needed anyway. Whole files alone
/// are let go: less than `bytes_max` is kept, and nothing whose last commit is older than `oldest_ms`.
pub(crate) fn kept_from(files: &[LogFileInfo], needed: LogFileId, bytes_max: u64, oldest_ms: u64) -> LogFileId {
    let (mut kept, mut bytes) = (needed, 0_u64);
    for (file, after) in files.iter().zip(files.iter().skip(1)).rev() {
        if file.id >= needed {
            continue;
        }
        bytes = bytes.saturating_add(file.bytes);
        if bytes > bytes_max || after.begun_ms < oldest_ms {
            break;
        }
        kept = file.id;
    }
    kept
}

/// Settles in `next`, which is to follow `current`, what is kept, and which dropped collections have to be known for it:
/// those that were dropped by the commit that it gives and later.
pub(super) fn apply(core: &Core, current: &Manifest, next: &mut Manifest) -> Seq {
    let files = core.group.log().files();
    next.kept_log_file = match next.watched_since {
        None => next.first_log_file,
        Some(_) => wanted(core, &files, next.first_log_file).max(current.kept_log_file).min(next.first_log_file),
    };
    let first = files.iter().find(|file| file.id >= next.kept_log_file).map_or(Seq::MAX, |file| file.first_seq);
    let oldest = next.watched_since.map_or(Seq::MAX, |since| since.next().max(first));
    next.dropped = core.catalog.gone();
    next.dropped.retain(|gone| gone.seq >= oldest);
    oldest
}

fn wanted(core: &Core, files: &[LogFileInfo], needed: LogFileId) -> LogFileId {
    // As a commit bears no time before that of the one before it, a clock that was set back keeps more, not less.
    let age = u64::try_from(core.options.change_age_max.as_millis()).unwrap_or(u64::MAX);
    let oldest_ms = core.clock.wall_millis().saturating_sub(age);
    kept_from(files, needed, core.options.change_bytes_max, oldest_ms)
}

/// Lets go what is older than is to be kept, and on a full disk all that nothing but streams needs.
///
/// # Errors
/// `Io`, `Poisoned`.
pub(super) fn step(core: &Core) -> Result<()> {
    use std::sync::atomic::Ordering::Acquire;
    let kept = LogFileId::from_raw(core.sealing.kept_log_file.load(Acquire));
    let needed = LogFileId::from_raw(core.sealing.first_log_file.load(Acquire));
    if kept >= needed {
        return Ok(());
    }
    if core.group.log().refused().is_some() {
        return give_up(core);
    }
    if wanted(core, &core.group.log().files(), needed) > kept {
        let mut manifest = core.manifest.lock();
        let (store, current) = &mut *manifest;
        let mut next = Manifest { generation: current.generation + 1, clean_end: None, ..current.clone() };
        let oldest = apply(core, current, &mut next);
        store.save(&next)?;
        core.catalog.forget_gone(oldest);
        core.sealing.note(&next);
        *current = next;
        return super::seal::release_log(core, &manifest.1);
    }
    Ok(())
}

/// Writes need room more than streams need history. A manifest may find none, so the files go before one says so: an
/// opening does without them, and the oldest goes first, so that what is left has no hole.
fn give_up(core: &Core) -> Result<()> {
    let mut manifest = core.manifest.lock();
    let (store, current) = &mut *manifest;
    let needed = current.first_log_file;
    for file in core.group.log().files().into_iter().filter(|file| file.id < needed) {
        core.group.log().release(file.id)?;
        core.storage.sync_dir()?;
    }
    let mut next = Manifest { generation: current.generation + 1, clean_end: None, ..current.clone() };
    next.kept_log_file = needed;
    store.save(&next)?;
    core.sealing.note(&next);
    *current = next;
    Ok(())
}

/// Has the manifest say that change streams are read here, from the commit after the one that is given on.
///
/// # Errors
/// `OutOfDiskSpace`, `Io`, `Poisoned`: no stream can be opened then.
pub(crate) fn watch(core: &Core) -> Result<Seq> {
    let mut manifest = core.manifest.lock();
    let (store, current) = &mut *manifest;
    if let Some(since) = current.watched_since {
        return Ok(since);
    }
    store.check()?;
    // Writers tell what they change from here on; those that hold the order now may not have known.
    core.changes.begin_watching();
    let since = {
        let _order = core.order.hold();
        core.watermarks().applied()
    };
    // A crash must not take back what is behind that place, and give it to commits that are then not told.
    Pending::new((), &core.group, since, true).wait()?;
    let watched_since = Some(since);
    let next = Manifest { generation: current.generation + 1, clean_end: None, watched_since, ..current.clone() };
    store.save(&next)?;
    core.changes.watched_since(since);
    *current = next;
    Ok(since)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(u64, u64, u64)]) -> Vec<LogFileInfo> {
        let file = |&(id, bytes, begun_ms): &(u64, u64, u64)| LogFileInfo {
            id: LogFileId::from_raw(id),
            first_seq: Seq::from_raw(id * 10),
            last_seq: Seq::from_raw(id * 10 + 9),
            bytes,
            used_bytes: bytes,
            begun_ms,
        };
        list.iter().map(file).collect()
    }

    #[test]
    fn whole_files_are_kept_by_bytes_and_by_the_age_of_their_last_commit() {
        let files = files(&[(3, 100, 1000), (4, 100, 2000), (6, 100, 3000), (7, 100, 4000), (8, 100, 5000)]);
        let kept = |needed, bytes, oldest| kept_from(&files, LogFileId::from_raw(needed), bytes, oldest).get();
        assert_eq!(kept(7, u64::MAX, 0), 3);
        assert_eq!(kept(7, 250, 0), 4);
        assert_eq!(kept(7, 99, 0), 7);
        assert_eq!(kept(7, 0, 0), 7);
        // File 4 ends where 6 begins.
        assert_eq!(kept(7, u64::MAX, 3000), 4);
        assert_eq!(kept(7, u64::MAX, 3001), 6);
        assert_eq!(kept(3, u64::MAX, 0), 3);
        assert_eq!(kept_from(&[], LogFileId::from_raw(9), 1, 1).get(), 9);
    }
}
