//! What one commit says, as the bytes of a log record: documents first, then the operations that refer to them.
//!
//! Takes documents already encoded one after another in a buffer (the request's own: it becomes the record without a
//! copy, and the tail's rows point into it) and operations; gives the payload, and reads one back for replay, change
//! streams and followers. It must not be able to fail replay for a reason that a user caused, so every length in it is
//! checked against the payload and nothing else is asked of it. Bytes are stated in FORMAT.md. Next: `commit.rs`.

use crate::error::{Error, Result};
use crate::ids::{CollectionId, IndexId};

/// The kind of log record that holds a commit.
pub(crate) const RECORD_COMMIT: u8 = 1;

/// A range of the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    /// Where it begins.
    pub start: u32,
    /// Its length in bytes.
    pub len: u32,
}

impl Span {
    /// Of `start..end`, which callers keep below `limits::COMMIT_BYTES_MAX`.
    #[must_use]
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, len: end.saturating_sub(start) as u32 }
    }

    /// Its bytes in `payload`; empty where it does not lie inside.
    #[must_use]
    pub(crate) fn of(self, payload: &[u8]) -> &[u8] {
        let start = self.start as usize;
        payload.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// One thing that a commit does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// Documents that lie one after another.
    Insert {
        /// Into which collection.
        collection: CollectionId,
        /// All of them.
        documents: Span,
        /// How many.
        count: u32,
    },
    /// A document takes the place of the one with its `_id`.
    Update {
        /// In which collection.
        collection: CollectionId,
        /// The document as it is now.
        document: Span,
        /// What changed, an object (`updatedFields`, `removedFields`, `truncatedArrays`); empty where it was replaced as a
        /// whole, and where no change stream was ever opened.
        change: Span,
    },
    /// The document with this `_id` goes.
    Delete {
        /// From which collection.
        collection: CollectionId,
        /// The `_id` values, one after another.
        ids: Span,
        /// How many.
        count: u32,
    },
    /// A collection begins.
    Create {
        /// Its number.
        collection: CollectionId,
        /// Its database's name.
        db: Span,
        /// Its name.
        name: Span,
        /// Its options, an object.
        options: Span,
    },
    /// A collection ends.
    Drop {
        /// Its number.
        collection: CollectionId,
    },
    /// An index is declared; it is to be built.
    CreateIndex {
        /// Of which collection.
        collection: CollectionId,
        /// What it is, an object.
        definition: Span,
        /// Its number there.
        index: IndexId,
    },
    /// An index is built: it serves from here on.
    IndexReady {
        /// Of which collection.
        collection: CollectionId,
        /// Its number there.
        index: IndexId,
    },
    /// An index ends.
    DropIndex {
        /// Of which collection.
        collection: CollectionId,
        /// Its number there.
        index: IndexId,
    },
    /// A database ended with all its collections, which operations before this one say.
    DropDatabase {
        /// Its name.
        db: Span,
    },
}

impl Op {
    /// The collection that it is about; 0 where it is about none.
    #[must_use]
    pub(crate) fn collection(&self) -> CollectionId {
        match *self {
            Self::Insert { collection, .. }
            | Self::Update { collection, .. }
            | Self::Delete { collection, .. }
            | Self::Create { collection, .. }
            | Self::Drop { collection }
            | Self::CreateIndex { collection, .. }
            | Self::IndexReady { collection, .. }
            | Self::DropIndex { collection, .. } => collection,
            Self::DropDatabase { .. } => CollectionId::default(),
        }
    }
}

const OP_INSERT: u8 = 1;
const OP_UPDATE: u8 = 2;
const OP_DELETE: u8 = 3;
const OP_CREATE: u8 = 4;
const OP_DROP: u8 = 5;
const OP_CREATE_INDEX: u8 = 6;
const OP_INDEX_READY: u8 = 7;
const OP_DROP_INDEX: u8 = 8;
const OP_DROP_DATABASE: u8 = 9;
/// Where the operations begin and how many they are: the last eight bytes.
const TRAILER_BYTES: usize = 8;

/// Ends a payload whose documents stand in `bytes`.
#[must_use]
pub(crate) fn finish(mut bytes: Vec<u8>, ops: &[Op]) -> Vec<u8> {
    let table = bytes.len() as u32;
    bytes.reserve(ops.len() * 29 + TRAILER_BYTES);
    for op in ops {
        let (kind, collection, spans, count): (u8, CollectionId, [Option<Span>; 3], Option<u32>) = match *op {
            Op::Insert { collection, documents, count } => {
                (OP_INSERT, collection, [Some(documents), None, None], Some(count))
            }
            Op::Update { collection, document, change } => {
                (OP_UPDATE, collection, [Some(document), Some(change), None], None)
            }
            Op::Delete { collection, ids, count } => (OP_DELETE, collection, [Some(ids), None, None], Some(count)),
            Op::Create { collection, db, name, options } => {
                (OP_CREATE, collection, [Some(db), Some(name), Some(options)], None)
            }
            Op::Drop { collection } => (OP_DROP, collection, [None; 3], None),
            Op::CreateIndex { collection, definition, index } => {
                (OP_CREATE_INDEX, collection, [Some(definition), None, None], Some(index.get()))
            }
            Op::IndexReady { collection, index } => (OP_INDEX_READY, collection, [None; 3], Some(index.get())),
            Op::DropIndex { collection, index } => (OP_DROP_INDEX, collection, [None; 3], Some(index.get())),
            Op::DropDatabase { db } => (OP_DROP_DATABASE, CollectionId::default(), [Some(db), None, None], None),
        };
        bytes.push(kind);
        bytes.extend_from_slice(&collection.get().to_le_bytes());
        for span in spans.into_iter().flatten() {
            bytes.extend_from_slice(&span.start.to_le_bytes());
            bytes.extend_from_slice(&span.len.to_le_bytes());
        }
        if let Some(count) = count {
            bytes.extend_from_slice(&count.to_le_bytes());
        }
    }
    bytes.extend_from_slice(&table.to_le_bytes());
    bytes.extend_from_slice(&(ops.len() as u32).to_le_bytes());
    // It lives as long as the tail: room that a request's buffer has left over is given back.
    if bytes.capacity() - bytes.len() > bytes.len() / 4 {
        bytes.shrink_to_fit();
    }
    bytes
}

/// The operations of a payload.
///
/// # Errors
/// `Corrupt`, naming `file` and the offset inside it, when a length does not fit; `at` is the payload's place.
pub(crate) fn read(payload: &[u8], file: &str, at: u64) -> Result<Vec<Op>> {
    let bad = |offset: usize, what: &str| Error::corrupt(file, at + offset as u64, what);
    let Some((body, trailer)) = payload.split_last_chunk::<TRAILER_BYTES>() else {
        return Err(bad(0, "a commit shorter than its trailer"));
    };
    let word = |b: &[u8]| b.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
    let (table, count) = (word(trailer) as usize, word(&trailer[4..]) as usize);
    let Some(mut rest) = body.get(table..) else {
        return Err(bad(body.len(), "the table of operations begins beyond the commit"));
    };
    // Five bytes are the least that an operation takes.
    if count > rest.len() / 5 {
        return Err(bad(body.len() + 4, "more operations than the commit has room for"));
    }
    let mut ops = Vec::with_capacity(count);
    for _ in 0..count {
        let offset = body.len() - rest.len();
        let cut = || bad(offset, "an operation is cut short");
        let (&kind, after) = rest.split_first().ok_or_else(cut)?;
        rest = after;
        let mut next = || -> Result<u32> {
            let (word, after) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
            rest = after;
            Ok(u32::from_le_bytes(*word))
        };
        let collection = CollectionId::from_raw(next()?);
        let mut span = || -> Result<Span> {
            let span = Span { start: next()?, len: next()? };
            if span.start as usize + span.len as usize > table {
                return Err(bad(offset, "an operation refers beyond the documents"));
            }
            Ok(span)
        };
        let op = match kind {
            OP_INSERT => {
                let documents = span()?;
                Op::Insert { collection, documents, count: next()? }
            }
            OP_UPDATE => Op::Update { collection, document: span()?, change: span()? },
            OP_DELETE => {
                let ids = span()?;
                Op::Delete { collection, ids, count: next()? }
            }
            OP_CREATE => Op::Create { collection, db: span()?, name: span()?, options: span()? },
            OP_DROP => Op::Drop { collection },
            OP_CREATE_INDEX => {
                let definition = span()?;
                Op::CreateIndex { collection, definition, index: IndexId::from_raw(next()?) }
            }
            OP_INDEX_READY => Op::IndexReady { collection, index: IndexId::from_raw(next()?) },
            OP_DROP_INDEX => Op::DropIndex { collection, index: IndexId::from_raw(next()?) },
            OP_DROP_DATABASE => Op::DropDatabase { db: span()? },
            _ => return Err(bad(offset, "an operation of unknown kind")),
        };
        ops.push(op);
    }
    if !rest.is_empty() {
        return Err(bad(body.len() - rest.len(), "bytes after the last operation"));
    }
    Ok(ops)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Vec<u8>, Vec<Op>) {
        let collection = CollectionId::from_raw(7);
        let ops = vec![
            Op::Insert { collection, documents: Span::new(0, 10), count: 2 },
            Op::Update { collection, document: Span::new(2, 5), change: Span::new(5, 5) },
            Op::Delete { collection, ids: Span::new(1, 3), count: 1 },
            Op::Create { collection, db: Span::new(0, 1), name: Span::new(1, 2), options: Span::new(2, 3) },
            Op::Drop { collection },
            Op::CreateIndex { collection, definition: Span::new(3, 7), index: IndexId::from_raw(9) },
            Op::IndexReady { collection, index: IndexId::from_raw(9) },
            Op::DropIndex { collection, index: IndexId::from_raw(9) },
            Op::DropDatabase { db: Span::new(2, 6) },
        ];
        (finish((0..10).collect(), &ops), ops)
    }

    #[test]
    fn operations_are_read_back() {
        let (payload, ops) = sample();
        assert_eq!(read(&payload, "log", 0).expect("whole"), ops);
    }

    #[test]
    fn no_cut_or_flipped_payload_panics() {
        let (payload, _) = sample();
        for len in 0..payload.len() {
            assert!(read(&payload[..len], "log", 0).is_err());
        }
        for at in 0..payload.len() {
            for bit in 0..8 {
                let mut bad = payload.clone();
                bad[at] ^= 1 << bit;
                let _ = read(&bad, "log", 0);
            }
        }
    }
}
