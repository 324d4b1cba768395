//! Puts documents in order: all of them, or the first few; in memory, or where that is not enough, by way of the host's spill.
//!
//! Takes a key of bytes with each document; those of equal keys stay in the order in which they came. Next: `sort.rs`.

use super::host::{Fault, Host, Pace, Spill};
use crate::QueryError;
use quarrydb_jsonb::JsonbRef;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Documents on their way into order.
pub(super) struct Sorter {
    /// Whose they are, for what goes wrong.
    stage: &'static str,
    /// How many are wanted; the first ones.
    keep: Option<u64>,
    /// The first so far, the last of them on top; where all are wanted they lie in `rows`.
    first: BinaryHeap<Row>,
    rows: Vec<Row>,
    arrived: u64,
    bytes: usize,
    spill: Option<Box<dyn Spill>>,
}

/// A key and, behind it, its document.
struct Row {
    bytes: Box<[u8]>,
    key: usize,
    arrived: u64,
}

/// What a row takes beside its bytes.
const ROW_BYTES: usize = size_of::<Row>() + 16;

impl Row {
    fn key(&self) -> &[u8] {
        self.bytes.get(..self.key).unwrap_or_default()
    }

    fn document(&self) -> &[u8] {
        self.bytes.get(self.key..).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        self.bytes.len() + ROW_BYTES
    }
}

impl Ord for Row {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(other.key()).then(self.arrived.cmp(&other.arrived))
    }
}

impl PartialOrd for Row {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Row {}

impl Sorter {
    /// Nothing yet; of all that comes the first `keep` are wanted, or all.
    pub(super) fn new(stage: &'static str, keep: Option<u64>) -> Self {
        Self { stage, keep, first: BinaryHeap::new(), rows: Vec::new(), arrived: 0, bytes: 0, spill: None }
    }

    /// Takes a document.
    pub(super) fn push(&mut self, key: &[u8], document: JsonbRef<'_>, host: &dyn Host) -> Result<(), Fault> {
        if let Some(spill) = &mut self.spill {
            return spill.push(key, document.as_bytes());
        }
        if let Some(keep) = self.keep
            && self.first.len() as u64 >= keep
        {
            // One that comes later with the same key stays behind.
            if self.first.peek().is_none_or(|last| key >= last.key()) {
                return Ok(());
            }
            self.bytes -= self.first.pop().map_or(0, |row| row.bytes());
        }
        let bytes = [key, document.as_bytes()].concat().into_boxed_slice();
        let row = Row { bytes, key: key.len(), arrived: self.arrived };
        self.arrived += 1;
        self.bytes += row.bytes();
        match self.keep {
            Some(_) => self.first.push(row),
            None => self.rows.push(row),
        }
        if self.bytes > host.stage_bytes() { self.spill(host) } else { Ok(()) }
    }

    #[cold]
    fn spill(&mut self, host: &dyn Host) -> Result<(), Fault> {
        let Some(mut spill) = host.spill()? else {
            return Err(memory_exceeded(self.stage, host.stage_bytes()).into());
        };
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend(std::mem::take(&mut self.first));
        rows.sort_unstable_by_key(|row| row.arrived);
        for row in rows {
            spill.push(row.key(), row.document())?;
        }
        self.spill = Some(spill);
        self.bytes = 0;
        Ok(())
    }

    /// Hands the documents out in order until `each` breaks.
    pub(super) fn finish(
        &mut self,
        host: &dyn Host,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<super::Flow, Fault>,
    ) -> Result<(), Fault> {
        let mut pace = Pace::default();
        let mut left = self.keep.unwrap_or(u64::MAX);
        if let Some(spill) = self.spill.take() {
            let mut sorted = spill.finish()?;
            while left > 0 {
                let Some((_, document)) = sorted.next()? else { break };
                left -= 1;
                pace.step(host)?;
                if each(JsonbRef::from_valid(document))?.is_break() {
                    break;
                }
            }
            return Ok(());
        }
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend(std::mem::take(&mut self.first));
        rows.sort_unstable();
        for row in rows {
            pace.step(host)?;
            if each(JsonbRef::from_valid(row.document()))?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

/// A stage that holds more than it may.
pub(super) fn memory_exceeded(stage: &str, bytes: usize) -> QueryError {
    let message = format!("{stage} exceeded its memory limit of {bytes} bytes, and may not use the disk");
    QueryError::new("QueryExceededMemoryLimitNoDiskUseAllowed", 292, message)
}
