//! The operations of `POST /v1/transaction`, read whole before the first one runs.
//!
//! Takes the body; gives steps that can be run more than once. Each is the body of the route of the same name, with the
//! same fields but for `writeConcern`, which belongs to all of them together.

use quarrydb::{Collection, Deadline, DeleteRequest, UpdateRequest, WriteOptions};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, ObjectRef};
use quarrydb_query::{Distinct, Filter, Projection, Sort, Update};

use super::unsupported;
use crate::error::{ApiError, Result};
use crate::fields::{Fields, missing};
use crate::operation::Operation;
use crate::routes::write::parse_update;
use crate::routes::{Call, bulk, context, filter, is_quick, modify, projection, sort};

/// What a body of operations means.
pub(super) struct Plan {
    pub steps: Vec<Step>,
    pub options: WriteOptions,
}

impl Plan {
    /// Whether it takes a moment only.
    pub(super) fn is_quick(&self) -> bool {
        self.steps.iter().all(|step| step.what.is_quick())
    }
}

/// One operation.
pub(super) struct Step {
    pub operation: Operation,
    pub collection: Collection,
    pub what: What,
    pub deadline: Option<Deadline>,
    /// What its result must have.
    pub expect: Option<JsonbBuf>,
}

pub(super) enum What {
    Insert(Vec<JsonbBuf>),
    Find { filter: Filter, projection: Option<Projection>, sort: Option<Sort>, skip: u64, limit: Option<u64> },
    Count { filter: Filter, skip: u64, limit: Option<u64> },
    Distinct { key: JsonbBuf, filter: Filter },
    Update(UpdateRequest),
    Delete(DeleteRequest),
    FindAndUpdate { request: UpdateRequest, after: bool, projection: Option<Projection> },
    FindAndDelete { request: DeleteRequest, projection: Option<Projection> },
    Bulk(Vec<bulk::Step>),
}

/// So many documents are inserted in a moment.
const FEW_DOCUMENTS: usize = 64;

impl What {
    fn is_quick(&self) -> bool {
        let cheap = |projection: &Option<Projection>| projection.as_ref().is_none_or(Projection::is_cheap);
        let quick = |request: &UpdateRequest| is_quick(&request.filter) && request.update.is_cheap();
        match self {
            Self::Insert(documents) => documents.len() <= FEW_DOCUMENTS,
            Self::Find { filter, projection, .. } => is_quick(filter) && cheap(projection),
            Self::Count { filter, .. } => is_quick(filter),
            Self::Distinct { .. } | Self::Bulk(_) => false,
            Self::Update(request) => quick(request),
            Self::FindAndUpdate { request, projection, .. } => quick(request) && cheap(projection),
            Self::Delete(request) => is_quick(&request.filter),
            Self::FindAndDelete { request, projection } => is_quick(&request.filter) && cheap(projection),
        }
    }
}

/// The operations and options of a body.
///
/// # Errors
/// 400 with the place in it; 403 where the key may not on a database that it names.
pub(super) fn plan(call: &Call, body: JsonbRef<'_>) -> Result<Plan> {
    let fields = call.fields(body, &["operations", "writeConcern"])?;
    let value = fields.required("operations")?;
    let operations = value.as_array();
    let operations = operations.ok_or_else(|| ApiError::wrong_type("operations", "an array of operations", value))?;
    let options = call.write_options(&fields)?;
    // Regular expressions of all operations count together, as those of one filter do.
    let together = fields.patterns()?;
    let steps = operations.iter().enumerate().map(|(index, operation)| {
        step(call, operation, options.deadline).map_err(|error| error.inside(&format!("operations[{index}]")))
    });
    let steps = steps.collect::<Result<Vec<_>>>()?;
    drop(together);
    if steps.is_empty() {
        return Err(ApiError::bad("InvalidLength", 16, "operations must hold at least one operation").at("operations"));
    }
    Ok(Plan { steps, options })
}

fn step(call: &Call, value: JsonbRef<'_>, deadline: Option<Deadline>) -> Result<Step> {
    const WANTED: &str = "an object of ns, one field that names the operation, and expect";
    let object = value.as_object().ok_or_else(|| ApiError::wrong_type("an operation", WANTED, value))?;
    let mut named = object.iter().filter(|entry| !matches!(entry.name(), "ns" | "expect"));
    let (Some(entry), None) = (named.next(), named.next()) else {
        return Err(ApiError::bad("FailedToParse", 9, format!("an operation must be {WANTED}")));
    };
    let Some(operation) = Operation::from_name(entry.name()) else {
        let message =
            format!("{:.60?} is no operation of a transaction: find, updateOne and the like are", entry.name());
        return Err(ApiError::bad("UnknownOperator", 2, message).at(entry.name()));
    };
    let (db, name) = namespace(object)?;
    call.check_role(db, operation.role())?;
    let collection = call.database()?.collection(db, name).map_err(|error| ApiError::from(error).at("ns"))?;
    let what = what(operation, entry.value, &collection).map_err(|error| error.inside(operation.name()));
    let (what, own) = what?;
    let expect = match object.get("expect") {
        Some(value) if value.as_object().is_none() => return Err(ApiError::wrong_type("expect", "an object", value)),
        other => other.map(JsonbRef::to_buf),
    };
    Ok(Step { operation, collection, what, deadline: own.or(deadline), expect })
}

/// `ns`: the names of database and collection with a dot between.
fn namespace<'a>(object: ObjectRef<'a>) -> Result<(&'a str, &'a str)> {
    let value = object.get("ns").ok_or_else(|| missing("ns"))?;
    let ns = value.as_str().ok_or_else(|| ApiError::wrong_type("ns", "a string, \"db.collection\"", value))?;
    ns.split_once('.').ok_or_else(|| {
        let message = format!("ns must be \"db.collection\", not {ns:.200?}");
        ApiError::bad("InvalidNamespace", 73, message).at("ns")
    })
}

/// What the body of one operation means, and until when it may take.
fn what(operation: Operation, body: JsonbRef<'_>, collection: &Collection) -> Result<(What, Option<Deadline>)> {
    let taken: &[&str] = match operation {
        Operation::InsertOne => &["document"],
        Operation::InsertMany => &["documents", "ordered"],
        Operation::FindOne => &["filter", "projection", "sort", "skip", "hint", "let"],
        Operation::Find => &["filter", "projection", "sort", "skip", "limit", "hint", "let", "allowDiskUse"],
        Operation::Count => &["filter", "skip", "limit", "hint"],
        Operation::Distinct => &["key", "filter", "hint"],
        Operation::UpdateOne => &["filter", "update", "upsert", "arrayFilters", "hint", "let", "sort"],
        Operation::UpdateMany => &["filter", "update", "upsert", "arrayFilters", "hint", "let"],
        Operation::ReplaceOne => &["filter", "replacement", "upsert", "sort", "hint", "let"],
        Operation::DeleteOne | Operation::DeleteMany => &["filter", "hint", "let"],
        Operation::FindOneAndUpdate => {
            &["filter", "update", "projection", "sort", "upsert", "returnDocument", "arrayFilters", "hint", "let"]
        }
        Operation::FindOneAndReplace => {
            &["filter", "replacement", "projection", "sort", "upsert", "returnDocument", "hint", "let"]
        }
        Operation::FindOneAndDelete => &["filter", "projection", "sort", "hint", "let"],
        Operation::BulkWrite => &["operations", "ordered", "let"],
        other => return Err(unsupported(other.name())),
    };
    let fields = &Fields::new(body, operation.name(), taken, &[])?;
    fields.check_hint(collection)?;
    let deadline = fields.deadline(None)?;
    let what = match operation {
        Operation::InsertOne => {
            let document = fields.object("document")?.ok_or_else(|| missing("document"))?;
            What::Insert(vec![document.to_buf()])
        }
        Operation::InsertMany => What::Insert(documents(fields)?),
        Operation::FindOne | Operation::Find => {
            fields.bool("allowDiskUse", true)?;
            let limit = if operation == Operation::FindOne { Some(1) } else { fields.count("limit")? };
            let (projection, sort, skip) = (projection(fields)?, sort(fields)?, fields.count("skip")?.unwrap_or(0));
            What::Find { filter: filter(fields)?, projection, sort, skip, limit }
        }
        Operation::Count => {
            let (skip, limit) = (fields.count("skip")?.unwrap_or(0), fields.count("limit")?);
            What::Count { filter: filter(fields)?, skip, limit }
        }
        Operation::Distinct => {
            let key = fields.required("key")?;
            Distinct::parse(key, &context("key", None))?;
            What::Distinct { key: key.to_buf(), filter: filter(fields)? }
        }
        Operation::UpdateOne | Operation::UpdateMany | Operation::ReplaceOne => {
            let mut request = update_request(operation, fields)?;
            request.many = operation == Operation::UpdateMany;
            What::Update(request)
        }
        Operation::DeleteOne | Operation::DeleteMany => {
            let mut request = DeleteRequest::one(filter(fields)?);
            request.many = operation == Operation::DeleteMany;
            What::Delete(request)
        }
        Operation::FindOneAndUpdate | Operation::FindOneAndReplace => {
            let request = update_request(operation, fields)?;
            let (after, projection) = (modify::wants_after(fields)?, modify::bound(fields, &request.filter)?);
            What::FindAndUpdate { request, after, projection }
        }
        Operation::FindOneAndDelete => {
            let mut request = DeleteRequest::one(filter(fields)?);
            request.sort = sort(fields)?;
            let projection = modify::bound(fields, &request.filter)?;
            What::FindAndDelete { request, projection }
        }
        _ => {
            fields.bool("ordered", true)?;
            let value = fields.required("operations")?;
            let operations = value.as_array();
            let operations =
                operations.ok_or_else(|| ApiError::wrong_type("operations", "an array of operations", value))?;
            let variables = fields.object("let")?;
            What::Bulk(bulk::parse_all(operations.iter(), bulk::no_faults(), variables, collection)?)
        }
    };
    Ok((what, deadline))
}

fn documents(fields: &Fields<'_>) -> Result<Vec<JsonbBuf>> {
    fields.bool("ordered", true)?;
    let value = fields.required("documents")?;
    let array = value.as_array().ok_or_else(|| ApiError::wrong_type("documents", "an array", value))?;
    let documents: Vec<_> = array.iter().map(JsonbRef::to_buf).collect();
    if documents.is_empty() {
        return Err(ApiError::bad("InvalidLength", 16, "documents must hold at least one document").at("documents"));
    }
    Ok(documents)
}

fn update_request(operation: Operation, fields: &Fields<'_>) -> Result<UpdateRequest> {
    let replaces = matches!(operation, Operation::ReplaceOne | Operation::FindOneAndReplace);
    let update = if replaces {
        Update::parse_replacement(fields.required("replacement")?, &context("replacement", None))?
    } else {
        parse_update(fields.required("update")?, fields.array("arrayFilters")?, fields.object("let")?)?
    };
    let mut request = UpdateRequest::one(filter(fields)?, update);
    request.upsert = fields.bool("upsert", false)?;
    request.sort = sort(fields)?;
    Ok(request)
}
