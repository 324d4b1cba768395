//! The manifest's bytes.
//!
//! ```text
//! magic 8 | version u32 | zeros u32 | body length u64 | body crc u32 | crc of these 28 u32 | body
//! body: database u64, generation u64, next collection u32, zeros u32, next segment u64, next delete file u64,
//!       durable seq u64, has clean end u8, zeros 7, clean end seq u64, first log file u64, kept log file u64,
//!       watched u8, zeros 7, watched since seq u64,
//!       collections u32, segments u32, dropped u32, zeros u32, then their entries in this order
//! collection: id u32, db string, name string, options bytes, definitions bytes, created seq u64, sealed seq u64
//! segment:    meta 56 (see FORMAT.md), has deletes u8, indexes u8, zeros 6; with deletes: name string, length u64,
//!             crc u32, up to seq u64; for each index: number u32, crc u32, length u64, entries u64
//! dropped:    id u32, db string, name string, seq u64
//! ```
//!
//! Strings and bytes stand behind their length (u32). Takes bytes that may be anything; every count and length is held
//! against what is left before it is used.

use super::{CollectionEntry, DeleteFileRef, DroppedEntry, IndexFileRef, Manifest, SegmentEntry};
use crate::ids::{CollectionId, IndexId, LogFileId, SegmentId, Seq};
use crate::io::fields::{Fields, PutFields};
use crate::segment::SegmentMeta;
use crate::{Error, ErrorKind, Result};
use std::collections::HashSet;

const MAGIC: [u8; 8] = *b"QUARMAN\n";
/// The newest version this build reads and the one it writes.
pub(crate) const VERSION: u32 = 0;
const HEADER_BYTES: usize = 32;
const HEADER_SUMMED_BYTES: usize = 28;
/// The least an entry takes.
const COLLECTION_BYTES_MIN: usize = 4 + 4 * 4 + 2 * 8;
const SEGMENT_BYTES_MIN: usize = SegmentMeta::ENCODED_BYTES + 8;
const DROPPED_BYTES_MIN: usize = 4 + 2 * 4 + 8;

impl Manifest {
    /// The file's bytes; the same manifest gives the same.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        self.encode_body(&mut body);
        let mut out = Vec::with_capacity(HEADER_BYTES + body.len());
        out.extend_from_slice(&MAGIC);
        out.put_u32(VERSION);
        out.put_u32(0);
        out.put_u64(body.len() as u64);
        out.put_u32(crc32c::crc32c(&body));
        assert!(out.len() == HEADER_SUMMED_BYTES, "the header takes what the format says");
        let crc = crc32c::crc32c(&out);
        out.put_u32(crc);
        out.extend_from_slice(&body);
        out
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        out.put_u64(self.database);
        out.put_u64(self.generation);
        out.put_u32(self.next_collection.get());
        out.put_u32(0);
        out.put_u64(self.next_segment.get());
        out.put_u64(self.next_delete_file);
        out.put_u64(self.durable_at_least.get());
        out.put_u8(u8::from(self.clean_end.is_some()));
        out.put_zeros(7);
        out.put_u64(self.clean_end.unwrap_or_default().get());
        out.put_u64(self.first_log_file.get());
        out.put_u64(self.kept_log_file.get());
        out.put_u8(u8::from(self.watched_since.is_some()));
        out.put_zeros(7);
        out.put_u64(self.watched_since.unwrap_or_default().get());
        for count in [self.collections.len(), self.segments.len(), self.dropped.len()] {
            out.put_u32(u32::try_from(count).expect("ids are 32 bits or files are many bytes each"));
        }
        out.put_u32(0);
        for collection in &self.collections {
            out.put_u32(collection.id.get());
            out.put_short_bytes(collection.db.as_bytes());
            out.put_short_bytes(collection.name.as_bytes());
            out.put_short_bytes(&collection.options);
            out.put_short_bytes(&collection.definitions);
            out.put_u64(collection.created_seq.get());
            out.put_u64(collection.sealed_seq.get());
        }
        for segment in &self.segments {
            segment.meta.encode(out);
            out.put_u8(u8::from(segment.deletes.is_some()));
            out.put_u8(u8::try_from(segment.indexes.len()).expect("a collection has at most INDEXES_MAX"));
            out.put_zeros(6);
            if let Some(deletes) = &segment.deletes {
                out.put_short_bytes(deletes.name.as_bytes());
                out.put_u64(deletes.len);
                out.put_u32(deletes.crc);
                out.put_u64(deletes.up_to.get());
            }
            for file in &segment.indexes {
                out.put_u32(file.index.get());
                out.put_u32(file.crc);
                out.put_u64(file.len);
                out.put_u64(file.entries);
            }
        }
        for dropped in &self.dropped {
            out.put_u32(dropped.id.get());
            out.put_short_bytes(dropped.db.as_bytes());
            out.put_short_bytes(dropped.name.as_bytes());
            out.put_u64(dropped.seq.get());
        }
    }

    /// Reads a file's bytes.
    ///
    /// # Errors
    /// `Corrupt` with file and offset, `UnsupportedVersion`.
    pub fn decode(file: &str, bytes: &[u8]) -> Result<Self> {
        let Some((header, body)) = bytes.split_at_checked(HEADER_BYTES) else {
            return Err(Error::corrupt(file, 0, format!("{} bytes are too few for a manifest", bytes.len())));
        };
        let mut fields = Fields::new(file, 0, header);
        if fields.bytes(8)? != MAGIC {
            return Err(Error::corrupt(file, 0, "this is no manifest"));
        }
        let version = fields.u32()?;
        fields.zeros(4)?;
        let body_len = fields.u64()?;
        let body_crc = fields.u32()?;
        let header_crc = fields.u32()?;
        if header_crc != crc32c::crc32c(header.get(..HEADER_SUMMED_BYTES).unwrap_or_default()) {
            return Err(Error::corrupt(file, HEADER_SUMMED_BYTES as u64, "the header's checksum is wrong"));
        }
        // This much of a manifest is laid out alike in every version.
        if version > VERSION {
            let message = format!(
                "{file} is of format version {version}, this build reads up to {VERSION}: open the database with the \
                 newer QuarryDB that wrote it"
            );
            return Err(Error::new(ErrorKind::UnsupportedVersion, message));
        }
        if body_len != body.len() as u64 {
            let what = format!("the body has {} bytes, the header says {body_len}", body.len());
            return Err(Error::corrupt(file, bytes.len() as u64, what));
        }
        if body_crc != crc32c::crc32c(body) {
            return Err(Error::corrupt(file, HEADER_BYTES as u64, "the body's checksum is wrong"));
        }
        let mut fields = Fields::new(file, HEADER_BYTES as u64, body);
        let manifest = decode_body(&mut fields)?;
        fields.end()?;
        Ok(manifest)
    }
}

fn decode_body(fields: &mut Fields<'_>) -> Result<Manifest> {
    let (database, generation) = (fields.u64()?, fields.u64()?);
    let next_collection = CollectionId::from_raw(fields.u32()?);
    fields.zeros(4)?;
    let next_segment = SegmentId::from_raw(fields.u64()?);
    let next_delete_file = fields.u64()?;
    let durable_at_least = Seq::from_raw(fields.u64()?);
    let has_clean_end = flag(fields)?;
    let clean_end = Seq::from_raw(fields.u64()?);
    if !has_clean_end && clean_end != Seq::default() {
        return Err(fields.corrupt("a clean end is given and denied"));
    }
    let first_log_file = LogFileId::from_raw(fields.u64()?);
    let kept_log_file = LogFileId::from_raw(fields.u64()?);
    if kept_log_file > first_log_file {
        return Err(fields.corrupt("the log is kept from behind what is needed of it"));
    }
    let watched = flag(fields)?;
    let watched_since = Seq::from_raw(fields.u64()?);
    if !watched && watched_since != Seq::default() {
        return Err(fields.corrupt("change streams are given and denied"));
    }
    // Each is held against what is left for all three together; the entries themselves are checked one by one.
    let collections = fields.count(COLLECTION_BYTES_MIN)?;
    let segments = fields.count(SEGMENT_BYTES_MIN)?;
    let dropped = fields.count(DROPPED_BYTES_MIN)?;
    fields.zeros(4)?;
    let mut manifest = Manifest {
        database,
        generation,
        next_collection,
        next_segment,
        next_delete_file,
        durable_at_least,
        clean_end: has_clean_end.then_some(clean_end),
        first_log_file,
        kept_log_file,
        watched_since: watched.then_some(watched_since),
        collections: Vec::with_capacity(collections),
        segments: Vec::with_capacity(segments),
        dropped: Vec::with_capacity(dropped),
    };
    let mut known = HashSet::new();
    for _ in 0..collections {
        let wrong = fields.corrupt("a collection's number is named twice or was never given");
        let collection = decode_collection(fields)?;
        if collection.id >= next_collection || !known.insert(collection.id) {
            return Err(wrong);
        }
        manifest.collections.push(collection);
    }
    let mut known_segments = HashSet::new();
    for _ in 0..segments {
        let wrong = fields.corrupt("a segment is named twice, was never given a number or belongs to no collection");
        let segment = decode_segment(fields)?;
        let SegmentMeta { id, collection, .. } = segment.meta;
        if id >= next_segment || !known.contains(&collection) || !known_segments.insert(id) {
            return Err(wrong);
        }
        manifest.segments.push(segment);
    }
    for _ in 0..dropped {
        let id = CollectionId::from_raw(fields.u32()?);
        let (db, name) = (fields.string()?.to_owned(), fields.string()?.to_owned());
        manifest.dropped.push(DroppedEntry { id, seq: Seq::from_raw(fields.u64()?), db, name });
    }
    Ok(manifest)
}

fn decode_collection(fields: &mut Fields<'_>) -> Result<CollectionEntry> {
    Ok(CollectionEntry {
        id: CollectionId::from_raw(fields.u32()?),
        db: fields.string()?.to_owned(),
        name: fields.string()?.to_owned(),
        options: fields.short_bytes()?.to_vec(),
        definitions: fields.short_bytes()?.to_vec(),
        created_seq: Seq::from_raw(fields.u64()?),
        sealed_seq: Seq::from_raw(fields.u64()?),
    })
}

fn decode_segment(fields: &mut Fields<'_>) -> Result<SegmentEntry> {
    let meta = SegmentMeta::decode(fields)?;
    let wrong = fields.corrupt("a flag is neither 0 nor 1");
    let (has_deletes, indexes) = (fields.u8()?, fields.u8()?);
    fields.zeros(6)?;
    if has_deletes > 1 {
        return Err(wrong);
    }
    let deletes = if has_deletes == 1 {
        Some(DeleteFileRef {
            name: fields.string()?.to_owned(),
            len: fields.u64()?,
            crc: fields.u32()?,
            up_to: Seq::from_raw(fields.u64()?),
        })
    } else {
        None
    };
    let mut files: Vec<IndexFileRef> = Vec::with_capacity(indexes.into());
    for _ in 0..indexes {
        let wrong = fields.corrupt("an index of a segment is named twice");
        let file = IndexFileRef {
            index: IndexId::from_raw(fields.u32()?),
            crc: fields.u32()?,
            len: fields.u64()?,
            entries: fields.u64()?,
        };
        if files.iter().any(|other| other.index == file.index) {
            return Err(wrong);
        }
        files.push(file);
    }
    Ok(SegmentEntry { meta, deletes, indexes: files })
}

/// A yes or no in eight bytes, written one way only.
fn flag(fields: &mut Fields<'_>) -> Result<bool> {
    let wrong = fields.corrupt("a flag is neither 0 nor 1");
    let value = fields.u8()?;
    fields.zeros(7)?;
    match value {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(wrong),
    }
}
