//! A parsed expression as a tree.
//!
//! Made by `parse.rs` alone; constants are folded. What is the same for all operators that only look at their evaluated
//! arguments is a [`Call`] of a function from `registry.rs`; operators that decide what to evaluate, or bind variables,
//! have nodes of their own. Next: `evaluate.rs`.

use super::regex::RegexCall;
use super::registry::Operator;
use quarrydb_jsonb::JsonbBuf;
use std::sync::Arc;

/// A parsed expression.
#[derive(Debug)]
pub(super) enum Expr {
    /// The same for every document.
    Constant(JsonbBuf),
    /// A path from a variable of the body's `let`, which all expressions share.
    Shared {
        value: Arc<JsonbBuf>,
        path: Path,
    },
    /// `$$REMOVE`.
    Missing,
    /// A path from the document: `$a.b`.
    Root(Path),
    /// A path from a variable: `$$this.a`.
    Variable {
        slot: usize,
        path: Path,
    },
    Array(Vec<Expr>),
    Object(Vec<(Box<str>, Expr)>),
    Call(Box<Call>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Cond(Box<[Expr; 3]>),
    IfNull(Vec<Expr>),
    Switch {
        branches: Vec<(Expr, Expr)>,
        default: Option<Box<Expr>>,
    },
    Let {
        variables: Vec<Expr>,
        slot: usize,
        body: Box<Expr>,
    },
    Map {
        input: Box<Expr>,
        slot: usize,
        body: Box<Expr>,
    },
    Filter {
        input: Box<Expr>,
        limit: Option<Box<Expr>>,
        slot: usize,
        condition: Box<Expr>,
    },
    Reduce {
        input: Box<Expr>,
        initial: Box<Expr>,
        slot: usize,
        body: Box<Expr>,
    },
    Convert(Box<ConvertCall>),
    DateFromString(Box<DateFromStringCall>),
    Regex(Box<RegexCall>),
    Random,
    /// A new ObjectId of the operation's time, in milliseconds since 1970-01-01 UTC.
    NewObjectId(i64),
}

/// Field names, from the outside in; none stands for the value itself.
pub(super) type Path = Box<[Box<str>]>;

/// A function of evaluated arguments.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) operator: &'static Operator,
    /// By position; arguments that were not given are none.
    pub(super) arguments: Vec<Option<Expr>>,
}

/// `$convert`, whose `onError` and `onNull` are evaluated only where needed.
#[derive(Debug)]
pub(super) struct ConvertCall {
    pub(super) input: Expr,
    pub(super) to: Expr,
    pub(super) format: Option<Expr>,
    pub(super) on_error: Option<Expr>,
    pub(super) on_null: Option<Expr>,
    pub(super) byte_order: Option<Expr>,
}

/// `$dateFromString`.
#[derive(Debug)]
pub(super) struct DateFromStringCall {
    pub(super) text: Expr,
    pub(super) format: Option<Expr>,
    pub(super) zone: Option<Expr>,
    pub(super) on_error: Option<Expr>,
    pub(super) on_null: Option<Expr>,
}
