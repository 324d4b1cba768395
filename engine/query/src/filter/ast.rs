//! A parsed filter as a tree: what a planner reads and `evaluate.rs` runs.
//!
//! Made by `parse.rs` alone. Operators that say the same are one node here: `{a: 1}` and `{a: {$eq: 1}}`, `$ne` as `Not`
//! of an equality, `$all` as `All` of equalities, `$exists: false` as `Not` of `Exists`.

use super::bits::Bits;
use super::branches::Branches;
use super::comparison::Comparison;
use super::in_set::InSet;
use super::modulo::Modulo;
use super::pattern::Pattern;
use super::schema::Schema;
use super::type_set::TypeSet;
use crate::computed::Computed;
use crate::path_walk::{Candidate, FieldPath, Leaf};

/// A condition on a document; inside [`Test::ElemMatchValue`] on one value.
#[derive(Clone, Debug)]
pub enum Node {
    /// Every one holds; true where there is none.
    All(Vec<Node>),
    /// At least one holds; false where there is none.
    Any(Branches),
    /// It does not hold.
    Not(Box<Node>),
    /// A candidate of the path passes the test.
    Field(FieldTest),
    /// The value itself passes the test: only inside [`Test::ElemMatchValue`].
    Value(Test),
    /// `$expr`: an expression is true.
    Expression(Computed),
    /// `$jsonSchema`.
    Schema(Box<Schema>),
    /// The same for every document.
    Constant(bool),
}

impl Node {
    /// Whether it takes at most `room` plain tests, which it counts down; depth is bounded by the parser.
    pub(super) fn is_cheap(&self, room: &mut usize) -> bool {
        if *room == 0 {
            return false;
        }
        *room -= 1;
        match self {
            Self::All(nodes) => nodes.iter().all(|node| node.is_cheap(room)),
            Self::Any(nodes) => nodes.iter().all(|node| node.is_cheap(room)),
            Self::Not(node) => node.is_cheap(room),
            Self::Field(FieldTest { test, .. }) | Self::Value(test) => match test {
                Test::Pattern(_) => false,
                Test::ElemMatchObject(node) | Test::ElemMatchValue(node) => node.is_cheap(room),
                _ => true,
            },
            Self::Expression(_) | Self::Schema(_) => false,
            Self::Constant(_) => true,
        }
    }
}

/// A test on the candidates of a path: one that passes is enough.
#[derive(Clone, Debug)]
pub struct FieldTest {
    /// Where the candidates are.
    pub path: FieldPath,
    /// What one of them has to pass.
    pub test: Test,
}

/// A test on one candidate, which may be missing.
#[derive(Clone, Debug)]
pub enum Test {
    /// `$eq $lt $lte $gt $gte`.
    Compare(Comparison),
    /// `$in`.
    In(Box<InSet>),
    /// It is not missing.
    Exists,
    /// `$type`.
    Type(TypeSet),
    /// An array of so many elements.
    Size(u64),
    /// `$mod`.
    Modulo(Modulo),
    /// `$regex`, or a regular expression as the value.
    Pattern(Box<Pattern>),
    /// `$bitsAllSet` and its like.
    Bits(Box<Bits>),
    /// An array with an object or array among its elements on which the condition holds.
    ElemMatchObject(Box<Node>),
    /// An array with an element on which the condition (of [`Node::Value`]) holds.
    ElemMatchValue(Box<Node>),
}

impl Test {
    /// Whether one candidate passes, as [`Filter::matches`](super::Filter::matches) has it; none is a missing one.
    #[must_use]
    pub fn accepts(&self, candidate: Candidate<'_>) -> bool {
        super::evaluate::passes_alone(self, candidate)
    }

    /// What an array at the end of the path gives to this test.
    #[must_use]
    pub fn leaf(&self) -> Leaf {
        match self {
            Self::Exists | Self::Size(_) | Self::ElemMatchObject(_) | Self::ElemMatchValue(_) => Leaf::Whole,
            _ => Leaf::Elements,
        }
    }
}
