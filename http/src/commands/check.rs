//! `quarrydb check`: the engine's checker on a data directory; `--salvage` copies what is whole.
//!
//! Takes a directory that no server holds; says each fault with file and offset. Exits 1 on damage, 0 where all is whole.

use std::process::ExitCode;

use super::{exit, say};
use crate::cli::CheckArgs;

/// Runs the command.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    exit(check(args))
}

fn check(args: &CheckArgs) -> Result<(), String> {
    if !args.data.is_dir() {
        return Err(format!("{} is no directory", args.data.display()));
    }
    if let Some(target) = &args.salvage {
        let report = quarrydb::salvage(&args.data, target).map_err(|e| e.to_string())?;
        for lost in &report.damage {
            say(&format!("lost: {lost}"));
        }
        say(&format!("{} documents copied to {}", report.documents, target.display()));
        return Ok(());
    }
    let report = quarrydb::check(&args.data).map_err(|e| e.to_string())?;
    for note in &report.notes {
        say(&format!("note: {note}"));
    }
    for damage in &report.damage {
        say(&format!("damage: {damage}"));
    }
    if report.is_whole() {
        say(&format!(
            "{} is whole: {} segments, {} rows, {} commits in the log",
            args.data.display(),
            report.segments,
            report.rows,
            report.commits
        ));
        return Ok(());
    }
    Err(format!("{} is damaged: `quarrydb check --salvage DIR` copies what is whole", args.data.display()))
}
