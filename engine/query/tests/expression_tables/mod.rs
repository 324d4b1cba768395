//! The tables, a file for each group of families.

mod arithmetic;
mod arrays;
mod dates;
mod general;
mod hostile;
mod strings;
mod types;
