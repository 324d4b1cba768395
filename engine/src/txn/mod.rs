//! The committing order: one commit after another, one log record each; and transactions, which are many operations in one.
//!
//! An operation alone is atomic and sees what is visible; writes are ordered as they commit. `payload.rs` is
//! what a commit says, `commit.rs` the order itself, `group.rs` waiting for the log together. A transaction keeps what it
//! does to itself (`work.rs`) until it becomes one commit (`atomic.rs`).

mod atomic;
pub(crate) mod claims;
pub(crate) mod commit;
pub(crate) mod define;
pub(crate) mod group;
pub(crate) mod insert;
mod inside;
pub(crate) mod modify;
pub(crate) mod output;
pub(crate) mod payload;
mod reading;
pub(crate) mod registry;
pub(crate) mod transact;
pub(crate) mod transaction;
pub(crate) mod unique;
mod work;
mod writing;
