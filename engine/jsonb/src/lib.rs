//! One document as bytes.
