//! The expression language: `$expr`, computed projections, pipelines.
//!
//! Takes a value of a body (parsed once) and documents; gives values. Pure but for `$rand`: the time is the operation's.
//! Reading order: `ast.rs`, `parse.rs`, `forms.rs`, `registry.rs`, `datum.rs`, `scope.rs`, `evaluate.rs`, then one file
//! for each family of operators.

mod arithmetic;
mod array;
mod ast;
mod binary_number;
mod binary_text;
mod bits;
mod calendar;
mod calendar_ops;
mod compare;
mod convert;
mod date_format;
mod date_math;
mod date_parse;
mod date_words;
mod datum;
mod double_text;
mod evaluate;
mod forms;
mod fresh;
mod hashed;
mod let_variables;
mod md5;
mod needs;
mod object;
mod parse;
mod positions;
mod regex;
mod registry;
mod scope;
mod set;
mod size;
mod statistics;
mod string;
mod trig;

pub(crate) use self::fresh::random;
pub(crate) use self::let_variables::{LetVariables, visible};
pub(crate) use self::parse::check_variable_name;

pub use self::datum::{Datum, Elements, Encoded, Fields, List};
pub use self::needs::Staircase;
pub use self::scope::{Budget, INTERRUPT_STEPS, Scope};

pub(crate) use self::date_math::Unit;

use self::ast::Expr;
use crate::pattern_count::PatternCount;
use crate::{ParseContext, QueryError};
use quarrydb_jsonb::{JsonbBuf, JsonbRef};

/// A parsed expression.
#[derive(Debug)]
pub struct Expression(Expr);

/// The names of all operators, in no order.
pub fn operator_names() -> impl Iterator<Item = &'static str> {
    registry::names().chain(forms::FORMS)
}

impl Expression {
    /// Parses a value of a body.
    ///
    /// # Errors
    /// Unknown operators (`InvalidPipelineOperator`, 168), wrong numbers of arguments, undefined variables (17276),
    /// malformed paths: with their place.
    pub fn parse(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let _patterns = PatternCount::open();
        let parsed = parse::Parser::new(context)?.expression(value, &context.place);
        parsed.map(Self).map_err(|e| e.at(&context.place))
    }

    /// Parses one that is asked of parts of a document too: `$$CURRENT` is the part, and so `$a` its field.
    pub(crate) fn parse_of_parts(value: JsonbRef<'_>, context: &ParseContext<'_>) -> Result<Self, QueryError> {
        let _patterns = PatternCount::open();
        let mut parser = parse::Parser::new(context)?;
        let parsed = parser.with_variables(&["CURRENT"], |parser| parser.expression(value, &context.place));
        parsed.map(|(_, e)| Self(e)).map_err(|e| e.at(&context.place))
    }

    /// The value of one that was parsed by [`Expression::parse_of_parts`], on a part of the scope's document.
    pub(crate) fn evaluate_part<'a>(
        &'a self,
        part: JsonbRef<'a>,
        scope: &mut Scope<'a>,
    ) -> Result<Datum<'a>, QueryError> {
        scope.variables.clear();
        scope.variables.push(Datum::from(part));
        evaluate::evaluate(&self.0, scope)
    }

    /// The value in one of the slots of a scope; see [`Scope::with_values`].
    pub(crate) fn slot(slot: usize) -> Self {
        Self(Expr::Variable { slot, path: ast::Path::default() })
    }

    /// Its value in a scope. It borrows from the document and from the expression where it can.
    ///
    /// # Errors
    /// Those of its operators on this document, and a spent budget. The scope is then not to be used again.
    pub fn evaluate<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Datum<'a>, QueryError> {
        evaluate::evaluate(&self.0, scope)
    }

    /// Whether its value on a document is true: all but false, null, missing and zero.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub fn is_true(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<bool, QueryError> {
        Ok(self.evaluate(&mut Scope::new(document, budget))?.is_true())
    }

    /// Its value on a document; none where it is missing.
    ///
    /// # Errors
    /// As [`Expression::evaluate`].
    pub fn value(&self, document: JsonbRef<'_>, budget: Budget<'_>) -> Result<Option<JsonbBuf>, QueryError> {
        let mut scope = Scope::new(document, budget);
        match self.evaluate(&mut scope)? {
            Datum::Missing => Ok(None),
            value => value.to_buf().map(Some),
        }
    }

    /// The value, where it is the same for every document.
    #[must_use]
    pub fn constant(&self) -> Option<JsonbRef<'_>> {
        match &self.0 {
            Expr::Constant(value) => Some(value.view()),
            Expr::Shared { value, path } if path.is_empty() => Some(value.view()),
            _ => None,
        }
    }

    /// The dotted path, where it is no more than a path from the document.
    #[must_use]
    pub fn root_path(&self) -> Option<&[Box<str>]> {
        match &self.0 {
            Expr::Root(path) => Some(path),
            _ => None,
        }
    }
}
