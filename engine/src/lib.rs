//! QuarryDB as a library.

pub mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod ids;
pub mod io;
pub mod log;
pub mod manifest;
pub mod segment;

pub use error::{Error, ErrorKind, Result};
