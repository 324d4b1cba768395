//! Collections for Rust programs: documents, filters, updates and pipelines as values that serde can read.
//!
//! Takes structs and `serde_json::Value`s, turns them into documents and hands on to `collection.rs`.

use std::sync::Arc;

use quarrydb_jsonb::JsonbBuf;
use quarrydb_query::pipeline::Pipeline;
use quarrydb_query::{Filter, ParseContext, Update};
use serde::Serialize;

use crate::batch::{IdMaker, InsertBatch};
use crate::collection::Collection;
use crate::error::{Error, ErrorKind, Result};
use crate::options::WriteOptions;
use crate::txn::insert;

impl Collection {
    /// Inserts one value that serde can read: a struct, a `serde_json::Value`; gives its `_id`. Blocks until it is as
    /// durable as the database is set to make it.
    ///
    /// # Errors
    /// `DuplicateKey`; `InvalidInput` where it cannot be a document.
    pub fn insert<T: Serialize + ?Sized>(&self, document: &T) -> Result<JsonbBuf> {
        let ids = self.insert_many([document])?;
        ids.into_iter().next().ok_or_else(|| Error::new(ErrorKind::Internal, "an insert gave no _id"))
    }

    /// Inserts many, up to the first that cannot be stored, whose error it gives then; gives their `_id`s.
    ///
    /// # Errors
    /// As [`Collection::insert`].
    pub fn insert_many<T: Serialize>(&self, documents: impl IntoIterator<Item = T>) -> Result<Vec<JsonbBuf>> {
        let mut batch = InsertBatch::with_maker(IdMaker::new(Arc::clone(&self.core.ids), Arc::clone(&self.core.clock)));
        for document in documents {
            let document = quarrydb_jsonb::to_jsonb(&document).map_err(insert::refused)?;
            batch.push(document.view()).map_err(insert::refused)?;
        }
        let mut outcome = self.insert_batch(batch, true, &WriteOptions::default())?.wait()?;
        match outcome.errors.is_empty() {
            true => Ok(outcome.ids().map(|(_, id)| JsonbBuf::from_valid(id.as_bytes().to_vec())).collect()),
            false => Err(outcome.errors.remove(0).error),
        }
    }

    /// A filter from a value that serde can read, such as `json!({"age": {"$gte": 18}})`.
    ///
    /// # Errors
    /// Where it is none, naming the place in it.
    pub fn filter<T: Serialize + ?Sized>(filter: &T) -> Result<Filter> {
        let filter = quarrydb_jsonb::to_jsonb(filter).map_err(insert::refused)?;
        Ok(Filter::parse(filter.view(), &ParseContext::new("filter"))?)
    }

    /// A pipeline from a value that serde can read, such as `json!([{"$count": "n"}])`.
    ///
    /// # Errors
    /// Where it is none, naming the place in it.
    pub fn pipeline<T: Serialize + ?Sized>(pipeline: &T) -> Result<Pipeline> {
        let pipeline = quarrydb_jsonb::to_jsonb(pipeline).map_err(insert::refused)?;
        Ok(Pipeline::parse(pipeline.view(), &ParseContext::new("pipeline"))?)
    }

    /// An update from a value that serde can read, such as `json!({"$inc": {"visits": 1}})`.
    ///
    /// # Errors
    /// Where it is none, naming the place in it.
    pub fn update_of<T: Serialize + ?Sized>(update: &T) -> Result<Update> {
        let update = quarrydb_jsonb::to_jsonb(update).map_err(insert::refused)?;
        Ok(Update::parse(update.view(), None, &ParseContext::new("update"))?)
    }
}
