//! The floors: what the machine and the libraries give before an engine does anything.
//!
//! `http` is a program of its own, started as a child like the server under test, so that both pay for two processes
//! and a loopback between them. `machine` measures in this process: sync, parse and print.

pub mod http;
pub mod machine;
