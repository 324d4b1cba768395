//! The executable `quarrydb`: server, import, export, check, health, keys.
//!
//! Reads the arguments, runs the command, gives its exit code. Reading order: `cli.rs`, `config.rs`, `serve.rs`,
//! `connection.rs`, `front.rs`, `router.rs`, `routes/`, `stream.rs`.

mod access;
mod answer;
mod body;
mod cli;
mod commands;
mod config;
mod connection;
mod encode;
mod error;
mod express;
mod feed;
mod fields;
mod front;
mod give_back;
mod import;
mod logging;
mod memory;
mod metrics;
mod negotiate;
mod openapi;
mod operation;
mod origin;
mod router;
mod routes;
mod serve;
mod state;
mod stream;
mod tls;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

/// Requests and answers are many small and a few large blocks that move between threads; the system's allocator takes
/// locks and gives memory back to the kernel for both.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve::run(*args),
        Command::Import(args) => commands::import::run(args),
        Command::Export(args) => commands::export::run(args),
        Command::Check(args) => commands::check::run(&args),
        Command::Health(args) => commands::health::run(&args),
        Command::Key(args) => commands::key::run(&args),
    }
}
