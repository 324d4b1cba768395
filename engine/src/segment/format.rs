//! The frame of a segment file: header, sections, footer, trailer.
//!
//! ```text
//! header 64 | sections, each at a multiple of 64 | footer | trailer 32
//! footer:  id u64, collection u32, rows u32, min seq u64, max seq u64, row bytes u64, sections u32, zeros u32,
//!          then 64 bytes a section:
//!          kind u16, codec u8, cipher u8, item u32, offset u64, length u64, raw length u64, crc u32, nonce 12, zeros 16
//! trailer: footer length u32, footer crc u32, zeros u64, version u32, zeros u32, magic 8
//! ```
//!
//! Takes and gives bytes and numbers; touches no file. The footer is believed only when its checksum is the one the
//! manifest holds.

use crate::ids::{CollectionId, SegmentId, Seq};
use crate::io::fields::{Fields, PutFields};
use crate::{Error, ErrorKind, Result};

/// The newest version this build reads and the one it writes.
pub(crate) const VERSION: u32 = 0;
pub(crate) const MAGIC: [u8; 8] = *b"QUARSEG\n";
pub(crate) const HEADER_BYTES: usize = 64;
pub(crate) const TRAILER_BYTES: usize = 32;
/// Sections begin at multiples of this: a cache line, and enough for every type that may be read in place.
pub(crate) const SECTION_ALIGN: u64 = 64;
const FOOTER_FIXED_BYTES: usize = 48;
const ENTRY_BYTES: usize = 64;
/// More sections than any segment has (thousands of columns); bounds the footer.
const SECTIONS_MAX: usize = 1 << 16;

/// The rows' blocks, one behind the other.
pub(crate) const KIND_ROWS: u16 = 1;
/// Where each block lies.
pub(crate) const KIND_BLOCKS: u16 = 2;
/// Hash to rows.
pub(crate) const KIND_PRIMARY: u16 = 3;
/// Row to `Seq`.
pub(crate) const KIND_SEQS: u16 = 4;
/// What the rows' blocks have in common.
pub(crate) const KIND_DICTIONARY: u16 = 5;
/// Which hashes may be in the primary run.
pub(crate) const KIND_FILTER: u16 = 6;

const PREFIX: &str = "seg-";
const SUFFIX: &str = ".qseg";

/// How bytes are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Codec {
    /// As they are.
    None = 0,
    /// LZ4 block format.
    Lz4 = 1,
    /// LZ4 block format with the segment's dictionary before it; blocks of rows alone.
    Lz4Dictionary = 2,
}

impl Codec {
    pub(crate) fn from_raw(raw: u8) -> Option<Self> {
        match raw {
            0 => Some(Self::None),
            1 => Some(Self::Lz4),
            2 => Some(Self::Lz4Dictionary),
            _ => None,
        }
    }
}

/// What the manifest holds of a segment: enough to open it without believing anything in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Its number; its file is called by it.
    pub id: SegmentId,
    /// Whose rows they are.
    pub collection: CollectionId,
    /// How many rows.
    pub rows: u32,
    /// The lowest `Seq` of a row.
    pub min_seq: Seq,
    /// The highest `Seq` of a row: the log must be durable up to here before a manifest names the segment.
    pub max_seq: Seq,
    /// Bytes of all rows before packing.
    pub row_bytes: u64,
    /// Length of the file.
    pub file_bytes: u64,
    /// Length of the footer.
    pub footer_bytes: u32,
    /// Checksum of the footer.
    pub footer_crc: u32,
}

impl SegmentMeta {
    /// Bytes of the encoded form.
    pub(crate) const ENCODED_BYTES: usize = 56;

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_u64(self.id.get());
        out.put_u32(self.collection.get());
        out.put_u32(self.rows);
        out.put_u64(self.min_seq.get());
        out.put_u64(self.max_seq.get());
        out.put_u64(self.row_bytes);
        out.put_u64(self.file_bytes);
        out.put_u32(self.footer_bytes);
        out.put_u32(self.footer_crc);
        assert!(out.len() - start == Self::ENCODED_BYTES, "a segment's entry takes what the format says");
    }

    pub(crate) fn decode(fields: &mut Fields<'_>) -> Result<Self> {
        Ok(Self {
            id: SegmentId::from_raw(fields.u64()?),
            collection: CollectionId::from_raw(fields.u32()?),
            rows: fields.u32()?,
            min_seq: Seq::from_raw(fields.u64()?),
            max_seq: Seq::from_raw(fields.u64()?),
            row_bytes: fields.u64()?,
            file_bytes: fields.u64()?,
            footer_bytes: fields.u32()?,
            footer_crc: fields.u32()?,
        })
    }
}

/// One section of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SectionInfo {
    /// What it is; from `KIND_FOREIGN_MIN` on the meaning is that of who put it there.
    pub kind: u16,
    /// Which of its kind.
    pub item: u32,
    /// How it is packed.
    pub codec: Codec,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length in the file.
    pub len: u64,
    /// Its length unpacked.
    pub raw_len: u64,
    /// Checksum of the bytes in the file.
    pub crc: u32,
}

/// The footer, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    pub(crate) id: SegmentId,
    pub(crate) collection: CollectionId,
    pub(crate) rows: u32,
    pub(crate) min_seq: Seq,
    pub(crate) max_seq: Seq,
    pub(crate) row_bytes: u64,
    pub(crate) sections: Vec<SectionInfo>,
}

impl Footer {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_FIXED_BYTES + self.sections.len() * ENTRY_BYTES);
        out.put_u64(self.id.get());
        out.put_u32(self.collection.get());
        out.put_u32(self.rows);
        out.put_u64(self.min_seq.get());
        out.put_u64(self.max_seq.get());
        out.put_u64(self.row_bytes);
        out.put_u32(u32::try_from(self.sections.len()).expect("the writer bounds the number of sections"));
        out.put_u32(0);
        assert!(out.len() == FOOTER_FIXED_BYTES, "the footer's fixed part takes what the format says");
        for section in &self.sections {
            let start = out.len();
            out.put_u16(section.kind);
            out.put_u8(section.codec as u8);
            out.put_u8(0);
            out.put_u32(section.item);
            out.put_u64(section.offset);
            out.put_u64(section.len);
            out.put_u64(section.raw_len);
            out.put_u32(section.crc);
            out.put_zeros(12 + 16);
            assert!(out.len() - start == ENTRY_BYTES, "a directory entry takes what the format says");
        }
        out
    }

    /// Reads a footer whose checksum holds; `offset` is where it stands, and sections must lie before it.
    pub(crate) fn decode(file: &str, offset: u64, bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(file, offset, bytes);
        let mut footer = Self {
            id: SegmentId::from_raw(fields.u64()?),
            collection: CollectionId::from_raw(fields.u32()?),
            rows: fields.u32()?,
            min_seq: Seq::from_raw(fields.u64()?),
            max_seq: Seq::from_raw(fields.u64()?),
            row_bytes: fields.u64()?,
            sections: Vec::new(),
        };
        let count = fields.count(0)?;
        fields.zeros(4)?;
        if count > SECTIONS_MAX || count * ENTRY_BYTES != fields.left() {
            return Err(fields.corrupt(format_args!("{count} sections do not fit the footer's length")));
        }
        if footer.rows > super::ROWS_MAX || footer.min_seq > footer.max_seq {
            return Err(fields.corrupt("the footer's counts are impossible"));
        }
        footer.sections.reserve(count);
        for _ in 0..count {
            let section = decode_section(&mut fields, file, offset)?;
            footer.sections.push(section);
        }
        Ok(footer)
    }
}

fn decode_section(fields: &mut Fields<'_>, file: &str, footer_at: u64) -> Result<SectionInfo> {
    let kind = fields.u16()?;
    let codec = fields.u8()?;
    let cipher = fields.u8()?;
    let Some(codec) = Codec::from_raw(codec).filter(|codec| *codec != Codec::Lz4Dictionary && cipher == 0) else {
        let message = format!(
            "{file} holds a section packed with codec {codec} and cipher {cipher}, which this build does not read"
        );
        return Err(Error::new(ErrorKind::UnsupportedVersion, message));
    };
    let section = SectionInfo {
        kind,
        codec,
        item: fields.u32()?,
        offset: fields.u64()?,
        len: fields.u64()?,
        raw_len: fields.u64()?,
        crc: fields.u32()?,
    };
    fields.zeros(12 + 16)?;
    let inside = section.offset >= HEADER_BYTES as u64
        && section.offset.is_multiple_of(SECTION_ALIGN)
        && section.offset.checked_add(section.len).is_some_and(|end| end <= footer_at);
    let lengths = match codec {
        Codec::None => section.raw_len == section.len,
        Codec::Lz4 => section.raw_len <= lz4_raw_max(section.len),
        Codec::Lz4Dictionary => false,
    };
    if !inside || !lengths {
        return Err(fields.corrupt("a section lies outside the file or claims an impossible length"));
    }
    Ok(section)
}

/// The most that `len` bytes of LZ4 can unpack to: one byte adds at most 255.
pub(crate) const fn lz4_raw_max(len: u64) -> u64 {
    len.saturating_mul(255).saturating_add(64)
}

pub(crate) fn encode_header(id: SegmentId, collection: CollectionId) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&MAGIC);
    out.put_u32(VERSION);
    out.put_u32(0);
    out.put_u64(id.get());
    out.put_u32(collection.get());
    out.put_u32(0);
    out.resize(HEADER_BYTES, 0);
    out
}

/// What the end of a file says of its footer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) footer_bytes: u32,
    pub(crate) footer_crc: u32,
}

impl Trailer {
    pub(crate) fn encode(self) -> Vec<u8> {
        let mut out = Vec::with_capacity(TRAILER_BYTES);
        out.put_u32(self.footer_bytes);
        out.put_u32(self.footer_crc);
        out.put_u64(0);
        out.put_u32(VERSION);
        out.put_u32(0);
        out.extend_from_slice(&MAGIC);
        assert!(out.len() == TRAILER_BYTES, "the trailer takes what the format says");
        out
    }

    pub(crate) fn decode(file: &str, offset: u64, bytes: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(file, offset, bytes);
        let trailer = Self { footer_bytes: fields.u32()?, footer_crc: fields.u32()? };
        fields.zeros(8)?;
        let version = fields.u32()?;
        fields.zeros(4)?;
        let wrong = fields.corrupt("this is not the end of a segment file");
        if fields.bytes(8)? != MAGIC {
            return Err(wrong);
        }
        if version > VERSION {
            let message = format!(
                "{file} is of segment format version {version}, this build reads up to {VERSION}: open the database \
                 with the newer QuarryDB that wrote it"
            );
            return Err(Error::new(ErrorKind::UnsupportedVersion, message));
        }
        Ok(trailer)
    }
}

/// `seg-7.qseg`.
#[must_use]
pub fn segment_file_name(id: SegmentId) -> String {
    format!("{PREFIX}{}{SUFFIX}", id.get())
}

/// The number in a segment file's name.
#[must_use]
pub fn parse_segment_file_name(name: &str) -> Option<SegmentId> {
    let id = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok().map(SegmentId::from_raw)?;
    (segment_file_name(id) == name).then_some(id)
}

/// Makes the checksums of footer and sections right, as far as they can be found, so that a fuzzer gets behind them.
pub(crate) fn fuzz_seal(file: &[u8]) -> Vec<u8> {
    let mut out = file.to_vec();
    let Some(trailer_at) = out.len().checked_sub(TRAILER_BYTES) else { return out };
    let Ok(trailer) = Trailer::decode("", 0, &out[trailer_at..]) else { return out };
    let Some(footer_at) = trailer_at.checked_sub(trailer.footer_bytes as usize) else { return out };
    let sections = Footer::decode("", footer_at as u64, &out[footer_at..trailer_at]).map_or(Vec::new(), |f| f.sections);
    for (index, section) in sections.iter().enumerate() {
        if section.kind == KIND_ROWS {
            continue;
        }
        // `Footer::decode` has placed every section before the footer.
        let bytes = &out[section.offset as usize..(section.offset + section.len) as usize];
        let crc = crc32c::crc32c(bytes).to_le_bytes();
        let at = footer_at + FOOTER_FIXED_BYTES + index * ENTRY_BYTES + 32;
        out[at..at + 4].copy_from_slice(&crc);
    }
    let crc = crc32c::crc32c(&out[footer_at..trailer_at]).to_le_bytes();
    out[trailer_at + 4..trailer_at + 8].copy_from_slice(&crc);
    out
}
