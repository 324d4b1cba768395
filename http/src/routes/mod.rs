//! What the routes share: the call with its names and form, the one way a document operation is run, slow ones logged.
//!
//! Takes a request that the front or the short way let in; gives its answer. Each file below is a family of operations.

pub(crate) mod action;
pub(crate) mod aggregate;
pub(crate) mod bulk;
mod bulk_body;
pub(crate) mod by_id;
pub(crate) mod changes;
pub(crate) mod collections;
pub(crate) mod compact;
pub(crate) mod distinct;
pub(crate) mod explain;
mod failures;
pub(crate) mod import;
pub(crate) mod indexes;
pub(crate) mod insert;
pub(crate) mod later;
pub(crate) mod modify;
pub(crate) mod query;
pub(crate) mod server;
pub(crate) mod transaction;
pub(crate) mod write;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderMap, Request, StatusCode};
use quarrydb::{Collection, Database, WriteOptions};
use quarrydb_jsonb::{JsonbRef, Style};
use quarrydb_query::{Filter, ParseContext, Projection, Sort};

use crate::access::{Grant, Role};
use crate::answer::Form;
use crate::body;
use crate::error::{ApiError, Result};
use crate::express::Head;
use crate::fields::Fields;
use crate::front::Allowed;
use crate::negotiate::{self, Coding};
use crate::operation::Operation;
use crate::state::Shared;
use crate::stream::Shape;
use transaction::Inside;

/// Bodies up to this are read again to find the comment of a slow operation.
const COMMENT_BODY_BYTES_MAX: usize = 1 << 20;
/// A comment is logged up to this.
const COMMENT_BYTES_MAX: usize = 1 << 10;

/// Where an operation finds the names of database and collection.
#[derive(Debug)]
pub(crate) enum Names {
    /// In the path.
    Path {
        /// Database.
        db: String,
        /// Collection; empty on the routes of a database.
        coll: String,
    },
    /// In the body, as the Data API has it.
    Body,
}

/// One operation on its way.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) app: Shared,
    pub(crate) operation: Operation,
    pub(crate) names: Names,
    pub(crate) form: Form,
    pub(crate) coding: Coding,
    pub(crate) trailer: bool,
    pub(crate) grant: Option<Arc<Grant>>,
    /// The interactive transaction that it runs in.
    pub(crate) inside: Option<Inside>,
    started: Instant,
}

/// The fields that only the Data API's bodies have.
const ACTION_FIELDS: [&str; 3] = ["dataSource", "database", "collection"];

impl Call {
    /// A call of `operation` on what `parts` name.
    ///
    /// # Errors
    /// 400 for a path that is no UTF-8, 403 for a key that may not.
    pub(crate) async fn new(app: &Shared, operation: Operation, parts: &mut Parts) -> Result<Self> {
        let params = RawPathParams::from_request_parts(parts, &()).await;
        let params = params.map_err(|_| ApiError::bad("InvalidNamespace", 73, "the path is not UTF-8 once decoded"))?;
        let (mut db, mut coll) = (String::new(), String::new());
        for (name, value) in &params {
            match name {
                "db" => value.clone_into(&mut db),
                "coll" => value.clone_into(&mut coll),
                _ => {}
            }
        }
        let mut call = Self::of(app, operation, Names::Path { db, coll }, parts, Style::Relaxed);
        if let Names::Path { db, .. } = &call.names
            && !db.is_empty()
        {
            call.check_role(db, operation.role())?;
        }
        call.inside = Inside::of(app, operation, &parts.headers)?;
        Ok(call)
    }

    /// A call of a request that came the short way (`express/`): its head is taken apart already.
    ///
    /// # Errors
    /// 403 for a key that may not.
    pub(crate) fn express(app: &Shared, head: &Head<'_>, grant: Option<Arc<Grant>>) -> Result<Self> {
        let call = Self {
            app: Arc::clone(app),
            operation: head.operation,
            names: Names::Path { db: head.db.to_owned(), coll: head.coll.to_owned() },
            form: head.form,
            coding: head.coding,
            trailer: false,
            grant,
            // A request with such a header goes the long way.
            inside: None,
            started: Instant::now(),
        };
        if !head.db.is_empty() {
            call.check_role(head.db, head.operation.role())?;
        }
        Ok(call)
    }

    /// A call whose names are found elsewhere.
    pub(crate) fn of(app: &Shared, operation: Operation, names: Names, parts: &Parts, plain: Style) -> Self {
        Self {
            app: Arc::clone(app),
            operation,
            names,
            form: negotiate::form(&parts.headers, plain),
            coding: negotiate::answer_coding(&parts.headers),
            trailer: false,
            grant: parts.extensions.get::<Allowed>().map(|a| Arc::clone(&a.0)),
            inside: None,
            started: Instant::now(),
        }
    }

    /// Refuses what the key may not do.
    ///
    /// # Errors
    /// 403.
    pub(crate) fn check_role(&self, db: &str, role: Role) -> Result<()> {
        match &self.grant {
            Some(grant) if !grant.allows(db, role) => Err(forbidden(&grant.name, self.operation, db, role)),
            _ => Ok(()),
        }
    }

    /// The open database.
    ///
    /// # Errors
    /// 503 while it is being opened.
    pub(crate) fn database(&self) -> Result<&Database> {
        self.app.database()
    }

    /// The body's fields; on the Data API's routes its three names are taken too.
    ///
    /// # Errors
    /// 400 for an unknown one.
    pub(crate) fn fields<'a>(&self, body: JsonbRef<'a>, taken: &[&str]) -> Result<Fields<'a>> {
        let further: &[&str] = if matches!(self.names, Names::Body) { &ACTION_FIELDS } else { &[] };
        Fields::new(body, self.operation.name(), taken, further)
    }

    /// The collection that the call names, once a hint beside it is known to name one of its indexes.
    ///
    /// # Errors
    /// `InvalidNamespace`; 400 for the hint; 403 where the names stand in the body and the key may not.
    pub(crate) fn collection(&self, fields: &Fields<'_>) -> Result<Collection> {
        let collection = match &self.names {
            Names::Path { db, coll } => self.database()?.collection(db, coll)?,
            Names::Body => {
                let (db, coll) = (fields.string("database")?, fields.string("collection")?);
                self.check_role(db, self.operation.role())?;
                self.database()?.collection(db, coll)?
            }
        };
        fields.check_hint(&collection)?;
        Ok(match &self.inside {
            Some(inside) => collection.within(&inside.transaction),
            None => collection,
        })
    }

    /// Notes how it ended, where that means something to its transaction.
    pub(crate) fn settle(&self, result: Result<Response>) -> Response {
        let fault = result.as_ref().err().map(|error| error.name().to_owned());
        let response = result.unwrap_or_else(IntoResponse::into_response);
        if let Some(inside) = &self.inside {
            inside.note(response.status(), fault.as_deref());
        }
        response
    }

    /// What a write says of its durability and its time.
    ///
    /// # Errors
    /// 400.
    pub(crate) fn write_options(&self, fields: &Fields<'_>) -> Result<WriteOptions> {
        if self.inside.is_some() && fields.get("writeConcern").is_some() {
            let message = "writeConcern cannot be said inside a transaction: it belongs to the commit";
            return Err(ApiError::bad("InvalidOptions", 72, message).at("writeConcern"));
        }
        fields.write_options(self.app.settings.max_time)
    }

    /// A JSON answer in the form that was asked for.
    pub(crate) fn answer(&self, status: StatusCode, body: Vec<u8>) -> Response {
        self.form.answer(status, body)
    }

    /// The shape of an answer of documents.
    pub(crate) fn shape(&self) -> Shape {
        Shape { form: self.form, coding: self.coding, trailer: self.trailer }
    }

    /// Notes the operation as answered, and logs it where it was slow.
    pub(crate) fn done(&self, body: &[u8], status: StatusCode) {
        let took = self.started.elapsed();
        self.app.metrics.operation(self.operation, took);
        if took >= self.app.settings.slow {
            self.log_slow(took, body, status);
        }
    }

    #[cold]
    fn log_slow(&self, took: Duration, body: &[u8], status: StatusCode) {
        let ns = match &self.names {
            Names::Path { db, coll } => format!("{db}.{coll}"),
            Names::Body => String::new(),
        };
        let comment = comment(body);
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(operation = self.operation.name(), ns, ms, status = status.as_u16(), comment, "slow operation");
    }
}

fn forbidden(key: &str, operation: Operation, db: &str, role: Role) -> ApiError {
    let message =
        format!("the key {key:?} may not {} on {db:?}: that needs the role {}", operation.name(), role.name());
    ApiError::new(StatusCode::FORBIDDEN, "Forbidden", Some(13), message)
}

/// Refuses what needs a role on every database.
///
/// # Errors
/// 403.
pub(crate) fn check_everywhere(parts: &Parts, operation: Operation, role: Role) -> Result<()> {
    match parts.extensions.get::<Allowed>() {
        Some(Allowed(grant)) if !grant.allows_everywhere(role) => Err(forbidden(&grant.name, operation, "*", role)),
        _ => Ok(()),
    }
}

fn comment(body: &[u8]) -> String {
    let mut text = Vec::new();
    if body.len() <= COMMENT_BODY_BYTES_MAX
        && let Ok(parsed) = quarrydb_jsonb::parse(body)
        && let Some(comment) = parsed.view().get("comment")
    {
        quarrydb_jsonb::print(comment, Style::Relaxed, &mut text);
        text.truncate(COMMENT_BYTES_MAX);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs a document operation of `POST /v1/db/{db}/{coll}/<operation>`.
pub(crate) async fn documents(app: Shared, operation: Operation, request: Request<Body>) -> Response {
    let (mut parts, body) = request.into_parts();
    let prepared = async {
        let mut call = Call::new(&app, operation, &mut parts).await?;
        match query_flag(&parts, "trailer", &["trailer"]) {
            Ok(trailer) => call.trailer = trailer.unwrap_or(false),
            Err(error) => return Ok(Err((call, error))),
        }
        Ok(Ok(call))
    };
    match prepared.await {
        Ok(Ok(call)) => answered(call, &parts.headers, body).await,
        Ok(Err((call, error))) => {
            body::drain(body);
            call.settle(Err(error))
        }
        Err(error) => {
            body::drain(body);
            ApiError::into_response(error)
        }
    }
}

/// Receives the body, runs the operation and notes it.
pub(crate) async fn answered(call: Call, headers: &HeaderMap, body: Body) -> Response {
    let collected = match body::collect(&call.app, headers, body).await {
        Ok(collected) => collected,
        Err(error) => {
            call.done(&[], error.status());
            return call.settle(Err(error));
        }
    };
    let response = call.settle(run(&call, &collected.bytes).await);
    call.done(&collected.bytes, response.status());
    response
}

/// Runs the operation on its whole body.
///
/// # Errors
/// The operation's, to be answered.
pub(crate) async fn run(call: &Call, body: &[u8]) -> Result<Response> {
    if body.is_empty() {
        return Err(ApiError::bad("InvalidJson", 9, "the body is empty: send a JSON object, {} at least"));
    }
    match call.operation {
        Operation::InsertOne => insert::one(call, body).await,
        Operation::InsertMany => insert::many(call, body).await,
        Operation::FindOne => query::find_one(call, body).await,
        Operation::Find => query::find(call, body).await,
        Operation::Count => query::count(call, body).await,
        Operation::UpdateOne | Operation::UpdateMany => write::update(call, body).await,
        Operation::ReplaceOne => write::replace(call, body).await,
        Operation::DeleteOne | Operation::DeleteMany => write::delete(call, body).await,
        Operation::FindOneAndUpdate | Operation::FindOneAndReplace => modify::update(call, body).await,
        Operation::FindOneAndDelete => modify::delete(call, body).await,
        Operation::Distinct => distinct::distinct(call, body).await,
        Operation::BulkWrite => bulk::write(call, body).await,
        Operation::Aggregate => aggregate::aggregate(call, body).await,
        Operation::Explain => explain::explain(call, body).await,
        Operation::Compact => compact::compact(call, body).await,
        Operation::CreateIndex => indexes::create(call, body).await,
        Operation::DropIndex => indexes::drop(call, body).await,
        Operation::Transaction => transaction::several(call, body).await,
        _ => later::refuse(call, body),
    }
}

/// A true-or-false parameter of the query string; `known` are all that the route takes.
///
/// # Errors
/// 400 for an unknown parameter or another value.
pub(crate) fn query_flag(parts: &Parts, name: &str, known: &[&str]) -> Result<Option<bool>> {
    let Some(query) = parts.uri.query() else { return Ok(None) };
    let mut found = None;
    for pair in query.split('&').filter(|p| !p.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
        if !known.contains(&key) {
            let message = format!("the query string has no parameter {key:.60?} here: it takes {}", known.join(", "));
            return Err(ApiError::bad("IDLUnknownField", 40415, message));
        }
        if key == name {
            found = Some(match value {
                "true" | "1" => true,
                "false" | "0" => false,
                other => return Err(ApiError::bad_value(format!("{key} must be true or false, not {other:.60?}"))),
            });
        }
    }
    Ok(found)
}

/// What a parser of the language is told: place, time, variables.
pub(crate) fn context<'a>(place: &'a str, variables: Option<JsonbRef<'a>>) -> ParseContext<'a> {
    ParseContext::new(place).with_now(now_ms()).with_variables(variables)
}

fn now_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
}

/// The body's filter; `{}` where it is left out.
///
/// # Errors
/// 400 with the place in it.
pub(crate) fn filter(fields: &Fields<'_>) -> Result<Filter> {
    filter_with(fields, fields.object("let")?)
}

/// The same with variables from elsewhere: an operation of bulkWrite has those of the whole body.
///
/// # Errors
/// 400 with the place in it.
pub(crate) fn filter_with(fields: &Fields<'_>, variables: Option<JsonbRef<'_>>) -> Result<Filter> {
    let _patterns = fields.patterns()?;
    match fields.object("filter")? {
        Some(value) => Ok(Filter::parse(value, &context("filter", variables))?),
        None => Ok(Filter::everything()),
    }
}

/// The body's projection.
///
/// # Errors
/// 400 with the place in it.
pub(crate) fn projection(fields: &Fields<'_>) -> Result<Option<Projection>> {
    let Some(value) = fields.object("projection")? else { return Ok(None) };
    if value.as_object().is_some_and(|o| o.is_empty()) {
        return Ok(None);
    }
    let _patterns = fields.patterns()?;
    Ok(Some(Projection::parse(value, &context("projection", fields.object("let")?))?))
}

/// The body's sort.
///
/// # Errors
/// 400 with the place in it.
pub(crate) fn sort(fields: &Fields<'_>) -> Result<Option<Sort>> {
    let Some(value) = fields.object("sort")? else { return Ok(None) };
    if value.as_object().is_some_and(|o| o.is_empty()) {
        return Ok(None);
    }
    Ok(Some(Sort::parse(value, &context("sort", None))?))
}

/// Whether what a filter finds is found in place: one document by its `_id`, and tests on it that are sure to be quick. A
/// worker of the network must never be kept by a document.
fn is_quick(filter: &Filter) -> bool {
    filter.id_point().is_some() && filter.is_cheap()
}

/// Runs what scans or syncs on a thread that may wait.
///
/// # Errors
/// What `work` gives; 500 where it panics.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(e) => Err(ApiError::internal(&e)),
    }
}
