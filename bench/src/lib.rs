//! Measures the server beside the floors of the machine: what it could reach if the engine cost nothing.
//!
//! Reading order: `dataset.rs` and `events/` (what is stored), `answer.rs` (when two answers are one), `client.rs` and `load.rs` (who asks), `server.rs` (who is asked),
//! `floor/` (what the machine gives), `suite/` (what is asked, repetition by repetition), `report.rs` (what came out).
//! `kill.rs` measures nothing: it kills the server under load and looks for what was lost. Everything goes over HTTP to
//! a process of its own; the engine is not linked.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "figures are rounded for people"
)]

pub mod answer;
pub mod client;
pub mod compare;
pub mod dataset;
pub mod duckdb;
pub mod events;
pub mod floor;
pub mod kill;
pub mod load;
pub mod mersenne;
pub mod micro;
pub mod postgres;
pub mod report;
pub mod server;
pub mod suite;
pub mod timed;
