//! Accumulators over the rows of one run of columns.
//!
//! Takes the picked rows of each window with their groups; gives, for each group, what later runs are joined to.

use hashbrown::HashSet;
use quarrydb_index::column::WINDOW_ROWS;
use quarrydb_jsonb::{Builder, JsonbRef, Value};
use quarrydb_query::pipeline::accumulate::{Accumulator, AccumulatorKind, State, Widest};

use super::codes::MISSING;
use super::extremes::{End, Extremes, at_rows};
use super::numbers::{Numbers, Total};
use super::scalar::Scalar;
use super::spec::Input;
use super::trouble::Read;
use super::values::Values;
use crate::error::Result;
use crate::exec::plain::Plain;

/// One accumulator on its way through the windows.
#[derive(Debug)]
pub(super) enum Fold<'a> {
    Count(Vec<u64>),
    Numbers(Numbers<'a>),
    Extremes(Extremes<'a>, End),
    /// The first rows are known to the table of groups.
    First(Plain<'a>),
    Last(Plain<'a>, Vec<u32>),
    Set(Values<'a>, HashSet<(u32, u32)>, Vec<(u32, u32)>),
    Each(Values<'a>, Vec<State>),
}

/// What came of one accumulator, by group.
#[derive(Debug)]
pub(super) enum Made {
    Count(Vec<u64>),
    Totals(Vec<Total>),
    Extremes(Vec<Scalar>, End),
    First(Vec<Scalar>),
    Last(Vec<Scalar>),
    States(Vec<State>),
}

impl<'a> Fold<'a> {
    /// For an accumulator and the columns of its path; none where these are not enough.
    ///
    /// # Errors
    /// `Corrupt` of the index.
    pub(super) fn new(
        accumulator: &'a Accumulator,
        input: Option<(&'a Input, Plain<'a>)>,
        windows: std::ops::Range<usize>,
    ) -> quarrydb_index::Result<Option<Self>> {
        use AccumulatorKind as K;
        let Some((input, plain)) = input else { return Ok(Some(Self::Count(Vec::new()))) };
        let Some(expression) = accumulator.argument() else { return Ok(None) };
        let values = |plain: &Plain<'a>| Values::new(input, expression, plain, windows.clone());
        Ok(match accumulator.kind() {
            K::AddToSet => values(&plain)?.map(|values| Self::Set(values, HashSet::new(), Vec::new())),
            _ if !input.is_path => values(&plain)?.map(|values| Self::Each(values, Vec::new())),
            K::Sum | K::Average => Numbers::new(&plain)?.map(Self::Numbers),
            K::Min | K::Max => {
                let end = if accumulator.kind() == K::Min { End::Least } else { End::Greatest };
                match Extremes::new(end, &plain)? {
                    Some(extremes) => Some(Self::Extremes(extremes, end)),
                    None => values(&plain)?.map(|values| Self::Each(values, Vec::new())),
                }
            }
            K::First => at_rows(&plain, &[])?.map(|_| Self::First(plain)),
            K::Last => at_rows(&plain, &[])?.map(|_| Self::Last(plain, Vec::new())),
            _ => values(&plain)?.map(|values| Self::Each(values, Vec::new())),
        })
    }

    /// Takes the picked rows of window `index`, of the groups `groups`; there are `count` groups so far.
    ///
    /// # Errors
    /// `Corrupt`, those of the accumulator.
    pub(super) fn window(
        &mut self,
        accumulator: &Accumulator,
        (index, picks): (usize, &[u16]),
        groups: &[u32],
        count: usize,
        codes: &mut [u32; WINDOW_ROWS],
    ) -> Read<()> {
        match self {
            Self::Count(counts) => {
                counts.resize(count, 0);
                for group in groups {
                    if let Some(count) = counts.get_mut(*group as usize) {
                        *count += 1;
                    }
                }
            }
            Self::Numbers(numbers) => numbers.window(index, picks, groups, count)?,
            Self::Extremes(extremes, _) => extremes.window(index, picks, groups, count)?,
            Self::First(_) => {}
            Self::Last(_, rows) => {
                rows.resize(count, 0);
                for (row, group) in picks.iter().zip(groups) {
                    if let Some(last) = rows.get_mut(*group as usize) {
                        *last = (index * WINDOW_ROWS) as u32 + u32::from(*row);
                    }
                }
            }
            Self::Set(values, seen, pairs) => {
                values.window(index, picks, codes)?;
                for (row, group) in picks.iter().zip(groups) {
                    let code = codes.get(usize::from(*row)).copied().unwrap_or(MISSING);
                    if code != MISSING && seen.insert((*group, code)) {
                        pairs.push((*group, code));
                    }
                }
            }
            Self::Each(values, states) => {
                states.resize_with(count, || State::new(accumulator));
                values.window(index, picks, codes)?;
                let (mut buffer, mut builder) = (Vec::new(), Builder::new());
                for (row, group) in picks.iter().zip(groups) {
                    let code = codes.get(usize::from(*row)).copied().unwrap_or(MISSING);
                    builder.rewind(0);
                    let there = code != MISSING && values.write(code, &mut buffer, &mut builder)?;
                    let value = there.then(|| JsonbRef::from_valid(builder.bytes()));
                    if let Some(state) = states.get_mut(*group as usize) {
                        state.add_value(accumulator, value)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// What came of it for each of `count` groups, whose first rows are `first`.
    ///
    /// # Errors
    /// `Corrupt`, those of the accumulator.
    pub(super) fn finish(self, accumulator: &Accumulator, first: &[u32]) -> Read<Made> {
        let count = first.len();
        Ok(match self {
            Self::Count(mut counts) => {
                counts.resize(count, 0);
                Made::Count(counts)
            }
            Self::Numbers(numbers) => Made::Totals(numbers.finish(count)),
            Self::Extremes(extremes, end) => Made::Extremes(extremes.finish(count)?, end),
            Self::First(plain) => Made::First(at_rows(&plain, first)?.unwrap_or_default()),
            Self::Last(plain, rows) => Made::Last(at_rows(&plain, &rows)?.unwrap_or_default()),
            Self::Set(values, _, pairs) => {
                let mut states: Vec<State> = (0..count).map(|_| State::new(accumulator)).collect();
                let (mut buffer, mut builder) = (Vec::new(), Builder::new());
                for (group, code) in pairs {
                    builder.rewind(0);
                    if values.write(code, &mut buffer, &mut builder)?
                        && let Some(state) = states.get_mut(group as usize)
                    {
                        state.add_value(accumulator, Some(JsonbRef::from_valid(builder.bytes())))?;
                    }
                }
                Made::States(states)
            }
            Self::Each(_, mut states) => {
                states.resize_with(count, || State::new(accumulator));
                Made::States(states)
            }
        })
    }
}

/// The whole number that an accumulator takes of every row, where it takes one, and its type.
pub(super) fn constant(accumulator: &Accumulator) -> Option<(i64, Widest)> {
    match accumulator.argument()?.constant()?.value() {
        Value::Int32(number) => Some((i64::from(number), Widest::Int32)),
        Value::Int64(number) => Some((number, Widest::Int64)),
        _ => None,
    }
}

impl Made {
    /// The state of a group, as the accumulator itself would have it.
    ///
    /// # Errors
    /// Those of the accumulator.
    pub(super) fn state(&self, accumulator: &Accumulator, group: usize) -> Result<State> {
        let mut state = State::new(accumulator);
        let mut one = |value: Option<&Scalar>| -> Result<()> {
            let mut builder = Builder::new();
            let there = value.is_some_and(|value| value.write(&mut builder));
            let value = there.then(|| JsonbRef::from_valid(builder.bytes()));
            Ok(state.add_value(accumulator, value)?)
        };
        match self {
            Self::Count(counts) => {
                let rows = counts.get(group).copied().unwrap_or(0);
                match accumulator.kind() {
                    AccumulatorKind::Count => state.add_count(rows),
                    _ => {
                        let (each, widest) = constant(accumulator).unwrap_or((0, Widest::Int32));
                        // A sum of so many rows of so small numbers is far from the end of 127 bits.
                        state.add_integers(i128::from(each) * i128::from(rows), widest, rows);
                    }
                }
            }
            Self::Totals(totals) => return Ok(totals.get(group).map_or(state, |total| total.state(accumulator))),
            Self::Extremes(found, _) | Self::First(found) | Self::Last(found) => one(found.get(group))?,
            Self::States(states) => return Ok(states.get(group).cloned().unwrap_or(state)),
        }
        Ok(state)
    }
}

impl Made {
    /// Writes the result of a group.
    ///
    /// # Errors
    /// Those of the accumulator.
    pub(super) fn write(&self, accumulator: &Accumulator, group: usize, out: &mut Builder) -> Result<()> {
        match self {
            // Results are those values, and null for none.
            Self::Extremes(found, _) | Self::First(found) | Self::Last(found) => {
                if !found.get(group).is_some_and(|value| value.write(out)) {
                    out.null();
                }
            }
            Self::States(states) => match states.get(group) {
                Some(state) => state.finish(accumulator, out)?,
                None => State::new(accumulator).finish(accumulator, out)?,
            },
            Self::Count(_) | Self::Totals(_) => self.state(accumulator, group)?.finish(accumulator, out)?,
        }
        Ok(())
    }

    /// The states of all groups.
    ///
    /// # Errors
    /// Those of the accumulator.
    pub(super) fn states(&self, accumulator: &Accumulator) -> Result<Vec<State>> {
        (0..self.len()).map(|group| self.state(accumulator, group)).collect()
    }

    fn len(&self) -> usize {
        match self {
            Self::Count(counts) => counts.len(),
            Self::Totals(totals) => totals.len(),
            Self::Extremes(found, _) | Self::First(found) | Self::Last(found) => found.len(),
            Self::States(states) => states.len(),
        }
    }

    /// The memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Count(counts) => size_of_val(counts.as_slice()),
            Self::Totals(totals) => size_of_val(totals.as_slice()) + totals.iter().map(Total::bytes).sum::<usize>(),
            Self::Extremes(found, _) | Self::First(found) | Self::Last(found) => {
                size_of_val(found.as_slice()) + found.iter().map(Scalar::bytes).sum::<usize>()
            }
            Self::States(states) => size_of_val(states.as_slice()) + states.iter().map(State::bytes).sum::<usize>(),
        }
    }

    /// The groups of each of `shares` shares: `of` says which share a group is of.
    pub(super) fn split(self, of: &[usize], shares: usize) -> Vec<Self> {
        match self {
            Self::Count(counts) => dealt(counts, of, shares).map(Self::Count).collect(),
            Self::Totals(totals) => dealt(totals, of, shares).map(Self::Totals).collect(),
            Self::Extremes(found, end) => dealt(found, of, shares).map(|found| Self::Extremes(found, end)).collect(),
            Self::First(found) => dealt(found, of, shares).map(Self::First).collect(),
            Self::Last(found) => dealt(found, of, shares).map(Self::Last).collect(),
            Self::States(states) => dealt(states, of, shares).map(Self::States).collect(),
        }
    }
}

fn dealt<T>(all: Vec<T>, of: &[usize], shares: usize) -> impl Iterator<Item = Vec<T>> {
    let mut dealt: Vec<Vec<T>> = (0..shares).map(|_| Vec::new()).collect();
    for (value, share) in all.into_iter().zip(of) {
        if let Some(into) = dealt.get_mut(*share) {
            into.push(value);
        }
    }
    dealt.into_iter()
}
