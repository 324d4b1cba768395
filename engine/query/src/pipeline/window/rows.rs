//! The rows of one partition: what functions need of them in memory, the documents there or where the host has room.
//!
//! Takes documents in order, gives them back once in the same order. Values lie in columns by row. Knows no function.

use super::function::WindowFunction;
use crate::QueryError;
use crate::expr::Datum;
use crate::pipeline::{Fault, Flow, Host, Spill};
use quarrydb_jsonb::JsonbRef;

/// Values or keys by row; what is missing has no bytes.
#[derive(Debug, Default)]
pub(super) struct Column {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Column {
    /// Of no rows.
    pub(super) const EMPTY: Self = Self { bytes: Vec::new(), ends: Vec::new() };

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    /// Appends the value of an expression.
    pub(super) fn push_datum(&mut self, value: &Datum<'_>) -> Result<(), QueryError> {
        match value {
            Datum::Missing => self.push(&[]),
            value => self.push(value.encoded()?.view().as_bytes()),
        }
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The bytes of a row.
    pub(super) fn slice(&self, row: usize) -> &[u8] {
        let start = row.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(row).and_then(|end| self.bytes.get(start..*end)).unwrap_or_default()
    }

    /// The value of a row; none where it is missing.
    pub(super) fn get(&self, row: usize) -> Option<JsonbRef<'_>> {
        Some(self.slice(row)).filter(|bytes| !bytes.is_empty()).map(JsonbRef::from_valid)
    }

    /// The same for computing with.
    pub(super) fn datum(&self, row: usize) -> Datum<'_> {
        Datum::from(self.get(row))
    }

    fn memory(&self) -> usize {
        self.bytes.len() + self.ends.len() * size_of::<usize>()
    }
}

/// The rows of a partition.
#[derive(Default)]
pub(super) struct Rows {
    documents: Column,
    spilled: Option<Box<dyn Spill>>,
    count: usize,
    /// What each function takes of each row.
    pub(super) arguments: Vec<Column>,
    /// The key of each row in the function's own sort.
    pub(super) keys: Vec<Column>,
    /// The value that rows are sorted by, where a function looks at it.
    pub(super) sort_values: Column,
    /// The key that rows are sorted by.
    pub(super) sort_keys: Column,
    /// What all functions keep for each row while they go over them.
    bytes_per_row: usize,
}

impl Rows {
    pub(super) fn new(functions: &[WindowFunction]) -> Self {
        let columns = || functions.iter().map(|_| Column::default()).collect();
        let bytes_per_row = functions.iter().map(WindowFunction::bytes_per_row).sum();
        Self { arguments: columns(), keys: columns(), bytes_per_row, ..Self::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    fn memory(&self) -> usize {
        let columns: usize = self.arguments.iter().chain(&self.keys).map(Column::memory).sum();
        columns + self.count * self.bytes_per_row + self.sort_values.memory() + self.sort_keys.memory()
    }

    /// Keeps a document, whose values are in the columns already.
    pub(super) fn keep(&mut self, document: JsonbRef<'_>, host: &dyn Host) -> Result<(), Fault> {
        let row = self.count;
        self.count += 1;
        if let Some(spill) = &mut self.spilled {
            spill.push(&(row as u64).to_be_bytes(), document.as_bytes())?;
        } else {
            self.documents.push(document.as_bytes());
        }
        let memory = self.memory();
        if memory + self.documents.memory() <= host.stage_bytes() {
            return Ok(());
        }
        self.make_room(memory, host)
    }

    #[cold]
    fn make_room(&mut self, memory: usize, host: &dyn Host) -> Result<(), Fault> {
        let bytes = host.stage_bytes();
        if memory > bytes {
            let message = format!("the values of one partition of $setWindowFields take more than {bytes} bytes");
            return Err(QueryError::new("ExceededMemoryLimit", 146, message).into());
        }
        let Some(mut spill) = host.spill()? else {
            let message =
                format!("$setWindowFields exceeded its memory limit of {bytes} bytes, and may not use the disk");
            return Err(QueryError::new("QueryExceededMemoryLimitNoDiskUseAllowed", 292, message).into());
        };
        let documents = std::mem::take(&mut self.documents);
        for row in 0..documents.len() {
            spill.push(&(row as u64).to_be_bytes(), documents.slice(row))?;
        }
        self.spilled = Some(spill);
        Ok(())
    }

    /// Takes the documents out, to be given to [`Documents::each`].
    pub(super) fn take_documents(&mut self) -> Documents {
        Documents { kept: std::mem::take(&mut self.documents), spilled: self.spilled.take() }
    }
}

/// The documents of a partition.
pub(super) struct Documents {
    kept: Column,
    spilled: Option<Box<dyn Spill>>,
}

impl Documents {
    /// Calls `each` with the documents in order until it breaks.
    pub(super) fn each(self, each: &mut dyn FnMut(JsonbRef<'_>) -> Result<Flow, Fault>) -> Result<Flow, Fault> {
        if let Some(spill) = self.spilled {
            let mut spilled = spill.finish()?;
            while let Some((_, document)) = spilled.next()? {
                if each(JsonbRef::from_valid(document))?.is_break() {
                    return Ok(Flow::Break(()));
                }
            }
            return Ok(Flow::Continue(()));
        }
        for row in 0..self.kept.len() {
            if each(JsonbRef::from_valid(self.kept.slice(row)))?.is_break() {
                return Ok(Flow::Break(()));
            }
        }
        Ok(Flow::Continue(()))
    }
}
