//! The tables, a file for each group of families.

mod arithmetic;
mod arrays;
mod dates;
mod error_numbers;
mod general;
mod hostile;
mod random;
mod strings;
mod types;
