//! The document that an upsert begins with: the fields that its filter implies by equality.
//!
//! Equalities at the top and inside `$and` (and an `$or` of one branch) count, dotted paths build objects; every other
//! condition says nothing about the new document. Takes a parsed filter, gives a document. Next: `draft.rs`.

use super::ast::{Leaf, Op};
use super::draft::Draft;
use super::path::UpdatePath;
use super::{Application, ApplyContext};
use crate::meter::Meter;
use crate::transform::nesting;
use crate::{Filter, Place, QueryError, scratch};
use quarrydb_jsonb::{Builder, JsonbBuf, JsonbRef, Kind};
use std::cell::OnceCell;
use std::sync::Arc;

/// The implied fields, those of `_id` too.
pub(super) fn implied_document(filter: &Filter) -> Result<JsonbBuf, QueryError> {
    build(filter, |_| true)
}

/// The implied `_id` alone, as the one field of an object.
pub(super) fn implied_id(filter: &Filter) -> Result<JsonbBuf, QueryError> {
    build(filter, |path| path == "_id" || path.starts_with("_id."))
}

fn build(filter: &Filter, wanted: impl Fn(&str) -> bool) -> Result<JsonbBuf, QueryError> {
    let mut draft = Draft::new();
    let place = Place::root("filter");
    for (path, value) in filter.equality_fields()?.into_iter().filter(|(path, _)| wanted(path.as_str())) {
        let text = path.as_str();
        let path = UpdatePath::parse(text, &place)?;
        let leaf =
            Leaf { path: text.into(), place: "filter".into(), op: Op::Set(value.to_buf()), nesting: nesting(value) };
        draft.enter(&path, Arc::new(leaf)).map_err(|e| e.at(&place))?;
    }
    let mut empty = Builder::new();
    empty.begin_object();
    empty.end_object().map_err(|e| QueryError::bad_value(e.to_string()))?;
    let empty = empty.take();
    scratch::build(0, |out| {
        let mut application = Application {
            document: JsonbRef::from_valid(&empty),
            filter,
            array_filters: &[],
            clock: ApplyContext::default().clock,
            inserting: true,
            out,
            position: OnceCell::new(),
            meter: Meter::default(),
        };
        application.run(&draft.finish(), &[])
    })
}

/// The finished document: `_id` first, made where there is none.
pub(super) fn with_id_first(
    document: JsonbRef<'_>,
    make_id: &mut dyn FnMut() -> [u8; 12],
) -> Result<JsonbBuf, QueryError> {
    if let Some(id) = document.get("_id")
        && matches!(id.kind(), Kind::Array | Kind::Regex)
    {
        let message = format!("the '_id' of a document cannot be of type {}", id.kind().alias());
        return Err(QueryError::new("InvalidIdField", 53, message));
    }
    scratch::build(document.as_bytes().len() + super::SPARE_BYTES, |out| {
        out.begin_document();
        for field in document.as_object().into_iter().flatten() {
            out.field_unescaped(field.name_bytes(), field.name_is_plain());
            out.copy(field.value);
        }
        out.end_document(make_id).map_err(|e| QueryError::bad_value(e.to_string()))
    })
}
