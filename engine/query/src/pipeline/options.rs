//! The named options of a stage: which there are, and of which type.

use super::written;
use crate::path_walk::FieldPath;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbRef, ObjectRef};

/// The options that were given.
pub(super) struct Options<'v, 'c> {
    stage: &'static str,
    given: ObjectRef<'v>,
    context: &'c ParseContext<'c>,
}

impl<'v, 'c> Options<'v, 'c> {
    /// Takes the object of a stage.
    ///
    /// # Errors
    /// `FailedToParse` (9) where it is none, or has an option that is not `known`.
    pub(super) fn parse(
        stage: &'static str,
        value: JsonbRef<'v>,
        known: &[&str],
        context: &'c ParseContext<'c>,
    ) -> Result<Self, QueryError> {
        let Some(given) = value.as_object() else {
            let message = format!("the {stage} stage specification must be an object, not {}", value.kind().alias());
            return Err(QueryError::failed_to_parse(message).at(&context.place));
        };
        if let Some(other) = given.iter().find(|e| !known.contains(&e.name())) {
            let message = format!("unknown argument to {stage}: {}; it takes {}", other.name(), known.join(", "));
            return Err(QueryError::failed_to_parse(message).at(&context.place.name(other.name())));
        }
        Ok(Self { stage, given, context })
    }

    pub(super) fn get(&self, name: &str) -> Option<JsonbRef<'v>> {
        self.given.get(name)
    }

    /// A string.
    ///
    /// # Errors
    /// `FailedToParse` (9) where it is anything else.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'v str>, QueryError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| {
            let message = format!(
                "{} argument '{name}' must be a string, found {}: {}",
                self.stage,
                crate::error::shown(value),
                value.kind().alias()
            );
            QueryError::failed_to_parse(message).at(&self.context.place.name(name))
        })
    }

    /// A path.
    ///
    /// # Errors
    /// As [`Options::text`], and those of paths.
    pub(super) fn path(&self, name: &str) -> Result<Option<FieldPath>, QueryError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let place = self.context.place.name(name);
        written::path(text, &self.context.at(place)).map(Some)
    }
}
