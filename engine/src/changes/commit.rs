//! The changes of one commit, one after another, each with its place in it.
//!
//! Takes a payload; gives changes with spans into it. Every operation takes up places, also those that streams are not told
//! of, so that a place means the same for ever: as many as it has documents, one where it has none. Holds the payload, so
//! that a stream can stop in the middle and go on.

use crate::error::Result;
use crate::ids::CollectionId;
use crate::log::Payload;
use crate::txn::payload::{self, Op, Span};

/// One change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    /// Its place in the commit.
    pub index: u32,
    /// Whether none comes after it.
    pub is_last: bool,
    /// The collection that it is of; 0 where it is of a whole database.
    pub collection: CollectionId,
    /// What it is.
    pub what: What,
}

/// What a change is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A document is new.
    Insert(Span),
    /// A document was updated: as it is now, and what changed in it.
    Update(Span, Span),
    /// A document took the place of another.
    Replace(Span),
    /// The document with this `_id` is gone.
    Delete(Span),
    /// A collection is gone.
    Drop,
    /// A database is gone, by its name.
    DropDatabase(Span),
}

/// The changes that are left of a commit.
#[derive(Debug)]
pub(crate) struct Changes {
    payload: Payload,
    ops: Vec<Op>,
    /// The operation that comes next, and how many of its documents and of their bytes were given.
    op: usize,
    given: u32,
    bytes: u32,
    index: u32,
    total: u32,
}

impl Changes {
    /// All changes of a commit.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn new(payload: Payload) -> Result<Self> {
        let ops = payload::read(payload.bytes(), "the log", 0)?;
        let total = ops.iter().fold(0_u32, |sum, op| sum.saturating_add(places(op)));
        Ok(Self { payload, ops, op: 0, given: 0, bytes: 0, index: 0, total })
    }

    /// All of them again.
    pub(crate) fn rewind(&mut self) {
        (self.op, self.given, self.bytes, self.index) = (0, 0, 0, 0);
    }

    /// The payload that spans lie in.
    pub(crate) fn payload(&self) -> &[u8] {
        self.payload.bytes()
    }

    /// About what it holds in memory.
    pub(crate) fn held_bytes(&self) -> usize {
        self.payload.len() + self.ops.len() * size_of::<Op>()
    }

    /// The next change of those that `wanted` says yes to by their collection (0: of a database).
    ///
    /// # Errors
    /// What `wanted` gives.
    pub(crate) fn next(&mut self, wanted: &mut dyn FnMut(CollectionId) -> Result<bool>) -> Result<Option<Change>> {
        while let Some(op) = self.ops.get(self.op).cloned() {
            let (index, left) = (self.index, places(&op) - self.given);
            let is_new = self.given == 0;
            let what = match op {
                _ if left == 0 || is_new && !is_told(&op) => None,
                _ if is_new && !wanted(op.collection())? => None,
                Op::Insert { documents, .. } => self.value(documents).map(What::Insert),
                Op::Delete { ids, .. } => self.value(ids).map(What::Delete),
                Op::Update { document, change, .. } if change.len == 0 => Some(What::Replace(document)),
                Op::Update { document, change, .. } => Some(What::Update(document, change)),
                Op::Drop { .. } => Some(What::Drop),
                Op::DropDatabase { db } => Some(What::DropDatabase(db)),
                Op::Create { .. } | Op::CreateIndex { .. } | Op::IndexReady { .. } | Op::DropIndex { .. } => None,
            };
            let collection = op.collection();
            let taken = if what.is_some() { 1 } else { left };
            self.index = self.index.saturating_add(taken);
            self.given += taken;
            if taken == left {
                (self.op, self.given, self.bytes) = (self.op + 1, 0, 0);
            }
            if let Some(what) = what {
                return Ok(Some(Change { index, is_last: self.index == self.total, collection, what }));
            }
        }
        Ok(None)
    }

    /// The next of the values that lie one after another in `all`.
    fn value(&mut self, all: Span) -> Option<Span> {
        let (start, end) = ((all.start + self.bytes) as usize, (all.start + all.len) as usize);
        let len = quarrydb_jsonb::first_value(self.payload.bytes().get(start..end)?)?.as_bytes().len();
        self.bytes += len as u32;
        Some(Span::new(start, start + len))
    }
}

/// How many places an operation takes up.
fn places(op: &Op) -> u32 {
    match op {
        Op::Insert { count, .. } | Op::Delete { count, .. } => *count,
        _ => 1,
    }
}

/// Whether streams are told of it at all.
fn is_told(op: &Op) -> bool {
    match op {
        Op::Insert { .. } | Op::Update { .. } | Op::Delete { .. } | Op::Drop { .. } | Op::DropDatabase { .. } => true,
        Op::Create { .. } | Op::CreateIndex { .. } | Op::IndexReady { .. } | Op::DropIndex { .. } => false,
    }
}
