//! `$group`: documents with equal `_id`s become one.
//!
//! Takes the stage's object, gives the [`Group`]; `group_table.rs` runs it. An `_id` that is written as an object keeps its
//! parts apart, for who groups by columns. Next: `group_table.rs`, `accumulate/`.

use super::accumulate::Accumulator;
use super::group_table::Grouping;
use super::host::Fault;
use super::operator::{Flow, Next, Operator};
use crate::expr::{Datum, Expression, Scope};
use crate::{ParseContext, Place, QueryError};
use quarrydb_jsonb::{JsonbRef, ObjectRef};
use std::borrow::Cow;
use std::sync::Arc;

/// The parsed stage.
#[derive(Debug)]
pub struct Group {
    id: GroupId,
    fields: Vec<GroupField>,
}

/// What documents are grouped by.
#[derive(Debug)]
pub enum GroupId {
    /// Any expression; missing is null.
    Expression(Expression),
    /// An object by its fields; those that are missing are left out, but for one that stands alone: it is null.
    Object(Vec<(Box<str>, Expression)>),
}

/// A field of what a group becomes.
#[derive(Debug)]
pub struct GroupField {
    /// Its name.
    pub name: Box<str>,
    /// What makes its value.
    pub accumulator: Accumulator,
}

impl Group {
    /// Parses the stage's object.
    ///
    /// # Errors
    /// 15947 for what is no object, 15955 without an `_id`, 40234 to 40238 for a field, 15952 for an accumulator that is
    /// not known, those of accumulators and expressions.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let Some(object) = value.as_object() else {
            let message = format!("a group's fields must be specified in an object, not {}", value.kind().alias());
            return Err(QueryError::location(15947, message).at(&context.place));
        };
        let mut id = None;
        let mut fields = Vec::new();
        for field in object {
            let place = context.place.name(field.name());
            if field.name() == "_id" {
                id = Some(GroupId::parse(field.value, &context.at(place))?);
            } else {
                fields.push(GroupField::parse(field.name(), field.value, &context.at(place))?);
            }
        }
        match id {
            Some(id) => Ok(Self { id, fields }),
            None => Err(QueryError::location(15955, "a group specification must include an _id").at(&context.place)),
        }
    }

    /// A group of all documents by `id`, for stages that stand for one.
    #[must_use]
    pub fn new(id: GroupId, fields: Vec<GroupField>) -> Self {
        Self { id, fields }
    }

    /// What it groups by.
    #[must_use]
    pub fn id(&self) -> &GroupId {
        &self.id
    }

    /// The fields beside `_id`, in their order.
    #[must_use]
    pub fn fields(&self) -> &[GroupField] {
        &self.fields
    }
}

impl GroupId {
    fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        // The whole first: what is wrong with it as an expression is wrong here.
        let whole = Expression::parse(value, context)?;
        let fields = value.as_object().filter(|o| o.iter().next().is_some_and(|e| !e.name().starts_with('$')));
        let Some(fields) = fields else { return Ok(Self::Expression(whole)) };
        let part = |(name, value): (&str, JsonbRef<'_>)| {
            let place = context.place.name(name);
            Ok((Box::from(name), Expression::parse(value, &context.at(place))?))
        };
        fields.iter().map(|e| part((e.name(), e.value))).collect::<Result<_, _>>().map(Self::Object)
    }

    /// Its value on the document of a scope; never missing.
    ///
    /// # Errors
    /// Those of the expressions.
    pub fn evaluate<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Datum<'a>, QueryError> {
        match self {
            Self::Expression(expression) => Ok(match expression.evaluate(scope)? {
                Datum::Missing => Datum::Null,
                value => value,
            }),
            Self::Object(parts) => {
                let mut fields = Vec::with_capacity(parts.len());
                for (name, expression) in parts {
                    let value = match expression.evaluate(scope)? {
                        // Where there is but one, it is grouped by like a value that stands alone.
                        Datum::Missing if parts.len() == 1 => Datum::Null,
                        value => value,
                    };
                    fields.push((Cow::Borrowed(&**name), value));
                }
                Datum::object(fields, scope)
            }
        }
    }
}

impl GroupField {
    /// Parses `{<accumulator>: ...}`.
    ///
    /// # Errors
    /// 40234 to 40238, those of the accumulator.
    pub fn parse(name: &str, value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        let entry = check_field(name, value, &place)?;
        let inner = place.name(entry.name());
        let accumulator = Accumulator::parse(entry.name(), entry.value, &context.at(inner))?;
        Ok(Self { name: name.into(), accumulator })
    }
}

fn check_field<'v>(
    name: &str,
    value: JsonbRef<'v>,
    place: &Place<'_>,
) -> Result<quarrydb_jsonb::Entry<'v>, QueryError> {
    let error = |code, message: String| Err(QueryError::location(code, message).at(place));
    let object: Option<ObjectRef<'v>> = value.as_object();
    let entry = object.and_then(|o| o.iter().next()).filter(|e| e.name().starts_with('$'));
    let (Some(object), Some(entry)) = (object, entry) else {
        return error(40234, format!("The field '{name}' must be an accumulator object"));
    };
    if name.contains('.') {
        return error(40235, format!("The field name '{name}' cannot contain '.'"));
    }
    if name.starts_with('$') {
        return error(40236, format!("The field name '{name}' cannot be an operator name"));
    }
    if object.len() != 1 {
        return error(40238, format!("The field '{name}' must specify one accumulator"));
    }
    if entry.value.as_array().is_some() {
        return error(40237, format!("The {} accumulator is a unary operator", entry.name()));
    }
    Ok(entry)
}

/// The running stage.
pub(super) struct GroupOperator(Option<Grouping>);

impl GroupOperator {
    pub(super) fn new(group: &Arc<Group>) -> Self {
        Self(Some(Grouping::new(Arc::clone(group))))
    }
}

impl Operator for GroupOperator {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        if let Some(grouping) = &mut self.0 {
            grouping.add(document, next.host())?;
        }
        Ok(Flow::Continue(()))
    }

    fn finish(&mut self, next: &mut Next<'_>) -> Result<(), Fault> {
        let host = next.host();
        match self.0.take() {
            Some(grouping) => grouping.finish(host, &mut |document| next.push(document)),
            None => Ok(()),
        }
    }
}
