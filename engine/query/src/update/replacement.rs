//! A whole new document in the place of an old one: only `_id` stays.

use super::immutable_id;
use super::parse::kind;
use crate::limits::DOCUMENT_NESTING_MAX;
use crate::transform::nesting;
use crate::{ParseContext, QueryError, scratch};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, compare};

pub(super) fn parse(document: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<JsonbBuf, QueryError> {
    let Some(object) = document.as_object() else {
        let message = format!("a replacement is an object, not {}", kind(document));
        return Err(QueryError::failed_to_parse(message).at(&context.place));
    };
    if let Some(field) = object.iter().find(|e| e.name().starts_with('$')) {
        let message = format!(
            "the dollar ($) prefixed field '{}' is not allowed at the top of a replacement: \
             operators belong in an update",
            field.name()
        );
        return Err(QueryError::new("DollarPrefixedFieldName", 52, message).at(&context.place.name(field.name())));
    }
    if nesting(document) > DOCUMENT_NESTING_MAX {
        let message = format!("the document nests deeper than {DOCUMENT_NESTING_MAX} levels");
        return Err(QueryError::new("Overflow", 15, message).at(&context.place));
    }
    Ok(document.to_buf())
}

/// `new` with the `_id` of `old`, first.
pub(super) fn apply(new: JsonbRef<'_>, old: JsonbRef<'_>) -> Result<JsonbBuf, QueryError> {
    let id = old.get("_id");
    if let (Some(own), Some(id)) = (new.get("_id"), id)
        && compare(own, id).is_ne()
    {
        return Err(immutable_id());
    }
    scratch::build(new.as_bytes().len() + super::SPARE_BYTES, |out| {
        out.begin_object();
        if let Some(id) = id.or_else(|| new.get("_id")) {
            out.field("_id");
            out.copy(id);
        }
        for field in new.as_object().into_iter().flatten().filter(|e| e.name_bytes() != b"_id") {
            out.field_unescaped(field.name_bytes(), field.name_is_plain());
            out.copy(field.value);
        }
        out.end_object().map_err(|e| QueryError::bad_value(e.to_string()))
    })
}
