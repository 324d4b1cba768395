//! Log lines on standard error, as text or JSON; standard output stays silent for them.
//!
//! Takes the options; gives nothing. Panics are logged here, with their place.

use tracing::level_filters::LevelFilter;

use crate::cli::{LogFormat, LogLevel};

/// Starts logging for this process. A second start changes nothing.
pub(crate) fn start(format: LogFormat, level: LogLevel) {
    let level = match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let builder = tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).with_target(false);
    let _ = match format {
        LogFormat::Text => {
            let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
            tracing::subscriber::set_global_default(builder.with_ansi(colour).finish())
        }
        LogFormat::Json => tracing::subscriber::set_global_default(builder.json().flatten_event(true).finish()),
    };
    std::panic::set_hook(Box::new(|info| {
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        let payload = info.payload();
        let text =
            payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        tracing::error!(place, "panic: {}", text.unwrap_or("?"));
    }));
}

/// One line for the person who typed the command.
#[expect(clippy::print_stderr, reason = "a command line's complaint goes to standard error")]
pub(crate) fn complain(message: &str) {
    eprintln!("quarrydb: {message}");
}
