//! Rows to a file, streaming.
//!
//! Takes rows in order, then sections of others, and gives the entry for the manifest. In memory at a time: one block,
//! a megabyte on its way to the file, 16 bytes a row for the primary run and about one for its `Seq`. The file bears a
//! temporary name until it is whole and synced; dropped before `finish`, it is removed.

use super::block::{BlockBuilder, BlockEntry, encode_table};
use super::format::{
    Codec, Footer, KIND_BLOCKS, KIND_DICTIONARY, KIND_FILTER, KIND_PRIMARY, KIND_ROWS, KIND_SEQS, SECTION_ALIGN,
    SectionInfo, SegmentMeta, Trailer, encode_header, segment_file_name,
};
use super::pack::Packer;
use super::seqs::SeqsBuilder;
use super::{KIND_FOREIGN_MIN, ROW_BYTES_MAX, ROWS_MAX, filter, primary};
use crate::ids::{CollectionId, RowId, SegmentId, Seq};
use crate::io::{File, Storage, TEMPORARY_SUFFIX};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// How much is gathered before it is written.
const WRITE_BYTES: usize = 1 << 20;

/// Writes one segment.
#[derive(Debug)]
pub struct SegmentWriter {
    output: Output,
    id: SegmentId,
    collection: CollectionId,
    blocks: BlockBuilder,
    entries: Vec<BlockEntry>,
    pairs: Vec<(u64, u32)>,
    seqs: SeqsBuilder,
    min_seq: Seq,
    max_seq: Seq,
    row_bytes: u64,
    rows_at: u64,
    dictionary: Option<Vec<u8>>,
    /// Set when the rows are closed and sections follow.
    sections: Vec<SectionInfo>,
}

impl SegmentWriter {
    /// Begins the file of segment `id`, under a temporary name, packed quickly.
    ///
    /// # Errors
    /// `OutOfDiskSpace`, `Io`, `Exists` when there is a segment of this number already.
    pub fn create(storage: Arc<dyn Storage>, id: SegmentId, collection: CollectionId) -> Result<Self> {
        Self::begin(storage, id, collection, None)
    }

    /// The same, packed as densely as can be with a `dictionary`; an empty one where there is none that helps.
    ///
    /// # Errors
    /// As `create`.
    pub fn create_dense(
        storage: Arc<dyn Storage>,
        id: SegmentId,
        collection: CollectionId,
        dictionary: Vec<u8>,
    ) -> Result<Self> {
        Self::begin(storage, id, collection, Some(dictionary))
    }

    fn begin(
        storage: Arc<dyn Storage>,
        id: SegmentId,
        collection: CollectionId,
        dictionary: Option<Vec<u8>>,
    ) -> Result<Self> {
        let mut output = Output::create(storage, segment_file_name(id))?;
        output.buffer.extend_from_slice(&encode_header(id, collection));
        let rows_at = output.position();
        Ok(Self {
            output,
            id,
            collection,
            blocks: BlockBuilder::new(dictionary.as_ref().map_or_else(Packer::quick, |d| Packer::dense(d))),
            entries: Vec::new(),
            pairs: Vec::new(),
            seqs: SeqsBuilder::default(),
            min_seq: Seq::from_raw(u64::MAX),
            max_seq: Seq::default(),
            row_bytes: 0,
            rows_at,
            dictionary,
            sections: Vec::new(),
        })
    }

    /// How many rows there are so far.
    #[must_use]
    pub fn rows(&self) -> u32 {
        // Bounded by ROWS_MAX in `push`.
        self.pairs.len() as u32
    }

    /// Bytes of the rows so far, before packing.
    #[must_use]
    pub fn row_bytes(&self) -> u64 {
        self.row_bytes
    }

    /// Adds a row behind the others and says which it is. `id_hash` is spread evenly over all 64 bits.
    ///
    /// # Errors
    /// `LimitExceeded` above `ROWS_MAX` rows or `ROW_BYTES_MAX` bytes, `OutOfDiskSpace`, `Io`, `Internal` after
    /// `add_section`.
    pub fn push(&mut self, seq: Seq, id_hash: u64, doc: &[u8]) -> Result<RowId> {
        let row = self.rows();
        if row >= ROWS_MAX || doc.len() > ROW_BYTES_MAX {
            let message = format!("a segment holds {ROWS_MAX} rows of up to {ROW_BYTES_MAX} bytes");
            return Err(Error::new(ErrorKind::LimitExceeded, message));
        }
        if !self.sections.is_empty() {
            return Err(Error::new(ErrorKind::Internal, "rows come before sections in a segment"));
        }
        if self.blocks.outgrown_by(doc.len()) {
            self.pack()?;
        }
        self.pairs.push((id_hash, row));
        self.seqs.push(seq.get());
        self.min_seq = self.min_seq.min(seq);
        self.max_seq = self.max_seq.max(seq);
        self.row_bytes += doc.len() as u64;
        if self.blocks.push(doc) {
            self.pack()?;
        }
        Ok(RowId::from_raw(row))
    }

    fn pack(&mut self) -> Result<()> {
        let entry = self.blocks.pack(&mut self.output.buffer, self.output.written);
        self.entries.push(entry);
        self.output.flush(WRITE_BYTES)
    }

    /// Puts bytes of another module into the file, to be found by (`kind`, `item`). After the last row.
    ///
    /// # Errors
    /// `Internal` for a kind below `KIND_FOREIGN_MIN` or a pair given twice, `OutOfDiskSpace`, `Io`.
    pub fn add_section(&mut self, kind: u16, item: u32, bytes: &[u8]) -> Result<()> {
        let known = self.sections.iter().any(|section| (section.kind, section.item) == (kind, item));
        if kind < KIND_FOREIGN_MIN || known {
            let message = format!("section {kind}.{item} of a segment is taken");
            return Err(Error::new(ErrorKind::Internal, message));
        }
        self.close_rows()?;
        self.put_section(kind, item, bytes)
    }

    fn put_section(&mut self, kind: u16, item: u32, bytes: &[u8]) -> Result<()> {
        self.output.align();
        let offset = self.output.position();
        self.output.buffer.extend_from_slice(bytes);
        let len = bytes.len() as u64;
        let crc = crc32c::crc32c(bytes);
        self.sections.push(SectionInfo { kind, item, codec: Codec::None, offset, len, raw_len: len, crc });
        self.output.flush(WRITE_BYTES)
    }

    /// Ends the rows and writes what finds them. Their section has no checksum of its own: each block has one.
    fn close_rows(&mut self) -> Result<()> {
        if !self.sections.is_empty() {
            return Ok(());
        }
        if !self.blocks.is_empty() {
            self.pack()?;
        }
        let (offset, len) = (self.rows_at, self.output.position() - self.rows_at);
        self.sections.push(SectionInfo {
            kind: KIND_ROWS,
            item: 0,
            codec: Codec::None,
            offset,
            len,
            raw_len: len,
            crc: 0,
        });
        self.put_section(KIND_BLOCKS, 0, &encode_table(&self.entries))?;
        let primary = primary::encode(&mut self.pairs);
        self.put_section(KIND_PRIMARY, 0, &primary)?;
        if self.pairs.len() >= filter::ROWS_MIN {
            self.put_section(KIND_FILTER, 0, &filter::encode(&self.pairs))?;
        }
        let seqs = std::mem::take(&mut self.seqs).finish();
        self.put_section(KIND_SEQS, 0, &seqs)?;
        let dictionary = self.dictionary.take();
        dictionary.map_or(Ok(()), |bytes| self.put_section(KIND_DICTIONARY, 0, &bytes))
    }

    /// Ends the file and makes it durable under its name. What is returned may go into the manifest once the log is
    /// durable up to `max_seq`.
    ///
    /// # Errors
    /// `InvalidInput` without a row, `OutOfDiskSpace`, `Io`; the file is removed then.
    pub fn finish(mut self) -> Result<SegmentMeta> {
        if self.pairs.is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "a segment without rows is not written"));
        }
        self.close_rows()?;
        self.output.align();
        let footer = Footer {
            id: self.id,
            collection: self.collection,
            rows: self.rows(),
            min_seq: self.min_seq,
            max_seq: self.max_seq,
            row_bytes: self.row_bytes,
            sections: std::mem::take(&mut self.sections),
        };
        let bytes = footer.encode();
        let trailer = Trailer {
            footer_bytes: u32::try_from(bytes.len()).map_err(|_| {
                Error::new(ErrorKind::LimitExceeded, "a segment has more sections than its footer can name")
            })?,
            footer_crc: crc32c::crc32c(&bytes),
        };
        self.output.buffer.extend_from_slice(&bytes);
        self.output.buffer.extend_from_slice(&trailer.encode());
        let file_bytes = self.output.position();
        self.output.publish()?;
        Ok(SegmentMeta {
            id: footer.id,
            collection: footer.collection,
            rows: footer.rows,
            min_seq: footer.min_seq,
            max_seq: footer.max_seq,
            row_bytes: footer.row_bytes,
            file_bytes,
            footer_bytes: trailer.footer_bytes,
            footer_crc: trailer.footer_crc,
        })
    }
}

/// The file on its way.
#[derive(Debug)]
struct Output {
    storage: Arc<dyn Storage>,
    file: Arc<dyn File>,
    name: String,
    temporary: String,
    buffer: Vec<u8>,
    /// How much of the file is written; the buffer comes behind.
    written: u64,
    published: bool,
}

impl Output {
    fn create(storage: Arc<dyn Storage>, name: String) -> Result<Self> {
        if storage.exists(&name)? {
            return Err(Error::new(ErrorKind::Exists, format!("{name} exists already")));
        }
        let temporary = format!("{name}{TEMPORARY_SUFFIX}");
        if storage.exists(&temporary)? {
            // Left by a crash: nothing names it.
            storage.remove(&temporary)?;
        }
        let file = storage.create(&temporary, 0)?;
        Ok(Self { storage, file, name, temporary, buffer: Vec::new(), written: 0, published: false })
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn align(&mut self) {
        let padding = self.position().next_multiple_of(SECTION_ALIGN) - self.position();
        self.buffer.resize(self.buffer.len() + padding as usize, 0);
    }

    /// Writes the buffer when it holds at least `enough`.
    fn flush(&mut self, enough: usize) -> Result<()> {
        if self.buffer.len() >= enough {
            self.file.write_at(self.written, &self.buffer)?;
            self.written += self.buffer.len() as u64;
            self.buffer.clear();
        }
        Ok(())
    }

    fn publish(&mut self) -> Result<()> {
        self.flush(0)?;
        self.file.sync_data()?;
        self.storage.rename(&self.temporary, &self.name)?;
        self.published = true;
        self.storage.sync_dir()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.published {
            // Failing leaves a temporary file, which the next opening sweeps away.
            let _ = self.storage.remove(&self.temporary);
        }
    }
}
