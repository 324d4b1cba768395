//! distinct: the different values at a path.

use axum::response::Response;
use http::StatusCode;
use quarrydb_query::Distinct;

use super::{Call, blocking, context, filter};
use crate::error::Result;

const TAKEN: [&str; 3] = ["key", "filter", "hint"];

/// distinct.
pub(crate) async fn distinct(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &TAKEN)?;
    let mut distinct = Distinct::parse(fields.required("key")?, &context("key", None))?;
    let filter = filter(&fields)?;
    let deadline = fields.deadline(call.app.settings.max_time)?;
    let collection = call.collection(&fields)?;
    let style = call.form.style;
    let out = blocking(move || {
        collection.distinct(&mut distinct, filter, deadline)?;
        let mut out = b"{\"values\":[".to_vec();
        for (i, value) in distinct.values().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            quarrydb_jsonb::print(value, style, &mut out);
        }
        out.extend_from_slice(b"]}");
        Ok(out)
    })
    .await?;
    Ok(call.answer(StatusCode::OK, out))
}
