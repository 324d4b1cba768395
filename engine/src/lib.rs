//! QuarryDB as a library.

pub mod error;
pub mod ids;
pub mod io;

pub use error::{Error, ErrorKind, Result};
