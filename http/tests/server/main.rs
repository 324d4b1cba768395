//! The server as its clients see it: a process on a free port with a directory of its own, asked over a socket.
//!
//! One test binary, a module for each area; `common.rs` has the process and the client. Only loopback is used.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
#![allow(clippy::indexing_slicing, reason = "tests panic so that the line is known")]

mod access;
mod aggregate;
mod api_examples;
mod bank;
mod bulk;
mod changes;
mod cli;
mod common;
mod connections;
mod crash;
mod documents;
mod express;
mod hostile;
mod import;
mod indexes;
mod limits;
mod operations;
mod rules;
mod shutdown;
mod streams;
mod transactions;
