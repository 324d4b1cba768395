//! createIndex, dropIndex and the list of indexes.

use axum::response::Response;
use http::StatusCode;
use quarrydb::{DEFINITION_FIELDS, IndexDefinition, IndexInfo, IndexState};
use quarrydb_jsonb::{Builder, JsonbRef};

use super::{Call, blocking};
use crate::answer;
use crate::error::{ApiError, Result};
use crate::fields::Fields;

/// createIndex: one by its own fields, or several in `indexes`. Answered once they serve; who leaves before stops nothing.
pub(crate) async fn create(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let taken: Vec<&str> = DEFINITION_FIELDS.into_iter().chain(["indexes", "writeConcern"]).collect();
    let fields = call.fields(body.view(), &taken)?;
    let (definitions, several) = definitions(&fields)?;
    let options = call.write_options(&fields)?;
    let collection = call.collection(&fields)?;
    let created = blocking(move || Ok(collection.create_indexes(&definitions, &options)?)).await?;
    let mut out = Vec::new();
    if several {
        out.extend_from_slice(b"{\"names\":[");
        for (i, name) in created.names.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            answer::string(name, &mut out);
        }
        out.extend_from_slice(b"]}");
    } else {
        out.extend_from_slice(b"{\"name\":");
        answer::string(created.names.first().map_or("", String::as_str), &mut out);
        out.push(b'}');
    }
    Ok(call.answer(if created.new { StatusCode::CREATED } else { StatusCode::OK }, out))
}

fn definitions(fields: &Fields<'_>) -> Result<(Vec<IndexDefinition>, bool)> {
    let Some(list) = fields.array("indexes")? else {
        return Ok((vec![IndexDefinition::parse(&|name| fields.get(name))?], false));
    };
    if let Some(other) = DEFINITION_FIELDS.into_iter().find(|name| fields.get(name).is_some()) {
        let message = format!("{other} stands beside indexes: each index has its own in the array");
        return Err(ApiError::bad_value(message));
    }
    let list: Vec<_> = list.as_array().into_iter().flatten().collect();
    if list.is_empty() {
        return Err(ApiError::bad_value("Must specify at least one index to create"));
    }
    let one = |(i, value): (usize, JsonbRef<'_>)| {
        IndexDefinition::from_object(value).map_err(|error| ApiError::from(error).within(&format!("indexes[{i}]")))
    };
    Ok((list.into_iter().enumerate().map(one).collect::<Result<_>>()?, true))
}

/// dropIndex.
pub(crate) async fn drop(call: &Call, body: &[u8]) -> Result<Response> {
    let body = quarrydb_jsonb::parse(body)?;
    let fields = call.fields(body.view(), &["name", "writeConcern"])?;
    let name = fields.string("name")?;
    let collection = call.collection(&fields)?;
    collection.drop_index(name, &call.write_options(&fields)?)?.await?;
    Ok(call.answer(StatusCode::OK, b"{}".to_vec()))
}

/// Appends the indexes of a collection of so many documents, `_id_` first, as the elements of an array.
pub(crate) fn print(documents: u64, indexes: &[IndexInfo], out: &mut Vec<u8>) -> Result<()> {
    out.extend_from_slice(
        b"{\"name\":\"_id_\",\"keys\":{\"_id\":1},\"unique\":true,\"state\":\"ready\",\"progress\":1.0",
    );
    answer::count("entries", documents, out);
    answer::count("bytes", 0, out);
    out.push(b'}');
    for index in indexes {
        out.push(b',');
        let mut builder = Builder::new();
        builder.begin_object();
        index.definition.describe(&mut builder);
        builder.field("state");
        builder.string(if index.state == IndexState::Ready { "ready" } else { "building" });
        builder.field("progress");
        builder.double(index.progress);
        builder.field("entries");
        builder.int64(index.entries.cast_signed());
        builder.field("bytes");
        builder.int64(index.bytes.cast_signed());
        builder.end_object()?;
        quarrydb_jsonb::print(JsonbRef::from_valid(builder.bytes()), quarrydb_jsonb::Style::Relaxed, out);
    }
    Ok(())
}
