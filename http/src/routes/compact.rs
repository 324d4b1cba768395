//! compact: a collection's segments made as few as can be, without the rows that nobody can see any more.

use axum::response::Response;
use http::StatusCode;

use super::{Call, blocking};
use crate::answer;
use crate::error::Result;

/// compact. It takes as long as it takes, unless the request says for how long it may.
pub(crate) async fn compact(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &[])?;
    let deadline = fields.deadline(None)?;
    let collection = call.collection(&fields)?;
    let done = blocking(move || Ok(collection.compact(deadline)?)).await?.unwrap_or_default();
    let mut out = vec![b'{'];
    answer::count("segmentsBefore", done.segments_before, &mut out);
    answer::count("segmentsAfter", done.segments_after, &mut out);
    answer::count("bytesBefore", done.bytes_before, &mut out);
    answer::count("bytesAfter", done.bytes_after, &mut out);
    out.push(b'}');
    Ok(call.answer(StatusCode::OK, out))
}
