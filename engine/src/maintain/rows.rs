//! Rows to a new segment, whoever makes it: a seal from a tail, a compaction from segments.
//!
//! Takes documents in row order, gives the segment's entry for the manifest. Everything that a segment holds beside its
//! rows is made here, so that no way to a segment leaves any of it out. Knows nothing of why a row is kept.

use std::sync::Arc;

use quarrydb_jsonb::JsonbRef;

use crate::columns::Shredder;
use crate::core::Core;
use crate::error::Result;
use crate::ids::{CollectionId, RowId, SegmentId, Seq};
use crate::limits::SEGMENT_BYTES_MAX;
use crate::segment::{SegmentMeta, SegmentWriter};

/// How hard a segment is packed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Packing<'a> {
    /// Writers wait for it.
    Quick,
    /// As densely as can be, with this dictionary; an empty one where there is none that helps.
    Dense(&'a [u8]),
}

/// A segment on its way.
#[derive(Debug)]
pub(crate) struct RowsWriter {
    writer: SegmentWriter,
    columns: Option<Shredder>,
}

impl RowsWriter {
    /// Begins the file of segment `id`.
    ///
    /// # Errors
    /// `OutOfDiskSpace`, `Io`, `Exists` when there is a segment of this number already.
    pub(crate) fn create(core: &Core, id: SegmentId, collection: CollectionId, packing: Packing<'_>) -> Result<Self> {
        let storage = Arc::clone(&core.storage);
        let writer = match packing {
            Packing::Quick => SegmentWriter::create(storage, id, collection),
            Packing::Dense(dictionary) => SegmentWriter::create_dense(storage, id, collection, dictionary.to_vec()),
        }?;
        Ok(Self { writer, columns: core.options.columns.then(Shredder::new) })
    }

    /// Adds a document behind the others and says which row it is. `hash` is that of its `_id`.
    ///
    /// # Errors
    /// `LimitExceeded` above what a segment holds, `OutOfDiskSpace`, `Io`.
    pub(crate) fn push(&mut self, created: Seq, hash: u64, document: JsonbRef<'_>) -> Result<RowId> {
        let row = self.writer.push(created, hash, document.as_bytes())?;
        if let Some(columns) = &mut self.columns {
            columns.push(document)?;
        }
        Ok(row)
    }

    /// How many rows there are so far.
    pub(crate) fn rows(&self) -> u32 {
        self.writer.rows()
    }

    /// Bytes of the documents so far, before packing.
    pub(crate) fn row_bytes(&self) -> u64 {
        self.writer.row_bytes()
    }

    /// Whether the next row belongs in another segment, of `rows_max` rows at most.
    pub(crate) fn is_full(&self, rows_max: u32) -> bool {
        self.rows() >= rows_max || self.row_bytes() >= SEGMENT_BYTES_MAX
    }

    /// Ends the file and makes it durable under its name.
    ///
    /// # Errors
    /// `InvalidInput` without a row, `OutOfDiskSpace`, `Io`; the file is removed then.
    pub(crate) fn finish(mut self) -> Result<SegmentMeta> {
        if let Some(columns) = self.columns.take() {
            columns.write(&mut self.writer)?;
        }
        self.writer.finish()
    }
}
