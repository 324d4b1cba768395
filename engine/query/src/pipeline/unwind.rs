//! `$unwind`: a document for each element of an array.
//!
//! The path leads through objects alone. Null, missing and an empty array give no document, or with
//! `preserveNullAndEmptyArrays` one without an element; any other value is its own only element.

use super::host::{Fault, Pace};
use super::operator::{Flow, Next, Operator};
use super::written;
use crate::path_walk::FieldPath;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind};
use std::sync::Arc;

/// A parsed `$unwind`.
#[derive(Clone, Debug)]
pub struct Unwind {
    /// Where the array is.
    pub path: FieldPath,
    /// Where an element's position goes.
    pub index: Option<FieldPath>,
    /// Whether documents without an element stay.
    pub preserve: bool,
}

impl Unwind {
    /// Parses the value of the stage.
    ///
    /// # Errors
    /// With MongoDB's numbers: 15981, 28808 to 28812, 28818, 28822, and those of paths.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let place = context.place;
        let error = |code, message: String| QueryError::location(code, message);
        let (mut path, mut path_place, mut index, mut preserve) = (None, place, None, false);
        let path_name = place.name("path");
        if let Some(text) = value.as_str() {
            path = Some(text);
        } else if let Some(object) = value.as_object() {
            for entry in object {
                let place = place.name(entry.name());
                let found = entry.value.kind().alias();
                match entry.name() {
                    "path" => {
                        path_place = path_name;
                        path = Some(entry.value.as_str().ok_or_else(|| {
                            let message = format!("expected a string as the path for $unwind stage, got {found}");
                            error(28808, message).at(&place)
                        })?);
                    }
                    "preserveNullAndEmptyArrays" => {
                        preserve = entry.value.as_bool().ok_or_else(|| {
                            let message = format!(
                                "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage, got {found}"
                            );
                            error(28809, message).at(&place)
                        })?;
                    }
                    "includeArrayIndex" => {
                        let text = entry.value.as_str().filter(|s| !s.is_empty()).ok_or_else(|| {
                            let message = format!(
                                "expected a non-empty string for the includeArrayIndex option to $unwind stage, got {found}"
                            );
                            error(28810, message).at(&place)
                        })?;
                        if text.starts_with('$') {
                            let message = format!(
                                "includeArrayIndex option to $unwind stage should not be prefixed with a '$': {text}"
                            );
                            return Err(error(28822, message).at(&place));
                        }
                        index = Some(written::path(text, &context.at(place))?);
                    }
                    name => {
                        return Err(error(28811, format!("unrecognized option to $unwind stage: {name}")).at(&place));
                    }
                }
            }
        } else {
            let message = format!(
                "expected either a string or an object as specification for $unwind stage, got {}",
                value.kind().alias()
            );
            return Err(error(15981, message).at(&place));
        }
        let path = path
            .filter(|p| !p.is_empty())
            .ok_or_else(|| error(28812, "no path specified to $unwind stage".to_owned()).at(&place))?;
        let Some(path) = path.strip_prefix('$') else {
            let message = format!("path option to $unwind stage should be prefixed with a '$': {path}");
            return Err(error(28818, message).at(&path_place));
        };
        Ok(Self { path: written::path(path, &context.at(path_place))?, index, preserve })
    }

    /// The document with the position of its element, where that is asked for.
    pub(super) fn with_index(&self, document: JsonbBuf, position: Option<usize>) -> Result<JsonbBuf, QueryError> {
        let Some(index) = &self.index else { return Ok(document) };
        written::with(document.view(), index, 16, &mut |out| match position {
            Some(position) => out.int64(position as i64),
            None => out.null(),
        })
    }
}

pub(super) struct Unwinding(pub Arc<Unwind>);

impl Operator for Unwinding {
    fn push(&mut self, document: JsonbRef<'_>, next: &mut Next<'_>) -> Result<Flow, Fault> {
        let unwind = &*self.0;
        let value = written::at(document, &unwind.path);
        let array = value.and_then(JsonbRef::as_array);
        let nothing = match (value, array) {
            (_, Some(array)) => array.is_empty(),
            (value, None) => value.is_none_or(|v| v.kind() == Kind::Null),
        };
        if nothing && !unwind.preserve {
            return Ok(Flow::Continue(()));
        }
        match array.filter(|_| !nothing) {
            None if array.is_none() && unwind.index.is_none() => next.push(document),
            None => {
                // An empty array goes, null stays.
                let made = match array {
                    Some(_) => written::without(document, &unwind.path)?,
                    None => document.to_buf(),
                };
                next.push(unwind.with_index(made, None)?.view())
            }
            Some(array) => {
                let mut pace = Pace::default();
                for (position, element) in array.iter().enumerate() {
                    pace.step(next.host())?;
                    let made = written::replaced(document, &unwind.path, array.as_value(), element)?;
                    if next.push(unwind.with_index(made, Some(position))?.view())?.is_break() {
                        return Ok(Flow::Break(()));
                    }
                }
                Ok(Flow::Continue(()))
            }
        }
    }
}
