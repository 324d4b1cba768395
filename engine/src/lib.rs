//! QuarryDB as a library: documents with MongoDB's queries, in one directory, held by one process.
//!
//! Layers, each using only what stands below it: `database`, `collection`; `maintain`, `recovery`, `txn`, `exec`; `mvcc`;
//! `tail`, `segment`, `manifest`, `log`; `io`; `ids`, `error`, `options`, `limits`. The way of an insert and of a query
//! through the files stands in `docs/architecture.md`.

mod batch;
mod catalog;
mod collection;
mod core;
mod database;
pub mod error;
mod exec;
#[doc(hidden)]
pub mod fuzzing;
pub mod ids;
pub mod io;
pub mod limits;
pub mod log;
mod maintain;
pub mod manifest;
mod mvcc;
mod object_id;
mod options;
mod recovery;
pub mod segment;
mod tail;
mod txn;
mod typed;

pub use batch::InsertBatch;
pub use catalog::check_names;
pub use collection::{Collection, CollectionStats, Created};
pub use database::{CollectionInfo, Database, DatabaseInfo, EngineStats, WriterState};
pub use error::{Error, ErrorKind, Result};
pub use exec::cursor::{Cursor, Document, Print, Sink};
pub use exec::find::FindRequest;
pub use options::{Deadline, Durability, Options, WriteOptions};
pub use recovery::Recovered;
pub use recovery::check::{CheckReport, check, check_on};
pub use recovery::salvage::{SalvageReport, salvage};
pub use txn::group::Pending;
pub use txn::insert::{InsertOutcome, WriteFailure};
pub use txn::modify::{DeleteOutcome, DeleteRequest, Modified, UpdateOutcome, UpdateRequest};
