//! Groups of several runs of rows as those of all: equal `_id`s become one, in the order of their first rows.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use quarrydb_query::pipeline::accumulate::Accumulator;

use super::extremes::keep;
use super::fold::Made;
use super::local::Groups;
use super::spec::ColumnGroup;
use crate::error::Result;

/// Groups of one run from which on they are split among threads.
const MANY_GROUPS: usize = 4096;

/// How many threads join the groups of so many runs.
pub(super) fn shares(runs: &[Groups]) -> usize {
    let most = runs.iter().map(|groups| groups.entries.len()).max().unwrap_or(0);
    if runs.len() > 1 && most >= MANY_GROUPS { rayon::current_num_threads().max(1) } else { 1 }
}

/// Splits groups by their keys, so that equal ones of several runs are in one share.
pub(super) fn split(groups: Groups, shares: usize) -> Vec<Groups> {
    if shares == 1 {
        return vec![groups];
    }
    let hash = xxhash_rust::xxh3::xxh3_64;
    let of: Vec<usize> = groups.entries.iter().map(|e| (hash(groups.key(e)) % shares as u64) as usize).collect();
    let mut split: Vec<Groups> = (0..shares).map(|_| Groups::default()).collect();
    for (entry, share) in groups.entries.iter().zip(&of) {
        if let Some(into) = split.get_mut(*share) {
            into.push(groups.key(entry), groups.id(entry).as_bytes(), entry.first);
        }
    }
    for made in groups.made {
        for (into, made) in split.iter_mut().zip(made.split(&of, shares)) {
            into.made.push(made);
        }
    }
    split
}

/// The groups of runs whose rows follow each other.
///
/// # Errors
/// Those of accumulators.
pub(super) fn merge(spec: &ColumnGroup, runs: Vec<Groups>) -> Result<Groups> {
    let hasher = DefaultHashBuilder::default();
    let mut index: HashTable<u32> = HashTable::with_capacity(runs.first().map_or(0, |run| run.entries.len()));
    let mut all = Groups::default();
    let accumulators: Vec<&Accumulator> = spec.accumulators().collect();
    for run in runs {
        let first = all.entries.is_empty();
        let places = join(&mut all, &run, &hasher, &mut index);
        if first {
            // Within a run no two are equal: it is taken as it is.
            all.made = run.made;
            continue;
        }
        for ((into, made), accumulator) in all.made.iter_mut().zip(run.made).zip(&accumulators) {
            into.merge(accumulator, made, &places)?;
        }
    }
    Ok(all)
}

/// Finds the places of the groups of a run among all, which get those that are new.
fn join(all: &mut Groups, run: &Groups, hasher: &DefaultHashBuilder, index: &mut HashTable<u32>) -> Vec<u32> {
    let mut places = Vec::with_capacity(run.entries.len());
    for entry in &run.entries {
        let key = run.key(entry);
        let hash = hasher.hash_one(key);
        let same = |place: &u32| all.entries.get(*place as usize).is_some_and(|own| all.key(own) == key);
        if let Some(place) = index.find(hash, same) {
            places.push(*place);
            continue;
        }
        all.push(key, run.id(entry).as_bytes(), entry.first);
        let place = all.entries.len() as u32 - 1;
        places.push(place);
        let hash_of = |place: &u32| all.entries.get(*place as usize).map_or(0, |own| hasher.hash_one(all.key(own)));
        index.insert_unique(hash, place, hash_of);
    }
    places
}

impl Made {
    /// Adds what came of later rows: of group `i` of `later` to group `places[i]`, which may be the next that is new.
    fn merge(&mut self, accumulator: &Accumulator, later: Self, places: &[u32]) -> Result<()> {
        match (self, later) {
            (Self::Count(own), Self::Count(later)) => put(own, later, places, |own, later| {
                *own += later;
                Ok(())
            }),
            (Self::Extremes(own, end), Self::Extremes(later, _)) => put(own, later, places, |own, later| {
                keep(*end, own, later);
                Ok(())
            }),
            (Self::First(own), Self::First(later)) => put(own, later, places, |_, _| Ok(())),
            (Self::Last(own), Self::Last(later)) => put(own, later, places, |own, later| {
                *own = later;
                Ok(())
            }),
            (Self::Totals(own), Self::Totals(later)) => put(own, later, places, |own, later| {
                own.merge(later);
                Ok(())
            }),
            (Self::States(own), Self::States(later)) => {
                put(own, later, places, |own, later| Ok(own.merge(accumulator, later)?))
            }
            // One run had the values in another form than the other.
            (own, later) => {
                let states = own.states(accumulator)?;
                *own = Self::States(states);
                let later = Self::States(later.states(accumulator)?);
                own.merge(accumulator, later, places)
            }
        }
    }
}

fn put<T>(own: &mut Vec<T>, later: Vec<T>, places: &[u32], mut add: impl FnMut(&mut T, T) -> Result<()>) -> Result<()> {
    for (value, place) in later.into_iter().zip(places) {
        match own.get_mut(*place as usize) {
            Some(own) => add(own, value)?,
            None => own.push(value),
        }
    }
    Ok(())
}
