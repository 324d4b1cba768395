//! One log file: its name, its first block, what is known of it while it is open.
//!
//! The block is written and synced before the file's first record, and only after every record of the file before is
//! durable. So a file whose block holds proves that its predecessors are whole, and the first bad block ends the log.
//! Next to read: `writer.rs` for how files follow each other, `reader.rs` for how they are read.

use crate::ids::{LogFileId, Seq};
use crate::io::File;
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// The first block: header and room; records begin behind it.
pub(crate) const BLOCK_BYTES: usize = 4096;
/// The newest version this build reads and the one it writes.
pub(crate) const VERSION: u32 = 0;
const MAGIC: [u8; 8] = *b"QUARLOG\n";
/// Fields end here and their checksum follows.
const FIELDS_BYTES: usize = 64;
const PREFIX: &str = "log-";
const SPARE_PREFIX: &str = "spare-";
const SUFFIX: &str = ".qlog";

/// What the first block says.
///
/// ```text
///  0 magic 8 | 8 version u32 | 12 zeros u32 | 16 database u64 | 24 file number u64 | 32 epoch u64
/// 40 first seq u64 | 48 durable u64 | 56 wall ms u64 | 64 crc32c of these u32 | zeros to 4096
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileHeader {
    /// `LogOptions::database`: files of another database are told apart.
    pub(crate) database: u64,
    pub(crate) id: LogFileId,
    pub(crate) epoch: u64,
    /// The `Seq` its first commit has or will have.
    pub(crate) first_seq: Seq,
    /// Everything up to here is durable, in the files before.
    pub(crate) durable: Seq,
    /// No record has an earlier wall time.
    pub(crate) wall_ms: u64,
}

/// What stands where a header should.
#[derive(Debug)]
pub(crate) enum Block {
    Header(FileHeader),
    /// All zeros: prepared or released, not in use.
    Unused,
    /// Neither.
    Damaged(&'static str),
}

impl FileHeader {
    pub(crate) fn new(database: u64, id: LogFileId, first_seq: Seq, durable: Seq, wall_ms: u64) -> Self {
        Self { database, id, epoch: epoch(database, id), first_seq, durable, wall_ms }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut block = Vec::with_capacity(BLOCK_BYTES);
        block.extend_from_slice(&MAGIC);
        block.extend_from_slice(&VERSION.to_le_bytes());
        block.extend_from_slice(&[0; 4]);
        let numbers =
            [self.database, self.id.get(), self.epoch, self.first_seq.get(), self.durable.get(), self.wall_ms];
        for number in numbers {
            block.extend_from_slice(&number.to_le_bytes());
        }
        assert!(block.len() == FIELDS_BYTES, "the fields of a log file's header take what the format says");
        block.extend_from_slice(&crc32c::crc32c(&block).to_le_bytes());
        block.resize(BLOCK_BYTES, 0);
        block
    }

    /// What the first block of the file called `name` is.
    ///
    /// # Errors
    /// `UnsupportedVersion`, `Corrupt` for a whole header of some other file; damage is told by [`Block::Damaged`], for it depends on the rest of the file what it
    /// means.
    pub(crate) fn decode(block: &[u8; BLOCK_BYTES], name: &str, id: LogFileId, database: u64) -> Result<Block> {
        if block.iter().all(|b| *b == 0) {
            return Ok(Block::Unused);
        }
        if block[..8] != MAGIC {
            return Ok(Block::Damaged("this is no log file's header"));
        }
        let u32_at = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let version = u32_at(8);
        let whole = u32_at(FIELDS_BYTES) == crc32c::crc32c(&block[..FIELDS_BYTES]);
        // A newer version may lay out the rest in another way, its checksum too; a flipped bit of ours must not pass
        // for one. So a version is believed when the block is whole by our rule, or small enough to be one.
        if version > VERSION && (whole || version < VERSION_PLAUSIBLE) {
            return Err(unsupported(name, version));
        }
        if !whole {
            return Ok(Block::Damaged("the header's checksum is wrong"));
        }
        if u32_at(12) != 0 || block[FIELDS_BYTES + 4..].iter().any(|b| *b != 0) {
            return Ok(Block::Damaged("what should be zeros in the header's block is not"));
        }
        let header = Self {
            database: u64_at(16),
            id: LogFileId::from_raw(u64_at(24)),
            epoch: u64_at(32),
            first_seq: Seq::from_raw(u64_at(40)),
            durable: Seq::from_raw(u64_at(48)),
            wall_ms: u64_at(56),
        };
        // A whole header that does not belong here was put here by hand; ignored, it would hide commits.
        if header.database != database {
            return Err(Error::corrupt(name, 16, "it belongs to another database"));
        }
        if header.id != id {
            return Err(Error::corrupt(name, 24, format!("by its header it is {}", file_name(header.id))));
        }
        if header.epoch != epoch(database, id) || header.durable >= header.first_seq {
            return Err(Error::corrupt(name, 32, "the header's fields contradict each other"));
        }
        Ok(Block::Header(header))
    }
}

/// Versions above this are taken for damage rather than for the future.
const VERSION_PLAUSIBLE: u32 = 1 << 8;

fn unsupported(name: &str, version: u32) -> Error {
    let message = format!(
        "{name} is of log format version {version}, this build reads up to {VERSION}: open the database with the \
         newer QuarryDB that wrote it"
    );
    Error::new(ErrorKind::UnsupportedVersion, message)
}

/// What tells the records of one use of a file from those of another: a number is used once in a database's life, and
/// the mixing (splitmix64's, Steele, Lea and Flood 2014) spreads it over both halves.
pub(crate) fn epoch(database: u64, id: LogFileId) -> u64 {
    let mut z = database ^ id.get().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// `log-7.qlog`.
pub(crate) fn file_name(id: LogFileId) -> String {
    format!("{PREFIX}{}{SUFFIX}", id.get())
}

/// `spare-7.qlog`: a released file kept for its filled blocks.
pub(crate) fn spare_name(id: LogFileId) -> String {
    format!("{SPARE_PREFIX}{}{SUFFIX}", id.get())
}

/// The number in a log file's name.
pub(crate) fn parse_name(name: &str) -> Option<LogFileId> {
    parse(name, PREFIX)
}

/// The number in a spare file's name.
pub(crate) fn parse_spare_name(name: &str) -> Option<LogFileId> {
    parse(name, SPARE_PREFIX)
}

fn parse(name: &str, prefix: &str) -> Option<LogFileId> {
    let digits = name.strip_prefix(prefix)?.strip_suffix(SUFFIX)?;
    // One spelling only: `log-007` is nobody's file.
    let canonical = !digits.starts_with('0') && digits.bytes().all(|b| b.is_ascii_digit());
    let number: u64 = digits.parse().ok()?;
    canonical.then_some(LogFileId::from_raw(number))
}

/// A file of the log that is open, in use or finished.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) id: LogFileId,
    pub(crate) epoch: u64,
    pub(crate) len: u64,
    pub(crate) file: Arc<dyn File>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

    use super::*;

    fn decode(block: &[u8]) -> Result<Block> {
        FileHeader::decode(block.try_into().unwrap(), "log-7.qlog", LogFileId::from_raw(7), 42)
    }

    #[test]
    fn names_have_one_spelling() {
        assert_eq!(parse_name("log-7.qlog"), Some(LogFileId::from_raw(7)));
        for name in ["log-07.qlog", "log-0.qlog", "log-.qlog", "log-+7.qlog", "log-7.qlog.tmp", "spare-7.qlog"] {
            assert_eq!(parse_name(name), None, "{name}");
        }
        assert_eq!(parse_name(&format!("log-{}9.qlog", u64::MAX)), None);
        assert_eq!(parse_spare_name(&spare_name(LogFileId::from_raw(3))), Some(LogFileId::from_raw(3)));
    }

    #[test]
    fn a_flipped_bit_in_the_block_is_damage_and_a_newer_version_is_named() {
        let header =
            FileHeader::new(42, LogFileId::from_raw(7), Seq::from_raw(10), Seq::from_raw(9), 1_700_000_000_000);
        let block = header.encode();
        assert!(matches!(decode(&block).unwrap(), Block::Header(found) if found == header));
        assert!(matches!(decode(&[0; BLOCK_BYTES]).unwrap(), Block::Unused));
        for bit in 0..BLOCK_BYTES * 8 {
            let mut damaged = block.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            match decode(&damaged) {
                Ok(Block::Damaged(_)) => {}
                // A bit of the version that makes a plausible one: refused all the same.
                Err(e) if bit / 8 == 8 => assert_eq!(e.kind(), ErrorKind::UnsupportedVersion),
                other => panic!("bit {bit}: {other:?}"),
            }
        }
        let mut newer = block;
        newer[8] = 1;
        assert!(decode(&newer).unwrap_err().message().contains("version 1"));
    }

    #[test]
    fn a_file_of_another_database_is_told() {
        let header = FileHeader::new(41, LogFileId::from_raw(7), Seq::from_raw(1), Seq::from_raw(0), 0);
        let error = decode(&header.encode()).unwrap_err();
        assert!(error.message().contains("log-7.qlog is damaged at offset 16: it belongs to another"), "{error}");
        let header = FileHeader::new(42, LogFileId::from_raw(6), Seq::from_raw(1), Seq::from_raw(0), 0);
        let error = decode(&header.encode()).unwrap_err();
        assert!(error.message().contains("it is log-6.qlog"), "{error}");
    }
}
