//! updateOne, updateMany, replaceOne, deleteOne, deleteMany: by `_id` in place, by other filters on a thread that may
//! wait; the wait for the log is awaited either way.

use axum::response::Response;
use http::StatusCode;
use quarrydb::{Collection, DeleteRequest, UpdateOutcome, UpdateRequest, WriteOptions};
use quarrydb_jsonb::JsonbRef;
use quarrydb_query::Update;

use super::{Call, blocking, context, filter, is_quick, sort};
use crate::answer;
use crate::error::Result;
use crate::fields::Fields;
use crate::operation::Operation;

const UPDATE_ONE: [&str; 8] = ["filter", "update", "upsert", "arrayFilters", "hint", "let", "sort", "writeConcern"];
const REPLACE: [&str; 7] = ["filter", "replacement", "upsert", "sort", "hint", "let", "writeConcern"];
const DELETE: [&str; 4] = ["filter", "hint", "let", "writeConcern"];

/// updateOne and updateMany.
pub(crate) async fn update(call: &Call, body: &[u8]) -> Result<Response> {
    let many = call.operation == Operation::UpdateMany;
    let body = quarrydb_jsonb::parse(body)?;
    let mut taken = UPDATE_ONE.to_vec();
    taken.retain(|&name| !many || name != "sort");
    let fields = call.fields(body.view(), &taken)?;
    let update = update_of(&fields)?;
    let mut request = UpdateRequest::one(filter(&fields)?, update);
    request.many = many;
    request.upsert = fields.bool("upsert", false)?;
    request.sort = sort(&fields)?;
    let options = call.write_options(&fields)?;
    let outcome = run_update(call, call.collection(&fields)?, request, options).await?;
    Ok(call.answer(StatusCode::OK, print_update(call, &outcome)))
}

/// replaceOne.
pub(crate) async fn replace(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &REPLACE)?;
    let replacement = Update::parse_replacement(fields.required("replacement")?, &context("replacement", None))?;
    let mut request = UpdateRequest::one(filter(&fields)?, replacement);
    request.upsert = fields.bool("upsert", false)?;
    request.sort = sort(&fields)?;
    let options = call.write_options(&fields)?;
    let outcome = run_update(call, call.collection(&fields)?, request, options).await?;
    Ok(call.answer(StatusCode::OK, print_update(call, &outcome)))
}

/// deleteOne and deleteMany.
pub(crate) async fn delete(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &DELETE)?;
    let mut request = DeleteRequest::one(filter(&fields)?);
    request.many = call.operation == Operation::DeleteMany;
    let options = call.write_options(&fields)?;
    let deleted = run_delete(call, call.collection(&fields)?, request, options).await?;
    let mut out = vec![b'{'];
    answer::count("deletedCount", deleted, &mut out);
    out.push(b'}');
    Ok(call.answer(StatusCode::OK, out))
}

/// The update that a body has.
pub(crate) fn update_of(fields: &Fields<'_>) -> Result<Update> {
    let _patterns = fields.patterns()?;
    parse_update(fields.required("update")?, fields.array("arrayFilters")?, fields.object("let")?)
}

/// The update that a body's field is.
pub(crate) fn parse_update(
    update: JsonbRef<'_>,
    array_filters: Option<JsonbRef<'_>>,
    variables: Option<JsonbRef<'_>>,
) -> Result<Update> {
    Ok(Update::parse(update, array_filters, &context("update", variables))?)
}

/// Runs an update and waits until it is as durable as it should be.
pub(crate) async fn run_update(
    call: &Call,
    collection: Collection,
    request: UpdateRequest,
    options: WriteOptions,
) -> Result<UpdateOutcome> {
    let pending = if is_quick(&request.filter) && request.update.is_cheap() {
        collection.update(&request, &options)?
    } else {
        blocking(move || Ok(collection.update(&request, &options)?)).await?
    };
    call.app.landed(pending).await
}

/// Runs a deletion and waits for it likewise; gives how many went.
pub(crate) async fn run_delete(
    call: &Call,
    collection: Collection,
    request: DeleteRequest,
    options: WriteOptions,
) -> Result<u64> {
    let pending = if is_quick(&request.filter) {
        collection.delete(&request, &options)?
    } else {
        blocking(move || Ok(collection.delete(&request, &options)?)).await?
    };
    Ok(call.app.landed(pending).await?.deleted)
}

/// `{matchedCount, modifiedCount, upsertedId?}`.
pub(crate) fn print_update(call: &Call, outcome: &UpdateOutcome) -> Vec<u8> {
    let mut out = vec![b'{'];
    answer::count("matchedCount", outcome.matched, &mut out);
    answer::count("modifiedCount", outcome.modified, &mut out);
    if let Some(id) = &outcome.upserted_id {
        out.extend_from_slice(b",\"upsertedId\":");
        quarrydb_jsonb::print(id.view(), call.form.style, &mut out);
    }
    out.push(b'}');
    out
}
