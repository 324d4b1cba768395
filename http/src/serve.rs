//! The server's life: bind, open the database, say so, accept, stop.
//!
//! Takes the options; gives an exit code. The listener is there before the database is open, so that /readyz can say
//! `Recovering`; the line on standard output comes only when requests are answered. Next: `connection.rs`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use quarrydb::{Database, ErrorKind, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::access::AccessKeys;
use crate::cli::ServeArgs;
use crate::config::Settings;
use crate::error::ApiError;
use crate::state::{App, Shared};
use crate::{connection, give_back, logging, metrics, router, tls};

/// Threads for scans, imports and packing; each waits for its client at most the body timeout.
const BLOCKING_THREADS_MAX: usize = 1024;
/// File descriptors that are not connections.
const FILES_RESERVED: u64 = 256;
/// What a handshake may take.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(10);
/// How long to wait when the system has no descriptor for a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// The time after which cut connections are not waited for any longer.
const CUT_TIME_MAX: Duration = Duration::from_millis(500);

/// Serves until a signal; the exit code is 0 after an orderly end.
pub(crate) fn run(args: ServeArgs) -> ExitCode {
    logging::start(args.log_format, args.log_level);
    match Settings::from_args(args).and_then(|(settings, keys)| start(settings, keys)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            logging::complain(&message);
            ExitCode::FAILURE
        }
    }
}

fn start(mut settings: Settings, keys: Option<AccessKeys>) -> Result<(), String> {
    let acceptor = settings.tls.as_ref().map(|(cert, key)| tls::acceptor(cert, key)).transpose()?;
    fit_connections(&mut settings);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_name("quarrydb-http")
        .build()
        .map_err(|e| format!("the runtime does not start: {e}"))?;
    let app = App::new(settings, keys);
    let result = runtime.block_on(live(app, acceptor));
    // Threads that still wait for a client must not hold up the end.
    runtime.shutdown_timeout(CUT_TIME_MAX);
    result
}

async fn live(app: Shared, acceptor: Option<TlsAcceptor>) -> Result<(), String> {
    let mut signals = Signals::catch()?;
    let listen = app.settings.listen;
    let listener = TcpListener::bind(listen).await.map_err(|e| format!("cannot listen on {listen}: {e}"))?;
    let address = listener.local_addr().map_err(|e| format!("cannot listen on {listen}: {e}"))?;
    let scheme = if acceptor.is_some() { "https" } else { "http" };
    warn_of_exposure(&app, address, acceptor.is_some());
    let (stop, stopped) = watch::channel(false);
    tokio::spawn(Arc::clone(&app).tick());
    tokio::spawn(give_back::run());
    let accepting = tokio::spawn(accept(Arc::clone(&app), listener, acceptor, stopped));
    let opening = {
        let app = Arc::clone(&app);
        tokio::task::spawn_blocking(move || open(&app))
    };
    let database = tokio::select! {
        opened = opening => opened.map_err(|e| e.to_string())??,
        // Opening is safe to break off at any point, as a crash of it is.
        () = signals.stop(&app) => return Ok(()),
    };
    let mut stdout = std::io::stdout();
    let _ = writeln!(stdout, "listening on {scheme}://{address}").and_then(|()| stdout.flush());
    signals.stop(&app).await;
    signals.force_at_the_next();
    end(&app, &stop, accepting, database).await
}

fn open(app: &App) -> Result<Database, String> {
    let settings = &app.settings;
    let options = Options {
        durability: settings.durability,
        tail_rows_max: settings.seal_rows,
        transactions_max: settings.transactions,
        transaction_idle_max: settings.transaction_idle,
        transaction_time_max: settings.transaction_time,
        snapshot_age_max: settings.snapshot_age,
        change_bytes_max: settings.changes_bytes,
        change_age_max: settings.changes_age,
        ..Options::for_memory(settings.memory_bytes)
    };
    let path = &app.settings.data;
    let database = Database::open_with(path, options).map_err(|e| e.to_string())?;
    log_recovery(path, database.recovered());
    app.opened(database.clone());
    Ok(database)
}

/// Says what opening met: one line, and a warning where an unsynced tail was left out.
fn log_recovery(path: &Path, found: &quarrydb::Recovered) {
    let (segments, log) = (found.segments, &found.log);
    let (commits, bytes) = (log.commits, log.payload_bytes);
    tracing::info!(path = %path.display(), new = found.is_new, segments, commits, bytes, "opened, the log replayed");
    if let Some(cut) = &log.cut {
        let (file, offset, bytes) = (&cut.file, cut.offset, cut.bytes);
        tracing::warn!(file, offset, bytes, "an unsynced tail of the log was cut off: {}", cut.reason);
    }
    if !found.removed.is_empty() {
        tracing::info!("removed what a crash left half made: {}", found.removed.join(", "));
    }
}

/// Stops accepting, lets requests finish, flushes.
async fn end(
    app: &Shared,
    stop: &watch::Sender<bool>,
    accepting: tokio::task::JoinHandle<()>,
    database: Database,
) -> Result<(), String> {
    tracing::info!("stopping: running requests may take {:?}", app.settings.shutdown_timeout);
    app.stop();
    accepting.abort();
    let _ = stop.send(true);
    let patience = tokio::time::Instant::now() + app.settings.shutdown_timeout;
    while app.metrics.connections_open.load(Ordering::Relaxed) > 0 && tokio::time::Instant::now() < patience {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let cut = app.metrics.connections_open.load(Ordering::Relaxed);
    if cut > 0 {
        tracing::warn!(connections = cut, "cutting connections that did not finish in time");
    }
    let closed = tokio::task::spawn_blocking(move || database.close()).await.map_err(|e| e.to_string())?;
    match closed {
        // The log holds everything that was answered; only the mark of a clean end found no room.
        Err(e) if e.kind() == ErrorKind::OutOfDiskSpace => tracing::warn!(error = %e, "stopped, on a full disk"),
        Err(e) => return Err(format!("closing the database: {e}")),
        Ok(()) => tracing::info!("stopped"),
    }
    Ok(())
}

async fn accept(app: Shared, listener: TcpListener, acceptor: Option<TlsAcceptor>, stopped: watch::Receiver<bool>) {
    let router = router::all(Arc::clone(&app));
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => admit(&app, &router, stream, peer, acceptor.clone(), stopped.clone()),
            Err(e) => {
                // Out of descriptors, or a client that left already: neither ends the server.
                tracing::warn!("accepting a connection: {e}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn admit(
    app: &Shared,
    router: &Router,
    stream: TcpStream,
    peer: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    stopped: watch::Receiver<bool>,
) {
    metrics::add(&app.metrics.connections_total, 1);
    let open = app.metrics.connections_open.fetch_add(1, Ordering::Relaxed) + 1;
    let _ = stream.set_nodelay(true);
    let (app, router) = (Arc::clone(app), router.clone());
    if open > app.settings.max_connections as u64 {
        metrics::sub(&app.metrics.connections_open, 1);
        metrics::add(&app.metrics.connections_refused, 1);
        if acceptor.is_none() {
            tokio::spawn(turn_away(stream));
        }
        return;
    }
    tokio::spawn(async move {
        let counted = Counted(Arc::clone(&app));
        match acceptor {
            None => connection::serve(app, router, stream, peer, stopped).await,
            Some(acceptor) => match tokio::time::timeout(HANDSHAKE_TIME_MAX, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => connection::serve(app, router, stream, peer, stopped).await,
                Ok(Err(e)) => tracing::debug!(peer = %peer.ip(), "TLS handshake: {e}"),
                Err(_) => tracing::debug!(peer = %peer.ip(), "TLS handshake took too long"),
            },
        }
        drop(counted);
    });
}

/// Takes one off the open connections when its task ends, however it ends.
struct Counted(Shared);

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::sub(&self.0.metrics.connections_open, 1);
    }
}

/// 503 for a connection beyond the limit, after its request has begun to arrive, so that it is not lost in a reset.
async fn turn_away(mut stream: TcpStream) {
    let error =
        ApiError::unavailable("TooManyConnections", "too many connections (--max-connections): try again in a moment");
    let answer = connection::raw_answer(&error);
    let talk = async {
        let mut scrap = [0; 4096];
        let _ = stream.read(&mut scrap).await?;
        stream.write_all(&answer).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), talk).await;
}

/// Raises the limit of open files as far as the system lets us, and fits the limit of connections under it.
fn fit_connections(settings: &mut Settings) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = if setrlimit(Resource::Nofile, raised).is_ok() { limit.maximum } else { limit.current };
    if let Some(files) = current {
        let room = usize::try_from(files.saturating_sub(FILES_RESERVED).max(64)).unwrap_or(usize::MAX);
        if settings.max_connections > room {
            tracing::warn!(
                "--max-connections {} lowered to {room}: the limit of open files is {files}",
                settings.max_connections
            );
            settings.max_connections = room;
        }
    }
}

fn warn_of_exposure(app: &App, address: SocketAddr, tls: bool) {
    if address.ip().is_loopback() {
        return;
    }
    if app.keys().is_none() {
        tracing::warn!("--insecure-no-auth: everyone who reaches {address} may read and change everything");
    } else if !tls {
        tracing::warn!("access keys travel in clear text to {address}: give --tls-cert and --tls-key");
    }
}

/// SIGTERM and SIGINT end the server, also as process 1; a second one ends it at once. SIGHUP reads the keys again.
struct Signals {
    term: tokio::signal::unix::Signal,
    int: tokio::signal::unix::Signal,
    hup: tokio::signal::unix::Signal,
}

impl Signals {
    fn catch() -> Result<Self, String> {
        let told = |e: std::io::Error| format!("cannot catch signals: {e}");
        Ok(Self {
            term: signal(SignalKind::terminate()).map_err(told)?,
            int: signal(SignalKind::interrupt()).map_err(told)?,
            hup: signal(SignalKind::hangup()).map_err(told)?,
        })
    }

    /// Returns when the server is to end.
    async fn stop(&mut self, app: &Shared) {
        loop {
            tokio::select! {
                _ = self.term.recv() => return,
                _ = self.int.recv() => return,
                _ = self.hup.recv() => reload_keys(app),
            }
        }
    }

    /// From now on a signal ends the process at once.
    fn force_at_the_next(mut self) {
        tokio::spawn(async move {
            tokio::select! {
                _ = self.term.recv() => {}
                _ = self.int.recv() => {}
            }
            tracing::warn!("a second signal: ending at once, the log is replayed at the next start");
            std::process::exit(1);
        });
    }
}

fn reload_keys(app: &App) {
    let Some(path) = app.settings.access_keys.as_deref() else { return };
    match AccessKeys::read(path) {
        Ok(keys) => {
            app.replace_keys(keys);
            tracing::info!("access keys read again from {}", path.display());
        }
        Err(message) => tracing::error!("the access keys stay as they were: {message}"),
    }
}
