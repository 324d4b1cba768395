//! Sorted byte keys and the rows they belong to.

pub(crate) mod block;
