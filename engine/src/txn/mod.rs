//! The committing order: one commit after another, one log record each.
//!
//! Offered now: every operation is atomic and sees what is visible; writes are ordered as they commit. `payload.rs` is
//! what a commit says, `commit.rs` the order itself, `group.rs` waiting for the log together.

pub(crate) mod commit;
pub(crate) mod define;
pub(crate) mod group;
pub(crate) mod insert;
pub(crate) mod modify;
pub(crate) mod payload;
pub(crate) mod unique;
mod writing;
