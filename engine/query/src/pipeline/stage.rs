//! The stages by name: parsed here or in a file of their own, and made into operators.
//!
//! What stands for other stages (`$count`, `$sortByCount`) is parsed to them. A name that MongoDB has and this has not is
//! refused by that name.

use super::basic::{Count, Limit, Match, Skip, Transforming};
use super::bucket_auto::{BucketAuto, Bucketing};
use super::densify::{Densify, Densifying};
use super::facet::{Facet, Faceting};
use super::graph_lookup::{GraphLookup, LookingAround};
use super::group::{Group, GroupOperator};
use super::lookup::{LookingUp, Lookup};
use super::merge::Merge;
use super::operator::Operator;
use super::redact::Redacting;
use super::room::{Roomy, STAGES_BETWEEN};
use super::sort::{Sampling, Sorting};
use super::stats::{CollStats, CollectionStats, IndexStats, IndexesStats};
use super::union_with::{Bringing, Joining, UnionWith};
use super::unwind::{Unwind, Unwinding};
use super::window::{SetWindowFields, WindowOperator};
use super::write::{Out, Write, Writing};
use super::{bucket, fill, refused, sort};
use crate::expr::Expression;
use crate::filter::Filter;
use crate::transform::Transform;
use crate::{ParseContext, QueryError, Sort};
use quarrydb_jsonb::{JsonbRef, Value};
use std::sync::Arc;

/// A parsed stage. Its parts are shared with the operators made of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Stage {
    /// `$match`.
    Match(Arc<Filter>),
    /// A new document of each document.
    Transform(Arc<Transform>),
    /// `$limit`: at least 1.
    Limit(u64),
    /// `$skip`.
    Skip(u64),
    /// `$count`, with the name of its field.
    Count(Arc<str>),
    /// `$group`.
    Group(Arc<Group>),
    /// `$sort`.
    Sort(Arc<Sort>),
    /// `$sample`: how many, at least 1.
    Sample(u64),
    /// `$unwind`.
    Unwind(Arc<Unwind>),
    /// `$redact`.
    Redact(Arc<Expression>),
    /// `$facet`.
    Facet(Arc<Facet>),
    /// `$lookup`.
    Lookup(Arc<Lookup>),
    /// `$graphLookup`.
    GraphLookup(Arc<GraphLookup>),
    /// `$unionWith`.
    UnionWith(Arc<UnionWith>),
    /// `$documents`: an array of them.
    Documents(Arc<Expression>),
    /// `$collStats`.
    CollStats(Arc<CollStats>),
    /// `$indexStats`.
    IndexStats(Arc<IndexStats>),
    /// `$out`, `$merge`.
    Write(Arc<Write>),
    /// `$bucketAuto`.
    BucketAuto(Arc<BucketAuto>),
    /// `$setWindowFields`.
    SetWindowFields(Arc<SetWindowFields>),
    /// `$densify`.
    Densify(Arc<Densify>),
}

impl Stage {
    /// Parses the value of the stage `name` and appends what it stands for.
    ///
    /// # Errors
    /// 40324 for a name that is not known, else those of the stage.
    pub fn parse(
        name: &str,
        value: JsonbRef<'_>,
        context: &ParseContext<'_>,
        out: &mut Vec<Self>,
    ) -> Result<(), QueryError> {
        if let Some(transform) = Transform::parse(name, value, context) {
            out.push(Self::Transform(Arc::new(transform?)));
            return Ok(());
        }
        out.push(match name {
            "$match" => Self::Match(Arc::new(matching(value, context)?)),
            "$limit" => Self::Limit(limit(value, context)?),
            "$skip" => Self::Skip(skip(value, context)?),
            "$count" => Self::Count(count(value, context)?),
            "$bucketAuto" => Self::BucketAuto(Arc::new(BucketAuto::parse(value, context)?)),
            "$densify" => Self::Densify(Arc::new(Densify::parse(value, context)?)),
            "$fill" => return fill::parse(value, context, out),
            "$setWindowFields" => Self::SetWindowFields(Arc::new(SetWindowFields::parse(value, context)?)),
            "$group" => Self::Group(Arc::new(Group::parse(value, context)?)),
            "$sort" => Self::Sort(Arc::new(sort::parse(value, context)?)),
            "$sample" => Self::Sample(sort::parse_sample(value, context)?),
            "$unwind" => Self::Unwind(Arc::new(Unwind::parse(value, context)?)),
            "$redact" => Self::Redact(Arc::new(Expression::parse_of_parts(value, context)?)),
            "$facet" => Self::Facet(Arc::new(Facet::parse(value, context)?)),
            "$lookup" => Self::Lookup(Arc::new(Lookup::parse(value, context)?)),
            "$graphLookup" => Self::GraphLookup(Arc::new(GraphLookup::parse(value, context)?)),
            "$unionWith" => Self::UnionWith(Arc::new(UnionWith::parse(value, context)?)),
            "$documents" => Self::Documents(Arc::new(Expression::parse(value, context)?)),
            "$collStats" => Self::CollStats(Arc::new(CollStats::parse(value, context)?)),
            "$indexStats" => Self::IndexStats(Arc::new(IndexStats::parse(value, context)?)),
            "$out" => Self::Write(Arc::new(Write::Out(Out::parse(value, context)?))),
            "$merge" => Self::Write(Arc::new(Write::Merge(Box::new(Merge::parse(value, context)?)))),
            "$sortByCount" => return bucket::sort_by_count(value, context, out),
            "$bucket" => return bucket::bucket(value, context, out),
            _ => return Err(refused::unknown(name).at(&context.place)),
        });
        Ok(())
    }

    /// The stage, ready to run.
    #[must_use]
    pub fn operator(&self) -> Box<dyn Operator> {
        match self {
            Self::Match(filter) => Box::new(Match(Arc::clone(filter))),
            Self::Transform(transform) => Box::new(Transforming(Arc::clone(transform))),
            Self::Limit(limit) => Box::new(Limit(*limit)),
            Self::Skip(skip) => Box::new(Skip(*skip)),
            Self::Count(name) => Box::new(Count { name: Arc::clone(name), count: 0 }),
            Self::BucketAuto(spec) => Box::new(Bucketing::new(spec)),
            Self::Densify(spec) => Box::new(Densifying::new(spec)),
            Self::SetWindowFields(spec) => Box::new(WindowOperator::new(spec)),
            Self::Group(group) => Box::new(GroupOperator::new(group)),
            Self::Sort(sort) => Box::new(Sorting::new(sort, None)),
            Self::Sample(size) => Box::new(Sampling::new(*size)),
            Self::Unwind(unwind) => Box::new(Unwinding(Arc::clone(unwind))),
            Self::Redact(expression) => Box::new(Redacting(Arc::clone(expression))),
            Self::Facet(facet) => Box::new(Faceting::new(facet)),
            Self::Lookup(lookup) => Box::new(LookingUp::new(lookup, None)),
            Self::GraphLookup(graph) => Box::new(LookingAround::new(graph)),
            Self::UnionWith(union) => Box::new(Joining::new(union)),
            Self::Documents(expression) => Box::new(Bringing(Arc::clone(expression))),
            Self::CollStats(stats) => Box::new(CollectionStats(Arc::clone(stats))),
            Self::IndexStats(stats) => Box::new(IndexesStats(Arc::clone(stats))),
            Self::Write(write) => Box::new(Writing(Arc::clone(write))),
        }
    }

    /// Stages that follow each other, ready to run. A sort keeps no more than a limit behind it wants, and the array of a
    /// `$lookup` is taken apart as it is found.
    #[must_use]
    pub fn operators(mut stages: &[Self]) -> Vec<Box<dyn Operator>> {
        /// A document that is found goes through the stages behind while its join is on the stack: with many it is deep.
        const FUSED_STAGES_MAX: usize = 24;
        let few = stages.len() <= FUSED_STAGES_MAX;
        let mut operators: Vec<Box<dyn Operator>> = Vec::with_capacity(stages.len());
        let mut between = 0;
        while let Some((first, mut rest)) = stages.split_first() {
            operators.push(match (first, rest) {
                (Self::Sort(sort), _) => Box::new(Sorting::new(sort, sort::wanted(rest))),
                (Self::Lookup(lookup), [Self::Unwind(unwind), after @ ..]) if few && lookup.as_path == unwind.path => {
                    rest = after;
                    Box::new(LookingUp::new(lookup, Some(unwind)))
                }
                _ => first.operator(),
            });
            stages = rest;
            between += 1;
            if between == STAGES_BETWEEN {
                between = 0;
                operators.push(Box::new(Roomy));
            }
        }
        operators
    }

    /// Whether it takes the documents of a collection; one that does not is the first of its pipeline and brings its own.
    #[must_use]
    pub fn reads_input(&self) -> bool {
        !matches!(self, Self::Documents(_) | Self::CollStats(_) | Self::IndexStats(_))
    }
}

fn matching(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Filter, QueryError> {
    if value.as_object().is_none() {
        let message = format!("the match filter must be an expression in an object, not {}", value.kind().alias());
        return Err(QueryError::location(15959, message));
    }
    Filter::parse(value, context)
}

/// A whole number that a stage takes; none where it is no number or has a fraction.
pub(super) fn whole(value: JsonbRef<'_>) -> Option<i64> {
    match value.value() {
        Value::Int32(_) | Value::Int64(_) | Value::Double(_) | Value::Decimal128(_) => crate::number::whole_i64(value),
        _ => None,
    }
}

fn limit(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<u64, QueryError> {
    let found = || crate::error::shown(value);
    let Some(n) = whole(value) else {
        let message = format!("invalid argument to $limit stage: Expected an integer: $limit: {}", found());
        return Err(QueryError::location(5_107_201, message).at(&context.place));
    };
    match u64::try_from(n) {
        Ok(0) => Err(QueryError::location(15958, "the limit must be positive").at(&context.place)),
        Ok(n) => Ok(n),
        Err(_) => {
            let message =
                format!("invalid argument to $limit stage: Expected a non-negative number in: $limit: {}", found());
            Err(QueryError::location(5_107_201, message).at(&context.place))
        }
    }
}

fn skip(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<u64, QueryError> {
    whole(value).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
        let message = format!(
            "invalid argument to $skip stage: Expected a non-negative integer: $skip: {}",
            crate::error::shown(value)
        );
        QueryError::location(5_107_200, message).at(&context.place)
    })
}

fn count(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Arc<str>, QueryError> {
    let error = |code, message: &str| QueryError::location(code, message).at(&context.place);
    let Some(name) = value.as_str() else {
        return Err(error(40156, "the count field must be a non-empty string"));
    };
    match name {
        "" => Err(error(40156, "the count field must be a non-empty string")),
        _ if name.starts_with('$') => Err(error(40158, "the count field cannot be a $-prefixed path")),
        _ if name.contains('\0') => Err(error(40159, "the count field cannot contain a null byte")),
        _ if name.contains('.') => Err(error(40160, "the count field cannot contain '.'")),
        _ => Ok(name.into()),
    }
}
