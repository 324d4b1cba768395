//! The comparison itself: row by row, engine after engine, who is first changing with each row and each repetition.
//!
//! Takes engines and leaves times in a `Matrix`. Every answer that is timed is held to the truth before its time is kept;
//! the first that disagrees ends the run, for figures beside a wrong answer mean nothing.

use super::data::{Data, Truth};
use super::engine::{Engine, Place, digest};
use super::floors::Floors;
use super::matrix::Matrix;
use super::question::{Condition, Literal};
use super::rows::{Ask, Row};
use crate::answer::{Digest, agree};
use crate::dataset::SEED;
use crate::mersenne::Mersenne;
use crate::suite::say;
use crate::timed::{Pace, Times, timed};
use std::io;
use std::time::Duration;

/// Finds of many documents, and questions with short answers.
const LONG: Pace = Pace { least: 3, most: 9, budget: Duration::from_millis(800) };
const SHORT: Pace = Pace { least: 5, most: 400, budget: Duration::from_millis(400) };
/// Single documents looked up in one repetition.
const GETS: usize = 10_000;

/// What is compared, on what.
#[derive(Debug)]
pub struct Suite {
    /// The documents.
    pub data: Data,
    /// What is asked, in this order.
    pub rows: Vec<Row>,
    /// What the answers should be.
    pub truth: Vec<Truth>,
    /// Divides how often short questions are asked.
    pub hurry: usize,
}

impl Suite {
    /// Of these documents and rows.
    #[must_use]
    pub fn new(data: Data, rows: Vec<Row>, hurry: usize) -> Self {
        let truth = data.truth(&rows);
        Self { data, rows, truth, hurry }
    }

    /// One repetition.
    ///
    /// # Errors
    /// Where an engine fails, or answers wrongly: named with the row.
    pub fn repeat(
        &self,
        repetition: usize,
        engines: &mut [Box<dyn Engine>],
        mut floors: Option<&mut Floors>,
        matrix: &mut Matrix,
    ) -> io::Result<()> {
        let mut buffer = Vec::new();
        for engine in &mut *engines {
            engine.fresh().map_err(|e| named(engine.name(), "fresh", &e))?;
        }
        for (number, (row, truth)) in self.rows.iter().zip(&self.truth).enumerate() {
            say(&format!("  {}", row.name));
            let floor_first = (repetition + number).is_multiple_of(2);
            for turn in 0..engines.len() {
                let at = (turn + repetition + number) % engines.len();
                let Some(engine) = engines.get_mut(at) else { continue };
                let ours = engine.place() == Place::Ours;
                let mut floor = |wanted: bool, matrix: &mut Matrix| match &mut floors {
                    Some(floors) if ours && row.counts && wanted => floors.measure(self, row, truth, matrix),
                    _ => Ok(()),
                };
                floor(floor_first, matrix)?;
                match self.one(row, truth, engine.as_mut(), &mut buffer) {
                    Ok(times) if row.counts => matrix.add(row.name, engine.name(), &times),
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                        matrix.absent(row.name, engine.name(), &e.to_string());
                    }
                    Err(e) => return Err(named(engine.name(), row.name, &e)),
                }
                floor(!floor_first, matrix)?;
            }
            if matches!(row.ask, Ask::Insert) {
                self.settled(engines, &mut buffer)?;
            }
        }
        for engine in engines {
            matrix.takes(engine.name(), engine.takes());
        }
        Ok(())
    }

    /// Lets all come to rest, and looks at every document of theirs once.
    fn settled(&self, engines: &mut [Box<dyn Engine>], buffer: &mut Vec<u8>) -> io::Result<()> {
        for engine in engines {
            let checked = engine.rest().and_then(|()| {
                buffer.clear();
                let (each, _) = engine.find(&Condition::All, buffer)?;
                same(self.data.all, digest(buffer, each).map_err(io::Error::other)?).map_err(io::Error::other)
            });
            checked.map_err(|e| named(engine.name(), "all documents after insert", &e))?;
        }
        Ok(())
    }

    /// One row on one engine: its times, every answer looked at.
    ///
    /// # Errors
    /// Where the engine fails or answers wrongly.
    pub fn one(&self, row: &Row, truth: &Truth, engine: &mut dyn Engine, buffer: &mut Vec<u8>) -> io::Result<Times> {
        let once = |elapsed: Duration| Times::new(vec![u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)]);
        let short = Pace { most: (SHORT.most / self.hurry).max(SHORT.least), ..SHORT };
        let long = Pace { most: (LONG.most / self.hurry).max(LONG.least), ..LONG };
        let expected = match truth {
            Truth::Documents(digest) => *digest,
            Truth::Rows(_) => Digest::default(),
        };
        match (&row.ask, truth) {
            (Ask::Insert, _) => {
                let elapsed = engine.insert(&self.data)?;
                counted(engine, &Condition::All, expected.documents)?;
                Ok(once(elapsed))
            }
            (Ask::Index(indexes), _) => {
                let mut whole = Duration::ZERO;
                for index in indexes {
                    whole += engine.index(index)?;
                }
                Ok(once(whole))
            }
            (Ask::Find(condition), _) => {
                let ask = || {
                    buffer.clear();
                    let (each, elapsed) = engine.find(condition, buffer)?;
                    Ok((digest(buffer, each), elapsed))
                };
                timed(long, ask, |found| same(expected, found.clone()?))
            }
            (Ask::Count(condition), _) => {
                timed(short, || engine.count(condition), |n| same_number(expected.documents, *n))
            }
            (Ask::Group(grouping), Truth::Rows(rows)) => {
                let ordered = grouping.top.is_some();
                timed(short, || engine.group(grouping), |found| agree(rows, found, ordered))
            }
            (Ask::Group(_), Truth::Documents(_)) => Err(io::Error::other("a grouping's truth is rows")),
            (Ask::Get, _) => self.gets(engine, buffer),
            (Ask::Update(condition), _) => {
                let (updated, elapsed) = engine.update(condition)?;
                same_number(expected.documents, updated).map_err(io::Error::other)?;
                counted(engine, &Condition::Is("visits", Literal::Number(1.0)), expected.documents)?;
                Ok(once(elapsed))
            }
            (Ask::Delete(condition), _) => {
                let (deleted, elapsed) = engine.delete(condition)?;
                same_number(expected.documents, deleted).map_err(io::Error::other)?;
                counted(engine, condition, 0)?;
                counted(engine, &Condition::All, self.data.all.documents - expected.documents)?;
                Ok(once(elapsed))
            }
        }
    }

    fn gets(&self, engine: &mut dyn Engine, buffer: &mut Vec<u8>) -> io::Result<Times> {
        let mut random = Mersenne::new(SEED);
        let most = GETS / self.hurry;
        let pace = Pace { least: most.min(100), most, budget: Duration::from_secs(2) };
        let ask = || {
            let id = random.below(self.data.lines.len() as u32) as usize;
            buffer.clear();
            let (each, elapsed) = engine.get(id, buffer)?;
            Ok(((id, digest(buffer, each)), elapsed))
        };
        timed(pace, ask, |(id, found)| {
            let mut expected = Digest::default();
            expected.add_hash(self.data.hashes[*id]);
            same(expected, found.clone()?).map_err(|e| format!("_id {id}: {e}"))
        })
    }
}

fn counted(engine: &mut dyn Engine, condition: &Condition, expected: u64) -> io::Result<()> {
    same_number(expected, engine.count(condition)?.0).map_err(|e| io::Error::other(format!("counted afterwards: {e}")))
}

fn same_number(expected: u64, found: u64) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{found} documents, {expected} expected")) }
}

fn same(expected: Digest, found: Digest) -> Result<(), String> {
    if expected == found { Ok(()) } else { Err(format!("{found}, expected {expected}")) }
}

fn named(engine: &str, row: &str, error: &io::Error) -> io::Error {
    io::Error::other(format!("{engine}, {row}: {error}"))
}
