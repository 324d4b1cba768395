//! Interactive transactions by their ids, for those who cannot hold a handle: the clients of a server.
//!
//! Gives ids that cannot be guessed; lets go of transactions that are idle or too old, and remembers for a while which were
//! committed, so that a commit may be asked for again. Bounded: so many open ones, so many outcomes.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::group::Pending;
use super::transaction::{Transaction, no_such, pending};
use crate::core::Core;
use crate::error::{Error, ErrorKind, Result};
use crate::ids::Seq;
use crate::limits::OUTCOMES_MAX;
use crate::object_id::chance;
use crate::options::WriteOptions;

/// A commit that is remembered.
type Outcome = Option<(Seq, bool)>;

/// The interactive transactions of a database.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    next: AtomicU64,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    open: HashMap<u128, Transaction>,
    committed: HashMap<u128, Outcome>,
    /// Their ids, the oldest first.
    order: VecDeque<u128>,
}

impl Known {
    fn remember(&mut self, id: u128, outcome: Outcome) {
        if self.committed.insert(id, outcome).is_none() {
            self.order.push_back(id);
        }
        while self.order.len() > OUTCOMES_MAX {
            if let Some(oldest) = self.order.pop_front() {
                self.committed.remove(&oldest);
            }
        }
    }
}

/// The id that a text is.
fn parse(id: &str) -> Option<u128> {
    let hex = id.len() == 32 && id.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if hex { u128::from_str_radix(id, 16).ok() } else { None }
}

impl Transactions {
    /// A number that no other transaction has.
    pub(super) fn next_number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How many are open.
    pub(crate) fn open(&self) -> usize {
        self.known.lock().open.len()
    }

    /// Begins one; gives its id.
    ///
    /// # Errors
    /// `Busy` where as many are open as may be.
    pub(crate) fn begin(&self, core: &Arc<Core>) -> Result<String> {
        let busy = || {
            let most = core.options.transactions_max;
            let message = format!("{most} transactions are open, which is as many as may be: try again in a moment");
            Error::new(ErrorKind::Busy, message)
        };
        if self.open() >= core.options.transactions_max {
            self.sweep(core);
        }
        let transaction = Transaction::begin(core)?;
        let id = u128::from(chance()) << 64 | u128::from(chance());
        let mut known = self.known.lock();
        if known.open.len() >= core.options.transactions_max {
            return Err(busy());
        }
        known.open.insert(id, transaction);
        drop(known);
        Ok(format!("{id:032x}"))
    }

    /// The open transaction of an id.
    ///
    /// # Errors
    /// `NotFound` (`NoSuchTransaction`).
    pub(crate) fn get(&self, id: &str) -> Result<Transaction> {
        let known = self.known.lock();
        let number = parse(id).ok_or_else(|| no_such("ids have 32 hexadecimal digits"))?;
        if known.committed.contains_key(&number) {
            return Err(no_such("it was committed"));
        }
        known.open.get(&number).cloned().ok_or_else(|| no_such("it was never begun, or has ended"))
    }

    /// Commits one, or gives the answer of its commit again.
    ///
    /// # Errors
    /// As `Transaction::commit`.
    pub(crate) fn commit(&self, core: &Core, id: &str, options: &WriteOptions) -> Result<Pending<()>> {
        if let Some(outcome) = parse(id).and_then(|id| self.known.lock().committed.get(&id).copied()) {
            return Ok(pending(core, outcome));
        }
        let transaction = self.get(id)?;
        let committed = transaction.commit(options);
        self.note(id, &transaction);
        committed
    }

    /// Aborts one.
    ///
    /// # Errors
    /// `NotFound` (`NoSuchTransaction`) where it is not open.
    pub(crate) fn abort(&self, id: &str) -> Result<()> {
        let transaction = self.get(id)?;
        let open = transaction.abort();
        self.note(id, &transaction);
        if open { Ok(()) } else { Err(no_such("it has ended")) }
    }

    /// Lets go of a transaction that may be over.
    pub(crate) fn note(&self, id: &str, transaction: &Transaction) {
        let Some(id) = parse(id) else { return };
        if !transaction.expire(0, u64::MAX, u64::MAX) {
            return;
        }
        let committed = transaction.committed();
        let mut known = self.known.lock();
        known.open.remove(&id);
        if let Some(outcome) = committed {
            known.remember(id, outcome);
        }
    }

    /// Ends those that are idle or too old; how many.
    pub(crate) fn sweep(&self, core: &Core) -> u64 {
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (idle, most) = (nanos(core.options.transaction_idle_max), nanos(core.options.transaction_time_max));
        let now = core.clock.monotonic_nanos();
        let open: Vec<_> = self.known.lock().open.iter().map(|(id, of)| (*id, of.clone())).collect();
        let mut ended = 0;
        for (id, transaction) in open {
            if transaction.expire(now, idle, most) {
                let committed = transaction.committed();
                let mut known = self.known.lock();
                known.open.remove(&id);
                match committed {
                    Some(outcome) => known.remember(id, outcome),
                    None => ended += 1,
                }
            }
        }
        ended
    }

    /// Ends all, at the end of the database.
    pub(crate) fn end(&self) {
        let open: Vec<_> = self.known.lock().open.drain().map(|(_, of)| of).collect();
        for transaction in open {
            transaction.abort();
        }
    }
}
