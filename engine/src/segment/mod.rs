//! A segment: up to a million rows in one immutable file.
//!
//! Takes rows (bytes, the `Seq` and the key's hash of each) once, in order; gives them back by row number, finds rows
//! by hash, and carries whatever sections others put beside them (columns, postings). Knows nothing of what is in a
//! row. What changes about a segment, which rows are dead, lies beside it in `deletes.rs`.
//!
//! A file is written under a temporary name, synced, renamed, the directory synced; only then may a manifest name it.
//! It is never written again. Nothing in it is believed before its checksum: the footer's stands in the manifest, the
//! sections' and blocks' in the footer or below it. First touches read with `read_at`, so that a failing disk is an
//! error and not a signal.
//!
//! Reading order: `format.rs` (footer, directory), `block.rs` (rows), `pack.rs`, `primary.rs` (hash to rows) with
//! `filter.rs` in front, `seqs.rs` (row to
//! `Seq`), `writer.rs`, `reader.rs`, `cache.rs`, `deletes.rs`. Bytes: FORMAT.md.

mod block;
mod cache;
mod deletes;
mod filter;
mod format;
mod lz4_hc;
mod pack;
mod primary;
mod reader;
mod seqs;
mod writer;

pub use block::{BlockBuf, BlockView};
pub use cache::{BlockCache, DocRef};
pub use deletes::{DeadRows, Deletes, delete_file_name, parse_delete_file_name};
pub(crate) use format::fuzz_seal;
pub use format::{Codec, SectionInfo, SegmentMeta, parse_segment_file_name, segment_file_name};
pub use pack::{DENSE_BYTES_MIN, sample_bytes, train};
pub use reader::Segment;
pub use writer::SegmentWriter;

/// The most rows one segment holds.
pub const ROWS_MAX: u32 = 1 << 20;
/// A block is closed when its rows' bytes reach this.
pub const BLOCK_BYTES_TARGET: usize = 8 << 10;
/// The same of a block packed with a dictionary, which need not be long to be packed well.
pub const DENSE_BLOCK_BYTES_TARGET: usize = 2 << 10;
/// No block reaches over a multiple of this many rows, so that work cut along it shares no block.
pub const BLOCK_ROWS_MAX: u32 = 4096;
/// The longest row: a document at its limit and room for what is stored around it.
pub const ROW_BYTES_MAX: usize = 64 << 20;
/// Kinds of sections from here on belong to other modules (columns, postings): `SegmentWriter::add_section`.
pub const KIND_FOREIGN_MIN: u16 = 256;

const _: () = assert!(ROWS_MAX.is_multiple_of(BLOCK_ROWS_MAX));
const _: () = assert!(ROW_BYTES_MAX + BLOCK_BYTES_TARGET < u32::MAX as usize);

#[cfg(test)]
mod segment_tests;
