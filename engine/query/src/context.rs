//! What a parser is told beside the text itself: where the text stands in the body, the time, the body's variables.

use crate::expr::LetVariables;
use crate::pipeline::Within;
use crate::place::Place;
use quarrydb_jsonb::JsonbRef;

/// What every parser of this crate is told.
#[derive(Clone, Copy, Debug)]
pub struct ParseContext<'a> {
    /// Where the parsed value stands in the body; errors begin with it.
    pub place: Place<'a>,
    /// `$$NOW`: milliseconds since 1970-01-01 UTC, one for the whole operation.
    pub now_ms: i64,
    /// The body's `let`: an object of name and constant expression.
    pub variables: Option<JsonbRef<'a>>,
    /// The same as values, with those that stages bind; it stands in for `variables` where it is given.
    pub(crate) bound: Option<&'a LetVariables>,
    /// The pipelines that stand around.
    pub(crate) within: Within<'a>,
}

impl<'a> ParseContext<'a> {
    /// For the body's field `name`, without a time and without variables.
    #[must_use]
    pub const fn new(name: &'a str) -> Self {
        Self { place: Place::root(name), now_ms: 0, variables: None, bound: None, within: Within::NOTHING }
    }

    /// The same at another place.
    #[must_use]
    pub const fn at(self, place: Place<'a>) -> Self {
        Self { place, ..self }
    }

    /// The same with the operation's time.
    #[must_use]
    pub const fn with_now(self, now_ms: i64) -> Self {
        Self { now_ms, ..self }
    }

    /// The same with the body's `let`.
    #[must_use]
    pub const fn with_variables(self, variables: Option<JsonbRef<'a>>) -> Self {
        Self { variables, ..self }
    }
}
