//! Transactions: several operations in one request, and interactive ones by their ids.
//!
//! `steps.rs` reads the operations of a body, `outcome.rs` runs them and prints what came of them. A request inside an
//! interactive transaction says so in the header `Transaction-Id`; `Inside` is what it then has.

mod outcome;
mod steps;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams, State};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use quarrydb::{Database, Transaction};
use quarrydb_jsonb::JsonbRef;

use super::{Call, blocking};
use crate::answer;
use crate::body;
use crate::error::{ApiError, Result};
use crate::operation::Operation;
use crate::state::Shared;

/// The header that names the interactive transaction of a request.
pub(crate) const HEADER: &str = "transaction-id";

/// What may run inside an interactive transaction.
const INSIDE: [Operation; 21] = [
    Operation::InsertOne,
    Operation::InsertMany,
    Operation::FindOne,
    Operation::Find,
    Operation::Count,
    Operation::Distinct,
    Operation::Aggregate,
    Operation::UpdateOne,
    Operation::UpdateMany,
    Operation::ReplaceOne,
    Operation::DeleteOne,
    Operation::DeleteMany,
    Operation::FindOneAndUpdate,
    Operation::FindOneAndReplace,
    Operation::FindOneAndDelete,
    Operation::BulkWrite,
    Operation::GetDocument,
    Operation::PutDocument,
    Operation::PatchDocument,
    Operation::DeleteDocument,
    // It names its transaction in its path too.
    Operation::Transaction,
];

/// The interactive transaction that a request runs in.
#[derive(Debug)]
pub(crate) struct Inside {
    id: String,
    database: Database,
    pub(crate) transaction: Transaction,
}

impl Inside {
    /// The transaction that a request names; none where it names none.
    ///
    /// # Errors
    /// 404 for one that is not open, 400 for an operation that cannot be in one.
    pub(crate) fn of(app: &Shared, operation: Operation, headers: &HeaderMap) -> Result<Option<Self>> {
        let mut named = headers.get_all(HEADER).iter();
        let Some(value) = named.next() else { return Ok(None) };
        let id = value.to_str().ok().filter(|_| named.next().is_none());
        let id = id.ok_or_else(|| ApiError::bad_value("Transaction-Id must be one transactionId, as it was given"))?;
        let database = app.database()?.clone();
        let inside = Self { id: id.to_owned(), transaction: database.transaction_by_id(id)?, database };
        if INSIDE.contains(&operation) {
            return Ok(Some(inside));
        }
        inside.failed();
        Err(unsupported(operation.name()))
    }

    /// Ends the transaction: an operation in it has failed.
    fn failed(&self) {
        self.transaction.abort_soon();
        self.database.note_by_id(&self.id, &self.transaction);
    }

    /// Notes how an operation in it ended.
    pub(crate) fn note(&self, status: StatusCode, fault: Option<&str>) {
        // Whoever came between two of its operations has done nothing in it.
        if !status.is_success() && fault != Some("ConflictingOperationInProgress") {
            self.failed();
        }
    }
}

/// 400 for what cannot be part of a transaction.
fn unsupported(name: &str) -> ApiError {
    let message = format!("{name} cannot be part of a transaction: send it without, or outside");
    ApiError::bad("OperationNotSupportedInTransaction", 263, message)
}

/// `POST /v1/transaction`: several operations as one.
pub(crate) async fn single(State(app): State<Shared>, request: Request<Body>) -> Response {
    run(&app, request, async |call, parts, body| {
        if parts.headers.contains_key(HEADER) {
            return Err(unsupported("a transaction"));
        }
        super::run(call, body).await
    })
    .await
}

/// The same with its whole body.
///
/// # Errors
/// That of the first operation that fails, with nothing done.
pub(crate) async fn several(call: &Call, body: &[u8]) -> Result<Response> {
    let parsed = quarrydb_jsonb::parse(body)?;
    let plan = steps::plan(call, parsed.view())?;
    let budget = &call.app.budget;
    let results = if plan.is_quick() {
        outcome::transact(call.database()?, &plan, budget)?
    } else {
        let (database, budget) = (call.database()?.clone(), budget.clone());
        blocking(move || outcome::transact(&database, &plan, &budget)).await?
    };
    let (results, _held) = call.app.landed(results).await?;
    let mut out = b"{\"results\":[".to_vec();
    for (i, result) in results.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        result.print(call.form.style, &mut out);
    }
    out.extend_from_slice(b"]}");
    Ok(call.answer(StatusCode::OK, out))
}

/// `POST /v1/transactions`: begins one.
pub(crate) async fn begin(State(app): State<Shared>, request: Request<Body>) -> Response {
    run(&app, request, async |call, parts, body| {
        if parts.headers.contains_key(HEADER) {
            return Err(unsupported("beginning a transaction"));
        }
        fields(call, body, &[], |_| Ok(()))?;
        let id = call.database()?.begin_by_id()?;
        let mut out = b"{\"transactionId\":".to_vec();
        answer::string(&id, &mut out);
        out.push(b'}');
        Ok(call.answer(StatusCode::CREATED, out))
    })
    .await
}

/// `POST /v1/transactions/{id}/commit`.
pub(crate) async fn commit(State(app): State<Shared>, request: Request<Body>) -> Response {
    run(&app, request, async |call, parts, body| {
        let id = path_id(parts).await?;
        let options = fields(call, body, &["writeConcern"], |fields| call.write_options(fields))?;
        let database = call.database()?.clone();
        // What it has written may be much: other requests of this thread must not wait for it.
        let pending = blocking(move || Ok(database.commit_by_id(&id, &options)?)).await?;
        call.app.landed(pending).await?;
        Ok(call.answer(StatusCode::OK, b"{\"committed\":true}".to_vec()))
    })
    .await
}

/// `POST /v1/transactions/{id}/abort`.
pub(crate) async fn abort(State(app): State<Shared>, request: Request<Body>) -> Response {
    run(&app, request, async |call, parts, body| {
        let id = path_id(parts).await?;
        fields(call, body, &[], |_| Ok(()))?;
        let database = call.database()?.clone();
        // An operation that runs in it is waited for.
        blocking(move || Ok(database.abort_by_id(&id)?)).await?;
        Ok(call.answer(StatusCode::OK, b"{\"aborted\":true}".to_vec()))
    })
    .await
}

/// Receives the body and answers.
async fn run(
    app: &Shared,
    request: Request<Body>,
    work: impl AsyncFnOnce(&Call, &mut Parts, &[u8]) -> Result<Response>,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let call = match Call::new(app, Operation::Transaction, &mut parts).await {
        Ok(call) => call,
        Err(error) => {
            body::drain(body);
            return error.into_response();
        }
    };
    let mut text = bytes::Bytes::new();
    let result = async {
        let collected = body::collect(app, &parts.headers, body).await?;
        text = collected.bytes.clone();
        work(&call, &mut parts, &collected.bytes).await
    };
    let response = result.await.unwrap_or_else(IntoResponse::into_response);
    call.done(&text, response.status());
    response
}

/// What a body that may be empty says.
fn fields<T>(
    call: &Call,
    body: &[u8],
    taken: &[&str],
    read: impl FnOnce(&crate::fields::Fields<'_>) -> Result<T>,
) -> Result<T> {
    let body = if body.is_empty() { quarrydb_jsonb::parse(b"{}")? } else { quarrydb_jsonb::parse(body)? };
    let body: JsonbRef<'_> = body.view();
    read(&call.fields(body, taken)?)
}

/// The transaction that the path names, and the header too where it is there.
async fn path_id(parts: &mut Parts) -> Result<String> {
    let params = RawPathParams::from_request_parts(parts, &()).await;
    let params = params.map_err(|_| ApiError::bad_value("the id in the path is not UTF-8 once decoded"))?;
    let id = params.iter().find(|(name, _)| *name == "id").map(|(_, value)| value.to_owned());
    let id = id.ok_or_else(|| ApiError::internal(&"a route without an id"))?;
    if parts.headers.get_all(HEADER).iter().any(|named| named.as_bytes() != id.as_bytes()) {
        return Err(ApiError::bad_value("the path and the header Transaction-Id name two transactions"));
    }
    Ok(id)
}
