//! findOne, find, count: filters to cursors to answers, in place where that is cheap.

use axum::response::Response;
use http::StatusCode;
use quarrydb::{Collection, Cursor, FindRequest};
use quarrydb_jsonb::{JsonbRef, Style};

use super::{Call, blocking, filter, is_quick, projection, sort};
use crate::answer;
use crate::error::Result;
use crate::fields::Fields;
use crate::stream;

const FIND_ONE: [&str; 6] = ["filter", "projection", "sort", "skip", "hint", "let"];
const FIND: [&str; 8] = ["filter", "projection", "sort", "skip", "limit", "hint", "let", "allowDiskUse"];
const COUNT: [&str; 4] = ["filter", "skip", "limit", "hint"];

/// findOne.
pub(crate) async fn find_one(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &FIND_ONE)?;
    let (collection, mut request) = request(call, &fields)?;
    request.limit = Some(1);
    let style = call.form.style;
    let out = if is_point(&request) {
        print_first(collection.find(request)?, style)?
    } else if request.sort.is_some() || !is_cheap(&request) {
        blocking(move || print_first(collection.find(request)?, style)).await?
    } else {
        let mut found = None;
        let give = &mut |document: JsonbRef<'_>| found = Some(print_one(Some(document), style));
        match collection.find_one_at_hand(request, give)? {
            None => found.unwrap_or_else(|| print_one(None, style)),
            Some(request) => blocking(move || print_first(collection.find(request)?, style)).await?,
        }
    };
    Ok(call.answer(StatusCode::OK, out))
}

fn print_first(mut cursor: Cursor, style: Style) -> Result<Vec<u8>> {
    let document = cursor.next()?;
    Ok(print_one(document.as_ref().map(|document| document.view()), style))
}

fn print_one(document: Option<JsonbRef<'_>>, style: Style) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    out.extend_from_slice(b"{\"document\":");
    match document {
        Some(document) => quarrydb_jsonb::print(document, style, &mut out),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
    out
}

/// find.
pub(crate) async fn find(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &FIND)?;
    let allow_disk_use = fields.bool("allowDiskUse", true)?;
    let (collection, mut request) = request(call, &fields)?;
    request.allow_disk_use = allow_disk_use;
    request.limit = fields.count("limit")?;
    answer_find(call, collection, request).await
}

/// Answers with the documents that a request asks for.
pub(crate) async fn answer_find(call: &Call, collection: Collection, request: FindRequest) -> Result<Response> {
    let namespace = || format!("{}.{}", collection.database_name(), collection.name());
    // A sort reads everything before its first document, an expression or a pattern may take long on a single one: that is
    // for another thread.
    if is_point(&request) || (request.sort.is_none() && is_cheap(&request) && collection.is_small()) {
        let cursor = collection.find(request)?;
        if cursor.is_cheap() {
            return stream::in_place(&call.app, cursor, call.shape());
        }
        return stream::streamed(&call.app, call.shape(), namespace(), move |_| Ok(cursor)).await;
    }
    let namespace = namespace();
    stream::streamed(&call.app, call.shape(), namespace, move |_| Ok(collection.find(request)?)).await
}

/// count.
pub(crate) async fn count(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &COUNT)?;
    let filter = filter(&fields)?;
    let (skip, limit) = (fields.count("skip")?.unwrap_or(0), fields.count("limit")?);
    let deadline = fields.deadline(call.app.settings.max_time)?;
    let collection = call.collection(&fields)?;
    let count = if filter.is_everything() && !collection.is_within() || is_quick(&filter) {
        collection.count(filter, skip, limit, deadline)?
    } else if let Some(count) = count_at_hand(&collection, &filter, skip, limit)? {
        count
    } else {
        blocking(move || Ok(collection.count(filter, skip, limit, deadline)?)).await?
    };
    let mut out = vec![b'{'];
    answer::count("count", count, &mut out);
    out.push(b'}');
    Ok(call.answer(StatusCode::OK, out))
}

/// A count that is found in place.
fn count_at_hand(
    collection: &Collection,
    filter: &quarrydb_query::Filter,
    skip: u64,
    limit: Option<u64>,
) -> Result<Option<u64>> {
    if filter.is_cheap() { Ok(collection.count_at_hand(filter, skip, limit)?) } else { Ok(None) }
}

/// What findOne and find have in common.
fn request(call: &Call, fields: &Fields<'_>) -> Result<(Collection, FindRequest)> {
    let mut request = FindRequest::new(filter(fields)?);
    request.projection = projection(fields)?;
    request.sort = sort(fields)?;
    request.skip = fields.count("skip")?.unwrap_or(0);
    request.deadline = fields.deadline(call.app.settings.max_time)?;
    Ok((call.collection(fields)?, request))
}

fn is_point(request: &FindRequest) -> bool {
    request.filter.id_point().is_some() && is_cheap(request)
}

fn is_cheap(request: &FindRequest) -> bool {
    request.filter.is_cheap() && request.projection.as_ref().is_none_or(quarrydb_query::Projection::is_cheap)
}
