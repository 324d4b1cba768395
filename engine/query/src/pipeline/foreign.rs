//! The other side of a join: the documents of a collection that have one of some values at a path.
//!
//! Asked of the host where it has a way to find them. Where it would read the whole collection each time, the documents
//! are read once and found by hash from then on, as long as memory allows. Both give the same, in row order.

use super::host::{Fault, Host, Pace};
use super::operator::Flow;
use super::written::Pile;
use crate::Filter;
use crate::path_walk::{FieldPath, Leaf, any};
use hashbrown::HashMap;
use quarrydb_jsonb::{JsonbRef, NULL, sort_key};

/// How often the host is asked before the collection is read whole.
const ASKED_FIRST: u32 = 8;

/// One collection and one path of it.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    asked: u32,
    table: Option<Table>,
    too_large: bool,
    pace: Pace,
}

/// All documents, and which have which value.
#[derive(Debug, Default)]
struct Table {
    documents: Pile,
    rows: HashMap<Box<[u8]>, Vec<u32>>,
    bytes: usize,
}

/// What an entry of the table takes beside its key.
const ENTRY_BYTES: usize = 64;

impl Foreign {
    /// Calls `each` with the documents that have one of the `values` (an array) at `path` and match `filter`.
    pub(super) fn each(
        &mut self,
        (collection, path): (&str, &FieldPath),
        values: JsonbRef<'_>,
        filter: Option<&Filter>,
        host: &dyn Host,
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        self.asked = self.asked.saturating_add(1);
        self.pace.step(host)?;
        if self.table.is_none() && !self.too_large && self.asked > ASKED_FIRST {
            self.table = match host.finds_by(None, collection, path) {
                true => None,
                false => Table::read(collection, path, host)?,
            };
            self.too_large = self.table.is_none();
        }
        if let Some(table) = &self.table {
            return table.each(values, filter, (host, &mut self.pace), each);
        }
        let mut asked = Filter::one_of(path, values);
        if let Some(filter) = filter {
            asked = asked.and(filter.clone());
        }
        host.find(None, collection, &asked, each)
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.table.as_ref().map_or(0, |table| table.documents.bytes() + table.bytes)
    }
}

impl Table {
    /// Reads a collection; none where it takes more than half of what a stage may.
    fn read(collection: &str, path: &FieldPath, host: &dyn Host) -> Result<Option<Self>, Fault> {
        let mut table = Self::default();
        let most = host.stage_bytes() / 2;
        let (mut key, mut fits) = (Vec::new(), true);
        host.find(None, collection, &Filter::everything(), &mut |document| {
            fits = table.add(document, path, &mut key) && table.documents.bytes() + table.bytes <= most;
            Ok(if fits { Flow::Continue(()) } else { Flow::Break(()) })
        })?;
        Ok(fits.then_some(table))
    }

    fn add(&mut self, document: JsonbRef<'_>, path: &FieldPath, key: &mut Vec<u8>) -> bool {
        let Ok(row) = u32::try_from(self.documents.len()) else { return false };
        self.documents.push(document);
        any(path, document, Leaf::Elements, |candidate, _| {
            key.clear();
            sort_key(candidate.unwrap_or(NULL), key);
            let rows = match self.rows.get_mut(key.as_slice()) {
                Some(rows) => rows,
                None => {
                    self.bytes += key.len() + ENTRY_BYTES;
                    self.rows.entry(key.as_slice().into()).or_default()
                }
            };
            if rows.last() != Some(&row) {
                rows.push(row);
                self.bytes += size_of::<u32>();
            }
            false
        });
        true
    }

    fn each(
        &self,
        values: JsonbRef<'_>,
        filter: Option<&Filter>,
        (host, pace): (&dyn Host, &mut Pace),
        each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>,
    ) -> Result<(), Fault> {
        let (mut rows, mut key) = (Vec::<u32>::new(), Vec::new());
        for value in values.as_array().into_iter().flatten() {
            key.clear();
            sort_key(value, &mut key);
            rows.extend(self.rows.get(key.as_slice()).into_iter().flatten());
        }
        rows.sort_unstable();
        rows.dedup();
        for row in rows {
            pace.step(host)?;
            let Some(document) = self.documents.get(row as usize) else { continue };
            if let Some(filter) = filter
                && !filter.matches_within(document, host.budget())?
            {
                continue;
            }
            if each(document)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
