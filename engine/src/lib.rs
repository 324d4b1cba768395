//! QuarryDB as a library.
