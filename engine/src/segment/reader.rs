//! An open segment: rows by number, rows by hash, blocks for scans, sections of others.
//!
//! Opening reads the trailer and the footer, nothing else. Every section is read and checked when it is first asked
//! for; blocks each time they are read, for their checksum costs less than their unpacking. Damage is an error that
//! names file and offset. Shared by all threads, without a lock after the first touch.

use super::block::{BlockBuf, BlockEntry, BlockTable, BlockView};
use super::cache::{Block, BlockCache, DocRef};
use super::format::{
    Codec, Footer, HEADER_BYTES, KIND_BLOCKS, KIND_DICTIONARY, KIND_FILTER, KIND_PRIMARY, KIND_ROWS, KIND_SEQS,
    SectionInfo, SegmentMeta, TRAILER_BYTES, Trailer, encode_header, segment_file_name,
};
use super::pack::unpack;
use super::{filter, primary, seqs};
use crate::ids::{RowId, SegmentId, Seq};
use crate::io::{File, Section, Storage};
use crate::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// How much is read at a time while a checksum is computed.
const CHECK_BYTES: usize = 1 << 20;

/// An open segment.
#[derive(Debug)]
pub struct Segment {
    file: Arc<dyn File>,
    /// `seg-7.qseg`, whatever the handle was opened by.
    name: String,
    meta: SegmentMeta,
    sections: Vec<SectionInfo>,
    touched: Vec<OnceLock<Section>>,
    blocks: OnceLock<BlockTable>,
    dictionary: OnceLock<Section>,
    /// Which section it is.
    filter: Option<usize>,
    cache: Arc<BlockCache>,
}

thread_local! {
    /// Packed bytes of the block that this thread read last, for its room.
    static PACKED: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl Segment {
    /// Opens what the manifest names.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt` when length, footer or numbers are not those of `meta`, `UnsupportedVersion`, `Io`.
    pub fn open(storage: &dyn Storage, meta: SegmentMeta, cache: Arc<BlockCache>) -> Result<Self> {
        let name = segment_file_name(meta.id);
        let file = storage.open(&name)?;
        let (footer, found) = read_footer(&*file, &name, meta.id, Some(&meta))?;
        if found != meta {
            let at = found.file_bytes.saturating_sub(TRAILER_BYTES as u64);
            return Err(Error::corrupt(&name, at, "the footer is not the one the manifest names"));
        }
        let touched = footer.sections.iter().map(|_| OnceLock::new()).collect();
        let (blocks, dictionary) = (OnceLock::new(), OnceLock::new());
        let filter = footer.sections.iter().position(|section| section.kind == KIND_FILTER);
        Ok(Self { file, name, meta, sections: footer.sections, touched, blocks, dictionary, filter, cache })
    }

    /// What a segment's file says of itself, for who has lost the manifest.
    ///
    /// # Errors
    /// As `open`.
    pub fn read_meta(storage: &dyn Storage, id: SegmentId) -> Result<SegmentMeta> {
        let name = segment_file_name(id);
        let file = storage.open(&name)?;
        read_footer(&*file, &name, id, None).map(|(_, meta)| meta)
    }

    /// What the manifest holds of it.
    #[must_use]
    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    /// How many rows it has, dead ones too.
    #[must_use]
    pub fn rows(&self) -> u32 {
        self.meta.rows
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(&self) -> &str {
        &self.name
    }

    /// Every section in the file.
    #[must_use]
    pub fn sections(&self) -> &[SectionInfo] {
        &self.sections
    }

    /// A section by kind and item, checked, or `None` when the file has none such. The first touch reads all of it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn section(&self, kind: u16, item: u32) -> Result<Option<Section>> {
        let found = self.sections.iter().position(|section| (section.kind, section.item) == (kind, item));
        found.map(|index| self.touch(index).cloned()).transpose()
    }

    /// The section at `index` of the directory, read and checked if it was not yet.
    fn touch(&self, index: usize) -> Result<&Section> {
        let (Some(info), Some(slot)) = (self.sections.get(index), self.touched.get(index)) else {
            return Err(Error::new(ErrorKind::Internal, format!("{} has no section {index}", self.name)));
        };
        if let Some(section) = slot.get() {
            return Ok(section);
        }
        let section = self.load(info)?;
        let wrong = match info.kind {
            KIND_PRIMARY => primary::validate(&section, self.meta.rows).err(),
            KIND_SEQS => seqs::validate(&section, self.meta.rows).err(),
            KIND_FILTER => filter::validate(&section).err(),
            _ => None,
        };
        match wrong {
            Some(what) => Err(Error::corrupt(&self.name, info.offset, what)),
            // Two threads may have loaded it; both found it good.
            None => Ok(slot.get_or_init(|| section)),
        }
    }

    fn load(&self, info: &SectionInfo) -> Result<Section> {
        if self.checksum(info.offset, info.len)? != info.crc {
            return Err(Error::corrupt(&self.name, info.offset, "a section's checksum is wrong"));
        }
        let too_long = || Error::corrupt(&self.name, info.offset, "a section is longer than memory");
        let len = usize::try_from(info.len).map_err(|_| too_long())?;
        let stored = self.file.section(info.offset, len)?;
        if info.codec == Codec::None {
            return Ok(stored);
        }
        // `Footer::decode` has bounded the length by what the bytes can unpack to.
        let mut raw = vec![0; usize::try_from(info.raw_len).map_err(|_| too_long())?];
        unpack(info.codec, &stored, &mut raw, None).map_err(|what| Error::corrupt(&self.name, info.offset, what))?;
        Ok(Section::owned(raw))
    }

    /// The checksum of a run of the file, read piece by piece.
    fn checksum(&self, offset: u64, len: u64) -> Result<u32> {
        let mut buffer = vec![0; CHECK_BYTES.min(usize::try_from(len).unwrap_or(CHECK_BYTES))];
        let (mut at, mut crc) = (0, 0);
        while at < len {
            let some = usize::try_from(len - at).unwrap_or(CHECK_BYTES).min(buffer.len());
            let piece = &mut buffer[..some];
            self.file.read_at(offset + at, piece)?;
            crc = crc32c::crc32c_append(crc, piece);
            at += some as u64;
        }
        Ok(crc)
    }

    fn own(&self, kind: u16) -> Result<(usize, &SectionInfo)> {
        let found = self.sections.iter().enumerate().find(|(_, section)| section.kind == kind && section.item == 0);
        found.ok_or_else(|| {
            let what = format!("the directory lacks section {kind}");
            Error::corrupt(&self.name, self.meta.file_bytes.saturating_sub(TRAILER_BYTES as u64), what)
        })
    }

    fn blocks(&self) -> Result<&BlockTable> {
        if let Some(blocks) = self.blocks.get() {
            return Ok(blocks);
        }
        let (index, info) = self.own(KIND_BLOCKS)?;
        let rows_at = self.own(KIND_ROWS)?.1;
        let table = self.touch(index)?;
        let table = BlockTable::new(&self.name, info, table.clone(), self.meta.rows, rows_at)?;
        Ok(self.blocks.get_or_init(|| table))
    }

    /// Whether it is packed as densely as can be.
    #[must_use]
    pub fn is_dense(&self) -> bool {
        self.sections.iter().any(|section| section.kind == KIND_DICTIONARY)
    }

    /// What a block is unpacked with, where it needs that.
    fn dictionary(&self, codec: Codec) -> Result<Option<&[u8]>> {
        if codec != Codec::Lz4Dictionary {
            return Ok(None);
        }
        if let Some(dictionary) = self.dictionary.get() {
            return Ok(Some(dictionary));
        }
        let (index, _) = self.own(KIND_DICTIONARY)?;
        let section = self.touch(index)?.clone();
        Ok(Some(self.dictionary.get_or_init(|| section)))
    }

    /// How many blocks the rows are in.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn block_count(&self) -> Result<u32> {
        // The table holds each block's rows apart, so there are at most as many as rows.
        self.blocks().map(|blocks| blocks.len() as u32)
    }

    /// The block that holds `row`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Internal` when there is no such row.
    pub fn block_of(&self, row: RowId) -> Result<u32> {
        if row.get() >= self.meta.rows {
            return Err(Error::new(ErrorKind::Internal, format!("{} has no {row}", self.name)));
        }
        Ok(self.blocks()?.find(row.get()) as u32)
    }

    /// The rows in a block; blocks follow each other without a gap, and none reaches over a multiple of
    /// `BLOCK_ROWS_MAX`.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Internal` when there is no such block.
    pub fn block_rows(&self, block: u32) -> Result<Range<u32>> {
        self.entry(block).map(|(_, rows)| rows)
    }

    fn entry(&self, block: u32) -> Result<(BlockEntry, Range<u32>)> {
        let Some((entry, end)) = self.blocks()?.get(block as usize) else {
            return Err(Error::new(ErrorKind::Internal, format!("{} has no block {block}", self.name)));
        };
        Ok((entry, entry.first_row..end))
    }

    /// Reads, checks and unpacks a block into `buffer`, past the cache: for scans.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn read_block_into<'b>(&self, block: u32, buffer: &'b mut BlockBuf) -> Result<BlockView<'b>> {
        let (entry, rows) = self.entry(block)?;
        let BlockBuf { packed, raw, ahead, window } = buffer;
        let inside = |window: &Option<(SegmentId, u64)>, packed: &[u8]| {
            let (_, from) = window.filter(|(segment, from)| *segment == self.meta.id && *from <= entry.offset)?;
            let at = usize::try_from(entry.offset - from).ok()?;
            let end = at.checked_add(entry.len as usize).filter(|&end| end <= packed.len())?;
            Some(at..end)
        };
        let range = match inside(window, packed) {
            Some(range) => range,
            None => {
                // Bounded by the file: `rows_at` lies in it, and the entry in that.
                let rows_at = self.own(KIND_ROWS)?.1;
                let left = (rows_at.offset + rows_at.len).saturating_sub(entry.offset);
                let want = (*ahead as u64).min(left).max(u64::from(entry.len));
                *window = None;
                packed.resize(usize::try_from(want).unwrap_or(entry.len as usize), 0);
                self.file.read_at(entry.offset, packed)?;
                *window = Some((self.meta.id, entry.offset));
                0..entry.len as usize
            }
        };
        self.unpack_bytes(&entry, packed.get(range).unwrap_or_default(), raw)?;
        Ok(BlockView { first_row: rows.start, count: rows.end - rows.start, raw })
    }

    fn unpack_block(&self, entry: &BlockEntry, packed: &mut Vec<u8>, raw: &mut Vec<u8>) -> Result<()> {
        // Both lengths are bounded: by the file, and by what a block may hold.
        packed.resize(entry.len as usize, 0);
        self.file.read_at(entry.offset, packed)?;
        self.unpack_bytes(entry, packed, raw)
    }

    fn unpack_bytes(&self, entry: &BlockEntry, packed: &[u8], raw: &mut Vec<u8>) -> Result<()> {
        if crc32c::crc32c(packed) != entry.crc {
            return Err(Error::corrupt(&self.name, entry.offset, "a block's checksum is wrong"));
        }
        raw.resize(entry.raw_len as usize, 0);
        let dictionary = self.dictionary(entry.codec)?;
        unpack(entry.codec, packed, raw, dictionary).map_err(|what| Error::corrupt(&self.name, entry.offset, what))
    }

    /// A row's bytes, by way of the cache.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Internal` when there is no such row.
    pub fn doc(&self, row: RowId) -> Result<DocRef> {
        let number = self.block_of(row)?;
        let (entry, rows) = self.entry(number)?;
        let block = match self.cache.get(self.meta.id, number) {
            Some(block) => block,
            None => {
                let (mut packed, mut raw) = (PACKED.take(), Vec::new());
                let unpacked = self.unpack_block(&entry, &mut packed, &mut raw);
                PACKED.set(packed);
                unpacked?;
                let block = Arc::new(Block { count: rows.end - rows.start, raw });
                self.cache.offer(self.meta.id, number, &block);
                block
            }
        };
        let index = (row.get() - rows.start) as usize;
        DocRef::new(block, index)
            .ok_or_else(|| Error::corrupt(&self.name, entry.offset, "the ends of a block's rows are impossible"))
    }

    /// The commit that put `row` there.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Internal` when there is no such row.
    pub fn seq_of(&self, row: RowId) -> Result<Seq> {
        // One commit for all rows: nothing to look up.
        if self.meta.min_seq == self.meta.max_seq && row.get() < self.meta.rows {
            return Ok(self.meta.min_seq);
        }
        let section = self.touch(self.own(KIND_SEQS)?.0)?;
        let missing = || Error::new(ErrorKind::Internal, format!("{} has no {row}", self.name));
        let found = if row.get() < self.meta.rows { seqs::get(section, self.meta.rows, row.get()) } else { None };
        found.map(Seq::from_raw).ok_or_else(missing)
    }

    /// The `Seq`s of a range of rows, in order, appended to `out`: cheaper than one by one.
    ///
    /// # Errors
    /// `Corrupt`, `Io`; `Internal` when the range is not within the rows.
    pub fn seqs(&self, rows: Range<u32>, out: &mut Vec<u64>) -> Result<()> {
        let section = self.touch(self.own(KIND_SEQS)?.0)?;
        let inside = rows.end <= self.meta.rows;
        let found = if inside { seqs::get_range(section, self.meta.rows, rows.clone(), out) } else { None };
        found.ok_or_else(|| Error::new(ErrorKind::Internal, format!("{} has no rows {rows:?}", self.name)))
    }

    /// The rows whose key may have this hash; the caller compares the keys.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub fn probe(&self, id_hash: u64) -> Result<SmallVec<[RowId; 2]>> {
        // Small segments have none.
        if let Some(index) = self.filter
            && !filter::may_hold(self.touch(index)?, id_hash)
        {
            return Ok(SmallVec::new());
        }
        let section = self.touch(self.own(KIND_PRIMARY)?.0)?;
        Ok(primary::probe(section, id_hash))
    }

    /// Reads the whole file and checks all there is to check: header, every section, every block and row.
    ///
    /// # Errors
    /// `Corrupt` for the first damage found, `Io`.
    pub fn verify(&self) -> Result<()> {
        let mut header = [0; HEADER_BYTES];
        self.file.read_at(0, &mut header)?;
        if header[..] != encode_header(self.meta.id, self.meta.collection)[..] {
            return Err(Error::corrupt(&self.name, 0, "this is not the header of a segment file"));
        }
        for (index, info) in self.sections.iter().enumerate() {
            if info.kind == KIND_ROWS {
                continue;
            }
            // Not by `touch`: what was good when it was first read may be bad now.
            if self.checksum(info.offset, info.len)? != info.crc {
                return Err(Error::corrupt(&self.name, info.offset, "a section's checksum is wrong"));
            }
            let section = self.touch(index)?;
            if info.kind == KIND_PRIMARY {
                primary::validate_deeply(section, self.meta.rows)
                    .map_err(|what| Error::corrupt(&self.name, info.offset, what))?;
            }
        }
        self.verify_rows()?;
        self.verify_seqs()
    }

    fn verify_rows(&self) -> Result<()> {
        let mut buffer = BlockBuf::default();
        let mut row_bytes = 0;
        for block in 0..self.block_count()? {
            let view = self.read_block_into(block, &mut buffer)?;
            let rows = view.docs().inspect(|doc| row_bytes += doc.len() as u64).count();
            if rows != view.count as usize {
                let at = self.entry(block)?.0.offset;
                return Err(Error::corrupt(&self.name, at, "the ends of a block's rows are impossible"));
            }
        }
        if row_bytes != self.meta.row_bytes {
            let what = format!("rows hold {row_bytes} bytes, the footer says {}", self.meta.row_bytes);
            return Err(Error::corrupt(&self.name, HEADER_BYTES as u64, what));
        }
        Ok(())
    }

    fn verify_seqs(&self) -> Result<()> {
        let mut seqs = Vec::new();
        self.seqs(0..self.meta.rows, &mut seqs)?;
        let bounds = (seqs.iter().min().copied(), seqs.iter().max().copied());
        if bounds != (Some(self.meta.min_seq.get()), Some(self.meta.max_seq.get())) {
            let at = self.own(KIND_SEQS)?.1.offset;
            return Err(Error::corrupt(&self.name, at, "the rows' seqs are not within the footer's"));
        }
        Ok(())
    }
}

/// Reads trailer and footer. With `expected`, length and checksum must be the manifest's before anything is believed.
fn read_footer(
    file: &dyn File,
    name: &str,
    id: SegmentId,
    expected: Option<&SegmentMeta>,
) -> Result<(Footer, SegmentMeta)> {
    let file_bytes = file.len()?;
    if expected.is_some_and(|meta| meta.file_bytes != file_bytes) {
        let what =
            format!("the file has {file_bytes} bytes, the manifest says {}", expected.map_or(0, |m| m.file_bytes));
        return Err(Error::corrupt(name, file_bytes, what));
    }
    let Some(trailer_at) = file_bytes.checked_sub(TRAILER_BYTES as u64) else {
        return Err(Error::corrupt(name, 0, "the file is too short for a segment"));
    };
    let mut bytes = [0; TRAILER_BYTES];
    file.read_at(trailer_at, &mut bytes)?;
    let trailer = Trailer::decode(name, trailer_at, &bytes)?;
    let Some(footer_at) = trailer_at.checked_sub(u64::from(trailer.footer_bytes)) else {
        return Err(Error::corrupt(name, trailer_at, "the footer is longer than the file"));
    };
    let mut bytes = vec![0; trailer.footer_bytes as usize];
    file.read_at(footer_at, &mut bytes)?;
    let crc = crc32c::crc32c(&bytes);
    if crc != trailer.footer_crc || expected.is_some_and(|meta| meta.footer_crc != crc) {
        return Err(Error::corrupt(name, footer_at, "the footer's checksum is wrong"));
    }
    let footer = Footer::decode(name, footer_at, &bytes)?;
    if footer.id != id {
        return Err(Error::corrupt(name, footer_at, format!("by its footer it is {}", segment_file_name(footer.id))));
    }
    let meta = SegmentMeta {
        id,
        collection: footer.collection,
        rows: footer.rows,
        min_seq: footer.min_seq,
        max_seq: footer.max_seq,
        row_bytes: footer.row_bytes,
        file_bytes,
        footer_bytes: trailer.footer_bytes,
        footer_crc: trailer.footer_crc,
    };
    Ok((footer, meta))
}
