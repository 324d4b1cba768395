//! `$bucketAuto`: documents in the order of a value, cut into so many buckets of about the same size.
//!
//! Equal values are never parted. With a granularity the boundaries are rounded to preferred numbers, and what lies below a
//! rounded boundary joins the bucket. Next: `granularity.rs`.

use super::accumulate::{Accumulator, State, Wanted};
use super::granularity::{GRANULARITIES, Granularity};
use super::group::GroupField;
use super::host::Fault;
use super::operator::{Flow, Next, Operator};
use super::sorter::Sorter;
use crate::error::shown;
use crate::expr::{Budget, Datum, Expression, Scope};
use crate::number::Number;
use crate::{ParseContext, QueryError, scratch};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind, NULL, sort_key};
use std::sync::Arc;

/// The parsed stage.
#[derive(Debug)]
pub struct BucketAuto {
    group_by: Expression,
    buckets: u32,
    fields: Vec<GroupField>,
    granularity: Option<Granularity>,
}

impl BucketAuto {
    /// Parses the stage's object.
    ///
    /// # Errors
    /// 40239 to 40246, 40257 and 40261 for its fields, 4544714 for a number of values that depends on the group, those of
    /// accumulators and expressions.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let error = |code, message: String| QueryError::location(code, message);
        let Some(object) = value.as_object() else {
            let message =
                format!("the argument to $bucketAuto must be an object, but found type: {}", value.kind().alias());
            return Err(error(40240, message).at(&context.place));
        };
        let (mut group_by, mut buckets, mut granularity) = (None, None, None);
        let mut fields = Vec::new();
        for field in object {
            let place = context.place.name(field.name());
            let inner = context.at(place);
            match field.name() {
                "groupBy" => group_by = Some(parse_group_by(field.value, &inner)?),
                "buckets" => buckets = Some(parse_buckets(field.value).map_err(|e| e.at(&place))?),
                "output" => {
                    let Some(output) = field.value.as_object() else {
                        let found = field.value.kind().alias();
                        let message =
                            format!("the $bucketAuto 'output' field must be an object, but found type: {found}");
                        return Err(error(40244, message).at(&place));
                    };
                    for entry in output {
                        let place = place.name(entry.name());
                        let parsed = GroupField::parse(entry.name(), entry.value, &context.at(place))?;
                        if matches!(parsed.accumulator.wanted(), Wanted::OfGroup(_)) {
                            let message = "can't refer to the group key in $bucketAuto".to_owned();
                            return Err(error(4_544_714, message).at(&place));
                        }
                        fields.push(parsed);
                    }
                }
                "granularity" => granularity = Some(parse_granularity(field.value).map_err(|e| e.at(&place))?),
                unknown => {
                    return Err(error(40245, format!("unrecognized option to $bucketAuto: {unknown}")).at(&place));
                }
            }
        }
        let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
            let message = "$bucketAuto requires 'groupBy' and 'buckets' to be specified".to_owned();
            return Err(error(40246, message).at(&context.place));
        };
        if fields.is_empty() {
            fields.push(GroupField { name: "count".into(), accumulator: Accumulator::count() });
        }
        Ok(Self { group_by, buckets, fields, granularity })
    }

    /// The value that documents are ordered by; never missing.
    fn value(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
        let value = self.group_by.value(document, budget)?.unwrap_or_else(|| NULL.to_buf());
        if self.granularity.is_some() {
            check_number(value.view())?;
        }
        Ok(value)
    }
}

fn parse_group_by(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Expression, QueryError> {
    let is_path = value.as_str().is_some_and(|s| s.len() > 1 && s.starts_with('$'));
    let is_expression =
        value.as_object().and_then(|o| o.iter().next()).is_some_and(|first| first.name().starts_with('$'));
    if is_path || is_expression {
        return Expression::parse(value, context);
    }
    let message = format!(
        "the $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: {}",
        shown(value)
    );
    Err(QueryError::location(40239, message).at(&context.place))
}

fn parse_buckets(value: JsonbRef<'_>) -> Result<u32, QueryError> {
    if !value.kind().is_number() {
        let message = format!(
            "the $bucketAuto 'buckets' field must be a numeric value, but found type: {}",
            value.kind().alias()
        );
        return Err(QueryError::location(40241, message));
    }
    let whole = Number::of(value).and_then(Number::as_whole).and_then(|n| i32::try_from(n).ok());
    let Some(n) = whole else {
        let message = format!(
            "the $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {}",
            shown(value)
        );
        return Err(QueryError::location(40242, message));
    };
    match u32::try_from(n) {
        Ok(n) if n > 0 => Ok(n),
        _ => {
            let message = format!("the $bucketAuto 'buckets' field must be greater than 0, but found: {n}");
            Err(QueryError::location(40243, message))
        }
    }
}

fn parse_granularity(value: JsonbRef<'_>) -> Result<Granularity, QueryError> {
    let Some(name) = value.as_str() else {
        let message =
            format!("the $bucketAuto 'granularity' field must be a string, but found type: {}", value.kind().alias());
        return Err(QueryError::location(40261, message));
    };
    Granularity::by_name(name).ok_or_else(|| {
        let known: Vec<&str> = GRANULARITIES.iter().map(|(name, _)| *name).collect();
        let message = format!("unknown rounding granularity '{name}'; there are {}", known.join(", "));
        QueryError::location(40257, message)
    })
}

fn check_number(value: JsonbRef<'_>) -> Result<(), QueryError> {
    let message = "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found";
    let Some(n) = Number::of(value) else {
        return Err(QueryError::location(40258, format!("{message} a value of type {}", value.kind().alias())));
    };
    if n.is_nan() {
        return Err(QueryError::location(40259, format!("{message} a NaN")));
    }
    if n.to_f64() < 0.0 {
        return Err(QueryError::location(40260, format!("{message} {}", shown(value))));
    }
    Ok(())
}

/// The running stage.
pub(super) struct Bucketing {
    spec: Arc<BucketAuto>,
    sorter: Sorter,
    documents: u64,
}

impl Bucketing {
    pub(super) fn new(spec: &Arc<BucketAuto>) -> Self {
        Self { spec: Arc::clone(spec), sorter: Sorter::new("$bucketAuto", None), documents: 0 }
    }
}

impl Operator for Bucketing {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let value = self.spec.value(document, next.host().budget())?;
        let mut key = Vec::new();
        sort_key(value.view(), &mut key);
        self.sorter.push(&key, document, next.host())?;
        self.documents += 1;
        Ok(Flow::Continue(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        let spec = Arc::clone(&self.spec);
        // Half a document more makes the size one larger, as rounding away from zero does.
        let size = (self.documents * 2 + u64::from(spec.buckets)) / (u64::from(spec.buckets) * 2);
        let mut cutter = Cutter { spec: &spec, size: size.max(1), bucket: None, made: 0, previous: None };
        let mut broken = false;
        self.sorter.finish(host, &mut |document| {
            let value = spec.value(document, host.budget())?;
            if let Some(bucket) = cutter.add(value, document, host.budget())?
                && next.push(bucket.view())?.is_break()
            {
                broken = true;
                return Ok(Flow::Break(()));
            }
            Ok(Flow::Continue(()))
        })?;
        if let Some(bucket) = cutter.bucket.take()
            && !broken
        {
            let last = cutter.close(bucket, None)?;
            return next.push(last.view()).map(drop);
        }
        Ok(())
    }
}

/// Cuts documents that come in order into buckets.
struct Cutter<'s> {
    spec: &'s BucketAuto,
    /// Documents that a bucket takes before it looks at what follows.
    size: u64,
    bucket: Option<Bucket>,
    /// Buckets begun.
    made: u32,
    /// Where the bucket before ended, with a granularity.
    previous: Option<JsonbBuf>,
}

struct Bucket {
    min: JsonbBuf,
    /// The greatest value in it.
    max: JsonbBuf,
    /// `max` rounded up when the bucket was full, with a granularity.
    boundary: Option<JsonbBuf>,
    count: u64,
    states: Vec<State>,
}

impl Cutter<'_> {
    /// Adds the next document; gives the bucket before it where that is complete.
    fn add(
        &mut self,
        value: JsonbBuf,
        document: JsonbRef<'_>,
        budget: Budget<'_>,
    ) -> Result<Option<JsonbBuf>, QueryError> {
        let mut complete = None;
        if let Some(mut bucket) = self.bucket.take() {
            if self.takes(&mut bucket, value.view())? {
                self.put(&mut bucket, value, document, budget)?;
                self.bucket = Some(bucket);
                return Ok(None);
            }
            complete = Some(self.close(bucket, Some(value.view()))?);
        }
        self.made += 1;
        let min = match (&self.previous, self.spec.granularity) {
            (Some(previous), Some(_)) => previous.clone(),
            (None, Some(granularity)) => rounded(value.view(), |n| granularity.down(n))?,
            _ => value.clone(),
        };
        let states = self.spec.fields.iter().map(|f| State::new(&f.accumulator)).collect();
        let mut bucket = Bucket { min, max: value.clone(), boundary: None, count: 0, states };
        self.put(&mut bucket, value, document, budget)?;
        self.bucket = Some(bucket);
        Ok(complete)
    }

    /// Whether the next value belongs to the bucket: while it has room, to the last one, and where no boundary is between.
    fn takes(&self, bucket: &mut Bucket, value: JsonbRef<'_>) -> Result<bool, QueryError> {
        if bucket.count < self.size || self.made == self.spec.buckets {
            return Ok(true);
        }
        if let Some(granularity) = self.spec.granularity {
            let boundary = match bucket.boundary.take() {
                Some(boundary) => boundary,
                None => rounded(bucket.max.view(), |n| granularity.up(n))?,
            };
            let below = quarrydb_jsonb::compare(boundary.view(), value).is_gt();
            bucket.boundary = Some(boundary);
            if below {
                return Ok(true);
            }
        }
        Ok(quarrydb_jsonb::compare(bucket.max.view(), value).is_eq())
    }

    fn put(
        &self,
        bucket: &mut Bucket,
        value: JsonbBuf,
        document: JsonbRef<'_>,
        budget: Budget<'_>,
    ) -> Result<(), QueryError> {
        bucket.max = value;
        bucket.count += 1;
        let mut scope = Scope::new(document, budget);
        for (field, state) in self.spec.fields.iter().zip(&mut bucket.states) {
            state.add(&field.accumulator, &mut scope)?;
        }
        Ok(())
    }

    /// What a bucket becomes, before a bucket that begins with `following` or none.
    fn close(&mut self, bucket: Bucket, following: Option<JsonbRef<'_>>) -> Result<JsonbBuf, QueryError> {
        let max = match (self.spec.granularity, following) {
            (Some(granularity), following) => {
                let boundary = match bucket.boundary {
                    Some(boundary) => boundary,
                    None => rounded(bucket.max.view(), |n| granularity.up(n))?,
                };
                match following {
                    // All of it is zero, which rounds to itself.
                    Some(value) if Number::of(boundary.view()).is_some_and(Number::is_zero) => {
                        rounded(value, |n| granularity.down(n))?
                    }
                    _ => boundary,
                }
            }
            (None, Some(value)) => value.to_buf(),
            (None, None) => bucket.max,
        };
        let ended = |e: quarrydb_jsonb::Error| QueryError::bad_value(e.to_string());
        let made = scratch::build(64, |out| {
            out.begin_object();
            out.field("_id");
            out.begin_object();
            out.field("min");
            out.copy(bucket.min.view());
            out.field("max");
            out.copy(max.view());
            out.end_object().map_err(ended)?;
            for (field, state) in self.spec.fields.iter().zip(&bucket.states) {
                out.field(&field.name);
                state.finish(&field.accumulator, out)?;
            }
            out.end_object().map_err(ended)
        })?;
        self.previous = Some(max);
        Ok(made)
    }
}

fn rounded(value: JsonbRef<'_>, round: impl FnOnce(Number) -> Number) -> Result<JsonbBuf, QueryError> {
    debug_assert!(value.kind().is_number() || value.kind() == Kind::Null);
    Number::of(value).map_or_else(|| Ok(value.to_buf()), |n| Datum::Number(round(n)).to_buf())
}
