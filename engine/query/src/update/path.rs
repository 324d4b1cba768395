//! The path of an update operator: names, `$`, `$[]`, `$[identifier]`.
//!
//! Takes the text, gives its steps; refuses empty parts, names that begin with `$`, and `$` where it can mean nothing.

use crate::limits::PATH_PARTS_MAX;
use crate::{Place, QueryError};

/// One part of an update path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A field, or a position where an array stands.
    Name(Box<str>),
    /// `$`: the position that the query matched.
    Positional,
    /// `$[identifier]`; empty for `$[]`.
    Elements(Box<str>),
}

/// A path, taken apart.
#[derive(Clone, Debug)]
pub(super) struct UpdatePath {
    text: Box<str>,
    steps: Vec<Step>,
}

impl UpdatePath {
    pub(super) fn parse(text: &str, place: &Place<'_>) -> Result<Self, QueryError> {
        Self::take_apart(text).map_err(|e| e.at(place))
    }

    fn take_apart(text: &str) -> Result<Self, QueryError> {
        if text.is_empty() {
            return Err(QueryError::new("EmptyFieldName", 56, "an empty update path is not valid"));
        }
        let mut steps = Vec::new();
        for part in text.split('.') {
            if steps.len() == PATH_PARTS_MAX {
                let message = format!("a path of more than {PATH_PARTS_MAX} parts: a path has at most that many");
                return Err(QueryError::bad_value(message));
            }
            steps.push(Self::step(text, part)?);
        }
        if steps.first() == Some(&Step::Positional) {
            let message = format!("the positional element '$' cannot stand first in the path '{text}'");
            return Err(QueryError::bad_value(message));
        }
        if matches!(steps.first(), Some(Step::Elements(_))) {
            let message = format!("array elements cannot stand first in the path '{text}': name the array before them");
            return Err(QueryError::bad_value(message));
        }
        if steps.iter().filter(|s| **s == Step::Positional).count() > 1 {
            let message = format!("too many positional elements '$' in the path '{text}': at most one can stand in it");
            return Err(QueryError::bad_value(message));
        }
        Ok(Self { text: text.into(), steps })
    }

    fn step(text: &str, part: &str) -> Result<Step, QueryError> {
        if part.is_empty() {
            let message = format!("the update path '{text}' contains an empty field name, which is not allowed");
            return Err(QueryError::new("EmptyFieldName", 56, message));
        }
        if part == "$" {
            return Ok(Step::Positional);
        }
        if let Some(identifier) = part.strip_prefix("$[").and_then(|p| p.strip_suffix(']')) {
            return Ok(Step::Elements(identifier.into()));
        }
        if part.starts_with('$') {
            let message = format!(
                "the dollar ($) prefixed field '{part}' in '{text}' is not valid in an update; \
                 $setField in a pipeline reaches such names"
            );
            return Err(QueryError::new("DollarPrefixedFieldName", 52, message));
        }
        Ok(Step::Name(part.into()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The text of the first `parts` parts.
    pub(super) fn prefix(&self, parts: usize) -> String {
        self.text.split('.').take(parts).collect::<Vec<_>>().join(".")
    }

    /// Whether every step is a name.
    pub(super) fn is_fixed(&self) -> bool {
        self.steps.iter().all(|s| matches!(s, Step::Name(_)))
    }

    /// Whether it leads to `_id` or into it.
    pub(super) fn touches_id(&self) -> bool {
        matches!(self.steps.first(), Some(Step::Name(name)) if &**name == "_id")
    }
}
