//! Which rows a filter matches, as far as columns can tell.
//!
//! Takes a filter and the columns of a run of rows (a segment, a part of a tail); gives the rows that match for sure and
//! those that may: between the two a document must be looked at. Nothing here decides what a filter means: a row is sure,
//! or ruled out, only where the column shows all that the meaning on a document asks for (`engine/query`). It knows
//! nothing of segments, tails, snapshots or rows that are dead.
//!
//! Read `answer.rs` (three-valued sets of rows), `prepare.rs` (a filter made ready once), `leaf.rs` (one test on one
//! column), `evaluate.rs` (the tree), `count.rs` (how many, without a set), `describe.rs` (what `explain` says).

pub(crate) mod answer;
mod count;
mod describe;
mod evaluate;
mod leaf;
mod numbers;
mod prepare;

pub(crate) use answer::{Answer, Rows};
pub(crate) use describe::Stage;
pub(crate) use prepare::Prepared;
