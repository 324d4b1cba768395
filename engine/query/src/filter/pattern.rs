//! A regular expression of a filter, compiled once.
//!
//! Takes pattern and options as MongoDB has them (Perl's syntax), gives whether a value matches. Runs in time linear in
//! the text, whatever the pattern: what such an engine cannot do is refused by `pattern_syntax.rs`, with its name.

use super::pattern_syntax::translate;
use crate::QueryError;
use crate::limits::{
    PATTERN_BYTES_MAX, PATTERN_CACHE_BYTES_MAX, PATTERN_PROGRAM_BYTES_MAX, PATTERN_PROGRAM_BYTES_MIN, PATTERN_WORK_MAX,
    PATTERNS_MAX,
};
use crate::pattern_count::PatternCount;
use quarrydb_jsonb::{JsonbRef, Value};
use regex::bytes::{Regex, RegexBuilder};

/// A compiled regular expression.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: Box<str>,
    options: Box<str>,
    regex: Regex,
}

impl Pattern {
    /// Compiles the `nth` regular expression of one filter, from 1: later ones have less room, so that all together are
    /// bounded.
    pub(crate) fn compile(text: &str, options: &str, nth: usize) -> Result<Self, QueryError> {
        if text.len() > PATTERN_BYTES_MAX {
            let message = format!("a regular expression of {} bytes: it has at most {PATTERN_BYTES_MAX}", text.len());
            return Err(QueryError::bad_value(message));
        }
        if nth > PATTERNS_MAX {
            let message = format!("more than {PATTERNS_MAX} regular expressions in one filter: that is the most");
            return Err(QueryError::bad_value(message));
        }
        if text.contains('\0') || options.contains('\0') {
            return Err(QueryError::bad_value("Regular expression cannot contain an embedded null byte"));
        }
        if let Some(unknown) = options.chars().find(|c| !"imsxu".contains(*c)) {
            return Err(QueryError::location(51108, format!("invalid flag in regex options: {unknown}")));
        }
        let has = |flag| options.contains(flag);
        let refuse = |message: &str| QueryError::location(51091, format!("Regular expression is invalid: {message}"));
        let (translated, work) = translate(text, has('m'), has('x')).map_err(|message| refuse(&message))?;
        if work > PATTERN_WORK_MAX {
            return Err(refuse("it names too many Unicode properties, or ranges that are too wide"));
        }
        if !PatternCount::spend(work) {
            return Err(refuse("all of one query name too many Unicode properties, or ranges that are too wide"));
        }
        let room = (PATTERN_PROGRAM_BYTES_MAX * 8 / (nth + 7)).max(PATTERN_PROGRAM_BYTES_MIN);
        let regex = RegexBuilder::new(&translated)
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .ignore_whitespace(has('x'))
            .size_limit(room)
            .dfa_size_limit(room.min(PATTERN_CACHE_BYTES_MAX))
            .build()
            .map_err(|e| QueryError::location(51091, invalid(&e, room, nth)))?;
        Ok(Self { text: text.into(), options: options.into(), regex })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The options as they were written.
    #[must_use]
    pub fn options(&self) -> &str {
        &self.options
    }

    /// Whether a value passes: a string that matches, or the same regular expression.
    #[must_use]
    pub fn test(&self, value: JsonbRef<'_>) -> bool {
        match value.as_str_bytes() {
            Some(text) => self.regex.is_match(text),
            None => {
                matches!(value.value(), Value::Regex { pattern, options } if pattern == &*self.text && options == &*self.options)
            }
        }
    }

    /// What it was compiled to.
    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }

    /// Whether a text matches.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text.as_bytes())
    }
}

fn invalid(error: &regex::Error, room: usize, nth: usize) -> String {
    match error {
        regex::Error::CompiledTooBig(_) => {
            let many = match nth {
                1 => String::new(),
                _ => format!(", which is left for number {nth} of one query: ask for fewer"),
            };
            format!("Regular expression is invalid: compiled, it would take more than {room} bytes{many}; repeat less")
        }
        // The library draws the pattern over several lines: the last one says what is wrong.
        _ => {
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            format!("Regular expression is invalid: {}", last.trim_start_matches("error: "))
        }
    }
}
