//! Values that are kept: in a row, each once, or the last few.
//!
//! Takes values, gives them back in the order in which they came.

use crate::QueryError;
use crate::byte_set::ByteSet;
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, first_value, sort_key};
use std::collections::VecDeque;

/// Values one after another in one buffer.
#[derive(Clone, Debug, Default)]
pub(super) struct Values {
    pub(super) bytes: Vec<u8>,
    pub(super) count: u64,
}

impl Values {
    pub(super) fn push(&mut self, value: JsonbRef<'_>) {
        self.bytes.extend_from_slice(value.as_bytes());
        self.count += 1;
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = JsonbRef<'_>> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let value = first_value(rest)?;
            rest = rest.get(value.as_bytes().len()..).unwrap_or_default();
            Some(value)
        })
    }

    pub(super) fn append(&mut self, later: &Self) {
        self.bytes.extend_from_slice(&later.bytes);
        self.count += later.count;
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// Values of which no two are equal, the first of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Set {
    seen: ByteSet,
    pub(super) values: Values,
}

impl Set {
    pub(super) fn add(&mut self, value: JsonbRef<'_>) {
        let mut key = Vec::new();
        sort_key(value, &mut key);
        if self.seen.insert(&key) {
            self.values.push(value);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.seen.bytes() + self.values.bytes()
    }
}

/// The last values of many.
#[derive(Clone, Debug)]
pub(super) struct LastValues {
    pub(super) wanted: u64,
    pub(super) values: VecDeque<JsonbBuf>,
    bytes: usize,
}

impl LastValues {
    pub(super) fn new(wanted: u64) -> Self {
        Self { wanted, values: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, value: JsonbBuf) {
        if self.values.len() as u64 >= self.wanted
            && let Some(oldest) = self.values.pop_front()
        {
            self.bytes -= cost(&oldest);
        }
        self.bytes += cost(&value);
        self.values.push_back(value);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn cost(value: &JsonbBuf) -> usize {
    size_of::<JsonbBuf>() + value.as_bytes().len()
}

/// Writes values as an array.
pub(super) fn write_array<'v>(values: impl Iterator<Item = JsonbRef<'v>>, out: &mut Builder) -> Result<(), QueryError> {
    out.begin_array();
    values.for_each(|v| out.copy(v));
    out.end_array().map_err(|e| QueryError::new("BSONObjectTooLarge", 10334, e.to_string()))
}
