//! What is wrong with a query: its words for a person, its place in the body, MongoDB's name and number for a program.
//!
//! Given by every parser of this crate and by the few evaluations that can fail. It never knows HTTP. Next: `place.rs`.

use crate::place::Place;
use quarrydb_jsonb::JsonbRef;
use std::borrow::Cow;
use std::fmt;

/// A query that cannot be understood, or that fails on a document.
///
/// One pointer wide, so that `Result<bool, QueryError>` costs a matching loop nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct QueryError(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    message: String,
    place: String,
    name: Cow<'static, str>,
    code: i32,
}

impl QueryError {
    /// An error by its name (`BadValue`), MongoDB's number (2) and its words: what was found, what is wanted.
    #[must_use]
    pub fn new(name: &'static str, code: i32, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { message: message.into(), place: String::new(), name: Cow::Borrowed(name), code }))
    }

    /// One that MongoDB knows by its number alone and calls `Location<number>`.
    #[must_use]
    pub fn location(code: i32, message: impl Into<String>) -> Self {
        let name = Cow::Owned(format!("Location{code}"));
        Self(Box::new(Inner { message: message.into(), place: String::new(), name, code }))
    }

    /// `BadValue`, 2.
    #[must_use]
    pub fn bad_value(message: impl Into<String>) -> Self {
        Self::new("BadValue", 2, message)
    }

    /// `FailedToParse`, 9.
    #[must_use]
    pub fn failed_to_parse(message: impl Into<String>) -> Self {
        Self::new("FailedToParse", 9, message)
    }

    /// `TypeMismatch`, 14.
    #[must_use]
    pub fn type_mismatch(message: impl Into<String>) -> Self {
        Self::new("TypeMismatch", 14, message)
    }

    /// An operator that is not there, or not at this place: `UnknownOperator` with MongoDB's number 2.
    #[must_use]
    pub fn unknown_operator(message: impl Into<String>) -> Self {
        Self::new("UnknownOperator", 2, message)
    }

    /// The same at a place, where it has none yet: the innermost caller knows it best.
    #[must_use]
    pub fn at(mut self, place: &Place<'_>) -> Self {
        if self.0.place.is_empty() {
            self.0.place = place.to_string();
        }
        self
    }

    /// The same at a place that is written out already.
    #[must_use]
    pub(crate) fn at_written(mut self, place: &str) -> Self {
        if self.0.place.is_empty() {
            place.clone_into(&mut self.0.place);
        }
        self
    }

    /// What was found and what is wanted, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The place in the body, such as `filter.$or[2].age.$in`; empty where there is none.
    #[must_use]
    pub fn place(&self) -> &str {
        &self.0.place
    }

    /// The error's name, such as `BadValue`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// MongoDB's number.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.0.code
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.place.is_empty() {
            write!(f, "{}: ", self.0.place)?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}) {self}", self.0.name, self.0.code)
    }
}

impl std::error::Error for QueryError {}

/// A value within a message, as JSON; long ones are cut.
pub(crate) fn shown(value: JsonbRef<'_>) -> String {
    const SHOWN_CHARS_MAX: usize = 120;
    // What prints longer than a message may be is not printed whole first.
    if value.as_bytes().len() > 64 * SHOWN_CHARS_MAX {
        return format!("a value of type {}", value.kind().alias());
    }
    let mut text = Vec::new();
    quarrydb_jsonb::print(value, quarrydb_jsonb::Style::Relaxed, &mut text);
    let text = String::from_utf8_lossy(&text);
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_json_and_cut() {
        for (json, expected) in [
            (r#""up""#.to_owned(), r#""up""#.to_owned()),
            ("-1".to_owned(), "-1".to_owned()),
            (r#"{"a": [1, 2.5]}"#.to_owned(), r#"{"a":[1,2.5]}"#.to_owned()),
            (format!("\"{}\"", "\u{e9}".repeat(200)), format!("\"{}...", "\u{e9}".repeat(119))),
            (format!("\"{}\"", "x".repeat(9000)), "a value of type string".to_owned()),
        ] {
            let value = quarrydb_jsonb::parse(json.as_bytes()).expect("JSON");
            assert_eq!(shown(value.view()), expected);
        }
    }
}
