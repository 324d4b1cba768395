//! Asking: from a filter to rows, documents and counts, as of one snapshot.
//!
//! `scan.rs` reads all rows in morsels, `find.rs` decides how rows are found, `sort.rs` orders them, `cursor.rs` hands
//! documents on, one by one or in parallel. It never takes the committing order, and plans nothing by cost.

pub(crate) mod cursor;
pub(crate) mod explain;
pub(crate) mod find;
pub(crate) mod scan;
pub(crate) mod sort;
