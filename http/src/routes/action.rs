//! The routes of the MongoDB Atlas Data API, under its three prefixes: names in the body, its own answer forms.

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::response::{IntoResponse, Response};
use http::Request;
use quarrydb_jsonb::Style;

use super::transaction::Inside;
use super::{Call, Names, answered};
use crate::error::ApiError;
use crate::operation::Operation;
use crate::state::Shared;

/// The ten actions.
const ACTIONS: [Operation; 10] = [
    Operation::FindOne,
    Operation::Find,
    Operation::InsertOne,
    Operation::InsertMany,
    Operation::UpdateOne,
    Operation::UpdateMany,
    Operation::ReplaceOne,
    Operation::DeleteOne,
    Operation::DeleteMany,
    Operation::Aggregate,
];

/// `POST .../action/{action}`.
pub(crate) async fn handle(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    let named = params.ok().and_then(|p| p.iter().find(|(k, _)| *k == "action").map(|(_, v)| v.to_owned()));
    let operation = named.as_deref().and_then(Operation::from_name).filter(|o| ACTIONS.contains(o));
    let Some(operation) = operation else { return ApiError::no_such_route(parts.uri.path()).into_response() };
    let mut call = Call::of(&app, operation, Names::Body, &parts, Style::Plain);
    call.form.lines = false;
    match Inside::of(&app, operation, &parts.headers) {
        Ok(inside) => call.inside = inside,
        Err(error) => return error.into_response(),
    }
    answered(call, &parts.headers, body).await
}
