//! Running the operations of `POST /v1/transaction` as one, and what came of each.
//!
//! Takes a plan; gives results in its order, in the words of the routes of the same names. An operation that fails, or whose
//! result is not as expected, undoes all, and the error says which it was.

use std::sync::Arc;

use http::StatusCode;
use quarrydb::budget::{Budget, Reservation};
use quarrydb::{
    Collection, Database, Document, FindRequest, InsertBatch, Pending, Transaction, UpdateOutcome, WriteOptions,
};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, NULL, Style};
use quarrydb_query::{Distinct, Projection};

use super::steps::{Plan, Step, What};
use crate::answer;
use crate::error::{ApiError, Result};
use crate::operation::Operation;
use crate::routes::{bulk, context};

/// All results of a transaction together: they are held until it is durable.
const RESULTS_BYTES_MAX: usize = 64 << 20;
/// Up to this they are not counted with the bodies of all requests.
const RESULTS_BYTES_FREE: usize = 64 << 10;

/// What the results of a transaction hold.
pub(super) struct Held {
    budget: Arc<Budget>,
    bytes: usize,
    reserved: Option<Reservation>,
}

impl Held {
    fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0, reserved: None }
    }

    /// Counts a value.
    fn keep(&mut self, value: JsonbBuf) -> Result<JsonbBuf> {
        self.bytes += value.view().as_bytes().len();
        if self.bytes > RESULTS_BYTES_MAX {
            let message =
                format!("the results of a transaction take more than {RESULTS_BYTES_MAX} bytes: ask for less in it");
            return Err(ApiError::bad("ExceededMemoryLimit", 146, message));
        }
        if self.bytes > RESULTS_BYTES_FREE {
            let busy = || ApiError::too_many_requests("no memory for the results of the transaction now: try again");
            if self.reserved.is_none() {
                self.reserved = Some(self.budget.reserve(RESULTS_BYTES_FREE).ok_or_else(busy)?);
            }
            if !self.reserved.as_mut().is_some_and(|held| held.grow_to(self.bytes.next_multiple_of(RESULTS_BYTES_FREE)))
            {
                return Err(busy());
            }
        }
        Ok(value)
    }
}

/// What came of one operation: fields of its result, in order.
pub(super) struct Outcome(Vec<(&'static str, Value)>);

enum Value {
    Count(u64),
    One(JsonbBuf),
    Many(Vec<JsonbBuf>),
    /// `_id`s by the position of their operation.
    ById(Vec<(usize, JsonbBuf)>),
}

/// Runs all of it or nothing.
///
/// # Errors
/// The first failing operation's, with its position.
pub(super) fn transact(
    database: &Database,
    plan: &Plan,
    budget: &Arc<Budget>,
) -> Result<Pending<(Vec<Outcome>, Held)>> {
    database.transact(&plan.options, |transaction| {
        let mut all = Held::new(budget);
        let mut results = Vec::with_capacity(plan.steps.len());
        for (index, step) in plan.steps.iter().enumerate() {
            let place = |error: ApiError| {
                let part = format!("operations[{index}].{}", step.operation.name());
                error.within(&part).field("index", &index.to_string())
            };
            let result = run(database, transaction, step, &mut all).map_err(place)?;
            if let Some(expect) = &step.expect {
                result.check(expect.view(), index)?;
            }
            results.push(result);
        }
        Ok((results, all))
    })
}

fn run(database: &Database, transaction: &Transaction, step: &Step, all: &mut Held) -> Result<Outcome> {
    let within = step.collection.within(transaction);
    let options = WriteOptions { deadline: step.deadline, ..WriteOptions::default() };
    let fields = match &step.what {
        What::Insert(documents) => {
            let ids = insert(database, &within, documents, &options)?;
            if step.operation == Operation::InsertOne {
                vec![("insertedId", Value::One(ids.into_iter().next().unwrap_or_else(|| NULL.to_buf())))]
            } else {
                let count = ids.len() as u64;
                vec![("insertedIds", Value::Many(ids)), ("insertedCount", Value::Count(count))]
            }
        }
        What::Find { filter, projection, sort, skip, limit } => {
            let mut request = FindRequest::new(filter.clone());
            (request.projection, request.sort) = (projection.clone(), sort.clone());
            (request.skip, request.limit, request.deadline) = (*skip, *limit, step.deadline);
            let mut found = Vec::new();
            let mut cursor = within.find(request)?;
            while let Some(document) = cursor.next()? {
                found.push(all.keep(document.view().to_buf())?);
            }
            if step.operation == Operation::FindOne {
                let first = found.into_iter().next();
                vec![("document", Value::One(first.unwrap_or_else(|| NULL.to_buf())))]
            } else {
                vec![("documents", Value::Many(found))]
            }
        }
        What::Count { filter, skip, limit } => {
            vec![("count", Value::Count(within.count(filter.clone(), *skip, *limit, step.deadline)?))]
        }
        What::Distinct { key, filter } => {
            let mut distinct = Distinct::parse(key.view(), &context("key", None))?;
            within.distinct(&mut distinct, filter.clone(), step.deadline)?;
            let values = distinct.values().map(|value| all.keep(value.to_buf()));
            vec![("values", Value::Many(values.collect::<Result<_>>()?))]
        }
        What::Update(request) => updated(within.update(request, &options)?.defer().0),
        What::Delete(request) => {
            vec![("deletedCount", Value::Count(within.delete(request, &options)?.defer().0.deleted))]
        }
        What::FindAndUpdate { request, after, projection } => {
            let (_, modified) = within.find_and_update(request, &options)?.defer().0;
            let document = if *after { modified.after } else { modified.before };
            vec![("document", Value::One(all.keep(projected(document, projection.as_ref())?)?))]
        }
        What::FindAndDelete { request, projection } => {
            let document = within.find_and_delete(request, &options)?.defer().0.before;
            vec![("document", Value::One(all.keep(projected(document, projection.as_ref())?)?))]
        }
        What::Bulk(steps) => bulk(database, &within, steps, &options)?,
    };
    Ok(Outcome(fields))
}

fn insert(
    database: &Database,
    within: &Collection,
    documents: &[JsonbBuf],
    options: &WriteOptions,
) -> Result<Vec<JsonbBuf>> {
    let mut batch = InsertBatch::new(database);
    for (index, document) in documents.iter().enumerate() {
        let pushed = batch.push(document.view()).map_err(|e| ApiError::from(quarrydb::Error::from(e)));
        pushed.map_err(|error| if documents.len() == 1 { error } else { at(index, error) })?;
    }
    let mut outcome = within.insert_batch(batch, true, options)?.defer().0;
    match outcome.errors.pop() {
        Some(failure) if documents.len() > 1 => Err(at(failure.index, failure.error.into())),
        Some(failure) => Err(failure.error.into()),
        None => Ok(outcome.ids().map(|(_, id)| id.to_buf()).collect()),
    }
}

fn at(index: usize, error: ApiError) -> ApiError {
    error.within(&format!("documents[{index}]"))
}

fn updated(outcome: UpdateOutcome) -> Vec<(&'static str, Value)> {
    let mut fields =
        vec![("matchedCount", Value::Count(outcome.matched)), ("modifiedCount", Value::Count(outcome.modified))];
    fields.extend(outcome.upserted_id.map(|id| ("upsertedId", Value::One(id))));
    fields
}

fn projected(document: Option<Document>, projection: Option<&Projection>) -> Result<JsonbBuf> {
    let Some(document) = document else { return Ok(NULL.to_buf()) };
    let Some(projection) = projection else { return Ok(document.view().to_buf()) };
    let mut builder = Builder::new();
    projection.apply(document.view(), &mut builder)?;
    Ok(JsonbBuf::from_valid(builder.take()))
}

/// The operations of a bulkWrite, one after another.
fn bulk(
    database: &Database,
    within: &Collection,
    steps: &[bulk::Step],
    options: &WriteOptions,
) -> Result<Vec<(&'static str, Value)>> {
    let (mut inserted, mut upserted) = (Vec::new(), Vec::new());
    let (mut matched, mut modified, mut deleted) = (0, 0, 0);
    for (index, step) in steps.iter().enumerate() {
        let mut one = || -> Result<()> {
            match step {
                bulk::Step::Insert(document) => {
                    let ids = insert(database, within, std::slice::from_ref(document), options)?;
                    inserted.extend(ids.into_iter().map(|id| (index, id)));
                }
                bulk::Step::Update(request) => {
                    let outcome = within.update(request, options)?.defer().0;
                    matched += outcome.matched;
                    modified += outcome.modified;
                    upserted.extend(outcome.upserted_id.map(|id| (index, id)));
                }
                bulk::Step::Delete(request) => deleted += within.delete(request, options)?.defer().0.deleted,
                // A body with such a value was refused whole.
                bulk::Step::Bad(fault) => return Err(ApiError::bad_value(fault.message())),
            }
            Ok(())
        };
        one().map_err(|error| error.within(&format!("operations[{index}]")))?;
    }
    Ok(vec![
        ("insertedCount", Value::Count(inserted.len() as u64)),
        ("matchedCount", Value::Count(matched)),
        ("modifiedCount", Value::Count(modified)),
        ("deletedCount", Value::Count(deleted)),
        ("upsertedCount", Value::Count(upserted.len() as u64)),
        ("insertedIds", Value::ById(inserted)),
        ("upsertedIds", Value::ById(upserted)),
    ])
}

impl Outcome {
    /// Whether the result is as an operation's `expect` has it.
    fn check(&self, expect: JsonbRef<'_>, index: usize) -> Result<()> {
        let Some(expect) = expect.as_object() else { return Ok(()) };
        for wanted in expect.iter() {
            let found = self.0.iter().find(|(name, _)| *name == wanted.name()).map(|(_, value)| value);
            let same = match found {
                None if wanted.name() == "upsertedId" => wanted.value.kind() == quarrydb_jsonb::Kind::Null,
                None => {
                    let names: Vec<_> = self.0.iter().map(|(name, _)| *name).collect();
                    let message =
                        format!("{:.60?} is not in the result, which has {}", wanted.name(), names.join(", "));
                    let place = format!("operations[{index}].expect.{:.60}", wanted.name());
                    return Err(ApiError::bad("FailedToParse", 9, format!("{place}: {message}")).at(&place));
                }
                Some(value) => value.is(wanted.value),
            };
            if !same {
                return Err(self.unexpected(wanted.name(), wanted.value, index));
            }
        }
        Ok(())
    }

    fn unexpected(&self, name: &str, wanted: JsonbRef<'_>, index: usize) -> ApiError {
        let (mut text, mut found) = (Vec::new(), Vec::new());
        quarrydb_jsonb::print(wanted, Style::Relaxed, &mut text);
        match self.0.iter().find(|(own, _)| *own == name) {
            Some((_, value)) => value.print(Style::Relaxed, &mut found),
            None => found.extend_from_slice(b"null"),
        }
        let message = format!(
            "operations[{index}]: {name} was expected to be {:.200} and is {:.200}: nothing was done",
            String::from_utf8_lossy(&text),
            String::from_utf8_lossy(&found)
        );
        ApiError::new(StatusCode::CONFLICT, "ExpectationFailed", None, message).field("index", &index.to_string())
    }

    /// Appends it as JSON.
    pub(super) fn print(&self, style: Style, out: &mut Vec<u8>) {
        out.push(b'{');
        for (i, (name, value)) in self.0.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            answer::string(name, out);
            out.push(b':');
            value.print(style, out);
        }
        out.push(b'}');
    }
}

impl Value {
    /// Whether it equals a value of the language, numbers of any type compared by value.
    fn is(&self, wanted: JsonbRef<'_>) -> bool {
        let many = |values: &[JsonbBuf]| {
            let own: Vec<_> = wanted.as_array().into_iter().flat_map(|array| array.iter()).collect();
            wanted.as_array().is_some()
                && own.len() == values.len()
                && own.iter().zip(values).all(|(a, b)| quarrydb_jsonb::equal(*a, b.view()))
        };
        match self {
            Self::Count(count) => {
                let mut builder = Builder::new();
                builder.int64(i64::try_from(*count).unwrap_or(i64::MAX));
                quarrydb_jsonb::equal(JsonbRef::from_valid(builder.bytes()), wanted)
            }
            Self::One(value) => quarrydb_jsonb::equal(value.view(), wanted),
            Self::Many(values) => many(values),
            Self::ById(_) => false,
        }
    }

    fn print(&self, style: Style, out: &mut Vec<u8>) {
        match self {
            Self::Count(count) => out.extend_from_slice(count.to_string().as_bytes()),
            Self::One(value) => quarrydb_jsonb::print(value.view(), style, out),
            Self::Many(values) => {
                out.push(b'[');
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    quarrydb_jsonb::print(value.view(), style, out);
                }
                out.push(b']');
            }
            Self::ById(ids) => {
                out.push(b'{');
                for (i, (index, id)) in ids.iter().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    answer::string(&index.to_string(), out);
                    out.push(b':');
                    quarrydb_jsonb::print(id.view(), style, out);
                }
                out.push(b'}');
            }
        }
    }
}
