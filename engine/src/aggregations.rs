//! Aggregation as users of the library ask for it: on a collection, or on a database where a pipeline brings its own
//! documents. The mechanism is told in `exec/aggregate/`.

use std::sync::Arc;

use quarrydb_query::QueryError;
use quarrydb_query::pipeline::Write;

use crate::catalog::check_names;
use crate::collection::Collection;
use crate::core::Core;
use crate::database::Database;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::aggregate::{AggregateRequest, Aggregation, Place, Seen, Writer};
use crate::options::WriteOptions;
use crate::txn::output;
use crate::txn::transaction::Transaction;

impl Collection {
    /// What a pipeline makes of the documents, as of now. All collections that it names are seen as of one moment.
    ///
    /// ```
    /// use quarrydb::{AggregateRequest, Collection, Database};
    /// use serde_json::json;
    /// use std::ops::ControlFlow;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = Database::open(directory.path())?;
    /// let sales = db.collection("shop", "sales")?;
    /// sales.insert_many([json!({"item": "pen", "n": 3}), json!({"item": "ink", "n": 1}), json!({"item": "pen", "n": 4})])?;
    /// let pipeline = Collection::pipeline(&json!([
    ///     {"$group": {"_id": "$item", "n": {"$sum": "$n"}}},
    ///     {"$sort": {"n": -1}},
    /// ]))?;
    /// let mut sold = Vec::new();
    /// sales.aggregate(AggregateRequest::new(pipeline))?.each(&mut |group| {
    ///     sold.push(group.get("n").and_then(|n| n.as_i64()));
    ///     Ok(ControlFlow::Continue(()))
    /// })?;
    /// assert_eq!(sold, [Some(7), Some(1)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of finding the documents that go in; what is wrong with one of them is told by the aggregation.
    pub fn aggregate(&self, request: AggregateRequest) -> Result<Aggregation> {
        let place = Place { db: self.database_name(), collection: Some(self.name()) };
        aggregate(&self.core, &place, request, self.transaction())
    }
}

impl Database {
    /// What a pipeline makes of the documents that it brings itself (`$documents`), in the database `db`.
    ///
    /// # Errors
    /// As [`Collection::aggregate`]; `InvalidNamespace` (73) for a pipeline that needs a collection.
    pub fn aggregate(&self, db: &str, request: AggregateRequest) -> Result<Aggregation> {
        check_names(db, None)?;
        if request.pipeline.reads_input() {
            let message = "a pipeline without a collection begins with $documents: run it on a collection";
            return Err(QueryError::new("InvalidNamespace", 73, message).into());
        }
        aggregate(self.core(), &Place { db, collection: None }, request, None)
    }
}

fn aggregate(
    core: &Arc<Core>,
    place: &Place<'_>,
    request: AggregateRequest,
    within: Option<&Transaction>,
) -> Result<Aggregation> {
    let named = request.namespaces(place.db);
    for (db, name, _) in named.iter().filter(|(.., writes)| *writes) {
        check_names(db, Some(name))?;
    }
    let names = named.iter().map(|(db, name, _)| (*db, *name));
    let names = names.chain(place.collection.map(|collection| (place.db, collection)));
    let seen = match within {
        Some(within) => within.seen(names)?,
        None => Seen::now(core, names),
    };
    let options = WriteOptions { journal: request.journal, deadline: request.deadline };
    let writer = |write: &Arc<Write>| -> Result<Box<dyn Writer>> {
        if within.is_some() {
            let message = "$out and $merge cannot be part of a transaction: run the pipeline outside";
            let error = Error::new(ErrorKind::InvalidInput, message);
            return Err(error.with_code("OperationNotSupportedInTransaction", 263));
        }
        output::writer(core, place.db, write, options)
    };
    let aggregation = Aggregation::new(core, seen, place, request, &writer);
    match within {
        Some(within) => within.watching(aggregation),
        None => aggregation,
    }
}
