//! The commands beside `serve`: each reads its arguments, does one thing and gives an exit code.

pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod export;
pub(crate) mod health;
pub(crate) mod import;
pub(crate) mod key;

use std::process::ExitCode;

use crate::logging::complain;

/// 0, or 1 with one line on standard error.
pub(crate) fn exit(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            complain(&message);
            ExitCode::FAILURE
        }
    }
}

/// One line of a command's answer on standard output; a reader that is gone is no fault.
pub(crate) fn say(line: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stdout(), "{line}");
}
