//! Whole transactions from a closure: run inside the committing order where that takes a moment, else beside others and
//! run anew where one was first.
//!
//! `transact` is for a few operations that belong together: its outcome is as if it had run alone, and it does not end for a
//! conflict. `transaction` is for a longer one, under snapshot isolation; it begins anew after a conflict for so long.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::commit::nothing_to_do;
use super::group::Pending;
use super::transaction::{Transaction, no_such};
use super::work::{Mode, Work};
use crate::core::Core;
use crate::error::{Error, Result};
use crate::limits::WRITE_RETRIES_MAX;
use crate::options::{Deadline, WriteOptions};

/// For how long a transaction that meets conflicts is begun anew.
const RETRY_TIME_MAX: Duration = Duration::from_secs(120);
/// The longest rest before it is.
const REST_MAX: Duration = Duration::from_millis(32);

/// Runs `run` as one commit that nobody is beside.
///
/// # Errors
/// Those of `run`, with nothing done; what a write may say.
pub(crate) fn transact<T, E: From<Error>>(
    core: &Arc<Core>,
    options: &WriteOptions,
    run: &mut dyn FnMut(&Transaction) -> Result<T, E>,
) -> Result<Pending<T>, E> {
    core.admit_write(options)?;
    let journaled = core.journaled(options);
    if let Some(done) = in_order(core, options, false, run)? {
        return Ok(done);
    }
    for _ in 0..WRITE_RETRIES_MAX {
        Deadline::check(options.deadline)?;
        let transaction = Transaction::new(core, Mode::Checked);
        let value = match run(&transaction) {
            Err(_) if transaction.had_conflict() => continue,
            other => other?,
        };
        let mut work = transaction.take().ok_or_else(failed)?;
        let mut order = core.order.hold();
        match work.commit(&mut order, journaled) {
            Err(_) if work.conflict => continue,
            Err(error) => return Err(error.into()),
            Ok(Some(seq)) => return Ok(Pending::new(value, &core.group, seq, journaled)),
            Ok(None) => {}
        }
        drop(order);
        return Ok(nothing_to_do(core, value, journaled));
    }
    // It was overtaken again and again: now all wait for it.
    match in_order(core, options, true, run)? {
        Some(done) => Ok(done),
        None => Err(failed().into()),
    }
}

/// Runs it with the committing order held; none where it would hold that for too long.
fn in_order<T, E: From<Error>>(
    core: &Arc<Core>,
    options: &WriteOptions,
    scans: bool,
    run: &mut dyn FnMut(&Transaction) -> Result<T, E>,
) -> Result<Option<Pending<T>>, E> {
    let journaled = core.journaled(options);
    let (mut order, held) = core.order.hold_for_closure();
    let transaction = Transaction::new(core, Mode::Ordered { scans });
    let result = run(&transaction);
    drop(held);
    if transaction.wanted_time() {
        return Ok(None);
    }
    let value = result?;
    let mut work: Box<Work> = transaction.take().ok_or_else(failed)?;
    Deadline::check(options.deadline)?;
    let seq = match work.commit(&mut order, journaled)? {
        Some(seq) => seq,
        // What was read rests on commits that may still wait for the log.
        None => core.watermarks().applied(),
    };
    drop(order);
    Ok(Some(Pending::new(value, &core.group, seq, journaled)))
}

/// An operation failed, and the closure went on as if nothing was.
fn failed() -> Error {
    no_such("an operation in it failed")
}

/// Runs `run` under snapshot isolation, anew where a conflict ended it; the value once it is as durable as asked.
///
/// # Errors
/// Those of `run` and of the commit, with nothing done; a conflict where it meets one for too long.
pub(crate) fn transaction<T, E: From<Error>>(
    core: &Arc<Core>,
    options: &WriteOptions,
    run: &mut dyn FnMut(&Transaction) -> Result<T, E>,
) -> Result<T, E> {
    let end = Deadline::after(RETRY_TIME_MAX);
    let mut rest = Duration::from_micros(250);
    loop {
        let transaction = Transaction::begin(core)?;
        let result = run(&transaction);
        let again = |error: E| -> Result<(), E> {
            let in_time = Deadline::check(Some(end)).is_ok() && Deadline::check(options.deadline).is_ok();
            if transaction.had_conflict() && in_time { Ok(()) } else { Err(error) }
        };
        match result {
            Err(error) => {
                transaction.abort();
                again(error)?;
            }
            Ok(value) => match transaction.commit(options) {
                Ok(pending) => {
                    pending.wait()?;
                    return Ok(value);
                }
                Err(error) => again(error.into())?,
            },
        }
        // Whoever was first needs a moment to be seen.
        let (lock, never) = (Mutex::new(()), Condvar::new());
        never.wait_for(&mut lock.lock(), rest);
        rest = (rest * 2).min(REST_MAX);
    }
}
