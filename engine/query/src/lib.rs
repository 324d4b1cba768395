//! The language, and its meaning on one document.
//!
//! Each part of a body (filter, update, projection, sort, expression) is parsed to an AST and has a meaning on a single
//! document. That meaning is the reference: whatever columns and indexes answer must equal it. This crate knows no
//! collection, index, cost, file or clock.
//!
//! Reading order: `error.rs`, `path_walk.rs` (which values a dotted path means), `filter/`, `sort.rs`, `projection.rs`.

pub mod add_fields;
mod byte_set;
mod computed;
mod context;
pub mod decimal;
mod distinct;
mod error;
mod exact;
pub mod expr;
pub mod filter;
#[doc(hidden)]
pub mod fuzzing;
pub mod limits;
mod meter;
pub mod number;
pub mod path_walk;
mod pattern_count;
pub mod pipeline;
mod place;
pub mod projection;
mod scratch;
pub mod sort;
mod transform;
pub mod update;

pub use computed::Computed;
pub use context::ParseContext;
pub use distinct::Distinct;
pub use error::QueryError;
pub use filter::Filter;
pub use pattern_count::PatternCount;
pub use pipeline::Pipeline;
pub use place::Place;
pub use projection::Projection;
pub use sort::Sort;
pub use transform::Transform;
pub use update::{ApplyContext, Update};
