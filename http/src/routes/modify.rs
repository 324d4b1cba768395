//! findOneAndUpdate, findOneAndReplace, findOneAndDelete: one document changed, and given as it was or as it is.

use axum::response::Response;
use http::StatusCode;
use quarrydb::{Collection, DeleteRequest, Document, Modified, UpdateRequest, WriteOptions};
use quarrydb_jsonb::Builder;
use quarrydb_query::{Filter, Projection, Update};

use super::write::update_of;
use super::{Call, blocking, context, filter, is_quick, projection, sort};
use crate::error::{ApiError, Result};
use crate::fields::Fields;
use crate::operation::Operation;

const UPDATE: [&str; 10] = [
    "filter",
    "update",
    "projection",
    "sort",
    "upsert",
    "returnDocument",
    "arrayFilters",
    "hint",
    "let",
    "writeConcern",
];
const REPLACE: [&str; 9] =
    ["filter", "replacement", "projection", "sort", "upsert", "returnDocument", "hint", "let", "writeConcern"];
const DELETE: [&str; 6] = ["filter", "projection", "sort", "hint", "let", "writeConcern"];

/// findOneAndUpdate and findOneAndReplace.
pub(crate) async fn update(call: &Call, body: &[u8]) -> Result<Response> {
    let replaces = call.operation == Operation::FindOneAndReplace;
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), if replaces { &REPLACE } else { &UPDATE })?;
    let update = if replaces {
        Update::parse_replacement(fields.required("replacement")?, &context("replacement", None))?
    } else {
        update_of(&fields)?
    };
    let mut request = UpdateRequest::one(filter(&fields)?, update);
    request.upsert = fields.bool("upsert", false)?;
    request.sort = sort(&fields)?;
    let after = wants_after(&fields)?;
    let projection = bound(&fields, &request.filter)?;
    let options = call.write_options(&fields)?;
    let modified = run_update(call, call.collection(&fields)?, request, options).await?;
    answer(call, if after { modified.after } else { modified.before }, projection).await
}

/// findOneAndDelete.
pub(crate) async fn delete(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &DELETE)?;
    let mut request = DeleteRequest::one(filter(&fields)?);
    request.sort = sort(&fields)?;
    let projection = bound(&fields, &request.filter)?;
    let options = call.write_options(&fields)?;
    let collection = call.collection(&fields)?;
    let pending = if is_quick(&request.filter) {
        collection.find_and_delete(&request, &options)?
    } else {
        blocking(move || Ok(collection.find_and_delete(&request, &options)?)).await?
    };
    answer(call, call.app.landed(pending).await?.before, projection).await
}

async fn run_update(
    call: &Call,
    collection: Collection,
    request: UpdateRequest,
    options: WriteOptions,
) -> Result<Modified> {
    let pending = if is_quick(&request.filter) && request.update.is_cheap() {
        collection.find_and_update(&request, &options)?
    } else {
        blocking(move || Ok(collection.find_and_update(&request, &options)?)).await?
    };
    Ok(call.app.landed(pending).await?.1)
}

/// The body's projection, whose positional `$` asks the filter.
pub(super) fn bound(fields: &Fields<'_>, filter: &Filter) -> Result<Option<Projection>> {
    Ok(projection(fields)?.map(|projection| projection.for_filter(filter)).transpose()?)
}

/// `returnDocument`: `"before"` or `"after"`.
pub(super) fn wants_after(fields: &Fields<'_>) -> Result<bool> {
    match fields.get("returnDocument").map(|value| (value, value.as_str())) {
        None | Some((_, Some("before"))) => Ok(false),
        Some((_, Some("after"))) => Ok(true),
        Some((_, Some(other))) => {
            let message = format!("returnDocument must be \"before\" or \"after\", not {other:.60?}");
            Err(ApiError::bad_value(message).at("returnDocument"))
        }
        Some((value, None)) => Err(ApiError::wrong_type("returnDocument", "\"before\" or \"after\"", value)),
    }
}

/// `{document}`, null where there is none.
async fn answer(call: &Call, document: Option<Document>, projection: Option<Projection>) -> Result<Response> {
    let style = call.form.style;
    let print = move |projection: Option<Projection>| {
        let mut out = b"{\"document\":".to_vec();
        match (document, projection) {
            (None, _) => out.extend_from_slice(b"null"),
            (Some(document), None) => quarrydb_jsonb::print(document.view(), style, &mut out),
            (Some(document), Some(projection)) => {
                let mut builder = Builder::new();
                projection.apply(document.view(), &mut builder)?;
                let projected = builder.take();
                quarrydb_jsonb::print(quarrydb_jsonb::JsonbRef::from_valid(&projected), style, &mut out);
            }
        }
        out.push(b'}');
        Ok(out)
    };
    let out = match projection {
        Some(projection) if !projection.is_cheap() => blocking(move || print(Some(projection))).await?,
        other => print(other)?,
    };
    Ok(call.answer(StatusCode::OK, out))
}
