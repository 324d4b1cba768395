//! bulkWrite: a sequence of writes to one collection, each with its own outcome.
//!
//! The whole body is parsed before the first write, so a mistake in its form changes nothing; a value that no document can
//! hold is its operation's failure (`bulk_body.rs`). Then the operations run
//! one after another; neighbouring inserts go in as one batch, and a write that may see the one before it waits until
//! that is visible.

use axum::response::Response;
use quarrydb::{Collection, Database, DeleteRequest, InsertBatch, Pending, UpdateRequest, WriteOptions};
use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use quarrydb_query::Update;

use super::bulk_body::{self, Faults};
use super::write::parse_update;
use super::{Call, blocking, context, failures, filter_with, sort};
use crate::answer;
use crate::error::{ApiError, Result};
use crate::fields::Fields;

const TAKEN: [&str; 4] = ["operations", "ordered", "let", "writeConcern"];
const INSERT: [&str; 1] = ["document"];
const UPDATE_ONE: [&str; 6] = ["filter", "update", "upsert", "arrayFilters", "hint", "sort"];
const UPDATE_MANY: [&str; 5] = ["filter", "update", "upsert", "arrayFilters", "hint"];
const REPLACE: [&str; 5] = ["filter", "replacement", "upsert", "hint", "sort"];
const DELETE: [&str; 2] = ["filter", "hint"];

/// One operation, ready to run.
pub(crate) enum Step {
    Insert(JsonbBuf),
    Update(Box<UpdateRequest>),
    Delete(Box<DeleteRequest>),
    /// It holds what no document can.
    Bad(ApiError),
}

/// What the operations did, and which failed.
#[derive(Default)]
struct Done {
    inserted: u64,
    matched: u64,
    modified: u64,
    deleted: u64,
    inserted_ids: Vec<(usize, JsonbBuf)>,
    upserted_ids: Vec<(usize, JsonbBuf)>,
    failures: Vec<(usize, ApiError)>,
    /// The wait for the newest write.
    last: Option<Pending<()>>,
}

/// A body's meaning.
struct Planned {
    steps: Vec<Step>,
    ordered: bool,
    options: WriteOptions,
    collection: Collection,
}

/// bulkWrite.
pub(crate) async fn write(call: &Call, body: &[u8]) -> Result<Response> {
    let Planned { steps, ordered, options, collection } = match quarrydb_jsonb::parse(body) {
        Ok(body) => plan(call, body.view(), None)?,
        Err(fault) => {
            let apart = bulk_body::apart(body, fault)?;
            plan(call, apart.rest.view(), Some((&apart.operations, apart.faults)))?
        }
    };
    let database = call.database()?.clone();
    let mut done = blocking(move || Ok(run(&database, &collection, steps, ordered, &options))).await?;
    if let Some(last) = done.last.take() {
        last.await?;
    }
    Ok(print(call, &done))
}

/// What a body means; `apart` has its operations where they could not be parsed together with it.
fn plan(call: &Call, body: JsonbRef<'_>, apart: Option<(&[JsonbBuf], Faults)>) -> Result<Planned> {
    let fields = call.fields(body, &TAKEN)?;
    let variables = fields.object("let")?;
    let collection = call.collection(&fields)?;
    // All regular expressions count together, as those of one filter do.
    let together = fields.patterns()?;
    let steps = match apart {
        Some((operations, faults)) => parse_all(operations.iter().map(JsonbBuf::view), faults, variables, &collection)?,
        None => {
            let value = fields.required("operations")?;
            let operations = value.as_array();
            let operations =
                operations.ok_or_else(|| ApiError::wrong_type("operations", "an array of operations", value))?;
            parse_all(operations.iter(), Faults::new(), variables, &collection)?
        }
    };
    drop(together);
    if steps.is_empty() {
        return Err(ApiError::bad("InvalidLength", 16, "operations must hold at least one operation").at("operations"));
    }
    let (ordered, options) = (fields.bool("ordered", true)?, call.write_options(&fields)?);
    Ok(Planned { steps, ordered, options, collection })
}

/// No operation with a fault.
pub(crate) fn no_faults() -> Faults {
    Faults::new()
}

/// All operations.
pub(crate) fn parse_all<'a>(
    operations: impl Iterator<Item = JsonbRef<'a>>,
    mut faults: Faults,
    variables: Option<JsonbRef<'_>>,
    collection: &Collection,
) -> Result<Vec<Step>> {
    operations
        .enumerate()
        .map(|(index, operation)| match faults.remove(&index) {
            Some(fault) => Ok(Step::Bad(fault)),
            None => parse(operation, variables, collection).map_err(|e| e.inside(&format!("operations[{index}]"))),
        })
        .collect()
}

/// One operation: an object of one field, which names it.
fn parse(operation: JsonbRef<'_>, variables: Option<JsonbRef<'_>>, collection: &Collection) -> Result<Step> {
    let only = operation.as_object().filter(|object| object.len() == 1).and_then(|object| object.iter().next());
    let Some(entry) = only else {
        return Err(ApiError::wrong_type("an operation", "an object of one field that names the operation", operation));
    };
    let name = entry.name();
    let within = |e: ApiError| e.inside(name);
    let step = match name {
        "insertOne" => {
            let fields = Fields::new(entry.value, name, &INSERT, &[]).map_err(within)?;
            let document = fields.object("document").map_err(within)?;
            let document = document.ok_or_else(|| within(crate::fields::missing("document")))?;
            Step::Insert(document.to_buf())
        }
        "updateOne" | "updateMany" => {
            let taken: &[&str] = if name == "updateOne" { &UPDATE_ONE } else { &UPDATE_MANY };
            let fields = Fields::new(entry.value, name, taken, &[]).map_err(within)?;
            let update = fields.required("update").map_err(within)?;
            let update =
                parse_update(update, fields.array("arrayFilters").map_err(within)?, variables).map_err(within)?;
            fields.check_hint(collection).map_err(within)?;
            Step::Update(Box::new(update_request(&fields, variables, update, name == "updateMany").map_err(within)?))
        }
        "replaceOne" => {
            let fields = Fields::new(entry.value, name, &REPLACE, &[]).map_err(within)?;
            let replacement = fields.required("replacement").map_err(within)?;
            let replacement = Update::parse_replacement(replacement, &context("replacement", None));
            let replacement = replacement.map_err(|e| within(e.into()))?;
            fields.check_hint(collection).map_err(within)?;
            Step::Update(Box::new(update_request(&fields, variables, replacement, false).map_err(within)?))
        }
        "deleteOne" | "deleteMany" => {
            let fields = Fields::new(entry.value, name, &DELETE, &[]).map_err(within)?;
            fields.check_hint(collection).map_err(within)?;
            let mut request = DeleteRequest::one(filter_with(&fields, variables).map_err(within)?);
            request.many = name == "deleteMany";
            Step::Delete(Box::new(request))
        }
        other => {
            let message = format!(
                "{other:.60?} is no operation of bulkWrite: insertOne, updateOne, updateMany, replaceOne, deleteOne and \
                 deleteMany are"
            );
            return Err(ApiError::bad("UnknownOperator", 2, message).at(other));
        }
    };
    Ok(step)
}

fn update_request(
    fields: &Fields<'_>,
    variables: Option<JsonbRef<'_>>,
    update: Update,
    many: bool,
) -> Result<UpdateRequest> {
    let mut request = UpdateRequest::one(filter_with(fields, variables)?, update);
    request.many = many;
    request.upsert = fields.bool("upsert", false)?;
    request.sort = sort(fields)?;
    Ok(request)
}

/// Runs the operations in order; with `ordered` up to the first that fails.
fn run(database: &Database, collection: &Collection, steps: Vec<Step>, ordered: bool, options: &WriteOptions) -> Done {
    let mut done = Done::default();
    let mut steps = steps.into_iter().enumerate().peekable();
    while let Some((index, step)) = steps.next() {
        if ordered && !done.failures.is_empty() {
            break;
        }
        let result = match step {
            Step::Insert(first) => {
                let mut documents = vec![(index, first)];
                while let Some((index, Step::Insert(document))) =
                    steps.next_if(|(_, step)| matches!(step, Step::Insert(_)))
                {
                    documents.push((index, document));
                }
                insert(database, collection, documents, ordered, options, &mut done)
            }
            Step::Update(request) => update(collection, index, &request, options, &mut done),
            Step::Delete(request) => delete(collection, &request, options, &mut done),
            Step::Bad(fault) => Err(fault),
        };
        if let Err(error) = result {
            done.failures.push((index, error));
        }
    }
    done
}

/// A filter that is not by `_id` looks at what is visible: the write before it must be.
fn settle(done: &mut Done, is_point: bool) -> Result<()> {
    match done.last.take() {
        Some(last) if !is_point => Ok(last.wait()?),
        last => {
            done.last = last;
            Ok(())
        }
    }
}

fn insert(
    database: &Database,
    collection: &Collection,
    documents: Vec<(usize, JsonbBuf)>,
    ordered: bool,
    options: &WriteOptions,
    done: &mut Done,
) -> Result<()> {
    let mut batch = InsertBatch::new(database);
    let mut indexes = Vec::with_capacity(documents.len());
    for (index, document) in documents {
        match batch.push(document.view()) {
            Ok(()) => indexes.push(index),
            Err(error) => {
                done.failures.push((index, ApiError::from(quarrydb::Error::from(error))));
                if ordered {
                    break;
                }
            }
        }
    }
    if batch.is_empty() {
        return Ok(());
    }
    let (outcome, wait) = collection.insert_batch(batch, ordered, options)?.defer();
    done.inserted += outcome.inserted;
    let place = |i: usize| indexes.get(i).copied().unwrap_or(i);
    done.inserted_ids.extend(outcome.ids().map(|(i, id)| (place(i), id.to_buf())));
    let failures = outcome.errors.into_iter().map(|failure| (place(failure.index), ApiError::from(failure.error)));
    done.failures.extend(failures);
    if ordered {
        // A document that could not even be encoded stands behind a failure inside the batch, and was not tried.
        done.failures.sort_by_key(|(index, _)| *index);
        done.failures.truncate(1);
    }
    done.last = Some(wait);
    Ok(())
}

fn update(
    collection: &Collection,
    index: usize,
    request: &UpdateRequest,
    options: &WriteOptions,
    done: &mut Done,
) -> Result<()> {
    settle(done, request.filter.id_point().is_some())?;
    let (outcome, wait) = collection.update(request, options)?.defer();
    done.matched += outcome.matched;
    done.modified += outcome.modified;
    done.upserted_ids.extend(outcome.upserted_id.map(|id| (index, id)));
    done.last = Some(wait);
    Ok(())
}

fn delete(collection: &Collection, request: &DeleteRequest, options: &WriteOptions, done: &mut Done) -> Result<()> {
    settle(done, request.filter.id_point().is_some())?;
    let (outcome, wait) = collection.delete(request, options)?.defer();
    done.deleted += outcome.deleted;
    done.last = Some(wait);
    Ok(())
}

/// The counts and ids, and the failures before them where there are any.
fn print(call: &Call, done: &Done) -> Response {
    let mut out = vec![b'{'];
    let status = failures::print("operations", &done.failures, &mut out);
    answer::count("insertedCount", done.inserted, &mut out);
    answer::count("matchedCount", done.matched, &mut out);
    answer::count("modifiedCount", done.modified, &mut out);
    answer::count("deletedCount", done.deleted, &mut out);
    answer::count("upsertedCount", done.upserted_ids.len() as u64, &mut out);
    for (name, ids) in [("insertedIds", &done.inserted_ids), ("upsertedIds", &done.upserted_ids)] {
        out.push(b',');
        answer::string(name, &mut out);
        out.extend_from_slice(b":{");
        for (i, (index, id)) in ids.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            answer::string(&index.to_string(), &mut out);
            out.push(b':');
            quarrydb_jsonb::print(id.view(), call.form.style, &mut out);
        }
        out.push(b'}');
    }
    out.push(b'}');
    call.answer(status, out)
}
