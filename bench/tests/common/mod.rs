//! What the tests of the harness share: a server that is built, a gate before it.
#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod gate;

use std::path::Path;
use std::process::Command;
use std::sync::Once;

static BUILT: Once = Once::new();

/// Sees to it that a server stands beside our program: `cargo test --workspace` has built one, a run of this crate alone has not.
pub(crate) fn built() {
    let own = Path::new(env!("CARGO_BIN_EXE_quarrydb-bench"));
    BUILT.call_once(|| {
        if !own.with_file_name("quarrydb").exists() {
            let build = ["build", "-p", "quarrydb-http", "--bin", "quarrydb"];
            assert!(Command::new(env!("CARGO")).args(build).status().unwrap().success(), "the server builds");
        }
    });
}
