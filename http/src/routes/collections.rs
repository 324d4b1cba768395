//! Databases and collections: listed, described, made, dropped.

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, StatusCode};
use quarrydb::{CollectionStats, Created, EngineStats, IndexInfo};
use quarrydb_jsonb::{Builder, JsonbBuf};

use super::{Call, indexes};
use crate::answer;
use crate::body;
use crate::error::{ApiError, Result};
use crate::fields::Fields;
use crate::operation::Operation;
use crate::state::Shared;

/// `GET /v1/db`.
pub(crate) async fn list_databases(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    with_call(&app, Operation::ListDatabases, &mut parts, body, async |call, _| {
        let mut out = b"{\"databases\":[".to_vec();
        let start = out.len();
        for info in call.database()?.databases() {
            if call.grant.as_ref().is_some_and(|g| !g.allows(&info.name, Operation::ListDatabases.role())) {
                continue;
            }
            if out.len() > start {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"name\":");
            answer::string(&info.name, &mut out);
            answer::count("collections", info.collections, &mut out);
            answer::count("documents", info.documents, &mut out);
            answer::count("bytesOnDisk", info.bytes_on_disk, &mut out);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        Ok(call.answer(StatusCode::OK, out))
    })
    .await
}

/// `GET` and `DELETE /v1/db/{db}`.
pub(crate) async fn database(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    if parts.method == Method::DELETE {
        return with_call(&app, Operation::DropDatabase, &mut parts, body, async |call, body| {
            with_fields(body, call, |call, fields| {
                let super::Names::Path { db, .. } = &call.names else { return Err(ApiError::internal(&"no path")) };
                Ok(call.database()?.drop_database(db, &call.write_options(fields)?)?)
            })?
            .await
            .map_err(ApiError::from)
            .map(|dropped| answer_dropped(call, dropped))
        })
        .await;
    }
    with_call(&app, Operation::ListCollections, &mut parts, body, async |call, _| {
        let super::Names::Path { db, .. } = &call.names else { return Err(ApiError::internal(&"no path")) };
        let mut out = b"{\"collections\":[".to_vec();
        for (i, info) in call.database()?.collections(db)?.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"name\":");
            answer::string(&info.name, &mut out);
            answer::count("documents", info.documents, &mut out);
            answer::count("bytesOnDisk", info.bytes_on_disk, &mut out);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
        Ok(call.answer(StatusCode::OK, out))
    })
    .await
}

/// `GET`, `PUT` and `DELETE /v1/db/{db}/{coll}`.
pub(crate) async fn collection(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    match parts.method {
        Method::PUT => with_call(&app, Operation::CreateCollection, &mut parts, body, create).await,
        Method::DELETE => {
            with_call(&app, Operation::DropCollection, &mut parts, body, async |call, body| {
                let pending = with_fields(body, call, |call, fields| {
                    Ok(call.collection(fields)?.drop(&call.write_options(fields)?)?)
                })?;
                Ok(answer_dropped(call, pending.await?))
            })
            .await
        }
        _ => {
            with_call(&app, Operation::DescribeCollection, &mut parts, body, async |call, _| {
                let collection = with_fields(&Bytes::new(), call, |call, fields| call.collection(fields))?;
                let (stats, indexes) = (collection.stats(), collection.indexes());
                Ok(call.answer(StatusCode::OK, print_stats(stats.as_ref(), &indexes, &call.database()?.stats())?))
            })
            .await
        }
    }
}

/// `GET .../indexes`.
pub(crate) async fn indexes(State(app): State<Shared>, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    with_call(&app, Operation::ListIndexes, &mut parts, body, async |call, _| {
        let collection = with_fields(&Bytes::new(), call, |call, fields| call.collection(fields))?;
        let mut out = b"{\"indexes\":[".to_vec();
        if let Some(stats) = collection.stats() {
            indexes::print(stats.documents, &collection.indexes(), &mut out)?;
        }
        out.extend_from_slice(b"]}");
        Ok(call.answer(StatusCode::OK, out))
    })
    .await
}

async fn create(call: &Call, body: &Bytes) -> Result<Response> {
    let parsed = parse_or_empty(body)?;
    let fields = call.fields(parsed.view(), &["writeConcern"])?;
    let collection = call.collection(&fields)?;
    // No option of a collection exists yet; what is common to all requests is none of its own.
    let options = parse_or_empty(&Bytes::new())?;
    let created = collection.create(options.view(), &call.write_options(&fields)?)?.await?;
    let status = match created {
        Created::New => StatusCode::CREATED,
        Created::Same => StatusCode::OK,
    };
    Ok(call.answer(status, b"{}".to_vec()))
}

/// Runs one of these operations and notes it. A GET's body is not read.
async fn with_call(
    app: &Shared,
    operation: Operation,
    parts: &mut Parts,
    body: Body,
    run: impl AsyncFnOnce(&Call, &Bytes) -> Result<Response>,
) -> Response {
    let call = match Call::new(app, operation, parts).await {
        Ok(call) => call,
        Err(error) => return error.into_response(),
    };
    let result = async {
        super::query_flag(parts, "", &[])?;
        if parts.method == Method::GET || parts.method == Method::HEAD {
            return run(&call, &Bytes::new()).await;
        }
        let collected = body::collect(app, &parts.headers, body).await?;
        run(&call, &collected.bytes).await
    };
    let response = result.await.unwrap_or_else(IntoResponse::into_response);
    call.done(&[], response.status());
    response
}

/// Reads the fields that these requests may have and hands them to `run`.
fn with_fields<T>(body: &Bytes, call: &Call, run: impl FnOnce(&Call, &Fields<'_>) -> Result<T>) -> Result<T> {
    let parsed = parse_or_empty(body)?;
    let fields = call.fields(parsed.view(), &["writeConcern"])?;
    run(call, &fields)
}

fn parse_or_empty(body: &Bytes) -> Result<JsonbBuf> {
    if !body.is_empty() {
        return Ok(quarrydb_jsonb::parse(body)?);
    }
    let mut b = Builder::new();
    b.begin_object();
    b.end_object()?;
    Ok(JsonbBuf::from_valid(b.take()))
}

fn answer_dropped(call: &Call, dropped: bool) -> Response {
    call.answer(StatusCode::OK, format!("{{\"dropped\":{dropped}}}").into_bytes())
}

/// The description of a collection; one that is not there is an empty one.
fn print_stats(stats: Option<&CollectionStats>, indexes: &[IndexInfo], engine: &EngineStats) -> Result<Vec<u8>> {
    let mut out = vec![b'{'];
    answer::count("documents", stats.map_or(0, |s| s.documents), &mut out);
    answer::count("segments", stats.map_or(0, |s| s.segments), &mut out);
    answer::count("tailDocuments", stats.map_or(0, |s| s.tail_documents), &mut out);
    out.extend_from_slice(b",\"bytes\":{");
    let bytes = stats.map_or(0, |s| s.bytes_on_disk);
    let (columns, index_bytes) = stats.map_or((0, 0), |s| (s.column_bytes, s.index_bytes));
    answer::count("documents", bytes.saturating_sub(columns), &mut out);
    answer::count("columns", columns, &mut out);
    answer::count("indexes", index_bytes, &mut out);
    answer::count("total", bytes + index_bytes, &mut out);
    out.extend_from_slice(b"},\"indexes\":[");
    if let Some(stats) = stats {
        indexes::print(stats.documents, indexes, &mut out)?;
    }
    out.extend_from_slice(b"],\"indexSizes\":{");
    let sizes = stats.map(|_| ("_id_", 0)).into_iter();
    for (name, bytes) in sizes.chain(indexes.iter().map(|index| (index.definition.name(), index.bytes))) {
        if out.last() != Some(&b'{') {
            out.push(b',');
        }
        answer::string(name, &mut out);
        out.push(b':');
        answer::integer(i64::try_from(bytes).unwrap_or(i64::MAX), &mut out);
    }
    out.push(b'}');
    answer::count("overflowPaths", stats.map_or(0, |s| s.overflow_paths), &mut out);
    // Its own part of what the whole server holds, and the bounds that it stands under.
    out.extend_from_slice(b",\"memory\":{");
    answer::count("tail", stats.map_or(0, |s| s.tail_bytes), &mut out);
    for (name, bytes) in [
        ("tails", engine.unsealed_bytes),
        ("tailsMax", engine.unsealed_bytes_max),
        ("queries", engine.query_bytes),
        ("queriesMax", engine.query_bytes_max),
        ("cache", engine.cache_bytes),
        ("cacheMax", engine.cache_bytes_max),
    ] {
        answer::count(name, bytes, &mut out);
    }
    out.extend_from_slice(b"}}");
    Ok(out)
}
