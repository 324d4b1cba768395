//! QuarryDB as a library.

pub mod error;
pub mod ids;

pub use error::{Error, ErrorKind, Result};
