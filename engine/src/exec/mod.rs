//! Asking: from a filter to rows, documents and counts, as of one snapshot.
//!
//! `select.rs` asks columns which rows are worth a look, `scan.rs` looks at them in morsels, `find.rs` decides how rows are found, `sort.rs` orders them, `cursor.rs` hands
//! documents on, one by one or in parallel. It never takes the committing order, and plans nothing by cost.

pub(crate) mod aggregate;
pub(crate) mod at_hand;
mod by_index;
mod count;
pub(crate) mod cursor;
mod distinct;
pub(crate) mod explain;
pub(crate) mod find;
pub(crate) mod group;
mod in_order;
mod index_order;
mod look;
mod parts;
mod plain;
pub(crate) mod scan;
mod select;
pub(crate) mod sort;
mod sort_columns;
pub(crate) mod view;
