//! One document by its `_id` in the path, for a person with curl: GET, PUT, PATCH, DELETE.

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{Method, Request, StatusCode};
use quarrydb::{Collection, DeleteRequest, UpdateRequest};
use quarrydb_jsonb::{Builder, JsonbBuf};
use quarrydb_query::{Filter, Update};

use super::{Call, context, write};
use crate::answer;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::Fields;
use crate::operation::Operation;
use crate::state::Shared;

/// The wrappers that `?type=` may name, by their Extended JSON key. The text is the wrapper's.
const WRAPPED: [(&str, &str); 7] = [
    ("objectId", "$oid"),
    ("int", "$numberInt"),
    ("long", "$numberLong"),
    ("double", "$numberDouble"),
    ("decimal", "$numberDecimal"),
    ("date", "$date"),
    ("uuid", "$uuid"),
];

/// All four methods.
pub(crate) async fn handle(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    let operation = match parts.method {
        Method::PUT => Operation::PutDocument,
        Method::PATCH => Operation::PatchDocument,
        Method::DELETE => Operation::DeleteDocument,
        _ => Operation::GetDocument,
    };
    let call = match Call::new(&app, operation, &mut parts).await {
        Ok(call) => call,
        Err(error) => return error.into_response(),
    };
    let mut text = Vec::new();
    let result = run(&call, &mut parts, body, &mut text).await;
    let response = call.settle(result);
    call.done(&text, response.status());
    response
}

async fn run(call: &Call, parts: &mut Parts, body: Body, text: &mut Vec<u8>) -> Result<Response> {
    let written = path_id(parts).await?;
    let id = parse_id(&written, wanted_type(parts)?)?;
    if call.operation == Operation::GetDocument {
        let names = JsonbBuf::from_valid(empty_object());
        let collection = call.collection(&call.fields(names.view(), &[])?)?;
        return get(call, &collection, &id, &written);
    }
    let collected = body::collect(&call.app, &parts.headers, body).await?;
    text.extend_from_slice(&collected.bytes[..collected.bytes.len().min(4096)]);
    let object = filter_object(&id);
    let filter = Filter::parse(object.view(), &context("_id", None))?;
    match call.operation {
        Operation::PutDocument => {
            let document = quarrydb_jsonb::parse(&collected.bytes)?;
            let replacement = Update::parse_replacement(document.view(), &context("document", None))?;
            let mut request = UpdateRequest::one(filter, replacement);
            request.upsert = true;
            let (collection, options) = plain(call)?;
            let outcome = write::run_update(call, collection, request, options).await?;
            let status = if outcome.upserted_id.is_some() { StatusCode::CREATED } else { StatusCode::OK };
            Ok(call.answer(status, write::print_update(call, &outcome)))
        }
        Operation::PatchDocument => {
            let update = quarrydb_jsonb::parse(&collected.bytes)?;
            let update = write::parse_update(update.view(), None, None)?;
            let (collection, options) = plain(call)?;
            let outcome = write::run_update(call, collection, UpdateRequest::one(filter, update), options).await?;
            if outcome.matched == 0 {
                return Err(ApiError::no_such_document(&written));
            }
            Ok(call.answer(StatusCode::OK, write::print_update(call, &outcome)))
        }
        _ => {
            let (collection, options) = if collected.bytes.is_empty() {
                plain(call)?
            } else {
                let parsed = quarrydb_jsonb::parse(&collected.bytes)?;
                let fields = call.fields(parsed.view(), &["writeConcern"])?;
                (call.collection(&fields)?, call.write_options(&fields)?)
            };
            let deleted = write::run_delete(call, collection, DeleteRequest::one(filter), options).await?;
            if deleted == 0 {
                return Err(ApiError::no_such_document(&written));
            }
            let mut out = vec![b'{'];
            answer::count("deletedCount", deleted, &mut out);
            out.push(b'}');
            Ok(call.answer(StatusCode::OK, out))
        }
    }
}

/// The collection of the path, and the options of a request that cannot say any.
fn plain(call: &Call) -> Result<(Collection, quarrydb::WriteOptions)> {
    let none = JsonbBuf::from_valid(empty_object());
    let fields: Fields<'_> = call.fields(none.view(), &[])?;
    Ok((call.collection(&fields)?, call.write_options(&fields)?))
}

fn get(call: &Call, collection: &Collection, id: &JsonbBuf, written: &str) -> Result<Response> {
    let found = collection.get(id.view())?;
    let document = found.ok_or_else(|| ApiError::no_such_document(written))?;
    let mut out = Vec::with_capacity(512);
    quarrydb_jsonb::print(document.view(), call.form.style, &mut out);
    Ok(call.answer(StatusCode::OK, out))
}

/// The id of the path, percent-decoded once.
async fn path_id(parts: &mut Parts) -> Result<String> {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params.map_err(|_| ApiError::bad_value("the _id in the path is not UTF-8 once decoded"))?;
    let id = params.iter().find(|(name, _)| *name == "id").map(|(_, value)| value.to_owned());
    id.ok_or_else(|| ApiError::internal(&"a route without an id"))
}

fn wanted_type(parts: &Parts) -> Result<Option<&str>> {
    let mut wanted = None;
    for pair in parts.uri.query().unwrap_or("").split('&').filter(|p| !p.is_empty()) {
        match pair.split_once('=') {
            Some(("type", name)) => wanted = Some(name),
            _ => {
                let message = format!("the query string has no parameter {pair:.60?} here: it takes type");
                return Err(ApiError::bad("IDLUnknownField", 40415, message));
            }
        }
    }
    Ok(wanted)
}

/// The value that the text of a path means: by its look, or as `?type=` says.
fn parse_id(text: &str, wanted: Option<&str>) -> Result<JsonbBuf> {
    let json = |json: String| {
        quarrydb_jsonb::parse(json.as_bytes()).map_err(|e| ApiError::from(e).within(&format!("the _id {text:.80}")))
    };
    match wanted {
        Some("string") => Ok(string(text)),
        Some("bool") if matches!(text, "true" | "false") => json(text.to_owned()),
        Some("null") if text == "null" => json(text.to_owned()),
        Some(name) => match WRAPPED.iter().find(|(known, _)| *known == name) {
            Some((_, key)) => json(format!("{{\"{key}\":{}}}", answer::quoted(text))),
            None => {
                let known: Vec<_> = WRAPPED.iter().map(|(known, _)| *known).collect();
                Err(ApiError::bad_value(format!(
                    "type {name:.40?} of the _id {text:.80?}: string, bool, null, {}",
                    known.join(", ")
                )))
            }
        },
        None if text.len() == 24 && text.bytes().all(|b| b.is_ascii_hexdigit()) => {
            json(format!("{{\"$oid\":\"{text}\"}}"))
        }
        None if is_number(text) => json(text.to_owned()),
        None => Ok(string(text)),
    }
}

/// Whether a text is a number as JSON writes it.
fn is_number(text: &str) -> bool {
    let begins = text.strip_prefix('-').unwrap_or(text).starts_with(|c: char| c.is_ascii_digit());
    begins && quarrydb_jsonb::parse(text.as_bytes()).is_ok()
}

fn string(text: &str) -> JsonbBuf {
    let mut b = Builder::new();
    b.string(text);
    JsonbBuf::from_valid(b.take())
}

fn empty_object() -> Vec<u8> {
    let mut b = Builder::new();
    b.begin_object();
    let _ = b.end_object();
    b.take()
}

/// `{_id: {$eq: id}}`: an `_id` that is an object is a value here, never an operator.
fn filter_object(id: &JsonbBuf) -> JsonbBuf {
    let mut b = Builder::new();
    b.begin_object();
    b.field("_id");
    b.begin_object();
    b.field("$eq");
    b.copy(id.view());
    let _ = b.end_object();
    let _ = b.end_object();
    JsonbBuf::from_valid(b.take())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use quarrydb_jsonb::Style;

    use super::*;

    fn canonical(text: &str, wanted: Option<&str>) -> String {
        let mut out = Vec::new();
        quarrydb_jsonb::print(parse_id(text, wanted).unwrap().view(), Style::Canonical, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_text_means_what_it_looks_like() {
        assert_eq!(canonical("65a1b2c3d4e5f60718293a4b", None), r#"{"$oid":"65a1b2c3d4e5f60718293a4b"}"#);
        assert_eq!(canonical("65a1b2c3d4e5f60718293a4", None), r#""65a1b2c3d4e5f60718293a4""#);
        assert_eq!(canonical("42", None), r#"{"$numberInt":"42"}"#);
        assert_eq!(canonical("-5000000000", None), r#"{"$numberLong":"-5000000000"}"#);
        assert_eq!(canonical("4.5", None), r#"{"$numberDouble":"4.5"}"#);
        for text in ["007", "+1", "0x10", "true", "null", "a b", "1 2", "-", "NaN", "\"q\"", "{}"] {
            assert_eq!(canonical(text, None), answer::quoted(text));
        }
    }

    #[test]
    fn a_type_says_otherwise() {
        assert_eq!(canonical("42", Some("string")), "\"42\"");
        assert_eq!(canonical("42", Some("long")), r#"{"$numberLong":"42"}"#);
        assert_eq!(canonical("42", Some("decimal")), r#"{"$numberDecimal":"42"}"#);
        assert_eq!(canonical("true", Some("bool")), "true");
        for (text, wanted) in [("x", "int"), ("zz", "objectId"), ("1", "colour"), ("yes", "bool"), ("4.5", "int")] {
            assert_eq!(parse_id(text, Some(wanted)).unwrap_err().status(), 400, "{text} {wanted}");
        }
    }
}
