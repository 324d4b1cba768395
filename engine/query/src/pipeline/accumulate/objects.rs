//! `$mergeObjects`: the fields of many objects, of each name the last value at the place of the first.

use crate::{QueryError, scratch};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, ObjectRef};
use std::collections::HashMap;

/// The fields so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    pub(super) fields: Vec<(Box<str>, JsonbBuf)>,
    places: HashMap<Box<str>, usize>,
    bytes: usize,
}

/// What a field takes beside its name, twice, and its value.
const FIELD_BYTES: usize = 2 * size_of::<(Box<str>, JsonbBuf)>();

impl Objects {
    pub(super) fn add(&mut self, object: ObjectRef<'_>) {
        for field in object {
            self.put(field.name(), field.value);
        }
    }

    pub(super) fn put(&mut self, name: &str, value: JsonbRef<'_>) {
        self.bytes += value.as_bytes().len();
        match self.places.get(name).and_then(|at| self.fields.get_mut(*at)) {
            Some((_, old)) => {
                self.bytes -= old.as_bytes().len();
                *old = value.to_buf();
            }
            None => {
                self.bytes += FIELD_BYTES + 2 * name.len();
                self.places.insert(name.into(), self.fields.len());
                self.fields.push((name.into(), value.to_buf()));
            }
        }
    }

    pub(super) fn merge(&mut self, later: &Self) {
        for (name, value) in &later.fields {
            self.put(name, value.view());
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn write(&self, out: &mut Builder) -> Result<(), QueryError> {
        let object = scratch::build(self.bytes, |out| {
            out.begin_object();
            for (name, value) in &self.fields {
                out.field(name);
                out.copy(value.view());
            }
            out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
        })?;
        out.copy(object.view());
        Ok(())
    }
}
