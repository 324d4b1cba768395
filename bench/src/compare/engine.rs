//! What an engine must be able to do to be compared: nothing of how it does it.
//!
//! Each operation gives its answer whole, as the engine sent it, with the time from the question to its last byte. What the
//! answer says is taken out of it after the clock has stopped (`digest`). An operation that an engine does not have is
//! an error of kind `Unsupported`: its row stays empty.

use super::data::Data;
use super::question::{Condition, Grouping};
use super::rows::Index;
use crate::answer::{self, Digest, Rows};
use serde_json::Value;
use std::io;
use std::time::Duration;

/// Takes the documents out of an answer.
pub type Reader = fn(&[u8], &mut dyn FnMut(Value)) -> Result<(), String>;

/// What documents an answer holds.
///
/// # Errors
/// Saying what is wrong with an answer that cannot be read.
pub fn digest(answer: &[u8], each: Reader) -> Result<Digest, String> {
    let mut digest = Digest::default();
    each(answer, &mut |document| digest.add(&document))?;
    Ok(digest)
}

/// Reads answers `{"documents": [...]}`.
///
/// # Errors
/// See `answer::documents`.
pub fn answers(bytes: &[u8], each: &mut dyn FnMut(Value)) -> Result<(), String> {
    answer::documents(bytes, each)
}

/// Reads a document a line.
///
/// # Errors
/// Where a line is no document.
pub fn lines(bytes: &[u8], each: &mut dyn FnMut(Value)) -> Result<(), String> {
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let document = serde_json::from_slice(line);
        each(document.map_err(|e| format!("{e}: {}", String::from_utf8_lossy(&line[..line.len().min(200)])))?);
    }
    Ok(())
}

/// An answer with the time that it took.
pub type Timed<A> = io::Result<(A, Duration)>;

/// An operation that the engine does not have.
#[must_use]
pub fn unsupported(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, what.to_owned())
}

/// Where an engine runs: a server is compared with servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Ours, over HTTP.
    Ours,
    /// Another process, over a socket.
    Server,
    /// The process of whoever asks: no socket between.
    InProcess,
}

/// What an engine takes of the machine, where it is known.
#[derive(Clone, Copy, Debug, Default)]
pub struct Takes {
    /// Bytes on the disk, logs included.
    pub disk: Option<u64>,
    /// Anonymous resident bytes.
    pub memory: Option<u64>,
}

/// When a write is answered. Figures of one run have one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Once it is on stable storage.
    Commit,
    /// Once it is out of the engine's own memory; synced soon.
    Interval,
}

impl Durability {
    /// As ours has it on its command line.
    #[must_use]
    pub fn option(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Interval => "interval:100ms",
        }
    }
}

/// One engine with one collection.
pub trait Engine {
    /// A short name for a column.
    fn name(&self) -> &str;

    /// Version and settings that matter, durability among them.
    fn describe(&self) -> String;

    /// Where it runs.
    fn place(&self) -> Place;

    /// An empty collection without indexes but the primary one; not timed.
    ///
    /// # Errors
    /// The engine's; so with all that follow.
    fn fresh(&mut self) -> io::Result<()>;

    /// All documents, a batch after the other.
    ///
    /// # Errors
    /// The engine's.
    fn insert(&mut self, data: &Data) -> io::Result<Duration>;

    /// Lets it come to rest and gather what it wants to know of its data; not timed.
    ///
    /// # Errors
    /// The engine's.
    fn rest(&mut self) -> io::Result<()>;

    /// Makes an index, and answers when it serves.
    ///
    /// # Errors
    /// The engine's.
    fn index(&mut self, index: &Index) -> io::Result<Duration>;

    /// Documents, whole, at the end of `into`, and how to read them.
    ///
    /// # Errors
    /// The engine's.
    fn find(&mut self, condition: &Condition, into: &mut Vec<u8>) -> Timed<Reader>;

    /// How many.
    ///
    /// # Errors
    /// The engine's.
    fn count(&mut self, condition: &Condition) -> Timed<u64>;

    /// Groups.
    ///
    /// # Errors
    /// The engine's.
    fn group(&mut self, grouping: &Grouping) -> Timed<Rows>;

    /// One document, likewise.
    ///
    /// # Errors
    /// The engine's.
    fn get(&mut self, id: usize, into: &mut Vec<u8>) -> Timed<Reader>;

    /// Adds 1 to `visits`; how many documents were changed.
    ///
    /// # Errors
    /// The engine's.
    fn update(&mut self, condition: &Condition) -> Timed<u64>;

    /// How many were deleted.
    ///
    /// # Errors
    /// The engine's.
    fn delete(&mut self, condition: &Condition) -> Timed<u64>;

    /// A connection of its own for single operations.
    ///
    /// # Errors
    /// The engine's.
    fn session(&self) -> io::Result<Box<dyn Session + Send>> {
        Err(unsupported("single operations"))
    }

    /// What it takes of the machine.
    fn takes(&self) -> Takes {
        Takes::default()
    }
}

/// An operation on one document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Single {
    /// Inserts the document of this number, with its `_id`.
    Insert(usize),
    /// Finds one by `_id`.
    Find(usize),
    /// Adds 1 to `visits` of one by `_id`.
    Update(usize),
    /// Deletes one by `_id`.
    Delete(usize),
    /// Sets a field of one by `_id`, and inserts it where there is none.
    Upsert(usize),
}

/// A connection that does single operations.
pub trait Session {
    /// Encodes what can be encoded ahead; not timed.
    ///
    /// # Errors
    /// The engine's; so with what follows.
    fn ready(&mut self, data: &Data, work: &[Single]) -> io::Result<()>;

    /// Does the `n`th of them, and says whether it had the effect that it should have on one document.
    ///
    /// # Errors
    /// The engine's.
    fn go(&mut self, n: usize) -> io::Result<bool>;
}
