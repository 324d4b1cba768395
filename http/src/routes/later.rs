//! What is not built yet: it says so, after the names and the method were checked, and pretends nothing.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::Request;

use super::{Call, Names};
use crate::body;
use crate::error::{ApiError, Result};
use crate::operation::Operation;
use crate::state::Shared;

/// Refuses a document operation whose body was received.
pub(crate) fn refuse(call: &Call, body: &[u8]) -> Result<Response> {
    quarrydb_jsonb::parse(body)?;
    if let Names::Path { db, coll } = &call.names {
        call.database()?.collection(db, coll)?;
    }
    Err(ApiError::not_implemented(call.operation.name()))
}

/// Change streams.
pub(crate) async fn changes(State(app): State<Shared>, request: Request<Body>) -> Response {
    without_body(&app, Operation::Changes, "change streams", request).await
}

async fn without_body(app: &Shared, operation: Operation, what: &str, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    body::drain(body);
    let error = match Call::new(app, operation, &mut parts).await {
        Ok(call) => {
            call.done(&[], http::StatusCode::NOT_IMPLEMENTED);
            ApiError::not_implemented(what)
        }
        Err(error) => error,
    };
    error.into_response()
}
