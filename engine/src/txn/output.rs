//! What `$out` and `$merge` write.
//!
//! `$out` keeps its documents until there are no more and puts them in the place of those of the collection as one commit: the
//! collection, its options and its indexes stay, and whoever looks sees all of the old or all of the new. `$merge` writes a
//! few documents at a time, each few as one commit; where it fails those before stay written, as in MongoDB.

use std::sync::Arc;

use quarrydb_jsonb::{JsonbBuf, JsonbRef};
use quarrydb_query::path_walk::FieldPath;
use quarrydb_query::pipeline::{Merge, Merged, Write};
use quarrydb_query::{Filter, ParseContext, Place, QueryError, Update};

use super::commit::{create, nothing_to_do};
use super::group::Pending;
use super::modify::{DeleteRequest, UpdateRequest};
use super::transact::transact;
use super::transaction::{Names, Transaction};
use crate::batch::{IdMaker, InsertBatch};
use crate::budget::Meter;
use crate::catalog::check_names;
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::exec::aggregate::Writer;
use crate::exec::find::FindRequest;
use crate::exec::scan::within;
use crate::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_WRITES_MAX};
use crate::options::WriteOptions;

/// Documents that `$merge` writes at a time.
const MERGED_AT_ONCE: usize = 64;
/// Their bytes.
const MERGED_BYTES: usize = 1 << 20;
/// An empty object.
const NO_OPTIONS: &[u8] = &[16, 3, 0];

/// Who writes for a stage of a pipeline that runs in the database `db`.
///
/// # Errors
/// `InvalidNamespace`; 51183 for a `$merge` by fields that no unique index has.
pub(crate) fn writer(core: &Arc<Core>, db: &str, write: &Arc<Write>, options: WriteOptions) -> Result<Box<dyn Writer>> {
    let (db, collection) = match &**write {
        Write::Out(out) => (out.db.as_deref().unwrap_or(db), &out.collection),
        Write::Merge(merge) => (merge.db.as_deref().unwrap_or(db), &merge.collection),
    };
    check_names(db, Some(collection))?;
    let meter = Meter::new(&core.queries);
    let output = Output {
        core: Arc::clone(core),
        db: db.into(),
        collection: collection.clone(),
        write: Arc::clone(write),
        options,
        meter,
        bytes: Vec::new(),
        ends: Vec::new(),
        written: None,
    };
    if let Write::Merge(merge) = &**write {
        output.check_on(merge)?;
    }
    Ok(Box::new(output))
}

/// A stage that writes, with what it has not written yet.
#[derive(Debug)]
struct Output {
    core: Arc<Core>,
    db: Box<str>,
    collection: Box<str>,
    write: Arc<Write>,
    options: WriteOptions,
    meter: Meter,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// The newest commit, still to be waited for.
    written: Option<Pending<()>>,
}

impl Writer for Output {
    fn write(&mut self, document: JsonbRef<'_>) -> Result<()> {
        self.bytes.extend_from_slice(document.as_bytes());
        self.ends.push(self.bytes.len());
        self.meter.set(self.bytes.len() + self.ends.len() * size_of::<usize>())?;
        match &*self.write {
            Write::Out(_) if self.bytes.len() > TRANSACTION_BYTES_MAX || self.ends.len() > TRANSACTION_WRITES_MAX => {
                let message = format!(
                    "$out writes at most {TRANSACTION_WRITES_MAX} documents of {TRANSACTION_BYTES_MAX} bytes together: \
                     $merge has no such bound"
                );
                Err(Error::new(ErrorKind::LimitExceeded, message))
            }
            Write::Merge(_) if self.ends.len() >= MERGED_AT_ONCE || self.bytes.len() >= MERGED_BYTES => self.commit(),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<()> {
        self.commit()?;
        match self.written.take() {
            Some(written) => written.wait(),
            None => Ok(()),
        }
    }
}

impl Output {
    fn documents(&self) -> impl Iterator<Item = JsonbRef<'_>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(self.ends.iter().copied());
        spans.filter_map(|(from, to)| self.bytes.get(from..to)).map(JsonbRef::from_valid)
    }

    fn names(&self) -> Names<'_> {
        (&self.db, &self.collection)
    }

    /// Writes what is kept as one commit.
    fn commit(&mut self) -> Result<()> {
        let write = Arc::clone(&self.write);
        let pending = match &*write {
            Write::Merge(_) if self.ends.is_empty() => return Ok(()),
            Write::Merge(merge) => {
                transact(&self.core, &self.options, &mut |transaction| self.merge_all(merge, transaction))?
            }
            Write::Out(_) => {
                self.make_collection()?;
                transact(&self.core, &self.options, &mut |transaction| self.replace_all(transaction))?
            }
        };
        self.written = Some(pending);
        self.bytes.clear();
        self.ends.clear();
        Ok(())
    }

    /// `$out` of no documents makes the collection all the same.
    fn make_collection(&self) -> Result<()> {
        if !self.ends.is_empty() || self.core.catalog.get(&self.db, &self.collection).is_some() {
            return Ok(());
        }
        self.core.admit_write(&self.options)?;
        let mut order = self.core.order.hold();
        if self.core.catalog.get(&self.db, &self.collection).is_none() {
            let journaled = self.core.journaled(&self.options);
            create(&self.core, &mut order, self.names(), JsonbRef::from_valid(NO_OPTIONS), journaled)?;
        }
        drop(order);
        nothing_to_do(&self.core, (), self.core.journaled(&self.options)).wait()
    }

    fn replace_all(&self, transaction: &Transaction) -> Result<()> {
        transaction.delete(self.names(), &DeleteRequest::many(Filter::everything()), &self.options)?;
        self.insert(transaction, self.documents())
    }

    fn insert<'d>(&self, transaction: &Transaction, documents: impl Iterator<Item = JsonbRef<'d>>) -> Result<()> {
        let mut batch = InsertBatch::with_maker(IdMaker::new(Arc::clone(&self.core.ids), Arc::clone(&self.core.clock)));
        for document in documents {
            batch.push(document)?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        let mut outcome = transaction.insert_batch(self.names(), batch)?;
        match outcome.errors.is_empty() {
            true => Ok(()),
            false => Err(outcome.errors.swap_remove(0).error),
        }
    }

    fn merge_all(&self, merge: &Merge, transaction: &Transaction) -> Result<()> {
        self.documents().try_for_each(|document| self.merge_one(merge, transaction, document))
    }

    fn merge_one(&self, merge: &Merge, transaction: &Transaction, new: JsonbRef<'_>) -> Result<()> {
        let existing = match merge.target(new)? {
            Some(filter) => {
                let mut request = FindRequest::new(filter);
                request.limit = Some(1);
                request.deadline = self.options.deadline;
                transaction.find(self.names(), request)?.next()?
            }
            None => None,
        };
        let existing = existing.as_ref().map(|document| document.view());
        let merged = within(self.options.deadline, |budget| merge.merged(existing, new, budget))?;
        match (merged, existing.and_then(|existing| existing.get("_id"))) {
            (Merged::Nothing, _) => Ok(()),
            (Merged::Insert, _) => self.insert(transaction, std::iter::once(new)),
            (Merged::Replace(document), Some(id)) => {
                let replacement = Update::parse_replacement(document.view(), &ParseContext::new("$merge"))?;
                let request = UpdateRequest::one(by_id(id)?, replacement);
                transaction.update(self.names(), &request, &self.options).map(drop)
            }
            (Merged::Replace(_), None) => Err(Error::new(ErrorKind::Internal, "a document without an _id")),
        }
    }

    /// Whether a unique index has just the fields that say which documents belong together.
    fn check_on(&self, merge: &Merge) -> Result<()> {
        let mut on: Vec<&str> = merge.on.iter().map(FieldPath::as_str).collect();
        on.sort_unstable();
        if on == ["_id"] {
            return Ok(());
        }
        let state = self.core.catalog.get(&self.db, &self.collection);
        let serves = state.is_some_and(|state| {
            state.indexes().iter().any(|index| {
                let definition = &index.definition;
                let mut fields: Vec<&str> = definition.fields.iter().map(|field| field.path.as_str()).collect();
                fields.sort_unstable();
                definition.unique && definition.partial.is_none() && index.is_ready() && fields == on
            })
        });
        if serves {
            return Ok(());
        }
        let message = format!(
            "Cannot find index to verify that join fields will be unique: $merge on {} needs a unique index of just \
             these fields on {}.{}",
            on.join(", "),
            self.db,
            self.collection
        );
        Err(QueryError::location(51183, message).into())
    }
}

/// The filter of one `_id`.
fn by_id(id: JsonbRef<'_>) -> Result<Filter> {
    let mut builder = quarrydb_jsonb::Builder::new();
    builder.begin_array();
    builder.copy(id);
    builder.end_array()?;
    let values = JsonbBuf::from_valid(builder.take());
    Ok(Filter::one_of(&FieldPath::parse("_id", &Place::root("_id"))?, values.view()))
}
