//! `$sort` and `$sample`: stages that put all documents in an order, of keys or of chance.
//!
//! A `$limit` behind a `$sort`, also behind `$skip`s, tells it how many to keep.

use super::host::Fault;
use super::operator::{Flow, Next, Operator};
use super::sorter::Sorter;
use super::stage::{Stage, whole};
use crate::{ParseContext, QueryError, Sort};
use quarrydb_jsonb::JsonbRef;
use std::sync::Arc;

/// Parses the value of `$sort`.
pub(super) fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Sort, QueryError> {
    let error = |code, message: String| QueryError::location(code, message).at(&context.place);
    let Some(object) = value.as_object() else {
        let message = format!("the $sort key specification must be an object, not {}", value.kind().alias());
        return Err(error(15973, message));
    };
    if object.is_empty() {
        return Err(error(15976, "$sort stage must have at least one sort key".to_owned()));
    }
    if object.get("$natural").is_some() {
        let message = "$natural is no sort of a pipeline: FieldPath field names may not start with '$'";
        return Err(QueryError::location(16410, message).at(&context.place.name("$natural")));
    }
    Sort::parse(value, context)
}

/// How many documents in order are wanted by the stages that follow a `$sort`; none where all are.
#[must_use]
pub fn wanted(rest: &[Stage]) -> Option<u64> {
    let mut skipped = 0_u64;
    for stage in rest {
        match stage {
            Stage::Skip(n) => skipped = skipped.saturating_add(*n),
            Stage::Limit(n) => return Some(skipped.saturating_add(*n)),
            _ => return None,
        }
    }
    None
}

pub(super) struct Sorting {
    sort: Arc<Sort>,
    sorter: Sorter,
    key: Vec<u8>,
}

impl Sorting {
    pub(super) fn new(sort: &Arc<Sort>, keep: Option<u64>) -> Self {
        Self { sort: Arc::clone(sort), sorter: Sorter::new("$sort", keep), key: Vec::new() }
    }
}

impl Operator for Sorting {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        self.key.clear();
        self.sort.key_within(document, &mut self.key, next.host().budget())?;
        self.sorter.push(&self.key, document, next.host())?;
        Ok(Flow::Continue(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        self.sorter.finish(host, &mut |document| next.push(document))
    }
}

/// Parses the value of `$sample`: how many documents.
pub(super) fn parse_sample(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<u64, QueryError> {
    let place = context.place;
    let error = |code, message: String| QueryError::location(code, message);
    let Some(object) = value.as_object() else {
        let message = format!("the $sample stage specification must be an object, not {}", value.kind().alias());
        return Err(error(28745, message).at(&place));
    };
    let mut size = None;
    for entry in object {
        let place = place.name(entry.name());
        if entry.name() != "size" {
            return Err(error(28748, format!("unrecognized option to $sample: {}", entry.name())).at(&place));
        }
        if !entry.value.kind().is_number() {
            return Err(error(28746, "size argument to $sample must be a number".to_owned()).at(&place));
        }
        let n = whole(entry.value).or_else(|| crate::number::truncated_i64(entry.value)).unwrap_or(0);
        let positive = u64::try_from(n).ok().filter(|&n| n > 0);
        size = Some(positive.ok_or_else(|| {
            error(28747, "size argument to $sample must be a positive integer".to_owned()).at(&place)
        })?);
    }
    size.ok_or_else(|| error(28749, "$sample stage must specify a size".to_owned()).at(&place))
}

/// A sort by keys that are drawn.
pub(super) struct Sampling(Sorter);

impl Sampling {
    pub(super) fn new(size: u64) -> Self {
        Self(Sorter::new("$sample", Some(size)))
    }
}

impl Operator for Sampling {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        // Doubles of [0, 1) are ordered as their bits are.
        let key = crate::expr::random().to_bits().to_be_bytes();
        self.0.push(&key, document, next.host())?;
        Ok(Flow::Continue(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        self.0.finish(host, &mut |document| next.push(document))
    }
}
