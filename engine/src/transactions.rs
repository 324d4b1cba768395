//! Transactions as users of the library begin them, and as a server has them by their ids.
//!
//! Each is told in `txn/transact.rs`, `txn/transaction.rs` and `txn/registry.rs`.

use std::sync::Arc;

use crate::catalog::check_names;
use crate::collection::Collection;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::options::WriteOptions;
use crate::txn::group::Pending;
use crate::txn::transact;
use crate::txn::transaction::Transaction;

impl Database {
    /// Runs a few operations as one: all of them or none, each seeing what those before it did, in one commit across
    /// collections and databases, and as if nobody else were there. It does not end for a conflict with another write.
    ///
    /// `run` must reach the database only through the transaction that it is given, and be quick: others may wait for it. It
    /// may be called several times, and what it did before is then undone. An error of it, or of an operation, undoes all.
    ///
    /// # Errors
    /// Those of `run`; what a write may say.
    pub fn transact<T, E: From<Error>>(
        &self,
        options: &WriteOptions,
        mut run: impl FnMut(&Transaction) -> Result<T, E>,
    ) -> Result<Pending<T>, E> {
        transact::transact(self.core(), options, &mut run)
    }

    /// Runs `run` in a transaction of its own under snapshot isolation, commits it, and waits until that is as durable as
    /// the database is set to make it. Where another write was first it is run again from the beginning, for two minutes at
    /// most; an error of it, or of an operation, undoes all.
    ///
    /// ```
    /// use quarrydb::{Collection, Database, Error, UpdateRequest, WriteOptions};
    /// use serde_json::json;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// let db = Database::open(directory.path())?;
    /// db.collection("bank", "accounts")?.insert_many([json!({"_id": 1, "money": 100}), json!({"_id": 2, "money": 0})])?;
    /// db.transaction(|transaction| {
    ///     let accounts = transaction.collection("bank", "accounts")?;
    ///     for (account, by) in [(1, -30), (2, 30)] {
    ///         let update = Collection::update_of(&json!({"$inc": {"money": by}}))?;
    ///         let request = UpdateRequest::one(Collection::filter(&json!({"_id": account}))?, update);
    ///         accounts.update(&request, &WriteOptions::default())?.wait()?;
    ///     }
    ///     Ok::<_, Error>(())
    /// })?;
    /// let rich = Collection::filter(&json!({"money": {"$gte": 70}}))?;
    /// assert_eq!(db.collection("bank", "accounts")?.count(rich, 0, None, None)?, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `run`; what a write may say.
    pub fn transaction<T, E: From<Error>>(&self, mut run: impl FnMut(&Transaction) -> Result<T, E>) -> Result<T, E> {
        transact::transaction(self.core(), &WriteOptions::default(), &mut run)
    }

    /// Begins a transaction under snapshot isolation; it ends with `commit`, or undone with `abort` or when it is dropped.
    ///
    /// # Errors
    /// Where no write can begin.
    pub fn begin(&self) -> Result<Transaction> {
        Transaction::begin(self.core())
    }

    /// Begins one that is known by an id, 32 hexadecimal digits, until it ends: after `Options::transaction_idle_max` and
    /// `Options::transaction_time_max` by itself.
    ///
    /// # Errors
    /// `Busy` where as many are open as may be.
    pub fn begin_by_id(&self) -> Result<String> {
        self.core().transactions.begin(self.core())
    }

    /// The open transaction of an id.
    ///
    /// # Errors
    /// `NotFound` (`NoSuchTransaction`).
    pub fn transaction_by_id(&self, id: &str) -> Result<Transaction> {
        self.core().transactions.get(id)
    }

    /// Commits the transaction of an id. Asked for again it gives the same answer, as long as that is remembered.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit_by_id(&self, id: &str, options: &WriteOptions) -> Result<Pending<()>> {
        self.core().transactions.commit(self.core(), id, options)
    }

    /// Aborts the transaction of an id.
    ///
    /// # Errors
    /// `NotFound` (`NoSuchTransaction`) where it is not open.
    pub fn abort_by_id(&self, id: &str) -> Result<()> {
        self.core().transactions.abort(id)
    }

    /// Lets go of the transaction of an id where it is over.
    pub fn note_by_id(&self, id: &str, transaction: &Transaction) {
        self.core().transactions.note(id, transaction);
    }

    /// Ends snapshots and transactions that are older, or idle for longer, than the options allow; how many. Where the
    /// database has its background threads they do.
    pub fn end_old(&self) -> u64 {
        self.core().end_old()
    }
}

impl Transaction {
    /// A collection by name, whose operations on documents run inside the transaction; makes nothing.
    ///
    /// # Errors
    /// `InvalidNamespace`.
    pub fn collection(&self, db: &str, name: &str) -> Result<Collection> {
        check_names(db, Some(name))?;
        Ok(Collection::new(Arc::clone(self.core()), db, name).within(self))
    }
}
