//! The tables, a file for each group of operators.

mod arrays;
mod describe;
mod fields;
mod hostile;
mod pipelines;
mod positional;
mod random;
mod types;
mod upserts;
