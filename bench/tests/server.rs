//! The harness against the real server: the whole suite on few documents, and a few rounds of killing under load.
//!
//! No figure is looked at. The first keeps the harness from rotting; the second is `make soak` in small, and can fail
//! for one reason only: that something acknowledged was lost, or something deleted is back.
#![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]

mod common;

use std::process::{Command, Output};

/// Our program, with a server beside it.
fn bench(arguments: &[&str]) -> Output {
    common::built();
    Command::new(env!("CARGO_BIN_EXE_quarrydb-bench")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

#[test]
fn the_whole_suite_runs_on_few_documents() {
    let output = bench(&["run", "--smoke", "--documents", "3000"]);
    assert!(output.status.success(), "{}", said(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    for row in ["indexed: compound, ms", "delete: status, ms", "small: update half, ms"] {
        assert!(table.contains(row), "no row `{row}` in {table}");
    }
    for row in ["insertMany by 1000, commit", "findOne by _id, 8 connections", "insertOne, commit, 256 connections"] {
        assert!(table.contains(row), "no row `{row}` in {table}");
    }
    for row in ["find of all documents", "import of NDJSON", "open after SIGKILL", "events: events of each collection"]
    {
        assert!(table.contains(row), "no row `{row}` in {table}");
    }
}

#[test]
fn a_killed_server_has_lost_nothing() {
    for more in [&[][..], &["--seals"]] {
        let output = bench(&[&["kill", "--rounds", "3"], more].concat());
        assert!(output.status.success(), "{}", said(&output));
        assert!(said(&output).contains("nothing lost"), "{}", said(&output));
    }
}
