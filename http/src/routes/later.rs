//! What is not built yet: it says so, after the names and the method were checked, and pretends nothing.

use axum::response::Response;

use super::{Call, Names};
use crate::error::{ApiError, Result};

/// Refuses a document operation whose body was received.
pub(crate) fn refuse(call: &Call, body: &[u8]) -> Result<Response> {
    quarrydb_jsonb::parse(body)?;
    if let Names::Path { db, coll } = &call.names {
        call.database()?.collection(db, coll)?;
    }
    Err(ApiError::not_implemented(call.operation.name()))
}
