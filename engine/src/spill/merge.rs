//! Runs merged into one order by a tree of losers: each next pair costs one comparison per level.
//!
//! Where there are more runs than memory has blocks for, neighbours are merged into longer ones first, in passes.

use std::sync::Arc;

use super::room::{SpillFile, SpillRoom};
use super::run::{Run, RunReader, RunWriter};
use crate::error::Result;
use crate::options::Deadline;

/// Runs merged at once, however much memory there is.
const WIDTH_MAX: usize = 1024;
/// A place in the tree where nobody has lost yet.
const NOBODY: usize = usize::MAX;

/// Runs as one.
#[derive(Debug)]
pub(super) struct Merged {
    file: SpillFile,
    readers: Readers,
    deadline: Option<Deadline>,
}

/// Readers of runs, and the tree over them.
#[derive(Debug)]
struct Readers {
    runs: Vec<RunReader>,
    /// At 0 the winner, at the others who lost there.
    tree: Vec<usize>,
    /// Whether the winner was handed on.
    taken: bool,
}

impl Readers {
    fn new(file: &SpillFile, runs: &[Run], deadline: Option<Deadline>) -> Result<Self> {
        let mut readers: Vec<RunReader> = runs.iter().map(|run| RunReader::new(*run)).collect();
        readers.iter_mut().try_for_each(|reader| reader.advance(file, deadline))?;
        let mut made = Self { tree: vec![NOBODY; readers.len()], runs: readers, taken: false };
        (0..made.runs.len()).for_each(|run| made.seat(run));
        Ok(made)
    }

    /// Whether run `a` comes before run `b`: by key, and where keys are equal the run that was written first.
    fn is_before(&self, a: usize, b: usize) -> bool {
        let (Some(one), Some(other)) = (self.runs.get(a), self.runs.get(b)) else { return false };
        match (one.is_there, other.is_there) {
            (true, true) => {
                let order = one.prefix.cmp(&other.prefix).then_with(|| one.key().cmp(other.key()));
                order.then(a.cmp(&b)).is_lt()
            }
            (there, _) => there,
        }
    }

    /// Lets a run play its way up. Who comes first to a match waits there for the other.
    fn seat(&mut self, run: usize) {
        let mut winner = run;
        let mut place = (run + self.runs.len()) / 2;
        while place > 0 {
            let Some(&other) = self.tree.get(place) else { return };
            let other_wins = other != NOBODY && self.is_before(other, winner);
            let Some(seat) = self.tree.get_mut(place) else { return };
            if other == NOBODY {
                *seat = winner;
                return;
            }
            if other_wins {
                winner = std::mem::replace(seat, winner);
            }
            place /= 2;
        }
        if let Some(top) = self.tree.first_mut() {
            *top = winner;
        }
    }

    /// The run whose pair is next, if one is left.
    fn next(&mut self, file: &SpillFile, deadline: Option<Deadline>) -> Result<Option<&RunReader>> {
        let Some(&first) = self.tree.first() else { return Ok(None) };
        if self.taken {
            if let Some(reader) = self.runs.get_mut(first) {
                reader.advance(file, deadline)?;
            }
            self.seat(first);
        }
        self.taken = true;
        let winner = self.tree.first().and_then(|&winner| self.runs.get(winner));
        Ok(winner.filter(|reader| reader.is_there))
    }
}

impl Merged {
    /// Runs of a file as one.
    pub(super) fn new(file: SpillFile, runs: Vec<Run>, deadline: Option<Deadline>) -> Result<Self> {
        let readers = Readers::new(&file, &runs, deadline)?;
        Ok(Self { file, readers, deadline })
    }

    /// The next pair.
    pub(super) fn next(&mut self) -> Result<Option<(&[u8], &[u8])>> {
        let next = self.readers.next(&self.file, self.deadline)?;
        Ok(next.map(|reader| (reader.key(), reader.payload())))
    }
}

/// As many runs from the front as may be read at once with `memory` bytes; two at least, where there are two.
fn width(runs: &[Run], memory: usize) -> usize {
    let mut held = 0_usize;
    let fit = runs.iter().take_while(|run| {
        held = held.saturating_add(run.block_max);
        held <= memory
    });
    fit.take(WIDTH_MAX).count().max(2).min(runs.len())
}

/// The same pairs in so few runs that `memory` bytes suffice to read them all at once.
///
/// # Errors
/// `Busy`, `LimitExceeded`, `OutOfDiskSpace`, `Io`, `Corrupt`, `TimedOut`.
pub(super) fn narrowed(
    room: &Arc<SpillRoom>,
    mut file: SpillFile,
    mut runs: Vec<Run>,
    memory: usize,
    deadline: Option<Deadline>,
) -> Result<(SpillFile, Vec<Run>)> {
    while width(&runs, memory) < runs.len() {
        let mut longer = room.file()?;
        let mut made = Vec::new();
        let mut left = &runs[..];
        while !left.is_empty() {
            let (some, rest) = left.split_at(width(left, memory));
            let mut readers = Readers::new(&file, some, deadline)?;
            let mut writer = RunWriter::new(&mut longer, deadline);
            while let Some(reader) = readers.next(&file, deadline)? {
                writer.add(reader.key(), reader.payload())?;
            }
            made.push(writer.finish()?);
            left = rest;
        }
        (file, runs) = (longer, made);
    }
    Ok((file, runs))
}
