//! Which groups columns can make: by constants and paths, with accumulators of constants and paths.

use std::sync::Arc;

use quarrydb_jsonb::JsonbBuf;
use quarrydb_query::expr::Expression;
use quarrydb_query::pipeline::accumulate::{Accumulator, AccumulatorKind, Wanted};
use quarrydb_query::pipeline::{Group, GroupId};

use super::fold::constant;

/// A `$group` that asks for no more than values at paths.
#[derive(Debug)]
pub(crate) struct ColumnGroup {
    pub(super) group: Arc<Group>,
    pub(super) id: Id,
    /// What each accumulator takes; none where it counts rows.
    pub(super) arguments: Vec<Option<Input>>,
}

/// What is taken of a row: the value at a path, or what the expression that stands there makes of it.
#[derive(Debug)]
pub(super) struct Input {
    pub path: String,
    pub is_path: bool,
}

/// What it groups by.
#[derive(Debug)]
pub(super) enum Id {
    /// All rows are one group.
    Constant(JsonbBuf),
    /// The value of one input.
    One(Input),
    /// An object of values, by name.
    Object(Vec<(Box<str>, Input)>),
}

impl ColumnGroup {
    /// The group, where columns may have all that it asks for.
    pub(crate) fn new(group: &Arc<Group>) -> Option<Self> {
        let id = match group.id() {
            GroupId::Expression(expression) => match expression.constant() {
                Some(value) => Id::Constant(value.to_buf()),
                None => Id::One(input(expression)?),
            },
            GroupId::Object(fields) => {
                let fields = fields.iter().map(|(name, part)| Some((name.clone(), input(part)?)));
                Id::Object(fields.collect::<Option<_>>()?)
            }
        };
        let arguments = group.fields().iter().map(|field| argument(&field.accumulator)).collect::<Option<_>>()?;
        Some(Self { group: Arc::clone(group), id, arguments })
    }

    /// The accumulators in their order.
    pub(super) fn accumulators(&self) -> impl Iterator<Item = &Accumulator> {
        self.group.fields().iter().map(|field| &field.accumulator)
    }

    /// What it groups by, with the expressions.
    pub(super) fn keys(&self) -> Vec<(&Input, &Expression)> {
        match (&self.id, self.group.id()) {
            (Id::One(input), GroupId::Expression(expression)) => vec![(input, expression)],
            (Id::Object(fields), GroupId::Object(parts)) => {
                fields.iter().zip(parts).map(|((_, input), (_, expression))| (input, expression)).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// What an accumulator takes of each row, which may be nothing; none where columns do not have it.
fn argument(accumulator: &Accumulator) -> Option<Option<Input>> {
    use AccumulatorKind as K;
    if !matches!(accumulator.wanted(), Wanted::Count(_)) {
        return None;
    }
    match accumulator.kind() {
        K::Count => Some(None),
        K::Sum | K::Average if constant(accumulator).is_some() => Some(None),
        K::MergeObjects | K::Top | K::TopN | K::Bottom | K::BottomN => None,
        _ => input(accumulator.argument()?).map(Some),
    }
}

fn input(expression: &Expression) -> Option<Input> {
    if let Some(path) = expression.root_path() {
        return (!path.is_empty()).then(|| Input { path: path.join("."), is_path: true });
    }
    let mut paths = expression.paths()?.into_iter();
    match (paths.next(), paths.next()) {
        (Some(path), None) => Some(Input { path, is_path: false }),
        _ => None,
    }
}
