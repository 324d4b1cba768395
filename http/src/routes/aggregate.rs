//! aggregate: a pipeline's documents, streamed.

use axum::response::Response;
use quarrydb::AggregateRequest;
use quarrydb_query::pipeline::Pipeline;

use super::{Call, context};
use crate::access::Role;
use crate::error::Result;
use crate::fields::Fields;
use crate::stream;

/// The fields of a body.
pub(crate) const TAKEN: [&str; 5] = ["pipeline", "let", "hint", "allowDiskUse", "writeConcern"];

/// aggregate.
pub(crate) async fn aggregate(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &TAKEN)?;
    let collection = call.collection(&fields)?;
    let mut request = request(call, &fields)?;
    check_access(call, collection.database_name(), &request)?;
    let namespace = format!("{}.{}", collection.database_name(), collection.name());
    stream::streamed(&call.app, call.shape(), namespace, move |is_wanted| {
        request.is_wanted = Some(is_wanted);
        Ok(collection.aggregate(request)?)
    })
    .await
}

/// What the fields ask for.
///
/// # Errors
/// 400 with the place in it.
pub(crate) fn request(call: &Call, fields: &Fields<'_>) -> Result<AggregateRequest> {
    let patterns = fields.patterns()?;
    let context = context("pipeline", fields.object("let")?);
    let mut request = AggregateRequest::new(Pipeline::parse(fields.required("pipeline")?, &context)?);
    drop(patterns);
    request.allow_disk_use = fields.bool("allowDiskUse", true)?;
    let options = call.write_options(fields)?;
    request.deadline = options.deadline;
    request.journal = options.journal;
    Ok(request)
}

/// Refuses a pipeline that reads or writes where the key may not.
///
/// # Errors
/// 403.
pub(crate) fn check_access(call: &Call, db: &str, request: &AggregateRequest) -> Result<()> {
    request
        .namespaces(db)
        .into_iter()
        .try_for_each(|(db, _, writes)| call.check_role(db, if writes { Role::ReadWrite } else { Role::Read }))
}
