//! What the options mean together: checked settings, or one line that says what does not fit.
//!
//! Takes `ServeArgs`; gives `Settings`. Opens nothing but the files that the options name (keys).

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use crate::access::AccessKeys;
use crate::cli::{self, ServeArgs};
use crate::memory;
use crate::origin::WebRules;

/// Beyond this the sync interval would be a promise that nobody means.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// What the server runs by.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) data: PathBuf,
    pub(crate) listen: SocketAddr,
    pub(crate) durability: quarrydb::Durability,
    pub(crate) seal_rows: u32,
    pub(crate) transactions: usize,
    pub(crate) transaction_idle: Duration,
    pub(crate) transaction_time: Duration,
    pub(crate) snapshot_age: Duration,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_bodies_bytes: usize,
    /// What this process may have.
    pub(crate) memory_bytes: u64,
    pub(crate) changes_bytes: u64,
    pub(crate) changes_age: Duration,
    pub(crate) max_connections: usize,
    pub(crate) access_keys: Option<PathBuf>,
    pub(crate) tls: Option<(PathBuf, PathBuf)>,
    pub(crate) web: WebRules,
    pub(crate) header_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    /// None: no limit.
    pub(crate) max_time: Option<Duration>,
    pub(crate) shutdown_timeout: Duration,
    pub(crate) slow: Duration,
}

impl Settings {
    /// How often a connection looks whether its client is too slow.
    pub(crate) fn patience_step(&self) -> Duration {
        (self.header_timeout.min(self.idle_timeout) / 2).max(Duration::from_millis(50))
    }

    /// The meaning of `args`, with the keys read.
    ///
    /// # Errors
    /// One line for a person: which option, what is wrong with it, what to do.
    pub(crate) fn from_args(args: ServeArgs) -> Result<(Self, Option<AccessKeys>), String> {
        let listen = address(&args.listen)?;
        let durability = durability(&args.durability)?;
        let keys = args.access_keys.as_deref().map(AccessKeys::read).transpose()?;
        if let (Some(keys), Some(path)) = (&keys, &args.access_keys)
            && keys.is_empty()
        {
            return Err(format!(
                "{} holds no key: make one with `quarrydb key add NAME --file {}`",
                path.display(),
                path.display()
            ));
        }
        let loopback = listen.ip().is_loopback();
        if !loopback && keys.is_none() && !args.insecure_no_auth {
            return Err(format!(
                "refusing to listen on {listen} without access keys: make one with `quarrydb key add NAME --file \
                 quarry-keys.jsonl`, serve with `--access-keys quarry-keys.jsonl`, or say --insecure-no-auth"
            ));
        }
        let web = WebRules::new(loopback, &args.allowed_hosts, &args.cors_origins, args.cors_credentials)?;
        if args.max_body == 0 || args.max_connections == 0 {
            return Err("--max-body and --max-connections must be above 0".to_owned());
        }
        let memory_bytes = args.memory.map_or_else(memory::limit_bytes, |bytes| bytes as u64);
        if args.seal_rows == 0 {
            return Err("--seal-rows must be above 0".to_owned());
        }
        let settings = Self {
            data: args.data,
            listen,
            durability,
            seal_rows: args.seal_rows,
            transactions: args.transactions,
            transaction_idle: args.transaction_idle,
            transaction_time: args.transaction_time,
            snapshot_age: args.snapshot_age,
            max_body_bytes: args.max_body,
            max_bodies_bytes: args
                .max_bodies
                .unwrap_or_else(|| memory::bodies_bytes(memory_bytes, args.max_body))
                .max(args.max_body),
            memory_bytes,
            changes_bytes: args.changes_bytes as u64,
            changes_age: args.changes_age,
            max_connections: args.max_connections,
            access_keys: args.access_keys,
            tls: args.tls_cert.zip(args.tls_key),
            web,
            header_timeout: args.header_timeout,
            body_timeout: args.body_timeout,
            idle_timeout: args.idle_timeout,
            max_time: (!args.max_time.is_zero()).then_some(args.max_time),
            shutdown_timeout: args.shutdown_timeout,
            slow: args.slow,
        };
        Ok((settings, keys))
    }
}

/// `commit`, or `interval:100ms`.
///
/// # Errors
/// What would have been understood.
pub(crate) fn durability(text: &str) -> Result<quarrydb::Durability, String> {
    if text == "commit" {
        return Ok(quarrydb::Durability::Commit);
    }
    let interval = text.strip_prefix("interval:").map(cli::duration).transpose()?;
    match interval {
        Some(every) if !every.is_zero() && every <= INTERVAL_MAX => Ok(quarrydb::Durability::Interval(every)),
        _ => Err(format!("--durability {text}: `commit`, or `interval:100ms` with a time up to {INTERVAL_MAX:?}")),
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.to_socket_addrs()
        .ok()
        .and_then(|mut found| found.next())
        .ok_or_else(|| format!("--listen {text}: no address such as 127.0.0.1:7117 or [::1]:7117"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests panic so that the line is known")]
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn settings(options: &[&str]) -> Result<Settings, String> {
        let line = ["quarrydb", "serve"].iter().chain(options);
        let Command::Serve(args) = Cli::try_parse_from(line).unwrap().command else { unreachable!("serve was said") };
        Settings::from_args(*args).map(|(s, _)| s)
    }

    #[test]
    fn beyond_loopback_keys_are_asked_for() {
        let refused = settings(&["--listen", "0.0.0.0:0"]).unwrap_err();
        assert!(refused.contains("quarrydb key add") && refused.contains("--insecure-no-auth"), "{refused}");
        assert!(settings(&["--listen", "0.0.0.0:0", "--insecure-no-auth"]).is_ok());
        assert!(settings(&["--listen", "127.0.0.1:0"]).is_ok());
        assert!(settings(&["--listen", "[::1]:0"]).is_ok());
    }

    #[test]
    fn durability_is_commit_or_an_interval() {
        assert!(matches!(durability("commit").unwrap(), quarrydb::Durability::Commit));
        assert!(
            matches!(durability("interval:100ms").unwrap(), quarrydb::Durability::Interval(d) if d.as_millis() == 100)
        );
        for wrong in ["", "never", "interval", "interval:0ms", "interval:2h", "interval:x"] {
            assert!(durability(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_origin_with_credentials_is_refused() {
        assert!(settings(&["--cors-origins", "*", "--cors-credentials"]).is_err());
        assert!(settings(&["--cors-origins", "*"]).is_ok());
    }
}
