//! `$densify`: documents for the values of a field that are missing between those that are there.
//!
//! Documents are put in the order of the field (within their partitions, but for the range `full`); what is generated holds
//! the field and the fields of its partition. Documents without the field pass. Next: `densify_spec.rs`.

use super::densify_spec::{Bounds, Value};
use super::host::{Fault, Host, Pace};
use super::operator::{Flow, Next, Operator};
use super::sorter::Sorter;
use crate::add_fields::AddFields;
use crate::expr::{Budget, Datum};
use crate::{QueryError, scratch};
use hashbrown::HashMap;
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind, NULL, sort_key};
use std::sync::Arc;

pub use super::densify_spec::Densify;

/// Documents that one stage may generate, as in MongoDB.
const GENERATED_MAX: u64 = 500_000;

/// What a partition takes beside its key and its fields.
const PARTITION_BYTES: usize = 128;

/// The running stage.
pub(super) struct Densifying {
    spec: Arc<Densify>,
    sorter: Sorter,
}

impl Densifying {
    pub(super) fn new(spec: &Arc<Densify>) -> Self {
        Self { spec: Arc::clone(spec), sorter: Sorter::new("$densify", None) }
    }
}

impl Operator for Densifying {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let mut key = Vec::new();
        if !matches!(self.spec.bounds, Bounds::Full) {
            for path in &self.spec.partition_by {
                sort_key(at_path(document, path).unwrap_or(NULL), &mut key);
            }
        }
        sort_key(at_path(document, &self.spec.field).unwrap_or(NULL), &mut key);
        self.sorter.push(&key, document, next.host())?;
        Ok(Flow::Continue(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        let spec = Arc::clone(&self.spec);
        let mut filler = Filler::new(&spec)?;
        let mut flow = Flow::Continue(());
        self.sorter.finish(host, &mut |document| {
            flow = filler.pass(document, next)?;
            Ok(flow)
        })?;
        if flow.is_continue() { filler.finish(next) } else { Ok(()) }
    }
}

/// The value at a path of objects.
fn at_path<'d>(document: JsonbRef<'d>, path: &str) -> Option<JsonbRef<'d>> {
    path.split('.').try_fold(document, |here, name| here.as_object()?.get(name))
}

/// Hands documents on and fills the gaps between them.
struct Filler<'s> {
    spec: &'s Densify,
    /// Writes the partition's fields and the one that is filled.
    fields: AddFields,
    partitions: HashMap<Vec<u8>, usize>,
    /// In the order in which they came.
    open: Vec<Partition>,
    /// The least and the greatest value so far.
    least: Option<Value>,
    greatest: Option<Value>,
    generated: u64,
    bytes: usize,
    pace: Pace,
}

/// A partition, and what is generated in it next.
struct Partition {
    values: Vec<Option<JsonbBuf>>,
    next: Value,
}

impl<'s> Filler<'s> {
    fn new(spec: &'s Densify) -> Result<Self, QueryError> {
        Ok(Self {
            spec,
            fields: spec.fields()?,
            partitions: HashMap::new(),
            open: Vec::new(),
            least: None,
            greatest: None,
            generated: 0,
            bytes: 0,
            pace: Pace::default(),
        })
    }

    /// Hands a document on, and before it what is missing.
    fn pass(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        self.pace.step(next.host())?;
        let found = at_path(document, &self.spec.field).filter(|v| v.kind() != Kind::Null);
        let Some(found) = found else { return next.push(document) };
        let value = self.spec.step.check(found)?;
        if self.least.is_none() {
            self.least = Some(value);
        }
        self.greatest = Some(value);
        let at = self.partition(document, value, next.host())?;
        let end = match self.spec.bounds {
            Bounds::Explicit(_, end) if end.is_below(value)? => end,
            _ => value,
        };
        if self.fill(at, end, next)?.is_break() {
            return Ok(Flow::Break(()));
        }
        if let Some(partition) = self.open.get_mut(at)
            && partition.next.equals(value)?
        {
            partition.next = self.spec.step.after(value)?;
        }
        next.push(document)
    }

    /// The partition of a document; a new one begins where its bounds say.
    fn partition(&mut self, document: JsonbRef<'_>, value: Value, host: &dyn Host) -> Result<usize, Fault> {
        let paths = &self.spec.partition_by;
        let values: Vec<Option<JsonbRef<'_>>> = paths.iter().map(|path| at_path(document, path)).collect();
        let mut key = Vec::new();
        for value in &values {
            // What is missing is another partition than null.
            match value {
                Some(value) => sort_key(*value, &mut key),
                None => key.push(0),
            }
        }
        if let Some(at) = self.partitions.get(&key) {
            return Ok(*at);
        }
        let values: Vec<Option<JsonbBuf>> = values.into_iter().map(|v| v.map(JsonbRef::to_buf)).collect();
        self.bytes += key.len() + PARTITION_BYTES + values.iter().flatten().map(|v| v.as_bytes().len()).sum::<usize>();
        if self.bytes > host.stage_bytes() {
            let message = format!("the partitions of $densify take more than {} bytes", host.stage_bytes());
            return Err(QueryError::new("ExceededMemoryLimit", 146, message).into());
        }
        let begin = match self.spec.bounds {
            Bounds::Full => self.least.unwrap_or(value),
            Bounds::Partition => value,
            Bounds::Explicit(begin, _) => begin,
        };
        self.partitions.insert(key, self.open.len());
        self.open.push(Partition { values, next: begin });
        Ok(self.open.len() - 1)
    }

    /// Generates what comes next in a partition, up to `end`.
    fn fill(&mut self, at: usize, end: Value, next: &mut Next<'_>) -> Result<Flow, Fault> {
        while let Some(partition) = self.open.get(at)
            && partition.next.is_below(end)?
        {
            let value = partition.next;
            let document = self.document(partition, value, next.host().budget())?;
            self.count(next.host())?;
            if next.push(document.view())?.is_break() {
                return Ok(Flow::Break(()));
            }
            let following = self.spec.step.after(value)?;
            if let Some(partition) = self.open.get_mut(at) {
                partition.next = following;
            }
        }
        Ok(Flow::Continue(()))
    }

    fn count(&mut self, host: &dyn Host) -> Result<(), Fault> {
        self.pace.step(host)?;
        self.generated += 1;
        if self.generated <= GENERATED_MAX {
            return Ok(());
        }
        let message = format!("$densify generates more than {GENERATED_MAX} documents");
        Err(QueryError::location(5_897_900, message).into())
    }

    fn document(&self, partition: &Partition, value: Value, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        let empty = scratch::build(16, |out| {
            out.begin_object();
            out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
        })?;
        let mut values: Vec<Datum<'_>> =
            partition.values.iter().map(|v| Datum::from(v.as_ref().map(JsonbBuf::view))).collect();
        self.check_room(&partition.values)?;
        values.push(value.datum());
        self.fields.put_values(empty.view(), values, budget)
    }

    /// Refuses partition fields that stand in the way of the one that is filled.
    fn check_room(&self, values: &[Option<JsonbBuf>]) -> Result<(), QueryError> {
        for (path, value) in self.spec.partition_by.iter().zip(values) {
            let inside = self.spec.field.strip_prefix(&**path).is_some_and(|rest| rest.starts_with('.'));
            let Some(value) = value.as_ref().filter(|_| inside) else { continue };
            if value.view().as_array().is_some() {
                let message = "$densify cannot generate fields nested inside arrays";
                return Err(QueryError::location(5_733_307, message));
            }
            if value.view().as_object().is_none() {
                let message = "$densify cannot overwrite non-object values with objects";
                return Err(QueryError::location(5_733_308, message));
            }
        }
        Ok(())
    }

    /// There are no more documents: the partitions are filled to their ends.
    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let end = match (&self.spec.bounds, self.greatest) {
            (Bounds::Full, Some(greatest)) => greatest,
            (Bounds::Explicit(begin, end), _) => {
                if self.open.is_empty() && self.spec.partition_by.is_empty() {
                    self.open.push(Partition { values: Vec::new(), next: *begin });
                }
                *end
            }
            _ => return Ok(()),
        };
        for at in 0..self.open.len() {
            if self.fill(at, end, next)?.is_break() {
                break;
            }
            // The greatest value of all is within the range `full`, where a step leads to it.
            if matches!(self.spec.bounds, Bounds::Full)
                && let Some(partition) = self.open.get(at)
                && partition.next.equals(end)?
            {
                let document = self.document(partition, end, next.host().budget())?;
                self.count(next.host())?;
                if next.push(document.view())?.is_break() {
                    break;
                }
            }
        }
        Ok(())
    }
}
