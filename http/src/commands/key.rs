//! `quarrydb key add | list | remove`.

use std::process::ExitCode;

use super::{exit, say};
use crate::access;
use crate::cli::{KeyArgs, KeyCommand};

/// Runs the command.
pub(crate) fn run(args: &KeyArgs) -> ExitCode {
    exit(match &args.command {
        KeyCommand::Add { name, roles } => access::add(&args.file, name, roles).map(|key| {
            say(&key);
            crate::logging::complain(&format!(
                "this key is shown once; {} keeps its digest: serve with --access-keys, send `Authorization: Bearer KEY`",
                args.file.display()
            ));
        }),
        KeyCommand::List => access::read_lines(&args.file).map(|lines| {
            for line in lines {
                let mut roles: Vec<_> = line.roles.iter().map(|(db, role)| format!("{}:{db}", role.name())).collect();
                roles.sort();
                say(&format!("{}\t{}", line.name, roles.join(" ")));
            }
        }),
        KeyCommand::Remove { name } => match access::remove(&args.file, name) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("{} holds no key of the name {name:?}", args.file.display())),
            Err(message) => Err(message),
        },
    })
}
