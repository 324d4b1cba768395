//! insertOne and insertMany: the body's documents go into the engine as they are parsed, in one commit.

use axum::response::Response;
use http::StatusCode;
use quarrydb::{InsertBatch, InsertOutcome};
use quarrydb_jsonb::{JsonbRef, Kind};

use super::{Call, Names, failures};
use crate::answer;
use crate::error::{ApiError, Result};
use crate::fields;

/// Bodies above this, a few milliseconds of parsing, are taken off the worker.
const IN_PLACE_BYTES: usize = 512 << 10;

/// insertOne.
pub(crate) async fn one(call: &Call, body: &[u8]) -> Result<Response> {
    let mut outcome = insert(call, body, "document").await?;
    if let Some(failure) = outcome.errors.pop() {
        return Err(ApiError::from(failure.error).within("document"));
    }
    let Some((_, id)) = outcome.ids().next() else { return Err(fields::missing("document")) };
    let mut out = b"{\"insertedId\":".to_vec();
    quarrydb_jsonb::print(id, call.form.style, &mut out);
    out.push(b'}');
    Ok(call.answer(StatusCode::CREATED, out))
}

/// insertMany.
pub(crate) async fn many(call: &Call, body: &[u8]) -> Result<Response> {
    let outcome = insert(call, body, "documents").await?;
    if outcome.errors.is_empty() {
        let mut out = vec![b'{'];
        inserted(call, &outcome, &mut out);
        out.push(b'}');
        return Ok(call.answer(StatusCode::CREATED, out));
    }
    Ok(failed(call, outcome))
}

/// 409 or 400 with what failed and what was done all the same.
fn failed(call: &Call, mut outcome: InsertOutcome) -> Response {
    let failures: Vec<(usize, ApiError)> =
        outcome.errors.drain(..).map(|f| (f.index, ApiError::from(f.error))).collect();
    let mut out = vec![b'{'];
    let status = failures::print("documents", &failures, &mut out);
    out.push(b',');
    inserted(call, &outcome, &mut out);
    out.push(b'}');
    call.answer(status, out)
}

/// `"insertedIds":[...],"insertedCount":n`; the Data API has no count.
fn inserted(call: &Call, outcome: &InsertOutcome, out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"insertedIds\":[");
    let start = out.len();
    for (_, id) in outcome.ids() {
        if out.len() > start {
            out.push(b',');
        }
        quarrydb_jsonb::print(id, call.form.style, out);
    }
    out.push(b']');
    if matches!(call.names, Names::Path { .. }) {
        answer::count("insertedCount", outcome.inserted, out);
    }
}

async fn insert(call: &Call, body: &[u8], field: &'static str) -> Result<InsertOutcome> {
    let database = call.database()?;
    let (batch, rest) = if body.len() <= IN_PLACE_BYTES {
        InsertBatch::from_body(database, body, field)?
    } else {
        tokio::task::block_in_place(|| InsertBatch::from_body(database, body, field))?
    };
    let taken = ["document", "documents", "ordered", "writeConcern"];
    let fields =
        call.fields(rest.view(), if field == "document" { &["document", "writeConcern"] } else { &taken[1..] })?;
    if let Some(other) = fields.get(field) {
        return Err(ApiError::wrong_type(field, if field == "document" { "an object" } else { "an array" }, other));
    }
    check_shape(body, field, batch.len())?;
    let ordered = fields.bool("ordered", true)?;
    let options = call.write_options(&fields)?;
    let collection = call.collection(&fields)?;
    let pending = if body.len() <= IN_PLACE_BYTES {
        collection.insert_batch(batch, ordered, &options)?
    } else {
        tokio::task::block_in_place(|| collection.insert_batch(batch, ordered, &options))?
    };
    call.app.landed(pending).await
}

/// `document` is one object and `documents` an array that is not empty; the batch does not tell them apart.
fn check_shape(body: &[u8], field: &str, documents: usize) -> Result<()> {
    let (opening, wanted) = if field == "document" { (b'{', Kind::Object) } else { (b'[', Kind::Array) };
    if documents > 1 && wanted == Kind::Array {
        return Ok(());
    }
    if documents == 1 && leads_with(body, field, opening) {
        return Ok(());
    }
    let parsed = quarrydb_jsonb::parse(body);
    let value = parsed.as_ref().ok().and_then(|p| p.view().get(field));
    match value.map(JsonbRef::kind) {
        None if documents == 0 => Err(fields::missing(field)),
        Some(Kind::Array) if documents == 0 => {
            Err(ApiError::bad("InvalidLength", 16, "documents must hold at least one document").at("documents"))
        }
        // A document that is bad in itself does not parse here: its own error is what the answer says.
        None => Ok(()),
        Some(kind) if kind == wanted => Ok(()),
        Some(_) => {
            let wanted = if wanted == Kind::Object { "one document" } else { "an array of documents" };
            Err(ApiError::wrong_type(field, wanted, value.unwrap_or(quarrydb_jsonb::NULL)))
        }
    }
}

/// Whether the body begins with `{"field":` and then `opening`: nearly all do.
fn leads_with(body: &[u8], field: &str, opening: u8) -> bool {
    let rest = body.trim_ascii_start().strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let rest = rest.and_then(|r| r.strip_prefix(b"\"")).and_then(|r| r.strip_prefix(field.as_bytes()));
    let rest = rest.and_then(|r| r.strip_prefix(b"\"")).map(<[u8]>::trim_ascii_start);
    let rest = rest.and_then(|r| r.strip_prefix(b":")).map(<[u8]>::trim_ascii_start);
    rest.is_some_and(|r| r.first() == Some(&opening))
}
