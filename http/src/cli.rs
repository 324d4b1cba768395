//! What was typed: the commands and their options, as clap reads them.
//!
//! Takes the argument list and the environment; gives plain values. What they mean together is `config.rs`'s business.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// QuarryDB: a document database in one executable.
#[derive(Debug, Parser)]
#[command(name = "quarrydb", version, about, max_term_width = 110)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a data directory over HTTP.
    Serve(Box<ServeArgs>),
    /// Load documents (NDJSON or a JSON array, plain, .gz or .zst) into a data directory or a running server.
    Import(ImportArgs),
    /// Write a collection as NDJSON that ends with a trailer, from a data directory or a running server.
    Export(ExportArgs),
    /// Verify every checksum and invariant of a data directory; changes nothing, exits 1 on damage.
    Check(CheckArgs),
    /// Ask a running server whether it is ready; exits 0 or 1.
    Health(HealthArgs),
    /// Make, list and remove access keys.
    Key(KeyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// The data directory; made where it does not exist.
    #[arg(long, env = "QUARRYDB_DATA", default_value = "./quarry-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The address to listen on; port 0 takes a free one.
    #[arg(long, env = "QUARRYDB_LISTEN", default_value = "127.0.0.1:7117", value_name = "HOST:PORT")]
    pub(crate) listen: String,
    /// When a write is answered: `commit` (once synced) or `interval:100ms` (synced at least that often).
    #[arg(long, env = "QUARRYDB_DURABILITY", default_value = "commit")]
    pub(crate) durability: String,
    /// A collection's newest documents become a segment file when they are this many; fewer is for tests.
    #[arg(long, env = "QUARRYDB_SEAL_ROWS", default_value_t = 131_072, value_name = "N")]
    pub(crate) seal_rows: u32,
    /// The largest body of a request, decoded (import streams have no limit).
    #[arg(long, env = "QUARRYDB_MAX_BODY", default_value = "48MiB", value_parser = size, value_name = "SIZE")]
    pub(crate) max_body: usize,
    /// All bodies being received or held at once; above it 429 [default: a tenth of the memory].
    #[arg(long, env = "QUARRYDB_MAX_BODIES", value_parser = size, value_name = "SIZE")]
    pub(crate) max_bodies: Option<usize>,
    /// What the process may take; its budgets are parts of it [default: the container's limit, else the machine's memory].
    #[arg(long, env = "QUARRYDB_MEMORY", value_parser = size, value_name = "SIZE")]
    pub(crate) memory: Option<usize>,
    /// Log that is kept for change streams beyond what the database needs itself, once one was opened.
    #[arg(long, env = "QUARRYDB_CHANGES_BYTES", default_value = "1GiB", value_parser = size, value_name = "SIZE")]
    pub(crate) changes_bytes: usize,
    /// How long it is kept.
    #[arg(long, env = "QUARRYDB_CHANGES_AGE", default_value = "24h", value_parser = duration, value_name = "TIME")]
    pub(crate) changes_age: Duration,
    /// Open connections; above it 503.
    #[arg(long, env = "QUARRYDB_MAX_CONNECTIONS", default_value_t = 10_000, value_name = "N")]
    pub(crate) max_connections: usize,
    /// A file of access keys, made by `quarrydb key add`; SIGHUP reads it again.
    #[arg(long, env = "QUARRYDB_ACCESS_KEYS", value_name = "FILE")]
    pub(crate) access_keys: Option<PathBuf>,
    /// Serve beyond loopback without access keys: everyone who reaches the port may do everything.
    #[arg(long, env = "QUARRYDB_INSECURE_NO_AUTH")]
    pub(crate) insecure_no_auth: bool,
    /// Certificate chain (PEM): serves HTTPS.
    #[arg(long, env = "QUARRYDB_TLS_CERT", requires = "tls_key", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate.
    #[arg(long, env = "QUARRYDB_TLS_KEY", requires = "tls_cert", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Further names that the Host header may have, set apart by commas.
    #[arg(long, env = "QUARRYDB_ALLOWED_HOSTS", value_delimiter = ',', value_name = "HOST,...")]
    pub(crate) allowed_hosts: Vec<String>,
    /// Origins of web pages that may call (`https://app.example`), set apart by commas; `*` for every one.
    #[arg(long, env = "QUARRYDB_CORS_ORIGINS", value_delimiter = ',', value_name = "ORIGIN,...")]
    pub(crate) cors_origins: Vec<String>,
    /// Let those pages send credentials (cookies, client certificates); not with `*`.
    #[arg(long, env = "QUARRYDB_CORS_CREDENTIALS")]
    pub(crate) cors_credentials: bool,
    /// How long a request's head may take to arrive.
    #[arg(long, env = "QUARRYDB_HEADER_TIMEOUT", default_value = "10s", value_parser = duration, value_name = "TIME")]
    pub(crate) header_timeout: Duration,
    /// How long a body may pause, and with its size how long it may take; also how long an answer may wait for its reader.
    #[arg(long, env = "QUARRYDB_BODY_TIMEOUT", default_value = "30s", value_parser = duration, value_name = "TIME")]
    pub(crate) body_timeout: Duration,
    /// How long a connection may be idle between requests.
    #[arg(long, env = "QUARRYDB_IDLE_TIMEOUT", default_value = "300s", value_parser = duration, value_name = "TIME")]
    pub(crate) idle_timeout: Duration,
    /// Time a request may take that names no maxTimeMS; 0 is no limit.
    #[arg(long, env = "QUARRYDB_MAX_TIME", default_value = "0", value_parser = duration, value_name = "TIME")]
    pub(crate) max_time: Duration,
    /// Interactive transactions open at once; above it 429.
    #[arg(long, env = "QUARRYDB_TRANSACTIONS", default_value_t = 1024, value_name = "N")]
    pub(crate) transactions: usize,
    /// An interactive transaction that is asked for nothing for so long is aborted.
    #[arg(long, env = "QUARRYDB_TRANSACTION_IDLE", default_value = "60s", value_parser = duration, value_name = "TIME")]
    pub(crate) transaction_idle: Duration,
    /// An interactive transaction is aborted after so long, whatever it does.
    #[arg(long, env = "QUARRYDB_TRANSACTION_TIME", default_value = "300s", value_parser = duration, value_name = "TIME")]
    pub(crate) transaction_time: Duration,
    /// A find or a transaction that still reads what has been overtaken for so long ends with an error.
    #[arg(long, env = "QUARRYDB_SNAPSHOT_AGE", default_value = "3600s", value_parser = duration, value_name = "TIME")]
    pub(crate) snapshot_age: Duration,
    /// How long running requests may take at the end.
    #[arg(long, env = "QUARRYDB_SHUTDOWN_TIMEOUT", default_value = "8s", value_parser = duration, value_name = "TIME")]
    pub(crate) shutdown_timeout: Duration,
    /// Operations that take longer are logged.
    #[arg(long, env = "QUARRYDB_SLOW", default_value = "200ms", value_parser = duration, value_name = "TIME")]
    pub(crate) slow: Duration,
    /// The form of log lines on standard error.
    #[arg(long, env = "QUARRYDB_LOG_FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// The least severe lines that are logged.
    #[arg(long, env = "QUARRYDB_LOG_LEVEL", default_value = "info")]
    pub(crate) log_level: LogLevel,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For a person.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

/// Where a command finds the documents: a directory, or a server.
#[derive(Debug, Args)]
pub(crate) struct Place {
    /// The data directory (no server may be running on it).
    #[arg(long, env = "QUARRYDB_DATA", default_value = "./quarry-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// A running server instead.
    #[arg(long, env = "QUARRYDB_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The access key for the server.
    #[arg(long, env = "QUARRYDB_KEY", hide_env_values = true, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Certificates (PEM) to trust beside the usual ones.
    #[arg(long, env = "QUARRYDB_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Files to load; `-` is standard input. `.gz` and `.zst` are unpacked, and so is what begins like them.
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The database to load into.
    #[arg(long, value_name = "NAME")]
    pub(crate) db: String,
    /// The collection to load into.
    #[arg(long, visible_alias = "collection", value_name = "NAME")]
    pub(crate) coll: String,
    /// Stop at the first document that is refused.
    #[arg(long)]
    pub(crate) ordered: bool,
    /// Refuse a file that does not end with the trailer of a whole export.
    #[arg(long)]
    pub(crate) require_trailer: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The database to read.
    #[arg(long, value_name = "NAME")]
    pub(crate) db: String,
    /// The collection to read.
    #[arg(long, visible_alias = "collection", value_name = "NAME")]
    pub(crate) coll: String,
    /// The file to write, whole or not at all; standard output where none is named.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Only the documents that match (Extended JSON).
    #[arg(long, default_value = "{}", value_name = "JSON")]
    pub(crate) filter: String,
    /// Relaxed Extended JSON: easier to read, but the width of integers is not kept.
    #[arg(long)]
    pub(crate) relaxed: bool,
    #[command(flatten)]
    pub(crate) place: Place,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The data directory.
    #[arg(long, env = "QUARRYDB_DATA", default_value = "./quarry-data", value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// Copy what is whole to this new directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) salvage: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// The server; from QUARRYDB_LISTEN where not given.
    #[arg(long, env = "QUARRYDB_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Ask only whether the process answers (/healthz), not whether it is ready (/readyz).
    #[arg(long)]
    pub(crate) live: bool,
    /// Certificates (PEM) to trust beside the usual ones.
    #[arg(long, env = "QUARRYDB_CA", value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct KeyArgs {
    /// The file of keys.
    #[arg(
        long,
        env = "QUARRYDB_ACCESS_KEYS",
        default_value = "./quarry-keys.jsonl",
        global = true,
        value_name = "FILE"
    )]
    pub(crate) file: PathBuf,
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a key and print it once; the file keeps only its digest.
    Add {
        /// A name for the log and for `remove`.
        name: String,
        /// What it may do where: `read:shop`, `readWrite:*`, `admin:*`; may be repeated.
        #[arg(long = "role", default_value = "readWrite:*", value_name = "ROLE:DB")]
        roles: Vec<String>,
    },
    /// Names and roles of the keys.
    List,
    /// Remove a key by its name.
    Remove {
        /// The name it was given.
        name: String,
    },
}

/// Bytes: `1048576`, `48MiB`, `1GiB`, `500kB`.
pub(crate) fn size(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: usize = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1000,
        "k" | "kib" => 1 << 10,
        "mb" => 1_000_000,
        "m" | "mib" => 1 << 20,
        "gb" => 1_000_000_000,
        "g" | "gib" => 1 << 30,
        other => return Err(format!("{other} is no unit of size: B, KiB, MiB, GiB")),
    };
    let number: usize = number.parse().map_err(|_| format!("{text} is no size, such as 48MiB"))?;
    number.checked_mul(factor).ok_or_else(|| format!("{text} is too large"))
}

/// A span of time: `100ms`, `10s`, `5m`; a bare number is seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| format!("{text} is no time, such as 100ms or 10s"))?;
    match unit.trim() {
        "us" => Ok(Duration::from_micros(number)),
        "ms" => Ok(Duration::from_millis(number)),
        "" | "s" => Ok(Duration::from_secs(number)),
        "m" | "min" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        other => Err(format!("{other} is no unit of time: us, ms, s, m, h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_commands_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_and_times_are_read_with_their_units() {
        assert_eq!(size("48MiB"), Ok(48 << 20));
        assert_eq!(size("1024"), Ok(1024));
        assert!(size("4 parsecs").is_err());
        assert!(size("99999999999GiB").is_err());
        assert_eq!(duration("100ms"), Ok(Duration::from_millis(100)));
        assert_eq!(duration("5m"), Ok(Duration::from_secs(300)));
        assert!(duration("soon").is_err());
    }
}
