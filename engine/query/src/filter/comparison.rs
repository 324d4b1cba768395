//! One comparison with a constant: `$eq $lt $lte $gt $gte`.
//!
//! The constant is taken apart once, so that comparing a document's value with it is a few instructions. MongoDB's type
//! bracketing holds: values of another type never pass, but for missing, which is as null, and the two keys at the ends
//! of the order. NaN is equal to NaN and in no range.

use crate::number::is_nan;
use crate::path_walk::Candidate;
use quarrydb_jsonb::{JsonbBuf, JsonbRef, Kind, Value, compare, compare_numbers, type_rank};
use std::cmp::Ordering;

/// Which way to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// Equal.
    Eq,
    /// Less.
    Lt,
    /// Less or equal.
    Lte,
    /// Greater.
    Gt,
    /// Greater or equal.
    Gte,
}

impl CompareOp {
    #[inline]
    fn takes(self, ordering: Ordering) -> bool {
        match self {
            Self::Eq => ordering == Ordering::Equal,
            Self::Lt => ordering == Ordering::Less,
            Self::Lte => ordering != Ordering::Greater,
            Self::Gt => ordering == Ordering::Greater,
            Self::Gte => ordering != Ordering::Less,
        }
    }

    /// Whether it takes equal values.
    #[must_use]
    pub fn takes_equal(self) -> bool {
        matches!(self, Self::Eq | Self::Lte | Self::Gte)
    }
}

/// A comparison with a constant.
#[derive(Clone, Debug)]
pub struct Comparison {
    op: CompareOp,
    operand: JsonbBuf,
    form: Form,
}

/// The constant in the form that compares fastest.
#[derive(Clone, Debug)]
enum Form {
    /// An int32 or int64.
    Int(i64),
    /// Another number.
    Number,
    /// NaN of either type.
    NaN,
    /// A string's bytes.
    Text(Box<[u8]>),
    ObjectId([u8; 12]),
    Date(i64),
    Null,
    MinKey,
    MaxKey,
    /// Anything else, with its place among the types.
    Other(u8),
}

impl Comparison {
    /// A comparison with `operand`.
    #[must_use]
    pub fn new(op: CompareOp, operand: JsonbRef<'_>) -> Self {
        let form = match operand.value() {
            Value::Int32(n) => Form::Int(n.into()),
            Value::Int64(n) => Form::Int(n),
            Value::Double(_) | Value::Decimal128(_) if is_nan(operand) => Form::NaN,
            Value::Double(_) | Value::Decimal128(_) => Form::Number,
            Value::String(s) => Form::Text(s.as_bytes().into()),
            Value::ObjectId(id) => Form::ObjectId(id),
            Value::Date(ms) => Form::Date(ms),
            Value::Null => Form::Null,
            Value::MinKey => Form::MinKey,
            Value::MaxKey => Form::MaxKey,
            _ => Form::Other(type_rank(operand.kind())),
        };
        Self { op, operand: JsonbBuf::from_valid(operand.as_bytes().to_vec()), form }
    }

    /// Which way it compares.
    #[must_use]
    pub fn op(&self) -> CompareOp {
        self.op
    }

    /// The constant.
    #[must_use]
    pub fn operand(&self) -> JsonbRef<'_> {
        self.operand.view()
    }

    /// Whether a candidate passes.
    #[inline]
    #[must_use]
    pub fn test(&self, candidate: Candidate<'_>) -> bool {
        let Some(value) = candidate else { return self.test_missing() };
        let ordering = match &self.form {
            Form::Int(n) => match value.as_i64() {
                Some(v) => v.cmp(n),
                None => return self.test_number(value),
            },
            Form::Text(text) => match value.as_str_bytes() {
                Some(v) if self.op == CompareOp::Eq => return v == &**text,
                Some(v) => v.cmp(text),
                None => return false,
            },
            Form::ObjectId(id) => match value.value() {
                Value::ObjectId(v) => v.cmp(id),
                _ => return false,
            },
            Form::Date(ms) => match value.value() {
                Value::Date(v) => v.cmp(ms),
                _ => return false,
            },
            Form::Number => return self.test_number(value),
            Form::NaN => return self.op.takes_equal() && is_nan(value),
            Form::Null => return self.op.takes_equal() && value.kind() == Kind::Null,
            Form::MinKey if value.kind() != Kind::MinKey => return matches!(self.op, CompareOp::Gt | CompareOp::Gte),
            Form::MaxKey if value.kind() != Kind::MaxKey => return matches!(self.op, CompareOp::Lt | CompareOp::Lte),
            Form::MinKey | Form::MaxKey => Ordering::Equal,
            Form::Other(rank) if type_rank(value.kind()) == *rank => compare(value, self.operand.view()),
            Form::Other(_) => return false,
        };
        self.op.takes(ordering)
    }

    /// A number against one that is not NaN.
    fn test_number(&self, value: JsonbRef<'_>) -> bool {
        value.kind().is_number() && !is_nan(value) && self.op.takes(compare_numbers(value, self.operand.view()))
    }

    /// What is missing is as null, and between the two ends of the order.
    fn test_missing(&self) -> bool {
        match self.form {
            Form::Null => self.op.takes_equal(),
            Form::MinKey => matches!(self.op, CompareOp::Gt | CompareOp::Gte),
            Form::MaxKey => matches!(self.op, CompareOp::Lt | CompareOp::Lte),
            _ => false,
        }
    }
}
