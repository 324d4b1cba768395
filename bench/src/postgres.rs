//! PostgreSQL's own `pgbench` on a database of its own, where the machine has both: what a row store gives for TPC-B.
//!
//! Needs `initdb`, `pg_ctl` and `pgbench` on the path. PostgreSQL does not run as root: where we do, it runs as the user
//! `postgres`, by `runuser`. The defaults of `initdb` hold but for the number of connections, so that every commit is synced.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A PostgreSQL that runs, stopped when dropped.
#[derive(Debug)]
pub struct Postgres {
    data: PathBuf,
    as_other: bool,
}

impl Postgres {
    /// Starts one in `dir` with the tables of `pgbench`; nothing where this machine has none, or it does not start.
    #[must_use]
    pub fn start(dir: &Path) -> Option<Self> {
        let is_root = output(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
        let data = dir.join("postgres");
        std::fs::create_dir(&data).ok()?;
        if is_root {
            output(Command::new("chown").arg("postgres").arg(&data))?;
        }
        let own = Self { data, as_other: is_root };
        output(own.command("initdb").args(["-A", "trust", "-D"]).arg(&own.data))?;
        let options = format!("-k {} -c listen_addresses= -c max_connections=300", own.data.display());
        output(
            own.command("pg_ctl")
                .args(["-w", "-s", "-l"])
                .arg(own.data.join("said"))
                .args(["-o", &options, "-D"])
                .arg(&own.data)
                .arg("start"),
        )?;
        output(own.pgbench().args(["-i", "-q", "-s", "1", "postgres"]))?;
        Some(own)
    }

    /// Transactions a second of `clients`, over `time`.
    ///
    /// # Errors
    /// Where `pgbench` does not end well.
    pub fn tpcb(&self, clients: usize, time: Duration) -> io::Result<f64> {
        let (clients, seconds) = (clients.to_string(), time.as_secs().max(1).to_string());
        let threads = std::thread::available_parallelism()?.get().min(2).to_string();
        let said = output(self.pgbench().args(["-n", "-c", &clients, "-j", &threads, "-T", &seconds, "postgres"]));
        if said.as_deref().is_some_and(|said| said.contains("actually processed: 0\n")) {
            return Ok(0.0);
        }
        let rate = said.as_deref().and_then(|said| said.lines().find_map(|line| line.strip_prefix("tps = ")));
        let rate = rate.and_then(|rest| rest.split(' ').next()).and_then(|rate| rate.parse().ok());
        rate.ok_or_else(|| io::Error::other("pgbench did not say its rate"))
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(if self.as_other { "runuser" } else { program });
        if self.as_other {
            command.args(["-u", "postgres", "--", program]);
        }
        command.current_dir(&self.data);
        command
    }

    fn pgbench(&self) -> Command {
        let mut command = self.command("pgbench");
        command.arg("-h").arg(&self.data);
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = output(self.command("pg_ctl").args(["-s", "-m", "immediate", "-D"]).arg(&self.data).arg("stop"));
    }
}

/// What a command says; nothing where it is not there or fails.
fn output(command: &mut Command) -> Option<String> {
    let done = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
}
