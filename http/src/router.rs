//! All routes on one page.
//!
//! Takes the shared state; gives the router. A route names its operation; `routes/` does the work.

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{MethodRouter, any, delete, get, post};
use http::Request;

use crate::operation::Operation;
use crate::routes::{action, by_id, changes, collections, documents, import, server, transaction};
use crate::state::Shared;

/// The operations of `POST /v1/db/{db}/{coll}/<operation>`.
pub(crate) const DOCUMENT_OPERATIONS: [Operation; 20] = [
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
    Operation::Explain,
    Operation::CreateIndex,
    Operation::DropIndex,
    Operation::Compact,
];

/// Where the Data API's clients may be pointed.
const ACTION_PREFIXES: [&str; 3] = ["", "/data/v1", "/app/{app}/endpoint/data/v1"];

/// Every route there is.
pub(crate) fn all(app: Shared) -> Router {
    let mut router = Router::new()
        .route("/", get(server::page))
        .route("/healthz", get(server::healthz))
        .route("/livez", get(server::healthz))
        .route("/readyz", get(server::readyz))
        .route("/metrics", get(server::metrics))
        .route("/openapi.json", get(server::openapi_json))
        .route("/v1/db", get(collections::list_databases))
        .route("/v1/db/{db}", get(collections::database).delete(collections::database))
        .route(
            "/v1/db/{db}/{coll}",
            get(collections::collection).put(collections::collection).merge(delete(collections::collection)),
        )
        .route("/v1/db/{db}/{coll}/indexes", get(collections::indexes))
        .route("/v1/db/{db}/{coll}/import", post(import::handle))
        .route(
            "/v1/db/{db}/{coll}/doc/{id}",
            get(by_id::handle).put(by_id::handle).patch(by_id::handle).delete(by_id::handle),
        )
        .route("/v1/db/{db}/{coll}/changes", get(changes::handle))
        .route("/v1/changes", get(changes::handle))
        .route("/v1/transaction", post(transaction::single))
        .route("/v1/transactions", post(transaction::begin))
        .route("/v1/transactions/{id}/commit", post(transaction::commit))
        .route("/v1/transactions/{id}/abort", post(transaction::abort));
    for operation in DOCUMENT_OPERATIONS {
        router = router.route(&format!("/v1/db/{{db}}/{{coll}}/{}", operation.name()), document_operation(operation));
    }
    for prefix in ACTION_PREFIXES {
        router = router.route(&format!("{prefix}/action/{{action}}"), post(action::handle));
    }
    router.fallback(any(server::no_such_route)).method_not_allowed_fallback(server::method_not_allowed).with_state(app)
}

fn document_operation(operation: Operation) -> MethodRouter<Shared> {
    post(move |State(app): State<Shared>, request: Request<Body>| documents(app, operation, request))
}
