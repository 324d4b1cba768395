//! Accumulators: what `$group`, `$bucketAuto` and `$setWindowFields` make of many values.
//!
//! Takes an accumulator's object, gives its kind, its argument and what stands beside it; a [`State`] takes values, merges
//! with the state of later rows, and gives the result. Wherever MongoDB's meaning does not depend on the order of rows, the
//! result does not depend on how they were split among states, bit for bit; standard deviations alone promise a tolerance.
//!
//! Reading order: `parse.rs`, `state.rs`, then `values.rs`, `ranked.rs`, `objects.rs`, `deviation.rs`; `stored.rs` is how
//! states wait in temporary files.

mod deviation;
mod objects;
mod parse;
mod ranked;
mod state;
mod stored;
mod values;

pub use self::state::STATE_BYTES_MAX;
pub use self::state::State;
pub use crate::exact::{Sum, Widest};

use crate::expr::Expression;
use crate::sort::Sort;

/// A parsed accumulator.
#[derive(Debug)]
pub struct Accumulator {
    kind: AccumulatorKind,
    argument: Option<Expression>,
    wanted: Wanted,
    sort: Option<Sort>,
    shares: Vec<f64>,
}

/// How many values an accumulator keeps.
#[derive(Debug)]
pub enum Wanted {
    /// The same for every group; 1 where the accumulator takes no number.
    Count(u64),
    /// The value of this on the group's `_id`.
    OfGroup(Expression),
}

/// What an accumulator does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccumulatorKind {
    /// `$sum`.
    Sum,
    /// `$avg`.
    Average,
    /// `$min`.
    Min,
    /// `$max`.
    Max,
    /// `$count`: takes no argument.
    Count,
    /// `$first`.
    First,
    /// `$last`.
    Last,
    /// `$push`.
    Push,
    /// `$addToSet`: values in the order in which they first came.
    AddToSet,
    /// `$stdDevPop`.
    DeviationPopulation,
    /// `$stdDevSamp`.
    DeviationSample,
    /// `$mergeObjects`.
    MergeObjects,
    /// `$top`.
    Top,
    /// `$topN`.
    TopN,
    /// `$bottom`.
    Bottom,
    /// `$bottomN`.
    BottomN,
    /// `$firstN`.
    FirstN,
    /// `$lastN`.
    LastN,
    /// `$minN`.
    MinN,
    /// `$maxN`.
    MaxN,
    /// `$median`.
    Median,
    /// `$percentile`.
    Percentile,
}

impl Accumulator {
    /// What it does.
    #[must_use]
    pub fn kind(&self) -> AccumulatorKind {
        self.kind
    }

    /// What it takes of each document: its operand, `input` or `output`. None for `$count`.
    #[must_use]
    pub fn argument(&self) -> Option<&Expression> {
        self.argument.as_ref()
    }

    /// How many values it keeps: its `n`.
    #[must_use]
    pub fn wanted(&self) -> &Wanted {
        &self.wanted
    }

    /// The `sortBy` of `$top` and its like.
    #[must_use]
    pub fn sort(&self) -> Option<&Sort> {
        self.sort.as_ref()
    }

    /// The shares that `$percentile` and `$median` ask for, from 0.0 to 1.0.
    #[must_use]
    pub fn shares(&self) -> &[f64] {
        &self.shares
    }
}

impl AccumulatorKind {
    /// The kind of that name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// The accumulator's name, with its `$`.
    #[must_use]
    pub fn name(self) -> &'static str {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// The names of all.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(name, _)| *name)
    }
}

const KINDS: [(&str, AccumulatorKind); 22] = [
    ("$sum", AccumulatorKind::Sum),
    ("$avg", AccumulatorKind::Average),
    ("$min", AccumulatorKind::Min),
    ("$max", AccumulatorKind::Max),
    ("$count", AccumulatorKind::Count),
    ("$first", AccumulatorKind::First),
    ("$last", AccumulatorKind::Last),
    ("$push", AccumulatorKind::Push),
    ("$addToSet", AccumulatorKind::AddToSet),
    ("$stdDevPop", AccumulatorKind::DeviationPopulation),
    ("$stdDevSamp", AccumulatorKind::DeviationSample),
    ("$mergeObjects", AccumulatorKind::MergeObjects),
    ("$top", AccumulatorKind::Top),
    ("$topN", AccumulatorKind::TopN),
    ("$bottom", AccumulatorKind::Bottom),
    ("$bottomN", AccumulatorKind::BottomN),
    ("$firstN", AccumulatorKind::FirstN),
    ("$lastN", AccumulatorKind::LastN),
    ("$minN", AccumulatorKind::MinN),
    ("$maxN", AccumulatorKind::MaxN),
    ("$median", AccumulatorKind::Median),
    ("$percentile", AccumulatorKind::Percentile),
];
