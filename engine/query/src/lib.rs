//! The language, and its meaning on one document.
