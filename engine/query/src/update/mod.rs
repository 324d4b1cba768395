//! Updates: what an update document, a replacement or a pipeline makes of one document.
//!
//! Takes a body's `update` (parsed once) and documents; gives the new document, or nothing where the update changes
//! nothing. `_id` never changes. What comes out never nests deeper than documents may, nor is it larger. Knows no
//! collection. Reading order: `ast.rs`, `path.rs`, `draft.rs`, `parse.rs`, `operands.rs`, `apply.rs`, `scalar.rs`,
//! `arrays.rs`, `in_place.rs`, `upsert.rs`, `replacement.rs`, `pipeline.rs`, `describe.rs`.

mod apply;
mod arrays;
mod ast;
mod describe;
mod draft;
mod in_place;
mod operands;
mod parse;
mod path;
mod pipeline;
mod replacement;
mod scalar;
mod upsert;

use self::apply::Application;
use self::describe::Guide;
use self::parse::Parsed;
use self::pipeline::Pipeline;
pub(crate) use self::pipeline::Pipeline as Stages;
pub use self::scalar::Clock;
use crate::expr::Budget;
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::meter::Meter;
use crate::{Filter, ParseContext, Place, QueryError, scratch};
use quarrydb_jsonb::{JsonbBuf, JsonbRef, bson_size, compare};
use std::cell::OnceCell;

/// A parsed update, replacement or pipeline.
#[derive(Debug)]
pub struct Update(Form);

#[derive(Debug)]
enum Form {
    Operators(Parsed),
    Replacement(JsonbBuf),
    Pipeline(Pipeline),
}

/// What applying an update is told beside the document.
#[derive(Clone, Copy, Debug, Default)]
pub struct ApplyContext {
    /// The operation's time.
    pub clock: Clock,
}

impl ApplyContext {
    /// With the operation's time, in milliseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn at(now_ms: i64) -> Self {
        let seconds = u32::try_from(now_ms.div_euclid(1000)).unwrap_or(0);
        Self { clock: Clock { now_ms, timestamp: (seconds, 1) } }
    }
}

impl Update {
    /// Parses the `update` of a body: an object of operators, or an array of stages. `array_filters` are the body's.
    ///
    /// # Errors
    /// What MongoDB refuses without a document: unknown operators (`FailedToParse`), operands of a wrong type, paths that
    /// conflict (40), empty (56) or `$`-prefixed (52) names, array filters that are unknown or unused.
    pub fn parse(
        update: JsonbRef<'_>,
        array_filters: Option<JsonbRef<'_>>,
        context: &ParseContext<'_>,
    ) -> Result<Self, QueryError> {
        let _patterns = crate::pattern_count::PatternCount::open();
        let Some(stages) = update.as_array() else {
            let parsed = parse::parse(update, array_filters, context);
            return parsed.map(|p| Self(Form::Operators(p))).map_err(|e| e.at(&context.place));
        };
        if array_filters.is_some_and(|f| f.as_array().is_none_or(|f| !f.is_empty())) {
            let message = "arrayFilters may not be specified for pipeline-style updates";
            return Err(QueryError::failed_to_parse(message).at(&Place::root("arrayFilters")));
        }
        Pipeline::parse(stages, context).map(|p| Self(Form::Pipeline(p))).map_err(|e| e.at(&context.place))
    }

    /// Parses a whole new document.
    ///
    /// # Errors
    /// `DollarPrefixedFieldName` for a top-level name with `$`, `FailedToParse` for what is no object.
    pub fn parse_replacement(document: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        replacement::parse(document, context).map(|d| Self(Form::Replacement(d)))
    }

    /// Whether it evaluates no expression. What does belongs on a thread that may be kept.
    #[must_use]
    pub fn is_cheap(&self) -> bool {
        !matches!(self.0, Form::Pipeline(_))
    }

    /// The new document, or none where it would be the same to the byte. `filter` is the one that chose the document;
    /// the positional `$` asks it which element matched.
    ///
    /// # Errors
    /// What MongoDB refuses on sight of the document: values of a wrong type, paths through scalars (28), a changed
    /// `_id` (66), a result that is too large or too deep. The document stays as it is.
    pub fn apply(
        &self,
        document: JsonbRef<'_>,
        filter: &Filter,
        context: &ApplyContext,
    ) -> Result<Option<JsonbBuf>, QueryError> {
        self.apply_within(document, filter, context, Budget::default())
    }

    /// The same with what its expressions may spend, and with a way to stop: it is asked now and then whether to go on.
    ///
    /// # Errors
    /// As [`Update::apply`], `MaxTimeMSExpired` (50) where it was stopped.
    pub fn apply_within(
        &self,
        document: JsonbRef<'_>,
        filter: &Filter,
        context: &ApplyContext,
        budget: Budget<'_>,
    ) -> Result<Option<JsonbBuf>, QueryError> {
        let new = match &self.0 {
            Form::Operators(parsed) => {
                if let Some(direct) = &parsed.direct
                    && let Some(outcome) = in_place::apply(direct, document, context.clock)?
                {
                    return Ok(outcome);
                }
                operators(parsed, document, filter, context, false, budget)?
            }
            Form::Replacement(new) => replacement::apply(new.view(), document)?,
            Form::Pipeline(pipeline) => piped(pipeline, document, budget)?,
        };
        if new.as_bytes() == document.as_bytes() {
            return Ok(None);
        }
        if self.may_touch_id() {
            check_id(document.get("_id"), new.view())?;
        }
        check_size(new.view())?;
        Ok(Some(new))
    }

    /// Whether it is a whole new document.
    #[must_use]
    pub fn is_replacement(&self) -> bool {
        matches!(self.0, Form::Replacement(_))
    }

    /// What changed from `before` to `after`, which the update made of it: an object of `updatedFields` (by dotted paths),
    /// `removedFields` and `truncatedArrays`. None of a replacement, which is told by the document itself.
    #[must_use]
    pub fn describe(&self, before: JsonbRef<'_>, after: JsonbRef<'_>) -> Option<JsonbBuf> {
        match &self.0 {
            Form::Operators(parsed) => Some(describe::describe(before, after, Guide::Node(&parsed.root), false)),
            Form::Pipeline(_) => Some(describe::describe(before, after, Guide::Free, true)),
            Form::Replacement(_) => None,
        }
    }

    /// The document that an upsert inserts: the fields that `filter` implies by equality, then the update. `_id` comes
    /// first; where neither gives one, it is `make_id`'s.
    ///
    /// # Errors
    /// As [`Update::apply`]; `NotSingleValueField` where the filter asks two things of one path, `InvalidIdField` where
    /// `_id` would be an array or a regular expression.
    pub fn upsert(
        &self,
        filter: &Filter,
        context: &ApplyContext,
        make_id: &mut dyn FnMut() -> [u8; 12],
    ) -> Result<JsonbBuf, QueryError> {
        let budget = Budget::default();
        let new = match &self.0 {
            Form::Operators(parsed) => {
                let implied = upsert::implied_document(filter)?;
                let new = operators(parsed, implied.view(), filter, context, true, budget)?;
                check_implied_id(&implied, new.view())?;
                new
            }
            Form::Replacement(new) => {
                let implied = upsert::implied_id(filter)?;
                replacement::apply(new.view(), implied.view())?
            }
            Form::Pipeline(pipeline) => piped(pipeline, upsert::implied_document(filter)?.view(), budget)?,
        };
        let new = upsert::with_id_first(new.view(), make_id)?;
        check_size(new.view())?;
        Ok(new)
    }

    fn may_touch_id(&self) -> bool {
        match &self.0 {
            Form::Operators(parsed) => parsed.touches_id,
            Form::Replacement(_) | Form::Pipeline(_) => false,
        }
    }
}

/// What differs between two documents, told as a pipeline's update of the one to the other is.
#[must_use]
pub fn differences(before: JsonbRef<'_>, after: JsonbRef<'_>) -> JsonbBuf {
    describe::describe(before, after, Guide::Free, true)
}

fn operators(
    parsed: &Parsed,
    document: JsonbRef<'_>,
    filter: &Filter,
    context: &ApplyContext,
    inserting: bool,
    budget: Budget<'_>,
) -> Result<JsonbBuf, QueryError> {
    scratch::build(document.as_bytes().len() + SPARE_BYTES, |out| {
        let mut application = Application {
            document,
            filter,
            array_filters: &parsed.array_filters,
            clock: context.clock,
            inserting,
            out,
            position: OnceCell::new(),
            meter: Meter::new(budget),
        };
        application.run(&parsed.root, &parsed.renames)
    })
}

/// What a pipeline makes of a document, with its `_id`.
fn piped(pipeline: &Pipeline, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<JsonbBuf, QueryError> {
    let new = pipeline.apply(document, budget)?;
    replacement::apply(new.view(), document)
}

/// Room for what an update adds, so that most need not grow the buffer.
const SPARE_BYTES: usize = 64;

fn check_id(old: Option<JsonbRef<'_>>, new: JsonbRef<'_>) -> Result<(), QueryError> {
    let same = match (old, new.get("_id")) {
        (Some(old), Some(new)) => compare(old, new).is_eq(),
        (None, None) => true,
        _ => false,
    };
    if same { Ok(()) } else { Err(immutable_id()) }
}

fn check_implied_id(implied: &JsonbBuf, new: JsonbRef<'_>) -> Result<(), QueryError> {
    match implied.view().get("_id") {
        None => Ok(()),
        some => check_id(some, new),
    }
}

fn immutable_id() -> QueryError {
    let message = "the update would change the immutable field '_id': insert a new document instead";
    QueryError::new("ImmutableField", 66, message)
}

fn check_size(document: JsonbRef<'_>) -> Result<(), QueryError> {
    // No value takes more than this many times its bytes as BSON, so that most documents need no measuring.
    const GROWTH_MAX: usize = 18;
    if document.as_bytes().len() <= DOCUMENT_BYTES_MAX / GROWTH_MAX {
        return Ok(());
    }
    let size = bson_size(document);
    if size <= DOCUMENT_BYTES_MAX {
        return Ok(());
    }
    let message = format!("the document would take {size} bytes: at most {DOCUMENT_BYTES_MAX} are allowed");
    Err(QueryError::new("BSONObjectTooLarge", 10334, message))
}
