//! explain: how an operation finds its documents, and what that took. The reading is done; nothing is written.

use axum::response::Response;
use http::StatusCode;
use quarrydb::{Collection, Explained, FindRequest};
use quarrydb_jsonb::JsonbRef;
use quarrydb_query::{Distinct, Update};

use super::aggregate;
use super::write::update_of;
use super::{Call, blocking, context, filter, projection, sort};
use crate::answer;
use crate::error::{ApiError, Result};
use crate::fields::Fields;

/// Operations that can be explained, each with the fields that its body takes.
const TAKEN: [(&str, &[&str]); 13] = [
    ("find", &["filter", "projection", "sort", "skip", "limit", "hint", "let", "allowDiskUse"]),
    ("findOne", &["filter", "projection", "sort", "skip", "hint", "let"]),
    ("count", &["filter", "skip", "limit", "hint"]),
    ("distinct", &["key", "filter", "hint"]),
    ("updateOne", &["filter", "update", "upsert", "arrayFilters", "hint", "let", "sort", "writeConcern"]),
    ("updateMany", &["filter", "update", "upsert", "arrayFilters", "hint", "let", "writeConcern"]),
    ("replaceOne", &["filter", "replacement", "upsert", "sort", "hint", "let", "writeConcern"]),
    ("deleteOne", &["filter", "hint", "let", "writeConcern"]),
    ("deleteMany", &["filter", "hint", "let", "writeConcern"]),
    (
        "findOneAndUpdate",
        &[
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
        ],
    ),
    (
        "findOneAndReplace",
        &["filter", "replacement", "projection", "sort", "upsert", "returnDocument", "hint", "let", "writeConcern"],
    ),
    ("findOneAndDelete", &["filter", "projection", "sort", "hint", "let", "writeConcern"]),
    ("aggregate", &aggregate::TAKEN),
];

/// explain.
pub(crate) async fn explain(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let names: Vec<&str> = TAKEN.iter().map(|(name, _)| *name).collect();
    let fields = call.fields(body.view(), &names)?;
    let mut asked = TAKEN.iter().filter_map(|(name, taken)| fields.get(name).map(|value| (*name, *taken, value)));
    let (Some((name, taken, value)), None) = (asked.next(), asked.next()) else {
        let message = format!("explain takes one operation: one of {}", names.join(", "));
        return Err(ApiError::bad("FailedToParse", 9, message));
    };
    let collection = call.collection(&fields)?;
    if name == "aggregate" {
        let fields = Fields::new(value, name, taken, &[])?;
        fields.check_hint(&collection)?;
        let request = aggregate::request(call, &fields).map_err(|e| e.inside(name))?;
        aggregate::check_access(call, collection.database_name(), &request)?;
        let explained = blocking(move || Ok(collection.aggregate(request)?.explain()?)).await?;
        return Ok(call.answer(StatusCode::OK, print(call, &explained)));
    }
    let request = request(call, &collection, name, taken, value).map_err(|e| e.inside(name))?;
    let explained = if name == "count" && request.filter.is_everything() {
        collection.explain_count(request)?
    } else {
        let counts = name == "count";
        blocking(move || Ok(if counts { collection.explain_count(request)? } else { collection.explain(request)? }))
            .await?
    };
    Ok(call.answer(StatusCode::OK, print(call, &explained)))
}

/// The reading that an operation does.
fn request(
    call: &Call,
    collection: &Collection,
    name: &str,
    taken: &[&str],
    value: JsonbRef<'_>,
) -> Result<FindRequest> {
    let fields = Fields::new(value, name, taken, &[])?;
    fields.check_hint(collection)?;
    // What an operation would refuse is refused here too.
    if taken.contains(&"update") {
        update_of(&fields)?;
    } else if taken.contains(&"replacement") {
        Update::parse_replacement(fields.required("replacement")?, &context("replacement", None))?;
    } else if taken.contains(&"key") {
        Distinct::parse(fields.required("key")?, &context("key", None))?;
    }
    let mut request = FindRequest::new(filter(&fields)?);
    request.sort = sort(&fields)?;
    request.skip = fields.count("skip")?.unwrap_or(0);
    request.limit = fields.count("limit")?;
    request.deadline = fields.deadline(call.app.settings.max_time)?;
    if matches!(name, "find" | "findOne") {
        request.projection = projection(&fields)?;
    }
    if name == "findOne" || name.ends_with("One") || name.starts_with("findOneAnd") {
        request.limit = Some(1);
    }
    Ok(request)
}

/// `{plan, execution}`.
fn print(call: &Call, explained: &Explained) -> Vec<u8> {
    let mut out = b"{\"plan\":".to_vec();
    quarrydb_jsonb::print(explained.plan.view(), call.form.style, &mut out);
    out.extend_from_slice(b",\"execution\":{");
    answer::count("documentsExamined", explained.documents_examined, &mut out);
    answer::count("columnsRead", explained.columns_read, &mut out);
    answer::count("segmentsTotal", explained.segments_total, &mut out);
    answer::count("segmentsSkipped", explained.segments_skipped, &mut out);
    answer::count("rowsReturned", explained.rows_returned, &mut out);
    answer::count("timeMicros", explained.time_micros, &mut out);
    answer::count("threads", explained.threads, &mut out);
    out.extend_from_slice(b"}}");
    out
}
