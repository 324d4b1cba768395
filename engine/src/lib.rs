//! QuarryDB as a library: documents with MongoDB's queries, in one directory, held by one process.
//!
//! ```
//! use quarrydb::{Collection, Database, DeleteRequest, FindRequest, UpdateRequest, WriteOptions};
//! use serde_json::json;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! let db = Database::open(path)?;
//! let people = db.collection("town", "people")?;
//! people.insert(&json!({"_id": 1, "name": "Ada", "born": 1815, "tags": ["mathematics", "poetry"]}))?;
//! people.insert_many([json!({"name": "Grace", "born": 1906}), json!({"name": "Edsger", "born": 1930})])?;
//!
//! let born_later = Collection::filter(&json!({"born": {"$gte": 1900}}))?;
//! assert_eq!(people.count(born_later.clone(), 0, None, None)?, 2);
//!
//! let change = Collection::update_of(&json!({"$inc": {"visits": 1}}))?;
//! let outcome = people.update(&UpdateRequest::many(born_later, change), &WriteOptions::default())?.wait()?;
//! assert_eq!((outcome.matched, outcome.modified), (2, 2));
//!
//! let mut found = people.find(FindRequest::new(Collection::filter(&json!({"tags": "poetry"}))?))?;
//! while let Some(document) = found.next()? {
//!     assert_eq!(document.view().get("name").and_then(|name| name.as_str()), Some("Ada"));
//! }
//! people.delete(&DeleteRequest::many(Collection::filter(&json!({}))?), &WriteOptions::default())?.wait()?;
//! # Ok(())
//! # }
//! ```
//!
//! Layers, each using only what stands below it: `database`, `collection`; `maintain`, `recovery`, `txn`, `exec`; `mvcc`;
//! `tail`, `segment`, `manifest`, `log`; `io`; `ids`, `error`, `options`, `limits`. The way of an insert and of a query
//! through the files stands in `docs/architecture.md`.

mod aggregations;
mod batch;
pub mod budget;
mod catalog;
mod changes;
mod collection;
mod columns;
mod core;
mod database;
pub mod error;
mod exec;
#[doc(hidden)]
pub mod fuzzing;
pub mod ids;
mod indexes;
pub mod io;
pub mod limits;
pub mod log;
mod maintain;
pub mod manifest;
mod mvcc;
mod object_id;
mod options;
mod plan;
mod recovery;
pub mod segment;
mod spill;
mod tail;
mod transactions;
mod txn;
mod typed;

pub use batch::InsertBatch;
pub use catalog::check_names;
pub use changes::{ChangeEvent, ChangeRequest, ChangeStream, FullDocument, Reading};
pub use collection::{Collection, CollectionStats, Created, IndexInfo, IndexesCreated};
pub use database::{CollectionInfo, Database, DatabaseInfo, EngineStats, WriterState};
pub use error::{Error, ErrorKind, Result};
pub use exec::aggregate::{AggregateRequest, Aggregation};
pub use exec::cursor::{Cursor, Document, Print, Sink};
pub use exec::explain::Explained;
pub use exec::find::FindRequest;
pub use indexes::{DEFINITION_FIELDS, IndexDefinition, IndexState};
pub use maintain::compact::Compacted;
pub use options::{Deadline, Durability, Options, WriteOptions};
pub use recovery::Recovered;
pub use recovery::check::{CheckReport, check, check_on};
pub use recovery::salvage::{SalvageReport, salvage};
pub use txn::group::Pending;
pub use txn::insert::{InsertOutcome, WriteFailure};
pub use txn::modify::{DeleteOutcome, DeleteRequest, Modified, UpdateOutcome, UpdateRequest};
pub use txn::transaction::Transaction;
