//! Operations on one document, by one connection and by many at once: how many a second, and how long each.
//!
//! Every engine does the same operations on the same documents. Each operation says whether it had its effect, and after
//! each row the number of documents, and of those that were changed, is held to what it must be.

use super::data::Data;
use super::engine::{Engine, Session, Single};
use super::matrix::Matrix;
use super::question::{Condition, Literal};
use super::rows::Bound;
use crate::dataset::SEED;
use crate::mersenne::Mersenne;
use crate::suite::say;
use crate::timed::Times;
use std::collections::HashSet;
use std::io;
use std::sync::Barrier;
use std::time::Instant;

/// Connections, and operations of one kind by all of them together.
const CROWDS: [(usize, usize); 4] = [(1, 2_000), (8, 8_000), (64, 16_000), (256, 16_000)];
/// Documents that are there before.
const BASE: usize = 20_000;
const KINDS: [&str; 5] = ["insertOne", "findOne", "updateOne", "upsertOne", "deleteOne"];

/// What one engine has by now.
struct State {
    documents: u64,
    /// Numbers of those that were updated.
    updated: HashSet<usize>,
    random: Mersenne,
    /// The next number that no document has.
    next: usize,
}

/// One repetition of all rows on all engines. Ours is to be ahead of every server.
///
/// # Errors
/// Where an engine fails, or what it has is not what it must have.
pub fn singles(
    repetition: usize,
    hurry: usize,
    engines: &mut [Box<dyn Engine>],
    matrix: &mut Matrix,
) -> io::Result<()> {
    let base = (BASE / hurry).max(500);
    let most: usize = CROWDS.iter().map(|(crowd, count)| (count / hurry).max(*crowd) * 2).sum();
    let (stored, all) = (Data::employees(base), Data::employees(base + most));
    let mut states = Vec::new();
    for engine in &mut *engines {
        let done = engine.fresh().and_then(|()| engine.insert(&stored));
        match done {
            Err(e) if e.kind() != io::ErrorKind::Unsupported => return Err(e),
            _ => engine.rest()?,
        }
        let random = Mersenne::new(SEED + repetition as u32);
        states.push(State { documents: base as u64, updated: HashSet::new(), random, next: base });
    }
    for (turn, (crowd, count)) in CROWDS.into_iter().enumerate() {
        let count = (count / hurry).max(crowd);
        for kind in KINDS {
            let row = format!("{kind} by {crowd}");
            say(&format!("  {row}"));
            matrix.line(&row, "1/s", 1.0, Bound::Open);
            for i in 0..engines.len() {
                let at = (i + turn + repetition) % engines.len();
                let (Some(engine), Some(state)) = (engines.get_mut(at), states.get_mut(at)) else { continue };
                let work = state.work(kind, count, base);
                let done = crowded(engine.as_ref(), &all, &work, crowd);
                match done.and_then(|done| state.hold(engine.as_mut()).map(|()| done)) {
                    Ok((rate, times)) => matrix.add_value(&row, engine.name(), rate, &times),
                    Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                        matrix.absent(&row, engine.name(), "not asked");
                    }
                    Err(e) => return Err(io::Error::other(format!("{}, {row}: {e}", engine.name()))),
                }
            }
        }
    }
    Ok(())
}

impl State {
    /// Draws the next operations, and notes what they do.
    fn work(&mut self, kind: &str, count: usize, base: usize) -> Vec<Single> {
        let from = self.next;
        match kind {
            "insertOne" => {
                self.next += count;
                self.documents += count as u64;
                (from..from + count).map(Single::Insert).collect()
            }
            // As many again, each once: half of them are there, since the inserts were the last to add any.
            "upsertOne" => {
                self.next += count / 2;
                self.documents += (count / 2) as u64;
                let there = from - (count - count / 2);
                (there..from + count / 2).map(Single::Upsert).collect()
            }
            // All that were added since.
            "deleteOne" => {
                let added = (self.documents as usize).saturating_sub(base);
                self.documents -= added as u64;
                (from - added..from).map(Single::Delete).collect()
            }
            "updateOne" => {
                let ids: Vec<usize> = (0..count).map(|_| self.random.below(base as u32 / 2) as usize).collect();
                self.updated.extend(&ids);
                ids.into_iter().map(Single::Update).collect()
            }
            // Of those that are never updated.
            _ => {
                let half = base as u32 / 2;
                (0..count).map(|_| Single::Find((half + self.random.below(half)) as usize)).collect()
            }
        }
    }

    /// Holds the engine to what it must have.
    fn hold(&self, engine: &mut dyn Engine) -> io::Result<()> {
        let updated = Condition::Between("visits", Literal::Number(1.0), Literal::Number(1e9));
        let all = engine.count(&Condition::All)?.0;
        // At least: upserted ones have 7 visits, until they are deleted.
        let changed = engine.count(&updated)?.0;
        let least = self.updated.len() as u64;
        if all == self.documents && changed >= least {
            return Ok(());
        }
        let said = format!("{all} documents and {changed} updated, expected {} and {least}", self.documents);
        Err(io::Error::other(said))
    }
}

/// Spreads the work over as many connections, and gives operations a second and the time of each.
fn crowded(engine: &dyn Engine, data: &Data, work: &[Single], crowd: usize) -> io::Result<(f64, Times)> {
    let mut sessions: Vec<Box<dyn Session + Send>> = (0..crowd).map(|_| engine.session()).collect::<io::Result<_>>()?;
    let shares: Vec<Vec<Single>> = (0..crowd).map(|i| work.iter().skip(i).step_by(crowd).copied().collect()).collect();
    for (session, share) in sessions.iter_mut().zip(&shares) {
        session.ready(data, share)?;
    }
    let ready = Barrier::new(crowd + 1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = sessions
            .iter_mut()
            .zip(&shares)
            .map(|(session, share)| {
                let ready = &ready;
                scope.spawn(move || -> io::Result<Vec<u64>> {
                    ready.wait();
                    let mut nanos = Vec::with_capacity(share.len());
                    for (n, single) in share.iter().enumerate() {
                        let from = Instant::now();
                        let effect = session.go(n)?;
                        nanos.push(u64::try_from(from.elapsed().as_nanos()).unwrap_or(u64::MAX));
                        if !effect {
                            return Err(io::Error::other(format!("{single:?} had no effect, or not the right one")));
                        }
                    }
                    Ok(nanos)
                })
            })
            .collect();
        // Before the barrier: on a busy machine this thread may wake when the others have done half of the work.
        let from = Instant::now();
        ready.wait();
        let mut nanos = Vec::with_capacity(work.len());
        let mut failed = None;
        for thread in threads {
            match thread.join() {
                Ok(Ok(mut own)) => nanos.append(&mut own),
                Ok(Err(error)) => failed = Some(error),
                Err(_) => failed = Some(io::Error::other("a thread of the load ended")),
            }
        }
        let rate = work.len() as f64 / from.elapsed().as_secs_f64();
        failed.map_or_else(|| Ok((rate, Times::new(nanos))), Err)
    })
}
