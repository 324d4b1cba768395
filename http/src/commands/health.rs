//! `quarrydb health`: asks a running server whether it is ready, for containers without a shell or curl.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use super::client::Client;
use super::exit;
use crate::cli::HealthArgs;

const TIME_MAX: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn run(args: &HealthArgs) -> ExitCode {
    let url = args.url.clone().unwrap_or_else(default_url);
    let path = if args.live { "/healthz" } else { "/readyz" };
    let asked = Client::new(&url, None, args.ca.as_deref(), Some(TIME_MAX)).and_then(|client| client.get(path));
    exit(match asked {
        Ok((200, _)) => Ok(()),
        Ok((status, text)) => Err(format!("{url}{path} answered {status}: {}", text.trim())),
        Err(message) => Err(message),
    })
}

/// The server that `quarrydb serve` makes of the same environment; one that listens everywhere is asked on loopback.
fn default_url() -> String {
    let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
    let listen = set("QUARRYDB_LISTEN").unwrap_or_else(|| "127.0.0.1:7117".to_owned());
    let scheme = if set("QUARRYDB_TLS_CERT").is_some() { "https" } else { "http" };
    match listen.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_unspecified() => format!("{scheme}://127.0.0.1:{}", address.port()),
        _ => format!("{scheme}://{listen}"),
    }
}
