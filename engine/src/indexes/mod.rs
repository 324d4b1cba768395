//! Declared indexes: what they are, the entries of a document, and where the entries of many lie.
//!
//! A definition (`definition.rs`) says which entries a document has (`keys.rs`): byte keys that order as the index does.
//! Over a segment they stand in a file of their own (`file.rs`), named by the manifest beside the segment; over a tail
//! they are made in memory when first asked for (`tail.rs`). Of a segment they are found in its columns where these hold all
//! that an entry needs (`from_columns.rs`, `numbered.rs`), else in its documents. Who looks for rows asks `bounds.rs` which ranges of keys a
//! filter means, and `source.rs` which rows these have. Which indexes there are, and how far each has come, is in
//! `state.rs`; building is in `maintain/indexes.rs`, uniqueness in `txn/unique.rs`.
//!
//! An index answers for a part of a collection by itself: a part without its entries is looked through in another way, and
//! the answer is the same.

pub(crate) mod bounds;
pub(crate) mod definition;
pub(crate) mod entries;
pub(crate) mod file;
pub(crate) mod from_columns;
pub(crate) mod keys;
mod numbered;
mod partial;
pub(crate) mod range;
pub(crate) mod source;
pub(crate) mod state;
pub(crate) mod tail;

pub use definition::{DEFINITION_FIELDS, IndexDefinition};
pub(crate) use source::IndexSource;
pub use state::IndexState;
pub(crate) use state::{Index, IndexSet};
